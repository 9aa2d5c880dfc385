"""How one dump of an array is cut into shards, and a shard into chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from swathe.runs.run_settings import ArraySettings

CHUNK_BYTES = 1 << 20
"""Size of a chunk, at most: what a small section of an array reads."""
SHARD_BYTES = 64 << 20
"""Size of a shard, roughly at most: an object that is written at once."""


def chunk_shape(array: ArraySettings) -> tuple[int, ...]:
    """Return the shape of a chunk of one dump: as even as can be, within `CHUNK_BYTES`."""
    shape, itemsize = list(array.shape), np.dtype(array.dtype).itemsize
    while (size := itemsize * int(np.prod(shape, dtype=object))) > CHUNK_BYTES:
        axis = max(range(len(shape)), key=lambda at: shape[at])
        parts = min(shape[axis], max(2, -(-size // CHUNK_BYTES) if len(shape) == 1 else 2))
        shape[axis] = -(-shape[axis] // parts)
    return tuple(shape)


def shard_shape(array: ArraySettings) -> tuple[int, ...]:
    """Return the shape of a shard: whole chunks, the last axes first, within `SHARD_BYTES`.

    A shard has at least one chunk. What is longer than the array is padded.
    """
    chunk = chunk_shape(array)
    itemsize = np.dtype(array.dtype).itemsize
    counts, size = [1] * len(chunk), itemsize * int(np.prod(chunk, dtype=object))
    for axis in reversed(range(len(chunk))):
        chunks = -(-array.shape[axis] // chunk[axis])
        counts[axis] = max(min(chunks, SHARD_BYTES // size), 1)
        size *= counts[axis]
        if counts[axis] < chunks:
            break
    return tuple(width * count for width, count in zip(chunk, counts, strict=True))
