"""Small ranges of an object, as the rows of a cut, with which a probe studies a server."""

from __future__ import annotations

ROW_BYTES, STRIDE_BYTES, LEAST_STRIDE_BYTES = 200, 4096, 512
"""Bytes of a range, and the most and the least from one to the next."""


def stride_bytes(object_bytes: int, count: int) -> int:
    """Return the bytes from one of `count` ranges to the next."""
    return min(STRIDE_BYTES, object_bytes // count)


def row_ranges(object_bytes: int, count: int) -> list[tuple[int, int]]:
    """Return `count` ranges at the end of an object, where offsets are longest."""
    stride = stride_bytes(object_bytes, count)
    start = object_bytes - count * stride
    return [(start + number * stride, ROW_BYTES) for number in range(count)]
