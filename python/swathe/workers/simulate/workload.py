"""Workloads of the simulation: batches drawn with a seed, or listed in a file."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from swathe.core.errors import TargetsError
from swathe.core.inputs import check_regular

BLOCK = 1 << 16
"""Bytes fetched and cached together."""
ROWS = 1489
ROW_BYTES = 2 * 2048
"""Bytes per row of a Sloan survey frame: 2048 x 1489 pixels of 16 bits, 6 MB."""
CUT_ROWS = 100
MOST_PLACES = 1000
"""Positions per batch, at most: more cuts need no more of the frame."""
COLUMNS = ("object", "bytes", "compute_s")
MOST_BATCHES = 10_000_000


@dataclass(frozen=True, slots=True)
class SimulatedBatch:
    """Targets on one object.

    Attributes:
        source: the object.
        blocks: blocks it needs, one bit each.
        block_bytes: bytes per block.
        cuts: number of targets.
        compute_s: seconds of computing.
    """

    source: str
    blocks: int
    block_bytes: int
    cuts: int
    compute_s: float

    @property
    def bytes(self) -> int:
        """Bytes it needs."""
        return self.blocks.bit_count() * self.block_bytes


class Workload(Protocol):
    """Batches, the same number in each round."""

    @property
    def count(self) -> int:
        """Batches per round."""

    @property
    def mean_s(self) -> float:
        """Mean computing seconds per batch."""

    def batches(self, turn: int) -> Iterator[SimulatedBatch]:
        """Return the batches of a round, in the order of the requests."""


@dataclass(frozen=True)
class Crops:
    """Cuts of 100 x 100 pixels from frames of 6 MB, at random positions.

    Attributes:
        kind: `job`: frames in order, like the rows of a job; `random`: any frame; `hot`: the n-th
            frame in proportion to 1/n.
        frames: number of frames.
        count: batches per round.
        cuts: cuts per batch, all on one frame.
        compute_s: computing seconds per batch.
        seed: seed of the random numbers.
    """

    kind: str
    frames: int
    count: int
    cuts: int
    compute_s: float
    seed: int

    @property
    def mean_s(self) -> float:
        """Mean computing seconds per batch."""
        return self.compute_s

    def batches(self, turn: int) -> Iterator[SimulatedBatch]:
        """Yield the batches of a round."""
        rng = random.Random(f"{self.seed} {turn}")
        hotter = list(accumulate(1 / (1 + frame) for frame in range(self.frames)))
        for number in range(self.count):
            if self.kind == "job":
                frame = number * self.frames // self.count
            elif self.kind == "random":
                frame = rng.randrange(self.frames)
            else:
                (frame,) = rng.choices(range(self.frames), cum_weights=hotter)
            blocks = 0
            for _ in range(min(self.cuts, MOST_PLACES)):
                start = ROW_BYTES * int(rng.random() * (ROWS - CUT_ROWS + 1))
                first, last = start // BLOCK, (start + ROW_BYTES * CUT_ROWS - 1) // BLOCK
                blocks |= (1 << (last + 1)) - (1 << first)
            yield SimulatedBatch(f"frame-{frame}", blocks, BLOCK, self.cuts, self.compute_s)


@dataclass(frozen=True)
class ListedWorkload:
    """Batches listed in a file; each needs all the listed bytes of its object."""

    rows: Sequence[SimulatedBatch]

    @property
    def count(self) -> int:
        """Batches per round."""
        return len(self.rows)

    @property
    def mean_s(self) -> float:
        """Mean computing seconds per batch."""
        return sum(row.compute_s for row in self.rows) / len(self.rows)

    def batches(self, turn: int) -> Iterator[SimulatedBatch]:  # noqa: ARG002 - all are the same
        """Return the batches of a round."""
        return iter(self.rows)


def read_workload(path: Path) -> ListedWorkload:
    """Read a workload: CSV with the columns object, bytes, compute_s, one row per batch.

    Raises:
        TargetsError: If it cannot be read, or a row is invalid.
    """
    rows: list[SimulatedBatch] = []
    sizes: dict[str, int] = {}
    try:
        check_regular(path)
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise TargetsError(
                    f"{path}: expected the columns {', '.join(COLUMNS)}, "
                    f"found {', '.join(reader.fieldnames or ()) or 'none'}"
                )
            for row in reader:
                if len(rows) == MOST_BATCHES:
                    raise TargetsError(f"{path}: more than {MOST_BATCHES:,} rows")
                where = f"{path}: line {reader.line_num}"
                batch = _batch(row, where)
                if sizes.setdefault(batch.source, batch.bytes) != batch.bytes:
                    raise TargetsError(
                        f"{where}: {batch.source}: expected {sizes[batch.source]} bytes as before, "
                        f"found {batch.bytes}"
                    )
                rows.append(batch)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TargetsError(f"{path}: {error}") from error
    if not rows:
        raise TargetsError(f"{path}: expected at least one row, found none")
    return ListedWorkload(rows)


def _batch(row: dict[str, str | None], where: str) -> SimulatedBatch:
    name, size, seconds = (row[column] or "" for column in COLUMNS)
    try:
        batch = SimulatedBatch(name, 1, int(size), 1, float(seconds))
    except ValueError:
        batch = None
    if batch is None or not (name and 0 < batch.bytes < 1 << 50 and 0 <= batch.compute_s < 1e6):
        raise TargetsError(
            f"{where}: expected an object, its bytes and seconds, "
            f"found {name!r}, {size!r} and {seconds!r}"
        )
    return batch
