"""Jobs of arrays: their results have the format of their files, and are those of `cut_many`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import AccessError
from swathe.files.array_file import ArrayFile
from swathe.jobs import Jobs
from swathe.jobs.types import Limits, Options
from swathe.portal.pictures import preview
from tests.support.job_runner import contents_of, ended, running

h5py = pytest.importorskip("h5py")
VALUES = np.arange(4 * 60 * 80, dtype="f4").reshape(4, 60, 80)


def write_array(path: Path) -> str:
    with h5py.File(path, "w") as file:
        array = file.create_dataset("/s/lst", data=VALUES, chunks=(1, 20, 20), compression="gzip")
        array.attrs["units"] = "K"
        for axis, name in enumerate(("time", "y", "x")):
            scale = file.create_dataset(name, data=np.arange(VALUES.shape[axis]))
            scale.make_scale(name)
            array.dims[axis].attach_scale(scale)
        file["small"] = np.arange(12, dtype="i2").reshape(3, 4)
    return str(path)


def write_image(path: Path) -> str:
    fits.PrimaryHDU(VALUES[0]).writeto(path)
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    file, image = write_array(tmp_path / "a.h5"), write_image(tmp_path / "i.fits")
    return {
        "file": [file, file, image, file, file],
        "array": ["s/lst", "s/lst", "", "none", "small"],
        "time": ["2", "1:3", "", "", ""],
        "x0": [5, 0, 7, 0, 1],
        "y0": [6, 0, 8, 0, 0],
        "width": [10, 20, 9, 3, 2],
        "height": [7, 30, 6, 3, 3],
    }


def test_results_are_those_of_cut_many(jobs: Jobs, table: dict[str, Any], tmp_path: Path) -> None:
    estimate = jobs.estimate(table, Options())
    assert estimate.rows == 5 and estimate.bytes_out > 0
    assert estimate.prediction is not None and estimate.prediction.median_s > 0
    assert "expected an array /none" in estimate.faults[0][1]
    with running(jobs):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    assert (job.options.format, job.counts["ok"], job.counts["error"]) == ("source", 4, 1)
    rows = jobs.rows(job.id)
    assert [row.name for row in rows] == ["0.nc", "1.nc", "2.fits", "", "4.nc"]
    assert [row.hdu for row in rows][:2] == ["/s/lst"] * 2
    many = swathe.cut_many(table, tmp_path / "many", progress=False)
    assert list(many["status"]) == [row.status for row in rows]
    for row, path in zip(rows, many["path"], strict=True):
        if row.status != "ok":
            continue
        result = jobs.result(job.id, row.name)
        copy = tmp_path / row.name
        copy.write_bytes(contents_of(result))
        one, other = swathe.open(copy), swathe.open(tmp_path / "many" / path)
        if path.endswith(".fits"):
            assert copy.read_bytes() == (tmp_path / "many" / path).read_bytes()
            assert result.media_type == "application/fits"
            continue
        assert result.media_type == "application/x-netcdf"
        assert isinstance(one, ArrayFile) and isinstance(other, ArrayFile)
        assert set(one) == set(other)
        assert all(np.array_equal(one[name].data, other[name].data) for name in one)
        picture = preview(result, "linear", None, None, 32)
        assert picture.startswith(b"\x89PNG")
    first = swathe.open(tmp_path / "0.nc")
    assert isinstance(first, ArrayFile)
    cut = first["lst"]
    assert np.array_equal(cut.data, VALUES[2:3, 6:13, 5:15])
    assert cut.attrs["units"] == "K"


@pytest.mark.parametrize("name", ["npy", "png", "h5"])
def test_other_formats_of_arrays(jobs: Jobs, table: dict[str, Any], name: str) -> None:
    first = {column: [cells[0]] for column, cells in table.items()}
    with running(jobs):
        job = ended(jobs, jobs.submit(first, Options(format=name), "me"))
    [row] = jobs.rows(job.id)
    assert (row.status, row.name) == ("ok", f"0.{name}")
    assert contents_of(jobs.result(job.id, row.name))


def test_file_that_may_not_be_read_is_not_opened(
    catalog: Catalog, tmp_path: Path, table: dict[str, Any]
) -> None:
    def refuse(file: str) -> None:
        if file.endswith(".h5"):
            raise AccessError(f"{file}: expected a file of the portal, found another")

    # Damaged: a reader would say so.
    Path(table["file"][0]).write_bytes(b"\x89HDF\r\n\x1a\n")
    with Jobs(catalog, tmp_path / "r", limits=Limits(), check_source=refuse) as jobs:
        estimate = jobs.estimate(table, Options())
    reasons = dict(estimate.faults)
    assert set(reasons) == {"0", "1", "3", "4"}
    assert all("expected a file of the portal" in each for each in reasons.values())


def test_arrays_are_not_combined(jobs: Jobs, table: dict[str, Any]) -> None:
    sky = {"file": [table["file"][0]], "array": ["s/lst"]}
    sky |= {"ra": [1.0], "dec": [2.0], "size_deg": [0.1]}
    estimate = jobs.estimate(sky, Options(operation="stack"))
    assert "expected images of FITS to combine, found arrays" in estimate.faults[0][1]


@pytest.mark.parametrize(("most", "status"), [(12, "ok"), (11, "error")])
def test_array_in_the_index_keeps_the_limit_of_a_cutout(
    catalog: Catalog, tmp_path: Path, most: int, status: str
) -> None:
    asdf = pytest.importorskip("asdf")
    path = tmp_path / "a.asdf"
    tree = {"small": np.arange(12, dtype="i2").reshape(3, 4)}
    asdf.AsdfFile(tree).write_to(path, all_array_storage="inline")
    box = {"x0": [1], "y0": [0], "width": [2], "height": [3]}
    given = {"file": [str(path)], "array": ["small"], **box}
    limits = Limits(cutout_bytes=most)
    with Jobs(catalog, tmp_path / "r", limits=limits) as jobs, running(jobs):
        job = ended(jobs, jobs.submit(given, Options(), "me"))
        [row] = jobs.rows(job.id)
    assert row.status == status
    if status == "error":
        assert "expected a region of up to 11 bytes, found 12" in row.reason
