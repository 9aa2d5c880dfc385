"""Where workers are started when more are wanted, and how they are on this machine.

A worker is known by the name it is started under, which is also what the scheduler knows it by.
"""

from __future__ import annotations

import math
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

from swathe.core.errors import SwatheError
from swathe.core.paths import VARIABLE
from swathe.workers.pool import FINISH_S, HAND_OVER_S

State = Literal["waiting", "running", "ended"]

MARGIN_S = 60.0
"""A worker takes nothing more so long before its walltime ends, or half of it if that is less."""
LAST = 0.9
"""The part of that in which it may end."""
END_S = 30.0
SAID = 300
"""Characters of what is said of a failure that are told."""

Command = Callable[[str], Sequence[str]]
"""Gives what starts a worker of some name."""


class ProviderError(SwatheError):
    """Workers cannot be started, or seen, or ended."""


@dataclass(frozen=True)
class Started:
    """A worker that was started.

    Attributes:
        state: whether it waits for a place, runs, or has ended.
        why: it waits, or has ended.
        left_s: seconds until it takes nothing more.
    """

    state: State
    why: str = ""
    left_s: float = math.inf


class Provider(Protocol):
    """Starts and ends workers. None of these is called by two threads at a time."""

    def start(self, name: str) -> None:
        """Start a worker, or ask for a place for it.

        Raises:
            ProviderError: why it cannot start.
        """

    def known(self) -> Mapping[str, Started]:
        """Give the workers that are there, wait, or ended a short while ago.

        Raises:
            ProviderError: where they cannot be seen at the moment.
        """

    def stop(self, names: Iterable[str]) -> None:
        """Tell workers to end; those that are not there any more are none.

        Raises:
            ProviderError: where they cannot be told.
        """

    def close(self) -> None:
        """End all of them.

        Raises:
            ProviderError: where they cannot be told.
        """


def worker_command(
    url: str,
    certificates: Path | None,
    threads: int,
    walltime_s: float,
    cache: Path | None = None,
    hand_over_s: float = HAND_OVER_S,
    insecure: bool = False,
) -> Command:
    """Give what starts a worker of a scheduler by its name; a walltime of 0 does not end.

    It ends within its walltime, also where it hands over what it holds for `hand_over_s`. Its block
    cache is in a folder of `cache` that no other has at the time, by its name.
    """
    command = [sys.executable, "-m", "swathe.cli", "pool", "worker", url, "--threads", f"{threads}"]
    if insecure:
        command += ["--insecure"]
    if certificates is not None:  # not all batch systems start jobs in the folder of the portal
        command += ["--certificates", str(certificates.absolute())]
    grace_s = FINISH_S + hand_over_s
    if walltime_s:
        grace_s = min(grace_s, LAST * margin_s(walltime_s))
        command += ["--lifetime", f"{walltime_s - margin_s(walltime_s):g}"]

    command += ["--grace", f"{grace_s:g}"]

    def named(name: str) -> list[str]:
        own = [] if cache is None else ["--cache", str(cache / str(slot_of(name)))]
        return [*command, "--name", name, *own]

    return named


def name_in(slot: int, prefix: str) -> str:
    """Give a name that no other worker ever had; of those that are there none has its slot."""
    return f"{prefix}{slot}-{secrets.token_hex(4)}"


def slot_of(name: str) -> int:
    """Give the slot of a worker by its name."""
    return int(name.split("-")[-2])


def environment() -> dict[str, str]:
    """Give that of workers: they need no catalogue, whose URL may hold a password."""
    return {name: value for name, value in os.environ.items() if name != VARIABLE}


def margin_s(walltime_s: float) -> float:
    """Give how long before the end of its walltime a worker takes nothing more."""
    return min(MARGIN_S, walltime_s / 2)


class Processes:
    """Processes of this machine, which end with this one, however that ends."""

    def __init__(self, command: Command) -> None:
        """Take what starts a worker."""
        self._command = command
        self._started: dict[str, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}

    def start(self, name: str) -> None:
        """Start a process."""
        said = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        try:
            process = subprocess.Popen(
                [*self._command(name), "--attached"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=environment(),
            )
        except OSError as error:
            said.close()
            raise ProviderError(f"processes: cannot start a worker: {error}") from error
        self._started[name] = process, said

    def known(self) -> Mapping[str, Started]:
        """Give the processes; one that has ended is given once."""
        found = {}
        for name, (process, said) in list(self._started.items()):
            if (code := process.poll()) is None:
                found[name] = Started("running")
                continue
            found[name] = Started("ended", f"exit {code}: {_last_of(said)}".rstrip(": "))
            self._forget(name)
        return found

    def stop(self, names: Iterable[str]) -> None:
        """Tell processes to end."""
        for name in names:
            if name in self._started:
                self._started[name][0].terminate()

    def close(self) -> None:
        """End all processes; those that do not follow are killed."""
        self.stop(list(self._started))
        for name, (process, _) in list(self._started.items()):
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._forget(name)

    def _forget(self, name: str) -> None:
        process, said = self._started.pop(name)
        said.close()
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()


def _last_of(said: IO[bytes]) -> str:
    """Give the last line that a process said."""
    end = said.seek(0, os.SEEK_END)
    said.seek(max(0, end - 4 * SAID))
    lines = said.read().decode(errors="replace").strip().splitlines()
    return lines[-1][-SAID:] if lines else ""
