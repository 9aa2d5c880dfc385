"""Batches in flight, and their retry after the death of a worker.

A batch that two workers died of is divided in halves, again and again, until the deadly row is
alone. That row becomes an error; the others are executed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from swathe.catalog.records.jobs import ChunkResult
from swathe.core.row_table import RowTable
from swathe.workers.batch import add_pairs

if TYPE_CHECKING:
    import asyncio

    from swathe.workers.batch import Batch

DIVIDE_DEATHS = 2
"""Deaths after which a batch is divided."""
DEATHS = 3
"""Deaths after which a row fails, if it was alone the last two times."""
MOST_DEATHS = 24
"""Deaths of one original batch after which all its remaining rows fail."""


@dataclass(eq=False)
class PendingBatch:
    """A batch in flight, or a part of one.

    Attributes:
        number: number of the batch.
        payload: the batch, pickled.
        should_stop: function that returns whether to stop it.
        objects: objects that workers cache, and bytes expected to be read from each.
        division: the divided batch it is part of, if any.
        deaths: workers that died while they executed it, or the batch it was part of.
        worker: worker that has it, under `key`; empty if none.
        began: whether that worker has begun it.
        told_at: when the worker was asked to stop it.
        near: whether the worker had cached some of each of its objects.
        fetch: objects that the worker lacks, and the peer to ask for each.
        task: task that waits for it.
    """

    number: int
    batch: Batch
    payload: bytes
    should_stop: Callable[[], bool]
    objects: Mapping[str, int] = field(default_factory=dict)
    division: DividedBatch | None = None
    deaths: int = 0
    worker: str = ""
    key: str = ""
    began: bool = False
    told_at: float | None = None
    near: bool = False
    fetch: Mapping[str, str | None] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None

    def add_death(self) -> None:
        """Note that a worker died while executing this."""
        self.deaths += 1
        if self.division is not None:
            self.division.deaths += 1

    def reset(self) -> None:
        """Reset the worker."""
        self.worker, self.began, self.task = "", False, None

    def verdict(self) -> ChunkResult | list[PendingBatch] | None:
        """Decide what to do after a loss: a failure, two halves, or `None` to retry."""
        cost = self.deaths if self.division is None else self.division.deaths
        rows = self.batch.rows
        if self.deaths < DIVIDE_DEATHS or (len(rows) == 1 and self.deaths < DEATHS):
            return None
        if len(rows) > 1 and cost < MOST_DEATHS:
            return self._halves()
        reason = f"{cost} workers died while executing its batch"
        return ChunkResult(rows.end("error", reason))

    def _halves(self) -> list[PendingBatch]:
        if self.division is None:
            self.division = DividedBatch(self.deaths)
        rows = self.batch.rows
        middle = len(rows) // 2
        halves = []
        for part in (rows[:middle], rows[middle:]):
            # Each half writes to its own folder, named after its first row.
            first = self.batch.first if part[0] == rows[0] else part[0].position
            batch = replace(self.batch, first=first, rows=part)
            content = pickle.dumps(batch)
            # Each half is divided after one more death; a single row fails after two more.
            halves.append(
                PendingBatch(
                    self.number,
                    batch,
                    content,
                    self.should_stop,
                    division=self.division,
                    deaths=DIVIDE_DEATHS - 1,
                )
            )
        self.division.parts += 1
        return halves


@dataclass(eq=False)
class DividedBatch:
    """A divided batch: its deaths, and the results so far."""

    deaths: int
    parts: int = 1
    result_so_far: ChunkResult | None = None

    def add(self, result: ChunkResult) -> ChunkResult | None:
        """Add the result of a part; return the result of the whole with the last part."""
        self.parts -= 1
        self.result_so_far = (
            result if self.result_so_far is None else _join_results(self.result_so_far, result)
        )
        return None if self.parts else self.result_so_far


def _join_results(one: ChunkResult, other: ChunkResult) -> ChunkResult:
    return ChunkResult(
        RowTable.concatenate([RowTable.of(one.rows), RowTable.of(other.rows)]),
        one.work_s + other.work_s,
        one.bytes_moved + other.bytes_moved,
        one.requests + other.requests,
        [*one.notes, *other.notes],
        complete=one.complete and other.complete,
        failure=one.failure or other.failure,
        from_peers=add_pairs(one.from_peers, other.from_peers),
        from_cache=add_pairs(one.from_cache, other.from_cache),
        scratch_bytes=one.scratch_bytes + other.scratch_bytes,
    )
