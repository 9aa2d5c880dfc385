"""Servers of striped stores that hang, have no end, are one place, or are gone."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.core.errors import SourceError
from swathe.stores.listing import ListedObject
from tests.support.block_servers import block_server
from tests.support.fits_frames import Runner
from tests.support.scripted_servers import Handler, hanging_server, serving
from tests.support.servers import free_port
from tests.support.stripes import add_stripe

BODY = b"x" * 50_000


@pytest.fixture
def body(tmp_path: Path) -> Path:
    """A file to put."""
    path = tmp_path / "body"
    path.write_bytes(BODY)
    return path


def servers_of(run: Runner, name: str, code: int = 1) -> list[tuple[str, str]]:
    """Return the state of each server, and what is wrong with it."""
    status = run.json("stripe", "status", name, code=code)
    return [(each["state"], each["why"] or "") for each in status["servers"]]


def test_a_server_that_hangs_is_left_out(run: Runner, tmp_path: Path, body: Path) -> None:
    add_stripe(tmp_path, servers=3)
    run("put", body, "wide:a/")
    for name in ("wide", "disk-c"):
        swathe.stores.remove(name)
    with hanging_server() as host:
        swathe.stores.add("disk-c", f"dav://{host}")
        over = ["disk-a", "disk-b", "disk-c"]
        swathe.stores.add("wide", "striped:", over=over, block_bytes=4096)
        notes: list[str] = []
        listed = list(swathe.stores.list_objects("wide:", notes=notes))
        sizes = [(each.path, each.size) for each in listed if isinstance(each, ListedObject)]
        assert sizes == [("wide:a/body", len(BODY))] and len(listed) == 1
        assert len(notes) == 1 and "no answer" in notes[0]
        assert "note: striped://wide" in run.told("ls", "wide:")[1]
        states = servers_of(run, "wide")
        assert [state for state, _ in states] == ["reachable", "reachable", "no answer"]
        checked = swathe.stores.check_stripes("wide", progress=False)
        (check,) = checked.checks
        assert {each.state for each in check.parts} == {"whole", "unreachable"}
        one = swathe.stores.stripes.server_status("wide", "disk-c:")
        assert one is not None and one.state == "no answer"


class EndlessTree(Handler):
    """Has eight folders in each folder."""

    def do_PROPFIND(self) -> None:
        """Answer with the folder, and the folders in it."""
        self.taken()
        path = self.path.rstrip("/")
        paths = [f"{path}/", *(f"{path}/f{number}/" for number in range(8))]
        kind = (
            "<propstat><prop><resourcetype><collection/></resourcetype></prop>"
            "<status>HTTP/1.1 200 OK</status></propstat>"
        )
        inner = "".join(f"<response><href>{each}</href>{kind}</response>" for each in paths)
        content = f'<multistatus xmlns="DAV:">{inner}</multistatus>'.encode()
        self.answer(207, content, {"Content-Type": "application/xml"})


def test_a_tree_without_end_is_an_error(run: Runner, tmp_path: Path) -> None:
    with serving(EndlessTree) as url:
        root = url.replace("http:", "dav:")
        swathe.stores.add("endless", root)
        why = "expected paths of at most 1000 bytes, found 100 folders with longer ones"
        with pytest.raises(SourceError, match=why):
            list(swathe.stores.list_objects("endless:"))
        over = [str(tmp_path / "one"), str(tmp_path / "two"), root]
        swathe.stores.add("wide", "striped:", over=over)
        state, reason = servers_of(run, "wide")[2]
        assert state == "unreachable" and why in reason


def test_two_names_of_one_place_are_refused(run: Runner, tmp_path: Path, body: Path) -> None:
    (tmp_path / "disk").mkdir()
    with block_server(tmp_path / "disk") as server:
        port = server.url.rpartition(":")[2]
        urls = [f"dav://{host}:{port}/dup" for host in ("127.0.0.1", "localhost")]
        swathe.stores.add("dup", "striped:", over=[*urls, str(tmp_path / "one")])
        assert "the same place as" in run.told("stripe", "status", "dup")[1]
        failure = run.told("put", body, "dup:", code=1)[1]
        assert "expected servers apart from each other" in failure
        assert "which are the same disks" in failure
        assert not list((tmp_path / "disk").rglob("*.stripe*"))
        # Two folders of it are two places.
        apart = [urls[0], urls[1].replace("/dup", "/other")]
        swathe.stores.add("apart", "striped:", over=apart)
        run("put", body, "apart:")


def test_a_folder_that_is_gone_is_not_made_again(run: Runner, tmp_path: Path, body: Path) -> None:
    folders = add_stripe(tmp_path, servers=4)
    run("put", body, "wide:a")
    shutil.rmtree(folders[1])
    state, reason = servers_of(run, "wide")[1]
    assert state == "missing" and "expected the folder of a server, found none" in reason
    run("put", body, "wide:b")
    assert not folders[1].exists()
    shutil.rmtree(folders[2])
    failure = run.told("put", body, "wide:c", code=1)[1]
    assert "expected answers of 3 of 4 servers, found 2" in failure and str(folders[2]) in failure
    assert not folders[1].exists() and not folders[2].exists()
    names = itertools.chain.from_iterable(folder.rglob("c.*") for folder in folders)
    assert not list(names)
    folders[1].mkdir()
    folders[2].mkdir()
    states = [state for state, _ in servers_of(run, "wide")]
    assert states == ["reachable", "missing", "missing", "reachable"]
    for command in ("repair", "rebalance"):
        failure = run.told("stripe", command, "wide", code=3)[1]
        assert "expected at most 1 of 4 servers to be empty or away, found 2: " in failure
    time.sleep(1)  # for so long it is known that they are not there
    failure = run.told("put", body, "wide:c", code=1)[1]
    assert failure.count("found no folder or one without records") == 2
    # They are lost, and the user says so.
    for folder in folders[1:3]:
        shutil.copy(folders[0] / ".swathe-stripe", folder)
    assert {state for state, _ in servers_of(run, "wide", code=0)} == {"reachable"}
    time.sleep(1)  # for so long it is known that they were empty
    run("put", body, "wide:c")


def test_a_store_whose_disks_are_all_away_is_not_empty(
    run: Runner, tmp_path: Path, body: Path
) -> None:
    """The catalogue remembers which stripe it is, so empty mount points are not a new store."""
    disks = add_stripe(tmp_path, servers=3)
    (store,) = (each for each in swathe.stores.list() if each.name == "wide")
    assert store.stripe is None
    run("put", body, "wide:a/")
    run.ran("dataset", "add", "objects", "wide:")  # its object is no FITS
    (store,) = (each for each in swathe.stores.list() if each.name == "wide")
    assert store.stripe is not None
    away = tmp_path / "away"
    away.mkdir()
    for disk in disks:
        disk.rename(away / disk.name)
        disk.mkdir()
    for command in (
        ("ls", "wide:"),
        ("get", "wide:a/body", tmp_path / "back"),
        ("put", body, "wide:b"),
        ("rm", "wide:a/body"),
        ("stripe", "check", "wide"),
        ("stripe", "repair", "wide"),
        ("dataset", "sync", "objects"),
    ):
        ran = run.ran(*command)
        assert ran.code != 0 and "mount" in ran.err + ran.out, command
    assert {state for state, _ in servers_of(run, "wide")} == {"missing"}
    assert not any(list(disk.iterdir()) for disk in disks)
    for disk in disks:
        disk.rmdir()
        (away / disk.name).rename(disk)
    time.sleep(1)  # for so long it is known that they were empty
    run("get", "wide:a/body", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == BODY
    # A store that is added anew may be new.
    run("dataset", "remove", "objects")
    swathe.stores.remove("wide")
    for disk in disks:
        shutil.rmtree(disk)
        disk.mkdir()
    swathe.stores.add("wide", "striped:", over=["disk-a", "disk-b", "disk-c"])
    run("put", body, "wide:a/")


def test_exchanged_disks_are_told(run: Runner, tmp_path: Path) -> None:
    folders = add_stripe(tmp_path, servers=3)
    image = tmp_path / "image.fits"
    fits.writeto(image, np.arange(40_000, dtype="i2").reshape(200, 200))
    run("put", image, "wide:")
    other = tmp_path / "other"
    folders[0].rename(other)
    folders[1].rename(folders[0])
    other.rename(folders[1])
    moved = "were their disks exchanged?"
    assert run.told("get", "wide:image.fits", tmp_path / "back.fits")[1].count(moved) == 2
    assert (tmp_path / "back.fits").read_bytes() == image.read_bytes()
    cut = tmp_path / "cut.fits"
    # A process that knows the folders keeps them open, wherever they are.
    words = ["cut", "wide:image.fits", "--box", "5 6 190 180", "-o", str(cut)]
    done = subprocess.run(
        [sys.executable, "-m", "swathe.cli", *words], capture_output=True, text=True, check=True
    )
    assert moved in done.stderr
    assert (fits.getdata(cut) == fits.getdata(image)[6:186, 5:195]).all()
    out, told = run.told("stripe", "check", "wide")
    assert "1 whole" in out and "1 object: parts on other servers" in told and moved in told
    report = run.json("stripe", "check", "wide")
    assert report["moves"] == 1 and moved in report["first_move"]


def test_one_folder_under_two_names_is_refused(run: Runner, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "again", "two")]
    for folder in folders:
        folder.mkdir()
    bind = ["mount", "--bind", str(folders[0]), str(folders[1])]
    if subprocess.run(bind, capture_output=True).returncode:
        pytest.skip("a folder cannot be mounted here")
    try:
        over = list(itertools.chain.from_iterable(("--over", folder) for folder in folders))
        failure = run.told("store", "add", "twice", "striped:", *over, code=2)[1]
    finally:
        subprocess.run(["umount", str(folders[1])], check=True)
    assert "which are the same folder" in failure


def test_a_listing_without_a_server_is_told(run: Runner, tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"s{number}").mkdir()
    over = [str(tmp_path / "s0"), str(tmp_path / "s1"), f"dav://127.0.0.1:{free_port()}"]
    swathe.stores.add("new", "striped:", over=over)
    for command in ("check", "repair"):
        assert "listed without" in run.told("stripe", command, "new")[1], command
