"""Outputs of orders as datasets of a real portal: found, cut, read by other orders, removed."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.client.portal import RemotePortal
from swathe.core.errors import (
    AccessError,
    DatasetError,
    JobError,
    NoSuchDatasetError,
    SubscriptionError,
)
from swathe.datasets.scan import scan
from swathe.datasets.search import find
from swathe.stores.listing import list_objects
from tests.portal.test_orders import add, settings
from tests.support.portals import RunningPortal, database_in, served, wait_until

MEANS = """\
# /// script
# dependencies = ["astropy", "numpy"]
# [tool.swathe.algorithm]
# name = "{name}"
# version = "1"
# inputs.images = {{group = "{group}", count = "1..9"}}
# outputs.mean = {{media_type = "image/fits"}}
# outputs.log = {{media_type = "text/plain"}}
# ///
import numpy as np
from astropy.io import fits
def run(images, mean, log):
    pixels = [fits.getdata(image) for image in images]
    fits.PrimaryHDU(np.mean(pixels, 0).astype("f4")).writeto(mean)
    log.write_text(f"{{len(images)}} images")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    for name in ("images", "made"):
        (folder / name).mkdir()
    for number in range(4):
        write_image(folder, number, number)
    with pytest.MonkeyPatch.context() as patch, Catalog.open(database_in(folder)) as catalog:
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        store = catalog.add_store("images", str(folder / "images"))
        catalog.add_store("made", str(folder / "made"))
        catalog.add_dataset("nights", "images", "", "*.fits")
        scan(catalog, "nights", list_objects(store, "", "*.fits"))
    return folder


def write_image(folder: Path, number: int, value: int) -> None:
    header = fits.Header(
        {"DATE-OBS": f"2005-05-0{1 + number // 2}T0{number % 2}:00:00", "EXPTIME": 60.0}
    )
    path = folder / f"images/i{number}.fits"
    fits.PrimaryHDU(np.full((4, 5), value, "i2"), header).writeto(path, overwrite=True)


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningPortal]:
    results = f'folder = "{folder}/results"\ndatasets = "made:users"'
    with served(folder, settings(), results=results) as portal:
        with swathe.connect(portal.url) as connected:
            for name, group in (("means", "day"), ("again", "all")):
                add(connected, folder, MEANS.format(name=name, group=group))
        yield portal


@pytest.fixture
def portal(running: RunningPortal) -> Iterator[RemotePortal]:
    with swathe.connect(running.url) as connected:
        yield connected


def granules(folder: Path, dataset: str) -> Any:
    with Catalog.open(database_in(folder)) as catalog:
        return find(dataset=dataset, catalog=catalog)


def ordered(portal: RemotePortal, name: str, **choices: Any) -> Any:
    job = portal.order(name, **({"collection": "nights"} | choices))
    status = job.wait(timeout_s=120, progress=False)
    return job, status


def test_outputs_are_found_and_cut_and_read_by_another_order(
    portal: RemotePortal, running: RunningPortal, folder: Path
) -> None:
    job, status = ordered(portal, "means", register_as="day-means")
    assert status.phase == "COMPLETED", [row.reason for row in job.rows()]
    found = granules(folder, "day-means")
    assert sorted(found["file"]) == [
        f"made:users/day-means/2005-05-0{day}/mean.fits" for day in (1, 2)
    ]
    # The outputs say no time: it is that of their granules.
    assert sorted(np.round(found["t_min"]).tolist()) == [53491.0, 53492.0]
    ones, twos = [1, 1], [2, 2]
    box = {"x": ones, "y": ones, "width": twos, "height": twos}
    cut = portal.submit({"file": list(found["file"]), **box})
    assert cut.wait(progress=False).counts["ok"] == 2
    job.delete()
    _, status = ordered(portal, "again", collection="day-means", register_as="mean-of-means")
    assert status.counts["ok"] == 3 and len(granules(folder, "mean-of-means")) == 1
    pixels = fits.getdata(folder / "made/users/mean-of-means/all/mean.fits")
    assert pixels.tolist() == np.full((4, 5), 1.5).tolist()
    with pytest.raises(DatasetError, match="not taken"):
        portal.order("means", collection="nights", register_as="day-means")
    with pytest.raises(DatasetError, match="letters"):
        portal.order("means", collection="nights", register_as="../x")
    portal.remove_dataset("mean-of-means")
    assert not [*(folder / "made/users/mean-of-means").rglob("*.fits")]
    with pytest.raises(NoSuchDatasetError):
        granules(folder, "mean-of-means")
    with pytest.raises(AccessError, match="not yours"):
        portal.remove_dataset("nights")


def test_a_group_that_failed_is_added_when_it_succeeds(portal: RemotePortal, folder: Path) -> None:
    obstacle = folder / "made/users/retried/2005-05-01"
    obstacle.parent.mkdir(parents=True)
    obstacle.write_text("a file where the group's folder is to be")
    job, _ = ordered(portal, "means", register_as="retried")
    (failed,) = [row for row in job.rows() if row.status == "error"]
    assert "cannot be added to the dataset retried" in failed.reason
    assert len(granules(folder, "retried")) == 1
    with pytest.raises(JobError, match="fills it"):
        portal.order("means", collection="nights", register_as="held", start=False)
        portal.remove_dataset("held")
    obstacle.unlink()
    job.resume()
    assert job.wait(timeout_s=120, progress=False).phase == "COMPLETED"
    assert len(granules(folder, "retried")) == 2
    url = f"{portal.url}/api/jobs/{job.id}/results/2005-05-02/"
    with urllib.request.urlopen(f"{url}mean") as answer:
        whole = answer.read()
    assert whole == (folder / "made/users/retried/2005-05-02/mean.fits").read_bytes()
    part = urllib.request.Request(f"{url}log.txt", headers={"Range": "bytes=2-4"})
    with urllib.request.urlopen(part) as answer:
        assert (answer.status, answer.read()) == (206, b"ima")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{url}other")


def test_subscriptions_fill_a_dataset_and_loops_are_refused(
    portal: RemotePortal, folder: Path
) -> None:
    portal.subscribe("means", "nights", register_as="live-means", takes_present=True)
    wait_until(lambda: len(granules(folder, "live-means")) == 2)
    portal.subscribe("again", "live-means", register_as="live-again")
    for source, into in (
        ("live-again", "live-means"),  # over others
        ("live-again", "live-again"),  # directly
        ("live-means", "nights"),  # where another subscription begins
    ):
        with pytest.raises(SubscriptionError, match="without end"):
            portal.subscribe("means", source, register_as=into)
