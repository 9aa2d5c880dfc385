"""How an array is divided over ranks, as High Performance Fortran writes it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.errors import OptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXPECTATION = (
    "a letter for each axis, such as 'BBB' or 'B**', or names, such as 'BLOCK,*,CYCLIC(4)'"
)
NAME = re.compile(r"BLOCK|\*|CYCLIC(?:\((\d{1,9})\))?")
LETTERS = {"B": "BLOCK", "*": "*", "C": "CYCLIC"}
MOST_RANKS = 1 << 20
MOST_BLOCKS = 1_000_000
"""Blocks of a cyclic axis, at most: each rank has a list of the indices of its own."""
MOST_DIVISIONS = 4
"""Axes of an array that are divided, at most: more have too many grids of ranks to compare."""


@dataclass(frozen=True)
class Axis:
    """How one axis is divided.

    Attributes:
        kind: `block`, `cyclic`, or `whole` if it is not divided.
        width: length of the blocks that are dealt out in turn, of a cyclic axis.
    """

    kind: str
    width: int = 1

    def count(self, length: int, parts: int, part: int) -> int:
        """Return how many indices one of some parts has."""
        if self.kind == "whole":
            return length
        width = self.block_width(length, parts)
        turns, rest = divmod(length, parts * width)
        return turns * width + min(max(rest - part * width, 0), width)

    def spans(self, length: int, parts: int, part: int) -> tuple[slice, ...]:
        """Return the ranges of indices of one of some parts, ascending; perhaps none."""
        if self.kind == "whole":
            return (slice(0, length),) if length else ()
        width = self.block_width(length, parts)
        starts = range(part * width, length, parts * width)
        return tuple(slice(start, min(start + width, length)) for start in starts)

    def block_width(self, length: int, parts: int) -> int:
        """Return the length of the blocks that are dealt to some parts."""
        return self.width if self.kind == "cyclic" else max(-(-length // parts), 1)


@dataclass(frozen=True)
class Pattern:
    """How each axis of an array is divided; an array of any number of ranks can have it."""

    axes: tuple[Axis, ...]

    @classmethod
    def parse(cls, text: str, ndim: int) -> Pattern:
        """Return the pattern of a text such as `BBB`, `B**` or `BLOCK,*,CYCLIC(4)`.

        Raises:
            OptionError: If it is none, or has not as many axes as the array.
        """
        compact = text.replace(" ", "").upper()
        names = compact.split(",") if "," in compact or len(compact) > ndim else list(compact)
        axes = [_axis(LETTERS.get(name, name)) for name in names[: ndim + 1]]
        if None in axes or len(axes) != ndim:
            raise OptionError(
                f"pattern: expected {EXPECTATION}, for {ndim} axes, found {text!r:.60}"
            )
        known_axes = tuple(axis for axis in axes if axis is not None)
        divisions = sum(axis.kind != "whole" for axis in known_axes)
        if divisions > MOST_DIVISIONS:
            raise OptionError(
                f"pattern: expected at most {MOST_DIVISIONS} axes to divide, found {divisions}"
            )
        return cls(known_axes)

    def __str__(self) -> str:
        """Return the text of the pattern, in letters if it can be."""
        names = [
            f"CYCLIC({axis.width})" if axis.kind == "cyclic" and axis.width != 1 else axis.kind
            for axis in self.axes
        ]
        if any("(" in name for name in names):
            long = {"block": "BLOCK", "whole": "*", "cyclic": "CYCLIC"}
            return ",".join(long.get(name, name) for name in names)
        return "".join({"block": "B", "whole": "*", "cyclic": "C"}[name] for name in names)

    def division(self, shape: tuple[int, ...], ranks: int) -> Division:
        """Return who has what of an array of a shape.

        Raises:
            OptionError: If the number of ranks is invalid, or an axis has too many blocks.
        """
        for axis, length in zip(self.axes, shape, strict=True):
            if axis.kind == "cyclic" and length // axis.width > MOST_BLOCKS:
                raise OptionError(
                    f"pattern: expected at most {MOST_BLOCKS} blocks of a cyclic axis, found "
                    f"{length // axis.width}"
                )
        if not 1 <= ranks <= MOST_RANKS:
            raise OptionError(f"ranks: expected 1 to {MOST_RANKS}, found {ranks}")
        return Division(self, shape, rank_grid(self, shape, ranks), ranks)


@dataclass(frozen=True)
class Division:
    """An array of one shape, divided over ranks.

    Attributes:
        pattern: how each axis is divided.
        shape: lengths of the axes.
        grid: number of parts of each axis; ranks are numbered with the last axis fastest. Ranks
            beyond its size have nothing.
        ranks: number of ranks.
    """

    pattern: Pattern
    shape: tuple[int, ...]
    grid: tuple[int, ...]
    ranks: int

    def spans(self, rank: int) -> tuple[tuple[slice, ...], ...]:
        """Return for each axis the ranges of indices of a rank; no range if it has nothing.

        Raises:
            OptionError: If there is no such rank.
        """
        place = self._place(rank)
        if place is None:
            return ((),) * len(self.shape)
        axes = zip(self.pattern.axes, self.shape, self.grid, place, strict=True)
        return tuple(axis.spans(length, parts, part) for axis, length, parts, part in axes)

    def block_shape(self, rank: int) -> tuple[int, ...]:
        """Return the shape of what a rank has; its ranges lie without gaps along each axis.

        Raises:
            OptionError: If there is no such rank.
        """
        place = self._place(rank)
        if place is None:
            return (0,) * len(self.shape)
        axes = zip(self.pattern.axes, self.shape, self.grid, place, strict=True)
        return tuple(axis.count(length, parts, part) for axis, length, parts, part in axes)

    def indices(self, rank: int) -> tuple[slice | NDArray[np.intp], ...]:
        """Return for each axis the indices that a rank has: a range, or an array, ascending."""
        return tuple(_indices(spans) for spans in self.spans(rank))

    @property
    def widths(self) -> tuple[int, ...]:
        """Return for each axis the length of the blocks that are dealt to its parts."""
        axes = zip(self.pattern.axes, self.shape, self.grid, strict=True)
        return tuple(
            length if parts == 1 else min(axis.block_width(length, parts), length)
            for axis, length, parts in axes
        )

    def owner(self, box: tuple[slice, ...]) -> int:
        """Return the rank that has the first element of a box."""
        axes = zip(box, self.widths, self.grid, strict=True)
        return int(
            np.ravel_multi_index(
                [span.start // width % parts for span, width, parts in axes], self.grid
            )
        )

    def _place(self, rank: int) -> tuple[int, ...] | None:
        """Return the place of a rank in the grid; `None` if it is beyond its size."""
        if not 0 <= rank < self.ranks:
            raise OptionError(f"rank: expected 0 to {self.ranks - 1}, found {rank}")
        if rank >= math.prod(self.grid):
            return None
        return tuple(map(int, np.unravel_index(rank, self.grid)))

    def pieces(self, rank: int) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
        """Yield the boxes of a rank: in the array, and in the rank's own block."""
        axes = [list(_with_places(spans)) for spans in self.spans(rank)]
        for box in product(*axes):
            yield tuple(whole for whole, _ in box), tuple(own for _, own in box)


