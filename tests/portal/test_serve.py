"""A portal as a process: killed, ended, started with settings that make no sense."""

from __future__ import annotations

import hashlib
import io
import re
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table

import swathe
from swathe.catalog import Catalog
from swathe.client.portal import RemotePortal
from tests.support.portals import (
    SECOND_S,
    command_for,
    database_in,
    finished,
    served,
    submitted,
    survey_in_database,
    wait_until,
)
from tests.support.servers import free_port

TARGETS = 40


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    with survey_in_database(tmp_path_factory.mktemp("portal"), request, TARGETS) as made:
        yield made


def test_what_answers_import_is_there_before_the_first_request(tmp_path: Path) -> None:
    package = Path(swathe.__file__).parent
    lazy = {
        name
        for part in (
            "core",
            "stores",
            "files",
            "costs",
            "cutting",
            "datasets",
            "jobs",
            "portal",
            "workers",
        )
        for file in (package / part).rglob("*.py")
        for name in re.findall(
            r"^ +(?:from|import) (astropy[\w.]*)", file.read_text(), re.MULTILINE
        )
    }
    assert "astropy.table" in lazy
    code = (
        "import sys; from swathe.portal import serve; from swathe.portal.config import config_of\n"
        "serve.listen = lambda _config: sys.exit(print(*sys.modules))\n"
        f"serve.serve(config_of({{'catalog': {{'database': {database_in(tmp_path)!r}}}}}), print)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert lazy <= set(told.stdout.split())


def test_kill_in_the_middle_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swathe.client.connection.TRIES", 12)  # for machines where it begins slowly
    listed = Table.read(folder / "targets.csv", format="ascii.csv")
    targets: dict[str, list[Any]] = {name: listed[name].tolist() for name in listed.colnames}
    many = {name: values * 50 for name, values in targets.items()}
    many["id"] = [f"t{number}" for number in range(50 * TARGETS)]
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with ThreadPoolExecutor(1) as pool, RemotePortal(url, None) as watched:
        with served(folder, port=port) as running, swathe.connect(running.url) as portal:
            job = portal.submit(many)
            # Somebody waits for it all the time.
            waiting = pool.submit(watched.job(job.id).wait)
            wait_until(lambda: job.status().counts["ok"] > 0)
            running.kill()
        with Catalog.open(database_in(folder)) as catalog:
            assert catalog.job(job.id).phase == "EXECUTING"
        with served(folder, port=port) as running, swathe.connect(running.url) as portal:
            told = waiting.result(timeout=2 * SECOND_S)
            assert told.phase == "COMPLETED"
            assert told.counts["ok"] == 50 * TARGETS
            rows = list(portal.job(job.id).rows())
            portal.job(job.id).fetch(folder / "all.tar")
    assert [row.id for row in rows] == many["id"]
    with tarfile.open(folder / "all.tar") as tar:
        assert sorted(tar.getnames()) == sorted([*(row.name for row in rows), "manifest.ecsv"])
    made = list((folder / "results" / job.id).rglob("*.fits"))
    assert len(made) == 50 * TARGETS
    table = Table({name: values[:TARGETS] for name, values in many.items()})
    table["file"] = [str(folder / "survey" / name.partition(":")[2]) for name in table["file"]]
    manifest = swathe.cut_many(table, folder / "direct", progress=False)
    for row, name in zip(rows, manifest["path"].tolist(), strict=False):
        expected = fits.getdata(folder / "direct" / name)
        found = fits.getdata(folder / "results" / job.id / "0000" / row.name)
        np.testing.assert_array_equal(found, expected)


class Crowd:
    """Clients that never rest, at a portal that is killed: some cut at once, some submit jobs.

    Only that there is no answer is a thing they know how to take.
    """

    def __init__(self, url: str, targets: dict[str, list[Any]], cut: bytes) -> None:
        self._url, self._targets, self._cut = url, targets, cut
        self.jobs: list[str] = []
        self.cuts = 0
        self.unanswered = 0
        self._over = threading.Event()

    def __call__(self, submits: bool) -> None:
        with httpx.Client(base_url=self._url, timeout=SECOND_S) as client:
            while not self._over.is_set():
                try:
                    self._submit(client) if submits else self._sync(client)
                except httpx.TransportError:
                    self.unanswered += 1
                    self._over.wait(0.05)

    def _submit(self, client: httpx.Client) -> None:
        answer = client.post("/api/jobs", json={"targets": self._targets})
        assert answer.status_code == 201, answer.text
        self.jobs.append(answer.json()["id"])
        self._over.wait(0.5)

    def _sync(self, client: httpx.Client) -> None:
        answer = client.get("/vo/sync", params=CUT)
        assert answer.status_code == 200, answer.text
        assert answer.content == self._cut
        self.cuts += 1

    def end(self) -> None:
        self._over.set()


CUT = {"ID": "ivo://swathe.invalid/survey?frame-000001.fit,0", "SUB": "[11:30,21:40]"}


def test_restarts_under_load_lose_nothing(folder: Path) -> None:
    listed = Table.read(folder / "targets.csv", format="ascii.csv")
    targets: dict[str, list[Any]] = {name: listed[name].tolist() for name in listed.colnames}
    many = {name: values * 2 for name, values in targets.items()}
    many["id"] = [f"t{number}" for number in range(2 * TARGETS)]
    port = free_port()
    settings = "[limits]\njobs = 10000\nrows_waiting = 100000000\n"
    url = f"http://127.0.0.1:{port}"
    with served(folder, settings, port=port) as running:
        cut = httpx.get(f"{running.url}/vo/sync", params=CUT).content
        assert fits.getdata(io.BytesIO(cut)).shape == (20, 20)
        running.kill()
    crowd = Crowd(url, many, cut)
    with ThreadPoolExecutor(5) as pool:
        clients = [pool.submit(crowd, number < 2) for number in range(5)]
        try:
            for _ in range(3):
                with served(folder, settings, port=port) as running:
                    jobs, cuts = len(crowd.jobs), crowd.cuts

                    def is_busy(jobs: int = jobs, cuts: int = cuts) -> bool:
                        return len(crowd.jobs) > jobs + 2 and crowd.cuts > cuts + 40

                    wait_until(lambda: is_busy() or any(client.done() for client in clients))
                    running.kill()
        finally:
            crowd.end()
        for client in clients:
            client.result(timeout=SECOND_S)
    assert crowd.unanswered > 0
    with (
        served(folder, settings, port=port) as running,
        httpx.Client(base_url=f"{running.url}/api", timeout=2 * SECOND_S) as api,
    ):
        for job in crowd.jobs:
            told = finished(api, job)
            assert told["phase"] == "COMPLETED", told
            assert told["counts"]["ok"] == told["rows"] == 2 * TARGETS
            rows = api.get(f"/jobs/{job}/rows").json()["rows"]
            assert [row["id"] for row in rows] == many["id"]
            for row in rows:
                made = (folder / "results" / job / "0000" / row["name"]).read_bytes()
                assert hashlib.sha256(made).hexdigest() == row["sha256"]


def test_port_that_is_taken_is_told(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = command_for(folder, "", port)
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in ran.stderr


def test_settings_are_checked_before_anything_starts(tmp_path: Path) -> None:
    command = command_for(tmp_path, "[server]\nprt = 1\n", free_port())
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 2
    assert "unknown key in [server]: 'prt'" in ran.stderr
    assert not (tmp_path / "portal.sqlite").exists()


def test_portal_ends_when_told_with_clients_waiting(folder: Path) -> None:
    with served(folder) as running:
        box = {"file": ["survey:frame-000001.fit"], "x0": [0], "y0": [0]}
        asked = {**box, "width": [9], "height": [9]}
        with httpx.Client(base_url=f"{running.url}/api", timeout=SECOND_S) as client:
            job = submitted(client, asked, start=False)["id"]
            with client.stream("GET", f"/jobs/{job}/events") as answer:
                next(answer.iter_lines())
                running.process.terminate()
                running.process.wait(timeout=120)
