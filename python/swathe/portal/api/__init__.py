"""The REST interface: `/api`, described by OpenAPI at `/api/openapi.json`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from swathe import _swathe
from swathe.core.errors import JobError, SubscriptionError, SwatheError
from swathe.portal.api import (
    algorithms,
    archive,
    jobs,
    libraries,
    orders,
    results,
    run_views,
    runs,
    subscriptions,
)
from swathe.portal.api.models import ErrorModel, NewJob, TargetsModel
from swathe.portal.http.problem_documents import error_content
from swathe.portal.http_errors import headers_of, request_fault, status_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from swathe.portal.context import Portal

FAULTS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorModel, "description": description}
    for status, description in (
        (400, "The request is malformed."),
        (401, "A valid token is required."),
        (403, "The user may not do or read this."),
        (404, "Not found."),
        (409, "The state of the job or subscription does not allow this."),
        (413, "A fixed limit is exceeded."),
        (422, "A value is invalid."),
        (429, "A limit is exceeded for now; see Retry-After."),
        (502, "A storage failed, or its response is invalid."),
        (503, "The catalogue is not available now; see Retry-After."),
    )
}


def make_api(portal: Portal) -> FastAPI:
    """Return the application that serves `/api`."""
    api = FastAPI(
        title="Swathe",
        version=_swathe.__version__,
        # FastAPI's documentation pages would load scripts from other servers.
        docs_url=None,
        redoc_url=None,
        responses=FAULTS,
        # For the documentation only: each handler checks access itself.
        dependencies=[Depends(HTTPBearer(auto_error=False))],
    )
    api.state.portal = portal
    job_parts = (archive, jobs, results, orders, subscriptions)
    for part in (*job_parts, runs, run_views, algorithms, libraries):
        api.include_router(part.router)
    api.openapi = partial(_openapi, api.openapi)  # type: ignore[method-assign]
    api.add_exception_handler(SwatheError, _swathe_error)
    api.add_exception_handler(RequestValidationError, _invalid_request)
    api.add_exception_handler(HTTPException, answer_unknown)
    api.add_exception_handler(Exception, _internal_error)
    return api


def _openapi(describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the description with the models of bodies that handlers read by themselves."""
    schema = describe()
    schemas = schema["components"]["schemas"]
    for model in (TargetsModel, NewJob):
        if model.__name__ not in schemas:
            own = model.model_json_schema(ref_template="#/components/schemas/{model}")
            for name, each in own.pop("$defs", {}).items():
                schemas.setdefault(name, each)
            schemas[model.__name__] = own
    return schema


def _answer(
    status: int, error: str, kind: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse(error_content(error, kind), status, headers)


async def _swathe_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SwatheError)
    # The request is valid, but the state of what it is about does not allow it.
    states = {"job_id": JobError, "subscription_id": SubscriptionError}
    conflict = any(
        name in request.path_params and isinstance(error, kind) for name, kind in states.items()
    )
    status = 409 if conflict else status_of(error)
    return _answer(status, text_of(error), type(error).__name__, headers_of(error))


async def _invalid_request(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return _answer(422, request_fault(error), "RequestError")


async def _internal_error(_request: Request, _error: Exception) -> JSONResponse:
    # The log has the details, which users must not see.
    return _answer(500, "internal error of the portal; see its log", "SwatheError")


async def answer_unknown(_request: Request, error: Exception) -> JSONResponse:
    """Answer a request for a path or method that does not exist."""
    assert isinstance(error, HTTPException)
    return _answer(error.status_code, str(error.detail), "RequestError", error.headers)
