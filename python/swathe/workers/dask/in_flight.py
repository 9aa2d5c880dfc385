"""Batches on their way to workers, and what becomes of those whose workers die.

One that has seen two workers die is divided in halves, again and again, until the row that kills
them is alone: it is the error, and those beside it are done.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from swathe.catalog.jobs.row_table import RowTable
from swathe.catalog.records.jobs import ChunkResult
from swathe.workers.batch import summed

if TYPE_CHECKING:
    import asyncio

    from swathe.workers.batch import Batch

DIVIDED = 2
"""A batch is divided when so many workers have died while they were doing it."""
DEATHS = 3
"""A row is not tried again when so many have, and it was alone the last two times."""
MOST_DEATHS = 24
"""Nor are those left of a batch that has cost so many, however many of them are to blame."""


@dataclass(eq=False)
class PendingBatch:
    """A batch on its way, or a part of one.

    Attributes:
        number: of the batch.
        payload: the same, pickled.
        stopped: whether it is to stop.
        objects: that workers keep blocks of, and bytes that are expected to be read of each.
        whole: what it is a part of, if it is one.
        deaths: workers that died while they were doing it, or what it was a part of.
        worker: who has it, under which `key`; nobody yet.
        began: whether that one has begun with it.
        told_at: when it was told to stop.
        near: whether the worker held something of each of its objects.
        fetch: objects that the worker lacks, and the peer to ask for each.
        task: waits for it.
    """

    number: int
    batch: Batch
    payload: bytes
    stopped: Callable[[], bool]
    objects: Mapping[str, int] = field(default_factory=dict)
    whole: DividedBatch | None = None
    deaths: int = 0
    worker: str = ""
    key: str = ""
    began: bool = False
    told_at: float | None = None
    near: bool = False
    fetch: Mapping[str, str | None] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None

    def died(self) -> None:
        """Note that a worker died while it was doing this."""
        self.deaths += 1
        if self.whole is not None:
            self.whole.deaths += 1

    def reset(self) -> None:
        """Forget who had it."""
        self.worker, self.began, self.task = "", False, None

    def verdict(self) -> ChunkResult | list[PendingBatch] | None:
        """Say what to do where it was lost: what became of it, its halves, or to try it again."""
        cost = self.deaths if self.whole is None else self.whole.deaths
        rows = self.batch.rows
        if self.deaths < DIVIDED or (len(rows) == 1 and self.deaths < DEATHS):
            return None
        if len(rows) > 1 and cost < MOST_DEATHS:
            return self._halves()
        reason = f"{cost} workers died while they were doing the batch it was in"
        return ChunkResult(rows.ended("error", reason))

    def _halves(self) -> list[PendingBatch]:
        if self.whole is None:
            self.whole = DividedBatch(self.deaths)
        rows = self.batch.rows
        middle = len(rows) // 2
        halves = []
        for part in (rows[:middle], rows[middle:]):
            # Each makes its results in a place of its own, which is named by its first row.
            first = self.batch.first if part[0] == rows[0] else part[0].position
            batch = replace(self.batch, first=first, rows=part)
            sent = pickle.dumps(batch)
            # Divided again after one more; a row that is alone has two more.
            halves.append(
                PendingBatch(
                    self.number,
                    batch,
                    sent,
                    self.stopped,
                    whole=self.whole,
                    deaths=DIVIDED - 1,
                )
            )
        self.whole.parts += 1
        return halves


@dataclass(eq=False)
class DividedBatch:
    """A batch that was divided, what it has cost, and what came of it so far."""

    deaths: int
    parts: int = 1
    done: ChunkResult | None = None

    def add(self, done: ChunkResult) -> ChunkResult | None:
        """Take what became of a part; gives what became of all, with the last."""
        self.parts -= 1
        self.done = done if self.done is None else _joined(self.done, done)
        return None if self.parts else self.done


def _joined(one: ChunkResult, other: ChunkResult) -> ChunkResult:
    return ChunkResult(
        RowTable.joined([RowTable.of(one.rows), RowTable.of(other.rows)]),
        one.seconds + other.seconds,
        one.bytes_moved + other.bytes_moved,
        one.requests + other.requests,
        [*one.notes, *other.notes],
        complete=one.complete and other.complete,
        failure=one.failure or other.failure,
        from_peers=summed(one.from_peers, other.from_peers),
        from_cache=summed(one.from_cache, other.from_cache),
    )
