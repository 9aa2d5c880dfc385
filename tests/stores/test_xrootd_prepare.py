"""Staging by prepare of XRootD, with a real server and its plug-in for prepare."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from swathe.core.errors import OptionError, StagingError
from swathe.stores.staging.xrootd_prepare import XrootdPrepare
from tests.support.servers import free_port
from tests.support.xrootd_tape import TapeServer, xrootd_tape


@pytest.fixture(scope="module")
def server() -> Iterator[TapeServer]:
    with xrootd_tape() as running:
        yield running


@pytest.fixture
def stager(server: TapeServer) -> XrootdPrepare:
    for name in ("a", "b c"):
        (server.folder / "tape/data" / name).write_bytes(b"0123456789")
        (server.folder / "disk/data" / name).unlink(missing_ok=True)
    (server.folder / "hold").unlink(missing_ok=True)
    (server.folder / "answer").write_text("")
    return XrootdPrepare(server.url)


def wait_until_on_disk(stager: XrootdPrepare, token: str, names: list[str]) -> None:
    until = time.monotonic() + 60
    while {each.state for each in stager.poll(token, names).values()} != {"disk"}:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_whole_cycle(stager: XrootdPrepare, server: TapeServer) -> None:
    names = ["a", "b c"]
    places = stager.locate([*names, "none"])
    localities = {path: place.locality for path, place in places.items()}
    assert localities == {"a": "nearline", "b c": "nearline", "none": "lost"}
    assert places["a"].bytes == 10
    token = stager.stage(names, 3600)
    wait_until_on_disk(stager, token, names)
    assert {place.locality for place in stager.locate(names).values()} == {"disk"}
    assert stager.renew(token, names, 3600) == token
    stager.release(token, names)
    stager.evict(["a"])
    until = time.monotonic() + 60
    while stager.locate(["a"])["a"].locality == "disk":
        assert time.monotonic() < until
        time.sleep(0.1)
    assert stager.locate(names)["b c"].locality == "disk"


def test_what_is_to_come_is_cancelled(stager: XrootdPrepare, server: TapeServer) -> None:
    (server.folder / "hold").touch()
    token = stager.stage(["a"], 3600)
    assert stager.poll(token, ["a"])["a"].state == "queued"
    stager.release(token, ["a"])
    until = time.monotonic() + 60
    while f"{token} cancel" not in (server.folder / "calls").read_text():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_an_answer_to_a_query_tells_why_an_object_fails(
    stager: XrootdPrepare, server: TapeServer
) -> None:
    (server.folder / "hold").touch()
    token = stager.stage(["a"], 3600)
    entry = {"path": "/data/a", "error_text": "tape T1 is broken"}
    (server.folder / "answer").write_text(json.dumps({"responses": [entry]}))
    progress = stager.poll(token, ["a"])["a"]
    assert (progress.state, progress.reason) == ("failed", "'tape T1 is broken'")


def test_a_server_that_is_not_there_is_an_error(
    monkeypatch: pytest.MonkeyPatch, server: TapeServer
) -> None:
    monkeypatch.setenv("XRD_CONNECTIONRETRY", "1")
    monkeypatch.setenv("XRD_CONNECTIONWINDOW", "2")
    with pytest.raises(StagingError, match=r"xrdfs root://127.0.0.1:\d+: expected exit code 0"):
        XrootdPrepare(f"root://127.0.0.1:{free_port()}//data").locate(["a"])


def test_without_the_client_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OptionError, match="found none: install xrootd-client"):
        XrootdPrepare("root://127.0.0.1//data")
