"""STAC API 1.0, below `/stac`: core, collections, features, item search, and extensions of these.

A dataset is a collection, and an object of it an item. Geometries are places on the Earth: images
of the sky are items without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException

from swathe import _swathe
from swathe.core.errors import DatasetError, SwatheError
from swathe.portal.context import portal_of
from swathe.portal.http.request_ids import request_id
from swathe.portal.http_errors import headers_of, request_fault, status_of, text_of
from swathe.portal.stac import routes

if TYPE_CHECKING:
    from typing import Any

    from starlette.requests import Request

    from swathe.portal.context import Portal
    from swathe.portal.pages.archive_counts import ArchiveCounts


def make_stac(portal: Portal, holdings: ArchiveCounts) -> FastAPI:
    """Return the application that serves `/stac`."""
    stac = FastAPI(
        title="Swathe: STAC API",
        version=_swathe.__version__,
        # Clients want another type than FastAPI's, and its pages load scripts from elsewhere.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    stac.state.portal, stac.state.holdings = portal, holdings
    stac.include_router(routes.router)
    stac.add_exception_handler(SwatheError, _swathe_error)
    stac.add_exception_handler(RequestValidationError, _invalid_request)
    stac.add_exception_handler(HTTPException, _unknown)
    stac.add_exception_handler(Exception, _internal_error)
    return stac


async def to_landing_page(request: Request) -> RedirectResponse:
    """Send a client that left the last slash out to the landing page."""
    return RedirectResponse(f"{portal_of(request).url(request)}/stac/", 308)


def _answer(status: int, description: str, headers: Any = None) -> JSONResponse:
    """Return an error as OGC API Features has it."""
    return JSONResponse(
        {"code": str(status), "description": description, "request_id": request_id()},
        status,
        headers,
    )


async def _swathe_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SwatheError)
    # A parameter that is wrong is 400 in OGC's standards, not 422.
    status = 400 if isinstance(error, DatasetError) else status_of(error)
    return _answer(status, text_of(error), headers_of(error))


async def _invalid_request(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return _answer(400, request_fault(error))


async def _unknown(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return _answer(error.status_code, str(error.detail), error.headers)


async def _internal_error(_request: Request, _error: Exception) -> JSONResponse:
    # The log has the details, which users must not see.
    return _answer(500, "internal error of the portal; see its log")
