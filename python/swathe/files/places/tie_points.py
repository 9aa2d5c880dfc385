"""Places of arrays whose latitudes and longitudes lie on coarser axes: tie points.

Unit vectors of the tie points are interpolated linearly along each axis, so that the dateline and
the poles are places as others. Beyond the outermost tie points the line through the last two goes
on, as in python-geotiepoints. Rows of a scan (axes such as `10*nscans`) use tie points of the same
scan only, since scans of MODIS overlap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from swathe.arrays.struct_metadata import STRUCTURE
from swathe.files.places.coordinates import (
    ATTRIBUTES,
    axes_of,
    check_size,
    index_box,
    scopes_of,
    surest,
    values_of,
)
from swathe.files.places.dimension_maps import IDENTITY, DimensionMap, dimension_maps
from swathe.files.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from swathe.arrays.array_tree import ArrayTree
    from swathe.files.array import Array
    from swathe.files.places.bounds import Bounds

FACTORS = (5, 10)
"""Elements for each tie point that a file need not declare, as in MODIS level 2."""
MOST_BEYOND = 2.0
"""Distance beyond the outermost tie point over which places are extrapolated, in tie points."""
SCAN = re.compile(r"(\d{1,4})\*nscans\b", re.ASCII)


@dataclass(frozen=True)
class TieAxis:
    """Tie points along an axis of an array.

    Attributes:
        axis: number of the axis of the array.
        length: elements of the array along it.
        count: tie points along it.
        scan: tie points of one scan; all, if there are no scans.
        where: elements of the tie points.
    """

    axis: int
    length: int
    count: int
    scan: int
    where: DimensionMap

    @property
    def reaches(self) -> bool:
        """Check whether all elements lie between tie points, or near the outermost ones."""
        first = -self.where.offset / self.where.increment
        last = (self.length - 1 - self.where.offset) / self.where.increment
        inside = first >= -MOST_BEYOND and last <= self.count - 1 + MOST_BEYOND
        return inside and self.scan >= min(2, self.length)

    def neighbours(self, start: int, stop: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the tie point before each element, and the part of the way to the next one.

        The part is below 0 or above 1 where the place is extrapolated.
        """
        import numpy as np

        at = (np.arange(start, stop) - self.where.offset) / self.where.increment
        rows = self.scan * self.where.increment
        first = np.floor(np.arange(start, stop) / rows).astype(np.intp) * self.scan
        first = np.clip(first, 0, self.count - self.scan)
        before = np.clip(np.floor(at).astype(np.intp), first, first + max(self.scan - 2, 0))
        return before, at - before


