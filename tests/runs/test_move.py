"""Moves of runs: whole at any moment, also after a kill; compared with zarr-python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from typer.testing import CliRunner

import swathe
from swathe.catalog import Catalog, this_host
from swathe.cli.app import app
from swathe.core.errors import (
    FormatError,
    LimitError,
    NoSuchRunError,
    NoSuchStoreError,
    OptionError,
    OutputError,
    SourceError,
)
from swathe.files import file as files
from swathe.runs.planning.placement import StoreRoom
from swathe.runs.planning.store_rooms import store_rates
from swathe.runs.reading.grown_array import GrownArray
from swathe.runs.storage import object_writer
from swathe.stores import copies
from tests.support.block_servers import block_server

DUMPS = {number: np.full((3, 4), number % 3, "i4") for number in range(4)}
"""Some are zeros, as what is not there."""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders as stores `disk` and `more`, and a run in the first; the folder above them."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        for name in ("disk", "more"):
            catalog.add_store(name, str(tmp_path / name), "local")
    with swathe.run("app", iterations=3) as run:
        arrays = (
            run.array("a", (3, 4), "i4", location="disk"),
            run.array("b", (2,), "u1", every=3, location="disk"),
        )
        state = run.array("state", (2,), "u1", mode="overwrite", location="disk")
        for iteration, dump in DUMPS.items():
            arrays[0].write(iteration, dump)
            arrays[1].write(iteration, np.full(2, iteration, "u1"))
            state.write(iteration, np.full(2, iteration, "u1"))
    return tmp_path


def group_of(folder: Path, label: str = "app@1") -> Path:
    """Return a run's group in a store."""
    return folder / "runs" / swathe.open_run(label).record.folder


def stores_of(name: str, label: str = "app") -> list[str]:
    return [dump.store for dump in swathe.open_run(label)[name].dumps.values()]


def check_whole() -> None:
    later = swathe.open_run("app")
    for iteration, dump in DUMPS.items():
        np.testing.assert_array_equal(later["a"][iteration][...], dump)
    assert {number: int(each[0]) for number, each in later["b"].items()} == {0: 0, 3: 3}
    assert {number: int(each[1]) for number, each in later["state"].items()} == {2: 2, 3: 3}


