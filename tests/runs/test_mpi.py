"""A run that processes of MPI write together (mpiexec of MPICH, from its wheel).

On one machine they use sockets; that they would use MPI on several is tested by its calls alone.
MPICH has no progress thread here, and a rank that waits in one of its calls polls. With more ranks
than cores it would take their time from those that work, so it yields the core after each poll.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog

pytestmark = pytest.mark.more
PROGRESS = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1", "MPIR_CVAR_ASYNC_PROGRESS": "0"}
PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI
import swathe
from swathe.core.errors import OptionError
from swathe.runs.writing.ranks import LINE_BYTES, MpiRanks, NodeRanks, ranks_of

comm = MPI.COMM_WORLD
ranks = MpiRanks(comm)
for length in (0, LINE_BYTES // 2, 2 * LINE_BYTES):
    values = ["x" * length * rank for rank in range(comm.size)]
    assert ranks.gather(values[comm.rank]) == values, length
sizes = [comm.rank + other for other in range(comm.size)]
incoming = ranks.exchange(np.full(sum(sizes), comm.rank, "u1"), sizes, sizes)
assert (incoming == np.repeat(np.arange(comm.size), sizes)).all()
ranks.close()
assert isinstance(ranks_of(comm), NodeRanks if comm.size > 1 else MpiRanks)
whole = np.arange(17 * 18 * 19, dtype="f8").reshape(17, 18, 19)
with swathe.run("app", iterations=4, comm=comm) as run:
    arrays = [
        run.array(name, whole.shape, "f8", every=2, pattern=pattern)
        for name, pattern in (("a", "BBB"), ("b", "*B*"), ("c", "CYCLIC(3),*,B"))
    ]
    for iteration in range(5):
        for array in arrays:
            block = np.empty(array.block_shape)
            for where, own in array.division.pieces(comm.rank):
                block[own] = whole[where] + iteration
            array.write(iteration, block)
    try:
        arrays[0].write(0, np.zeros((1, 1, comm.rank)))
    except OptionError as error:
        print(f"refused on {comm.rank}", flush=True)
"""


KILLED = """
import os, signal
import numpy as np
from mpi4py import MPI
import swathe

comm = MPI.COMM_WORLD
with swathe.run("app", iterations=9, comm=comm) as run:
    array = run.array("a", (64, 64, 64), "f8", pattern="BBB")
    for iteration in range(10):
        array.write(iteration, np.full(array.block_shape, iteration, "f8"))
        if iteration == 2:
            run.sync()
        if iteration == 4 and comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
"""
ATTEMPTS = 6
"""Runs until ranks tell that one is gone."""


@pytest.fixture(autouse=True)
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new catalogue with one store."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(tmp_path / "disk"), "local")


def run_by_mpi(
    text: str, size: int, folder: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run a program by processes of MPI; it fails after two minutes."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip(f"no mpiexec beside {sys.executable}: pip install mpich")
    program = folder / "program.py"
    program.write_text(text)
    return subprocess.run(
        [str(mpiexec), *options, "-n", str(size), sys.executable, str(program)],
        capture_output=True, text=True, timeout=120,
        env=os.environ | PROGRESS | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


@pytest.mark.parametrize("size", [1, 6, 8])
def test_processes_write_together(size: int, tmp_path: Path) -> None:
    done = run_by_mpi(PROGRAM, size, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused on") == size
    run = swathe.open_run("app")
    assert (run.record.ranks, run.record.state) == (size, "complete")
    whole = np.arange(17 * 18 * 19, dtype="f8").reshape(17, 18, 19)
    for array in run.values():
        for iteration in (0, 2, 4):
            np.testing.assert_array_equal(array[iteration][...], whole + iteration)


@pytest.mark.parametrize("options", [(), ("-disable-auto-cleanup",)])
def test_a_rank_that_is_killed_ends_the_others(options: tuple[str, ...], tmp_path: Path) -> None:
    """The launcher ends them, or else an error of each; what was durable is read, whole."""
    errors = 0
    for _ in range(ATTEMPTS if options else 1):
        done = run_by_mpi(KILLED, 4, tmp_path, *options)
        assert done.returncode != 0
        errors += "OutputError: the run has failed: a rank is gone" in done.stdout + done.stderr
        if errors:
            break
    # Even so the launcher ends them now and then before they notice it.
    assert errors or not options
    run = swathe.open_run("app")
    assert run.record.state == "stopped"
    iterations = list(run["a"])
    assert iterations[:3] == [0, 1, 2] and max(iterations) <= 4
    for iteration in iterations:
        assert (run["a"][iteration][...] == iteration).all()
