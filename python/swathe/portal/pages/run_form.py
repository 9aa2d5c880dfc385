"""The form for a new run: its table of arrays, what writing them costs, and its submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.core.errors import LimitError, SettingsError, SwatheError
from swathe.portal.access import Reader, needs
from swathe.portal.context import portal_of
from swathe.portal.http_errors import headers_of, status_of, text_of
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.portal.pages.run_fields import ARRAY_KEYS, EXAMPLE, OWN_KEYS, RunForm
from swathe.portal.readable_run import LONGEST_LABEL, find_readable_run
from swathe.portal.run_requests import INVALID, MOST_ARRAYS, MOST_BYTES, setting_of
from swathe.portal.run_submission import script_of, submit_run
from swathe.runs.definition.run_settings import Mode, RunSettings, read_arrays
from swathe.runs.planning.placement import DISABLE, PLACES
from swathe.runs.planning.run_plan import settings_toml

if TYPE_CHECKING:
    from swathe.catalog import Catalog

router = APIRouter(route_class=PageRoute)
may_submit = needs("submit")
MOST_FIELDS = len(OWN_KEYS) + MOST_ARRAYS * (len(ARRAY_KEYS) + 1) + 10


@router.api_route("/runs/new", methods=["GET", "HEAD"])
def blank(request: Request, user: Reader, run: str = "", example: bool = False) -> Response:
    """Show the form: empty, of a run, or of the example."""
    form = RunForm()
    if run:
        form = RunForm.of_text(_settings_of(request, run[:LONGEST_LABEL]))
    elif example:
        form = RunForm.of_text(EXAMPLE)
    if form.rows:
        _predict(request, form)
    return _answer(request, form, may=user.may("submit"))


def _settings_of(request: Request, label: str) -> str:
    """Return the settings of a run as a file."""
    portal = portal_of(request)
    record = find_readable_run(portal, label)
    raw = {each.name: _without_none(each.settings) for each in portal.catalog.run_arrays(record.id)}
    arrays = dict(read_arrays(raw, record.iterations))
    return settings_toml(RunSettings(record.name, record.iterations, record.ranks, None, arrays))


def _without_none(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in settings.items() if each is not None}


@router.post("/runs/new")
async def fill(request: Request, user: Reader) -> Response:
    """Predict or submit the run of a form that is filled in, or return its settings or script."""
    async with request.form(
        max_files=1, max_fields=MOST_FIELDS, max_part_size=MOST_BYTES
    ) as form_data:
        action = form_data.get("do")
        if action == "submit":
            await may_submit(request)
        try:
            form = await _read_form(form_data)
        except (SettingsError, LimitError) as error:
            form = RunForm(text=str(form_data.get("paste", ""))[:MOST_BYTES], error=text_of(error))
    return await run_in_threadpool(_act, request, form, user.may("submit"))


async def _read_form(form_data: FormData) -> RunForm:
    action = str(form_data.get("do", "predict"))
    file = form_data.get("file")
    if action == "read":
        if isinstance(file, UploadFile) and file.filename:
            content = await file.read(MOST_BYTES + 1)
            return RunForm.of_text(content.decode("utf-8", "replace"))
        return RunForm.of_text(str(form_data.get("paste", "")))
    form = RunForm(text=str(form_data.get("settings", "")), action=action)
    form.fields = {key: str(form_data.get(key, first)) for key, first in OWN_KEYS.items()}
    for at in range(MOST_ARRAYS):
        if f"a{at}-name" not in form_data:
            break
        form.rows.append(
            {"name": str(form_data[f"a{at}-name"])}
            | {key: str(form_data.get(f"a{at}-{key}", first)) for key, first in ARRAY_KEYS.items()}
        )
    form.command = str(form_data.get("command", ""))
    form.choice = str(form_data.get("choice", ""))
    return form


def _act(request: Request, form: RunForm, may: bool) -> Response:
    if form.error:
        return _answer(request, form, may=may, code=422)
    error = _predict(request, form)
    if form.plan is None or form.action not in ("settings", "script", "submit"):
        # A prediction with an error is still a valid response.
        code = _status_of(error) if error and form.action not in ("predict", "read") else 200
        return _answer(request, form, may=may, code=code, error=error)
    try:
        if form.action == "submit":
            settings = portal_of(request).config.runs
            number = submit_run(form.plan, form.values(), settings, form.choice)
            return RedirectResponse(f"/runs?{urlencode({'job': number})}", 303, HEADERS)
        if form.action == "script":
            return _download(script_of(form.plan, form.command), "run.sh")
    except SwatheError as fault:
        form.error, form.fault = text_of(fault), setting_of(fault, ())
        return _answer(request, form, may=may, code=_status_of(fault), error=fault)
    return _download(settings_toml(RunSettings.from_mapping(form.values())), "run.toml")


def _predict(request: Request, form: RunForm) -> SwatheError | None:
    """Predict the run of a form; return the error if it has one."""
    portal = portal_of(request)
    try:
        form.plan = portal.predictions.plan(form.values(), portal.catalog)
    except INVALID as error:
        form.error = text_of(error)
        form.fault = setting_of(error, [row["name"] for row in form.rows])
        return error
    return None


def _status_of(error: SwatheError) -> int:
    """Return the HTTP status of an error of a form: a store that it names is a value of it."""
    is_value = isinstance(error, INVALID) and not headers_of(error)
    return 422 if is_value else status_of(error)


def _download(text: str, name: str) -> Response:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, 200, headers, "text/plain; charset=utf-8")


def _answer(
    request: Request, form: RunForm, *, may: bool, code: int = 200, error: SwatheError | None = None
) -> Response:
    portal = portal_of(request)
    settings = portal.config.runs
    prediction = None if form.plan is None else form.plan.prediction
    response = page(
        request,
        "run_form.html",
        code=code,
        form=form,
        prediction=prediction,
        costs=[] if prediction is None else prediction.rows(),
        overruns=[each for each in prediction.arrays if each.overruns] if prediction else [],
        reasons={} if form.plan is None else form.plan.reasons,
        modes=get_args(Mode),
        places=_places(portal.catalog),
        runs=portal.catalog.runs(most=20),
        commands=settings.commands if settings.submit and may else (),
        has_submit=settings.submit and may,
    )
    if error is not None:
        response.headers.update(headers_of(error))
    return response


def _places(catalog: Catalog) -> list[str]:
    """Return what a location may be: stores that can be written to, and hints."""
    stores = [store.name for store in catalog.stores() if store.kind.is_writable]
    return [*stores, *PLACES, DISABLE]
