"""Provider interface, and workers as processes of this machine.

A worker is identified by the name it is started under; the scheduler uses the same name.
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
"""Seconds before the end of its walltime when a worker stops accepting batches; at most half the
walltime."""
LAST = 0.9
"""Fraction of that margin in which the worker may end."""
END_S = 30.0
EXCERPT = 300
"""Characters of a failure's output that are reported."""

Command = Callable[[str], Sequence[str]]
"""Returns the command line that starts a worker of some name."""


class ProviderError(SwatheError):
    """Workers cannot be started, listed or ended."""


@dataclass(frozen=True)
class StartedWorker:
    """A worker that was started.

    Attributes:
        state: whether it waits to start, runs, or has ended.
        why: reason of the wait or the end.
        left_s: seconds until it accepts no more batches.
    """

    state: State
    why: str = ""
    left_s: float = math.inf


class Provider(Protocol):
    """Starts and ends workers. Never called by two threads at once."""

    def start(self, name: str) -> None:
        """Start a worker, or request one.

        Raises:
            ProviderError: If it cannot start.
        """

    def started_workers(self) -> Mapping[str, StartedWorker]:
        """Return the workers that run, wait, or ended recently.

        Raises:
            ProviderError: If they cannot be listed now.
        """

    def stop(self, names: Iterable[str]) -> None:
        """End workers; names that no longer exist are ignored.

        Raises:
            ProviderError: If the request fails.
        """

    def close(self) -> None:
        """End all workers.

        Raises:
            ProviderError: If the request fails.
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
    """Return the command line of a worker, as a function of its name; walltime 0 is unlimited.

    The worker ends within its walltime, including a hand-over of `hand_over_s`. Its block cache is
    in a folder of `cache`, named after the worker, that no other worker uses at the time.
    """
    command = [sys.executable, "-m", "swathe.cli", "pool", "worker", url, "--threads", f"{threads}"]
    if insecure:
        command += ["--insecure"]
    if certificates is not None:  # not all batch systems start jobs in the portal's folder
        command += ["--certificates", str(certificates.absolute())]
    grace_s = FINISH_S + hand_over_s
    if walltime_s:
        grace_s = min(grace_s, LAST * margin_s(walltime_s))
        command += ["--lifetime", f"{walltime_s - margin_s(walltime_s):g}s"]

    command += ["--grace", f"{grace_s:g}s"]

    def command_for(name: str) -> list[str]:
        own = [] if cache is None else ["--cache", str(cache / str(slot_of(name)))]
        return [*command, "--name", name, *own]

    return command_for


def name_in(slot: int, prefix: str) -> str:
    """Return a name that no worker has had; no running worker has the same slot."""
    return f"{prefix}{slot}-{secrets.token_hex(4)}"


def slot_of(name: str) -> int:
    """Return the slot of a worker by its name."""
    return int(name.split("-")[-2])


def environment() -> dict[str, str]:
    """Return the environment of workers: without the catalogue URL, which may hold a password."""
    return {name: value for name, value in os.environ.items() if name != VARIABLE}


def margin_s(walltime_s: float) -> float:
    """Return how many seconds before the end of its walltime a worker stops accepting batches."""
    return min(MARGIN_S, walltime_s / 2)


class Processes:
    """Workers as processes of this machine; they end with this process, however it ends."""

    def __init__(self, command: Command) -> None:
        """Take the worker command."""
        self._command = command
        self._processes: dict[str, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}

    def start(self, name: str) -> None:
        """Start a process."""
        output = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        try:
            process = subprocess.Popen(
                [*self._command(name), "--attached"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=output,
                env=environment(),
            )
        except OSError as error:
            output.close()
            raise ProviderError(f"processes: cannot start a worker: {error}") from error
        self._processes[name] = process, output

    def started_workers(self) -> Mapping[str, StartedWorker]:
        """Return the processes; an ended one is listed once."""
        workers = {}
        for name, (process, output) in list(self._processes.items()):
            if (code := process.poll()) is None:
                workers[name] = StartedWorker("running")
                continue
            workers[name] = StartedWorker("ended", f"exit {code}: {_last_of(output)}".rstrip(": "))
            self._forget(name)
        return workers

    def stop(self, names: Iterable[str]) -> None:
        """End processes."""
        for name in names:
            if name in self._processes:
                self._processes[name][0].terminate()

    def close(self) -> None:
        """End all processes; those that do not end in time are killed."""
        self.stop(list(self._processes))
        for name, (process, _) in list(self._processes.items()):
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._forget(name)

    def _forget(self, name: str) -> None:
        process, output = self._processes.pop(name)
        output.close()
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()


def _last_of(output: IO[bytes]) -> str:
    """Return the last line of a process's output."""
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - 4 * EXCERPT))
    lines = output.read().decode(errors="replace").strip().splitlines()
    return lines[-1][-EXCERPT:] if lines else ""
