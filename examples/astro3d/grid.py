"""A box of cells, divided over ranks, and the cells around the block of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from swathe.core.errors import OptionError
from swathe.runs.definition.pattern import Pattern
from swathe.runs.writing.ranks import OneRank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.runs.writing.ranks import Ranks

Field: TypeAlias = "NDArray[np.float64]"
FillWall: TypeAlias = Callable[[Field, int, int], None]
"""Fill the cells beyond a wall: of a field, at an axis, at its low end (0) or high end (1)."""
AXES = (0, 1, 2)
LEAST_CELLS = 2
"""Cells of a block along a divided axis, at least: as many as it gives to its neighbour."""


@dataclass(frozen=True)
class Grid:
    """A box of equal cells; its axes are z, y and x.

    Attributes:
        shape: number of cells along each axis.
        spacing: length of a cell along each axis.
        edges: for each axis, where the blocks begin, and the end of the last.
        ranks: the processes that have its blocks; the last axis is fastest.
        is_periodic: for each axis, whether its ends meet; else both ends are walls.
    """

    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    edges: tuple[tuple[int, ...], ...]
    ranks: Ranks
    is_periodic: tuple[bool, ...]

    @classmethod
    def divide(
        cls,
        shape: Sequence[int],
        lengths: Sequence[float],
        ranks: Ranks | None = None,
        is_periodic: Sequence[bool] = (True, True, True),
    ) -> Grid:
        """Return a grid whose blocks are those of a run's arrays of pattern `BBB`.

        Args:
            shape: number of cells along each axis.
            lengths: length of the box along each axis.
            ranks: the processes; `None` for this one alone.
            is_periodic: for each axis, whether its ends meet.

        Raises:
            OptionError: If a rank would have too few cells.
        """
        ranks = OneRank() if ranks is None else ranks
        division = Pattern.parse("BBB", 3).division(tuple(shape), ranks.size)
        edges = []
        for cells, parts in zip(shape, division.grid, strict=True):
            width = -(-cells // parts)
            starts = [min(part * width, cells) for part in range(parts + 1)]
            if parts > 1 and min(np.diff(starts)) < LEAST_CELLS:
                raise OptionError(
                    f"cells: expected at least {LEAST_CELLS} for each of {parts} blocks along an "
                    f"axis, found {cells} in all"
                )
            edges.append(tuple(starts))
        spacing = tuple(length / cells for length, cells in zip(lengths, shape, strict=True))
        return cls(tuple(shape), spacing, tuple(edges), ranks, tuple(is_periodic))

    @cached_property
    def parts(self) -> tuple[int, ...]:
        """Return the number of blocks along each axis."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @cached_property
    def place(self) -> tuple[int, ...]:
        """Return the place of this rank's block among all blocks."""
        return tuple(map(int, np.unravel_index(self.ranks.rank, self.parts)))

    @cached_property
    def start(self) -> tuple[int, ...]:
        """Return the first cell of this rank."""
        return tuple(edges[at] for edges, at in zip(self.edges, self.place, strict=True))

    @cached_property
    def block_shape(self) -> tuple[int, ...]:
        """Return the number of cells of this rank along each axis."""
        places = zip(self.edges, self.place, strict=True)
        return tuple(edges[at + 1] - edges[at] for edges, at in places)

    @cached_property
    def block(self) -> tuple[slice, ...]:
        """Return the cells of this rank in the whole."""
        pairs = zip(self.start, self.block_shape, strict=True)
        return tuple(slice(first, first + count) for first, count in pairs)

    def walls(self, axis: int) -> tuple[bool, bool]:
        """Check whether the block is at the low and at the high wall of an axis."""
        if self.is_periodic[axis]:
            return False, False
        return self.place[axis] == 0, self.place[axis] == self.parts[axis] - 1

    def centres(self, axis: int) -> Field:
        """Return where the cells of this rank lie along an axis; they can be broadcast."""
        cells = np.arange(self.block_shape[axis], dtype=float) + self.start[axis]
        shape = [1, 1, 1]
        shape[axis] = -1
        places: Field = ((cells + 0.5) * self.spacing[axis]).reshape(shape)
        return places

    def widen(self, block: Field, width: int, fill_wall: FillWall) -> Field:
        """Return a block with the cells around it: those of other ranks, and beyond walls.

        Args:
            block: cells of this rank, of shape (..., z, y, x).
            width: number of cells on each side.
            fill_wall: fills the cells beyond a wall from those before it.
        """
        shape = (*block.shape[:-3], *(count + 2 * width for count in self.block_shape))
        field = np.zeros(shape)  # a wall also mirrors corners that have not come yet
        field[inner(width)] = block
        # One axis after the other, each with what came along those before: so corners come, too.
        for axis in AXES:
            self._exchange(field, axis, width)
            for side, is_wall in enumerate(self.walls(axis)):
                if is_wall:
                    fill_wall(field, axis, side)
        return field

    def gather_max(self, value: float) -> float:
        """Return the largest of the values of all ranks."""
        return float(max(self.ranks.gather(float(value))))

    def gather_whole(self, block: Field) -> Field:
        """Return the cells of all ranks, from those of this one, of shape (..., z, y, x)."""
        whole = np.empty((*block.shape[:-3], *self.shape))
        for rank, part in enumerate(self.ranks.gather(block)):
            places = zip(self.edges, np.unravel_index(rank, self.parts), strict=True)
            where = tuple(slice(edges[at], edges[at + 1]) for edges, at in places)
            index: tuple[Any, ...] = (..., *where)
            whole[index] = part
        return whole

    def _exchange(self, field: Field, axis: int, width: int) -> None:
        """Fill the cells around a block along one axis with those of its neighbours."""
        if self.parts[axis] == 1:
            if self.is_periodic[axis]:
                _wrap(field, axis, width)
            return
        count = self.block_shape[axis]
        # Of each side: who is there, what it gets, and where what it sends goes.
        sides = (
            (self._neighbour(axis, -1), slice(width, 2 * width), slice(0, width)),
            (self._neighbour(axis, 1), slice(count, count + width), slice(-width, None)),
        )
        sends = [(rank, field[along(axis, part)]) for rank, part, _ in sides if rank is not None]
        # A rank may be the neighbour on both sides: its lower message fills our upper cells.
        receives = [(rank, field[along(axis, part)]) for rank, _, part in sides[::-1]
                    if rank is not None]  # fmt: skip
        self._send(sends, receives)

    def _send(self, sends: list[tuple[int, Field]], receives: list[tuple[int, Field]]) -> None:
        sizes, incoming_sizes = [0] * self.ranks.size, [0] * self.ranks.size
        sends.sort(key=lambda each: each[0])
        receives.sort(key=lambda each: each[0])
        for rank, part in sends:
            sizes[rank] += part.nbytes
        for rank, part in receives:
            incoming_sizes[rank] += part.nbytes
        parts = [np.ascontiguousarray(part).reshape(-1).view(np.uint8) for _, part in sends]
        outgoing = np.concatenate(parts) if parts else np.empty(0, np.uint8)
        incoming, at = self.ranks.exchange(outgoing, sizes, incoming_sizes), 0
        for _, part in receives:
            part[...] = incoming[at : at + part.nbytes].view(np.float64).reshape(part.shape)
            at += part.nbytes

    def _neighbour(self, axis: int, step: int) -> int | None:
        place = list(self.place)
        place[axis] += step
        if not 0 <= place[axis] < self.parts[axis] and not self.is_periodic[axis]:
            return None
        place[axis] %= self.parts[axis]
        return int(np.ravel_multi_index(place, self.parts))

    def coarser(self) -> tuple[Grid, tuple[int, ...]] | None:
        """Return the grid of cells twice as long, and the factor of each axis.

        Axes of an odd number of cells, or two, stay; if all do, there is none. If the edges of
        blocks are not edges of coarse cells, each rank has the whole.
        """
        factors = tuple(2 if cells % 2 == 0 and cells >= 4 else 1 for cells in self.shape)
        if math.prod(factors) == 1:
            return None
        axes = list(zip(factors, self.edges, strict=True))
        is_divided = all(edge % factor == 0 for factor, edges in axes for edge in edges)
        is_divided &= all(
            min(np.diff(edges)) >= factor * LEAST_CELLS for factor, edges in axes if len(edges) > 2
        )
        shape = tuple(cells // factor for cells, factor in zip(self.shape, factors, strict=True))
        spacing = tuple(h * factor for h, factor in zip(self.spacing, factors, strict=True))
        if is_divided:
            edges = tuple(tuple(edge // factor for edge in edges) for factor, edges in axes)
            return Grid(shape, spacing, edges, self.ranks, self.is_periodic), factors
        edges = tuple((0, cells) for cells in shape)
        return Grid(shape, spacing, edges, OneRank(), self.is_periodic), factors


def along(axis: int, part: slice) -> tuple[Any, ...]:
    """Return the index of a part along one axis of a field of shape (..., z, y, x)."""
    index: list[Any] = [..., slice(None), slice(None), slice(None)]
    index[1 + axis] = part
    return tuple(index)


def inner(width: int) -> tuple[Any, ...]:
    """Return the index of a block without the cells around it."""
    return (..., *(slice(width, -width),) * 3)


def _wrap(field: Field, axis: int, width: int) -> None:
    """Fill the cells around a block that is alone along a periodic axis."""
    count = field.shape[axis - 3] - 2 * width
    before = width + np.arange(-width, 0) % count
    after = width + np.arange(count, count + width) % count
    field[along(axis, slice(0, width))] = np.take(field, before, axis - 3)
    field[along(axis, slice(-width, None))] = np.take(field, after, axis - 3)
