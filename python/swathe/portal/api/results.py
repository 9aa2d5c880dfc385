"""Endpoints on results of a job: rows, manifest, events, archives, files, previews."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from swathe.catalog.database_errors import may_pass
from swathe.catalog.records.jobs import END_PHASES
from swathe.core.errors import AccessError, CatalogError, NoSuchJobError, TokenError
from swathe.files.manifest import spreadsheet
from swathe.files.preview import Stretch
from swathe.jobs import ArchiveKind, Job, RowStatus
from swathe.portal.access import downloads_of, needs, streams_of
from swathe.portal.api import models
from swathe.portal.api.jobs import ReadJob
from swathe.portal.context import Portal, portal_of
from swathe.portal.http.long_responses import GeneratedResponse, LongResponse
from swathe.portal.http.ranges import answer_with, is_unchanged
from swathe.portal.pictures import preview

router = APIRouter(tags=["results"])

reader = needs("read")
MOST_ROWS = 10_000
HEARTBEAT_S = 10.0
"""Longest silence of an event stream, so that clients do not take it for dead."""
BUSY_S = 1.0
"""Pause before an event stream queries a busy or absent database again."""
ARCHIVES: dict[ArchiveKind, str] = {
    "zip": "application/zip",
    "tar": "application/x-tar",
    "fits": "application/fits",
}
BYTES: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
# Private to the reader, for an hour: a finished row changes only by a resume.
CACHE_CONTROL = "private, max-age=3600"
NO_CHANGE: dict[int | str, dict[str, Any]] = {
    304: {"description": "Unchanged: the client has this version.", "content": {}}
}


@router.get("/jobs/{job_id}/rows", response_model=models.RowList)
def rows(
    request: Request,
    job: ReadJob,
    start: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1000,
    status: RowStatus | None = None,
) -> Any:
    """Return rows from number `start` on: all, or those of one status."""
    jobs = portal_of(request).jobs
    page = jobs.rows(job.id, start=start, limit=limit, status=status)
    more = len(page) == limit and page[-1].number + 1 < job.rows
    content = {"rows": [vars(row) for row in page], "next": page[-1].number + 1 if more else None}
    # As text: checking each row by the model would take most of the time of a page.
    return Response(json.dumps(content), media_type="application/json")


@router.get(
    "/jobs/{job_id}/manifest",
    response_class=Response,
    responses={200: {"description": "ECSV.", "content": {"text/plain": {}}}},
)
def manifest(request: Request, job: ReadJob) -> Response:
    """Return the manifest, with the outcome of every row, as ECSV."""
    portal = portal_of(request)
    return GeneratedResponse(
        streams_of(request),
        lambda _cancelled: portal.jobs.manifest(job.id),
        "text/plain",
        _attachment(f"{job.id}.ecsv"),
    )


@router.get(
    "/jobs/{job_id}/manifest.csv",
    response_class=Response,
    responses={200: {"description": "CSV.", "content": {"text/csv": {}}}},
)
def manifest_for_people(request: Request, job: ReadJob) -> Response:
    """Return the manifest as CSV for spreadsheets, with formulas escaped by a leading `'`.

    Programs should read the ECSV, which has every text unchanged.
    """
    portal = portal_of(request)
    return GeneratedResponse(
        streams_of(request),
        lambda _cancelled: spreadsheet(portal.jobs.manifest(job.id)),
        "text/csv",
        _attachment(f"{job.id}.csv"),
    )


@router.get(
    "/jobs/{job_id}/events",
    response_class=Response,
    responses={200: {"description": "Events named `job`.", "content": {"text/event-stream": {}}}},
)
async def events(request: Request, job: ReadJob) -> Response:
    """Stream the changes of a job as they happen, until it has ended.

    The stream also ends when the token is revoked, and after `limits.stream_s`: connect again.
    """
    return LongResponse(
        streams_of(request),
        _events(request, job),
        "text/event-stream",
        {"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(request: Request, job: Job) -> AsyncIterator[bytes]:
    """Yield the whole job whenever it changes, so that a reconnecting client misses nothing."""
    portal, streams = portal_of(request), streams_of(request)
    last_change, last_text = 0, ""
    end = time.monotonic() + portal.config.limits.stream_s
    yield b"retry: 2000\n\n"
    while True:
        text = models.JobModel.model_validate(job).model_dump_json()
        yield f"event: job\ndata: {text}\n\n".encode() if text != last_text else b": waiting\n\n"
        last_text = text
        if job.phase in END_PHASES:
            return

        wait_s = min(HEARTBEAT_S, end - time.monotonic())
        if wait_s <= 0:
            return
        try:
            last_change, job = await streams.wait_for(
                partial(_wait_for_change, portal, job.id, last_change, wait_s)
            )
            await reader(request)
        except (
            NoSuchJobError,
            TokenError,
            AccessError,
        ):  # the job was deleted, or the token revoked
            return
        except CatalogError as error:
            if not may_pass(error):
                raise
            await asyncio.sleep(BUSY_S)  # another process writes; the stream goes on


def _wait_for_change(
    portal: Portal, job_id: str, last_change: int, wait_s: float, cancelled: Callable[[], bool]
) -> tuple[int, Job]:
    count = portal.jobs.wait_for_change(job_id, last_change, wait_s, cancelled)
    return count, portal.jobs.job(job_id)


@router.get(
    "/jobs/{job_id}/archive.{kind}",
    response_class=Response,
    responses={
        200: {"description": "An archive.", "content": dict.fromkeys(ARCHIVES.values(), BYTES)}
    },
)
def archive(request: Request, job: ReadJob, kind: ArchiveKind) -> Response:
    """Return all results as one archive, made as it is sent.

    If the job is running, the archive follows it to its end.
    """
    portal = portal_of(request)
    make = partial(portal.jobs.archive, job.id, kind)
    return GeneratedResponse(
        downloads_of(request), make, ARCHIVES[kind], _attachment(f"{job.id}.{kind}")
    )


FILE: dict[str, Any] = {
    "path": "/jobs/{job_id}/files/{name}",
    "response_class": Response,
    "responses": {
        200: {"description": "The file.", "content": {"*/*": BYTES}},
        206: {"description": "Ranges of the file.", "content": {"*/*": BYTES}},
        416: {"description": "No such range.", "content": {}},
        **NO_CHANGE,
    },
}


# Two routes: the ids of operations end with the method.
@router.get(**FILE)
@router.head(**FILE)
async def file(request: Request, job: ReadJob, name: str) -> Response:
    """Return a result, or ranges of it."""
    portal = portal_of(request)
    # A bucket may be slow to report whether the file exists.
    downloads = downloads_of(request)
    result = await downloads.wait_for(lambda _cancelled: portal.jobs.result(job.id, name))
    return answer_with(request, downloads, result, {"Cache-Control": CACHE_CONTROL})


OUTPUT: dict[str, Any] = {**FILE, "path": "/jobs/{job_id}/results/{group}/{output}"}


@router.get(**OUTPUT)
@router.head(**OUTPUT)
async def output(request: Request, job: ReadJob, group: str, output: str) -> Response:
    """Return an output of a group of an algorithm's job, or ranges of it.

    `group` is the name of its result without `.zip`, `output` that of the output.
    """
    portal = portal_of(request)
    downloads = downloads_of(request)
    result = await downloads.wait_for(lambda _cancelled: portal.jobs.output(job.id, group, output))
    return answer_with(request, downloads, result, {"Cache-Control": CACHE_CONTROL})


@router.get(
    "/jobs/{job_id}/previews/{name}.png",
    response_class=Response,
    responses={200: {"description": "A picture.", "content": {"image/png": BYTES}}, **NO_CHANGE},
)
def picture(
    request: Request,
    job: ReadJob,
    name: str,
    stretch: Stretch = "asinh",
    low: Annotated[float | None, Query(ge=0, le=100)] = None,
    high: Annotated[float | None, Query(ge=0, le=100)] = None,
    size: Annotated[int, Query(ge=16, le=2048)] = 256,
) -> Response:
    """Return a picture of a result. `name` includes its suffix.

    Black and white are the percentiles `low` and `high` of its pixels, else set by zscale.
    """
    result = portal_of(request).jobs.result(job.id, name)
    etag = f'"{result.sha256[:32]}-{stretch}-{low}-{high}-{size}"'
    headers = {"ETag": etag, "Cache-Control": CACHE_CONTROL}
    if is_unchanged(request, etag):
        return Response(status_code=304, headers=headers)
    return Response(preview(result, stretch, low, high, size), 200, headers, "image/png")


def _attachment(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
