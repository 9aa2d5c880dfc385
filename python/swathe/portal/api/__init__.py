"""The REST interface: `/api`, with its OpenAPI at `/api/openapi.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from swathe import _swathe
from swathe.core.errors import JobError, SwatheError
from swathe.core.value_errors import fault_text
from swathe.portal.api import archive, jobs, results
from swathe.portal.api.models import Fault
from swathe.portal.http_errors import headers_of, status_of, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from swathe.portal.context import Portal

FAULTS: dict[int | str, dict[str, Any]] = {
    status: {"model": Fault, "description": told}
    for status, told in (
        (400, "The request cannot be understood."),
        (401, "A token is needed, or another one."),
        (403, "This may not be done or read."),
        (404, "There is no such thing."),
        (409, "The job is in no state for this."),
        (413, "More than is ever allowed."),
        (422, "It makes no sense."),
        (429, "More than is allowed now; see Retry-After."),
        (502, "A storage does not answer as it should."),
        (503, "The catalogue cannot be used now; see Retry-After."),
    )
}


def make_api(portal: Portal) -> FastAPI:
    """Give what is served below `/api`."""
    api = FastAPI(
        title="Swathe",
        version=_swathe.__version__,
        # Pages of documentation would be fetched from other servers.
        docs_url=None,
        redoc_url=None,
        responses=FAULTS,
        # Only that it is documented: who may do what is said by each handler.
        dependencies=[Depends(HTTPBearer(auto_error=False))],
    )
    api.state.portal = portal
    for part in (archive, jobs, results):
        api.include_router(part.router)
    api.add_exception_handler(SwatheError, _told)
    api.add_exception_handler(RequestValidationError, _not_valid)
    api.add_exception_handler(HTTPException, not_served)
    api.add_exception_handler(Exception, _broken)
    return api


def _answer(
    status: int, error: str, kind: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"error": error, "kind": kind}, status, headers)


async def _told(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SwatheError)
    # It is not the request that makes no sense, but the job is in no state for it.
    conflict = isinstance(error, JobError) and "job_id" in request.path_params
    status = 409 if conflict else status_of(error)
    return _answer(status, text_of(error), type(error).__name__, headers_of(error))


async def _not_valid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part)[:50] for part in first["loc"][:6])
    return _answer(422, f"{place}: {fault_text(first)}", "RequestError")


async def _broken(_request: Request, _error: Exception) -> JSONResponse:
    # It is in the log, with all that users have no business to know.
    return _answer(500, "this is a fault of the portal; its log tells more", "SwatheError")


async def not_served(_request: Request, error: Exception) -> JSONResponse:
    """Tell of a path or method that is none."""
    assert isinstance(error, HTTPException)
    return _answer(error.status_code, str(error.detail), "RequestError", error.headers)
