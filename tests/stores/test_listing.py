"""Datasets in buckets: listed page by page, synced by their ETags, with errors that say why."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import swathe
from swathe.catalog import Store
from swathe.stores.listing import ListedObject, UnlistedObject, list_objects
from swathe.stores.registry import to_native
from tests.support import cloud_servers, servers
from tests.support.cloud_servers import ACCOUNT_KEY, Azurite
from tests.support.fits_frames import Runner, frame
from tests.support.scripted_servers import Handler, serving
from tests.support.servers import TOKEN
from tests.support.webdav_server import webdav

Put = Callable[[str, bytes], None]


@pytest.fixture(scope="module")
def azurite() -> Iterator[Azurite]:
    with cloud_servers.azurite() as running:
        running.make("frames")
        yield running


@pytest.fixture(scope="module")
def gcs() -> Iterator[cloud_servers.Gcs]:
    with cloud_servers.fake_gcs(TOKEN) as running:
        running.make("frames")
        yield running


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.S3]:
    with servers.s3s_fs(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(params=["s3", "gs", "az"])
def lake(request: pytest.FixtureRequest, run: Runner, monkeypatch: pytest.MonkeyPatch) -> Put:
    """A store `lake` at the prefix `dr1` of a bucket; gives how to put objects there."""
    kind = request.param
    options: tuple[str, ...] = ()
    if kind == "s3":
        server = request.getfixturevalue("s3")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
    elif kind == "gs":
        server = request.getfixturevalue("gcs")
        monkeypatch.setenv("GOOGLE_BEARER_TOKEN", TOKEN)
        options = ("--option", f"endpoint={server.url}")
    else:
        server = request.getfixturevalue("azurite")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY)
        options = ("--option", f"endpoint={server.url}")
    run("store", "add", "lake", f"{kind}://frames/dr1", *options)
    return lambda path, content: server.put("frames", f"dr1/{path}", content)


def test_a_dataset_in_a_bucket(run: Runner, lake: Put) -> None:
    lake("run 1/f0.fits", frame(10.0))
    lake("run 1/b+%20&ü.fits", frame(20.0))
    lake("run 1/.hidden.fits", b"no")
    lake("run 1/readme.txt", b"hello")
    lake("run 10/f2.fits", frame(30.0))
    report = run.json("dataset", "add", "sdss", "lake:run 1", "--pattern", "*.fits")
    assert (report["listed"], report["read"], report["faults"]) == (2, 2, [])
    (row,) = swathe.find((20.0, -1.0))
    assert row["file"] == "lake:run 1/b+%20&ü.fits"
    assert swathe.cut(str(row["file"]), sky=(20.0, -1.0), size_deg=0.002).data.shape == (20, 20)
    again = run.json("dataset", "sync", "sdss")
    assert (again["read"], again["unchanged"]) == (0, 2)
    lake("run 1/f0.fits", frame(50.0))
    lake("run 1/new.fits", frame(60.0))
    again = run.json("dataset", "sync", "sdss")
    assert (again["listed"], again["read"], again["unchanged"]) == (3, 2, 1)
    assert len(swathe.find((50.0, -1.0))) == len(swathe.find((60.0, -1.0))) == 1
    assert run.json("dataset", "add", "one", "lake:run 10/f2.fits")["listed"] == 1
    assert "no such folder" in run("dataset", "add", "none", "lake:run 2", code=3)


def test_buckets_that_cannot_be_listed(
    run: Runner, azurite: Azurite, s3: servers.S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    run("store", "add", "lake", "s3://nowhere")
    assert "s3://nowhere: not found: 404" in run("dataset", "add", "sdss", "lake:", code=3)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-hush")
    said = run("dataset", "add", "sdss", "lake:", code=3)
    assert "access denied: 403" in said and "hush" not in said
    run("store", "add", "blobs", "az://frames", "--option", f"endpoint={azurite.url}")
    assert "asked anonymously: no cred" in run("dataset", "add", "sdss", "blobs:", code=3)
    run("store", "add", "dead", "s3://frames", "--option", "endpoint=http://127.0.0.1:1")
    assert "s3://frames: " in run("dataset", "add", "sdss", "dead:", code=3)


class Lists(Handler):
    """Answers each listing with the next of some pages of keys and sizes."""

    pages: list[list[tuple[str, int]]]
    heard: list[str]

    def do_GET(self) -> None:
        self.heard.append(self.headers["Authorization"])
        number = int(self.path.partition("continuation-token=")[2].partition("&")[0] or 0)
        text = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2024-01-02T03:04:05Z</LastModified>"
            f"<Size>{size}</Size></Contents>"
            for key, size in self.pages[number]
        )
        if number + 1 < len(self.pages):
            text += f"<NextContinuationToken>{number + 1}</NextContinuationToken>"
        self.answer(200, f"<ListBucketResult>{text}</ListBucketResult>".encode())


def listed(pages: list[list[tuple[str, int]]], prefix: str) -> list[Any]:
    """What is listed of a bucket of such pages."""
    handler = type("These", (Lists,), {"pages": pages, "heard": []})
    with serving(handler) as endpoint:
        options = {"endpoint": endpoint, "anonymous": "true"}
        return list(list_objects(Store("lake", "s3://frames", "lan", options), prefix, None))


def test_all_pages_are_listed_and_folders_are_no_objects(run: Runner) -> None:
    pages = [
        [("a/", 0), ("a/1.fits", 7), ("a/b/", 0)],
        [("a/b/2.fits", 8), ("a/empty.fits", 0)],
        [],
        [("a/x", 0), ("a/xy", 9)],
    ]
    found = listed(pages, "a")
    paths = {each.path: each.size for each in found if isinstance(each, ListedObject)}
    expected = {"a/1.fits": 7, "a/b/2.fits": 8, "a/empty.fits": 0, "a/x": 0, "a/xy": 9}
    assert paths == expected
    assert all(each.shows_changes() for each in found)


@pytest.mark.parametrize("chunked", [False, True])
def test_an_index_that_breaks_off_is_none(chunked: bool) -> None:
    """Else all that stood in the rest would be taken to have vanished."""

    class Index(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            header = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", "5000")
            self.send_header(*header)
            self.end_headers()
            page = b'<a href="a.fits">a.fits</a>'
            self.wfile.write(b"%x\r\n%s\r\n" % (len(page), page) if chunked else page)
            self.close_connection = True

    with serving(Index) as url, pytest.raises(swathe.errors.SourceError, match="index"):
        list(list_objects(Store("web", url, "lan"), "", None))


def test_the_token_of_an_index_is_the_engines(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    class Index(Handler):
        def do_GET(self) -> None:
            heard.append(f"{self.headers['Authorization']}")
            self.answer(200, b"[]", {"Content-Type": "application/json"})

    for name in ("BEARER_TOKEN", "BEARER_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    runtime, file = tmp_path / "runtime", tmp_path / "token"
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    file.write_text("of-the-file\n")
    with serving(Index) as url:
        plain = Store("web", url, "lan")
        door = Store("door", url.replace("http:", "dav:"), "lan")
        private = Store("private", url, "lan", {"token_file": str(file)})
        monkeypatch.setenv("BEARER_TOKEN", "of-the-environment")
        for store in (plain, door, private):
            assert list(list_objects(store, "", None)) == []
        assert heard == ["None", "Bearer of-the-environment", "Bearer of-the-file"]
        file.write_text("no token at all\n")
        with pytest.raises(swathe.errors.SourceError, match="holds no token"):
            list(list_objects(private, "", None))


def test_what_xrootd_lists_is_what_can_be_read(tmp_path: Path) -> None:
    names = ("x", "a%20b", " two words", "50%/Ä+.fits")
    for name in (*names, "x?1"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_bytes(name.encode())
    with servers.xrootd(tmp_path / "data") as door:
        options = {"door": door.url, "anonymous": "true"}
        by_root = Store("xrd", "root://archive.example", "lan", options)
        by_dav = Store("web", door.url.replace("http", "dav"), "lan", {"anonymous": "true"})
        for store in (by_root, by_dav):
            found = list(list_objects(store, "", None))
            listed = {each.path for each in found if isinstance(each, ListedObject)}
            assert listed == set(names)
            for name in listed:
                source = to_native([store]).open(f"{store.name}:{name}")
                assert source.read(0, source.size) == name.encode()
            (cut,) = (each for each in found if not isinstance(each, ListedObject))
            assert cut.path == "x?1" and "would return another object" in cut.reason


def test_what_is_in_a_folder_that_is_not_told_has_not_vanished(run: Runner, tmp_path: Path) -> None:
    with webdav(tmp_path / "served") as server:
        for number, name in enumerate(("run1/f0.fits", "run2/f1.fits")):
            (server.folder / name).parent.mkdir()
            (server.folder / name).write_bytes(frame(10.0 + number))
        run("store", "add", "web", server.url.replace("http", "dav"))
        assert run.json("dataset", "add", "sdss", "web:")["read"] == 2
        server.refused["run1"] = "403 Forbidden"
        report = run.json("dataset", "sync", "sdss", code=1)
        assert (report["unchanged"], report["vanished"]) == (1, 0)
        (fault,) = report["faults"]
        assert fault["path"] == "run1" and "403 Forbidden" in fault["reason"]
        assert len(swathe.find((10.0, -1.0))) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_webdav_server_may_send_us_on(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEARER_TOKEN", TOKEN)
    with webdav(tmp_path / "from") as first, webdav(tmp_path / "to") as second:
        (second.folder / "pool/run").mkdir(parents=True)
        (second.folder / "pool/run/a b.fits").write_bytes(b"1234567")
        first.sent_on = status, f"{second.url}/pool"
        store = Store("web", first.url.replace("http", "dav"), "lan")
        (found,) = list_objects(store, "", None)
        assert isinstance(found, ListedObject) and (found.path, found.size) == ("run/a b.fits", 7)
        assert {token for *_, token in first.asked} == {f"Bearer {TOKEN}"}
        assert {token for *_, token in second.asked} == {None}
        # In a circle.
        second.sent_on = status, first.url
        first.sent_on = status, second.url
        with pytest.raises(swathe.errors.SourceError, match="too many redirects"):
            list(list_objects(store, "", None))


def test_a_listing_can_be_interrupted() -> None:
    asked, done = threading.Event(), threading.Event()

    class Silent(Handler):
        def do_GET(self) -> None:
            asked.set()
            done.wait(20)
            self.answer(200, b"[]", {"Content-Type": "application/json"})

    def interrupt() -> None:
        asked.wait(20)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with serving(Silent) as url:
        started = time.monotonic()
        thread.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                list(list_objects(Store("web", url, "lan"), "", None))
            assert time.monotonic() - started < 10
        finally:
            done.set()
            thread.join()


def test_what_the_catalogue_cannot_hold_is_not_taken_from_an_index() -> None:
    entries = [
        {"name": "large.fits", "type": "file", "size": 2**64 - 1, "mtime": "t"},
        {"name": "long.fits", "type": "file", "size": 2**63 - 1, "mtime": "t" * 5000},
        {"name": "null\0.fits", "type": "file", "size": 1, "mtime": "t"},
        {"name": "time.fits", "type": "file", "size": 1, "mtime": "a\0b"},
    ]

    class Index(Handler):
        def do_GET(self) -> None:
            self.answer(200, json.dumps(entries).encode(), {"Content-Type": "application/json"})

    with serving(Index) as url:
        listed = list(list_objects(Store("web", url, "lan"), "", None))
    assert listed == [
        ListedObject("large.fits", None, "t"),
        ListedObject("long.fits", 2**63 - 1, "t" * 100),
        UnlistedObject("null?.fits", "its path has a null character"),
        ListedObject("time.fits", 1),
    ]
