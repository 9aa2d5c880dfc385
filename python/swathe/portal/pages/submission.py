"""The form for new jobs: a list of targets, its matches and predicted cost, and submission."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.core.box import MODES
from swathe.core.errors import SwatheError, TargetsError
from swathe.jobs import Options
from swathe.operations.registry import DEFAULT, formats, operations, own_options
from swathe.portal.access import Reader, needs
from swathe.portal.context import portal_of
from swathe.portal.http.long_responses import while_there
from swathe.portal.http_errors import headers_of, status_of, text_of
from swathe.portal.pages.archive import archive_counts_of
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.portal.pasted_targets import PastedTargets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swathe.jobs import Estimate
    from swathe.portal.pages.archive_counts import DatasetCounts
    from swathe.portal.uploads import Uploads

router = APIRouter(route_class=PageRoute)
may_submit = needs("submit")
MOST_FIELDS = 40
LONGEST_NAME = 200
MOST_ECHO_CHARACTERS = 1_000_000
"""Characters of a pasted list that the form still repeats: escaped, it may be six times as long."""
USUAL = "Usual for the operation"
FIELDS = {
    "targets": "",
    "name": "",
    "operation": DEFAULT,
    **{name: option.default for name, (_, option) in own_options().items()},
    "mode": "trim",
    "fill": "",
    "planes": "",
    "format": "",
    "dataset": "",
    "bands": "",
    "time_from": "",
    "time_to": "",
}
"""Fields of the form, with their initial values."""


@dataclass
class SubmissionForm:
    """The content of a filled-in form."""

    fields: dict[str, str]
    file_name: str = ""
    contents: bytes = b""


@router.api_route("/new", methods=["GET", "HEAD"])
def blank(request: Request, _user: Reader) -> Response:
    """Show the form, with fields filled in from the URL."""
    query_fields = {name: value for name, value in request.query_params.items() if name in FIELDS}
    return _form(request, SubmissionForm({**FIELDS, **query_fields}))


@router.post("/new")
async def fill(request: Request, user: Reader) -> Response:
    """Estimate or submit the job of a filled-in form."""
    most = round(portal_of(request).config.limits.body_mb * 1e6)
    async with request.form(max_files=2, max_fields=MOST_FIELDS, max_part_size=most) as form:
        form_content = await _read_form(form, most)
        submit = form.get("do") == "submit"
    if submit:
        await may_submit(request)
    try:
        table, paste = await while_there(
            request, _targets(portal_of(request).uploads, form_content)
        )
    except SwatheError as error:
        return await run_in_threadpool(_refuse, request, form_content, error, submit)
    return await run_in_threadpool(_answer, request, form_content, table, paste, user.name, submit)


async def _read_form(form: FormData, most: int) -> SubmissionForm:
    fields = {name: str(form.get(name, first)) for name, first in FIELDS.items()}
    file = form.get("file")
    if isinstance(file, UploadFile) and file.filename:
        contents = await file.read(most + 1)
        if len(contents) > most:
            raise TargetsError(
                f"{file.filename[:100]}: expected at most {most:,} bytes, found more"
            )
        return SubmissionForm(fields, file.filename, contents)
    return SubmissionForm(fields)


def _refuse(
    request: Request, form_content: SubmissionForm, error: SwatheError, submit: bool
) -> Response:
    if not submit:  # an estimate with an error is still a valid response
        return _form(request, form_content, error=text_of(error))
    response = _form(request, form_content, code=status_of(error), error=text_of(error))
    response.headers.update(headers_of(error))
    return response


def _answer(
    request: Request,
    form_content: SubmissionForm,
    table: Any,
    paste: PastedTargets,
    owner: str,
    submit: bool,
) -> Response:
    jobs = portal_of(request).jobs
    try:
        options = Options.from_mapping(options_of(form_content.fields))
        if submit:
            if paste.refusals:
                raise TargetsError(_refusal(paste))
            job = jobs.submit(
                table, options, owner, name=form_content.fields["name"][:LONGEST_NAME]
            )
            return RedirectResponse(f"/jobs/{job.id}", 303, HEADERS)
        estimate = jobs.estimate(table, options)
    except SwatheError as error:
        return _refuse(request, form_content, error, submit)
    return _form(request, form_content, estimate=estimate, paste=paste)


async def _targets(uploads: Uploads, form_content: SubmissionForm) -> tuple[Any, PastedTargets]:
    """Return the targets, and the errors of a pasted list."""
    if form_content.file_name:
        return await uploads.table(
            io.BytesIO(form_content.contents), form_content.file_name
        ), PastedTargets()
    paste = await uploads.paste(form_content.fields["targets"])
    if not len(paste):
        raise TargetsError(
            _refusal(paste) if paste.refusals else "the list: expected a target, found none"
        )
    return paste.table, paste


def _refusal(paste: PastedTargets) -> str:
    line, fault = paste.faults[0]
    more = f"; {paste.refusals - 1:,} more lines are not targets" if paste.refusals > 1 else ""
    return f"line {line} is not a target: {fault}{more}"


def options_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a job from the fields of the form, without empty ones."""
    names = ("operation", "mode", "format", "dataset", "planes", "bands")
    options: dict[str, Any] = {name: fields[name].strip() or None for name in names}
    for name, (kind, _) in own_options().items():
        if fields["operation"] == kind.name:
            options[name] = fields[name]
    if fields["mode"] == "partial" and fields["fill"].strip():
        options["fill"] = _number("fill", fields["fill"])
    start, end = fields["time_from"].strip(), fields["time_to"].strip()
    if bool(start) != bool(end):
        raise TargetsError("time: expected both a first and a last day or neither, found one")
    if start:
        options["time"] = [start, end]
    return options


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TargetsError(f"{name}: expected a number, found {text[:40]!r}") from None


