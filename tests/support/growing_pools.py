"""Pools that grow, for the tests: slow workers, started by what is to be tested."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from swathe.jobs import Jobs
from swathe.workers import Runner
from swathe.workers.autoscale.policy import GrowthLimits
from swathe.workers.autoscale.pool import GrowingPool
from swathe.workers.autoscale.providers.provider import (
    Command,
    Provider,
    StartedWorker,
    worker_command,
)
from tests.support.job_runner import PATIENCE_S
from tests.support.pools import SLOW, connected

PREFIX = "swathe-test-"


class WatchProvider:
    """A provider, and the most workers that it ever had at a time."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.most = 0
        self.names: set[str] = set()

    def start(self, name: str) -> None:
        self._provider.start(name)

    def started_workers(self) -> Mapping[str, StartedWorker]:
        workers = self._provider.started_workers()
        alive = {name for name, each in workers.items() if each.state != "ended"}
        self.most = max(self.most, len(alive))
        self.names |= alive
        return workers

    def stop(self, names: Any) -> None:
        self._provider.stop(names)

    def close(self) -> None:
        self._provider.close()


def slow_command(
    url: str, pause_s: float, walltime_s: float = 0.0, hold: Path = Path("/none/hold")
) -> Command:
    """What starts workers of one thread, whose batches take so much longer, or are held."""
    return slowed(worker_command(url, None, 1, walltime_s), pause_s, hold)


def slowed(plain_command: Command, pause_s: float, hold: Path) -> Command:
    """What starts slow workers in the place of others."""

    def command(name: str) -> list[str]:
        words = list(plain_command(name))
        assert words[:3] == [sys.executable, "-m", "swathe.cli"]
        return [sys.executable, str(SLOW), str(pause_s), str(hold), *words[3:]]

    return command


@contextmanager
def growing(
    jobs: Jobs, address: str, provider: Provider, limits: GrowthLimits, kind: str = "processes"
) -> Iterator[GrowingPool]:
    """Jobs that are worked on by a pool that grows."""
    pool = GrowingPool(
        connected(address, jobs.place),
        provider,
        limits,
        kind=kind,
        prefix=PREFIX,
        threads=1,
        waiting=jobs.catalog.waiting,
        reservations=jobs.catalog.reservations,
    )
    runner = Runner(jobs, pool)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("swathe.workers.autoscale.pool.LOOK_S", 0.2)
        runner.start()
        try:
            yield pool
        finally:
            runner.stop(PATIENCE_S)


def workers_of(pool: GrowingPool, are: Callable[[list[str], list[str]], bool]) -> list[str]:
    """The names of those that are busy, once something is so of all names and the busy ones."""
    until = time.monotonic() + PATIENCE_S
    while True:
        status = pool.status()
        there = [each.name for each in status.workers if not each.refused]
        busy = [each.name for each in status.workers if each.busy and not each.refused]
        if are(there, busy):
            return busy
        assert time.monotonic() < until, status
        time.sleep(0.05)
