"""Objects are listed, copied, verified and removed, in folders, buckets and on servers."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import swathe
from swathe.core.errors import (
    NoSuchStoreError,
    NotFoundError,
    OptionError,
    OutputError,
)
from swathe.stores.copies import CopyReport
from swathe.stores.listing import ListedObject, UnlistedObject
from swathe.stores.objects import SubFolder
from tests.support import servers
from tests.support.block_servers import block_server
from tests.support.fits_frames import Runner
from tests.support.scripted_servers import Handler, serving
from tests.support.webdav_server import webdav

CONTENT = {
    "a.fits": b"first" * 1000,
    "dr1/b & +%20ü.fits": b"second" * 3000,
    "dr1/deep/c.fits": os.urandom(100_000),
    "dr1/deep/notes.txt": b"",
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    for name, content in CONTENT.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.fixture(params=["folder", "webdav", "block-server", "s3"])
def store(
    request: pytest.FixtureRequest, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A store that can be written."""
    with ExitStack() as stack:
        options: tuple[str, ...] = ()
        if request.param == "folder":
            root = str(tmp_path / "store")
            Path(root).mkdir()
        elif request.param == "webdav":
            (tmp_path / "dav").mkdir()
            root = stack.enter_context(webdav(tmp_path / "dav")).url.replace("http", "dav", 1)
        elif request.param == "block-server":
            disks = [tmp_path / "disk-a", tmp_path / "disk-b"]
            for disk in disks:
                disk.mkdir()
            root = stack.enter_context(block_server(*disks)).url.replace("http", "dav", 1)
        else:
            (tmp_path / "s3" / "wide").mkdir(parents=True)
            s3 = stack.enter_context(servers.s3s_fs(tmp_path / "s3"))
            for name, value in s3.environment.items():
                monkeypatch.setenv(name, value)
            root = "s3://wide/top"
        run("store", "add", "wide", root, *options)
        yield "wide"


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.usefixtures("store")
def test_files_go_to_a_store_and_back(files: Path, tmp_path: Path, run: Runner) -> None:
    report = swathe.stores.copy_objects(files, "wide:x", recursive=True, progress=False)
    assert (report.copied, report.failed, report.bytes) == (4, 0, sum(map(len, CONTENT.values())))
    found = swathe.stores.list_objects("wide:x")
    names = {each.path: each.size for each in found if isinstance(each, ListedObject)}
    assert names == {f"wide:x/{name}": len(content) for name, content in CONTENT.items()}
    back = swathe.stores.copy_objects("wide:x/", tmp_path / "back", recursive=True, progress=False)
    assert back.copied == 4
    assert digests(tmp_path / "back") == digests(files)
    status = swathe.stores.stat_object("wide:x/a.fits")
    assert status.size == len(CONTENT["a.fits"])
    assert str(status.size) in run("stat", "wide:x/a.fits").replace(",", "")
    assert swathe.stores.remove_objects(["wide:x/a.fits"]) == 1
    with pytest.raises(NotFoundError):
        swathe.stores.stat_object("wide:x/a.fits")
    with pytest.raises(NotFoundError, match=r"a\.fits"):
        swathe.stores.remove_objects("wide:x/a.fits")


@pytest.mark.usefixtures("store")
def test_the_commands_say_what_they_did(files: Path, tmp_path: Path, run: Runner) -> None:
    text = run("put", files / "a.fits", "wide:")
    assert text.startswith("copied 1 object, 4.883 KiB, in ")
    run("put", "-r", files / "dr1", "wide:dr1")
    lines = run("ls", "wide:").splitlines()
    assert [line.split()[-1] for line in lines] == ["wide:a.fits", "wide:dr1/"]
    assert "3 objects" in lines[1]
    assert lines[0].index("wide:") == lines[1].index("wide:"), "names are below each other"
    assert len(run("ls", "-r", "wide:", "--pattern", "*.fits").splitlines()) == 3
    found = json.loads(run("ls", "wide:dr1/deep", "--json"))["objects"]
    assert {each["path"]: each["size"] for each in found} == {
        "wide:dr1/deep/c.fits": 100_000,
        "wide:dr1/deep/notes.txt": 0,
    }
    run("get", "wide:dr1/deep/c.fits", tmp_path / "c.fits")
    assert (tmp_path / "c.fits").read_bytes() == CONTENT["dr1/deep/c.fits"]
    run("cp", "wide:a.fits", "wide:copy.fits")
    assert json.loads(run("stat", "wide:copy.fits", "--json"))["objects"][0]["size"] == 5000
    assert run("rm", "wide:copy.fits", "wide:a.fits") == "removed 2 objects\n"
    _, said = run.told("put", files / "dr1" / "deep" / "c.fits", "wide:dr1/deep/", code=1)
    assert "exists already" in said
    run("put", files / "dr1" / "deep" / "c.fits", "wide:dr1/deep/", "--overwrite")


