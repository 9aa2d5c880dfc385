"""Jobs and their rows, from the database and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from swathe.catalog.tables import JobRowTable, JobTable
from swathe.catalog.values import plain_text
from swathe.catalog.work import ACTIVE, STATUSES, KeptJob, KeptRow
from swathe.errors import NoSuchJobError

LONGEST_REASON = 1_000
LONGEST_NAME = 1_000
LONGEST_SOURCE = 10_000
NOTES_KEPT = 50
WRITTEN_AT_ONCE = 10_000


def found_job(session: Session, job_id: str, lock: bool = False) -> JobTable:
    """Give a job to read, or with `lock` to change.

    Raises:
        NoSuchJobError: where there is none.
    """
    query = select(JobTable).where(JobTable.id == asked(job_id))
    job = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if job is None:
        raise unknown_job(job_id)
    return job


def asked(job_id: str) -> str:
    """Give an id as a database takes it, or one that no job has."""
    return job_id if plain_text(job_id, len(job_id)) == job_id else ""


def unknown_job(job_id: str) -> NoSuchJobError:
    """Say that there is no such job."""
    return NoSuchJobError(f"there is no job {job_id[:50]!r}; it may have expired")


def add_notes(job: JobTable, notes: Sequence[str]) -> None:
    """Add to what the user is told, each thing once."""
    told = [plain_text(note, LONGEST_REASON) for note in notes]
    # Another list: the database is not told of changes within one.
    job.notes = list(dict.fromkeys([*job.notes, *told]))[:NOTES_KEPT]


def fail(job: JobTable, reason: str) -> None:
    """End a job for a reason; one that has ended stays as it is."""
    if job.phase in ACTIVE:
        job.phase, job.ended_at = "ERROR", datetime.now(UTC)
        job.failure = plain_text(reason, LONGEST_REASON)


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


def job_values(job: KeptJob) -> dict[str, Any]:
    """Give a new job as the database keeps it."""
    values = {name: getattr(job, name) for name in PLAIN}
    for name, status in zip(COUNTED, STATUSES, strict=True):
        values[name] = job.counts[status]
    values["owner"] = plain_text(job.owner, 200)
    values["name"] = plain_text(job.name, LONGEST_NAME)
    values["parameters"] = [
        [plain_text(part, len(part)) for part in each] for each in job.parameters
    ]
    # Rows that need no work come first.
    values["cursor"] = job.rows - job.counts["waiting"]
    return values


def kept_job(job: JobTable) -> KeptJob:
    """Give a job as a plain value."""
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


def insert_rows(session: Session, job: int, rows: Iterable[KeptRow]) -> None:
    """Keep the rows of a new job."""
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


def mark_rows(session: Session, job: int, rows: Sequence[KeptRow]) -> None:
    """Keep what became of rows."""
    _many(session, MARKED, (_marked_values(job, row) for row in rows))


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


def kept_row(
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
    """Give a row as a plain value, of ROW_COLUMNS."""
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
