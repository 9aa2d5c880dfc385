"""Endpoints on jobs: estimate, submit, follow and change them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import AwareDatetime, ValidationError
from starlette.datastructures import UploadFile

from swathe.core.errors import JobError, NoSuchJobError, TargetsError
from swathe.core.value_errors import fault_text
from swathe.jobs import Job, Options, Phase
from swathe.portal.access import Reader, Submitter, streams_of
from swathe.portal.api import models
from swathe.portal.context import Portal, portal_of
from swathe.portal.http.long_responses import while_there
from swathe.portal.uploads import read_json
from swathe.portal.users import User

router = APIRouter(tags=["jobs"])

JOB_ID = re.compile(r"[A-Za-z0-9_-]{22}")
LONGEST_WAIT_S = 60
LONGEST_LIST = 1000
LARGEST_FIELD_BYTES = 100_000


def own_job(request: Request, job_id: str, user: User) -> Job:
    """Return a job that a user may see.

    Raises:
        NoSuchJobError: If there is no such job, or it belongs to another user.
    """
    if JOB_ID.fullmatch(job_id):
        job = portal_of(request).jobs.job(job_id)
        if user.sees in (None, job.owner):
            return job
    raise NoSuchJobError(f"no job {job_id[:50]!r}, or it has expired")


def read_job(request: Request, job_id: str, user: Reader) -> Job:
    """Return the job of a path, for a user who may read it."""
    return own_job(request, job_id, user)


def change_job(request: Request, job_id: str, user: Submitter) -> Job:
    """Return the job of a path, for a user who may change it."""
    return own_job(request, job_id, user)


ReadJob = Annotated[Job, Depends(read_job)]
ChangeJob = Annotated[Job, Depends(change_job)]


def _body(model: type[models.TargetsModel]) -> dict[str, Any]:
    """Describe the body of a request: JSON, or a form with a file."""
    fields: dict[str, Any] = {
        "targets": {"type": "string", "format": "binary"},
        "options": {"type": "string", "contentMediaType": "application/json"},
    }
    if model is models.NewJob:
        fields["name"] = {"type": "string"}
        fields["start"] = {"type": "string", "enum": ["true", "false"]}
    form = {"type": "object", "properties": fields, "required": ["targets"]}
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content = {"application/json": {"schema": schema}, "multipart/form-data": {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}


async def _read_request(
    request: Request, model: type[models.TargetsModel]
) -> tuple[Any, models.TargetsModel]:
    """Read targets and options from JSON or a form."""
    portal = portal_of(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with request.form(
            max_files=1, max_fields=8, max_part_size=LARGEST_FIELD_BYTES
        ) as form:
            file = form.get("targets")
            if not isinstance(file, UploadFile):
                raise TargetsError("targets: expected a file, found none")
            fields: dict[str, Any] = {
                name: value for name, value in form.items() if isinstance(value, str)
            }
            if "options" in fields:
                fields["options"] = read_json(fields["options"], "options", LARGEST_FIELD_BYTES)
            table: Any = await while_there(
                request, portal.uploads.table(file.file, file.filename or "")
            )
        return table, _valid(model, {**fields, "targets": {}})
    if kind != "application/json":
        raise TargetsError(
            f"expected application/json or multipart/form-data, found {kind[:100] or 'nothing'!r}"
        )
    columns, rest = await while_there(request, portal.uploads.body(await request.body()))
    return columns, _valid(model, {**rest, "targets": {}})


def _valid(model: type[models.TargetsModel], content: Mapping[str, Any]) -> models.TargetsModel:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part)[:50] for part in first["loc"][:6])
        raise JobError(f"{place}: {fault_text(first)}") from error


def _options(body: models.TargetsModel) -> Options:
    return Options.from_mapping(body.options.model_dump(exclude_unset=True))


@router.post(
    "/estimate", response_model=models.EstimateModel, openapi_extra=_body(models.TargetsModel)
)
async def estimate(request: Request, _user: Reader) -> Any:
    """Return the size and predicted cost of a job. No pixel is read."""
    table, content = await _read_request(request, models.TargetsModel)
    jobs = portal_of(request).jobs
    return await run_in_threadpool(jobs.estimate, table, _options(content))


@router.post(
    "/jobs", response_model=models.JobModel, status_code=201, openapi_extra=_body(models.NewJob)
)
async def submit(request: Request, response: Response, user: Submitter) -> Any:
    """Submit a job: `targets` as columns, rows, lines of text, or a file of a form."""
    table, content = await _read_request(request, models.NewJob)
    assert isinstance(content, models.NewJob)
    portal = portal_of(request)

    def run() -> Job:
        options = _options(content)
        return portal.jobs.submit(table, options, user.name, name=content.name, start=content.start)

    job = await run_in_threadpool(run)
    response.headers["Location"] = url_of(portal, request, job.id)
    return job


def url_of(portal: Portal, request: Request, job_id: str) -> str:
    """Return the URL of a job."""
    return f"{portal.url(request)}/api/jobs/{job_id}"


@router.get("/jobs", response_model=models.JobList)
def list_jobs(
    request: Request,
    user: Reader,
    phase: Annotated[list[Phase], Query()] = [],  # noqa: B006
    after: AwareDatetime | None = None,
    last: Annotated[int, Query(ge=1, le=LONGEST_LIST)] = 100,
) -> Any:
    """List your jobs, newest first. An `admin` sees the jobs of all users."""
    jobs = portal_of(request).jobs
    return {"jobs": jobs.list(user.sees, phases=phase, after=after, last=last)}


@router.get("/jobs/{job_id}", response_model=models.JobModel)
async def job(
    request: Request,
    job: ReadJob,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S)] = 0,
    phase: Phase | None = None,
) -> Any:
    """Return a job.

    With `wait`, respond when its phase is no longer `phase`, or after `wait` seconds.
    """
    if wait == 0 or (phase is not None and job.phase != phase):
        return job
    portal, streams = portal_of(request), streams_of(request)
    with streams.place():
        return await streams.wait_for(
            lambda cancelled: portal.jobs.wait(job.id, phase or job.phase, wait, cancelled)
        )


@router.delete("/jobs/{job_id}", status_code=204)
def delete(request: Request, job: ChangeJob) -> None:
    """Stop a job, and delete it with its results."""
    portal_of(request).jobs.delete(job.id)


@router.post("/jobs/{job_id}/start", response_model=models.JobModel)
def start(request: Request, job: ChangeJob) -> Any:
    """Start a job that was submitted with `start` false."""
    return portal_of(request).jobs.start(job.id)


@router.post("/jobs/{job_id}/cancel", response_model=models.JobModel)
def cancel(request: Request, job: ChangeJob) -> Any:
    """Stop a job. Finished results are kept."""
    return portal_of(request).jobs.cancel(job.id)


@router.post("/jobs/{job_id}/resume", response_model=models.JobModel)
def resume(request: Request, job: ChangeJob) -> Any:
    """Retry the failed and unfinished rows of an ended job."""
    return portal_of(request).jobs.resume(job.id)


@router.patch("/jobs/{job_id}", response_model=models.JobModel)
def change(request: Request, job: ChangeJob, body: models.JobChange) -> Any:
    """Change the name of a job, or its time of expiry (reduced to the allowed maximum)."""
    jobs = portal_of(request).jobs
    if body.name is not None:
        job = jobs.set_name(job.id, body.name)
    if body.expires_at is not None:
        job = jobs.set_expiry(job.id, body.expires_at)
    return job
