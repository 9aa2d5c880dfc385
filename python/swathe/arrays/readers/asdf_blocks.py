"""Blocks of an ASDF file: where they lie, and how they are compressed.

References:
    ASDF Standard 1.6, low-level file layout: blocks.
"""

from __future__ import annotations

import bz2
import hashlib
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.arrays.readers.limits import check_chunk
from swathe.core.errors import FormatError

if TYPE_CHECKING:
    from swathe.arrays.readers.limits import BoundedFile

MAGIC = b"\xd3BLK"
HEADER = struct.Struct(">I4sQQQ16s")
IS_STREAM = 1
MOST_BLOCKS = 100_000
MOST_PADDING = 16 << 20
MOST_PIECES = 100_000
FIRST_READ = 4 << 10
"""Bytes in which the first block is sought first: they are among the first that a server sends."""


@dataclass(frozen=True)
class Block:
    """A block.

    Attributes:
        offset: first byte of its data.
        used_size: bytes of its data as stored.
        data_size: bytes of its data when decoded.
        compression: name of the compression; empty if there is none.
        checksum: MD5 of the data as stored, or zeros.
        fault: why it cannot be read; empty if it can.
    """

    offset: int
    used_size: int
    data_size: int
    compression: str
    checksum: bytes
    fault: str = ""

    def pieces(self, file: BoundedFile) -> list[tuple[int, int, int]]:
        """Return first byte, bytes, and decoded bytes of each piece of an lz4 block."""
        at, end = self.offset, self.offset + self.used_size
        pieces: list[tuple[int, int, int]] = []
        while at < end:
            what = f"lz4 piece {len(pieces)}"
            if len(pieces) == MOST_PIECES:
                raise FormatError(f"lz4: expected at most {MOST_PIECES} pieces")
            head = file.part(what, at, 8)
            length = 4 + int.from_bytes(head[:4], "big")
            if length < 8 or at + length > end:
                raise FormatError(f"{what}: expected its end in the block, found {length} bytes")
            pieces.append((at, length, int.from_bytes(head[4:], "little")))
            at += length
        if sum(piece[2] for piece in pieces) != self.data_size:
            raise FormatError(f"lz4: expected pieces of {self.data_size} decoded bytes")
        return pieces

    def decode(self, file: BoundedFile) -> bytes:
        """Return the decoded data.

        Raises:
            FormatError: If they are damaged, or the compression is unknown.
            LimitError: If they are too large.
        """
        what = f"block at {self.offset}"
        if self.fault:
            raise FormatError(self.fault)
        check_chunk(what, max(self.used_size, self.data_size))
        data = file.part(what, self.offset, self.used_size)
        if any(self.checksum) and hashlib.md5(data, usedforsecurity=False).digest() != (
            self.checksum
        ):
            raise FormatError(f"{what}: expected data of its checksum")
        try:
            if self.compression == "zlib":
                data = zlib.decompressobj().decompress(data, self.data_size + 1)
            elif self.compression == "bzp2":
                data = bz2.BZ2Decompressor().decompress(data, self.data_size + 1)
            elif self.compression:
                raise FormatError(f"{what}: expected zlib or bzp2, found {self.compression}")
        except (zlib.error, OSError, EOFError) as error:
            raise FormatError(f"{what}: {error}") from error
        if len(data) != self.data_size:
            raise FormatError(f"{what}: expected {self.data_size} decoded bytes")
        return data


def read_blocks(file: BoundedFile, start: int) -> list[Block]:
    """Return the blocks of a file, whose tree ends at a byte.

    A block that leaves the file or contradicts itself has a fault. Those behind it are sought only
    if it says where it ends.

    Raises:
        FormatError: If there are too many.
    """
    at = _first_block(file, start)
    blocks: list[Block] = []
    while at is not None and at + 6 <= file.size:
        file.seek(at)
        head = file.read(6 + HEADER.size)
        if head[:4] != MAGIC:
            break
        if len(blocks) == MOST_BLOCKS:
            raise FormatError(f"expected at most {MOST_BLOCKS} blocks")
        what = f"block {len(blocks)}"
        length = int.from_bytes(head[4:6], "big")
        if length < HEADER.size or len(head) < 6 + HEADER.size:
            fault = f"{what}: expected a header of {HEADER.size} bytes, found {length}"
            blocks.append(Block(at, 0, 0, "", b"", fault))
            break
        block, at = _block(what, head[6:], at + 6 + length, file)
        blocks.append(block)
    return blocks


def _block(what: str, head: bytes, offset: int, file: BoundedFile) -> tuple[Block, int]:
    """Return a block of a header, and the byte after its space."""
    flags, label, space, length, size, checksum = HEADER.unpack(head)
    compression = label.rstrip(b"\0").decode("ascii", "backslashreplace")
    fault = ""
    if flags & IS_STREAM:
        if compression:
            fault = f"{what}: expected no compression of a stream, found {compression}"
        size = max(file.size - offset, 0)
        return Block(offset, size, size, "", bytes(16), fault), file.size
    if length > space or offset + space > file.size:
        fault = (
            f"{what}: expected {length} bytes in space of {space} in the file of {file.size}, "
            f"found its start at {offset}"
        )
    elif not compression and length != size:
        fault = f"{what}: expected {length} decoded bytes, found {size}"
    return Block(offset, length, size, compression, checksum, fault), offset + space


def _first_block(file: BoundedFile, start: int) -> int | None:
    """Return the first byte of the first block, behind padding; None if there is none."""
    file.seek(start)
    data, at, size = b"", start, FIRST_READ
    while at - start <= MOST_PADDING:
        part = file.read(size)
        if not part:
            return None
        data = data[-3:] + part
        place = data.find(MAGIC)
        if place != -1:
            return at + len(part) - len(data) + place
        at += len(part)
        size = 64 << 10
    return None
