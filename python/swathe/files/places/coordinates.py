"""Find coordinates of an array, and read their values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from swathe.arrays.array_tree import PLACE_UNITS, groups_around
from swathe.core.errors import LimitError, RegionError
from swathe.files.variable import Variable, physical_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from swathe.files.array import Array

Quantity = Literal["latitude", "longitude", "time"]

NAMES = {
    "latitude": {"lat", "latitude", "nav_lat"},
    "longitude": {"lon", "long", "longitude", "nav_lon"},
    "time": {"time"},
}
AXES = {"latitude": "Y", "longitude": "X", "time": "T"}
ATTRIBUTES = {
    "latitude": {"standard_name": "latitude", "units": "degrees_north"},
    "longitude": {"standard_name": "longitude", "units": "degrees_east"},
}
"""Attributes of a coordinate that is made."""
PHONY = "phony_dim_"
"""Begin of names of axes that have none in the file."""
PLAIN_UNITS = {"", "degree", "degrees", "deg"}
MOST_ELEMENTS = 2**30
"""Elements of a coordinate that is read."""
BLOCK_ELEMENTS = 2**21
"""Elements of a coordinate that are read at once, if its rows are not longer."""
MOST_ROW_ELEMENTS = 2**24


def sureness(array: Array, quantity: Quantity) -> int:
    """Return how sure an array is this coordinate by the CF conventions; 0 if it is none.

    A standard name is surer than units, units are surer than an axis, and that is surer than a
    name of the array. An array with another standard name (`grid_latitude`) is none.
    """
    return sureness_by(array.name, array.attrs, quantity)


def sureness_by(name: str, attrs: dict[str, Any], quantity: Quantity) -> int:
    """Return what `sureness` does, of a name and attributes."""
    standard_name = _text(attrs.get("standard_name"))
    units = _text(attrs.get("units", attrs.get("unit"))).lower()
    if standard_name:
        return 4 if standard_name == quantity else 0
    if quantity == "time":
        return 3 if " since " in units else 0
    if units in PLACE_UNITS[quantity]:
        return 3
    if units not in PLAIN_UNITS:
        return 0
    if units and _text(attrs.get("axis")).upper() == AXES[quantity]:
        return 2
    return 1 if name.lower() in NAMES[quantity] else 0


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def scopes_of(array: Array) -> Iterator[list[Array]]:
    """Yield arrays among which coordinates are looked for, the nearest first.

    Those are the coordinates that the array names, then all arrays below its group, below the
    group around it, and so on.
    """
    yield list(array.coords.values())
    for group in groups_around(array.path):
        start = group if group.endswith("/") else f"{group}/"
        yield [each for each in array.others if each.path.startswith(start)]


def find(
    array: Array, quantity: Quantity, others: list[Array], fits: Callable[[Array], bool]
) -> list[Array]:
    """Return the surest arrays that are this coordinate; one for each tuple of axes.

    Raises:
        RegionError: If two on the same axes are equally sure.
    """
    by_axes: dict[tuple[Any, ...], Array] = {}
    for each in surest(quantity, others, fits):
        axes = each.dims or each.shape
        other = by_axes.setdefault(axes, each)
        if other.path != each.path:
            raise RegionError(
                f"{array.url}, array {array.path}: expected one {quantity} on the axes {axes}, "
                f"found {other.path} and {each.path}"
            )
    return list(by_axes.values())


def surest(quantity: Quantity, others: list[Array], fits: Callable[[Array], bool]) -> list[Array]:
    """Return the surest arrays that are this coordinate."""
    grades = [(sureness(each, quantity), each) for each in others if fits(each)]
    most = max((grade for grade, _ in grades), default=0)
    return [each for grade, each in grades if grade and grade == most]


def axes_of(coordinate: Array, array: Array) -> tuple[int, ...] | None:
    """Return the numbers of the array's axes on which a coordinate lies; `None` if on others.

    Axes are the same if name and length are. A coordinate of two axes or more may also lie on the
    last axes, if neither these nor its own have names, or names are used twice.
    """
    first = array.ndim - coordinate.ndim
    has_names = coordinate.dims and array.dims and not coordinate.dims[0].startswith(PHONY)
    is_last = first >= 0 and array.shape[first:] == coordinate.shape
    if coordinate.ndim > 1 and is_last and (not has_names or coordinate.dims == array.dims[first:]):
        return tuple(range(first, array.ndim))
    axes: list[int] = []
    for name, length in zip(coordinate.dims, coordinate.shape, strict=False):
        if array.dims.count(name) != 1 or array.shape[array.dims.index(name)] != length:
            return None
        axes.append(array.dims.index(name))
    return tuple(axes) if len(axes) == coordinate.ndim else None


def values_of(
    coordinate: Array, start: int | None = None, stop: int | None = None
) -> NDArray[np.float64]:
    """Read physical values of rows `[start, stop)`, NaN where there is none.

    Raises:
        FormatError: If the coordinate cannot be read.
        LimitError: If it is too large.
        RegionError: If it has no numbers.
    """
    import numpy as np

    what = f"{coordinate.url}, coordinate {coordinate.path}"
    if coordinate.dtype.kind not in "iuf":
        raise RegionError(f"{what}: expected numbers, found elements of {coordinate.dtype}")
    check_size(what, coordinate.shape)
    first, last = [0] * coordinate.ndim, list(coordinate.shape)
    if coordinate.ndim:
        first[0] = first[0] if start is None else start
        last[0] = last[0] if stop is None else stop
    data = coordinate.read(first, last)
    values = physical_values(Variable(data, coordinate.dims, coordinate.attrs))
    return values.astype(np.float64)


def check_size(what: str, shape: tuple[int, ...]) -> None:
    """Check that a coordinate can be read in blocks of rows.

    Raises:
        LimitError: If it cannot.
    """
    row = math.prod(shape[1:])
    if math.prod(shape) > MOST_ELEMENTS or row > MOST_ROW_ELEMENTS:
        raise LimitError(
            f"{what}: expected at most {MOST_ELEMENTS} elements, {MOST_ROW_ELEMENTS} in a row, "
            f"found shape {shape}"
        )


def index_box(
    shape: tuple[int, ...], mask_of: Callable[[int, int], NDArray[np.bool_]]
) -> list[tuple[int, int]] | None:
    """Return the smallest box of indices that has all elements of a mask; `None` if it has none.

    Args:
        shape: shape of the mask, at least one axis.
        mask_of: function that returns rows `[start, stop)` of the mask.
    """
    import numpy as np

    row = math.prod(shape[1:])
    step = max(1, BLOCK_ELEMENTS // max(1, row))
    ends: list[tuple[int, int]] | None = None
    for start in range(0, shape[0], step):
        mask = mask_of(start, min(start + step, shape[0]))
        if not mask.any():
            continue
        block = []
        for axis in range(mask.ndim):
            rest = tuple(other for other in range(mask.ndim) if other != axis)
            places = np.flatnonzero(mask.any(axis=rest))
            block.append((int(places[0]), int(places[-1]) + 1))
        block[0] = block[0][0] + start, block[0][1] + start
        if ends is None:
            ends = block
        else:
            pairs = zip(ends, block, strict=True)
            ends = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs]
    return ends
