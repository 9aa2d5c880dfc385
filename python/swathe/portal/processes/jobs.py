"""Routes on jobs: the list, status, results, and dismissal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from swathe.catalog.records.jobs import ACTIVE
from swathe.core.errors import JobError
from swathe.core.times import mjd_of
from swathe.core.value_errors import short_text
from swathe.jobs import Job
from swathe.portal.access import Reader
from swathe.portal.api.jobs import ChangeJob, ReadJob
from swathe.portal.context import portal_of
from swathe.portal.processes.echo import end_after_pause
from swathe.portal.processes.execute_request import preferences_of
from swathe.portal.processes.job_documents import StatusCode, status_info, status_of
from swathe.portal.processes.process import record_of
from swathe.portal.processes.results import answer_results, one_result
from swathe.portal.stac.items import link
from swathe.portal.stac.search_request import time_range

router = APIRouter(tags=["jobs"])
MOST_JOBS = 1000
"""Jobs that a list is chosen from, the newest of the user."""
Limit = Annotated[int, Query(ge=1, le=10_000)]
Offset = Annotated[int, Query(ge=0, le=1_000_000)]
Seconds = Annotated[float | None, Query(ge=0, allow_inf_nan=False)]


@router.get("/jobs")
def jobs(
    request: Request,
    user: Reader,
    limit: Limit = 100,
    offset: Offset = 0,
    process_id: Annotated[list[str], Query(alias="processID")] = [],  # noqa: B006
    status: Annotated[list[str], Query()] = [],  # noqa: B006
    kind: Annotated[list[str], Query(alias="type")] = [],  # noqa: B006
    datetime: str | None = None,
    min_s: Annotated[Seconds, Query(alias="minDuration")] = None,
    max_s: Annotated[Seconds, Query(alias="maxDuration")] = None,
) -> Any:
    """List your jobs, the newest first; an `admin` sees those of all users.

    Lists of values are separated by commas.
    """
    portal = portal_of(request)
    statuses = _words(status, get_args(StatusCode), "status")
    kinds = _words(kind, ("process",), "type")
    ids = [each for text in process_id for each in text.split(",")]
    first, last = (-math.inf, math.inf) if datetime is None else time_range(datetime)

    def is_wanted(job: Job) -> bool:
        return (
            (not ids or record_of(job).process in ids)
            and (not statuses or status_of(job) in statuses)
            and (not kind or "process" in kinds)
            and first <= mjd_of(job.created_at) <= last
            and (min_s is None or _duration_s(job) >= min_s)
            and (max_s is None or _duration_s(job) <= max_s)
        )

    every = [end_after_pause(portal, job) for job in portal.jobs.list(user.sees, last=MOST_JOBS)]
    choice = [job for job in every if is_wanted(job)]
    page, url = choice[offset : offset + limit], portal.url(request)
    links = [link("self", f"{url}/ogc/jobs"), link("up", f"{url}/ogc/")]
    if len(choice) > offset + limit:
        values = [each for each in request.query_params.multi_items() if each[0] != "offset"]
        more = urlencode([*values, ("offset", str(offset + limit))])
        links.append(link("next", f"{url}/ogc/jobs?{more}"))
    return {"jobs": [status_info(job, url) for job in page], "links": links}


def _words(texts: Sequence[str], choices: Sequence[str], name: str) -> list[str]:
    words = [word for text in texts for word in text.split(",")]
    for word in words:
        if word not in choices:
            raise JobError(f"{name}: expected {' or '.join(choices)}, found {short_text(word)}")
    return words


def _duration_s(job: Job) -> float:
    """Return the time for which a job has run, seconds."""
    start = job.started_at or job.created_at
    return ((job.ended_at or datetime.now(UTC)) - start).total_seconds()


@router.get("/jobs/{job_id}")
def job(request: Request, job: ReadJob) -> Any:
    """Return the status of a job."""
    portal = portal_of(request)
    return status_info(end_after_pause(portal, job), portal.url(request))


@router.delete("/jobs/{job_id}")
def dismiss(request: Request, job: ChangeJob) -> Any:
    """Stop a job; one that has ended is deleted with its results."""
    portal = portal_of(request)
    if job.phase in ACTIVE:
        return status_info(portal.jobs.cancel(job.id), portal.url(request))
    portal.jobs.delete(job.id)
    return {**status_info(job, portal.url(request)), "status": "dismissed", "links": []}


@router.get("/jobs/{job_id}/results")
def results(request: Request, job: ReadJob) -> Response:
    """Return the results of a job, in the form that its execution chose."""
    portal = portal_of(request)
    preferences = preferences_of(request)
    job = end_after_pause(portal, job)
    return answer_results(request, portal, job, preferences.transmission)


@router.get("/jobs/{job_id}/results/{name}")
def result(request: Request, job: ReadJob, name: str) -> Response:
    """Return one output of a job."""
    portal = portal_of(request)
    return one_result(request, portal, end_after_pause(portal, job), name)
