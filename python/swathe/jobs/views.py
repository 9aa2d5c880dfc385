"""Views of jobs and rows of the catalogue for users."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from swathe.jobs.archives import file_name
from swathe.jobs.types import Job, Options, Row

if TYPE_CHECKING:
    from swathe.catalog.records.jobs import JobRecord, RowRecord

SHOWN = ("seconds", "interval_s", "bytes", "requests")
"""Keys of a prediction that users see."""
UNCHANGED = {each.name for each in fields(Job)} - {"options", "predicted", "actual", "error"}
"""Fields of a job that are the same in the catalogue."""


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
        **{name: getattr(kept, name) for name in UNCHANGED},
        options=Options.from_mapping(kept.options),
        predicted=predicted,
        actual=actual,
        error=kept.failure,
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
