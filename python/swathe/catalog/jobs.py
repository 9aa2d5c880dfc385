"""Jobs: what is asked for, what was done of it, and who works on what.

Rows are given to runners in chunks, by position. A chunk is a row of its own while a runner has it
and is gone when it is done, in the transaction that marks its rows: so whoever dies, what a runner
had is either done or still there to be given to another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.tables import JobChunkTable, JobRowTable, JobTable
from swathe.catalog.values import plain_text
from swathe.catalog.work import (
    ACTIVE,
    STATUSES,
    Chunk,
    ChunkState,
    Done,
    Held,
    KeptJob,
    KeptRow,
    Phase,
    RowStatus,
)
from swathe.errors import JobError, NoSuchJobError

FAILED: tuple[RowStatus, ...] = ("error", "missing")
LARGEST_CHUNK = 5_000
LONGEST_REASON = 1_000
LONGEST_NAME = 1_000
NOTES_KEPT = 50
WRITTEN_AT_ONCE = 10_000
LONGEST_SOURCE = 10_000


class JobQueue(Database):
    """The jobs of all users."""

    def add_job(
        self, job: KeptJob, rows: Iterable[KeptRow], check: Callable[[Held], None]
    ) -> KeptJob:
        """Keep a job with its rows; `check` raises where its user has too much already.

        The number that `job` has does not count.
        """
        values = _job_values(job)
        with self._writing() as session:
            check(_held(session, job.owner))
            number = session.scalars(insert(JobTable).returning(JobTable.number), [values]).one()
            _insert_rows(session, number, rows)
            return _kept(_found(session, job.id))

    def job(self, job_id: str) -> KeptJob:
        """Give a job.

        Raises:
            NoSuchJobError: where there is none.
        """
        with self._reading() as session:
            return _kept(_found(session, job_id))

    def jobs(
        self,
        owner: str | None = None,
        phases: Sequence[Phase] = (),
        after: datetime | None = None,
        last: int | None = None,
    ) -> list[KeptJob]:
        """Give jobs, the newest first."""
        query = select(JobTable).order_by(JobTable.number.desc())
        if owner is not None:
            query = query.where(JobTable.owner == owner)
        if phases:
            query = query.where(JobTable.phase.in_(phases))
        if after is not None:
            query = query.where(JobTable.created_at > after)
        if last is not None:
            query = query.limit(max(0, last))
        with self._reading() as session:
            return [_kept(row) for row in session.scalars(query)]

    def job_rows(
        self, job: int, *, start: int = 0, limit: int = 1000, status: RowStatus | None = None
    ) -> list[KeptRow]:
        """Give rows of a job, by its number, in the user's order."""
        query = select(*ROW_COLUMNS).where(JobRowTable.job == job, JobRowTable.number >= start)
        if status is not None:
            query = query.where(JobRowTable.status == status)
        return self._rows(query.order_by(JobRowTable.number).limit(max(0, limit)))

    def chunk_rows(self, chunk: Chunk) -> list[KeptRow]:
        """Give the rows of a chunk that are still to do."""
        query = select(*ROW_COLUMNS).where(
            JobRowTable.job == chunk.job.number,
            JobRowTable.position.between(chunk.first, chunk.last),
            JobRowTable.status == "waiting",
        )
        return self._rows(query.order_by(JobRowTable.position))

    def rows_of_result(self, job: int, result: int) -> list[KeptRow]:
        """Give the rows that go into a result, in the user's order."""
        query = select(*ROW_COLUMNS).where(JobRowTable.job == job, JobRowTable.result == result)
        return self._rows(query.order_by(JobRowTable.number))

    def row_named(self, job: int, name: str) -> KeptRow | None:
        """Give the row whose file has a name, without suffix."""
        if plain_text(name, len(name)) != name:
            return None  # no database can hold it
        query = select(*ROW_COLUMNS).where(JobRowTable.job == job, JobRowTable.name == name)
        return next(iter(self._rows(query)), None)

    def _rows(self, query: Any) -> list[KeptRow]:
        with self._reading() as session:
            return [_kept_row(*row) for row in session.connection().execute(query)]

    # ---- What users change

    def start_job(self, job_id: str, check: Callable[[Held], None]) -> KeptJob:
        """Let a pending job run. Others stay as they are."""

        def change(session: Session, job: JobTable) -> None:
            if job.phase == "PENDING":
                check(_held(session, job.owner))
                job.phase = "QUEUED"
                _end_if_done(session, job)

        return self._change(job_id, change)

    def cancel_job(self, job_id: str) -> KeptJob:
        """Stop a job. One that has ended stays as it is."""

        def change(_session: Session, job: JobTable) -> None:
            if job.phase in ACTIVE:
                job.phase, job.ended_at = "ABORTED", datetime.now(UTC)

        return self._change(job_id, change)

    def resume_job(self, job_id: str, check: Callable[[Held], None]) -> KeptJob:
        """Let failed rows be worked on again, and those that were never done.

        Raises:
            JobError: where the job has not ended.
        """

        def change(session: Session, job: JobTable) -> None:
            if job.phase in ACTIVE:
                raise JobError(f"job {job.id}: it has not ended, its phase is {job.phase}")
            check(_held(session, job.owner))
            _retry(session, job)
            job.phase, job.failure, job.ended_at = "QUEUED", None, None
            _end_if_done(session, job)

        return self._change(job_id, change)

    def change_job(
        self, job_id: str, *, name: str | None = None, expires_at: datetime | None = None
    ) -> KeptJob:
        """Set what a job is called, or when it ends to be kept."""

        def change(_session: Session, job: JobTable) -> None:
            if name is not None:
                job.name = plain_text(name, LONGEST_NAME)
            if expires_at is not None:
                job.expires_at = expires_at

        return self._change(job_id, change)

    def delete_job(self, job_id: str) -> None:
        """Forget a job and its rows.

        Raises:
            NoSuchJobError: where there is none.
        """
        with self._writing() as session:
            number = _found(session, job_id, lock=True).number
            for table in (JobRowTable, JobChunkTable):
                session.execute(delete(table).where(table.job == number))
            session.execute(delete(JobTable).where(JobTable.number == number))

    def _change(self, job_id: str, change: Callable[[Session, JobTable], None]) -> KeptJob:
        with self._writing() as session:
            job = _found(session, job_id, lock=True)
            change(session, job)
            job.changes += 1
            session.flush()
            return _kept(job)

    def note_job(self, job_id: str, text: str) -> None:
        """Add to what the user of a job is told."""

        def change(_session: Session, job: JobTable) -> None:
            _add_notes(job, [text])

        self._change(job_id, change)

    def held(self, owner: str) -> Held:
        """Give how much a user has."""
        with self._reading() as session:
            return _held(session, owner)

    def expired_jobs(self) -> list[str]:
        """Give the ids of jobs whose time has come."""
        query = select(JobTable.id).where(JobTable.expires_at <= datetime.now(UTC))
        with self._reading() as session:
            return list(session.scalars(query))

    def job_state(self, job_id: str) -> tuple[Phase, int]:
        """Give the phase of a job and how often it has changed.

        Raises:
            NoSuchJobError: where there is none.
        """
        query = select(JobTable.phase, JobTable.changes).where(JobTable.id == _asked(job_id))
        with self._reading() as session:
            found = session.execute(query).one_or_none()
        if found is None:
            raise _unknown(job_id)
        return found[0], found[1]

    # ---- What runners do

    def take_chunk(
        self, runner: str, lease_s: float, size: Callable[[KeptJob, bool], int]
    ) -> Chunk | None:
        """Give a runner something to do, if there is.

        It is of the user who was served longest ago, and of the job of theirs that was. `size`
        tells how many rows a chunk of a job has about, and of its results if so. An object is
        not divided over chunks unless it has more than LARGEST_CHUNK rows.
        """
        now = datetime.now(UTC)
        with self._reading() as session:
            # Most of the time there is nothing, and others want to write.
            if not _in_turn(session):
                return None
        with self._writing() as session:
            for number in _in_turn(session):
                job = session.get(JobTable, number, with_for_update=True, populate_existing=True)
                if job is None or job.phase not in ("QUEUED", "EXECUTING"):
                    continue
                taken = _free_chunk(session, job) or _next_chunk(session, job, size)
                if taken is None:
                    continue
                taken.state, taken.runner = "taken", runner
                taken.lease_until = now + timedelta(seconds=lease_s)
                if job.phase == "QUEUED":
                    job.phase, job.changes = "EXECUTING", job.changes + 1
                    job.started_at = job.started_at or now
                job.served_at = now
                session.flush()
                return Chunk(_kept(job), taken.first, taken.last, runner)
        return None

    def finish_chunk(self, chunk: Chunk, done: Done) -> KeptJob | None:
        """Mark rows as done, and give back those that are not.

        Gives the job as it is then, or nothing where the chunk is no longer this runner's: then
        nothing is marked.
        """
        with self._writing() as session:
            job = session.get(JobTable, chunk.job.number, with_for_update=True)
            taken = session.get(JobChunkTable, (chunk.job.number, chunk.first))
            if job is None or taken is None or taken.runner != chunk.runner:
                return None
            _mark(session, job, done.rows)
            job.busy_s += done.seconds
            job.bytes_moved += done.bytes_moved
            job.requests += done.requests
            _add_notes(job, done.notes)
            if done.complete:
                session.delete(taken)
            else:
                _release(taken)
            session.flush()
            if done.failure is not None and job.phase in ACTIVE:
                job.phase, job.ended_at = "ERROR", datetime.now(UTC)
                job.failure = plain_text(done.failure, LONGEST_REASON)
            _end_if_done(session, job)
            job.changes += 1
            session.flush()
            return _kept(job)

    def renew_leases(self, runner: str, lease_s: float) -> None:
        """Say that a runner is alive."""
        until = datetime.now(UTC) + timedelta(seconds=lease_s)
        with self._writing() as session:
            session.execute(
                update(JobChunkTable)
                .where(JobChunkTable.runner == runner, JobChunkTable.state == "taken")
                .values(lease_until=until)
            )

    def free_chunks(self, is_dead: Callable[[str], bool]) -> int:
        """Take chunks from runners that are dead, or have not said for too long that they live."""
        now = datetime.now(UTC)
        taken = select(JobChunkTable).where(JobChunkTable.state == "taken")
        with self._reading() as session:
            if not session.scalars(taken.limit(1)).all():
                return 0
        with self._writing() as session:
            freed = 0
            for chunk in session.scalars(taken.with_for_update()):
                late = chunk.lease_until is None or chunk.lease_until < now
                if late or is_dead(chunk.runner or ""):
                    _release(chunk)
                    freed += 1
            return freed


