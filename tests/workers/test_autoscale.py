"""Pools that grow and shrink: workers are processes of this machine."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from swathe.catalog import Catalog
from swathe.core.errors import SettingsError
from swathe.jobs import Jobs, Options
from swathe.portal.config import config_of
from swathe.workers.autoscale.policy import GrowthLimits
from swathe.workers.autoscale.pool import GrowingPool
from swathe.workers.autoscale.providers.batch_systems import seconds_of
from swathe.workers.autoscale.providers.provider import Processes, StartedWorker, worker_command
from tests.support.growing_pools import WatchProvider, growing, slow_command, workers_of
from tests.support.job_runner import check, ended
from tests.support.pools import Hold, Process, command, lone_scheduler, many_targets, survey_jobs
from tests.support.portals import SECOND_S, served, wait_until

LIMITS = GrowthLimits(minimum=0, maximum=4, spare=1, soon_s=1.0, idle_s=2.0, start_s=1.0)


jobs, scheduler = survey_jobs, lone_scheduler


def kill(name: str) -> None:
    """End the worker of a name as a power cut does."""
    [found] = pids(name)
    os.kill(found, signal.SIGKILL)


def pids(name: str) -> list[int]:
    """The processes that have this word in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if name.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def target_of(pool: GrowingPool) -> int | None:
    growth = pool.status().growth
    return growth.target if growth else None


def test_a_pool_grows_with_the_queue_and_shrinks_again(
    jobs: Jobs, scheduler: Process, survey: Path, tmp_path: Path
) -> None:
    table = many_targets(survey)
    hold = Hold(tmp_path / "hold")
    provider = WatchProvider(Processes(slow_command(scheduler.address, 0.8, hold=hold.path)))
    job = jobs.submit(table, Options(), "me")
    # Else it might be done before all four are there.
    hold.close()
    with growing(jobs, scheduler.address, provider, LIMITS) as pool:
        assert pool.status().workers == []
        busy = workers_of(pool, lambda there, busy: len(there) == len(busy) == 4)
        kill(busy[0])
        workers_of(pool, lambda there, _: busy[0] not in there)
        workers_of(pool, lambda there, _: len(there) == 4)
        hold.open()
        job = ended(jobs, job)
        # On a busy machine workers may be gone before the pool has made up its mind.
        workers_of(pool, lambda there, _: len(there) == 1 and target_of(pool) == 1)
        growth = pool.status().growth
    assert growth is not None
    assert (growth.by, growth.target, growth.starting, growth.trouble) == ("processes", 1, 0, "")
    assert provider.most == 4
    # None came and went without need.
    assert len(provider.names) == 5
    check(jobs, job, table, tmp_path)
    assert not any(map(pids, provider.names))


def test_minimum_maximum_and_reservations_hold(jobs: Jobs, scheduler: Process) -> None:
    provider = WatchProvider(Processes(slow_command(scheduler.address, 0.0)))
    limits = GrowthLimits(minimum=1, maximum=2, spare=0, soon_s=1.0, idle_s=0.5, start_s=1.0)
    now = datetime.now(UTC)
    with growing(jobs, scheduler.address, provider, limits) as pool:
        workers_of(pool, lambda there, _: len(there) == 1)
        made = jobs.catalog.reserve(10, now - timedelta(hours=1), now + timedelta(hours=1))
        workers_of(pool, lambda there, _: len(there) == 2)
        wait_until(lambda: pool.status().growth.reserved == [made])  # type: ignore[union-attr]
        assert jobs.catalog.release(made.number)
        workers_of(pool, lambda there, _: len(there) == 1)
        time.sleep(2 * limits.idle_s)
        workers_of(pool, lambda there, _: len(there) == 1)
    assert provider.most == 2
    assert len(provider.names) == 2


def test_workers_that_are_refused_make_room_for_others(
    jobs: Jobs, scheduler: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe._swathe.__version__", "9.9.9")
    provider = WatchProvider(Processes(slow_command(scheduler.address, 0.0)))
    with growing(jobs, scheduler.address, provider, GrowthLimits(minimum=1, maximum=1)) as pool:
        wait_until(lambda: any("9.9.9" in each.refused for each in pool.status().workers))
        monkeypatch.setattr("swathe.workers.autoscale.pool.JOIN_S", 0.0)
        wait_until(lambda: "portal of 9.9.9" in pool.status().growth.trouble)  # type: ignore[union-attr]
        wait_until(lambda: len(provider.names) > 1)
    assert provider.most == 1


def test_workers_whose_time_is_over_finish_what_they_have(
    jobs: Jobs, scheduler: Process, survey: Path, tmp_path: Path
) -> None:
    table = many_targets(survey)
    # Half of it is margin: each takes work for six seconds, of twelve in which two do the job.
    provider = WatchProvider(Processes(slow_command(scheduler.address, 0.6, walltime_s=12.0)))
    limits = GrowthLimits(minimum=0, maximum=2, spare=0, soon_s=1.0, idle_s=1.0, start_s=0.5)
    with growing(jobs, scheduler.address, provider, limits):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    assert len(provider.names) > 2
    assert provider.most == 2
    check(jobs, job, table, tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/none/python"], "cannot start a worker: .*No such file"),
        ([sys.executable, "-c", "import sys; sys.exit('no good')"], "exit 1: no good"),
    ],
)
def test_workers_that_cannot_start_are_told_and_not_tried_all_the_time(
    jobs: Jobs, scheduler: Process, words: list[str], message: str
) -> None:
    tried = []

    def command(name: str) -> list[str]:
        tried.append(name)
        return words

    limits = GrowthLimits(minimum=1, maximum=1, spare=0, idle_s=0.0)
    begun = time.monotonic()
    with growing(jobs, scheduler.address, Processes(command), limits) as pool:
        wait_until(lambda: re.search(message, pool.status().growth.trouble))  # type: ignore[union-attr]
        wait_until(lambda: len(tried) > 1)
    # At most after 1, 2, 4, ... seconds, however often it looks.
    assert len(tried) <= 2 + math.log2(1 + time.monotonic() - begun)


