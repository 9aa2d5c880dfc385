"""Reads of untrusted files that allocate no more than the file has, and end in typed errors."""

from __future__ import annotations

import io
import math
import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from swathe.core.errors import FormatError, LimitError, SwatheError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_ARRAY_ELEMENTS = 1 << 52
MOST_CHUNK_BYTES = 1 << 30
"""Largest chunk that is decoded."""
MOST_ELEMENT_BYTES = 1 << 16
MOST_AXES = 32
"""What `crates/chunk-index` takes."""


class BoundedFile(io.RawIOBase):
    """A file for reading that never allocates more than what is left of it.

    A file object allocates as many bytes as a damaged header asks for; this one asks for less.

    Attributes:
        size: bytes of the file.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.size = file.seek(0, os.SEEK_END)
        file.seek(0)

    def readable(self) -> bool:
        """Return whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Return whether it has positions: always."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position, and return it; raise FormatError if no file has it."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self.size}[whence]
        if not 0 <= start + offset < 1 << 63:
            raise FormatError(
                f"file of {self.size} bytes: expected a position in it, found {start + offset}"
            )
        return self._file.seek(start + offset)

    def tell(self) -> int:
        """Return the position, in bytes."""
        return self._file.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes; fewer at the end of the file."""
        rest = max(self.size - self.tell(), 0)
        return self._file.read(rest if size is None or size < 0 else min(size, rest))

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer with the next bytes, and return their number."""
        view = memoryview(buffer).cast("B")
        part = self.read(len(view))
        view[: len(part)] = part
        return len(part)

    def part(self, what: str, offset: int, length: int) -> bytes:
        """Return bytes of the file.

        Raises:
            FormatError: If it does not have them all.
        """
        if offset < 0 or length < 0 or offset + length > self.size:
            raise FormatError(
                f"{what}: expected its end in the file of {self.size} bytes, "
                f"found bytes {offset} to {offset + length}"
            )
        self.seek(offset)
        data = self.read(length)
        if len(data) != length:
            raise FormatError(f"{what}: expected {length} bytes at {offset}, found {len(data)}")
        return data


def check_chunk(what: str, size: int) -> None:
    """Raise LimitError if a decoded chunk has too many bytes."""
    if size > MOST_CHUNK_BYTES:
        raise LimitError(f"{what}: expected at most {MOST_CHUNK_BYTES} bytes, found {size}")


def check_shape(what: str, shape: Sequence[int]) -> None:
    """Raise FormatError if a length is negative, or there are too many elements or axes."""
    size = 1
    if len(shape) > MOST_AXES:
        raise FormatError(f"{what}: expected at most {MOST_AXES} axes, found {len(shape)}")
    for length in shape:
        size *= max(length, 1)
        if length < 0 or size > MOST_ARRAY_ELEMENTS:
            raise FormatError(
                f"{what}: expected at most {MOST_ARRAY_ELEMENTS} elements, found {list(shape)[:9]}"
            )


def chunk_fault(chunk_shape: Sequence[int], element_bytes: int) -> str:
    """Return why chunks are not read; empty if they are."""
    size = math.prod(chunk_shape) * element_bytes
    if element_bytes > MOST_ELEMENT_BYTES:
        return f"elements of {element_bytes} bytes: expected at most {MOST_ELEMENT_BYTES}"
    if size > MOST_CHUNK_BYTES:
        return f"chunks of {size} bytes: expected at most {MOST_CHUNK_BYTES}"
    return ""


def fill_chunk_shape(
    shape: Sequence[int], element_bytes: int, most_bytes: int = MOST_CHUNK_BYTES
) -> list[int]:
    """Return a shape of chunks for an array without any: as many last axes as fit."""
    chunk_shape, size = [1] * len(shape), element_bytes
    for axis in reversed(range(len(shape))):
        rows = min(max(shape[axis], 1), most_bytes // size)
        chunk_shape[axis] = max(rows, 1)
        size *= chunk_shape[axis]
    return chunk_shape


@contextmanager
def typed_errors(library: str) -> Iterator[None]:
    """Turn what a library raises on a damaged file into FormatError.

    Errors of ours, of the file's store and of memory pass.
    """
    try:
        yield
    except (SwatheError, OSError, MemoryError):
        raise
    except RecursionError as error:
        raise FormatError(f"{library}: expected fewer levels") from error
    except Exception as error:
        raise FormatError(f"{library}: {type(error).__name__}: {str(error)[:300]}") from error
