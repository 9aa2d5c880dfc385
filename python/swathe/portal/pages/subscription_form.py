"""The form that subscribes an algorithm, or `reduce`, to what comes to a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.algorithms.algorithm_version import algorithm_version
from swathe.algorithms.parameters import requirement_of
from swathe.core.errors import SwatheError
from swathe.datasets.search import find
from swathe.portal.access import Reader, needs
from swathe.portal.api.algorithms import Name, Version, version_label
from swathe.portal.context import portal_of
from swathe.portal.http_errors import headers_of, status_of, text_of
from swathe.portal.pages.earthmap import box_map
from swathe.portal.pages.operation_fields import OperationForm, granule_operation
from swathe.portal.pages.order_fields import PLACE
from swathe.portal.pages.orders import MOST_FIELDS, SEARCH, datasets_of, outlines_of
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.portal.pages.subscription_fields import SubscriptionForm
from swathe.portal.pages.timeline import time_line
from swathe.subscriptions.webhook_request import SECRET_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swathe.portal.context import Portal

router = APIRouter(route_class=PageRoute)
may_submit = needs("submit")
MOST_PRESENT = 10_000
"""Arrays and images of the collection that are counted and drawn on the time line."""
VERSIONS = 50


@dataclass
class PresentGranules:
    """What is in the collection already and matches.

    Attributes:
        count: number of files; `None` before a search.
        has_more: whether there are more than were counted.
        starts: first times of those that have one, MJD in UTC.
        outlines: path and outlines of the first ones.
        error: error that is about no field.
    """

    count: int | None = None
    has_more: bool = False
    starts: Sequence[float] = ()
    outlines: Sequence[tuple[str, Sequence[Sequence[float]]]] = ()
    error: str = ""


@router.api_route("/algorithms/{name}/subscribe", methods=["GET", "HEAD"])
def blank(request: Request, user: Reader, name: Name, version: Version = None) -> Response:
    """Show the form, with fields filled in from the URL."""
    form = _form(request, name, version, request.query_params)
    return _show(request, form, PresentGranules(), may=user.may("submit"))


@router.post("/algorithms/{name}/subscribe")
async def fill(request: Request, user: Reader, name: Name) -> Response:
    """Check the form, and show what matches; or add the subscription."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as values:
        is_new = values.get("do") == "subscribe"
        if is_new:
            await may_submit(request)
        fields = dict(values)
    version = str(fields.get("version") or "") or None
    form = await run_in_threadpool(_form, request, name, version, fields)
    act = _subscribe if is_new else _check
    return await run_in_threadpool(act, request, form, user.name, may=user.may("submit"))


def _form(
    request: Request, name: str, version: str | None, values: Mapping[str, Any]
) -> SubscriptionForm:
    """Return the form of an operation on granules, or of a version of an algorithm."""
    if version is None and (operation := granule_operation(name)) is not None:
        return OperationForm.of_operation(operation, values)
    record = algorithm_version(portal_of(request).catalog, version_label(name, version))
    return SubscriptionForm.of(record.definition, values)


def _check(request: Request, form: SubscriptionForm, owner: str, *, may: bool) -> Response:
    portal = portal_of(request)
    details = form.request()
    contents = PresentGranules()
    if not form.faults.keys() & SEARCH:
        try:
            contents = _present(portal, form)
            if not form.faults:
                portal.subscriptions.check(details, owner)
        except SwatheError as error:
            contents.error = text_of(error)
    return _show(request, form, contents, may=may)


def _subscribe(request: Request, form: SubscriptionForm, owner: str, *, may: bool) -> Response:
    portal = portal_of(request)
    details = form.request()
    if form.faults:
        return _show(request, form, PresentGranules(), may=may, code=422)
    try:
        subscription = portal.subscriptions.add(details, owner)
        secret = portal.catalog.subscription_secret(subscription.id)
    except SwatheError as error:
        contents = PresentGranules(error=text_of(error))
        response = _show(request, form, contents, may=may, code=status_of(error))
        response.headers.update(headers_of(error))
        return response
    place = f"/subscriptions/{subscription.id}"
    if not subscription.webhook:
        return RedirectResponse(place, 303, HEADERS)
    # A page of its own: the secret is in no URL, and nowhere else.
    response = page(
        request,
        "subscribed.html",
        code=201,
        subscription=subscription,
        place=place,
        secret=SECRET_PREFIX + secret,
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def _present(portal: Portal, form: SubscriptionForm) -> PresentGranules:
    """Return what is in the collection and matches."""
    order = form.order()
    table = find(
        dataset=order.collection,
        time=order.times,
        bounds=order.bbox,
        catalog=portal.catalog,
        limit=MOST_PRESENT + 1,
    )
    starts = np.ma.masked_invalid(table["t_min"]).compressed()
    return PresentGranules(
        len(set(table["file"][:MOST_PRESENT])),
        len(table) > MOST_PRESENT,
        starts.tolist(),
        outlines_of(portal.catalog, order),
    )


def _show(
    request: Request,
    form: SubscriptionForm,
    contents: PresentGranules,
    *,
    may: bool,
    code: int = 200,
) -> Response:
    portal = portal_of(request)
    bounds = None if PLACE in form.faults else form.bounds()
    records = [each for each in portal.catalog.algorithms() if each.name == form.algorithm.name]
    return page(
        request,
        "subscribe.html",
        code=code,
        algorithm=form.algorithm,
        versions=[each.version for each in records[:VERSIONS]],
        fields=form.fields,
        faults=form.faults,
        contents=contents,
        datasets=datasets_of(request, form),
        map=box_map(contents.outlines, bounds),
        line=time_line(contents.starts),
        first=min(contents.starts, default=None),
        last=max(contents.starts, default=None),
        valid=requirement_of,
        sends_mail=portal.subscriptions.sends_mail,
        may_submit=may,
    )