def test_why_one_waits_is_told_beside_why_another_ended(jobs: Jobs, scheduler: Process) -> None:
    names: list[str] = []

    class Full:
        def start(self, name: str) -> None:
            names.append(name)

        def started_workers(self) -> Mapping[str, StartedWorker]:
            found = {name: StartedWorker("waiting", "no room") for name in names}
            return found | {name: StartedWorker("ended", "its node is down") for name in names[:1]}

        def stop(self, names: Iterable[str]) -> None:
            pass

        def close(self) -> None:
            pass

    with growing(jobs, scheduler.address, Full(), GrowthLimits(minimum=1, maximum=1)) as pool:
        wait_until(lambda: pool.status().growth.trouble.endswith("its node is down; no room"))  # type: ignore[union-attr]


def test_growth_goes_on_after_a_fault_of_ours(jobs: Jobs, scheduler: Process) -> None:
    faults = iter([RuntimeError("what nobody thought of"), AssertionError("nor of this")])

    class Faulty(WatchProvider):
        def started_workers(self) -> Mapping[str, StartedWorker]:
            if (fault := next(faults, None)) is not None:
                raise fault
            return super().started_workers()

    provider = Faulty(Processes(slow_command(scheduler.address, 0.0)))
    limits = GrowthLimits(minimum=1, maximum=1, spare=0)
    with growing(jobs, scheduler.address, provider, limits) as pool:
        wait_until(lambda: "RuntimeError: what nobody" in pool.status().growth.trouble)  # type: ignore[union-attr]
        workers_of(pool, lambda there, _: len(there) == 1)
        wait_until(lambda: not pool.status().growth.trouble)  # type: ignore[union-attr]


def test_certificates_are_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = worker_command("dask://10.1.2.3:1", Path("made/here"), 1, 0.0)("swathe-0-a")
    assert words[words.index("--certificates") + 1] == f"{tmp_path}/made/here"


def test_a_portal_with_workers_of_its_own(tmp_path: Path, scheduler: Process) -> None:
    settings = (
        f'[workers]\nurl = "{scheduler.address}"\ngrow = "processes"\nminimum = 1\nmaximum = 2\n'
        f'cache = "{tmp_path}/caches"\n'
    )
    with served(tmp_path, settings) as portal:
        config = ("--config", tmp_path / "swathe.toml")
        at = "2100-01-01T20:00"
        asked = command("reservation", "add", "--workers", "2", "--for", "2h", "--at", at, *config)
        made = json.loads(run([*asked, "--json"]).stdout)
        assert made["starts_at"] == "2100-01-01T20:00:00Z"
        assert made["ends_at"] == "2100-01-01T22:00:00Z"
        told = seen(portal.url, lambda told: told["workers"] and told["growth"]["reserved"])
        assert told["workers"][0]["name"].split("-")[-2] == "0"
        assert told["growth"]["reserved"] == [made]
        assert (told["growth"]["by"], told["growth"]["maximum"]) == ("processes", 2)
        shown = run(command("status", "--url", portal.url)).stdout
        assert "reservation 1: 2 from 2100-01-01T20:00:00Z" in shown
        page = httpx.get(f"{portal.url}/pool").text
        assert "Reserved: 2 from 2100-01-01 20:00" in page
        listed = json.loads(run(command("reservation", "list", *config, "--json")).stdout)
        assert listed == {"reservations": [made]}
        remove = command("reservation", "remove", str(made["number"]), *config)
        gone = json.loads(run([*remove, "--json"]).stdout)
        assert gone == {"removed": made["number"]}
        assert run(remove).returncode == 2
        [worker] = seen(portal.url, lambda told: not told["growth"]["reserved"])["workers"]
        assert pids(f"{tmp_path}/caches/0") == pids(worker["name"])
        portal.kill()
        wait_until(lambda: not pids(worker["name"]))


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def seen(url: str, is_so: Any) -> Any:
    """The state of a portal's pool, once something is so of it."""
    until = time.monotonic() + SECOND_S
    while True:
        told = httpx.get(f"{url}/api/pool", timeout=120).json()
        if is_so(told):
            return told
        assert time.monotonic() < until, told
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--workers", "5", "--for", "1h"), "at most workers.maximum, 4, found 5"),
        (
            ("--workers", "1", "--for", "soon"),
            "expected a time with its unit, as 90s, 30min, 2h or 7d",
        ),
        (("--workers", "1", "--for", "0h"), "found '0h'"),
        (("--workers", "1", "--for", "1h", "--at", "noon"), "--at: expected a time as"),
        (
            ("--workers", "1", "--for", "1h", "--at", "2001-01-01"),
            "reservation that ends in the future",
        ),
        (
            ("--workers", "1", "--for", "366d", "--at", "9999-12-01"),
            "expected an end before the year 10000",
        ),
    ],
)
def test_reservations_that_make_no_sense(
    tmp_path: Path, given: tuple[str, ...], message: str
) -> None:
    config = tmp_path / "swathe.toml"
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    config.write_text(
        f'[catalog]\ndatabase = "{url}"\n'
        '[workers]\nurl = "dask://127.0.0.1:1"\ngrow = "processes"\n'
    )
    ran = run(command("reservation", "add", *given, "--config", config))
    assert ran.returncode == 2
    assert message in " ".join(ran.stderr.split())
    with Catalog.open(url) as catalog:
        assert catalog.reservations() == []


