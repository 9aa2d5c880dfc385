"""What a probe reads: sizes, numbers of streams, budgets."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from swathe import _swathe
from swathe.core.format import KIB, MIB, megabytes, size_text

OPENING_BYTES = 32 * KIB
"""What the native half reads to open an object of a server, about."""
SIZES = tuple(KIB * 4**power for power in range(8))
QUICK_SIZES = (KIB, 16 * KIB, 256 * KIB, 4 * MIB)
STREAMS = (1, 2, 4, 8, 16, 32, 64)
QUICK_STREAMS = (1, 4, 16)
ALONE = 3
"""Single requests of one size a round."""
PRECISE = 0.03
"""A size and number of streams is settled when its median is known to this part."""
ROUNDS = 30
PARTS, QUICK_PARTS = 12, 5


@dataclass(frozen=True)
class Cell:
    """Requests of one size on one number of streams."""

    size: int
    streams: int
    requests: int

    @property
    def bytes(self) -> int:
        """Moved each time."""
        return self.size * self.requests

    def at_once(self) -> Cell:
        """One round of it."""
        return replace(self, requests=self.streams)


@dataclass(frozen=True)
class Parameters:
    """What a probe may use and will do; kept with its result.

    Attributes:
        rounds: how often each size and number of streams is measured at most.
        parts: one measurement takes at most so small a part of what is left of each budget.
        seed: of the order of measurements and the places that are read.
    """

    sizes: tuple[int, ...]
    streams: tuple[int, ...]
    rounds: int
    budget_s: float
    budget_bytes: int
    parts: int
    seed: int
    objects: tuple[str, ...] = ()
    write: bool = False

    def as_dict(self) -> dict[str, Any]:
        """In numbers, texts and lists, without secrets: objects are named as users see them."""
        own = asdict(replace(self, objects=tuple(map(_swathe.shown, self.objects)))).items()
        return {name: list(of) if isinstance(of, tuple) else of for name, of in own}

    def cells(self) -> list[Cell]:
        """All combinations of size and streams that the bytes have room for."""
        cells = [Cell(size, streams, 0) for size in self.sizes for streams in self.streams]
        return [found[0] for cell in cells if (found := self.choices(cell.size, cell.streams))]

    def choices(self, size: int, streams: int) -> list[Cell]:
        """Ways to measure a combination, the best first.

        Four rounds of all streams, or two: a single one tells little of the line, which is idle
        until the first of its bytes; it is measured besides.
        """
        numbers = (ALONE, 1) if streams == 1 else (4 * streams, 2 * streams)
        cells = (Cell(size, streams, number) for number in numbers)
        return [cell for cell in cells if cell.bytes * self.parts <= self.budget_bytes]

    def __str__(self) -> str:
        cells = self.cells()
        streams = max((cell.streams for cell in cells), default=1)
        # All of a cell, once more all at once, and for each the object is opened.
        requests = self.rounds * sum(cell.requests + cell.streams + 2 for cell in cells)
        size = min(self.budget_bytes, self.rounds * sum(cell.bytes for cell in cells))
        return (
            f"at most {requests} requests, {megabytes(size)} and {self.budget_s:g} s: "
            f"{size_text(self.sizes[0])} to {size_text(self.sizes[-1])}, "
            f"1 to {streams} streams{', up to a fifth of it for writing' * self.write}"
        )
