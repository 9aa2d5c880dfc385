"""Pages on runs: the list, one run with what was written, and the dumps of one array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args
from urllib.parse import quote

from fastapi import APIRouter, Query
from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from swathe.core.errors import RegionError
from swathe.files.preview import Stretch
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.pages.render import PageRoute, page
from swathe.portal.readable_run import ReadRun
from swathe.portal.run_overview import overview_of
from swathe.portal.run_sections import LONGEST_INDEX, array_of, middle_of, parse_index
from swathe.runs.definition.run_settings import MOST_ITERATIONS, NAME, ArraySettings
from swathe.trace import recorded_file

if TYPE_CHECKING:
    from swathe.catalog.records.runs import RunRecord

router = APIRouter(route_class=PageRoute)
READ = ["GET", "HEAD"]
RUNS = 50
DUMPS = 50
"""Dumps on one page of an array."""
# A form also sends empty fields.
Iteration = Annotated[
    int | None, Query(ge=0, le=MOST_ITERATIONS), BeforeValidator(lambda value: value or None)
]


@router.api_route("/runs", methods=READ)
def runs(
    request: Request,
    _user: Reader,
    name: Annotated[str, Query(pattern=rf"^({NAME})?$")] = "",
    last: Annotated[int, Query(ge=1, le=1000)] = RUNS,
    submitted_job: Annotated[str, Query(alias="job", pattern=r"^\d{0,18}$")] = "",
) -> Response:
    """List runs, newest first."""
    records = portal_of(request).catalog.runs(name or None, last + 1)
    return page(
        request,
        "runs.html",
        runs=records[:last],
        more=min(1000, last + RUNS) if len(records) > last and last < 1000 else None,
        name=name,
        slurm_job=submitted_job,
    )


@router.api_route("/runs/{name}", methods=READ)
def run(request: Request, user: Reader, record: ReadRun) -> Response:
    """Show a run: what was written, where it lies, and predicted beside actual times."""
    portal = portal_of(request)
    arrays = overview_of(portal.catalog, record, has_reasons=portal.sees_all(user))
    stores: dict[str, int] = {}
    for each in arrays:
        for store, dumps in each.stores.items():
            stores[store] = stores.get(store, 0) + dumps
    predictions = [each.predicted_s for each in arrays]
    return page(
        request,
        "run.html",
        run=record,
        arrays=arrays,
        stores=stores,
        seconds=sum(each.seconds for each in arrays),
        predicted_s=None if None in predictions else sum(each or 0.0 for each in predictions),
        bytes=sum(each.bytes for each in arrays),
        dumps=sum(each.dumps for each in arrays),
        planned_dumps=sum(each.planned_dumps for each in arrays),
        trace=_trace_settings(record),
    )


def _trace_settings(record: RunRecord) -> dict[str, Any] | None:
    """Return the settings of the viewer for the lifelines of a run; `None` without a trace."""
    if recorded_file() is None:
        return None
    source = f"/runs/{quote(record.label)}/trace"
    is_running = record.state == "running"
    return {"source": source, "follow": is_running, "bar": False, "section": True, "kind": "object"}


@router.api_route("/runs/{name}/arrays/{array}", methods=READ)
def array(
    request: Request,
    _user: Reader,
    record: ReadRun,
    array: str,
    iteration: Iteration = None,
    index: Annotated[str, Query(max_length=LONGEST_INDEX)] = "",
    stretch: Stretch = "linear",
    after: Annotated[int, Query(ge=-1, le=MOST_ITERATIONS)] = -1,
) -> Response:
    """Show where the dumps of an array lie, and a picture of a section of one."""
    catalog = portal_of(request).catalog
    array_record = array_of(catalog, record, array)
    settings = ArraySettings.of_record(array_record.settings)
    dumps = catalog.dump_page(array_record.id, DUMPS + 1, after)
    if iteration is None:
        newest = catalog.dump_page(array_record.id, 1, is_newest_first=True)
        dump = newest[0] if newest else None
    else:
        dump = catalog.dump(array_record.id, iteration)
    text = index or middle_of(settings.shape)
    error = ""
    try:
        parts = parse_index(text, settings.shape)
        axes = sum(isinstance(each, slice) for each in parts)
    except RegionError as fault:
        error, axes = str(fault), 0
    return page(
        request,
        "run_array.html",
        code=422 if error else 200,
        run=record,
        name=array_record.name,
        settings=settings,
        dumps=dumps[:DUMPS],
        after=after,
        next_after=dumps[DUMPS - 1].iteration if len(dumps) > DUMPS else None,
        dump=dump,
        iteration=iteration if iteration is not None else dump.iteration if dump else "",
        index=text,
        planes=_planes(settings.shape),
        error=error,
        is_plane=axes == 2 and settings.sharding.dtype.kind != "c",
        stretch=stretch,
        stretches=get_args(Stretch),
    )


def _planes(shape: tuple[int, ...]) -> list[str]:
    """Return the indices of the planes through the middle of an array of three axes."""
    if len(shape) != 3:
        return []
    middles = [str(length // 2) for length in shape]
    return [",".join(middles[at] if at == axis else ":" for at in range(3)) for axis in range(3)]
