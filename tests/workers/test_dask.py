"""A pool of processes: what dies is worked on by others, and no stranger comes in."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from astropy.table import Table

import swathe
from swathe import trace
from swathe.core.errors import OutputError, SettingsError
from swathe.core.row_table import RowTable
from swathe.jobs import Folder, Job, Jobs, Limits, Options, result_store_by_name
from swathe.operations.registry import ResultOptions
from swathe.portal.config import config_of
from swathe.workers import Runner
from swathe.workers.dask.certificates import ROLES, make_certificates
from swathe.workers.dask.in_flight import DEATHS
from swathe.workers.dask.pool import DaskPool
from swathe.workers.dask.processes import reach
from swathe.workers.dask.tls import read_address, security_for
from swathe.workers.dask.worker import TOKEN
from swathe.workers.pool import Member
from tests.support.cloud_servers import forget_credentials
from tests.support.job_runner import PATIENCE_S, check, contents_of, ended
from tests.support.pools import (
    ROWS,
    Hold,
    Process,
    command,
    connected,
    environment,
    many_targets,
    members,
    pool_of,
    process,
    ready,
    survey_jobs,
)
from tests.support.portals import add_survey, finished, served, submitted, wait_until
from tests.support.servers import free_port, nginx, s3s_fs
from tests.workers.test_pool import batch, started


@pytest.fixture
def table(survey: Path) -> dict[str, list[Any]]:
    """Its targets, several times over."""
    return many_targets(survey)


jobs = survey_jobs


@pytest.fixture(scope="module")
def cluster() -> Iterator[Process]:
    """A scheduler with one worker, for those that kill neither."""
    with pool_of(1) as (scheduler, _):
        yield scheduler


@contextmanager
def running(jobs: Jobs, address: str, **settings: Any) -> Iterator[DaskPool]:
    """Jobs that are worked on by a pool."""
    pool = connected(address, jobs.place, **settings)
    runner = Runner(jobs, pool)
    runner.start()
    try:
        yield pool
    finally:
        runner.stop(PATIENCE_S)


def asked(found: list[Member]) -> bool:
    """Whether the only worker has answered."""
    return len(found) == 1 and found[0].refused != "joining"


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    """What keeps workers from doing all of a job before anything is done to them."""
    made = Hold(tmp_path / "hold")
    made.close()
    return made


def begun(jobs: Jobs, job: Job) -> None:
    """Wait until some of a job is done, and not all: slow workers hold it."""
    wait_until(lambda: jobs.job(job.id).counts["waiting"] < ROWS)
    assert jobs.job(job.id).counts["waiting"] > 0


# ---- What dies


def test_workers_that_are_killed_and_come_back(
    jobs: Jobs, table: dict[str, list[Any]], tmp_path: Path, hold: Hold
) -> None:
    with pool_of(2, hold=hold) as (scheduler, workers), running(jobs, scheduler.address) as pool:
        members(pool, ready(2))
        job = jobs.submit(table, Options(), "me")
        begun(jobs, job)
        members(pool, lambda found: any(each.name == "w0" and each.busy for each in found))
        workers[0].kill()
        members(pool, ready(1))
        with process("worker", scheduler.address, "--threads", "2", "--name", "w2"):
            members(pool, ready(2))
            workers[1].kill()
            hold.open()
            job = ended(jobs, job)
            assert [each.name for each in members(pool, ready(1))] == ["w2"]
    check(jobs, job, table, tmp_path)


def test_workers_and_runners_tell_what_they_do(
    jobs: Jobs, table: dict[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(trace.VARIABLE, str(tmp_path / "pool.{pid}.ulm"))
    with (
        pool_of(1) as (scheduler, _),
        trace.recording(tmp_path / "portal.ulm"),
        running(jobs, scheduler.address),
    ):
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    events = trace.read(tmp_path.glob("pool.*.ulm"))
    names = [events.event.words[code] for code in events.event.codes]
    assert names.count("CUT_END") == names.count("CUT_START") == ROWS
    assert names.count("BATCH_END") == names.count("BATCH_START") > 0
    for key, value in (("JOB", job.id), ("WORKER", "w0")):
        field = events.fields[key]
        assert isinstance(field, trace.CodedColumn)
        assert {
            field.words[field.codes[row]] for row, name in enumerate(names) if name == "CUT_END"
        } == {value}
    told = trace.read(tmp_path / "portal.ulm")
    names = [told.event.words[code] for code in told.event.codes]
    assert names.count("JOB_START") == names.count("JOB_END") == 1
    result = told.fields["RESULT"]
    assert isinstance(result, trace.CodedColumn)
    assert result.words == ("ok",)


def test_a_scheduler_that_is_killed_and_comes_back(
    jobs: Jobs, table: dict[str, list[Any]], tmp_path: Path, hold: Hold
) -> None:
    port = str(free_port())
    with (
        process("scheduler", "--port", port) as scheduler,
        process("worker", scheduler.address, "--threads", "2", "--name", "w0", hold=hold),
        running(jobs, scheduler.address) as pool,
    ):
        members(pool, ready(1))
        job = jobs.submit(table, Options(), "me")
        begun(jobs, job)
        scheduler.kill()
        wait_until(lambda: pool.status().trouble)
        assert pool.status().workers == []
        assert jobs.job(job.id).phase == "EXECUTING"
        hold.open()
        with process("scheduler", "--port", port):
            job = ended(jobs, job)
            assert pool.status().trouble == ""
    check(jobs, job, table, tmp_path)


def test_a_pool_without_scheduler_waits_and_ends(
    jobs: Jobs,
    table: dict[str, list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("swathe.workers.dask.processes.CONNECT_S", 0.5)
    address = f"dask://127.0.0.1:{free_port()}"
    refused = f"{address}: cannot connect: Connection refused"
    with running(jobs, address) as pool:
        job = jobs.submit(table, Options(), "me")
        wait_until(lambda: pool.status().trouble == refused)
        shown = set()

        def tried_again() -> bool:
            shown.add(pool.status().trouble)
            return caplog.text.count("next attempt in") > 1

        wait_until(tried_again)
        # On a busy machine an attempt may time out before the system refuses it.
        assert not shown & {"", f"{address}: connecting"}
        assert not pool.wait_for_room(0.01)
    assert jobs.job(job.id).counts["waiting"] == ROWS


def test_a_scheduler_that_falls_silent_and_comes_back(
    jobs: Jobs, table: dict[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.workers.dask.processes.CONNECT_S", 0.5)
    monkeypatch.setattr("swathe.workers.dask.connection.SILENT_S", 1.0)
    with pool_of(1) as (scheduler, _), running(jobs, scheduler.address) as pool:
        members(pool, ready(1))
        scheduler.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: "did not answer" in pool.status().trouble)
        finally:
            scheduler.process.send_signal(signal.SIGCONT)
        job = ended(jobs, jobs.submit(table, Options(), "me"))
    check(jobs, job, table, tmp_path)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "expected a scheduler"),
        (b"", "closes the connection; it may want certificates"),
        (None, "did not answer"),
    ],
)
def test_what_is_no_scheduler(
    answer: bytes | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A server that answers may need its time on a busy machine.
    connect_s = 0.5 if answer is None else 5.0
    monkeypatch.setattr("swathe.workers.dask.processes.CONNECT_S", connect_s)

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            accepted, _ = server.accept()
            with accepted:
                accepted.recv(65536)
                accepted.sendall(answer or b"")

        if answer is not None:
            threading.Thread(target=serve, daemon=True).start()
        url = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OSError, match=told):
            asyncio.run(reach(url, None, "worker"))


def test_a_worker_tells_why_it_has_no_scheduler() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = command("worker", f"dask://127.0.0.1:{server.getsockname()[1]}")
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment()) as made:
            try:
                assert made.stderr is not None
                accepted, _ = server.accept()
                accepted.recv(65536)
                accepted.close()
                assert (
                    "closes the connection; it may have no certificates" in made.stderr.readline()
                )
                server.close()
                told = iter(made.stderr.readline, "")
                assert any("cannot connect: Connection refused;" in line for line in told)
            finally:
                made.terminate()


def test_a_name_that_is_taken_is_told(cluster: Process) -> None:
    words = command("worker", cluster.address, "--name", "w0")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment()) as second:
        try:
            assert second.stderr is not None
            assert "name taken, w0" in second.stderr.readline()
        finally:
            second.terminate()


def test_cancelled_work_stops_on_workers_and_can_go_on(
    jobs: Jobs, table: dict[str, list[Any]], tmp_path: Path, hold: Hold
) -> None:
    with pool_of(1, hold=hold) as (scheduler, _), running(jobs, scheduler.address) as pool:
        job = jobs.submit(table, Options(), "me")
        begun(jobs, job)
        jobs.cancel(job.id)
        wait_until(lambda: pool.status().batches == 0)
        left = jobs.job(job.id).counts["waiting"]
        assert 0 < left < ROWS
        assert jobs.job(job.id).phase == "ABORTED"
        hold.open()
        job = ended(jobs, jobs.resume(job.id))
    check(jobs, job, table, tmp_path)


class Deadly:
    """Options that kill the process that reads them."""

    results = ResultOptions()

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return os._exit, (1,)


def test_a_batch_that_kills_workers_is_not_tried_for_ever(jobs: Jobs) -> None:
    deadly = replace(batch(["survey:x.fits"], 1), options=Deadly())  # type: ignore[arg-type]
    with pool_of(DEATHS) as (scheduler, _):
        pool = connected(scheduler.address, jobs.place)
        with started(pool) as at_work:
            members(pool, ready(DEATHS))
            at_work.give(0, deadly)
            number, done = at_work.next()
    assert (number, done.complete) == (0, True)
    [row] = done.rows
    assert row.status == "error"
    assert f"{DEATHS} workers died" in row.reason


def test_a_row_that_kills_workers_is_the_only_error(
    jobs: Jobs, table: dict[str, list[Any]]
) -> None:
    frame = table["file"][0]
    rows = list(batch([frame], 4).rows)
    rows[2] = rows[2]._replace(planes=Deadly())  # type: ignore[arg-type]
    # All of it twice, a half, and alone twice.
    with pool_of(6, worker=("--threads", "1")) as (scheduler, _):
        pool = connected(scheduler.address, jobs.place)
        with started(pool) as at_work:
            members(pool, ready(6))
            at_work.give(0, replace(batch([frame], 4), rows=RowTable.of(rows)))
            number, done = at_work.next()
            assert len(members(pool, lambda found: len(found) <= 1)) == 1
            at_work.give(1, batch([frame], 4, job="next"))
            assert at_work.next()[1].complete
    assert (number, done.complete, done.failure) == (0, True, None)
    status = {row.number: row.status for row in done.rows}
    assert status == {at: "error" if at == 2 else "ok" for at in range(4)}
    assert "5 workers died" in next(row.reason for row in done.rows if row.number == 2)


# ---- Where objects and results are


def test_objects_on_a_server_are_kept_by_workers(
    jobs: Jobs, survey: Path, table: dict[str, list[Any]], tmp_path: Path
) -> None:
    frames = {name.partition(":")[2] for name in table["file"]}
    table["file"] = [name.replace("survey:", "web:") for name in table["file"]]
    (tmp_path / "nginx").mkdir()
    cache = ("--cache", tmp_path / "cache", "--cache-size", "1GB")
    with nginx(tmp_path / "nginx") as server, pool_of(1, worker=cache) as (scheduler, _):
        for name in frames:
            shutil.copy(survey / name, server.folder)
        with running(jobs, scheduler.address) as pool:
            [worker] = members(pool, ready(1))
            assert worker.cache_bytes == 10**9
            # One that was added when the worker had joined.
            jobs.catalog.add_store("web", server.url)
            job = ended(jobs, jobs.submit(table, Options(), "me"))
            wait_until(lambda: pool.status().batches == 0)
            held = {each.object: each.bytes for each in pool.status().held}
            [worker] = members(pool, ready(1))
        check(jobs, job, table, tmp_path)
        assert set(held) == {f"web:{name}" for name in frames}
        assert 0 < worker.held_bytes == sum(held.values()) <= job.actual["bytes"]  # type: ignore[index]
    assert any((tmp_path / "cache").rglob("*"))


def test_results_in_a_bucket(
    jobs: Jobs, table: dict[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {name: values[:60] for name, values in table.items()}
    expected = swathe.cut_many(table, tmp_path / "many", progress=False)
    (tmp_path / "s3/bucket").mkdir(parents=True)
    forget_credentials(monkeypatch)
    with s3s_fs(tmp_path / "s3") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        jobs.catalog.add_store("lake", "s3://bucket")
        place = result_store_by_name(jobs.catalog, "lake:made", tmp_path / "scratch")
        with (
            Jobs(jobs.catalog, place, limits=Limits()) as into,
            pool_of(1) as (scheduler, _),
            running(into, scheduler.address),
        ):
            job = ended(into, into.submit(table, Options(), "me"))
            assert job.phase == "COMPLETED"
            for row, kept in zip(into.rows(job.id, limit=ROWS), expected, strict=True):
                assert row.sha256 == kept["sha256"]
            first = into.rows(job.id, limit=1)[0]
            found = contents_of(into.result(job.id, first.name))
            assert found == (tmp_path / "many" / expected["path"][0]).read_bytes()
        # With credentials that are not good a worker can put nothing there, and says so.
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pool_of(1) as (scheduler, _):
            pool = connected(scheduler.address, place)
            with started(pool):
                [seen] = members(pool, asked)
            assert "lake:made: " in seen.refused


# ---- Who may take part


def test_a_folder_that_is_not_seen(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Process
) -> None:
    monkeypatch.setattr("swathe.workers.dask.membership.AGAIN_S", 0.1)
    token = tmp_path / "results" / TOKEN
    pool = connected(cluster.address, jobs.place)
    mine = token.read_text()
    token.unlink()
    with started(pool):
        [seen] = members(pool, asked)
        assert f"{tmp_path / 'results'}: the folder for results cannot be seen" in seen.refused
        assert not pool.wait_for_room(0.01)
        token.write_text("another's")
        members(pool, lambda found: "not the same folder" in found[0].refused)
        token.write_text(mine)
        members(pool, ready(1))
        assert pool.wait_for_room(PATIENCE_S)


def test_programs_leave_threads_to_other_work(
    jobs: Jobs, cluster: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = connected(cluster.address, jobs.place)
    options = Options.from_mapping({"operation": "algorithm", "algorithm": "lines", "files": {}})
    programs = replace(batch(["images:0.fits"]), options=options, makes=True)
    with started(pool):
        members(pool, ready(1))
        assert pool.wait_for_room(PATIENCE_S, "program") == {"cut", "long", "program"}
        # It does not come to the worker, so it does not end.
        monkeypatch.setattr(pool._sending, "accept", lambda _flight: None)
        pool.submit(0, programs, lambda: False)
        assert "program" not in pool.wait_for_room(0.01, "program")
        assert pool.wait_for_room(PATIENCE_S, "cut") == {"cut", "long"}
        pool.submit(1, replace(programs, makes=False), lambda: False)
        assert pool.wait_for_room(PATIENCE_S, "cut") == {"cut"}


def test_a_place_that_workers_cannot_know(tmp_path: Path, jobs: Jobs) -> None:
    with pytest.raises(OutputError, match="expected a folder or a bucket"):
        connected("dask://127.0.0.1:8786", object())  # type: ignore[arg-type]
    place = Folder(tmp_path / "other")
    (tmp_path / "other" / TOKEN).touch()
    with pytest.raises(OutputError, match="found an empty file; remove it"):
        connected("dask://127.0.0.1:8786", place)


def test_a_worker_works_for_one_portal(jobs: Jobs, tmp_path: Path, cluster: Process) -> None:
    first = connected(cluster.address, jobs.place)
    second = connected(cluster.address, Folder(tmp_path / "other"))
    with started(first) as at_work:
        at_work.give(0, batch(["survey:absent.fits"]))
        at_work.next()
        with started(second):
            members(second, lambda found: any("another" in each.refused for each in found))
    with started(connected(cluster.address, Folder(tmp_path / "other"))) as at_work:
        at_work.give(0, batch(["survey:absent.fits"]))
        assert {row.status for row in at_work.next()[1].rows} == {"missing"}


def test_a_worker_of_another_version_is_refused(
    jobs: Jobs, cluster: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe._swathe.__version__", "9.9.9")
    with started(pool := connected(cluster.address, jobs.place)):
        [worker] = members(pool, asked)
        assert "the portal of 9.9.9" in worker.refused


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pool") / "certificates"
    done = subprocess.run(command("init", folder), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder


def test_certificates_are_for_their_owner_and_never_overwritten(certificates: Path) -> None:
    names = {f"{name}.{kind}" for name in ("ca", "scheduler", "worker", "portal")
             for kind in ("pem", "key")}  # fmt: skip
    assert {path.name for path in certificates.iterdir()} == names
    assert stat.S_IMODE(certificates.stat().st_mode) == 0o700
    for path in certificates.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = (certificates / "ca.key").read_bytes()
    with pytest.raises(OutputError, match="never overwritten"):
        make_certificates(certificates)
    assert (certificates / "ca.key").read_bytes() == before


def test_a_pool_with_certificates(
    jobs: Jobs, table: dict[str, list[Any]], tmp_path: Path, certificates: Path
) -> None:
    given = ("--certificates", certificates)
    with pool_of(1, *given) as (scheduler, [worker]):
        assert scheduler.address.startswith("tls://127.0.0.1:")
        assert worker.address.startswith("tls://")
        with running(jobs, scheduler.address, certificates=certificates) as pool:
            members(pool, ready(1))
            job = ended(jobs, jobs.submit(table, Options(), "me"))
        check(jobs, job, table, tmp_path)
        refuse_strangers(scheduler, tmp_path, certificates)


def refuse_strangers(scheduler: Process, tmp_path: Path, certificates: Path) -> None:
    """See that only who has a certificate of the pool comes in."""
    host, _, port = scheduler.address.removeprefix("tls://").rpartition(":")
    # Knows the authority, and has nothing to show for itself.
    context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    context.check_hostname = False
    there = host, int(port)
    with (
        socket.create_connection(there, timeout=PATIENCE_S) as plain,
        pytest.raises(ssl.SSLError, match=r"(?i)certificate|handshake"),
        context.wrap_socket(plain) as secret,
    ):
        secret.recv(1)
    answer = b""
    with socket.create_connection(there, timeout=PATIENCE_S) as plain:
        plain.sendall(bytes(64))
        with suppress(ConnectionResetError):
            answer = plain.recv(1000)
    assert len(answer) < 16  # no more than an alert
    other = tmp_path / "other"
    make_certificates(other)
    done = subprocess.run(
        command("worker", scheduler.address, "--certificates", other),
        capture_output=True, text=True, timeout=120, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "of different authorities" in done.stderr


def test_certificates_of_no_use(certificates: Path, tmp_path: Path) -> None:
    there = read_address("dask://10.1.2.3:8786")
    assert security_for(there, certificates, "worker") is not None
    with pytest.raises(SettingsError, match=r"cannot be read.*swathe pool init DIR"):
        security_for(there, tmp_path, "worker")
    old = tmp_path / "old"
    make_certificates(old, -1)
    with pytest.raises(SettingsError, match="; `swathe pool init DIR` creates new ones"):
        security_for(there, old, "worker")
    (old / "ca.pem").write_text("no certificate")
    with pytest.raises(SettingsError, match="not a certificate"):
        security_for(there, old, "worker")
    seen = tmp_path / "seen"
    make_certificates(seen)
    (seen / "portal.key").chmod(0o640)
    with pytest.raises(SettingsError, match="other users can read it"):
        security_for(there, seen, "portal")
    with pytest.raises(SettingsError, match=r"tcp:// uses no certificates.*type --insecure"):
        security_for(read_address("tcp://10.1.2.3:8786"), certificates, "portal")


@pytest.mark.parametrize(
    "text",
    ["", "dask://", "dask://host", "dask://host:0", "dask://host:65536", "dask://host:x",
     "http://host:1", "dask://a b:1", "dask://user@host:1", "host:1/path", "dask://::1:1"],
)  # fmt: skip
def test_addresses_that_make_no_sense(text: str) -> None:
    with pytest.raises(SettingsError, match="expected the address of a scheduler"):
        read_address(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [("dask://Host.example:8786", ("dask", "Host.example", 8786)),
     ("10.0.0.1:1", ("dask", "10.0.0.1", 1)), ("tls://[::1]:2/", ("tls", "::1", 2))],
)  # fmt: skip
def test_addresses(text: str, read: tuple[str, str, int]) -> None:
    found = read_address(text)
    assert (found.scheme, found.host, found.port) == read
    assert read_address(str(found)) == found


@pytest.mark.parametrize("text", ["dask://10.1.2.3:8786", "tls://host:8786"])
def test_no_certificates_beyond_loopback(text: str) -> None:
    for role in ROLES:
        with pytest.raises(SettingsError, match="`swathe pool init DIR`, and give --certificates"):
            security_for(read_address(text), None, role)


def test_a_scheduler_beyond_loopback_wants_certificates() -> None:
    done = subprocess.run(
        command("scheduler", "--host", "0.0.0.0", "--port", "0"),
        capture_output=True, text=True, timeout=120, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "swathe pool init DIR" in done.stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('url = "dask://10.1.2.3:1"', "create them with `swathe pool init DIR`"),
        ('url = "dask://nowhere"', "expected the address of a scheduler"),
        ('certificates = "/tmp"', "workers.certificates: expected to come with workers.url"),
        ("insecure = true", "workers.insecure: expected to come with workers.url"),
        ('url = "tcp://127.0.0.1:1"', "type --insecure"),
        ("batch_s = 60.0", "workers.batch_s: expected at most 5"),
        ("hand_over_s = -1.0", "workers.hand_over_s: expected at least 0"),
        ("hand_over_s = inf", "workers.hand_over_s: expected at most 3600"),
        ("threads = 3", "unknown key in [workers]: 'threads'"),
    ],
)
def test_settings_that_make_no_sense(settings: str, message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        config_of(tomllib.loads(f"[workers]\n{settings}\n"))
    assert message in str(raised.value)


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = subprocess.run(
            command("scheduler", "--port", port), capture_output=True, text=True, timeout=120
        )
    assert ran.returncode == 2
    assert "cannot listen on this address" in ran.stderr


def test_nothing_else_listens() -> None:
    """No web page of Dask's, neither the scheduler's nor the worker's."""
    with pool_of(1) as (scheduler, [worker]):
        for each in (scheduler, worker):
            port = int(each.address.rpartition(":")[2])
            assert listening(each.process.pid) == {("0100007F", port)}


