"""HDF5 and NetCDF4: the chunk index of a file, with h5py."""

from __future__ import annotations

import encodings.ascii  # noqa: F401 - h5py needs it, and a confined process opens no file
import math
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import h5py
import numpy as np
import numpy.ma
from h5py import h5d

from swathe.arrays.index_writer import (
    IndexWriter,
    by_library,
    contiguous,
    encode_attribute,
    inline,
    refusal,
)
from swathe.arrays.readers.hdf5_dims import Dimensions
from swathe.arrays.readers.hdf5_links import (
    OtherFiles,
    address_of,
    find_external,
    other_file_of,
    target_of,
    virtual_fault,
)
from swathe.arrays.readers.hdf5_tree import children_of
from swathe.arrays.readers.hdf5_types import (
    attributes_of,
    filters_of,
    is_known_to_library,
    is_plain,
    plain_dtype,
)
from swathe.arrays.readers.other_files import HOW_TO_READ
from swathe.arrays.struct_metadata import LARGEST, STRUCTURE, field_axes
from swathe.core.errors import FormatError, LimitError, RegionError
from swathe.core.served_file import ServedFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_OBJECTS = 100_000
"""Limit of the links of a file."""
DEEPEST = 100
"""Limit of groups in groups."""
MOST_INLINE = 64 << 10
"""Limit of texts that the index itself has, in bytes."""
MOST_TEXTS = 100_000
"""Limit of the elements of an array of texts of variable length."""
MOST_CHUNK_BYTES = 1 << 31
MOST_ELEMENT_BYTES = 1 << 16
NO_CHUNK_ELEMENTS = 1 << 16
"""Elements of a chunk of an array without data, at most."""
ERRORS = (
    *(AssertionError, AttributeError, KeyError, OSError, OverflowError),
    *(RuntimeError, TypeError, ValueError),
)
"""What h5py raises for damaged files."""
INFORMATION = "/HDFEOS INFORMATION"
"""Group of HDF-EOS 5 with the texts that describe the file."""
UNKNOWN = np.dtype("V0")
"""Type of what is not opened."""

Storage: TypeAlias = tuple[dict[str, Any], np.dtype[Any], tuple[int, ...]]
"""Storage of an array in the index, its type and shape."""


def describe(file: BinaryIO) -> bytes:
    """Return the chunk index of an HDF5 file.

    Raises:
        FormatError: If it is not a valid HDF5 file, or has too many objects.
    """
    with _library_file(file) as root:
        writer = IndexWriter("hdf5", f"h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}")
        tree = tree_of(root)
        writer.groups = {path: attributes_of(root[path]) for path in tree.groups}
        if structure := _structure_of(file, tree.datasets):
            writer.groups["/"] = {**writer.groups["/"], STRUCTURE: encode_attribute(structure)}
        axes = field_axes(structure)
        dimensions = Dimensions(root, tree.groups, tree.datasets, axes)
        for path, dataset in tree.datasets.items():
            if not dimensions.is_only_dimension(dataset):
                _add_dataset(writer, file, path, dataset, dimensions.names(path, dataset))
        for path, why in tree.refusals.items():
            writer.add(path, UNKNOWN, (), refusal(why))
        return writer.to_bytes()


def read(file: BinaryIO, name: str, start: Sequence[int], stop: Sequence[int]) -> bytes:
    """Return the elements `[start, stop)` of an array, in C order, as the index types them.

    Raises:
        FormatError: If the library cannot read them.
        RegionError: If the region is not within the array.
    """
    with _library_file(file) as root:
        why, dataset = target_of(root, name)
        if dataset is None or not isinstance(dataset, h5py.Dataset):
            raise FormatError(f"{name}: expected an array, found {why or 'a group'}")
        return part_of(name, dataset, storage_of(None, file, dataset), start, stop)


