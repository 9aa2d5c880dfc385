"""What this host computes with."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import swathe
from swathe import _swathe
from swathe.core.sample_frame import NAXIS1
from swathe.costs.engine_job import to_engine_job
from swathe.costs.format_costs import USUAL_COSTS
from swathe.costs.probing import probe_results
from swathe.costs.probing.host import Frame, make_frames, measure_host, run_batch
from swathe.files.array_file import ArrayFile
from swathe.files.targets.target_list import read_targets
from tests.support.portals import wait_until
from tests.support.sample_surveys import new_sample


@pytest.fixture(scope="module")
def compute() -> dict[str, Any]:
    return measure_host(quick=True)


@pytest.mark.more
def test_all_costs_are_there(compute: dict[str, Any]) -> None:
    tiles = compute["tile_byte_s"]
    assert isinstance(tiles, dict)
    assert {"RICE_1", "GZIP_1", "GZIP_2", "HCOMPRESS_1", "PLIO_1"} <= set(tiles)
    formats = compute["formats"]
    library = formats.pop("library", {"start_s": 1.0, "call_s": 0.1})
    assert set(library) == {"start_s", "call_s"} and min(library.values()) > 0
    assert {"npy", "png", "nc"} <= set(formats) <= set(USUAL_COSTS)
    for made in formats.values():
        assert 1e-6 <= made["row_s"] < 1 and 0 < made["pixel_s"] < 1e-4
    write = compute["write"]
    assert 0 < write["result_s"] < 1 and 0 < write["byte_s"] < 1e-6
    assert write["result_s"] <= compute["cut_s"] and write["byte_s"] <= compute["byte_s"]
    assert set(compute["run"]) == {"copy_byte_s", "scatter_s", "spool_byte_s", "step_s"}
    assert all(0 < seconds < 0.1 for seconds in compute["run"].values())
    others = ("tile_byte_s", "formats", "write", "run")
    single = {name: value for name, value in compute.items() if name not in others}
    names = (
        "job_s",
        "request_s",
        "received_byte_s",
        "object_s",
        "cut_s",
        "null_cut_s",
        "byte_s",
        "gzip_byte_s",
        "gzip_first_byte_s",
        "restart_s",
        "bzip2_byte_s",
    )
    assert set(single) == set(names)
    for name, value in {**single, **tiles}.items():
        assert isinstance(value, float)
        each = name in ("job_s", "request_s", "object_s", "cut_s", "null_cut_s", "restart_s")
        low, high = (1e-7, 0.1) if each else (1e-12, 1e-6)
        assert low <= value < high, name
    assert single["bzip2_byte_s"] > single["gzip_byte_s"]
    assert tiles["HCOMPRESS_1"] > tiles["PLIO_1"]
    assert tiles["RICE_1"] > tiles["NOCOMPRESS"]


@pytest.mark.more
def test_the_engine_takes_them(compute: dict[str, Any], tmp_path: Path) -> None:
    table = new_sample(tmp_path / "survey", 1, 5)
    job = to_engine_job(read_targets(str(table), lambda *_: None))  # type: ignore[arg-type]
    [estimate] = json.loads(job.estimate(json.dumps(compute)))
    assert estimate["compute_s"] > 0
    assert isinstance(job, _swathe.Job)


def _takes_about(
    wanted_s: float, path: Path, boxes: list[tuple[int, int, int, int]], folder: Path
) -> bool:
    ran = run_batch([path], boxes, folder)
    return 0.1 < (ran.cpu_s + ran.unpack_s) / wanted_s < 10


def test_unseen_batches_are_predicted_roughly(compute: dict[str, Any], tmp_path: Path) -> None:
    frames: dict[str, Frame] = make_frames(300)
    boxes = [(40 * at, 3 * at, 100, 90) for at in range(40)]
    for kind in ("plain", "gzip"):
        path = tmp_path / f"a{frames[kind].suffix}"
        path.write_bytes(frames[kind].content)
        costs = {name: value for name, value in compute.items() if isinstance(value, float)}
        pixels = 2 * sum(width * height for _, _, width, height in boxes)
        wanted = costs["object_s"] + len(boxes) * costs["cut_s"] + pixels * costs["byte_s"]
        if kind == "gzip":
            wanted += frames[kind].raw_bytes * costs["gzip_first_byte_s"]
        # Other threads of this process count, too, and making files may take long for a while.
        wait_until(partial(_takes_about, wanted, path, boxes, tmp_path))
    assert frames["plain"].raw_bytes == 300 * NAXIS1 * 2


@pytest.mark.parametrize("has_h5py", [True, False])
def test_results_of_arrays_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_h5py: bool
) -> None:
    """With h5py from HDF5, without it from NetCDF classic."""
    if has_h5py:
        pytest.importorskip("h5py")
    monkeypatch.setattr(probe_results, "RUNS", 1)
    monkeypatch.setattr(probe_results, "FORMATS", ("nc", "tif"))
    if not has_h5py:
        monkeypatch.setattr(probe_results, "find_spec", lambda _: None)
    costs = probe_results.measure_array_formats(tmp_path)
    assert set(costs) == {"nc", "tif"}
    assert all(each["row_s"] > 0 and each["pixel_s"] > 0 for each in costs.values())
    file = swathe.open(tmp_path / "array-16.nc")
    assert isinstance(file, ArrayFile)
    assert file["values"].shape == (16, 16) and set(file) == {"/values", "/lat", "/lon"}
