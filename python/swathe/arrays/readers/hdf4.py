"""Read HDF4 and HDF-EOS2: every scientific data set (SDS) and every table (vdata) is an array.

An array has the path of the vgroups that it is in, such as `/Swath1/Data Fields/Temperature`, or
its name alone. A second array of one path ends in ` (2)`. HDF-EOS stores its structure in the
attribute `StructMetadata.0` of the root; later parts of it are joined to the first. Elements are
big-endian unless their number type says otherwise.

References:
    HDF Specification and Developer's Guide 4.2; Mapping HDF4 objects (netCDF classes `Var0.0`,
    `Dim0.0`, `Attr0.0`, `CDF0.0`).
"""

from __future__ import annotations

import math
import re
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from swathe.arrays.index_writer import (
    IndexWriter,
    by_library,
    contiguous,
    encode_attribute,
    refusal,
)
from swathe.arrays.readers import hdf4_container as hdf4
from swathe.arrays.readers.hdf4_container import ChunkTable, Container, Storage, Vgroup
from swathe.arrays.readers.limits import (
    BoundedFile,
    check_chunk,
    check_shape,
    chunk_fault,
    fill_chunk_shape,
    typed_errors,
)
from swathe.core.errors import FormatError, LimitError, NoSuchHduError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_LEVELS = 50
MOST_PATHS = 100_000
MOST_CHUNKS = 10_000_000
MOST_PIECES = 100_000
OWN_KINDS = ("CDF0.0", "Var0.0", "Dim0.0", "UDim0.0", "RIG0.0")
ATTRIBUTE = "Attr0.0"
OWN_TABLES = (ATTRIBUTE, "DimVal0.0", "DimVal0.1", "SDSVar", "CoordVar", "RIATTR0.0N")
FILLS = {"i1": -127, "u1": 129, "i2": -32767, "u2": 32769, "i4": -2147483647, "u4": 2147483649}
"""Elements that were never written, if no attribute `_FillValue` says otherwise."""
FLOAT_FILL = 9.9692099683868690e36
METADATA = re.compile(r"StructMetadata\.(\d+)")


def describe(file: IO[bytes]) -> bytes:
    """Return the chunk index of an HDF4 file.

    Args:
        file: the file, for reading at any position.

    Raises:
        FormatError: If it is damaged or not HDF4.
        LimitError: If it has too many elements.
    """
    with typed_errors("HDF4"):
        container = Container(BoundedFile(file))
        index = IndexWriter("hdf4", "swathe")
        groups = container.vgroups()
        index.groups["/"] = _root_attributes(container, groups)
        names: set[str] = set()
        for path, array in _arrays(container, groups):
            name, number = path, 1
            while name in names:
                number += 1
                name = f"{path} ({number})"
            names.add(name)
            array.add(index, name)
    return index.to_bytes()


def read(file: IO[bytes], name: str, start: int, stop: int) -> bytes:
    """Return elements of an array whose blocks are no chunks of it.

    Args:
        file: the file, for reading at any position.
        name: path of the array.
        start: first element, in C order.
        stop: end of the elements.

    Returns:
        The elements, in the byte order of the index.

    Raises:
        FormatError: If the file is damaged.
        NoSuchHduError: If it has no such array.
    """
    with typed_errors("HDF4"):
        container = Container(BoundedFile(file))
        names: set[str] = set()
        for path, array in _arrays(container, container.vgroups()):
            each, number = path, 1
            while each in names:
                number += 1
                each = f"{path} ({number})"
            names.add(each)
            if each == name:
                return array.elements(name, start, stop)
    raise NoSuchHduError(f"expected an array of the file, found {name}")


