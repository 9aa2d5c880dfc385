"""Plan a probe: sizes, numbers of streams, budgets."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from swathe import _swathe
from swathe.core.format import KIB, MIB, size_text

OPENING_BYTES = 32 * KIB
"""Bytes that the engine reads to open an object of a server, roughly."""
SIZES = tuple(KIB * 4**power for power in range(8))
QUICK_SIZES = (KIB, 16 * KIB, 256 * KIB, 4 * MIB)
LEAST_WRITE = 256 * KIB
STREAMS = (1, 2, 4, 8, 16, 32, 64)
QUICK_STREAMS = (1, 4, 16)
ALONE = 3
"""Number of single requests of one size in a round."""
PRECISE = 0.03
"""Relative precision at which the median of a size and number of streams suffices."""
ROUNDS = 30
PARTS, QUICK_PARTS = 12, 5


@dataclass(frozen=True)
class Cell:
    """Requests of one size with one number of streams."""

    size: int
    streams: int
    requests: int

    @property
    def bytes(self) -> int:
        """Return the bytes moved in one measurement."""
        return self.size * self.requests

    def at_once(self) -> Cell:
        """Return the cell with only one round of requests."""
        return replace(self, requests=self.streams)


@dataclass(frozen=True)
class ProbeParameters:
    """Plan and limits of a probe, stored with its result.

    Attributes:
        rounds: largest number of measurements of each size and number of streams.
        parts: one measurement uses at most 1 / parts of the rest of each budget.
        seed: seed of the order of measurements and of the positions read.
    """

    sizes: tuple[int, ...]
    streams: tuple[int, ...]
    rounds: int
    max_time_s: float
    max_bytes: int
    parts: int
    seed: int
    objects: tuple[str, ...] = ()
    write: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the values for JSON, without secrets; objects are named as users see them."""
        own = asdict(replace(self, objects=tuple(map(_swathe.redact_url, self.objects)))).items()
        return {name: list(of) if isinstance(of, tuple) else of for name, of in own}

    @property
    def write_sizes(self) -> tuple[int, ...]:
        """Return the sizes of objects to write: the smallest, and those that show a bandwidth.

        Each takes several round trips, and small ones between take about as long as the smallest.
        """
        larger = {MIB, *(each for each in self.sizes if each >= LEAST_WRITE)}
        return (self.sizes[0], *sorted(larger))

    def cells(self) -> list[Cell]:
        """Return all combinations of size and streams that the byte budget allows."""
        cells = [Cell(size, streams, 0) for size in self.sizes for streams in self.streams]
        return [ways[0] for cell in cells if (ways := self.choices(cell.size, cell.streams))]

    def choices(self, size: int, streams: int) -> list[Cell]:
        """Return ways to measure a combination, the best first.

        These are four rounds of all streams, or two. One round tells less about the line, which is
        idle until the first byte; it is measured in addition, or if there is no time for more.
        """
        numbers = (ALONE, 1) if streams == 1 else (4 * streams, 2 * streams, streams)
        cells = (Cell(size, streams, number) for number in numbers)
        return [cell for cell in cells if cell.bytes * self.parts <= self.max_bytes]

    def __str__(self) -> str:
        cells = self.cells()
        streams = max((cell.streams for cell in cells), default=1)
        # Every measurement of a cell and one that confirms the first, and as often one round.
        requests = (self.rounds + 1) * sum(cell.requests + cell.streams + 2 for cell in cells)
        size = min(self.max_bytes, (self.rounds + 1) * sum(cell.bytes for cell in cells))
        return (
            f"at most {requests:,} requests, {size_text(size)} and {self.max_time_s:g} s: "
            f"{size_text(self.sizes[0])} to {size_text(self.sizes[-1])}, "
            f"1 to {streams} streams{', up to half of it for writing' * self.write}"
        )
