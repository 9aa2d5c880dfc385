"""A run as a job of Slurm, whose walltime is predicted."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.core.errors import JobError, OptionError
from swathe.workers.autoscale.providers.batch_systems import run_command
from swathe.workers.autoscale.providers.provider import ProviderError

if TYPE_CHECKING:
    from swathe.runs.planning.run_prediction import RunPrediction

MINUTE_S = 60
OPTION = re.compile(r"-[ -~]+")


@dataclass(frozen=True)
class BatchJob:
    """A run as a job of Slurm.

    Attributes:
        write_s: predicted seconds of writing, which 9 of 10 runs do not exceed.
        compute_s: seconds of computing in all iterations.
        walltime_s: walltime, in whole minutes: both, one after the other.
        script: what is submitted.
        number: number of the job; empty if it was not submitted.
    """

    write_s: float
    compute_s: float
    walltime_s: int
    script: str
    number: str = ""


def batch_job(
    prediction: RunPrediction,
    command: Sequence[str],
    compute_s: float | None = None,
    options: Sequence[str] = (),
) -> BatchJob:
    """Return the job of a run: a task for each rank.

    Args:
        prediction: what writing takes.
        command: program and arguments; its first word starts the ranks, as `srun` or `mpiexec`.
        compute_s: seconds of computing of an iteration; by default those of the settings.
        options: further options of `sbatch`.

    Raises:
        OptionError: If the computing time is not known, or an option is none.
    """
    run = prediction.run
    compute_s = run.compute_s if compute_s is None else compute_s
    if compute_s is None:
        raise OptionError(
            f"{run.name}: expected compute_s, the computing time of an iteration, in the settings "
            "or as an argument, found none"
        )
    if not command:
        raise OptionError(f"{run.name}: expected a command, found none")
    for each in options:
        if not OPTION.fullmatch(each):
            raise OptionError(f"{run.name}: expected an option of sbatch, found {each!r:.80}")
    write_s, total_s = prediction.interval_s[1], compute_s * (run.iterations + 1)
    minutes = max(math.ceil((write_s + total_s) / MINUTE_S), 1)
    # The walltime is of one run: a job that is queued again would begin another.
    settings = [f"--job-name={run.name}", f"--ntasks={run.ranks}", f"--time={minutes}"]
    settings += ["--no-requeue", *map(shlex.quote, options)]
    lines = ["#!/bin/sh", *(f"#SBATCH {each}" for each in settings)]
    lines += [f"exec {shlex.join(command)}", ""]
    return BatchJob(write_s, total_s, minutes * MINUTE_S, "\n".join(lines))


def submit_job(job: BatchJob) -> str:
    """Submit a job with the environment of this process; return its number.

    Raises:
        JobError: If Slurm is not there, or does not take it.
    """
    try:
        # It needs the catalogue, which workers do not.
        output = run_command(["sbatch", "--parsable"], job.script, env=os.environ)
    except ProviderError as error:
        raise JobError(str(error)) from error
    return output.strip().partition(";")[0]
