"""Runs that a real Slurm starts: two processes of MPI (mpiexec of MPICH, from its wheel)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import JobError
from tests.support.slurm import output_of, slurm, wait_until_none

PATIENCE_S = 240.0
PROGRAM = """
import sys, time
import numpy as np
from mpi4py import MPI
import swathe

comm = MPI.COMM_WORLD
with swathe.run("app", iterations=3, comm=comm, purpose_file=sys.argv[1]) as run:
    array = run.array("a", (8, 6), "f8")
    for iteration in range(4):
        array.write(iteration, np.full(array.block_shape, 10.0 * iteration + comm.rank))
        run.sync()
        if iteration == 1 and sys.argv[2:] == ["hang"]:
            time.sleep(3600)
"""
RUN = 'name = "app"\niterations = 3\nranks = 2\ncompute_s = 1.0\n[arrays.a]\nshape = [8, 6]\n'


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What a job runs, in a Slurm of one node; the catalogue has a store `disk`."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip(f"no mpiexec beside {sys.executable}: pip install mpich")
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "run.toml").write_text(RUN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWATHE_DATABASE", f"sqlite:///{folder / 'catalog.sqlite'}")
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        patch.chdir(folder)
        with Catalog.open() as catalog:
            catalog.add_store("disk", str(folder / "disk"), "local")
        with slurm(folder / "daemons", patch):
            program = [sys.executable, str(folder / "program.py"), str(folder / "run.toml")]
            # It takes the number of processes from Slurm, and starts them itself.
            yield [str(mpiexec), "-launcher", "fork", "-n", "2", *program]


def values_of(run: str, iteration: int) -> None:
    """Check what two ranks wrote."""
    found = swathe.open_run(run)["a"][iteration][...]
    expected = np.repeat([10.0 * iteration, 10.0 * iteration + 1], 4)[:, None] * np.ones(6)
    np.testing.assert_array_equal(found, expected)


def test_a_run_is_complete(command: list[str]) -> None:
    job = swathe.runs.submit("run.toml", command)
    assert output_of(["squeue", "--noheader", f"--jobs={job.number}", "--format=%j %C %l"]) == (
        "app 2 1:00"
    )
    wait_until_none()
    log = Path(f"slurm-{job.number}.out").read_text()
    record = swathe.open_run("app@1").record
    assert (record.state, record.ranks) == ("complete", 2), log
    for iteration in range(4):
        values_of("app@1", iteration)


def test_a_run_is_stopped_when_its_walltime_ends(command: list[str]) -> None:
    job = swathe.runs.submit("run.toml", [*command, "hang"])
    until = time.monotonic() + PATIENCE_S
    while output_of(["squeue", "--noheader"]):
        assert time.monotonic() < until, output_of(["squeue"])
        time.sleep(0.5)
    run = swathe.open_run("app@2")
    assert run.record.state == "stopped", Path(f"slurm-{job.number}.out").read_text()
    assert sorted(run["a"]) == [0, 1]
    for iteration in (0, 1):
        values_of("app@2", iteration)


def test_options_that_slurm_does_not_take(command: list[str]) -> None:
    with pytest.raises(JobError, match=r"sbatch: .*nvalid partition"):
        swathe.runs.submit("run.toml", command, options=["--partition=none"])
