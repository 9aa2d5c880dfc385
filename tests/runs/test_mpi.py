"""A run that processes of MPI write together (mpiexec of MPICH, from its wheel)."""

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
PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI
import swathe
from swathe.core.errors import OptionError

comm = MPI.COMM_WORLD
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


@pytest.mark.parametrize("size", [1, 4, 6])
def test_processes_write_together(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip(f"no mpiexec beside {sys.executable}: pip install mpich")
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(tmp_path / "disk"), "local")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [str(mpiexec), "-n", str(size), sys.executable, str(program)],
        capture_output=True, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused on") == size
    run = swathe.open_run("app")
    assert (run.record.ranks, run.record.state) == (size, "complete")
    whole = np.arange(17 * 18 * 19, dtype="f8").reshape(17, 18, 19)
    for array in run.values():
        for iteration in (0, 2, 4):
            np.testing.assert_array_equal(array[iteration][...], whole + iteration)
