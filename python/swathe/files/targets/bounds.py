"""Boxes of targets that are given by longitude and latitude."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from swathe.core.errors import RegionError, SwatheError, TargetsError
from swathe.core.row_record import OTHER_SIDE, fault_of
from swathe.files.targets.cells import is_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swathe.arrays.array_tree import ArrayTree
    from swathe.core.box import Box
    from swathe.core.row_record import Fault
    from swathe.core.row_table import RowTable

BOUNDS = ("west", "south", "east", "north")


def place_by_bounds(
    rows: RowTable, columns: Mapping[str, Any], tree_of: Callable[[str], ArrayTree | None] | None
) -> tuple[RowTable, dict[int, Box], dict[int, Fault]]:
    """Return rows, their boxes by their number, and the faults of those without one.

    The planes of a row whose bounds cross the edge of a global grid tell of the other side.

    Args:
        rows: rows with the paths of their arrays.
        columns: columns of the list, among them `BOUNDS`, in degrees.
        tree_of: function that returns the arrays of a file that may be read, `None` for FITS.

    Raises:
        TargetsError: If there is no such function: the list is not one of arrays.
    """
    if tree_of is None:
        raise TargetsError(
            f"the targets: expected boxes or positions in the sky, found {', '.join(BOUNDS)}: "
            "arrays have these"
        )
    from swathe.core.row_table import DictColumn

    boxes: dict[int, Box] = {}
    planes = rows.planes.list()
    faults: dict[int, Fault] = {}
    sources, paths = rows.source.list(), rows.hdu.list()
    box_of = lru_cache(maxsize=1000)(_box)
    # Each file is described once, not once for each of its rows.
    is_array_file = lru_cache(maxsize=1000)(lambda source: tree_of(source) is not None)
    for row, is_sound in enumerate(rows.sound.tolist()):
        if not is_sound:
            continue
        try:
            if not is_array_file(sources[row]):
                raise RegionError(
                    f"{sources[row]}: expected an array with longitudes and latitudes, found FITS"
                )
            boxes[row], columns_after = box_of(sources[row], paths[row], _bounds(columns, row))
            if columns_after:
                planes[row] = (*(planes[row] or ()), OTHER_SIDE, columns_after)
        except SwatheError as error:
            faults[row] = fault_of(error)
    return replace(rows, planes=DictColumn.of(planes)), boxes, faults


def _bounds(columns: Mapping[str, Any], row: int) -> tuple[float, ...]:
    bounds = []
    for name in BOUNDS:
        cell = columns[name][row]
        try:
            bounds.append(float("" if is_missing(cell) else cell))
        except (TypeError, ValueError):
            text = "none" if is_missing(cell) else f"{str(cell)!r:.40}"
            raise RegionError(f"{name}: expected degrees, found {text}") from None
    return tuple(bounds)


def _box(source: str, path: str | None, bounds: tuple[float, ...]) -> tuple[Box, int]:
    """Return the box of an array that has the pixels in bounds, and columns of its other side.

    Raises:
        RegionError: If it is no array, or its bounds are not on the axes of its planes.
        SwatheError: As `region_of_bounds` raises.
    """
    from swathe.files.array_file import ArrayFile
    from swathe.files.array_region import plane_axes
    from swathe.files.file import open_any
    from swathe.files.places.regions import region_of_bounds

    file = open_any(source)
    assert isinstance(file, ArrayFile)
    array = file.array(path)
    what = f"{source}, array {array.path}"
    y, x = plane_axes(array)
    parts = region_of_bounds(array, bounds, "give columns x0, y0, width and height")
    if set(parts[0]) != {y, x}:
        raise RegionError(
            f"{what}: expected longitude and latitude on axes {y} and {x}, found {list(parts[0])}"
        )
    (y0, y1), (x0, x1) = parts[0][y], parts[0][x]
    after = 0
    if len(parts) > 1:
        if parts[1][y] != parts[0][y]:
            raise RegionError(
                f"{what}: expected bounds within the array, or longitudes on axis {x}, found "
                f"{bounds}, which cross its edge along axis {y}"
            )
        after = parts[1][x][1]
    return (x0, y0, x1 - x0 + after, y1 - y0), after
