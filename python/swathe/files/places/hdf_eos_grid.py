"""Places of grids of HDF-EOS 2 and 5: corners and projection by `StructMetadata`.

Pixels are the equal parts of the area between the corners, in either registration.

References:
    HDF-EOS Library User's Guide, volume 1, 5 (grids) and appendix A (packed degrees of GCTP);
    CF conventions, appendix F (grid mappings).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from swathe.arrays.struct_metadata import STRUCTURE, integer_of, structures_of, without_quotes
from swathe.core.errors import FormatError, RegionError
from swathe.files.places.coordinates import ATTRIBUTES, check_size, index_box
from swathe.files.places.grid import axis_ranges
from swathe.files.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from swathe.arrays.array_tree import ArrayTree
    from swathe.files.array import Array
    from swathe.files.places.bounds import Bounds

GEOGRAPHIC, SINUSOIDAL = "GCTP_GEO", "GCTP_SNSOID"
EARTH_RADII_M = (6.2e6, 6.5e6)
"""Radii of the Earth; a file that names another one is of another planet."""
MAPPING = "crs"
"""Name of the grid mapping of a cut."""
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
        y: outer edges of the first and the last row: degrees, or metres if sinusoidal.
        x: outer edges of the first and the last column.
        radius_m: radius of the sphere of a sinusoidal grid; `None` if it is geographic.
    """

    name: str
    axes: tuple[int, int]
    shape: tuple[int, int]
    y: tuple[float, float]
    x: tuple[float, float]
    radius_m: float | None

    def ranges(self, bounds: Bounds) -> list[dict[int, tuple[int, int]]]:
        """Return the parts whose pixel centres lie in bounds, by number of the axis.

        Of a sinusoidal grid it is the smallest box of indices that has all of them.

        Raises:
            LimitError: If an axis is too long, or a sinusoidal grid too large.
        """
        import numpy as np

        y, x = self.axes
        height, width = self.shape
        if self.radius_m is not None:
            check_size(f"grid {self.name}", self.shape)
        for length in self.shape:
            check_size(f"grid {self.name}", (1, length))
        columns = np.arange(width) + 0.5
        if self.radius_m is None:
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
        if self.radius_m is None:
            return y, x
        with np.errstate(divide="ignore", invalid="ignore"):
            longitude = np.degrees(x / (self.radius_m * np.cos(y / self.radius_m)))
        longitude[~(np.abs(longitude) <= 180.000001)] = np.nan
        return np.degrees(y / self.radius_m), longitude

    def variables(
        self, spans: Mapping[int, tuple[int, int]], single: frozenset[int], names: tuple[str, ...]
    ) -> dict[str, Variable]:
        """Return the coordinates of the pixels of a region.

        They are `lat` and `lon` in degrees; of a sinusoidal grid `y` and `x` in metres.

        Args:
            spans: `(start, stop)` by the number of the axis of the array.
            single: numbers of the axes that the region drops.
            names: names of the axes of the array.
        """
        import numpy as np

        kinds = LENGTHS
        if self.radius_m is None:
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
        """Return the grid mapping of a sinusoidal grid; `None` if it is geographic."""
        import numpy as np

        if self.radius_m is None:
            return None
        attrs = {
            "grid_mapping_name": "sinusoidal",
            "earth_radius": self.radius_m,
            "longitude_of_central_meridian": 0.0,
            "false_easting": 0.0,
            "false_northing": 0.0,
        }
        return Variable(np.zeros((), np.int32), (), attrs)

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
        RegionError: If the grid is not around Greenwich, or is of another planet.
    """
    entries = _entries(array)
    projection = _projection(entries)
    if projection not in (GEOGRAPHIC, SINUSOIDAL):
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
    y = y[::-1] if origin.startswith("L") else y
    x = x[::-1] if origin.endswith("R") else x
    radius_m = None if projection == GEOGRAPHIC else _radius(what, entries)
    if radius_m is None:
        y, x = _degrees(what, y, 90), _degrees(what, x, 360)
    axes = sides.index("YDim"), sides.index("XDim")
    shape = array.shape[axes[0]], array.shape[axes[1]]
    return EosGrid(without_quotes(entries["GridName"]), axes, shape, y, x, radius_m)


def other_projection(array: Array) -> str | None:
    """Return the projection of an array's grid of HDF-EOS that is not read; `None` without one."""
    projection = _projection(_entries(array))
    return None if projection in ("", GEOGRAPHIC, SINUSOIDAL) else projection


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
    except (FormatError, RegionError) as error:
        warnings.warn(f"{error}: the cut has no place", stacklevel=4)
        return {}, None
    if grid is None:
        return {}, None
    return grid.variables(spans, single, names), grid.mapping()


def check_radius(radius_m: float) -> None:
    """Check that a radius is that of the Earth.

    Raises:
        RegionError: If it is not.
    """
    if not EARTH_RADII_M[0] <= radius_m <= EARTH_RADII_M[1]:
        raise RegionError(f"expected the radius of the Earth, found {radius_m:g} m")


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


def _radius(what: str, entries: Mapping[str, str]) -> float:
    """Return the radius of a sinusoidal grid around Greenwich in metres."""
    try:
        numbers = [float(each) for each in entries.get("ProjParams", "").strip("()").split(",")]
    except ValueError:
        raise FormatError(f"{what}: expected numbers in ProjParams, found others") from None
    check_radius(numbers[0])
    if any(numbers[1:]):
        raise RegionError(f"expected a sinusoidal grid around Greenwich, found {numbers[:13]}")
    return numbers[0]


def _pair(text: str) -> tuple[float, float]:
    x, y = map(float, text.strip("()").split(","))
    if not (math.isfinite(x) and math.isfinite(y)):
        raise ValueError(f"expected two numbers, found {text}")
    return x, y


def _degrees(what: str, ends: tuple[float, float], most: float) -> tuple[float, float]:
    """Return angles of DDDMMMSSS.SS (GCTP) in degrees."""
    angles = []
    for angle in ends:
        whole, rest = divmod(abs(angle), 1e6)
        minutes, seconds = divmod(rest, 1e3)
        degrees = whole + minutes / 60 + seconds / 3600
        if minutes > 60 or seconds > 60 or degrees > most:
            raise FormatError(f"{what}: expected a corner in degrees, DDDMMMSSS.SS, found {angle}")
        angles.append(math.copysign(degrees, angle))
    return angles[0], angles[1]
