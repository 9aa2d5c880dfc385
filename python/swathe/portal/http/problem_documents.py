"""Errors in JSON: problem documents (RFC 9457) of OGC and STAC, and those of `/api`."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from swathe.portal.http.request_ids import request_id

if TYPE_CHECKING:
    from collections.abc import Mapping

PROBLEM = "application/problem+json"
OTHER = "about:blank"
"""Type of a problem whose status says all."""
INTERFACES = ("ogc", "stac")
"""First parts of the paths whose refused requests are answered with problem documents."""


def has_problems(path: str) -> bool:
    """Check whether errors below a path are problem documents."""
    return path.lstrip("/").partition("/")[0] in INTERFACES


def problem_content(status: int, detail: str, kind: str = OTHER) -> dict[str, Any]:
    """Return the content of a problem document, as in `problem_response`."""
    title = HTTPStatus(status).phrase if kind == OTHER else kind.rpartition("/")[2]
    content = {"type": kind, "title": title, "status": status, "detail": detail}
    return content | _occurrence()


def error_content(error: str, kind: str) -> dict[str, Any]:
    """Return the content of an error of `/api`: its text, and its class in `swathe.errors`."""
    return {"error": error, "kind": kind} | _occurrence()


def _occurrence() -> dict[str, str]:
    """Return the id of the request; nothing for one that was refused before it had one."""
    return {"request_id": name} if (name := request_id()) else {}


def problem_response(
    status: int, detail: str, kind: str = OTHER, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return a problem document.

    Args:
        status: HTTP status.
        detail: what is wrong with this request.
        kind: URI of the type of the problem.
        headers: further headers.
    """
    return JSONResponse(problem_content(status, detail, kind), status, headers, PROBLEM)
