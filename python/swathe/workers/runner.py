"""The runner: takes work from jobs, sends it to a pool in batches, and saves the results."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from swathe import _swathe, trace
from swathe.catalog import Outcome
from swathe.catalog.database_errors import may_pass
from swathe.catalog.records.jobs import ChunkResult
from swathe.core.errors import CatalogError, CatalogSetupError, JobError, SwatheError
from swathe.core.host import cores, this_host
from swathe.jobs.staging import JobStaging, objects_on_disk
from swathe.jobs.types import Options
from swathe.workers.batch import batch_of, work_of
from swathe.workers.execute import ran_program
from swathe.workers.local import LocalPool
from swathe.workers.pool import describe_error, pauses
from swathe.workers.restarting_thread import RestartingThread
from swathe.workers.runner_counts import RunnerCounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.catalog.records.jobs import Chunk, JobRecord
    from swathe.jobs import Jobs
    from swathe.workers.batch import Batch, Work
    from swathe.workers.pool import Pool

log = logging.getLogger(__name__)

T = TypeVar("T")

LEASE_S = 60.0
"""Seconds without a sign of life after which a runner counts as dead."""
RENEW_S = 10.0
IDLE_S = 0.5
"""Seconds between checks for jobs submitted or cancelled by other processes."""
FIRST_CHUNK = 100
MOST_GROWTH = 4.0
"""Growth factor of a job's next chunk, at most."""
KEEP_AGAIN_S = 0.1
"""First pause, in seconds, before results are saved again if the database is unavailable."""
SPANS = 100
"""Remembered intervals of work on a job: the latest."""
TRIES = 4
"""Attempts for an error that does not look temporary."""