@pytest.mark.usefixtures("store")
def test_what_is_there_is_skipped_when_it_is_resumed(files: Path, run: Runner) -> None:
    run("put", files / "a.fits", "wide:x/")
    report = run.json("put", "-r", "--resume", files, "wide:x")
    assert (report["copied"], report["skipped"], report["failed"]) == (3, 1, 0)
    report = run.json("put", "-r", "--resume", files, "wide:x")
    assert (report["copied"], report["skipped"], report["bytes"]) == (0, 4, 0)
    (files / "a.fits").write_bytes(b"longer" * 2000)
    out = json.loads(run("put", "-r", "--resume", "--json", files, "wide:x", code=1))
    assert (out["skipped"], out["failed"]) == (3, 1)
    assert "exists" in out["faults"][0]["reason"]


@pytest.mark.usefixtures("store")
def test_a_copy_to_a_folder_that_is_there_goes_into_it(run: Runner) -> None:
    run("put", __file__, "wide:into/first.py")
    run("put", __file__, "wide:into")
    run("put", __file__, "wide:beside")
    objects = json.loads(run("ls", "-r", "wide:", "--json"))["objects"]
    names = sorted(each["path"].removeprefix("wide:") for each in objects)
    assert names == ["beside", "into/first.py", "into/test_objects.py"]


@pytest.mark.more
@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("name", ["wide:x", "wide:x/", "wide:x/y.d"])
def test_a_folder_is_copied_with_r_only(tmp_path: Path, run: Runner, name: str) -> None:
    for folder in ("x/", "x/y.d/"):
        run("put", __file__, f"wide:{folder}")
    out = run.json("cp", name, tmp_path / "copy", code=1)
    [fault] = out["faults"]
    assert fault["name"] == name
    assert fault["reason"].startswith("expected an object, found a folder")
    assert not (tmp_path / "copy").exists()
    run("cp", "-r", name, tmp_path / "copy")
    # What is not there is no folder.
    out = run.json("cp", "wide:none", tmp_path / "copy", code=1)
    assert "found a folder" not in out["faults"][0]["reason"]


def test_one_object_does_not_stop_the_others(files: Path, tmp_path: Path) -> None:
    missing = files / "none.fits"
    report = swathe.stores.copy_objects(
        [missing, files / "a.fits"], tmp_path / "to", progress=False
    )
    assert (report.copied, report.failed) == (1, 1)
    (fault,) = report.faults
    assert (fault.name, fault.kind) == (str(missing), "NotFoundError")
    assert digests(tmp_path / "to") == {"a.fits": digests(files)["a.fits"]}


