"""Workers as jobs of PBS: OpenPBS and PBS Professional.

`qstat -f` is parsed as text. Its JSON is invalid for some values of job variables, and some
versions list only the first job (issues 1255, 2541 and 2672 of OpenPBS).
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence

from swathe.workers.autoscale.providers.batch_systems import (
    BatchSystem,
    complete_command,
    run_command,
    seconds_of,
    unexpected_output,
)
from swathe.workers.autoscale.providers.provider import StartedWorker, State, environment

STATES: Mapping[str, State] = {
    **dict.fromkeys("QHTW", "waiting"),
    **dict.fromkeys("BRSU", "running"),
}
"""States in which a worker runs or waits; a job that exits is leaving."""
NUMBER = re.compile(r"\d+(\[\d*\])?\.\S+")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OWN = ("TMPDIR",)
"""Variables that each job sets for itself, in addition to `PBS_*`."""
UNKNOWN_JOB = (35, 153)
"""Exit codes of `qstat` if a job has ended (15139) or is unknown (15001); the others are listed."""
BEGINS = "Job Id: "
TIME = "%a %b %d %H:%M:%S %Y"


class PBS(BatchSystem):
    """Jobs of PBS; the options are those of `qsub`."""

    ends = ("qdel",)

    def submit(self, name: str, command: Sequence[str]) -> str:
        """Submit a script that sets the environment: all users can read what `qsub -V` passes."""
        select = f"select=1:ncpus={self._threads}"
        if self._memory_mib:
            select += f":mem={self._memory_mib}mb"
        hours, rest = divmod(self._walltime_s, 3600)
        command_line = [
            "qsub",
            "-N",
            name,
            "-r",
            "n",
            "-S",
            "/bin/sh",
            "-j",
            "oe",
            "-o",
            "/dev/null",
        ]
        command_line += ["-l", select, "-l", f"walltime={hours:02}:{rest // 60:02}:{rest % 60:02}"]
        if self._partition:
            command_line += ["-q", self._partition]
        script = "\n".join([*_exports(), f"exec {shlex.join(command)}", ""])
        output = run_command([*command_line, *self._options], script)
        number = output.strip().rpartition("\n")[2]  # some sites print a message first
        if not NUMBER.fullmatch(number):
            raise unexpected_output("qsub", "a job's number", output)
        return number

    def jobs(self) -> Iterator[tuple[str, str, StartedWorker]]:
        """Yield the jobs of this user."""
        output = run_command(["qselect", "-u", pwd.getpwuid(os.geteuid()).pw_name])
        numbers = output.split()
        for number in numbers:
            if not NUMBER.fullmatch(number):
                raise unexpected_output("qselect", "numbers of jobs", output)
        if not numbers:
            return
        process = complete_command(["qstat", "-f", *numbers], fine=UNKNOWN_JOB)
        by_number = full(process.stdout)
        if len(by_number) < len(numbers) and process.returncode == 0:
            raise unexpected_output("qstat", f"{len(numbers)} jobs", process.stdout)
        for number, job in by_number.items():
            if (name := _of(job, "Job_Name", number)).startswith(self._prefix):
                yield name, number, _state_of(number, job)


def _state_of(number: str, job: Mapping[str, str]) -> StartedWorker:
    state = _of(job, "job_state", number)
    left_s = seconds_of(_of(job, "Resource_List.walltime", number))
    if start := job.get("stime"):
        try:
            left_s -= time.time() - time.mktime(time.strptime(start, TIME))
        except (ValueError, OverflowError) as error:
            raise unexpected_output("qstat", f"a time as stime of job {number}", start) from error
    why = job.get("comment", "")
    reason = f"job {number} of PBS: {state} ({why})"
    if state == "Q" and not why:  # not yet considered by the scheduler
        reason = ""
    return StartedWorker(STATES.get(state, "ended"), reason, left_s)


def _of(job: Mapping[str, str], name: str, number: str) -> str:
    if name not in job:
        raise unexpected_output("qstat", f"{name} of job {number}", ", ".join(job))
    return job[name]


def full(output: str) -> dict[str, dict[str, str]]:
    """Parse `qstat -f`: the attributes of each job; long values continue after a tab."""
    jobs: dict[str, dict[str, str]] = {}
    number = name = ""
    for line in output.splitlines():
        if line.startswith(BEGINS):
            number, name = line.removeprefix(BEGINS).strip(), ""
            jobs[number] = {}
        elif not number:
            if line.strip():
                raise unexpected_output("qstat", f"{BEGINS!r}", output)
        elif line.startswith("\t") and name:
            jobs[number][name] += line[1:]
        elif line.startswith("    ") and " = " in line:
            name, _, value = line.strip().partition(" = ")
            jobs[number][name] = value
    return jobs


def _exports() -> Iterator[str]:
    for name, value in environment().items():
        if VARIABLE.fullmatch(name) and not name.startswith("PBS_") and name not in OWN:
            yield f"export {name}={shlex.quote(value)}"
