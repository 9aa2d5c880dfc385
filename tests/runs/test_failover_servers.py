"""Real servers that die, fill or slow down while a run writes to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import SourceError
from swathe.costs.cost_model import NO_LIMIT, Costs
from swathe.runs.planning.store_rate import StoreRate
from swathe.runs.writing.ranks import Ranks
from tests.runs.test_run import block_of, together
from tests.support import servers
from tests.support.block_servers import block_server
from tests.support.servers import free_port

pytestmark = pytest.mark.more
DRAW = np.random.default_rng()
ITERATIONS = 9
SHAPE = (60, 50, 40)
PROGRAM = """
import os, sys
import numpy as np
from mpi4py import MPI
import swathe
from swathe.runs.definition import shards

shards.SHARD_BYTES, shards.CHUNK_BYTES = 100_000, 20_000
comm, at, pid = MPI.COMM_WORLD, int(sys.argv[1]), int(sys.argv[2])
whole = np.arange(60 * 50 * 40, dtype="f4").reshape(60, 50, 40)
with swathe.run("app", 9, comm=comm) as run:
    array = run.array("a", whole.shape, pattern="BB*", location=["far", "other"])
    for iteration in range(10):
        block = np.empty(array.block_shape, "f4")
        for where, own in array.division.pieces(comm.rank):
            block[own] = whole[where] + iteration
        if iteration == at and comm.rank == 0:
            os.kill(pid, 9)
        array.write(iteration, block)
"""


@pytest.fixture(autouse=True)
def catalog_of_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a catalogue with a store `other`."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    monkeypatch.setattr("swathe.runs.definition.shards.SHARD_BYTES", 100_000)  # five of a dump
    monkeypatch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", 20_000)
    add_store("other", str(tmp_path / "other"), "lan")


def add_store(name: str, root: str, tier: str = "lan") -> None:
    with Catalog.open() as catalog:
        catalog.add_store(name, root.replace("http://", "dav://"), tier)


def whole_at(iteration: int) -> np.ndarray:
    return np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE) + iteration


def write_run(ranks: int, act: Callable[[int], object], **settings: Any) -> None:
    def program(own: Ranks) -> None:
        with swathe.run("app", ITERATIONS, comm=own) as run:
            array = run.array("a", SHAPE, pattern="BB*", location=["far", "other"], **settings)
            for iteration in range(ITERATIONS + 1):
                if own.rank == 0:
                    act(iteration)
                array.write(iteration, block_of(whole_at(iteration), "BB*", own))

    together(ranks, program)


def check_others() -> list[str]:
    """Check the dumps that do not lie in the store `far`; return the store of each."""
    array = swathe.open_run("app")["a"]
    assert list(array) == list(range(ITERATIONS + 1))
    for iteration, dump in array.items():
        if array.dumps[iteration].store != "far":
            np.testing.assert_array_equal(dump[...], whole_at(iteration))
    return [dump.store for dump in array.dumps.values()]


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_server_dies(ranks: int, tmp_path: Path) -> None:
    at = int(DRAW.integers(1, ITERATIONS))
    (tmp_path / "disk").mkdir()
    with block_server(tmp_path / "disk") as server:
        add_store("far", server.url)
        write_run(ranks, lambda iteration: iteration != at or server.end(signal.SIGKILL))
        stores = check_others()
    assert stores[at:] == ["other"] * (ITERATIONS + 1 - at), at
    with block_server(tmp_path / "disk") as server:
        with Catalog.open() as catalog:
            catalog.remove_store("far")
        add_store("far", server.url)
        array = swathe.open_run("app")["a"]
        for iteration, dump in array.items():
            np.testing.assert_array_equal(dump[...], whole_at(iteration), str(at))


def test_arrays_whose_only_store_is_down_go_elsewhere() -> None:
    add_store("far", f"http://127.0.0.1:{free_port()}")
    blocks = {name: whole_at(number) for number, name in enumerate("abc")}
    with swathe.run("app", 0) as run:
        for name, block in blocks.items():
            run.array(name, SHAPE, location="far").write(0, block)
    show = swathe.open_run("app")
    for name, block in blocks.items():
        assert [dump.store for dump in show[name].dumps.values()] == ["other"]
        np.testing.assert_array_equal(show[name][0][...], block)
    with Catalog.open() as catalog:
        records = catalog.run_arrays(show.record.id)
        assert [len(catalog.failovers(each.id)) for each in records] == [1, 1, 1]
    with swathe.run("app", 0) as run:
        with pytest.raises(SourceError, match="Connection refused"):
            run.array("a", SHAPE, location="far", failover=False)
        run.array("b", SHAPE, location=["far", "other"])
        with pytest.raises(SourceError, match="Connection refused"):
            run.array("c", SHAPE, location="far", failover=False)


def test_a_server_fills(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    with block_server(tmp_path / "disk", options=("--max-bytes", "2MB")) as server:
        add_store("far", server.url)
        write_run(2, lambda _: None)
        stores = check_others()
        array = swathe.open_run("app")["a"]
        for iteration, dump in array.items():
            np.testing.assert_array_equal(dump[...], whole_at(iteration))
    assert "far" in stores and stores[-1] == "other"
    with Catalog.open() as catalog:
        (record,) = catalog.run_arrays(swathe.open_run("app").record.id)
        assert len(catalog.failovers(record.id)) == 1


def test_a_server_slows_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = int(DRAW.integers(1, 4))
    costs = Costs(0.0, 0.0, ((1 << 10, 0.02), (1 << 20, 0.04)), 1e7, NO_LIMIT, 8)
    monkeypatch.setattr(
        "swathe.runs.writing.store_watch.store_rates",
        lambda _, names: {name: StoreRate(costs, 0.1) for name in names if name == "far"},
    )
    (tmp_path / "disk").mkdir()
    with (
        block_server(tmp_path / "disk") as server,
        servers.proxy(server.url, shared_bytes_per_s=10_000_000) as proxy,
    ):
        add_store("far", proxy.url)

        def slow_down(iteration: int) -> None:
            if iteration == at:
                proxy.set(shared_bytes_per_s=30_000)

        with swathe.run("app", ITERATIONS) as run:
            array = run.array("a", SHAPE, location=["far", "other"])
            for iteration in range(ITERATIONS + 1):
                slow_down(iteration)
                array.write(iteration, whole_at(iteration))
                run.sync()
        proxy.set(shared_bytes_per_s=10**9)
        stores = check_others()
        for iteration, dump in swathe.open_run("app")["a"].items():
            np.testing.assert_array_equal(dump[...], whole_at(iteration))
        runs = json.loads(
            subprocess.run(
                [sys.executable, "-m", "swathe.cli", "run", "show", "app", "--json"],
                capture_output=True, text=True, check=True,
            ).stdout
        )  # fmt: skip
    assert stores[-1] == "other" and stores[0] == "far"
    assert "far: is slow: a at iteration" in runs["arrays"][0]["failovers"][0]["reason"]


def test_a_server_of_processes_dies(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip(f"no mpiexec beside {sys.executable}: pip install mpich")
    at = int(DRAW.integers(1, ITERATIONS))
    (tmp_path / "disk").mkdir()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with block_server(tmp_path / "disk") as server:
        add_store("far", server.url)
        done = subprocess.run(
            [
                *(str(mpiexec), "-n", "3", sys.executable, str(program)),
                *(str(at), str(server.process.pid)),
            ],
            capture_output=True, text=True, timeout=240,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "array a leaves the store far for other" in done.stderr
    assert swathe.open_run("app").record.state == "complete"
    assert check_others()[at:] == ["other"] * (ITERATIONS + 1 - at)
