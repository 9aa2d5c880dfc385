"""Jobs as documents: their status in the words of OGC API Processes, 1.0 and the draft of 2.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from swathe.catalog.records.jobs import count_finished_rows
from swathe.portal.processes.process import record_of
from swathe.portal.stac.items import link

if TYPE_CHECKING:
    from datetime import datetime

    from swathe.jobs import Job

StatusCode: TypeAlias = Literal["accepted", "running", "successful", "failed", "dismissed"]
RESULTS = "http://www.opengis.net/def/rel/ogc/1.0/results"
STATUSES: dict[str, StatusCode] = {
    "PENDING": "accepted",
    "QUEUED": "accepted",
    "EXECUTING": "running",
    "COMPLETED": "successful",
    "ERROR": "failed",
    "ABORTED": "dismissed",
}


def status_of(job: Job) -> StatusCode:
    """Return the status of a job. One that waits for tape is running if some of it has run."""
    if job.phase == "STAGING":
        return "running" if count_finished_rows(job.counts) else "accepted"
    return STATUSES[job.phase]


def status_info(job: Job, portal_url: str) -> dict[str, Any]:
    """Return the status document of a job."""
    url, status, record = f"{portal_url}/ogc/jobs/{job.id}", status_of(job), record_of(job)
    ends, total = count_finished_rows(job.totals), sum(job.totals.values())
    times = {"created": job.created_at, "started": job.started_at, "finished": job.ended_at}
    times["updated"] = job.ended_at or job.started_at or job.created_at
    links = [
        link("self", url, title="Status"),
        link("alternate", f"{portal_url}/jobs/{job.id}", "text/html", title="Page"),
        link("up", f"{portal_url}/ogc/jobs", title="Jobs"),
    ]
    if status == "successful":
        links.append(link(RESULTS, f"{url}/results", title="Results"))
    progress_text = f"{ends:,} of {total:,} {job.unit}s have ended" if total else job.phase
    return {
        "jobID": job.id,
        "id": job.id,
        "processID": record.process,
        "type": "process",
        "processingEntityType": "ogc-api-processes",
        "status": status,
        "message": job.error or progress_text,
        **{name: _text(at) for name, at in times.items() if at is not None},
        "progress": 100 * ends // total if total else 100 * (status == "successful"),
        "links": links,
    }


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
