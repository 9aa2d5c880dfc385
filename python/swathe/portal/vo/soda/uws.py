"""`/vo/async`: SODA by jobs that go on for long, watched by UWS 1.1.

A job of one cut has that as its `result`; of several, an archive of all, and each by itself.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from vo_models.uws import ResultReference

from swathe.core.errors import NoSuchResultError
from swathe.jobs import Options, Phase
from swathe.portal.access import downloads_of, streams_of
from swathe.portal.api.jobs import own_job
from swathe.portal.http.long_responses import MadeAnswer, while_there
from swathe.portal.http.ranges import answer_with
from swathe.portal.vo.errors import Label, VoError, usage
from swathe.portal.vo.parameters import Parameters, from_query, read_form, shown
from swathe.portal.vo.soda import uws_documents
from swathe.portal.vo.soda.soda_job import asked_by_table, rows_of, table_part
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

ACTIVE = ("PENDING", "QUEUED", "EXECUTING")
LONGEST_WAIT_S = 60.0
"""Of one request; clients ask again."""
MOST_LISTED = 1000
"""Jobs of a list, results of a job; the archive has all."""
LONGEST_KEPT = 10_000
"""Characters of a parameter that is shown again."""
LONGEST_NAME = 200
ARCHIVE = "application/zip"
LABELS = {"no-overlap": "UsageError", "missing": "Error", "error": "Error"}
WORDS = {
    "no-overlap": "no pixel of the image shows it",
    "missing": "the file is not there",
    "error": "it failed",
}


async def create(service: Service, request: Request) -> Response:
    """Make a job; it waits for PHASE=RUN, unless that was sent with it."""
    largest = round(service.portal.config.limits.body_mb * 1e6)
    parts = await read_form(request, largest)
    query = from_query(request.scope["query_string"]).given
    given = Parameters([*query, *((part.name, part.text) for part in parts if _is_short(part))])
    table = None
    if (sent := table_part(parts)) is not None:
        content, name = sent
        reading = service.portal.uploads.table(io.BytesIO(content), name)
        table = await while_there(request, reading)
    job = await service.workers.run(lambda: _made(service, _user(request), given, table))
    return _see(_url(service, request, job))


def _is_short(part: Part) -> bool:
    return part.content is None and part.name.upper() != "TARGETS"


def _made(service: Service, user: User, given: Parameters, table: Table | None) -> Job:
    portal = service.portal
    phase = given.one("PHASE")
    if phase is not None and phase.strip().upper() != "RUN":
        raise usage(f"PHASE: expected RUN, found {shown(phase)}")
    options = Options(format="png" if response_format(given) == PNG else "fits")
    if table is None:
        asked = rows_of(service.images, given)
    else:
        asked = asked_by_table(service.images, table)
    sent = [(name, value[:LONGEST_KEPT]) for name, value in given.given if name.upper() != "PHASE"]
    if table is not None:
        sent.append(("TARGETS", f"a table of {len(table)} rows"))
    return portal.jobs.submit(
        asked.targets,
        options,
        user.name,
        faults=asked.faults,
        name=(given.one("RUNID") or "").strip()[:LONGEST_NAME],
        start=phase is not None,
        parameters=sent,
    )


async def jobs(service: Service, request: Request) -> Response:
    """List the jobs of whoever asks."""
    given = from_query(request.scope["query_string"])
    phases = []
    for value in given.all("PHASE"):
        if value not in get_args(Phase):
            raise usage(
                f"PHASE: expected one of {', '.join(get_args(Phase))}, found {shown(value)}"
            )
        phases.append(cast("Phase", value))
    after, last = given.one("AFTER"), given.one("LAST")
    moment = None if after is None else _moment("AFTER", after)
    most = MOST_LISTED if last is None else min(_whole("LAST", last), MOST_LISTED)
    sees = _user(request).sees

    def listed() -> bytes:
        found = service.portal.jobs.list(sees, phases=phases, after=moment, last=most)
        return uws_documents.list_document(found, service.url(request, "async"))

    return Response(await service.workers.run(listed), 200, media_type=XML)


async def job(service: Service, request: Request) -> Response:
    """Tell all of a job; with WAIT once its phase is another one."""
    given = from_query(request.scope["query_string"])
    found = await service.workers.run(lambda: _own(request))
    wait, phase = given.one("WAIT"), given.one("PHASE")
    if wait is not None and found.phase in ACTIVE and phase in (None, found.phase):
        seconds = _whole("WAIT", wait, least=-1)
        long = LONGEST_WAIT_S if seconds < 0 else min(float(seconds), LONGEST_WAIT_S)
        portal, before = service.portal, found
        streams = streams_of(request)
        with streams.place():
            found = await streams.wait_for(
                lambda gone: portal.jobs.wait(before.id, before.phase, long, gone)
            )
    content = await service.workers.run(
        lambda: uws_documents.job_document(found, _results(service, request, found))
    )
    return Response(content, 200, media_type=XML)


async def change(service: Service, request: Request) -> Response:
    """Do what is asked by POST to a job: ACTION=DELETE."""
    given = await _form(request)
    action = given.one("ACTION")
    if action is None or action.strip().upper() != "DELETE":
        raise usage("ACTION: expected DELETE")
    return await delete(service, request)


async def delete(service: Service, request: Request) -> Response:
    """Stop a job and remove all of it."""
    await service.workers.run(lambda: service.portal.jobs.delete(_own(request).id))
    return _see(service.url(request, "async"))


async def child(service: Service, request: Request) -> Response:
    """Tell one thing of a job."""
    name = str(request.path_params["child"])
    found = await service.workers.run(lambda: _own(request))
    tell = CHILDREN.get(name)
    if tell is not None:
        return PlainTextResponse(tell(found))
    match name:
        case "parameters":
            return Response(uws_documents.parameters_document(found), 200, media_type=XML)
        case "results":
            content = await service.workers.run(
                lambda: uws_documents.results_document(_results(service, request, found))
            )
            return Response(content, 200, media_type=XML)
        case _:
            raise usage(f"a job has no {name[:80]!r}", 404)


CHILDREN: dict[str, Callable[[Job], str]] = {
    "phase": lambda job: job.phase,
    "executionduration": lambda _: "0",
    "destruction": lambda job: iso(job.expires_at),
    "quote": lambda job: "" if (found := quote(job)) is None else iso(found),
    "owner": lambda job: job.owner,
    "error": lambda job: "" if job.error is None else f"Error: {job.error}\n",
}


async def change_child(service: Service, request: Request) -> Response:
    """Change one thing of a job by POST."""
    name = str(request.path_params["child"])
    given = await _form(request)
    jobs = service.portal.jobs

    def changed() -> Job:
        found = _own(request)
        match name:
            case "phase":
                wanted = _needed(given, "PHASE").strip().upper()
                if wanted == "RUN":
                    return jobs.start(found.id)
                if wanted == "ABORT":
                    return jobs.cancel(found.id)
                raise usage(f"PHASE: expected RUN or ABORT, found {shown(wanted)}")
            case "destruction":
                wanted = _needed(given, "DESTRUCTION")
                return jobs.set_expiry(found.id, _moment("DESTRUCTION", wanted))
            case "executionduration":
                # How long a job takes is bounded by its rows; UWS lets services say so.
                _whole("EXECUTIONDURATION", _needed(given, "EXECUTIONDURATION"))
                return found
            case "parameters":
                raise VoError("AuthorizationError", "parameters stay as a job was made", 403)
            case _:
                raise usage(f"a job has no {name[:80]!r} that could be changed", 404)

    found = await service.workers.run(changed)
    return _see(_url(service, request, found))


async def result(service: Service, request: Request) -> Response:
    """Give a result: a file, the archive, the manifest, or why there is none."""
    name = str(request.path_params["name"])
    found = await service.workers.run(lambda: _own(request))
    portal = service.portal
    if name == "manifest":
        return MadeAnswer(
            streams_of(request), lambda _gone: portal.jobs.manifest(found.id), "text/plain"
        )
    if name == "result" and found.rows != 1:
        make = partial(portal.jobs.archive, found.id, "zip")
        attached = {"Content-Disposition": f'attachment; filename="{found.id}.zip"'}
        return MadeAnswer(downloads_of(request), make, ARCHIVE, attached)

    def single() -> Response:
        number = 0 if name == "result" else _number(name)
        rows = portal.jobs.rows(found.id, start=number, limit=1)
        if not rows or rows[0].number != number:
            raise NoSuchResultError(f"job {found.id}: it has no result {name[:80]!r}")
        row = rows[0]
        if row.status == "waiting":
            raise NoSuchResultError(f"job {found.id}: {name[:80]!r} is not done")
        if row.status != "ok":
            return PlainTextResponse(_why(row))
        made = portal.jobs.result(found.id, row.name)
        return answer_with(request, downloads_of(request), made, {})

    return await service.workers.run(single)


def _results(service: Service, request: Request, job: Job) -> list[ResultReference]:
    """Give what there is of a job that has ended."""
    if job.phase in ACTIVE or job.rows == 0:
        return []
    base = f"{_url(service, request, job)}/results"

    def reference(name: str, kind: str, size: int | None = None) -> ResultReference:
        known: dict[str, Any] = {} if size is None else {"size": size}
        return ResultReference(id=name, href=f"{base}/{name}", mime_type=kind, **known)

    rows = service.portal.jobs.rows(job.id, limit=MOST_LISTED)
    manifest = reference("manifest", "text/plain")
    if job.rows == 1:
        return [*_references(rows, lambda _: "result", reference, job), manifest]
    archive = reference("result", ARCHIVE)
    if job.rows > MOST_LISTED:
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
        raise NoSuchResultError(f"a job has no result {name[:80]!r}")
    return int(digits) - 1


def _why(row: Row) -> str:
    """Tell why a row has no result; what could not be asked for begins with its label already."""
    if row.reason.partition(":")[0] in get_args(Label):
        return f"{row.reason}\n"
    return f"{LABELS[row.status]}: {row.reason or WORDS[row.status]}\n"


def _own(request: Request) -> Job:
    """Give the job of a path, if whoever asks may see it."""
    return own_job(request, str(request.path_params["job"]), _user(request))


def _user(request: Request) -> User:
    return cast("User", request.state.user)


def _url(service: Service, request: Request, job: Job) -> str:
    return service.url(request, f"async/{job.id}")


def _see(url: str) -> Response:
    return RedirectResponse(url, 303)


async def _form(request: Request) -> Parameters:
    parts = await read_form(request)
    query = from_query(request.scope["query_string"]).given
    return Parameters([*query, *((part.name, part.text) for part in parts)])


def _needed(given: Parameters, name: str) -> str:
    value = given.one(name)
    if value is None:
        raise usage(f"{name} is missing")
    return value


def _whole(name: str, value: str, least: int = 0) -> int:
    """Read a whole number."""
    try:
        number = int(value[:20]) if value.isascii() else least - 1
    except ValueError:
        number = least - 1
    if number < least:
        raise usage(f"{name}: expected a whole number, {least} or more, found {shown(value)}")
    return number


def _moment(name: str, value: str) -> datetime:
    """Read a time as ISO 8601; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(value.strip()[:50])
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise usage(
            f"{name}: expected a time, 2026-11-21T12:00:00Z, found {shown(value)}"
        ) from None