def _found(session: Session, job_id: str, lock: bool = False) -> JobTable:
    query = select(JobTable).where(JobTable.id == _asked(job_id))
    job = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if job is None:
        raise _unknown(job_id)
    return job


def _asked(job_id: str) -> str:
    """Give an id as a database takes it, or one that no job has."""
    return job_id if plain_text(job_id, len(job_id)) == job_id else ""


def _unknown(job_id: str) -> NoSuchJobError:
    return NoSuchJobError(f"there is no job {job_id[:50]!r}; it may have expired")


def _held(session: Session, owner: str) -> Held:
    active = JobTable.phase.in_(ACTIVE)
    mine = JobTable.owner == owner
    jobs, rows = session.execute(
        select(func.count(), func.coalesce(func.sum(JobTable.waiting), 0)).where(mine, active)
    ).one()
    size = session.scalar(select(func.coalesce(func.sum(JobTable.bytes), 0)).where(mine))
    return Held(int(jobs), int(rows), int(size or 0))


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
    return [
        number
        for _, _, number in sorted(
            (users[owner], served_at or never, number) for number, owner, served_at in active
        )
    ]


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
    session: Session, job: JobTable, size: Callable[[KeptJob, bool], int]
) -> JobChunkTable | None:
    """Give the next rows that were never given out."""
    first = job.cursor
    if first >= job.rows:
        return None
    of_results = first >= job.inputs
    if of_results and not _inputs_done(session, job):
        return None
    end = job.rows if of_results else job.inputs
    wanted = min(max(1, size(_kept(job), of_results)), LARGEST_CHUNK)
    last = min(first + wanted, end) - 1
    if not of_results:
        last = _end_of_object(session, job, last, min(first + LARGEST_CHUNK, end) - 1)
    chunk = JobChunkTable(job=job.number, first=first, last=last)
    session.add(chunk)
    job.cursor = last + 1
    return chunk


