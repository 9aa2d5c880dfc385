"""MOCs of datasets: compared with those that mocpy makes of the outlines."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord
from hypothesis import given
from hypothesis import strategies as st
from mocpy import MOC

import swathe
from swathe.catalog import Catalog
from swathe.catalog.records.datasets import ORDER, Footprint, Granule, Replica
from swathe.core.errors import DatasetError, NoSuchDatasetError
from swathe.datasets.sky_coverage import join_ranges, moc_content, moc_of
from swathe.portal.mocs import Mocs
from tests.support.fits_frames import Runner
from tests.support.portals import add_survey


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the catalogue of a sample survey."""
    folder = tmp_path_factory.mktemp("survey")
    add_survey(folder, frames=2, targets=3)
    return folder


@pytest.fixture
def catalog(survey: Path) -> Iterator[Catalog]:
    with Catalog.open(f"sqlite:///{survey}/portal.sqlite") as catalog:
        yield catalog


def moc_of_outlines(catalog: Catalog, order: int) -> MOC:
    """Return the MOC of the outlines of all images, by mocpy alone."""
    moc = MOC.new_empty(order)
    granules = catalog.granules("survey", 0, 1000)
    assert len(granules) >= 2
    for granule in granules:
        assert granule.footprint is not None and granule.footprint.outline is not None
        corners = np.array(granule.footprint.outline).reshape(-1, 2)
        places = SkyCoord(corners[:, 0] * u.deg, corners[:, 1] * u.deg)
        moc = moc.union(MOC.from_polygon_skycoord(places, max_depth=order))
    return moc


@pytest.mark.parametrize("order", [0, 5, 9, 10, 11])
def test_a_moc_is_that_of_the_outlines(catalog: Catalog, order: int) -> None:
    moc = moc_of(catalog, "survey", order)
    expected = moc_of_outlines(catalog, order)
    assert moc.max_order == order
    assert expected.difference(moc).empty()
    # Footprints are cells that images may touch: none is apart from those of the outlines.
    assert moc.difference(expected.add_neighbours()).empty()


def test_pixels_of_images_are_in_it(catalog: Catalog, survey: Path) -> None:
    moc = moc_of(catalog, "survey")
    table = swathe.find(dataset="survey", catalog=catalog)
    assert moc.contains_lonlat(
        np.array(table["s_ra"]) * u.deg, np.array(table["s_dec"]) * u.deg
    ).all()
    assert not moc.contains_lonlat([200.0] * u.deg, [60.0] * u.deg).any()


def test_files_of_a_moc_are_read_by_others(catalog: Catalog, tmp_path: Path) -> None:
    moc = moc_of(catalog, "survey", 9)
    (tmp_path / "moc.fits").write_bytes(moc_content(moc, "fits"))
    assert MOC.from_fits(tmp_path / "moc.fits") == moc
    assert MOC.from_json(json.loads(moc_content(moc, "json"))) == moc
    assert MOC.from_string(moc_content(moc, "ascii").decode()) == moc


def test_what_has_no_moc(catalog: Catalog) -> None:
    with pytest.raises(NoSuchDatasetError):
        moc_of(catalog, "none")
    for order in (-1, 12):
        with pytest.raises(DatasetError, match="order: expected 0 to 11, found"):
            moc_of(catalog, "survey", order)


def cells(numbers: list[tuple[int, int]]) -> np.ndarray:
    return np.array(numbers, np.int64).reshape(-1, 2)


RANGES = st.lists(
    st.lists(st.tuples(st.integers(0, 700), st.integers(0, 40)), max_size=20), max_size=6
)


@given(parts=RANGES)
def test_joined_ranges_are_the_same_cells(parts: list[list[tuple[int, int]]]) -> None:
    shift = 2 * (ORDER - 3)
    fine = [cells([(first, first + length) for first, length in part]) << shift for part in parts]
    joined = join_ranges(fine, 3)
    expected = {
        cell
        for part in parts
        for first, length in part
        for cell in range(first, first + length + 1)
    }
    assert {cell for first, last in joined.tolist() for cell in range(first, last + 1)} == expected
    # Sorted, and apart by a cell or more.
    assert (joined[1:, 0] > joined[:-1, 1] + 1).all()


