"""`swathe.connect` and `swathe job`: jobs on a portal, over good and bad links."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import sys
import tarfile
import time
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table
from typer.testing import CliRunner

import swathe
from swathe.catalog import Catalog
from swathe.cli.app import app, main
from swathe.client.answers import as_json, estimate_of, job_of
from swathe.client.connection import BLOCK, MOST_ERROR_BYTES, MOST_JSON_BYTES, content_blocks
from swathe.client.job import RemoteJob
from swathe.client.portal import RemotePortal
from swathe.core import errors
from swathe.core.format import size_text
from swathe.files.manifest import COLUMNS
from swathe.files.manifest_file import LongManifest
from swathe.files.planes import Planes
from swathe.jobs.types import Estimate, Job, Options, Row
from tests.support.algorithms import LIBRARY_FILES, LST, tar_of
from tests.support.catalogs import new_catalog
from tests.support.portals import RunningPortal, add_survey, served
from tests.support.scripted_servers import Handler, serving

TARGETS = 12
ID = "A" * 22


def job_on(portal: RemotePortal, job_id: str = ID) -> RemoteJob:
    """Return a job by its id, without a request to the portal."""
    return RemoteJob(portal._connection, job_id)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("client")
    add_survey(made, targets=TARGETS)
    return made


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningPortal]:
    with served(folder) as portal:
        yield portal


@pytest.fixture(scope="module")
def portal(running: RunningPortal) -> Iterator[RemotePortal]:
    with swathe.connect(running.url) as made:
        yield made


@pytest.fixture(scope="module")
def done(portal: RemotePortal, folder: Path) -> RemoteJob:
    job = portal.submit(folder / "targets.csv", name="all")
    assert job.wait().counts["ok"] == TARGETS
    return job


# ---- With a portal


def test_targets_in_memory_are_as_good_as_a_file(portal: RemotePortal, folder: Path) -> None:
    table = Table.read(folder / "targets.csv", format="ascii.csv")
    columns = {name: table[name].tolist() for name in table.colnames}
    forms = (folder / "targets.csv", str(folder / "targets.csv"), table, table.to_pandas(), columns)
    assert [portal.estimate(form).rows for form in forms] == [TARGETS] * 5
    masked = Table(table, masked=True)
    masked["x"].mask[0] = True
    assert len(portal.estimate(masked).faults) == 1


def test_answers_are_the_values_of_local_jobs(portal: RemotePortal, done: RemoteJob) -> None:
    status = done.status()
    assert isinstance(status, Job) and isinstance(status.options, Options)
    assert status.options == Options()
    assert status.created_at.tzinfo is not None and status.created_at < status.expires_at
    assert [job.id for job in portal.jobs()].count(done.id) == 1
    row = next(done.rows("ok"))
    assert isinstance(row, Row) and isinstance(row.box, tuple)
    place = {"ra": [10.0], "dec": [-1.05], "size_deg": [0.004]}
    estimate = portal.estimate(place, format="png")
    assert isinstance(estimate, Estimate) and isinstance(estimate.prediction, swathe.Prediction)
    assert 0 < estimate.prediction.interval_s[0] < estimate.prediction.median_s
    assert estimate.matches == [("0", 4)]
    assert portal.estimate({**place, "dec": [80.0]}).prediction is None
    assert job_of(as_json(status), "") == status


def test_only_what_users_call_shows_on_a_portal(portal: RemotePortal, done: RemoteJob) -> None:
    assert {name for name in dir(portal) if not name.startswith("_")} == {
        *("about", "close", "estimate", "job", "jobs", "pool", "submit", "url"),
        *("add_algorithm", "algorithm", "algorithms", "remove_algorithm"),
        *("add_library", "library", "libraries", "remove_library"),
        *("order", "estimate_order", "subscribe", "subscription", "subscriptions", "feed"),
        *("pause_subscription", "resume_subscription", "remove_subscription", "remove_dataset"),
    }
    assert {name for name in dir(done) if not name.startswith("_")} == {
        *(
            "cancel",
            "delete",
            "fetch",
            "id",
            "log",
            "manifest",
            "manifest_tables",
            "resume",
            "rows",
        ),
        *("start", "status", "wait"),
    }


def test_other_json_is_refused(portal: RemotePortal, done: RemoteJob) -> None:
    content = as_json(done.status())
    wrong: dict[str, Any] = {"created_at": "noon", "options": {"colour": 1}, "parameters": [1]}
    wrong |= {"id": 1, "phase": [], "rows": "1", "counts": {"ok": "1"}, "bytes": -1}
    wrong |= {"expires_at": None, "notes": [1]}
    for name, value in wrong.items():
        with pytest.raises(errors.SourceError, match="portal's job, found other JSON"):
            job_of({**content, name: value}, "http://archive")
    del content["counts"]
    with pytest.raises(errors.SourceError, match="expected 'counts' in a portal's job"):
        job_of(content, "http://archive")


@pytest.mark.parametrize(
    "wrong",
    [
        {"bytes_out": "1"},
        {"targets": None},
        {"unmatched": -1},
        {"prediction": {"median_s": "1", "interval_s": [1, 2], "bytes": 1, "requests": 1}},
        {"prediction": {"median_s": 1, "interval_s": ["1", 2], "bytes": 1, "requests": 1}},
        {"prediction": {"median_s": 1, "interval_s": [1, 2], "bytes": None, "requests": 1}},
    ],
)
def test_other_json_is_no_estimate(wrong: dict[str, Any]) -> None:
    content = as_json(Estimate(1, 1, 0, None, [], [], 2880))
    assert estimate_of(content, "").bytes_out == 2880
    with pytest.raises(errors.SourceError, match="portal's estimate, found other JSON"):
        estimate_of({**content, **wrong}, "http://archive")


def test_planes_and_bands_are_given_as_to_cut_many(portal: RemotePortal, folder: Path) -> None:
    ways: tuple[Planes, ...] = (2, slice(2, 3), (2, 3), [2])
    for planes in ways:
        job = portal.submit(folder / "targets.csv", start=False, planes=planes)
        assert job.status().options.planes == (2, 3)
        job.delete()
    place = {"ra": [10.0], "dec": [-1.05], "size_deg": [0.004]}
    job = portal.submit(place, start=False, bands="r, g")
    assert job.status().options.bands == ("r", "g")
    job.delete()
    with pytest.raises(errors.RegionError, match="planes"):
        portal.submit(folder / "targets.csv", planes=-1)


def test_listed_files_become_pictures_by_every_door(portal: RemotePortal, tmp_path: Path) -> None:
    kinds = ("fit", "fit.gz", "fit.bz2")
    rows: dict[str, list[Any]] = {
        "id": list(kinds),
        "file": [f"survey:frame-000001.{kind}" for kind in kinds],
        "ra": [10.0] * 3,
        "dec": [-1.05] * 3,
        "size_deg": [0.004] * 3,
        "band": ["r", "g", "i"],
    }
    table = tmp_path / "t.csv"
    Table(rows).write(table, format="ascii.csv")
    for bands, order in ((None, "r,g,i"), ("i,r,g", "i,r,g")):
        words = ["job", "submit", "--url", portal.url, "--targets", str(table), "--format", "rgb"]
        form: dict[str, Any] = {"file": ("t.csv", table.read_bytes()), "format": (None, "rgb")}
        form["do"] = (None, "submit")
        if bands is not None:
            words += ["--bands", bands]
            form["bands"] = (None, bands)
        answer = httpx.post(f"{portal.url}/new", files=form)
        assert answer.status_code == 303, answer.text
        submitted = CliRunner().invoke(app, words)
        assert submitted.exit_code == 0, submitted.output
        jobs = [
            portal.submit(rows, format="rgb", bands=bands or ()),
            portal.job(submitted.output.strip()),
            portal.job(answer.headers["location"].rpartition("/")[2]),
        ]
        used = [kinds[rows["band"].index(band)] for band in order.split(",")]
        for job in jobs:
            assert job.wait().counts["ok"] == 4
            assert [row.id for row in job.rows()] == [*used, "rgb"]


def test_a_job_takes_the_lists_that_a_cut_takes(
    running: RunningPortal, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(table: Path, *words: str) -> int:
        argv = ["job", "submit", "--url", running.url, "--targets", str(table), "--estimate"]
        done = CliRunner().invoke(app, [*argv, "--json", *words])
        assert done.exit_code == 0, done.output
        return int(json.loads(done.output)["rows"])

    packed = tmp_path / "targets.csv.gz"
    packed.write_bytes(gzip.compress((folder / "targets.csv").read_bytes()))
    assert rows(packed) == TARGETS
    table = tmp_path / "sky.csv"
    table.write_text("lon,lat\n10.0,-1.05\n")
    choices = ("--ra", "lon", "--dec", "lat", "--size", "15arcsec", "--frame", "icrs")
    assert rows(table, *choices) == 4
    assert rows(table, *choices, "--file", "survey:frame-000001.fit") == 1
    day = ("--time", "1990-01-01", "1990-01-02")
    assert rows(table, *choices, *day) == 1  # the target, without an image
    packed.write_bytes(gzip.compress(b"lon,lat\n"))
    with swathe.connect(running.url) as portal, pytest.raises(errors.TargetsError):
        portal.estimate(packed)


def test_a_job_shows_itself_in_a_notebook(portal: RemotePortal, done: RemoteJob) -> None:
    shown = done._repr_html_()
    assert all(text in shown for text in (done.id, portal.url, "COMPLETED", f"{TARGETS} ok"))
    lost = job_on(portal, "<b>none</b>")._repr_html_()
    assert "&lt;b&gt;none&lt;/b&gt;" in lost
    assert "<b>" not in lost
    with RemotePortal("http://127.0.0.1:9") as nowhere:
        assert "127.0.0.1:9: " in job_on(nowhere, "x")._repr_html_()


def test_options_are_sent_and_checked(portal: RemotePortal, folder: Path) -> None:
    job = portal.submit(folder / "targets.csv", start=False, mode="partial", fill=3.5)
    told = job.status()
    assert (told.phase, told.options.fill) == ("PENDING", 3.5)
    assert job.start().phase != "PENDING"
    with pytest.raises(errors.JobError, match="mode"):
        portal.submit(folder / "targets.csv", mode="all")  # type: ignore[arg-type]
    with pytest.raises(errors.TargetsError, match="need the columns"):
        portal.submit({"file": ["survey:frame-000001.fit"]})
    with pytest.raises(errors.NotFoundError, match="no such table"):
        portal.submit(folder / "none.csv")
    with pytest.raises(errors.NoSuchJobError):
        portal.job(ID)


def test_rows_and_manifest_say_the_same(done: RemoteJob, tmp_path: Path) -> None:
    rows = list(done.rows())
    manifest = done.manifest(tmp_path / "m.ecsv")
    assert [row.sha256 for row in rows] == manifest["sha256"].tolist()
    assert len(Table.read(tmp_path / "m.ecsv", format="ascii.ecsv")) == TARGETS
    assert list(done.rows("error")) == []
    parts = list(done.manifest_tables(5))
    assert max(map(len, parts)) == 5 and sum(map(len, parts)) == TARGETS
    for name in manifest.colnames:
        column = [each for part in parts for each in part[name].tolist()]
        assert column == manifest[name].tolist()


def test_fetched_files_are_those_of_cut_many(done: RemoteJob, folder: Path, tmp_path: Path) -> None:
    table = Table.read(folder / "targets.csv", format="ascii.csv")
    table["file"] = [
        str(folder / "survey" / name.removeprefix("survey:")) for name in table["file"]
    ]
    swathe.cut_many(table, tmp_path / "direct", progress=False)
    manifest = done.fetch(tmp_path / "fetched")
    assert (tmp_path / "fetched" / "manifest.ecsv").exists()
    assert len(list((tmp_path / "fetched").iterdir())) == TARGETS + 1
    for name in manifest["path"].tolist():
        found = fits.getdata(tmp_path / "fetched" / name)
        np.testing.assert_array_equal(found, fits.getdata(tmp_path / "direct" / name))


def test_results_do_not_replace_what_the_job_read(
    done: RemoteJob, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "c.sqlite"))
    with Catalog.open() as catalog:
        catalog.add_store("survey", str(folder / "survey"))
    first = next(done.rows("ok"))
    source = folder / "survey" / first.source.removeprefix("survey:")
    before = source.read_bytes()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / first.name).symlink_to(source)
    (tmp_path / "all.zip").hardlink_to(source)
    for output in ("out", "all.zip"):
        with pytest.raises(errors.OutputError, match="it is the source"):
            done.fetch(tmp_path / output, overwrite=True)
    assert (tmp_path / "out" / first.name).is_symlink()
    assert source.read_bytes() == before == (tmp_path / "all.zip").read_bytes()


def test_fetching_again_mends_what_is_broken(done: RemoteJob, tmp_path: Path) -> None:
    names = [row.name for row in done.rows()]
    done.fetch(tmp_path)
    whole = {name: (tmp_path / name).read_bytes() for name in names}
    before = (tmp_path / names[3]).stat().st_mtime_ns
    # Broken off; broken off with other bytes; other bytes; too long; gone.
    (tmp_path / names[0]).rename(tmp_path / f".{names[0]}.part")
    (tmp_path / f".{names[0]}.part").write_bytes(whole[names[0]][:5000])
    (tmp_path / names[1]).unlink()
    (tmp_path / f".{names[1]}.part").write_bytes(bytes(5000))
    (tmp_path / names[2]).write_bytes(bytes(len(whole[names[2]])))
    (tmp_path / names[4]).unlink()
    (tmp_path / f".{names[4]}.part").write_bytes(bytes(100_000))
    (tmp_path / names[5]).unlink()
    done.fetch(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in names} == whole
    assert (tmp_path / names[3]).stat().st_mtime_ns == before
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("suffix", ["zip", "tar"])
def test_archives_are_fetched_whole(done: RemoteJob, tmp_path: Path, suffix: str) -> None:
    manifest = done.fetch(tmp_path / f"all.{suffix}")
    if suffix == "zip":
        names = zipfile.ZipFile(tmp_path / "all.zip").namelist()
    else:
        with tarfile.open(tmp_path / "all.tar") as archive:
            names = archive.getnames()
    assert set(manifest["path"].tolist()) < set(names)
    there = sorted(path.name for path in tmp_path.iterdir())
    assert there == ["all.manifest.ecsv", f"all.{suffix}"]


COLUMN_NAMES = ",".join(COLUMNS)


@pytest.mark.parametrize("output", ["fetched", "all.tar"])
def test_a_manifest_too_long_for_a_table_comes_in_tables(
    done: RemoteJob, tmp_path: Path, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.client.manifests.LARGEST_TABLE_BYTES", 100)
    for _ in range(2):  # the second time the files are known by the manifest
        manifest = done.fetch(tmp_path / output, overwrite=output == "all.tar")
    assert isinstance(manifest, LongManifest)
    assert len(manifest) == TARGETS == manifest.meta["ok"]
    assert manifest.meta["job"] == done.id and len(manifest.failed) == 0
    tables = list(manifest.tables(5))
    assert [name for table in tables for name in table["path"]] == [row.name for row in done.rows()]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"text\n", "its columns are not id"),
        (f"# %ECSV 1.0\n{COLUMN_NAMES}\n0,lost,,a.fits,4,,,\n".encode(), "found 'lost'"),
        (f"# %ECSV 1.0\n{COLUMN_NAMES}\n0,ok,,b.fits,4,,,\n".encode(), "names 'b.fits', too"),
        (f"# %ECSV 1.0\n{COLUMN_NAMES}\n0,ok,".encode() + b"\xff\n", "can't decode byte"),
    ],
)
def test_a_long_manifest_is_checked_atk(
    tmp_path: Path, content: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.client.manifests.LARGEST_TABLE_BYTES", 1)
    answers: list[Answer] = [(200, {}, b"good"), (200, {}, content)]
    with (
        answering(GOOD, ENDED, row("a.fits", b"good"), *answers) as (url, _),
        swathe.connect(url) as portal,
        pytest.raises(errors.SourceError, match=re.escape(reason)),
    ):
        job_on(portal).fetch(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.fits"]


def test_a_result_without_a_checksum_is_refused_atk(tmp_path: Path) -> None:
    page = json.loads(row("a.fits", b"good")[2])
    page["rows"][0]["sha256"] = "none"
    with (
        answering(GOOD, ENDED, (200, {}, json.dumps(page).encode())) as (url, _),
        swathe.connect(url) as portal,
        pytest.raises(errors.SourceError, match="row 0: expected a SHA-256 of its result"),
    ):
        job_on(portal).fetch(tmp_path)


def test_user_fetches_two_archives_of_one_name(done: RemoteJob, tmp_path: Path) -> None:
    for name in ("all.zip", "all.fits"):
        done.fetch(tmp_path / name)
    manifests = {"all.manifest.ecsv", "all.fits.manifest.ecsv"}
    assert {path.name for path in tmp_path.iterdir()} == {"all.zip", "all.fits"} | manifests
    done.fetch(tmp_path / "all.zip", overwrite=True)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("output", ["fetched", "all.zip", "all.tar"])
def test_a_stack_is_fetched_without_what_went_into_it(
    portal: RemotePortal, tmp_path: Path, output: str
) -> None:
    place = {"ra": [10.0], "dec": [-1.05], "size_deg": [0.004]}
    job = portal.submit(place, operation="stack")
    assert job.wait().counts["ok"] > 1
    manifest = job.fetch(tmp_path / output)
    assert [path for path in manifest["path"] if path] == ["stack.fits"]
    if output == "fetched":
        assert fits.getdata(tmp_path / output / "stack.fits").shape == (36, 36)


def test_job_is_cancelled_and_resumed(portal: RemotePortal, folder: Path) -> None:
    table = Table.read(folder / "targets.csv", format="ascii.csv")
    many = {name: table[name].tolist() * 100 for name in table.colnames}
    job = portal.submit(many)
    assert job.cancel().phase == "ABORTED"
    assert job.resume().phase != "ABORTED"
    assert job.wait(timeout_s=0).rows == 100 * TARGETS
    assert job.wait().counts["ok"] == 100 * TARGETS
    job.delete()
    with pytest.raises(errors.NoSuchJobError):
        job.status()


# ---- The command


def test_command_submits_shows_and_fetches(
    running: RunningPortal,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*words: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["swathe", "job", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert ended.value.code == code, err
        return out if code == 0 else err

    table = folder / "targets.csv"
    assert "--url" in run("list", code=2)
    monkeypatch.setenv("SWATHE_PORTAL", running.url)
    told = json.loads(run("submit", "--targets", table, "--estimate", "--json"))
    assert told["rows"] == TARGETS
    job = run("submit", "--targets", table, "--name", "mine", "--format", "npy").strip()
    told = json.loads(run("status", job, "--wait", "--json"))
    assert (told["phase"], told["name"], told["counts"]["ok"]) == ("COMPLETED", "mine", TARGETS)
    listed = run("list")
    assert job in listed
    assert re.search(r"  20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", listed)
    fetched = run("fetch", job, "-o", tmp_path / "out")
    size = size_text(sum(path.stat().st_size for path in (tmp_path / "out").glob("*.npy")))
    assert fetched == f"{tmp_path / 'out'}: {TARGETS} of {TARGETS} rows, {size}\n"
    assert len(list((tmp_path / "out").glob("*.npy"))) == TARGETS
    assert run("cancel", job).startswith(f"{job}: COMPLETED")
    bad = tmp_path / "bad.csv"
    bad.write_text("file,x0,y0,width,height\nsurvey:none.fit,0,0,9,9\n")
    run("submit", "--targets", bad, "--wait", code=1)
    failed = json.loads(run("list", "--json", "--last", "1"))["jobs"][0]["id"]
    assert "missing" in run("status", failed, "--failed")
    run("resume", failed)
    assert json.loads(run("remove", failed, "--yes", "--json")) == {"removed": failed}
    assert "no job" in run("status", failed, code=2)
    assert "no job" in run("status", ID, code=2)


# ---- With servers that behave badly


Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def answering(*answers: Answer | None) -> Iterator[tuple[str, list[tuple[str, str, Any]]]]:
    """A server that gives these answers in turn, the last for ever; `None`: hangs up."""
    asked: list[tuple[str, str, Any]] = []

    class Answering(Handler):
        def do_GET(self) -> None:
            self.taken()
            answer = answers[min(len(asked), len(answers) - 1)]
            asked.append((self.command, self.path, dict(self.headers)))
            if answer is None:
                self.close_connection = True
            else:
                status, headers, content = answer
                self.answer(status, content, headers)

        do_POST = do_GET

    with serving(Answering) as url:
        yield url, asked


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between tries are noted, not waited for."""
    pauses: list[float] = []
    # Its own clock only: other threads may sleep.
    own = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr("swathe.client.connection.time", own)
    return pauses


