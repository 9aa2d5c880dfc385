"""The services of the Virtual Observatory, all below `/vo`.

SODA 1.0 (`sync`, `async`), DataLink 1.1 (`links`), SIA 2.0 (`query`) and 1.0 (`sia1`), TAP 1.1
(`tap`), Simple Cone Search 1.1 (`conesearch`), VOSI 1.1 (`capabilities`, `availability`), DALI
examples, records for registries. The handlers are plain routes: parameter parsing by FastAPI would
take longer than a cut, and does not support names in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from swathe.core.errors import SwatheError
from swathe.portal.access import needs
from swathe.portal.http.response_counts import ROUTE
from swathe.portal.vo import files, viewer
from swathe.portal.vo.discovery import links, query, registry, sia1, vosi
from swathe.portal.vo.errors import VoError, to_vo_error, usage
from swathe.portal.vo.service import service_of
from swathe.portal.vo.soda import sync, uws
from swathe.portal.vo.tap import cone, metadata, query_uws
from swathe.portal.vo.tap import sync as tap_sync

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from swathe.catalog import Scope
    from swathe.portal.vo.service import Service
    from swathe.portal.vo.uws.handlers import UwsHandlers

    Handler = Callable[[Service, Request], Awaitable[Response]]
    Route = tuple[str, Handler, Scope | None, list[str]]


def build_router() -> APIRouter:
    """Return the router of all services below `/vo`."""
    router = APIRouter()
    for path, handler, scope, methods in ROUTES:
        router.add_route(f"/vo{path}", _answering(f"/vo{path}", handler, scope), methods=methods)
    return router


def _answering(
    path: str, handler: Handler, scope: Scope | None
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that checks the scope (None = everyone) and reports errors as text."""
    user_of = None if scope is None else needs(scope)

    async def answer(request: Request) -> Response:
        request.scope[ROUTE] = path
        service = service_of(request)
        try:
            if user_of is not None:
                request.state.user = await user_of(request)
            return await handler(service, request)
        except ClientDisconnect:
            return usage("the request: expected all of it, found that the client left").response()
        except VoError as error:
            return error.response()
        except SwatheError as error:
            return (await run_in_threadpool(to_vo_error, error)).response()

    return answer


def uws_routes(path: str, handlers: UwsHandlers, create: Handler, result: Handler) -> list[Route]:
    """Return the routes of jobs: those of UWS, how a job is made, and what its results are."""
    job = f"{path}/{{job}}"
    return [
        (path, handlers.jobs, "read", GET),
        (path, create, "submit", POST),
        (job, handlers.job, "read", GET),
        (job, handlers.change, "submit", POST),
        (job, handlers.delete, "submit", ["DELETE"]),
        (f"{job}/results/{{name}}", result, "read", GET),
        (f"{job}/{{child}}", handlers.child, "read", GET),
        (f"{job}/{{child}}", handlers.change_child, "submit", POST),
    ]


GET, POST, BOTH = ["GET"], ["POST"], ["GET", "POST"]
ROUTES: list[Route] = [
    # Routes are tried in order, so the most frequent one is first.
    ("/sync", sync.cut, "read", BOTH),
    ("", vosi.root, None, GET),
    ("/capabilities", vosi.capabilities, None, GET),
    ("/availability", vosi.availability, None, GET),
    ("/examples", vosi.examples, "read", GET),
    ("/query", query.query, "read", BOTH),
    ("/sia1", sia1.query, "read", BOTH),
    ("/conesearch", cone.cone_search, "read", BOTH),
    ("/links", links.links, "read", BOTH),
    *uws_routes("/async", uws.HANDLERS, uws.create, uws.result),
    ("/tap/sync", tap_sync.query, "read", BOTH),
    *uws_routes("/tap/async", query_uws.HANDLERS, query_uws.create, query_uws.result),
    ("/tap", metadata.capabilities, None, GET),
    ("/tap/capabilities", metadata.capabilities, None, GET),
    ("/tap/availability", vosi.availability, None, GET),
    ("/tap/tables", metadata.tables, None, GET),
    ("/tap/examples", metadata.examples, None, GET),
    ("/file", files.file, "read", GET),
    ("/preview", viewer.overview, "read", GET),
    ("/image/description", viewer.description, "read", GET),
    ("/image/tile", viewer.tile, "read", GET),
    ("/image/value", viewer.value, "read", GET),
    ("/image/pixel", viewer.pixel, "read", GET),
    ("/image/spectrum", viewer.spectrum, "read", GET),
    ("/image/place", viewer.place, "read", GET),
    ("/registry", registry.record, "read", GET),
    ("/registry/{dataset}", registry.dataset_record, "read", GET),
]
