"""A link becomes slower during a job: objects still to be read are planned by what was measured."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from astropy.io import fits

import swathe
from swathe import trace
from swathe.catalog import Catalog, this_host
from swathe.costs.cost_model import Costs
from tests.support.catalogs import new_catalog
from tests.support.fits_frames import fits_bytes, noise
from tests.support.servers import NGINX, FileServer, Proxy, nginx, proxy
from tests.support.traces import named, rows

RTT_MS, BYTES_PER_S, STREAMS = 20.0, 10_000_000, 8
CHANGE_S = 5.0
"""When the link changes, after the job began."""
NOTICED_S = 10.0
OBJECTS, CUTS = 90, 4

pytestmark = pytest.mark.skipif(not Path(NGINX).exists(), reason="needs nginx")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FileServer]:
    """Frames of 1500 rows of 8,000 bytes."""
    (tmp_path / "nginx").mkdir()
    with nginx(tmp_path / "nginx") as server:
        frame = server.folder / "0.fits"
        frame.write_bytes(fits_bytes(fits.PrimaryHDU(noise(1, (1500, 4000)).astype(">i2"))))
        for number in range(1, OBJECTS):
            os.link(frame, server.folder / f"{number}.fits")
        yield server


@pytest.fixture
def link(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A link with a profile that is exact."""
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    with proxy(server.url, rtt_ms=RTT_MS, shared_bytes_per_s=BYTES_PER_S) as link:
        latency_s = RTT_MS / 1000
        points = ((0, latency_s), (1_000_000, latency_s + 1e6 / BYTES_PER_S))
        costs = Costs(latency_s, 0.0, points, float(BYTES_PER_S), 2000.0, STREAMS)
        with Catalog.open() as catalog:
            now = datetime.now(UTC)
            catalog.put_profile(link.url, this_host(), costs.as_dict(), {}, now)
        yield link


def plans_of(link: Proxy, run: Path, **change: float) -> list[dict[str, Any]]:
    """Cut while the link changes; return the plans, each with its seconds since the change."""
    cuts = [(number, cut) for number in range(OBJECTS) for cut in range(CUTS)]
    targets = {
        "file": [f"{link.url}/{number}.fits" for number, _ in cuts],
        "x": [1000] * len(cuts),
        "y": [100 + 350 * cut for _, cut in cuts],
        "width": [100] * len(cuts),
        "height": [100] * len(cuts),
    }
    changed_ns: list[int] = []

    def alter() -> None:
        link.set(**change)
        changed_ns.append(time.time_ns())

    timer = threading.Timer(CHANGE_S, alter)
    timer.start()
    with trace.recording(run):
        manifest = swathe.cut_many(targets, "null:", progress=False)
    timer.join()
    assert manifest.meta["ok"] == len(cuts)
    plans = named(rows(run), "PLAN_END")
    assert all({"LINE_FACTOR", "LATENCY_FACTOR"} <= plan.keys() for plan in plans)
    return [{**plan, "since_s": (plan["ns"] - changed_ns[0]) / 1e9} for plan in plans]


def before_and_after(plans: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The last plan before the change, and the first from 10 s after it."""
    before = [plan for plan in plans if plan["since_s"] < 0]
    after = [plan for plan in plans if plan["since_s"] >= NOTICED_S]
    assert before and after, "the job ended before the change was to be noticed"
    return before[-1], after[0]


@pytest.mark.more
def test_on_a_line_that_halves_later_objects_move_fewer_bytes(link: Proxy, tmp_path: Path) -> None:
    plans = plans_of(link, tmp_path / "run.ulm", shared_bytes_per_s=BYTES_PER_S // 2)
    before, after = before_and_after(plans)
    # More than 2 where others slow the machine down.
    assert 1.4 < after["LINE_FACTOR"] < 4
    assert after["BYTES"] < before["BYTES"] and after["REQUESTS"] > before["REQUESTS"]


@pytest.mark.more
def test_with_ten_times_the_latency_later_objects_take_fewer_requests(
    link: Proxy, tmp_path: Path
) -> None:
    plans = plans_of(link, tmp_path / "run.ulm", rtt_ms=10 * RTT_MS)
    before, after = before_and_after(plans)
    # Its few long answers follow each other, so the line is full: then waits give bounds only.
    assert 2 < after["LATENCY_FACTOR"] < 14
    assert after["REQUESTS"] < before["REQUESTS"] and after["BYTES"] >= before["BYTES"]
