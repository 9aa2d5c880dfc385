"""What monitoring reads: /healthz, /readyz and /metrics."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import uvicorn
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from swathe.portal.app import make_app, open_portal
from swathe.portal.config import config_of
from swathe.portal.health import health_of, readiness_of
from swathe.portal.http.response_counts import BOUNDS_S, METHODS, ResponseCounts
from swathe.portal.serve import Server
from tests.support.portals import (
    RunningPortal,
    add_survey,
    database_in,
    finished,
    served,
    submitted,
    targets_in,
)

READY = ("database", "pool", "disk", "tables", "results", "running")


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    folder = tmp_path_factory.mktemp("health")
    add_survey(folder, targets=3)
    with served(folder) as running:
        yield running


def families(url: str) -> dict[str, Metric]:
    """Return the metrics of a portal, as Prometheus reads them."""
    answer = httpx.get(f"{url}/metrics")
    assert answer.status_code == 200, answer.text
    return {each.name: each for each in text_string_to_metric_families(answer.text)}


def values(family: Metric, label: str) -> dict[str, float]:
    return {sample.labels[label]: sample.value for sample in family.samples}


def test_a_portal_is_ready(portal: RunningPortal) -> None:
    answer = httpx.get(f"{portal.url}/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"ready": True, **dict.fromkeys(READY, "ok")}
    assert httpx.head(f"{portal.url}/readyz").status_code == 200


def test_a_portal_is_not_ready_without_its_results(portal: RunningPortal) -> None:
    results, elsewhere = portal.folder / "results", portal.folder / "elsewhere"
    results.rename(elsewhere)
    answer = httpx.get(f"{portal.url}/readyz")
    elsewhere.rename(results)
    states = answer.json()
    assert (answer.status_code, states["results"], states["tables"]) == (503, "trouble", "ok")
    assert str(portal.folder) not in answer.text


def test_a_portal_is_not_ready_for_tables_of_a_newer_version(portal: RunningPortal) -> None:
    with closing(sqlite3.connect(portal.folder / "portal.sqlite", timeout=30)) as database:
        (version,) = database.execute("SELECT version_num FROM swathe_schema").fetchone()
        database.execute("UPDATE swathe_schema SET version_num = 'v9999'")
        database.commit()
        answer = httpx.get(f"{portal.url}/readyz")
        database.execute("UPDATE swathe_schema SET version_num = ?", (version,))
        database.commit()
    assert (answer.status_code, answer.json()["tables"]) == (503, "trouble")


def test_a_portal_that_stops_is_not_ready(tmp_path: Path) -> None:
    content = {
        "catalog": {"database": database_in(tmp_path)},
        "results": {"folder": str(tmp_path / "results")},
    }
    with open_portal(config_of(content)) as portal:
        server = Server(portal.stopping, uvicorn.Config(make_app(portal)))
        assert readiness_of(portal)["running"]
        server.handle_exit(signal.SIGTERM, None)
        assert not readiness_of(portal)["running"]
        # The pool was not started here.
        assert not health_of(portal)["pool"]
        assert server.should_exit


def test_prometheus_reads_the_metrics(portal: RunningPortal) -> None:
    with httpx.Client(base_url=f"{portal.url}/api") as client:
        targets = targets_in(portal.folder)
        job = finished(client, submitted(client, targets)["id"])
        pending = submitted(client, targets, start=False)["id"]
    read = families(portal.url)
    assert values(read["swathe_up"], "part") == {"database": 1, "pool": 1, "disk": 1}
    assert values(read["swathe_finished_rows"], "status")["ok"] == job["counts"]["ok"] == 3
    assert values(read["swathe_finished_jobs"], "phase") == {"COMPLETED": 1, "ERROR": 0}
    assert values(read["swathe_jobs"], "phase") == {"COMPLETED": 1, "PENDING": 1}
    assert values(read["swathe_read_bytes"], "from")["store"] > 0
    assert values(read["swathe_worker_threads"], "state")["all"] >= 1
    assert values(read["swathe_cache_limit_bytes"], "kind")["index"] > 0
    assert read["swathe_queue_oldest_seconds"].samples[0].value == 0
    (total,) = read["swathe_disk_total_bytes"].samples
    assert total.value > read["swathe_disk_free_bytes"].samples[0].value > 0
    assert read["swathe_predictions"].samples[0].value in (0, 1)
    assert read["process_resident_memory_bytes"].samples[0].value > 10_000_000
    # The age of the queue is that of its oldest job: here one that no thread takes any more.
    with closing(sqlite3.connect(portal.folder / "portal.sqlite", timeout=30)) as database:
        database.execute(
            "UPDATE jobs SET phase = 'QUEUED', cursor = rows, created_at = '2020-01-01 00:00:00'"
            " WHERE id = ?",
            (pending,),
        )
        database.commit()
    age_s = families(portal.url)["swathe_queue_oldest_seconds"].samples[0].value
    assert age_s > 6 * 365 * 86_400


def test_times_are_those_of_routes_not_of_paths(portal: RunningPortal) -> None:
    for path in ("/api/about", "/healthz", "/vo/availability", "/stac/"):
        httpx.get(f"{portal.url}{path}")
    before = families(portal.url)["swathe_route_seconds"]
    for number in range(20):
        for path in (
            f"/api/jobs/{number}",
            f"/vo/async/{number}",
            f"/api/n{number}",
            f"/n{number}",
        ):
            httpx.get(f"{portal.url}{path}")
    httpx.request("PROPFIND", f"{portal.url}/api/about")
    read = families(portal.url)
    after = read["swathe_route_seconds"]
    routes = {sample.labels["route"] for sample in after.samples}
    assert {"/api/about", "/healthz", "/vo/availability", "/stac/"} <= routes
    assert {"/api/jobs/{job_id}", "/vo/async/{job}", "/{path:path}"} <= routes
    assert len(routes - {sample.labels["route"] for sample in before.samples}) <= 6
    methods = {sample.labels["method"] for sample in after.samples}
    assert "other" in methods <= METHODS | {"other"}
    counts = {
        sample.labels["route"]: sample.value
        for sample in read["swathe_route_requests"].samples
        if sample.labels["status"] == "4xx" and sample.labels["method"] == "GET"
    }
    assert counts["/api/jobs/{job_id}"] == 20


def test_classes_of_times_are_cumulative() -> None:
    counts = ResponseCounts()
    for seconds in (0.001, 0.005, 0.2, 100.0):
        counts.add(200, "GET", "/a", seconds)
    counts.add(503, "BREW", "/a", 0.0)
    times = counts.by_route()["GET", "/a"]
    assert dict(times.classes) == {0: 2, BOUNDS_S.index(0.25): 1, len(BOUNDS_S): 1}
    assert times.seconds == pytest.approx(100.206)
    assert counts.by_route()["other", "/a"].statuses == {"5xx": 1}
    assert counts.by_class() == {"1xx": 0, "2xx": 4, "3xx": 0, "4xx": 0, "5xx": 1}
