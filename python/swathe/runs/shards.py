"""How one dump of an array is cut into shards, a shard into chunks, and what a shard's bytes are.

The bytes are those of the codec `sharding_indexed` of Zarr 3 (Zarr specification, ZEP 2), with the
index at the end: chunks in C order, then for each its offset and length, then a CRC-32C of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK_BYTES = 1 << 20
"""Size of a chunk, at most: what a small section of an array reads."""
SHARD_BYTES = 64 << 20
"""Size of a shard, at most: an object that is written at once."""
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
    """

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @cached_property
    def chunk_shape(self) -> tuple[int, ...]:
        """Return the shape of a chunk: as even as can be, within `CHUNK_BYTES`."""
        shape = list(self.shape)
        while (size := self.dtype.itemsize * math.prod(shape)) > CHUNK_BYTES:
            axis = max(range(len(shape)), key=lambda at: shape[at])
            parts = -(-size // CHUNK_BYTES) if max(shape) * 2 > math.prod(shape) else 2
            shape[axis] = -(-shape[axis] // min(parts, shape[axis]))
        return tuple(shape)

    @cached_property
    def shard_shape(self) -> tuple[int, ...]:
        """Return the shape of a shard: whole chunks, along the last axes first.

        A shard at the end of an axis is longer than the array by less than a chunk.
        """
        counts, size = [1] * len(self.shape), self.dtype.itemsize * math.prod(self.chunk_shape)
        for axis in reversed(range(len(counts))):
            chunks = -(-self.shape[axis] // self.chunk_shape[axis])
            counts[axis] = max(min(chunks, SHARD_BYTES // size), 1)
            size *= counts[axis]
            if counts[axis] < chunks:
                break
        return tuple(width * count for width, count in zip(self.chunk_shape, counts, strict=True))

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """Return the number of shards along each axis."""
        return tuple(-(-a // b) for a, b in zip(self.shape, self.shard_shape, strict=True))

    @property
    def count(self) -> int:
        """Return the number of shards."""
        return math.prod(self.grid)

    def places(self) -> Iterator[tuple[int, ...]]:
        """Yield the place of each shard in the grid, the last axis fastest."""
        yield from product(*map(range, self.grid))

    def box(self, place: Sequence[int]) -> tuple[slice, ...]:
        """Return the elements of a shard that are in the array."""
        axes = zip(place, self.shard_shape, self.shape, strict=True)
        return tuple(slice(at * width, min((at + 1) * width, end)) for at, width, end in axes)

    def encode(self, elements: NDArray[np.generic]) -> list[memoryview | bytes]:
        """Return the bytes of a shard, in parts that follow each other.

        Args:
            elements: its elements in the array, of the shape of its box.
        """
        chunks = [-(-a // b) for a, b in zip(elements.shape, self.chunk_shape, strict=True)]
        padded_shape = [n * width for n, width in zip(chunks, self.chunk_shape, strict=True)]
        whole_chunks = elements
        if list(elements.shape) != padded_shape:
            whole_chunks = np.zeros(padded_shape, self.dtype)
            whole_chunks[tuple(map(slice, elements.shape))] = elements
        ndim = len(self.shape)
        pairs = zip(chunks, self.chunk_shape, strict=True)
        split = whole_chunks.reshape([length for pair in pairs for length in pair])
        in_order = split.transpose([*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)])
        # A copy: the caller may change its elements.
        content = np.array(in_order, self.dtype.newbyteorder("<"), order="C")
        return [content.data.cast("B"), self._index(chunks)]

    def _index(self, chunks: Sequence[int]) -> bytes:
        """Return the index of a shard that has the first chunks along each axis."""
        every = [a // b for a, b in zip(self.shard_shape, self.chunk_shape, strict=True)]
        entries = np.full((*every, 2), MISSING, "<u8")
        length = self.dtype.itemsize * math.prod(self.chunk_shape)
        there = entries[tuple(map(slice, chunks))]
        there[..., 0] = np.arange(math.prod(chunks)).reshape(chunks) * length
        there[..., 1] = length
        content = entries.tobytes()
        return content + crc32c(content).to_bytes(4, "little")


def crc32c(content: bytes) -> int:
    """Return the CRC-32C of a few kilobytes: of an index, never of the elements."""
    value = 0xFFFFFFFF
    for byte in content:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def _table_entry(number: int) -> int:
    for _ in range(8):
        number = (number >> 1) ^ (POLYNOMIAL if number & 1 else 0)
    return number


_TABLE = [_table_entry(number) for number in range(256)]
