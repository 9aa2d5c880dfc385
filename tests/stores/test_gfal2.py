"""The stub of the WLCG Tape REST API, used by gfal2, the client that sites use, and by ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from swathe.stores.staging.http_service import HttpService
from swathe.stores.staging.tape_rest import TapeRest
from tests.support.tape_rest import TOKEN, TapeSite, tape_site

FILES = {"/data/x/a": "TAPE", "/data/x/b": "DISK"}
PYTHON = "/usr/bin/python3"
"""Debian's, which has the bindings of gfal2."""


@pytest.fixture
def site() -> Iterator[TapeSite]:
    with tape_site(FILES) as running:
        # gfal2 puts the name of a request into a URL as it is.
        running.id_form = "r-{}"
        # It polls after 1 s, then after 2 s more.
        running.polls = 0
        yield running


def gfal(site: TapeSite, action: str, path: str, *words: str) -> list[str]:
    """Return the lines that a command of gfal2 prints about an object."""
    program = shutil.which(f"gfal-{action}")
    if program is None:
        pytest.skip("gfal2-util-scripts, gfal2-plugin-http are not installed")
    environment = {"PATH": os.defpath, "GFAL_PYTHONBIN": PYTHON, "BEARER_TOKEN": TOKEN}
    command = [program, f"{site.url}{path}", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_gfal2_brings_online_and_releases(site: TapeSite) -> None:
    url = f"{site.url}/data/x/a"
    lines = gfal(site, "bringonline", "/data/x/a", "--polling-timeout", "30")
    assert (lines[0], lines[-1]) == (f"{url} QUEUED", f"{url} READY")
    assert site.locality["/data/x/a"] == "DISK_AND_TAPE"
    with closing(TapeRest(f"{site.url}/data/x", None, HttpService(TOKEN))) as stager:
        assert stager.poll("r-0", ["a"])["a"].state == "disk"
    assert set(site.requests["r-0"]) == {"/data/x/a"}
    gfal(site, "evict", "/data/x/a", "r-0")
    assert site.requests["r-0"] == {}


def test_gfal2_releases_a_request_of_ours(site: TapeSite) -> None:
    with closing(TapeRest(f"{site.url}/data/x", None, HttpService(TOKEN))) as stager:
        token = stager.stage(["a"], 3600)
    gfal(site, "evict", "/data/x/a", token)
    assert site.requests[token] == {}


def test_gfal2_tells_a_failure(site: TapeSite) -> None:
    line = gfal(site, "bringonline", "/data/x/none", "--polling-timeout", "30")[-1]
    assert line.endswith("FAILED: [Tape REST API] no such file")


@pytest.mark.parametrize(("path", "state"), [("/data/x/a", "READY"), ("/data/x/b", "QUEUED")])
def test_gfal2_knows_what_is_on_tape(site: TapeSite, path: str, state: str) -> None:
    assert gfal(site, "archivepoll", path) == [f"{site.url}{path} {state}"]
