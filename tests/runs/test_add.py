"""A run is entered in a catalogue by the group that it wrote."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import FormatError, NotFoundError, OptionError, SourceError
from swathe.runs.reading.grown_array import GrownArray
from swathe.runs.reading.stored_run import StoredRun

TEXTS = {"units": "K", "long_name": "gas, mean", "standard_name": "air_temperature"}
VALUES = np.arange(24, dtype="f4").reshape(4, 6)


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run of another catalogue, in a store of this one."""
    for name in ("other", "own"):
        monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / name}.sqlite")
        with Catalog.open() as catalog:
            catalog.add_store("disk", str(tmp_path / "disk"), "local")
        if name == "own":
            break
        with swathe.run("app", iterations=5) as run:
            options: dict[str, Any] = {"dims": ("y", "x"), "location": "disk", **TEXTS}
            temp = run.array("temp", (4, 6), "f4", every=2, **options)
            last = run.array("last", (4, 6), "f4", every=1, mode="overwrite", location="disk")
            for iteration in range(6):
                temp.write(iteration, VALUES + iteration)
                last.write(iteration, VALUES + iteration)
    (folder,) = (tmp_path / "disk" / "runs").iterdir()
    return folder


def add(group: Path) -> StoredRun:
    return swathe.open_run(swathe.runs.add(f"disk:runs/{group.name}").label)


def change(group: Path, before: str, after: str) -> None:
    path = group / "zarr.json"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_all_that_is_whole_is_entered(group: Path) -> None:
    stored = add(group)
    assert (stored.record.name, stored.record.number, stored.record.state) == ("app", 1, "complete")
    assert stored.record.iterations == 5
    assert {name: list(array) for name, array in stored.items()} == {
        "temp": [0, 2, 4],
        "last": [4, 5],
    }
    assert stored["temp"].settings.dims == ("y", "x")
    assert stored["temp"].settings.attributes == stored["temp"][0].attrs == TEXTS
    for array in stored.values():
        for iteration, dump in array.items():
            np.testing.assert_array_equal(dump[...], VALUES + iteration)
    with pytest.raises(OptionError, match="the catalogue has this run"):
        add(group)


def test_a_run_comes_back_from_all_its_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("other", "own"):
        monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / name}.sqlite")
        with Catalog.open() as catalog:
            for store in ("disk", "more"):
                catalog.add_store(store, str(tmp_path / store), "local")
        if name == "own":
            break
        with swathe.run("app", iterations=3) as run:
            arrays = [run.array(store, (4, 6), "f4", location=store) for store in ("disk", "more")]
            for iteration in range(4):
                for array in arrays:
                    array.write(iteration, VALUES + iteration)
        swathe.runs.move("app", "more", array="disk", iterations=slice(1, 3))
    (folder,) = (tmp_path / "disk" / "runs").iterdir()
    names = [f"{store}:runs/{folder.name}" for store in ("disk", "more")]
    labels = [swathe.runs.add(name).label for name in names]
    assert labels == ["app@1"] * 2
    stored = swathe.open_run("app")
    assert {name: list(array) for name, array in stored.items()} == {
        "disk": [0, 1, 2, 3],
        "more": [0, 1, 2, 3],
    }
    for each in stored.values():
        for iteration, dump in each.items():
            np.testing.assert_array_equal(dump[...], VALUES + iteration)
    for name in names:
        with pytest.raises(OptionError, match="the catalogue has this run"):
            swathe.runs.add(name)
    swathe.runs.move("app", "disk")
    assert not list((tmp_path / "more" / "runs").iterdir())
    assert swathe.runs.remove("app")["objects"] > 0
    assert not folder.exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [("app@1", "other@1"), ('"iterations": 5', '"iterations": 4'), ("float32", "int32")],
)
def test_another_run_in_the_same_folder_is_refused(group: Path, before: str, after: str) -> None:
    label = add(group).record.label
    change(group, before, after)
    with pytest.raises(OptionError, match=r"expected a group of app@1, .* found one of another"):
        add(group)
    assert [run.label for run in swathe.runs.list()] == [label]


def test_a_run_that_is_being_written_is_not_added(group: Path) -> None:
    with swathe.run("app", iterations=0) as run:
        run.array("a", (2,), "u1", location="disk").write(0, np.ones(2, "u1"))
        run.sync()
        folder = swathe.open_run("app").record.folder
        with pytest.raises(OptionError, match="it is being written"):
            swathe.runs.add(f"disk:runs/{folder}")