GOOD: Answer = (200, {}, b"{}")
BUSY: Answer = (503, {"Retry-After": "7"}, b'{"error": "locked", "kind": "CatalogError"}')


def test_reading_is_tried_again(impatient: list[float]) -> None:
    with answering(BUSY, None, (429, {}, b""), GOOD) as (url, asked):
        swathe.connect(url).close()
    assert len(asked) == 4
    assert impatient == [7.0, 1.0, 2.0]


def test_a_portal_cannot_shorten_a_pause(impatient: list[float]) -> None:
    hurry: list[Answer] = [(503, {"Retry-After": seconds}, b"") for seconds in ("0", "1")]
    with answering(*hurry, GOOD) as (url, _):
        swathe.connect(url).close()
    assert impatient == [0.5, 1.0]


def test_tries_are_bounded(impatient: list[float]) -> None:
    with answering(BUSY) as (url, asked), pytest.raises(errors.CatalogError, match="locked"):
        swathe.connect(url)
    assert (len(asked), len(impatient)) == (6, 5)
    with answering(None) as (url, asked), pytest.raises(errors.SourceError, match=url):
        swathe.connect(url)
    assert len(asked) == 6


def test_a_portal_that_answers_at_once_is_asked_with_growing_pauses() -> None:
    begun = as_json(replace(COMPLETED, phase="EXECUTING"))
    requests: list[str] = []

    def get_json(path: str, **_: Any) -> dict[str, Any]:
        requests.append(path)
        return begun

    job = RemoteJob(SimpleNamespace(url="http://portal", get_json=get_json), ID)  # type: ignore[arg-type]
    assert job.wait(0.5, progress=False).phase == "EXECUTING"
    assert 3 <= len(requests) <= 8


