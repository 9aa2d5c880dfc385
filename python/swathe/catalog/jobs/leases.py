"""Who works on what: rows are given to runners in chunks, by position.

A chunk is a row of its own while a runner has it, and is gone when it is done, in the transaction
that marks its rows: so whoever dies, what a runner had is either done, or still there to be given
to another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.database_errors import may_pass, remedy
from swathe.catalog.jobs.blocks import (
    LONGEST_REASON,
    end_of_object,
    mark_rows,
    parts_between,
    rows_with_status,
)
from swathe.catalog.jobs.mapping import add_notes, fail, kept_job
from swathe.catalog.jobs.row_table import RowTable
from swathe.catalog.records.checks import plain_text
from swathe.catalog.records.jobs import ACTIVE, FAILED, Chunk, ChunkResult, ChunkState, JobRecord
from swathe.catalog.tables import JobChunkTable, JobTable
from swathe.core.errors import CatalogError

log = logging.getLogger(__name__)

LARGEST_CHUNK = 5_000
DEADLY = 2
"""A chunk is divided when so many runners have died while they had it."""
DEATHS = 3
"""A single row is an error when so many have: the last two times nothing else was under way."""
PARTS = 32
"""Into so many a chunk is divided: the row to blame is soon alone."""


class Chunks(Database):
    """What runners have taken."""

    def take_chunk(
        self, runner: str, lease_s: float, size: Callable[[JobRecord, bool], int]
    ) -> Chunk | None:
        """Give a runner something to do, if there is.

        It is of the user who was served longest ago, and of the job of theirs that was. `size`
        tells how many rows a chunk of a job has about, and of its results if so. An object is
        not divided over chunks unless it has more than LARGEST_CHUNK rows.
        """
        lease_until = datetime.now(UTC) + timedelta(seconds=lease_s)
        with self._reading() as session:
            # Most of the time there is nothing, and others want to write.
            if not _in_turn(session):
                return None
        with self._writing() as session:
            for number in _in_turn(session):
                try:
                    with session.begin_nested():
                        chunk = _taken(session, number, runner, lease_until, size)
                except DBAPIError as error:
                    if may_pass(error) or remedy(error) is not None:
                        raise
                    _give_up(session, number, self._told(error.orig or error))
                except CatalogError as error:  # it is damaged; those behind it get their turn
                    _give_up(session, number, str(error))
                except Exception as error:  # it makes no sense to us: its fault or ours
                    log.exception("job %d: nothing of it can be given out", number)
                    told = f"nothing of it can be given out: {type(error).__name__}: {error}"
                    _give_up(session, number, told)
                else:
                    if chunk is not None:
                        return chunk
        return None

    def finish_chunk(self, chunk: Chunk, done: ChunkResult) -> JobRecord | None:
        """Mark rows as done, and give back those that are not.

        Gives the job as it is then, or nothing where the chunk is no longer this runner's: then
        nothing is marked.
        """
        with self._writing() as session:
            job = session.get(JobTable, chunk.job.number, with_for_update=True)
            taken = session.get(JobChunkTable, (chunk.job.number, chunk.first))
            if job is None or taken is None or taken.runner != chunk.runner:
                return None
            _mark(session, job, RowTable.of(done.rows))
            job.busy_s += done.seconds
            job.bytes_moved += done.bytes_moved
            job.requests += done.requests
            add_notes(job, done.notes)
            if done.complete:
                session.delete(taken)
            else:
                _release(taken)
            session.flush()
            if done.failure is not None:
                fail(job, done.failure)
            end_if_done(session, job)
            job.changes += 1
            session.flush()
            return kept_job(job)

    def give_up(self, chunk: Chunk, reason: str) -> None:
        """End a job of which something cannot be read or kept, and give back a chunk of it.

        What is done of it stays. Nothing of it is read for that.
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
        """Say that a runner is alive."""
        until = datetime.now(UTC) + timedelta(seconds=lease_s)
        with self._writing() as session:
            session.execute(
                update(JobChunkTable)
                .where(JobChunkTable.runner == runner, JobChunkTable.state == "taken")
                .values(lease_until=until)
            )

    def free_chunks(self, is_dead: Callable[[str], bool], *, blames: bool = False) -> int:
        """Take chunks from runners that are dead, or have not said for too long that they live.

        Args:
            is_dead: whether a runner is known to be dead.
            blames: whether its rows may be what it died of: they are cut by the runner itself. Then
                a chunk that has seen DEADLY runners die is divided, and a row that has seen DEATHS
                is an error.

        Returns:
            How many chunks were taken back.
        """
        now = datetime.now(UTC)
        taken = select(JobChunkTable).where(JobChunkTable.state == "taken")
        with self._reading() as session:
            chunks = [
                (chunk.job, chunk.first, chunk.runner, is_dead(chunk.runner or ""))
                for chunk in session.scalars(taken)
                if chunk.lease_until is None
                or chunk.lease_until < now
                or is_dead(chunk.runner or "")
            ]
        return sum(self._free(*chunk, blames) for chunk in chunks)

    def _free(self, number: int, first: int, runner: str | None, dead: bool, blames: bool) -> bool:
        """Take back one chunk, if it is still that runner's."""
        with self._writing() as session:
            job = session.get(JobTable, number, with_for_update=True)
            chunk = session.get(JobChunkTable, (number, first), with_for_update=True)
            if job is None or chunk is None or chunk.state != "taken" or chunk.runner != runner:
                return False
            _release(chunk)
            if dead and blames and job.phase in ACTIVE:
                chunk.deaths += 1
                if chunk.deaths >= DEADLY:
                    _divide(session, job, chunk)
            return True

    def chunk_rows(self, chunk: Chunk) -> RowTable:
        """Give the rows of a chunk that are still to do."""
        with self._reading() as session:
            # Of those tried again, few may wait among many that are done.
            parts = parts_between(session, chunk.job.number, chunk.first, chunk.last)
            return RowTable.joined([part.take(part.has("waiting")) for part in parts])


