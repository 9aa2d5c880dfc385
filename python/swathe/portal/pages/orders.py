"""The form that orders an algorithm: matches, their groups, predicted cost, submission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.algorithms.algorithm_version import algorithm_version
from swathe.algorithms.parameters import requirement_of
from swathe.catalog.datasets.objects import ObjectQuery
from swathe.core.errors import SwatheError
from swathe.datasets.earth_search import EarthArea
from swathe.files.places.bounds import Bounds
from swathe.jobs.orders import ordered_granules
from swathe.portal.access import Reader, needs
from swathe.portal.api.algorithms import Name, Version, version_label
from swathe.portal.context import portal_of
from swathe.portal.http_errors import headers_of, status_of, text_of
from swathe.portal.pages.archive import archive_counts_of
from swathe.portal.pages.earthmap import box_map
from swathe.portal.pages.order_fields import PLACE, OrderForm
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.portal.pages.timeline import time_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swathe.algorithms.definition import Algorithm
    from swathe.catalog import Catalog, Dataset
    from swathe.jobs import Estimate
    from swathe.jobs.orders import Order

router = APIRouter(route_class=PageRoute)
may_submit = needs("submit")
MOST_FIELDS = 150
OUTLINES = 500
"""Maximum number of granules whose outlines are on the map."""
SEARCH = frozenset({"collection", "time_from", "time_to", PLACE})
"""Fields that the search needs."""


@dataclass
class OrderPage:
    """What the form shows beside its fields.

    Attributes:
        granules: columns of the granules that match; `None` before a search.
        outlines: path and outlines of the first granules.
        estimate: groups and predicted cost.
        error: error that is about no field.
    """

    granules: Mapping[str, Sequence[str]] | None = None
    outlines: Sequence[tuple[str, Sequence[Sequence[float]]]] = ()
    estimate: Estimate | None = None
    error: str = ""

    @property
    def starts(self) -> list[float]:
        """Return the first times of the granules that have one, MJD in UTC."""
        return [float(start) for start in (self.granules or {}).get("start", ()) if start]


@router.api_route("/algorithms/{name}/order", methods=["GET", "HEAD"])
def blank(request: Request, user: Reader, name: Name, version: Version = None) -> Response:
    """Show the form, with fields filled in from the URL."""
    form = OrderForm.of(_definition(request, name, version), request.query_params)
    return _show(request, form, OrderPage(), may=user.may("submit"))


@router.post("/algorithms/{name}/order")
async def fill(request: Request, user: Reader, name: Name, version: Version = None) -> Response:
    """Estimate the order of a form, or submit it or its first group as a job."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as values:
        action = values.get("do")
        if action in ("submit", "preview"):
            await may_submit(request)
        fields = dict(values)
    definition = await run_in_threadpool(_definition, request, name, version)
    form = OrderForm.of(definition, fields)
    may = user.may("submit")
    return await run_in_threadpool(_act, request, form, str(action), user.name, may=may)


def _definition(request: Request, name: str, version: str | None) -> Algorithm:
    return algorithm_version(portal_of(request).catalog, version_label(name, version)).definition


def _act(request: Request, form: OrderForm, action: str, owner: str, *, may: bool) -> Response:
    portal, contents = portal_of(request), OrderPage()
    order = form.order()
    is_submission = action in ("submit", "preview")
    try:
        if not form.faults.keys() & SEARCH:
            most = portal.jobs.limits.rows_per_job
            contents.granules = ordered_granules(portal.catalog, order, most)
            if not is_submission:
                contents.outlines = outlines_of(portal.catalog, order)
        if form.faults or contents.granules is None:
            return _show(request, form, contents, may=may, code=422 if is_submission else 200)
        if not is_submission:
            contents.estimate = portal.jobs.estimate(contents.granules, order.options, owner)
            return _show(request, form, contents, may=may)
        is_preview = action == "preview"
        name = f"Preview of {order.algorithm}" if is_preview else form.fields["name"]
        job = portal.jobs.submit(
            contents.granules, order.options, owner, name=name, only_first=is_preview
        )
    except SwatheError as error:
        contents.error = text_of(error)
        # As for other jobs, an estimate with an error is a valid response.
        code = status_of(error) if is_submission else 200
        response = _show(request, form, contents, may=may, code=code)
        response.headers.update(headers_of(error))
        return response
    return RedirectResponse(f"/jobs/{job.id}", 303, HEADERS)


def outlines_of(catalog: Catalog, order: Order) -> list[tuple[str, list[Sequence[float]]]]:
    """Return path and outlines on the Earth of the first granules that match."""
    area = None if order.bbox is None else EarthArea(Bounds.of(order.bbox))
    query = ObjectQuery(
        datasets=[order.collection],
        ranges=None if area is None else area.ranges,
        touches=None if area is None else area.touches,
        time=order.times,
        latitudes=None if area is None else area.latitudes,
    )
    return [
        (each.path, [line for one in each.granules if one.place for line in one.place.outlines])
        for each in catalog.find_objects(query, OUTLINES)
    ]


def datasets_of(request: Request, form: OrderForm) -> list[Dataset]:
    """Return the datasets that the algorithm of a form reads."""
    datasets = (each.dataset for each in archive_counts_of(request).all())
    return [each for each in datasets if form.takes(each.name)]


def _show(
    request: Request, form: OrderForm, contents: OrderPage, *, may: bool, code: int = 200
) -> Response:
    bounds = None if PLACE in form.faults else form.bounds()
    starts = contents.starts
    return page(
        request,
        "order.html",
        code=code,
        algorithm=form.algorithm,
        fields=form.fields,
        faults=form.faults,
        contents=contents,
        estimate=contents.estimate,
        count=None if contents.granules is None else len(contents.granules["file"]),
        problems=dict(contents.estimate.faults if contents.estimate else ()),
        datasets=datasets_of(request, form),
        map=box_map(contents.outlines, bounds),
        line=time_line(starts),
        first=min(starts, default=None),
        last=max(starts, default=None),
        valid=requirement_of,
        may_submit=may,
    )
