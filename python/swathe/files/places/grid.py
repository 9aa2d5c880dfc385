"""Regions of grids: latitude and longitude lie on one axis each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import FormatError, LimitError
from swathe.files.places.coordinates import MOST_ROW_ELEMENTS, values_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from swathe.files.array import Array
    from swathe.files.places.bounds import Bounds


def grid_ranges(
    latitude: Array, longitude: Array, bounds: Bounds
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the ranges of latitudes and longitudes whose values lie in bounds.

    Latitudes have one range at most. Longitudes have two where the box crosses the edge of the
    grid; the western one comes first if they ascend.

    Raises:
        FormatError: If values are missing, or neither ascend nor descend.
        LimitError: If there are too many.
    """
    north = _axis_values(latitude)
    east = _axis_values(longitude)
    check_axis(f"{latitude.url}, latitude {latitude.path}", north, is_cyclic=False)
    check_axis(f"{longitude.url}, longitude {longitude.path}", east, is_cyclic=True)
    return axis_ranges(north, east, bounds)


def axis_ranges(
    latitude: NDArray[np.float64], longitude: NDArray[np.float64], bounds: Bounds
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the ranges of the values of two axes that lie in bounds, as `grid_ranges`."""
    rows = _runs(bounds.has_latitude(latitude))
    return rows, _runs(bounds.has_longitude(longitude))[::-1]


def check_axis(what: str, values: NDArray[np.float64], is_cyclic: bool) -> None:
    """Check that values ascend or descend; longitudes through one turn at most.

    Raises:
        FormatError: If they do not.
    """
    import numpy as np

    if not np.isfinite(values).all():
        raise FormatError(
            f"{what}: expected numbers, found {np.count_nonzero(np.isnan(values))} without a value"
        )
    steps = np.diff(values)
    if is_cyclic:
        steps = (steps + 180) % 360 - 180
    if not ((steps > 0).all() or (steps < 0).all()):
        raise FormatError(f"{what}: expected values that ascend or descend, found others")
    if is_cyclic and len(steps) and abs(steps.sum()) > 360 + abs(steps).max():
        raise FormatError(
            f"{what}: expected one turn of 360 degrees at most, found {abs(steps.sum()):g} degrees"
        )


def _axis_values(coordinate: Array) -> NDArray[np.float64]:
    if coordinate.size > MOST_ROW_ELEMENTS:
        raise LimitError(
            f"{coordinate.url}, coordinate {coordinate.path}: expected at most "
            f"{MOST_ROW_ELEMENTS} elements, found {coordinate.size}"
        )
    return values_of(coordinate)


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the ranges in which a mask is true."""
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]
