"""Dumps that are written to a near store first: they are durable there, and are moved on."""

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
from typer.testing import CliRunner

import swathe
from swathe.catalog import Catalog
from swathe.cli.app import app
from swathe.core.errors import (
    NoSuchStoreError,
    NotFoundError,
    OptionError,
    OutputError,
    SourceError,
)
from swathe.runs.planning.placement import StoreRoom
from swathe.runs.storage import object_writer
from swathe.runs.writing.ranks import Ranks
from swathe.runs.writing.run_head import RunHead
from tests.runs.test_run import block_of, together

WHOLE = np.arange(60, dtype="i4").reshape(6, 10)
PROGRAM = """
import os, sys, time
import numpy as np
import swathe
from swathe.runs.storage import object_writer

copy = object_writer.copy_one
count = [0]

def until_killed(source, name, *rest):
    count[0] += 1
    if count[0] == int(sys.argv[1]):
        os.kill(os.getpid(), 9)
    copy(source, name, *rest)

object_writer.copy_one = until_killed
with swathe.run("app", 5) as run:
    array = run.array("a", (6, 10), "i4", location="far", via="near")
    for iteration in range(6):
        array.write(iteration, np.arange(60, dtype="i4").reshape(6, 10) + iteration)
        run.sync()
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The folders of the stores `far` and `near`."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    folders = {name: tmp_path / name for name in ("far", "near")}
    with Catalog.open() as catalog:
        catalog.add_store("far", str(folders["far"]), "wan")
        catalog.add_store("near", str(folders["near"]), "local")
    return folders


def write_run(ranks: Ranks | None = None, **settings: Any) -> None:
    with swathe.run("app", 5, comm=ranks) as run:
        array = run.array("a", WHOLE.shape, "i4", location="far", via="near", **settings)
        for iteration in range(6):
            whole = WHOLE + iteration
            array.write(iteration, whole if ranks is None else block_of(whole, "B*", ranks))
            if iteration == 3:
                run.sync()


def stores() -> list[str]:
    """Check each dump; return their stores."""
    array = swathe.open_run("app")["a"]
    for iteration, dump in array.items():
        np.testing.assert_array_equal(dump[...], WHOLE + iteration)
    return [dump.store for dump in array.dumps.values()]


def shards(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file() and "/a/c/" in str(each)]


@pytest.mark.parametrize("size", [1, 3])
def test_dumps_are_moved_on_before_the_end(
    size: int, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.runs.definition.shards.SHARD_BYTES", 100)
    monkeypatch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", 50)
    written: list[str] = []
    write = object_writer.write_object

    def note(name: str, *rest: Any) -> None:
        written.append(name)
        write(name, *rest)

    monkeypatch.setattr(object_writer, "write_object", note)
    if size == 1:
        write_run()
    else:
        together(size, write_run)
    assert stores() == ["far"] * 6
    # What writing to the near store took, and waiting, says nothing of the far one.
    assert not any(dump.seconds for dump in swathe.open_run("app")["a"].dumps.values())
    assert {name.partition(":")[0] for name in written if "/a/c/" in name} == {"near"}
    assert not shards(folders["near"])


def test_dumps_are_moved_on_later(folders: dict[str, Path]) -> None:
    ready = threading.Event()
    copy = object_writer.copy_one
    with pytest.MonkeyPatch.context() as patch:

        def wait(source: str, name: str, *rest: Any) -> None:
            ready.wait(0.2)
            copy(source, name, *rest)

        patch.setattr(object_writer, "copy_one", wait)
        write_run(drain="later")
    before = swathe.open_run("app")["a"]
    number = [dump.target for dump in before.dumps.values()].count("far")
    assert number > 0 and stores()[-1] == "near"
    elements = before[5]
    np.testing.assert_array_equal(elements[...], WHOLE + 5)
    runner = CliRunner()
    shown = runner.invoke(app, ["run", "show", "app"]).output
    assert "to be moved on; see: swathe run drain app@1" in shown
    result = runner.invoke(app, ["run", "drain", "app", "--json"])
    assert json.loads(result.stdout)["dumps"] == number
    assert stores() == ["far"] * 6 and not shards(folders["near"])
    assert not any(dump.seconds for dump in swathe.open_run("app")["a"].dumps.values())
    # Who opened it before follows it.
    np.testing.assert_array_equal(elements[...], WHOLE + 5)
    assert "far:" in repr(elements)


@pytest.mark.parametrize("number", [1, 4])
def test_each_dump_is_whole_in_one_place_after_a_kill(
    number: int, folders: dict[str, Path], tmp_path: Path
) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(number)], env=environment, cwd=tmp_path, timeout=60
    )
    assert done.returncode == -9
    count = len(stores())
    assert count >= 1
    report = swathe.runs.drain("app")
    assert report.dumps >= 1
    assert stores() == ["far"] * count
    assert swathe.runs.drain("app").dumps == 0


def test_a_kill_before_the_near_copy_is_removed_leaves_it_to_drain(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_writer.ObjectWriter, "remove", lambda *_: None)
    write_run()
    assert len(shards(folders["near"])) == 6
    assert swathe.runs.drain("app").leftovers == 6
    assert not shards(folders["near"]) and stores() == ["far"] * 6


def test_what_has_no_room_in_the_near_store_is_written_to_the_far_one(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "swathe.runs.planning.store_rooms._room",
        lambda store: StoreRoom(store.name, store.tier, 100 if store.name == "near" else None),
    )
    write_run(drain="later")
    assert stores() == ["far"] * 6


def test_a_near_store_that_fails_is_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    write = object_writer.write_object

    def failing(name: str, *rest: Any) -> None:
        if name.startswith("near:") and "/a/c/2" in name:
            raise OutputError(f"{name}: no space left")
        write(name, *rest)

    monkeypatch.setattr(object_writer, "write_object", failing)
    write_run()
    assert stores() == ["far"] * 6


def test_a_far_store_that_fails_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Catalog.open() as catalog:
        catalog.add_store("spare", str(tmp_path / "spare"), "wan")
    copy = object_writer.copy_one

    def failing(source: str, name: str, *rest: Any) -> None:
        if name.startswith("far:") and "/a/c/2" in name:
            raise OutputError(f"{name}: no space left")
        copy(source, name, *rest)

    monkeypatch.setattr(object_writer, "copy_one", failing)
    write_run(failover="spare")
    assert stores()[2] == "spare" and set(stores()) <= {"far", "spare"}


def test_dumps_stay_near_if_no_other_store_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = object_writer.copy_one

    def failing(source: str, name: str, *rest: Any) -> None:
        if name.startswith("far:") and "/a/c/2" in name:
            raise OutputError(f"{name}: no space left")
        copy(source, name, *rest)

    monkeypatch.setattr(object_writer, "copy_one", failing)
    write_run()
    assert len(stores()) == 6 and stores()[2] == "near" and set(stores()) <= {"far", "near"}
    array = swathe.open_run("app")["a"]
    assert [dump.target for dump in array.dumps.values()] == [None] * 6
    assert swathe.runs.drain("app").dumps == 0 and len(stores()) == 6


def test_a_store_is_passed_over_before_the_near_one_is_used(tmp_path: Path) -> None:
    (tmp_path / "bad").touch()  # no folder
    with Catalog.open() as catalog:
        catalog.add_store("bad", str(tmp_path / "bad"), "wan")
    with swathe.run("app", 5) as run:
        array = run.array("a", WHOLE.shape, "i4", location=["bad", "far"], via="near")
        for iteration in range(6):
            array.write(iteration, WHOLE + iteration)
            array.sync()
            # It is read from the near store as long as it is there.
            elements = swathe.open_run("app")["a"][iteration][...]
            np.testing.assert_array_equal(elements, WHOLE + iteration)
    group = tmp_path / "near" / "runs" / swathe.open_run("app").record.folder
    assert (group / "a" / "zarr.json").is_file()
    assert stores() == ["far"] * 6


def test_room_is_asked_for_only_where_a_dump_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def note(_head: RunHead, store: str, _size: int) -> bool:
        asked.append(store)
        return True

    monkeypatch.setattr(RunHead, "has_room", note)
    with swathe.run("app", 5) as run:
        array = run.array("a", WHOLE.shape, "i4", every=3, location="far", via="near")
        for iteration in range(6):
            array.write(iteration, WHOLE)
    assert asked == ["near"] * 2


@pytest.mark.parametrize("size", [1, 2])
def test_a_near_store_that_is_lost_stops_no_other_dump(
    size: int, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = object_writer.copy_one

    def losing(source: str, name: str, *rest: Any) -> None:
        if "/a/c/2" in name:
            (folders["near"] / source.partition(":")[2]).rename(tmp_path / "lost")
        copy(source, name, *rest)

    def program(ranks: Ranks) -> None:
        with swathe.run("app", 5, comm=ranks) as run:
            array = run.array("a", WHOLE.shape, "i4", location="far", via="near")
            other = run.array("b", WHOLE.shape, "i4", location="far")
            for iteration in range(6):
                for each in (array, other):
                    each.write(iteration, block_of(WHOLE + iteration, "B*", ranks))

    with monkeypatch.context() as patch:
        patch.setattr(object_writer, "copy_one", losing)
        with pytest.raises(NotFoundError, match=r"found 1 in .* array a, iteration 2: "):
            together(size, program)
    run = swathe.open_run("app")
    assert run.record.state == "failed" and list(run["a"]) == list(run["b"]) == list(range(6))
    assert {dump.store for dump in run["b"].dumps.values()} == {"far"}
    assert [run["a"].dumps[at].store for at in range(6) if at != 2] == ["far"] * 5
    assert (run["a"].dumps[2].store, run["a"].dumps[2].target) == ("near", "far")
    near = folders["near"] / "runs" / run.record.folder / "a/c/2/0"
    (tmp_path / "lost").rename(near / "0")
    assert swathe.runs.drain("app").dumps == 1 and stores() == ["far"] * 6


def test_an_error_of_the_near_store_is_not_one_of_the_far_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy = object_writer.copy_one
    failed: list[str] = []

    def failing(source: str, name: str, *rest: Any) -> None:
        if "/a/c/2" in name and not failed:
            failed.append(source)
            raise SourceError(f"{source}: connection reset")
        copy(source, name, *rest)

    monkeypatch.setattr(object_writer, "copy_one", failing)
    write_run(failover=False)
    assert failed and stores() == ["far"] * 6


def test_errors_are_told() -> None:
    with swathe.run("app", 1) as run:
        with pytest.raises(NoSuchStoreError, match=r"arrays\.b\.via: expected a store"):
            run.array("b", (2,), location="far", via="nowhere")
        with pytest.raises(OptionError, match="is writing it, and moves its dumps on"):
            swathe.runs.drain("app")
