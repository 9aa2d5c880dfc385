"""Jobs of arrays: their results have the format of their files, and are those of `cut_many`."""

from __future__ import annotations

from hashlib import sha256
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
from swathe.operations.array_results import ArrayResults
from swathe.portal.api.models import JobModel
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
    assert "expected the path of an array, found '/none'" in estimate.faults[0][1]
    with running(jobs):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    assert (job.options.format, job.counts["ok"], job.counts["error"]) == ("source", 4, 1)
    assert JobModel.model_validate(job).model_dump()["options"]["format"] == "source"
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


def write_globe(path: Path) -> str:
    """A grid of the whole Earth, in steps of 10 degrees."""
    with h5py.File(path, "w") as file:
        for name, values, units in (
            ("lat", np.arange(-85.0, 90, 10), "degrees_north"),
            ("lon", np.arange(-175.0, 180, 10), "degrees_east"),
        ):
            file[name] = values
            file[name].attrs["units"] = units
            file[name].make_scale(name)
        file["lst"] = np.arange(18 * 36, dtype="f4").reshape(18, 36)
        for axis, name in enumerate(("lat", "lon")):
            file["lst"].dims[axis].attach_scale(file[name])
    return str(path)


def test_boxes_of_longitude_and_latitude(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row with bounds is that of `swathe.cut`, also over the edge of the grid."""
    file, image = write_globe(tmp_path / "a.h5"), write_image(tmp_path / "i.fits")
    boxes = [(-20, 30, 20, 60), (170, -10, -170, 10), (0, 40, 0.5, 40.5), (0, 0, 1, 1)]
    columns = zip(("west", "south", "east", "north"), zip(*boxes, strict=True), strict=True)
    table: dict[str, Any] = {"file": [file, file, file, image], "array": ["lst"] * 3 + [""]}
    table |= {name: list(values) for name, values in columns}
    faults = dict(jobs.estimate(table, Options()).faults)
    assert "1" not in faults and "found FITS" in faults["3"]
    with monkeypatch.context() as patch:
        patch.setattr("swathe.jobs.array_files.MOST_ARRAY_FILES", 1)
        of_one_file = {name: cells[:3] for name, cells in table.items()}
        again = dict(jobs.estimate(of_one_file, Options()).faults)
    assert "expected pixels in the bounds" in again["2"] and again["2"] == faults["2"]
    with running(jobs):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    rows = jobs.rows(job.id)
    assert [row.status for row in rows] == ["ok", "ok", "no-overlap", "error"]
    copy = tmp_path / "0.nc"
    copy.write_bytes(contents_of(jobs.result(job.id, rows[0].name)))
    made = swathe.open(copy)
    assert isinstance(made, ArrayFile)
    expected: Any = swathe.cut(file, array="lst", bounds=boxes[0])
    for name in ("lst", "lat", "lon"):
        with h5py.File(file) as source:
            whole = source[name][()]
        north, east = slice(12, 15), slice(16, 20)
        part = whole[north, east] if name == "lst" else whole[north if name == "lat" else east]
        assert np.array_equal(made[name].data, part), name
    assert np.array_equal(made["lst"].data, expected.data)
    copy.write_bytes(contents_of(jobs.result(job.id, rows[1].name)))
    both_sides = swathe.open(copy)
    assert isinstance(both_sides, ArrayFile)
    assert both_sides["lon"].data.tolist() == [175.0, 185.0]
    with h5py.File(file) as source:
        assert np.array_equal(both_sides["lst"].data, source["lst"][8:10][:, [35, 0]])


@pytest.mark.parametrize("name", ["npy", "png", "h5", "asdf"])
def test_other_formats_of_arrays(jobs: Jobs, table: dict[str, Any], name: str) -> None:
    first = {column: [cells[0]] for column, cells in table.items()}
    with running(jobs):
        job = ended(jobs, jobs.submit(first, Options(format=name), "me"))
    [row] = jobs.rows(job.id)
    assert (row.status, row.name) == ("ok", f"0.{name}")
    assert contents_of(jobs.result(job.id, row.name))


def test_the_engine_writes_npy_of_arrays(
    jobs: Jobs, table: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> bytes:
        raise AssertionError("a result was made in Python")

    monkeypatch.setattr(ArrayResults, "content", refuse)
    first = {column: [cells[0]] for column, cells in table.items()}
    with running(jobs):
        job = ended(jobs, jobs.submit(first, Options(format="npy"), "me"))
    [row] = jobs.rows(job.id)
    content = contents_of(jobs.result(job.id, row.name))
    assert (len(content), sha256(content).hexdigest()) == (row.bytes, row.sha256)
    many = swathe.cut_many(first, tmp_path / "many", format="npy", progress=False)
    assert content == (tmp_path / "many" / many["path"][0]).read_bytes()


def test_fits_that_is_chosen_is_fits_of_arrays(
    jobs: Jobs, table: dict[str, Any], tmp_path: Path
) -> None:
    """`fits` means the same in a job and in `cut_many`; images stay as they are."""
    some = {column: [cells[0], cells[2]] for column, cells in table.items()}
    options = Options.from_mapping({"format": "fits"})
    with running(jobs):
        job = ended(jobs, jobs.submit(some, options, "me"))
    assert job.counts["ok"] == 2, job
    assert (job.options.format, job.options.asked_format) == ("source", "fits")
    assert JobModel.model_validate(job).model_dump()["options"]["format"] == "fits"
    assert b'"format": "fits"' in b"".join(jobs.manifest(job.id))
    many = swathe.cut_many(some, tmp_path / "many", format="fits", progress=False)
    assert list(many["path"]) == ["0.fits", "1.fits"]
    for row, path in zip(jobs.rows(job.id), many["path"], strict=True):
        assert (row.status, row.name) == ("ok", path)
        copy = tmp_path / path
        copy.write_bytes(contents_of(jobs.result(job.id, row.name)))
        assert jobs.result(job.id, row.name).media_type == "application/fits"
        with fits.open(copy) as one, fits.open(tmp_path / "many" / path) as other:
            assert np.array_equal(one[0].data, other[0].data)
            assert list(one[0].header) == list(other[0].header)
    assert np.array_equal(fits.getdata(tmp_path / "0.fits"), VALUES[2:3, 6:13, 5:15])


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
