"""Pools that grow and shrink under PBS and HTCondor, whose commands are those of the tests."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from swathe.jobs import Jobs, Options
from swathe.workers.autoscale.policy import GrowthLimits
from swathe.workers.autoscale.providers.batch_systems import BatchSystem
from swathe.workers.autoscale.providers.htcondor import HTCondor
from swathe.workers.autoscale.providers.pbs import PBS
from swathe.workers.autoscale.providers.provider import Command, ProviderError
from tests.support.batch_system import System, batch_system
from tests.support.growing_pools import PREFIX, WatchProvider, growing, slow_command, workers_of
from tests.support.job_runner import check, ended
from tests.support.pools import (
    Hold,
    Process,
    environment,
    lone_scheduler,
    many_targets,
    survey_jobs,
)
from tests.support.portals import served, wait_until

KINDS: dict[str, type[BatchSystem]] = {"pbs": PBS, "htcondor": HTCondor}
SUBMITS = {"pbs": "qsub", "htcondor": "condor_submit"}
ROWS = 100
NAME = f"{PREFIX}0-abcdef01"


@pytest.fixture(params=sorted(KINDS))
def system(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[System]:
    """One of them, with nothing in its queue."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "batch"
    folder.mkdir()
    with batch_system(request.param, folder, monkeypatch) as made:
        yield made


jobs, scheduler = survey_jobs, lone_scheduler


def provider_of(
    system: System, command: Command, walltime_s: float = 600.0, **asked: object
) -> BatchSystem:
    """What submits workers of one thread."""
    made: BatchSystem = KINDS[system.kind](
        command,
        PREFIX,
        threads=1,
        walltime_s=walltime_s,
        **asked,  # type: ignore[arg-type]
    )
    return made


def with_state(command: Command) -> Command:
    """Return a command that knows where certificates are; HTCondor passes few variables on."""
    state = f"XDG_STATE_HOME={os.environ['XDG_STATE_HOME']}"
    return lambda name: ["env", state, *command(name)]


def sleeping(_: str) -> Sequence[str]:
    """What does nothing, and does not end."""
    return ["/bin/sleep", "1000"]


def test_a_pool_grows_with_the_queue_and_shrinks_again(
    system: System, jobs: Jobs, scheduler: Process, survey: Path, tmp_path: Path
) -> None:
    table = many_targets(survey, ROWS)
    hold = Hold(tmp_path / "hold")
    command = with_state(slow_command(scheduler.address, 0.3, 600.0, hold.path))
    provider = WatchProvider(provider_of(system, command))
    limits = GrowthLimits(minimum=1, maximum=2, spare=0, soon_s=1.0, idle_s=2.0, hand_over_s=0.0)
    assert system.numbers() == []
    job = jobs.submit(table, Options(), "me")
    # Else it might be done before the second is there, or another comes for the one that ends.
    hold.close()
    with growing(jobs, scheduler.address, provider, limits, system.kind) as pool:
        busy = workers_of(pool, lambda there, busy: len(there) == len(busy) == 2)
        system.kill(busy[0])
        workers_of(pool, lambda there, _: busy[0] not in there)
        workers_of(pool, lambda there, _: len(there) == 2)
        hold.open()
        job = ended(jobs, job)
        workers_of(pool, lambda there, _: len(there) == 1)
        wait_until(lambda: len(system.numbers()) == 1)
        growth = pool.status().growth
    assert growth is not None
    assert (growth.by, growth.target, growth.starting, growth.trouble) == (system.kind, 1, 0, "")
    assert provider.most == 2
    assert len(provider.names) == 3
    check(jobs, job, table, tmp_path)
    wait_until(lambda: system.numbers() == [])


def test_one_that_is_cancelled_is_replaced(system: System, jobs: Jobs, scheduler: Process) -> None:
    provider = WatchProvider(
        provider_of(system, with_state(slow_command(scheduler.address, 0.0, 600.0)))
    )
    limits = GrowthLimits(minimum=1, maximum=1, spare=0)
    with growing(jobs, scheduler.address, provider, limits, system.kind) as pool:
        workers_of(pool, lambda there, _: len(there) == 1)
        [first] = provider.names
        system.cancel(first)
        workers_of(pool, lambda there, _: len(there) == 1 and first not in there)
    assert len(provider.names) == 2


