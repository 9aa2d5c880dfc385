"""Stores that fail, fill or slow down while a run writes: each dump is where the catalogue says."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import LimitError, NoSuchStoreError, OutputError, SettingsError, SourceError
from swathe.runs.definition.run_settings import ArraySettings
from swathe.runs.planning.placement import StoreRoom
from swathe.runs.planning.shared_writes import Placement
from swathe.runs.storage import object_writer
from swathe.runs.storage.object_writer import ObjectWrite, ObjectWriter
from swathe.runs.writing.dump import Dump, PlacedArray
from swathe.runs.writing.ranks import Ranks
from swathe.runs.writing.run_head import RunHead, _spread
from swathe.runs.writing.store_watch import StoreWatch
from tests.runs.test_prediction import measured
from tests.runs.test_run import together

ITERATIONS = 7
WHOLE = np.arange(6 * 5 * 4, dtype="i4").reshape(6, 5, 4)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The folders of the stores `far` (tier wan), `lab` (lan) and `near` (local)."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    folders = {name: tmp_path / name for name in ("far", "lab", "near")}
    with Catalog.open() as catalog:
        for (name, folder), tier in zip(folders.items(), ("wan", "lan", "local"), strict=True):
            catalog.add_store(name, str(folder), tier)
    return folders


def fail_from(
    monkeypatch: pytest.MonkeyPatch, is_hit: Callable[[str], bool], error: type[Exception]
) -> list[str]:
    """Let writing fail of objects whose name is hit; return their names."""
    names: list[str] = []
    written = object_writer.write_object

    def write(name: str, *rest: Any) -> None:
        if is_hit(name):
            names.append(name)
            raise error(f"{name}: no more")
        written(name, *rest)

    monkeypatch.setattr(object_writer, "write_object", write)
    return names


def write_run(ranks: Ranks | None = None, sync: bool = False, **settings: Any) -> None:
    with swathe.run("app", ITERATIONS, comm=ranks) as run:
        array = run.array("a", WHOLE.shape, "i4", pattern="BB*", **settings)
        for iteration in range(ITERATIONS + 1):
            block = np.empty(array.block_shape, "i4")
            for where, own in array.division.pieces(0 if ranks is None else ranks.rank):
                block[own] = WHOLE[where] + iteration
            array.write(iteration, block)
            if sync:
                run.sync()


def check_all(mode: str = "create") -> dict[int, str]:
    """Compare each dump with what was written; return the stores by iteration."""
    array = swathe.open_run("app")["a"]
    expected = [ITERATIONS - 1, ITERATIONS] if mode == "overwrite" else list(range(ITERATIONS + 1))
    assert list(array) == expected
    for iteration, dump in array.items():
        np.testing.assert_array_equal(dump[...], WHOLE + iteration)
    return {iteration: record.store for iteration, record in array.dumps.items()}


@pytest.mark.parametrize(
    ("size", "at", "error", "mode"),
    [
        (1, 0, OutputError, "create"),
        (1, 3, SourceError, "overwrite"),
        (3, 4, SourceError, "create"),
        (2, 5, OutputError, "overwrite"),
    ],
)
def test_no_dump_is_lost_when_a_store_fails(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    folders: dict[str, Path],
    error: type[Exception],
    size: int,
    at: int,
    mode: str,
) -> None:
    monkeypatch.setattr("swathe.runs.definition.shards.SHARD_BYTES", 100)
    monkeypatch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", 50)
    begun: list[str] = []

    def is_hit(name: str) -> bool:
        # Of the dump `at`, one object of the store; then all of it.
        begun.extend([name] if "/a/c/" in name and name.endswith("/0/0/0") else [])
        return name.startswith("far:") and len(begun) > at + 1

    fail_from(monkeypatch, is_hit, error)
    with caplog.at_level(logging.WARNING):
        if size == 1:
            write_run(location=["far", "lab"], mode=mode)
        else:
            together(size, lambda ranks: write_run(ranks, location=["far", "lab"], mode=mode))
    stores = check_all(mode)
    run = swathe.open_run("app")
    with Catalog.open() as catalog:
        (record,) = catalog.run_arrays(run.record.id)
        moves = catalog.failovers(record.id)
    assert stores[ITERATIONS] == "lab" and run.record.state == "complete"
    assert [(each.store, each.next_stores) for each in moves] == [("far", ("lab",))]
    assert "no more" in moves[0].reason and record.stores == ["far", "lab"]
    assert "array a leaves the store far for lab from iteration" in caplog.text
    group = zarr.open_group(folders["lab"] / "runs" / run.record.folder, mode="r")
    moved = [iteration for iteration, store in stores.items() if store == "lab"]
    assert moves[0].iteration <= moved[0] and (mode == "create" or moves[0].iteration >= at)
    slot = run["a"].dumps[ITERATIONS].slot
    array = group["a"]
    assert isinstance(array, zarr.Array)
    np.testing.assert_array_equal(array[slot], WHOLE + ITERATIONS)


def test_the_next_store_is_one_as_near_or_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_from(monkeypatch, lambda name: name.startswith("lab:") and "/c/2" in name, OutputError)
    write_run(location="lab")
    assert set(list(check_all().values())[2:]) == {"near"}


def test_the_stores_of_the_settings_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_from(monkeypatch, lambda name: name.startswith("near:") and "/c/2" in name, OutputError)
    write_run(location="near", failover="far")
    assert set(list(check_all().values())[2:]) == {"far"}


def test_hints_name_stores_for_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_from(monkeypatch, lambda name: name.startswith("far:") and "/c/2" in name, OutputError)
    write_run(location="far", failover="localdisk")
    assert set(list(check_all().values())[2:]) == {"near"}


def test_without_failover_the_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_from(monkeypatch, lambda name: name.startswith("far:") and "/c/2" in name, OutputError)
    with pytest.raises(OutputError, match="c/2/0/0/0: no more"):
        write_run(location=["far", "lab"], failover=False)
    assert set(swathe.open_run("app")["a"]) >= {0, 1}
    assert {each.store for each in swathe.open_run("app")["a"].dumps.values()} == {"far"}


def test_stores_that_fail_one_after_the_other_are_all_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_hit(name: str) -> bool:
        return (name.startswith("far:") and "/c/2" in name) or name.startswith("lab:")

    fail_from(monkeypatch, is_hit, SourceError)
    write_run(location="far")
    assert set(list(check_all().values())[2:]) == {"near"}
    fail_from(monkeypatch, lambda name: "/c/" in name, SourceError)
    with pytest.raises(SourceError, match="no more; no other store: "):
        write_run(location="far")


def test_a_store_without_an_answer_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_from(monkeypatch, lambda name: name.startswith("far:"), SourceError)
    write_run(location="far")
    assert set(check_all().values()) == {"lab"}
    with pytest.raises(SourceError, match="no more"):
        write_run(location="far", failover=False)


def test_an_array_that_was_refused_may_be_added_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_from(monkeypatch, lambda name: name.startswith("far:"), SourceError)
    with swathe.run("app", 0) as run:
        with pytest.raises(SourceError, match="no more"):
            run.array("a", WHOLE.shape, "i4", location="far", failover=False)
        assert list(swathe.open_run("app")) == []
        run.array("a", WHOLE.shape, "i4", location="lab").write(0, WHOLE)
    np.testing.assert_array_equal(swathe.open_run("app")["a"][0][...], WHOLE)


def test_what_is_given_up_is_removed(
    monkeypatch: pytest.MonkeyPatch, folders: dict[str, Path]
) -> None:
    monkeypatch.setattr("swathe.runs.definition.shards.SHARD_BYTES", 100)
    monkeypatch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", 50)
    hits = fail_from(
        monkeypatch,
        lambda name: name.startswith("far:") and "/c/3/1/" in name,
        OutputError,
    )
    write_run(location=["far", "lab"])
    assert hits
    check_all()
    left = [str(each) for each in folders["far"].rglob("*") if "/c/3/" in str(each)]
    assert not [each for each in left if Path(each).is_file()]


def test_dumps_too_large_for_memory_are_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("run_array", "dump_queue"):
        monkeypatch.setattr(f"swathe.runs.writing.{module}.MOST_WAITING", 200)
    monkeypatch.setattr("swathe.runs.definition.shards.SHARD_BYTES", 100)
    monkeypatch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", 50)
    fail_from(monkeypatch, lambda name: name.startswith("far:") and "/c/2/1/" in name, OutputError)
    write_run(location=["far", "lab"])
    assert set(list(check_all().values())[2:]) == {"lab"}


def test_memory_is_bounded_while_dumps_are_not_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swathe.runs.writing.dump_queue.MOST_WAITING", 1000)  # two dumps
    monkeypatch.setattr("swathe.runs.writing.run_array.MOST_WAITING", 1000)
    most = [0]

    def program(ranks: Ranks) -> None:
        with swathe.run("app", ITERATIONS, comm=ranks) as run:
            array = run.array("a", WHOLE.shape, "i4", location="near")
            for iteration in range(ITERATIONS + 1):
                block = np.empty(array.block_shape, "i4")
                for where, own in array.division.pieces(ranks.rank):
                    block[own] = WHOLE[where] + iteration
                array.write(iteration, block)
                waiting = sum(dump.size for dump in run._storage.queue._dumps)
                most[0] = max(most[0], waiting)

    together(2, program)
    check_all()
    assert 0 < most[0] <= 1000


class Watch(StoreWatch):
    """A watch of a store whose rate is given."""

    def __init__(self, **rates: Any) -> None:
        self.rates, self._late = rates, {}


def dump_in(store: str) -> Dump:
    settings = ArraySettings((1024, 1024), "u1")
    array = PlacedArray("a", settings, None, [Placement(store, 0, 9)], 8, 1)  # type: ignore[arg-type]
    return Dump(array, 0, 0, store, 0.0)


def test_a_store_is_slow_after_late_dumps_in_a_row() -> None:
    rate = measured((1 << 20, 10.0), (1 << 21, 20.0))
    watch = Watch(far=rate, other=rate)
    dump, other = dump_in("far"), dump_in("other")
    assert watch.limit_s(dump) == pytest.approx(22.0, rel=1e-3)
    for seconds in (30.0, 20.0, 30.0):
        assert not watch.faults([(dump, seconds, True), (other, 20.0, True)])
    (fault,) = watch.faults([(dump, 30.0, True), (other, 30.0, True)]).values()
    assert fault.kind == "SourceError" and "far: is slow: a at iteration 0" in fault.reason
    watch = Watch(far=rate)
    assert not watch.faults([(dump, 23.0, True), (dump, 10.0, False)])
    assert watch.faults([(dump, 23.0, False)])  # after another one
    watch = Watch(far=rate)
    assert not watch.faults([(dump, 43.0, False)])
    assert watch.faults([(dump, 45.0, False)])  # as long as two
    assert not watch.faults([(dump_in("unknown"), 1e9, True)] * 9)


def test_dumps_that_share_a_store_are_late_together() -> None:
    rate = measured((1 << 20, 10.0), (1 << 21, 20.0))
    watch = Watch(far=rate)
    dumps = [dump_in("far") for _ in range(4)]
    for dump in dumps[:3]:
        write = ObjectWrite("far:a", 0)
        write.future.set_running_or_notify_cancel()
        dump.writes = [write]
    # Three share the line: the first ends when nearly all of all is written.
    times = [(dumps[0], 60.0, True), *((each, 0.0, False) for each in dumps[1:])]
    assert not watch.faults(times)
    times[0] = dumps[0], 140.0, True
    assert watch.faults(times)
    # What waits for a thread takes nothing of the line, nor does what was durable before.
    watch = Watch(far=rate)
    assert watch.faults([(dumps[1], 0.0, True), (dumps[0], 45.0, True), (dumps[3], 0.0, False)])


def test_a_slow_store_is_left_and_one_without_another_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        StoreWatch, "limit_s", lambda _, dump, beside: 1e-9 if dump.store == "lab" else None
    )
    write_run(location=["lab", "near"], sync=True)
    assert check_all()[ITERATIONS] == "near"
    write_run(location="lab", failover="lab", sync=True)
    assert set(check_all().values()) == {"lab"}
    with swathe.run("app", 1) as run:
        first = run.array("a", (2,), location="lab", failover=False)
        for iteration in range(2):
            first.write(iteration, np.zeros(2, "f4"))
            run.sync()
        # What comes later may go there, too.
        run.array("b", (2,), location="lab", failover=False).write(0, np.zeros(2, "f4"))
    assert [dump.store for dump in swathe.open_run("app")["b"].dumps.values()] == ["lab"]


def test_dumps_between_those_that_move_keep_their_store() -> None:
    moved = _spread([Placement("lab", 0, 3), Placement("near", 3, 1)], [3, 4, 10, 11])
    assert moved == [Placement("lab", 3, 2), Placement("lab", 10, 1), Placement("near", 11, 1)]


def test_room_of_dumps_to_come_is_that_of_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "swathe.runs.planning.store_rooms._room",
        lambda store: StoreRoom(store.name, store.tier, 1000, disk=7),
    )
    with swathe.run("app", 0) as run:
        run.array("a", (200,), location="far")
        with pytest.raises(LimitError, match="expected room for 800 B, found near 200 B"):
            run.array("b", (200,), location="near")


def test_dumps_that_return_to_a_store_need_room_besides_those_there() -> None:
    settings = ArraySettings((250,))
    with Catalog.open() as catalog:
        record = catalog.begin_run("app", 9, 1)
        head = RunHead(catalog, record, ObjectWriter(), None, {})
        head._set_reserve(1, settings, [Placement("lab", 0, 2), Placement("lab", 5, 3)], 9)
        assert head._reserve == {(1, "lab"): (5, 1000)}


def test_settings_are_checked() -> None:
    with swathe.run("app", 1) as run:
        with pytest.raises(SettingsError, match="failover"):
            run.array("a", (2,), failover=[])
        for place in ("disable", "nowhere"):
            with pytest.raises(NoSuchStoreError, match=rf"a\.failover: .*, found '{place}'"):
                run.array("a", (2,), location="far", failover=["near", place])
        with pytest.raises(SettingsError, match="drain"):
            run.array("a", (2,), drain="never")
        with pytest.raises(SettingsError, match="via: expected mode create"):
            run.array("a", (2,), via="near", mode="overwrite")
