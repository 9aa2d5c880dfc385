"""Leases: rows are leased to runners in chunks, by position.

A leased chunk has a row of its own. The transaction that marks its job rows also deletes that row.
So if a runner dies, its work is either done or still there for another runner.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.database_errors import may_pass, remedy
from swathe.catalog.group_runs import save_group_runs
from swathe.catalog.jobs.blocks import (
    LONGEST_REASON,
    end_of_object,
    mark_rows,
    parts_between,
    rows_with_status,
)
from swathe.catalog.jobs.mapping import add_notes, fail, to_job_record
from swathe.catalog.jobs.shares import Shares, groups_with_room, in_turn
from swathe.catalog.records.checks import plain_text
from swathe.catalog.records.jobs import (
    ACTIVE,
    AT_WORK,
    TO_RETRY,
    UNDER_WAY,
    Chunk,
    ChunkResult,
    ChunkState,
    JobRecord,
    Share,
)
from swathe.catalog.tables import JobChunkTable, JobTable
from swathe.core.errors import CatalogError
from swathe.core.row_record import RowStatus
from swathe.core.row_table import RowTable

log = logging.getLogger(__name__)

LEASE_LOCK = 0x5357415448454C
"""Advisory lock of PostgreSQL: of all portals one leases at a time."""
LARGEST_CHUNK = 5_000
DEADLY = 2
"""Deaths of runners after which a chunk is divided."""
DEATHS = 3
"""Deaths of runners after which a single row is an error; the last two times nothing else was
running."""
PARTS = 32
"""Parts of a divided chunk: the deadly row is soon alone."""


class Leases(Database):
    """Chunks leased to runners."""

    def take_chunk(
        self,
        runner: str,
        lease_s: float,
        size: Callable[[JobRecord, bool], int],
        accepts: Callable[[JobRecord, bool], bool] = lambda _job, _results: True,
        shares: Shares = lambda _owner: Share(),
    ) -> Chunk | None:
        """Lease a chunk to a runner; `None` if there is no work.

        `in_turn` says which job comes first. `size` returns the approximate number of rows of a
        job's chunk, or of a chunk of combined results; `accepts` whether the runner can work on
        such a chunk now. No user gets more programs than `shares` allows.
        An object is not divided over chunks unless it has more than LARGEST_CHUNK rows.
        """
        lease_until = datetime.now(UTC) + timedelta(seconds=lease_s)
        with self._reading() as session:
            # Usually there is no work, and others want to write.
            work = select(JobTable.number).where(JobTable.phase.in_(AT_WORK)).limit(1)
            if session.scalar(work) is None:
                return None
        with self._writing() as session:
            if not self._on_sqlite:
                # Else two portals could give a user the same slot.
                session.execute(select(func.pg_advisory_xact_lock(LEASE_LOCK)))
            for number in in_turn(session, shares):
                try:
                    with session.begin_nested():
                        chunk = _lease_chunk(
                            session, number, runner, lease_until, size, accepts, shares
                        )
                except DBAPIError as error:
                    if may_pass(error) or remedy(error) is not None:
                        raise
                    _give_up(session, number, self._message_of(error.orig or error))
                except CatalogError as error:  # the job is damaged; others must still be served
                    _give_up(session, number, str(error))
                except Exception as error:  # the job cannot be understood: its error or a bug
                    log.exception("job %d: its rows cannot be leased", number)
                    reason = f"its rows cannot be leased: {type(error).__name__}: {error}"
                    _give_up(session, number, reason)
                else:
                    if chunk is not None:
                        return chunk
        return None

    def finish_chunk(self, chunk: Chunk, result: ChunkResult) -> JobRecord | None:
        """Mark rows as finished, and return the others to the queue.

        Returns the updated job; `None` if the chunk is no longer leased to this runner: then
        nothing is marked.
        """
        with self._writing() as session:
            job = session.get(JobTable, chunk.job.number, with_for_update=True)
            lease = session.get(JobChunkTable, (chunk.job.number, chunk.first))
            if job is None or lease is None or lease.runner != chunk.runner:
                return None
            mark_results(session, job, RowTable.of(result.rows))
            job.work_s += result.work_s
            job.bytes_moved += result.bytes_moved
            job.requests += result.requests
            job.scratch_bytes += result.scratch_bytes
            add_notes(job, result.notes)
            save_group_runs(session, job.number, result.runs)
            if result.complete:
                session.delete(lease)
            else:
                _release(lease)
                if result.is_on_tape:
                    lease.state = "staging"
            session.flush()
            if result.failure is not None:
                fail(job, result.failure)
            end_complete_job(session, job)
            job.changes += 1
            session.flush()
            return to_job_record(job)

    def give_up(self, chunk: Chunk, reason: str) -> None:
        """End a job whose rows cannot be read or saved, and return a chunk of it.

        Finished rows stay. The job's rows are not read.
        """
        with self._writing() as session:
            _give_up(session, chunk.job.number, reason)
            session.execute(
                update(JobChunkTable)
                .where(
                    JobChunkTable.job == chunk.job.number,
                    JobChunkTable.first == chunk.first,
                    JobChunkTable.runner == chunk.runner,
                )
                .values(state="free", runner=None, lease_until=None)
                .execution_options(synchronize_session=False)
            )

    def renew_leases(self, runner: str, lease_s: float) -> None:
        """Renew the leases of a runner."""
        until = datetime.now(UTC) + timedelta(seconds=lease_s)
        with self._writing() as session:
            session.execute(
                update(JobChunkTable)
                .where(JobChunkTable.runner == runner, JobChunkTable.state == "taken")
                .values(lease_until=until)
            )

    def free_chunks(
        self,
        is_dead: Callable[[str], bool],
        blames: Callable[[str, int], bool] = lambda _job, _first: False,
    ) -> int:
        """Take back the chunks of runners that are dead or whose lease has expired.

        Args:
            is_dead: returns whether a runner is known to be dead.
            blames: returns, by id of the job and first position, whether the rows may have killed
                the runner. Then a chunk that DEADLY runners died of is divided, and a row that
                DEATHS died of is an error.

        Returns:
            Number of chunks taken back.
        """
        now = datetime.now(UTC)
        leases = select(JobChunkTable).where(JobChunkTable.state == "taken")
        with self._reading() as session:
            chunks = [
                (chunk.job, chunk.first, chunk.runner, is_dead(chunk.runner or ""))
                for chunk in session.scalars(leases)
                if chunk.lease_until is None
                or chunk.lease_until < now
                or is_dead(chunk.runner or "")
            ]
        return sum(self._free(*chunk, blames) for chunk in chunks)

    def _free(
        self,
        number: int,
        first: int,
        runner: str | None,
        dead: bool,
        blames: Callable[[str, int], bool],
    ) -> bool:
        """Take back one chunk, if that runner still has it."""
        with self._writing() as session:
            job = session.get(JobTable, number, with_for_update=True)
            chunk = session.get(JobChunkTable, (number, first), with_for_update=True)
            if job is None or chunk is None or chunk.state != "taken" or chunk.runner != runner:
                return False
            _release(chunk)
            if dead and job.phase in ACTIVE and blames(job.id, first):
                chunk.deaths += 1
                if chunk.deaths >= DEADLY:
                    _divide(session, job, chunk)
            return True

    def chunk_rows(self, chunk: Chunk) -> RowTable:
        """Return the unfinished rows of a chunk."""
        with self._reading() as session:
            # In a retry, few waiting rows may lie between many finished ones.
            parts = parts_between(session, chunk.job.number, chunk.first, chunk.last)
            return RowTable.concatenate([part.take(part.has("waiting")) for part in parts])


def _lease_chunk(
    session: Session,
    number: int,
    runner: str,
    lease_until: datetime,
    size: Callable[[JobRecord, bool], int],
    accepts: Callable[[JobRecord, bool], bool],
    shares: Shares,
) -> Chunk | None:
    """Lease a chunk of a job to a runner; `None` if there is none, or none that it accepts."""
    now = datetime.now(UTC)
    job = session.get(JobTable, number, with_for_update=True, populate_existing=True)
    if job is None or job.phase not in AT_WORK:
        return None
    lease = _free_chunk(session, job)
    of_results = (job.cursor if lease is None else lease.first) >= job.inputs
    if not accepts(to_job_record(job), of_results):
        return None
    most = LARGEST_CHUNK
    if is_program := of_results and job.groups is not None:
        most = min(most, groups_with_room(session, job, shares(job.owner)))
        if most == 0:
            return None
    if lease is None:
        lease = _next_chunk(session, job, lambda *of: min(most, size(*of)))
    elif is_program:
        lease = _first_waiting(session, job, lease, most)
    if lease is None:
        return None
    lease.state, lease.runner, lease.lease_until = "taken", runner, lease_until
    if job.phase == "QUEUED":
        job.phase, job.changes = "EXECUTING", job.changes + 1
        job.started_at = job.started_at or now
    job.served_at = now
    if is_program:
        job.program_at = now
    session.flush()
    return Chunk(to_job_record(job), lease.first, lease.last, runner, lease.deaths)


def _give_up(session: Session, number: int, reason: str) -> None:
    """End a job with a reason, without reading it; one that has ended is unchanged."""
    session.execute(
        update(JobTable)
        .where(JobTable.number == number, JobTable.phase.in_(ACTIVE))
        .values(
            phase="ERROR",
            ended_at=datetime.now(UTC),
            failure=plain_text(reason, LONGEST_REASON),
            changes=JobTable.changes + 1,
        )
        .execution_options(synchronize_session=False)
    )


def _chunks(job: JobTable, *states: ChunkState) -> Any:
    return (
        select(JobChunkTable)
        .where(JobChunkTable.job == job.number, JobChunkTable.state.in_(states))
        .order_by(JobChunkTable.first)
    )


def _free_chunk(session: Session, job: JobTable) -> JobChunkTable | None:
    """Return a chunk that was given back; combined results only once their inputs are finished."""
    chunk = session.scalars(_chunks(job, "free").limit(1)).one_or_none()
    if chunk is not None and chunk.first >= job.inputs and not _are_inputs_done(session, job):
        return None
    return chunk


def _first_waiting(
    session: Session, job: JobTable, lease: JobChunkTable, most: int
) -> JobChunkTable | None:
    """Return the first waiting groups of a chunk that was given back; the others are another chunk.

    Disk is reserved for each group of a lease, so none of them has run.
    """
    waiting: list[int] = []
    for part in parts_between(session, job.number, lease.first, lease.last):
        waiting += part.position[part.has("waiting")].tolist()
    if not waiting:
        session.delete(lease)
        return None
    first, last, deaths = waiting[0], lease.last, lease.deaths
    count = 1
    while count < min(most, len(waiting)) and waiting[count] == first + count:
        count += 1
    if first != lease.first:
        session.delete(lease)
        session.flush()
        lease = JobChunkTable(job=job.number, first=first, deaths=deaths)
        session.add(lease)
    lease.last = first + count - 1
    if count < len(waiting):
        rest = {"first": waiting[count], "last": last, "deaths": deaths}
        session.add(JobChunkTable(job=job.number, state="free", **rest))
    return lease


def _next_chunk(
    session: Session, job: JobTable, size: Callable[[JobRecord, bool], int]
) -> JobChunkTable | None:
    """Return the next rows that were never leased."""
    first = job.cursor
    if first >= job.rows:
        return None
    of_results = first >= job.inputs
    if of_results and not _are_inputs_done(session, job):
        return None
    end = job.rows if of_results else job.inputs
    row_count = min(max(1, size(to_job_record(job), of_results)), LARGEST_CHUNK)
    last = min(first + row_count, end) - 1
    if not of_results:
        last = end_of_object(session, job.number, last, min(first + LARGEST_CHUNK, end) - 1)
    chunk = JobChunkTable(job=job.number, first=first, last=last)
    session.add(chunk)
    job.cursor = last + 1
    return chunk


def _are_inputs_done(session: Session, job: JobTable) -> bool:
    before = _chunks(job, "free", "taken", "staging").where(JobChunkTable.first < job.inputs)
    return session.scalars(before.limit(1)).one_or_none() is None


def _release(chunk: JobChunkTable) -> None:
    chunk.state, chunk.runner, chunk.lease_until = "free", None, None


def _divide(session: Session, job: JobTable, chunk: JobChunkTable) -> None:
    """Divide a chunk that runners died of; a single row becomes an error."""
    first, last = chunk.first, chunk.last
    if first < last:
        chunks = min(PARTS, last - first + 1)
        starts = [first + (last - first + 1) * part // chunks for part in range(chunks)]
        ends = [*(start - 1 for start in starts[1:]), last]
        # Parts are divided after one more death; a single row fails after two more.
        chunk.last, chunk.deaths = ends[0], DEADLY - 1
        for start, end in zip(starts[1:], ends[1:], strict=True):
            session.add(
                JobChunkTable(
                    job=job.number, first=start, last=end, state="free", deaths=DEADLY - 1
                )
            )
        return
    if chunk.deaths < DEATHS:
        return
    waiting = [
        rows.take(rows.has("waiting")) for rows in parts_between(session, job.number, first, last)
    ]
    mark_results(
        session, job, RowTable.concatenate(waiting).end("error", "stopped the worker twice")
    )
    session.delete(chunk)
    session.flush()
    end_complete_job(session, job)
    job.changes += 1


def add_groups(
    job: JobTable, more: Mapping[RowStatus, int], fewer: Mapping[RowStatus, int]
) -> None:
    """Add groups to the counts of a job of an algorithm by status, and subtract others."""
    if job.groups is not None:
        # A new mapping: the database does not notice changes within one.
        job.groups = {
            status: number + more.get(status, 0) - fewer.get(status, 0)
            for status, number in job.groups.items()
        }


def _has_results(session: Session, job: JobTable) -> bool:
    """Check whether a row, or a combined result if the job makes some, has succeeded."""
    if job.ok == 0 or job.inputs == job.rows:
        return job.ok > 0
    parts = parts_between(session, job.number, job.inputs, job.rows - 1)
    return any(part.has("ok").any() for part in parts)


def mark_results(session: Session, job: JobTable, rows: RowTable) -> None:
    """Store the results of rows, and count them."""
    mark_rows(session, job.number, rows)
    counts = rows.counts()
    groups = rows.take(rows.position >= job.inputs).counts()
    add_groups(job, groups, {"waiting": sum(groups.values())})
    job.waiting -= len(rows)
    job.ok += counts["ok"]
    job.no_overlap += counts["no-overlap"]
    job.missing += counts["missing"]
    job.error += counts["error"]
    # Inputs of combined results are not stored.
    job.bytes += int(rows.bytes[rows.result < 0].sum())


def end_complete_job(session: Session, job: JobTable) -> None:
    """End a job without remaining work; if all that remains waits for tape, it is staging."""
    session.flush()
    if job.phase not in UNDER_WAY or job.cursor < job.inputs:
        return
    columns = JobChunkTable.state, JobChunkTable.first < job.inputs
    chunks = session.execute(
        select(*columns).where(JobChunkTable.job == job.number).distinct()
    ).all()
    if {state for state, is_input in chunks if is_input} == {"staging"}:
        job.phase = "STAGING"
        return
    if chunks or job.cursor < job.rows:
        return
    job.phase, job.ended_at = "COMPLETED", datetime.now(UTC)
    if job.error + job.missing > 0 and not _has_results(session, job):
        first = rows_with_status(session, job.number, TO_RETRY)[0].reason
        what = "row succeeded" if job.inputs == job.rows else "result was made"
        job.phase, job.failure = "ERROR", f"no {what}; the first error: {first}"