def test_a_portal_with_workers_of_its_own(
    system: System, tmp_path: Path, scheduler: Process
) -> None:
    settings = (
        f'[workers]\nurl = "{scheduler.address}"\ngrow = "{system.kind}"\nminimum = 1\n'
        f'maximum = 1\nwalltime_s = 600\nmemory_gb = 1\ncache = "{tmp_path}/caches"\n'
    )
    with served(tmp_path, settings) as portal:
        wait_until(lambda: joined(portal.url))
        [name] = joined(portal.url)
        [number] = system.numbers()
        assert system.number_of(name) == number
        by = {"pbs": "started by PBS.", "htcondor": "started by HTCondor."}
        assert by[system.kind] in httpx.get(f"{portal.url}/pool", timeout=120).text
        portal.kill()
    assert system.numbers() == [number]
    # The next goes on with it, and ends it when it is told to end itself.
    with served(tmp_path, settings) as portal:
        wait_until(lambda: joined(portal.url) == [name])
        assert system.numbers() == [number]
    wait_until(lambda: system.numbers() == [])


def joined(url: str) -> list[str]:
    told = httpx.get(f"{url}/api/pool", timeout=120).json()
    return [each["name"] for each in told["workers"] if not each["refused"]]


def test_walltime_that_ends_in_the_middle_of_a_job(
    system: System, jobs: Jobs, scheduler: Process, survey: Path, tmp_path: Path
) -> None:
    table = many_targets(survey, ROWS)
    # Each takes work for half of it.
    provider = WatchProvider(
        provider_of(system, with_state(slow_command(scheduler.address, 0.8, 24.0)), 24.0)
    )
    limits = GrowthLimits(maximum=1, spare=0, soon_s=1.0, idle_s=1.0, start_s=1.0, hand_over_s=0.0)
    with growing(jobs, scheduler.address, provider, limits, system.kind):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    assert len(provider.names) >= 2
    assert provider.most == 1
    check(jobs, job, table, tmp_path)


def test_a_worker_that_does_not_end_in_time_is_ended(system: System) -> None:
    provider = provider_of(system, sleeping, 3.0)
    provider.start(NAME)
    wait_until(lambda: NAME not in provider.started_workers())
    assert system.numbers() == []


def test_what_is_left_of_a_walltime_is_told(system: System) -> None:
    provider = provider_of(system, sleeping)
    provider.start(NAME)
    # Without the margin of a minute.
    wait_until(lambda: provider.started_workers()[NAME].left_s < 540.0)
    assert provider.started_workers()[NAME].state == "running"


def test_jobs_that_are_refused_are_told_and_tried_again(
    system: System, jobs: Jobs, scheduler: Process
) -> None:
    system.set("refuse", "would exceed the limit of jobs per user")
    provider = provider_of(system, with_state(slow_command(scheduler.address, 0.0, 600.0)))
    limits = GrowthLimits(minimum=1, maximum=1, spare=0)
    with growing(jobs, scheduler.address, provider, limits, system.kind) as pool:
        told = f"{SUBMITS[system.kind]}: would exceed the limit of jobs per user"
        wait_until(lambda: pool.status().growth.trouble == told)  # type: ignore[union-attr]
        system.unset("refuse")
        workers_of(pool, lambda there, _: len(there) == 1)
        wait_until(lambda: pool.status().growth.trouble == "")  # type: ignore[union-attr]


def test_jobs_that_are_held_are_told(system: System, jobs: Jobs, scheduler: Process) -> None:
    # Longer than what is told in one line.
    why = "Error from slot1: no such user, " + "on this machine, or on any other, " * 3 + "at all"
    system.set("hold", why)
    provider = provider_of(system, with_state(slow_command(scheduler.address, 0.0, 600.0)))
    limits = GrowthLimits(minimum=1, maximum=1, spare=0)
    with growing(jobs, scheduler.address, provider, limits, system.kind) as pool:
        held = {"pbs": "PBS: H", "htcondor": "HTCondor: held"}[system.kind]
        told = f"of {held} ({why})"
        wait_until(lambda: told in pool.status().growth.trouble)  # type: ignore[union-attr]
        system.unset("hold")
        workers_of(pool, lambda there, _: len(there) == 1)
        wait_until(lambda: pool.status().growth.trouble == "")  # type: ignore[union-attr]


