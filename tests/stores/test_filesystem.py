"""Stores as a filesystem of fsspec: its own suite, ranges, transactions, and libraries on top."""

from __future__ import annotations

import io
import os
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # its stubs are another package
import pytest
from astropy.io import fits
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.tests import abstract

import swathe
from swathe.core.errors import ChangedError, OutputError, SourceError
from swathe.stores.filesystem import SwatheFileSystem
from swathe.stores.listing import ListedObject
from tests.support import servers
from tests.support.fits_frames import Runner, contents, noise
from tests.support.stripes import add_stripe
from tests.support.webdav_server import webdav


class Fixtures(abstract.AbstractFixtures):  # type: ignore[misc]
    """A store for the abstract tests of fsspec."""

    @pytest.fixture
    def fs(self, run: Runner, store_url: str) -> SwatheFileSystem:
        run("store", "add", "wide", store_url)
        SwatheFileSystem.clear_instance_cache()
        return swathe.fs()

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        (tmp_path / "store").mkdir()
        return str(tmp_path / "store")

    @pytest.fixture
    def fs_path(self) -> str:
        return "wide/top"

    @pytest.fixture
    def fs_join(self) -> Callable[..., str]:
        return lambda *names: "/".join(names)

    @pytest.fixture
    def supports_empty_directories(self) -> bool:
        return False


@pytest.mark.more
class TestCopy(Fixtures, abstract.AbstractCopyTests):  # type: ignore[misc]
    pass


@pytest.mark.more
class TestGet(Fixtures, abstract.AbstractGetTests):  # type: ignore[misc]
    pass


@pytest.mark.more
class TestPut(Fixtures, abstract.AbstractPutTests):  # type: ignore[misc]
    pass


class TestOpen(Fixtures, abstract.AbstractOpenTests):  # type: ignore[misc]
    pass


class TestPipe(Fixtures, abstract.AbstractPipeTests):  # type: ignore[misc]
    pass


class WebDav(Fixtures):
    """The same on a server."""

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> Iterator[str]:
        with webdav(tmp_path / "dav") as dav:
            yield dav.url.replace("http", "dav", 1)


@pytest.mark.more
class TestCopyOnServer(WebDav, abstract.AbstractCopyTests):  # type: ignore[misc]
    pass


@pytest.mark.more
class TestGetFromServer(WebDav, abstract.AbstractGetTests):  # type: ignore[misc]
    pass


@pytest.mark.more
class TestPutOnServer(WebDav, abstract.AbstractPutTests):  # type: ignore[misc]
    pass


@pytest.mark.more
class TestOpenOnServer(WebDav, abstract.AbstractOpenTests, abstract.AbstractPipeTests):  # type: ignore[misc]
    pass


class Striped(Fixtures):
    """The same on a striped store of five folders."""

    @pytest.fixture
    def fs(self, run: Runner, tmp_path: Path) -> SwatheFileSystem:
        add_stripe(tmp_path)
        SwatheFileSystem.clear_instance_cache()
        return swathe.fs()


@pytest.mark.more
class TestCopyOnStripe(Striped, abstract.AbstractCopyTests):  # type: ignore[misc]
    pass


@pytest.mark.more
class TestGetFromStripe(Striped, abstract.AbstractGetTests):  # type: ignore[misc]
    pass


@pytest.mark.more
class TestPutOnStripe(Striped, abstract.AbstractPutTests):  # type: ignore[misc]
    pass


class TestOpenOnStripe(Striped, abstract.AbstractOpenTests, abstract.AbstractPipeTests):  # type: ignore[misc]
    pass


@pytest.fixture
def folder(run: Runner, tmp_path: Path) -> Path:
    """The folder of the store `wide`."""
    folder = tmp_path / "wide"
    folder.mkdir()
    run("store", "add", "wide", folder)
    SwatheFileSystem.clear_instance_cache()
    return folder


def test_ranges_are_those_of_slices(folder: Path) -> None:
    content, draw = os.urandom(1_000_000), random.Random(1)
    (folder / "a").write_bytes(content)
    (folder / "b").write_bytes(content[::-1])
    bounds: list[tuple[int | None, int | None]] = [
        (None, None), (0, 0), (5, 3), (-10, None), (None, -999_990), (999_990, 2_000_000), (7, 7),
    ]  # fmt: skip
    bounds += [tuple(sorted(draw.choices(range(1_000_000), k=2))) for _ in range(200)]  # type: ignore[misc]
    paths = [draw.choice(["wide/a", "wide/b"]) for _ in bounds]
    starts, ends = map(list, zip(*bounds, strict=True))
    found = swathe.fs().cat_ranges(paths, starts, ends)
    of = {"wide/a": content, "wide/b": content[::-1]}
    assert found == [of[path][at:to] for path, (at, to) in zip(paths, bounds, strict=True)]
    assert swathe.fs().cat_file("wide/a", -7) == content[-7:]