@dataclass(frozen=True)
class TiePoints:
    """Latitudes and longitudes on coarser axes than those of an array.

    Attributes:
        latitude: latitudes of the tie points.
        longitude: longitudes of the tie points, on the same axes.
        axes: their axes, in the order of both.
    """

    latitude: Array
    longitude: Array
    axes: tuple[TieAxis, ...]

    def box(self, bounds: Bounds) -> dict[int, tuple[int, int]] | None:
        """Return the smallest box of indices, by axis, that has all elements in bounds.

        `None` if there is none.

        Raises:
            FormatError: If the tie points cannot be read.
            LimitError: If the array is too large.
        """
        shape = tuple(each.length for each in self.axes)
        check_size(f"{self.latitude.url}, tie points {self.latitude.path}", shape)
        rest = [(0, length) for length in shape[1:]]

        def mask_of(start: int, stop: int) -> NDArray[np.bool_]:
            return bounds.has(*self.places([(start, stop), *rest]))

        ends = index_box(shape, mask_of)
        if ends is None:
            return None
        return {each.axis: end for each, end in zip(self.axes, ends, strict=True)}

    def places(
        self, ranges: list[tuple[int, int]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return latitudes and longitudes of elements in degrees, from -180; NaN if unknown.

        Args:
            ranges: `(start, stop)` for each of `axes`.

        Raises:
            FormatError: If the tie points cannot be read.
            LimitError: If there are too many.
        """
        import numpy as np

        steps = [each.neighbours(*ends) for each, ends in zip(self.axes, ranges, strict=True)]
        first = int(steps[0][0].min(initial=self.axes[0].count))
        last = int(steps[0][0].max(initial=first)) + 2
        rows = first, min(last, self.axes[0].count)
        vectors = _unit_vectors(values_of(self.latitude, *rows), values_of(self.longitude, *rows))
        for number, (before, part) in enumerate(steps):
            at = before - (first if number == 0 else 0)
            after = np.minimum(at + 1, vectors.shape[number + 1] - 1)
            weight = part.reshape(-1, *[1] * (vectors.ndim - number - 2))
            vectors = (
                np.take(vectors, at, number + 1) * (1 - weight)
                + np.take(vectors, after, number + 1) * weight
            )
        return _degrees(vectors)

    def variables(
        self, spans: Mapping[int, tuple[int, int]], single: frozenset[int], names: tuple[str, ...]
    ) -> dict[str, Variable]:
        """Return the places of a region as variables, in degrees; NaN outside the array.

        Args:
            spans: `(start, stop)` by the number of the axis of the array.
            single: numbers of the axes that the region drops.
            names: names of the axes of the array.
        """
        import numpy as np

        ranges, edges = [], []
        for each in self.axes:
            start, stop = spans[each.axis]
            ranges.append((max(0, start), min(stop, each.length)))
            edges.append((ranges[-1][0] - start, stop - ranges[-1][1]))
        lost_axes = tuple(at for at, each in enumerate(self.axes) if each.axis in single)
        dims = tuple(names[each.axis] for each in self.axes if each.axis not in single)
        variables = {}
        sources = (self.latitude, self.longitude)
        for source, values, kind in zip(sources, self.places(ranges), ATTRIBUTES, strict=True):
            attrs = ATTRIBUTES[kind] | {"comment": f"interpolated from tie points {source.path}"}
            whole = np.pad(values, edges, constant_values=np.nan).squeeze(lost_axes)
            variables[source.name] = Variable(whole, dims, attrs)
        return variables


_TIE_POINTS: WeakKeyDictionary[ArrayTree, dict[str, list[tuple[str, str, tuple[TieAxis, ...]]]]]
_TIE_POINTS = WeakKeyDictionary()
"""Latitude, longitude and axes of the tie points by the path of an array, of each open file."""


def tie_points(array: Array) -> list[TiePoints]:
    """Return the tie points of an array; several are ambiguous.

    Their axes are related to those of the array by the dimension maps of HDF-EOS. In files
    without any, latitudes and longitudes of 1/5 or 1/10 of the length along two axes are those
    of blocks of 5 or 10 elements, at their centres. An array with a latitude of its own has none.
    """
    by_path = _TIE_POINTS.setdefault(array.tree, {})
    paths = by_path.get(array.path)
    if paths is None:
        ties = _find_tie_points(array)
        paths = [(each.latitude.path, each.longitude.path, each.axes) for each in ties]
        by_path[array.path] = paths
    return [TiePoints(array.other(lat), array.other(lon), axes) for lat, lon, axes in paths]


def _find_tie_points(array: Array) -> list[TiePoints]:
    """Return what `tie_points` does; it looks at all arrays of the file."""
    if surest("latitude", array.others, lambda other: bool(axes_of(other, array))):
        return []
    maps = dimension_maps(array.root_attrs.get(STRUCTURE))
    axes_by = partial(_axes_by_map, maps=maps) if maps else _axes_by_length

    def fits(other: Array) -> bool:
        return 1 <= other.ndim <= 2 and axes_by(other, array) is not None

    for others in scopes_of(array):
        pairs = []
        for latitude in surest("latitude", others, fits):
            axes = axes_by(latitude, array)
            assert axes is not None
            pairs += [
                TiePoints(latitude, longitude, axes)
                for longitude in surest("longitude", others, fits)
                if (longitude.dims, longitude.shape) == (latitude.dims, latitude.shape)
            ]
        if pairs:
            return pairs
    return []


def _axes_by_map(
    other: Array, array: Array, maps: Mapping[tuple[str, str], DimensionMap]
) -> tuple[TieAxis, ...] | None:
    """Return how axes of geolocation lie on those of an array; `None` if no map says so."""
    axes: list[TieAxis] = []
    for name, count in zip(other.dims, other.shape, strict=False):
        for number, (data_name, length) in enumerate(zip(array.dims, array.shape, strict=False)):
            where = IDENTITY if name == data_name else maps.get((name, data_name))
            if where is not None:
                axes.append(TieAxis(number, length, count, _scan(name, count), where))
                break
    if len({each.axis for each in axes}) != other.ndim or not all(each.reaches for each in axes):
        return None
    return tuple(axes)


def _axes_by_length(other: Array, array: Array) -> tuple[TieAxis, ...] | None:
    """Return how axes of geolocation lie on those of an array, if both are 1/5 or 1/10."""
    if other.ndim != 2 or array.ndim < 2:
        return None
    for factor in FACTORS:
        where = DimensionMap((factor - 1) / 2, factor)
        for numbers in permutations(range(array.ndim), 2):
            if numbers[0] > numbers[1]:
                continue
            lengths = [array.shape[number] for number in numbers]
            if all(
                count in (length // factor, -(-length // factor))
                for count, length in zip(other.shape, lengths, strict=True)
            ):
                names: Any = other.dims or ("", "")
                axes = tuple(
                    TieAxis(number, length, count, _scan(name, count), where)
                    for number, length, count, name in zip(
                        numbers, lengths, other.shape, names, strict=True
                    )
                )
                if all(each.reaches for each in axes):
                    return axes
    return None


def _scan(name: str, count: int) -> int:
    """Return the tie points of a scan, as the name of an axis says it; else all."""
    match = SCAN.search(name)
    rows = 0 if match is None else int(match[1])
    return rows if rows > 1 and count % rows == 0 else count


def _unit_vectors(
    latitude: NDArray[np.float64], longitude: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return unit vectors, shape `(3, ...)`; NaN where a place is none."""
    import numpy as np

    is_place = (abs(latitude) <= 90) & (abs(longitude) <= 720)
    north = np.radians(np.where(is_place, latitude, np.nan))
    east = np.radians(np.where(is_place, longitude, np.nan))
    across = np.cos(north)
    return np.stack([across * np.cos(east), across * np.sin(east), np.sin(north)])


def _degrees(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return latitudes and longitudes of vectors of any length; NaN if it is nearly 0."""
    import numpy as np

    x, y, z = vectors
    across = np.hypot(x, y)
    unknown = ~(np.hypot(across, z) > 1e-6)
    latitude, longitude = np.degrees(np.arctan2(z, across)), np.degrees(np.arctan2(y, x))
    latitude[unknown] = longitude[unknown] = np.nan
    return latitude, longitude
