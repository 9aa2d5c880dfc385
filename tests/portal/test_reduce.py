"""Reductions to a grid by a portal: by client, command, page and REST."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import swathe
from swathe.catalog import Catalog
from swathe.cli.app import app
from tests.jobs.test_reduce import write_swath
from tests.support.portals import RunningPortal, database_in, served

OPTIONS: dict[str, Any] = {
    "grid": "10deg",
    "statistics": "mean,std",
    "where": "qa < 4",
    "array": "lst",
}
FORM: dict[str, Any] = {**OPTIONS, "operation": "reduce", "targets": "file\nfiles:1.h5\nfiles:0.h5"}


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    pytest.importorskip("h5py")
    folder = tmp_path_factory.mktemp("reduce")
    (folder / "files").mkdir()
    for seed in range(2):
        write_swath(folder / "files" / f"{seed}.h5", seed)
    with pytest.MonkeyPatch.context() as patch, Catalog.open(database_in(folder)) as catalog:
        patch.setenv("SWATHE_DATABASE", database_in(folder))
        catalog.add_store("files", str(folder / "files"))
    with served(folder) as running:
        yield running


@pytest.fixture
def table(portal: RunningPortal, tmp_path: Path) -> Path:
    path = tmp_path / "granules.csv"
    path.write_text("file\nfiles:1.h5\nfiles:0.h5\n")
    return path


def check(portal: RunningPortal, job_id: str, folder: Path) -> None:
    """See that the result of a job is that of `swathe.reduce`."""
    with swathe.connect(portal.url) as remote:
        job = remote.job(job_id)
        assert job.wait(progress=False).counts["ok"] == 3, job.rows()
        manifest = job.fetch(folder / "job", progress=False)
    assert [path for path in manifest["path"] if path] == ["reduce.nc"]
    files = [portal.folder / "files" / f"{seed}.h5" for seed in (1, 0)]
    given: dict[str, Any] = OPTIONS
    swathe.reduce(files, **given).write(folder / "expected.nc")
    made = (folder / "job" / "reduce.nc").read_bytes()
    assert made == (folder / "expected.nc").read_bytes()


def test_client(portal: RunningPortal, table: Path, tmp_path: Path) -> None:
    with swathe.connect(portal.url) as remote:
        estimate = remote.estimate(table, operation="reduce", **OPTIONS)
        assert (estimate.rows, estimate.faults) == (3, [])
        given = OPTIONS | {"statistics": ["mean", "std"]}
        job = remote.submit({"file": ["files:1.h5", "files:0.h5"]}, operation="reduce", **given)
    check(portal, job.id, tmp_path)
    page = httpx.get(f"{portal.url}/jobs/{job.id}").text
    assert "reduce, grid 10deg, statistics mean,std, where qa &lt; 4, array lst" in page
    picture = httpx.get(f"{portal.url}/api/jobs/{job.id}/previews/reduce.nc.png")
    assert picture.content.startswith(b"\x89PNG"), picture.text
    options = httpx.get(f"{portal.url}/api/jobs/{job.id}").json()["options"]
    assert {name: options[name] for name in OPTIONS} == OPTIONS


def test_command(portal: RunningPortal, table: Path, tmp_path: Path) -> None:
    words = ["job", "submit", "--url", portal.url, "--targets", str(table)]
    words += ["--operation", "reduce"]
    for name, value in OPTIONS.items():
        words += [f"--{name}", value]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    check(portal, answer.output.strip(), tmp_path)


def test_page(portal: RunningPortal, tmp_path: Path) -> None:
    blank = httpx.get(f"{portal.url}/new", params={"where": '"><script>'}).text
    assert 'name="grid"' in blank and 'value="0.25deg"' in blank
    assert "<script>" not in blank and "&#34;&gt;&lt;script&gt;" in blank
    estimate = httpx.post(f"{portal.url}/new", data={**FORM, "do": "estimate"})
    assert estimate.status_code == 200 and "3<small>images to cut" in estimate.text
    wrong = httpx.post(f"{portal.url}/new", data={**FORM, "grid": "<b>", "do": "submit"})
    assert 400 <= wrong.status_code < 500
    assert "expected 0.25deg" in wrong.text and "<b>" not in wrong.text
    answer = httpx.post(f"{portal.url}/new", data={**FORM, "do": "submit"})
    assert answer.status_code == 303, answer.text
    check(portal, answer.headers["Location"].rpartition("/")[2], tmp_path)
