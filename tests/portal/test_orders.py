"""Orders at a real portal: searched, predicted, run, killed in the middle, and attacked."""

from __future__ import annotations

import io
import os
import signal
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.client.portal import RemotePortal
from swathe.core.errors import AlgorithmError, DatasetError, NoSuchResultError
from swathe.datasets.scan import scan
from swathe.stores.listing import list_objects
from tests.support.box import USERS, box
from tests.support.fits_frames import Runner
from tests.support.portals import RunningPortal, database_in, served, wait_until

SUMS = """\
# /// script
# dependencies = ["numpy"]
# [tool.swathe.algorithm]
# name = "sums"
# version = "1"
# inputs.images = {group = "day", count = "1..3"}
# outputs.table = {media_type = "text/csv"}
# parameters.factor = {type = "integer", default = 1}
# ///
import numpy as np
def run(images, table, factor):
    print("images:", len(images))
    with table.open("w") as lines:
        for image in images:
            print(image.id, int(np.fromfile(image, ">i2", offset=2880).sum()) * factor, file=lines)
"""
HEADER = """\
# /// script
# [tool.swathe.algorithm]
# name = "{name}"
# version = "1"
# inputs.images = {{}}
# outputs.table = {{media_type = "text/csv"}}
# resources = {{wall = "{wall}", output = "1 MB", memory = "200 MB"}}
# ///
def run(images, table):
"""
IMAGES = 12


