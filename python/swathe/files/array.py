"""Read regions of an array of a file by NumPy slices."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Protocol

from swathe.arrays.indexing import reads_of
from swathe.core.errors import FormatError
from swathe.files.slices import axis_range, one_per_axis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

    from swathe import _swathe
    from swathe.arrays.array_tree import ArrayDescription, ArrayTree
    from swathe.core.argument_checks import Objective
    from swathe.core.served_file import FileReads
    from swathe.files.slices import Slices


class ArrayOwner(Protocol):
    """Part of an `ArrayFile` that an array uses."""

    url: str
    version: str

    @property
    def tree(self) -> ArrayTree:
        """Return the arrays of the file."""

    @property
    def _native(self) -> _swathe.Object:
        """Return the engine's file."""

    def read_by_library(self, array: ArrayDescription, start: list[int], stop: list[int]) -> bytes:
        """Return the elements `[start, stop)` of an array that only the library reads."""


class Array:
    """An array of a file, whose elements are read on indexing.

    `array[10:20, :]` and `array.section[10:20, :]` read a part; `array.data` and
    `numpy.asarray(array)` read the whole. Elements are as stored: neither scaled nor masked, in the
    byte order of the file.

    Attributes:
        path: its path in the file, from `/`.
        url: absolute path or URL of the file, without credentials.
        version: version of the file.
    """

    def __init__(self, file: ArrayOwner, description: ArrayDescription) -> None:
        """Set the file and the description. Users get arrays from an `ArrayFile`."""
        self._file = file
        self._description = description
        self.path = description.path
        self.url, self.version = file.url, file.version

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts from which pickle and copy rebuild the array."""
        return array_of, (self._file, self.path)

    def __repr__(self) -> str:
        axes = ", ".join(
            f"{name}: {length}" for name, length in zip(self.dims, self.shape, strict=False)
        )
        return f"<Array {self.path} ({axes or self.shape}) {self.dtype} of {self.url}>"

    @property
    def name(self) -> str:
        """Return the last part of its path; `array` if it is the root."""
        return self.path.rsplit("/", 1)[-1] or "array"

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape, slowest axis first."""
        return self._description.shape

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the elements as stored."""
        return self._description.dtype

    @property
    def dims(self) -> tuple[str, ...]:
        """Return the names of the axes, such as `("time", "y", "x")`; empty without names."""
        return self._description.dims

    @property
    def attrs(self) -> dict[str, Any]:
        """Return the attributes: texts, NumPy numbers and arrays."""
        return dict(self._description.attributes)

    @property
    def plane(self) -> tuple[int, int] | None:
        """Return the numbers of the axes y and x, else of the last two; `None` if it has one."""
        return self._description.plane

    @property
    def fill(self) -> Any:
        """Return the element of chunks that are not stored; `None` if the file names none."""
        return self._description.fill

    @property
    def chunk_shape(self) -> tuple[int, ...] | None:
        """Return the shape of a chunk; `None` if the array is not in chunks."""
        return self._description.chunk_shape

    @property
    def filters(self) -> tuple[str, ...]:
        """Return the names of the filters of its chunks, in the order of writing."""
        return self._description.filters

    @property
    def coords(self) -> dict[str, Array]:
        """Return its coordinates by name: arrays named as its axes, or by `coordinates`."""
        others = self._file.tree.coordinates(self._description)
        return {name: Array(self._file, each) for name, each in others.items()}

    @property
    def others(self) -> list[Array]:
        """Return all arrays of its file, itself among them."""
        return [Array(self._file, each) for each in self._file.tree.arrays.values()]

    def other(self, path: str) -> Array:
        """Return the array at a path of its file."""
        return Array(self._file, self._file.tree.arrays[path])

    @property
    def tree(self) -> ArrayTree:
        """Return the descriptions of all arrays of its file."""
        return self._file.tree

    @property
    def root_attrs(self) -> dict[str, Any]:
        """Return the attributes of the root group of its file."""
        return dict(self._file.tree.groups.get("/", {}))

    @property
    def reads(self) -> FileReads:
        """Return its file as one that a confined process can read."""
        return reads_of(self._file._native)

    @property
    def problem(self) -> str | None:
        """Return why it is read by the library of the format, or not at all; else `None`."""
        why = self._description.storage.get("why")
        return None if why is None else str(why)

    @property
    def is_native(self) -> bool:
        """Check whether the engine reads it: not its library, and not the chunk index."""
        return self.problem is None and self._description.data is None

    @property
    def is_refused(self) -> bool:
        """Check whether the array is not read at all; `problem` says why."""
        return bool(self._description.storage["kind"] == "refused")

    def check_readable(self) -> None:
        """Check that the array is read at all.

        Raises:
            FormatError: If it is refused; says why.
        """
        if self.is_refused:
            raise FormatError(
                f"{self.url}, array {self.path}: expected an array that can be read, "
                f"found {self.problem}"
            )

    @property
    def data(self) -> NDArray[Any]:
        """Return all elements; each use reads them again."""
        return self[...]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Read all elements for NumPy.

        Raises:
            ValueError: If `copy` is False, since elements that are read are always new.
        """
        if copy is False:
            raise ValueError(f"{self.url}, {self.path}: elements cannot be read without a copy")
        return self.data if dtype is None else self.data.astype(dtype, copy=False)

    @property
    def section(self) -> Array:
        """Return the array itself, which is read by slices: as `Image.section`."""
        return self

    def __getitem__(self, slices: Slices) -> Any:
        """Return elements as `numpy_array[slices]` would, reading only the needed bytes.

        Raises:
            RegionError: If there are more indices than axes.
            PixelIndexError: If an index is out of range.
            FormatError: If the array is refused, or its chunks are damaged.
        """
        self.check_readable()  # the shape of a refused array may be unknown
        indices = slices if isinstance(slices, tuple) else (slices,)
        start, stop, rest = [], [], []
        for index, length in zip(one_per_axis(indices, self.ndim), self.shape, strict=True):
            first, last, within = axis_range(index, length)
            start.append(first)
            stop.append(last)
            rest.append(within)
        dots = (Ellipsis,) if Ellipsis in indices else ()
        return self.read(start, stop)[(*dots, *rest)]

    def read(
        self, start: list[int], stop: list[int], objective: Objective = "auto"
    ) -> NDArray[Any]:
        """Read `[start, stop)` of all axes, zero-based, slowest axis first.

        Raises:
            FormatError: If the array is refused, or its chunks are damaged.
        """
        import numpy as np

        shape = list(map(operator.sub, stop, start))
        description = self._description
        kind = description.storage["kind"]
        if kind == "refused":
            self.check_readable()
        if 0 in shape:
            return np.empty(shape, self.dtype)
        if kind == "inline" and (content := description.data) is not None:
            whole = np.frombuffer(content, self.dtype).reshape(self.shape)
            part = tuple(map(slice, start, stop))
            return whole[part].copy()
        if kind == "library":
            part_bytes = self._file.read_by_library(description, start, stop)
            return np.frombuffer(part_bytes, self.dtype).reshape(shape).copy()
        first, last = (start[::-1], stop[::-1]) if start else ([0], [1])
        elements = self._file._native.read_array(self.path, first, last, "strict", objective)
        flat: NDArray[Any] = np.frombuffer(memoryview(elements), self.dtype)
        return flat.reshape(shape)


def array_of(file: Any, path: str) -> Array:
    """Return an array of a file by its path, as after unpickling."""
    array: Array = file[path]
    return array
