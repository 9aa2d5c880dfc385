"""How one dump of an array is cut into shards, a shard into chunks, and what a shard's bytes are.

The bytes are those of the codec `sharding_indexed` of Zarr 3 (Zarr specification, ZEP 2), with the
index at the end: chunks in C order, then for each its offset and length, then a CRC-32C of these.
A shard without an index is a chunk of plain Zarr 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Place = tuple[int, ...]
"""Of a shard in the grid of shards."""
Box = tuple[slice, ...]
"""Elements of a shard in an array."""
CHUNK_BYTES = 1 << 20
"""Size of a chunk, at most: what a small section of an array reads."""
SHARD_BYTES = 64 << 20
"""Size of a shard, at most: an object that is written at once."""
SMALL_FACTORS = (2, 3, 5, 7, 11, 13)
MISSING = (1 << 64) - 1
"""Offset and length of a chunk that is not there: one outside the array."""
POLYNOMIAL = 0x82F63B78
"""Of CRC-32C (Castagnoli), its bits reversed."""


@dataclass(frozen=True)
class Sharding:
    """The shards of one dump of an array.

    Attributes:
        shape: lengths of the axes of the dump.
        dtype: type of the elements, little-endian.
        chunks, shards: shapes of a chunk and of a shard; by default computed.
        has_index: whether a shard has an index; without one it is one chunk, and nothing else.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    chunks: tuple[int, ...] = ()
    shards: tuple[int, ...] = ()
    has_index: bool = True

    @cached_property
    def chunk_shape(self) -> tuple[int, ...]:
        """Return the shape of a chunk: as even as can be, within `CHUNK_BYTES`."""
        if self.chunks or (not self.has_index and self.shards):
            return self.chunks or self.shards
        if self.shards:
            return even_parts(self.shards, self.dtype.itemsize, CHUNK_BYTES)
        shape = list(self.shape)
        while (size := self.dtype.itemsize * math.prod(shape)) > CHUNK_BYTES:
            axis = max(range(len(shape)), key=lambda at: shape[at])
            parts = -(-size // CHUNK_BYTES) if max(shape) * 2 > math.prod(shape) else 2
            shape[axis] = -(-shape[axis] // min(parts, shape[axis]))
        return tuple(shape)

    @cached_property
    def shard_shape(self) -> tuple[int, ...]:
        """Return the shape of a shard: whole chunks, within `SHARD_BYTES`."""
        if not self.has_index:
            return self.chunk_shape
        return self.shards or self.shards_within(SHARD_BYTES)

    def shards_within(self, most_bytes: int) -> tuple[int, ...]:
        """Return the shape of shards of a size, at most: whole chunks, along the last axes first.

        A shard at the end of an axis is longer than the array by less than a chunk.
        """
        counts, size = [1] * len(self.shape), self.dtype.itemsize * math.prod(self.chunk_shape)
        for axis in reversed(range(len(counts))):
            chunks = -(-self.shape[axis] // self.chunk_shape[axis])
            counts[axis] = max(min(chunks, most_bytes // size), 1)
            size *= counts[axis]
            if counts[axis] < chunks:
                break
        return tuple(width * count for width, count in zip(self.chunk_shape, counts, strict=True))

    @property
    def shard_bytes(self) -> int:
        """Return the size of a whole shard without its index."""
        return self.dtype.itemsize * math.prod(self.shard_shape)

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """Return the number of shards along each axis."""
        return tuple(-(-a // b) for a, b in zip(self.shape, self.shard_shape, strict=True))

    @property
    def count(self) -> int:
        """Return the number of shards."""
        return math.prod(self.grid)

    @property
    def chunks_of_shard(self) -> int:
        """Return the number of chunks of a whole shard."""
        pairs = zip(self.shard_shape, self.chunk_shape, strict=True)
        return math.prod(outer // inner for outer, inner in pairs)

    @property
    def index_bytes(self) -> int:
        """Return the size of the index of a shard; 0 if it has none."""
        return 16 * self.chunks_of_shard + 4 if self.has_index else 0

    def places(self) -> Iterator[tuple[int, ...]]:
        """Yield the place of each shard in the grid, the last axis fastest."""
        yield from product(*map(range, self.grid))

    def box(self, place: Sequence[int]) -> Box:
        """Return the elements of a shard that are in the array."""
        axes = zip(place, self.shard_shape, self.shape, strict=True)
        return tuple(slice(at * width, min((at + 1) * width, end)) for at, width, end in axes)

    def encoded_bytes(self, place: Sequence[int]) -> int:
        """Return the size of a shard with its index, by its place in the grid."""
        lengths = [each.stop - each.start for each in self.box(place)]
        chunks = [-(-a // b) for a, b in zip(lengths, self.chunk_shape, strict=True)]
        size: int = self.dtype.itemsize * math.prod(chunks) * math.prod(self.chunk_shape)
        return size + self.index_bytes

    def encode(self, elements: NDArray[np.generic]) -> list[memoryview | bytes]:
        """Return the bytes of a shard, in parts that follow each other.

        Args:
            elements: its elements in the array, of the shape of its box.
        """
        widths = self.chunk_shape
        chunks = [-(-a // b) for a, b in zip(elements.shape, widths, strict=True)]
        is_padded = any(a % b for a, b in zip(elements.shape, widths, strict=True))
        make = np.zeros if is_padded else np.empty
        # A copy: the caller may change its elements. Each is copied once, to its place in a chunk.
        content = make((*chunks, *widths), self.dtype.newbyteorder("<"))
        for at in product(*map(range, chunks)):
            begins = [number * width for number, width in zip(at, widths, strict=True)]
            ends = [first + width for first, width in zip(begins, widths, strict=True)]
            part = elements[tuple(map(slice, begins, ends))]
            content[at][tuple(map(slice, part.shape))] = part
        if not self.has_index:
            return [content.data.cast("B")]
        index = _index(self.shard_shape, self.chunk_shape, self.dtype.itemsize, tuple(chunks))
        return [content.data.cast("B"), index]


def even_parts(shape: tuple[int, ...], itemsize: int, most_bytes: int) -> tuple[int, ...]:
    """Return a shape that divides another without a rest, within a size if that can be.

    The longest axis is divided first. A length with large prime factors stays as it is: parts
    would be thin.

    Args:
        shape: the shape to divide.
        itemsize: bytes of an element.
        most_bytes: size of the result.
    """
    parts = list(shape)
    while itemsize * math.prod(parts) > most_bytes:
        factors = {axis: _small_factor(length) for axis, length in enumerate(parts)}
        axes = [axis for axis, factor in factors.items() if factor is not None]
        if not axes:
            break
        axis = max(axes, key=lambda at: parts[at])
        parts[axis] //= factors[axis] or 1
    return tuple(parts)


def _small_factor(number: int) -> int | None:
    return next((factor for factor in SMALL_FACTORS if number % factor == 0), None)


@lru_cache(maxsize=256)
def _index(shard_shape: Place, chunk_shape: Place, itemsize: int, chunks: Place) -> bytes:
    """Return the index of a shard that has the first chunks along each axis.

    All shards of an array but those at the end of an axis have the same one.
    """
    every = [a // b for a, b in zip(shard_shape, chunk_shape, strict=True)]
    entries = np.full((*every, 2), MISSING, "<u8")
    length = itemsize * math.prod(chunk_shape)
    there = entries[tuple(map(slice, chunks))]
    there[..., 0] = np.arange(math.prod(chunks)).reshape(chunks) * length
    there[..., 1] = length
    content = entries.tobytes()
    return content + crc32c(content).to_bytes(4, "little")


def crc32c(content: bytes) -> int:
    """Return the CRC-32C of a few kilobytes: of an index, once an array, never of the elements."""
    value = 0xFFFFFFFF
    for byte in content:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def _table_entry(number: int) -> int:
    for _ in range(8):
        number = (number >> 1) ^ (POLYNOMIAL if number & 1 else 0)
    return number


_TABLE = [_table_entry(number) for number in range(256)]
