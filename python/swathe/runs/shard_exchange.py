"""Bring the elements of an array from the ranks that have them to those that write its shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.runs.pattern import Division
    from swathe.runs.rank_group import RankGroup
    from swathe.runs.shards import Sharding

Place = tuple[int, ...]
Box = tuple[slice, ...]


class ShardExchange:
    """Two-phase writing of one array: each element goes once to the rank that writes its shard.

    All ranks know what comes from where, so only elements are sent. Shards are dealt to ranks in
    turn: no two write the same object.
    """

    def __init__(self, division: Division, sharding: Sharding, group: RankGroup) -> None:
        """Compute what each rank sends and receives; it is the same for each dump."""
        self._group = group
        self._boxes = [(place, sharding.box(place)) for place in sharding.places()]
        if group.size == 1:
            return
        own = division.indices(group.rank)
        self._outgoing: list[list[Box]] = [[] for _ in range(group.size)]
        for number, (_, box) in enumerate(self._boxes):
            if (part := _part_in(own, box)) is not None:
                self._outgoing[number % group.size].append(part[0])
        self._boxes = self._boxes[group.rank :: group.size]
        self._incoming: list[list[tuple[int, Place, Any]]] = []
        for rank in range(group.size):
            indices = division.indices(rank)
            parts = enumerate(_part_in(indices, box) for _, box in self._boxes)
            self._incoming.append(
                [(number, part[1], part[2]) for number, part in parts if part is not None]
            )

    def collect(self, block: NDArray[Any]) -> Iterator[tuple[Place, NDArray[Any]]]:
        """Yield the shards that this rank writes: place in the grid, and elements.

        Args:
            block: the elements of this rank.
        """
        if self._group.size == 1:
            yield from ((place, block[box]) for place, box in self._boxes)
            return
        incoming = self._exchange(block)
        elements = [np.empty(_shape(box), block.dtype) for _, box in self._boxes]
        at = 0
        for number, shape, indices in (each for parts in self._incoming for each in parts):
            end = at + int(np.prod(shape))
            elements[number][indices] = incoming[at:end].reshape(shape)
            at = end
        yield from ((place, each) for (place, _), each in zip(self._boxes, elements, strict=True))

    def _exchange(self, block: NDArray[Any]) -> NDArray[Any]:
        with self._group.step("exchange"):
            parts = [block[part].reshape(-1) for boxes in self._outgoing for part in boxes]
            outgoing = np.concatenate([np.empty(0, block.dtype), *parts]).view(np.uint8)
            sizes = [sum(block[part].nbytes for part in boxes) for boxes in self._outgoing]
            incoming_sizes = [
                sum(int(np.prod(shape)) for _, shape, _ in parts) * block.dtype.itemsize
                for parts in self._incoming
            ]
        return self._group.exchange(outgoing, sizes, incoming_sizes).view(block.dtype)


def _part_in(
    indices: Sequence[slice | NDArray[np.intp]], box: Box
) -> tuple[Box, Place, tuple[Any, ...]] | None:
    """Return what a rank has of a box: where in its block, its shape, and the index in the box."""
    part: list[slice] = []
    places: list[slice | NDArray[np.intp]] = []
    for own, span in zip(indices, box, strict=True):
        if isinstance(own, slice):
            start, stop = max(own.start, span.start), min(own.stop, span.stop)
            part.append(slice(start - own.start, stop - own.start))
            places.append(slice(start - span.start, stop - span.start))
        else:
            start, stop = map(int, np.searchsorted(own, [span.start, span.stop]))
            part.append(slice(start, stop))
            places.append(own[start:stop] - span.start)
        if start >= stop:
            return None
    if all(isinstance(each, slice) for each in places):
        return tuple(part), _shape(part), tuple(places)
    arrays = [np.r_[each] if isinstance(each, slice) else each for each in places]
    return tuple(part), _shape(part), np.ix_(*arrays)


def _shape(box: Sequence[slice]) -> Place:
    return tuple(span.stop - span.start for span in box)