class Runner:
    """Works on jobs, about a second at a time, fairly between users and their jobs."""

    def __init__(self, jobs: Jobs, pool: Pool | None = None, *, threads: int | None = None) -> None:
        """Take the jobs and the pool; by default this process, with `threads` of the engine.

        The default number of threads is the number of cores.
        """
        self._jobs = jobs
        self._pool = LocalPool(jobs.place, threads or cores()) if pool is None else pool
        self._name = (
            f"{this_host()} {os.getpid()} {_start_time(os.getpid())} {secrets.token_hex(4)}"
        )
        self._stopping = threading.Event()
        self._threads: list[RestartingThread] = []
        self._numbers = count()
        self._pending: dict[int, _PendingChunk] = {}
        self._begun_jobs: set[int] = set()
        self._save_troubles: dict[int, str] = {}  # by thread
        self._pace = _Pace(self._pool.batch_s)
        self._clock = _Clock()
        self._staging = JobStaging(
            jobs.catalog,
            self._pace.rows,
            jobs.wake,
            self._stopping,
            reads_caches=self._is_local,
        )
        self.counts = RunnerCounts()
        self.lag = ""
        """Why jobs wait: too much of deleted jobs is not removed yet; empty if they need not."""

    def start(self) -> None:
        """Start the threads. Work leased by dead runners is done again."""
        if self._threads:
            raise JobError("expected a new runner, found one that was started before")
        self._free_chunks()
        self._pool.start(self._back)
        for name, turn in (
            ("swathe-jobs-giver", self._give),
            ("swathe-jobs-keeper", self._keep),
            ("swathe-jobs-tidy", self._tidy),
            ("swathe-jobs-stager", self._staging.turn),
        ):
            thread = RestartingThread(name, turn, self._stopping)
            thread.start()
            self._threads.append(thread)

    @property
    def trouble(self) -> str:
        """Why no work is sent to the pool, or results are not saved; empty if all is well."""
        if not self._threads:
            return "not started"
        return self._threads[0].trouble or next(iter(list(self._save_troubles.values())), "")

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stop the threads within about a second; unfinished rows are returned to the queue.

        Raises:
            JobError: If a thread does not end in time.
        """
        self._stopping.set()
        self._jobs.wake()
        limit = time.monotonic() + timeout_s
        for thread in self._threads:
            if not thread.join(max(0.0, limit - time.monotonic())):
                raise JobError(f"{thread.name}: still running after {timeout_s} s")
        if self._threads:
            self._pool.stop(max(0.0, limit - time.monotonic()))

    def _give(self) -> None:
        """Lease a chunk, if there is one, and send it to the pool when that has room."""
        # Cuts first: they wait for a moment, other work may wait for longer.
        room = self._pool.wait_for_room(IDLE_S, "cut")
        if not room or self._is_apart() or self._is_behind():
            return
        # The database may be locked or unavailable for a while; the keeper checks as well.
        chunk = self._take_chunk(room)
        if chunk is None:
            # Without room for cuts it has waited already.
            if "cut" in room:
                self._jobs.pause(IDLE_S)
        else:
            self._jobs.wake()
            if chunk.deaths and self._is_local and _work_of(chunk) != "program":
                self._wait_for_others()
            self._give_chunk(next(self._numbers), chunk)

    def _take_chunk(self, room: frozenset[Work]) -> Chunk | None:
        """Lease a chunk of work that there is room for; `None` if there is none."""

        def accepts(job: JobRecord, of_results: bool) -> bool:
            return work_of(Options.from_catalog(job.options), of_results) in room

        jobs = self._jobs
        return jobs.catalog.take_chunk(
            self._name, LEASE_S, self._pace.rows, accepts, jobs.limits.share_of
        )

    def _batch_of(self, chunk: Chunk) -> Batch | None:
        """Return the batch of a chunk; `None` if some of its objects are not on disk any more."""
        catalog = self._jobs.catalog
        batch = batch_of(catalog, chunk)
        batch = replace(batch, cutout_bytes=self._jobs.limits.cutout_bytes)
        if chunk.job.staging is None or batch.makes:
            return batch
        names = batch.rows.source.few().values
        on_disk = objects_on_disk(catalog, chunk.job, names, reads_caches=self._is_local)
        return None if on_disk is None else replace(batch, on_disk=on_disk)

    @property
    def _is_local(self) -> bool:
        """Whether this process cuts, so that a deadly row could kill it."""
        return isinstance(self._pool, LocalPool)

    def _free_chunks(self) -> int:
        return self._jobs.catalog.free_chunks(_is_dead, self._blames)

    def _blames(self, job: str, first: int) -> bool:
        """Return whether rows may have killed a runner: it cuts, and ran no program of them."""
        return self._is_local and not ran_program(self._jobs.folder(job), first)

    def _is_apart(self) -> bool:
        """Wait a moment and return true while rows run that may have killed a runner.

        They run alone: if the process dies again, only they can be the cause. Programs of users,
        which may take hours, do not run alone, and others run beside them: their processes are
        confined.
        """
        apart = self._is_local and any(
            each.chunk.deaths and each.work != "program" for each in list(self._pending.values())
        )
        if apart:
            self._jobs.pause(IDLE_S)
        return apart

    def _is_behind(self) -> bool:
        """Wait a moment and return true while too much of deleted jobs is not removed yet.

        Results would fill a disk that removes them more slowly than they are made.
        """
        lag = self._jobs.removal_lag()
        if lag and not self.lag:
            log.warning("jobs wait: %s", lag)
        elif self.lag and not lag:
            log.warning("jobs continue: enough results of deleted jobs are removed")
        self.lag = lag
        if lag:
            self._jobs.pause(IDLE_S)
        return bool(lag)

    def _wait_for_others(self) -> None:
        """Wait until no batch is running but programs of users."""
        while (
            any(each.work != "program" for each in list(self._pending.values()))
            and not self._stopping.is_set()
        ):
            self._jobs.pause(IDLE_S)

    def _give_chunk(self, number: int, chunk: Chunk) -> None:
        self._clock.enter(chunk.job.number)
        start_s = time.perf_counter()
        entry = self._pending[number] = _PendingChunk(chunk)
        try:
            if chunk.job.number not in self._begun_jobs:
                self._begun_jobs.add(chunk.job.number)
                trace.point("JOB_START", job=chunk.job.id, rows=chunk.job.rows)
            batch = self._try_again(lambda: self._batch_of(chunk))
            if batch is None:
                self._back(number, ChunkResult([], complete=False, is_on_tape=True))
                return
            entry.reading_s = time.perf_counter() - start_s
            entry.counted_s = self._clock.add(chunk.job.number, entry.reading_s)
            entry.stop_check = self._stop_check_of(chunk.job.id)
            self._pool.submit(number, batch, entry.stop_check)
        except BaseException as error:  # a bug must not stop other jobs
            if isinstance(error, CatalogError) and _is_of_all(error):
                self._back(number, ChunkResult([], complete=False))
                raise  # so that it is retried after a pause
            if not isinstance(error, SwatheError):
                log.exception("%s: cannot be sent to the pool", _chunk_name(chunk))
            self._back(number, ChunkResult([], complete=False, failure=describe_error(error)))

    def _stop_check_of(self, job: str) -> _StopCheck:
        """Return the stop flag of a job: shared by its chunks, and rarely checked."""
        for entry in list(self._pending.values()):
            stop_check = entry.stop_check
            if stop_check is not None and stop_check.job == job and not stop_check.is_stopped:
                return stop_check
        return _StopCheck(self._jobs, job, self._stopping)

    def _back(self, number: int, result: ChunkResult) -> None:
        """Save the result of a chunk. Never raises: the caller serves other jobs too."""
        entry = self._pending.pop(number)
        chunk = entry.chunk
        if result.complete:
            self._pace.note(chunk, len(result.rows), entry.reading_s + result.work_s)
        # A divided batch reports the sum of its parts, which may have run at once.
        seconds = min(result.work_s, time.perf_counter() - entry.at)
        seconds = entry.counted_s + self._clock.add(chunk.job.number, seconds)
        self._clock.leave(chunk.job.number)
        try:
            self._keep_result(chunk, replace(result, work_s=seconds))
        except BaseException as error:
            log.exception("%s: its result cannot be saved", _chunk_name(chunk))
            self._give_up(chunk, describe_error(error))
        self._jobs.wake()

    def _keep_result(self, chunk: Chunk, result: ChunkResult) -> None:
        """Mark rows as finished, and close the job after its last row."""
        catalog = self._jobs.catalog
        rows = self._insist(lambda: self._jobs.outputs.add(chunk.job, result.rows))
        if rows is None:
            return
        result = replace(result, rows=rows)
        job = self._insist(lambda: catalog.finish_chunk(chunk, result))
        if job is not None:
            self.counts.add(result, job)
            self._jobs.note_progress(job)
            with suppress(CatalogError):  # the next chunk checks again
                job = self._jobs.end_if_too_much(job)
        if job is None:
            self._tell_end(chunk, "cancelled")
            with suppress(SwatheError):  # `tidy` removes the rest, and reports it
                self._jobs.remove_orphan(chunk.job.id)
        elif job.phase in ("COMPLETED", "ERROR"):
            self._tell_end(chunk, "ok" if job.phase == "COMPLETED" else "error")
            self._record_outcome(job)
        elif job.phase == "ABORTED":
            self._tell_end(chunk, "cancelled")

    def _give_up(self, chunk: Chunk, reason: str) -> None:
        """End a job whose results cannot be saved; finished rows stay."""
        self._tell_end(chunk, "error")
        try:
            self._insist(lambda: self._jobs.catalog.give_up(chunk, reason))
        except Exception:
            log.exception("%s: the job cannot be ended", _chunk_name(chunk))

    def _insist(self, write: Callable[[], T]) -> T | None:
        """Write to the catalogue; if it is unavailable, retry until it is back.

        If the runner must stop before that, return `None`: the next one does these rows again.

        Raises:
            CatalogError: If the error is not temporary.
        """
        me = threading.get_ident()
        try:
            for pause_s in pauses(KEEP_AGAIN_S):
                try:
                    return self._try_again(write)
                except CatalogError as error:
                    if not _is_of_all(error):
                        raise
                    self._save_troubles[me] = f"results cannot be saved: {error}"
                    log.warning("%s; next attempt in %g s", error, pause_s)
                    if self._stopping.wait(pause_s):
                        break
            return None
        finally:
            self._save_troubles.pop(me, None)

    def _try_again(self, act: Callable[[], T]) -> T:
        """Use the catalogue; retry a few times if the error may be caused by the job."""
        for pause_s in islice(pauses(KEEP_AGAIN_S), TRIES - 1):
            try:
                return act()
            except CatalogError as error:
                if _is_of_all(error) or self._stopping.is_set():
                    raise
                log.warning("%s; next attempt in %g s", error, pause_s)
                self._stopping.wait(pause_s)
        return act()

    def _tell_end(self, chunk: Chunk, result: str) -> None:
        if chunk.job.number in self._begun_jobs:
            self._begun_jobs.discard(chunk.job.number)
            trace.point("JOB_END", job=chunk.job.id, rows=chunk.job.rows, result=result)

    def _record_outcome(self, job: JobRecord) -> None:
        """Record in the catalogue how the prediction turned out."""
        self._pace.forget(job.number)
        self._jobs.remove_inputs(job)
        if job.predicted is None:
            return
        low_s, high_s = job.predicted["interval_s"]
        outcome = Outcome(
            at=job.ended_at or job.created_at,
            host=this_host(),
            summary=f"job of {job.rows:,} rows, {job.options.get('operation', 'cut')}",
            targets=job.counts["ok"],
            root=job.predicted["root"],
            predicted_s=job.predicted["median_s"],
            low_s=low_s,
            high_s=high_s,
            actual_s=job.work_s,
            predicted_bytes=job.predicted["bytes"],
            actual_bytes=job.bytes_moved,
            predicted_requests=job.predicted["requests"],
            actual_requests=job.requests,
        )
        try:
            self._jobs.catalog.add_outcome(outcome)
            if timings := _swathe.take_timings():
                from swathe.costs.fit.from_real_reads import feed_back

                feed_back(self._jobs.catalog, timings)
        except SwatheError as error:
            with suppress(SwatheError):  # it was just deleted, or nothing can be saved
                self._jobs.note(job.id, f"the prediction was not recorded: {error}")

    def _keep(self) -> None:
        """Renew this runner's lease, and release the work of dead ones."""
        if self._stopping.wait(RENEW_S):
            return
        self._jobs.catalog.renew_leases(self._name, LEASE_S)
        if self._free_chunks():
            self._jobs.wake()

    def _tidy(self) -> None:
        """Remove expired jobs, and the results of deleted ones."""
        self._jobs.tidy(self._stopping.is_set)
        self._jobs.await_deletion(RENEW_S, self._stopping.is_set)