def test_jobs_that_wait_tell_why_and_are_found_again(system: System) -> None:
    system.set("cpus", "0")
    provider = provider_of(system, sleeping)
    provider.start(NAME)
    wait_until(lambda: provider.started_workers()[NAME].why)
    told = provider.started_workers()[NAME]
    number = system.number_of(NAME)
    why = {
        "pbs": f"job {number}.test of PBS: Q (Not Running: Insufficient amount of resource: ncpus)",
        "htcondor": f"job {number} of HTCondor: idle (no match found)",
    }
    assert (told.state, told.why) == ("waiting", why[system.kind])
    assert told.left_s == 540.0
    # By a portal that was started later, of which another's are none.
    other = KINDS[system.kind](sleeping, "swathe-other-", threads=1, walltime_s=60.0)
    assert other.started_workers() == {}
    other.close()
    assert system.numbers() == [number]
    later = provider_of(system, sleeping, 300.0)
    assert later.started_workers()[NAME].left_s == 540.0
    later.close()
    wait_until(lambda: system.numbers() == [])
    assert provider.started_workers() == {}


WORDS = ["it's", 'a "quoted" word', "$HOME $(HOME)", "a\\b", "%d;`id`&", ""]
TELL = """
import json, os, sys
told = {"words": sys.argv[2:], "variables": dict(os.environ)}
new = sys.argv[1] + ".new"
open(new, "w").write(json.dumps(told))
os.rename(new, sys.argv[1])
"""


