"""OGC API Processes, parts 1 and 2, below `/ogc`: operations and algorithms as processes.

Its jobs are the jobs of the portal. Documents have the fields of 1.0 and of the draft of 2.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException

from swathe import _swathe
from swathe.core.errors import SwatheError
from swathe.portal.context import portal_of
from swathe.portal.http.problem_documents import problem_response
from swathe.portal.http_errors import request_fault
from swathe.portal.processes import deployment, executions, jobs, routes
from swathe.portal.processes.problems import problem_answer

if TYPE_CHECKING:
    from starlette.requests import Request

    from swathe.portal.context import Portal


def make_processes(portal: Portal) -> FastAPI:
    """Return the application that serves `/ogc`."""
    ogc = FastAPI(
        title="Swathe: OGC API Processes",
        version=_swathe.__version__,
        # Clients want another type than FastAPI's, and its pages load scripts from elsewhere.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    ogc.state.portal = portal
    for part in (routes, executions, deployment, jobs):
        ogc.include_router(part.router)
    ogc.add_exception_handler(SwatheError, _swathe_error)
    ogc.add_exception_handler(RequestValidationError, _invalid_request)
    ogc.add_exception_handler(HTTPException, _unknown)
    ogc.add_exception_handler(Exception, _internal_error)
    return ogc


async def to_landing_page(request: Request) -> RedirectResponse:
    """Send a client that left the last slash out to the landing page."""
    return RedirectResponse(f"{portal_of(request).url(request)}/ogc/", 308)


async def _swathe_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SwatheError)
    return problem_answer(error)


async def _invalid_request(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return problem_response(400, request_fault(error))


async def _unknown(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem_response(error.status_code, str(error.detail), headers=error.headers)


async def _internal_error(_request: Request, _error: Exception) -> JSONResponse:
    # The log has the details, which users must not see.
    return problem_response(500, "internal error of the portal; see its log")
