"""Endpoints on runs: the list, one run, and the prediction of a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from swathe.core.errors import LimitError, SettingsError, SwatheError
from swathe.files.preview import Stretch
from swathe.portal.access import Reader
from swathe.portal.api import models
from swathe.portal.context import portal_of
from swathe.portal.http.ranges import is_unchanged
from swathe.portal.http.request_ids import request_id
from swathe.portal.http_errors import text_of
from swathe.portal.readable_run import ReadRun
from swathe.portal.run_overview import overview_of
from swathe.portal.run_requests import INVALID, parse_run, setting_of
from swathe.portal.run_sections import LONGEST_INDEX, section_of
from swathe.runs.definition.run_settings import MOST_ITERATIONS, NAME

router = APIRouter(tags=["runs"])

LONGEST_LIST = 1000
TITLE = "The settings of the run are invalid."
PROBLEM = "application/problem+json"
JSON = "application/json"
NPY, PNG = "application/octet-stream", "image/png"
TOML = ("application/toml", "text/plain")
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The settings as in `run.toml`.",
        "content": {
            JSON: {"schema": {"type": "object"}},
            **{kind: {"schema": {"type": "string"}} for kind in TOML},
        },
    }
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    422: {
        "description": TITLE,
        "content": {PROBLEM: {"schema": models.SettingsProblem.model_json_schema()}},
    }
}


@router.get("/runs", response_model=models.RunList)
def runs(
    request: Request,
    _user: Reader,
    name: Annotated[str | None, Query(pattern=rf"^{NAME}$")] = None,
    last: Annotated[int, Query(ge=1, le=LONGEST_LIST)] = 100,
) -> Any:
    """List runs, newest first: of all applications, or of one."""
    return {"runs": portal_of(request).catalog.runs(name, last)}


@router.get("/runs/{name}", response_model=models.RunDetail)
def run(request: Request, user: Reader, record: ReadRun) -> Any:
    """Return a run: what was written of its arrays, where it lies, and what that was to take."""
    portal = portal_of(request)
    arrays = overview_of(portal.catalog, record, has_reasons=portal.sees_all(user))
    return {**vars(record), "label": record.label, "arrays": arrays}


@router.post(
    "/runs/predict",
    response_model=models.PredictedRunModel,
    responses=PROBLEMS,
    openapi_extra=BODY,
)
async def predict(request: Request, _user: Reader) -> Any:
    """Return the table of `swathe run predict` for settings as in `run.toml`. Nothing is written.

    An error of the settings names the array and the setting.
    """
    content = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return await run_in_threadpool(_predict, request, content, kind)


Array = Annotated[str, Path(max_length=100, description="Name of the array.")]
Iteration = Annotated[int, Path(ge=0, le=MOST_ITERATIONS)]
SectionIndex = Annotated[
    str,
    Query(
        max_length=LONGEST_INDEX,
        description="As in brackets of NumPy, `64,:,:`; by default the plane in the middle.",
    ),
]
BYTES: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
NO_CHANGE: dict[int | str, dict[str, Any]] = {
    304: {"description": "Unchanged: the client has this version.", "content": {}}
}


@router.get(
    "/runs/{name}/{array}/{iteration}/section.npy",
    response_class=Response,
    responses={200: {"description": "A file of NumPy.", "content": {NPY: BYTES}}, **NO_CHANGE},
)
def section(
    request: Request, record: ReadRun, array: Array, iteration: Iteration, index: SectionIndex = ""
) -> Response:
    """Return a section of an array at one iteration; only the chunks that it touches are read."""
    part = section_of(portal_of(request).catalog, record, array, iteration, index)
    file_name = f"{record.label}-{array}-{iteration}.npy"
    headers = {"Content-Disposition": f'attachment; filename="{file_name}"'}
    return _answer(request, f"{part.tag}-{part.index}", part.npy, NPY, headers)


@router.get(
    "/runs/{name}/{array}/{iteration}/section.png",
    response_class=Response,
    responses={200: {"description": "A picture.", "content": {PNG: BYTES}}, **NO_CHANGE},
)
def section_picture(
    request: Request,
    record: ReadRun,
    array: Array,
    iteration: Iteration,
    index: SectionIndex = "",
    stretch: Stretch = "linear",
    low: Annotated[float | None, Query(ge=0, le=100)] = None,
    high: Annotated[float | None, Query(ge=0, le=100)] = None,
    size: Annotated[int, Query(ge=16, le=2048)] = 512,
) -> Response:
    """Return a picture of a section with two axes, the first upwards.

    Black and white are the percentiles `low` and `high` of its elements, else set by zscale.
    """
    part = section_of(portal_of(request).catalog, record, array, iteration, index)
    tag = f"{part.tag}-{part.index}-{stretch}-{low}-{high}-{size}"
    return _answer(request, tag, lambda: part.png(stretch, low, high, size), PNG, {})


def _answer(
    request: Request, tag: str, make: Callable[[], bytes], kind: str, headers: Mapping[str, str]
) -> Response:
    """Return what is made, or 304 if the client has it."""
    etag = f'"{sha256(tag.encode()).hexdigest()[:32]}"'
    # The run may still be written, moved or removed.
    every = {**headers, "ETag": etag, "Cache-Control": "private, no-cache"}
    if is_unchanged(request, etag):
        return Response(status_code=304, headers=every)
    return Response(make(), 200, every, kind)


def _predict(request: Request, content: bytes, kind: str) -> Response | dict[str, Any]:
    values: dict[str, Any] = {}
    try:
        if kind not in (JSON, *TOML):
            raise SettingsError(f"expected {JSON} or {TOML[0]}, found {kind[:100] or 'nothing'!r}")
        values = parse_run(content, "the run", is_json=kind == JSON)
        portal = portal_of(request)
        plan = portal.predictions.plan(values, portal.catalog)
    except INVALID as error:
        if isinstance(error, LimitError) and error.retry_after_s is not None:
            raise
        return _problem(error, values)
    return {**plan.prediction.as_dict(), "reasons": dict(plan.reasons)}


def _problem(error: SwatheError, values: dict[str, Any]) -> Response:
    """Return an error of settings."""
    arrays = values.get("arrays")
    array, setting = setting_of(error, arrays if isinstance(arrays, dict) else ())
    text = text_of(error)
    problem = models.SettingsProblem(
        error=text,
        kind=type(error).__name__,
        request_id=request_id(),
        title=TITLE,
        status=422,
        detail=text,
        array=array,
        setting=setting,
    )
    return JSONResponse(problem.model_dump(), 422, media_type=PROBLEM)
