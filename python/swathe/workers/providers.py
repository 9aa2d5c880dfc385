"""Where workers are started when more are wanted: on this machine, or by Slurm.

A worker is known by the name it is started under, which is also what the scheduler knows it by.
"""

from __future__ import annotations

import math
import os
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

from swathe.environment import VARIABLE
from swathe.errors import SwatheError
from swathe.workers.pool import FINISH_S, HAND_OVER_S

State = Literal["waiting", "running", "ended"]

MARGIN_S = 60.0
"""A worker takes nothing more so long before its walltime ends, or half of it if that is less."""
LAST = 0.9
"""The part of that in which it may end."""
END_S = 30.0
SLURM_S = 15.0
SAID = 300
"""Characters of what is said of a failure that are told."""
STATES: Mapping[str, State] = {
    "PENDING": "waiting",
    "CONFIGURING": "waiting",
    "RUNNING": "running",
    "SUSPENDED": "running",
}
"""Of Slurm's states those in which a worker is there, or comes; one that completes is leaving."""

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
) -> Command:
    """Give what starts a worker of a scheduler by its name; a walltime of 0 does not end.

    It ends within its walltime, also where it hands over what it holds for `hand_over_s`. Its block
    cache is in a folder of `cache` that no other has at the time, by its name.
    """
    command = [sys.executable, "-m", "swathe.cli", "pool", "worker", url, "--threads", f"{threads}"]
    if certificates is not None:
        command += ["--certificates", str(certificates)]
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


class Slurm:
    """Jobs of Slurm, one for each worker; they outlive this process, and are found again."""

    def __init__(
        self,
        command: Command,
        prefix: str,
        *,
        threads: int,
        walltime_s: float,
        partition: str = "",
        options: Sequence[str] = (),
    ) -> None:
        """Take what starts a worker, and how its name begins: jobs of other names are not ours.

        The `options` are given to `sbatch` as they are.
        """
        self._command, self._prefix, self._margin_s = command, prefix, margin_s(walltime_s)
        self._ids: dict[str, str] = {}
        minutes = math.ceil(walltime_s / 60)
        self._sbatch = [
            "sbatch",
            "--parsable",
            "--no-requeue",
            "--output=/dev/null",
            f"--cpus-per-task={threads}",
            f"--time={minutes}",
        ]
        if partition:
            self._sbatch.append(f"--partition={partition}")
        self._sbatch += options

    def start(self, name: str) -> None:
        """Submit a job."""
        script = f"#!/bin/sh\nexec {shlex.join(self._command(name))}\n"
        said = _run([*self._sbatch, f"--job-name={name}"], script)
        self._ids[name] = said.strip().partition(";")[0]

    def known(self) -> Mapping[str, Started]:
        """Give the jobs of this pool, those that others of it have submitted included."""
        asked = ["squeue", "--me", "--noheader", "--states=all", "--format=%j|%i|%T|%L|%r"]
        found = {}
        for line in _run(asked).splitlines():
            name, _, rest = line.strip().partition("|")
            if not name.startswith(self._prefix):
                continue
            number, state, left, why = rest.split("|", 3)
            self._ids[name] = number
            told = f"job {number} of Slurm: {state} ({why})"
            if state == "PENDING" and why == "None":  # it was not looked at yet
                told = ""
            left_s = seconds_of(left) - self._margin_s
            found[name] = Started(STATES.get(state, "ended"), told, left_s)
        self._ids = {name: number for name, number in self._ids.items() if name in found}
        return found

    def stop(self, names: Iterable[str]) -> None:
        """Cancel jobs."""
        if ids := [self._ids[name] for name in names if name in self._ids]:
            _run(["scancel", *ids])

    def close(self) -> None:
        """Cancel all jobs of this pool."""
        self.stop(name for name, each in self.known().items() if each.state != "ended")


def seconds_of(text: str) -> float:
    """Give the seconds of `[[DAYS-]HOURS:]MINUTES:SECONDS` as Slurm writes them; else infinity."""
    days, _, rest = text.rpartition("-")
    try:
        parts = [int(part) for part in rest.split(":")]
        if not 2 <= len(parts) <= 3:
            return math.inf
        total = int(days or 0) * 86_400
    except ValueError:  # UNLIMITED, INVALID, NOT_SET
        return math.inf
    return float(total + sum(part * 60**power for power, part in enumerate(reversed(parts))))


def _run(command: Sequence[str], given: str = "") -> str:
    """Run one of Slurm's commands, and give what it says."""
    try:
        ran = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            timeout=SLURM_S,
            check=False,
            env=environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProviderError(f"{command[0]}: {error}") from error
    if ran.returncode:
        said = " ".join(ran.stderr.split())[-SAID:]
        raise ProviderError(f"{command[0]}: {said or f'exit {ran.returncode}'}")
    return ran.stdout
