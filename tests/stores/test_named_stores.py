"""`swathe.stores`, `swathe.probe` and `swathe.cache`: what the shell can do, Python can."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import this_host
from swathe.core.errors import NoSuchStoreError, StoreSettingsError
from tests.support.fits_frames import Runner


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an image of 200 x 300 pixels."""
    path = tmp_path / "images"
    path.mkdir()
    fits.writeto(path / "a.fits", np.arange(60_000, dtype="i2").reshape(200, 300))
    return path


def test_a_store_is_added_used_shown_and_removed(run: Runner, folder: Path) -> None:
    added = swathe.stores.add("disk", str(folder))
    assert isinstance(added, swathe.stores.Store)
    assert swathe.stores.list() == [added]
    assert swathe.cut("disk:a.fits", box=(0, 0, 5, 4)).shape == (4, 5)
    shown = swathe.stores.show("disk")
    assert (shown.store, shown.host, shown.probed_at) == (added, this_host(), None)
    swathe.stores.remove("disk")
    assert swathe.stores.list() == []
    with pytest.raises(NoSuchStoreError, match="disk"):
        swathe.stores.show("disk")


def test_a_folder_is_taken_from_the_working_folder(
    run: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    assert swathe.stores.add("disk", "images").url == f"file://{folder}"


def test_options_are_checked(run: Runner) -> None:
    lake = swathe.stores.add("lake", "s3://bucket", tier="wan", options={"anonymous": "True"})
    assert (lake.tier, lake.options) == ("wan", {"anonymous": "true"})
    with pytest.raises(StoreSettingsError, match="lake"):
        swathe.stores.add("lake", "s3://other")


def test_shell_and_python_say_the_same(run: Runner, folder: Path) -> None:
    run.ran("store", "add", "disk", str(folder))
    (store,) = swathe.stores.list()
    assert run.ran("store", "list", "--json").json == {"stores": [asdict(store)]}


@pytest.mark.more
def test_a_probe_is_recorded(run: Runner, folder: Path, tmp_path: Path) -> None:
    swathe.stores.add("disk", str(folder))
    with pytest.raises(OSError, match="plot"):
        swathe.probe("disk", plot=tmp_path / "costs.txt")
    budget: list[str] = []
    picture = tmp_path / "costs.svg"
    probe = swathe.probe("disk", quick=True, max_time_s=0.3, plot=picture, tell=budget.append)
    assert len(budget) == 1 and "then this machine" in budget[0]
    assert probe.compute is not None and probe.compute["cut_s"] > 0
    shown = swathe.stores.show("disk")
    assert shown.probed_at is not None and shown.profile is not None
    assert shown.profile.costs["streams"] == probe.profile.costs.streams
    assert picture.read_text().lstrip().startswith("<svg")


CACHE = """
import swathe
swathe.cut("frame-000001.fit.gz", box=(900, 900, 10, 10))
(blocks, index) = swathe.cache.show()
assert (blocks.name, index.name) == ("blocks", "index")
assert index.bytes > 0 and index.files > 0 and index.limit_bytes > index.bytes
assert swathe.cache.clear() == {"blocks": 0, "index": index.bytes}
assert {each.bytes for each in swathe.cache.show()} == {0}
print(index.folder)
"""


def test_the_cache_is_shown_and_cleared(survey: Path, tmp_path: Path) -> None:
    caches = {f"SWATHE_{name}_DIR": str(tmp_path / name) for name in ("CACHE", "INDEX")}
    done = subprocess.run(
        [sys.executable, "-c", CACHE],
        capture_output=True,
        text=True,
        cwd=survey,
        env={**os.environ, **caches},
    )
    assert (done.stderr, done.stdout) == ("", f"{tmp_path / 'INDEX'}\n")


@pytest.mark.more
def test_a_probe_by_path_is_shown_by_path(run: Runner, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NoSuchStoreError):
        swathe.stores.show("nowhere")
    assert swathe.stores.show(str(folder)).profile is None
    run("probe", folder, "--quick", "--max-time", "1s")
    shown = swathe.stores.show(str(folder))
    assert shown.profile is not None and shown.probed_at is not None
    assert shown.profile.costs == run.json("store", "show", folder)["profile"]["costs"]
    assert run("store", "show", folder).startswith(f"{folder}: file://")