def _faults(estimate: Estimate, paste: PastedTargets) -> list[tuple[str, str]]:
    """Return the errors of single targets, in the order of the lines."""
    if not paste.has_line_numbers:
        line_errors = [(f"Line {line}", fault) for line, fault in paste.faults]
        return line_errors + estimate.faults
    lines = [(str(line), fault) for line, fault in paste.faults] + estimate.faults
    # A line that matches several images is 7, 7-2, 7-3 ...
    lines.sort(key=lambda line_errors: int(line_errors[0].partition("-")[0]))
    return [(f"Line {line}", fault) for line, fault in lines]


def _example(request: Request, datasets: Sequence[DatasetCounts]) -> dict[str, str]:
    """Return a file and a position of this archive, for the hints of the form."""
    catalog = portal_of(request).catalog
    for each in datasets:
        images = catalog.granules(each.dataset.name, 0, 1)
        if images:
            place = images[0].footprint
            where = f"{place.s_ra:.4f} {place.s_dec:.4f}" if place else "10.68 41.27"
            return {"file": f"{each.dataset.store}:{images[0].path}", "place": where}
    return {"file": "STORE:path", "place": "10.68 41.27"}


def _form(
    request: Request,
    form_content: SubmissionForm,
    *,
    code: int = 200,
    error: str = "",
    estimate: Estimate | None = None,
    paste: PastedTargets | None = None,
) -> Response:
    datasets = archive_counts_of(request).all()
    stores = portal_of(request).catalog.stores()
    fields = form_content.fields
    echo_excess = len(fields["targets"]) if len(fields["targets"]) > MOST_ECHO_CHARACTERS else 0
    if echo_excess:
        fields = {**fields, "targets": ""}
    return page(
        request,
        "new.html",
        code=code,
        fields=fields,
        echo_excess=echo_excess,
        file_name=form_content.file_name,
        error=error,
        operations=[(each.name, each.title) for each in operations().values()],
        own_options=[(option, kind.name) for kind, option in own_options().values()],
        formats=[("", USUAL), *formats().items()],
        modes=MODES.items(),
        submitted=bool(error) and code != 200,
        example=_example(request, datasets),
        estimate=estimate,
        pasted=paste,
        faults=_faults(estimate, paste) if estimate and paste else [],
        held=datasets,
        known_bands=sorted({band for each in datasets for band in each.summary.bands})[:40],
        stores=stores,
        name_of={each.url: each.name for each in stores},
    )