def test_reservations_of_a_pool_that_does_not_grow(tmp_path: Path) -> None:
    (tmp_path / "swathe.toml").write_text("")
    asked = ("reservation", "add", "--workers", "1", "--for", "1h")
    ran = run(command(*asked, "--config", tmp_path / "swathe.toml"))
    assert ran.returncode == 2
    assert "workers.grow: expected a setting, found none" in ran.stderr
    ran = run(command(*asked))
    assert ran.returncode == 2
    assert "portal: --config FILE" in " ".join(ran.stderr.split())


URL = 'url = "dask://127.0.0.1:1"\n'
BATCH = 'grow = "{}"\nwalltime_s = 600\n'


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('grow = "processes"', "workers.grow: expected to come with workers.url"),
        (
            URL + 'grow = "lsf"',
            "workers.grow: expected '', 'processes', 'slurm', 'pbs' or 'htcondor'",
        ),
        ('cache = "/tmp"', "workers.cache: expected to come with workers.grow"),
        (URL + "maximum = 7", "workers.maximum: expected to come with workers.grow"),
        (URL + 'grow = "processes"\nminimum = 5', "workers.minimum, maximum: expected 0 <= min"),
        (URL + 'grow = "processes"\nmaximum = 0', "workers.maximum: expected at least 1"),
        (URL + 'grow = "processes"\nspare = -1', "workers.spare: expected 0 or more"),
        (URL + 'grow = "processes"\nsoon_s = 0', "workers.soon_s: expected seconds"),
        (URL + 'grow = "processes"\nidle_s = inf', "workers.idle_s: expected seconds"),
        (URL + 'grow = "processes"\ncores = 0', "workers.cores: expected at least 1"),
        (URL + 'grow = "processes"\nwalltime_s = 5', "workers.walltime_s: expected at least 60"),
        (URL + 'grow = "slurm"', "workers.walltime_s: expected at least 60"),
        (URL + 'grow = "pbs"', "workers.walltime_s: expected at least 60"),
        (URL + 'grow = "htcondor"', "workers.walltime_s: expected at least 60"),
        (
            URL + 'grow = "processes"\npartition = "x"',
            "workers.partition: expected to come with workers.grow = 'slurm' or 'pbs', found 'x'",
        ),
        (URL + BATCH.format("htcondor") + 'partition = "x"', "workers.partition: expected to come"),
        (
            URL + 'grow = "processes"\noptions = ["x"]',
            "workers.options: expected to come with workers.grow = 'slurm' or 'pbs' or 'htcondor'",
        ),
        (URL + 'grow = "processes"\nmemory_gb = 1', "workers.memory_gb: expected to come with"),
        (URL + BATCH.format("pbs") + "memory_gb = -1", "workers.memory_gb: expected at least 0"),
        (URL + BATCH.format("slurm"), "workers.grow: expected sbatch to be found in $PATH"),
        (URL + BATCH.format("pbs"), "workers.grow: expected qsub to be found in $PATH"),
        (URL + BATCH.format("htcondor"), "workers.grow: expected condor_submit to be found"),
    ],
)
def test_settings_that_make_no_sense(
    settings: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/none")
    with pytest.raises(SettingsError) as raised:
        config_of(tomllib.loads(f"[workers]\n{settings}\n"))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0:59", 59), ("12:00", 720), ("1:00:01", 3601), ("2-00:00:00", 172_800),
     ("UNLIMITED", float("inf")), ("INVALID", float("inf")), ("", float("inf"))],
)  # fmt: skip
def test_times_of_slurm(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
