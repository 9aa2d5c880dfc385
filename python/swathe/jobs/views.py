"""Views of jobs and rows of the catalogue for users."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from swathe.jobs.archives import file_name
from swathe.jobs.staging_progress import staging_view
from swathe.jobs.types import Job, Options, Row

if TYPE_CHECKING:
    from swathe.catalog.records.jobs import JobRecord
    from swathe.core.row_record import RowRecord
    from swathe.costs.time_left import TimeLeft

PREDICTION_KEYS = ("median_s", "interval_s", "bytes", "requests")
"""Keys of a prediction that users see."""
SAME_FIELDS = {each.name for each in fields(Job)} - {
    "options",
    "predicted",
    "actual",
    "error",
    "left",
    "staging",
}
"""Fields of a job that are the same in the catalogue."""


def job_view(record: JobRecord, left: TimeLeft | None = None) -> Job:
    """Return a job as users see it, with its time left."""
    actual = None
    if record.started_at is not None:
        actual = {
            "work_s": record.work_s,
            "bytes": record.bytes_moved,
            "requests": record.requests,
        }
    prediction = record.predicted
    if prediction is not None:
        prediction = {name: value for name, value in prediction.items() if name in PREDICTION_KEYS}
    return Job(
        **{name: getattr(record, name) for name in SAME_FIELDS},
        options=Options.from_catalog(record.options),
        predicted=prediction,
        actual=actual,
        error=record.failure,
        staging=staging_view(record.staging),
        left=None if left is None else {"median_s": left.median_s, "interval_s": left.interval_s},
    )


def row_view(record: RowRecord, options: Options) -> Row:
    """Return a row as users see it, for a job with these options."""
    return Row(
        number=record.number,
        id=record.id,
        source=record.source,
        hdu=record.hdu,
        box=None if options.results.kind.reads_granules else record.box,
        status=record.status,
        reason=record.reason,
        name=file_name(record, options),
        bytes=record.bytes,
        sha256=record.sha256,
    )
