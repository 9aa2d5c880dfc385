"""Pages on algorithms: the list with the form that adds one, and one algorithm with its source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Annotated

import numpy as np
from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from markupsafe import escape
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.algorithms.fault_lines import fault_lines
from swathe.algorithms.header import MOST_SOURCE_BYTES, parse_source
from swathe.algorithms.named_algorithms import add_source
from swathe.algorithms.parameters import requirement_of
from swathe.algorithms.read_definition import read_definition
from swathe.algorithms.static_check import checked_definition
from swathe.algorithms.tar_files import MOST_PACKAGE_BYTES
from swathe.catalog.group_runs import MOST_TIMINGS
from swathe.core.errors import AccessError, SwatheError
from swathe.core.format import harmless_text
from swathe.portal.access import Reader, Submitter
from swathe.portal.api.algorithms import Name, Version, version_label
from swathe.portal.context import portal_of
from swathe.portal.http_errors import headers_of, status_of, text_of
from swathe.portal.pages.algorithm_commands import commands_of
from swathe.portal.pages.render import HEADERS, PageRoute, page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import FormData

    from swathe.algorithms.definition import Algorithm
    from swathe.catalog.records.algorithms import GroupTiming

router = APIRouter(route_class=PageRoute)
READ = ["GET", "HEAD"]
ALGORITHMS = 100
VERSIONS = 50
LATEST = 10
"""Runs that the page of an algorithm lists."""
MOST_CHARACTERS = 120_000
"""Characters of a source, escaped for HTML, that its page shows and the form repeats."""
MOST_LINES = 2000
LONGEST_LINE = 200
LABEL = "the algorithm"


@dataclass
class SourceForm:
    """The form that checks and adds a source.

    Attributes:
        source: content of the text field.
        excess: characters of a source that is too long to be repeated.
        faults: line, its text, and the error, for each error.
        definition: what a source without errors says.
    """

    source: str = ""
    excess: int = 0
    faults: tuple[tuple[int | None, str, str], ...] = ()
    definition: Algorithm | None = None


@dataclass(frozen=True)
class RunHistory:
    """Runs of a version that succeeded, the latest `MOST_TIMINGS`.

    Attributes:
        runs: number of runs.
        wall_s: 10th, 50th and 90th percentile of their time in seconds.
        input_bytes: median size of their inputs.
        output_bytes: median size of their outputs.
        latest: the latest runs, the newest first.
    """

    runs: int
    wall_s: tuple[float, float, float]
    input_bytes: float
    output_bytes: float
    latest: Sequence[GroupTiming]

    @classmethod
    def of(cls, timings: Sequence[GroupTiming]) -> RunHistory | None:
        """Return the history of some runs; `None` without any."""
        if not timings:
            return None
        low, middle, high = np.percentile([each.wall_s for each in timings], (10, 50, 90)).tolist()
        return cls(
            len(timings),
            (low, middle, high),
            median(each.input_bytes for each in timings),
            median(each.output_bytes for each in timings),
            timings[:LATEST],
        )


@router.api_route("/algorithms", methods=READ)
def algorithms(
    request: Request, user: Reader, start: Annotated[int, Query(ge=0, le=10**6)] = 0
) -> Response:
    """List the newest version of each algorithm, and show the form that adds one."""
    return _list(request, SourceForm(), may=user.may("submit"), start=start)


@router.post("/algorithms")
async def fill(request: Request, user: Submitter) -> Response:
    """Check or add the source of the form."""
    async with request.form(
        max_files=1, max_fields=4, max_part_size=2 * MOST_SOURCE_BYTES
    ) as fields:
        content = await _content_of(fields)
        is_addition = fields.get("do") == "add"
    return await run_in_threadpool(_act, request, content, user.name, is_addition)


async def _content_of(fields: FormData) -> bytes:
    file = fields.get("file")
    if isinstance(file, UploadFile) and file.filename:
        return await file.read(MOST_PACKAGE_BYTES + 1)
    # Browsers send the lines of a text field with CR LF.
    text = str(fields.get("source", "")).replace("\r\n", "\n")
    return text.encode("utf-8", "surrogatepass")


def _act(request: Request, content: bytes, owner: str, is_addition: bool) -> Response:
    portal = portal_of(request)
    text = content.decode("utf-8", "replace")
    is_long = len(escape(text)) > MOST_CHARACTERS
    form = SourceForm("" if is_long else text, len(text) if is_long else 0)
    try:
        source = parse_source(content, LABEL)
        if is_addition:
            record, _ = add_source(portal.catalog, source, owner, portal.uploads.launcher)
            address = f"/algorithms/{record.name}?version={record.version}"
            return RedirectResponse(address, 303, HEADERS)
        form.definition = checked_definition(
            source, portal.uploads.launcher, catalog=portal.catalog, owner=owner
        )
    except SwatheError as error:
        form.faults = _faults(text, error)
        # As for an estimate, the errors of a check are a valid response.
        response = _list(request, form, may=True, code=status_of(error) if is_addition else 200)
        response.headers.update(headers_of(error))
        return response
    return _list(request, form, may=True)


def _faults(text: str, error: SwatheError) -> tuple[tuple[int | None, str, str], ...]:
    """Return the errors of a source, each with its line."""
    faults = getattr(error, "faults", ()) or (text_of(error).removeprefix(f"{LABEL}: "),)
    lines = text.replace("\r\n", "\n").split("\n")
    numbers = fault_lines(text, faults)
    return tuple(
        (at, harmless_text(lines[at - 1][:LONGEST_LINE]) if at and at <= len(lines) else "", fault)
        for at, fault in zip(numbers, faults, strict=True)
    )


def _list(
    request: Request, form: SourceForm, *, may: bool, start: int = 0, code: int = 200
) -> Response:
    records = portal_of(request).catalog.algorithms()
    versions = Counter(each.name for each in records)
    newest = {each.name: each for each in reversed(records)}
    names = sorted(newest)
    return page(
        request,
        "algorithms.html",
        code=code,
        algorithms=[newest[name] for name in names[start : start + ALGORITHMS]],
        versions=versions,
        runs=portal_of(request).catalog.group_run_counts(),
        most_runs=MOST_TIMINGS,
        start=start,
        back=max(0, start - ALGORITHMS) if start else None,
        after=start + ALGORITHMS if len(names) > start + ALGORITHMS else None,
        form=form,
        is_answer=bool(form.faults or form.definition),
        may_submit=may,
        valid=requirement_of,
    )


@router.api_route("/algorithms/{name}", methods=READ)
def algorithm(request: Request, user: Reader, name: Name, version: Version = None) -> Response:
    """Show a version of an algorithm: what it reads and writes, how to run it, its source."""
    portal = portal_of(request)
    record, content = portal.catalog.algorithm(version_label(name, version))
    source = parse_source(content, record.label)
    definition = read_definition(source)
    versions = [each for each in portal.catalog.algorithms() if each.name == name]
    lines, count = _source_lines(source.files[source.described_in])
    return page(
        request,
        "algorithm.html",
        record=record,
        definition=definition,
        versions=versions[:VERSIONS],
        more_versions=max(0, len(versions) - VERSIONS),
        commands=commands_of(definition, portal.url(request), with_token=portal.access.needs_token),
        history=RunHistory.of(portal.catalog.group_timings(record.label)),
        lines=lines,
        line_count=count,
        file=source.described_in,
        files=len(source.files),
        may_order=user.may("submit"),
        may_remove=user.may("submit") and user.sees in (None, record.owner),
        valid=requirement_of,
    )


def _source_lines(content: bytes) -> tuple[list[str], int]:
    """Return the lines to show, without characters that hide others, and the number of all."""
    lines = content.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n").split("\n")
    size, lines_to_show = 0, []
    for line in lines[:MOST_LINES]:
        text = harmless_text(line)
        size += len(escape(text)) + 1
        if size > MOST_CHARACTERS:
            break
        lines_to_show.append(text)
    return lines_to_show, len(lines)


@router.api_route("/algorithms/{name}/remove", methods=READ)
def ask(request: Request, user: Submitter, name: Name, version: Version = None) -> Response:
    """Ask the user to confirm the removal."""
    label = version_label(name, version)
    record, _ = portal_of(request).catalog.algorithm(label)
    if user.sees not in (None, record.owner):
        raise AccessError(f"{label}: belongs to another user")
    what = record.label if version else f"all versions of {record.name}"
    query = f"?version={version}" if version else ""
    return page(
        request,
        "confirm.html",
        question=f"Remove {what}?",
        subject=record.label if version else record.name,
        about=record.description,
        consequence="It can no longer be run. A version that was removed keeps its number: "
        "only the same source can be added as that version again.",
        yes="Remove",
        action=f"/algorithms/{record.name}/remove{query}",
        back=f"/algorithms/{record.name}{query}",
        is_bad=True,
    )


@router.post("/algorithms/{name}/remove")
def remove(request: Request, user: Submitter, name: Name, version: Version = None) -> Response:
    """Remove a version of an algorithm, or by default all of its versions."""
    catalog = portal_of(request).catalog
    catalog.remove_algorithm(version_label(name, version), user.sees)
    is_left = any(each.name == name for each in catalog.algorithms())
    return RedirectResponse(f"/algorithms/{name}" if is_left else "/algorithms", 303, HEADERS)
