"""`/vo/async`: SODA by asynchronous jobs, followed by UWS 1.1.

The `result` of a job is its cut, or an archive if there are several; each cut is a result too.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from vo_models.uws import ResultReference

from swathe.catalog.records.jobs import ACTIVE
from swathe.core.errors import NoSuchResultError
from swathe.jobs import Options, Phase
from swathe.portal.access import downloads_of, streams_of
from swathe.portal.api.jobs import own_job
from swathe.portal.http.long_responses import GeneratedResponse, while_there
from swathe.portal.http.ranges import answer_with
from swathe.portal.vo.errors import Label, VoError, usage
from swathe.portal.vo.parameters import RequestParameters, from_query, quote_value, read_form
from swathe.portal.vo.soda import uws_documents
from swathe.portal.vo.soda.soda_job import read_table_job, rows_of, table_part
from swathe.portal.vo.soda.sync import FITS, PNG, response_format
from swathe.portal.vo.soda.uws_documents import XML, iso, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from astropy.table import Table
    from starlette.requests import Request

    from swathe.jobs import Job, Row
    from swathe.portal.users import User
    from swathe.portal.vo.parameters import Part
    from swathe.portal.vo.service import Service

LONGEST_WAIT_S = 60.0
"""Longest wait of one request; clients request again."""
LONGEST_LIST = 1000
"""Maximum number of jobs in a list, and of listed results of a job; the archive has all."""
LONGEST_VALUE = 10_000
"""Maximum number of characters of a stored parameter."""
LONGEST_NAME = 200
ARCHIVE = "application/zip"
PHASES: dict[str, tuple[Phase, ...]] = {
    **{phase: (phase,) for phase in get_args(Phase) if phase != "STAGING"},
    "QUEUED": ("QUEUED", "STAGING"),
    "SUSPENDED": ("STAGING",),
}
"""Phases of jobs that may have each phase of UWS."""
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
        lambda: _submit(service, _user(request), query_parameters, table)
    )
    return _see(_url(service, request, job))


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


async def jobs(service: Service, request: Request) -> Response:
    """List the jobs of the user."""
    query_parameters = from_query(request.scope["query_string"])
    values = query_parameters.all("PHASE")
    for value in values:
        if value not in PHASES:
            raise usage(f"PHASE: expected one of {', '.join(PHASES)}, found {quote_value(value)}")
    phases = [phase for value in dict.fromkeys(values) for phase in PHASES[value]]
    after, last = query_parameters.one("AFTER"), query_parameters.one("LAST")
    moment = None if after is None else _moment("AFTER", after)
    most = LONGEST_LIST if last is None else min(_integer("LAST", last), LONGEST_LIST)
    sees = _user(request).sees

    def list_jobs() -> bytes:
        job_list = service.portal.jobs.list(sees, phases=phases, after=moment, last=most)
        if values:
            # Of jobs that wait for tape it depends on more than their phase.
            job_list = [each for each in job_list if uws_documents.uws_phase(each) in values]
        return uws_documents.list_document(job_list, service.url(request, "async"))

    return Response(await service.workers.run(list_jobs), 200, media_type=XML)


async def job(service: Service, request: Request) -> Response:
    """Return a job. With WAIT, respond when its phase has changed."""
    query_parameters = from_query(request.scope["query_string"])
    current = await service.workers.run(lambda: _own(request))
    wait, phase = query_parameters.one("WAIT"), query_parameters.one("PHASE")
    now = uws_documents.uws_phase(current)
    if wait is not None and current.phase in ACTIVE and phase in (None, now):
        seconds = _integer("WAIT", wait, least=-1)
        wait_s = LONGEST_WAIT_S if seconds < 0 else min(float(seconds), LONGEST_WAIT_S)
        portal, waiting_job = service.portal, current
        streams = streams_of(request)
        with streams.place():
            current = await streams.wait_for(
                lambda cancelled: portal.jobs.wait(
                    waiting_job.id, waiting_job.phase, wait_s, cancelled
                )
            )
    content = await service.workers.run(
        lambda: uws_documents.job_document(current, _results(service, request, current))
    )
    return Response(content, 200, media_type=XML)


async def change(service: Service, request: Request) -> Response:
    """Handle a POST to a job: ACTION=DELETE."""
    query_parameters = await _form(request)
    action = query_parameters.one("ACTION")
    if action is None or action.strip().upper() != "DELETE":
        raise usage("ACTION: expected DELETE, found another action or none")
    return await delete(service, request)


async def delete(service: Service, request: Request) -> Response:
    """Stop a job, and delete it with its results."""
    await service.workers.run(lambda: service.portal.jobs.delete(_own(request).id))
    return _see(service.url(request, "async"))


async def child(service: Service, request: Request) -> Response:
    """Return one property of a job."""
    name = str(request.path_params["child"])
    current = await service.workers.run(lambda: _own(request))
    tell = CHILDREN.get(name)
    if tell is not None:
        return PlainTextResponse(tell(current))
    match name:
        case "parameters":
            return Response(uws_documents.parameters_document(current), 200, media_type=XML)
        case "results":
            content = await service.workers.run(
                lambda: uws_documents.results_document(_results(service, request, current))
            )
            return Response(content, 200, media_type=XML)
        case _:
            raise usage(f"expected a property of a job, found {name[:80]!r}", 404)


CHILDREN: dict[str, Callable[[Job], str]] = {
    "phase": uws_documents.uws_phase,
    "executionduration": lambda _: "0",
    "destruction": lambda job: iso(job.expires_at),
    "quote": lambda job: "" if (moment := quote(job)) is None else iso(moment),
    "owner": lambda job: job.owner,
    "error": lambda job: "" if job.error is None else f"Error: {job.error}\n",
}


async def change_child(service: Service, request: Request) -> Response:
    """Change one property of a job by POST."""
    name = str(request.path_params["child"])
    query_parameters = await _form(request)
    jobs = service.portal.jobs

    def change() -> Job:
        current = _own(request)
        match name:
            case "phase":
                value = _require(query_parameters, "PHASE").strip().upper()
                if value == "RUN":
                    return jobs.start(current.id)
                if value == "ABORT":
                    return jobs.cancel(current.id)
                raise usage(f"PHASE: expected RUN or ABORT, found {quote_value(value)}")
            case "destruction":
                value = _require(query_parameters, "DESTRUCTION")
                return jobs.set_expiry(current.id, _moment("DESTRUCTION", value))
            case "executionduration":
                # The rows bound the duration of a job; UWS allows services to ignore this value.
                _integer("EXECUTIONDURATION", _require(query_parameters, "EXECUTIONDURATION"))
                return current
            case "parameters":
                raise VoError(
                    "AuthorizationError", "the parameters of a job cannot be changed", 403
                )
            case _:
                raise usage(
                    f"expected a property of a job that can be changed, found {name[:80]!r}", 404
                )

    current = await service.workers.run(change)
    return _see(_url(service, request, current))


async def result(service: Service, request: Request) -> Response:
    """Return a result: a file, the archive, the manifest, or the reason why there is none."""
    name = str(request.path_params["name"])
    current = await service.workers.run(lambda: _own(request))
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


def _results(service: Service, request: Request, job: Job) -> list[ResultReference]:
    """Return the results of an ended job; empty before that."""
    if job.phase in ACTIVE or job.rows == 0:
        return []
    base = f"{_url(service, request, job)}/results"

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


def _own(request: Request) -> Job:
    """Return the job of a path, if the user may see it."""
    return own_job(request, str(request.path_params["job"]), _user(request))


def _user(request: Request) -> User:
    return cast("User", request.state.user)


def _url(service: Service, request: Request, job: Job) -> str:
    return service.url(request, f"async/{job.id}")


def _see(url: str) -> Response:
    return RedirectResponse(url, 303)


async def _form(request: Request) -> RequestParameters:
    parts = await read_form(request)
    query = from_query(request.scope["query_string"]).pairs
    return RequestParameters([*query, *((part.name, part.text) for part in parts)])


def _require(query: RequestParameters, name: str) -> str:
    value = query.one(name)
    if value is None:
        raise usage(f"{name}: expected a value, found none")
    return value


def _integer(name: str, value: str, least: int = 0) -> int:
    """Parse a whole number."""
    try:
        number = int(value[:20]) if value.isascii() else least - 1
    except ValueError:
        number = least - 1
    if number < least:
        raise usage(f"{name}: expected a whole number, {least} or more, found {quote_value(value)}")
    return number


def _moment(name: str, value: str) -> datetime:
    """Parse a time in ISO 8601. Without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(value.strip()[:50])
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise usage(
            f"{name}: expected a time, 2026-11-21T12:00:00Z, found {quote_value(value)}"
        ) from None
