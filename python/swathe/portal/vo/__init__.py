"""The services of the Virtual Observatory, all below `/vo`.

SODA 1.0 (`sync`, `async`), DataLink 1.1 (`links`), SIA 2.0 (`query`) and 1.0 (`sia1`), VOSI 1.1
(`capabilities`, `availability`), DALI examples, records for registries. The handlers are plain
routes: parameter parsing by FastAPI would take longer than a cut, and does not support names in any
case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from swathe.core.errors import SwatheError
from swathe.portal.access import needs
from swathe.portal.http.response_counts import ROUTE
from swathe.portal.vo import files, viewer
from swathe.portal.vo.discovery import links, query, registry, sia1, vosi
from swathe.portal.vo.errors import VoError, to_vo_error
from swathe.portal.vo.service import service_of
from swathe.portal.vo.soda import sync, uws
from swathe.portal.vo.tap import metadata
from swathe.portal.vo.tap import sync as tap_sync

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from swathe.catalog import Scope
    from swathe.portal.vo.service import Service

    Handler = Callable[[Service, Request], Awaitable[Response]]


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
        except VoError as error:
            return error.response()
        except SwatheError as error:
            return (await run_in_threadpool(to_vo_error, error)).response()

    return answer


GET, POST, BOTH = ["GET"], ["POST"], ["GET", "POST"]
ROUTES: list[tuple[str, Handler, Scope | None, list[str]]] = [
    # Routes are tried in order, so the most frequent one is first.
    ("/sync", sync.cut, "read", BOTH),
    ("", vosi.root, None, GET),
    ("/capabilities", vosi.capabilities, None, GET),
    ("/availability", vosi.availability, None, GET),
    ("/examples", vosi.examples, "read", GET),
    ("/query", query.query, "read", BOTH),
    ("/sia1", sia1.query, "read", BOTH),
    ("/links", links.links, "read", BOTH),
    ("/async", uws.jobs, "read", GET),
    ("/async", uws.create, "submit", POST),
    ("/async/{job}", uws.job, "read", GET),
    ("/async/{job}", uws.change, "submit", POST),
    ("/async/{job}", uws.delete, "submit", ["DELETE"]),
    ("/async/{job}/results/{name}", uws.result, "read", GET),
    ("/async/{job}/{child}", uws.child, "read", GET),
    ("/async/{job}/{child}", uws.change_child, "submit", POST),
    ("/tap/sync", tap_sync.query, "read", BOTH),
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
