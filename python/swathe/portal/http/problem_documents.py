"""Errors of the interfaces of OGC and STAC: problem documents (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

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
    return {"type": kind, "title": title, "status": status, "detail": detail}


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
