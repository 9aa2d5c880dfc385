"""Ranges of an object, of any total length."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swathe._swathe import Source

READ_BYTES = 64 << 20
"""Most bytes that the engine returns at once."""
PIECE_BYTES = 16 << 20
"""Most bytes of a piece of a long object."""


def read_ranges(source: Source, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return the bytes of ranges, in as many steps as the engine's limit asks for."""
    results: list[bytes] = []
    together: list[tuple[int, int]] = []
    total_bytes = 0
    for start, end in ranges:
        if end - start > READ_BYTES:
            results += source.read_ranges(together)
            # One after the other: a server may say that its object has any size.
            parts = ((at, min(at + READ_BYTES, end)) for at in range(start, end, READ_BYTES))
            results.append(b"".join(source.read_ranges([part])[0] for part in parts))
            together, total_bytes = [], 0
            continue
        if total_bytes + end - start > READ_BYTES:
            results += source.read_ranges(together)
            together, total_bytes = [], 0
        together.append((start, end))
        total_bytes += end - start
    return results + source.read_ranges(together)


def read_pieces(source: Source, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a range in order, in pieces of at most 16 MiB."""
    for at in range(start, end, PIECE_BYTES):
        yield source.read_ranges([(at, min(at + PIECE_BYTES, end))])[0]
