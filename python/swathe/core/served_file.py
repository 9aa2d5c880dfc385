"""A file whose bytes another process reads: how a confined process reads an object of any store.

The child asks over its socket, `ASK`, offset and length; the parent answers with that many bytes.
A read that fails ends the call in the parent, so the child needs no answer then.
"""

from __future__ import annotations

import io
import struct
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.core.errors import LimitError, SourceError

if TYPE_CHECKING:
    import socket

    from _typeshed import WriteableBuffer

MEBIBYTE = 1 << 20
REQUEST = struct.Struct("<cQQ")
"""A request of a child: `ASK`, first byte, number of bytes."""
ASK = b"r"
MOST_REQUEST = 16 * MEBIBYTE
"""Limit of one request, in bytes."""
CACHE_BYTES = 64 * MEBIBYTE
"""Limit of the blocks that a child keeps."""


@dataclass(frozen=True)
class FileReads:
    """A file for a confined process: how it is read, and limits of the reads of one call.

    Attributes:
        read_at: function that returns the bytes from an offset, as many as its second argument
            says; its errors reach who called.
        size: bytes of the file.
        block_bytes: unit of the reads; the child keeps blocks.
        first_bytes: how many bytes at its start cost nothing to read.
        read_mb: bytes in all, in MiB.
        requests: number of reads.
    """

    read_at: Callable[[int, int], bytes]
    size: int
    block_bytes: int = 256 << 10
    first_bytes: int = 0
    read_mb: int = 2048
    requests: int = 100_000


class ReadCounter:
    """Answers the requests of one call, within its limits."""

    def __init__(self, file: FileReads, what: str) -> None:
        """Begin with nothing read; `what` names the input in errors."""
        self._file = file
        self._what = what
        self._requests = self._bytes = 0

    def answer(self, request: bytes) -> bytes:
        """Return the bytes that a request of the child asks for.

        Raises:
            LimitError: If it, or all together, exceed a limit.
            SourceError: If `read_at` returns too few or too many bytes.
            SwatheError: If `read_at` raises it.
        """
        _, offset, length = REQUEST.unpack(request)
        file = self._file
        if length > MOST_REQUEST or offset + length > file.size:
            raise LimitError(
                f"{self._what}: expected a read of {MOST_REQUEST} bytes at most within "
                f"{file.size} bytes, found {length} at {offset}"
            )
        self._requests += 1
        self._bytes += length
        if self._requests > file.requests or self._bytes > file.read_mb * MEBIBYTE:
            raise LimitError(
                f"{self._what} needs more than {file.requests} reads or {file.read_mb} MB to read"
            )
        content = file.read_at(offset, length)
        if len(content) != length:
            raise SourceError(
                f"{self._what}: expected {length} bytes at {offset}, found {len(content)}"
            )
        return content


class ServedFile(io.RawIOBase):
    """The file in the child: seekable, for reading; it keeps the blocks that it read last."""

    def __init__(
        self, line: socket.socket, size: int, block_bytes: int, first_bytes: int = 0
    ) -> None:
        """Ask for nothing yet.

        Args:
            line: socket to the parent.
            size: bytes of the file.
            block_bytes: unit of the reads after the first bytes.
            first_bytes: how many bytes at its start the parent has in memory.
        """
        super().__init__()
        self._line = line
        self._size = size
        self._block_bytes = block_bytes
        self._first_bytes = first_bytes
        self._first = memoryview(b"")
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._most_blocks = max(1, CACHE_BYTES // block_bytes)
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position, and return it.

        Raises:
            ValueError: If it is before the first byte.
        """
        position = offset + {0: 0, 1: self._position, 2: self._size}[whence]
        if position < 0:
            raise ValueError(f"position in a file: expected 0 or more, found {position}")
        self._position = position
        return position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read as many bytes as the buffer takes and the file has; return their number."""
        view = memoryview(buffer).cast("B")
        length = max(0, min(len(view), self._size - self._position))
        done = 0
        while done < length:
            part = self._part(length - done)
            view[done : done + len(part)] = part
            done += len(part)
            self._position += len(part)
        return length

    def _part(self, length: int) -> memoryview:
        """Return bytes from the position on, at most `length` of them: the rest of one block."""
        skip = self._position - self._first_bytes
        if skip < 0:
            if not self._first:
                self._first = memoryview(self._ask(0, self._first_bytes))
            return self._first[self._position : self._position + length]
        number, skip = divmod(skip, self._block_bytes)
        if number not in self._blocks:
            self._fetch(number, skip + length)
        self._blocks.move_to_end(number)
        return memoryview(self._blocks[number])[skip : skip + length]

    def _fetch(self, number: int, length: int) -> None:
        """Read a block, and those after it that `length` bytes from its start need, in one read."""
        most = max(1, min(MOST_REQUEST // self._block_bytes, self._most_blocks))
        end = number + 1
        while end < number + min(most, -(-length // self._block_bytes)):
            if end in self._blocks:
                break
            end += 1
        start = self._first_bytes + number * self._block_bytes
        stop = self._first_bytes + end * self._block_bytes
        content = memoryview(self._ask(start, min(stop, self._size) - start))
        for each in range(number, end):
            at = (each - number) * self._block_bytes
            self._blocks[each] = bytes(content[at : at + self._block_bytes])
        while len(self._blocks) > self._most_blocks:
            oldest = next(iter(self._blocks))
            if oldest == number:  # the block that is read next
                self._blocks.move_to_end(oldest)
                continue
            del self._blocks[oldest]

    def _ask(self, offset: int, length: int) -> bytearray:
        self._line.sendall(REQUEST.pack(ASK, offset, length))
        content = bytearray(length)
        view = memoryview(content)
        while view:
            count = self._line.recv_into(view)
            if not count:
                raise BrokenPipeError("the call was cancelled")
            view = view[count:]
        return content
