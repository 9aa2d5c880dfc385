"""The router of all pages."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.portal.pages import (
    admin,
    algorithms,
    archive,
    arrays,
    assets,
    help,
    image,
    job_groups,
    jobs,
    mail,
    orders,
    run_form,
    run_views,
    runs,
    search,
    session,
    sky,
    strings,
    submission,
    subscription_form,
    subscriptions,
    tracing,
)
from swathe.portal.pages.render import HEADERS, PageRoute

PARTS = (
    archive,
    search,
    image,
    sky,
    arrays,
    submission,
    jobs,
    job_groups,
    orders,
    algorithms,
    run_form,
    runs,
    run_views,
    strings,
    subscription_form,
    subscriptions,
    mail,
    tracing,
    help,
    session,
    admin,
)
"""The modules of the pages, in the order in which their routes are tried."""


def build_router() -> APIRouter:
    """Return the routes of the pages. They come last, as they also answer unknown paths."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    for part in PARTS:
        router.include_router(part.router)
    router.add_api_route("/static/{name}", static, methods=["GET", "HEAD"])
    router.add_api_route("/favicon.ico", favicon, methods=["GET", "HEAD"])
    router.add_api_route("/{path:path}", missing, methods=["GET", "HEAD"])
    return router


def static(request: Request, name: str) -> Response:
    """Return a style sheet, script or picture."""
    return assets.respond(request, name)


def favicon(request: Request) -> Response:
    """Return the icon that browsers request by themselves."""
    return assets.respond(request, "mark.svg")


def missing(path: str) -> Response:
    """Raise a 404 error, or redirect to the path without its final slash."""
    if path.endswith("/") and (name := path.strip("/")):
        return RedirectResponse(f"/{quote(name)}", 308, HEADERS)
    raise HTTPException(404, f"no such page: /{path[:200]}")
