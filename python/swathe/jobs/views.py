"""Views of jobs and rows of the catalogue for users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.jobs.archives import file_name
from swathe.jobs.types import Job, Options, Row

if TYPE_CHECKING:
    from swathe.catalog.records.jobs import JobRecord
    from swathe.core.row_record import RowRecord

SHOWN = ("seconds", "interval_s", "bytes", "requests")
"""Keys of a prediction that users see."""


def job_view(kept: JobRecord) -> Job:
    """Return a job as users see it."""
    actual = None
    if kept.started_at is not None:
        actual = {
            "seconds": kept.busy_s,
            "bytes": kept.bytes_moved,
            "requests": kept.requests,
        }
    predicted = kept.predicted
    if predicted is not None:
        predicted = {name: value for name, value in predicted.items() if name in SHOWN}
    return Job(
        id=kept.id,
        owner=kept.owner,
        name=kept.name,
        phase=kept.phase,
        options=Options.from_mapping(kept.options),
        created_at=kept.created_at,
        started_at=kept.started_at,
        ended_at=kept.ended_at,
        expires_at=kept.expires_at,
        rows=kept.rows,
        counts=kept.counts,
        bytes=kept.bytes,
        predicted=predicted,
        actual=actual,
        error=kept.failure,
        notes=kept.notes,
        parameters=kept.parameters,
    )


def row_view(kept: RowRecord, options: Options) -> Row:
    """Return a row as users see it, for a job with these options."""
    return Row(
        number=kept.number,
        id=kept.id,
        source=kept.source,
        hdu=kept.hdu,
        box=kept.box,
        status=kept.status,
        reason=kept.reason,
        name=file_name(kept, options),
        bytes=kept.bytes,
        sha256=kept.sha256,
    )
