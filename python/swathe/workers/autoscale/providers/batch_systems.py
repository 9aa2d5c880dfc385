"""Workers as jobs of a batch system, one job per worker; they outlive this process."""

from __future__ import annotations

import math
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from swathe.workers.autoscale.providers.provider import (
    EXCERPT,
    Command,
    ProviderError,
    StartedWorker,
    environment,
    margin_s,
)

COMMAND_S = 15.0


class BatchSystem(ABC):
    """Common part of the batch systems: a job is identified by the name of its worker."""

    ends: Sequence[str]
    """Command that ends jobs; their numbers follow."""

    def __init__(
        self,
        command: Command,
        prefix: str,
        *,
        threads: int,
        walltime_s: float,
        memory_gb: float = 0.0,
        partition: str = "",
        options: Sequence[str] = (),
    ) -> None:
        """Take the worker command, the name prefix, and the resources of a job.

        Args:
            command: returns the command line that starts a worker.
            prefix: prefix of worker names; jobs with other names belong to others.
            threads: cores per worker.
            walltime_s: walltime per worker, in seconds.
            memory_gb: memory per worker in 10**9 bytes; 0: the default of the batch system.
            partition: partition or queue; empty: the default.
            options: further options, passed to the submit command unchanged.
        """
        self._command, self._prefix = command, prefix
        self._threads, self._walltime_s = threads, math.ceil(walltime_s)
        self._memory_mib = math.ceil(memory_gb * 1e9 / 2**20)
        self._partition, self._options = partition, options
        self._margin_s = margin_s(walltime_s)
        self._ids: dict[str, str] = {}

    @abstractmethod
    def submit(self, name: str, command: Sequence[str]) -> str:
        """Submit a job that runs a command; return its number."""

    @abstractmethod
    def jobs(self) -> Iterator[tuple[str, str, StartedWorker]]:
        """Yield name, number and state of the jobs, with the walltime that is left."""

    def start(self, name: str) -> None:
        """Submit a job."""
        self._ids[name] = self.submit(name, self._command(name))

    def started_workers(self) -> Mapping[str, StartedWorker]:
        """Return the jobs of this pool, including those submitted by other portals of it."""
        workers, ids = {}, {}
        for name, number, job in self.jobs():
            if name.startswith(self._prefix):
                workers[name] = StartedWorker(job.state, job.why, job.left_s - self._margin_s)
                ids[name] = number
        self._ids = ids
        return workers

    def stop(self, names: Iterable[str]) -> None:
        """Cancel jobs."""
        ids = {name: self._ids[name] for name in names if name in self._ids}
        if not ids:
            return
        try:
            run_command([*self.ends, *ids.values()])
        except ProviderError:
            # If one has already ended, the error is about that one: the others were cancelled.
            if self._alive().issuperset(ids):
                raise

    def close(self) -> None:
        """Cancel all jobs of this pool."""
        self.stop(self._alive())

    def _alive(self) -> set[str]:
        return {name for name, each in self.started_workers().items() if each.state != "ended"}


def run_command(
    command: Sequence[str], stdin: str = "", env: Mapping[str, str] | None = None
) -> str:
    """Run a command of a batch system; return its output."""
    return complete_command(command, stdin, env=env).stdout


def complete_command(
    command: Sequence[str],
    stdin: str = "",
    fine: Collection[int] = (),
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command of a batch system; the exit codes in `fine` are not failures.

    Its environment is that of workers unless another is given.
    """
    try:
        process = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S,
            check=False,
            env=environment() if env is None else env,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProviderError(f"{command[0]}: {error}") from error
    if process.returncode and process.returncode not in fine:
        text = " ".join((process.stderr.strip() or process.stdout).split())[-EXCERPT:]
        raise ProviderError(f"{command[0]}: {text or f'exit {process.returncode}'}")
    return process


def unexpected_output(command: str, requirement: str, output: str) -> ProviderError:
    """Return the error for unexpected output of a command."""
    excerpt = output if len(output) <= EXCERPT else f"{output[:EXCERPT]}..."
    return ProviderError(f"{command}: expected {requirement}, found {excerpt!r}")


def seconds_of(text: str) -> float:
    """Return the seconds of `[[DAYS-]HOURS:]MINUTES:SECONDS`; infinity for other text."""
    days, _, rest = text.rpartition("-")
    try:
        parts = [int(part) for part in rest.split(":")]
        if not 2 <= len(parts) <= 3:
            return math.inf
        total = int(days or 0) * 86_400
    except ValueError:  # UNLIMITED, INVALID, NOT_SET
        return math.inf
    return float(total + sum(part * 60**power for power, part in enumerate(reversed(parts))))
