"""Readers that live on while servers end, change disks, come back, and are repaired."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import swathe
from tests.support.block_servers import BlockServer, block_server
from tests.support.fits_frames import Runner
from tests.support.servers import free_port

pytestmark = pytest.mark.more
pytest.importorskip("fsspec")
SIZE, SHORT = 300_000, 400


class Lab:
    """Block servers that can be ended and begun again on the same ports, below `wide`."""

    def __init__(self, folder: Path, stack: ExitStack, count: int, parity: int = 1) -> None:
        self.disks = [folder / f"disk{number}" for number in range(count)]
        self._ports = [free_port() for _ in self.disks]
        self._servers: dict[int, tuple[ExitStack, BlockServer]] = {}
        self._stack = stack
        for number, disk in enumerate(self.disks):
            disk.mkdir()
            self.start(number)
        over = [f"http://127.0.0.1:{port}" for port in self._ports]
        swathe.stores.add("wide", "striped:", over=over, parity=parity, block_bytes=16384)

    def start(self, number: int) -> None:
        """Begin a server."""
        inner = self._stack.enter_context(ExitStack())
        options = ("--port", self._ports[number])
        server = inner.enter_context(block_server(self.disks[number], options=options))
        self._servers[number] = inner, server

    def end(self, number: int) -> None:
        """End a server."""
        inner, _ = self._servers.pop(number)
        inner.close()

    def exchange(self, one: int, other: int) -> None:
        """Exchange the disks of two servers."""
        for number in (one, other):
            self.end(number)
        first, second = self.disks[one], self.disks[other]
        aside = first.with_name("aside")
        first.rename(aside), second.rename(first), aside.rename(second)
        for number in (one, other):
            self.start(number)


def ran(*words: object) -> str:
    """Return what a command of its own process prints."""
    command = [sys.executable, "-m", "swathe.cli", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return done.stdout


def test_one_of_two_exchanged_disks_goes_away(tmp_path: Path, run: Runner) -> None:
    """The process knows parts on both servers already; short ranges are proven by the servers."""
    with ExitStack() as stack:
        lab = Lab(tmp_path, stack, 5)
        files = swathe.fs()
        bodies = [os.urandom(SIZE) for _ in range(3)]
        for number, body in enumerate(bodies):
            files.pipe(f"swathe://wide/o{number}", body)
        lab.exchange(2, 4)

        def assert_right() -> None:
            for number, body in enumerate(bodies):
                path = f"swathe://wide/o{number}"
                assert files.cat_file(path) == body
                for at in range(0, SIZE, SIZE // 5):
                    assert files.cat_file(path, at, at + SHORT) == body[at : at + SHORT]

        assert_right()
        lab.end(2)
        assert_right()
        assert_right()


def test_an_open_file_is_read_after_several_repairs(tmp_path: Path, run: Runner) -> None:
    with ExitStack() as stack:
        lab = Lab(tmp_path, stack, 5)
        files, body = swathe.fs(), os.urandom(SIZE)
        files.pipe("swathe://wide/a", body)
        with files.open("swathe://wide/a", "rb", cache_type="none") as file:
            for part in (None, 2, 4, 2, 4):
                if part is not None:
                    (path,) = (
                        each for disk in lab.disks for each in disk.glob(f"a.stripe.*.{part}")
                    )
                    path.unlink()
                    assert "repaired 1 object" in ran("stripe", "repair", "wide", "--deep")
                for start, count in ((1000, SHORT), (78_526, 100_000), (0, SIZE)):
                    file.seek(start)
                    assert file.read(count) == body[start : start + count], part


def test_a_server_that_is_back_is_asked_when_another_goes(tmp_path: Path, run: Runner) -> None:
    with ExitStack() as stack:
        lab = Lab(tmp_path, stack, 3)
        files, body = swathe.fs(), os.urandom(50_000)
        files.pipe("swathe://wide/a", body)
        for number in range(3):
            lab.end(number)
            assert files.cat_file("swathe://wide/a") == body
            lab.start(number)
            lab.end((number + 1) % 3)
            assert files.cat_file("swathe://wide/a") == body
            lab.start((number + 1) % 3)


def test_a_damaged_record_of_a_removed_object_is_repaired(tmp_path: Path, run: Runner) -> None:
    disks = [tmp_path / f"disk{number}" for number in range(5)]
    swathe.stores.add("wide", "striped:", over=list(map(str, disks)), parity=2)
    for name in ("a", "b"):
        source = tmp_path / name
        source.write_bytes(os.urandom(9000))
        run("put", source, "wide:")
    run("rm", "wide:b")
    record = disks[1] / "b.stripe"
    content = bytearray(record.read_bytes())
    content[len(content) // 2] ^= 1
    record.write_bytes(content)
    run("stripe", "repair", "wide")
    assert record.read_bytes() == (disks[0] / "b.stripe").read_bytes()
    for disk in (disks[2], disks[4]):
        shutil.rmtree(disk)
    assert [each.split()[-1] for each in ran("ls", "wide:").splitlines()][:1] == ["wide:a"]
