"""A portal as a process: killed, ended, started with settings that make no sense."""

from __future__ import annotations

import socket
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table

import swathe
from portals import SECOND_S, add_survey, command_for, database_in, served, submitted, wait_until
from servers import free_port
from swathe.catalog import Catalog
from swathe.client import RemotePortal

TARGETS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("portal")
    add_survey(made, targets=TARGETS)
    return made


def test_kill_in_the_middle_loses_nothing(folder: Path) -> None:
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
            wait_until(lambda: job.status()["counts"]["ok"] > 0)
            running.kill()
        with Catalog.open(database_in(folder)) as catalog:
            assert catalog.job(job.id).phase == "EXECUTING"
        with served(folder, port=port) as running, swathe.connect(running.url) as portal:
            told = waiting.result(timeout=2 * SECOND_S)
            assert told["phase"] == "COMPLETED"
            assert told["counts"]["ok"] == 50 * TARGETS
            rows = list(portal.job(job.id).rows())
            portal.job(job.id).fetch(folder / "all.tar")
    assert [row["id"] for row in rows] == many["id"]
    with tarfile.open(folder / "all.tar") as tar:
        assert sorted(tar.getnames()) == sorted([*(row["name"] for row in rows), "manifest.ecsv"])
    made = list((folder / "results" / job.id).rglob("*.fits"))
    assert len(made) == 50 * TARGETS
    table = Table({name: values[:TARGETS] for name, values in many.items()})
    table["file"] = [str(folder / "survey" / name.partition(":")[2]) for name in table["file"]]
    manifest = swathe.cut_many(table, folder / "direct", progress=False)
    for row, name in zip(rows, manifest["path"].tolist(), strict=False):
        expected = fits.getdata(folder / "direct" / name)
        found = fits.getdata(folder / "results" / job.id / "0000" / row["name"])
        np.testing.assert_array_equal(found, expected)


def test_port_that_is_taken_is_told(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = command_for(folder, "", port)
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert f"cannot listen at 127.0.0.1:{port}: Address already in use" in ran.stderr


def test_settings_are_checked_before_anything_starts(tmp_path: Path) -> None:
    command = command_for(tmp_path, "[server]\nprt = 1\n", free_port())
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
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
                running.process.wait(timeout=20)