def _end_of_object(session: Session, job: JobTable, at: int, most: int) -> int:
    source = (
        select(JobRowTable.source)
        .where(JobRowTable.job == job.number, JobRowTable.position == at)
        .scalar_subquery()
    )
    end = session.scalar(
        select(func.max(JobRowTable.position)).where(
            JobRowTable.job == job.number,
            JobRowTable.position.between(at, most),
            JobRowTable.source == source,
        )
    )
    return at if end is None else int(end)


def _inputs_done(session: Session, job: JobTable) -> bool:
    before = _chunks(job, "free", "taken").where(JobChunkTable.first < job.inputs)
    return session.scalars(before.limit(1)).one_or_none() is None


def _add_notes(job: JobTable, notes: Sequence[str]) -> None:
    told = [plain_text(note, LONGEST_REASON) for note in notes]
    # Another list: the database is not told of changes within one.
    job.notes = list(dict.fromkeys([*job.notes, *told]))[:NOTES_KEPT]


def _release(chunk: JobChunkTable) -> None:
    chunk.state, chunk.runner, chunk.lease_until = "free", None, None


def _mark(session: Session, job: JobTable, rows: Sequence[KeptRow]) -> None:
    if not rows:
        return
    _many(session, MARKED, (_marked_values(job.number, row) for row in rows))
    counts = Counter(row.status for row in rows)
    job.waiting -= len(rows)
    job.ok += counts["ok"]
    job.no_overlap += counts["no-overlap"]
    job.missing += counts["missing"]
    job.error += counts["error"]
    # What goes into other results is not kept.
    job.bytes += sum(row.bytes for row in rows if row.result is None)


