"""Runs as jobs of Slurm that users of the portal submit: the commands are the operator's."""

from __future__ import annotations

import shlex
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from swathe.core.errors import AccessError, OptionError, SettingsError
from swathe.core.outputs import write_file
from swathe.runs.definition.run_settings import RunSettings
from swathe.runs.planning.batch_job import batch_job, submit_job
from swathe.runs.planning.run_plan import settings_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.portal.config import RunsSettings
    from swathe.runs.planning.run_plan import RunPlan

LONGEST_COMMAND = 1000
SETTINGS = "{settings}"
"""What stands in a command for the path of the settings."""


def script_of(plan: RunPlan, command: str) -> str:
    """Return the script of a job, as `swathe run submit --dry-run` prints it.

    Args:
        plan: the run, with its prediction.
        command: program and arguments as in a shell; its first word starts the ranks.

    Raises:
        SettingsError: If the computing time is not known.
        OptionError: If the command is none.
    """
    _check_compute(plan)
    try:
        words = shlex.split(command[:LONGEST_COMMAND])
    except ValueError as error:
        raise OptionError(f"command: expected a program and its arguments: {error}") from None
    if not words or not command.isprintable():
        raise OptionError("command: expected a program and its arguments, as: srun python app.py")
    return batch_job(plan.prediction, words).script


def submit_run(
    plan: RunPlan, values: Mapping[str, Any], settings: RunsSettings, choice: str
) -> str:
    """Submit a run to Slurm with a command of the operator; return the number of the job.

    Args:
        plan: the run, with its prediction.
        values: its settings, which the application gets as a file.
        settings: those of the operator.
        choice: which of the commands, from 0.

    Raises:
        AccessError: If the operator does not allow it.
        OptionError: If there is no such command.
        SettingsError: If the computing time is not known.
        OutputError: If the settings cannot be written.
        JobError: If Slurm does not take the job.
    """
    if not settings.submit or settings.folder is None:
        raise AccessError("runs are not submitted from here; see runs.submit of the settings")
    _check_compute(plan)
    if choice not in map(str, range(len(settings.commands))):
        raise OptionError(f"command: expected one of the list, found {choice[:20]!r}")
    run = RunSettings.from_mapping(values)
    path = settings.folder / f"{run.name}-{token_hex(4)}.toml"
    words = [
        word.replace(SETTINGS, str(path)) for word in shlex.split(settings.commands[int(choice)])
    ]
    job = batch_job(
        plan.prediction, words, options=[*settings.options, f"--chdir={settings.folder}"]
    )
    content = settings_toml(run).encode()
    write_file(path, lambda out: out.write(content), overwrite=False)
    return submit_job(job)


def _check_compute(plan: RunPlan) -> None:
    if plan.prediction.compute_s is None:
        raise SettingsError(
            "compute_s: expected the seconds of computing in an iteration, which the walltime "
            "needs, found none"
        )
