"""Profiles follow real reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import swathe
from swathe import _swathe
from swathe.catalog import Catalog, this_host
from swathe.costs.cost_model import Costs
from swathe.costs.fit.from_real_reads import ENOUGH, MOST_OTHERS, MOST_READS, NOTE, feed_back
from tests.conftest import fits_bytes
from tests.support import servers
from tests.support.catalogs import new_catalog
from tests.support.fits_frames import noise

ROOT = "https://archive.example/dr1"
COSTS = Costs(0.02, 0.0, ((0, 0.02), (1_000_000, 0.12)), 1e8, 1000.0, 8)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(new_catalog(tmp_path / "catalog.sqlite")) as catalog:
        catalog.put_profile(ROOT, this_host(), COSTS.as_dict(), {"model": 0.1}, datetime.now(UTC))
        yield catalog


def costs_of(catalog: Catalog) -> Costs:
    profile = catalog.profile(ROOT, this_host())
    assert profile is not None
    return Costs.from_dict(profile.costs)


def timing(seconds: float, in_flight: int = 1, first_s: float | None = None) -> tuple[Any, ...]:
    return ROOT, 100_000, in_flight, seconds * 2 / 3 if first_s is None else first_s, seconds


def test_reads_are_kept_and_few_change_nothing(catalog: Catalog) -> None:
    assert feed_back(catalog, [timing(1.0)] * (ENOUGH - 1)) == []
    [sample, *_] = catalog.samples(ROOT, this_host())
    assert (sample.source, sample.kind, sample.bytes, sample.requests) == (
        "read",
        "read",
        100_000,
        1,
    )
    assert costs_of(catalog) == COSTS


def test_a_store_that_is_slower_is_followed_step_by_step(catalog: Catalog) -> None:
    """Reads of 100 kB take 0.03 s by the profile, and three times that in truth."""
    steps = []
    for _ in range(4):
        assert feed_back(catalog, [timing(0.09)] * 60) == [ROOT]
        steps.append(float(costs_of(catalog).request_s(100_000)))
    assert steps[0] <= 0.06 + 1e-9
    assert steps[-1] == pytest.approx(0.09, rel=0.1)
    profile = catalog.profile(ROOT, this_host())
    assert profile is not None and profile.notes == (NOTE,)


def test_outliers_move_nothing(catalog: Catalog) -> None:
    feed_back(catalog, [timing(5.0 if at % 10 == 3 else 0.03) for at in range(60)])
    assert float(costs_of(catalog).request_s(100_000)) == pytest.approx(0.03, rel=0.02)


def test_reads_that_share_the_store_are_no_slow_reads(catalog: Catalog) -> None:
    """Eight at a time: what each took tells of the line, not of a request."""
    eight = [timing(0.02 + 8 * 100_000 / 4e6, min(at + 1, 8), 0.021) for at in range(64)]
    for _ in range(6):
        feed_back(catalog, eight)
    assert costs_of(catalog) == COSTS


def test_of_very_many_reads_some_are_kept(catalog: Catalog) -> None:
    lone = [timing(1.0 + at) for at in range(3 * MOST_READS)]
    feed_back(catalog, lone + [timing(1.0 + at, 9) for at in range(5 * MOST_OTHERS)])
    samples = catalog.samples(ROOT, this_host())
    newest = [sample.elapsed_s for sample in samples if sample.streams == 1][-5:]
    assert newest == [1.0 + at for at in range(3 * MOST_READS - 9, 3 * MOST_READS - 4)]
    beside = [sample.elapsed_s for sample in samples if sample.streams == 9]
    assert len(beside) == MOST_OTHERS
    assert min(beside) < 10 < 5 * MOST_OTHERS - 10 < max(beside)
    assert len(samples) == MOST_READS + MOST_OTHERS


def test_what_cannot_be_is_ignored(catalog: Catalog) -> None:
    odd = [("xroot://host", 1, 1, 0.1, 0.2), (ROOT, 0, 1, 0.1, 0.2), (ROOT, 1, 1, 0.1, 0.0)]
    assert feed_back(catalog, odd * 30) == []
    assert catalog.samples(ROOT, this_host()) == []
    assert feed_back(catalog, [("https://unknown.example", 9, 1, 0.1, 0.2)] * 30) == []


@pytest.mark.more
def test_reads_of_a_server_come_back(tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "nginx").mkdir()
    with servers.nginx(tmp_path / "nginx") as server:
        (server.folder / "a.fits").write_bytes(fits_bytes(noise(1, (600, 700)).astype(">i2")))
        catalog.put_profile(server.url, this_host(), COSTS.as_dict(), {}, datetime.now(UTC))
        _swathe.take_timings()
        for at in range(ENOUGH + 5):
            swathe.cut(f"{server.url}/a.fits", box=(at, 200 + at, 30, 30))
        assert feed_back(catalog, _swathe.take_timings()) == [server.url]
        profile = catalog.profile(server.url, this_host())
    assert profile is not None
    assert Costs.from_dict(profile.costs).request[0][1] < 0.02
