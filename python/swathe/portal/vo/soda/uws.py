"""`/vo/async`: SODA by asynchronous jobs, followed by UWS 1.1.

The `result` of a job is its cut, or an archive if there are several; each cut is a result too.
"""

from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

from starlette.responses import PlainTextResponse, Response
from vo_models.uws import ResultReference

from swathe.catalog.records.jobs import ACTIVE
from swathe.core.errors import NoSuchResultError
from swathe.jobs import Job, Options
from swathe.portal.access import downloads_of, streams_of
from swathe.portal.api.jobs import own_job
from swathe.portal.http.long_responses import GeneratedResponse, while_there
from swathe.portal.http.ranges import answer_with
from swathe.portal.vo.errors import Label, VoError, usage
from swathe.portal.vo.parameters import RequestParameters, from_query, quote_value, read_form
from swathe.portal.vo.soda.soda_job import read_table_job, rows_of, table_part
from swathe.portal.vo.soda.sync import FITS, PNG, response_format
from swathe.portal.vo.uws.handlers import LONGEST_LIST, UwsHandlers, see_job, user_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from astropy.table import Table
    from starlette.requests import Request

    from swathe.jobs import Phase, Row
    from swathe.portal.users import User
    from swathe.portal.vo.parameters import Part
    from swathe.portal.vo.service import Service
    from swathe.portal.vo.uws.job import UwsJob

LONGEST_VALUE = 10_000
"""Maximum number of characters of a stored parameter."""
LONGEST_NAME = 200
PATH = "async"
ARCHIVE = "application/zip"
LABELS = {"no-overlap": "UsageError", "missing": "Error", "error": "Error"}
WORDS = {
    "no-overlap": "no pixel of the image is in the region",
    "missing": "the file is missing",
    "error": "the cut failed",
}


async def create(service: Service, request: Request) -> Response:
    """Create a job. It starts on PHASE=RUN, which may be sent with it."""
    largest = round(service.portal.config.limits.body_mb * 1e6)
    parts = await read_form(request, largest)
    query = from_query(request.scope["query_string"]).pairs
    query_parameters = RequestParameters(
        [*query, *((part.name, part.text) for part in parts if _is_short(part))]
    )
    table = None
    if (table_file := table_part(parts)) is not None:
        content, name = table_file
        reading = service.portal.uploads.table(io.BytesIO(content), name)
        table = await while_there(request, reading)
    job = await service.workers.run(
        lambda: _submit(service, user_of(request), query_parameters, table)
    )
    return see_job(service, request, PATH, job)


def _is_short(part: Part) -> bool:
    return part.content is None and part.name.upper() != "TARGETS"


def _submit(
    service: Service, user: User, query_parameters: RequestParameters, table: Table | None
) -> Job:
    portal = service.portal
    phase = query_parameters.one("PHASE")
    if phase is not None and phase.strip().upper() != "RUN":
        raise usage(f"PHASE: expected RUN, found {quote_value(phase)}")
    options = Options(format="png" if response_format(query_parameters) == PNG else "fits")
    if table is None:
        job_targets = rows_of(service.images, query_parameters)
    else:
        job_targets = read_table_job(service.images, table)
    stored_parameters = [
        (name, value[:LONGEST_VALUE])
        for name, value in query_parameters.pairs
        if name.upper() != "PHASE"
    ]
    if table is not None:
        stored_parameters.append(("TARGETS", f"a table of {len(table)} rows"))
    return portal.jobs.submit(
        job_targets.targets,
        options,
        user.name,
        faults=job_targets.faults,
        name=(query_parameters.one("RUNID") or "").strip()[:LONGEST_NAME],
        start=phase is not None,
        parameters=stored_parameters,
    )


async def result(service: Service, request: Request) -> Response:
    """Return a result: a file, the archive, the manifest, or the reason why there is none."""
    name = str(request.path_params["name"])
    current = await service.workers.run(lambda: JOBS.own(request))
    portal = service.portal
    if name == "manifest":
        return GeneratedResponse(
            streams_of(request), lambda _cancelled: portal.jobs.manifest(current.id), "text/plain"
        )
    if name == "result" and current.rows != 1:
        make = partial(portal.jobs.archive, current.id, "zip")
        disposition = {"Content-Disposition": f'attachment; filename="{current.id}.zip"'}
        return GeneratedResponse(downloads_of(request), make, ARCHIVE, disposition)

    def single() -> Response:
        number = 0 if name == "result" else _number(name)
        rows = portal.jobs.rows(current.id, start=number, limit=1)
        if not rows or rows[0].number != number:
            raise NoSuchResultError(f"job {current.id}: no such result: {name[:80]!r}")
        row = rows[0]
        if row.status == "waiting":
            raise NoSuchResultError(f"job {current.id}: {name[:80]!r} is not finished")
        if row.status != "ok":
            return PlainTextResponse(_why(row))
        stored_result = portal.jobs.result(current.id, row.name)
        return answer_with(request, downloads_of(request), stored_result, {})

    return await service.workers.run(single)