@pytest.mark.parametrize(
    ("host", "seen"), [("127.0.0.1", "0100007F"), ("::1", f"{'0' * 24}01000000")]
)
def test_a_worker_with_certificates_listens_where_the_scheduler_is_reached_from(
    host: str, seen: str, certificates: Path
) -> None:
    try:
        socket.create_server((host, 0), family=socket.getaddrinfo(host, 0)[0][0]).close()
    except OSError as error:
        pytest.skip(f"{host}: {error}")
    given = ("--certificates", certificates)
    with (
        process("scheduler", "--host", host, "--port", "0", *given) as scheduler,
        process("worker", scheduler.address, *given) as worker,
    ):
        assert {at for at, _ in listening(worker.process.pid)} == {seen}


def listening(pid: int) -> set[tuple[str, int]]:
    """The addresses, in hexadecimal, and TCP ports that a process listens at."""
    sockets, found = set(), set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # It reads files, too.
            sockets.add(os.readlink(link))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                host, _, port = words[1].rpartition(":")
                found.add((host, int(port, 16)))
    return found


# ---- A portal


def test_a_portal_with_workers(tmp_path: Path, cluster: Process) -> None:
    listed = Table.read(add_survey(tmp_path, targets=40), format="ascii.csv")
    targets = {name: listed[name].tolist() for name in listed.colnames}
    settings = f'[workers]\nurl = "{cluster.address}"\n'
    with served(tmp_path, settings) as portal:
        with httpx.Client(base_url=f"{portal.url}/api", timeout=120) as client:
            wait_until(lambda: [each["refused"] for each in told(client)["workers"]] == [""])
            job = submitted(client, targets)["id"]
            assert finished(client, job)["counts"]["ok"] == 40
            wait_until(lambda: not told(client)["workers"][0]["busy"])
            found = told(client)
        shown = subprocess.run(
            command("status", "--url", portal.url), capture_output=True, text=True, timeout=120
        )
        page = httpx.get(f"{portal.url}/pool").text
    assert (found["kind"], found["address"]) == ("dask", cluster.address)
    assert [(each["name"], each["threads"]) for each in found["workers"]] == [("w0", 2)]
    assert shown.returncode == 0
    assert "w0" in shown.stdout
    assert cluster.address in page
    assert "w0" in page
    assert ">idle<" in page


def told(client: httpx.Client) -> Any:
    answer = client.get("/pool")
    assert answer.status_code == 200, answer.text
    return answer.json()
