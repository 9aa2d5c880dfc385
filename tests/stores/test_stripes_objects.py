"""Objects of striped stores: put, cut, lose a server, check, repair, rebalance."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.core.errors import NoSuchStoreError, OptionError, SourceError, SwatheError
from swathe.stores import stripes
from swathe.stores.stripe_reports import DiskSpace, ServerStatus, Space, StripeStatus, space_of
from tests.support.block_servers import block_server
from tests.support.fits_frames import Runner, contents, noise
from tests.support.stripes import SERVERS, add_stripe, files_below
from tests.support.webdav_server import webdav

BOX = (7, 30, 100, 80)


@pytest.fixture
def disks(run: Runner, tmp_path: Path) -> list[Path]:
    """The folders of the five servers of the store `wide`."""
    return add_stripe(tmp_path)


@pytest.fixture
def frames(disks: list[Path], tmp_path: Path, run: Runner) -> list[Path]:
    """Three frames, put into `wide:dr17/`."""
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(3):
        (folder / f"frame-{number}.fits").write_bytes(contents(noise(number), "fit"))
    run("put", "-r", folder, "wide:dr17/")
    return sorted(folder.iterdir())


def assert_cuts(frames: list[Path]) -> None:
    """Cuts of all frames are what astropy reads from the files."""
    x, y, width, height = BOX
    for path in frames:
        with fits.open(path) as hdus:
            expected = hdus[0].data[y : y + height, x : x + width]
        found = swathe.cut(f"wide:dr17/{path.name}", box=BOX)
        np.testing.assert_array_equal(found.data, expected)


def part_of(disk: Path, name: str) -> Path:
    """The part of an object on a server."""
    (part,) = [path for path in files_below(disk) if f"/{name}.stripe." in str(path)]
    return part


def test_objects_go_there_and_back(
    frames: list[Path], disks: list[Path], run: Runner, tmp_path: Path
) -> None:
    assert_cuts(frames)
    names = [f"wide:dr17/{path.name}" for path in frames]
    listed = run.json("ls", "-r", "wide:")["objects"]
    assert [(each["path"], each["size"]) for each in listed] == [
        (name, path.stat().st_size) for name, path in zip(names, frames, strict=True)
    ]
    assert run.json("stat", names[0])["objects"][0]["size"] == frames[0].stat().st_size
    run("get", "-r", "wide:dr17", tmp_path / "back")
    for path in frames:
        assert (tmp_path / "back" / path.name).read_bytes() == path.read_bytes()
    sizes = [sum(path.stat().st_size for path in files_below(disk)) for disk in disks]
    assert max(sizes) < 1.1 * min(sizes)
    run("rm", *names)
    assert run.json("ls", "wide:")["objects"] == []


def test_a_name_with_a_line_feed_forges_no_line(disks: list[Path], run: Runner) -> None:
    name = "wide:a\nswathe: all is well"
    (disks[0] / "in").write_bytes(b"content" * 1000)
    swathe.stores.copy_objects(disks[0] / "in", name, progress=False)
    for disk in disks[:2]:
        next(disk.glob("*.stripe.*")).unlink()
    for words in (("ls", "wide:"), ("stat", name), ("stripe", "check", "wide")):
        ran = run.ran(*words)
        lines = f"{ran.out}{ran.err}".splitlines()
        assert any("a\\nswathe: all is well" in line for line in lines), words
        assert not any(line.startswith("swathe: all") for line in lines), words
    ran = run.ran("get", name, disks[0] / "out")
    assert not any(line.startswith("swathe: all") for line in ran.err.splitlines())
    ran = run.ran("stat", f"{name} but for this")
    assert ran.err.startswith("swathe: ") and "\n  swathe: all is well" in ran.err


def test_an_empty_record_is_repaired(disks: list[Path], run: Runner) -> None:
    (disks[0] / "in").write_bytes(b"content" * 1000)
    swathe.stores.copy_objects(disks[0] / "in", "wide:object", progress=False)
    for disk in disks[:4]:
        (disk / "object.stripe").write_bytes(b"")
    ran = run.ran("stripe", "check", "wide")
    assert ran.code == 1
    assert "record on disk-a: damaged (the record: expected its header, found 0 bytes)" in ran.err
    assert swathe.stores.repair_stripes("wide", progress=False).records == 4
    assert swathe.stores.check_stripes("wide", deep=True, progress=False).is_whole
    for disk in disks[:4]:
        (disk / "object.stripe").write_bytes(b"")
    # A reader gives the record of a minority to the others.
    assert swathe.stores.stat_object("wide:object").size == 7000
    assert swathe.stores.check_stripes("wide", deep=True, progress=False).is_whole


def test_the_status_names_each_server(frames: list[Path], run: Runner) -> None:
    status = swathe.stores.stripe_status("wide")
    assert (status.data, status.parity, status.block_bytes, status.lost_count) == (4, 1, 4096, 0)
    assert [each.server for each in status.servers] == [f"{name}:" for name in SERVERS]
    assert {(each.parts, each.records) for each in status.servers} == {(3, 3)}
    out = run("stripe", "status", "wide")
    assert "4 data + 1 parity, blocks of 4 KiB" in out
    assert run.json("stripe", "status", "wide")["servers"][0]["is_reachable"] is True


def test_the_status_tells_room_and_disks(tmp_path: Path, run: Runner) -> None:
    disks = [tmp_path / "disk-1", tmp_path / "disk-2"]
    other = tmp_path / "other"
    for folder in (*disks, other):
        folder.mkdir()
    with block_server(*disks) as server:
        run("store", "add", "lab", "striped:", "--over", server.url, "--over", other)
        of_server, of_folder = swathe.stores.stripe_status("lab").servers
        assert of_server.space and of_folder.space and of_folder.space.total_bytes
        assert of_folder.space.free_bytes is not None
        assert 0 < of_folder.space.free_bytes < of_folder.space.total_bytes
        assert of_folder.space.disks == []
        assert [disk.name for disk in of_server.space.disks] == [str(disk) for disk in disks]
        assert of_server.space.free_bytes == sum(
            disk.free_bytes or 0 for disk in of_server.space.disks
        )
        disks[1].rename(tmp_path / "away")
        out = run("stripe", "status", "lab", code=1)
        assert f"disk {disks[1]}: missing" in out
        assert re.search(rf"disk {disks[0]}: \S+ \w+ of \S+ \w+ free", out)


@pytest.mark.parametrize(
    ("free", "total", "expected"),
    [
        (3, 9, (3, 9)),
        (0, 0, (0, 0)),
        (7, None, (7, None)),
        (9, 3, (None, None)),
        (2**64 - 1, 1, (None, None)),
        (2**63 - 1, None, (None, None)),
        (2**63 - 1, 2**63, (None, None)),
    ],
)
def test_impossible_room_is_unknown(
    free: int, total: int | None, expected: tuple[int | None, int | None]
) -> None:
    space = space_of({"free_bytes": free, "total_bytes": total, "disks": []})
    assert (space.free_bytes, space.total_bytes) == expected
    disks = [
        {"name": "b", "is_up": True, "free_bytes": free, "total_bytes": total},
        {"name": "a", "is_up": True, "free_bytes": 10, "total_bytes": 20},
        {"name": "c", "is_up": False, "free_bytes": 0, "total_bytes": 0},
    ]
    space = space_of({"free_bytes": 10, "total_bytes": 20, "disks": disks})
    assert space.disks[:2] == [DiskSpace("a", True, 10, 20), DiskSpace("b", True, *expected)]
    assert (space.free_bytes is None) == (expected[0] is None)


def test_the_status_has_a_line_for_a_disk_of_any_name(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = [
        DiskSpace("/a\nb\x1b[31m", True, None, None),
        DiskSpace("/c", True, 1024, 4096),
        DiskSpace("/d", False, 0, 0),
    ]
    space = Space(None, None, disks)
    server = ServerStatus("lab:", "dav://lab", True, None, 0, 0, 0, space, "no\nroom")
    status = StripeStatus("wide", 1, 0, 4096, [server])
    monkeypatch.setattr(swathe.stores, "stripe_status", lambda _name: status)
    out, err = run.told("stripe", "status", "wide")
    assert out.splitlines()[2:5] == [
        r"lab disk /a\nb\x1b[31m: room unknown",
        "lab disk /c: 1 KiB of 4 KiB free",
        "lab disk /d: missing",
    ]
    assert err == "lab: no\\nroom\n"
    assert run.json("stripe", "status", "wide")["servers"][0]["space"]["free_bytes"] is None


def test_a_lost_server_is_repaired(frames: list[Path], disks: list[Path], run: Runner) -> None:
    whole = swathe.stores.check_stripes("wide")
    assert whole.is_whole and (whole.objects, whole.whole) == (3, 3)
    shutil.rmtree(disks[2])
    disks[2].mkdir()
    assert_cuts(frames)
    checked = run.json("stripe", "check", "wide", code=1)
    assert (checked["objects"], checked["incomplete"], checked["lost"]) == (3, 3, 0)
    for each in checked["checks"]:
        states = {part["server"]: part["state"] for part in each["parts"]}
        assert states.pop("disk-c:") == "missing"
        assert set(states.values()) == {"whole"}
    repaired = run.json("stripe", "repair", "wide")
    assert (repaired["repairs"], repaired["parts"], repaired["records"]) == (3, 3, 3)
    assert repaired["written_bytes"] > 0 and repaired["failed"] == 0
    assert run.json("stripe", "check", "wide", "--deep")["whole"] == 3
    shutil.rmtree(disks[4])
    disks[4].mkdir()
    assert_cuts(frames)


def test_a_repair_skips_what_is_whole(frames: list[Path], disks: list[Path], run: Runner) -> None:
    part_of(disks[0], "frame-1.fits").unlink()
    first = swathe.stores.repair_stripes("wide", threads=1)
    assert (first.skipped, first.repairs, first.parts, first.records) == (2, 1, 1, 0)
    assert "3 were whole" in run("stripe", "repair", "wide")


def test_a_flipped_byte_is_seen_and_repaired(
    frames: list[Path], disks: list[Path], run: Runner
) -> None:
    part = part_of(disks[3], "frame-0.fits")
    content = bytearray(part.read_bytes())
    content[9000] ^= 1
    part.write_bytes(content)
    assert_cuts(frames)
    report = swathe.stores.check_stripes("wide:dr17", deep=True)
    (check,) = report.checks
    assert check.path == "wide:dr17/frame-0.fits" and check.is_readable
    (fault,) = check.faults
    assert (fault.server, fault.state, fault.damage_starts) == (
        "disk-d:",
        "damaged",
        [9000 // 512 * 512],
    )
    out, err = run.told("stripe", "check", "wide", "--deep", code=1)
    assert "wide:dr17/frame-0.fits: incomplete, readable: part on disk-d: damaged" in err
    assert "checked 3 objects: 2 whole, 1 incomplete but readable" in out
    assert run.json("stripe", "repair", "wide", "--deep")["repairs"] == 1
    assert swathe.stores.check_stripes("wide", deep=True).is_whole


@pytest.mark.parametrize("name", [".secret.fits", ".d/a.fits"])
def test_hidden_names_are_repaired_and_rebalanced(
    frames: list[Path], disks: list[Path], run: Runner, name: str
) -> None:
    run("put", frames[0], f"wide:dr17/{name}")
    part_of(disks[3], name).unlink()
    (check,) = swathe.stores.check_stripes("wide:dr17").checks
    assert check.path == f"wide:dr17/{name}"
    assert swathe.stores.repair_stripes("wide").repairs == 1
    assert swathe.stores.check_stripes("wide").is_whole
    part_of(disks[3], name).unlink()
    assert swathe.stores.rebalance_stripes("wide").copied == 1
    assert swathe.stores.check_stripes("wide").is_whole
    listed = [each.path for each in swathe.stores.list_objects("wide:")]
    assert not any("/." in path for path in listed)


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_rebalance_is_refused_without_a_disk_that_is_away(
    frames: list[Path], disks: list[Path], run: Runner, is_empty: bool
) -> None:
    away = disks[3].with_name("away")
    disks[3].rename(away)
    if is_empty:
        disks[3].mkdir()  # its mount point
    with pytest.raises(SourceError, match=rf"expected all 5 servers, .*found {disks[3].name}: "):
        swathe.stores.rebalance_stripes("wide:dr17")
    if is_empty:
        disks[3].rmdir()
    away.rename(disks[3])
    assert swathe.stores.check_stripes("wide").is_whole


@pytest.mark.parametrize("place", ["dav://127.0.0.1:9/x", "none"])
def test_a_rebalance_needs_the_servers_that_are_added(
    frames: list[Path], disks: list[Path], tmp_path: Path, place: str
) -> None:
    over = [*map(str, disks), place if "://" in place else str(tmp_path / place)]
    swathe.stores.remove("wide")
    swathe.stores.add("wide", "striped:", over=over, block_bytes=4096)
    found = place.removeprefix("dav://")
    with pytest.raises(SourceError, match=rf"wide: expected all 6 servers, .*, found .*{found}"):
        swathe.stores.rebalance_stripes("wide", progress=False)
    swathe.stores.remove("wide")
    swathe.stores.add("wide", "striped:", over=over[:5], block_bytes=4096)
    assert swathe.stores.check_stripes("wide", deep=True).is_whole


def test_damaged_checksums_of_records_are_seen_and_repaired(
    frames: list[Path], disks: list[Path], run: Runner
) -> None:
    records = [next(disk.rglob("frame-0.fits.stripe")) for disk in disks]
    written = records[0].read_bytes()
    for record in records[:2]:
        record.write_bytes(written[:-10] + bytes([written[-10] ^ 1]) + written[-9:])
    records[2].unlink()
    assert_cuts(frames)
    (check,) = swathe.stores.check_stripes("wide:dr17", deep=True).checks
    states = {each.server: each.state for each in check.records}
    assert states == dict(
        zip(
            [f"{name}:" for name in SERVERS],
            ["damaged", "damaged", "missing", "whole", "whole"],
            strict=True,
        )
    )
    assert run.json("stripe", "repair", "wide", "--deep")["records"] == 3
    assert {record.read_bytes() for record in records} == {written}
    for record in records:
        record.write_bytes(written[:-10] + bytes([written[-10] ^ 1]) + written[-9:])
    records[4].unlink()
    out, err = run.told("stripe", "repair", "wide", code=1)
    assert "1 failed" in out
    assert "expected checksums of CRC-32" in err


def test_one_object_that_is_lost_does_not_stop_the_others(
    frames: list[Path], disks: list[Path], run: Runner
) -> None:
    for disk in disks[:2]:
        part_of(disk, "frame-1.fits").unlink()
    part_of(disks[4], "frame-2.fits").unlink()
    report = swathe.stores.check_stripes("wide")
    assert (report.whole, report.incomplete, report.lost) == (1, 1, 1)
    out, err = run.told("stripe", "repair", "wide", code=1)
    assert "repaired 1 object: 1 part, 0 records" in out and "1 failed" in out
    assert err.startswith("wide:dr17/frame-1.fits: ")
    with pytest.raises(SwatheError, match=r"frame-1"):
        swathe.cut("wide:dr17/frame-1.fits", box=BOX)
    assert_cuts([frames[0], frames[2]])


def test_what_cannot_be_checked_is_counted_and_named(
    frames: list[Path], disks: list[Path], run: Runner
) -> None:
    """All records of two objects are damaged; the parts of one are whole."""
    for disk in disks:
        for name in ("frame-1.fits", "frame-2.fits"):
            (disk / "dr17" / f"{name}.stripe").write_bytes(b"not a record")
    part_of(disks[0], "frame-1.fits").unlink()
    out, err = run.told("stripe", "check", "wide", code=1)
    assert "checked 3 objects: 1 whole, 2 could not be checked; in " in out
    assert all(f"wide:dr17/frame-{at}.fits: expected answers of 3 of 5" in err for at in (1, 2))
    assert "striped://" not in err
    report = run.json("stripe", "check", "wide", code=1)
    assert (report["objects"], report["whole"], report["failed"]) == (3, 1, 2)
    _, err = run.told("stripe", "repair", "wide", code=1)
    assert "striped://" not in err


def test_records_suffice_on_one_server(frames: list[Path], disks: list[Path]) -> None:
    for disk in disks[1:]:
        for path in files_below(disk):
            if path.name.endswith(".stripe"):
                path.unlink()
    report = swathe.stores.repair_stripes("wide")
    assert (report.repairs, report.parts, report.records) == (3, 0, 12)
    assert_cuts(frames)


def test_leftovers_are_listed_and_removed(
    frames: list[Path], disks: list[Path], run: Runner
) -> None:
    part = part_of(disks[0], "frame-0.fits")
    # The number of a version is the time at which it was begun.
    leftover = part.with_name(re.sub(r"^frame-0(.*stripe\.)\d+", r"other\g<1>1", part.name))
    leftover.write_bytes(b"x" * 100)
    young = part.with_name(part.name.replace("frame-0", "young"))
    young.write_bytes(b"y" * 50)
    report = swathe.stores.check_stripes("wide")
    assert [(each.server, each.bytes) for each in report.leftovers] == [
        ("disk-a:", 100),
        ("disk-a:", 50),
    ]
    assert report.is_whole
    assert "2 parts of 150 B that belong" in run.told("stripe", "check", "wide")[1]
    with pytest.raises(OptionError, match="expected the whole store wide, found a part of it"):
        swathe.stores.repair_stripes("wide:dr17", remove_leftovers=True)
    run("stripe", "repair", "wide:dr17")
    run("stripe", "repair", "wide", "--keep-leftovers")
    assert leftover.exists()
    run("stripe", "repair", "wide")
    assert not leftover.exists()
    assert young.exists(), "a write may go on"
    leftover.write_bytes(b"x" * 100)
    moved = swathe.stores.rebalance_stripes("wide", progress=False)
    assert moved.notes == ["removed 1 part that belonged to no object"]
    assert not leftover.exists()
    assert_cuts(frames)


def test_objects_move_to_the_servers_of_now(
    frames: list[Path], disks: list[Path], run: Runner
) -> None:
    swathe.stores.remove("wide")
    swathe.stores.add("wide", "striped:", over=SERVERS, parity=2, block_bytes=4096)
    assert_cuts(frames)
    out = run.json("stripe", "rebalance", "wide")
    assert (out["copied"], out["skipped"], out["failed"]) == (3, 0, 0)
    again = swathe.stores.rebalance_stripes("wide")
    assert (again.copied, again.skipped) == (0, 3)
    assert swathe.stores.check_stripes("wide", deep=True).is_whole
    for disk in disks[:2]:
        shutil.rmtree(disk)
        disk.mkdir()
    assert_cuts(frames)


@pytest.mark.more
def test_a_rebalance_that_is_killed_loses_nothing(disks: list[Path], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    contents_of = {f"{number:02}": os.urandom(500_000 + number) for number in range(60)}
    for name, content in contents_of.items():
        (tmp_path / "in" / name).write_bytes(content)
    swathe.stores.copy_objects(tmp_path / "in", "wide:d", recursive=True, progress=False)
    swathe.stores.remove("wide")
    swathe.stores.add("wide", "striped:", over=SERVERS, parity=2, block_bytes=4096)
    for number in range(4):
        command = [sys.executable, "-m", "swathe.cli", "stripe", "rebalance", "wide"]
        rebalance = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(0.8 + 0.3 * number)
        rebalance.kill()
        rebalance.wait()
        check = swathe.stores.check_stripes("wide", progress=False)
        assert (check.objects, check.lost, check.faults) == (60, 0, [])
    report = swathe.stores.rebalance_stripes("wide", progress=False)
    assert (report.copied + report.skipped, report.failed) == (60, 0)
    assert swathe.stores.repair_stripes("wide", progress=False).failed == 0
    assert swathe.stores.check_stripes("wide", deep=True, progress=False).is_whole
    fs = swathe.fs()
    assert {name: fs.cat(f"wide/d/{name}") for name in contents_of} == contents_of


@pytest.mark.more  # a server that does not answer is asked again and again
def test_folders_and_urls_are_servers_without_a_name(run: Runner, tmp_path: Path) -> None:
    """Also by WebDAV, where the server of one does not answer."""
    (tmp_path / "in").write_bytes(b"content" * 5000)
    with webdav(tmp_path / "dav") as dav:
        over = [str(tmp_path / "disk 1"), str(tmp_path / "disk:2"), dav.url]
        for folder in over[:2]:
            Path(folder).mkdir()
        swathe.stores.add("wide", "striped:", over=over, block_bytes=4096)
        run("put", tmp_path / "in", "wide:d/a")
        (tmp_path / "disk 1" / "d" / "a.stripe").unlink()
        assert run.json("stripe", "repair", "wide")["records"] == 1
        folders = [Path(over[0]), Path(over[1]), dav.folder]
        for each in folders:
            assert "a.stripe" in {path.name for path in files_below(each)}
        names = [each.server for each in swathe.stores.stripe_status("wide").servers]
        assert names[:2] == [f"{tmp_path}/disk%201:", f"{tmp_path}/disk%3A2:"]
        assert run.json("stripe", "rebalance", "wide")["skipped"] == 1
        url = dav.url
    swathe.stores.remove("wide")
    swathe.stores.add("wide", "striped:", over=[url, *over[:2]], block_bytes=4096)
    assert swathe.fs().cat("wide/d/a") == b"content" * 5000
    out, err = run.told("stripe", "status", "wide", code=1)
    assert "no answer" in out or "unreachable" in out
    (check,) = run.json("stripe", "check", "wide", code=1)["checks"]
    assert check["is_readable"]
    assert "unreachable" in {each["state"] for each in check["parts"]}
    out, err = run.told("stripe", "repair", "wide", code=1)
    assert "1 failed" in out and "unreachable" in err


def test_plain_stores_are_refused(disks: list[Path], run: Runner) -> None:
    for call in (
        swathe.stores.stripe_status,
        swathe.stores.check_stripes,
        swathe.stores.repair_stripes,
        swathe.stores.rebalance_stripes,
    ):
        with pytest.raises(OptionError, match="disk-a: expected a striped store, found file://"):
            call("disk-a")
        with pytest.raises(NoSuchStoreError):
            call("nowhere")
    with pytest.raises(ValueError, match="threads: expected 1 to 64"):
        swathe.stores.check_stripes("wide", threads=0)
    assert "expected a striped store" in run("stripe", "check", "disk-b", code=2)
    assert swathe.stores.check_stripes("wide").is_whole  # nothing in it


def test_order_and_errors_of_many_objects() -> None:
    def work(name: str) -> str:
        if name == "7":
            raise OptionError("seven")
        return name * 2

    names = [str(number) for number in range(50)]
    outcomes = dict(stripes._each_object("checking", names, work, 3, False))
    assert list(outcomes) == names
    assert isinstance(outcomes.pop("7"), OptionError)
    assert all(outcome == name * 2 for name, outcome in outcomes.items())


@contextmanager
def bar_of(shown: list[tuple[int, int, bool]], total: int, are_bytes: bool) -> Iterator[object]:
    """Note what a bar shows."""
    yield lambda done: shown.append((done, total, are_bytes))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_one_object_is_seen_to_move(
    disks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    (tmp_path / "in").write_bytes(b"content" * 1000)
    shown: list[tuple[int, int, bool]] = []

    def bar(_label: str, _is_shown: bool, total: int, *, are_bytes: bool = False) -> object:
        return bar_of(shown, total, are_bytes)

    monkeypatch.setattr("swathe.stores.copies.can_show_progress", lambda: is_terminal)
    monkeypatch.setattr("swathe.stores.copies.progress_bar", bar)
    for pair in ((tmp_path / "in", "wide:object"), ("wide:object", tmp_path / "out")):
        shown.clear()
        swathe.stores.copy_objects(*pair)
        assert shown[-1] == ((7000, 7000, True) if is_terminal else (1, 1, False))
    faults = swathe.stores.copy_objects("wide:none", tmp_path / "other").faults
    assert [fault.kind for fault in faults] == ["NotFoundError"]