def _indices(spans: tuple[slice, ...]) -> slice | NDArray[np.intp]:
    if not spans:
        return slice(0, 0)
    if len(spans) == 1:
        return spans[0]
    return np.concatenate([np.arange(span.start, span.stop) for span in spans])


def _axis(name: str) -> Axis | None:
    match = NAME.fullmatch(name)
    if match is None or match[1] == "0":
        return None
    if name == "*":
        return Axis("whole")
    return Axis("block") if name == "BLOCK" else Axis("cyclic", int(match[1] or 1))


def _with_places(spans: tuple[slice, ...]) -> Iterator[tuple[slice, slice]]:
    """Yield ranges with where they lie in a block of all of them."""
    at = 0
    for span in spans:
        length = span.stop - span.start
        yield span, slice(at, at + length)
        at += length


@lru_cache(maxsize=1024)
def rank_grid(pattern: Pattern, shape: tuple[int, ...], ranks: int) -> tuple[int, ...]:
    """Return the number of parts of each axis: at most `ranks` in all, and as even as can be.

    The largest block is as small as possible; of such grids, that with the least surface of a
    block; of these, that with more parts along the earlier axes.
    """
    axes = [at for at, axis in enumerate(pattern.axes) if axis.kind != "whole"]
    best: tuple[tuple[float, ...], tuple[int, ...]] | None = None
    for factors in _factorings(ranks, len(axes)):
        parts = [1] * len(shape)
        for at, factor in zip(axes, factors, strict=True):
            parts[at] = factor
        block = [
            axis.count(length, part, 0)
            for axis, length, part in zip(pattern.axes, shape, parts, strict=True)
        ]
        volume = math.prod(block)
        surface = sum(volume / max(length, 1) for length in block)
        key = (volume, surface, *(-part for part in parts))
        if best is None or key < best[0]:
            best = key, tuple(parts)
    return best[1] if best is not None else (1,) * len(shape)


def _factorings(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield all ordered products of `count` factors that give a number."""
    if count == 0:
        return
    if count == 1:
        yield (number,)
        return
    for factor in _divisors(number):
        for rest in _factorings(number // factor, count - 1):
            yield (factor, *rest)


@lru_cache(maxsize=1024)
def _divisors(number: int) -> tuple[int, ...]:
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return tuple(sorted({*small, *(number // each for each in small)}))
