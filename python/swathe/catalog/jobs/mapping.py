"""Mapping of jobs to and from the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from swathe.catalog.jobs.blocks import LONGEST_NAME, LONGEST_REASON
from swathe.catalog.records.checks import plain_text
from swathe.catalog.records.jobs import ACTIVE, JobRecord
from swathe.catalog.tables import JobTable
from swathe.core.errors import NoSuchJobError
from swathe.core.row_record import STATUSES

MOST_NOTES = 50


def find_job(session: Session, job_id: str, lock: bool = False) -> JobTable:
    """Return a job for reading, or with `lock` for changes.

    Raises:
        NoSuchJobError: If there is no such job.
    """
    query = select(JobTable).where(JobTable.id == id_to_query(job_id))
    job = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if job is None:
        raise unknown_job(job_id)
    return job


def id_to_query(job_id: str) -> str:
    """Return an id that the database accepts; an invalid one becomes an id that no job has."""
    return job_id if plain_text(job_id, len(job_id)) == job_id else ""


def unknown_job(job_id: str) -> NoSuchJobError:
    """Return the error for an unknown job."""
    return NoSuchJobError(f"there is no job {job_id[:50]!r}; it may have expired")


def add_notes(job: JobTable, notes: Sequence[str]) -> None:
    """Add warnings to a job, each once."""
    texts = [plain_text(note, LONGEST_REASON) for note in notes]
    # A new list: the database does not notice changes within one.
    job.notes = list(dict.fromkeys([*job.notes, *texts]))[:MOST_NOTES]


def fail(job: JobTable, reason: str) -> None:
    """End a job with a reason; one that has ended is unchanged."""
    if job.phase in ACTIVE:
        job.phase, job.ended_at = "ERROR", datetime.now(UTC)
        job.failure = plain_text(reason, LONGEST_REASON)


COUNTS = tuple(status.replace("-", "_") for status in STATUSES)
"""Columns with the numbers of rows, in the order of STATUSES."""
DIFFERENT = ("number", "parameters", "counts")
PLAIN = [each.name for each in fields(JobRecord) if each.name not in DIFFERENT]
"""Columns with the same name in a job and in the database."""


def job_values(job: JobRecord) -> dict[str, Any]:
    """Return the database values of a new job."""
    values = {name: getattr(job, name) for name in PLAIN}
    for name, status in zip(COUNTS, STATUSES, strict=True):
        values[name] = job.counts[status]
    values["owner"] = plain_text(job.owner, 200)
    values["name"] = plain_text(job.name, LONGEST_NAME)
    values["parameters"] = [
        [plain_text(part, len(part)) for part in each] for each in job.parameters
    ]
    # Inputs that need no work come first; groups that need none are among the others.
    results = job.rows - job.inputs if job.groups is None else job.groups["waiting"]
    waiting = job.counts["waiting"]
    values["cursor"] = job.inputs - (waiting - results) if waiting else job.rows
    return values


def to_job_record(job: JobTable) -> JobRecord:
    """Return a job as a plain value."""
    return JobRecord(
        number=job.number,
        counts={status: getattr(job, name) for name, status in zip(COUNTS, STATUSES, strict=True)},
        parameters=[(name, value) for name, value in job.parameters],
        **{name: getattr(job, name) for name in PLAIN},
    )
