"""`/healthz`, `/readyz` and `/metrics`, for monitoring."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from swathe.core.errors import AccessError, SwatheError
from swathe.portal.access import needs
from swathe.portal.context import Portal, portal_of
from swathe.portal.http_errors import headers_of, status_of, text_of
from swathe.portal.metrics import metrics_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.portal.config import Config

router = APIRouter(include_in_schema=False)
reader = needs("read")
LEAST_BYTES = 100_000_000
"""Minimum free disk space for results; less is reported as `trouble`."""
TEXT = "text/plain; version=0.0.4; charset=utf-8"


@router.api_route("/healthz", methods=["GET", "HEAD"])
def healthz(request: Request) -> Response:
    """Respond with 200 if all parts of the portal work, else 503; name the parts that fail."""
    return _state("healthy", health_of(portal_of(request)))


@router.api_route("/readyz", methods=["GET", "HEAD"])
def readyz(request: Request) -> Response:
    """Respond with 200 if the portal can take requests now, else 503; name what is not ready."""
    return _state("ready", readiness_of(portal_of(request)))


def _state(name: str, parts: Mapping[str, bool]) -> Response:
    """Return the response that names each part, and whether it works."""
    works = all(parts.values())
    words = {part: "ok" if value else "trouble" for part, value in parts.items()}
    headers = {"Cache-Control": "no-store"}
    return JSONResponse({name: works, **words}, 200 if works else 503, headers)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Return metrics in the text format of Prometheus."""
    portal = portal_of(request)
    try:
        if portal.config.access.metrics == "admin":
            user = await reader(request)
            if not portal.sees_all(user):
                raise AccessError(
                    "metrics of all users: expected a token with the scope 'admin', found one "
                    "without it"
                )
        text = await run_in_threadpool(_metrics_text, portal)
    except SwatheError as error:
        return PlainTextResponse(f"{text_of(error)}\n", status_of(error), headers_of(error))
    return PlainTextResponse(text, media_type=TEXT, headers={"Cache-Control": "no-store"})


def _metrics_text(portal: Portal) -> str:
    return metrics_of(portal, health_of(portal), disk_bytes(portal))


def health_of(portal: Portal) -> dict[str, bool]:
    """Check whether database, pool and disk of a portal work."""
    try:
        portal.catalog.stores()
        database = True
    except SwatheError:  # its text may name the database, so it is not shown here
        database = False
    pool = not portal.runner.trouble and not portal.pool.status().trouble
    return {"database": database, "pool": pool, "disk": disk_bytes(portal)[0] >= LEAST_BYTES}


def readiness_of(portal: Portal) -> dict[str, bool]:
    """Check whether a portal can take requests: the parts of its health, and more of each.

    The tables must be of this version: a newer Swathe may have changed them meanwhile. The folder
    of results must be writable. And the portal must not be about to stop.
    """
    try:
        tables = portal.catalog.is_up_to_date()
    except SwatheError:  # as above
        tables = False
    return {
        **health_of(portal),
        "tables": tables,
        "results": can_write(results_folder(portal.config)),
        "running": not portal.stopping.is_set(),
    }


def results_folder(config: Config) -> Path:
    """Return the local folder in which results are made."""
    results = config.results
    folder = results.folder if results.store is None else results.scratch
    return folder or Path("/tmp")


def can_write(folder: Path) -> bool:
    """Check whether a folder can be written, by a file without a name."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"ready")
    except OSError:
        return False
    return True


def disk_bytes(portal: Portal) -> tuple[int, int]:
    """Return the free and the total disk space for results, bytes; 0 if the disk is missing."""
    try:
        usage = shutil.disk_usage(results_folder(portal.config))
    except OSError:
        return 0, 0
    return usage.free, usage.total