def test_a_change_of_the_dataset_makes_another(url: str, tmp_path: Path) -> None:
    with Catalog.open(url) as catalog:
        catalog.add_store("data", str(tmp_path))

        def put(path: str, first: int) -> None:
            footprint = Footprint(10.0, 10.0, 0.1, 1.0, [(first, first)])
            granule = Granule(path, 0, None, (10, 10), 1, "1", footprint=footprint)
            catalog.put_objects(
                "d1", "data", [(Replica(path, path, 1, None, None, "ok"), [granule])]
            )

        catalog.add_dataset("d1", "data", "", None)
        mocs = Mocs(catalog)
        with pytest.raises(DatasetError, match="expected images on the sky, found none"):
            mocs.content(mocs.key("d1", 10, "fits"))
        put("a", 0)
        first = mocs.key("d1", 10, "fits")
        content = mocs.content(first)
        assert mocs.key("d1", 10, "fits") == first
        assert mocs.content(first) is content
        put("b", 1 << 50)
        second = mocs.key("d1", 10, "fits")
        assert second.tag != first.tag
        assert MOC.from_fits(io.BytesIO(mocs.content(second))) != MOC.from_fits(io.BytesIO(content))
        catalog.remove_dataset("d1")
        with pytest.raises(NoSuchDatasetError):
            mocs.key("d1", 10, "fits")
        catalog.add_dataset("d1", "data", "", None)
        put("a", 0)
        # The count of changes is that of the first one again.
        assert mocs.key("d1", 10, "fits").tag != first.tag


MANY = """
import resource, sys
from swathe.catalog import Catalog
from swathe.datasets.sky_coverage import moc_of
with Catalog.open(sys.argv[1]) as catalog:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    moc = moc_of(catalog, "many")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(after - before, moc.sky_fraction)
"""


@pytest.mark.more
def test_memory_is_that_of_the_sky_not_of_the_images(tmp_path: Path) -> None:
    """Of 300,000 images with eight ranges each, in the same tenth of the sky."""
    url = f"sqlite:///{tmp_path}/c.sqlite"
    with Catalog.open(url) as catalog:
        catalog.add_store("data", str(tmp_path))
        catalog.add_dataset("many", "data", "", None)
    count, cell = 300_000, 4 ** (ORDER - 10)
    generator = np.random.default_rng(1)
    places = generator.integers(0, 1_200_000, count)
    with sqlite3.connect(tmp_path / "c.sqlite") as database:
        database.executemany(
            "INSERT INTO replicas (dataset_id, object_path, store_id, path, state, seen_at)"
            " VALUES (1, ?, 1, ?, 'ok', '2026-01-01 00:00:00')",
            ((f"{number}.fits",) * 2 for number in range(count)),
        )
        database.executemany(
            "INSERT INTO granules (id, dataset_id, path, hdu, shape, s_ra, s_dec, size, version,"
            " seen_at) VALUES (?, 1, ?, 0, '[]', 1, 1, 1, '', '2026-01-01 00:00:00')",
            ((number + 1, f"{number}.fits") for number in range(count)),
        )
        database.executemany(
            "INSERT INTO footprints (level, first, last, granule_id) VALUES (20, ?, ?, ?)",
            (
                (int(place + step) * cell, int(place + step + 1) * cell - 1, number + 1)
                for number, place in enumerate(places)
                for step in range(8)
            ),
        )
    ended = subprocess.run(
        [sys.executable, "-c", MANY, url], capture_output=True, text=True, check=True, timeout=300
    )
    kilobytes, part = map(float, ended.stdout.split())
    expected = np.unique(places[:, None] + np.arange(8)).size / (12 * 4**10)
    assert part == pytest.approx(expected)
    assert kilobytes < 200_000


def test_the_command(run: Runner, survey: Path, tmp_path: Path) -> None:
    run.monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{survey}/portal.sqlite")
    file = tmp_path / "moc.fits"
    told = run.ran("dataset", "moc", "survey", "-o", file, "--order", "9", "--json").json
    moc = MOC.from_fits(file)
    assert told == {"file": str(file), "order": 9, "sky_fraction": moc.sky_fraction}
    assert run.ran("dataset", "moc", "survey", "-o", file).code == 6
    ran = run.ran("dataset", "moc", "survey", "-o", tmp_path / "moc.json", "--order", "9")
    assert ran.code == 0 and "of the sky, cells of order 9" in ran.out
    assert MOC.from_json(json.loads((tmp_path / "moc.json").read_text())) == moc
    assert run.ran("dataset", "moc", "survey", "-o", tmp_path / "moc.xml").code == 2
    assert run.ran("dataset", "moc", "survey", "-o", tmp_path / "b.fits", "--order", "12").code == 2
    assert swathe.datasets.moc("survey", order=9) == moc
