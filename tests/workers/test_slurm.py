"""Pools that grow and shrink under a real Slurm."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from swathe.jobs import Jobs, Options
from swathe.workers.autoscale.policy import GrowthLimits
from swathe.workers.autoscale.providers.provider import ProviderError, worker_command
from swathe.workers.autoscale.providers.slurm import Slurm
from tests.support.caching_pools import IMAGES, at_work, pool_of, rig_of
from tests.support.growing_pools import PREFIX, WatchProvider, growing, slow_command, workers_of
from tests.support.job_runner import check, ended
from tests.support.pools import (
    Process,
    environment,
    lone_scheduler,
    many_targets,
    members,
    ready,
    survey_jobs,
)
from tests.support.portals import wait_until
from tests.support.slurm import output_of, slurm
from tests.workers.test_drain import LITTLE, caching, hand_over_when_let_go, handed
from tests.workers.test_drain import ended as over

LIMITS = GrowthLimits(
    minimum=0, maximum=4, spare=1, soon_s=1.0, idle_s=2.0, start_s=1.0, hand_over_s=0.0
)


@pytest.fixture(scope="module", autouse=True)
def _slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        with slurm(tmp_path_factory.mktemp("slurm"), patch):
            yield


jobs, scheduler = survey_jobs, lone_scheduler


def provider_of(url: str, pause_s: float, walltime_s: float, **settings: object) -> Slurm:
    """What submits slow workers of one thread."""
    command = slow_command(url, pause_s, walltime_s)
    return Slurm(command, PREFIX, threads=1, walltime_s=walltime_s, **settings)  # type: ignore[arg-type]


def number_of(name: str) -> str:
    """The number of the job that a worker is."""
    return output_of(["squeue", "--noheader", f"--name={name}", "--format=%i"])


def test_a_pool_grows_with_the_queue_and_shrinks_again(
    jobs: Jobs, scheduler: Process, survey: Path, tmp_path: Path
) -> None:
    table = many_targets(survey)
    # Long enough that another comes for the one that is cancelled, which first does what it has.
    provider = WatchProvider(
        provider_of(scheduler.address, 2.0, 600.0, partition="work", memory_gb=0.1)
    )
    job = jobs.submit(table, Options(), "me")
    assert output_of(["squeue", "--noheader"]) == ""
    with growing(jobs, scheduler.address, provider, LIMITS, "slurm") as pool:
        busy = workers_of(pool, lambda there, busy: len(there) == len(busy) == 4)
        subprocess.run(["scancel", number_of(busy[0])], check=True, timeout=120)
        workers_of(pool, lambda there, _: busy[0] not in there)
        workers_of(pool, lambda there, _: len(there) == 4)
        job = ended(jobs, job)
        workers_of(pool, lambda there, _: len(there) == 1)
        wait_until(lambda: len(output_of(["squeue", "--noheader"]).splitlines()) == 1)
        growth = pool.status().growth
    assert growth is not None
    assert (growth.by, growth.target, growth.starting, growth.trouble) == ("slurm", 1, 0, "")
    assert provider.most == 4
    assert len(provider.names) == 5
    check(jobs, job, table, tmp_path)
    wait_until(lambda: output_of(["squeue", "--noheader"]) == "")


def test_walltime_that_ends_in_the_middle_of_a_job(
    jobs: Jobs, scheduler: Process, survey: Path, tmp_path: Path
) -> None:
    table = many_targets(survey)
    # Each takes work for half of the minute, which is the least that Slurm knows.
    provider = WatchProvider(provider_of(scheduler.address, 1.0, 60.0))
    limits = GrowthLimits(maximum=1, spare=0, soon_s=1.0, idle_s=1.0, start_s=1.0, hand_over_s=0.0)
    with growing(jobs, scheduler.address, provider, limits, "slurm"):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    assert len(provider.names) >= 2
    assert provider.most == 1
    check(jobs, job, table, tmp_path)


def test_one_that_is_not_needed_hands_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rig in rig_of(tmp_path, monkeypatch):
        command = worker_command(rig.scheduler.address, None, 1, 600.0, tmp_path / "grown")
        provider = WatchProvider(Slurm(command, PREFIX, threads=1, walltime_s=600.0))
        hand_over_when_let_go(rig, provider, "slurm")
        assert len(provider.names) == 2
        provider.close()


def test_one_that_is_cancelled_hands_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rig in rig_of(tmp_path, monkeypatch):
        command = worker_command(rig.scheduler.address, None, 1, 600.0, tmp_path / "grown")
        provider = Slurm(command, PREFIX, threads=1, walltime_s=600.0)
        with caching(), at_work(rig, 0) as work:
            provider.start(f"{PREFIX}0-first")
            members(pool_of(work), ready(1))
            rig.do(work)
            provider.start(f"{PREFIX}1-second")
            members(pool_of(work), ready(2))
            rig.moved()
            subprocess.run(["scancel", number_of(f"{PREFIX}0-first")], check=True, timeout=120)
            told = handed(work.pool, over)
            assert (told.worker, told.state) == (f"{PREFIX}0-first", "done")
            assert (told.objects, told.heirs) == (IMAGES, (f"{PREFIX}1-second",))
            members(pool_of(work), ready(1))
            rig.do(work)
            assert rig.moved() < LITTLE
        provider.close()


def test_jobs_that_slurm_does_not_take(jobs: Jobs, scheduler: Process) -> None:
    provider = provider_of(scheduler.address, 0.0, 600.0, partition="none")
    limits = GrowthLimits(minimum=1, maximum=1, spare=0)
    with growing(jobs, scheduler.address, provider, limits, "slurm") as pool:
        wait_until(lambda: pool.status().growth.trouble)  # type: ignore[union-attr]
        assert "sbatch: " in pool.status().growth.trouble  # type: ignore[union-attr]
        assert "nvalid partition" in pool.status().growth.trouble  # type: ignore[union-attr]


def test_jobs_that_wait_tell_why_and_are_found_again(scheduler: Process) -> None:
    provider = provider_of(scheduler.address, 0.0, 600.0, options=("--begin=now+1hour",))
    provider.start(f"{PREFIX}0-a")
    try:
        wait_until(lambda: "BeginTime" in provider.started_workers()[f"{PREFIX}0-a"].why)
        assert provider.started_workers()[f"{PREFIX}0-a"].state == "waiting"
    finally:
        # By a portal that was started later.
        provider_of(scheduler.address, 0.0, 600.0).close()
    wait_until(lambda: provider.started_workers()[f"{PREFIX}0-a"].state == "ended")


def test_slurm_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/none")
    provider = provider_of("dask://127.0.0.1:1", 0.0, 600.0)
    with pytest.raises(ProviderError, match="squeue: "):
        provider.started_workers()
    with pytest.raises(ProviderError, match="sbatch: "):
        provider.start(f"{PREFIX}0-a")
