"""Copies between servers are made by the servers where these can, by real ones."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import swathe
from swathe.core.errors import OutputError
from swathe.core.sample_survey import make_sample
from tests.support import cloud_servers, servers
from tests.support.fits_frames import Runner

pytestmark = pytest.mark.more

LARGE = os.urandom(20_000_000)
FIRST_BYTES = 300_000
"""More than opening an object some times reads of it."""


def dav(url: str) -> str:
    return url.replace("http", "dav", 1)


@pytest.fixture
def s3(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[servers.S3]:
    del run  # it takes all credentials away, so it comes first
    for bucket in ("one", "two"):
        (tmp_path / "s3" / bucket).mkdir(parents=True)
    with servers.s3s_fs(tmp_path / "s3") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def test_a_server_of_buckets_copies_from_one_to_the_other(
    s3: servers.S3, run: Runner, tmp_path: Path
) -> None:
    with servers.proxy(s3.url) as link:
        for name in ("one", "two"):
            run("store", "add", name, f"s3://{name}/x", "--option", f"endpoint={link.url}")
        (tmp_path / "large").write_bytes(LARGE)
        (tmp_path / "a b+ü%").write_bytes(b"small")
        run("put", tmp_path / "large", tmp_path / "a b+ü%", "one:dr1/")
        link.clear()
        report = run.json("cp", "-r", "one:dr1/", "two:copy")
        stats = link.stats()
    assert (report["copied"], report["by_servers"], report["detours"]) == (2, 2, {})
    assert report["bytes"] == len(LARGE) + 5
    assert stats["bytes_up"] < FIRST_BYTES
    assert stats["bytes_down"] < FIRST_BYTES
    assert (s3.folder / "two/x/copy/large").read_bytes() == LARGE
    assert (s3.folder / "two/x/copy/a b+ü%").read_bytes() == b"small"


def test_a_mirror_of_a_bucket_is_made_by_its_server(
    s3: servers.S3, run: Runner, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        run("store", "add", name, f"s3://{name}")
    make_sample(tmp_path / "frames", 2, seed=1, targets=10)
    run("put", "-r", tmp_path / "frames", "one:dr1", "--pattern", "*.fit")
    run("dataset", "add", "sdss", "one:dr1", "--pattern", "*.fit")
    report = run.json("dataset", "mirror", "sdss", "two:copies")
    assert report["copied"] == report["by_servers"] > 0
    assert report["read_back"] == 0 and report["detours"] == {}


def test_containers_of_azure_are_copied_within_one(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cloud_servers.azurite() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        for name in ("one", "two"):
            server.make(name)
            run("store", "add", name, f"az://{name}")
        server.put("one", "a", LARGE)
        report = run.json("cp", "one:a", "one:b")
        assert (report["copied"], report["by_servers"]) == (1, 1)
        _, said = run.told("cp", "one:a", "two:a")
        assert "1 object through this machine: objects of this kind are copied within one" in said
        run("get", "one:b", "two:a", tmp_path)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == LARGE


@pytest.fixture(params=["nginx", "apache"])
def web(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server that copies its files: its URL, and the folder."""
    with ExitStack() as stack:
        if request.param == "nginx":
            server = stack.enter_context(servers.nginx(tmp_path))
            yield f"{server.url}/copying", server.folder
        else:
            folder = tmp_path / "www"
            folder.mkdir(mode=0o777)
            if os.geteuid() == 0:
                tmp_path.chmod(0o755)
                shutil.chown(folder, "daemon")
            yield stack.enter_context(servers.apache(folder, dav=True)), folder


def test_a_web_server_copies_its_files(web: tuple[str, Path], run: Runner) -> None:
    url, folder = web
    (folder / "a b%.fits").write_bytes(LARGE)
    run("store", "add", "one", dav(url))
    run("store", "add", "two", f"{dav(url)}/two")
    out = run("cp", "one:a b%.fits", "two:deep/c d%.fits")
    assert "; 1 from server to server" in out
    assert (folder / "two/deep/c d%.fits").read_bytes() == LARGE
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    assert {name for name in names if name.endswith(".part")} == set()
    _, said = run.told("cp", "one:a b%.fits", "two:deep/c d%.fits", code=1)
    assert "exists already" in said
    with pytest.raises(OutputError, match="it is the source"):
        swathe.stores.copy_objects("one:a b%.fits", "one:a b%.fits", overwrite=True)


