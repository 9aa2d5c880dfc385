"""Dumps of runs and cubes: their differences, and pictures of their volumes, also by jobs."""

from __future__ import annotations

import csv
import io
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import zarr
from astropy.io import fits
from PIL import Image
from typer.testing import CliRunner

import swathe
from swathe.catalog import Catalog
from swathe.cli.app import app
from swathe.core.errors import OptionError, RegionError
from swathe.jobs import Jobs, Limits, Options
from swathe.operations.kinds import mse, volren
from swathe.operations.operation import check_stop
from swathe.operations.ray_casting import TransferFunction, View, png_of, render
from tests.support.job_runner import ended, running

SHAPE = (9, 12, 7)
VIEW = {"azimuth": 30.0, "elevation": 20.0, "side": 24}


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, np.ndarray]:
    """The dumps of a run, which has an array of other kinds, too."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(tmp_path / "disk"), "local")
        catalog.add_store("other", str(tmp_path / "other"), "local")
    draw = np.random.default_rng(1)
    values = {at: draw.integers(0, 256, SHAPE, "u1") for at in (0, 3, 6)}
    with swathe.run("app", iterations=6) as run:
        arrays = [
            run.array("temp", SHAPE, "u1", every=3, location="disk"),
            run.array("line", (5,), "f4", every=3, location="disk"),
            run.array("state", SHAPE, "u1", every=3, location="disk", mode="overwrite"),
        ]
        for at, dump in values.items():
            for array in arrays:
                array.write(at, dump if array.name != "line" else np.zeros(5, "f4"))
    return values


def picture_of(volume: np.ndarray) -> np.ndarray:
    view = View(volume.shape, VIEW["azimuth"], VIEW["elevation"], int(VIEW["side"]), volren.STEP)
    return pixels_of(png_of(render(volume, view, TransferFunction(0.05))))


def pixels_of(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)))


def lines_of(content: bytes) -> list[tuple[str, str, float]]:
    rows = csv.DictReader(io.StringIO(content.decode()))
    return [(row["first"], row["second"], float(row["mse"])) for row in rows]


def test_dumps_are_targets(tmp_path: Path, dumps: dict[int, np.ndarray]) -> None:
    temp = swathe.open_run("app")["temp"]
    done = swathe.cut_many(temp.targets(2), tmp_path / "mse", operation="mse", progress=False)
    assert done["status"].tolist() == ["ok", "ok"]
    for first, second in ((0, 3), (3, 6)):
        content = (tmp_path / f"mse/temp-{first:06}-{second:06}.csv").read_bytes()
        mean = np.mean((dumps[second].astype(float) - dumps[first]) ** 2)
        [line] = lines_of(content)
        assert line[:2] == (str(first), str(second))
        assert line[2] == pytest.approx(mean, rel=1e-12)
    # All dumps in one target are the same lines.
    swathe.cut_many(temp.targets(3), tmp_path / "all", operation="mse", progress=False)
    assert len(lines_of((tmp_path / "all/temp-000000-000003-000006.csv").read_bytes())) == 2
    printed = CliRunner().invoke(app, ["run", "targets", "app", "temp", "--together", "2"])
    as_json = CliRunner().invoke(app, ["run", "targets", "app", "temp", "--json"])
    assert [each["iteration_3"] for each in json.loads(as_json.output)] == ["0:1", "1:2", "2:3"]
    assert printed.output.splitlines()[1].startswith("temp-000000-000003,disk:runs/app-1-")


def test_jobs_compare_and_render(tmp_path: Path, dumps: dict[int, np.ndarray]) -> None:
    temp = swathe.open_run("app")["temp"]
    with (
        Catalog.open() as catalog,
        Jobs(catalog, tmp_path / "results", limits=Limits()) as jobs,
        running(jobs),
    ):
        options = Options.from_mapping({"operation": "mse"})
        job = ended(jobs, jobs.submit(temp.targets(2), options, "me"))
        assert (job.phase, job.counts["ok"]) == ("COMPLETED", 2)
        with jobs.result(job.id, "temp-000003-000006.csv").open() as file:
            assert [each[:2] for each in lines_of(file.read())] == [("3", "6")]
        options = Options.from_mapping({"operation": "volren", "side": "24"})
        assert jobs.estimate(temp.targets(), options).bytes_out == 3 * 3 * 24**2
        job = ended(jobs, jobs.submit(temp.targets(), options, "me"))
        assert (job.phase, job.counts["ok"]) == ("COMPLETED", 3)
        for at, dump in dumps.items():
            with jobs.result(job.id, f"temp-{at:06}.png").open() as file:
                np.testing.assert_array_equal(pixels_of(file.read()), picture_of(dump))
    assert picture_of(dumps[0]).max() > 20


@pytest.mark.usefixtures("dumps")
@pytest.mark.parametrize(("kind", "each"), [(mse, 2), (volren, 1)])
def test_a_conversion_stops_when_its_job_is_cancelled(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: ModuleType,
    each: int,
) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def step(should_stop: Callable[[], bool]) -> None:
        """Take as long as the job runs."""
        begun.set()
        while not should_stop():
            time.sleep(0.01)
        stopped.set()
        check_stop(should_stop)

    monkeypatch.setattr(kind, "check_stop", step)
    with (
        Catalog.open() as catalog,
        Jobs(catalog, tmp_path / "results", limits=Limits()) as jobs,
        running(jobs),
    ):
        options = Options.from_mapping({"operation": kind.OPERATION.name})
        targets = swathe.open_run("app")["temp"].targets(each)
        job = jobs.submit(targets, options, "me")
        assert begun.wait(60)
        jobs.cancel(job.id)
        assert stopped.wait(60)
        job = ended(jobs, job)
        assert (job.phase, job.counts["ok"], job.counts["error"]) == ("ABORTED", 0, 0)


def test_dumps_that_are_no_targets(dumps: dict[int, np.ndarray]) -> None:
    assert len(dumps) == 3
    run = swathe.open_run("app")
    with pytest.raises(OptionError, match=r"app@1, temp: expected 4 dumps or more, found 3"):
        run["temp"].targets(4)
    with pytest.raises(OptionError, match=r"expected dumps of two axes or more, .* shape \(5,\)"):
        run["line"].targets()
    # Two places are written in turn, so the later dump is in the first.
    with pytest.raises(OptionError, match="expected the dumps 3, 6 side by side"):
        run["state"].targets(2)
    assert len(run["state"].targets()) == 2


def test_cubes_of_fits(tmp_path: Path) -> None:
    cube = np.random.default_rng(2).normal(size=SHAPE).astype(">f4")
    cube[0, 0, 0] = np.nan
    fits.writeto(tmp_path / "cube.fits", cube)
    fits.writeto(tmp_path / "image.fits", cube[0])
    files = [str(tmp_path / "cube.fits"), str(tmp_path / "image.fits")]
    table = {"id": ["cube", "image"], "file": files, "x0": [0, 0], "y0": [0, 0]}
    table |= {"width": [7, 7], "height": [12, 12]}
    done = swathe.cut_many(table, tmp_path / "mse", operation="mse", progress=False)
    assert done["status"].tolist() == ["ok", "error"]
    assert "expected a cube" in done["reason"][1]
    lines = lines_of((tmp_path / "mse/cube.csv").read_bytes())
    assert np.isnan(lines[0][2])
    assert [each[2] for each in lines[1:]] == pytest.approx(
        np.mean(np.diff(cube[1:].astype(float), axis=0) ** 2, axis=(1, 2))
    )
    swathe.cut_many(table, tmp_path / "o", operation="volren", side=24, progress=False)
    least, most = np.nanmin(cube), np.nanmax(cube)
    levels = np.rint(np.nan_to_num((cube - least) * (255 / (float(most) - float(least))))).astype(
        "u1"
    )
    np.testing.assert_array_equal(
        pixels_of((tmp_path / "o/cube.png").read_bytes()), picture_of(levels)
    )


@pytest.mark.parametrize("operation", ["mse", "volren"])
def test_elements_that_are_no_real_numbers_are_errors_of_their_row(
    tmp_path: Path, operation: str
) -> None:
    draw = np.random.default_rng(3)
    zarr.create_array(tmp_path / "a.zarr", data=draw.normal(size=SHAPE) + 1j)
    zarr.create_array(
        tmp_path / "b.zarr", data=draw.uniform(-1.7e308, 0, SHAPE) + draw.uniform(0, 1.7e308, SHAPE)
    )
    files = [str(tmp_path / name) for name in ("a.zarr", "b.zarr")]
    table = {"file": files, "array": ["/", "/"], "x0": [0, 0], "y0": [0, 0]}
    table |= {"width": [7, 7], "height": [12, 12]}
    done = swathe.cut_many(table, tmp_path / "o", operation=operation, progress=False)
    assert done["status"].tolist() == ["error", "ok"]
    assert "expected numbers, found elements of complex128" in done["reason"][0]


def test_tables_are_bounded_and_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(3.0).reshape(3, 1)
    assert mse._table(values, ["a,b", "c", 'd"'], "x", bool).decode().splitlines() == [
        "first,second,mse",
        '"a,b",c,1.0',
        'c,"d""",1.0',
    ]
    monkeypatch.setattr(mse, "MOST_LINES", 2)
    with pytest.raises(RegionError, match="x: expected up to 2 elements, found 3"):
        mse._table(values, range(3), "x", bool)


def test_a_long_thin_volume_counts_by_its_steps() -> None:
    """Few rays with very many samples would take hours."""
    options = {"azimuth": 0.0, "elevation": 0.0, "side": 1, "opacity": 0.05}
    with pytest.raises(RegionError, match="expected a picture of up to 200,000,000 samples"):
        volren._picture(np.zeros((2, 2, 200_000), "u1"), options, "x", bool)


def test_a_picture_that_takes_too_long_is_refused(
    tmp_path: Path, dumps: dict[int, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(dumps) == 3
    monkeypatch.setattr(volren, "MOST_SAMPLES", 1000)
    done = swathe.cut_many(
        swathe.open_run("app")["temp"].targets(), tmp_path / "o", operation="volren", progress=False
    )
    assert done["status"].tolist() == ["error"] * 3
    assert "expected a picture of up to 1,000 samples" in done["reason"][0]
