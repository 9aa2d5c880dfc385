"""The tree of the chunks of an HDF5 dataset: which nodes the library reads next.

References:
    HDF5 File Format Specification 3.0, III.A.1 (version 1 B-trees).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

HEAD = struct.Struct("<4sBBHQQ")
"""Signature, type, level, number of children, and addresses of both neighbours."""
SIGNATURE = b"TREE"
OF_CHUNKS = 1
"""Type of the nodes for chunks."""
WORD = struct.Struct("<Q")
MOST_AXES = 32


def children_of(node: memoryview, base: int) -> Sequence[tuple[int, int]]:
    """Return offset and length of the nodes below a node; none below a leaf, or what is no node.

    The library asks for one after the other. On a server each of these reads is a round trip.

    Args:
        node: bytes that were read: a whole node, if they are one.
        base: offset of address 0 in the file.
    """
    if len(node) < HEAD.size or node[:4] != SIGNATURE:
        return ()
    _, of, level, count, _, _ = HEAD.unpack_from(node)
    if of != OF_CHUNKS or not level or not count:
        return ()
    for axes in range(1, MOST_AXES + 1):
        # A key has the bytes and skips of a chunk, and its place on each axis and in an element.
        key_bytes = WORD.size * (axes + 2)
        step = key_bytes + WORD.size
        room, rest = divmod(len(node) - HEAD.size - key_bytes, step)
        if rest or count > room:
            continue
        ends = range(HEAD.size + key_bytes, HEAD.size + count * step, step)
        if any(WORD.unpack_from(node, end - WORD.size)[0] for end in ends):
            continue  # keys of another length: the place in an element is 0
        # All nodes of a tree have the same length.
        return [(base + WORD.unpack_from(node, end)[0], len(node)) for end in ends]
    return ()