def part_of(
    name: str,
    dataset: h5py.Dataset,
    storage: Storage,
    start: Sequence[int],
    stop: Sequence[int],
) -> bytes:
    """Return the elements `[start, stop)` of a dataset, in C order.

    Args:
        name: path of the array in errors.
        dataset: the dataset.
        storage: what `storage_of` says of it.
        start: first element along each axis.
        stop: element after the last along each axis.

    Raises:
        FormatError: If it is refused.
        RegionError: If the region is not within the array.
    """
    how, dtype, shape = storage
    if how["kind"] == "refused":
        raise FormatError(f"{name}: expected an array that is read, found {how['why']}")
    sides = list(zip(start, stop, strict=True))
    if len(sides) != len(shape) or not all(
        0 <= low <= high <= side for (low, high), side in zip(sides, shape, strict=True)
    ):
        raise RegionError(f"{name}: expected a region within {shape}, found {sides}")
    outer = sides[: dataset.ndim]
    values = dataset[tuple(slice(*each) for each in outer)]
    if dataset.dtype.hasobject:
        return _texts(values, dtype).tobytes()
    values = np.asarray(values).astype(dtype, copy=False)
    inner: Any = tuple(slice(*each) for each in sides[dataset.ndim :])
    return values[(..., *inner)].tobytes() if inner else values.tobytes()


@contextmanager
def _library_file(file: BinaryIO) -> Iterator[h5py.File]:
    """Open a file with h5py; its errors are those of a damaged file."""
    with library_errors(), h5py.File(file, "r") as root:
        if isinstance(file, ServedFile):
            file.look_ahead = partial(children_of, base=root.userblock_size)
        yield root


@contextmanager
def library_errors() -> Iterator[None]:
    """Raise the errors of h5py as those of a damaged file."""
    try:
        yield
    except (FormatError, LimitError, RegionError):
        raise
    except ERRORS as error:
        raise FormatError(f"expected a valid HDF5 file, found: {error}") from error


@dataclass
class _Tree:
    """What a file has, by path."""

    groups: list[str] = field(default_factory=list)
    datasets: dict[str, h5py.Dataset] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)


def tree_of(root: h5py.File) -> _Tree:
    """Return all groups and datasets; each group once, whatever the links to it.

    Raises:
        FormatError: If there are too many.
    """
    tree = _Tree(["/"])
    visits = {address_of(root)}
    waiting: list[tuple[str, h5py.Group]] = [("", root["/"])]
    count = 0
    while waiting:
        prefix, group = waiting.pop(0)
        for name in group:
            count += 1
            # A name that is not valid UTF-8 is bytes.
            path = f"{prefix}/{encode_attribute(name)}"
            if count > MOST_OBJECTS or path.count("/") > DEEPEST:
                raise FormatError(
                    f"{path[:200]}: expected {MOST_OBJECTS} objects and {DEEPEST} levels at most"
                )
            try:
                link = group.get(name, getlink=True)
                if isinstance(link, h5py.HardLink):
                    target = group[name]
                else:
                    why, target = target_of(root, f"{prefix}/{name}")
                    if target is None:
                        tree.refusals[path] = why
                    elif not isinstance(target, h5py.Dataset):
                        continue  # the group has a path of its own
            except ERRORS as error:
                tree.refusals[path] = f"h5py: {error}"
                continue
            if isinstance(target, h5py.Dataset):
                tree.datasets[path] = target
            elif isinstance(target, h5py.Group) and (address := address_of(target)) not in visits:
                visits.add(address)
                tree.groups.append(path)
                waiting.append((path, target))
    return tree


def _structure_of(file: BinaryIO, datasets: Mapping[str, h5py.Dataset]) -> str:
    """Return the joined parts of `StructMetadata` of HDF-EOS 5; empty without them.

    A part that is refused as an array, is no text or longer than `LARGEST` ends it.
    """
    parts: list[str] = []
    while (dataset := datasets.get(f"{INFORMATION}/StructMetadata.{len(parts)}")) is not None:
        try:
            is_refused = storage_of(None, file, dataset)[0]["kind"] == "refused"
            if is_refused or dataset.size != 1 or dataset.dtype.itemsize > LARGEST:
                break
            value = np.ravel(dataset[()])[0]
        except ERRORS:  # the array of this path is refused, with the reason
            break
        if not isinstance(value, bytes) or sum(map(len, parts)) + len(value) > LARGEST:
            break
        parts.append(value.rstrip(b"\0").decode("utf-8", "backslashreplace"))
    return "".join(parts)


