"""A pool that grows and shrinks with the waiting work."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from swathe.core.errors import JobError, SwatheError
from swathe.workers.autoscale.policy import (
    Growth,
    GrowthLimits,
    IdleWorker,
    PoolDemand,
    Reservation,
    choose_leavers,
    count_ending,
)
from swathe.workers.autoscale.providers.provider import name_in, slot_of
from swathe.workers.placement.rates import ComputeRates
from swathe.workers.pool import FINISH_S, GrowthStatus, Pool, describe_error, pauses
from swathe.workers.restarting_thread import RestartingThread

if TYPE_CHECKING:
    from swathe.catalog.records.jobs import ChunkResult
    from swathe.catalog.reservations import ReservationRecord, WaitingJobs
    from swathe.workers.autoscale.providers.provider import Provider, StartedWorker
    from swathe.workers.batch import Batch, Work
    from swathe.workers.pool import Back, Member, PoolStatus

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Seconds between two comparisons of running and target workers."""
JOIN_S = 120.0
"""Seconds after which a worker that runs but has not joined, or is refused, is given up."""
PART_S = 5.0
"""Seconds of grace for a worker that overruns its hand-over; then it is ended."""
AT_ONCE = 20
"""Workers started per comparison, at most."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
UNKNOWN_ROW_S = 0.01
"""Seconds per row for jobs without prediction or finished batch."""


@dataclass(eq=False)
class _Worker:
    """A worker started by this pool: when it started, and when it last had work.

    A worker that is let go first hands over its cache, until `parts_by` at the latest.
    """

    since: float
    last: float
    has_joined: bool = False
    told_to_end: bool = False
    parts_by: float | None = None

    @property
    def stays(self) -> bool:
        return not self.told_to_end and self.parts_by is None


class DrainablePool(Pool, Protocol):
    """A pool whose workers hand over their caches before they leave."""

    @property
    def hand_over_s(self) -> float:
        """Time limit of a hand-over, in seconds."""

    def drain(self, names: Sequence[str]) -> None:
        """Drain workers: no new batches, then hand-over of their caches; see `status`."""


class GrowingPool:
    """A pool whose workers are started and ended by a provider."""

    def __init__(
        self,
        pool: DrainablePool,
        provider: Provider,
        limits: GrowthLimits,
        *,
        kind: str,
        prefix: str,
        threads: int,
        waiting: Callable[[], Sequence[WaitingJobs]],
        reservations: Callable[[], Sequence[ReservationRecord]],
    ) -> None:
        """Take the inner pool, and the provider that starts its workers.

        Args:
            pool: pool that executes the batches.
            provider: starts workers of `threads` each, under names that begin with `prefix`.
            limits: numbers of workers, and times.
            kind: name of the provider.
            prefix: prefix of worker names, unique to this pool.
            threads: threads per worker.
            waiting: function that returns the waiting work.
            reservations: function that returns the reservations.
        """
        self._pool, self._provider, self._limits = pool, provider, limits
        self._kind, self._prefix, self._threads = kind, prefix, threads
        self._waiting, self._reservations = waiting, reservations
        self._growth = Growth(limits)
        self._ours: dict[str, _Worker] = {}
        self._paused_until = 0.0
        self._pauses = pauses(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._trouble = ""
        self._last = GrowthStatus(kind, 0, limits.minimum, limits.maximum, 0, "", [])
        # Shared between threads.
        self._lock = threading.Lock()
        self._jobs: dict[int, str] = {}
        self._paces = ComputeRates()
        self._ending = threading.Event()
        self._thread: RestartingThread | None = None

    # ---- Pool interface

    @property
    def batch_s(self) -> float:
        """Intended duration of a batch, in seconds."""
        return self._pool.batch_s

    def start(self, back: Back) -> None:
        """Start the pool, and the thread that compares running and target workers."""

        def note(number: int, result: ChunkResult) -> None:
            self._note(number, result)
            back(number, result)

        self._pool.start(note)
        self._thread = RestartingThread("swathe-pool-growth", self._look_soon, self._ending)
        self._thread.start()

    def wait_for_room(self, timeout_s: float, work: Work | None = None) -> frozenset[Work]:
        """Wait until another batch can be accepted."""
        return self._pool.wait_for_room(timeout_s, work)

    def submit(self, number: int, batch: Batch, should_stop: Callable[[], bool]) -> None:
        """Accept a batch."""
        with self._lock:
            self._jobs[number] = batch.job
        self._pool.submit(number, batch, should_stop)

    def stop(self, timeout_s: float) -> None:
        """Stop the pool, and end the workers it started."""
        limit = time.monotonic() + timeout_s
        self._ending.set()
        if self._thread is not None and not self._thread.join(timeout_s):
            raise JobError(f"{self._thread.name}: still running after {timeout_s} s")
        try:
            self._pool.stop(max(0.0, limit - time.monotonic()))
        finally:
            try:
                self._provider.close()
            except SwatheError as error:
                log.warning("workers were not ended: %s", error)

    def status(self) -> PoolStatus:
        """Return the state."""
        return replace(self._pool.status(), growth=self._last)

    # ---- Cost of a row

    def _note(self, number: int, result: ChunkResult) -> None:
        with self._lock:
            job = self._jobs.pop(number, None)
            if job is not None:
                self._paces.learn(job, len(result.rows), result.work_s)

    def _waiting_s(self) -> float:
        """Return the predicted seconds of all unfinished work, by measured rates if known."""
        waiting = self._waiting()
        with self._lock:
            return sum(
                each.rows * (self._paces.of_job(each.job) or each.row_s or UNKNOWN_ROW_S)
                for each in waiting
            )

    # ---- Growth

    def _look_soon(self) -> None:
        if self._ending.wait(LOOK_S):
            return
        try:
            self._look()
        except SwatheError as error:
            # Starts and ends nothing while the list of workers is unknown.
            self._tell(trouble=str(error))
        except BaseException as error:
            self._tell(trouble=describe_error(error))
            raise

    def _look(self) -> None:
        """Compare running with target workers, and start or end some."""
        now = time.monotonic()
        reservations = self._reservations()
        self._tell(reserved=reservations)
        status = self._pool.status()
        if status.trouble:
            self._tell(trouble=status.trouble)
            return
        workers = self._provider.started_workers()
        alive = {name: each for name, each in workers.items() if each.state != "ended"}
        members = {each.name: each for each in status.workers}
        working = {name for name, each in members.items() if each.busy or each.waiting}
        self._follow(workers, members, working, now)
        self._end_leavers(members, now)
        soon = count_ending(
            (now + alive[name].left_s for name in self._ours if name in alive), self._limits, now
        )
        target = self._growth.target(
            PoolDemand(self._waiting_s(), self._threads, len(working), soon),
            now,
            _on_clock(reservations, now),
        )
        names = self._ours.keys() | members.keys()
        stayers = [
            name
            for name in names
            if not (name in self._ours and not self._ours[name].stays)
            and not (name in members and members[name].refused == "leaving")
        ]
        starting = sum(not each.has_joined for each in self._ours.values())
        if not starting and len(stayers) >= target:
            self._trouble = ""
        if len(stayers) < target:
            missing = min(target - len(stayers), self._limits.maximum - len(names))
            if now >= self._paused_until:
                self._start(min(missing, AT_ONCE), now)
        elif len(stayers) > target:
            self._end(len(stayers) - target, alive, members, working, now)
        waiting = (each.why for each in alive.values() if each.state == "waiting" and each.why)
        trouble = "; ".join(filter(None, (self._trouble, next(waiting, ""))))
        self._tell(target=target, starting=starting, trouble=trouble)

    def _follow(
        self, workers: Any, members: Mapping[str, Member], working: set[str], now: float
    ) -> None:
        """Note which workers joined, which had work, and which ended before they had joined."""
        for name, each in workers.items():
            if each.state != "ended":
                self._ours.setdefault(name, _Worker(now, now))
        for name, worker in list(self._ours.items()):
            state: StartedWorker | None = workers.get(name)
            refusal = members[name].refused if name in members else ""
            if name in members and refusal in ("", "leaving") and not worker.has_joined:
                worker.has_joined, worker.last = True, now
                self._pauses = pauses(FIRST_PAUSE_S, LONGEST_PAUSE_S)
                self._paused_until, self._trouble = 0.0, ""
            if name in working:
                worker.last = now
            if state is None or state.state == "ended":
                del self._ours[name]
                if not worker.has_joined and not worker.told_to_end:
                    why = "it is gone" if state is None else state.why
                    self._fail(f"a worker ended before it had joined: {why}", now)
            elif state.state == "waiting":
                worker.since = now
            elif not worker.has_joined and not worker.told_to_end and now - worker.since > JOIN_S:
                worker.told_to_end = True
                self._provider.stop([name])
                why = f": {refusal}" if refusal else ""
                self._fail(f"a worker has not joined in {JOIN_S:g} s{why}", now)

    def _start(self, count: int, now: float) -> None:
        slots = {slot_of(name) for name in self._ours}
        free = (slot for slot in itertools.count() if slot not in slots)
        for slot in itertools.islice(free, count):
            name = name_in(slot, self._prefix)
            try:
                self._provider.start(name)
            except SwatheError as error:
                self._fail(str(error), now)
                return
            self._ours[name] = _Worker(now, now)

    def _end(
        self,
        surplus: int,
        alive: Mapping[str, StartedWorker],
        members: Mapping[str, Member],
        working: set[str],
        now: float,
    ) -> None:
        """End some surplus workers, first those that still wait to start.

        The others are let go, the least valuable cache first, and ended after their hand-over.
        """
        mine = {name: each for name, each in self._ours.items() if each.stays}
        waiting_names = [name for name in mine if name in alive and alive[name].state == "waiting"]
        waiting_names = waiting_names[:surplus]
        self._stop(waiting_names)
        idle = [
            IdleWorker(name, each.last, members[name].worth_s, now + alive[name].left_s)
            for name, each in mine.items()
            if name in members and name in alive and name not in working
        ]
        leavers = choose_leavers(idle, surplus - len(waiting_names), self._limits, now)
        if leavers:
            self._pool.drain(leavers)
            for name in leavers:
                self._ours[name].parts_by = now + FINISH_S + self._pool.hand_over_s + PART_S

    def _end_leavers(self, members: Mapping[str, Member], now: float) -> None:
        """End the workers that were let go and have finished their hand-over."""
        self._stop(
            [
                name
                for name, each in self._ours.items()
                if each.parts_by is not None
                and not each.told_to_end
                and (name not in members or members[name].parted or now >= each.parts_by)
            ]
        )

    def _stop(self, names: Sequence[str]) -> None:
        if names:
            self._provider.stop(names)
            for name in names:
                self._ours[name].told_to_end = True

    def _fail(self, trouble: str, now: float) -> None:
        """Note why workers do not start, and pause before the next attempt."""
        if now >= self._paused_until:  # several that fail together count once
            pause_s = next(self._pauses)
            self._paused_until = now + pause_s
            log.warning("%s: %s; next attempt in %g s", self._kind, trouble, pause_s)
        self._trouble = trouble

    def _tell(self, **changes: Any) -> None:
        self._last = replace(self._last, **changes)


def _on_clock(reservations: Sequence[ReservationRecord], now: float) -> list[Reservation]:
    """Convert reservations to the pool's clock."""
    ahead = now - time.time()
    return [
        Reservation(
            each.starts_at.timestamp() + ahead, each.ends_at.timestamp() + ahead, each.workers
        )
        for each in reservations
    ]
