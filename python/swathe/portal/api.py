"""The REST interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from swathe import _swathe
from swathe.errors import SwatheError
from swathe.portal.faults import headers_of, status_of

if TYPE_CHECKING:
    from swathe.portal.state import Portal


def make_api(portal: Portal) -> FastAPI:
    """Give what is served below `/api`."""
    # Its pages of documentation would be fetched from other servers.
    api = FastAPI(title="Swathe", version=_swathe.__version__, docs_url=None, redoc_url=None)
    api.state.portal = portal

    @api.exception_handler(SwatheError)
    async def tell(_request: Request, error: SwatheError) -> JSONResponse:
        told: dict[str, Any] = {"error": str(error), "kind": type(error).__name__}
        return JSONResponse(told, status_of(error), headers_of(error))

    return api
