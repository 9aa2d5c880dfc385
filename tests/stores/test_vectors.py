"""Requests for many ranges, to real servers 20 ms away: what they honour, and what a cut moves."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe import _swathe
from swathe.catalog import Catalog, this_host
from swathe.costs.cost_model import Costs
from swathe.costs.probing.probe_vectors import VectorStudy, study_vectors
from tests.support import servers
from tests.support.catalogs import new_catalog

pytestmark = pytest.mark.more

SHAPE = (1489, 2048)
BOX = {"x0": 700, "y0": 600, "width": 100, "height": 100}
ROWS_BYTES = 100 * 100 * 2
COSTS = Costs(0.02, 0.0, ((0, 0.021), (1_000_000, 0.06)), 2.5e7, 1e4, 8)
MOST = {"nginx": 400, "apache": 200, "caddy": 1000, "xrootd": 1000}
"""Most of the ranges that a probe tries which the server honours."""
RATIO = {"nginx": 1.6, "apache": 1.6, "caddy": 1.8, "xrootd": 1.6}
"""Most bytes of a cut, as a multiple of those of its rows."""


@dataclass(frozen=True)
class Server:
    name: str
    url: str
    image: np.ndarray


@pytest.fixture(scope="module", params=list(MOST))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    name, folder = request.param, tmp_path_factory.mktemp("vectors")
    image = np.random.default_rng(1).integers(0, 30_000, SHAPE, np.int16)
    with contextlib.ExitStack() as stack:
        if name == "nginx":
            run = stack.enter_context(servers.nginx(folder))
            files, url = run.folder, run.url
        else:
            files = folder
            run = stack.enter_context(getattr(servers, name)(folder))
            url = run.url if name == "xrootd" else run
        fits.writeto(files / "frame.fits", image)
        files.chmod(0o755)
        fits.CompImageHDU(image, tile_shape=(64, 64)).writeto(files / "frame.fits.fz")
        # Of what was written just now, the ETag of Apache is weak.
        for file in ("frame.fits", "frame.fits.fz"):
            os.utime(files / file, (1e9, 1e9))
        yield Server(name, stack.enter_context(servers.proxy(url, rtt_ms=20)).url, image)


@pytest.fixture(scope="module")
def study(server: Server) -> VectorStudy:
    return study_vectors(_swathe.open_source(f"{server.url}/frame.fits"), quick=False)


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    url = new_catalog(tmp_path / "catalog.sqlite")
    monkeypatch.setenv("SWATHE_DATABASE", url)
    with Catalog.open(url) as opened:
        yield opened


def test_a_probe_learns_what_the_server_honours(server: Server, study: VectorStudy) -> None:
    learned = study.multi_range(COSTS)
    assert learned is not None
    assert learned.ranges == MOST[server.name], study.notes()
    assert 60 <= learned.part_bytes <= 200
    assert learned.range_s < 1e-3
    assert learned.gap_bytes == 0
    assert (study.refusal is None) == (learned.ranges == 1000)


def test_a_cut_with_the_index_warm_moves_little_more_than_its_rows(
    server: Server, study: VectorStudy, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.add_store("far", server.url)
    costs = replace(COSTS, multi_range=study.multi_range(COSTS)).as_dict()
    catalog.put_profile(server.url, this_host(), costs, {"model": 0.1}, datetime.now(UTC))
    first = {name: [value] for name, value in {"file": "far:frame.fits", **BOX, "y0": 5}.items()}
    swathe.cut_many(first, tmp_path / "first", progress=False)
    targets = {name: [value] for name, value in {"file": "far:frame.fits", **BOX}.items()}
    predicted = swathe.predict(targets)
    (how,) = predicted.explained
    assert (how["plans"][0]["load"]["requests"], how["plans"][0]["load"]["ranges"]) == (1, 100)
    meta = swathe.cut_many(targets, tmp_path / "out", progress=False).meta
    bytes_moved = meta["bytes_moved"]
    print(f"{server.name}: {bytes_moved} bytes for {ROWS_BYTES} of rows")  # noqa: T201
    assert ROWS_BYTES < bytes_moved <= RATIO[server.name] * ROWS_BYTES
    # XRootD is also asked for the date.
    assert meta["requests"] == (2 if server.name == "xrootd" else 1)
    (cut,) = (tmp_path / "out").glob("*.fits")
    expected = server.image[600:700, 700:800]
    np.testing.assert_array_equal(fits.getdata(cut), expected)


def test_tiles_are_one_request(
    server: Server, study: VectorStudy, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.add_store("far", server.url)
    costs = replace(COSTS, multi_range=study.multi_range(COSTS)).as_dict()
    catalog.put_profile(server.url, this_host(), costs, {"model": 0.1}, datetime.now(UTC))
    box = {"x0": 700, "y0": 600, "width": 30, "height": 400}
    targets = {name: [value] for name, value in {"file": "far:frame.fits.fz", **box}.items()}
    loads = [plan["load"] for plan in swathe.predict(targets).explained[0]["plans"]]
    assert [load["requests"] for load in loads] == [1, 1]
    assert loads[1]["ranges"] == 7  # rows of tiles
    swathe.cut_many(targets, tmp_path / "out", progress=False)
    (cut,) = (tmp_path / "out").glob("*.fits")
    np.testing.assert_array_equal(fits.getdata(cut), server.image[600:1000, 700:730])


def test_more_ranges_than_are_honoured_are_read_all_the_same(
    server: Server, study: VectorStudy, catalog: Catalog, tmp_path: Path
) -> None:
    learned = study.multi_range(COSTS)
    assert learned is not None
    # As if the server had been another when it was probed.
    wrong = replace(learned, ranges=5000, header_bytes=100_000, range_s=0.0)
    catalog.add_store("far", server.url)
    costs = replace(COSTS, multi_range=wrong).as_dict()
    catalog.put_profile(server.url, this_host(), costs, {"model": 0.1}, datetime.now(UTC))
    cut = swathe.cut("far:frame.fits", box=(3, 0, 10, SHAPE[0]))
    np.testing.assert_array_equal(cut.data, server.image[:, 3:13])
