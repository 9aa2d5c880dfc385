"""Each format of arrays in each part of Swathe, on real files: no cell of the table is empty."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from astropy.table import Table
from typer.testing import CliRunner

import swathe
from swathe.catalog import Catalog
from swathe.cli.app import app
from swathe.files.array import Array
from swathe.files.array_file import ArrayFile
from swathe.files.array_outputs import DEFAULTS, suffix_of
from tests.conftest import DATA
from tests.support.portals import RunningPortal, database_in, served

FILES = {
    "hdf5": "formats/hdf5_mini_shuffle_zstd.h5",
    "netcdf4": "formats/air.nc",
    "netcdf3": "swath/ascat_20150702_084200_metopa_45145_eps_o_250_2300_ovw.l2.nc",
    "hdf4": "swath/ref_chunked.hdf4",
    "hdf-eos2": "swath/swath_3_3d_dimmap.hdf",
    "tiff": "formats/lcmap_tiny_cog_2019.tif",
}
"""One file of each format. A new format is one line here."""
MADE = {
    **{"asdf": "image.asdf", "zarr 3": "grid.zarr", "zipped zarr": "grid.zarr.zip"},
    **{"zarr 2": "grid2.zarr", "hdf-eos5": "grid.he5", "dicom": "ct.dcm"},
}
"""Files that the test writes: an image, Zarr as folders and as a zip file, a grid, a CT image."""
NAMED = {
    **{"netcdf4": "hdf5", "hdf-eos2": "hdf4", "hdf-eos5": "hdf5"},
    **dict.fromkeys(("zarr 2", "zarr 3", "zipped zarr"), "zarr"),
}
"""What `swathe.open` calls those formats that share a container."""
ARRAYS = {"hdf-eos2": "/Swath1/Data Fields/temperature_h"}
"""Arrays that are cut; of others the first one that is no coordinate. Tie points belong to axes
that are not those of their array, and are no granules."""
OF_GRID: dict[str, Any] = {"place": (5, 45), "time": ("2005-05-01", "2005-05-03")}
"""Criteria that find the grids of Zarr."""
FOUND_BY: dict[str, dict[str, Any]] = {
    "netcdf4": {"place": (260, 60), "time": ("2014-10-01", "2015-01-01")},
    "netcdf3": {"bounds": (182, -30, 184, -28), "time": ("2015-07-02", "2015-07-03")},
    "hdf4": {"place": (-178, 5)},
    "asdf": {"time": ("2027-06-01T11:00:00", "2027-06-01T12:30:00")},
    "dicom": {"time": ("1997-04-30", "1997-05-01")},
    "hdf-eos2": {"place": (12, 12)},
    "hdf-eos5": {"place": (12, 54)},
    **dict.fromkeys(("zarr 2", "zarr 3", "zipped zarr"), OF_GRID),
}
"""Criteria that find the file in a dataset; the others have neither place nor time."""
ELSEWHERE: dict[str, Any] = {"bounds": (60, -60, 61, -59), "time": ("1981-01-01", "1981-02-01")}
MOST_WIDTH, MOST_HEIGHT = 20, 15
pytestmark = pytest.mark.skipif(
    not all((DATA / file).exists() for file in FILES.values()), reason=f"no data in {DATA}"
)


class FormatCase:
    """A region of a real file, and what a list of targets says of it."""

    def __init__(self, name: str, folder: Path) -> None:
        """Choose the file."""
        self.name = name
        self.path = folder / (MADE.get(name) or Path(FILES[name]).name)

    @property
    def file(self) -> ArrayFile:
        """The open file."""
        file = swathe.open(self.path)
        assert isinstance(file, ArrayFile)
        return file

    @property
    def array(self) -> Array:
        """The array that is cut."""
        if self.name in ARRAYS:
            return self.file[ARRAYS[self.name]]
        arrays = [self.file[each.path] for each in self.file.tree.planes()]
        return next(each for each in arrays if each.is_native and each.dtype.kind in "iuf")

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The box on its plane."""
        y, x = self.array.plane or (0, 1)
        height, width = self.array.shape[y], self.array.shape[x]
        return 1, 1, min(MOST_WIDTH, width - 1), min(MOST_HEIGHT, height - 1)

    def targets(self, file: str) -> dict[str, list[Any]]:
        """The list of this region."""
        names = ("x0", "y0", "width", "height")
        box = {name: [value] for name, value in zip(names, self.box, strict=True)}
        return {"file": [file], "array": [self.array.path], **box}

    def check(self, result: Path) -> None:
        """See that a result has the elements of the array."""
        x0, y0, width, height = self.box
        part = self.array[..., y0 : y0 + height, x0 : x0 + width]
        made = swathe.open(result)
        assert isinstance(made, ArrayFile)
        name = self.array.name
        found = made[name] if name in made else made.array()
        assert np.array_equal(found.data.reshape(part.shape), part)


