"""The pool of this process: threads."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from swathe.algorithms.group_run import program_lanes
from swathe.catalog.records.jobs import ChunkResult
from swathe.core.errors import JobError
from swathe.core.host import this_host
from swathe.workers.execute import run_batch
from swathe.workers.pool import (
    BATCH_S,
    LANES,
    Back,
    Member,
    PoolStatus,
    TrafficCounts,
    describe_error,
)

if TYPE_CHECKING:
    from swathe.algorithms.group_run import BoxSettings
    from swathe.jobs import ResultStore
    from swathe.workers.batch import Batch, Work

    _Task = tuple[int, Batch, Callable[[], bool]]

log = logging.getLogger(__name__)
READY = 1
"""Batches that wait for a thread: preparing the next takes longer than cutting a small one."""


class LocalPool:
    """Threads of this process."""

    def __init__(
        self,
        place: ResultStore,
        threads: int,
        *,
        batch_s: float = BATCH_S,
        box: BoxSettings | None = None,
    ) -> None:
        """Take the result store, the engine threads per batch, and the sandbox for programs."""
        self._box = box
        self._place, self._engine_threads = place, threads
        self._batch_s = batch_s
        self._lane_counts: dict[Work, int] = {
            "cut": LANES,
            "long": LANES,
            "program": program_lanes(box),
        }
        # Other work that waits behind its like could wait for long.
        self._room = Counter(self._lane_counts | {"cut": LANES + READY})
        self._tasks: dict[Work, queue.SimpleQueue[_Task | None]] = {
            work: queue.SimpleQueue() for work in self._lane_counts
        }
        self._lanes: list[threading.Thread] = []
        self._batches = self._busy = 0
        self._traffic = TrafficCounts()
        self._lock = threading.Condition()

    @property
    def batch_s(self) -> float:
        """Intended duration of a batch, in seconds."""
        return self._batch_s

    def start(self, back: Back) -> None:
        """Start the threads."""
        for work, count in self._lane_counts.items():
            for number in range(count):
                name = f"swathe-{work}-{number}"
                lane = threading.Thread(
                    target=self._serve, args=(work, back), name=name, daemon=True
                )
                lane.start()
                self._lanes.append(lane)

    def wait_for_room(self, timeout_s: float, work: Work | None = None) -> frozenset[Work]:
        """Wait until a thread is free, or soon will be."""
        with self._lock:
            self._lock.wait_for(
                lambda: self._room[work] if work else any(self._room.values()), timeout_s
            )
            return frozenset(each for each, room in self._room.items() if room)

    def submit(self, number: int, batch: Batch, should_stop: Callable[[], bool]) -> None:
        """Accept a batch."""
        with self._lock:
            self._lock.wait_for(lambda: self._room[batch.work])
            self._room[batch.work] -= 1
            self._batches += 1
        self._tasks[batch.work].put((number, batch, should_stop))

    def stop(self, timeout_s: float) -> None:
        """Stop the threads."""
        limit = time.monotonic() + timeout_s
        for work, count in self._lane_counts.items():
            for _ in range(count):
                self._tasks[work].put(None)
        for lane in self._lanes:
            lane.join(max(0.0, limit - time.monotonic()))
            if lane.is_alive():
                raise JobError(f"{lane.name}: still running after {timeout_s} s")

    def status(self) -> PoolStatus:
        """Return the state."""
        host = this_host()
        with self._lock:
            batches, busy, traffic = self._batches, self._busy, self._traffic
        member = Member(host, host, sum(self._lane_counts.values()), busy, batches - busy)
        return PoolStatus("local", "", "", batches, [member], [], traffic)

    def _serve(self, work: Work, back: Back) -> None:
        while (task := self._tasks[work].get()) is not None:
            number, batch, should_stop = task
            with self._lock:
                self._busy += 1
            try:
                result = self._run_task(number, batch, should_stop)
                if work != "cut":
                    # The thread is free soon, and `back` makes the runner look for more.
                    self._add_room(work)
                back(number, result)
            except BaseException:  # a bug or a panic must not end the thread
                log.exception("batch %d of job %s: its result cannot be saved", number, batch.job)
            finally:
                with self._lock:
                    self._batches, self._busy = self._batches - 1, self._busy - 1
                if work == "cut":
                    self._add_room(work)

    def _add_room(self, work: Work) -> None:
        with self._lock:
            self._room[work] += 1
            self._lock.notify_all()

    def _run_task(self, number: int, batch: Batch, should_stop: Callable[[], bool]) -> ChunkResult:
        try:
            result = run_batch(batch, self._place, self._engine_threads, should_stop, self._box)
        except BaseException as error:  # a bug or a panic: it ends the job of this batch
            log.exception("batch %d of job %s: cannot be executed", number, batch.job)
            return ChunkResult([], complete=False, failure=describe_error(error))
        with self._lock:
            self._traffic = self._traffic.with_result(result, near=False)
        return result
