"""A file whose bytes another process reads: how a confined process reads an object of any store.

The child asks over its socket, `ASK`, offset and length; the parent answers with that many bytes.
`ASK_RANGES`, their number and their bytes in all, then offset and length of each, asks for ranges
that are read together. A read that fails ends the call in the parent, so the child needs no answer
then.
"""

from __future__ import annotations

import io
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
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
ASK_RANGES = b"m"
RANGE = struct.Struct("<QQ")
"""A range of `ASK_RANGES`: first byte, number of bytes."""
MOST_REQUEST = 16 * MEBIBYTE
"""Limit of one request, in bytes."""
MOST_RANGES = 4096
"""Limit of the ranges of one request."""
RANGES_EACH = 8
"""Ranges of one request that count as one read."""
CACHE_BYTES = 64 * MEBIBYTE
"""Limit of the blocks that a child keeps, and as much again of ranges that it read ahead."""


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
        requests: number of reads; `RANGES_EACH` ranges that are read together count as one.
        read_ranges: function that returns the bytes of ranges `(start, stop)`, which ascend and do
            not overlap, read together; by default they are read one after the other.
    """

    read_at: Callable[[int, int], bytes]
    size: int
    block_bytes: int = 256 << 10
    first_bytes: int = 0
    read_mb: int = 2048
    requests: int = 100_000
    read_ranges: Callable[[list[tuple[int, int]]], list[bytes]] | None = None


class ReadCounter:
    """Answers the requests of one call, within its limits."""

    def __init__(self, file: FileReads, what: str) -> None:
        """Begin with nothing read; `what` names the input in errors."""
        self._file = file
        self._what = what
        self._requests = self._bytes = 0

    def length_of(self, head: bytes) -> int:
        """Return the bytes of a request that follow its head, `REQUEST`.

        Raises:
            LimitError: If it asks for too many ranges.
        """
        kind, count, _ = REQUEST.unpack(head)
        if kind == ASK:
            return 0
        if count > MOST_RANGES:
            raise LimitError(f"{self._what}: expected {MOST_RANGES} ranges at most, found {count}")
        return int(count) * RANGE.size

    def answer(self, request: bytes) -> bytes:
        """Return the bytes that a request of the child asks for.

        Raises:
            LimitError: If it, or all together, exceed a limit.
            SourceError: If the file returns too few or too many bytes.
            SwatheError: If reading the file raises it.
        """
        kind, offset, length = REQUEST.unpack_from(request)
        if kind == ASK:
            self._count(offset, length)
            self._count_requests(1)
            return self._whole(offset, length, self._file.read_at(offset, length))
        pairs = RANGE.iter_unpack(request[REQUEST.size :])
        ranges: list[tuple[int, int]] = [(start, size) for start, size in pairs]
        end = 0
        for start, size in ranges:
            if start < end or not size:
                raise LimitError(f"{self._what}: expected ranges that ascend, found one at {start}")
            self._count(start, size)
            end = start + size
        # They are near each other, so that several come in one request.
        self._count_requests(1 + len(ranges) // RANGES_EACH)
        if sum(size for _, size in ranges) > MOST_REQUEST:
            raise LimitError(f"{self._what}: expected ranges of {MOST_REQUEST} bytes at most")
        if self._file.read_ranges is None:
            contents = [self._file.read_at(*each) for each in ranges]
        else:
            contents = self._file.read_ranges([(start, start + size) for start, size in ranges])
        parts = zip(ranges, contents, strict=True)
        return b"".join(self._whole(*each, content) for each, content in parts)

    def _count(self, offset: int, length: int) -> None:
        """Count the bytes of a read, and check it.

        Raises:
            LimitError: If it, or all together, exceed a limit.
        """
        file = self._file
        if length > MOST_REQUEST or offset + length > file.size:
            raise LimitError(
                f"{self._what}: expected a read of {MOST_REQUEST} bytes at most within "
                f"{file.size} bytes, found {length} at {offset}"
            )
        self._bytes += length
        if self._bytes > file.read_mb * MEBIBYTE:
            raise LimitError(f"{self._what} needs more than {file.read_mb} MB to read")

    def _count_requests(self, count: int) -> None:
        """Count requests to the file.

        Raises:
            LimitError: If all together are too many.
        """
        self._requests += count
        if self._requests > self._file.requests:
            raise LimitError(f"{self._what} needs more than {self._file.requests} reads")

    def _whole(self, offset: int, length: int, content: bytes) -> bytes:
        """Return what was read, if it has the right length.

        Raises:
            SourceError: If it has not.
        """
        if len(content) != length:
            raise SourceError(
                f"{self._what}: expected {length} bytes at {offset}, found {len(content)}"
            )
        return content


class DirectLine:
    """The line of a file that is read in this process: each request is answered at once."""

    def __init__(self, counter: ReadCounter) -> None:
        """Begin without a request."""
        self._counter = counter
        self._answer = memoryview(b"")

    def sendall(self, request: bytes, /) -> None:
        """Take a request, and read its bytes."""
        self._answer = memoryview(self._counter.answer(request))

    def recv_into(self, buffer: memoryview, /) -> int:
        """Write the next bytes of the answer; return their number."""
        count = min(len(buffer), len(self._answer))
        buffer[:count] = self._answer[:count]
        self._answer = self._answer[count:]
        return count


class ServedFile(io.RawIOBase):
    """The file in the child: seekable, for reading; it keeps the blocks that it read last.

    Attributes:
        look_ahead: function that returns the ranges, offset and length, that a reader will ask for
            next, by what it has just read; they are read together.
    """

    def __init__(
        self, line: socket.socket | DirectLine, size: int, block_bytes: int, first_bytes: int = 0
    ) -> None:
        """Ask for nothing yet.

        Args:
            line: line to who reads it: a socket to the parent, or a direct one.
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
        self._ranges: OrderedDict[int, memoryview] = OrderedDict()
        self._ranges_bytes = 0
        self.look_ahead: Callable[[memoryview], Sequence[tuple[int, int]]] | None = None

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
        if self.look_ahead is not None and (ranges := self.look_ahead(view[:length])):
            self._read_ahead(ranges)
        return length

    def _read_ahead(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Read those ranges together that are not in memory, if there are several."""
        missing: list[tuple[int, int]] = []
        end = self._first_bytes
        most = MOST_REQUEST
        for start, length in sorted(ranges):
            number = (start - self._first_bytes) // self._block_bytes
            is_apart = start >= end and 0 < length <= min(most, self._size - start)
            if is_apart and start not in self._ranges and number not in self._blocks:
                missing.append((start, length))
                end, most = start + length, most - length
        if not 1 < len(missing) <= MOST_RANGES:
            return
        parts = b"".join(RANGE.pack(*each) for each in missing)
        total = MOST_REQUEST - most
        self._line.sendall(REQUEST.pack(ASK_RANGES, len(missing), total) + parts)
        content, at = memoryview(self._receive(total)), 0
        for start, length in missing:
            self._ranges[start] = content[at : at + length]
            at += length
        self._ranges_bytes += total
        while self._ranges_bytes > CACHE_BYTES:
            self._ranges_bytes -= len(self._ranges.popitem(last=False)[1])

    def _part(self, length: int) -> memoryview:
        """Return bytes from the position on, at most `length` of them: the rest of one block."""
        skip = self._position - self._first_bytes
        if skip < 0:
            if not self._first:
                self._first = memoryview(self._ask(0, self._first_bytes))
            return self._first[self._position : self._position + length]
        if (ahead := self._ranges.get(self._position)) is not None:
            return ahead[:length]
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
        return self._receive(length)

    def _receive(self, length: int) -> bytearray:
        """Return the answer to a request."""
        content = bytearray(length)
        view = memoryview(content)
        while view:
            count = self._line.recv_into(view)
            if not count:
                raise BrokenPipeError("the call was cancelled")
            view = view[count:]
        return content
