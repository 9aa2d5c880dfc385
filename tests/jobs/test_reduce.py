"""Jobs that reduce granules to a grid: the result is that of `swathe.reduce`, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import JobError, LimitError, RegionError, TargetsError
from swathe.jobs import Jobs, Limits, Options
from swathe.operations.reduction.swath import open_granule
from swathe.portal.pictures import preview
from tests.support.job_runner import contents_of, ended, running

h5py = pytest.importorskip("h5py")
OPTIONS: dict[str, Any] = {
    "grid": "5deg",
    "statistics": "mean,std,max,mode",
    "where": "qa & 3 == 0",
}


def write_swath(path: Path, seed: int, latitude: float = 0.0) -> str:
    """A swath of 60 x 40 pixels with integers, fill and a plane of quality."""
    rng = np.random.default_rng(seed)
    shape = (60, 40)
    with h5py.File(path, "w") as file:
        lst = file.create_dataset("lst", data=rng.integers(0, 99, shape, "i2"), chunks=(20, 20))
        lst.attrs["_FillValue"] = np.int16(7)
        lst.attrs["units"] = "K"
        lst.attrs["coordinates"] = "lat lon"
        file["other"] = np.ones(shape, "f4")
        file["qa"] = rng.integers(0, 8, shape, "u1")
        for name, units, values in (
            ("lat", "degrees_north", rng.uniform(-60, 60, shape) + latitude),
            ("lon", "degrees_east", rng.uniform(-180, 180, shape)),
        ):
            file[name] = values.astype("f4")
            file[name].attrs["units"] = units
    return str(path)


@pytest.fixture
def granules(tmp_path: Path) -> list[str]:
    """Swaths whose order in a list is not that of their names."""
    return [write_swath(tmp_path / f"g{name}.h5", name) for name in (2, 0, 1)]


def options_of(**others: Any) -> Options:
    return Options.from_mapping({"operation": "reduce", "array": "lst", **OPTIONS, **others})


def test_result_is_that_of_reduce(jobs: Jobs, granules: list[str], tmp_path: Path) -> None:
    table = {"file": granules}
    estimate = jobs.estimate(table, options_of())
    assert (estimate.rows, estimate.faults) == (4, [])
    assert estimate.prediction is not None and estimate.prediction.median_s > 0
    assert estimate.prediction.bytes > 0 and estimate.bytes_out == 36 * 72 * 8 * 6
    with running(jobs):
        job = ended(jobs, jobs.submit(table, options_of(), "me"))
    assert (job.phase, job.counts["ok"]) == ("COMPLETED", 4)
    assert job.options.as_dict()["grid"] == "5deg"
    rows = jobs.rows(job.id)
    assert [row.name for row in rows] == [""] * 3 + ["reduce.nc"]
    assert [row.box for row in rows] == [None] * 4
    result = jobs.result(job.id, "reduce.nc")
    assert result.media_type == "application/x-netcdf"
    expected = swathe.reduce(granules, array="lst", **OPTIONS)
    expected.write(tmp_path / "expected.nc")
    assert contents_of(result) == (tmp_path / "expected.nc").read_bytes()
    assert np.nansum(expected["count"]) > 0
    assert job.actual is not None
    assert job.actual["bytes"] == expected.bytes_moved >= 3 * 60 * 40 * (2 + 4 + 4)
    assert preview(result, "linear", None, None, 32).startswith(b"\x89PNG")
    assert {path.name for path in (tmp_path / "results" / job.id).iterdir()} == {"0000"}


def test_each_granule_is_opened_once_to_predict(
    jobs: Jobs, granules: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def count(path: str) -> Any:
        opened.append(path)
        return open_granule(path)

    monkeypatch.setattr("swathe.jobs.granules.open_granule", count)
    estimate = jobs.estimate({"file": granules}, options_of())
    assert estimate.prediction is not None
    assert sorted(opened) == sorted(granules)


def test_pixels_that_wait_count_in_the_quota(
    tmp_path: Path, catalog: Catalog, granules: list[str]
) -> None:
    """A granule has 60 x 40 values of 2 bytes and places of 4 bytes each."""
    size = 3 * 60 * 40 * (2 + 4 + 4)
    for most, is_allowed in ((size - 1, False), (size, True)):
        with Jobs(catalog, tmp_path / f"r{most}", limits=Limits(result_bytes=most)) as jobs:
            if is_allowed:
                assert jobs.submit({"file": granules}, options_of(), "me").phase == "QUEUED"
                continue
            with pytest.raises(LimitError, match="would take at least"):
                jobs.submit({"file": granules}, options_of(), "me")


def test_pixels_that_wait_are_charged_until_the_result_is_made(
    jobs: Jobs, catalog: Catalog, granules: list[str], tmp_path: Path
) -> None:
    late = tmp_path / "late.h5"
    with running(jobs):
        job = ended(jobs, jobs.submit({"file": [*granules[:2], str(late)]}, options_of(), "me"))
    waiting = [each.stat().st_size for each in (tmp_path / "results" / job.id).rglob("*.npy")]
    assert len(waiting) == 2
    assert catalog.usage_of("me").bytes == job.bytes + sum(waiting)
    write_swath(late, 5)
    with running(jobs):
        job = ended(jobs, jobs.resume(job.id))
    assert catalog.usage_of("me").bytes == job.bytes > 0


def test_more_pixels_than_allowed_end_the_job(
    tmp_path: Path, catalog: Catalog, granules: list[str]
) -> None:
    """Those of the first granules say too little: flags of validity wait, too."""
    size = len(granules) * 60 * 40 * (2 + 4 + 4)
    with Jobs(catalog, tmp_path / "r", limits=Limits(result_bytes=size)) as jobs:
        with running(jobs):
            job = ended(jobs, jobs.submit({"file": granules}, options_of(), "me"))
        assert job.phase == "ERROR" and "are allowed" in str(job.error)
        jobs.delete(job.id)  # nobody removes its results: they stay counted
        usage = catalog.usage_of("me")
    assert usage.bytes == 0 and usage.deleted_bytes > size


def test_groups_and_arrays_of_rows(jobs: Jobs, granules: list[str], tmp_path: Path) -> None:
    table = {
        "file": granules,
        "group": ["a/b", "", "a/b"],
        "array": ["other", "", "lst"],
    }
    with running(jobs):
        job = ended(jobs, jobs.submit(table, options_of(statistics=["mean"]), "me"))
    names = [row.name for row in jobs.rows(job.id)][3:]
    assert names == ["a_b.nc", "reduce.nc"]
    others: dict[str, Any] = {"grid": "5deg", "statistics": ["mean"], "where": OPTIONS["where"]}
    swathe.reduce(granules[1], array="lst", **others).write(tmp_path / "one.nc")
    assert contents_of(jobs.result(job.id, "reduce.nc")) == (tmp_path / "one.nc").read_bytes()


def test_granules_that_fail_are_errors_of_their_rows(
    jobs: Jobs, granules: list[str], tmp_path: Path
) -> None:
    (tmp_path / "damaged.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    beyond = write_swath(tmp_path / "beyond.h5", 9, latitude=80)
    bad = [str(tmp_path / "none.h5"), str(tmp_path / "damaged.h5"), beyond]
    table = {"file": [granules[0], *bad, granules[1]], "id": ["a", "no", "bad", "far", "b"]}
    faults = dict(jobs.estimate(table, options_of()).faults)
    assert set(faults) == {"no", "bad"}
    with running(jobs):
        job = ended(jobs, jobs.submit(table, options_of(), "me"))
    rows = {row.id: row for row in jobs.rows(job.id)}
    assert [rows[name].status for name in ("a", "no", "bad", "far", "b")] == [
        *("ok", "missing", "error", "error", "ok")
    ]
    assert "none.h5" in rows["no"].reason and "damaged.h5" in rows["bad"].reason
    assert "expected a latitude" in rows["far"].reason
    good = swathe.reduce([granules[0], granules[1]], array="lst", **OPTIONS)
    good.write(tmp_path / "good.nc")
    assert contents_of(jobs.result(job.id, "reduce.nc")) == (tmp_path / "good.nc").read_bytes()
    write_swath(tmp_path / "none.h5", 5)
    with running(jobs):
        job = ended(jobs, jobs.resume(job.id))
    assert job.counts["ok"] == 4
    files = [granules[0], str(tmp_path / "none.h5"), granules[1]]
    swathe.reduce(files, array="lst", **OPTIONS).write(tmp_path / "more.nc")
    assert contents_of(jobs.result(job.id, "reduce.nc")) == (tmp_path / "more.nc").read_bytes()


def test_cells_of_healpix_have_no_picture(jobs: Jobs, granules: list[str]) -> None:
    with running(jobs):
        given = options_of(grid="healpix8", statistics="count")
        job = ended(jobs, jobs.submit({"file": granules[:1]}, given, "me"))
    assert job.counts["ok"] == 2
    with pytest.raises(RegionError, match="expected a plane of numbers"):
        preview(jobs.result(job.id, "reduce.nc"), "linear", None, None, 32)


def test_all_granules_fail(jobs: Jobs, granules: list[str]) -> None:
    with running(jobs):
        job = ended(jobs, jobs.submit({"file": granules[:2]}, options_of(array="no"), "me"))
    rows = jobs.rows(job.id)
    assert [row.status for row in rows] == ["error"] * 3
    assert "expected the path of an array, found 'no'" in rows[2].reason


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"grid": "0deg"}, "option grid: expected"),
        ({"grid": 3}, "option grid: expected a text, found 3"),
        ({"statistics": "mean,median"}, "option statistics: expected"),
        ({"where": "__import__('os')"}, "option where: expected"),
        ({"where": "qa == 1" * 200}, "option where: expected at most 500 characters"),
        ({"planes": [0, 1]}, "option planes: expected none"),
        ({"bands": "r"}, "option bands: expected none"),
        ({"dataset": "d"}, "option dataset: expected none"),
    ],
)
def test_options_that_do_not_fit(jobs: Jobs, given: dict[str, Any], text: str) -> None:
    with pytest.raises(JobError, match=text):
        jobs.estimate({"file": ["a.nc"]}, options_of(**given))


def test_lists_that_do_not_fit(jobs: Jobs, catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(TargetsError, match="read whole, in a column 'file', found x0"):
        jobs.estimate({"file": ["a.nc"], "x0": [1]}, options_of())
    with pytest.raises(TargetsError, match="in a column 'file', found no such column"):
        jobs.estimate({"array": ["a"]}, options_of(array=""))
    limits = Limits(cutout_bytes=1000)
    with (
        Jobs(catalog, tmp_path / "small", limits=limits) as small,
        pytest.raises(LimitError, match="expected a result of up to 1,000 bytes"),
    ):
        small.estimate({"file": ["a.nc"]}, options_of())


def test_granule_keeps_the_limit_of_a_cutout(
    catalog: Catalog, granules: list[str], tmp_path: Path
) -> None:
    limits = Limits(cutout_bytes=9000)
    with Jobs(catalog, tmp_path / "r", limits=limits) as jobs, running(jobs):
        given = options_of(grid="20deg", statistics="mean", where="")
        job = ended(jobs, jobs.submit({"file": granules[:1]}, given, "me"))
        row = jobs.rows(job.id)[0]
    told = "expected values and places of up to 9,000 bytes (limits.cutout_mb), found 31,200"
    assert (row.status, told in row.reason) == ("error", True)