def test_rows_are_bounded_by_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swathe.client.job.MOST_ROWS", 20)

    def get_json(path: str, **query: Any) -> dict[str, Any]:
        return {"rows": [], "next": query["start"] + 10}

    job = RemoteJob(SimpleNamespace(url="http://portal", get_json=get_json), ID)  # type: ignore[arg-type]
    with pytest.raises(errors.SourceError, match="expected at most 20 rows, found more"):
        list(job.rows())


def test_submitting_is_not_tried_again() -> None:
    with answering(GOOD, None) as (url, asked), swathe.connect(url) as portal:
        with pytest.raises(errors.SourceError):
            portal.submit({"file": ["a:b"]})
        assert [method for method, _, _ in asked] == ["GET", "POST"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((401, {}, b'{"error": "no", "kind": "TokenError"}'), errors.TokenError),
        ((401, {}, b"<html>"), errors.TokenError),
        ((403, {}, b"{}"), errors.AccessError),
        ((404, {}, b""), errors.NotFoundError),
        ((413, {}, b""), errors.LimitError),
        ((422, {}, b'{"error": "x", "kind": "TargetsError"}'), errors.TargetsError),
        ((422, {}, b'{"error": "x", "kind": "os"}'), errors.SwatheError),
        ((500, {}, b""), errors.SourceError),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), errors.SwatheError),
        ((200, {}, b"[]"), errors.SourceError),
        ((200, {}, b"[" * 100_000), errors.SourceError),
        ((500, {}, b"[" * 100_000), errors.SourceError),
        ((200, {}, b"<html>"), errors.SourceError),
        ((200, {"Content-Length": "50"}, b"{}"), errors.SourceError),
    ],
)
def test_answers_become_errors(answer: Answer, kind: type[Exception]) -> None:
    with answering(answer) as (url, _), pytest.raises(kind) as raised:
        swathe.connect(url)
    assert isinstance(raised.value, errors.SwatheError)


