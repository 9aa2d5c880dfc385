"""The application astro3d: the number of ranks makes no difference, nor does a stop."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

import swathe
from examples.astro3d import __main__ as command_line
from examples.astro3d.convection import Convection
from examples.astro3d.datasets import KINDS, Checkpoint, settings
from examples.astro3d.grid import Grid
from examples.astro3d.simulation import Simulation
from examples.launch import launch
from swathe.catalog import Catalog
from swathe.core.errors import NoSuchRunError, OptionError
from swathe.runs.definition.run_settings import RunSettings
from swathe.runs.writing.ranks import Ranks

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a store in a catalogue of its own."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(tmp_path / "disk"), "local")
    return tmp_path / "disk"


def threads(count: int) -> argparse.Namespace:
    return argparse.Namespace(ranks=count, mpi=False)


def states(cells: int, steps: int, ranks: int) -> list[np.ndarray]:
    """Return the whole state of each rank after some steps."""

    def program(own: Ranks) -> np.ndarray:
        state = Convection.begin(cells, own)
        for _ in range(steps):
            state.step()
        whole = np.concatenate((state.conserved, state.heat_change[None]))
        return state.grid.gather_whole(whole)

    return launch(program, threads(ranks))


@pytest.mark.parametrize(("cells", "ranks"), [(8, 2), (12, 4), (10, 3)])
def test_any_number_of_ranks_has_the_same_state_to_the_bit(cells: int, ranks: int) -> None:
    alone = states(cells, 3, 1)[0]
    assert np.abs(alone[1:4]).max() > 1e-3 and np.isfinite(alone).all()
    for state in states(cells, 3, ranks):
        np.testing.assert_array_equal(state, alone)


def test_cells_around_a_block_are_those_of_the_whole() -> None:
    whole = np.random.default_rng(1).random((6, 8, 10))
    wide = np.pad(whole, 2, mode="wrap")

    def program(ranks: Ranks) -> tuple[np.ndarray, tuple[int, ...], tuple[int, ...]]:
        grid = Grid.divide(whole.shape, (1.0, 1.0, 1.0), ranks)
        field = grid.widen(whole[grid.block], 2, lambda *_: pytest.fail("there is no wall"))
        return field, grid.start, grid.parts

    for count in (1, 2, 4, 8):
        for field, start, parts in launch(program, threads(count)):
            assert np.prod(parts) == count
            z, y, x = (slice(at, at + n) for at, n in zip(start, field.shape, strict=True))
            np.testing.assert_array_equal(field, wide[z, y, x])


def test_too_few_cells_for_the_ranks_are_refused() -> None:
    with pytest.raises(OptionError, match="cells: expected at least 2 for each of 5 blocks"):
        launch(lambda ranks: Convection.begin(8, ranks), threads(5))


def test_an_error_of_one_rank_ends_all() -> None:
    def program(ranks: Ranks) -> None:
        if ranks.rank == 1:
            raise ArithmeticError("rank 1")
        ranks.gather(None)

    with pytest.raises(ArithmeticError, match="rank 1"):
        launch(program, threads(3))


def test_nineteen_datasets_are_written(disk: Path) -> None:
    simulation = Simulation(cells=8, iterations=2, every=2)
    outcome = launch(simulation.run, threads(2))[0]
    assert (outcome.label, outcome.first) == ("astro3d@1", 0)
    run = swathe.open_run("astro3d")
    assert sorted(run) == sorted(name for names, _ in KINDS.values() for name in names)
    assert len(run) == 19
    state = launch(lambda ranks: Convection.begin(8, ranks), threads(1))[0]
    primitive = state.gas.primitive(state.conserved)
    np.testing.assert_array_equal(run["press"][0], primitive[4].astype("f4"))
    np.testing.assert_array_equal(run["ux"][0], primitive[3].astype("f4"))
    for name in KINDS["visualisation"][0]:
        values = np.asarray(run[name][2])
        assert (values.dtype, values.min(), values.max()) == (np.dtype("u1"), 0, 255)
    assert {array.settings.mode for array in run.values()} == {"create", "overwrite"}
    (folder,) = (disk / "runs").iterdir()
    group = zarr.open_group(folder, mode="r")
    temp = group["temp"]
    assert isinstance(temp, zarr.Array)
    np.testing.assert_array_equal(temp[1], run["temp"][2])


def test_a_run_that_was_restarted_is_equal_to_one_without_a_stop() -> None:
    simulation = Simulation(cells=8, iterations=6, every=6)
    (whole,) = launch(simulation.run, threads(1))
    launch(Simulation(cells=8, iterations=3, every=3, name="other").run, threads(1))
    again = Simulation(cells=8, iterations=6, every=6, name="other", restart="")
    outcomes = launch(again.run, threads(2))
    assert (outcomes[0].label, outcomes[0].first) == ("other@2", 3)
    for outcome in outcomes:
        block = outcome.state.grid.block
        np.testing.assert_array_equal(outcome.state.conserved, whole.state.conserved[:, *block])
        np.testing.assert_array_equal(outcome.state.heat_change, whole.state.heat_change[block])
    first, second = swathe.open_run("astro3d"), swathe.open_run("other@2")
    for name in first:
        np.testing.assert_array_equal(first[name][6], second[name][6])


def test_a_checkpoint_that_is_none_or_does_not_fit_is_refused() -> None:
    with pytest.raises(NoSuchRunError, match="expected a run with a checkpoint, found none"):
        launch(Simulation(cells=8, restart="").run, threads(1))
    launch(Simulation(cells=8, iterations=2, every=2).run, threads(1))
    with pytest.raises(OptionError, match=r"expected \(10, 10, 10\), float64, found \(8, 8, 8\)"):
        launch(Simulation(cells=10, restart="astro3d@1").run, threads(1))
    with pytest.raises(OptionError, match="iterations: expected at least 2"):
        launch(Simulation(cells=8, iterations=1, restart="").run, threads(1))


def test_the_last_checkpoint_is_one_that_all_arrays_have() -> None:
    """A run that is killed may have some arrays one dump later than others, or no checkpoint."""
    for early, late in (([3], [3]), ([3, 6], [3]), ([], [])):
        with swathe.run("astro3d", iterations=6) as run:
            for number, name in enumerate(KINDS["restart"][0]):
                array = run.array(name, (2,), "f8", every=3, mode="overwrite")
                for iteration in early if number < 4 else late:
                    array.write(iteration, np.zeros(2))
    assert Checkpoint.newest("astro3d") == Checkpoint("astro3d@2", 3)
    assert Checkpoint.newest("astro3d", "astro3d@1") == Checkpoint("astro3d@1", 3)
    with pytest.raises(NoSuchRunError, match="astro3d@3: expected a run with a checkpoint"):
        Checkpoint.newest("astro3d", "astro3d@3")


def test_the_settings_of_the_folder_are_those_that_are_printed() -> None:
    locations = {"analysis": "remotedisk", "visualisation": "localdisk", "restart": "localdisk"}
    run = RunSettings.read(ROOT / "examples/astro3d/run.toml")
    assert run == RunSettings.from_mapping(settings(32, 24, 6, 1, locations))


def test_settings_that_are_printed_are_those_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "astro3d --cells 8 --iterations 2 --every 2"
    monkeypatch.setattr(sys, "argv", [*words.split(), "--print-settings", "restart=disable"])
    assert command_line.main() == 0
    file = tmp_path / "run.toml"
    file.write_text(capsys.readouterr().out)
    assert len(RunSettings.read(file).arrays) == 19
    monkeypatch.setattr(sys, "argv", [*words.split(), "--settings", str(file)])
    assert command_line.main() == 0
    assert "astro3d@1: iterations 0 to 2" in capsys.readouterr().out
    run = swathe.open_run("astro3d")
    assert not run["restart_rho"] and list(run["vr_mach"]) == [0, 2]


@pytest.mark.parametrize("locations", ["foo", "foo=disk", "analysis=", "analysis=disk,x"])
def test_wrong_locations_are_an_error_of_the_command_line(
    locations: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["astro3d", "--print-settings", locations])
    with pytest.raises(SystemExit, match="2"):
        command_line.main()
    message = "expected KIND=LOCATION with a kind of analysis, visualisation, restart, found"
    assert message in capsys.readouterr().err


@pytest.mark.more
def test_processes_of_mpi_write_what_one_writes() -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip(f"no mpiexec beside {sys.executable}: pip install mpich")
    launch(Simulation(cells=8, iterations=4, every=2).run, threads(1))
    words = "-m examples.astro3d --cells 8 --iterations 4 --every 2 --mpi --name mpi"
    done = subprocess.run(
        [str(mpiexec), "-n", "4", sys.executable, *words.split()],
        capture_output=True, text=True, timeout=120, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("mpi@1: iterations 0 to 4") == 1
    first, second = swathe.open_run("astro3d"), swathe.open_run("mpi")
    assert second.record.ranks == 4
    for name in first:
        np.testing.assert_array_equal(first[name][4], second[name][4])