def _taken(
    session: Session,
    number: int,
    runner: str,
    lease_until: datetime,
    size: Callable[[JobRecord, bool], int],
) -> Chunk | None:
    """Take something of a job for a runner, if there is."""
    now = datetime.now(UTC)
    job = session.get(JobTable, number, with_for_update=True, populate_existing=True)
    if job is None or job.phase not in ("QUEUED", "EXECUTING"):
        return None
    taken = _free_chunk(session, job) or _next_chunk(session, job, size)
    if taken is None:
        return None
    taken.state, taken.runner, taken.lease_until = "taken", runner, lease_until
    if job.phase == "QUEUED":
        job.phase, job.changes = "EXECUTING", job.changes + 1
        job.started_at = job.started_at or now
    job.served_at = now
    session.flush()
    return Chunk(kept_job(job), taken.first, taken.last, runner, taken.deaths)


def _give_up(session: Session, number: int, reason: str) -> None:
    """End a job for a reason, without reading it; one that has ended stays as it is."""
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


def _in_turn(session: Session) -> list[int]:
    """Give the jobs that may have something to do, in the order they are to be served."""
    active = session.execute(
        select(JobTable.number, JobTable.owner, JobTable.served_at).where(
            JobTable.phase.in_(("QUEUED", "EXECUTING"))
        )
    ).all()
    if not active:
        return []
    served = session.execute(
        select(JobTable.owner, func.max(JobTable.served_at))
        .where(JobTable.owner.in_({owner for _, owner, _ in active}))
        .group_by(JobTable.owner)
    ).all()
    never = datetime.min.replace(tzinfo=UTC)
    users = {owner: at or never for owner, at in served}
    # Of a job deleted meanwhile the owner may be gone.
    turns = [
        (users.get(owner, never), served_at or never, number) for number, owner, served_at in active
    ]
    return [number for *_, number in sorted(turns)]


def _chunks(job: JobTable, *states: ChunkState) -> Any:
    return (
        select(JobChunkTable)
        .where(JobChunkTable.job == job.number, JobChunkTable.state.in_(states))
        .order_by(JobChunkTable.first)
    )


def _free_chunk(session: Session, job: JobTable) -> JobChunkTable | None:
    """Give one that was given back; of results only when all that goes into them is done."""
    chunk = session.scalars(_chunks(job, "free").limit(1)).one_or_none()
    if chunk is not None and chunk.first >= job.inputs and not _inputs_done(session, job):
        return None
    return chunk


def _next_chunk(
    session: Session, job: JobTable, size: Callable[[JobRecord, bool], int]
) -> JobChunkTable | None:
    """Give the next rows that were never given out."""
    first = job.cursor
    if first >= job.rows:
        return None
    of_results = first >= job.inputs
    if of_results and not _inputs_done(session, job):
        return None
    end = job.rows if of_results else job.inputs
    wanted = min(max(1, size(kept_job(job), of_results)), LARGEST_CHUNK)
    last = min(first + wanted, end) - 1
    if not of_results:
        last = end_of_object(session, job.number, last, min(first + LARGEST_CHUNK, end) - 1)
    chunk = JobChunkTable(job=job.number, first=first, last=last)
    session.add(chunk)
    job.cursor = last + 1
    return chunk


def _inputs_done(session: Session, job: JobTable) -> bool:
    before = _chunks(job, "free", "taken").where(JobChunkTable.first < job.inputs)
    return session.scalars(before.limit(1)).one_or_none() is None


def _release(chunk: JobChunkTable) -> None:
    chunk.state, chunk.runner, chunk.lease_until = "free", None, None


def _divide(session: Session, job: JobTable, chunk: JobChunkTable) -> None:
    """Divide a chunk that runners died of; of a single row this makes an error."""
    first, last = chunk.first, chunk.last
    if first < last:
        chunks = min(PARTS, last - first + 1)
        starts = [first + (last - first + 1) * part // chunks for part in range(chunks)]
        ends = [*(start - 1 for start in starts[1:]), last]
        # They are divided again after one more; a row that is alone has two more.
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
    _mark(session, job, RowTable.joined(waiting).ended("error", "stopped the worker twice"))
    session.delete(chunk)
    session.flush()
    end_if_done(session, job)
    job.changes += 1


def _mark(session: Session, job: JobTable, rows: RowTable) -> None:
    mark_rows(session, job.number, rows)
    counts = rows.counts()
    job.waiting -= len(rows)
    job.ok += counts["ok"]
    job.no_overlap += counts["no-overlap"]
    job.missing += counts["missing"]
    job.error += counts["error"]
    # What goes into other results is not kept.
    job.bytes += int(rows.bytes[rows.result < 0].sum())


def end_if_done(session: Session, job: JobTable) -> None:
    """End a job of which nothing is left to do."""
    session.flush()
    if job.phase not in ("QUEUED", "EXECUTING") or job.cursor < job.rows:
        return
    if session.scalars(_chunks(job, "free", "taken").limit(1)).one_or_none() is not None:
        return
    job.phase, job.ended_at = "COMPLETED", datetime.now(UTC)
    if job.ok == 0 and job.error + job.missing > 0:
        first = rows_with_status(session, job.number, FAILED)[0].reason
        job.phase, job.failure = "ERROR", f"no row could be done; the first: {first}"
