"""`/healthz` and `/metrics`: what watches over a portal asks for."""

from __future__ import annotations

import math
import os
import shutil
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

router = APIRouter(include_in_schema=False)
reader = needs("read")
LEAST_BYTES = 100_000_000
"""Less free room for results is trouble."""
TEXT = "text/plain; version=0.0.4; charset=utf-8"
STATUS_FILE = Path("/proc/self/statm")


@router.api_route("/healthz", methods=["GET", "HEAD"])
def healthz(request: Request) -> Response:
    """Answer 200 if all that a portal needs works, else 503, and say which part does not."""
    parts = health_of(portal_of(request))
    healthy = all(parts.values())
    words = {name: "ok" if works else "trouble" for name, works in parts.items()}
    headers = {"Cache-Control": "no-store"}
    return JSONResponse({"healthy": healthy, **words}, 200 if healthy else 503, headers)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Answer with figures in the text format of Prometheus."""
    portal = portal_of(request)
    try:
        if portal.config.access.metrics == "admin":
            user = await reader(request)
            if not portal.sees_all(user):
                raise AccessError(
                    "metrics tell of all users: a token with the scope 'admin' is needed"
                )
        text = await run_in_threadpool(metrics_of, portal)
    except SwatheError as error:
        return PlainTextResponse(f"{text_of(error)}\n", status_of(error), headers_of(error))
    return PlainTextResponse(text, media_type=TEXT, headers={"Cache-Control": "no-store"})


def health_of(portal: Portal) -> dict[str, bool]:
    """Return which parts of a portal work: database, pool, disk."""
    try:
        portal.catalog.stores()
        database = True
    except SwatheError:  # its text may name the database: it is logged where it is told
        database = False
    pool = not portal.runner.trouble and not portal.pool.told().trouble
    return {"database": database, "pool": pool, "disk": free_bytes(portal) >= LEAST_BYTES}


def free_bytes(portal: Portal) -> int:
    """Return the free room where results are kept or made, in bytes; 0 where there is no disk."""
    results = portal.config.results
    folder = results.folder if results.store is None else results.scratch
    try:
        return shutil.disk_usage(folder or "/tmp").free
    except OSError:
        return 0


def metrics_of(portal: Portal) -> str:
    """Return the figures of a portal in the text format of Prometheus."""
    totals = portal.catalog.totals()
    told = portal.pool.told()
    lines = [
        *metric("swathe_up", "gauge", "Parts that work.", labelled("part", health_of(portal))),
        *metric("swathe_jobs", "gauge", "Jobs kept, by phase.", labelled("phase", totals.phases)),
        *metric("swathe_rows", "gauge", "Rows kept, by status.", labelled("status", totals.rows)),
        *metric("swathe_queue_rows", "gauge", "Rows that wait.", {"": totals.queued}),
        *metric("swathe_result_bytes", "gauge", "Bytes of results kept.", {"": totals.bytes}),
        *metric("swathe_busy_seconds", "gauge", "Work on jobs kept.", {"": totals.busy_s}),
        *metric("swathe_disk_free_bytes", "gauge", "Room for results.", {"": free_bytes(portal)}),
        *metric("swathe_workers", "gauge", "Workers of the pool.", {"": len(told.workers)}),
        *metric("swathe_batches", "gauge", "Batches in flight.", {"": told.batches}),
        *metric("swathe_places", "gauge", "Places taken.", labelled("kind", places_of(portal))),
        *metric(
            "swathe_requests_total",
            "counter",
            "Answers begun.",
            labelled("status", portal.answers.by_class()),
        ),
        *metric("process_resident_memory_bytes", "gauge", "Memory.", {"": resident_bytes()}),
    ]
    return "\n".join(lines) + "\n"


def places_of(portal: Portal) -> dict[str, int]:
    """Return how many places of each kind are taken."""
    return {"streams": portal.streams.taken, "downloads": portal.downloads.taken}


def labelled(label: str, values: Mapping[str, float]) -> dict[str, float]:
    """Return values by their labels as the format writes them."""
    return {f'{{{label}="{name}"}}': float(value) for name, value in values.items()}


def metric(name: str, kind: str, meaning: str, values: Mapping[str, float]) -> Iterable[str]:
    """Return the lines of one metric."""
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{labels} {value:g}" if not is_whole(value) else f"{name}{labels} {value:.0f}"


def is_whole(value: float) -> bool:
    """Tell whether a value has no fraction."""
    return math.isfinite(value) and value == math.floor(value)


def resident_bytes() -> int:
    """Return the memory of this process in bytes; 0 where the system does not tell."""
    if not STATUS_FILE.exists():
        return 0
    return int(STATUS_FILE.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