def test_what_the_portal_lacks_is_not_taken_for_the_table(tmp_path: Path) -> None:
    table = tmp_path / "targets.csv"
    table.write_text("file,x0,y0,width,height\na:b,0,0,1,1\n")
    lacking: Answer = (404, {}, b'{"error": "no such path", "kind": "NotFoundError"}')
    with answering(GOOD, lacking) as (url, _), swathe.connect(url) as portal:
        with pytest.raises(errors.NotFoundError, match=r"^no such path$"):
            portal.submit(table)
        with pytest.raises(errors.TargetsError, match="Is a directory"):
            portal.submit(tmp_path)


def test_limit_says_when_to_come_again() -> None:
    busy: Answer = (429, {"Retry-After": "60"}, b'{"error": "many", "kind": "LimitError"}')
    with answering(GOOD, busy) as (url, _), swathe.connect(url) as portal:
        with pytest.raises(errors.LimitError) as raised:
            portal.submit({"file": ["a:b"]})
        assert raised.value.retry_after_s == 60


def row(name: str, content: bytes) -> Answer:
    sha256, box = hashlib.sha256(content).hexdigest(), (1, 1, 5, 5)
    told = Row(0, "0", "survey:a.fits", None, box, "ok", "", name, len(content), sha256)
    return 200, {}, json.dumps({"rows": [as_json(told)], "next": None}).encode()


NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
COMPLETED = Job(
    id=ID,
    owner="me",
    name="",
    phase="COMPLETED",
    options=Options(),
    created_at=NOON,
    started_at=NOON,
    ended_at=NOON,
    expires_at=NOON,
    rows=1,
    counts={"ok": 1},
    bytes=4,
    predicted=None,
    actual=None,
    error=None,
    notes=[],
    parameters=[],
)
ENDED: Answer = (200, {}, json.dumps(as_json(COMPLETED)).encode())


@pytest.mark.parametrize(("is_terminal", "wait_s"), [(False, "20.0"), (True, "0.5")])
def test_waiting_asks_often_only_for_a_bar(
    is_terminal: bool, wait_s: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.client.job.can_show_progress", lambda: is_terminal)
    begun = json.dumps(as_json(replace(COMPLETED, phase="EXECUTING"))).encode()
    with answering(GOOD, (200, {}, begun), ENDED) as (url, asked), swathe.connect(url) as portal:
        assert job_on(portal).wait() == COMPLETED
    assert f"wait={wait_s}&" in asked[-1][1]


def test_a_bar_shows_the_time_left_as_the_portal_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[int, str]] = []

    @contextmanager
    def bar(*_: Any) -> Iterator[Any]:
        yield lambda done, time_left="": shown.append((done, time_left))

    monkeypatch.setattr("swathe.client.job.progress_bar", bar)
    left = {"median_s": 80.0, "interval_s": (60.0, 110.0)}
    content = as_json(replace(COMPLETED, phase="EXECUTING", left=left))
    older = {name: value for name, value in as_json(COMPLETED).items() if name != "left"}
    begun: Answer = (200, {}, json.dumps(content).encode())
    ended: Answer = (200, {}, json.dumps(older).encode())
    with answering(GOOD, begun, ended) as (url, _), swathe.connect(url) as portal:
        assert job_on(portal).wait() == COMPLETED
    assert [text for _, text in shown] == ["1 min 20 s left (1:00 to 1:50)", ""]


