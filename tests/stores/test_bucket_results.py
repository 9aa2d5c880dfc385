"""Results of jobs in a bucket: what comes there, what becomes of it, a bucket that goes away."""

from __future__ import annotations

import io
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import (
    NoSuchJobError,
    NoSuchResultError,
    NoSuchStoreError,
    OutputError,
    SettingsError,
    SourceError,
)
from swathe.jobs import Bucket, Folder, Jobs, Limits, Options, ResultStore, result_store_by_name
from swathe.portal.app import open_portal
from swathe.portal.config import config_of
from swathe.stores.registry import to_native
from tests.conftest import fits_bytes
from tests.support import cloud_servers
from tests.support.job_runner import PATIENCE_S, contents_of, ended, running, targets
from tests.support.postgres_server import new_database
from tests.support.servers import S3, free_port, s3s_fs


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3s_fs(tmp_path_factory.mktemp("s3")) as running_server:
        (running_server.folder / "archive").mkdir()
        yield running_server


@pytest.fixture(scope="module")
def azurite() -> Iterator[cloud_servers.Azurite]:
    with cloud_servers.azurite() as running_server:
        running_server.make("archive")
        yield running_server


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud_servers.forget_credentials(monkeypatch)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'catalog.sqlite'}"


@pytest.fixture(params=["s3", "az"])
def lake(
    request: pytest.FixtureRequest,
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> str:
    """A store of each cloud, that no other test has written to."""
    server: S3 | cloud_servers.Azurite = request.getfixturevalue(
        "s3" if request.param == "s3" else "azurite"
    )
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    catalog.add_store("lake", f"{request.param}://archive/{tmp_path.name}")
    return "lake"


@pytest.fixture
def place(lake: str, catalog: Catalog, tmp_path: Path) -> ResultStore:
    return result_store_by_name(catalog, f"{lake}:jobs", tmp_path / "scratch")


@pytest.fixture
def jobs(catalog: Catalog, place: ResultStore) -> Iterator[Jobs]:
    with Jobs(catalog, place, limits=Limits()) as made:
        yield made


@pytest.fixture
def images(tmp_path: Path) -> list[str]:
    rng = np.random.default_rng(7)
    paths = []
    for number in range(3):
        path = tmp_path / f"image{number}.fits"
        path.write_bytes(fits_bytes(rng.integers(0, 9999, (60, 80)).astype(">i2")))
        paths.append(str(path))
    return paths


def objects(catalog: Catalog, below: str = "") -> list[str]:
    """Paths of all that the store holds below a folder, hidden or not."""
    listing = to_native([catalog.store("lake")]).list(
        f"lake:{below}", with_hidden=True, may_lack=True
    )
    found = []
    while (page := listing.next_page()) is not None:
        found += [path for path, *_ in page]
    return sorted(found)


def in_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swathe.workers.runner.FIRST_CHUNK", 7)
    monkeypatch.setattr("swathe.workers.runner.MOST_GROWTH", 1.0)
    monkeypatch.setattr("swathe.catalog.jobs.leases.LARGEST_CHUNK", 7)


# ---- What comes there


def test_results_are_those_of_cut_many(
    jobs: Jobs, catalog: Catalog, images: list[str], tmp_path: Path
) -> None:
    table = targets(images)
    expected = swathe.cut_many(table, tmp_path / "many", progress=False)
    with running(jobs):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    assert job.phase == "COMPLETED"
    rows = jobs.rows(job.id)
    there = [f"jobs/{job.id}/0000/{row.name}" for row in rows if row.name]
    assert objects(catalog) == sorted(there)
    for row, kept in zip(rows, expected, strict=True):
        assert (row.status, row.bytes, row.sha256) == (
            kept["status"],
            kept["bytes"],
            kept["sha256"],
        )
        if row.status == "ok":
            found = jobs.result(job.id, row.name)
            assert contents_of(found) == (tmp_path / "many" / kept["path"]).read_bytes()
            assert (found.size, found.name) == (row.bytes, row.name)
            assert found.etag == f'"{row.sha256[:32]}"'
            assert swathe.open(found.file).image().shape == fits.getdata(found.open()).shape
    assert {"ok", "no-overlap"} == {row.status for row in rows}
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("kind", ["npy", "png"])
def test_results_in_other_formats(jobs: Jobs, images: list[str], tmp_path: Path, kind: Any) -> None:
    table = targets(images, 6)
    with running(jobs):
        job = ended(jobs, jobs.submit(table, Options(format=kind), "me"))
    for row in jobs.rows(job.id, status="ok"):
        box = tuple(table[name][row.number] for name in ("x0", "y0", "width", "height"))
        cutout = swathe.cut(table["file"][row.number], box=box)
        cutout.write(tmp_path / f"expected.{kind}", overwrite=True)
        found = contents_of(jobs.result(job.id, row.name))
        assert found == (tmp_path / f"expected.{kind}").read_bytes()
    assert job.counts["ok"] > 3


def test_archives(
    jobs: Jobs, images: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where objects are too large to be fetched as a whole."""
    table = targets(images)
    swathe.cut_many(table, tmp_path / "many", progress=False)
    expected = {path.name: path.read_bytes() for path in (tmp_path / "many").rglob("*.fits")}
    with running(jobs):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    names = [row.name for row in jobs.rows(job.id, status="ok")]
    for small in (1 << 20, 3000):
        monkeypatch.setattr("swathe.stores.bucket_results.SMALL", small)
        with zipfile.ZipFile(io.BytesIO(b"".join(jobs.archive(job.id, "zip")))) as archive:
            assert archive.testzip() is None
            assert archive.namelist() == [*names, "manifest.ecsv"]
            assert {name: archive.read(name) for name in names} == expected
        with tarfile.open(fileobj=io.BytesIO(b"".join(jobs.archive(job.id, "tar")))) as tar:
            assert tar.getnames() == [*names, "manifest.ecsv"]
        with fits.open(io.BytesIO(b"".join(jobs.archive(job.id, "fits")))) as hdus:
            assert [f"{hdu.name.lower()}.fits" for hdu in hdus[1:]] == names


def test_an_archive_follows_the_work_to_its_end(
    jobs: Jobs, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_chunks(monkeypatch)
    job = jobs.submit(targets(images, 60), Options(), "me")
    parts: list[bytes] = []
    reader = threading.Thread(target=lambda: parts.extend(jobs.archive(job.id, "tar")))
    reader.start()
    with running(jobs):
        reader.join(PATIENCE_S)
        assert not reader.is_alive()
    with tarfile.open(fileobj=io.BytesIO(b"".join(parts))) as archive:
        names = [row.name for row in jobs.rows(job.id, status="ok")]
        assert archive.getnames() == [*names, "manifest.ecsv"]


def test_large_results_are_put_and_read_in_parts(jobs: Jobs, tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 2**15, (3000, 3500)).astype(">i2")
    path = tmp_path / "large.fits"
    path.write_bytes(fits_bytes(pixels))
    box = {"file": [str(path)], "x0": [0], "y0": [0], "width": [3500], "height": [3000]}
    with running(jobs):
        job = ended(jobs, jobs.submit({**box, "id": ["all"]}, Options(), "me"))
    found = jobs.result(job.id, "all.fits")
    assert found.size > 20 << 20
    content = contents_of(found)
    with found.open() as file:
        assert file.seek(-100, io.SEEK_END) == found.size - 100
        assert file.read() == content[-100:]
        assert file.seek(9_000_000) == 9_000_000
        assert file.read(3_000_000) == content[9_000_000:12_000_000]
    np.testing.assert_array_equal(fits.getdata(io.BytesIO(content)), pixels)
    with tarfile.open(fileobj=io.BytesIO(b"".join(jobs.archive(job.id, "tar")))) as archive:
        member = archive.extractfile("all.fits")
        assert member is not None and member.read() == content


def test_results_are_put_before_the_disk_is_full(
    jobs: Jobs, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.workers.execute.PUT_BYTES", 10_000)
    most = 0
    put = Bucket.put

    def counted(self: Bucket, job: str, files: Any, stopped: Callable[[], bool]) -> Iterator[int]:
        nonlocal most
        most = max(most, len(files))
        yield from put(self, job, files, stopped)

    monkeypatch.setattr(Bucket, "put", counted)
    with running(jobs):
        job = ended(jobs, jobs.submit(targets(images, 90), Options(), "me"))
    assert job.phase == "COMPLETED"
    assert most == 2  # of 5760 bytes each


def test_postgres_and_s3(
    postgres: Any, s3: S3, images: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    with new_database(postgres) as database:
        monkeypatch.setenv("SWATHE_DATABASE", database)
        with Catalog.open(database) as catalog:
            catalog.add_store("lake", f"s3://archive/{tmp_path.name}")
            place = result_store_by_name(catalog, "lake:", tmp_path / "scratch")
            with Jobs(catalog, place, limits=Limits()) as jobs:
                with running(jobs):
                    job = ended(jobs, jobs.submit(targets(images), Options(), "me"))
                rows = jobs.rows(job.id, status="ok")
                assert job.counts["ok"] == len(rows) == len(objects(catalog))
                for row in rows:
                    assert len(contents_of(jobs.result(job.id, row.name))) == row.bytes
                jobs.delete(job.id)
                jobs.tidy()
                assert objects(catalog) == []


# ---- What becomes of it


def test_deleted_jobs_leave_no_objects(
    jobs: Jobs, catalog: Catalog, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(jobs):
        done = [jobs.submit(targets(images), Options(), "me") for _ in range(2)]
        first, second = (ended(jobs, job) for job in done)
        kept = objects(catalog, f"jobs/{second.id}/")
        assert kept
        jobs.delete(first.id)
    jobs.tidy()
    assert objects(catalog) == kept
    assert [(job.id, job.removed) for job in catalog.deleted_jobs()] == [(first.id, True)]
    jobs.tidy()
    monkeypatch.setattr("swathe.jobs.service.GRACE_S", -1.0)
    jobs.tidy()
    assert catalog.deleted_jobs() == []
    jobs.set_expiry(second.id, datetime.now(UTC) - timedelta(seconds=1))
    jobs.tidy()
    assert objects(catalog) == []
    with pytest.raises(NoSuchJobError):
        jobs.job(second.id)


def test_what_comes_after_a_job_was_deleted_is_removed_too(
    jobs: Jobs, catalog: Catalog, place: ResultStore, images: list[str], tmp_path: Path
) -> None:
    """A process that was killed had put some results, and not yet seen that the job is gone."""
    job = jobs.submit(targets(images), Options(), "me")
    jobs.delete(job.id)
    jobs.tidy()
    late = tmp_path / "late.fits"
    late.write_bytes(b"late")
    assert list(place.put(job.id, [(str(late), "0000/late.fits")], lambda: False)) == [0]
    assert len(objects(catalog)) == 1
    # Later, by whoever is there then.
    with pytest.MonkeyPatch.context() as patch, Jobs(catalog, place, limits=Limits()) as others:
        patch.setattr("swathe.jobs.service.GRACE_S", -1.0)
        others.tidy()
    assert objects(catalog) == []


def test_a_job_deleted_while_it_runs_leaves_nothing(
    jobs: Jobs,
    catalog: Catalog,
    images: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_small_chunks(monkeypatch)
    job = jobs.submit(targets(images, 600), Options(), "me")
    with running(jobs):
        while jobs.job(job.id).counts["ok"] == 0:
            jobs.pause(0.05)
        jobs.delete(job.id)
    monkeypatch.setattr("swathe.jobs.service.GRACE_S", -1.0)
    jobs.tidy()
    assert objects(catalog) == []
    assert list((tmp_path / "scratch").iterdir()) == []


def test_an_object_that_is_gone_is_told(jobs: Jobs, catalog: Catalog, images: list[str]) -> None:
    with running(jobs):
        job = ended(jobs, jobs.submit(targets(images, 4), Options(), "me"))
    name = jobs.rows(job.id, status="ok")[0].name
    to_native([catalog.store("lake")]).remove(f"lake:jobs/{job.id}/0000/{name}")
    with pytest.raises(NoSuchResultError, match=f"{name}: the result no longer exists"):
        jobs.result(job.id, name)
    with pytest.raises(NoSuchResultError, match=f"{name}: the result no longer exists"):
        b"".join(jobs.archive(job.id, "zip"))


def test_what_goes_into_stacks_is_cut_again_where_it_is_lost(
    jobs: Jobs, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the folder for temporary files is emptied when a machine starts."""
    from tests.support.fits_frames import frame

    for number in range(3):
        (tmp_path / f"f{number}.fits").write_bytes(frame(10.0))
    table = {
        "file": [str(tmp_path / f"f{number}.fits") for number in range(3)],
        "ra": [10.0] * 3,
        "dec": [-1.0] * 3,
        "size_deg": [0.002] * 3,
    }
    options = Options(operation="stack")
    with running(jobs):
        whole = ended(jobs, jobs.submit(table, options, "me"))
    in_small_chunks(monkeypatch)
    with monkeypatch.context() as patch:
        # The results are not worked on.
        patch.setattr("swathe.catalog.jobs.leases._are_inputs_done", lambda *_: False)
        job = jobs.submit(table, options, "me")
        with running(jobs):
            while jobs.job(job.id).counts["ok"] < 3:
                jobs.pause(0.05)
    inputs = tmp_path / "scratch" / job.id / ".inputs/0000"
    for name in ("0.npy", "1.npy"):
        (inputs / name).unlink()
    (tmp_path / "f1.fits").rename(tmp_path / "away")
    with running(jobs):
        job = ended(jobs, job)
        (failed,) = jobs.rows(job.id, status="error")
        assert failed.number == 3
        assert failed.reason.startswith("1: its pixels no longer exist and cannot be cut again: ")
        assert [path.name for path in sorted(inputs.iterdir())] == ["0.npy", "2.npy"]
        (tmp_path / "away").rename(tmp_path / "f1.fits")
        job = ended(jobs, jobs.resume(job.id))
    assert job.counts["ok"] == 4
    one, other = (contents_of(jobs.result(each.id, "stack.fits")) for each in (whole, job))
    np.testing.assert_array_equal(fits.getdata(io.BytesIO(one)), fits.getdata(io.BytesIO(other)))
    assert len(objects(catalog)) == 2
    assert list((tmp_path / "scratch").iterdir()) == []


# ---- A bucket that goes away


@pytest.fixture
def harbour(catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """What runs an S3 server, always the same one."""
    port = free_port()
    (tmp_path / "s3/archive").mkdir(parents=True)
    catalog.add_store("lake", "s3://archive")
    environment = S3(f"http://127.0.0.1:{port}", tmp_path / "s3").environment
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return lambda: s3s_fs(tmp_path / "s3", port)


def test_a_job_goes_on_when_the_bucket_is_back(
    catalog: Catalog,
    harbour: Callable[[], Any],
    images: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_small_chunks(monkeypatch)
    with harbour():
        place = result_store_by_name(catalog, "lake:jobs", tmp_path / "scratch")
        with Jobs(catalog, place, limits=Limits()) as jobs, running(jobs):
            job = jobs.submit(targets(images, 120), Options(), "me")
            while jobs.job(job.id).counts["ok"] == 0:
                jobs.pause(0.02)
    # The runner was stopped with the server there: now it is not.
    with Jobs(catalog, place, limits=Limits()) as jobs, running(jobs):
        jobs.pause(1.0)
        found = jobs.job(job.id)
        assert found.phase == "EXECUTING"
        left = found.counts["waiting"]
        assert left > 0
        with pytest.raises(SourceError):
            jobs.result(job.id, jobs.rows(job.id, status="ok")[0].name)
        with harbour():
            job = ended(jobs, job)
            assert job.phase == "COMPLETED" and job.error is None
            rows = jobs.rows(job.id, status="ok")
            assert job.counts["ok"] == len(rows) == len(objects(catalog))
            for row in rows:
                assert len(contents_of(jobs.result(job.id, row.name))) == row.bytes


def test_a_job_that_cannot_put_its_results_says_so_and_is_resumed(
    catalog: Catalog,
    harbour: Callable[[], Any],
    images: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("swathe.stores.bucket_results.PATIENCE_S", 0.0)
    with harbour():
        place = result_store_by_name(catalog, "lake:jobs", tmp_path / "scratch")
    with Jobs(catalog, place, limits=Limits()) as jobs, running(jobs):
        job = ended(jobs, jobs.submit(targets(images), Options(), "me"))
        assert job.phase == "ERROR"
        assert job.error is not None
        assert job.error.startswith("lake:jobs: ") and "cannot write" in job.error
        assert job.counts["ok"] == 0 and job.counts["error"] == 0
        with harbour():
            job = ended(jobs, jobs.resume(job.id))
            assert job.phase == "COMPLETED" and job.error is None
            assert job.counts["ok"] == len(objects(catalog)) > 20
        # Deleting needs no bucket; what is there is removed when it is back.
        jobs.delete(job.id)
        with pytest.raises(SourceError):
            jobs.tidy()
        with harbour():
            jobs.tidy()
            assert objects(catalog) == []


# ---- Places that are none


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("nowhere:x", "results.store: there is no store 'nowhere'"),
        ("lake", "results.store: expected NAME:prefix, a store and a folder in it, found 'lake'"),
        ("lake:../x", "results.store: expected NAME:prefix"),
        ("lake:a//b", "results.store: expected NAME:prefix"),
        ("web:x", "results.store: expected a store to write to, a folder, a bucket or"),
        ("away:x", "results.store: away:x: cannot write to it: "),
    ],
)
def test_places_that_cannot_be_used_are_told_at_the_start(
    store: str, said: str, s3: S3, url: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    catalog.add_store("lake", "s3://archive")
    catalog.add_store("web", "http://127.0.0.1:1/")
    catalog.add_store("away", "s3://archive", options={"endpoint": "http://127.0.0.1:1"})
    config = config_of({"catalog": {"database": url}, "results": {"store": store}})
    with pytest.raises(SettingsError) as raised, open_portal(config):
        pass
    assert said in str(raised.value)


def test_a_bucket_that_may_not_be_written_to(
    s3: S3, url: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-hush")
    catalog.add_store("lake", "s3://archive")
    config = config_of({"catalog": {"database": url}, "results": {"store": "lake:x"}})
    with (
        pytest.raises(SettingsError, match=r"results\.store: lake:x: .*access denied") as raised,
        open_portal(config),
    ):
        pass
    assert "hush" not in str(raised.value)


def test_a_bucket_that_is_not_there(
    azurite: cloud_servers.Azurite, url: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in azurite.environment.items():
        monkeypatch.setenv(name, value)
    catalog.add_store("lake", "az://nothing")
    config = config_of({"catalog": {"database": url}, "results": {"store": "lake:"}})
    with (
        pytest.raises(SettingsError, match=r"results\.store: lake:: cannot write to it"),
        open_portal(config),
    ):
        pass


def test_a_store_that_is_a_folder(catalog: Catalog, images: list[str], tmp_path: Path) -> None:
    catalog.add_store("disk", str(tmp_path / "a disk"))
    place = result_store_by_name(catalog, "disk:jobs", None)
    assert isinstance(place, Folder)
    with Jobs(catalog, place, limits=Limits()) as jobs, running(jobs):
        job = ended(jobs, jobs.submit(targets(images, 4), Options(), "me"))
        name = jobs.rows(job.id, status="ok")[0].name
    assert (tmp_path / "a disk/jobs" / job.id / "0000" / name).is_file()
    (tmp_path / "file").write_text("")
    catalog.add_store("blocked", str(tmp_path / "file"))
    with pytest.raises(OutputError, match="cannot be a folder for results"):
        result_store_by_name(catalog, "blocked:jobs", None)
    with pytest.raises(NoSuchStoreError):
        result_store_by_name(catalog, "none:jobs", None)


def test_the_folder_for_temporary_files_is_nobody_elses(
    s3: S3, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    catalog.add_store("lake", "s3://archive")
    (folder,) = [result_store_by_name(catalog, "lake:x", None).scratch("").resolve()]
    assert folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(OutputError, match="other users may write to it"):
        result_store_by_name(catalog, "lake:x", None)
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="other users may write to it"):
        result_store_by_name(catalog, "lake:x", None)
