"""Events of requests to a portal: what is done for one carries its id, and no other's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

import swathe
from swathe import trace
from swathe.catalog import Catalog
from swathe.datasets.scan import scan
from swathe.stores.listing import read_list
from tests.support.fits_frames import contents, noise, sky_header
from tests.support.portals import add_survey, database_in, finished, served, submitted, wait_until
from tests.support.scripted_servers import Handler, serving
from tests.support.traces import named, rows

NAMES = ("a.fit", "b.fit", "c.fit.gz")
LOW = "[10:40,850:890]"
"""Far behind the headers."""
DID = "ivo://swathe.invalid/survey?frame-000001.fit,0"


class Far(Handler):
    """Sends images; with `together`, none before all were asked for."""

    protocol_version = "HTTP/1.1"
    images: ClassVar[dict[str, bytes]] = {}
    asked: ClassVar[set[str]] = set()
    together: ClassVar[threading.Barrier | None] = None

    def do_GET(self) -> None:
        name = self.path.strip("/")
        if self.together is not None and name not in self.asked:
            self.asked.add(name)
            self.together.wait(60)
        image = self.images[name]
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        part = image[int(first) : int(last) + 1]
        told = f"bytes {first}-{int(first) + len(part) - 1}/{len(image)}"
        self.answer(206, part, {"Content-Range": told, "ETag": f'"{name}"'})


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server."""
    made = {}
    for number, name in enumerate(NAMES):
        header = sky_header(10.0 * number, -1.0)
        made[name] = contents(noise(number, (900, 1000)), name.partition(".")[2], header)
    monkeypatch.setattr(Far, "images", made)
    monkeypatch.setattr(Far, "asked", set())
    with serving(Far) as url:
        yield url


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where portals record to."""
    path = tmp_path / "run.ulm"
    monkeypatch.setenv(trace.VARIABLE, str(path))
    return path


def catalogue(folder: Path, url: str) -> None:
    """Add the images of the server to the portal's catalogue."""
    (folder / "list.txt").write_text("\n".join(NAMES))
    with (
        pytest.MonkeyPatch.context() as patch,
        Catalog.open(database_in(folder)) as catalog,
    ):
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        catalog.add_store("far", url)
        catalog.add_dataset("far", "far", "", None)
        scan(catalog, "far", read_list(folder / "list.txt", "", None))


def wait_for(run: Path, count: int, event: str = "PORTAL_END") -> None:
    """Wait until so many requests have ended, or something else has."""
    wait_until(lambda: run.read_text().count(event) == count)


def stages(found: list[dict[str, Any]]) -> set[str]:
    return {row["event"].removesuffix("_START").removesuffix("_END") for row in found}


def test_requests_to_a_portal_are_told(tmp_path: Path, run: Path) -> None:
    with served(tmp_path) as portal:
        for path in ("/api/?secret=1", "/none"):
            httpx.get(portal.url + path)
        wait_for(run, 2)
    ends = named(rows(run), "PORTAL_END")
    assert [row["PATH"] for row in ends] == ["/api/", "/none"]
    assert (ends[1]["STATUS"], ends[1]["RESULT"], ends[1]["METHOD"]) == (404, "missing", "GET")
    assert all(row["BYTES"] > 0 for row in ends)
    assert len(named(rows(run), "PORTAL_START")) == len({row["PORTAL"] for row in ends}) == 2


def test_a_request_that_makes_a_job_says_which(tmp_path: Path, run: Path) -> None:
    add_survey(tmp_path, targets=3)
    columns = {"file": ["survey:frame-000001.fit"], "x": [700], "y": [700], "height": [9]}
    targets = {**columns, "width": [9]}
    with served(tmp_path) as portal, httpx.Client(base_url=portal.url) as client:
        job = client.post("/api/jobs", json={"targets": targets}).json()["id"]
        line = "survey:frame-000001.fit, 700, 700, 9, 9"
        form = {"targets": (None, line), "do": (None, "submit")}
        page = client.post("/new", files=form)
        uws = client.post("/vo/async", data={"ID": DID, "SUB": "[1:2,1:2]"})
        client.post(f"/api/jobs/{job}/cancel")
        made = [job, page.headers["location"].rpartition("/")[2]]
        made.append(uws.headers["location"].rpartition("/")[2])
        wait_for(run, 8, "METHOD=POST")
    told = named(rows(run), "SUBMITTED")
    assert [row["JOB"] for row in told] == made
    starts = {row["PORTAL"]: row["PATH"] for row in named(rows(run), "PORTAL_START")}
    assert [starts[row["PORTAL"]] for row in told] == ["/api/jobs", "/new", "/vo/async"]