@pytest.mark.parametrize("name", ["../a.fits", "/etc/a", "a/b", "", "..", ".a", "a\\b"])
def test_names_that_lead_elsewhere_are_not_written(tmp_path: Path, name: str) -> None:
    with (
        answering(GOOD, ENDED, row(name, b"x")) as (url, _),
        swathe.connect(url) as portal,
        pytest.raises(errors.SourceError, match="expected a name of a result"),
    ):
        job_on(portal).fetch(tmp_path / "out")
    assert list(tmp_path.rglob("*")) == [tmp_path / "out"]


def test_bytes_that_differ_from_their_checksum_are_no_result(tmp_path: Path) -> None:
    evil: Answer = (200, {}, b"evil")
    with (
        answering(GOOD, ENDED, row("a.fits", b"good"), evil) as (url, asked),
        swathe.connect(url) as portal,
        pytest.raises(errors.SourceError, match="bytes do not match the checksum"),
    ):
        job_on(portal).fetch(tmp_path)
    assert len(asked) == 5
    assert list(tmp_path.iterdir()) == []


OTHER_COLUMNS = "# %ECSV 1.0\n# ---\n# datatype:\n# - {{name: a, datatype: string}}\na\nb\n"


@pytest.mark.parametrize(
    "text", ["http://{server}/seen", "{file}", "a\nb", "", "\xff", OTHER_COLUMNS]
)
def test_what_is_no_manifest_is_refused_and_not_opened(tmp_path: Path, text: str) -> None:
    (tmp_path / "own.ecsv").write_text(MANIFEST.format(job=ID, name="a"))
    with answering(GOOD) as (server, seen):
        filled = text.format(server=server.removeprefix("http://"), file=tmp_path / "own.ecsv")
        with (
            answering(GOOD, (200, {}, filled.encode("latin-1"))) as (url, _),
            swathe.connect(url) as portal,
            pytest.raises(errors.SourceError, match="expected a manifest"),
        ):
            job_on(portal).manifest(tmp_path / "manifest.ecsv")
        with (
            answering(GOOD, (200, {}, filled.encode("latin-1"))) as (url, _),
            swathe.connect(url) as portal,
            pytest.raises(errors.SourceError, match="expected a manifest"),
        ):
            list(job_on(portal).manifest_tables())
    assert seen == []
    assert not (tmp_path / "manifest.ecsv").exists()


@pytest.mark.parametrize("page", [{"rows": 1}, {}, {"rows": [1]}, {"rows": [], "next": 0}])
def test_pages_of_rows_have_rows_and_go_on(page: dict[str, Any]) -> None:
    with (
        answering(GOOD, (200, {}, json.dumps(page).encode())) as (url, asked),
        swathe.connect(url) as portal,
        pytest.raises(errors.SourceError),
    ):
        list(job_on(portal).rows())
    assert len(asked) == 2


def test_of_a_result_that_is_too_long_no_more_is_kept(tmp_path: Path) -> None:
    kept: list[int] = []
    with (
        answering(GOOD, ENDED, row("a.fits", b"good"), (200, {}, bytes(4 << 20))) as (url, _),
        swathe.connect(url) as portal,
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(errors.SourceError, match="bytes do not match the checksum"),
    ):

        def size(path: Path) -> int:
            kept.append(path.stat().st_size if path.exists() else 0)
            return kept[-1]

        patch.setattr("swathe.client.job._size", size)
        job_on(portal).fetch(tmp_path)
    assert max(kept) <= 4


GZIP = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, GZIP, gzip.compress(bytes(MOST_JSON_BYTES + 1), 1)), "at most 64 MiB, found more"),
        ((200, GZIP, gzip.compress(b'{"a": 1}')[:-9]), "found a part of it"),
        ((200, GZIP, b"no gzip"), "expected gzip, found damaged content"),
        ((200, GZIP, gzip.compress(b'{"a": 1}') + b"more"), "the end of gzip, found more content"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), "answered 302"),
        ((200, {"Content-Encoding": "br"}, b"{}"), "packed with gzip or not, found 'br'"),
        ((500, GZIP, gzip.compress(bytes(MOST_ERROR_BYTES + 1))), "answered 500"),
    ],
)
def test_answers_that_are_too_large_or_damaged_are_refused(answer: Answer, message: str) -> None:
    with answering(answer) as (url, _), pytest.raises(errors.SourceError, match=message):
        swathe.connect(url)


