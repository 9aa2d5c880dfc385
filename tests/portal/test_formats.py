"""Each format of arrays in each part of Swathe, on real files: no cell of the table is empty."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
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
from swathe.files.array_outputs import DEFAULTS
from tests.conftest import DATA
from tests.support.portals import RunningPortal, database_in, served

FILES = {
    "hdf5": "formats/hdf5_mini_shuffle_zstd.h5",
    "netcdf4": "formats/air.nc",
    "netcdf3": "swath/ascat_20150702_084200_metopa_45145_eps_o_250_2300_ovw.l2.nc",
    "hdf4": "swath/ref_chunked.hdf4",
    "tiff": "formats/lcmap_tiny_cog_2019.tif",
    "asdf": "formats/miriwcs.asdf",
}
"""One file of each format. A new format is one line here."""
NAMED = {"hdf5": "hdf5", "netcdf4": "hdf5"}
"""What `swathe.open` calls those formats that share a container."""
MOST_WIDTH, MOST_HEIGHT = 20, 15
pytestmark = pytest.mark.skipif(
    not all((DATA / file).exists() for file in FILES.values()), reason=f"no data in {DATA}"
)


class FormatCase:
    """A region of a real file, and what a list of targets says of it."""

    def __init__(self, name: str) -> None:
        """Choose the file."""
        self.name = name
        self.path = DATA / FILES[name]

    @property
    def file(self) -> ArrayFile:
        """The open file."""
        file = swathe.open(self.path)
        assert isinstance(file, ArrayFile)
        return file

    @property
    def array(self) -> Array:
        """The array that is cut."""
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


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    folder = tmp_path_factory.mktemp("formats")
    (folder / "files").mkdir()
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
    [result] = (folder / "job").glob(f"0{DEFAULTS[case.file.format]}")
    case.check(result)
    picture = httpx.get(f"{url}/api/jobs/{status.id}/previews/{row.name}.png")
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
    assert row.name == f"0{DEFAULTS[case.file.format]}"


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
}
"""What is done with each format. Another action, such as of datasets, is one line here."""


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", FILES)
def test_each_format_works_in_each_part(
    name: str, action: str, portal: RunningPortal, tmp_path: Path
) -> None:
    ACTIONS[action](FormatCase(name), tmp_path, portal.url)
