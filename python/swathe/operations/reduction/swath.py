"""Swaths: values with the place of each, from granules or from memory.

Values are masked and scaled by the CF conventions (sections 2.5.1 and 8.1) before any mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from swathe.core.errors import (
    FormatError,
    LimitError,
    NoSuchArrayError,
    OptionError,
    RegionError,
)
from swathe.files.array_file import ArrayFile
from swathe.files.array_region import plane_axes
from swathe.files.file import open_any
from swathe.files.masks import whole_mask
from swathe.files.places.coordinates import BLOCK_ELEMENTS
from swathe.files.places.geotiff import has_place, raster_places
from swathe.files.places.hdf_eos_grid import eos_grid
from swathe.files.places.regions import pair_on_axes, tie_points_of
from swathe.files.variable import SCALING, Variable, masked_values, scale_and_offset
from swathe.operations.reduction.pixels import Pixels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swathe.files.array import Array
    from swathe.files.places.geotiff import RowsOfPlaces
    from swathe.files.places.tie_points import TiePoints
    from swathe.files.variable import ArrayElements
    from swathe.operations.reduction.condition import Condition

MOST_BYTES = 8 << 30
"""Of the values and places of a granule in memory."""
FLOAT_BYTES = 8
"""Bytes of an element to which a scale or an offset is applied, at most."""


@dataclass
class Swath:
    """Values with the place of each.

    Attributes:
        data: values of any shape; masked elements and NaN are fill.
        latitude: degrees, of a shape that broadcasts to that of `data`; masked or NaN if unknown.
        longitude: degrees, in the same way.
        fields: other arrays for `where`, by name.
        attrs: attributes of the values, such as `units`.
        url: path or URL of its file, if it has one.
        version: version of its file; empty if it has none.
    """

    data: Any
    latitude: Any
    longitude: Any
    fields: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None
    version: str = ""


def swath_of(
    path: Any,
    array: str | None,
    condition: Condition | None,
    count: Callable[[Mapping[str, Any]], None],
    most_bytes: int | None = None,
) -> Swath:
    """Read a granule whole. Places of coarser axes, such as 5 km for 1 km, are interpolated.

    Args:
        path: path or URL.
        array: path of the variable; by default the only one with two axes or more.
        condition: condition on other arrays, which are read, too.
        count: function that is called with the traffic of the file, also after an error.
        most_bytes: largest size of its values and places in memory; by default `MOST_BYTES`.

    Raises:
        LimitError: If these have more than `most_bytes`.
        NoSuchArrayError: If the file has no such array.
        RegionError: If the array has no latitude and longitude, or several; or if it is an image of
            several bands.
        FormatError: If it is a FITS file, or damaged.
    """
    with open_granule(path, fresh=True, alone=True) as file:
        try:
            arrays = granule_arrays(file, array, condition)
            _check_size(file, arrays, most_bytes)
            latitude, longitude = _places_of(arrays)
            variable = arrays.variable
            fields = {name: _field_values(variable, each) for name, each in arrays.others.items()}
            elements = Variable(variable.data, variable.dims, variable.attrs, whole_mask(variable))
            values = masked_values(elements)
        finally:
            count(file.traffic)
        return Swath(values, latitude, longitude, fields, variable.attrs, file.url, file.version)


def open_granule(path: Any, fresh: bool = False, alone: bool = False) -> ArrayFile:
    """Open the file of a granule, as `open_any` does.

    Raises:
        FormatError: If it is a FITS file, or damaged.
    """
    file = open_any(path, fresh, alone)
    if not isinstance(file, ArrayFile):
        raise FormatError(f"{path}: expected a file of arrays with coordinates, found FITS")
    return file


class GranuleArrays(NamedTuple):
    """Arrays of a granule that a reduction reads.

    Attributes:
        variable: the one that is reduced.
        places: latitudes and longitudes of its elements, or of its tie points; none of a grid.
        finer: tie points that `places` are, or the grid that the file describes; on axes of the
            variable.
        others: those of a condition, by name.
    """

    variable: Array
    places: tuple[()] | tuple[Array, Array]
    finer: TiePoints | MapGrid | None
    others: dict[str, Array]

    @property
    def all(self) -> list[Array]:
        """Return all arrays."""
        return [self.variable, *self.places, *self.others.values()]


class MapGrid(NamedTuple):
    """A grid that its file describes without latitudes and longitudes: GeoTIFF, HDF-EOS.

    Attributes:
        axes: its axes among those of the variable, rows first.
        shape: pixels along them.
        rows: function that returns latitudes and longitudes of rows `[start, stop)`.
    """

    axes: tuple[int, int]
    shape: tuple[int, int]
    rows: RowsOfPlaces

    @classmethod
    def of(cls, array: Array) -> MapGrid | None:
        """Return the grid of an array, if it has one.

        Raises:
            SwatheError: As `raster_places` and `eos_grid` raise.
        """
        if has_place(array):
            y, x = plane_axes(array)
            bands = array.shape[array.dims.index("band")] if "band" in array.dims else 1
            if bands > 1:
                raise RegionError(
                    f"{array.url}, array {array.path}: expected one band, found {bands}, whose "
                    "values may mean different things: first cut one of them as a .tif"
                )
            return cls((y, x), (array.shape[y], array.shape[x]), raster_places(array))
        grid = eos_grid(array)
        if grid is None:
            return None
        columns = np.arange(grid.shape[1]) + 0.5
        return cls(
            grid.axes,
            grid.shape,
            lambda start, stop: grid.places(np.arange(start, stop) + 0.5, columns),
        )


def granule_arrays(
    file: ArrayFile, array: str | None, condition: Condition | None
) -> GranuleArrays:
    """Return the arrays of a granule that a reduction reads.

    Raises:
        NoSuchArrayError: If the file has no such array.
        RegionError: If the variable has no latitude and longitude, or several.
    """
    variable = file.array(array)
    names = frozenset() if condition is None else condition.names
    others = {name: _field(file, variable, name) for name in names}
    pair = pair_on_axes(variable)
    if pair is not None:
        return GranuleArrays(variable, pair, None, others)
    if (grid := MapGrid.of(variable)) is not None:
        return GranuleArrays(variable, (), grid, others)
    ties = tie_points_of(variable)
    return GranuleArrays(variable, (ties.latitude, ties.longitude), ties, others)


def pixels_of(swath: Any, condition: Condition | None) -> Pixels:
    """Return the pixels of a swath, those that a condition leaves out as fill.

    Args:
        swath: a `Swath`, or an object with `data`, `latitude` and `longitude`.
        condition: condition on its fields.

    Raises:
        OptionError: If it lacks a field, or its values are no real numbers.
        RegionError: If shapes differ.
    """
    mask = None
    if condition is not None:
        fields = {**getattr(swath, "fields", {})}
        missing = sorted(condition.names - fields.keys())
        if missing:
            raise OptionError(f"where: expected arrays of the source, found {missing!r:.60}")
        mask = condition.mask({name: np.asarray(fields[name]) for name in condition.names})
    attrs = dict(getattr(swath, "attrs", {}))
    return Pixels.of(swath.data, swath.latitude, swath.longitude, mask, attrs)


def _check_size(file: ArrayFile, arrays: GranuleArrays, most_bytes: int | None) -> None:
    """Check what arrays take in memory, with their masks, before they are read.

    A small file can have large arrays: a chunk that is not stored has the fill value.
    """
    size = 0
    for each in arrays.all:
        is_scaled = any(name in each.attrs for name in SCALING)
        size += each.size * (1 + max(each.dtype.itemsize, FLOAT_BYTES if is_scaled else 0))
    if arrays.finer is not None:
        size += 2 * FLOAT_BYTES * math.prod(_lengths_of(arrays.finer))
    limit = MOST_BYTES if most_bytes is None else most_bytes
    if size > limit:
        setting = "" if most_bytes is None else " (limits.cutout_mb)"
        raise LimitError(
            f"{file.url}: expected values and places of up to {limit:,} bytes{setting}, "
            f"found {size:,}"
        )


def _places_of(arrays: GranuleArrays) -> tuple[Any, Any]:
    """Read latitudes and longitudes, of shapes that broadcast to that of the variable."""
    variable, finer = arrays.variable, arrays.finer
    if finer is None:
        latitude, longitude = (
            _on_axes_of(masked_values(each), variable, each) for each in arrays.places
        )
        return latitude, longitude
    lengths = _lengths_of(finer)
    rows = max(1, BLOCK_ELEMENTS // max(1, math.prod(lengths[1:])))
    latitude, longitude = np.empty(lengths), np.empty(lengths)
    for start in range(0, lengths[0], rows):
        part = slice(start, min(start + rows, lengths[0]))
        if isinstance(finer, MapGrid):
            latitude[part], longitude[part] = finer.rows(part.start, part.stop)
        else:
            rest = [(0, length) for length in lengths[1:]]
            latitude[part], longitude[part] = finer.places([(part.start, part.stop), *rest])
    if isinstance(finer, MapGrid):
        # The projection has no place there.
        nowhere = ~(np.isfinite(latitude) & np.isfinite(longitude))
        latitude[nowhere] = longitude[nowhere] = np.nan
        axes = [*finer.axes]
    else:
        axes = [each.axis for each in finer.axes]
    return _spread(latitude, axes, variable.ndim), _spread(longitude, axes, variable.ndim)


def _lengths_of(finer: TiePoints | MapGrid) -> list[int]:
    """Return the number of places along each axis."""
    return [*finer.shape] if isinstance(finer, MapGrid) else [each.length for each in finer.axes]


def _spread(values: Any, axes: list[int], ndim: int) -> Any:
    """Return values of some axes of an array with `ndim` axes; the others have one element."""
    shape = [1] * ndim
    for axis, length in zip(axes, values.shape, strict=True):
        shape[axis] = length
    return values.transpose(np.argsort(axes)).reshape(shape)


def _field(file: ArrayFile, variable: Array, name: str) -> Array:
    """Return an array of a condition.

    Raises:
        NoSuchArrayError: If there is none, or several.
    """
    other = file.near(variable.path, name)
    if other is not None:
        return other
    try:
        return file[name]
    except NoSuchArrayError as error:
        raise NoSuchArrayError(f"where: {error}") from error


def _field_values(variable: Array, other: Array) -> Any:
    """Read an array of a condition: integers as stored, others with NaN for fill.

    Flags of HDF-EOS are integers though they have a scale of 1 and an offset of 0.
    """
    elements: ArrayElements = other
    scale, offset = scale_and_offset(other.attrs)
    if other.dtype.kind in "iu" and scale in (None, 1) and offset in (None, 0):
        attrs = {name: value for name, value in other.attrs.items() if name not in SCALING}
        elements = Variable(other.data, other.dims, attrs)
    values = masked_values(elements)
    data = values.filled(np.nan) if values.dtype.kind == "f" else values.data
    return _on_axes_of(data, variable, other)


def _on_axes_of(values: Any, variable: Array, array: Array) -> Any:
    """Return values whose axes stand where the variable has the axes of the same names."""
    has_names = array.dims and len(set(variable.dims)) == variable.ndim
    if has_names and set(array.dims) <= set(variable.dims):
        at = [variable.dims.index(name) for name in array.dims]
        for axis, length in zip(at, array.shape, strict=True):
            if length != variable.shape[axis]:
                raise RegionError(
                    f"{variable.url}, array {array.path}: axis {variable.dims[axis]}: expected "
                    f"{variable.shape[axis]} elements as {variable.path} has, found {length}"
                )
        return _spread(values, at, variable.ndim)
    if array.shape == variable.shape[-array.ndim :]:
        return values
    raise RegionError(
        f"{variable.url}, array {array.path}: expected axes of {variable.path}, "
        f"{variable.dims or variable.shape}, found {array.dims or array.shape}"
    )