@dataclass
class _PendingChunk:
    """A chunk sent to the pool.

    Attributes:
        reading_s: seconds it took to read; `counted_s` of them are counted for the job.
        stop_check: flag to stop it.
        at: when it was leased.
    """

    chunk: Chunk
    reading_s: float = 0.0
    counted_s: float = 0.0
    stop_check: _StopCheck | None = None
    at: float = field(default_factory=time.perf_counter)

    @property
    def work(self) -> Work:
        """Return its kind of work."""
        return _work_of(self.chunk)


class _StopCheck:
    """The stop flag of a job: asked often, it checks the job twice a second."""

    def __init__(self, jobs: Jobs, job: str, stopping: threading.Event) -> None:
        self._jobs, self.job, self._stopping = jobs, job, stopping
        self._checked_at = time.monotonic()
        self.is_stopped = False

    def __call__(self) -> bool:
        if self._stopping.is_set():
            return True
        now = time.monotonic()
        if not self.is_stopped and now - self._checked_at > IDLE_S / 2:
            self._checked_at = now
            with suppress(CatalogError):  # the catalogue is unavailable: running work continues
                self.is_stopped = not self._jobs.is_executing(self.job)
        return self.is_stopped


class _Pace:
    """Rows of each job that make a chunk of the intended duration."""

    def __init__(self, batch_s: float) -> None:
        self._batch_s = batch_s
        self._lock = threading.Lock()
        self._rows: dict[tuple[int, bool], float] = {}

    def rows(self, job: JobRecord, of_results: bool) -> int:
        with self._lock:
            pace = self._rows.get((job.number, of_results))
        if pace is not None:
            return max(1, int(pace))
        if of_results:
            return 1
        if job.predicted is not None and job.predicted["median_s"] > 0:
            per_s = job.inputs / job.predicted["median_s"]
            return max(1, min(FIRST_CHUNK, int(per_s * self._batch_s)))
        return FIRST_CHUNK

    def note(self, chunk: Chunk, rows: int, seconds: float) -> None:
        if rows == 0:
            return
        key = (chunk.job.number, chunk.first >= chunk.job.inputs)
        with self._lock:
            self._rows[key] = min(self._batch_s / max(seconds, 1e-6), MOST_GROWTH) * rows

    def forget(self, job: int) -> None:
        with self._lock:
            for key in ((job, False), (job, True)):
                self._rows.pop(key, None)


