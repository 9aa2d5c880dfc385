"""Read a region of an array, and what belongs to it: coordinates, bounds, grid mapping, quality."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe.arrays.array_tree import MOST_NAMES, groups_around
from swathe.arrays.struct_metadata import STRUCTURE
from swathe.core.errors import FormatError, LimitError, RegionError
from swathe.files.array_region import ArrayRegion, axis_names
from swathe.files.places.attribute_wcs import has_wcs, mapping_names, move_wcs, without_wcs
from swathe.files.places.coordinates import axes_of
from swathe.files.places.hdf_eos_grid import MAPPING, grid_coordinates
from swathe.files.places.regions import pair_on_axes
from swathe.files.places.tie_points import tie_points
from swathe.files.places.times import time_of
from swathe.files.variable import Variable, number_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.arrays.array_tree import ArrayTree
    from swathe.core.argument_checks import Objective
    from swathe.files.array import Array
    from swathe.files.array_file import ArrayFile

MOST_BYTES = 8 << 30
"""Of a cut with all that belongs to it."""
MOST_BESIDE = 1000
"""Elements of a coordinate, or of what else belongs to an array, for each element of the array."""
NAMING = ("grid_mapping", "bounds", "climatology", "ancillary_variables")
"""Attributes that name other arrays; those of `ancillary_variables` come only if asked for."""

MASK = "mask"
MASK_ATTRIBUTES = {
    "long_name": "1: the pixel has a value; 0: it has none",
    "flag_meanings": "no_value value",
}


class Frame(NamedTuple):
    """What all cuts of an array share.

    Attributes:
        names: names of its axes.
        group_attrs: attributes of the groups around it; the nearest group comes first.
        fill: element that stands for "no value".
        other_coords: paths of the places and times on its axes that it does not name, by name.
        is_alone: whether it has no other arrays, and neither it nor its groups a WCS.
    """

    names: tuple[str, ...]
    group_attrs: dict[str, Any]
    fill: Any
    other_coords: dict[str, str]
    is_alone: bool


def frame_of(array: Array, with_quality: bool) -> Frame:
    """Return what all cuts of an array share.

    It is found once for an open file: in a small cut each question takes part of the time.
    """
    key = array.path, with_quality
    frame: Frame | None = array.tree.memo.get(key)
    if frame is None:
        attrs, around = array.attrs, _group_attrs(array.tree, array.path)
        other_coords = _other_coordinates(array)
        is_alone = not (
            array.coords
            or other_coords
            or _names_in(attrs, with_quality)
            or has_wcs(attrs)
            or has_wcs(around)
            or STRUCTURE in around
            or tie_points(array)
        )
        fill = number_of(attrs["_FillValue"]) if "_FillValue" in attrs else array.fill
        frame = array.tree.memo[key] = Frame(
            axis_names(array), around, fill, other_coords, is_alone
        )
    return frame


def _other_coordinates(array: Array) -> dict[str, str]:
    """Return paths of the places and times on axes of an array that it does not name, by name.

    They may be in another group, as `geolocation`. A name is a path if the array has another
    coordinate or axis of that name.
    """
    coordinates: list[Array] = []
    with suppress(RegionError):  # there are several, and none is that of the array
        pair = pair_on_axes(array) or ()
        coordinates += [] if array.path in {each.path for each in pair} else pair
    with suppress(RegionError):  # it has none, or several
        coordinates += [each for each in [time_of(array)] if each.ndim]
    own = {each.path for each in array.coords.values()} | {array.path}
    names = {*array.coords, array.name}
    others = {}
    for each in coordinates:
        if each.path not in own:
            # One of an axis of its name is the coordinate of that.
            is_free = each.name not in array.dims or each.dims == (each.name,)
            others[each.name if is_free and each.name not in names else each.path] = each.path
            names.add(each.name)
    return others


def with_companions(
    file: ArrayFile,
    array: Array,
    main: Variable,
    frame: Frame,
    region: ArrayRegion,
    *,
    with_quality: bool,
    objective: Objective,
) -> tuple[Variable, dict[str, Variable], dict[str, Variable]]:
    """Read what belongs to the elements of a region.

    Args:
        file: the open file.
        array: the array.
        main: the elements of the region.
        frame: what all cuts of the array share.
        region: the region.
        with_quality: whether quality planes come too.
        objective: what plans of reads keep small.

    Returns:
        The elements with their WCS and the name of a grid mapping; coordinates; other arrays.
    """
    names = axis_names(array)
    main = _move_wcs(main, names, region)
    mappings = mapping_names(main.attrs)
    spans = dict(enumerate(zip(region.start, region.stop, strict=True)))
    size = main.data.nbytes

    def beside(
        name: str, other: Array, dims: tuple[str, ...] | None = None, is_place: bool = False
    ) -> Variable | None:
        """Return another array along the same region; `None` if its axes do not match."""
        dims = axis_names(other) if dims is None else dims
        start, stop, single = [], [], set()
        rest = 1
        for axis, (dim, length) in enumerate(zip(dims, other.shape, strict=True)):
            first, last = 0, length
            if dim in names:
                at = names.index(dim)
                if length != array.shape[at]:
                    return None
                first, last = spans[at]
                if at in region.single:
                    single.add(axis)
            else:
                rest *= length
            start.append(first)
            stop.append(last)
        if rest > MOST_BESIDE:
            warnings.warn(
                f"{other.url}, array {other.path}: left out of the cut of {array.path}: expected "
                f"at most {MOST_BESIDE:,} elements along axes of its own, found {rest:,}",
                stacklevel=4,
            )
            return None
        part = ArrayRegion(tuple(start), tuple(stop), frozenset(single))
        nonlocal size
        size += math.prod(part.shape) * other.dtype.itemsize
        if size > MOST_BYTES:
            raise LimitError(
                f"{array.url}, array {array.path}: expected up to {MOST_BYTES:,} bytes of a cut "
                f"with its coordinates and other arrays, found more with {other.path}"
            )
        variable = cut_part(other, dims, part, objective, is_place=is_place)
        if dims == (name,):
            variable = _beyond_ends(variable, other, part)
        # Its WCS may be that of the array, whose region moves it.
        axes, of = (names, region) if name in mappings else (dims, part)
        return _move_wcs(variable, axes, of)

    coords: dict[str, Variable] = {}
    others: dict[str, Variable] = {}
    for name, other in array.coords.items():
        if other.is_refused:
            continue
        if (variable := beside(name, other, is_place=True)) is not None:
            coords[name] = variable
    for name, path in frame.other_coords.items():
        other = array.other(path)
        axes = axes_of(other, array)
        if other.is_refused or axes is None:
            continue
        # Where axes have no names, those of both differ.
        dims = tuple(names[axis] for axis in axes)
        if (variable := beside(name, other, dims, is_place=True)) is not None:
            coords[name] = variable
    for owner in [array, *array.coords.values()]:
        for name in _names_in(owner.attrs, with_quality):
            by_name = file.near(owner.path, name)
            if by_name is None or name in coords or name in others or by_name.is_refused:
                continue
            if (variable := beside(name, by_name)) is not None:
                others[name] = variable
    if len(ties := tie_points(array)) == 1:
        coords |= ties[0].variables(spans, region.single, names)
    if STRUCTURE in frame.group_attrs:
        grid_coords, mapping = grid_coordinates(array, spans, region.single, names)
        coords = {**grid_coords, **coords}
        if mapping is not None and "grid_mapping" not in main.attrs:
            others.setdefault(MAPPING, mapping)
            main = replace(main, attrs={**main.attrs, "grid_mapping": MAPPING})
    return main, coords, others


def _group_attrs(tree: ArrayTree, path: str) -> dict[str, Any]:
    """Return the attributes of the groups around an array; the nearest group comes first.

    A WCS is that of one group.
    """
    attrs: dict[str, Any] = {}
    for group in reversed([*groups_around(path)]):
        inner = tree.groups.get(group, {})
        attrs = (without_wcs(attrs) if has_wcs(inner) else attrs) | inner
    return attrs


def _names_in(attrs: dict[str, Any], with_quality: bool) -> list[str]:
    """Return the names of arrays that attributes give (CF 3.4, 5.6, 7.1)."""
    names = []
    for attribute in NAMING[: None if with_quality else -1]:
        text = attrs.get(attribute)
        if isinstance(text, str):
            names += [word.rstrip(":") for word in text.split()]
    if len(names) > MOST_NAMES:
        raise FormatError(
            f"{', '.join(NAMING)}: expected at most {MOST_NAMES:,} names, found {len(names):,}"
        )
    return names


def cut_part(
    array: Array,
    names: tuple[str, ...],
    region: ArrayRegion,
    objective: Objective,
    *,
    is_place: bool = False,
) -> Variable:
    """Read a region of an array, and fill what is outside of it.

    Outside, a coordinate (`is_place`) has a value that says that there is none: 0 would be one.
    """
    inside = region.within(array.shape)
    elements, attrs = array.read(list(inside.start), list(inside.stop), objective), array.attrs
    if inside is not region:
        import numpy as np

        fill = attrs.get("_FillValue", None if is_place else array.fill)
        if fill is None and is_place and array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            fill = array.dtype.type(limits.max if array.dtype.kind == "u" else limits.min)
        if fill is not None and fill != 0:
            # Readers must know it; zeros may be values.
            attrs.setdefault("_FillValue", fill)
        if fill is None:
            fill = np.nan if array.dtype.kind in "fc" else np.zeros((), array.dtype)
        whole = np.full(region.shape, number_of(fill), array.dtype)
        place = tuple(
            slice(a - origin, b - origin)
            for a, b, origin in zip(inside.start, inside.stop, region.start, strict=True)
        )
        whole[place] = elements
        elements = whole
    return variable_of(elements, attrs, names, region)


def _beyond_ends(variable: Variable, axis: Array, region: ArrayRegion) -> Variable:
    """Return the coordinate of an axis with values outside of the array, too: no value is missing.

    They go on with the steps at both ends. What the type does not have stays as it is.

    Args:
        variable: the values of the region, as `cut_part` returns them.
        axis: the coordinate.
        region: the region.
    """
    import numpy as np

    inside = region.within(axis.shape)
    first, last = inside.start[0] - region.start[0], inside.stop[0] - region.start[0]
    if inside is region or variable.data.ndim != 1 or last - first < 2:
        return variable
    if axis.dtype.kind not in "iuf":
        return variable
    values = variable.data.astype(np.int64 if axis.dtype.kind in "iu" else np.float64)
    before = np.arange(first, 0, -1)
    after = np.arange(1, len(values) - last + 1)
    values[:first] = values[first] - before * (values[first + 1] - values[first])
    values[last:] = values[last - 1] + after * (values[last - 1] - values[last - 2])
    elements = values.astype(axis.dtype)
    if axis.dtype.kind in "iu" and not np.array_equal(elements, values):
        return variable
    return replace(variable, data=elements, attrs=axis.attrs)


def variable_of(
    elements: NDArray[Any], attrs: dict[str, Any], names: tuple[str, ...], region: ArrayRegion
) -> Variable:
    """Return the elements of a region without its single axes."""
    if not region.single:
        elements = elements if elements.ndim == len(names) else elements.reshape(region.shape)
        return Variable(elements, names, attrs)
    axes = [axis for axis in range(len(names)) if axis not in region.single]
    shape = [region.shape[axis] for axis in axes]
    return Variable(elements.reshape(shape), tuple(names[axis] for axis in axes), attrs)


def with_mask(variables: dict[str, Variable], name: str) -> dict[str, Variable]:
    """Return variables with the mask of one as another, for formats that hold several arrays.

    Args:
        variables: all variables of a cut, by name.
        name: name of the one with a mask.
    """
    import numpy as np

    main = variables[name]
    if main.mask is None or MASK in variables:
        return variables
    bands = [axis for axis, dim in enumerate(main.dims) if dim not in ("y", "x")]
    plane = main.mask[tuple(0 if axis in bands else slice(None) for axis in range(main.data.ndim))]
    dims = tuple(dim for dim in main.dims if dim in ("y", "x"))
    attrs: dict[str, Any] = {**MASK_ATTRIBUTES, "flag_values": np.array([0, 1], np.uint8)}
    mask = Variable((~plane).astype(np.uint8), dims, attrs)
    main = Variable(main.data, main.dims, {**main.attrs, "ancillary_variables": MASK}, main.mask)
    return {**variables, MASK: mask, name: main}


def _move_wcs(variable: Variable, names: tuple[str, ...], region: ArrayRegion) -> Variable:
    """Return a variable whose WCS is that of a region of an array with these axes."""
    if not has_wcs(variable.attrs):
        return variable
    return replace(variable, attrs=move_wcs(variable.attrs, names, region))


def quality_planes(file: ArrayFile, array: Array) -> list[str]:
    """Return the quality planes of an array that its file has and that are read."""
    text = array.attrs.get("ancillary_variables")
    names = text.split() if isinstance(text, str) else []
    planes = {name: file.near(array.path, name) for name in names}
    return [name for name, plane in planes.items() if plane is not None and not plane.is_refused]
