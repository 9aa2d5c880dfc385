"""The container of HDF4: data elements by tag and reference, their storage, vgroups and vdatas.

Element positions are not told by pyhdf, so the container is parsed here. Numbers in it are
big-endian.

References:
    HDF Specification and Developer's Guide 4.2, sections 2, 3 and 9 (extended tags).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.arrays.readers.limits import check_chunk
from swathe.core.errors import FormatError, LimitError

if TYPE_CHECKING:
    from swathe.arrays.readers.limits import BoundedFile

MAGIC = b"\x0e\x03\x13\x01"
MOST_ELEMENTS = 4_000_000
MOST_MEMBERS = 65_535
SPECIAL = 0x4000
NULL, LINK_BLOCK, CODED_DATA, CHUNK, NUMBER_TYPE = 1, 20, 40, 61, 106
SDD, SD, NDG, VH, VS, VG = 701, 702, 720, 1962, 1963, 1965
LINK_KIND, EXTERNAL_KIND, CODER_KIND, CHUNK_KIND = 1, 2, 3, 5
NAMES = {2: "data in another file", 4: "linked blocks of several sizes", 6: "a buffer", 7: "raster"}
CODERS = {0: "", 1: "RLE", 2: "n-bit", 3: "skipping Huffman", 4: "deflate", 5: "szip", 7: "JPEG"}
TYPES = {
    **{3: "u1", 4: "S1", 5: "f4", 6: "f8", 20: "i1", 21: "u1", 22: "i2", 23: "u2"},
    **{24: "i4", 25: "u4", 26: "i8", 27: "u8"},
}
LITTLE_ENDIAN = 4
"""Class of a number type in the order of PCs; all others are big-endian here."""


@dataclass(frozen=True)
class Storage:
    """How an element is stored.

    Attributes:
        pieces: first byte and length of each part, in order; a part at byte 0 is zeros.
        coder: name of its compression; empty if there is none.
        size: decoded bytes.
        chunks: description of its chunks, or None.
        refusal: why it is not read, or an empty text.
    """

    pieces: list[tuple[int, int]] = field(default_factory=list)
    coder: str = ""
    size: int = 0
    chunks: ChunkTable | None = None
    refusal: str = ""


@dataclass(frozen=True)
class ChunkTable:
    """The chunks of an element.

    Attributes:
        shape: elements along each axis.
        chunk_shape: elements of a chunk along each axis.
        table: reference of the vdata with the chunks.
        fill: element of missing chunks.
    """

    shape: list[int]
    chunk_shape: list[int]
    table: int
    fill: bytes


@dataclass(frozen=True)
class Vgroup:
    """A vgroup: its name, its class, and tag and reference of its members."""

    name: str
    kind: str
    members: list[tuple[int, int]]


@dataclass(frozen=True)
class Vdata:
    """The header of a vdata.

    Attributes:
        name: its name.
        kind: its class.
        records: number of records.
        dtype: type of a record; None if a field has an unknown type.
        is_by_record: whether the fields of a record are stored together.
    """

    name: str
    kind: str
    records: int
    dtype: np.dtype[Any] | None
    is_by_record: bool


class Container:
    """An HDF4 file.

    Attributes:
        file: the file.
        elements: first byte and length of each element, by tag (without the bit of special
            elements) and reference.
        special: keys of the elements whose bytes are a description.
    """

    def __init__(self, file: BoundedFile) -> None:
        self.file = file
        self.elements: dict[tuple[int, int], tuple[int, int]] = {}
        self.special: set[tuple[int, int]] = set()
        if file.part("HDF4", 0, min(4, file.size)) != MAGIC:
            raise FormatError("expected the first bytes of HDF4")
        at, blocks = 4, set[int]()
        while at:
            if at in blocks:
                raise FormatError(f"descriptors: expected a later block, found {at} again")
            blocks.add(at)
            count, after = struct.unpack(">hI", file.part("descriptors", at, 6))
            if count <= 0:
                raise FormatError(f"descriptors: expected some at {at}, found {count}")
            rows = file.part("descriptors", at + 6, 12 * count)
            for tag, ref, offset, length in struct.iter_unpack(">HHII", rows):
                if tag == NULL or offset == 0xFFFFFFFF or length == 0xFFFFFFFF:
                    continue
                key = (tag & ~SPECIAL if tag < 0x8000 else tag, ref)
                self.elements[key] = (offset, length)
                if tag < 0x8000 and tag & SPECIAL:
                    self.special.add(key)
            if len(self.elements) > MOST_ELEMENTS:
                raise LimitError(f"expected at most {MOST_ELEMENTS} elements")
            at = after
        self.storage = lru_cache(1000)(self._storage)

    def references(self, tag: int) -> list[int]:
        """Return the references of all elements of a tag, ascending."""
        return sorted(ref for each, ref in self.elements if each == tag)

    def data(self, tag: int, ref: int) -> bytes:
        """Return the bytes of an element that is not compressed.

        Raises:
            FormatError: If it is damaged, missing or compressed.
            LimitError: If it is too large.
        """
        what = f"element {tag}/{ref}"
        storage = self.storage(tag, ref)
        if storage is None or storage.refusal or storage.coder or storage.chunks:
            raise FormatError(f"{what}: expected plain bytes")
        check_chunk(what, storage.size)
        parts = [
            self.file.part(what, offset, length) if offset else bytes(length)
            for offset, length in storage.pieces
        ]
        return b"".join(parts)

    def _storage(self, tag: int, ref: int) -> Storage | None:
        """Return how an element is stored, or None if it was never written."""
        place = self.elements.get((tag, ref))
        if place is None:
            return None
        what = f"element {tag}/{ref}"
        offset, length = place
        if offset + length > self.file.size:
            raise FormatError(
                f"{what}: expected its end in the file of {self.file.size} bytes, "
                f"found {offset + length}"
            )
        if (tag, ref) not in self.special:
            return Storage([(offset, length)], size=length)
        head = _Fields(what, self.file.part(what, offset, length))
        kind = head.take("h")
        if kind == LINK_KIND:
            return self._link_storage(what, head)
        if kind == CODER_KIND:
            return self._coder_storage(what, head)
        if kind == CHUNK_KIND:
            return self._chunk_storage(head)
        return Storage(refusal=NAMES.get(kind, f"special element {kind}"))

    def _link_storage(self, what: str, head: _Fields) -> Storage:
        """Return the storage of an element in linked blocks."""
        size, block_size, count, ref = head.take("iiiH")
        if size < 0 or block_size <= 0 or not 0 < count <= MOST_MEMBERS:
            raise FormatError(f"{what}: expected blocks, found {count} of {block_size} bytes")
        pieces: list[tuple[int, int]] = []
        rest, tables = size, set[int]()
        while ref and rest > 0:
            if ref in tables:
                raise FormatError(f"{what}: expected each table of blocks once, found {ref} twice")
            tables.add(ref)
            place = self.elements.get((LINK_BLOCK, ref), (0, 0))
            table = _Fields(what, self.file.part(what, *place))
            ref, *blocks = table.take("H" * (count + 1))
            for block in blocks:
                if rest <= 0:
                    break
                offset, length = self.elements.get((LINK_BLOCK, block), (0, block_size))
                length = min(length, rest)
                if offset + length > self.file.size or length <= 0:
                    raise FormatError(f"{what}: expected block {block} in the file")
                pieces.append((offset, length))
                rest -= length
        if rest:
            raise FormatError(f"{what}: expected blocks of {size} bytes, {rest} are missing")
        return Storage(pieces, size=size)

    def _coder_storage(self, what: str, head: _Fields) -> Storage:
        """Return the storage of an element that is compressed."""
        _, size, ref, _, coder = head.take("HiHHH")
        if size < 0:
            raise FormatError(f"{what}: expected some bytes, found {size}")
        if (CODED_DATA, ref) in self.special:
            inner = self.storage(CODED_DATA, ref)
            pieces = inner.pieces if inner is not None else []
        else:
            place = self.elements.get((CODED_DATA, ref))
            if place is None:
                return Storage(coder=CODERS.get(coder, str(coder)), size=size)
            if sum(place) > self.file.size:
                raise FormatError(f"{what}: expected its end in the file, found {sum(place)}")
            pieces = [place]
        return Storage(pieces, CODERS.get(coder, f"coder {coder}"), size)

    def _chunk_storage(self, head: _Fields) -> Storage:
        """Return the storage of an element in chunks."""
        _, _, _, size, _, _, _, table, _, _, rank = head.take("iBiiiiHHHHi")
        if not 0 < rank <= 32:
            raise FormatError(f"{head.what}: expected 1 to 32 axes, found {rank}")
        axes = [head.take("iii") for _ in range(rank)]
        fill = head.text(head.take("i"))
        shape, chunk_shape = [axis[1] for axis in axes], [axis[2] for axis in axes]
        if min(shape) < 0 or min(chunk_shape) <= 0:
            raise FormatError(f"{head.what}: expected chunks, found {chunk_shape} of {shape}")
        return Storage(size=size, chunks=ChunkTable(shape, chunk_shape, table, fill))

    def vgroups(self) -> dict[int, Vgroup]:
        """Return all vgroups by their references."""
        groups = {}
        for ref in self.references(VG):
            head = _Fields(f"vgroup {ref}", self.data(VG, ref))
            count = head.take("H")
            tags, refs = head.takes("H", count), head.takes("H", count)
            name = head.text(head.take("H")).decode("utf-8", "backslashreplace")
            kind = head.text(head.take("H")).decode("utf-8", "backslashreplace")
            groups[ref] = Vgroup(name, kind, list(zip(tags, refs, strict=True)))
        return groups

    def vdata(self, ref: int) -> Vdata:
        """Return the header of a vdata."""
        head = _Fields(f"vdata {ref}", self.data(VH, ref))
        interlace, records, size, count = head.take("hiHh")
        if records < 0 or not 0 <= count <= 256:
            raise FormatError(f"vdata {ref}: expected records, found {records} of {count} fields")
        types, sizes = head.takes("h", count), head.takes("H", count)
        offsets, orders = head.takes("H", count), head.takes("H", count)
        names = [self._text(head) for _ in range(count)]
        name, kind = self._text(head), self._text(head)
        formats: list[Any] = []
        for type_, order in zip(types, orders, strict=True):
            dtype = dtype_of(type_ & 0xFFF, is_little=bool(type_ & 0x4000))
            formats.append((dtype, (order,)) if order > 1 else dtype)
        if None in [each[0] if isinstance(each, tuple) else each for each in formats] or any(
            np.dtype(each).itemsize != length for each, length in zip(formats, sizes, strict=True)
        ):
            return Vdata(name, kind, records, None, interlace == 0)
        if len(set(names)) != count or max(offsets, default=0) > size:
            raise FormatError(f"vdata {ref}: expected fields, each once, found {names}")
        dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
        return Vdata(name, kind, records, dtype, interlace == 0)

    @staticmethod
    def _text(head: _Fields) -> str:
        return head.text(head.take("H")).decode("utf-8", "backslashreplace")

    def records(self, ref: int, header: Vdata) -> np.ndarray[Any, Any]:
        """Return the records of a vdata."""
        if header.dtype is None:
            raise FormatError(f"vdata {ref}: expected fields of known types")
        if not header.records:
            return np.empty(0, header.dtype)
        data = self.data(VS, ref)
        if len(data) < header.records * header.dtype.itemsize:
            raise FormatError(f"vdata {ref}: expected {header.records} records")
        return np.frombuffer(data, header.dtype, header.records)


class _Fields:
    """Big-endian numbers of an element, one after the other."""

    def __init__(self, what: str, data: bytes) -> None:
        self.what, self._data, self._at = what, data, 0

    def take(self, types: str) -> Any:
        """Return the next number, or a tuple of several."""
        values = struct.unpack(">" + types, self.text(struct.calcsize(">" + types)))
        return values[0] if len(values) == 1 else values

    def takes(self, kind: str, count: int) -> tuple[int, ...]:
        """Return a tuple of the next numbers."""
        return struct.unpack(f">{count}{kind}", self.text(count * struct.calcsize(">" + kind)))

    def text(self, length: int) -> bytes:
        """Return the next bytes."""
        part = self._data[self._at : self._at + length]
        if length < 0 or len(part) != length:
            raise FormatError(
                f"{self.what}: expected {length} bytes more, found the end at {len(self._data)}"
            )
        self._at += length
        return part


def dtype_of(code: int, *, is_little: bool) -> np.dtype[Any] | None:
    """Return the dtype of a number type, or None if it is unknown."""
    if code not in TYPES:
        return None
    return np.dtype(TYPES[code]).newbyteorder("<" if is_little else ">")


def decode_rle(data: bytes, size: int) -> bytes:
    """Return the bytes of a run-length code.

    A byte below 128 is followed by that many and one more; a byte above by one that is repeated,
    three times for 128.

    Raises:
        FormatError: If they are not `size` bytes.
    """
    parts, at, rest = [], 0, size
    while rest > 0 and at + 1 < len(data):
        length = data[at] + 1
        if length > 128:
            length -= 126
            parts.append(data[at + 1 : at + 2] * length)
            at += 2
        else:
            parts.append(data[at + 1 : at + 1 + length])
            at += 1 + length
        rest -= len(parts[-1])
    if rest:
        raise FormatError(f"RLE: expected {size} bytes, found {size - rest}")
    return b"".join(parts)