def test_a_folder_without_copy_says_so(tmp_path: Path, run: Runner) -> None:
    with servers.nginx(tmp_path) as server:
        (server.folder / "a").write_bytes(b"a")
        (server.folder / "b").write_bytes(b"b")
        run("store", "add", "one", f"{dav(server.url)}/dav")
        out, said = run.told("cp", "one:a", "one:b", "one:c/")
        assert "; 2 through this machine" in out
        assert "2 objects through this machine: " in said
        assert "takes no COPY here: 405 Method Not Allowed" in said
        report = run.json("cp", "one:a", "one:d")
        assert report["by_servers"] == 0 and list(report["detours"].values()) == [1]


@pytest.fixture
def doors(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[servers.Door]]:
    """Two XRootD that copy; with a token if the test has that parameter."""
    token = getattr(request, "param", None)
    with ExitStack() as stack:
        pair = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            door = servers.xrootd(folder, token, writable=True, copies=True)
            pair.append(stack.enter_context(door))
        yield pair


def test_an_xrootd_pulls_from_another(doors: list[servers.Door], run: Runner) -> None:
    one, two = doors
    (one.folder / "a b.fits").write_bytes(LARGE)
    (one.folder / "empty").write_bytes(b"")
    run("store", "add", "one", dav(one.url))
    with servers.proxy(two.url) as link:
        run("store", "add", "two", dav(link.url))
        report = run.json("cp", "one:a b.fits", "one:empty", "two:deep/")
        stats = link.stats()
    assert report["detours"] == {}
    assert (report["copied"], report["by_servers"]) == (2, 2)
    assert (two.folder / "deep/a b.fits").read_bytes() == LARGE
    assert (two.folder / "deep/empty").read_bytes() == b""
    assert stats["bytes_up"] + stats["bytes_down"] < FIRST_BYTES
    assert not list(two.folder.rglob("*.part"))


def test_an_xrootd_copies_its_own(doors: list[servers.Door], run: Runner) -> None:
    (doors[0].folder / "a").write_bytes(LARGE)
    run("store", "add", "one", doors[0].root_url, "--option", f"door={doors[0].url}")
    report = run.json("cp", "one:a", "one:deep/b c")
    assert (report["by_servers"], report["detours"]) == (1, {})
    assert (doors[0].folder / "deep/b c").read_bytes() == LARGE


def test_an_xrootd_that_does_not_copy_says_so(tmp_path: Path, run: Runner) -> None:
    (tmp_path / "data").mkdir()
    with servers.xrootd(tmp_path / "data", writable=True) as door:
        (door.folder / "a").write_bytes(b"a")
        run("store", "add", "one", door.root_url, "--option", f"door={door.url}")
        report = run.json("cp", "one:a", "one:b")
    assert (report["copied"], report["by_servers"]) == (1, 0)
    assert len(report["detours"]) == 1
    assert (tmp_path / "data/b").read_bytes() == b"a"


@pytest.mark.parametrize("doors", ["hush-hush"], indirect=True)
def test_tokens_of_xrootd_are_passed_on_if_the_store_says_so(
    doors: list[servers.Door], run: Runner, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("hush-hush")
    one, two = doors
    (one.folder / "a").write_bytes(LARGE)
    run("store", "add", "shy", dav(one.url), "--option", f"token_file={token}")
    run(
        *("store", "add", "open", dav(one.url), "--option", f"token_file={token}"),
        *("--option", "delegation=true"),
    )
    run("store", "add", "two", dav(two.url), "--option", f"token_file={token}")
    report = run.json("cp", "shy:a", "two:a")
    assert (report["by_servers"], report["copied"]) == (0, 1)
    assert "the option delegation of their store is not true" in next(iter(report["detours"]))
    report = run.json("cp", "open:a", "two:b")
    assert (report["by_servers"], report["detours"]) == (1, {})
    for name in "ab":
        assert (two.folder / name).read_bytes() == LARGE


def test_an_option_of_delegation_is_true_or_false(run: Runner) -> None:
    said = run("store", "add", "one", "davs://a.example", "--option", "delegation=maybe", code=2)
    assert "the option delegation is true or false" in said


def test_files_of_this_machine_are_no_detour(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    report = swathe.stores.copy_objects(tmp_path / "a", tmp_path / "b", progress=False)
    assert (report.copied, report.by_servers, report.detours) == (1, 0, {})
    assert json.loads(json.dumps(report.detours)) == {}