def test_ranges_of_a_missing_object_are_errors_in_their_places(folder: Path) -> None:
    (folder / "a").write_bytes(b"0123456789")
    found = swathe.fs().cat_ranges(["wide/none", "wide/a"], 2, 4)
    assert isinstance(found[0], FileNotFoundError)
    assert found[1] == b"23"
    with pytest.raises(FileNotFoundError):
        swathe.fs().cat_ranges(["wide/none", "wide/a"], 2, 4, on_error="raise")
    with pytest.raises(ValueError, match="expected one length, found 2, 1 and 2"):
        swathe.fs().cat_ranges(["wide/a"] * 2, [1], [2, 3])


@pytest.mark.more
def test_ranges_of_one_object_are_read_in_few_requests(tmp_path: Path, run: Runner) -> None:
    """100 rows 4 kB apart, as of a region of an image: far fewer requests than rows."""
    content = os.urandom(2_000_000)
    with servers.nginx(tmp_path) as server, servers.proxy(server.url) as proxy:
        (server.folder / "a").write_bytes(content)
        run("store", "add", "wide", proxy.url)
        starts = [4096 * row for row in range(100)]
        ends = [start + 200 for start in starts]
        before = proxy.stats()["requests"]
        found = SwatheFileSystem(skip_instance_cache=True).cat_ranges(
            ["wide/a"] * 100, starts, ends
        )
        requests = proxy.stats()["requests"] - before
    assert found == [content[start:end] for start, end in zip(starts, ends, strict=True)]
    assert requests <= 10


@pytest.mark.more
def test_bytes_one_by_one_are_one_request_a_buffer(tmp_path: Path, run: Runner) -> None:
    content = os.urandom(200_000)
    with servers.nginx(tmp_path) as server, servers.proxy(server.url) as proxy:
        (server.folder / "a").write_bytes(content)
        run("store", "add", "wide", proxy.url)
        with swathe.fs().open("wide/a", block_size=50_000) as file:
            before = proxy.stats()["requests"]
            found = b"".join(iter(lambda: file.read(1), b""))
            requests = proxy.stats()["requests"] - before
    assert found == content
    # One for each buffer; a machine that stalls makes the line look slow, and two share it then.
    assert 4 <= requests <= 8


def test_an_object_of_more_than_the_engine_reads_at_once(folder: Path) -> None:
    with (folder / "large").open("wb") as file:
        file.truncate(150 << 20)
        file.seek((130 << 20) + 5)
        file.write(b"mark")
    with swathe.fs().open("wide/large") as file:
        file.seek((130 << 20) + 5)
        assert file.read(4) == b"mark"
    assert len(swathe.fs().cat_file("wide/large")) == 150 << 20


def test_a_file_is_seen_when_it_is_closed(folder: Path) -> None:
    with swathe.fs().open("wide/dr1/new", "wb", block_size=1000) as file:
        for number in range(100):
            file.write(b"%099d\n" % number)
            assert not (folder / "dr1" / "new").exists()
    assert (folder / "dr1" / "new").read_bytes().splitlines()[99] == b"%099d" % 99
    with pytest.raises(NotImplementedError, match="expected mode rb, wb or xb, found ab"):
        swathe.fs().open("wide/dr1/new", "ab")


def test_after_an_error_nothing_is_written(folder: Path) -> None:
    (folder / "a").write_bytes(b"of before")
    with pytest.raises(KeyError), swathe.fs().open("wide/a", "wb") as file:
        file.write(b"half")
        raise KeyError
    assert (folder / "a").read_bytes() == b"of before"


def test_what_is_moved_is_never_lost(folder: Path, run: Runner) -> None:
    (folder / "top" / "top").mkdir(parents=True)
    (folder / "top" / "a").write_bytes(b"first")
    (folder / "top" / "top" / "a").write_bytes(b"second")
    fs = swathe.fs()
    with pytest.raises(OutputError, match="to be moved, too"):
        fs.mv("wide/top/", "wide", recursive=True)
    assert (folder / "top" / "a").read_bytes() == b"first"
    fs.mv("wide/top", "wide/top/below", recursive=True)
    assert (folder / "top" / "below" / "a").read_bytes() == b"first"
    assert (folder / "top" / "below" / "top" / "a").read_bytes() == b"second"
    assert fs.find("wide/top") == ["wide/top/below/a", "wide/top/below/top/a"]


def test_what_is_moved_to_itself_stays(tmp_path: Path, run: Runner) -> None:
    with webdav(tmp_path / "dav") as dav:
        (dav.folder / "top").mkdir()
        (dav.folder / "top" / "a").write_bytes(b"content")
        url = dav.url.replace("http", "dav", 1)
        run("store", "add", "wide", url)
        run("store", "add", "part", f"{url}/top")
        SwatheFileSystem.clear_instance_cache()
        for name in ("part/a", "wide/top//a", "wide/top/./a", "wide/top/../top/a"):
            with pytest.raises(OutputError):
                swathe.fs().mv("wide/top/a", name)
        assert (dav.folder / "top" / "a").read_bytes() == b"content"


def test_a_transaction_writes_all_or_nothing(folder: Path) -> None:
    fs = swathe.fs()
    with pytest.raises(RuntimeError), fs.transaction:
        fs.pipe("wide/a", b"1")
        raise RuntimeError
    assert list(folder.iterdir()) == []
    with fs.transaction:
        fs.pipe("wide/a", b"1")
        fs.pipe("wide/b", b"2")
        assert list(folder.iterdir()) == []
    assert fs.find("wide") == ["wide/a", "wide/b"]


