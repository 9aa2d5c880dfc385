"""Striped stores whose servers and clients have clocks that are hours apart."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from tests.support.block_servers import BlockServer, block_server
from tests.support.clocks import wrong_by
from tests.support.fits_frames import swathe_command
from tests.support.servers import free_port

pytestmark = [
    pytest.mark.more,
    pytest.mark.usefixtures("own_catalog"),
    pytest.mark.skipif(wrong_by(0) is None, reason="needs libfaketime"),
]

HOURS = (5, -5, 0, 20)
"""How much the clocks of the servers are ahead."""
CONTENTS = [np.random.default_rng(seed).bytes(300_000 + seed) for seed in range(4)]


class Lab:
    """Block servers with wrong clocks, and commands by clients with other ones."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.ports = [free_port() for _ in HOURS]
        self.servers = [self.start(number, hours) for number, hours in enumerate(HOURS)]

    def start(self, number: int, hours: float) -> BlockServer:
        """Start a server of a folder, at its port."""
        disk = self.folder / f"disk{number}"
        disk.mkdir(exist_ok=True)
        variables = wrong_by(3600 * hours) or {}
        prefix = ("env", *(f"{name}={value}" for name, value in variables.items()))
        options = ("--port", self.ports[number])
        return self.stack.enter_context(block_server(disk, options=options, prefix=prefix))

    def ran(self, hours: float, *words: object) -> subprocess.CompletedProcess[str]:
        """Run a command whose clock is so much ahead."""
        return swathe_command(*words, env=wrong_by(3600 * hours))

    def command(self, hours: float, *words: object) -> None:
        """Run one that succeeds."""
        ran = self.ran(hours, *words)
        assert ran.returncode == 0, (words, ran.stdout, ran.stderr)

    def add_stripe(self, parity: int) -> None:
        over = [word for port in self.ports for word in ("--over", f"http://127.0.0.1:{port}")]
        words = ("striped:", *over, "--parity", parity, "--block", "65536")
        self.command(0, "store", "add", "wide", *words)

    def put(self, hours: float, number: int) -> None:
        """Write an object anew."""
        (self.folder / "in").write_bytes(CONTENTS[number])
        self.command(hours, "put", self.folder / "in", "wide:object", "--overwrite")

    def assert_is(self, hours: float, number: int) -> None:
        """Check what a client reads."""
        self.command(hours, "get", "wide:object", self.folder / "out", "--overwrite")
        assert (self.folder / "out").read_bytes() == CONTENTS[number]


def test_clocks_decide_neither_what_is_read_nor_what_is_repaired(tmp_path: Path) -> None:
    with ExitStack() as stack:
        lab = Lab(tmp_path, stack)
        lab.add_stripe(parity=1)
        # The later writer wins, however early it is by its clock.
        lab.put(7, 0)
        lab.put(-9, 1)
        lab.assert_is(0, 1)
        # A server that missed a version has an earlier one, however late it is by its clock.
        lab.servers[3].end()
        lab.put(-11, 2)
        lab.start(3, 21)
        lab.assert_is(7, 2)
        check = lab.ran(-9, "stripe", "check", "wide")
        assert check.returncode == 1 and "outdated" in check.stdout + check.stderr
        lab.command(9, "stripe", "repair", "wide")
        lab.command(-9, "stripe", "check", "wide", "--deep")
        lab.assert_is(-9, 2)
        # What was removed stays so, and can be written anew.
        lab.command(-12, "rm", "wide:object")
        gone = lab.ran(8, "get", "wide:object", tmp_path / "out", "--overwrite")
        assert gone.returncode != 0 and "not found" in gone.stderr
        lab.put(-12, 3)
        lab.command(0, "store", "remove", "wide")
        lab.add_stripe(parity=2)
        lab.command(-13, "stripe", "rebalance", "wide")
        lab.command(6, "stripe", "check", "wide", "--deep")
        lab.servers[0].end()
        lab.servers[1].end()
        lab.assert_is(10, 3)