def test_a_worker_gets_its_words_and_variables(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SWATHE_SEEN", "AWS_SECRET_ACCESS_KEY", "SWATHE_DATABASE", "SWATHE_TOKEN"):
        monkeypatch.setenv(name, f'it\'s "{name}", $HOME  and 1;')
    at = tmp_path / "told"
    script = tmp_path / "tell.py"
    script.write_text(TELL)
    command = [sys.executable, str(script), str(at), *WORDS]
    more = {"pbs": ("-A", "survey"), "htcondor": ("request_disk = 1 GB", "getenv = MINE")}
    monkeypatch.setenv("MINE", "given")
    provider = provider_of(system, lambda _: command, memory_gb=2.5, options=more[system.kind])
    provider.start(NAME)
    submitted = json.dumps(system.queue.job(system.number_of(NAME)))
    wait_until(at.exists)
    told = json.loads(at.read_text())
    assert told["words"] == WORDS
    variables = told["variables"]
    assert variables["SWATHE_SEEN"] == 'it\'s "SWATHE_SEEN", $HOME  and 1;'
    assert variables["PYTHONPATH"] == os.environ["PYTHONPATH"]
    assert variables["TMPDIR"].startswith(str(system.folder))
    assert variables["MINE"] == "given"
    assert "SWATHE_DATABASE" not in variables
    # What can be seen of a job by others holds no secret; of PBS, its script cannot be seen.
    assert ("AWS_SECRET_ACCESS_KEY" in variables) == (system.kind == "pbs")
    assert "AWS_SECRET" not in submitted
    asked = {"pbs": '"1:ncpus=1:mem=2385mb"', "htcondor": "RequestMemory = 2385; "}
    assert asked[system.kind] in submitted
    wait_until(lambda: system.numbers() == [])


def test_one_that_has_ended_meanwhile_is_no_failure(system: System) -> None:
    names = [f"{PREFIX}{slot}-abcdef01" for slot in range(3)]
    provider = provider_of(system, sleeping)
    for name in names:
        provider.start(name)
    assert set(provider.started_workers()) == set(names)
    system.cancel(names[0])
    wait_until(lambda: len(system.numbers()) == 2)
    provider.stop(names[:2])
    wait_until(lambda: len(system.numbers()) == 1)
    provider.stop(["swathe-test-7-unknown"])
    assert set(provider.started_workers()) == {names[2]}
    ends = {"pbs": "qdel", "htcondor": "condor_rm"}[system.kind]
    (system.folder / "bin" / ends).write_text("#!/bin/sh\necho no server >&2\nexit 1\n")
    with pytest.raises(ProviderError, match=f"{ends}: no server"):
        provider.stop(names[2:])


def test_commands_that_are_not_there(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/none")
    provider = provider_of(system, sleeping)
    with pytest.raises(ProviderError, match=r"qselect: |condor_q: "):
        provider.started_workers()
    with pytest.raises(ProviderError, match=f"{SUBMITS[system.kind]}: "):
        provider.start(NAME)


@pytest.mark.parametrize("system", ["pbs"], indirect=True)
@pytest.mark.parametrize(
    ("command", "said", "message"),
    [
        ("qsub", "", "qsub: expected a job's number, found ''"),
        ("qsub", "try later\n", r"qsub: expected a job's number, found 'try later\n'"),
        ("qselect", "<html>", "qselect: expected numbers of jobs, found '<html>'"),
        ("qstat", "", "qstat: expected 1 jobs, found ''"),
        ("qstat", "<html>", "qstat: expected 'Job Id: ', found '<html>'"),
        ("qstat", "Job Id: 1.test\n", "qstat: expected Job_Name of job 1.test, found ''"),
        (
            "qstat",
            f"Job Id: 1.test\n    Job_Name = {NAME[:20]}\n\t{NAME[20:]}\n",
            "qstat: expected job_state of job 1.test, found 'Job_Name'",
        ),
        (
            "qstat",
            f"Job Id: 1.test\n    Job_Name = {NAME}\n    job_state = R\n",
            "qstat: expected Resource_List.walltime of job 1.test, found 'Job_Name, job_state'",
        ),
        (
            "qstat",
            f"Job Id: 1.test\n    Job_Name = {NAME}\n    job_state = R\n"
            "    Resource_List.walltime = 00:10:00\n    stime = noon\n",
            "qstat: expected a time as stime of job 1.test, found 'noon'",
        ),
    ],
)
def test_what_pbs_should_not_say(system: System, command: str, said: str, message: str) -> None:
    check_garbage(system, command, said, message)


@pytest.mark.parametrize("system", ["htcondor"], indirect=True)
@pytest.mark.parametrize(
    ("command", "said", "message"),
    [
        ("condor_submit", "12\n", r"condor_submit: expected a job's number as 1.0 - 1.0, found"),
        ("condor_q", "[{", "condor_q: expected JSON (Expecting property name"),
        ("condor_q", "{}", "condor_q: expected a list of jobs, found '{}'"),
        ("condor_q", "[1]", "condor_q: expected a list of jobs, found '[1]'"),
        ("condor_q", '[{"ClusterId": 1}]', "and ClusterId (KeyError('JobBatchName')), found '{"),
        (
            "condor_q",
            json.dumps([{"JobBatchName": NAME, "ClusterId": 1, "JobStatus": 9}]),
            "and ClusterId (KeyError(9)), found '{",
        ),
        (
            "condor_q",
            json.dumps(
                [{"JobBatchName": NAME, "ClusterId": 1, "JobStatus": 2, "SwatheWalltime": 9}]
            ),
            "and ClusterId (KeyError('JobCurrentStartDate')), found '{",
        ),
    ],
)
def test_what_htcondor_should_not_say(
    system: System, command: str, said: str, message: str
) -> None:
    check_garbage(system, command, said, message)


def check_garbage(system: System, command: str, said: str, message: str) -> None:
    """It is told what a command said, and nothing else changes."""
    provider = provider_of(system, sleeping)
    provider.start(NAME)
    wait_until(lambda: provider.started_workers()[NAME].state == "running")
    (system.folder / "bin" / command).write_text(f"#!/bin/sh\nprintf '%s' '{said}'\n")
    with pytest.raises(ProviderError) as raised:
        if command == SUBMITS[system.kind]:
            provider.start(f"{PREFIX}1-abcdef01")
        else:
            provider.started_workers()
    assert message in str(raised.value)
    assert len(system.numbers()) == 1


@pytest.mark.parametrize("word", ["two\nlines", "$$(Memory)"])
def test_what_submit_descriptions_cannot_hold_is_refused(word: str) -> None:
    provider = HTCondor(lambda _: [word], PREFIX, threads=1, walltime_s=60.0)
    with pytest.raises(ProviderError, match="expected no line break and no"):
        provider.start(NAME)


def test_jobs_of_pbs_that_end_while_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with batch_system("pbs", tmp_path, monkeypatch) as system:
        provider = provider_of(system, sleeping)
        provider.start(NAME)
        (tmp_path / "bin" / "qselect").write_text("#!/bin/sh\necho 1.test\necho 7.test\n")
        assert set(provider.started_workers()) == {NAME}


def test_times_are_those_of_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with batch_system("pbs", tmp_path, monkeypatch) as system:
        provider = provider_of(system, sleeping)
        hour_ago = time.ctime(time.time() - 3600)
        said = (
            f"Job Id: 1.test\n    Job_Name = {NAME}\n    job_state = R\n"
            f"    Resource_List.walltime = 30:00:00\n    stime = {hour_ago}\n"
        )
        (tmp_path / "bin" / "qselect").write_text("#!/bin/sh\necho 1.test\n")
        (tmp_path / "bin" / "qstat").write_text(f"#!/bin/sh\nprintf '%s' '{said}'\n")
        assert provider.started_workers()[NAME].left_s == pytest.approx(29 * 3600 - 60, abs=600)