class _Clock:
    """Seconds in which at least one thread worked on a job, each counted once.

    Waiting for a thread, for example behind batches of other jobs, does not count.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: Counter[int] = Counter()
        self._spans: dict[int, deque[tuple[float, float]]] = {}

    def enter(self, job: int) -> None:
        """Note that a chunk of a job was leased."""
        with self._lock:
            self._pending[job] += 1
            self._spans.setdefault(job, deque(maxlen=SPANS))

    def add(self, job: int, seconds: float) -> float:
        """Count a thread that worked until now; return the seconds not counted before."""
        with self._lock:
            now = time.perf_counter()
            first, known_s = now - seconds, 0.0
            spans = self._spans[job]
            while spans and spans[-1][1] >= first:
                start_s, end_s = spans.pop()
                first, known_s = min(first, start_s), known_s + end_s - start_s
            spans.append((first, now))
            return max(0.0, now - first - known_s)  # rounding

    def leave(self, job: int) -> None:
        """Note that a chunk came back."""
        with self._lock:
            self._pending[job] -= 1
            if not self._pending[job]:
                del self._pending[job], self._spans[job]


def _is_of_all(error: CatalogError) -> bool:
    """Check whether an error concerns the database, not one job: results are saved once it is over.

    If a person must fix it, `Runner.trouble` reports it meanwhile.
    """
    return may_pass(error) or isinstance(error, CatalogSetupError)


def _work_of(chunk: Chunk) -> Work:
    return work_of(Options.from_catalog(chunk.job.options), chunk.first >= chunk.job.inputs)


def _chunk_name(chunk: Chunk) -> str:
    return f"job {chunk.job.id}: rows {chunk.first} to {chunk.last}"


def _start_time(pid: int) -> str:
    """Return the start time of a process as the kernel states it; empty if there is none."""
    try:
        stat_text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The process name may contain any character.
    return stat_text.rpartition(")")[2].split()[19]


def _is_dead(runner: str) -> bool:
    """Check whether a runner belongs to a process of this host that no longer exists."""
    try:
        host, pid, start, _ = runner.split(" ")
        return host == this_host() and _start_time(int(pid)) != start
    except ValueError:
        return True