def write_asdf(path: Path) -> None:
    """Write an image with times of exposure, as Roman has them."""
    asdf = pytest.importorskip("asdf")
    exposure = {"start_time": "2027-06-01T12:00:00", "end_time": "2027-06-01T12:10:00"}
    meta = {"telescope": "ROMAN", "exposure": exposure, "instrument": {"name": "WFI"}}
    image = np.arange(30 * 40, dtype="f4").reshape(30, 40)
    asdf.AsdfFile({"roman": {"meta": meta, "data": image}}).write_to(path)


def write_dicom(path: Path) -> None:
    """Write a CT image that comes with pydicom."""
    pytest.importorskip("pydicom")
    from pydicom.data import get_testdata_file

    shutil.copy(str(get_testdata_file("CT_small.dcm", download=False)), path)


def write_hdf_eos5(path: Path) -> None:
    """Write a grid from longitude 0 to 24 and latitude 48 to 60; angles are packed DMS."""
    corners = {"upper_left": "(0.0,60000000.0)", "lower_right": "(24000000.0,48000000.0)"}
    pytest.importorskip("tests.support.hdf_eos5").write_grid(path, **corners)


def write_zarr(folder: Path) -> None:
    """Write a grid of two days as folders of both versions and as a zip file."""
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    values = np.arange(2 * 30 * 40, dtype="f4").reshape(2, 30, 40)
    units = {"units": "days since 2005-05-01"}
    data = xarray.Dataset(
        {"lst": (("time", "lat", "lon"), values, {"units": "K"})},
        {
            "time": ("time", np.array([0.0, 1.0]), units),
            "lat": ("lat", np.linspace(40, 50, 30), {"units": "degrees_north"}),
            "lon": ("lon", np.linspace(0, 20, 40), {"units": "degrees_east"}),
        },
    )
    encoding = {"lst": {"chunks": (1, 10, 20)}}
    for version in (2, 3):
        path = folder / MADE[f"zarr {version}"]
        data.to_zarr(path, zarr_format=version, consolidated=False, encoding=encoding)
    with zipfile.ZipFile(folder / MADE["zipped zarr"], "w") as archive:
        for file in path.rglob("*"):
            archive.write(file, file.relative_to(path))


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    folder = tmp_path_factory.mktemp("formats")
    (folder / "files").mkdir()
    write_zarr(folder / "files")
    write_asdf(folder / "files" / MADE["asdf"])
    write_dicom(folder / "files" / MADE["dicom"])
    write_hdf_eos5(folder / "files" / MADE["hdf-eos5"])
    for file in FILES.values():
        shutil.copy(DATA / file, folder / "files")
    with pytest.MonkeyPatch.context() as patch, Catalog.open(database_in(folder)) as catalog:
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        catalog.add_store("files", str(folder / "files"))
    with served(folder) as running:
        yield running


def open_it(case: FormatCase, folder: Path, url: str) -> None:
    assert case.file.format == NAMED.get(case.name, case.name)
    assert len(case.file) > 0


def cut_it(case: FormatCase, folder: Path, url: str) -> None:
    path = folder / f"one{DEFAULTS[case.file.format]}"
    swathe.cut(case.path, array=case.array.path, box=case.box).write(path)
    case.check(path)