@pytest.mark.parametrize("mode", ["w", "wt", "x", "wb"])
def test_after_an_error_no_half_is_written(folder: Path, mode: str) -> None:
    fs, text = swathe.fs(), "half" if "b" not in mode else b"half"
    with pytest.raises(RuntimeError, match="on purpose"), fs.open("wide/a", mode) as file:
        file.write(text)
        raise RuntimeError("on purpose")
    assert list(folder.iterdir()) == []
    with fs.transaction:
        with pytest.raises(RuntimeError), fs.open("wide/a", mode) as file:
            file.write(text)
            raise RuntimeError
        fs.pipe("wide/b", b"whole")
    assert [path.name for path in folder.iterdir()] == ["b"]


def test_a_text_has_its_encoding(folder: Path) -> None:
    fs = swathe.fs()
    with fs.open("wide/a", "w", encoding="latin-1", newline="\r\n") as file:
        assert isinstance(file, io.TextIOWrapper)
        print("ü", file=file)
    assert (folder / "a").read_bytes() == b"\xfc\r\n"
    with fs.open("wide/a", "r", encoding="latin-1") as file:
        assert file.read() == "ü\n"
    file = fs.open("wide/b", "w")
    file.write("closed without with")
    file.close()
    assert (folder / "b").read_text() == "closed without with"
    with pytest.raises(FileExistsError):
        fs.open("wide/b", "x")
    with pytest.raises(NotImplementedError, match="expected mode rb, wb or xb"):
        fs.open("wide/b", "a")


def test_an_open_file_is_of_one_version(folder: Path) -> None:
    (folder / "a").write_bytes(b"x" * 100_000)
    with swathe.fs().open("wide/a", block_size=1000) as file:
        assert file.read(10) == b"x" * 10
        (folder / "a").unlink()
        (folder / "a").write_bytes(b"y" * 100_000)
        file.seek(50_000)
        try:
            rest = file.read(10)
        except (ChangedError, SourceError):
            return
    assert rest == b"x" * 10


def test_names_do_not_lead_out_of_a_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of a bucket may be any text."""
    (folder / "dr1").mkdir()
    (folder / "dr1" / "a").write_bytes(b"1")
    entries = [ListedObject("wide:dr1/../../evil", 1)]
    monkeypatch.setattr("swathe.stores.objects.list_objects", lambda *_, **__: iter(entries))
    with pytest.raises(OSError, match="expected a name without"):
        swathe.fs().get("wide/dr1", str(tmp_path / "to"), recursive=True)


def test_names_and_what_they_are(folder: Path) -> None:
    (folder / "dr1").mkdir()
    (folder / "dr1" / "a & ü").write_bytes(b"1")
    fs = swathe.fs()
    assert fs.ls("", detail=False) == ["wide"]
    assert fs.ls("swathe://wide", detail=False) == ["wide/dr1"]
    assert fs.isdir("wide/dr1") and fs.isfile("wide/dr1/a & ü")
    assert fs.exists("wide") and not fs.exists("none/x") and not fs.exists("wide/dr")
    assert fs.info("wide/dr1/a & ü")["version"] == fs.ukey("wide/dr1/a & ü")
    assert fs.glob("wide/*/a*") == ["wide/dr1/a & ü"]
    # As everywhere else.
    assert fs.ls("wide:", detail=False) == ["wide/dr1"] == fs.glob("wide:d*")
    assert fs.cat(["swathe://wide:dr1/a & ü"]) == {"wide/dr1/a & ü": b"1"}
    for name in ("none/x", "wide/none", "wide/dr1/none"):
        with pytest.raises(FileNotFoundError):
            fs.info(name)
        with pytest.raises(FileNotFoundError):
            fs.rm(name)
    with pytest.raises(IsADirectoryError):
        fs.rm("wide/dr1")
    fs.rm("wide/dr1", recursive=True)
    assert not fs.exists("wide/dr1")


def test_libraries_read_and_write_by_the_url(folder: Path) -> None:
    image = noise(3, (40, 50))
    with fsspec.open("swathe://wide/image.fits", "wb") as file:
        file.write(contents(image, "fit"))
    with fsspec.open("swathe://wide/image.fits") as file, fits.open(file) as hdus:
        assert np.array_equal(hdus[0].section[3:5, 4:9], image[3:5, 4:9])
    table = pd.DataFrame({"ra": [1.0, 2.0], "name": ["a", "b"]})
    table.to_parquet("swathe://wide/t.parquet")
    table.to_csv("swathe://wide/t.csv", index=False)
    assert pd.read_parquet("swathe://wide/t.parquet").equals(table)
    assert pd.read_csv("swathe://wide/t.csv").equals(table)
    assert (folder / "t.csv").read_text().startswith("ra,name")
    again = pickle.loads(pickle.dumps(swathe.fs()))
    assert DirFileSystem("wide", again).cat("t.csv").startswith(b"ra,name")
