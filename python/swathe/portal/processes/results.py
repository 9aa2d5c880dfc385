"""Results of a job as OGC API Processes has them: raw, as parts, or in a document."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from swathe.catalog.records.jobs import ACTIVE
from swathe.core.errors import LimitError, NoSuchResultError
from swathe.jobs.group_archives import output_of
from swathe.operations.operation import ProgramOperation
from swathe.portal.access import downloads_of, streams_of
from swathe.portal.http.long_responses import GeneratedResponse
from swathe.portal.http.ranges import answer_with
from swathe.portal.processes.group_outputs import (
    definition_of,
    members_as_zip,
    pieces,
    result_rows,
)
from swathe.portal.processes.operation_process import ECSV, ZIP
from swathe.portal.processes.problems import RESULT_NOT_READY, ProblemError
from swathe.portal.processes.process import OutputChoice, record_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from swathe.algorithms.definition import Output
    from swathe.jobs import Job, Result
    from swathe.portal.context import Portal
    from swathe.portal.processes.process import ExecutionRecord, Transmission

LARGEST_VALUE = 16_000_000
"""Most bytes of a file that a document holds; larger ones are references."""
JSON = "application/json"
MULTIPART = "multipart/related"


@dataclass(frozen=True)
class ResultPart:
    """One output of a job.

    Attributes:
        name: name of the output.
        media_type: media type of its content.
        href: URL of it alone.
        response: function that returns it as the response to a request.
        content: function that returns its bytes, in pieces.
        size: number of its bytes; `None` if it is made as it is sent.
        value: its value in documents; `None` for files.
    """

    name: str
    media_type: str
    href: str
    response: Callable[[Request], Response]
    content: Callable[[], Iterator[bytes]]
    size: int | None = None
    value: Any = None


def result_parts(portal: Portal, job: Job, url: str) -> dict[str, ResultPart]:
    """Return the outputs of a job that has ended, by name.

    Args:
        portal: the portal.
        job: the job.
        url: URL of the portal, for references.

    Raises:
        ProblemError: If it has not ended, or without results.
    """
    if job.phase in ACTIVE:
        raise ProblemError(404, f"job {job.id}: its results are not ready yet", RESULT_NOT_READY)
    if job.phase == "ABORTED":
        raise ProblemError(410, f"job {job.id}: it was dismissed; see /api/jobs/{job.id}/rows")
    if job.phase == "ERROR":
        raise ProblemError(422, f"job {job.id}: {job.error}")
    record = record_of(job)
    base = f"{url}/ogc/jobs/{job.id}/results"
    if record.values is not None:
        return {name: _value_part(name, of, base) for name, of in record.values.items()}
    parts: list[ResultPart | None]
    if isinstance(job.options.results.kind, ProgramOperation):
        outputs = definition_of(portal, job).outputs
        parts = [_group_part(portal, job, name, of, base) for name, of in outputs.items()]
    else:
        parts = [_result(portal, job, record, url)]
    parts.append(_manifest(portal, job, url))
    return {part.name: part for part in parts if part is not None}


def _group_part(
    portal: Portal, job: Job, name: str, output: Output, base: str
) -> ResultPart | None:
    """Return an output of an algorithm: its file, or a zip of those of several groups."""
    rows = result_rows(portal, job, 2)
    member = f"{name}{output.suffix}"
    if not rows:
        return None
    if len(rows) == 1:
        try:
            file = output_of(portal.jobs.result(job.id, rows[0].name), member)
        except NoSuchResultError:
            return None  # it is optional
        return _file_part(name, replace(file, media_type=output.media_type), f"{base}/{name}")
    make = partial(members_as_zip, portal, job, member, output.suffix)
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return ResultPart(
        name,
        ZIP,
        f"{base}/{name}",
        lambda request: GeneratedResponse(
            downloads_of(request), lambda _cancelled: make(), ZIP, headers
        ),
        make,
    )


def _file_part(name: str, file: Result, href: str) -> ResultPart:
    """Return an output that is one file."""
    return ResultPart(
        name,
        file.media_type,
        href,
        lambda request: answer_with(request, downloads_of(request), file, {}),
        lambda: _content(file),
        file.size,
    )


def _value_part(name: str, of: dict[str, Any], base: str) -> ResultPart:
    """Return an output of `echo`."""
    value, kind = of["value"], of["mediaType"]
    if name == "binaryOutput":
        content, kind = base64.b64decode(value), kind or "application/octet-stream"
        value = {"value": value, "encoding": "base64", "mediaType": kind}
    elif isinstance(value, str):
        content, kind = value.encode(), "text/plain"
    else:
        content, kind = json.dumps(value).encode(), JSON
    # A browser must not show what a client sent as a page of the portal.
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return ResultPart(
        name,
        kind,
        f"{base}/{name}",
        lambda _request: Response(content, 200, headers, kind),
        lambda: iter([content]),
        len(content),
        value,
    )


def _manifest(portal: Portal, job: Job, url: str) -> ResultPart:
    def content(_cancelled: object = None) -> Iterator[bytes]:
        return portal.jobs.manifest(job.id)

    return ResultPart(
        "manifest",
        ECSV,
        f"{url}/api/jobs/{job.id}/manifest",
        lambda request: GeneratedResponse(streams_of(request), content, ECSV),
        content,
    )


def _result(portal: Portal, job: Job, record: ExecutionRecord, url: str) -> ResultPart | None:
    """Return the file of a job, or the archive of several; `None` if there is none."""
    rows = result_rows(portal, job, 2)
    if not rows:
        return None
    choice = (record.outputs or {}).get("result", OutputChoice())
    base = f"{url}/api/jobs/{job.id}"
    if len(rows) > 1 or choice.media_type == ZIP:
        make = partial(portal.jobs.archive, job.id, "zip")
        headers = {"Content-Disposition": f'attachment; filename="{job.id}.zip"'}
        return ResultPart(
            "result",
            ZIP,
            f"{base}/archive.zip",
            lambda request: GeneratedResponse(downloads_of(request), make, ZIP, headers),
            make,
        )
    file = portal.jobs.result(job.id, rows[0].name)
    return _file_part("result", file, f"{base}/files/{file.name}")


def _content(file: Result) -> Iterator[bytes]:
    with file.open() as content:
        yield from pieces(content)


def answer_results(
    request: Request, portal: Portal, job: Job, transmission: Transmission | None = None
) -> Response:
    """Return the results of a job that has ended, in the form that its client chose.

    Without a choice one output is raw if the client accepts it, and several are a document.

    Args:
        request: the request, whose header `Accept` counts if nothing was chosen.
        portal: the portal.
        job: the job.
        transmission: how the client prefers outputs whose transmission it did not choose.

    Raises:
        ProblemError: If there are no results.
        LimitError: If a value is too large for a document.
    """
    record = record_of(job)
    parts = result_parts(portal, job, portal.url(request))
    choices = _choices_of(record, parts, transmission)
    response = record.response
    if response is None:
        is_one = len(record.outputs or record.values or ()) == 1
        is_one = is_one and all(_accepts(request, parts[each]) for each in choices)
        response = "raw" if is_one or MULTIPART in _accept_types(request) else "document"
    if response == "document":
        return JSONResponse(_document_of(parts, choices))
    values = [name for name, choice in choices.items() if choice.transmission != "reference"]
    links = ", ".join(
        f'<{parts[name].href}>; rel="{name}"; type="{parts[name].media_type}"'
        for name in choices
        if name not in values
    )
    if not values:
        return Response(status_code=204, headers={"Link": links} if links else {})
    if len(choices) == 1:
        return parts[values[0]].response(request)
    boundary = token_hex(16)
    return GeneratedResponse(
        downloads_of(request),
        lambda _cancelled: _multipart([parts[name] for name in choices], values, boundary),
        f"{MULTIPART}; boundary={boundary}",
    )


def one_result(request: Request, portal: Portal, job: Job, name: str) -> Response:
    """Return one output of a job that has ended.

    Raises:
        ProblemError: If there are no results.
        NoSuchResultError: If it has no such output.
    """
    part = result_parts(portal, job, portal.url(request)).get(name)
    if part is None:
        raise NoSuchResultError(f"job {job.id}: there is no output {name[:100]!r}")
    return part.response(request)


def results_document(portal: Portal, job: Job, url: str) -> dict[str, Any]:
    """Return the document of the results of a job that has ended, for the URL of the portal.

    Raises:
        ProblemError: If there are no results.
        LimitError: If a value is too large for a document.
    """
    parts = result_parts(portal, job, url)
    return _document_of(parts, _choices_of(record_of(job), parts, None))


def _choices_of(
    record: ExecutionRecord, parts: Mapping[str, ResultPart], transmission: Transmission | None
) -> dict[str, OutputChoice]:
    """Return the choice of each output that is there."""
    choices = record.outputs or dict.fromkeys(parts, OutputChoice())
    return {
        name: replace(choice, transmission=choice.transmission or transmission)
        for name, choice in choices.items()
        if name in parts
    }


def _document_of(
    parts: Mapping[str, ResultPart], choices: Mapping[str, OutputChoice]
) -> dict[str, Any]:
    return {name: _document_value(parts[name], choice) for name, choice in choices.items()}


def _document_value(part: ResultPart, choice: OutputChoice) -> Any:
    """Return an output in a document; files are references unless values were chosen."""
    if choice.transmission == "reference" or (part.value is None and choice.transmission is None):
        return {"href": part.href, "type": part.media_type}
    if part.value is not None:
        return part.value
    content = bytearray()
    for piece in part.content() if (part.size or 0) <= LARGEST_VALUE else ():
        content += piece
        if len(content) > LARGEST_VALUE:
            break
    if max(part.size or 0, len(content)) > LARGEST_VALUE:
        raise LimitError(
            f"output {part.name}: expected at most {LARGEST_VALUE:,} bytes by value, found more; "
            "choose transmissionMode reference"
        )
    if part.media_type.startswith("text/"):
        return {"value": content.decode(), "mediaType": part.media_type}
    text = base64.b64encode(content).decode()
    return {"value": text, "encoding": "base64", "mediaType": part.media_type}


def _multipart(parts: list[ResultPart], values: list[str], boundary: str) -> Iterator[bytes]:
    """Yield outputs as the parts of a message (RFC 2387); references have no content."""
    for part in parts:
        head = f"--{boundary}\r\nContent-ID: <{part.name}>\r\nContent-Type: {part.media_type}\r\n"
        if part.name not in values:
            yield f"{head}Content-Location: {part.href}\r\n\r\n\r\n".encode()
            continue
        yield f"{head}\r\n".encode()
        yield from part.content()
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _accept_types(request: Request) -> list[str]:
    """Return the media types that a client accepts, without their parameters."""
    lines = request.headers.getlist("accept")
    words = [word.partition(";")[0].strip().lower() for line in lines for word in line.split(",")]
    return [word for word in words if word] or ["*/*"]


def _accepts(request: Request, part: ResultPart) -> bool:
    kind = part.media_type.partition(";")[0]
    return not {"*/*", f"{kind.partition('/')[0]}/*", kind}.isdisjoint(_accept_types(request))
