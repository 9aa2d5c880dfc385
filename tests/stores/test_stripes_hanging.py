"""A striped store over block servers, one or two of which never answer or send a byte a second.

Each command runs in a process of its own, which knows nothing of the servers yet.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import swathe
from tests.support.block_servers import block_server
from tests.support.faulty_links import FaultyLink, State, faulty_link

pytestmark = pytest.mark.timeout(900)

SERVERS = 4
CONTENT = random.Random(1).randbytes(4 << 20)
SMALL = [random.Random(number).randbytes(5000) for number in range(20)]
ERROR, SOURCE = 1, 3
"""Exit codes: some objects failed; a store cannot be read."""


@dataclass
class Lab:
    """Links to block servers, and files to copy."""

    folder: Path
    links: list[FaultyLink] = field(default_factory=list)

    @property
    def large(self) -> Path:
        return self.folder / "large"

    @property
    def small(self) -> list[Path]:
        return [self.folder / f"small-{number}" for number in range(len(SMALL))]

    def fail(self, *states: State) -> None:
        """Let the second server, and perhaps the third, be in a state from now on."""
        for link, state in zip(self.links[1:], states, strict=False):
            link.state = state

    def ran(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own."""
        command = [sys.executable, "-m", "swathe.cli", *map(str, words)]
        return subprocess.run(command, env=os.environ, capture_output=True, text=True)

    def run(self, *words: object, code: int = 0) -> str:
        """Run a command that ends with this code; return what it printed, also of errors."""
        ran = self.ran(*words)
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    def json(self, *words: object, code: int = 0) -> Any:
        """Run a command that ends with this code; return its JSON."""
        ran = self.ran(*words, "--json")
        assert ran.returncode == code, ran.stdout + ran.stderr
        return json.loads(ran.stdout)

    def assert_gets(self) -> None:
        """The large object is what was put there."""
        self.run("get", "wide:large", self.folder / "out", "--overwrite")
        assert (self.folder / "out").read_bytes() == CONTENT


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Four servers with parity 1, the large object and the small ones."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/c.sqlite")
    with ExitStack() as stack:
        there = Lab(tmp_path)
        for number in range(SERVERS):
            disk = tmp_path / f"disk-{number}"
            disk.mkdir()
            server = stack.enter_context(block_server(disk))
            there.links.append(stack.enter_context(faulty_link(server.url)))
            root = there.links[number].url.replace("http", "dav", 1)
            swathe.stores.add(f"host{number}", root)
        names = [f"host{number}" for number in range(SERVERS)]
        swathe.stores.add("wide", "striped:", over=names, parity=1)
        there.large.write_bytes(CONTENT)
        for path, content in zip(there.small, SMALL, strict=True):
            path.write_bytes(content)
        there.run("put", there.large, "wide:large")
        there.run("put", *there.small, "wide:small/")
        yield there


@pytest.mark.parametrize("state", ["hanging", "dripping"])
def test_one_server_is_done_without(lab: Lab, state: State) -> None:
    lab.fail(state)
    lab.assert_gets()
    note = "written without its part on host1 ("
    assert note in lab.run("put", lab.large, "wide:new")
    assert note in lab.run("put", *lab.small, "wide:other/")
    lab.run("get", "-r", "wide:other/", lab.folder / "back")
    for path, content in zip(lab.small, SMALL, strict=True):
        assert (lab.folder / "back" / path.name).read_bytes() == content
    listed = lab.run("ls", "wide:")
    assert "wide:large" in listed and "wide:new" in listed and "listed without host1:" in listed
    assert lab.json("stat", "wide:large")["objects"][0]["size"] == len(CONTENT)
    check = lab.json("stripe", "check", "wide", code=ERROR)
    assert (check["objects"], check["lost"]) == (2 + 2 * len(SMALL), 0)
    assert "host1:" in lab.run("stripe", "repair", "wide", code=ERROR)
    assert "no answer" in lab.run("stripe", "status", "wide", code=ERROR)
    lab.run("rm", *[f"wide:other/{path.name}" for path in lab.small])
    lab.fail("whole")
    # What the server missed is made good, and what was removed does not return.
    lab.run("stripe", "repair", "wide")
    check = lab.json("stripe", "check", "wide", "--deep")
    assert (check["objects"], check["whole"]) == (2 + len(SMALL), 2 + len(SMALL))


def test_two_servers_are_named(lab: Lab) -> None:
    lab.fail("hanging", "dripping")
    for code, words in (
        (ERROR, ("get", "wide:large", lab.folder / "out")),
        (ERROR, ("put", lab.large, "wide:new")),
        (ERROR, ("put", *lab.small, "wide:other/")),
        (SOURCE, ("rm", "wide:small/small-0")),
        (ERROR, ("stripe", "check", "wide")),
        (ERROR, ("stripe", "repair", "wide")),
        (ERROR, ("stripe", "status", "wide")),
    ):
        text = lab.run(*words, code=code)
        assert "host1" in text and "host2" in text, words
    assert not (lab.folder / "out").exists()
    lab.fail("whole", "whole")
    lab.assert_gets()


def test_a_probe_names_the_server(lab: Lab) -> None:
    lab.fail("hanging")
    text = lab.run("probe", "wide", "--quick")
    assert "host1: no answer" in text
