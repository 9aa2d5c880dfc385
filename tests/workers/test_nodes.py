"""Pools that grow over nodes of a real Slurm, whose workers must show certificates.

Each node has an address and a name of its own, in a network whose gate is this machine. Scheduler
and portal are there: all that a pool says goes beyond loopback.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from swathe.jobs import Options
from swathe.portal.app import open_portal
from swathe.portal.config import config_of
from swathe.portal.context import Portal
from swathe.workers.autoscale.pool import GrowingPool
from swathe.workers.autoscale.providers.provider import Command, worker_command
from swathe.workers.dask.pool import DaskPool
from tests.support.caching_pools import IMAGES, PARTS, SIDE, SIZE, Rig, rig_of
from tests.support.growing_pools import slowed, workers_of
from tests.support.job_runner import PATIENCE_S, check, ended
from tests.support.namespaces import Host, bridge, host
from tests.support.pools import Hold, command, environment, small_chunks
from tests.support.portals import wait_until
from tests.support.slurm import output_of, slurm
from tests.workers.test_dask import certificates as certificates
from tests.workers.test_dask import refuse_strangers
from tests.workers.test_drain import ended as over
from tests.workers.test_drain import handed

NUMBER = os.getpid() % 256
BRIDGE, NETWORK = f"swathe-{NUMBER}", f"198.19.{NUMBER}"
"""Of those set aside for measurements (RFC 2544): tests may run twice at the same time."""
GATE = f"{NETWORK}.1"
SETTINGS = """
[catalog]
database = "sqlite:///{folder}/catalog.sqlite"
[results]
folder = "{folder}/results"
[workers]
url = "{scheduler}"
certificates = "{certificates}"
grow = "slurm"
maximum = 2
soon_s = 0.1
idle_s = 2.0
start_s = 1.0
walltime_s = 600
cache = "{folder}/caches"
options = ["--output={folder}/%x.said"]
"""


@pytest.fixture
def nodes(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Host]]:
    """Two hosts that are nodes, with room for a worker each."""
    if os.geteuid() != 0:
        pytest.skip("only root may make hosts of their own")
    if shutil.which("ip") is None:
        pytest.skip("ip is not installed: iproute2 of Debian")
    with ExitStack() as stack:
        try:
            stack.enter_context(bridge(BRIDGE, NETWORK))
            hosts = [stack.enter_context(host(BRIDGE, NETWORK, number)) for number in range(2)]
        except subprocess.CalledProcessError as error:
            pytest.skip(f"cannot make hosts here: {error}")
        monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        folder = tmp_path_factory.mktemp("slurm")  # sockets in it may have 107 characters
        stack.enter_context(slurm(folder, monkeypatch, hosts, GATE))
        yield hosts


@pytest.fixture
def rig(
    nodes: list[Host], certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rig]:
    """Images on a server, and a scheduler, where the nodes reach them."""
    small_chunks(monkeypatch, PARTS)
    monkeypatch.setattr("swathe.workers.autoscale.pool.LOOK_S", 0.2)
    monkeypatch.setenv("SWATHE_CACHE_BYTES", str(10**9))
    yield from rig_of(tmp_path, monkeypatch, ("--certificates", certificates), GATE)


@contextmanager
def portal_of(rig: Rig, certificates: Path) -> Iterator[tuple[Portal, GrowingPool]]:
    """A portal as its settings say, at work."""
    scheduler = rig.scheduler.address.replace("tls://", "dask://")
    given = SETTINGS.format(folder=rig.folder, scheduler=scheduler, certificates=certificates)
    with open_portal(config_of(tomllib.loads(given))) as portal:
        portal.runner.start()
        try:
            assert isinstance(portal.pool, GrowingPool)
            yield portal, portal.pool
        finally:
            portal.runner.stop(PATIENCE_S)


def all_images() -> dict[str, list[Any]]:
    """Targets that are all parts of all images."""
    every = [(number, part) for number in range(IMAGES) for part in range(PARTS)]
    high = SIDE // PARTS
    return {
        "id": [f"{number}-{part}" for number, part in every],
        "file": [f"web:{number}.fits" for number, _ in every],
        "x0": [0] * len(every),
        "y0": [part * high for _, part in every],
        "width": [SIDE] * len(every),
        "height": [high] * len(every),
    }


@pytest.fixture
def hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hold:
    """What keeps a worker from doing all before another is there."""
    made = Hold(tmp_path / "hold")
    made.close()

    def held(*given: Any, **settings: Any) -> Command:
        return slowed(worker_command(*given, **settings), 0.0, made.path)

    monkeypatch.setattr("swathe.portal.app.worker_command", held)
    # Of quick ones, as these are, the first worker would be given all: it is to be done in no time.
    monkeypatch.setattr("swathe.workers.dask.sender.BatchSender._predicted_s", lambda *_: 1.0)
    return made


def test_a_pool_grows_over_nodes_and_shrinks_again(
    rig: Rig, nodes: list[Host], certificates: Path, hold: Hold
) -> None:
    assert rig.scheduler.address.startswith(f"tls://{GATE}:")
    refuse_strangers(rig.scheduler, rig.folder, certificates)
    table = all_images()
    with portal_of(rig, certificates) as (portal, pool):
        assert pool.status().workers == []
        assert output_of(["squeue", "--noheader"]) == ""
        job = portal.jobs.submit(table, Options(), "me")
        workers_of(pool, lambda there, busy: len(there) == len(busy) == 2)
        are_on(nodes, pool)
        hold.open()
        job = ended(portal.jobs, job)
        told = handed(pool, over)
        assert (told.state, told.refused, len(told.heirs)) == ("done", "", 1)
        assert 0 < told.objects < IMAGES
        workers_of(pool, lambda there, _: there == [*told.heirs])
        wait_until(lambda: output_of(["squeue", "--noheader", "--format=%j"]) == told.heirs[0])
        again = ended(portal.jobs, portal.jobs.submit(table, Options(), "me"))
        # The store was read once for both: what the one that went had read came from it.
        assert SIZE <= rig.moved() < 1.1 * SIZE
        assert pool.status().moved.handed_bytes == told.bytes > 0
        first, second = (portal.jobs.rows(each.id) for each in (job, again))
        assert [(row.id, row.sha256) for row in first] == [(row.id, row.sha256) for row in second]
        check(portal.jobs, job, table, rig.folder)
    wait_until(lambda: output_of(["squeue", "--noheader"]) == "")


def are_on(nodes: list[Host], pool: GrowingPool) -> None:
    """See that there is a worker on each node, and that all that it says is secret."""
    asked = ["squeue", "--noheader", "--states=running", "--format=%j %N"]
    by_slurm = dict(line.split() for line in output_of(asked).splitlines())
    assert {each.name: each.host for each in pool.status().workers} == by_slurm
    assert sorted(by_slurm.values()) == [each.name for each in nodes]
    assert isinstance(pool._pool, DaskPool)
    workers = pool._pool._crew.workers
    assert {urlsplit(at).scheme for at in workers} == {"tls"}
    found = {}
    for at, each in workers.items():
        assert each.peer is not None
        url, token = each.peer
        assert url.startswith("https://")
        found[each.host] = {urlsplit(at).hostname, urlsplit(url).hostname}
        asks = {"Authorization": f"Bearer {token}"}
        with pytest.raises(httpx.TransportError, match=r"(?i)certificate"):
            httpx.get(f"{url}/blocks/{'0' * 32}", headers=asks, verify=False)
    assert found == {each.name: {each.address} for each in nodes}


def test_what_a_lost_node_had_is_done_on_another(
    rig: Rig, nodes: list[Host], certificates: Path, hold: Hold
) -> None:
    table = all_images()
    with portal_of(rig, certificates) as (portal, pool):
        job = portal.jobs.submit(table, Options(), "me")
        workers_of(pool, lambda there, busy: len(there) == len(busy) == 2)
        wait_until(lambda: pool.status().growth.starting == 0)  # type: ignore[union-attr]
        lost, left = nodes
        for number in run("ip", "netns", "pids", lost.name).split():
            os.kill(int(number), signal.SIGKILL)
        workers_of(pool, lambda there, _: len(there) == 1)
        assert [each.host for each in pool.status().workers] == [left.name]
        # As the controller does itself, after a while.
        run("scontrol", "update", f"nodename={lost.name}", "state=down", "reason=lost")
        # Another worker is asked for, and there is no place.
        wait_until(lambda: "PENDING (" in pool.status().growth.trouble)  # type: ignore[union-attr]
        hold.open()
        job = ended(portal.jobs, job)
        check(portal.jobs, job, table, rig.folder)


def run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout


def test_workers_without_certificates_of_the_pool_are_turned_away(
    rig: Rig, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = rig.folder / "other"
    run(*command("init", other))

    def strange(url: str, _: Path, *given: Any, **settings: Any) -> Command:
        return worker_command(url, other, *given, **settings)

    monkeypatch.setattr("swathe.portal.app.worker_command", strange)
    with portal_of(rig, certificates) as (_, pool):
        wait_until(lambda: "(NonZeroExitCode)" in pool.status().growth.trouble)  # type: ignore[union-attr]
        assert pool.status().workers == []
        [first, *_] = rig.folder.glob("*.said")
        assert "the certificates are of different authorities" in " ".join(
            first.read_text().split()
        )
