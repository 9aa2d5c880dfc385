"""Predictions of lists of arrays: what libraries read, and filters that were not measured."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog, this_host
from swathe.costs import predict_list
from swathe.costs.format_costs import USUAL_COSTS
from swathe.costs.library_costs import LibraryCosts

h5py = pytest.importorskip("h5py")
NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
VALUES = np.arange(200 * 300, dtype="<i2").reshape(200, 300)


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with an array in chunks, and one that only h5py reads: it is made of the first."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as made:
        made.create_dataset("a", data=VALUES, chunks=(50, 50), compression="lzf")
        layout = h5py.VirtualLayout(VALUES.shape, VALUES.dtype)
        layout[:] = h5py.VirtualSource(".", "a", VALUES.shape)
        made.create_virtual_dataset("v", layout)
    return str(path)


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A new catalogue, on a machine where nobody else works."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/c.sqlite")
    monkeypatch.setattr(predict_list, "crowding", lambda: 1.0)


def targets(file: str, array: str, count: int = 3) -> dict[str, Any]:
    box = {"file": file, "array": array, "x0": 5, "y0": 6, "width": 40, "height": 30}
    return {name: [each] * count for name, each in box.items()}


@pytest.mark.parametrize("form", [None, "nc", "npy"])
def test_an_array_of_its_library_is_predicted_with_a_reason(file: str, form: str | None) -> None:
    predicted = swathe.predict(targets(file, "v"), format=form)
    costs = LibraryCosts()
    least_s = costs.start_s + 3 * costs.call_s
    assert predicted.median_s > least_s
    low_s, high_s = predicted.interval_s
    assert low_s < predicted.median_s / 2 and high_s > predicted.median_s * 2
    assert predicted.faults == []
    (note,) = predicted.notes
    assert note.startswith(f"{file}, /v: read by its library (an array made of others")
    assert predicted.bytes > 0


def test_rows_of_both_kinds_are_added(file: str) -> None:
    both = {
        name: [*targets(file, "a")[name], *targets(file, "v")[name]] for name in targets(file, "a")
    }
    predicted = swathe.predict(both, format="npy")
    (cost,) = predicted.per_store.values()
    assert (cost.targets, cost.unreadable) == (3, 0)
    of_library = swathe.predict(targets(file, "v"), format="npy")
    assert predicted.median_s > of_library.median_s
    assert predicted.faults == []


def test_a_refused_array_is_a_fault_and_takes_no_time(tmp_path: Path) -> None:
    path = tmp_path / "r.h5"
    with h5py.File(path, "w") as made:
        made.create_dataset("x", (10, 10), "i2", external=[("/etc/hostname", 0, 200)])
    predicted = swathe.predict(targets(str(path), "x"), format="npy")
    assert any("another file" in fault for fault in predicted.faults)
    assert predicted.median_s < LibraryCosts().start_s


def test_a_filter_that_was_not_measured_widens_the_interval(file: str) -> None:
    rows = targets(file, "a")
    widths = {}
    for names in ([], ["lzf"]):
        tiles = dict.fromkeys(names, 3e-9)
        formats = {name: asdict(costs) for name, costs in USUAL_COSTS.items()}
        with Catalog.open() as catalog:
            catalog.put_compute(this_host(), {"tile_byte_s": tiles, "formats": formats}, NOON)
        predicted = swathe.predict(rows, format="npy")
        low_s, high_s = predicted.interval_s
        widths[len(names)] = math.log(high_s / low_s)
        told = ["decoding of lzf was not measured on this host"]
        assert predicted.notes == ([] if names else told)
    assert widths[0] > widths[1] + 0.05


def test_results_that_were_not_measured_have_a_wide_interval(file: str) -> None:
    predicted = swathe.predict(targets(file, "a", 300))
    assert predicted.median_s > 300 * USUAL_COSTS["nc"].row_s
    low_s, high_s = predicted.interval_s
    assert high_s / predicted.median_s > 1.8 and predicted.median_s / low_s > 1.8


def test_calls_correct_predictions_of_the_same_kind_of_array(file: str, tmp_path: Path) -> None:
    swathe.cut_many(targets(file, "a"), tmp_path / "o", format="npy", progress=False)
    swathe.cut_many(targets(file, "v"), tmp_path / "p", format="npy", progress=False)
    with Catalog.open() as catalog:
        catalog.enter_outcomes()
        outputs = [each.output for each in catalog.outcomes(9)]
    assert sorted(outputs) == ["cut as npy of hdf5 library", "cut as npy of hdf5 lzf"]


def test_a_process_that_runs_is_not_started_again(file: str, tmp_path: Path) -> None:
    """The first cut starts it; the predicted time of the second has no start."""
    rows = targets(file, "v")
    for name in ("o", "p"):
        manifest = swathe.cut_many(rows, tmp_path / name, format="npy", progress=False)
    assert manifest.meta["ok"] == 3
    with Catalog.open() as catalog:
        catalog.enter_outcomes()
        newest = catalog.outcomes(1)[0]
    assert newest.model_s < LibraryCosts().start_s
