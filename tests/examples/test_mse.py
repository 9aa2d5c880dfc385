"""The application mse: its differences are those of NumPy, for any number of ranks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest

import examples.mse
import swathe
from examples.launch import launch
from examples.mse import differences
from examples.mse.__main__ import main
from swathe.catalog import Catalog
from swathe.core.errors import OptionError
from swathe.runs.reading.stored_array import StoredDump

SHAPE = (13, 9, 7)


@pytest.fixture(autouse=True)
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, np.ndarray]:
    """The dumps of a run of two datasets; `once` has one only."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(tmp_path / "disk"), "local")
    draw = np.random.default_rng(1)
    values = {at: draw.integers(0, 255, SHAPE, "u1") for at in (0, 3, 6)}
    with swathe.run("app", iterations=6) as run:
        array = run.array("temp", SHAPE, "u1", every=3)
        once = run.array("once", SHAPE, "u1", every=7)
        for at, dump in values.items():
            array.write(at, dump)
            once.write(at, dump)
    return values


@pytest.mark.parametrize("ranks", [1, 3])
def test_differences_are_those_of_numpy(
    ranks: int, dumps: dict[int, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Slabs of two planes; no read is larger.
    monkeypatch.setattr(examples.mse, "SLAB_BYTES", 130)
    sizes = []
    read = StoredDump.__getitem__

    def spy(self: StoredDump, index: object) -> np.ndarray:
        sizes.append(len(read(self, index)))
        return read(self, index)

    monkeypatch.setattr(StoredDump, "__getitem__", spy)
    options = argparse.Namespace(ranks=ranks, mpi=False)
    results = launch(lambda own: list(differences("app", "temp", own)), options)
    whole = {at: dump.astype(float) for at, dump in dumps.items()}
    assert all(result == results[0] for result in results)
    assert [(each.first, each.second) for each in results[0]] == [(0, 3), (3, 6)]
    for each in results[0]:
        expected = ((whole[each.first] - whole[each.second]) ** 2).mean()
        assert each.mean == pytest.approx(expected, rel=1e-14)
    assert set(sizes) == {1, 2} and len(sizes) == 2 * 2 * 7


def test_one_dump_has_no_difference() -> None:
    options = argparse.Namespace(ranks=2, mpi=False)
    with pytest.raises(OptionError, match="app, once: expected two dumps or more, found 1"):
        launch(lambda own: list(differences("app", "once", own)), options)


def test_the_command_prints_a_line_for_each_pair(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mse", "app", "temp", "--ranks", "2"])
    assert main() == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [["0", "3"], ["3", "6"]]
    assert all(float(line[2]) > 0 for line in lines)
    monkeypatch.setattr(sys, "argv", ["mse", "app", "none"])
    assert main() == 1
    assert "expected an array" in capsys.readouterr().err
