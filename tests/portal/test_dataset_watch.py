"""Watched datasets: what arrives is catalogued once, when it is complete."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from astropy.io import fits

from swathe.catalog import Catalog
from swathe.core.errors import SettingsError
from swathe.portal import dataset_watch
from swathe.portal.config import DatasetSettings, config_of
from swathe.portal.dataset_watch import DatasetWatch
from tests.support.catalogs import new_catalog
from tests.support.fits_frames import fits_bytes, noise
from tests.support.portals import wait_until
from tests.support.servers import nginx

FRAME = fits_bytes(fits.PrimaryHDU(noise(1, (9, 9)).astype(">i2")))


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    monkeypatch.setattr(dataset_watch, "QUIET_S", 0.3)
    (tmp_path / "nights").mkdir()
    url = new_catalog(tmp_path / "c.sqlite")
    monkeypatch.setenv("SWATHE_DATABASE", url)
    with Catalog.open(url) as catalog:
        catalog.add_store("here", str(tmp_path))
        catalog.add_dataset("nights", "here", "nights/", "*.fits")
        yield catalog


def objects(catalog: Catalog) -> dict[str, str]:
    return {each.path.rpartition("/")[2]: each.state for each in catalog.replicas("nights", "here")}


def test_what_arrives_is_catalogued_when_it_is_complete(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "nights"
    (folder / "before.fits").write_bytes(FRAME)
    with DatasetWatch(catalog, DatasetSettings(("nights",), 3600.0)):
        wait_until(lambda: objects(catalog) == {"before.fits": "ok"})
        with (folder / "slow.fits").open("wb", buffering=0) as slow:
            for start in range(0, len(FRAME), 2000):
                slow.write(FRAME[start : start + 2000])
                time.sleep(0.1)
                if start == 0:
                    (folder / "quick.fits").write_bytes(FRAME)
                assert "slow.fits" not in objects(catalog)
            while "quick.fits" not in objects(catalog):  # nobody waits for the slow one
                slow.write(b"more")
                time.sleep(0.1)
            assert objects(catalog)["quick.fits"] == "ok" and "slow.fits" not in objects(catalog)
        wait_until(lambda: objects(catalog).get("slow.fits") == "ok")
        (folder / "new").mkdir()
        (folder / "new" / "deep.fits").write_bytes(FRAME)
        wait_until(lambda: objects(catalog).get("deep.fits") == "ok")
        (folder / "before.fits").unlink()
        wait_until(lambda: objects(catalog)["before.fits"] == "vanished")


def test_names_that_are_not_text_hold_up_nothing(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "nights"
    odd = os.fsencode(folder) + b"/\xff.fits"
    (folder / "loop").symlink_to("loop")
    with DatasetWatch(catalog, DatasetSettings(("nights",), 1.0)):
        for number in range(5):
            Path(os.fsdecode(odd)).write_bytes(b"%d" % number)
            (folder / f"{number}.fits").write_bytes(FRAME)
            time.sleep(0.2)
        wait_until(lambda: [*objects(catalog).values()].count("ok") == 5)


def test_other_stores_are_listed_at_an_interval(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with nginx(tmp_path / "server") as server:
        catalog.add_store("far", f"{server.url}/json/")
        catalog.add_dataset("afar", "far", "", "*.fits")
        with DatasetWatch(catalog, DatasetSettings(("afar",), 0.2)):
            (server.folder / "one.fits").write_bytes(FRAME)
            wait_until(lambda: catalog.dataset("afar").granules == 1)
            (server.folder / "two.fits").write_bytes(FRAME)
            wait_until(lambda: catalog.dataset("afar").granules == 2)


def test_a_folder_that_is_gone_is_told_and_tried_again(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "nights"
    folder.rmdir()
    settings = DatasetSettings(("nights", "nobody"), 3600.0)
    with caplog.at_level(logging.WARNING), DatasetWatch(catalog, settings):
        wait_until(lambda: f"{folder}: expected a folder, found none" in caplog.text)
        wait_until(lambda: "nobody" in caplog.text)
        folder.mkdir()
        (folder / "late.fits").write_bytes(FRAME)
        wait_until(lambda: objects(catalog) == {"late.fits": "ok"})
    assert "Traceback" not in caplog.text


def test_a_folder_that_cannot_be_watched_is_listed(
    catalog: Catalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(dataset_watch, "watch", refuse)
    with caplog.at_level(logging.WARNING), DatasetWatch(catalog, DatasetSettings(("nights",), 0.1)):
        (tmp_path / "nights" / "one.fits").write_bytes(FRAME)
        wait_until(lambda: objects(catalog) == {"one.fits": "ok"})
    assert "cannot be watched, listed every 0.1 s instead: OS file watch limit" in caplog.text


def test_settings_are_checked() -> None:
    config = config_of({"datasets": {"watch": ["nights"], "every_s": 5}})
    assert config.datasets == DatasetSettings(("nights",), 5.0)
    with pytest.raises(SettingsError, match=r"datasets\.every_s"):
        config_of({"datasets": {"every_s": 0}})