def _end_if_done(session: Session, job: JobTable) -> None:
    """End a job of which nothing is left to do."""
    session.flush()
    if job.phase not in ("QUEUED", "EXECUTING") or job.cursor < job.rows:
        return
    if session.scalars(_chunks(job, "free", "taken").limit(1)).one_or_none() is not None:
        return
    job.phase, job.ended_at = "COMPLETED", datetime.now(UTC)
    if job.ok == 0 and job.error + job.missing > 0:
        first = session.scalar(
            select(JobRowTable.reason)
            .where(JobRowTable.job == job.number, JobRowTable.status.in_(FAILED))
            .order_by(JobRowTable.number)
            .limit(1)
        )
        job.phase, job.failure = "ERROR", f"no row could be done; the first: {first}"


def _retry(session: Session, job: JobTable) -> None:
    """Make failed rows, of which a second try may come out otherwise, wait again."""
    again = (
        JobRowTable.job == job.number,
        JobRowTable.status.in_(FAILED),
        # What the list itself had wrong stays wrong.
        (JobRowTable.x0.is_not(None)) | (JobRowTable.size_deg.is_not(None)),
    )
    failed: list[Any] = list(
        session.execute(
            select(JobRowTable.position, JobRowTable.status, JobRowTable.result).where(*again)
        )
    )
    into = {result for _, _, result in failed if result is not None}
    if into:
        failed += _retry_results(session, job, into, {position for position, _, _ in failed})
    session.execute(update(JobRowTable).where(*again).values(status="waiting", reason=""))
    counts = Counter(status for _, status, _ in failed)
    job.waiting += len(failed)
    job.error -= counts["error"]
    job.missing -= counts["missing"]
    job.ok -= counts["ok"]
    job.no_overlap -= counts["no-overlap"]
    covered = session.execute(
        select(JobChunkTable.first, JobChunkTable.last).where(JobChunkTable.job == job.number)
    ).all()
    left = [
        position
        for position, _, _ in failed
        if position < job.cursor and not any(first <= position <= last for first, last in covered)
    ]
    for first, last in _runs(sorted(left), job.inputs):
        session.add(JobChunkTable(job=job.number, first=first, last=last, state="free"))


def _retry_results(
    session: Session, job: JobTable, results: set[int], counted: set[int]
) -> list[Any]:
    """Make the results wait that rows go into which are tried again."""
    made = [
        row
        for row in session.execute(
            select(
                JobRowTable.position,
                JobRowTable.status,
                JobRowTable.result,
                JobRowTable.number,
                JobRowTable.bytes,
            ).where(JobRowTable.job == job.number, JobRowTable.position >= job.inputs)
        )
        if row.number in results and row.status != "waiting"
    ]
    waiting = update(JobRowTable).where(
        JobRowTable.job == job.number, JobRowTable.number == bindparam("number_of")
    )
    if made:
        session.connection().execute(
            waiting.values(status="waiting", reason="", bytes=0),
            [{"number_of": row.number} for row in made],
        )
    job.bytes -= sum(row.bytes for row in made)
    return [(row.position, row.status, None) for row in made if row.position not in counted]


def _runs(positions: Sequence[int], inputs: int) -> list[tuple[int, int]]:
    """Give few stretches that hold all positions: at most so many, none over the first result."""
    runs: list[tuple[int, int]] = []
    count = 0
    for position in positions:
        begins = not runs or count == LARGEST_CHUNK or (runs[-1][0] < inputs <= position)
        if begins:
            runs.append((position, position))
            count = 0
        runs[-1] = (runs[-1][0], position)
        count += 1
    return runs