def names_in(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_an_array_is_moved_and_leaves_nothing(folders: Path) -> None:
    before = names_in(group_of(folders / "disk"))
    report = swathe.runs.move("app", "more", array="a")
    assert (report.run, report.dumps, report.objects) == ("app@1", 4, 4)
    assert report.bytes == sum(
        (group_of(folders / "more") / f"a/c/{slot}/0/0").stat().st_size for slot in range(4)
    )
    check_whole()
    assert stores_of("a") == ["more"] * 4 and stores_of("b") == ["disk"] * 2
    group = zarr.open_group(group_of(folders / "more"), mode="r", use_consolidated=True)
    array = group["a"]
    assert isinstance(array, zarr.Array)
    np.testing.assert_array_equal(array[:], np.stack(list(DUMPS.values())))
    rest = zarr.open_group(group_of(folders / "disk"), mode="r", use_consolidated=True)
    assert sorted(rest) == ["b", "iteration_3", "state"]
    left = {each for each in before if not each.startswith(("a/", "iteration_1/"))}
    assert names_in(group_of(folders / "disk")) == left
    assert swathe.runs.move("app", "more", array="a").dumps == 0


def test_iterations_and_checkpoints_are_moved(folders: Path) -> None:
    swathe.runs.move("app", "more", array="a", iterations=slice(1, 3))
    assert stores_of("a") == ["disk", "more", "more", "disk"]
    check_whole()
    swathe.runs.move("app", "more", array="state", iterations=slice(3, None))
    check_whole()
    for name, expected in (("disk", [2, None]), ("more", [None, 3])):
        state = zarr.open_group(group_of(folders / name), mode="r")["state"]
        assert state.attrs["iterations"] == expected
    swathe.runs.move("app", "more")
    check_whole()
    assert set(stores_of("a") + stores_of("b") + stores_of("state")) == {"more"}
    assert not names_in(folders / "disk")
    swathe.runs.move("app", "disk")
    check_whole()
    assert not names_in(folders / "more")
    assert swathe.runs.remove("app")["objects"] > 0 and not names_in(folders / "disk")


def test_an_array_that_grows_is_moved_with_all_its_dumps(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", 24)
    monkeypatch.setattr("swathe.runs.definition.shards.SHARD_BYTES", 24)
    expected = np.arange(60, dtype="i4").reshape(20, 3)
    written = object_writer.write_object

    def failing(name: str, *rest: Any) -> None:
        if name.startswith("disk:") and "/rows/c/3" in name:
            raise OutputError(f"{name}: no space left")
        written(name, *rest)

    with monkeypatch.context() as patch, swathe.run("growth", iterations=3) as run:
        patch.setattr(object_writer, "write_object", failing)
        rows = run.array("rows", (4, 3), "i4", mode="append", location=["disk", "more"])
        for iteration, (first, stop) in enumerate(((0, 5), (5, 5), (5, 11), (11, 20))):
            rows.write(iteration, expected[first:stop])
    assert stores_of("rows", "growth") == ["disk", "disk", "more", "more"]
    before = swathe.open_run("growth")["rows"]
    with pytest.raises(OptionError, match="expected all iterations of an array of mode append"):
        swathe.runs.move("growth", "disk", iterations=slice(1, 3))
    for store in ("disk", "more", "disk"):
        swathe.runs.move("growth", store)
        np.testing.assert_array_equal(np.asarray(before), expected)
        later = swathe.open_run("growth")["rows"]
        assert isinstance(later, GrownArray)
        np.testing.assert_array_equal(np.asarray(later), expected)
        assert (stores_of("rows", "growth"), later.rows_of(2)) == ([store] * 4, slice(5, 11))
        stored: Any = zarr.open_group(group_of(folders / store, "growth"), mode="r")["rows"]
        np.testing.assert_array_equal(stored[...], expected)
        other = {"disk": "more", "more": "disk"}[store]
        assert not names_in(group_of(folders / other, "growth"))


def test_an_array_that_grows_is_read_after_another_was_moved(folders: Path) -> None:
    with swathe.run("growth", iterations=2) as run:
        array = run.array("a", (2,), "u1", location="disk")
        rows = run.array("rows", (2, 3), "u1", mode="append", location="disk")
        for iteration in range(3):
            array.write(iteration, np.full(2, iteration, "u1"))
            rows.write(iteration, np.full((iteration + 1, 3), iteration, "u1"))
    expected = np.repeat(np.arange(3, dtype="u1"), [1, 2, 3])
    for store in ("more", "disk"):
        swathe.runs.move("growth", store, array="a")
        later = swathe.open_run("growth")
        np.testing.assert_array_equal(np.asarray(later["rows"])[:, 1], expected)
        assert {number: int(each[0]) for number, each in later["a"].items()} == {0: 0, 1: 1, 2: 2}
        path = group_of(folders / "disk", "growth")
        group = zarr.open_group(path, mode="r", use_consolidated=True)
        np.testing.assert_array_equal(np.asarray(group["rows"])[:, 2], expected)


KILLED = """
import os, signal, sys
from swathe.catalog import Catalog
from swathe.runs import move
from swathe.runs.moving import run_move

step, number = sys.argv[1], int(sys.argv[2])
owner = Catalog if hasattr(Catalog, step) else run_move.RunMove
real, calls = getattr(owner, step), []

def killing(*words, **options):
    calls.append(None)
    if len(calls) == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*words, **options)

setattr(owner, step, killing)
move("app", "more")
"""


@pytest.mark.more
@pytest.mark.parametrize(
    ("step", "number"),
    [("put_dump", 3), ("_remove", 3), ("_copy", 7), ("_leave_store", 2), ("_write_metadata", 5)],
)
def test_a_move_that_is_killed_goes_on(folders: Path, step: str, number: int) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED, step, str(number)]
    done = subprocess.run(command, env=environment, cwd=folders, timeout=120)
    assert done.returncode == -9
    check_whole()
    swathe.runs.move("app", "more")
    check_whole()
    assert set(stores_of("a") + stores_of("b") + stores_of("state")) == {"more"}
    assert not names_in(folders / "disk")
    swathe.runs.remove("app")
    assert not names_in(folders / "more")


def test_a_store_that_fails_ends_the_move_with_all_dumps_whole(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = copies.copy_pairs

    def failing(engine: Any, pairs: Any, *words: Any, **options: Any) -> None:
        if "/a/c/2/" in pairs[0].source:
            raise SourceError("more: no answer")
        real(engine, pairs, *words, **options)

    monkeypatch.setattr("swathe.runs.moving.run_move.copy_pairs", failing)
    with pytest.raises(SourceError, match="no answer"):
        swathe.runs.move("app", "more", array="a")
    check_whole()
    assert stores_of("a") == ["more"] * 2 + ["disk"] * 2
    assert swathe.runs.remove("app")["objects"] > 0
    assert not names_in(folders / "disk") and not names_in(folders / "more")


def test_who_reads_meanwhile_gets_whole_dumps() -> None:
    """Dumps are read over and over while they are moved to and fro."""
    later = swathe.open_run("app")
    is_done, faults = threading.Event(), []

    def read() -> None:
        dumps = {iteration: later["a"][iteration] for iteration in DUMPS}
        while not is_done.is_set():
            for iteration, dump in dumps.items():
                try:
                    np.testing.assert_array_equal(dump[...], DUMPS[iteration])
                    assert later["state"][3][...].tolist() == [3, 3]
                except BaseException as error:
                    faults.append(error)
                    return

    reader = threading.Thread(target=read)
    reader.start()
    for store in ("more", "disk"):
        swathe.runs.move("app", store)
    is_done.set()
    reader.join(60)
    assert not reader.is_alive() and faults == []


@pytest.mark.parametrize("name", ["a", "rows"])
def test_a_dump_that_is_back_when_its_folder_was_listed_is_read(
    folders: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It is away while the folder is listed: what is not there would be read as fill."""
    with swathe.run("grown", iterations=1) as run:
        rows = run.array("rows", (3, 4), "i4", mode="append", location="disk")
        rows.write(0, DUMPS[1])
    label, real, times = {"a": "app", "rows": "grown"}[name], files.open, []
    array = swathe.open_run(label)[name]
    dump = array if isinstance(array, GrownArray) else array[1]
    shards = group_of(folders / "disk", label) / name / "c" / ("1" if name == "a" else "0")

    def open_while_it_is_away(path: Any) -> Any:
        times.append(path)
        if len(times) > 1:
            return real(path)
        shards.rename(folders / "away")
        try:
            return real(path)
        finally:
            (folders / "away").rename(shards)

    monkeypatch.setattr(files, "open", open_while_it_is_away)
    np.testing.assert_array_equal(dump[...], DUMPS[1])
    assert len(times) == 2
    np.testing.assert_array_equal(dump[...], DUMPS[1])


def test_dumps_that_were_moved_say_nothing_of_writing(folders: Path) -> None:
    swathe.runs.move("app", "more", array="b")
    with Catalog.open() as catalog:
        rates = store_rates(catalog, ["disk", "more"])
        written = {each.dump.iteration for each in catalog.recent_dumps("disk", this_host(), 99)}
    # Dumps of an iteration are one outcome; those that took no time of their own are none.
    assert len(rates["disk"].outcomes) == len(written) > 0
    assert rates["more"].outcomes == ()
    assert all(each.engine_s > 0 and each.model_s > 0 for each in rates["disk"].outcomes)


def test_what_cannot_be_moved_is_refused(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoSuchRunError, match="there is no array 'x'"):
        swathe.runs.move("app", "more", array="x")
    with pytest.raises(NoSuchStoreError):
        swathe.runs.move("app", "nowhere")
    for iterations in (slice(0, 6, 5), slice(-2, None), slice(0, -1), slice(0.0, 2)):
        with pytest.raises(OptionError, match="iterations: expected a slice of numbers from 0"):
            swathe.runs.move("app", "more", iterations=iterations)
    with swathe.run("app", iterations=1) as run:
        run.array("a", (2,), "u1", location="disk").write(0, np.ones(2, "u1"))
        with pytest.raises(OptionError, match="is writing it; move it with force"):
            swathe.runs.move("app", "more")
        run.sync()
        assert swathe.runs.move("app", "more", force=True).dumps == 1
    (group_of(folders / "disk") / "a/c/2/0/0").unlink()
    with pytest.raises(FormatError, match="iteration 2: expected 1 shards, found 0"):
        swathe.runs.move("app@1", "more", array="a")
    assert [dump.store for dump in swathe.open_run("app@1")["a"].dumps.values()] == (
        ["more"] * 2 + ["disk"] * 2
    )
    monkeypatch.setattr(
        "swathe.runs.planning.store_rooms._room", lambda store: StoreRoom(store.name, store.tier, 5)
    )
    with pytest.raises(LimitError, match="more: expected room for 104 B"):
        swathe.runs.move("app@1", "more")


def test_what_cannot_be_listed_is_no_shard(folders: Path) -> None:
    shard = group_of(folders / "disk") / "a/c/2/0/0"
    # No path in a store, as it is no UTF-8.
    shard.rename(os.fsdecode(os.fsencode(shard.parent) + b"/\xff"))
    with pytest.raises(SourceError, match="cannot be listed"):
        swathe.open_run("app")["a"][2][...]
    with pytest.raises(SourceError, match="cannot be listed"):
        swathe.runs.move("app", "more", array="a")
    assert stores_of("a") == ["more"] * 2 + ["disk"] * 2


def test_the_command_moves(folders: Path) -> None:
    runner = CliRunner()
    words = ["run", "move", "app@1/a", "--to", "more:"]
    moved = json.loads(runner.invoke(app, [*words, "--iterations", "1:3", "--json"]).stdout)
    assert (moved["dumps"], moved["store"], moved["run"]) == (2, "more", "app@1")
    result = runner.invoke(app, words)
    assert "moved 2 dumps of app@1 to more: 2 objects" in result.output
    assert runner.invoke(app, [*words, "--iterations", "x"]).exit_code == 2


@pytest.mark.more
def test_a_server_that_dies_ends_the_move_with_all_dumps_whole(folders: Path) -> None:
    (folders / "served").mkdir()
    with block_server(folders / "served") as server:
        with Catalog.open() as catalog:
            catalog.add_store("lab", server.url.replace("http", "dav", 1), "lan")
        swathe.runs.move("app", "lab", array="a", iterations=slice(0, 2))
        check_whole()
        server.end(9)
    with pytest.raises(SourceError):
        swathe.runs.move("app", "lab", array="a")
    assert stores_of("a") == ["lab"] * 2 + ["disk"] * 2
    later = swathe.open_run("app")["a"]
    for iteration in (2, 3):
        np.testing.assert_array_equal(later[iteration][...], DUMPS[iteration])
