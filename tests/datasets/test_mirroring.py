"""`swathe dataset mirror`: copies that are whole, verified, and known to the catalogue."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog
from swathe.datasets import mirroring
from swathe.datasets.mirror_plan import plan_mirror
from swathe.datasets.scan import scan
from swathe.stores.listing import ListedObject
from tests.support import cloud_servers, servers
from tests.support.fits_frames import Runner, frame
from tests.support.servers import NGINX, FileServer, nginx
from tests.support.webdav_server import webdav

NAMES = ("run1/f0.fits", "run1/f1.fits", "run2/f 2.fits")


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Runner:
    cloud_servers.forget_credentials(monkeypatch)
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/c.sqlite")
    monkeypatch.setenv("COLUMNS", "200")
    return Runner(monkeypatch, capsys)


def write_archive(folder: Path) -> None:
    """Write three frames at right ascension 10, 20 and 30."""
    for number, name in enumerate(NAMES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(frame(10.0 + 10 * number))


@pytest.fixture
def disk(run: Runner, tmp_path: Path) -> Path:
    """A dataset `sdss` in the store `disk`, and a store `copy` to mirror it to."""
    write_archive(tmp_path / "disk")
    run("store", "add", "disk", tmp_path / "disk")
    run("store", "add", "copy", tmp_path / "copy")
    run("dataset", "add", "sdss", "disk:", "--pattern", "*.fits")
    return tmp_path / "disk"


def mirrored(run: Runner, place: str = "copy", *more: object, code: int = 0) -> Any:
    return run.json("dataset", "mirror", "sdss", place, *more, code=code)


def counts(report: dict[str, Any]) -> tuple[int, int, int]:
    return report["copied"], report["there"], len(report["faults"])


def contents_of(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def found(ra_deg: float) -> list[str]:
    return [str(name) for name in swathe.find((ra_deg, -1.0))["file"]]


# ---- Folders


def test_a_folder_is_mirrored_once(run: Runner, disk: Path, tmp_path: Path) -> None:
    planned = mirrored(run, "copy", "--dry-run")
    size = sum((disk / name).stat().st_size for name in NAMES)
    assert (planned["copies"], planned["bytes"], planned["there"]) == (3, size, 0)
    assert planned["predicted_s"] > 0 and not planned["measured"]
    assert "3 objects to copy" in run("dataset", "mirror", "sdss", "copy", "--dry-run")
    assert not (tmp_path / "copy").exists()
    report = mirrored(run)
    assert counts(report) == (3, 0, 0) and report["bytes"] == size
    assert contents_of(tmp_path / "copy") == contents_of(disk)
    assert counts(mirrored(run)) == (0, 3, 0)
    assert "3 already there" in run("dataset", "mirror", "sdss", "copy")
    states = run.json("dataset", "show", "sdss")["states"]
    assert states == {"copy": {"ok": 3}, "disk": {"ok": 3}}
    assert run.json("dataset", "list")["datasets"][0]["objects"] == 3


def test_a_prefix_of_its_own(run: Runner, disk: Path, tmp_path: Path) -> None:
    run("dataset", "add", "one", "disk:run1")
    run("dataset", "mirror", "one", "copy:kept/here")
    run("dataset", "mirror", "sdss", "copy:")
    assert set(contents_of(tmp_path / "copy")) == {
        *NAMES,
        "kept/here/f0.fits",
        "kept/here/f1.fits",
    }


def test_the_other_copy_is_found_and_cut(run: Runner, disk: Path) -> None:
    mirrored(run)
    assert found(10.0) == ["disk:run1/f0.fits"]
    whole = swathe.cut("disk:run1/f0.fits", sky=(10.0, -1.0), size_deg=0.002).data
    (disk / NAMES[0]).unlink()
    assert run.json("dataset", "sync", "sdss")["vanished"] == 1
    assert found(10.0) == ["copy:run1/f0.fits"]
    assert (run.json("find", "--sky", "10", "-1")["images"][0]["file"]) == "copy:run1/f0.fits"
    copy = swathe.cut("copy:run1/f0.fits", sky=(10.0, -1.0), size_deg=0.002).data
    np.testing.assert_array_equal(copy, whole)
    # What has vanished stays where it was mirrored to, unless it is asked for.
    assert counts(mirrored(run)) == (0, 2, 0)
    assert found(10.0) == ["copy:run1/f0.fits"]
    assert mirrored(run, "copy", "--dry-run")["vanished"] == 1
    assert "--delete would" in run("dataset", "mirror", "sdss", "copy", "--dry-run")
    assert mirrored(run, "copy", "--delete")["deleted"] == 1
    assert found(10.0) == []
    assert mirrored(run, "copy", "--delete")["deleted"] == 0
    # It may come back.
    (disk / NAMES[0]).write_bytes(frame(10.0))
    run("dataset", "sync", "sdss")
    assert counts(mirrored(run)) == (1, 2, 0)


def test_the_copy_that_is_soonest_read_is_found(run: Runner, disk: Path) -> None:
    from swathe.catalog import this_host

    def costs(latency_s: float) -> dict[str, Any]:
        return {
            "connect_s": 0.0,
            "open_s": 0.0,
            "request": [[0.0, latency_s], [1e6, latency_s + 0.01]],
            "total_bytes_per_s": 1e9,
            "requests_per_s": 1e6,
            "streams": 8,
        }

    mirrored(run, "copy:elsewhere")
    assert found(10.0) == ["disk:run1/f0.fits"], "the first, where both take as long"
    with Catalog.open() as catalog:
        slow, fast = catalog.store("disk").url, catalog.store("copy").url
        catalog.put_profile(slow, this_host(), costs(0.5), {}, datetime.now(UTC))
        catalog.put_profile(fast, this_host(), costs(0.1), {}, datetime.now(UTC))
        assert found(10.0) == ["copy:elsewhere/run1/f0.fits"]
        catalog.put_profile(fast, this_host(), costs(0.9), {}, datetime.now(UTC))
        assert found(10.0) == ["disk:run1/f0.fits"]
        catalog.put_profile(fast, "another-host", costs(0.1), {}, datetime.now(UTC))
        assert found(10.0) == ["disk:run1/f0.fits"]
        assert len(swathe.find(dataset="sdss", catalog=catalog)) == 3


def test_predictions_know_both_copies(run: Runner, disk: Path) -> None:
    mirrored(run)
    table = swathe.find((10.0, -1.0))
    table["size_deg"] = 0.002
    predicted = swathe.predict(table, stores=["disk", "copy"])
    assert set(predicted.per_store) == {"disk", "copy"}


def test_stale_copies_are_made_again(run: Runner, disk: Path, tmp_path: Path) -> None:
    mirrored(run)
    (disk / NAMES[0]).write_bytes(frame(50.0))
    run("dataset", "sync", "sdss")
    assert run.json("dataset", "show", "sdss")["states"]["copy"] == {"ok": 2, "stale": 1}
    (disk / NAMES[0]).rename(disk / "away")
    run("dataset", "sync", "sdss")
    assert found(50.0) == [] == found(10.0), "a stale copy is none of this image"
    (disk / "away").rename(disk / NAMES[0])
    run("dataset", "sync", "sdss")
    assert counts(mirrored(run)) == (1, 2, 0)
    assert contents_of(tmp_path / "copy") == contents_of(disk)
    (tmp_path / "copy" / NAMES[1]).unlink()
    assert counts(mirrored(run)) == (1, 2, 0)
    assert contents_of(tmp_path / "copy") == contents_of(disk)


@pytest.mark.parametrize("is_stale", [False, True])
def test_a_file_in_the_place_of_a_copy_is_not_replaced(
    run: Runner, disk: Path, tmp_path: Path, is_stale: bool
) -> None:
    mirrored(run)
    other = tmp_path / "copy" / NAMES[0]
    other.write_bytes(b"x" * other.stat().st_size)
    if is_stale:
        (disk / NAMES[0]).write_bytes(frame(50.0))
        run("dataset", "sync", "sdss")
    before = other.read_bytes()
    for _ in range(2):  # a refusal does not make it a copy
        report = mirrored(run, code=1)
        assert counts(report) == (0, 2, 1)
        (fault,) = report["faults"]
        assert fault["reason"].startswith(f"disk:{NAMES[0]} to copy:{NAMES[0]}: {other}: exists")
        assert other.read_bytes() == before
    assert counts(mirrored(run, "copy", "--overwrite")) == (1, 2, 0)
    assert contents_of(tmp_path / "copy") == contents_of(disk)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_appears_during_the_run_is_replaced_only_with_overwrite(
    run: Runner, disk: Path, tmp_path: Path, overwrite: bool
) -> None:
    with Catalog.open() as catalog:
        work = plan_mirror(catalog, "sdss", "copy", overwrite=overwrite)
        appeared = tmp_path / "copy" / NAMES[0]
        appeared.parent.mkdir(parents=True)
        appeared.write_bytes(b"of another")
        report = mirroring.copy_objects(catalog, work)
    if overwrite:
        assert (report.copied, report.faults) == (3, [])
        return
    assert report.copied == 2 and appeared.read_bytes() == b"of another"
    (fault,) = report.faults
    assert f"{appeared}: exists already; give --overwrite" in fault.reason
    assert not list(appeared.parent.glob(".*"))


@pytest.mark.parametrize("is_copy", [False, True])
def test_what_a_killed_run_left_is_told_by_its_content(
    run: Runner, disk: Path, tmp_path: Path, is_copy: bool
) -> None:
    with Catalog.open() as catalog:
        mirroring._begin(catalog, plan_mirror(catalog, "sdss", "copy"))
    left = tmp_path / "copy" / NAMES[0]
    left.parent.mkdir(parents=True)
    content = (disk / NAMES[0]).read_bytes()
    left.write_bytes(content if is_copy else b"x" * len(content))
    before = left.read_bytes()
    assert counts(mirrored(run, code=0 if is_copy else 1)) == (2 + is_copy, 0, 1 - is_copy)
    assert left.read_bytes() == before


def test_a_copy_that_cannot_be_renewed_is_still_known(
    run: Runner, disk: Path, tmp_path: Path
) -> None:
    mirrored(run)
    (disk / NAMES[0]).write_bytes(frame(50.0))
    run("dataset", "sync", "sdss")
    (disk / NAMES[0]).rename(disk / "away")
    assert counts(mirrored(run, code=1)) == (0, 2, 1)
    (disk / "away").rename(disk / NAMES[0])
    assert counts(mirrored(run)) == (1, 2, 0)
    assert contents_of(tmp_path / "copy") == contents_of(disk)


def test_what_changed_unnoticed_is_not_copied(run: Runner, disk: Path, tmp_path: Path) -> None:
    (disk / NAMES[0]).write_bytes(frame(50.0))
    (disk / NAMES[1]).write_bytes(frame(20.0)[:-2880])
    (disk / NAMES[2]).unlink()
    report = mirrored(run, code=1)
    assert counts(report) == (0, 0, 3) and report["outdated"]
    reasons = {fault["path"]: fault["reason"] for fault in report["faults"]}
    size = (disk / NAMES[0]).stat().st_size
    assert f"{disk / NAMES[0]}: expected version {size} mtime:" in reasons[NAMES[0]]
    assert f"found {size - 2880} mtime:" in reasons[NAMES[1]]
    assert reasons[NAMES[2]].startswith("disk:run2/f 2.fits to copy:run2/f 2.fits: ")
    assert contents_of(tmp_path / "copy") == {}
    (disk / NAMES[1]).write_bytes(frame(20.0))
    run("dataset", "sync", "sdss")
    assert counts(mirrored(run)) == (2, 0, 0)


def test_one_object_that_fails_stops_no_other(run: Runner, disk: Path, tmp_path: Path) -> None:
    (tmp_path / "copy" / NAMES[0]).mkdir(parents=True)
    report = mirrored(run, code=1)
    assert counts(report) == (2, 0, 1)
    (fault,) = report["faults"]
    assert fault["reason"].startswith("disk:run1/f0.fits to copy:run1/f0.fits: ")
    assert set(contents_of(tmp_path / "copy")) == set(NAMES[1:])
    (shown,) = run.json("dataset", "show", "sdss")["faults"]
    assert (shown["store"], shown["state"]) == ("copy", "failed")
    (tmp_path / "copy" / NAMES[0]).rmdir()
    assert counts(mirrored(run)) == (1, 2, 0)


def test_a_full_disk(run: Runner, disk: Path, tmp_path: Path) -> None:
    """Files may grow to no more than 2 MB."""
    (disk / "run1/large.fits").write_bytes(frame(40.0) + bytes(3_000_000))
    code = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from swathe.cli.app import main\n"
        "from swathe.catalog import Catalog\n"
        "sys.argv = ['swathe', 'dataset', 'mirror', 'sdss', 'copy']\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))\n"
        "main()\n"
    )
    run("dataset", "sync", "sdss")
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 1 and "File too large" in done.stderr
    assert set(contents_of(tmp_path / "copy")) == set(NAMES)
    assert counts(mirrored(run)) == (1, 3, 0)


def test_killed_at_any_moment_it_goes_on(run: Runner, disk: Path, tmp_path: Path) -> None:
    block = np.random.default_rng(1).integers(0, 2**16, (1000, 1000), np.uint16)
    for number in range(30):
        big = frame(60.0 + number) if number % 2 else frame(60.0 + number) + block.tobytes()
        (disk / f"run2/b{number}.fits").write_bytes(big)
    run("dataset", "sync", "sdss")
    whole = contents_of(disk)
    command = [sys.executable, "-m", "swathe.cli", "dataset", "mirror", "sdss", "copy"]
    command += ["--threads", "2", "--quiet"]
    for _ in range(2):
        process = subprocess.Popen(command)
        before = len(seen(tmp_path / "copy"))
        limit = time.monotonic() + 120
        while process.poll() is None and len(seen(tmp_path / "copy")) < before + 5:
            assert time.monotonic() < limit
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=120)
        there = seen(tmp_path / "copy")
        assert all(whole[name] == content for name, content in there.items())
    with Catalog.open() as catalog:
        noted = {copy.path for copy in catalog.replicas("sdss", "copy", "ok")}
    assert noted <= set(seen(tmp_path / "copy"))
    kept = {name: (tmp_path / "copy" / name).stat().st_mtime_ns for name in noted}
    report = mirrored(run)
    assert (report["there"], report["copied"]) == (len(noted), 33 - len(noted))
    assert contents_of(tmp_path / "copy") == whole
    assert all((tmp_path / "copy" / name).stat().st_mtime_ns == at for name, at in kept.items())


def seen(folder: Path) -> dict[str, bytes]:
    """What users see: no hidden files."""
    try:
        return {
            name: content
            for name, content in contents_of(folder).items()
            if not Path(name).name.startswith(".")
        }
    except FileNotFoundError:  # renamed while we looked
        return seen(folder)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("none", "copy"), 2, "no dataset 'none'"),
        (("sdss", "nowhere"), 2, "no store 'nowhere'"),
        (("sdss", "disk:other"), 2, "in another store"),
        (("sdss", "same:"), 2, "neither within disk: nor around it"),
        (("sdss", "same:run3"), 2, "neither within disk: nor around it"),
        (("sdss", "web"), 2, "in a folder, in a bucket or on"),
        (("sdss", "copy:../x"), 2, "a folder in the store"),
        (("sdss", "lake"), 3, "s3://nowhere"),
    ],
)
def test_places_that_are_none(
    run: Runner,
    disk: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    (tmp_path / "link").symlink_to(disk)
    run("store", "add", "same", tmp_path / "link")
    run("store", "add", "web", "http://127.0.0.1:1/")
    run("store", "add", "lake", "s3://nowhere", "--option", "endpoint=http://127.0.0.1:1")
    assert said in run("dataset", "mirror", *words, code=code)
    assert contents_of(tmp_path / "copy") == {}


def test_paths_that_lead_elsewhere(run: Runner, disk: Path, tmp_path: Path) -> None:
    """A server may list what it likes."""
    names = ["run1/../../../out.fits", "/etc/x.fits", "run1/.hidden/x.fits"]
    for name in names:
        path = Path(f"{disk}/{name}") if not name.startswith("/") else disk / "etc/x.fits"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(frame(70.0))
    with Catalog.open() as catalog:
        listed = scan(catalog, "sdss", [ListedObject(name) for name in (*names, *NAMES)])
    # What leads out of its store is not even read for the dataset.
    assert "leads out of the store" in str(listed) and names[0] in str(listed)
    report = mirrored(run, code=1)
    assert counts(report) == (3, 0, 2)
    assert set(contents_of(tmp_path / "copy")) == set(NAMES)


def test_files_that_are_no_copies_stay(run: Runner, disk: Path, tmp_path: Path) -> None:
    other = tmp_path / "copy" / NAMES[0]
    other.parent.mkdir(parents=True)
    other.write_bytes(b"of somebody")
    (tmp_path / "copy" / NAMES[1]).symlink_to(other)
    report = mirrored(run, code=1)
    assert counts(report) == (1, 0, 2)
    assert "exists already; give --overwrite" in str(report["faults"])
    assert other.read_bytes() == b"of somebody"
    assert counts(mirrored(run, "copy", "--overwrite")) == (2, 1, 0)
    assert contents_of(tmp_path / "copy") == contents_of(disk)
    assert counts(mirrored(run)) == (0, 3, 0)


def test_a_source_is_not_replaced_by_another(run: Runner, disk: Path, tmp_path: Path) -> None:
    """The folder of the mirror leads to the images, where their names are those of others."""
    before = contents_of(disk)
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror/run1").symlink_to(disk / "run1")
    (disk / "run2/f0.fits").write_bytes(frame(80.0))
    (tmp_path / "mirror/run2").mkdir()
    (tmp_path / "mirror/run2/f0.fits").hardlink_to(disk / "run1/f1.fits")
    run("store", "add", "mirror", tmp_path / "mirror", "--option", f"roots={disk}")
    run("dataset", "sync", "sdss")
    for more in ((), ("--overwrite",)):
        report = mirrored(run, "mirror", *more, code=1)
        assert str(report["faults"]).count("it is the source") == 3, report
        after = contents_of(disk)
        assert {name: after[name] for name in before} == before


def test_what_is_damaged_stays_behind(run: Runner, disk: Path) -> None:
    (disk / "run1/text.fits").write_text("no FITS at all")
    run("dataset", "sync", "sdss", code=1)
    report = mirrored(run)
    assert counts(report) == (3, 0, 0) and report["skipped"] == 1
    assert "1 objects are skipped" in run("dataset", "mirror", "sdss", "copy", "--dry-run")


# ---- Servers and buckets


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    if not Path(NGINX).exists():
        pytest.skip("nginx is not installed")
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield running


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.S3]:
    with servers.s3s_fs(tmp_path_factory.mktemp("s3")) as running:
        (running.folder / "frames").mkdir()
        yield running


def test_a_server_is_mirrored(run: Runner, server: FileServer, tmp_path: Path) -> None:
    shutil.rmtree(server.folder, ignore_errors=True)
    write_archive(server.folder / "dr1")
    run("store", "add", "web", f"{server.url}/json")
    run("store", "add", "copy", tmp_path / "copy")
    run("dataset", "add", "sdss", "web:dr1")
    assert counts(mirrored(run, "copy:")) == (3, 0, 0)
    assert contents_of(tmp_path / "copy") == contents_of(server.folder / "dr1")
    server.requests()
    assert counts(mirrored(run, "copy:")) == (0, 3, 0)
    assert server.requests() == []
    # Changed since, and shorter since. Its ETag is the length and the second of the last change.
    changed, shorter = (server.folder / "dr1" / name for name in NAMES[:2])
    changed.write_bytes(frame(50.0))
    os.utime(changed, (1e9, 1e9))
    shorter.write_bytes(frame(20.0)[:-2880])
    for name in NAMES:
        (tmp_path / "copy" / name).unlink()
    report = mirrored(run, "copy:", code=1)
    assert counts(report) == (1, 0, 2) and report["outdated"]
    assert all("changed while it was read" in fault["reason"] for fault in report["faults"])
    assert set(contents_of(tmp_path / "copy")) == {NAMES[2]}


def test_buckets_are_mirrored_from_and_to(
    run: Runner, s3: servers.S3, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    large = frame(80.0) + os.urandom(17 << 20)
    (disk / "run2/large.fits").write_bytes(large)
    run("dataset", "sync", "sdss")
    run("store", "add", "lake", "s3://frames/dr1")
    report = mirrored(run, "lake")
    # Its ETags are the MD5 of what it was sent, also of what was sent in parts.
    assert counts(report) == (4, 0, 0) and report["read_back"] == 0
    assert counts(mirrored(run, "lake")) == (0, 4, 0)
    assert run.json("dataset", "show", "sdss")["states"]["lake"] == {"ok": 4}
    # And back, as a dataset of its own.
    assert run.json("dataset", "add", "cloud", "lake:", "--pattern", "*.fits")["read"] == 4
    run.json("dataset", "mirror", "cloud", "copy:back")
    assert contents_of(tmp_path / "copy/back") == contents_of(disk)
    # Unlike the server, which ignores If-Match, the engine sees that it is another object now.
    s3.put("frames", f"dr1/{NAMES[0]}", frame(50.0))
    (tmp_path / "copy/back" / NAMES[0]).unlink()
    report = run.json("dataset", "mirror", "cloud", "copy:back", code=1)
    assert counts(report) == (0, 3, 1) and report["outdated"]
    (disk / NAMES[1]).unlink()
    run("dataset", "sync", "sdss")
    assert mirrored(run, "lake", "--delete")["deleted"] == 1
    assert not (s3.folder / "frames/dr1" / NAMES[1]).exists()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-hush")
    said = run("dataset", "mirror", "sdss", "lake", code=3)
    assert "access denied: 403" in said and "hush" not in said


def test_a_mirror_in_azure_is_read_back(
    run: Runner, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cloud_servers.azurite() as server:
        server.make("frames")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        run("store", "add", "blobs", "az://frames")
        report = mirrored(run, "blobs")
        assert counts(report) == (3, 0, 0) and report["read_back"] == 3
        assert counts(mirrored(run, "blobs")) == (0, 3, 0)
        server.put("frames", NAMES[0], b"something else")
        reason = mirrored(run, "blobs", code=1)["faults"][0]["reason"]
        assert "exists already" in reason  # it is no longer the copy
        assert counts(mirrored(run, "blobs", "--overwrite")) == (1, 2, 0)
        (disk / NAMES[0]).unlink()
        run("dataset", "sync", "sdss")
        assert found(10.0) == ["blobs:run1/f0.fits"]
        assert swathe.open("blobs:run1/f0.fits").image().shape == (300, 400)


def test_predicted_time_is_of_the_slower_store(run: Runner, disk: Path) -> None:
    from swathe.catalog import SampleRecord as KeptSample
    from swathe.catalog import this_host

    run("store", "add", "lake", "s3://frames")
    with Catalog.open() as catalog:
        guess = plan_mirror(catalog, "sdss", "copy")
        costs = {
            "connect_s": 0.0,
            "open_s": 0.0,
            "request": [[0.0, 0.5], [1e6, 0.6]],
            "total_bytes_per_s": 1e9,
            "requests_per_s": 1e6,
            "streams": 8,
        }
        for root in (catalog.store("disk").url, catalog.store("copy").url):
            catalog.put_profile(root, this_host(), costs, {}, datetime.now(UTC))
        told = plan_mirror(catalog, "sdss", "copy", threads=1)
        assert not told.measured and not guess.measured
        # Three requests one after the other.
        assert told.predicted_s == pytest.approx(3 * (0.5 + 0.1 * told.bytes / 3e6))
        assert plan_mirror(catalog, "sdss", "copy", threads=3).predicted_s < told.predicted_s
        # Writing is twice as slow.
        now = datetime.now(UTC)
        written = [
            KeptSample("write", size, 1, 1 + 0.2 * size / 1e6, None, now, "probe", 1)
            for size in (1, 250_000, 500_000, 1_000_000, 4_000_000)
            for _ in range(3)
        ]
        catalog.add_samples(catalog.store("copy").url, this_host(), written)
        slower = plan_mirror(catalog, "sdss", "copy", threads=1)
        assert slower.measured
        assert slower.predicted_s == pytest.approx(2 * told.predicted_s, rel=0.05)


# ---- WebDAV


@pytest.fixture(params=["nginx", "xrootd", "xrootd-token"])
def dav(request: pytest.FixtureRequest, run: Runner, tmp_path: Path) -> Iterator[Path]:
    """A store `web` that is written to by WebDAV, and the folder behind it."""
    folder = tmp_path / "served"
    folder.mkdir()
    if request.param == "nginx":
        if not Path(NGINX).exists():
            pytest.skip("nginx is not installed")
        with nginx(folder) as running:
            run("store", "add", "web", f"{running.url}/dav/copies".replace("http", "dav"))
            yield running.folder / "copies"
        return
    token = servers.TOKEN if request.param == "xrootd-token" else None
    with servers.xrootd(folder, token, writable=True) as door:
        (tmp_path / "token").write_text(servers.TOKEN)
        right = f"token_file={tmp_path / 'token'}" if token else "anonymous=true"
        options = ("--option", f"door={door.url}", "--option", right)
        run("store", "add", "web", "root://archive.example//copies", *options)
        yield folder / "copies"


def test_a_mirror_on_a_webdav_server(run: Runner, disk: Path, dav: Path) -> None:
    large = frame(80.0) + os.urandom(17 << 20)
    odd = ("run2/two words+Ä[x]{y}=;~.fits", "run2/50%20/a%20b.fits")
    (disk / "run2/large.fits").write_bytes(large)
    (disk / "run2/50%20").mkdir()
    for number, name in enumerate(odd):
        (disk / name).write_bytes(frame(60.0 + number))
    run("dataset", "sync", "sdss")
    planned = mirrored(run, "web:dr1", "--dry-run")
    assert planned["copies"] == 6 and not dav.exists()
    report = mirrored(run, "web:dr1")
    assert counts(report) == (6, 0, 0) and report["read_back"] == 6
    assert contents_of(dav / "dr1") == contents_of(disk)
    assert counts(mirrored(run, "web:dr1")) == (0, 6, 0)
    # What lacks comes again, and what is another there, if that is asked for.
    (dav / "dr1" / NAMES[0]).unlink()
    (dav / "dr1" / NAMES[1]).write_bytes(b"something else")
    shutil.chown(dav / "dr1" / NAMES[1], "daemon" if os.geteuid() == 0 else None, -1)
    assert counts(mirrored(run, "web:dr1", code=1)) == (1, 4, 1)
    assert counts(mirrored(run, "web:dr1", "--overwrite")) == (1, 5, 0)
    assert contents_of(dav / "dr1") == contents_of(disk)
    for name in (NAMES[1], *odd):
        (disk / name).unlink()
    run("dataset", "sync", "sdss")
    assert mirrored(run, "web:dr1", "--delete")["deleted"] == 3
    assert contents_of(dav / "dr1") == contents_of(disk)
    # And back, as a dataset of its own.
    added = run.json("dataset", "add", "served", "web:dr1", "--pattern", "*.fits")
    assert added["read"] == 3
    (disk / NAMES[0]).unlink()
    run("dataset", "sync", "sdss")
    assert "web:dr1/run1/f0.fits" in found(10.0)
    assert swathe.open("web:dr1/run1/f0.fits").image().shape == (300, 400)


def test_killed_on_a_webdav_server_it_leaves_no_half_object(
    run: Runner, disk: Path, dav: Path
) -> None:
    (disk / "run2/large.fits").write_bytes(frame(80.0) + os.urandom(40 << 20))
    run("dataset", "sync", "sdss")
    whole = contents_of(disk)
    command = [sys.executable, "-m", "swathe.cli", "dataset", "mirror", "sdss", "web:", "--quiet"]
    for _ in range(2):
        for part in dav.rglob(".large*.part"):
            part.unlink(missing_ok=True)  # The server may move it yet.
        before = len(seen(dav))
        process = subprocess.Popen(command)
        limit = time.monotonic() + 120
        while process.poll() is None and not is_on_its_way(dav, before):
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=120)
        assert all(whole[name] == content for name, content in seen(dav).items())
    assert len(mirrored(run, "web:")["faults"]) == 0
    assert contents_of(dav) == whole


def is_on_its_way(folder: Path, before: int) -> bool:
    """Tell whether the large object is being sent, or more objects are there than before."""
    return any(folder.rglob(".large*.part")) or len(seen(folder)) > before


def test_copies_count_as_there_though_their_etags_were_weak(
    run: Runner, disk: Path, tmp_path: Path
) -> None:
    """Apache gives no strong ETag within a second of writing."""
    with webdav(tmp_path / "served") as server:
        run("store", "add", "web", server.url.replace("http", "dav"))
        server.young = True
        assert counts(mirrored(run, "web:dr1")) == (3, 0, 0)
        server.young = False
        assert counts(mirrored(run, "web:dr1")) == (0, 3, 0)
        # Where they were strong, it is they that count.
        for name in NAMES[:2]:
            (server.folder / "dr1" / name).unlink()
        assert counts(mirrored(run, "web:dr1")) == (2, 1, 0)
        copy = server.folder / "dr1" / NAMES[0]
        copy.write_bytes(bytes(copy.stat().st_size))
        os.utime(copy, (1e9, 1e9))  # The clock of files may not have moved on.
        assert counts(mirrored(run, "web:dr1", "--overwrite")) == (1, 2, 0)
        assert contents_of(server.folder / "dr1") == contents_of(disk)


def test_a_file_in_the_place_of_a_copy_is_not_deleted(
    run: Runner, disk: Path, tmp_path: Path
) -> None:
    mirrored(run)
    for name in NAMES[:2]:
        (disk / name).unlink()
    run("dataset", "sync", "sdss")
    other, copy = (tmp_path / "copy" / name for name in NAMES[:2])
    other.unlink()
    other.write_bytes(b"of somebody else")
    assert mirrored(run, "copy", "--dry-run")["changed"] == 1
    report = mirrored(run, "copy", "--delete", code=1)
    assert report["deleted"] == 1 and not copy.exists()
    assert "it is not the copy that was made" in report["faults"][0]["reason"]
    assert other.read_bytes() == b"of somebody else"


def test_what_became_a_folder_is_not_deleted(run: Runner, disk: Path, tmp_path: Path) -> None:
    with webdav(tmp_path / "served") as server:
        run("store", "add", "web", server.url.replace("http", "dav"))
        mirrored(run, "web:dr1")
        for name in NAMES:
            (disk / name).unlink()
        run("dataset", "sync", "sdss")
        became, hidden, other = (server.folder / "dr1" / name for name in NAMES)
        became.unlink()
        became.mkdir()
        (became / "kept").write_bytes(b"of somebody else")
        server.refused[hidden.name] = "403 Forbidden"
        planned = mirrored(run, "web:dr1", "--dry-run")
        assert (planned["vanished"], planned["gone"], planned["untold"]) == (1, 1, 1)
        # Also by who mirrors to another folder by now.
        report = mirrored(run, "web:dr2", "--delete", code=1)
        assert report["deleted"] == 1 and not other.exists()
        assert (became / "kept").exists() and hidden.exists()
        (fault,) = report["faults"]
        assert fault["path"] == NAMES[1] and "its store cannot tell" in fault["reason"]
        server.refused.clear()
        report = mirrored(run, "web:dr1", "--delete")
        assert report["deleted"] == 1 and not hidden.exists()
        assert mirrored(run, "web:dr1", "--dry-run")["gone"] == 0
        deleted = {path for method, path, _ in server.asked if method == "DELETE"}
        assert f"/dr1/{NAMES[0]}" not in deleted


def test_one_folder_by_two_schemes_is_one(run: Runner, tmp_path: Path) -> None:
    """A copy would be moved over its own source."""
    with webdav(tmp_path / "served") as server:
        server.server = "dCache/9.2.7"  # behind root://, and yet it encodes names
        write_archive(server.folder / "data/d r1")
        run("store", "add", "same", f"{server.url}/data//d%20r1".replace("http", "dav"))
        door = ("--option", f"door={server.url}/", "--option", "anonymous=true")
        run("store", "add", "xrd", "root://archive.example//data", *door)
        run("store", "add", "web", f"{server.url}/data")
        run("dataset", "add", "sdss", "xrd:d r1", "--pattern", "*.fits")
        for place in ("same:", "same:copies", "xrd:"):
            said = run("dataset", "mirror", "sdss", place, code=2)
            assert "neither within xrd:d r1 nor around it" in said
        run("dataset", "add", "sdss2", "same:", "--pattern", "*.fits")
        said = run("dataset", "mirror", "sdss2", "xrd:", code=2)
        assert "neither within same: nor around it" in said
        assert {method for method, *_ in server.asked} <= {"GET", "PROPFIND"}
        report = run.json("dataset", "mirror", "sdss2", "xrd:d r2")
        assert (report["copied"], report["faults"]) == (3, [])


def test_a_server_that_leads_to_the_images_replaces_none(run: Runner, disk: Path) -> None:
    """The catalogue knows a folder, and the server calls the same folder by a URL."""
    before = {path: path.stat().st_ino for path in disk.rglob("*.fits")}
    for name in NAMES:
        os.utime(disk / name, (1e9, 1e9))  # no two files are of one second by chance
    run("dataset", "sync", "sdss")
    with webdav(disk) as server:
        run("store", "add", "web", server.url.replace("http", "dav"))
        report = mirrored(run, "web:", code=1)
        assert counts(report) == (0, 0, 3)
        assert str(report["faults"]).count("exists already; give --overwrite") == 3
        report = mirrored(run, "web:", "--overwrite", code=1)
        assert counts(report) == (0, 0, 3)
        said = "it has the size and the time of disk:run"
        assert str(report["faults"]).count(said) == 3
        assert {method for method, *_ in server.asked} <= {"GET", "PROPFIND"}
    assert {path: path.stat().st_ino for path in before} == before


def test_files_of_others_on_a_server_are_replaced_if_that_is_asked_for(
    run: Runner, disk: Path, tmp_path: Path
) -> None:
    with webdav(tmp_path / "served") as server:
        other = server.folder / "dr1" / NAMES[0]
        other.parent.mkdir(parents=True)
        other.write_bytes(b"of somebody")
        run("store", "add", "web", server.url.replace("http", "dav"))
        assert counts(mirrored(run, "web:dr1", code=1)) == (2, 0, 1)
        assert other.read_bytes() == b"of somebody"
        assert counts(mirrored(run, "web:dr1", "--overwrite")) == (1, 2, 0)
        assert contents_of(server.folder / "dr1") == contents_of(disk)


@pytest.mark.skipif(not Path(NGINX).exists(), reason="needs nginx")
def test_nginx_that_leads_to_the_images_replaces_none(
    run: Runner, disk: Path, tmp_path: Path
) -> None:
    (folder := tmp_path / "nginx").mkdir()
    before = {path: path.stat() for path in disk.rglob("*.fits")}
    with nginx(folder) as running:
        (running.folder / "copies").symlink_to(disk)
        run("store", "add", "web", f"{running.url}/dav/copies".replace("http", "dav"))
        for more in ((), ("--overwrite",)):
            assert counts(mirrored(run, "web:", *more, code=1)) == (0, 0, 3)
    assert {path: path.stat().st_ino for path in before} == {
        path: found.st_ino for path, found in before.items()
    }


@pytest.mark.skipif(not Path(NGINX).exists(), reason="needs nginx")
def test_servers_that_cannot_be_written_to_say_why(run: Runner, disk: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "nginx").mkdir()
    with nginx(folder) as running:
        for name in ("json", "unnamed"):
            url = f"{running.url}/{name}".replace("http", "dav")
            run("store", "add", name, url)
        for name, said in (("json", "PUT"), ("unnamed", "MOVE")):
            assert f"takes no {said} here: 405" in mirrored_text(run, name)
        assert contents_of(running.folder) == {}


def test_an_xrootd_server_that_is_only_read_says_why(
    run: Runner, disk: Path, tmp_path: Path
) -> None:
    (folder := tmp_path / "xrootd").mkdir()
    with servers.xrootd(folder) as door:
        options = ("--option", f"door={door.url}", "--option", "anonymous=true")
        run("store", "add", "web", "root://archive.example", *options)
        assert "500 Internal Server Error, Unable to create" in mirrored_text(run, "web")
        assert contents_of(folder) == {}


def mirrored_text(run: Runner, place: str) -> str:
    report = mirrored(run, place, code=1)
    assert counts(report) == (0, 0, 3)
    return str(report["faults"][0]["reason"])