def test_parts_of_gzip_without_content_come_to_an_end_atk() -> None:
    asked = 0

    def parts() -> Iterator[bytes]:
        nonlocal asked
        yield gzip.compress(b"")[:10]
        while asked < 100:
            asked += 1
            yield b"\0\0\0\xff\xff" * (BLOCK // 5)

    class Parts(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return parts()

    answer = httpx.Response(
        200, headers=GZIP, stream=Parts(), request=httpx.Request("GET", "http://a/")
    )
    with pytest.raises(errors.SourceError, match="found parts without content"):
        list(content_blocks(answer))
    assert asked < 5


def test_packed_answers_that_cannot_be_packed_are_read_atk() -> None:
    content = np.random.default_rng(1).bytes(20 * BLOCK)
    packed = gzip.compress(content)
    answer = httpx.Response(200, headers=GZIP, stream=httpx.ByteStream(packed))
    assert b"".join(content_blocks(answer)) == content


def test_packed_answers_are_unpacked_in_blocks() -> None:
    packed = gzip.compress(bytes(10 * BLOCK))
    answer = httpx.Response(200, headers=GZIP, stream=httpx.ByteStream(packed))
    blocks = list(content_blocks(answer))
    assert sum(map(len, blocks)) == 10 * BLOCK
    assert max(map(len, blocks)) == BLOCK


@pytest.mark.parametrize("suffix", ["zip", "tar", "fits"])
def test_an_archive_has_a_limit(tmp_path: Path, suffix: str) -> None:
    large: Answer = (200, GZIP, gzip.compress(bytes(8 << 20)))
    with (
        answering(GOOD, ENDED, row("a.fits", b"good"), large) as (url, _),
        swathe.connect(url) as portal,
        pytest.raises(errors.SourceError, match=r"at most 32 KiB for 1 results, found more"),
    ):
        job_on(portal).fetch(tmp_path / f"a.{suffix}")
    assert [path.stat().st_size for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize("output", ["out", "a.zip"])
def test_without_room_on_the_disk_nothing_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=3))
    with (
        answering(GOOD, ENDED, row("a.fits", b"good")) as (url, asked),
        swathe.connect(url) as portal,
        pytest.raises(errors.OutputError, match="expected 4 B of free disk space, found 3 B"),
    ):
        job_on(portal).fetch(tmp_path / output)
    assert len(asked) == 3


MANIFEST = """# %ECSV 1.0
# ---
# delimiter: ','
# datatype:
# - {{name: id, datatype: string}}
# - {{name: status, datatype: string}}
# - {{name: reason, datatype: string}}
# - {{name: path, datatype: string}}
# - {{name: bytes, datatype: int64}}
# - {{name: source, datatype: string}}
# - {{name: source_version, datatype: string}}
# - {{name: sha256, datatype: string}}
# meta: {{job: "{job}"}}
# schema: astropy-2.0
id,status,reason,path,bytes,source,source_version,sha256
0,ok,,{name},4,,,
"""


def test_a_portal_names_no_other_files_the_second_time(tmp_path: Path) -> None:
    def fetch(name: str, manifest: str) -> None:
        told: Answer = (200, {}, MANIFEST.format(job=ID, name=manifest).encode())
        content: Answer = (200, {}, b"good")
        with (
            answering(GOOD, ENDED, row(name, b"good"), content, told) as (url, _),
            swathe.connect(url) as portal,
        ):
            job_on(portal).fetch(tmp_path)

    with pytest.raises(errors.SourceError, match=r"it names 'notes\.txt', too"):
        fetch("a.fits", "notes.txt")
    (tmp_path / "a.fits").unlink()
    fetch("a.fits", "a.fits")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "a.fits").write_text("lost")
    with pytest.raises(errors.OutputExistsError, match=r"notes\.txt"):
        fetch("notes.txt", "notes.txt")
    fetch("a.fits", "a.fits")
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "a.fits").read_text() == "good"


def test_broken_archives_are_no_result(tmp_path: Path) -> None:
    broken: Answer = (200, {}, b"no archive")
    for suffix in ("zip", "tar"):
        with (
            answering(GOOD, ENDED, row("a.fits", b"good"), broken) as (url, _),
            swathe.connect(url) as portal,
            pytest.raises(errors.SourceError, match="the archive is broken"),
        ):
            job_on(portal).fetch(tmp_path / f"a.{suffix}")
        assert not (tmp_path / f"a.{suffix}").exists()


