"""`/healthz` and `/metrics`, for monitoring."""

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
"""Minimum free disk space for results; less is reported as `trouble`."""
TEXT = "text/plain; version=0.0.4; charset=utf-8"
STATUS_FILE = Path("/proc/self/statm")


@router.api_route("/healthz", methods=["GET", "HEAD"])
def healthz(request: Request) -> Response:
    """Respond with 200 if all parts of the portal work, else 503; name the parts that fail."""
    parts = health_of(portal_of(request))
    healthy = all(parts.values())
    words = {name: "ok" if works else "trouble" for name, works in parts.items()}
    headers = {"Cache-Control": "no-store"}
    return JSONResponse({"healthy": healthy, **words}, 200 if healthy else 503, headers)


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
        text = await run_in_threadpool(metrics_of, portal)
    except SwatheError as error:
        return PlainTextResponse(f"{text_of(error)}\n", status_of(error), headers_of(error))
    return PlainTextResponse(text, media_type=TEXT, headers={"Cache-Control": "no-store"})


def health_of(portal: Portal) -> dict[str, bool]:
    """Check whether database, pool and disk of a portal work."""
    try:
        portal.catalog.stores()
        database = True
    except SwatheError:  # its text may name the database, so it is not shown here
        database = False
    pool = not portal.runner.trouble and not portal.pool.status().trouble
    return {"database": database, "pool": pool, "disk": free_bytes(portal) >= LEAST_BYTES}


def free_bytes(portal: Portal) -> int:
    """Return the free disk space for results, bytes; 0 if the disk is missing."""
    results = portal.config.results
    folder = results.folder if results.store is None else results.scratch
    try:
        return shutil.disk_usage(folder or "/tmp").free
    except OSError:
        return 0


def metrics_of(portal: Portal) -> str:
    """Return the metrics of a portal in the text format of Prometheus."""
    totals = portal.catalog.totals()
    backlog = portal.catalog.removal_backlog()
    status = portal.pool.status()
    lines = [
        *metric(
            "swathe_up",
            "gauge",
            "Working parts (1) and failing ones (0).",
            label_values("part", health_of(portal)),
        ),
        *metric(
            "swathe_jobs", "gauge", "Stored jobs, by phase.", label_values("phase", totals.phases)
        ),
        *metric(
            "swathe_rows", "gauge", "Stored rows, by status.", label_values("status", totals.rows)
        ),
        *metric("swathe_queue_rows", "gauge", "Waiting rows.", {"": totals.queue_rows}),
        *metric("swathe_result_bytes", "gauge", "Bytes of stored results.", {"": totals.bytes}),
        *metric(
            "swathe_removal_jobs",
            "gauge",
            "Deleted jobs whose results are not removed yet.",
            {"": backlog.jobs},
        ),
        *metric(
            "swathe_removal_bytes",
            "gauge",
            "Bytes of results of deleted jobs that are not removed yet.",
            {"": backlog.bytes},
        ),
        *metric(
            "swathe_work_seconds", "gauge", "Work on stored jobs, seconds.", {"": totals.work_s}
        ),
        *metric(
            "swathe_disk_free_bytes",
            "gauge",
            "Free disk space for results, bytes.",
            {"": free_bytes(portal)},
        ),
        *metric("swathe_workers", "gauge", "Workers of the pool.", {"": len(status.workers)}),
        *metric("swathe_batches", "gauge", "Batches in flight.", {"": status.batches}),
        *metric(
            "swathe_places",
            "gauge",
            "Slots in use, by kind.",
            label_values("kind", places_of(portal)),
        ),
        *metric(
            "swathe_requests_total",
            "counter",
            "Responses, by class of status.",
            label_values("status", portal.answers.by_class()),
        ),
        *metric("process_resident_memory_bytes", "gauge", "Memory, bytes.", {"": resident_bytes()}),
    ]
    return "\n".join(lines) + "\n"


def places_of(portal: Portal) -> dict[str, int]:
    """Return the number of slots in use, by kind."""
    return {"streams": portal.streams.places_in_use, "downloads": portal.downloads.places_in_use}


def label_values(label: str, values: Mapping[str, float]) -> dict[str, float]:
    """Return values keyed by their label in Prometheus format."""
    return {f'{{{label}="{name}"}}': float(value) for name, value in values.items()}


def metric(name: str, kind: str, meaning: str, values: Mapping[str, float]) -> Iterable[str]:
    """Return the lines of one metric."""
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{labels} {value:g}" if not is_whole(value) else f"{name}{labels} {value:.0f}"


def is_whole(value: float) -> bool:
    """Return whether a value has no fraction."""
    return math.isfinite(value) and value == math.floor(value)


def resident_bytes() -> int:
    """Return the resident memory of this process, bytes; 0 if the system does not report it."""
    if not STATUS_FILE.exists():
        return 0
    return int(STATUS_FILE.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
