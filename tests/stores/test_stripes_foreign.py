"""Disks and records of another stripe among the servers of one, and records of 0 bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.core.errors import NotFoundError, SwatheError
from tests.support.block_servers import block_server
from tests.support.fits_frames import Runner
from tests.support.stripes import files_below

COUNT = 4
OURS, THEIRS, NEW = (np.random.default_rng(seed).bytes(300_000) for seed in (1, 2, 3))


def add(name: str, roots: list[str], parity: int = 1) -> None:
    """Add a striped store over servers with these roots."""
    servers = [f"{name}{number}" for number in range(len(roots))]
    for server, root in zip(servers, roots, strict=True):
        swathe.stores.add(server, root)
    swathe.stores.add(name, "striped:", over=servers, parity=parity, block_bytes=65_536)


def put(tmp_path: Path, content: bytes, place: str) -> None:
    (tmp_path / "in").write_bytes(content)
    report = swathe.stores.copy_objects(tmp_path / "in", place, overwrite=True, progress=False)
    assert report.copied == 1, report.faults


def get(tmp_path: Path, place: str) -> bytes:
    report = swathe.stores.copy_objects(place, tmp_path / "out", overwrite=True, progress=False)
    assert report.copied == 1, report.faults
    return (tmp_path / "out").read_bytes()


def files_of(disk: Path) -> dict[Path, bytes]:
    """The files of a server, but for those that a block server keeps for itself."""
    return {path: path.read_bytes() for path in files_below(disk) if ".swathe" not in path.parts}


@pytest.fixture(params=["folders", pytest.param("block servers", marks=pytest.mark.more)])
def hosts(
    request: pytest.FixtureRequest, run: Runner, tmp_path: Path
) -> Iterator[dict[str, list[Path]]]:
    """The disks of `ours:` and `theirs:`. The second of ours is one of theirs."""
    folders = {
        name: [tmp_path / f"{name}{number}" for number in range(COUNT)]
        for name in ("ours", "theirs")
    }
    with ExitStack() as stack:
        for name, disks in folders.items():
            roots = []
            for disk in disks:
                disk.mkdir()
                if request.param == "folders":
                    roots.append(str(disk))
                else:
                    server = stack.enter_context(block_server(disk))
                    roots.append(server.url.replace("http", "dav", 1) + "/")
            add(name, roots)
        for name in ("a", "removed"):
            put(tmp_path, OURS, f"ours:{name}")
            put(tmp_path, THEIRS, f"theirs:{name}")
        put(tmp_path, THEIRS, "theirs:only-theirs")
        swathe.stores.remove_objects("theirs:removed")
        for path in files_of(folders["ours"][1]):
            path.unlink()
        for path in files_of(folders["theirs"][1]):
            shutil.copy(path, folders["ours"][1])
        # As a new process: this one compared the marks a moment ago.
        swathe.stores.remove("ours")
        servers = [f"ours{number}" for number in range(COUNT)]
        swathe.stores.add("ours", "striped:", over=servers, parity=1, block_bytes=131_072)
        yield folders


def test_a_disk_of_another_stripe_is_left_out_and_named(
    hosts: dict[str, list[Path]], tmp_path: Path, run: Runner
) -> None:
    files = files_of(hosts["ours"][1])
    assert get(tmp_path, "ours:a") == get(tmp_path, "ours:removed") == OURS
    listed = run.json("ls", "ours:")["objects"]
    assert [each["path"] for each in listed] == ["ours:a", "ours:removed"]
    with pytest.raises(NotFoundError):
        swathe.stores.remove_objects("ours:only-theirs")
    put(tmp_path, NEW, "ours:a")
    put(tmp_path, NEW, "ours:only-theirs")
    swathe.stores.remove_objects("ours:removed")
    assert get(tmp_path, "ours:a") == get(tmp_path, "ours:only-theirs") == NEW
    for command in ("check", "repair"):
        ran = run.ran("stripe", command, "ours")
        assert ran.code == 1
        assert "ours1:" in ran.err, ran.err
        assert "expected a server of stripe" in ran.err, ran.err
    status = swathe.stores.stripe_status("ours")
    assert [each.state for each in status.servers].count("unreachable") == 1
    assert "found one of stripe" in str(status.servers[1].why)
    assert files_of(hosts["ours"][1]) == files
    # An empty folder in its place is one of ours.
    for path in files:
        path.unlink()
    assert swathe.stores.repair_stripes("ours", deep=True, progress=False).failed == 0
    assert swathe.stores.check_stripes("ours", deep=True, progress=False).is_whole
    assert get(tmp_path, "theirs:a") == THEIRS


@pytest.mark.more
def test_records_of_block_servers_that_were_cut_to_nothing_are_mended(
    run: Runner, tmp_path: Path
) -> None:
    disks = [tmp_path / f"disk{number}" for number in range(3)]
    with ExitStack() as stack:
        roots = []
        for disk in disks:
            disk.mkdir()
            url = stack.enter_context(block_server(disk)).url
            roots.append(f"{url.replace('http', 'dav', 1)}/")
        add("ours", roots)

        def cut_records(name: str, count: int) -> None:
            for disk in disks[:count]:
                (disk / f"{name}.stripe").write_bytes(b"")

        put(tmp_path, OURS, "ours:a")
        cut_records("a", 2)
        check = run.ran("stripe", "check", "ours")
        assert check.code == 1
        assert "found 0 bytes" in check.err
        assert swathe.stores.repair_stripes("ours", progress=False).records == 2
        assert swathe.stores.check_stripes("ours", deep=True, progress=False).is_whole
        cut_records("a", 2)
        assert get(tmp_path, "ours:a") == OURS
        cut_records("a", 2)
        put(tmp_path, NEW, "ours:a")
        assert get(tmp_path, "ours:a") == NEW
        assert swathe.stores.check_stripes("ours", deep=True, progress=False).is_whole
        # Without any record it is lost, and can be written anew.
        cut_records("a", 3)
        with pytest.raises(SwatheError, match="found 0 bytes"):
            swathe.open("ours:a")
        put(tmp_path, OURS, "ours:a")
        assert get(tmp_path, "ours:a") == OURS
        # What is damaged in another way is no version, and is repaired, too.
        with (disks[0] / "a.stripe").open("r+b") as file:
            file.truncate(50)
        assert get(tmp_path, "ours:a") == OURS
        assert swathe.stores.repair_stripes("ours", progress=False).records == 1
