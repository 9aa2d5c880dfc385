"""The pool of this process: threads."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

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
    from swathe.jobs import ResultStore
    from swathe.workers.batch import Batch

log = logging.getLogger(__name__)
READY = 1
"""Batches that wait for a thread: preparing the next takes longer than cutting a small one."""


class LocalPool:
    """Threads of this process."""

    def __init__(self, place: ResultStore, threads: int, *, batch_s: float = BATCH_S) -> None:
        """Take the result store, and the engine threads per batch."""
        self._place, self._engine_threads = place, threads
        self._batch_s = batch_s
        self._free = threading.Semaphore(LANES + READY)
        self._tasks: queue.SimpleQueue[tuple[int, Batch, Callable[[], bool]] | None] = (
            queue.SimpleQueue()
        )
        self._lanes: list[threading.Thread] = []
        self._batches = self._busy = 0
        self._traffic = TrafficCounts()
        self._lock = threading.Lock()

    @property
    def batch_s(self) -> float:
        """Intended duration of a batch, in seconds."""
        return self._batch_s

    def start(self, back: Back) -> None:
        """Start the threads."""
        for number in range(LANES):
            lane = threading.Thread(
                target=self._work, args=(back,), name=f"swathe-jobs-{number}", daemon=True
            )
            lane.start()
            self._lanes.append(lane)

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait until a thread is free, or soon will be."""
        if not self._free.acquire(timeout=timeout_s):
            return False
        self._free.release()
        return True

    def submit(self, number: int, batch: Batch, should_stop: Callable[[], bool]) -> None:
        """Accept a batch."""
        self._free.acquire()
        with self._lock:
            self._batches += 1
        self._tasks.put((number, batch, should_stop))

    def stop(self, timeout_s: float) -> None:
        """Stop the threads."""
        limit = time.monotonic() + timeout_s
        for _ in self._lanes:
            self._tasks.put(None)
        for lane in self._lanes:
            lane.join(max(0.0, limit - time.monotonic()))
            if lane.is_alive():
                raise JobError(f"{lane.name}: still running after {timeout_s} s")

    def status(self) -> PoolStatus:
        """Return the state."""
        host = this_host()
        with self._lock:
            batches, busy, traffic = self._batches, self._busy, self._traffic
        member = Member(host, host, LANES, busy, batches - busy)
        return PoolStatus("local", "", "", batches, [member], [], traffic)

    def _work(self, back: Back) -> None:
        while (task := self._tasks.get()) is not None:
            number, batch, should_stop = task
            with self._lock:
                self._busy += 1
            try:
                back(number, self._run_task(number, batch, should_stop))
            except BaseException:  # a bug or a panic must not end the thread
                log.exception("batch %d of job %s: its result cannot be saved", number, batch.job)
            finally:
                with self._lock:
                    self._batches, self._busy = self._batches - 1, self._busy - 1
                self._free.release()

    def _run_task(self, number: int, batch: Batch, should_stop: Callable[[], bool]) -> ChunkResult:
        try:
            result = run_batch(batch, self._place, self._engine_threads, should_stop)
        except BaseException as error:  # a bug or a panic: it ends the job of this batch
            log.exception("batch %d of job %s: cannot be executed", number, batch.job)
            return ChunkResult([], complete=False, failure=describe_error(error))
        with self._lock:
            self._traffic = self._traffic.with_result(result, near=False)
        return result