@pytest.fixture
def grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run of another catalogue with arrays that grow."""
    for name in ("other", "own"):
        monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / name}.sqlite")
        with Catalog.open() as catalog:
            catalog.add_store("disk", str(tmp_path / "disk"), "local")
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/other.sqlite")
    with swathe.run("app", iterations=3) as run:
        arrays = {
            "rows": run.array("rows", (1000, 400), "f8", mode="append", location="disk"),
            "named": run.array("named", (3, 2), "f8", mode="append", dims=("t", "x")),
        }
        for iteration in range(4):
            arrays["rows"].write(iteration, np.full((900, 400), iteration, "f8"))
            arrays["named"].write(iteration, np.full((iteration, 2), iteration, "f8"))
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/own.sqlite")
    (folder,) = (tmp_path / "disk" / "runs").iterdir()
    return folder


def test_rows_of_an_array_that_grows_are_those_of_the_last_iteration(grown: Path) -> None:
    added = add(grown)
    rows, named = added["rows"], added["named"]
    assert isinstance(rows, GrownArray) and isinstance(named, GrownArray)
    assert (rows.shape, rows.rows_of(3)) == ((3600, 400), slice(0, 3600))
    np.testing.assert_array_equal(rows[:, 7], np.repeat(np.arange(4.0), 900))
    np.testing.assert_array_equal(named[...][:, 1], [1, 2, 2, 3, 3, 3])
    with pytest.raises(OptionError, match="the catalogue has this run"):
        add(grown)


def test_an_array_that_grows_needs_its_first_rows(
    grown: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (grown / "rows/c/0/0").unlink()
    assert len(add(grown)["rows"]) == 0
    assert "array rows: its first rows are not in this store" in caplog.text


def test_a_dump_without_a_shard_is_not_entered(group: Path) -> None:
    shutil.rmtree(group / "temp" / "c" / "1")
    assert list(add(group)["temp"]) == [0, 4]


def test_a_torn_shard_blocks_neither_the_other_dumps_nor_a_later_run(
    group: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A shard that a crash of the machine or a server cut short, under its final name."""
    for path, size in (("temp/c/1/0/0", 40), ("last/c/1/0/0", 0)):
        os.truncate(group / path, size)
    stored = add(group)
    assert "array temp: shard 1/0/0 is torn" in caplog.text
    assert {name: list(array) for name, array in stored.items()} == {"temp": [0, 4], "last": [4]}
    # The application begins again from its last whole checkpoint.
    state = stored["last"][4][...]
    np.testing.assert_array_equal(state, VALUES + 4)
    with swathe.run("app", iterations=5) as run:
        last = run.array("last", (4, 6), "f4", every=1, mode="overwrite", location="disk")
        last.write(5, state + 1)
    np.testing.assert_array_equal(swathe.open_run("app@2")["last"][5][...], VALUES + 5)
    swathe.runs.remove("app@1")
    assert not group.exists()


def test_what_cannot_be_listed_is_no_shard(group: Path) -> None:
    shard = group / "temp/c/1/0/0"
    shard.rename(os.fsdecode(os.fsencode(shard.parent) + b"/\xff"))
    with pytest.raises(SourceError, match="cannot be listed"):
        add(group)
    assert swathe.runs.list() == []


def test_groups_of_older_versions_do_not_say_their_iterations(group: Path) -> None:
    change(group, '"iterations": 5', '"x": 0')
    assert add(group).record.iterations == 4


@pytest.mark.parametrize(
    "place",
    ["disk:x/app.zarr", "runs/app.zarr", "disk:runs/", "disk:runs/..", "disk:runs/.x", "disk:"],
)
def test_other_places_are_refused(group: Path, place: str) -> None:
    with pytest.raises(OptionError, match="STORE:runs/NAME"):
        swathe.runs.add(place)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{", "["),
        ("consolidated_metadata", "metadata"),
        ("app@1", "../app"),
        ("iteration_2", "iteration_x"),
        ("iteration_2", "iteration_3"),
        ("float32", "float33"),
        ('"end"', '"start"'),
        ('"iterations": 5', '"iterations": -1'),
        ('"shape": [3, 4, 6]', '"shape": [3, 4, 0]'),
        ('"shape": [3, 4, 6]', '"shape": [3, 4611686018427387904, 6]'),
        ('"shape": [3, 4, 6]', '"shape": 3'),
        ('"dimension_names": ["iteration_2", "y", "x"]', '"dimension_names": null'),
    ],
)
def test_what_no_run_wrote_is_refused(group: Path, before: str, after: str) -> None:
    change(group, before, after)
    with pytest.raises(FormatError, match="expected"):
        add(group)
    assert swathe.runs.list() == []


def test_a_group_that_is_not_there(group: Path) -> None:
    with pytest.raises(NotFoundError, match="nothing"):
        swathe.runs.add("disk:runs/nothing")
    assert json.loads((group / "zarr.json").read_text())["attributes"]["title"] == "app@1"