def cut_many_of_it(case: FormatCase, folder: Path, url: str) -> None:
    manifest = swathe.cut_many(case.targets(str(case.path)), folder / "many", progress=False)
    assert list(manifest["status"]) == ["ok"], manifest["reason"][0]
    case.check(folder / "many" / manifest["path"][0])


def predict_it(case: FormatCase, folder: Path, url: str) -> None:
    prediction = swathe.predict(case.targets(str(case.path)))
    assert prediction.median_s > 0 and prediction.bytes > 0


def job_of_it(case: FormatCase, folder: Path, url: str) -> None:
    given = case.targets(f"files:{case.path.name}")
    with swathe.connect(url) as remote:
        estimate = remote.estimate(given)
        assert (estimate.rows, estimate.faults) == (1, [])
        job = remote.submit(given)
        status = job.wait(progress=False)
        [row] = job.rows()
        assert status.counts["ok"] == 1, row.reason
        assert row.hdu == case.array.path
        job.fetch(folder / "job", progress=False)
    [result] = (folder / "job").glob(f"0{suffix_of(case.file.format)}")
    case.check(result)
    picture = httpx.get(f"{url}/api/jobs/{status.id}/previews/{row.name}.png", timeout=60)
    assert picture.content.startswith(b"\x89PNG"), picture.text
    page = httpx.get(f"{url}/jobs/{status.id}")
    assert page.status_code == 200 and row.name in page.text


def job_by_command(case: FormatCase, folder: Path, url: str) -> None:
    table = folder / "targets.csv"
    Table(case.targets(f"files:{case.path.name}")).write(table, format="ascii.csv")
    words = ["job", "submit", "--url", url, "--targets", str(table), "--format", "npy"]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    with swathe.connect(url) as remote:
        job = remote.job(answer.output.strip())
        assert job.wait(progress=False).counts["ok"] == 1
        job.fetch(folder / "job", progress=False)
    x0, y0, width, height = case.box
    part = case.array[..., y0 : y0 + height, x0 : x0 + width]
    assert np.array_equal(np.load(folder / "job" / "0.npy"), part)


def job_by_page(case: FormatCase, folder: Path, url: str) -> None:
    table = folder / "targets.csv"
    Table(case.targets(f"files:{case.path.name}")).write(table, format="ascii.csv")
    form: dict[str, Any] = {"file": ("targets.csv", table.read_bytes()), "do": (None, "submit")}
    answer = httpx.post(f"{url}/new", files=form)
    assert answer.status_code == 303, answer.text
    with swathe.connect(url) as remote:
        job = remote.job(answer.headers["Location"].rstrip("/").rpartition("/")[2])
        assert job.wait(progress=False).counts["ok"] == 1
        [row] = job.rows()
    assert row.name == f"0{suffix_of(case.file.format)}"


