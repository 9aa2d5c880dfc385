"""The route that executes a process: at once, or as a job that the client follows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from swathe.catalog.records.jobs import ACTIVE
from swathe.core.errors import NoSuchJobError
from swathe.jobs import Job
from swathe.portal.access import Submitter, streams_of
from swathe.portal.context import Portal, portal_of
from swathe.portal.http.long_responses import while_there
from swathe.portal.processes.echo import end_after_pause
from swathe.portal.processes.execute_request import preferences_of, read_execution
from swathe.portal.processes.input_values import read_targets
from swathe.portal.processes.job_documents import status_info
from swathe.portal.processes.problems import ProblemError
from swathe.portal.processes.process import record_of
from swathe.portal.processes.processes import find_process
from swathe.portal.processes.results import answer_results
from swathe.portal.processes.routes import Identifier

router = APIRouter(tags=["processes"])
LONGEST_S = 60.0
"""Longest time that a client waits for results; longer work is a job."""
TICK_S = 0.5
JSON = "application/json"
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "`inputs`; `outputs`, `response` and `subscriber` as the client chooses.",
        "content": {JSON: {"schema": {"type": "object"}}},
    }
}


@router.post("/processes/{identifier}/execution", openapi_extra=BODY)
async def execute(request: Request, user: Submitter, identifier: Identifier) -> Response:
    """Execute a process: return its results, or with `Prefer: respond-async` a job."""
    portal = portal_of(request)
    process = await run_in_threadpool(find_process, portal.catalog, identifier)
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if kind != JSON:
        raise ProblemError(415, f"the body: expected {JSON}, found {kind[:100]!r}")
    reading = portal.uploads.body(await request.body(), "inputs", has_targets=process.has_targets)
    targets, content = await while_there(request, reading)
    execution = read_execution(content, targets, process)
    if process.has_targets and "targets" in execution.inputs:
        inputs = dict(execution.inputs)
        table = await read_targets(request, portal, inputs.pop("targets"))
        execution = replace(execution, inputs=inputs, targets=table)
    job = await run_in_threadpool(process.submit, portal, execution, user.name)
    _end_later(portal, job)
    preferences = preferences_of(request)
    is_async = preferences.is_async or "sync-execute" not in process.job_control
    wait_s = min(preferences.wait_s, LONGEST_S) if is_async else LONGEST_S
    streams = streams_of(request)
    if wait_s > 0 and job.phase in ACTIVE:
        with streams.place():
            job = await while_there(
                request, streams.wait_for(lambda is_gone: _until_end(portal, job, wait_s, is_gone))
            )
    if job.phase not in ACTIVE and (wait_s > 0 or not is_async):
        return await run_in_threadpool(
            answer_results, request, portal, job, preferences.transmission
        )
    url = portal.url(request)
    place = {"Location": f"{url}/ogc/jobs/{job.id}"}
    if is_async:
        if preferences.is_async:
            place["Preference-Applied"] = "respond-async"
        return JSONResponse(status_info(job, url), 201, place)
    raise ProblemError(
        504,
        f"the results take longer than {LONGEST_S:g} s; the job goes on, see {place['Location']}",
    )


def _until_end(portal: Portal, job: Job, wait_s: float, is_gone: Callable[[], bool]) -> Job:
    """Return a job when it has ended, or after a time, or soon after the client has gone."""
    end_s = time.monotonic() + wait_s
    while job.phase in ACTIVE and not is_gone() and (left_s := end_s - time.monotonic()) > 0:
        job = portal.jobs.wait(job.id, job.phase, min(left_s, TICK_S), is_gone)
    return job


def _end_later(portal: Portal, job: Job) -> None:
    """Let a job of `echo` end after its pause."""
    if job.phase == "PENDING":
        loop = asyncio.get_running_loop()
        # A little later, since a clock may be set back by so much.
        loop.call_later(
            record_of(job).pause_s + 0.01, lambda: loop.run_in_executor(None, _end, portal, job)
        )


def _end(portal: Portal, job: Job) -> None:
    try:
        end_after_pause(portal, job)
    except NoSuchJobError:
        return  # it was deleted