def _add_dataset(
    writer: IndexWriter, file: BinaryIO, path: str, dataset: h5py.Dataset, dims: Sequence[str]
) -> None:
    """Add a dataset to the index."""
    attributes = attributes_of(dataset)
    try:
        storage, dtype, shape = storage_of(writer, file, dataset)
    except FormatError as error:
        # The other arrays of the file can be read.
        storage, dtype, shape = refusal(str(error)), UNKNOWN, dataset.shape or ()
    except ERRORS as error:
        storage, dtype, shape = refusal(f"h5py: {error}"), UNKNOWN, dataset.shape or ()
    fill = None
    if storage["kind"] not in ("refused", "inline"):
        fill = _fill_of(dataset, dtype)
    names = [*dims, *(f"element_{i}" for i in range(len(shape) - len(dims)))] if dims else []
    writer.add(path, dtype, shape, storage, dims=names, attributes=attributes, fill=fill)


def _fill_of(dataset: h5py.Dataset, dtype: np.dtype[Any]) -> bytes | None:
    """Return the fill value as stored, or None for zeros."""
    if dataset.dtype.hasobject:
        return None
    value = np.asarray(dataset.fillvalue).astype(dataset.dtype.base, copy=False)
    fill = value.ravel()[:1].tobytes()
    return fill if len(fill) == dtype.itemsize and any(fill) else None


def storage_of(
    writer: IndexWriter | None,
    file: BinaryIO | None,
    dataset: h5py.Dataset,
    others: OtherFiles | None = None,
) -> Storage:
    """Return storage, type and shape of a dataset; chunks are listed if there is a writer.

    Args:
        writer: index that gets the chunks.
        file: the file, if there is a writer.
        dataset: the dataset.
        others: files in which elements may lie; by default it is refused then.

    Raises:
        FormatError: If it lies in a file that `others` do not have.
    """
    of, shape = dataset.dtype, dataset.shape
    if shape is None:
        return refusal("an array without elements (null dataspace)"), plain_dtype(of.base), ()
    plist = dataset.id.get_create_plist()
    if plist.get_external_count() and others is None:
        return refusal(other_file_of(dataset) + HOW_TO_READ), UNKNOWN, shape
    find_external(dataset, others)
    layout = plist.get_layout()
    why = virtual_fault(dataset, set(), others) if layout == h5d.VIRTUAL else ""
    if why:
        return refusal(why), UNKNOWN, shape
    filters, missing = filters_of(plist)
    if missing and not is_known_to_library(plist):
        return refusal(f"{missing}, which is not known"), UNKNOWN, shape
    if of.hasobject:
        return *_text_storage(dataset), shape
    dtype = plain_dtype(of.base)
    whole = shape + of.shape
    if math.prod(whole) * dtype.itemsize >= 1 << 63 or dtype.itemsize > MOST_ELEMENT_BYTES:
        text = f"{whole} elements of {dtype.itemsize} bytes"
        return refusal(f"expected fewer than 2^63 bytes, found {text}"), dtype, whole
    if not is_plain(dataset.id.get_type(), of, [each["name"] for each in filters]):
        return by_library("numbers that h5py converts"), dtype, whole
    if missing:
        return by_library(missing), dtype, whole
    if layout == h5d.VIRTUAL:
        return by_library("an array made of others of this file"), dtype, whole
    return _native_storage(writer, file, dataset, dtype, whole, filters), dtype, whole


