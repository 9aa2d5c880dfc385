"""A cutout of an array: elements, coordinates and attributes, and ways to write it."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from swathe._swathe import __version__
from swathe.arrays.gdal_metadata import ROLES, metadata_of_bands, packing_of
from swathe.arrays.struct_metadata import STRUCTURE
from swathe.core.errors import OptionError
from swathe.files.array_companions import (
    NAMING,
    cut_part,
    frame_of,
    variable_of,
    with_companions,
    with_mask,
)
from swathe.files.array_region import ArrayRegion
from swathe.files.masks import pixels_without_value
from swathe.files.open_source import OpenSource
from swathe.files.places.attribute_wcs import has_wcs, move_wcs
from swathe.files.places.dicom import attributes_of_part
from swathe.files.variable import Variable, physical_values

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import DTypeLike, NDArray
    from xarray import Dataset

    from swathe.core.argument_checks import Objective
    from swathe.core.box import Box
    from swathe.files.array import Array
    from swathe.files.array_file import ArrayFile

WITH_SOURCE = ("asdf", "dicom")
"""Formats whose files of a cut have more of the source. Local ones are opened again by path."""
NO_SOURCE = OpenSource()


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
    def mask(self) -> NDArray[np.bool_] | None:
        """Return which elements have no value by the mask of a TIFF; `None` without one."""
        return self.main.mask

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
        attributes. A mask of TIFF that masks a pixel is the variable `mask`.
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
        return with_mask({**coords, **others, self.name: main}, self.name)

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
        `.npy` has only the elements; `.png` shows one plane, or three or four bands of bytes. The
        file gets its name when it is complete. The source is never replaced or changed: nothing is
        written inside a source that is a folder.

        Args:
            path: file to write; of Zarr, a folder.
            overwrite: whether an existing file may be replaced.

        Raises:
            OutputExistsError: If the file exists and `overwrite` is false.
            OutputError: If the suffix is another, the format cannot hold the cut, or the file
                cannot be written.
            OptionError: If the library of the format is not installed.
            RegionError: If the file is a picture, and the cut neither one plane nor bands.
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
    frame = frame_of(array, with_quality)
    names, attrs = frame.names, dict(frame.group_attrs)
    if elements is None:
        main = cut_part(array, names, region, objective)
    else:
        main = variable_of(elements, array.attrs, names, region)
    coords: dict[str, Variable] = {}
    others: dict[str, Variable] = {}
    if file.format == "dicom" and array.plane is not None:
        y, x = array.plane
        attrs_of_part = attributes_of_part(main.attrs, region.start[y], region.start[x])
        main = replace(main, attrs=attrs_of_part)
    if file.format == "tiff":
        attrs_of_bands = _attributes_of_bands(array, main.attrs, region)
        main = replace(main, attrs=attrs_of_bands, mask=pixels_without_value(array, region))
    if not frame.is_alone:
        main, coords, others = with_companions(
            file, array, main, frame, region, with_quality=with_quality, objective=objective
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


def _attributes_of_bands(
    array: Array, attrs: dict[str, Any], region: ArrayRegion
) -> dict[str, Any]:
    """Return the attributes of an image of TIFF, with the metadata of the bands in a region."""
    metadata = attrs.get("GDAL_METADATA")
    if "band" not in array.dims or not isinstance(metadata, str):
        return attrs
    axis = array.dims.index("band")
    start, stop = region.start[axis], region.stop[axis]
    if (start, stop) == (0, array.shape[axis]):
        return attrs
    part = metadata_of_bands(metadata, start, stop)
    rest = {name: value for name, value in attrs.items() if name not in ROLES.values()}
    return rest | {"GDAL_METADATA": part} | packing_of(part, stop - start)
