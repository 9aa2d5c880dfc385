"""Bring the elements of an array from the ranks that have them to those that write its shards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.runs.definition.shards import Box, Place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.runs.writing.rank_group import RankGroup

Indices = Sequence["slice | NDArray[np.intp]"]
Shards = Callable[[], "Iterator[tuple[Place, NDArray[Any]]]"]
"""Function that yields the shards of this rank, each time anew: place in the grid, elements."""


class ShardExchange:
    """Two-phase writing of one array: each element goes once to the rank that writes its shard.

    Of an array that is written independently, each rank has the elements of its shards.
    All ranks know what comes from where, so only elements are sent. A shard belongs to one rank,
    in all dumps: no two write the same object.
    """

    def __init__(
        self,
        indices: Sequence[Indices],
        boxes: Sequence[tuple[Place, Box]],
        owners: Sequence[int],
        group: RankGroup,
        *,
        is_local: bool = False,
    ) -> None:
        """Compute what each rank sends and receives.

        Args:
            indices: for each rank and axis, the indices that it has.
            boxes: places of the shards in the grid, and their elements.
            owners: the rank that writes each of them.
            group: the ranks.
            is_local: whether each shard lies in the block of its owner, so that nothing is sent.
        """
        self._group = group
        self._boxes = list(boxes)
        self._is_local = is_local or group.size == 1
        if self._is_local:
            own_indices = indices[group.rank]
            pairs = zip(owners, boxes, strict=True)
            own = [each for owner, each in pairs if owner == group.rank]
            parts = [(place, _part_in(own_indices, box)) for place, box in own]
            self._own = [(place, part[0]) for place, part in parts if part is not None]
            return
        self._outgoing: list[list[Box]] = [[] for _ in range(group.size)]
        for owner, (_, box) in zip(owners, boxes, strict=True):
            if (part := _part_in(indices[group.rank], box)) is not None:
                self._outgoing[owner].append(part[0])
        pairs = zip(owners, boxes, strict=True)
        self._boxes = [each for owner, each in pairs if owner == group.rank]
        # Of each shard, what comes: first element among those that come, shape, index in its box.
        self._parts: list[list[tuple[int, Place, Any]]] = [[] for _ in self._boxes]
        self._counts: list[int] = []
        at = 0
        for of_rank in indices:
            begin = at
            for number, (_, box) in enumerate(self._boxes):
                if (part := _part_in(of_rank, box)) is not None:
                    self._parts[number].append((at, part[1], part[2]))
                    at += math.prod(part[1])
            self._counts.append(at - begin)

    def collect(self, block: NDArray[Any]) -> Shards:
        """Return the shards that this rank writes, once all ranks have sent their elements.

        Args:
            block: the elements of this rank.
        """
        if self._is_local:
            return lambda: ((place, block[part]) for place, part in self._own)
        return partial(self._shards, self._exchange(block))

    def _shards(self, incoming: NDArray[Any]) -> Iterator[tuple[Place, NDArray[Any]]]:
        for (place, box), parts in zip(self._boxes, self._parts, strict=True):
            elements = np.empty(_shape(box), incoming.dtype)
            for at, shape, indices in parts:
                elements[indices] = incoming[at : at + math.prod(shape)].reshape(shape)
            yield place, elements

    def _exchange(self, block: NDArray[Any]) -> NDArray[Any]:
        with self._group.step("exchange"):
            # Each element is copied once, to its place in what is sent.
            outgoing, at, sizes = np.empty(block.size, block.dtype), 0, []
            for boxes in self._outgoing:
                begin = at
                for part in boxes:
                    elements = block[part]
                    end = at + elements.size
                    outgoing[at:end].reshape(elements.shape)[...] = elements
                    at = end
                sizes.append((at - begin) * block.dtype.itemsize)
            incoming_sizes = [count * block.dtype.itemsize for count in self._counts]
        return self._group.exchange(outgoing[:at].view(np.uint8), sizes, incoming_sizes).view(
            block.dtype
        )


def _part_in(indices: Indices, box: Box) -> tuple[Box, Place, tuple[Any, ...]] | None:
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
