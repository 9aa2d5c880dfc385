"""Workers that are jobs of a batch system, one for each; they outlive this process."""

from __future__ import annotations

import math
import shlex
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

from swathe.workers.providers import (
    SAID,
    Command,
    ProviderError,
    Started,
    State,
    environment,
    margin_s,
)

COMMAND_S = 15.0
STATES: Mapping[str, State] = {
    "PENDING": "waiting",
    "CONFIGURING": "waiting",
    "RUNNING": "running",
    "SUSPENDED": "running",
}
"""Of Slurm's states those in which a worker is there, or comes; one that completes is leaving."""


class BatchSystem(ABC):
    """What is alike in batch systems: jobs are known by the names of their workers."""

    ends: Sequence[str]
    """What ends the jobs whose numbers follow."""

    def __init__(self, command: Command, prefix: str, walltime_s: float) -> None:
        """Take what starts a worker, and how its name begins: jobs of other names are not ours."""
        self._command, self._prefix, self._margin_s = command, prefix, margin_s(walltime_s)
        self._ids: dict[str, str] = {}

    @abstractmethod
    def submit(self, name: str, command: Sequence[str]) -> str:
        """Submit a job that runs a command, and give its number."""

    @abstractmethod
    def jobs(self) -> Iterator[tuple[str, str, Started]]:
        """Give name, number and state of jobs, with what is left of their walltime."""

    def start(self, name: str) -> None:
        """Submit a job."""
        self._ids[name] = self.submit(name, self._command(name))

    def known(self) -> Mapping[str, Started]:
        """Give the jobs of this pool, those that others of it have submitted included."""
        found, ids = {}, {}
        for name, number, job in self.jobs():
            if name.startswith(self._prefix):
                found[name] = Started(job.state, job.why, job.left_s - self._margin_s)
                ids[name] = number
        self._ids = ids
        return found

    def stop(self, names: Iterable[str]) -> None:
        """Cancel jobs."""
        if ids := [self._ids[name] for name in names if name in self._ids]:
            run([*self.ends, *ids])

    def close(self) -> None:
        """Cancel all jobs of this pool."""
        self.stop(name for name, each in self.known().items() if each.state != "ended")


class Slurm(BatchSystem):
    """Jobs of Slurm."""

    ends = ("scancel",)

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
        """Take also what is asked of Slurm; the `options` are given to `sbatch` as they are."""
        super().__init__(command, prefix, walltime_s)
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

    def submit(self, name: str, command: Sequence[str]) -> str:
        """Submit a script."""
        script = f"#!/bin/sh\nexec {shlex.join(command)}\n"
        said = run([*self._sbatch, f"--job-name={name}"], script)
        return said.strip().partition(";")[0]

    def jobs(self) -> Iterator[tuple[str, str, Started]]:
        """Give the jobs of this user."""
        asked = ["squeue", "--me", "--noheader", "--states=all", "--format=%j|%i|%T|%L|%r"]
        for line in run(asked).splitlines():
            name, _, rest = line.strip().partition("|")
            if not name.startswith(self._prefix):  # it may have bars of its own
                continue
            number, state, left, why = rest.split("|", 3)
            told = f"job {number} of Slurm: {state} ({why})"
            if state == "PENDING" and why == "None":  # it was not looked at yet
                told = ""
            yield name, number, Started(STATES.get(state, "ended"), told, seconds_of(left))


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


def run(command: Sequence[str], given: str = "") -> str:
    """Run a command of a batch system, and give what it says."""
    try:
        ran = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
            env=environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProviderError(f"{command[0]}: {error}") from error
    if ran.returncode:
        said = " ".join(ran.stderr.split())[-SAID:]
        raise ProviderError(f"{command[0]}: {said or f'exit {ran.returncode}'}")
    return ran.stdout