@pytest.mark.parametrize("link", ["same", "symlink", "hard link", "folder link"])
def test_no_source_is_replaced(files: Path, tmp_path: Path, link: str) -> None:
    before, source = digests(files), files / "a.fits"
    target = tmp_path / "target.fits"
    match link:
        case "same":
            target = source
        case "symlink":
            target.symlink_to(source)
        case "hard link":
            target.hardlink_to(source)
        case _:
            (tmp_path / "to").symlink_to(files)
            target = tmp_path / "to" / "a.fits"
    with pytest.raises(OutputError, match="it is the source"):
        swathe.stores.copy_objects(source, target, overwrite=True, progress=False)
    assert digests(files) == before


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/etc/evil", "a//b", "./a", "a/.", "a/", ".."]
)
def test_names_of_a_listing_do_not_lead_out_of_the_folder(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Keys of a bucket may be any text."""
    (tmp_path / "wide").mkdir()
    run("store", "add", "wide", tmp_path / "wide")
    entries = [ListedObject(f"wide:top/{name}", 1)]
    monkeypatch.setattr("swathe.stores.copies.list_tree", lambda *_, **__: iter(entries))
    target = tmp_path / "to" / "folder"
    report = swathe.stores.copy_objects("wide:top", target, recursive=True, progress=False)
    assert (report.copied, report.failed) == (0, 1)
    assert "leads elsewhere" in report.faults[0].reason
    assert not (tmp_path / "to").exists()


def test_two_objects_do_not_get_one_name(files: Path, tmp_path: Path) -> None:
    (files / "other").mkdir()
    (files / "other" / "a.fits").write_bytes(b"x")
    both = [files / "a.fits", files / "other" / "a.fits"]
    with pytest.raises(OptionError, match="expected one source for each name"):
        swathe.stores.copy_objects(both, tmp_path / "to", progress=False)
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("plain.fits", OptionError, "expected NAME:path of an object in a store"),
        ("/abs/plain.fits", OptionError, "expected NAME:path"),
        ("https://x/plain.fits", OptionError, "expected NAME:path of a store, or a local path"),
        ("none:plain.fits", NoSuchStoreError, "there is no store 'none'"),
        ("wide:", OptionError, "expected NAME:path of an object"),
        ("wide:folder/", OptionError, "expected NAME:path of an object"),
    ],
)
def test_only_objects_of_stores_are_removed(
    run: Runner, tmp_path: Path, name: str, error: type[Exception], text: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.fits").write_bytes(b"kept")
    run("store", "add", "wide", tmp_path)
    with pytest.raises(error, match=text):
        swathe.stores.remove_objects(["wide:a.fits", name])
    assert (tmp_path / "a.fits").exists()


def test_arguments_that_contradict_each_other(files: Path, tmp_path: Path, run: Runner) -> None:
    for options in ({"overwrite": True, "resume": True}, {"pattern": "*.fits"}):
        with pytest.raises(OptionError, match="expected"):
            swathe.stores.copy_objects(files / "a.fits", tmp_path / "x", progress=False, **options)
    with pytest.raises((TypeError, ValueError), match="threads"):
        swathe.stores.copy_objects(files / "a.fits", tmp_path / "x", threads=0)
    run("store", "add", "web", "https://127.0.0.1:1/x")
    with pytest.raises(OutputError, match="cannot be written"):
        swathe.stores.copy_objects(files / "a.fits", "web:a.fits", progress=False)
    assert "see cp" in run("put", files / "a.fits", tmp_path / "b.fits", code=2)
    assert "see cp" in run("get", files / "a.fits", tmp_path / "b.fits", code=2)
    assert "see cp" in run("get", "web:a.fits", "web:b.fits", code=2)
    assert "SOURCES... TARGET\n" in run("get", "--help")
    assert "no store 'none'" in run("ls", "none:", code=2)
    assert "no such" in run("ls", tmp_path / "none", code=3)


@pytest.mark.parametrize("store", ["webdav"], indirect=True)
def test_no_source_on_a_server_is_replaced(store: str, tmp_path: Path) -> None:
    folder = tmp_path / "dav" / "x"
    (folder / "x").mkdir(parents=True)
    (folder / "1").write_bytes(b"first")
    (folder / "x" / "1").write_bytes(b"second")
    with pytest.raises(OutputError, match="it is the source"):
        swathe.stores.copy_objects(f"{store}:x/", f"{store}:", recursive=True, overwrite=True)
    for name in ("x/1", "x//1", "x/./1", "x/x/../1"):
        with pytest.raises(OutputError, match="it is the source"):
            swathe.stores.copy_objects(f"{store}:x/1", f"{store}:{name}", overwrite=True)
    assert (folder / "1").read_bytes() == b"first"
    assert (folder / "x" / "1").read_bytes() == b"second"


def test_a_store_that_does_not_exist_is_no_file(
    files: Path, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert "no store 'wied'" in run("put", "-r", files, "wied:x", code=2)
    with pytest.raises(NoSuchStoreError):
        swathe.stores.copy_objects(files / "a.fits", "wied:a.fits")
    assert not list((tmp_path / "here").iterdir())


def test_names_of_objects_are_no_part_of_a_url(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    names = ["a?b", "a#b", "%41", "x%2f..%2f..%2fy"]
    for name in names:
        (source / name).write_bytes(name.encode())
    copies = {name: hashlib.sha256(name.encode()).hexdigest() for name in names}
    target = tmp_path / "deep" / "target"
    swathe.stores.copy_objects(source, f"file://{target}", recursive=True, progress=False)
    assert digests(tmp_path / "deep") == {f"target/{each}": copies[each] for each in copies}
    with webdav(tmp_path / "dav") as dav:
        url = f"{dav.url.replace('http', 'dav', 1)}/target"
        swathe.stores.copy_objects(source, url, recursive=True, progress=False)
    assert digests(tmp_path / "dav") == {f"target/{each}": copies[each] for each in copies}


@pytest.mark.parametrize("size", [1000, 9 << 20])
def test_a_checksum_of_the_server_is_compared_instead_of_the_bytes(
    tmp_path: Path, run: Runner, size: int
) -> None:
    (tmp_path / "object").write_bytes(bytes(range(250)) * (size // 250))
    (tmp_path / "dav").mkdir()
    with webdav(tmp_path / "dav") as dav:
        run("store", "add", "lake", dav.url.replace("http", "dav", 1))

        def copy(name: str) -> tuple[CopyReport, int]:
            dav.asked.clear()
            report = swathe.stores.copy_objects(tmp_path / "object", f"lake:{name}", progress=False)
            return report, sum(method == "GET" for method, *_ in dav.asked)

        report, reads = copy("a")
        dav.crc32 = zlib.crc32
        report, fewer = copy("b")
        assert (report.copied, reads > fewer) == (1, size > 1000)
        dav.crc32 = lambda _: 1
        report, _ = copy("c")
        assert report.copied == 0
        assert "expected CRC-32 " in report.faults[0].reason
        assert "found CRC-32 00000001" in report.faults[0].reason
        assert sorted(path.name for path in (tmp_path / "dav").iterdir()) == ["a", "b"]


def test_what_may_not_be_read_is_not_replaced(
    files: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = []

    class WriteOnlyBucket(Handler):
        def do_GET(self) -> None:
            self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")

        do_HEAD = do_GET

        def do_PUT(self) -> None:
            requests.append(self.taken())
            self.answer(200, b"", {"ETag": '"1"'})

    with serving(WriteOnlyBucket) as url:
        for name, value in (
            ("AWS_ENDPOINT_URL", url),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_ALLOW_HTTP", "true"),
        ):
            monkeypatch.setenv(name, value)
        run("store", "add", "bucket", "s3://bucket/top")
        report = swathe.stores.copy_objects(files / "a.fits", "bucket:a", progress=False)
    assert [each.kind for each in report.faults] == ["AccessError"]
    assert not requests


def test_an_object_of_impossible_size_is_not_copied(tmp_path: Path) -> None:
    class Liar(Handler):
        def do_GET(self) -> None:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            content = bytes(int(last) - int(first) + 1)
            content_range = f"bytes {first}-{last}/{2**64 - 1}"
            self.answer(206, content, {"Content-Range": content_range, "ETag": '"1"'})

    with serving(Liar) as url:
        report = swathe.stores.copy_objects(f"{url}/a", tmp_path / "a", progress=False)
    assert "at most 16 TiB" in report.faults[0].reason


def test_nothing_is_written_to_a_store_that_does_not_exist(
    files: Path, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistyped name of a store is not the name of a local file."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for command in ("put", "cp"):
        assert "no store 'typo'" in run(command, files / "a.fits", "typo:a.fits", code=2)
    with pytest.raises(NoSuchStoreError):
        swathe.stores.copy_objects(files, "typo:", recursive=True, progress=False)
    fs = swathe.fs()
    with pytest.raises(FileNotFoundError, match="no store 'typo'"):
        fs.pipe("typo/a.fits", b"1")
    with pytest.raises(FileNotFoundError, match="no store 'typo'"):
        fs.ls("typo")
    assert not fs.exists("typo/a.fits")
    assert isinstance(fs.cat_ranges(["typo/a"], 0, 1)[0], FileNotFoundError)
    assert os.listdir() == []
    run("cp", files / "a.fits", "./typo:a.fits")
    assert os.listdir() == ["typo:a.fits"]


def test_a_folder_is_listed_with_its_sub_folders(files: Path) -> None:
    os.rename(files, other := files.with_name("a:b"))
    for folder in (str(other), f"{other}/", f"file://{other}", os.path.relpath(other)):
        (single, below) = swathe.stores.list_folder(folder)
        assert isinstance(single, ListedObject)
        assert (single.path, single.size) == (f"{other}/a.fits", 5000)
        assert below == SubFolder(f"{other}/dr1/", 3, 118_000)


def test_a_listing_as_json_is_one_object(
    files: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = json.loads(run("ls", "none:", "--json", code=2))
    assert error["kind"] == "NoSuchStoreError"
    assert json.loads(run("ls", files, "--pattern", "*.none", "--json")) == {"objects": []}
    entries = [UnlistedObject("x/a", "too long"), SubFolder("x/b/", 1, 2)]
    monkeypatch.setattr("swathe.stores.list_folder", lambda *_, **__: iter(entries))
    objects = json.loads(run("ls", "x", "--json", code=1))["objects"]
    assert objects[0] == {"path": "x/a", "reason": "too long"}


@pytest.mark.more
def test_a_killed_copy_leaves_whole_objects_only(tmp_path: Path, run: Runner) -> None:
    """`kill -9` in the middle, several times; --resume ends with equal files."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    for number in range(12):
        (source / f"{number}.fits").write_bytes(os.urandom(8 << 20))
    run("store", "add", "to", target)
    command = [sys.executable, "-m", "swathe.cli", "put", "-r", "--resume", str(source), "to:"]
    for pause_s in (0.4, 0.5, 0.6, 0.7):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(pause_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
        expected = digests(source)
        whole = {name: at for name, at in digests(target).items() if not name.startswith(".")}
        assert whole.items() <= expected.items()
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    whole = {name: at for name, at in digests(target).items() if not name.startswith(".")}
    assert whole == digests(source)


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path, run: Runner) -> None:
    tree, outside, target = (tmp_path / name for name in ("tree", "outside", "target"))
    for folder in (tree / "deep", outside, target):
        folder.mkdir(parents=True)
    (outside / "secret").write_bytes(b"private")
    (tree / "deep" / "a").write_bytes(b"of the tree")
    (tree / "inside").symlink_to("deep/a")
    (tree / "out").symlink_to(outside / "secret")
    (tree / "folder").symlink_to(outside)
    (tree / "broken").symlink_to("nothing")
    run("store", "add", "lab", target)
    report = run.json("put", "-r", tree, "lab:x", code=1)
    assert {Path(fault["name"]).name: fault["reason"] for fault in report["faults"]} == {
        "broken": "a link to a file that does not exist",
        "folder": "a link to a folder",
        "out": "a link that leads out of the folder",
    }
    copies = {
        path.relative_to(target / "x").as_posix(): path.read_bytes() for path in _files(target)
    }
    assert copies == {"deep/a": b"of the tree", "inside": b"of the tree"}
    # A link that is named itself is followed.
    run("put", tree / "out", "lab:named")
    assert (target / "named").read_bytes() == b"private"


def test_files_that_are_hidden_are_counted(tmp_path: Path, run: Runner) -> None:
    tree, target = tmp_path / "tree", tmp_path / "target"
    for name in ("a.fits", ".hid.fits", ".git/b.fits", ".git/c.txt", "g.zarr/.zgroup"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text('{"zarr_format": 2}')
    target.mkdir()
    run("store", "add", "lab", target)
    report = run.json("put", "-r", tree, "lab:x")
    assert report["copied"] == 2
    text = "3 files not copied: names of files or their folders begin with a dot"
    assert report["notes"] == [f"{tree}: {text}"]
    notes = run.json("put", "-r", "--pattern", "*.txt", tree, "lab:y")["notes"]
    assert notes == [f"{tree}: {text.replace('3 files', '1 file')}"]
    assert run.json("put", "-r", "--pattern", "a*", tree, "lab:z")["notes"] == []


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
