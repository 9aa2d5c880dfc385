"""Positions on the sky for arrays in lists and jobs: the boxes are those of `swathe.cut`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.nddata import Cutout2D
from astropy.wcs import WCS

import swathe
from swathe.files.file import sky_of
from swathe.files.targets.target_list import read_targets
from swathe.jobs import Jobs
from swathe.jobs.types import Options
from tests.support.job_runner import contents_of, ended, running

h5py = pytest.importorskip("h5py")
VALUES = np.arange(300 * 400, dtype="f4").reshape(300, 400)
CARDS: dict[str, Any] = {
    "CTYPE1": "RA---TAN",
    "CTYPE2": "DEC--TAN",
    "CRPIX1": 200.0,
    "CRPIX2": 150.0,
    "CRVAL1": 150.1,
    "CRVAL2": 2.2,
    "CDELT1": -1e-3,
    "CDELT2": 1e-3,
}
PLACES = [(150.1, 2.2), (150.05, 2.25), (150.2, 2.1), (10.0, -80.0)]


def table_of(folder: Path) -> dict[str, Any]:
    """Three targets of an array, one that it does not show, and one of an image of FITS."""
    with h5py.File(folder / "a.h5", "w") as file:
        file["map"] = VALUES
        file["map"].attrs.update(CARDS)
        file["plain"] = VALUES
    fits.PrimaryHDU(VALUES, fits.Header(CARDS)).writeto(folder / "i.fits")
    ra, dec = zip(*PLACES, PLACES[1], PLACES[1], strict=True)
    return {
        "id": list("abcdef"),
        "file": [str(folder / "a.h5")] * 4 + [str(folder / "i.fits"), str(folder / "a.h5")],
        "array": ["map"] * 4 + ["", "plain"],
        "ra": ra,
        "dec": dec,
        "size_deg": [0.01, 0.02, 0.01, 0.01, 0.02, 0.02],
    }


def expected(row: int) -> Any:
    place = WCS(fits.Header(CARDS)).all_world2pix([PLACES[row]], 0)[0]
    side = (10, 20, 10)[row]
    return Cutout2D(VALUES, tuple(place), side).data


def test_cuts_of_a_list_are_those_of_astropy(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    many = swathe.cut_many(table, tmp_path / "out", format="npy", progress=False)
    assert list(many["status"]) == ["ok", "ok", "ok", "no-overlap", "ok", "error"]
    assert "expected a WCS for sky" in many["reason"][5]
    for row in range(3):
        result = np.load(tmp_path / "out" / many["path"][row])
        np.testing.assert_array_equal(result, expected(row))
        single: Any = swathe.cut(
            table["file"][row], array="map", sky=PLACES[row], size=f"{table['size_deg'][row]}deg"
        )
        np.testing.assert_array_equal(single.data, result)
    image = np.load(tmp_path / "out" / many["path"][4])
    np.testing.assert_array_equal(image, expected(1))
    prediction = swathe.predict(table, format="npy")
    assert prediction.bytes > 0


def test_sizes_in_pixels_and_a_table_file(tmp_path: Path) -> None:
    table_of(tmp_path)
    (tmp_path / "list.csv").write_text("file,array,ra,dec,size\na.h5,map,150.1,2.2,9x12pix\n")
    many = swathe.cut_many(tmp_path / "list.csv", tmp_path / "out", format="npy", progress=False)
    assert np.load(tmp_path / "out" / many["path"][0]).shape == (9, 12)


def test_a_job_is_that_of_cut_many(jobs: Jobs, tmp_path: Path) -> None:
    table = table_of(tmp_path)
    estimate = jobs.estimate(table, Options())
    assert estimate.rows == 6 and estimate.bytes_out > 0
    with running(jobs):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    rows = jobs.rows(job.id)
    assert [row.status for row in rows] == ["ok", "ok", "ok", "no-overlap", "ok", "error"]
    for number in range(3):
        (tmp_path / "part.nc").write_bytes(contents_of(jobs.result(job.id, rows[number].name)))
        with h5py.File(tmp_path / "part.nc") as part:
            np.testing.assert_array_equal(part["map"], expected(number))


def test_boxes_that_workers_make(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of most images the boxes are made where they are cut."""
    monkeypatch.setattr("swathe.jobs.listed_files.MOST_IMAGES", 0)
    with running(jobs):
        job = ended(jobs, jobs.submit(table_of(tmp_path), Options(), "me"))
    rows = jobs.rows(job.id)
    assert [row.status for row in rows] == ["ok", "ok", "ok", "no-overlap", "ok", "error"]
    (tmp_path / "part.nc").write_bytes(contents_of(jobs.result(job.id, rows[1].name)))
    with h5py.File(tmp_path / "part.nc") as part:
        np.testing.assert_array_equal(part["map"], expected(1))


def test_lists_of_images_take_no_arrays(tmp_path: Path) -> None:
    rows = read_targets(table_of(tmp_path), sky_of)
    assert rows.sound.tolist() == [False] * 4 + [True, False]
    assert "array /map: expected an image of FITS, found an array" in rows.faults()[0][1]
