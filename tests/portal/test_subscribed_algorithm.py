"""A subscription at a real portal: an algorithm runs in the sandbox once, despite kills."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from tests.portal.test_orders import settings
from tests.support.portals import SECOND_S, database_in, served, wait_until

KILLS = 3
SUM = """\
# /// script
# dependencies = ["numpy"]
# [tool.swathe.algorithm]
# name = "sum"
# version = "1"
# inputs.image = {}
# outputs.table = {media_type = "text/csv"}
# ///
import numpy as np
def run(image, table):
    total = int(np.fromfile(image[0], ">i2", 1, offset=2880).sum())
    table.write_text(f"{total}")
"""


def put(folder: Path, name: str, value: int) -> None:
    """Write an image whose pixels have a sum, as an archive does: under another name first."""
    path = folder / f"{name}.part"
    fits.PrimaryHDU(np.array([[value]], "i2")).writeto(path, overwrite=True)
    path.rename(folder / "images" / name)


def sync(folder: Path) -> None:
    command = [sys.executable, "-m", "swathe.cli", "dataset", "sync", "nights"]
    environment = {**os.environ, "SWATHE_DATABASE": database_in(folder)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECOND_S
    )
    assert done.returncode == 0, done.stderr


def events_of(url: str, subscription: str) -> list[tuple[str, dict[str, Any]]]:
    with swathe.connect(url) as portal:
        page = portal.feed(subscription, limit=1000)
    return [(each["type"].removeprefix("org.swathe."), each["data"]) for each in page["events"]]


def sums_of(folder: Path, events: list[tuple[str, dict[str, Any]]]) -> Counter[tuple[str, int]]:
    """How many runs gave a sum for a granule."""
    sums: Counter[tuple[str, int]] = Counter()
    for kind, data in events:
        if kind == "run.done":
            (path,) = (folder / "results" / data["job"]).rglob(data["file"])
            with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
                sums[data["group"], int(archive.read("table.csv"))] += 1
    return sums


def test_each_granule_runs_once_and_a_replaced_one_again(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    with pytest.MonkeyPatch.context() as patch, Catalog.open(database_in(tmp_path)) as catalog:
        patch.setenv("SWATHE_DATABASE", database_in(tmp_path))
        catalog.add_store("images", str(tmp_path / "images"))
        catalog.add_dataset("nights", "images", "", "*.fits")
    (tmp_path / "sum.py").write_text(SUM)
    chance = random.Random(7)
    expected: Counter[tuple[str, int]] = Counter()
    with served(tmp_path, settings()) as running, swathe.connect(running.url) as portal:
        portal.add_algorithm(tmp_path / "sum.py")
        subscription = portal.subscribe("sum", "nights")[0].id

    def are_done(url: str) -> bool:
        kinds = Counter(kind for kind, _ in events_of(url, subscription))
        assert kinds["run.failed"] == 0, events_of(url, subscription)
        return kinds["run.done"] >= sum(expected.values())

    for turn in range(KILLS):
        with served(tmp_path, settings()) as running:
            for number in range(2):
                name = f"i{turn}{number}.fits"
                put(tmp_path, name, 10 * turn + number)
                expected[name, 10 * turn + number] += 1
            sync(tmp_path)
            time.sleep(chance.uniform(0, 1.5))
            running.kill()
    with served(tmp_path, settings()) as running:
        wait_until(lambda: are_done(running.url))
        put(tmp_path, "i00.fits", 99)
        expected["i00.fits", 99] += 1
        sync(tmp_path)
        time.sleep(chance.uniform(0, 1.5))
        running.kill()
    with served(tmp_path, settings()) as running:
        wait_until(lambda: are_done(running.url))
        sync(tmp_path)  # nothing has changed
        time.sleep(2.5)
        events = events_of(running.url, subscription)
    submitted = [data for kind, data in events if kind == "run.submitted"]
    assert Counter(each["group"] for each in submitted) == Counter(name for name, _ in expected)
    assert sums_of(tmp_path, events) == expected
