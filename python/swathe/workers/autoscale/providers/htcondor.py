"""Workers as jobs of HTCondor."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from swathe.workers.autoscale.providers.batch_systems import (
    BatchSystem,
    run_command,
    unexpected_output,
)
from swathe.workers.autoscale.providers.provider import (
    ProviderError,
    StartedWorker,
    State,
    environment,
)

STATES: Mapping[int, tuple[State, str]] = {
    1: ("waiting", "idle"),
    2: ("running", "running"),
    3: ("ended", "removed"),
    4: ("ended", "completed"),
    5: ("ended", "held"),
    6: ("ended", "completing"),
    7: ("running", "suspended"),
}
"""A held job does nothing until a person releases it; for a worker nobody does."""
HELD_S = 60
"""Seconds a held job stays in the queue for inspection."""
JOB_LINE = re.compile(r"^(\d+)\.\d+ - ", re.MULTILINE)
VARIABLES = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Variables passed in addition to ours. Every user can read the variables of a job."""


class HTCondor(BatchSystem):
    """Jobs of HTCondor; the options are extra lines of the submit description."""

    ends = ("condor_rm",)

    def submit(self, name: str, command: Sequence[str]) -> str:
        """Submit a description."""
        over = f"JobStatus == 2 && time() - JobCurrentStartDate > {self._walltime_s}"
        again = "JobStatus == 1 && NumJobStarts > 0"
        hold_condition = f"JobStatus == 5 && time() - EnteredCurrentStatus > {HELD_S}"
        lines = [
            # Python must be started under its own name, as HTCondor does not: else it misses its
            # libraries.
            "executable = /bin/sh",
            f"arguments = {quote_words(['-c', f'exec {shlex.join(command)}'])}",
            f"environment = {quote_words(_passed_variables())}",
            "transfer_executable = false",
            'transfer_output_files = ""',
            "output = /dev/null",
            "error = /dev/null",
            f"batch_name = {name}",
            f"request_cpus = {self._threads}",
            f"+SwatheWalltime = {self._walltime_s}",
            f"periodic_remove = ({over}) || ({again}) || ({hold_condition})",
            "want_graceful_removal = true",
            f"job_max_vacate_time = {max(1, int(self._margin_s))}",
        ]
        if self._memory_mib:
            lines.append(f"request_memory = {self._memory_mib}")
        description = "\n".join([*lines, *self._options, "queue", ""])
        output = run_command(["condor_submit", "-terse", "-"], description)
        if not (match := JOB_LINE.search(output)):
            raise unexpected_output("condor_submit", "a job's number as 1.0 - 1.0", output)
        return match[1]

    def jobs(self) -> Iterator[tuple[str, str, StartedWorker]]:
        """Yield the jobs of this pool."""
        ours = f'substr(JobBatchName, 0, {len(self._prefix)}) == "{self._prefix}"'
        attributes = "JobBatchName,JobStatus,SwatheWalltime,JobCurrentStartDate"
        attributes += ",HoldReason,LastRejMatchReason"
        output = run_command(["condor_q", "-json", "-constraint", ours, "-attributes", attributes])
        for job in _parse_jobs(output):
            try:
                name, number = str(job["JobBatchName"]), str(job["ClusterId"])
                state, state_name = STATES[job["JobStatus"]]
                left_s = float(job["SwatheWalltime"])
                if state == "running":
                    left_s -= time.time() - job["JobCurrentStartDate"]
            except (KeyError, TypeError, ValueError) as error:
                requirement = f"jobs with {attributes} and ClusterId ({error!r})"
                raise unexpected_output("condor_q", requirement, json.dumps(job)) from error
            why = job.get("HoldReason" if state_name == "held" else "LastRejMatchReason", "")
            reason = f"job {number} of HTCondor: {state_name} ({str(why).strip()})"
            if state_name == "idle" and not why:  # not yet considered by the scheduler
                reason = ""
            yield name, number, StartedWorker(state, reason, left_s)


def quote_words(words: Sequence[str]) -> str:
    """Quote words for a submit description: quotes are doubled; `$` starts a macro."""
    for word in words:
        if "\n" in word or "$$" in word:
            raise ProviderError(f"condor_submit: expected no line break and no $$, found {word!r}")
    each = ["'" + word.replace("'", "''") + "'" for word in words]
    return '"' + " ".join(each).replace('"', '""').replace("$", "$(DOLLAR)") + '"'


def _passed_variables() -> list[str]:
    """Return the variables passed to jobs: ours without tokens, and some common ones."""
    return [
        f"{name}={value}"
        for name, value in environment().items()
        if name in VARIABLES or (name.startswith("SWATHE_") and not name.endswith("TOKEN"))
    ]


def _parse_jobs(output: str) -> list[dict[str, Any]]:
    """Parse the output of `condor_q`; it is empty if the queue is empty."""
    if not output.strip():
        return []
    try:
        jobs = json.loads(output)
    except ValueError as error:
        raise unexpected_output("condor_q", f"JSON ({error})", output) from error
    if not isinstance(jobs, list) or not all(isinstance(each, dict) for each in jobs):
        raise unexpected_output("condor_q", "a list of jobs", output)
    return jobs