class _Array:
    """An SDS or a table.

    Attributes:
        container: the file.
        tag: tag of the data.
        ref: reference of the data, or None if there are none.
        dtype: type of an element; None if it is unknown.
        shape: elements along each axis.
        dims: names of the axes.
        attributes: attributes by their names.
    """

    def __init__(
        self,
        container: Container,
        data: tuple[int, int | None],
        dtype: np.dtype[Any] | None,
        shape: Sequence[int],
        dims: Sequence[str] = (),
        attributes: dict[str, Any] | None = None,
    ) -> None:
        self.container = container
        self.tag, self.ref = data
        self.dtype, self.shape = dtype, list(shape)
        self.dims = dims if len(dims) == len(shape) else ()
        self.attributes = attributes or {}
        self._chunk_fill: Any = None

    def add(self, index: IndexWriter, name: str) -> None:
        """Add the array to an index."""
        dtype = np.dtype("u1") if self.dtype is None else self.dtype
        storage = refusal("elements of an unknown type") if self.dtype is None else None
        index.add(
            name,
            dtype,
            self.shape,
            storage or self._storage(index, name, dtype),
            dims=self.dims,
            attributes={key: encode_attribute(value) for key, value in self.attributes.items()},
            fill=self._fill(dtype),
        )

    def _storage(self, index: IndexWriter, name: str, dtype: np.dtype[Any]) -> dict[str, Any]:
        storage = None if self.ref is None else self.container.storage(self.tag, self.ref)
        if fault := chunk_fault([], dtype.itemsize):
            return refusal(fault)
        whole = fill_chunk_shape(self.shape, dtype.itemsize)
        size = math.prod(self.shape) * dtype.itemsize
        if storage is None or not size:
            return index.chunks(whole, [], [], [], [])
        if storage.refusal:
            return refusal(storage.refusal)
        if storage.chunks is not None:
            return self._chunks(index, name, storage.chunks, dtype)
        if storage.size < size:
            return refusal(f"data of {storage.size} bytes for {size}")
        if storage.coder:
            if not storage.pieces:
                return index.chunks(whole, [], [], [], [])
            if storage.coder == "RLE":
                return by_library("compression RLE")
            if storage.coder != "deflate":
                return refusal(f"compression {storage.coder}")
            if whole != self.shape:
                return refusal(chunk_fault(self.shape, dtype.itemsize))
            if len(storage.pieces) > 1:
                return refusal("compressed data in linked blocks")
            (offset, length), filters = storage.pieces[0], [{"name": "deflate"}]
            return index.chunks(whole, filters, [0], [offset], [length])
        return self._plain(index, storage, dtype, size)

    def _plain(
        self, index: IndexWriter, storage: Storage, dtype: np.dtype[Any], size: int
    ) -> dict[str, Any]:
        """Return the storage of data in one block, or in linked blocks."""
        places = _runs(storage.pieces)
        if len(places) == 1 and places[0][0] and places[0][1] >= size:
            return contiguous(places[0][0])
        row = math.prod(self.shape[1:]) * dtype.itemsize
        step = math.gcd(*[length for _, length in places[:-1]], row)
        common = math.gcd(*[length for _, length in places[:-1]]) or places[-1][1]
        total = -(-size // max(common, 1))
        is_rows = step == row and common and common % row == 0 and total <= MOST_PIECES
        if not is_rows or any(not offset for offset, _ in places):
            return by_library("linked blocks that are no rows of the array")
        offsets = [offset + at for offset, length in places for at in range(0, length, common)][
            :total
        ]
        lengths = [min(common, size - number * common) for number in range(len(offsets))]
        if sum(lengths) < size:
            return refusal(f"data of {sum(lengths)} bytes for {size}")
        shape = [common // row, *self.shape[1:]]
        return index.chunks(shape, [], range(len(offsets)), offsets, lengths, is_padded=False)

    def _chunks(
        self, index: IndexWriter, name: str, chunks: ChunkTable, dtype: np.dtype[Any]
    ) -> dict[str, Any]:
        """Return the storage of data in chunks."""
        container = self.container
        if chunks.shape[1:] != self.shape[1:] or len(chunks.shape) != len(self.shape):
            raise FormatError(f"{name}: expected chunks of {self.shape}, found {chunks.shape}")
        if len(chunks.fill) == dtype.itemsize:
            self._chunk_fill = np.frombuffer(chunks.fill, dtype)[0]
        table = container.records(chunks.table, container.vdata(chunks.table))
        fields = table.dtype.names
        if fields is None or len(fields) != 3 or len(table) > MOST_CHUNKS:
            raise FormatError(f"{name}: expected a table of chunks, found {fields}")
        grid = [-(-a // b) for a, b in zip(self.shape, chunks.chunk_shape, strict=True)]
        origins = table[fields[0]].reshape(len(table), -1)
        is_inside = origins.shape[1] == len(grid) and (
            (origins >= 0) & (origins < np.array(grid))
        ).all(axis=1)
        numbers: list[int] = []
        places: list[tuple[int, int]] = []
        coders: set[str] = set()
        if fault := chunk_fault(chunks.chunk_shape, dtype.itemsize):
            return refusal(fault)
        size = math.prod(chunks.chunk_shape) * dtype.itemsize
        for origin, (_, tag, ref), inside in zip(
            origins.tolist(), table.tolist(), np.broadcast_to(is_inside, len(table)), strict=True
        ):
            if not inside:
                raise FormatError(f"{name}: expected chunks in {grid}, found {origin}")
            storage = container.storage(tag & ~hdf4.SPECIAL, ref)
            if storage is None or not storage.pieces:
                continue
            coders.add(storage.coder)
            if storage.size != size or len(storage.pieces) != 1 or storage.refusal:
                return refusal(f"chunk {origin}: expected {size} bytes, found {storage.size}")
            numbers.append(int(np.ravel_multi_index(origin, grid)))
            places.append(storage.pieces[0])
        if len(set(numbers)) != len(numbers):
            raise FormatError(f"{name}: expected each chunk once")
        if len(coders) > 1 or not coders <= {"", "deflate"}:
            return refusal("compression " + " and ".join(sorted(coders)))
        filters = [{"name": coder} for coder in coders if coder]
        offsets, lengths = [place[0] for place in places], [place[1] for place in places]
        return index.chunks(chunks.chunk_shape, filters, numbers, offsets, lengths)

    def _fill(self, dtype: np.dtype[Any]) -> bytes | None:
        """Return the element of what was never written."""
        if dtype.names:
            return None
        value = self.attributes.get("_FillValue", self._chunk_fill)
        if value is None and dtype.kind == "S":
            return bytes(dtype.itemsize)
        if value is None:
            value = FLOAT_FILL if dtype.kind == "f" else FILLS.get(dtype.str[1:], 0)
        if isinstance(value, str):
            value = value.encode("latin-1", "replace")[:1]
        element: bytes = np.array(value).reshape(-1)[:1].astype(dtype).tobytes()
        return element

    def elements(self, name: str, start: int, stop: int) -> bytes:
        """Return elements of data in linked blocks, or compressed by RLE."""
        if self.dtype is None or self.ref is None:
            raise FormatError(f"{name}: expected data")
        if not 0 <= start <= stop <= math.prod(self.shape):
            raise FormatError(
                f"{name}: expected elements in 0 to {math.prod(self.shape)}, "
                f"found {start} to {stop}"
            )
        first, last = start * self.dtype.itemsize, stop * self.dtype.itemsize
        check_chunk(name, last - first)
        storage = self.container.storage(self.tag, self.ref)
        is_plain = storage is not None and not storage.chunks and not storage.refusal
        if storage is None or not is_plain or storage.coder not in ("", "RLE"):
            raise FormatError(f"{name}: expected data in linked blocks, or compressed by RLE")
        if storage.coder:
            check_chunk(name, max(storage.size, *[length for _, length in storage.pieces]))
            parts = [self.container.file.part(name, *place) for place in storage.pieces]
            return hdf4.decode_rle(b"".join(parts), storage.size)[first:last]
        parts, at = [], 0
        for offset, length in storage.pieces:
            low, high = max(first - at, 0), min(last - at, length)
            if low < high:
                size = high - low
                data = self.container.file.part(name, offset + low, size) if offset else bytes(size)
                parts.append(data)
            at += length
        data = b"".join(parts)
        if len(data) != last - first:
            raise FormatError(f"{name}: expected {last - first} bytes, found {len(data)}")
        return data


def _runs(pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return pieces of a file; those that follow each other are one."""
    places: list[tuple[int, int]] = []
    for offset, length in pieces:
        if places and offset and places[-1][0] and sum(places[-1]) == offset:
            places[-1] = (places[-1][0], places[-1][1] + length)
        else:
            places.append((offset, length))
    return places


def _root_attributes(container: Container, groups: dict[int, Vgroup]) -> dict[str, Any]:
    """Return the attributes of the file; the parts of StructMetadata are one."""
    values: dict[str, Any] = {}
    for group in groups.values():
        if group.kind == "CDF0.0":
            values |= _attributes(container, group)
    parts = {
        int(match[1]): str(values.pop(name))
        for name in list(values)
        if (match := METADATA.fullmatch(name))
    }
    if parts:
        values["StructMetadata.0"] = "".join(parts[number] for number in sorted(parts))
    return {name: encode_attribute(value) for name, value in values.items()}


def _attributes(container: Container, group: Vgroup) -> dict[str, Any]:
    """Return the attributes that are members of a vgroup."""
    values = {}
    for tag, ref in group.members:
        if tag != hdf4.VH or (tag, ref) not in container.elements:
            continue
        header = container.vdata(ref)
        if header.kind == ATTRIBUTE and header.dtype is not None and header.dtype.names:
            records = container.records(ref, header)
            values[header.name] = _value(records[header.dtype.names[0]])
    return values


def _value(values: np.ndarray[Any, Any]) -> Any:
    """Return a text, a number, or several."""
    if values.dtype == np.dtype("S1"):
        return values.tobytes().rstrip(b"\0").decode("utf-8", "backslashreplace")
    flat = values.ravel()
    return flat[0] if flat.size == 1 else flat


def _arrays(container: Container, groups: dict[int, Vgroup]) -> Iterator[tuple[str, _Array]]:
    """Return all arrays with their paths."""
    paths = _paths(groups)
    done: set[int] = set()
    for group in groups.values():
        if group.kind == "Var0.0":
            ref = next((ref for tag, ref in group.members if tag == hdf4.NDG), None)
            if ref is not None and ref in done:
                continue
            if ref is not None:
                done.add(ref)
            yield (
                _path(paths.get((hdf4.NDG, ref), ""), group.name),
                _data_set(container, group, groups),
            )
    for ref in container.references(hdf4.NDG):
        if ref not in done:
            yield f"/Data-Set-{ref}", _data_set(container, Vgroup("", "", [(hdf4.NDG, ref)]), {})
    for ref in container.references(hdf4.VH):
        header = container.vdata(ref)
        if header.kind in OWN_TABLES or header.kind.startswith("_HDF_"):
            continue
        is_plain = header.is_by_record or (header.dtype and len(header.dtype.names or ()) == 1)
        dtype = header.dtype if is_plain else None
        data = (hdf4.VS, ref if header.records else None)
        array = _Array(container, data, dtype, [header.records], ["record"])
        yield _path(paths.get((hdf4.VH, ref), ""), header.name), array


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name.replace('/', '~1')}"


def _paths(groups: dict[int, Vgroup]) -> dict[tuple[int, int | None], str]:
    """Return the path of the vgroups of each member; groups that contain each other are cut."""
    own = {ref for ref, group in groups.items() if group.kind in OWN_KINDS}
    inner = {ref for group in groups.values() for tag, ref in group.members if tag == hdf4.VG}
    paths: dict[tuple[int, int | None], str] = {}
    stack = [("", ref, 0) for ref in groups if ref not in inner and ref not in own]
    steps = 0
    while stack:
        folder, ref, level = stack.pop()
        steps += 1
        if steps > MOST_PATHS or level > MOST_LEVELS:
            raise LimitError(f"expected at most {MOST_PATHS} paths of {MOST_LEVELS} vgroups")
        path = _path(folder, groups[ref].name)
        for tag, member in groups[ref].members:
            if tag == hdf4.VG and member in groups and member not in own:
                stack.append((path, member, level + 1))
            elif tag == hdf4.VG and member in groups:
                for inside, number in groups[member].members:
                    if inside == hdf4.NDG:
                        paths.setdefault((inside, number), path)
            else:
                paths.setdefault((tag, member), path)
    return paths


def _data_set(container: Container, group: Vgroup, groups: dict[int, Vgroup]) -> _Array:
    """Return the array of an SDS."""
    members = list(group.members)
    for tag, ref in group.members:
        if tag == hdf4.NDG and (tag, ref) in container.elements:
            pairs = np.frombuffer(container.data(tag, ref), ">u2")
            members += [(int(a), int(b)) for a, b in pairs[: pairs.size // 2 * 2].reshape(-1, 2)]
    first: dict[int, int] = {}
    for tag, ref in members:
        if (tag, ref) in container.elements:
            first.setdefault(tag, ref)
    what = f"data set {group.name}"
    if hdf4.SDD not in first:
        raise FormatError(f"{what}: expected its dimensions")
    head = container.data(hdf4.SDD, first[hdf4.SDD])
    rank = int.from_bytes(head[:2], "big")
    if not 0 < rank <= 32 or len(head) < 6 + 4 * rank:
        raise FormatError(f"{what}: expected 1 to 32 axes, found {rank}")
    shape = np.frombuffer(head, ">i4", rank, 2).tolist()
    check_shape(what, shape)
    number_type = int.from_bytes(head[4 + 4 * rank : 6 + 4 * rank], "big")
    _, code, _, order = container.data(hdf4.NUMBER_TYPE, number_type)[:4]
    dtype = hdf4.dtype_of(code, is_little=order == hdf4.LITTLE_ENDIAN)
    dims = [
        groups[ref].name
        for tag, ref in group.members
        if tag == hdf4.VG and ref in groups and groups[ref].kind in ("Dim0.0", "UDim0.0")
    ]
    attributes = _attributes(container, group)
    return _Array(container, (hdf4.SD, first.get(hdf4.SD)), dtype, shape, dims, attributes)
