"""Durable jobs: lists of targets that are cut in the background, in fair turns.

>>> with Catalog.open() as catalog, Jobs(catalog, Path("results"), limits=Limits()) as jobs:
...     swathe.workers.Runner(jobs).start()
...     job = jobs.submit({"file": ["survey:a.fits"], "x": [9], ...}, Options(), "me")
...     jobs.wait(job.id, "QUEUED", timeout_s=60)

All state is in the database: if a process is killed, the next continues. Knows nothing of HTTP.
"""

from swathe.catalog.records.jobs import Phase
from swathe.core.errors import JobError, LimitError, NoSuchJobError, NoSuchResultError
from swathe.core.row_record import RowStatus
from swathe.jobs.service import Jobs
from swathe.jobs.types import ArchiveKind, Estimate, Job, Limits, Options, Result, Row
from swathe.stores.bucket_results import Bucket, result_store_by_name
from swathe.stores.results import Folder, ResultStore

__all__ = [
    "ArchiveKind",
    "Bucket",
    "Estimate",
    "Folder",
    "Job",
    "JobError",
    "Jobs",
    "LimitError",
    "Limits",
    "NoSuchJobError",
    "NoSuchResultError",
    "Options",
    "Phase",
    "Result",
    "ResultStore",
    "Row",
    "RowStatus",
    "result_store_by_name",
]
