"""Steps that all ranks take together: agreement on errors, and elements brought to their owners."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core import errors
from swathe.core.errors import OptionError, SwatheError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.runs.pattern import Division
    from swathe.runs.ranks import Ranks
    from swathe.runs.shards import Sharding

Box = tuple[slice, ...]


class Agreement:
    """What each rank has to say after a step.

    Attributes:
        value: what this rank says.
        values: what each said, in the order of ranks, once all have taken the step.
    """

    def __init__(self) -> None:
        """Say nothing yet."""
        self.value: Any = None
        self.values: list[Any] = []


@contextmanager
def agreement(ranks: Ranks, step: object = None) -> Iterator[Agreement]:
    """Wait until all ranks have taken a step; an error of one is raised on all.

    Args:
        ranks: all ranks.
        step: what is being done; all must do the same.

    Raises:
        SwatheError: The error of the first rank that has one, which is named.
        OptionError: If ranks do different things.
    """
    answer, error = Agreement(), None
    try:
        yield answer
    except Exception as problem:
        error = problem
    text = None if error is None else (type(error).__name__, str(error))
    outcomes = ranks.gather((step, answer.value, text))
    if error is not None:
        raise error
    for rank, (other_step, _, other_text) in enumerate(outcomes):
        if other_text is not None:
            kind, reason = other_text
            if hasattr(errors, kind):
                raise getattr(errors, kind)(f"rank {rank}: {reason}")
            raise SwatheError(f"rank {rank}: {kind}: {reason}")
        if other_step != step:
            raise OptionError(
                f"expected all ranks to write the same: rank {ranks.rank} writes {step}, rank "
                f"{rank} {other_step}"
            )
    answer.values = [value for _, value, _ in outcomes]


def owner_of(number: int, ranks: int) -> int:
    """Return the rank that writes a shard: they take turns."""
    return number % ranks


def collect_shards(
    division: Division, sharding: Sharding, ranks: Ranks, block: NDArray[Any]
) -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
    """Yield the shards that this rank writes: place in the grid, and elements.

    Each element goes once, from the rank that has it to the owner of its shard. All ranks know what
    comes from where, so only elements are sent.

    Args:
        division: who has what of the array.
        sharding: its shards.
        ranks: all ranks.
        block: the elements of this rank.
    """
    shards = [(place, sharding.box(place)) for place in sharding.places()]
    if ranks.size == 1:
        for place, box in shards:
            yield place, block[box]
        return
    own = list(division.pieces(ranks.rank))
    outgoing: list[list[NDArray[Any]]] = [[] for _ in range(ranks.size)]
    for number, (_, box) in enumerate(shards):
        for whole, within in _pieces_in(own, box):
            part = block[_inside(within, whole, box)]
            outgoing[owner_of(number, ranks.size)].append(np.ascontiguousarray(part).reshape(-1))
    mine = [each for at, each in enumerate(shards) if owner_of(at, ranks.size) == ranks.rank]
    pieces = [list(division.pieces(rank)) for rank in range(ranks.size)]
    boxes = [
        [
            (number, whole)
            for number, (_, box) in enumerate(mine)
            for whole, _ in _pieces_in(of, box)
        ]
        for of in pieces
    ]
    empty = np.empty(0, block.dtype)
    sizes = [sum(part.nbytes for part in parts) for parts in outgoing]
    incoming = ranks.exchange(
        np.concatenate([empty, *(part for parts in outgoing for part in parts)]).view(np.uint8),
        sizes,
        [
            sum(_count(_overlap(whole, mine[number][1])) for number, whole in some)
            * block.dtype.itemsize
            for some in boxes
        ],
    ).view(block.dtype)
    elements = [np.empty([each.stop - each.start for each in box], block.dtype) for _, box in mine]
    at = 0
    for number, whole in (each for some in boxes for each in some):
        box = mine[number][1]
        target = elements[number][_relative(_overlap(whole, box), box)]
        target[...] = incoming[at : at + target.size].reshape(target.shape)
        at += target.size
    for (place, _), each in zip(mine, elements, strict=True):
        yield place, each


def _pieces_in(pieces: list[tuple[Box, Box]], box: Box) -> Iterator[tuple[Box, Box]]:
    """Yield the pieces of a rank that overlap a box."""
    for whole, own in pieces:
        if all(each.start < each.stop for each in _overlap(whole, box)):
            yield whole, own


def _overlap(one: Box, other: Box) -> Box:
    return tuple(
        slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(one, other, strict=True)
    )


def _relative(part: Box, box: Box) -> Box:
    return tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, box, strict=True))


def _inside(own: Box, whole: Box, box: Box) -> Box:
    """Return where the part of a piece that is in a box lies in the rank's block."""
    part = _relative(_overlap(whole, box), whole)
    return tuple(slice(a.start + b.start, a.start + b.stop) for a, b in zip(own, part, strict=True))


def _count(box: Box) -> int:
    count = 1
    for each in box:
        count *= each.stop - each.start
    return count