def zip_with(at_entry: int, at_head: int, value: int) -> bytes:
    """A zip file with one byte changed in both headers of its only member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.fits", b"good")
    content = bytearray(file.getvalue())
    content[content.index(b"PK\1\2") + at_entry] = content[at_head] = value
    return bytes(content)


def tar_with(kind: bytes, real_size: bytes = b"") -> bytes:
    """A tar file of one member, with another type; for a sparse one with the size it claims."""
    head = tarfile.TarInfo("a.fits")
    head.type, head.linkname = kind, "a.fits"
    block = bytearray(head.tobuf(tarfile.GNU_FORMAT))
    block[483 : 483 + len(real_size)] = real_size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + bytes(1024)


def archive_of(suffix: str, *members: tuple[str, bytes]) -> bytes:
    """Return an archive with some members, also several of one name."""
    file = io.BytesIO()
    if suffix == "zip":
        with zipfile.ZipFile(file, "w") as zip_file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, content in members:
                zip_file.writestr(name, content)
    else:
        with tarfile.open(fileobj=file, mode="w") as tar_file:
            for name, content in members:
                head = tarfile.TarInfo(name)
                head.size = len(content)
                tar_file.addfile(head, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize("suffix", ["zip", "tar"])
@pytest.mark.parametrize("other", ["a.fits", "../a.fits", "./a.fits", "/a.fits", "b.fits"])
def test_archives_have_no_other_members_atk(tmp_path: Path, suffix: str, other: str) -> None:
    content = archive_of(suffix, ("a.fits", b"good"), (other, b"evil"))
    with (
        answering(GOOD, ENDED, row("a.fits", b"good"), (200, {}, content)) as (url, _),
        swathe.connect(url) as portal,
        pytest.raises(errors.SourceError, match="expected each result once"),
    ):
        job_on(portal).fetch(tmp_path / f"a.{suffix}")
    assert not (tmp_path / f"a.{suffix}").exists()


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        ("zip", zip_with(8, 6, 1)),  # encrypted
        ("zip", zip_with(10, 8, 99)),  # an unknown method
        ("zip", zip_with(27, 25, 9)),  # larger than the archive
        ("tar", tar_with(tarfile.SYMTYPE)),  # of itself
        ("tar", tar_with(tarfile.GNUTYPE_SPARSE, b"\x80\0\0\0\0\0\x40\0\0\0\0\0")),
    ],
)
def test_archives_no_portal_makes_end_in_an_error_atk(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    with (
        answering(GOOD, ENDED, row("a.fits", b"good"), (200, {}, content)) as (url, _),
        swathe.connect(url) as portal,
        pytest.raises(errors.SourceError, match="the archive is broken"),
    ):
        job_on(portal).fetch(tmp_path / f"a.{suffix}")
    assert not (tmp_path / f"a.{suffix}").exists()


def test_no_result_is_called_as_the_manifest_atk(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    forged = MANIFEST.format(job=ID, name="notes.txt").encode()
    content: Answer = (200, {}, forged)
    for name in ("manifest.ecsv", "Manifest.ECSV"):
        with (
            answering(GOOD, ENDED, row(name, forged), content, content) as (url, _),
            swathe.connect(url) as portal,
            pytest.raises(errors.SourceError, match="expected names of results"),
        ):
            job_on(portal).fetch(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_rows_and_manifest_are_bounded_by_the_job_atk(tmp_path: Path) -> None:
    content: Answer = (200, {}, b"good")
    large: Answer = (200, GZIP, gzip.compress(bytes(1 << 20)))
    with (
        answering(GOOD, ENDED, row("a.fits", b"good"), content, large) as (url, _),
        swathe.connect(url) as portal,
        pytest.raises(errors.SourceError, match="an answer of at most 32 KiB, found more"),
    ):
        job_on(portal).fetch(tmp_path / "a")
    page = json.loads(row("a.fits", b"good")[2])
    endless: Answer = (200, {}, json.dumps({"rows": 2 * page["rows"], "next": 2}).encode())
    with (
        answering(GOOD, ENDED, endless) as (url, asked),
        swathe.connect(url) as portal,
        pytest.raises(errors.SourceError, match="at most the 1 rows of the job, found more"),
    ):
        job_on(portal).fetch(tmp_path / "b")
    assert len(asked) == 3


def test_long_names_of_results_are_told_atk(tmp_path: Path) -> None:
    with (
        answering(GOOD, ENDED, row("a" * 5000, b"good")) as (url, _),
        swathe.connect(url) as portal,
        pytest.raises(errors.OutputError, match="name too long"),
    ):
        job_on(portal).fetch(tmp_path)


def test_what_a_portal_says_does_not_steer_the_terminal_atk(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = replace(COMPLETED, notes=["\x1b]0;mine\x07"], error="\x1b[2J")
    with answering(GOOD, (200, {}, json.dumps(as_json(said)).encode())) as (url, _):
        monkeypatch.setattr(sys, "argv", ["swathe", "job", "status", ID, "--url", url])
        with pytest.raises(SystemExit):
            main()
    assert capsys.readouterr().err == "  \\x1b[2J\n  note: \\x1b]0;mine\\x07\n"


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz", "a.png"])
def test_other_archives_are_refused_before_the_job_is_awaited(tmp_path: Path, name: str) -> None:
    with (
        answering(GOOD) as (url, asked),
        swathe.connect(url) as portal,
        pytest.raises(errors.OutputError, match=r"expected a folder, \*.zip, \*.tar or \*.fits"),
    ):
        job_on(portal).fetch(tmp_path / name)
    assert len(asked) == 1
    assert list(tmp_path.iterdir()) == []


# ---- Tokens


def test_token_is_sent_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: Answer = (401, {}, b'{"error": "not known", "kind": "TokenError"}')
    with answering(GOOD, refused) as (url, asked):
        portal = swathe.connect(url, "t0ken-hush")
        assert asked[0][2]["Authorization"] == "Bearer t0ken-hush"
        assert "hush" not in repr(portal) + str(vars(portal))
        with pytest.raises(errors.TokenError) as raised:
            portal.about()
        assert "hush" not in f"{raised.value!r}"
        monkeypatch.setenv("SWATHE_TOKEN", "from-environment")
        with pytest.raises(errors.TokenError):
            swathe.connect(url)
        assert asked[-1][2]["Authorization"] == "Bearer from-environment"
    with pytest.raises(errors.SettingsError) as told:
        RemotePortal("http://127.0.0.1", "hush\nhush")
    assert "hush" not in str(told.value)


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:80", "ftp://a", "http://", "http://user:hush@a", "http://a?x=hush"]
)
def test_urls_of_no_portal(url: str) -> None:
    with pytest.raises(errors.SettingsError) as raised:
        swathe.connect(url)
    assert "hush" not in str(raised.value)


def test_a_portal_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swathe.client.connection.PAUSE_S", 0.0)
    with pytest.raises(errors.SourceError, match=r"cannot connect: Connection refused; is a"):
        swathe.connect("http://127.0.0.1:1").jobs()


def test_libraries_are_kept_by_a_portal(portal: RemotePortal, tmp_path: Path) -> None:
    source = tmp_path / "mylib.tar"
    source.write_bytes(tar_of(LIBRARY_FILES))
    record = portal.add_library(source)
    assert (record.label, portal.libraries()) == ("mylib@1.0", [record])
    assert portal.library("mylib")["headers"] == ["include/mylib.h"]
    portal.remove_library(record.label)
    with pytest.raises(errors.NoSuchAlgorithmError, match="there is no library"):
        portal.library("mylib")


def test_algorithms_are_kept_by_a_portal(portal: RemotePortal, tmp_path: Path) -> None:
    source = tmp_path / "lst.py"
    source.write_text(LST)
    record = portal.add_algorithm(source)
    assert (record.label, record.bytes) == ("lst-quarter-degree@1.2", len(LST))
    assert portal.add_algorithm(source) == record
    assert portal.algorithms() == [record]
    assert portal.algorithm(record.label)["definition"]["version"] == "1.2"
    source.write_text(LST.replace("numpy", "numpi"))
    with pytest.raises(errors.AlgorithmError, match="is it numpy"):
        portal.add_algorithm(source)
    portal.remove_algorithm(record.name)
    with pytest.raises(errors.NoSuchAlgorithmError):
        portal.algorithm(record.name)
