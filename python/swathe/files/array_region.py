"""Regions of arrays: one range for each axis, from a box, a section, or indices by name."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe.core.box import MODES
from swathe.core.errors import NoOverlapError, PartialOverlapError, PixelIndexError, RegionError
from swathe.files.slices import one_per_axis

if TYPE_CHECKING:
    from swathe.core.box import Box, Mode
    from swathe.files.array import Array
    from swathe.files.slices import Slices


class ArrayRegion(NamedTuple):
    """A region of an array, slowest axis first.

    Attributes:
        start: first element along each axis; negative if the region begins before the array.
        stop: element after the last along each axis.
        single: numbers of the axes with one index, which the cut drops.
    """

    start: tuple[int, ...]
    stop: tuple[int, ...]
    single: frozenset[int] = frozenset()

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of elements along each axis, with the axes that are dropped."""
        return tuple(map(operator.sub, self.stop, self.start))

    def within(self, shape: tuple[int, ...]) -> ArrayRegion:
        """Return the part inside an array of this shape."""
        if min(self.start, default=0) >= 0 and all(map(operator.le, self.stop, shape)):
            return self
        start = tuple(max(0, first) for first in self.start)
        stop = tuple(map(min, self.stop, shape))
        return ArrayRegion(start, stop, self.single)


def axis_names(array: Array) -> tuple[str, ...]:
    """Return the names of the axes; `axis_0`, `axis_1`, ... if they have none."""
    return array.dims or tuple(f"axis_{number}" for number in range(array.ndim))


def plane_axes(array: Array) -> tuple[int, int]:
    """Return the numbers of the axes on which a box acts, `Array.plane`.

    Raises:
        RegionError: If the array has less than two axes.
    """
    if array.plane is None:
        raise RegionError(
            f"{array.url}, array {array.path}: expected two axes or more for a box, "
            f"found {array.ndim}"
        )
    return array.plane


def region_of(
    array: Array,
    index: Mapping[str, int | slice] | None = None,
    box: Box | None = None,
    section: Slices | None = None,
    ranges: Mapping[int, tuple[int, int]] | None = None,
    mode: Mode = "trim",
) -> ArrayRegion:
    """Return the region of an array that all of these give; axes without one stay whole.

    Args:
        array: the array.
        index: number or slice (step 1) by the name of the axis. Numbers drop the axis.
        box: `(x0, y0, width, height)` on the axes `plane_axes`.
        section: NumPy slices, one for each axis.
        ranges: `(start, stop)` by the number of the axis.
        mode: `trim` to the array, `partial`: keep the part outside, filled, `strict`: refuse it.

    Raises:
        RegionError: If an axis is unknown, given twice, or a slice has another step.
        PixelIndexError: If a number is out of range.
        NoOverlapError, PartialOverlapError: If the region is outside the array.
    """
    shape = array.shape
    if box is not None and index is None and section is None and not ranges and mode in MODES:
        region = box_inside(array, box)
        if region is not None:
            return region
    names = axis_names(array)
    what = f"{array.url}, array {array.path}"
    parts: dict[int, tuple[int, int]] = {}
    single = set()

    def add(axis: int, start: int, stop: int) -> None:
        if axis in parts:
            raise RegionError(f"{what}: axis {names[axis]}: expected one range, found two")
        parts[axis] = start, stop

    if index is not None and not isinstance(index, Mapping):
        raise RegionError(f"index: expected a mapping such as {{'time': 3}}, found {index!r:.60}")
    for name, value in (index or {}).items():
        if name not in names:
            raise RegionError(
                f"{what}: expected an axis of {', '.join(names) or 'none'}, found {name!r:.100}"
            )
        axis = names.index(name)
        add(axis, *_index_range(f"{what}, axis {name}", value, shape[axis]))
        if not isinstance(value, slice):
            single.add(axis)
    if section is not None:
        slices = section if isinstance(section, tuple) else (section,)
        for axis, value in enumerate(one_per_axis(slices, array.ndim)):
            if value != slice(None):
                add(axis, *_index_range(f"{what}, axis {names[axis]}", value, shape[axis]))
                if not isinstance(value, slice):
                    single.add(axis)
    if box is not None:
        y, x = plane_axes(array)
        x0, y0, width, height = box
        add(y, y0, y0 + height)
        add(x, x0, x0 + width)
    for axis, (start, stop) in (ranges or {}).items():
        add(axis, start, stop)
    ends = [parts.get(axis, (0, length)) for axis, length in enumerate(shape)]
    region = ArrayRegion(
        tuple([first for first, _ in ends]), tuple([last for _, last in ends]), frozenset(single)
    )
    inside = region.within(shape)
    if inside is region and mode in MODES:
        return region
    return _in_mode(region, inside, array, mode, what)


def box_inside(array: Array, box: Box) -> ArrayRegion | None:
    """Return the region of a box that lies in the array: that of any mode. `None` if it does not.

    Most boxes do, and a small cut has no time to describe what is wrong with others.
    """
    y, x = plane_axes(array)
    shape, (x0, y0, width, height) = array.shape, box
    if not (0 <= y0 < y0 + height <= shape[y] and 0 <= x0 < x0 + width <= shape[x]):
        return None
    start, stop = [0] * len(shape), [*shape]
    start[y], stop[y], start[x], stop[x] = y0, y0 + height, x0, x0 + width
    return ArrayRegion(tuple(start), tuple(stop))


def _index_range(what: str, value: Any, length: int) -> tuple[int, int]:
    """Return the range of a number, or of a slice, which NumPy trims to the axis."""
    if isinstance(value, slice):
        start, stop, step = value.indices(length)
        if step != 1:
            raise RegionError(f"{what}: expected a slice with step 1, found step {step}")
        if stop <= start:
            raise NoOverlapError(
                f"{what}: expected elements within 0:{length}, "
                f"found {value.start}:{value.stop}, which has none"
            )
        return start, stop
    try:
        number = operator.index(value)
    except TypeError:
        raise RegionError(f"{what}: expected a number or a slice, found {value!r:.100}") from None
    if not -length <= number < length:
        raise PixelIndexError(f"{what}: expected an index below {length}, found {number}")
    return number % length, number % length + 1


def _in_mode(
    region: ArrayRegion, inside: ArrayRegion, array: Array, mode: Mode, what: str
) -> ArrayRegion:
    """Return what the mode keeps of a region: the part inside, or all of it."""
    names = axis_names(array)
    for axis, (count, length) in enumerate(zip(inside.shape, region.shape, strict=True)):
        if count == length:
            continue
        span = f"{region.start[axis]}:{region.stop[axis]}"
        bounds = f"{what}, axis {names[axis]}: expected elements within 0:{array.shape[axis]}"
        if count <= 0:
            raise NoOverlapError(f"{bounds}, found {span}")
        if mode == "strict":
            raise PartialOverlapError(f"{bounds}, found {span}; mode='trim' trims it")
    if mode not in MODES:
        raise RegionError(f"mode: expected trim, partial or strict, found {mode!r:.100}")
    return region if mode == "partial" else inside
