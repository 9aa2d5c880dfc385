"""The metrics of a portal in the text format of Prometheus."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from swathe.costs.track_record import track_records
from swathe.portal.http.response_counts import BOUNDS_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from swathe.portal.context import Portal
    from swathe.portal.http.response_counts import RouteTimes
    from swathe.workers.pool import PoolStatus

STATUS_FILE = Path("/proc/self/statm")
OUTCOMES = 200
"""Number of latest jobs whose predictions are compared with what they took."""

Values = dict[str, float]
"""Values of a metric by their labels, as `{phase="ERROR"}`; of one without labels, by ""."""


def metrics_of(portal: Portal, health: Mapping[str, bool], disk: tuple[int, int]) -> str:
    """Return the metrics of a portal.

    Args:
        portal: the portal.
        health: whether each part of it works.
        disk: free and total disk space for results, bytes.
    """
    status = portal.pool.status()
    lines = [
        *metric("up", "Working parts (1) and failing ones (0).", by("part", health)),
        *_queue(portal),
        *_work(portal, status),
        *_workers(status),
        *_disk(portal, disk),
        *_predictions(portal),
        *metric("places", "Slots in use, by kind.", by("kind", slots_of(portal))),
        *_responses(portal),
        "# HELP process_resident_memory_bytes Memory, bytes.",
        "# TYPE process_resident_memory_bytes gauge",
        f"process_resident_memory_bytes {resident_bytes()}",
    ]
    return "\n".join(lines) + "\n"


def _queue(portal: Portal) -> Iterator[str]:
    """Yield the metrics of stored jobs."""
    totals = portal.catalog.totals()
    backlog = portal.catalog.removal_backlog()
    age_s = 0.0
    if totals.oldest_at is not None:
        age_s = max(0.0, (datetime.now(UTC) - totals.oldest_at).total_seconds())
    yield from metric("jobs", "Stored jobs, by phase.", by("phase", totals.phases))
    yield from metric("rows", "Stored rows, by status.", by("status", totals.rows))
    yield from metric("queue_rows", "Waiting rows.", {"": totals.queue_rows})
    yield from metric(
        "queue_oldest_seconds",
        "Age of the oldest job that has waiting rows, seconds; 0 if none waits.",
        {"": age_s},
    )
    yield from metric("result_bytes", "Bytes of stored results.", {"": totals.bytes})
    yield from metric(
        "removal_jobs", "Deleted jobs whose results are not removed yet.", {"": backlog.jobs}
    )
    yield from metric(
        "removal_bytes",
        "Bytes of results of deleted jobs that are not removed yet.",
        {"": backlog.bytes},
    )
    yield from metric("work_seconds", "Work on stored jobs, seconds.", {"": totals.work_s})


def _work(portal: Portal, status: PoolStatus) -> Iterator[str]:
    """Yield the metrics of the work that this portal did."""
    counts, traffic = portal.runner.counts, status.moved
    sources = {
        "store": (traffic.store_bytes, traffic.store_requests),
        "workers": (traffic.peer_bytes, traffic.peer_requests),
        "cache": (traffic.cache_bytes, traffic.cache_requests),
    }
    sizes = {name: size for name, (size, _) in sources.items()}
    requests = {name: number for name, (_, number) in sources.items()}
    yield from counter(
        "finished_rows_total",
        "Rows that this portal finished, by status.",
        by("status", counts.rows),
    )
    yield from counter(
        "finished_jobs_total", "Jobs that this portal ended, by phase.", by("phase", counts.jobs)
    )
    yield from counter("finished_work_seconds_total", "Work on them, seconds.", {"": counts.work_s})
    yield from counter("finished_batches_total", "Batches of the pool.", {"": traffic.batches})
    yield from counter("read_bytes_total", "Bytes that batches read.", by("from", sizes))
    yield from counter("read_requests_total", "Requests for them.", by("from", requests))


def _workers(status: PoolStatus) -> Iterator[str]:
    """Yield the metrics of the pool."""
    workers = status.workers
    threads = {
        "all": sum(each.threads for each in workers),
        "busy": sum(each.busy for each in workers),
    }
    yield from metric("workers", "Workers of the pool.", {"": len(workers)})
    yield from metric("worker_threads", "Threads of the workers.", by("state", threads))
    yield from metric("batches", "Batches in flight.", {"": status.batches})
    caches = {
        "used": sum(each.held_bytes for each in workers),
        "limit": sum(each.cache_bytes for each in workers),
    }
    yield from metric("worker_cache_bytes", "Caches of the workers, bytes.", by("kind", caches))
    if status.growth is not None:
        growth = status.growth
        sizes = {
            "target": growth.target,
            "starting": growth.starting,
            "minimum": growth.minimum,
            "maximum": growth.maximum,
        }
        yield from metric("pool_size", "Autoscaling of the pool, workers.", by("kind", sizes))


def _disk(portal: Portal, disk: tuple[int, int]) -> Iterator[str]:
    """Yield the metrics of the disk for results, and of the cache of this process."""
    folders = portal.cache_sizes.folders()
    free, total = disk
    yield from metric("disk_free_bytes", "Free disk space for results, bytes.", {"": free})
    yield from metric("disk_total_bytes", "Disk space for results, bytes.", {"": total})
    yield from metric(
        "cache_bytes", "Cache on this disk, bytes.", by("kind", {x.name: x.bytes for x in folders})
    )
    yield from metric(
        "cache_limit_bytes",
        "Limits of this cache, bytes.",
        by("kind", {each.name: each.limit_bytes for each in folders}),
    )


def _predictions(portal: Portal) -> Iterator[str]:
    """Yield how far the predictions of the latest work were off."""
    records = track_records(portal.catalog.outcomes(OUTCOMES))
    errors: dict[str, float] = {}
    if records:
        errors = {"0.5": records[-1].median_error, "0.9": records[-1].high_error}
    yield from metric(
        "prediction_error",
        "Error of predicted times, relative to the actual ones, of the latest work.",
        by("quantile", errors),
    )
    yield from metric(
        "prediction_coverage",
        "Part of them within the interval of 80 %.",
        {"": records[-1].coverage} if records else {},
    )
    yield from metric(
        "predictions", "Number of them.", {"": records[-1].compared if records else 0}
    )


def slots_of(portal: Portal) -> dict[str, int]:
    """Return the number of slots in use, by kind."""
    return {"streams": portal.streams.places_in_use, "downloads": portal.downloads.places_in_use}


def _responses(portal: Portal) -> Iterator[str]:
    """Yield the metrics of responses."""
    routes = portal.responses.by_route()
    yield from counter(
        "requests_total",
        "Responses, by class of status.",
        by("status", portal.responses.by_class()),
    )
    yield from counter(
        "route_requests_total",
        "Responses, by method, route and class of status.",
        {
            f'{{method="{method}",route="{route}",status="{status}"}}': number
            for (method, route), times in routes.items()
            for status, number in sorted(times.statuses.copy().items())
        },
    )
    yield "# HELP swathe_route_seconds Time until the response begins, by method and route."
    yield "# TYPE swathe_route_seconds histogram"
    for (method, route), times in routes.items():
        yield from _histogram(f'method="{method}",route="{route}"', times)


def _histogram(labels: str, times: RouteTimes) -> Iterator[str]:
    """Yield the lines of the times of one route."""
    classes = times.classes.copy()
    sums = list(accumulate(classes[index] for index in range(len(BOUNDS_S) + 1)))
    for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), sums, strict=True):
        yield f'swathe_route_seconds_bucket{{{labels},le="{bound}"}} {count}'
    yield f"swathe_route_seconds_sum{{{labels}}} {times.seconds:g}"
    yield f"swathe_route_seconds_count{{{labels}}} {sums[-1]}"


def by(label: str, values: Mapping[str, float]) -> Values:
    """Return values keyed by their label in the format of Prometheus."""
    return {f'{{{label}="{name}"}}': float(value) for name, value in values.items()}


def metric(name: str, meaning: str, values: Mapping[str, float]) -> Sequence[str]:
    """Return the lines of a metric that may go up and down."""
    return _lines(name, "gauge", meaning, values)


def counter(name: str, meaning: str, values: Mapping[str, float]) -> Sequence[str]:
    """Return the lines of a metric that only grows while the portal runs."""
    return _lines(name, "counter", meaning, values)


def _lines(name: str, kind: str, meaning: str, values: Mapping[str, float]) -> Sequence[str]:
    if not values:
        return []
    heads = [f"# HELP swathe_{name} {meaning}", f"# TYPE swathe_{name} {kind}"]
    return [*heads, *(f"swathe_{name}{key} {_number(value)}" for key, value in values.items())]


def _number(value: float) -> str:
    """Return a number as text; whole ones with all digits."""
    is_whole = math.isfinite(value) and value == math.floor(value)
    return f"{value:.0f}" if is_whole else f"{value:g}"


def resident_bytes() -> int:
    """Return the resident memory of this process, bytes; 0 if the system does not report it."""
    if not STATUS_FILE.exists():
        return 0
    return int(STATUS_FILE.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
