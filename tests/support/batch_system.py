"""A batch system for the tests, whose commands keep their jobs in a folder."""

from __future__ import annotations

import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support import batch_commands

PATIENCE_S = 120.0
CPUS = 6


class System:
    """A batch system in a folder."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.queue = {"pbs": batch_commands.PBS, "htcondor": batch_commands.HTCondor}[kind](folder)

    def set(self, name: str, text: str) -> None:
        """Have it hold, refuse or say something: see `batch_commands`."""
        (self.folder / name).write_text(text)

    def unset(self, name: str) -> None:
        """Have it work again."""
        (self.folder / name).unlink()

    def numbers(self) -> list[str]:
        """The jobs that are there."""
        return self.queue.numbers()

    def number_of(self, name: str) -> str:
        """The job that a worker is."""
        [match] = [
            number
            for number in self.numbers()
            if name in (self.folder / "jobs" / number / "job").read_text()
        ]
        return match

    def cancel(self, name: str) -> None:
        """End a worker as its user would."""
        number = self.number_of(name)
        words = {"pbs": ["qdel", f"{number}.test"], "htcondor": ["condor_rm", number]}[self.kind]
        subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE_S)

    def kill(self, name: str) -> None:
        """End a worker as a power cut does."""
        pid = int((self.folder / "jobs" / self.number_of(name) / "pid").read_text())
        os.kill(pid, signal.SIGKILL)


@contextmanager
def batch_system(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    """One that is alone, whose commands are first on the path."""
    if kind == "htcondor" and importlib.util.find_spec("htcondor") is None:
        pytest.skip("htcondor is not installed: the library that the commands use")
    system = System(kind, folder)
    system.set("cpus", str(CPUS))
    commands = folder / "bin"
    commands.mkdir()
    for name in batch_commands.COMMANDS[type(system.queue).__name__]:
        words = shlex.join([sys.executable, batch_commands.__file__, str(folder), name])
        (commands / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ.get('PATH', '')}")
    monkeypatch.setenv("CONDOR_CONFIG", "/dev/null")
    try:
        yield system
    finally:
        system.set("over", "")
        until = time.monotonic() + PATIENCE_S
        while numbers := system.numbers():
            assert time.monotonic() < until, numbers
            time.sleep(0.05)
    with suppress(FileNotFoundError):
        assert (folder / "log").read_text() == ""