def _native_storage(
    writer: IndexWriter | None,
    file: BinaryIO | None,
    dataset: h5py.Dataset,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    filters: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the storage of an array whose elements lie in the file as they are."""
    layout = dataset.id.get_create_plist().get_layout()
    if layout == h5d.COMPACT:
        content = np.empty(dataset.shape, dataset.dtype)
        if content.size:
            dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, content, dataset.id.get_type())
        return inline(content.tobytes())
    if writer is None or file is None:
        return contiguous(0)
    if layout == h5d.CHUNKED:
        chunk_shape = dataset.chunks + dataset.dtype.shape
        if math.prod(chunk_shape) * dtype.itemsize > MOST_CHUNK_BYTES:
            return by_library(f"chunks of {chunk_shape}, above {MOST_CHUNK_BYTES} bytes")
        numbers, offsets, lengths, skips = _chunks_of(file, dataset)
        return writer.chunks(chunk_shape, filters, numbers, offsets, lengths, skips)
    offset = dataset.id.get_offset()
    size = math.prod(shape) * dtype.itemsize
    # The offset of what has none is that of the user block less one byte, in some versions.
    is_missing = dataset.id.get_space_status() == h5d.SPACE_STATUS_NOT_ALLOCATED
    if offset is None or is_missing or not size:
        return writer.chunks(_small_chunk(shape), [], [], [], [])
    if offset + size > _size_of(file):
        raise FormatError(
            f"{dataset.name}: expected {size} bytes at {offset}, found a file of {_size_of(file)}"
        )
    return contiguous(offset)


def _small_chunk(shape: Sequence[int]) -> list[int]:
    """Return the shape of chunks for an array that has none."""
    rest, sides = NO_CHUNK_ELEMENTS, []
    for side in reversed(shape):
        sides.append(max(1, min(side, rest)))
        rest //= sides[-1]
    return sides[::-1]


def _chunks_of(file: BinaryIO, dataset: h5py.Dataset) -> tuple[Any, Any, Any, Any]:
    """Return numbers, offsets, lengths and skips of the chunks of a dataset.

    Raises:
        FormatError: If a chunk is empty or lies beyond the end of the file.
    """
    starts, places = array("Q"), array("Q")

    def add(chunk: Any) -> None:
        starts.extend(chunk.chunk_offset)
        places.extend((chunk.byte_offset, chunk.size, chunk.filter_mask))

    dataset.id.chunk_iter(add)
    chunk_shape = np.array(dataset.chunks, np.uint64)
    table = np.array(places, np.uint64).reshape(-1, 3)
    corners = np.array(starts, np.uint64).reshape(len(table), len(chunk_shape)) // chunk_shape
    grid = [-(-side // chunk) for side, chunk in zip(dataset.shape, dataset.chunks, strict=True)]
    if math.prod(grid) >= 1 << 63:
        raise FormatError(f"{dataset.name}: expected fewer than 2^63 chunks, found {grid}")
    # Chunks beyond the shape are left from a larger one.
    table = table[is_inside := (corners < np.array(grid, np.uint64)).all(axis=1)]
    numbers = np.zeros(len(table), np.uint64)
    for axis, side in enumerate(grid):
        numbers = numbers * np.uint64(side) + corners[is_inside, axis]
    offsets, lengths, skips = table.T
    size = _size_of(file)
    wrong = (lengths == 0) | (offsets > size) | (lengths > size - np.minimum(offsets, size))
    if wrong.any():
        i = int(wrong.argmax())
        raise FormatError(
            f"{dataset.name}, chunk {numbers[i]}: expected bytes within {size}, "
            f"found {lengths[i]} at {offsets[i]}"
        )
    if len(np.unique(numbers)) != len(numbers):
        raise FormatError(f"{dataset.name}: expected each chunk once, found one twice")
    return numbers, offsets, lengths, skips


def _size_of(file: BinaryIO) -> int:
    return file.seek(0, 2)


def _text_storage(dataset: h5py.Dataset) -> tuple[dict[str, Any], np.dtype[Any]]:
    """Return storage and type of texts of variable length; other such elements are refused."""
    if h5py.check_string_dtype(dataset.dtype) is None:
        return refusal("elements of variable length, or references"), UNKNOWN
    if dataset.size > MOST_TEXTS:
        why = f"{dataset.size} texts of variable length; expected {MOST_TEXTS} at most"
        return refusal(why), UNKNOWN
    values = np.asarray(dataset[()], object)
    dtype = np.dtype(f"S{max([1, *map(len, values.ravel().tolist())])}")
    if dtype.itemsize > MOST_ELEMENT_BYTES:
        return refusal(
            f"texts of {dtype.itemsize} bytes; expected {MOST_ELEMENT_BYTES} at most"
        ), UNKNOWN
    if dtype.itemsize * values.size <= MOST_INLINE:
        return inline(_texts(values, dtype).tobytes()), dtype
    return by_library("texts of variable length"), dtype


def _texts(values: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return texts of variable length as those of fixed length, padded with zeros."""
    return np.asarray(values, object).astype(dtype)