def test_what_is_done_for_a_request_carries_its_id(
    tmp_path: Path, run: Path, far: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of requests that are answered at the same time, in threads, and by the same connections."""
    catalogue(tmp_path, far)
    monkeypatch.setattr(Far, "together", threading.Barrier(len(NAMES)))
    Far.asked.clear()
    with served(tmp_path) as portal, httpx.Client(base_url=portal.url, timeout=120) as client:

        def cut(name: str) -> int:
            did = f"ivo://swathe.invalid/far?{name},0"
            return client.get("/vo/sync", params={"ID": did, "SUB": LOW}).status_code

        with ThreadPoolExecutor(len(NAMES)) as pool:
            assert list(pool.map(cut, NAMES)) == [200] * len(NAMES)
        wait_for(run, len(NAMES))
    found = rows(run)
    told: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        if "OBJECT" in row:
            told.setdefault(row["PORTAL"], []).append(row)
    assert {frozenset(row["OBJECT"] for row in of_one) for of_one in told.values()} == {
        frozenset({f"far:{name}"}) for name in NAMES
    }
    ends = {row["PORTAL"]: row["ns"] for row in named(found, "PORTAL_END")}
    starts = {row["PORTAL"]: row["ns"] for row in named(found, "PORTAL_START")}
    assert set(told) == set(starts) == set(ends)
    assert max(starts.values()) < min(ends.values())
    for request, of_one in told.items():
        assert {"OPEN", "PLAN", "CUT", "FETCH"} <= stages(of_one)
        for row in of_one:
            # A connection that was not needed after all is finished later.
            if row["event"] != "CONNECT_END":
                assert starts[request] <= row["ns"] <= ends[request]
    # Each request to a store has its own number beside.
    fetched = named(found, "FETCH_START")
    assert len({row["REQUEST"] for row in fetched}) == len(fetched) >= len(NAMES)


def test_cuts_that_need_no_thread_carry_it_too(tmp_path: Path, run: Path) -> None:
    add_survey(tmp_path, targets=3)
    with served(tmp_path) as portal, httpx.Client(base_url=portal.url, timeout=120) as client:
        for _ in range(3):
            assert client.get("/vo/sync", params={"ID": DID, "SUB": "[1:9,1:9]"}).is_success
        wait_for(run, 3)
    found = rows(run)
    (*_, last) = starts = named(found, "PORTAL_START")
    cuts = named(found, "CUT_END")
    assert [row["PORTAL"] for row in cuts] == [row["PORTAL"] for row in starts]
    # Known by then, it was cut where the request came in.
    assert cuts[-1]["PORTAL"] == last["PORTAL"]
    assert len({row["THREAD"] for row in starts}) == 1


def test_an_estimate_is_of_its_request_and_a_job_of_itself(
    tmp_path: Path, run: Path, far: str
) -> None:
    catalogue(tmp_path, far)
    columns = {"x": [500] * 3, "y": [860] * 3, "height": [9] * 3, "width": [9] * 3}
    targets = {"file": [f"far:{name}" for name in NAMES], **columns}
    with served(tmp_path) as portal:
        with httpx.Client(base_url=f"{portal.url}/api", timeout=120) as client:
            assert client.post("/estimate", json={"targets": targets}).is_success
            job = submitted(client, targets)["id"]
            assert finished(client, job)["counts"]["ok"] == 3
        wait_for(run, 1, "JOB_END")
    found = rows(run)
    paths = {row["PORTAL"]: row["PATH"] for row in named(found, "PORTAL_START")}
    (made,) = named(found, "SUBMITTED")
    assert (made["JOB"], paths[made["PORTAL"]]) == (job, "/api/jobs")
    # Headers are read where the index lacks them.
    looked = [row for row in found if paths.get(row.get("PORTAL")) == "/api/estimate"]
    assert {"PORTAL", "OPEN"} <= stages(looked)
    of_job = [row for row in found if row.get("JOB") == job and row is not made]
    assert {"JOB", "BATCH", "CUT", "FETCH"} <= stages(of_job)
    assert not any("PORTAL" in row for row in of_job)


def test_threads_of_the_engine_have_the_ids_of_who_asked(tmp_path: Path, far: str) -> None:
    run = tmp_path / "own.ulm"
    targets = {
        "file": [f"{far}/{name}" for name in NAMES],
        **dict.fromkeys(("x0", "y0", "width", "height"), [20] * 3),
    }
    with trace.recording(run):
        with trace.scope(job="mine"):
            swathe.predict(targets)
        trace.point("AFTER")
    fetched = named(rows(run), "FETCH_END")
    assert {row["JOB"] for row in fetched} == {"mine"}
    assert {row["OBJECT"] for row in fetched} == {f"{far}/{name}" for name in NAMES}
    assert "JOB" not in named(rows(run), "AFTER")[0]
