"""A Zarr in a store is one object of a dataset, found by the name of its folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.datasets.zarr_folders import with_zarr_folders
from swathe.stores.listing import ListedObject, UnlistedObject
from tests.support.fits_frames import Runner

zarr = pytest.importorskip("zarr")
FILES = [
    ListedObject("in/a.zarr/zarr.json", 100, "1"),
    ListedObject("in/a.zarr/lst/zarr.json", 50, "2"),
    ListedObject("in/a.zarr/lst/c/0/0", 7, "3"),
    ListedObject("in/b.nc", 5, "4"),
    ListedObject("in/c.zarr/no-metadata", 5, "5"),
]


def names(pattern: str | None) -> list[str]:
    return [each.path for each in with_zarr_folders(FILES, "in", pattern)]


def test_files_of_a_zarr_are_one_object() -> None:
    assert names(None) == ["in/b.nc", "in/c.zarr/no-metadata", "in/a.zarr"]
    assert names("*.zarr") == ["in/a.zarr"]
    assert names("zarr.json") == []


def test_a_folder_shows_changes_of_its_files() -> None:
    [before] = with_zarr_folders(FILES[:3], "in", None)
    [same] = with_zarr_folders(FILES[2::-1], "in", None)
    [after] = with_zarr_folders([*FILES[:2], ListedObject(FILES[2].path, 7, "9")], "in", None)
    assert isinstance(before, ListedObject) and isinstance(after, ListedObject)
    assert before == same and before.size == 157
    assert before.mark != after.mark
    fault = UnlistedObject("in/a.zarr/lst/c", "no permission")
    [_, partly] = with_zarr_folders([*FILES[:3], fault], "in", None)
    assert isinstance(partly, ListedObject) and not partly.shows_changes()


def test_a_zarr_is_read_again_only_when_it_changes(tmp_path: Path, run: Runner) -> None:
    store = tmp_path / "store"
    root = zarr.open_group(store / "a.zarr", mode="w", zarr_format=3)
    root.create_array("lst", data=np.ones((4, 6), "f4"), chunks=(2, 3))
    run("store", "add", "own", str(store))
    assert swathe.datasets.add("grids", "own:", progress=False).images == 1
    assert list(swathe.find(dataset="grids")["file"]) == ["own:a.zarr"]
    assert swathe.datasets.sync("grids", progress=False).unchanged == 1
    root.create_array("sst", data=np.ones((4, 6), "f4"), chunks=(2, 3))
    report = swathe.datasets.sync("grids", progress=False)
    assert (report.read, report.images, report.faults) == (1, 2, [])


def test_a_mirror_says_that_it_does_not_copy_folders(tmp_path: Path, run: Runner) -> None:
    store = tmp_path / "store"
    root = zarr.open_group(store / "a.zarr", mode="w", zarr_format=3)
    root.create_array("lst", data=np.ones((4, 6), "f4"), chunks=(2, 3))
    (tmp_path / "copies").mkdir()
    run("store", "add", "own", str(store))
    run("store", "add", "copies", str(tmp_path / "copies"))
    swathe.datasets.add("grids", "own:", progress=False)
    plan = swathe.datasets.plan_mirror("grids", "copies")
    report = swathe.mirror("grids", "copies", progress=False)
    assert (plan.copies, plan.bytes, report.copied) == ([], 0, 0)
    for [fault] in (plan.faults, report.faults):
        assert fault.path == "a.zarr" and "a folder, not a file" in fault.reason
    # What the reason says does copy it.
    run("cp", "-r", "own:a.zarr", "copies:a.zarr")
    assert "0 objects to copy (" in run("dataset", "mirror", "grids", "copies", "--dry-run")
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "copies" / "a.zarr" / "lst"), 1)
