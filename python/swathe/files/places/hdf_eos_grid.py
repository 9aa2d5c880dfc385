"""Places of grids of HDF-EOS 2 and 5: corners and projection by `StructMetadata`.

Pixels are the equal parts of the area between the corners, in either registration.

References:
    HDF-EOS Library User's Guide, volume 1, 5 (grids).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from swathe.arrays.struct_metadata import STRUCTURE, integer_of, structures_of, without_quotes
from swathe.core.errors import FormatError, OptionError, RegionError
from swathe.files.places.coordinates import ATTRIBUTES, check_size, index_box
from swathe.files.places.gctp import ALL, GEOGRAPHIC, corner_degrees, projection_of
from swathe.files.places.grid import axis_ranges
from swathe.files.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from swathe.arrays.array_tree import ArrayTree
    from swathe.files.array import Array
    from swathe.files.places.bounds import Bounds
    from swathe.files.places.gctp import MapProjection

MAPPING = "crs"
"""Name of the grid mapping of a cut."""
TURN, ROUNDING = 360.0, 1e-9
"""Degrees around the Earth, and how far beyond them a grid may be, as a part."""
LENGTHS = {
    "y": {"standard_name": "projection_y_coordinate", "units": "m"},
    "x": {"standard_name": "projection_x_coordinate", "units": "m"},
}


@dataclass(frozen=True)
class EosGrid:
    """The grid of an array.

    Attributes:
        name: its name.
        axes: numbers of the axes YDim and XDim of the array.
        shape: pixels along them.
        y: outer edges of the first and the last row: degrees, or metres of a projection.
        x: outer edges of the first and the last column.
        projection: its projection; `None` if it is geographic.
    """

    name: str
    axes: tuple[int, int]
    shape: tuple[int, int]
    y: tuple[float, float]
    x: tuple[float, float]
    projection: MapProjection | None

    def ranges(self, bounds: Bounds) -> list[dict[int, tuple[int, int]]]:
        """Return the parts whose pixel centres lie in bounds, by number of the axis.

        Of a projection it is the smallest box of indices that has all of them.

        Raises:
            LimitError: If an axis is too long, or the grid of a projection too large.
        """
        import numpy as np

        y, x = self.axes
        height, width = self.shape
        if self.projection is not None:
            check_size(f"grid {self.name}", self.shape)
        for length in self.shape:
            check_size(f"grid {self.name}", (1, length))
        columns = np.arange(width) + 0.5
        if self.projection is None:
            rows = np.arange(height) + 0.5
            north, east = self._along(self.y, height, rows), self._along(self.x, width, columns)
            ends = axis_ranges(north, east, bounds)
            return [{y: row, x: column} for row in ends[0] for column in ends[1]]
        box = index_box(
            self.shape,
            lambda start, stop: bounds.has(*self.places(np.arange(start, stop) + 0.5, columns)),
        )
        return [] if box is None else [dict(zip(self.axes, box, strict=True))]

    def places(
        self, rows: NDArray[Any], columns: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return latitudes and longitudes in degrees, shape `(rows, columns)`; NaN if unknown.

        Args:
            rows: places along y in pixels from the outer edge: 0.5 is the centre of the first.
            columns: places along x, alike.
        """
        import numpy as np

        y, x = np.meshgrid(
            self._along(self.y, self.shape[0], rows),
            self._along(self.x, self.shape[1], columns),
            indexing="ij",
        )
        if self.projection is None:
            return y, x
        return self.projection.degrees(y, x)

    def variables(
        self, spans: Mapping[int, tuple[int, int]], single: frozenset[int], names: tuple[str, ...]
    ) -> dict[str, Variable]:
        """Return the coordinates of the pixels of a region.

        They are `lat` and `lon` in degrees; of a projection `y` and `x` in metres.

        Args:
            spans: `(start, stop)` by the number of the axis of the array.
            single: numbers of the axes that the region drops.
            names: names of the axes of the array.
        """
        import numpy as np

        kinds = LENGTHS
        if self.projection is None:
            kinds = {"lat": ATTRIBUTES["latitude"], "lon": ATTRIBUTES["longitude"]}
        variables = {}
        sides = zip(kinds, self.axes, self.shape, (self.y, self.x), strict=True)
        for name, axis, length, ends in sides:
            values = self._along(ends, length, np.arange(*spans[axis]) + 0.5)
            dims = () if axis in single else (names[axis],)
            attrs = kinds[name] | {"comment": f"by StructMetadata of grid {self.name}"}
            variables[name] = Variable(values if dims else values[0], dims, attrs)
        return variables

    def mapping(self) -> Variable | None:
        """Return the grid mapping of a projection; `None` if the grid is geographic."""
        import numpy as np

        if self.projection is None:
            return None
        return Variable(np.zeros((), np.int32), (), self.projection.attributes())

    @staticmethod
    def _along(ends: tuple[float, float], length: int, at: NDArray[Any]) -> NDArray[np.float64]:
        along: NDArray[np.float64] = ends[0] + (ends[1] - ends[0]) / length * at
        return along


