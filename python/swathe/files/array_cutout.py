"""A cutout of an array: elements, coordinates and attributes, and ways to write it."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, count
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe._swathe import __version__
from swathe.arrays.array_tree import MOST_NAMES, groups_around
from swathe.arrays.struct_metadata import STRUCTURE
from swathe.core.errors import FormatError, OptionError
from swathe.files.array_region import ArrayRegion, axis_names
from swathe.files.open_source import OpenSource
from swathe.files.places.attribute_wcs import has_wcs, mapping_names, move_wcs, without_wcs
from swathe.files.places.dicom import attributes_of_part
from swathe.files.places.hdf_eos_grid import MAPPING, grid_coordinates
from swathe.files.places.tie_points import tie_points
from swathe.files.variable import Variable, number_of, physical_values

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import DTypeLike, NDArray
    from xarray import Dataset

    from swathe.arrays.array_tree import ArrayTree
    from swathe.core.argument_checks import Objective
    from swathe.core.box import Box
    from swathe.files.array import Array
    from swathe.files.array_file import ArrayFile

MOST_BESIDE = 1000
"""Elements of a coordinate, or of what else belongs to an array, for each element of the array."""
WITH_SOURCE = ("asdf", "dicom")
"""Formats whose files of a cut have more of the source. Local ones are opened again by path."""
NO_SOURCE = OpenSource()
NAMING = ("grid_mapping", "bounds", "climatology", "ancillary_variables")
"""Attributes that name other arrays; those of `ancillary_variables` come only if asked for."""


@dataclass(eq=False)
class ArrayCutout:
    """A region of an array, with what belongs to it.

    NumPy functions use it as the array of its elements as stored, and `+ - * /` work on `physical`.
    It can be pickled and copied.

    Attributes:
        main: the elements as stored, the names of their axes, and their attributes.
        coords: coordinates, cut along the axes that they share with the elements.
        others: grid mapping, bounds of coordinates, and quality planes, cut alike.
        global_attrs: attributes of the groups around the array, from the root inwards.
        fill: element that stands for "no value"; `None` if the file names none.
        path: path of the array in the file.
        url: absolute path or URL of the file, without credentials.
        version: version of the file.
        format: format of the file, as `hdf5`.
        region: its place in the array.
        plane: numbers of the axes y and x of the array; `None` with less than two axes.
        source: the file, if it is on a server, and a file of the cut is made from more of it.
        notes: warnings about the file, as of damage that a striped store rebuilt.
    """

    main: Variable
    coords: dict[str, Variable]
    others: dict[str, Variable]
    global_attrs: dict[str, Any]
    fill: Any
    path: str
    url: str
    version: str
    format: str
    region: ArrayRegion
    plane: tuple[int, int] | None = field(default=None)
    source: OpenSource = field(default=NO_SOURCE, repr=False)
    notes: list[str] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        """Return the last part of the path of the array; `array` if that is the root."""
        return self.path.rsplit("/", 1)[-1] or "array"

    @property
    def data(self) -> NDArray[Any]:
        """Return the elements as stored: neither scaled nor masked."""
        return self.main.data

    @property
    def dims(self) -> tuple[str, ...]:
        """Return the names of the axes, slowest first."""
        return self.main.dims

    @property
    def attrs(self) -> dict[str, Any]:
        """Return the attributes of the array."""
        return self.main.attrs

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape, slowest axis first."""
        return self.data.shape

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return self.data.ndim

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return self.data.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the elements as stored."""
        return self.data.dtype

    @property
    def start(self) -> tuple[int, ...]:
        """Return the first element along each axis of the array; dropped axes have one, too."""
        return self.region.start

    @property
    def box(self) -> Box | None:
        """Return `(x0, y0, width, height)` on the axes y and x; `None` with less than two axes."""
        if self.plane is None:
            return None
        y, x = self.plane
        shape = self.region.shape
        return self.start[x], self.start[y], shape[x], shape[y]

    @cached_property
    def physical(self) -> NDArray[Any]:
        """Return physical values by the CF conventions, NaN where there is none."""
        return physical_values(self.main)

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}: {n}" for name, n in zip(self.dims, self.shape, strict=True))
        return f"<ArrayCutout ({axes}) {self.dtype} of {self.url}, array {self.path}>"

    def _repr_html_(self) -> str:
        from swathe.files.notebook import page, thin_pixels

        texts = {name: str(value) for name, value in self.attrs.items()}
        facts = {
            "source": f"{self.url}, array {self.path}",
            "axes": ", ".join(self.dims),
            "shape": f"{self.shape}, {self.dtype}",
            "start": self.start,
            "coordinates": ", ".join(self.coords) or "none",
            **dict(list(texts.items())[:20]),
        }
        is_plane = self.ndim > 1 and self.size and self.dtype.kind in "iuf"
        pixels = thin_pixels(self.physical) if is_plane else None
        return page("ArrayCutout", facts, pixels)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the elements as stored, for NumPy.

        Raises:
            ValueError: If `copy` is False and a conversion needs one.
        """
        import numpy as np

        if dtype is None or np.dtype(dtype) == self.dtype:
            return self.data.copy() if copy else self.data
        if copy is False:
            raise ValueError(f"elements of {self.dtype} cannot be {np.dtype(dtype)} without a copy")
        return self.data.astype(dtype)

    def __add__(self, other: Any) -> Any:
        return operator.add(self.physical, other)

    def __radd__(self, other: Any) -> Any:
        return operator.add(other, self.physical)

    def __sub__(self, other: Any) -> Any:
        return operator.sub(self.physical, other)

    def __rsub__(self, other: Any) -> Any:
        return operator.sub(other, self.physical)

    def __mul__(self, other: Any) -> Any:
        return operator.mul(self.physical, other)

    def __rmul__(self, other: Any) -> Any:
        return operator.mul(other, self.physical)

    def __truediv__(self, other: Any) -> Any:
        return operator.truediv(self.physical, other)

    def __rtruediv__(self, other: Any) -> Any:
        return operator.truediv(other, self.physical)

    def __neg__(self) -> Any:
        return operator.neg(self.physical)

    @property
    def variables(self) -> dict[str, Variable]:
        """Return the coordinates, the other variables and the array itself, by name.

        The attribute `coordinates` of the array names those that no axis has the name of, such as
        the time of a plane (CF 5). Attributes of a GeoTIFF that place it are those of the part. A
        variable that is named by a path (CF 2.7) gets the last part of it as its name, also in
        attributes.
        """
        from swathe.files.array_outputs.geotiff import attributes_of_part

        names = self._short_names()
        coords, others = self.coords, self.others
        main = replace(self.main, attrs=attributes_of_part(self))
        if names:
            coords = {names.get(name, name): _rename(each, names) for name, each in coords.items()}
            others = {names.get(name, name): _rename(each, names) for name, each in others.items()}
            main = _rename(main, names)
        rest = [name for name in coords if name not in self.dims]
        text = main.attrs.get("coordinates")
        before = text.split() if isinstance(text, str) else []
        all_names = list(dict.fromkeys([*before, *rest]))
        if all_names != before:
            main = replace(main, attrs={**main.attrs, "coordinates": " ".join(all_names)})
        return {**coords, **others, self.name: main}

    def _short_names(self) -> dict[str, str]:
        """Return a new name for each variable that is named by a path, unlike all others."""
        names = [*self.coords, *self.others]
        dims = {dim for each in (*self.coords.values(), *self.others.values()) for dim in each.dims}
        all_names = {self.name, *names, *self.dims, *dims}
        short_names: dict[str, str] = {}
        for name in names:
            if "/" not in name:
                continue
            parts = [part for part in name.split("/") if part.strip(".")] or ["array"]
            choices = [parts[-1], "_".join(parts)]
            numbers = (f"{choices[1]}_{number}" for number in count(2))
            short_names[name] = next(
                each for each in chain(choices, numbers) if each not in all_names
            )
            all_names.add(short_names[name])
        return short_names

    def history(self) -> str:
        """Return a line for the attribute `history`: time, version, file and region."""
        ends = zip(self.region.start, self.region.stop, strict=True)
        span = ", ".join(f"{first}:{last}" for first, last in ends)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"{now} swathe {__version__}: cut {self.path}[{span}] of {self.url}"

    def attrs_with_history(self) -> dict[str, Any]:
        """Return the global attributes, the newest line of `history` first, as in CF 2.6.2."""
        before = self.global_attrs.get("history")
        lines = [self.history(), *([before] if isinstance(before, str) and before else [])]
        return {**self.global_attrs, "history": "\n".join(lines)}

    def to_xarray(self) -> Dataset:
        """Return an xarray Dataset of the elements as stored; `xarray.decode_cf` decodes it.

        Raises:
            OptionError: If xarray is not installed.
        """
        try:
            import xarray
        except ImportError:
            raise OptionError("to_xarray needs xarray; try: pip install xarray") from None
        variables = {
            name: xarray.Variable(each.dims, each.data, each.attrs)
            for name, each in self.variables.items()
        }
        whole = xarray.Dataset(variables, attrs=self.attrs_with_history())
        names = self._short_names()
        coords = [names.get(name, name) for name in self.coords]
        return whole.set_coords([name for name in coords if name in whole])

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the cut, with what belongs to it, in the format that the suffix names.

        `.nc`, `.h5`, `.zarr`, `.tif` and `.fits` keep the elements as stored; FITS has physical
        values if it lacks the type of packed ones. `.dcm` is for images of DICOM, with all frames.
        `.npy` has only the elements; `.png` shows one plane. The file gets its name when it is
        complete. The source is never replaced or changed: nothing is written inside a source that
        is a folder.

        Args:
            path: file to write; of Zarr, a folder.
            overwrite: whether an existing file may be replaced.

        Raises:
            OutputExistsError: If the file exists and `overwrite` is false.
            OutputError: If the suffix is another, the format cannot hold the cut, or the file
                cannot be written.
            OptionError: If the library of the format is not installed.
            RegionError: If the file is a picture and the cut is not one plane.
        """
        from pathlib import Path

        from swathe.core.folder_output import refuse_overlap, write_folder
        from swathe.core.outputs import write_file
        from swathe.files.array_outputs import saving, typed_errors, warn_of_planes

        path = Path(path)
        refuse_overlap(path, self.url)
        warn_of_planes(self, path)
        if path.suffix.lower() == ".zarr":
            from swathe.files.array_outputs.zarr import zarr_members

            with typed_errors(self, path):
                write_folder(path, zarr_members(self), overwrite=overwrite, sources=[self.url])
            return
        write_file(path, saving(self, path), overwrite=overwrite, sources=[self.url])


def cut_region(
    file: ArrayFile,
    array: Array,
    region: ArrayRegion,
    *,
    with_quality: bool = False,
    objective: Objective = "auto",
    elements: NDArray[Any] | None = None,
) -> ArrayCutout:
    """Read a region of an array, with its coordinates and what else belongs to it.

    Places of tie points on coarser axes become coordinates for each element.
    Elements outside the array have its fill value: `_FillValue`, else that of the format, else
    NaN or 0. If the `elements` of the region were read already, they are not read again.
    """
    frame = _frame_of(array, with_quality)
    names, attrs = frame.names, dict(frame.group_attrs)
    if elements is None:
        main = _cut(array, names, region, objective)
    else:
        main = _variable(elements, array.attrs, names, region)
    coords: dict[str, Variable] = {}
    others: dict[str, Variable] = {}
    if file.format == "dicom" and array.plane is not None:
        y, x = array.plane
        attrs_of_part = attributes_of_part(main.attrs, region.start[y], region.start[x])
        main = replace(main, attrs=attrs_of_part)
    if not frame.is_alone:
        main, coords, others = _with_companions(
            file, array, main, attrs, region, with_quality=with_quality, objective=objective
        )
        attrs.pop(STRUCTURE, None)
        if has_wcs(attrs):
            attrs = move_wcs(attrs, names, region)
    return ArrayCutout(
        main,
        coords,
        others,
        attrs,
        frame.fill,
        array.path,
        array.url,
        array.version,
        file.format,
        region,
        array.plane,
        OpenSource(file) if file.format in WITH_SOURCE and "://" in file.url else NO_SOURCE,
    )


class _Frame(NamedTuple):
    """What all cuts of an array share.

    Attributes:
        names: names of its axes.
        group_attrs: attributes of the groups around it; the nearest group comes first.
        fill: element that stands for "no value".
        is_alone: whether it has no other arrays, and neither it nor its groups a WCS.
    """

    names: tuple[str, ...]
    group_attrs: dict[str, Any]
    fill: Any
    is_alone: bool


def _frame_of(array: Array, with_quality: bool) -> _Frame:
    """Return what all cuts of an array share.

    It is found once for an open file: in a small cut each question takes part of the time.
    """
    key = array.path, with_quality
    frame: _Frame | None = array.tree.memo.get(key)
    if frame is None:
        attrs, around = array.attrs, _group_attrs(array.tree, array.path)
        is_alone = not (
            array.coords
            or _names_in(attrs, with_quality)
            or has_wcs(attrs)
            or has_wcs(around)
            or STRUCTURE in around
            or tie_points(array)
        )
        fill = number_of(attrs["_FillValue"]) if "_FillValue" in attrs else array.fill
        frame = array.tree.memo[key] = _Frame(axis_names(array), around, fill, is_alone)
    return frame


def _with_companions(
    file: ArrayFile,
    array: Array,
    main: Variable,
    attrs: dict[str, Any],
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
        attrs: attributes of the groups around the array.
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

    def beside(name: str, other: Array) -> Variable | None:
        """Return another array along the same region; `None` if its axes do not match."""
        start, stop, single = [], [], set()
        rest = 1
        for axis, (dim, length) in enumerate(zip(axis_names(other), other.shape, strict=True)):
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
        variable = _cut(other, axis_names(other), part, objective)
        # Its WCS may be that of the array, whose region moves it.
        axes, of = (names, region) if name in mappings else (axis_names(other), part)
        return _move_wcs(variable, axes, of)

    coords: dict[str, Variable] = {}
    others: dict[str, Variable] = {}
    for name, other in array.coords.items():
        if not other.is_refused and (variable := beside(name, other)) is not None:
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
    if STRUCTURE in attrs:
        places, mapping = grid_coordinates(array, spans, region.single, names)
        coords = {**places, **coords}
        if mapping is not None and "grid_mapping" not in main.attrs:
            others.setdefault(MAPPING, mapping)
            main = replace(main, attrs={**main.attrs, "grid_mapping": MAPPING})
    return main, coords, others


def _rename(variable: Variable, names: dict[str, str]) -> Variable:
    """Return a variable whose attributes have the new names of others."""
    attrs = dict(variable.attrs)
    for attribute in ("coordinates", *NAMING):
        text = attrs.get(attribute)
        if isinstance(text, str):
            words = ((word.rstrip(":"), word.endswith(":")) for word in text.split())
            attrs[attribute] = " ".join(
                names.get(name, name) + ":" * is_key for name, is_key in words
            )
    return replace(variable, attrs=attrs)


def _group_attrs(tree: ArrayTree, path: str) -> dict[str, Any]:
    """Return the attributes of the groups around an array; the nearest group comes first.

    A WCS is that of one group.
    """
    attrs: dict[str, Any] = {}
    for group in reversed([*groups_around(path)]):
        inner = tree.groups.get(group, {})
        attrs = (without_wcs(attrs) if has_wcs(inner) else attrs) | inner
    return attrs


def quality_planes(file: ArrayFile, array: Array) -> list[str]:
    """Return the quality planes of an array that its file has and that are read."""
    text = array.attrs.get("ancillary_variables")
    names = text.split() if isinstance(text, str) else []
    planes = {name: file.near(array.path, name) for name in names}
    return [name for name, plane in planes.items() if plane is not None and not plane.is_refused]


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


def _cut(
    array: Array, names: tuple[str, ...], region: ArrayRegion, objective: Objective
) -> Variable:
    """Read a region of an array, and fill what is outside of it."""
    inside = region.within(array.shape)
    elements, attrs = array.read(list(inside.start), list(inside.stop), objective), array.attrs
    if inside is not region:
        import numpy as np

        fill = attrs.get("_FillValue", array.fill)
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
    return _variable(elements, attrs, names, region)


def _variable(
    elements: NDArray[Any], attrs: dict[str, Any], names: tuple[str, ...], region: ArrayRegion
) -> Variable:
    """Return the elements of a region without its single axes."""
    if not region.single:
        elements = elements if elements.ndim == len(names) else elements.reshape(region.shape)
        return Variable(elements, names, attrs)
    axes = [axis for axis in range(len(names)) if axis not in region.single]
    shape = [region.shape[axis] for axis in axes]
    return Variable(elements.reshape(shape), tuple(names[axis] for axis in axes), attrs)


def _move_wcs(variable: Variable, names: tuple[str, ...], region: ArrayRegion) -> Variable:
    """Return a variable whose WCS is that of a region of an array with these axes."""
    if not has_wcs(variable.attrs):
        return variable
    return replace(variable, attrs=move_wcs(variable.attrs, names, region))
