"""Runs that are written and read: by one process and by ranks, compared with zarr-python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import swathe
from swathe import trace
from swathe.catalog import Catalog
from swathe.cli.app import app
from swathe.core.errors import (
    AccessError,
    ChangedError,
    FormatError,
    LimitError,
    NoSuchRunError,
    OptionError,
    OutputError,
    SettingsError,
    SourceError,
    SwatheError,
)
from swathe.runs.definition.pattern import Pattern
from swathe.runs.definition.run_settings import RunSettings
from swathe.runs.definition.shards import Sharding
from swathe.runs.planning.placement import StoreRoom
from swathe.runs.storage.object_writer import ObjectWriter
from swathe.runs.writing.current_run import Run
from swathe.runs.writing.rank_group import RankGroup
from swathe.runs.writing.ranks import OneRank, Ranks, ThreadRanks, ranks_of
from swathe.stores import registry

RNG = np.random.default_rng(20261127)


@pytest.fixture(autouse=True)
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a store `disk` in a catalogue of its own."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    folder = tmp_path / "disk"
    folder.mkdir()
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(folder), "local")
    return folder


def group_of(label: str) -> Path:
    """Return the folder of a run in the store `disk`."""
    with Catalog.open() as catalog:
        folder = catalog.store("disk").kind.local_path
        assert folder is not None
        return folder / "runs" / catalog.run(label).folder


def together(size: int, program: Callable[[Ranks], None]) -> None:
    """Run a program on threads as ranks; raise the first error."""
    raised: list[BaseException] = []

    def run(ranks: Ranks) -> None:
        try:
            program(ranks)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in ThreadRanks.make(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if raised:
        raise raised[0]


def block_of(whole: np.ndarray, pattern: str, ranks: Ranks) -> np.ndarray:
    """Return the block of a rank by the definition of the pattern."""
    division = Pattern.parse(pattern, whole.ndim).division(whole.shape, ranks.size)
    block = np.empty(division.block_shape(ranks.rank), whole.dtype)
    for where, own in division.pieces(ranks.rank):
        block[own] = whole[where]
    return block


def test_objects_of_a_run_are_in_the_trace(disk: Path, tmp_path: Path) -> None:
    with trace.recording(tmp_path / "run.ulm"), swathe.run("app", 2) as run:
        array = run.array("a", (4, 4), "f4")
        for at in range(3):
            array.write(at, np.zeros((4, 4), "f4"))
    lines = (tmp_path / "run.ulm").read_text().splitlines()
    ends = [line for line in lines if "NL.EVNT=WRITE_END" in line and "JOB=app@1" in line]
    folder = swathe.open_run("app").record.folder
    assert len(ends) == 3 and all("RESULT=ok" in line for line in ends)
    starts = [line for line in lines if "WRITE_START" in line and f"runs/{folder}/a/c/2" in line]
    assert len(starts) == 1 and "OBJECT=disk:" in starts[0]


def test_a_rank_that_leaves_a_run_is_not_met_by_a_step_of_the_application(disk: Path) -> None:
    outcomes: dict[int, object] = {}

    def program(ranks: Ranks) -> None:
        assert ranks.gather(ranks.rank) == [0, 1]
        try:
            with swathe.run("app", 2, comm=ranks) as run:
                run.array("a", (4,), "f4")
                if ranks.rank == 0:
                    raise ValueError("left")
                outcomes[2] = ranks.gather("a step of the application")
        except (ValueError, threading.BrokenBarrierError) as error:
            outcomes[ranks.rank] = type(error)

    together(2, program)
    assert outcomes == {0: ValueError, 1: threading.BrokenBarrierError}
    assert swathe.open_run("app").record.state == "failed"


def test_dumps_are_those_that_zarr_reads(disk: Path) -> None:
    dumps = {number: RNG.random((20, 30, 40), "f4") for number in range(0, 13, 6)}
    with swathe.run("astro3d", iterations=13) as run:
        temp = run.array("temp", (20, 30, 40), "f4", every=6, dims=("z", "y", "x"))
        unused = run.array("ux", (4,), every=2, location="disable")
        for iteration in range(14):
            block = dumps.get(iteration, dumps[0]).copy()
            temp.write(iteration, block)
            unused.write(iteration, np.zeros(4, "f4"))
            block[...] = -1  # the caller may change it at once
    group = zarr.open_group(group_of("astro3d"), mode="r", use_consolidated=True)
    assert sorted(group) == ["iteration_6", "temp"]
    temp_array = group["temp"]
    assert isinstance(temp_array, zarr.Array)
    np.testing.assert_array_equal(temp_array[:], np.stack(list(dumps.values())))
    table = xarray.open_zarr(group_of("astro3d"))
    assert table.temp.dims == ("iteration_6", "z", "y", "x")
    np.testing.assert_array_equal(table.temp.sel(iteration_6=6), dumps[6])
    later = swathe.open_run("astro3d")
    assert (later.record.label, later.record.state) == ("astro3d@1", "complete")
    assert list(later) == ["temp", "ux"] and list(later["temp"]) == [0, 6, 12]
    assert len(later["ux"]) == 0
    dump = later["temp"][6]
    assert (dump.shape, dump.dtype, dump.ndim) == ((20, 30, 40), np.dtype("<f4"), 3)
    np.testing.assert_array_equal(dump[3:7, 5, ::2], dumps[6][3:7, 5, ::2])
    np.testing.assert_array_equal(np.asarray(dump), dumps[6])


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple),
    pattern=st.lists(
        st.sampled_from(["BLOCK", "*", "CYCLIC", "CYCLIC(3)"]), min_size=3, max_size=3
    ),
    size=st.integers(1, 5),
    dtype=st.sampled_from(["u1", "i2", "f8"]),
    limits=st.sampled_from([(64, 256), (300, 5000), (1 << 20, 1 << 26)]),
)
def test_each_pattern_and_number_of_ranks_writes_the_same(
    disk: Path,
    shape: tuple[int, ...],
    pattern: list[str],
    size: int,
    dtype: str,
    limits: tuple[int, int],
) -> None:
    text = ",".join(pattern[: len(shape)])
    whole = RNG.integers(0, 200, shape).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", limits[0])
        patch.setattr("swathe.runs.definition.shards.SHARD_BYTES", limits[1])

        def program(ranks: Ranks) -> None:
            with swathe.run("app", iterations=0, comm=ranks) as run:
                array = run.array("a", shape, dtype, pattern=text)
                array.write(0, block_of(whole, text, ranks))

        together(size, program)
        later = swathe.open_run("app")
        np.testing.assert_array_equal(later["a"][0][...], whole)
    found = zarr.open_array(group_of("app") / "a", mode="r")
    np.testing.assert_array_equal(found[0], whole)


def test_the_only_dump_of_a_checkpoint_is_read() -> None:
    """Its other place has none yet."""
    with swathe.run("app", iterations=3) as run:
        run.array("state", (4,), "i4", every=3, mode="overwrite").write(3, np.arange(4, dtype="i4"))
    np.testing.assert_array_equal(swathe.open_run("app")["state"][3], np.arange(4))
    for name in ("zarr.json", "state/zarr.json"):
        file = group_of("app") / name
        file.write_text(file.read_text().replace('"iterations": [3, null]', '"iterations": "3"'))
    with pytest.raises(FormatError, match="expected a list of iterations, found '3'"):
        swathe.open_run("app")["state"][3][...]


def test_a_checkpoint_before_stays_until_the_next_is_whole(disk: Path) -> None:
    with swathe.run("app", iterations=9) as run:
        state = run.array("state", (3, 4), "i4", every=3, mode="overwrite")
        for iteration in range(10):
            state.write(iteration, np.full((3, 4), iteration, "i4"))
    group = zarr.open_group(group_of("app"), mode="r")
    assert group["state"].attrs["iterations"] == [6, 9]
    later = swathe.open_run("app")["state"]
    assert list(later) == [6, 9]
    assert (later[9][...] == 9).all() and (later[6][...] == 6).all()


def test_the_first_checkpoint_is_read() -> None:
    with swathe.run("app", iterations=9) as run:
        state = run.array("state", (3,), "i4", mode="overwrite")
        state.write(0, np.full(3, 7, "i4"))
    assert swathe.open_run("app")["state"][0][...].tolist() == [7, 7, 7]


def test_an_array_that_one_store_cannot_hold_is_read_from_all(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Catalog.open() as catalog:
        catalog.add_store("more", str(tmp_path / "more"), "local")
    rooms = {"disk": 1700, "more": 10_000}
    monkeypatch.setattr(
        "swathe.runs.planning.store_rooms._room",
        lambda store: StoreRoom(store.name, store.tier, rooms[store.name]),
    )
    with swathe.run("app", iterations=5) as run:
        array = run.array("a", (20, 20), "u1", location=["disk", "more"])
        for iteration in range(6):
            array.write(iteration, np.full((20, 20), iteration, "u1"))
        with pytest.raises(LimitError, match=r"arrays\.b: expected room for 29.3 KiB"):
            run.array("b", (5000,), "u1", location="localdisk")
    later = swathe.open_run("app")["a"]
    assert [dump.store for dump in later.dumps.values()] == ["more"] * 6
    rooms["more"] = 900
    with swathe.run("app", iterations=5) as run:
        array = run.array("a", (20, 20), "u1", location=["disk", "more"])
        for iteration in range(6):
            array.write(iteration, np.full((20, 20), iteration, "u1"))
    later = swathe.open_run("app")["a"]
    assert [dump.store for dump in later.dumps.values()] == ["disk"] * 4 + ["more"] * 2
    assert [int(later[iteration][7, 7]) for iteration in range(6)] == list(range(6))


def test_settings_of_a_file_take_the_place_of_those_of_the_program(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'name = "app"\niterations = 4\n[arrays.a]\nshape = [5]\ndtype = "i8"\nevery = 2\n'
    )
    with swathe.run("app", iterations=4, purpose_file=file) as run:
        array = run.array("a", (5,), "i8", every=1)
        for iteration in range(5):
            array.write(iteration, np.full(5, iteration))
        with pytest.raises(OptionError, match=r"array b: iteration 0 was written before"):
            other = run.array("b", (2,), "u1")
            other.write(0, np.zeros(2, "u1"))
            other.write(0, np.zeros(2, "u1"))
    assert list(swathe.open_run("app@1")["a"]) == [0, 2, 4]
    with (
        pytest.raises(OptionError, match=r"array a: expected shape \(6,\) as in the program"),
        swathe.run("app", iterations=4, purpose_file=file) as run,
    ):
        run.array("a", (6,), "i8")
    assert swathe.open_run("app").record.state == "failed"
    with pytest.raises(SettingsError, match="iterations: expected 5 as in"):
        swathe.run("app", iterations=5, purpose_file=file)


@pytest.mark.parametrize(
    ("iteration", "block", "text"),
    [
        (-1, np.zeros((2, 2), "f4"), "expected an iteration from 0 to 3, found -1"),
        (4, np.zeros((2, 2), "f4"), "expected an iteration from 0 to 3, found 4"),
        (0.5, np.zeros((2, 2), "f4"), "found 0.5"),
        (0, np.zeros((2, 3), "f4"), r"expected a block of \(2, 2\), float32, found \(2, 3\)"),
        (0, np.zeros((2, 2), "f8"), r"found \(2, 2\), float64"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(iteration: Any, block: Any, text: str) -> None:
    with swathe.run("app", iterations=3) as run:
        array = run.array("a", (2, 2))
        with pytest.raises(OptionError, match=f"array a: .*{text}"):
            array.write(iteration, block)
        array.write(0, np.ones((2, 2), "f4"))
    assert (swathe.open_run("app")["a"][0][...] == 1).all()


def test_an_error_of_one_rank_is_raised_on_all() -> None:
    texts: list[str] = []

    def program(ranks: Ranks) -> None:
        with swathe.run("app", iterations=1, comm=ranks) as run:
            array = run.array("a", (6,), "u1")
            try:
                array.write(0, np.zeros(3 if ranks.rank == 2 else 2, "u1"))
            except OptionError as error:
                texts.append(str(error))
            try:
                array.write(ranks.rank % 2, np.zeros(2, "u1"))
            except OptionError as error:
                texts.append(str(error))
            array.write(1, np.full(2, ranks.rank, "u1"))

    together(3, program)
    assert sum("expected a block of (2,)" in text for text in texts) == 3
    assert sum("expected all ranks to do the same" in text for text in texts) == 3
    assert swathe.open_run("app")["a"][1][...].tolist() == [0, 0, 1, 1, 2, 2]


def test_a_rank_without_elements_takes_part() -> None:
    def program(ranks: Ranks) -> None:
        with swathe.run("app", iterations=0, comm=ranks) as run:
            array = run.array("a", (2, 2), "u1", pattern="**")
            shape = (2, 2) if ranks.rank == 0 else (0, 0)
            assert array.block_shape == shape
            array.write(0, np.full(shape, 7, "u1"))

    together(4, program)
    assert (swathe.open_run("app")["a"][0][...] == 7).all()


def test_a_store_that_fails_ends_the_run_with_what_is_durable(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swathe.runs.storage import object_writer

    written = object_writer.write_object

    def failing(name: str, content: Any, *_: Any) -> None:
        if "/a/c/" in name and not name.endswith(("/c/0/0", "/c/1/0")):
            raise OutputError(f"{name}: no space left")
        written(name, content)

    monkeypatch.setattr(object_writer, "write_object", failing)
    with (
        pytest.raises(OutputError, match="a/c/2/0: no space left"),
        swathe.run("app", iterations=9) as run,
    ):
        array = run.array("a", (3,), "u1")
        for iteration in range(10):
            array.write(iteration, np.full(3, iteration, "u1"))
    later = swathe.open_run("app")
    assert later.record.state == "failed"
    assert list(later["a"]) == [0, 1]


def test_a_last_sync_that_fails_loses_no_dump_that_is_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from swathe.runs.storage import object_writer

    written = object_writer.write_object

    def failing(name: str, content: Any, *_: Any) -> None:
        if "/a/c/4/" in name:
            time.sleep(0.2)  # after all was given to the threads
            raise OutputError(f"{name}: no space left")
        written(name, content)

    monkeypatch.setattr(object_writer, "write_object", failing)
    with pytest.raises(OutputError, match="no space left"), swathe.run("app", 4) as run:
        arrays = [run.array(name, (3,), "u1") for name in "ab"]
        for iteration in range(5):
            for array in arrays:
                array.write(iteration, np.full(3, iteration, "u1"))
    later = swathe.open_run("app")
    assert later.record.state == "failed"
    assert list(later["a"]) == [0, 1, 2, 3] and list(later["b"]) == [0, 1, 2, 3, 4]


def test_a_write_that_is_interrupted_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Sharding, _elements: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), swathe.run("app", iterations=3) as run:
        array = run.array("a", (3,), "u1")
        array.write(0, np.ones(3, "u1"))
        monkeypatch.setattr(Sharding, "encode", interrupted)
        array.write(1, np.ones(3, "u1"))
    assert list(swathe.open_run("app")["a"]) == [0]
    with pytest.raises(OptionError, match="app@1: the run has ended"):
        array.write(2, np.ones(3, "u1"))


def test_runs_of_two_catalogues_stay_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        if number == 2:
            url = f"sqlite:///{tmp_path / 'other.sqlite'}"
            monkeypatch.setenv("SWATHE_DATABASE", url)
            with Catalog.open() as catalog:
                catalog.add_store("disk", str(tmp_path / "disk"), "local")
        with swathe.run("app", iterations=0) as run:
            run.array("a", (3,), "u1").write(0, np.full(3, number, "u1"))
    assert swathe.open_run("app")["a"][0][...].tolist() == [2, 2, 2]
    swathe.runs.remove("app")
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    assert swathe.open_run("app")["a"][0][...].tolist() == [1, 1, 1]


def test_a_rank_that_fails_holds_up_no_other() -> None:
    texts: dict[int, str] = {}

    def program(ranks: Ranks) -> None:
        try:
            with swathe.run("app", iterations=9, comm=ranks) as run:
                array = run.array("a", (6,), "u1")
                for iteration in range(10):
                    array.write(iteration, np.full(2, iteration, "u1"))
                    run.sync()
                    if ranks.rank == 1 and iteration == 4:
                        raise ValueError("no more")
        except Exception as error:
            texts[ranks.rank] = f"{type(error).__name__}: {error}"

    together(3, program)
    assert texts[1] == "ValueError: no more"
    assert texts[0] == texts[2] == "OutputError: rank 1 has failed: ValueError: no more"
    later = swathe.open_run("app")
    assert later.record.state == "failed" and list(later["a"]) == [0, 1, 2, 3, 4]


def test_ranks_that_differ_in_settings_are_refused() -> None:
    texts = []

    def program(ranks: Ranks) -> None:
        with swathe.run("app", iterations=0, comm=ranks) as run:
            try:
                run.array("a", (4, 4), "u1", pattern="B*" if ranks.rank else "*B")
            except OptionError as error:
                texts.append(str(error))

    together(2, program)
    assert len(texts) == 2 and all("expected all ranks to do the same" in each for each in texts)


def test_room_of_arrays_to_come_is_not_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "swathe.runs.planning.store_rooms._room",
        lambda store: StoreRoom(store.name, store.tier, 1000),
    )
    with swathe.run("app", iterations=9) as run:
        state = run.array("state", (100,), "u1", mode="overwrite")  # two places
        run.array("a", (50,), "u1")
        for iteration in range(10):
            state.write(iteration, np.zeros(100, "u1"))
        with pytest.raises(LimitError, match=r"arrays\.b: expected room for 600 B"):
            run.array("b", (60,), "u1")  # 500 of `a` are to come


def test_the_last_checkpoint_is_the_one_that_was_written_last() -> None:
    with swathe.run("app", iterations=20) as run:
        state = run.array("state", (1,), "u1", mode="overwrite")
        for iteration in (10, 20, 5, 6):
            state.write(iteration, np.full(1, iteration, "u1"))
    later = swathe.open_run("app")["state"]
    assert {iteration: int(later[iteration][0]) for iteration in later} == {5: 5, 6: 6}


def test_a_run_that_is_written_is_removed_by_force_only() -> None:
    with pytest.raises(SwatheError), swathe.run("app", iterations=3) as run:
        array = run.array("a", (2,), "u1")
        array.write(0, np.zeros(2, "u1"))
        run.sync()
        with pytest.raises(OptionError, match="is writing it; remove it with force"):
            swathe.runs.remove("app")
        assert swathe.runs.remove("app@1", force=True)["objects"] > 0
        array.write(1, np.zeros(2, "u1"))
    with Catalog.open() as catalog:
        assert catalog.runs() == []


def test_a_run_whose_process_is_gone_is_stopped(tmp_path: Path) -> None:
    program = (
        "import os, numpy as np, swathe\n"
        "run = swathe.run('app', iterations=3).__enter__()\n"
        "array = run.array('a', (2,), 'u1')\n"
        "array.write(0, np.zeros(2, 'u1'))\n"
        "run.sync()\n"
        "os._exit(9)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 9
    later = swathe.open_run("app")
    assert later.record.state == "stopped" and list(later["a"]) == [0]
    assert swathe.runs.remove("app")["run"] == "app@1"


@pytest.mark.parametrize("name", ["zarr.json", "iteration_6", "a/b", "..", ""])
def test_names_that_the_group_needs_are_refused(name: str) -> None:
    with swathe.run("app", iterations=0) as run, pytest.raises(SettingsError, match="arrays: "):
        run.array(name, (2,), "u1")


def test_axes_of_one_name_have_one_length() -> None:
    with swathe.run("app", iterations=0) as run:
        run.array("a", (2, 3), "u1", dims=("y", "x"))
        with pytest.raises(OptionError, match="array b: expected axis x of length 3"):
            run.array("b", (4,), "u1", dims=("x",))


def test_a_checkpoint_that_was_replaced_is_an_error_of_who_reads_it() -> None:
    with swathe.run("app", iterations=9) as run:
        state = run.array("state", (4,), "i4", mode="overwrite")
        for iteration in range(2):
            state.write(iteration, np.full(4, iteration, "i4"))
        run.sync()
        before = swathe.open_run("app")["state"]
        for iteration in range(2, 5):
            state.write(iteration, np.full(4, iteration, "i4"))
    with pytest.raises(ChangedError, match="iteration 1 was replaced by a later one"):
        before[1][...]


def test_what_was_lost_or_changed_in_the_store_is_an_error() -> None:
    with swathe.run("app", iterations=1) as run:
        array = run.array("a", (4, 4), "i4")
        for iteration in range(2):
            array.write(iteration, np.ones((4, 4), "i4"))
    folder = group_of("app")
    (folder / "a/c/1/0/0").unlink()
    later = swathe.open_run("app")["a"]
    assert (later[0][...] == 1).all()
    with pytest.raises(FormatError, match="iteration 1: expected 1 shards, found 0"):
        later[1][...]
    for file in (folder / "zarr.json", folder / "a/zarr.json"):
        file.write_text(file.read_text().replace('"int32"', '"uint32"'))
    with pytest.raises(FormatError, match=r"expected \(2, 4, 4\), int32, found .* uint32"):
        swathe.open_run("app")["a"][0][...]


def test_a_folder_that_leads_out_of_its_store_is_refused(disk: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (disk / "runs").symlink_to(tmp_path / "outside")
    with pytest.raises(AccessError, match="leads out"), swathe.run("app", iterations=1) as run:
        run.array("a", (4,), "i4")


def test_a_dump_does_not_read_the_stores_of_the_catalogue_again(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    read = registry.storages

    def count() -> registry.StoreSnapshot:
        reads.append(1)
        return read()

    monkeypatch.setattr(registry, "storages", count)
    with swathe.run("app", iterations=9) as run:
        arrays = [run.array(mode, (4,), "i4", mode=mode) for mode in ("create", "overwrite")]
        begun = len(reads)
        for iteration in range(10):
            for array in arrays:
                array.write(iteration, np.arange(4, dtype="i4"))
            run.sync()
        assert len(reads) == begun


def test_a_store_without_an_answer_is_not_asked_for_each_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = []

    def silent(name: str, *_: Any) -> None:
        names.append(name)
        raise SourceError(f"{name}: no answer in 30 s")

    monkeypatch.setattr("swathe.runs.storage.object_writer.write_object", silent)
    with ObjectWriter(threads=1) as writer:
        writes = writer.write((f"far:{each}", [b"x"]) for each in range(50))
    assert names == ["far:0"]
    for write in writes:
        with pytest.raises(SourceError, match="far:0: no answer"):
            write.future.result()


def test_cyclic_axes_have_a_limit() -> None:
    with swathe.run("app", iterations=0) as run:
        with pytest.raises(OptionError, match="expected at most 1000000 blocks of a cyclic axis"):
            run.array("a", (1 << 40,), "u1", pattern="C", location="disable")
        run.array("b", (1 << 40,), "u1", pattern="B", location="disable")


def test_memory_of_waiting_writes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, most, lock = [0], [0], threading.Lock()
    gate = threading.Semaphore(0)

    def slow(_name: str, content: Any, *_: Any) -> None:
        with lock:
            waiting[0] += len(content[0])
            most[0] = max(most[0], waiting[0])
        assert gate.acquire(timeout=30)
        with lock:
            waiting[0] -= len(content[0])

    monkeypatch.setattr("swathe.runs.storage.object_writer.write_object", slow)
    with ObjectWriter(threads=4, most_waiting=100) as writer:
        feeder = threading.Thread(
            target=lambda: writer.write((f"disk:{each}", [bytes(60)]) for each in range(6))
        )
        feeder.start()
        for _ in range(6):
            gate.release()
        feeder.join(30)
        assert not feeder.is_alive()
    assert most[0] == 60  # two do not fit


def test_runs_that_are_not_there_are_named() -> None:
    with swathe.run("app", iterations=0) as run:
        run.array("a", (2,), "u1").write(0, np.zeros(2, "u1"))
    later = swathe.open_run("app")
    for label in ("other", "app@2", "app@x", "app@" + "9" * 30):
        with pytest.raises(NoSuchRunError):
            swathe.open_run(label)
    with pytest.raises(NoSuchRunError, match=r"app@1: expected an array \(a\), found 'b'"):
        later["b"]
    with pytest.raises(NoSuchRunError, match=r"expected an iteration that was written \(0\)"):
        later["a"][1]


def test_commands_predict_list_show_and_remove(disk: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('name = "app"\niterations = 4\n[arrays.a]\nshape = [5]\nevery = 2\n')
    with swathe.run("app", iterations=4, purpose_file=file) as run:
        array = run.array("a", (5,))
        for iteration in range(5):
            array.write(iteration, np.full(5, iteration, "f4"))
    runner = CliRunner()

    def answer(*words: str) -> Any:
        result = runner.invoke(app, ["run", *words, "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    predicted = answer("predict", str(file))
    assert predicted["bytes_by_store"] == {"disk": 60} and predicted["without_costs"] == ["disk"]
    assert [each["run"] for each in answer("list")] == ["app@1"]
    (row,) = answer("show", "app")["arrays"]
    assert (row["dumps"], row["bytes"], row["stores"]) == (3, 60, {"disk": 3})
    assert 0 < row["seconds"] < 60
    for words in (["predict", str(file)], ["list"], ["show", "app@1"]):
        assert "app" in runner.invoke(app, ["run", *words]).output or words[0] == "predict"
    assert answer("remove", "app") == {"run": "app@1", "objects": 7}
    assert not list(disk.rglob("*.json")) and answer("list") == []
    for command in ("show", "list"):
        assert isinstance(runner.invoke(app, ["run", command, "app"]).exception, NoSuchRunError)


def test_numbers_of_removed_runs_are_not_used_again() -> None:
    for number in range(1, 4):
        with swathe.run("app", iterations=0) as run:
            assert run.record.label == f"app@{number}"
        if number > 1:
            assert swathe.runs.remove("app")["run"] == f"app@{number}"
    assert [each.label for each in swathe.runs.list()] == ["app@1"]
    assert swathe.open_run("app").record.number == 1
    assert swathe.runs.remove("app")["run"] == "app@1"
    with swathe.run("app", iterations=0) as run:
        assert run.record.label == "app@4"


def test_communicators_are_recognised() -> None:
    assert isinstance(ranks_of(None), OneRank)
    one = OneRank()
    assert ranks_of(one) is one
    with pytest.raises(OptionError, match="comm: expected a communicator of mpi4py"):
        ranks_of(3)
    with pytest.raises(OptionError, match="threads: expected 1 to 1024"):
        ThreadRanks.make(0)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((7, 300, 500), "f8"), ((1 << 21,), "u1"), ((3,), "c8")]
)
def test_shards_have_the_bytes_of_the_codec(shape: tuple[int, ...], dtype: str) -> None:
    """The bytes of a shard are decoded by zarr-python's own codec."""
    sharding = Sharding(shape, np.dtype(dtype))
    elements = RNG.integers(0, 100, shape).astype(dtype)
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(
        store, shape=shape, dtype=dtype, chunks=sharding.chunk_shape, shards=sharding.shard_shape,
        compressors=None, filters=None,
    )  # fmt: skip
    array[...] = elements
    for place in sharding.places():
        key = "/".join(map(str, ("c", *place)))
        buffer = zarr.core.sync.sync(store.get(key, zarr.core.buffer.default_buffer_prototype()))
        ours = b"".join(bytes(each) for each in sharding.encode(elements[sharding.box(place)]))
        assert buffer is not None and len(buffer.to_bytes()) == len(ours)
        store._store_dict[key] = zarr.core.buffer.default_buffer_prototype().buffer.from_bytes(ours)
    np.testing.assert_array_equal(zarr.open_array(store, mode="r")[...], elements)


def test_settings_are_checked_before_the_run_begins() -> None:
    with pytest.raises(SettingsError, match=r"run\.name"):
        swathe.run("../x", iterations=1)
    with pytest.raises(SettingsError, match=r"run\.iterations"):
        swathe.run("x", iterations=-1)
    with Catalog.open() as catalog:
        assert catalog.runs() == []
    with Run(RunSettings("app", 0), RankGroup(OneRank())) as run:
        assert run.record.number == 1