_GRIDS: WeakKeyDictionary[ArrayTree, dict[str, dict[str, str]]] = WeakKeyDictionary()
"""Values of the grids by name, of each open file; of equal names, the first."""


def eos_grid(array: Array) -> EosGrid | None:
    """Return the grid of an array; `None` if it is in none, or in one of another projection.

    Raises:
        FormatError: If `StructMetadata` does not describe the grid of the array.
        OptionError: If the projection needs pyproj, which is not installed.
        RegionError: If the grid is of another planet or an unknown ellipsoid; if it is sinusoidal
            and not around Greenwich.
    """
    entries = _entries(array)
    name = _projection(entries)
    if name not in ALL:
        return None
    what = f"{array.url}, array {array.path}: StructMetadata"
    sides = [each.partition(":")[0] for each in array.dims]
    sizes = [integer_of(entries.get(each)) for each in ("YDim", "XDim")]
    try:
        left, top = _pair(entries["UpperLeftPointMtrs"])
        right, bottom = _pair(entries["LowerRightMtrs"])
    except (KeyError, ValueError):
        raise FormatError(f"{what}: expected the corners of a grid, found none") from None
    lengths = dict(zip(sides, array.shape, strict=True))
    if None in sizes or [lengths.get("YDim"), lengths.get("XDim")] != sizes:
        raise FormatError(f"{what}: expected a grid of {lengths}, found {sizes[0]} x {sizes[1]}")
    if not array.size or left == right or top == bottom:
        raise FormatError(f"{what}: expected pixels with an area, found none")
    origin = entries.get("GridOrigin", "").removeprefix("HE5_").removeprefix("HDFE_GD_")
    y, x = (top, bottom), (left, right)
    projection = None if name == GEOGRAPHIC else projection_of(what, name, entries)
    if projection is None:
        y, x = corner_degrees(what, y, x)
        x = _one_turn(what, *x)
    y = y[::-1] if origin.startswith("L") else y
    x = x[::-1] if origin.endswith("R") else x
    axes = sides.index("YDim"), sides.index("XDim")
    shape = array.shape[axes[0]], array.shape[axes[1]]
    return EosGrid(without_quotes(entries["GridName"]), axes, shape, y, x, projection)


def _one_turn(what: str, left: float, right: float) -> tuple[float, float]:
    """Return the longitudes of both sides of a grid; the right one goes on over the dateline.

    Raises:
        FormatError: If the grid goes around the Earth more than once.
    """
    if left > right > left - TURN:
        right += TURN
    if abs(right - left) > TURN * (1 + ROUNDING):
        raise FormatError(
            f"{what}: expected longitudes of one turn of 360 degrees at most, found "
            f"{left:g} to {right:g}"
        )
    return left, right


def other_projection(array: Array) -> str | None:
    """Return the projection of an array's grid of HDF-EOS that is not read; `None` without one."""
    projection = _projection(_entries(array))
    return None if projection in ("", *ALL) else projection


def grid_coordinates(
    array: Array,
    spans: Mapping[int, tuple[int, int]],
    single: frozenset[int],
    names: tuple[str, ...],
) -> tuple[dict[str, Variable], Variable | None]:
    """Return the coordinates and the grid mapping of a region, as `EosGrid` does.

    There are none, with a warning, if `StructMetadata` does not describe the array.
    """
    try:
        grid = eos_grid(array)
    except (FormatError, OptionError, RegionError) as error:
        warnings.warn(f"{error}: the cut has no place", stacklevel=4)
        return {}, None
    if grid is None:
        return {}, None
    return grid.variables(spans, single, names), grid.mapping()


def _entries(array: Array) -> dict[str, str]:
    """Return the values of the grid that the axes of an array name; empty without one."""
    name = next((each.partition(":")[2] for each in array.dims if ":" in each), "")
    grids = _GRIDS.get(array.tree)
    if grids is None:
        grids = {}
        for each in structures_of(array.root_attrs.get(STRUCTURE)):
            if each.kind == "GRID" and each.name:
                grids.setdefault(each.name, each.entries)
        # Other threads see all grids of a file or none.
        _GRIDS[array.tree] = grids
    return grids.get(name, {})


def _projection(entries: Mapping[str, str]) -> str:
    return entries.get("Projection", "").removeprefix("HE5_")[:100]


def _pair(text: str) -> tuple[float, float]:
    x, y = map(float, text.strip("()").split(","))
    if not (math.isfinite(x) and math.isfinite(y)):
        raise ValueError(f"expected two numbers, found {text}")
    return x, y