def settings() -> str:
    """The section of the settings that says how programs run."""
    here = box()
    users = "" if USERS is None else f"{USERS.first}:{USERS.count}"
    folders = ", ".join(f'"{each}"' for each in here.python.folders)
    return (
        f'\n[algorithms]\nusers = "{users}"\npython = "{here.python.executable}"\n'
        f"folders = [{folders}]\n"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of four days, in a dataset of the catalogue of a portal."""
    folder = tmp_path_factory.mktemp("orders")
    (folder / "images").mkdir()
    for number in range(IMAGES):
        header = fits.Header(
            {"DATE-OBS": f"2005-05-0{1 + number // 3}T0{number % 3}:00:00", "EXPTIME": 60.0}
        )
        data = np.full((2, 2), number, "i2")
        fits.PrimaryHDU(data, header).writeto(folder / f"images/i{number:02}.fits")
    with pytest.MonkeyPatch.context() as patch, Catalog.open(database_in(folder)) as catalog:
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        store = catalog.add_store("images", str(folder / "images"))
        catalog.add_dataset("nights", "images", "", "*.fits")
        scan(catalog, "nights", list_objects(store, "", "*.fits"))
    return folder


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningPortal]:
    with served(folder, settings()) as portal:
        yield portal


@pytest.fixture
def portal(running: RunningPortal) -> Iterator[RemotePortal]:
    with swathe.connect(running.url) as connected:
        yield connected


def add(portal: RemotePortal, folder: Path, source: str) -> None:
    path = folder / "algorithm.py"
    path.write_text(source)
    portal.add_algorithm(path)


def outputs(folder: Path, job: str, name: str) -> list[str]:
    with zipfile.ZipFile(folder / "results" / job / "0000" / name) as archive:
        return io.TextIOWrapper(archive.open("table.csv")).read().splitlines()


def test_an_order_searches_predicts_and_runs(
    portal: RemotePortal, running: RunningPortal, folder: Path, run: Runner
) -> None:
    add(portal, folder, SUMS)
    time_range = ("2005-05-02", "2005-05-03T01:30:00")
    choices: dict[str, Any] = {"collection": "nights", "time": time_range}
    estimate = portal.estimate_order("sums", **choices)
    assert estimate.matches == [("2005-05-02", 3), ("2005-05-03", 2)]
    assert (estimate.groups, estimate.runs, estimate.prediction) == (2, 0, None)
    assert estimate.read_bytes == sum(
        (folder / f"images/i{number:02}.fits").stat().st_size for number in range(3, 8)
    )
    preview = portal.order("sums", preview=True, **choices).wait(progress=False)
    assert preview.counts["ok"] == preview.rows == 4
    job = portal.order("sums", parameters={"factor": 2}, **choices)
    status = job.wait(progress=False)
    assert (status.phase, status.counts["ok"]) == ("COMPLETED", 7)
    *_, first, second = job.rows()
    assert outputs(folder, job.id, first.name) == ["i03.fits 24", "i04.fits 32", "i05.fits 40"]
    assert second.id == "2005-05-03"
    assert job.log("2005-05-03")["log"] == "images: 2\n"
    with pytest.raises(NoSuchResultError):
        job.log("2005-05-04")
    days, url = ("2005-05-02", "2005-05-03"), ("--url", running.url)
    assert [
        line for line in run("job", "log", job.id, *days, *url).splitlines() if ":" not in line
    ] == ["--- 2005-05-02 ---", "--- 2005-05-03 ---"]
    assert "COMPLETED: groups: 2 ok" in run("job", "status", job.id, *url)
    assert "no group has failed" in run("job", "log", job.id, *url)
    estimate = portal.estimate_order("sums", **choices)
    assert estimate.runs == 3 and estimate.prediction is not None
    low, high = estimate.prediction.interval_s
    assert 0 < low <= estimate.prediction.median_s <= high
    job.fetch(folder / "fetched", unpack=True)
    assert {path.name for path in (folder / "fetched").glob("*.zip")} == {first.name, second.name}
    for each in (first, second):
        assert any((folder / "fetched" / each.name.removesuffix(".zip")).iterdir())
    with pytest.raises(AlgorithmError, match="factor"):
        portal.order("sums", parameters={"factor": 1.5}, **choices)
    with pytest.raises(DatasetError, match="no granule matches"):
        portal.order("sums", collection="nights", time=(0, 1))
    with pytest.raises(AlgorithmError, match="expected a collection"):
        portal.order("sums")


ATTACKS = {
    "passwd": ("    table.write_text(open('/etc/shadow').read())", "RE"),
    "database": ("    table.write_text(str(open('{database}', 'rb').read(16)))", "RE"),
    "environment": ("    table.write_text(open('/proc/1/environ').read() + '/root')", "RE"),
    "network": (
        "    import socket\n    socket.create_connection(('127.0.0.1', {port}), 2)\n"
        "    table.write_text('reached')",
        "RE",
    ),
    "forks": (
        "    import os\n    while True:\n        os.fork()",
        "RE",
    ),
    "link": ("    import os\n    os.symlink('/etc/passwd', table)", "RE"),
    "memory": ("    table.write_text(str(len(b'x' * 2_000_000_000)))", "RE"),
    "endless": ("    while True:\n        pass", "TO"),
    "large": ("    table.write_bytes(b'x' * 3_000_000)", "RE"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_through_an_order(
    name: str, portal: RemotePortal, running: RunningPortal, folder: Path
) -> None:
    body, _ = ATTACKS[name]
    body = body.format(database=folder / "portal.sqlite", port=running.url.rpartition(":")[2])
    add(portal, folder, HEADER.format(name=name, wall="3 s") + body + "\n")
    job = portal.order(name, collection="nights", time=("2005-05-01", "2005-05-01T00:30:00"))
    status = job.wait(timeout_s=120, progress=False)
    if name == "environment":  # under bubblewrap it is that of the box
        text = "".join(outputs(folder, job.id, row.name)[0] for row in job.rows() if row.name)
        assert "SWATHE_DATABASE" not in text and "TOKEN" not in text
        return
    assert status.phase == "ERROR", [row.reason for row in job.rows()]
    assert not any(row.name for row in job.rows())
    assert portal.about()["version"]
    add(portal, folder, SUMS)
    choices: dict[str, Any] = {
        "collection": "nights",
        "time": ("2005-05-01", "2005-05-01T03:00:00"),
    }
    assert portal.order("sums", **choices).wait(progress=False).phase == "COMPLETED"


def test_kills_of_portal_and_launcher_leave_each_group_once(tmp_path: Path, folder: Path) -> None:
    slow = HEADER.format(name="slow", wall="60 s") + (
        "    import time\n    time.sleep(0.8)\n    table.write_text(images[0].id)\n"
    )
    names = [f"images:i{number:02}.fits" for number in range(IMAGES)] * 2
    job_id = ""
    for kill in range(3):
        with served(folder, settings()) as running, swathe.connect(running.url) as portal:
            if not job_id:
                add(portal, tmp_path, slow)
                options: dict[str, Any] = {"operation": "algorithm", "algorithm": "slow"}
                job_id = portal.submit({"file": names}, **options).id
            job = portal.job(job_id)
            if kill == 2:
                launchers(running.process.pid, signal.SIGKILL)
                status = job.wait(timeout_s=120, progress=False)
                rows = list(job.rows())
                logs = [job.log(row.id)["problem"] for row in rows if row.name]
                break
            before = job.status().counts["ok"]
            least = max(before, len(names)) + 1
            wait_until(lambda: job.status().counts["ok"] > least)  # noqa: B023
            running.kill()
    assert (status.phase, status.counts["ok"]) == ("COMPLETED", 2 * len(names))
    groups = [row.id for row in rows if row.name]
    assert len(groups) == len(set(groups)) == len(logs) == len(names) and not any(logs)
    made = [path for path in (folder / "results" / job_id).rglob("*") if path.is_file()]
    assert sorted(path.name for path in made) == sorted(row.name for row in rows if row.name)
    wait_until(lambda: not programs())


def launchers(parent: int, kill: int) -> None:
    """Kill the launchers that a process has started."""

    def children() -> list[int]:
        stats = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = path.read_text().partition(" (")[2].rpartition(") ")
            except OSError:
                continue
            if name == "swathe-sandbox" and int(rest.split()[1]) == parent:
                stats.append(int(path.parent.name))
        return stats

    until = time.monotonic() + 60
    while not (found := children()) and time.monotonic() < until:
        time.sleep(0.02)
    for pid in found:
        os.kill(pid, kill)


def programs() -> list[str]:
    """Processes of the user ids of programs."""
    if USERS is None:
        return []
    ids = range(USERS.first, USERS.first + USERS.count)
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid in ids:
                found.append(path.name)
        except OSError:
            continue
    return found