@contextmanager
def catalogued(case: FormatCase, folder: Path) -> Iterator[None]:
    """A catalogue with a dataset of the file alone, added by command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWATHE_DATABASE", f"sqlite:///{folder}/own.sqlite")
        with Catalog.open() as catalog:
            catalog.add_store("own", str(case.path.parent))
        words = ["dataset", "add", "grids", "own:", "--pattern", case.path.name]
        answer = CliRunner().invoke(app, words)
        assert answer.exit_code == 0, answer.output
        yield


def add_it(case: FormatCase, folder: Path, url: str) -> None:
    with catalogued(case, folder):
        condition = swathe.datasets.show("grids")
        assert condition.dataset.states == {"own": {"ok": 1}}, condition.faults
        found = swathe.find(dataset="grids")
        assert case.array.path in list(found["array"])
        assert set(found["file"]) == {f"own:{case.path.name}"}
        shapes = dict(zip(found["array"], found["shape"], strict=True))
        assert shapes[case.array.path] == " x ".join(map(str, case.array.shape))


def find_it(case: FormatCase, folder: Path, url: str) -> None:
    with catalogued(case, folder):
        criteria = FOUND_BY.get(case.name, {})
        for name, value in criteria.items():
            found = swathe.find(dataset="grids", **{name: value})
            assert f"own:{case.path.name}" in list(found["file"]), name
        for name, value in ELSEWHERE.items():
            assert len(swathe.find(dataset="grids", **{name: value})) == 0, name
        assert len(swathe.find(dataset="grids")) > 0


def trace_it(case: FormatCase, folder: Path, url: str) -> None:
    run = folder / "run.ulm"
    with swathe.trace.recording(run):
        cut_many_of_it(case, folder, url)
    assert "JOB" in run.read_text()


ACTIONS: dict[str, Callable[[FormatCase, Path, str], None]] = {
    "open": open_it,
    "cut": cut_it,
    "cut_many": cut_many_of_it,
    "predict": predict_it,
    "portal job": job_of_it,
    "portal job by command": job_by_command,
    "portal job by page": job_by_page,
    "trace": trace_it,
    "dataset add": add_it,
    "find": find_it,
}
"""What is done with each format. Another action is one line here."""


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", [*FILES, *MADE])
def test_each_format_works_in_each_part(
    name: str, action: str, portal: RunningPortal, tmp_path: Path
) -> None:
    ACTIONS[action](FormatCase(name, portal.folder / "files"), tmp_path, portal.url)


def test_page_of_a_dataset_has_a_map_of_the_earth(portal: RunningPortal) -> None:
    """Names of files are text, also in the drawing."""
    folder = portal.folder / "files" / "maps"
    folder.mkdir()
    shutil.copy(DATA / FILES["netcdf4"], folder / '<script>"&.nc')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWATHE_DATABASE", database_in(portal.folder))
        answer = CliRunner().invoke(app, ["dataset", "add", "maps", "files:maps/"])
        assert answer.exit_code == 0, answer.output
    page = httpx.get(f"{portal.url}/datasets/maps")
    assert page.status_code == 200
    assert "Places on the Earth" in page.text and 'class="outline"' in page.text
    assert "<title>maps/&lt;script&gt;&#34;&amp;.nc /air</title>" in page.text
    assert '<script>"' not in page.text
    assert 'href="/datasets/maps/arrays"' in page.text


def test_page_searches_arrays_on_the_earth(portal: RunningPortal) -> None:
    folder = portal.folder / "files" / "earth"
    folder.mkdir()
    shutil.copy(DATA / FILES["netcdf4"], folder / "<b>&.nc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWATHE_DATABASE", database_in(portal.folder))
        answer = CliRunner().invoke(app, ["dataset", "add", "earth", "files:earth/"])
        assert answer.exit_code == 0, answer.output
    url, name = f"{portal.url}/datasets/earth/arrays", "files:earth/&lt;b&gt;&amp;.nc"
    blank = httpx.get(url)
    assert blank.status_code == 200 and "No array matches" not in blank.text
    box = {"west": "255", "south": "50", "east": "265", "north": "60"}
    times = {"time_from": "2014-10-01", "time_to": "2015-01-01"}
    for given in (box, times, {"lon": "260", "lat": "60"}, box | times):
        page = httpx.get(url, params=given)
        assert page.status_code == 200 and name in page.text, given
        assert "<b>&" not in page.text
    elsewhere = httpx.get(url, params=box | {"west": "60", "east": "61"})
    assert elsewhere.status_code == 200 and "No array matches" in elsewhere.text
    for wrong, text in (
        ({"west": "1"}, "expected west, south, east, north, found some of them"),
        ({"lon": "<i>", "lat": "1"}, "expected degrees, found &lt;i&gt;"),
        (times | {"time_to": "later"}, "later"),
        (box | {"north": "nan"}, "nan"),
        (box | {"lon": "1", "lat": "1"}, "place"),
    ):
        page = httpx.get(url, params=wrong)
        assert 400 <= page.status_code < 500 and text in page.text, wrong
        assert "<i>" not in page.text
    assert httpx.get(f"{portal.url}/datasets/none/arrays").status_code == 404