COUNTED = ("waiting", "ok", "no_overlap", "missing", "error")
PLAIN = (
    "id",
    "owner",
    "name",
    "phase",
    "options",
    "created_at",
    "started_at",
    "ended_at",
    "expires_at",
    "rows",
    "inputs",
    "bytes",
    "predicted",
    "busy_s",
    "bytes_moved",
    "requests",
    "failure",
    "notes",
    "changes",
)
"""What a job has under the same name in the database."""


def _job_values(job: KeptJob) -> dict[str, Any]:
    values = {name: getattr(job, name) for name in PLAIN}
    for name, status in zip(COUNTED, STATUSES, strict=True):
        values[name] = job.counts[status]
    values["owner"] = plain_text(job.owner, 200)
    values["name"] = plain_text(job.name, LONGEST_NAME)
    values["parameters"] = [[plain_text(part, 100_000) for part in each] for each in job.parameters]
    # Rows that need no work come first.
    values["cursor"] = job.rows - job.counts["waiting"]
    return values


def _kept(job: JobTable) -> KeptJob:
    return KeptJob(
        number=job.number,
        counts={status: getattr(job, name) for name, status in zip(COUNTED, STATUSES, strict=True)},
        parameters=[(name, value) for name, value in job.parameters],
        **{name: getattr(job, name) for name in PLAIN},
    )


ROW_NAMES = (
    "number",
    "position",
    "result",
    "id",
    "name",
    "source",
    "hdu",
    "x0",
    "y0",
    "width",
    "height",
    "planes",
    "ra",
    "dec",
    "size_deg",
    "status",
    "reason",
    "bytes",
    "version",
    "sha256",
)
# Rows of plain columns: objects of SQLAlchemy take twice as long.
ROW_COLUMNS = [getattr(JobRowTable, name) for name in ROW_NAMES]


def _insert_rows(session: Session, job: int, rows: Iterable[KeptRow]) -> None:
    _many(
        session,
        f"INSERT INTO job_rows (job, {', '.join(ROW_NAMES)}) "
        f"VALUES ({', '.join('?' * (1 + len(ROW_NAMES)))})",
        (_row_values(job, row) for row in rows),
    )


def _many(session: Session, statement: str, values: Iterable[tuple[Any, ...]]) -> None:
    """Execute a statement with `?` for each of many rows.

    Not by way of SQLAlchemy, which takes longer than the database does.
    """
    connection = session.connection()
    if connection.dialect.paramstyle != "qmark":
        statement = statement.replace("?", "%s")
    left = iter(values)
    while batch := list(islice(left, WRITTEN_AT_ONCE)):
        connection.exec_driver_sql(statement, batch)


def _row_values(job: int, row: KeptRow) -> tuple[Any, ...]:
    return (
        job,
        row.number,
        row.position,
        row.result,
        plain_text(row.id, LONGEST_NAME),
        row.name,
        plain_text(row.source, LONGEST_SOURCE),
        row.hdu,
        *(row.box or (None,) * 4),
        row.planes and f"{row.planes[0]}:{row.planes[1]}",
        *(row.sky or (None,) * 3),
        row.status,
        plain_text(row.reason, LONGEST_REASON),
        row.bytes,
        row.version,
        row.sha256,
    )


MARKED = (
    "UPDATE job_rows SET x0 = ?, y0 = ?, width = ?, height = ?, status = ?, reason = ?, bytes = ?, "
    "version = ?, sha256 = ? WHERE job = ? AND number = ?"
)


def _marked_values(job: int, row: KeptRow) -> tuple[Any, ...]:
    return (
        *(row.box or (None,) * 4),
        row.status,
        plain_text(row.reason, LONGEST_REASON) if row.reason else "",
        row.bytes,
        row.version,
        row.sha256,
        job,
        row.number,
    )


def _kept_row(
    number: int,
    position: int,
    result: int | None,
    row_id: str,
    name: str,
    source: str,
    hdu: str | None,
    x0: int | None,
    y0: int | None,
    width: int | None,
    height: int | None,
    planes: str | None,
    ra: float | None,
    dec: float | None,
    size_deg: float | None,
    *outcome: Any,
) -> KeptRow:
    box = None
    if x0 is not None and y0 is not None and width is not None and height is not None:
        box = (x0, y0, width, height)
    sky = None
    if ra is not None and dec is not None and size_deg is not None:
        sky = (ra, dec, size_deg)
    pair = None
    if planes is not None:
        first, _, last = planes.partition(":")
        pair = int(first), int(last)
    return KeptRow(number, position, result, row_id, name, source, hdu, box, pair, sky, *outcome)