class SodaJobs:
    """The jobs of SODA: those of the portal, of all operations."""

    path = PATH

    def newest(
        self,
        service: Service,
        owner: str | None,
        phases: Sequence[Phase],
        after: datetime | None,
        last: int,
    ) -> Sequence[UwsJob]:
        """Return jobs, newest first."""
        return service.portal.jobs.list(owner, phases=phases, after=after, last=last)

    def own(self, request: Request) -> Job:
        """Return the job of a path, if the user may see it."""
        return own_job(request, str(request.path_params["job"]), user_of(request))

    def wait(
        self, service: Service, job: UwsJob, wait_s: float, should_stop: Callable[[], bool]
    ) -> UwsJob:
        """Return the job when its phase has changed, or after some time."""
        return service.portal.jobs.wait(job.id, job.phase, wait_s, should_stop)

    def start(self, service: Service, job: UwsJob) -> UwsJob:
        """Release a pending job."""
        return service.portal.jobs.start(job.id)

    def cancel(self, service: Service, job: UwsJob) -> UwsJob:
        """Stop a job."""
        return service.portal.jobs.cancel(job.id)

    def delete(self, service: Service, job: UwsJob) -> None:
        """Stop a job, and delete it with its results."""
        service.portal.jobs.delete(job.id)

    def set_expiry(self, service: Service, job: UwsJob, moment: datetime) -> UwsJob:
        """Set when a job is deleted."""
        return service.portal.jobs.set_expiry(job.id, moment)

    def duration_s(self, _job: UwsJob) -> int:
        """Return 0: the rows bound the duration of a job."""
        return 0

    def set_duration(self, _service: Service, job: UwsJob, _seconds: int) -> UwsJob:
        """Return the job unchanged: UWS allows services to ignore this value."""
        return job

    def set_parameters(
        self, _service: Service, _job: UwsJob, _parameters: RequestParameters
    ) -> UwsJob:
        """Refuse: the targets of a job are known from its beginning."""
        raise VoError("AuthorizationError", "the parameters of a job cannot be changed", 403)

    def results(self, service: Service, request: Request, job: UwsJob) -> list[ResultReference]:
        """Return the results of an ended job; empty before that."""
        return _results(service, request, cast("Job", job))

    def error(self, job: UwsJob) -> Response:
        """Return why a job failed, as text."""
        return PlainTextResponse("" if job.error is None else f"Error: {job.error}\n")


JOBS = SodaJobs()
HANDLERS = UwsHandlers(JOBS)


def _results(service: Service, request: Request, job: Job) -> list[ResultReference]:
    """Return the results of an ended job; empty before that."""
    if job.phase in ACTIVE or job.rows == 0:
        return []
    base = f"{service.url(request, f'{PATH}/{job.id}')}/results"

    def reference(name: str, kind: str, size: int | None = None) -> ResultReference:
        size_field: dict[str, Any] = {} if size is None else {"size": size}
        return ResultReference(id=name, href=f"{base}/{name}", mime_type=kind, **size_field)

    rows = service.portal.jobs.rows(job.id, limit=LONGEST_LIST)
    manifest = reference("manifest", "text/plain")
    if job.rows == 1:
        return [*_references(rows, lambda _: "result", reference, job), manifest]
    archive = reference("result", ARCHIVE)
    if job.rows > LONGEST_LIST:
        return [archive, manifest]
    return [archive, manifest, *_references(rows, _name, reference, job)]


def _references(
    rows: list[Row],
    name_of: Callable[[Row], str],
    reference: Callable[[str, str, int | None], ResultReference],
    job: Job,
) -> Iterator[ResultReference]:
    kind = PNG if job.options.format == "png" else FITS
    for row in rows:
        if row.status == "ok":
            yield reference(name_of(row), kind, row.bytes)
        elif row.status != "waiting":
            yield reference(name_of(row), "text/plain", None)


def _name(row: Row) -> str:
    return f"cutout-{row.number + 1:05d}"


def _number(name: str) -> int:
    digits = name.removeprefix("cutout-")
    if digits == name or not digits.isascii() or not digits.isdecimal() or len(digits) > 9:
        raise NoSuchResultError(f"no such result: {name[:80]!r}")
    return int(digits) - 1


def _why(row: Row) -> str:
    """Return the reason why a row has no result. An invalid row already begins with its label."""
    if row.reason.partition(":")[0] in get_args(Label):
        return f"{row.reason}\n"
    return f"{LABELS[row.status]}: {row.reason or WORDS[row.status]}\n"
