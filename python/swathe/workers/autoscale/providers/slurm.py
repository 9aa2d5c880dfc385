"""Workers as jobs of Slurm."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence

from swathe.workers.autoscale.providers.batch_systems import BatchSystem, run_command, seconds_of
from swathe.workers.autoscale.providers.provider import StartedWorker, State

STATES: Mapping[str, State] = {
    "PENDING": "waiting",
    "CONFIGURING": "waiting",
    "RUNNING": "running",
    "SUSPENDED": "running",
}
"""States in which a worker runs or waits; a job that completes is leaving."""


class Slurm(BatchSystem):
    """Jobs of Slurm; the options are those of `sbatch`."""

    ends = ("scancel",)

    def submit(self, name: str, command: Sequence[str]) -> str:
        """Submit a script."""
        command_line = [
            "sbatch",
            "--parsable",
            "--no-requeue",
            "--output=/dev/null",
            f"--job-name={name}",
            f"--cpus-per-task={self._threads}",
            f"--time={math.ceil(self._walltime_s / 60)}",
        ]
        if self._memory_mib:
            command_line.append(f"--mem={self._memory_mib}M")
        if self._partition:
            command_line.append(f"--partition={self._partition}")
        output = run_command(
            [*command_line, *self._options], f"#!/bin/sh\nexec {shlex.join(command)}\n"
        )
        return output.strip().partition(";")[0]

    def jobs(self) -> Iterator[tuple[str, str, StartedWorker]]:
        """Yield the jobs of this user."""
        command_line = ["squeue", "--me", "--noheader", "--states=all", "--format=%j|%i|%T|%L|%r"]
        for line in run_command(command_line).splitlines():
            name, _, rest = line.strip().partition("|")
            if not name.startswith(self._prefix):  # the name may contain bars
                continue
            number, state, remaining, why = rest.split("|", 3)
            reason = f"job {number} of Slurm: {state} ({why})"
            if state == "PENDING" and why == "None":  # not yet considered by the scheduler
                reason = ""
            yield (
                name,
                number,
                StartedWorker(STATES.get(state, "ended"), reason, seconds_of(remaining)),
            )
