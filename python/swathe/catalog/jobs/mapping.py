"""Jobs, from the database and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from swathe.catalog.jobs.blocks import LONGEST_NAME, LONGEST_REASON
from swathe.catalog.records.checks import plain_text
from swathe.catalog.records.jobs import ACTIVE, STATUSES, JobRecord
from swathe.catalog.tables import JobTable
from swathe.core.errors import NoSuchJobError

NOTES_KEPT = 50


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


def job_values(job: JobRecord) -> dict[str, Any]:
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


def kept_job(job: JobTable) -> JobRecord:
    """Give a job as a plain value."""
    return JobRecord(
        number=job.number,
        counts={status: getattr(job, name) for name, status in zip(COUNTED, STATUSES, strict=True)},
        parameters=[(name, value) for name, value in job.parameters],
        **{name: getattr(job, name) for name in PLAIN},
    )
