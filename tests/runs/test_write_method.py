"""Collective, independent and subfile: what is written, by whom, and which costs least."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import OptionError, SettingsError
from swathe.costs.cost_model import NO_LIMIT, Costs
from swathe.runs.definition.pattern import Pattern
from swathe.runs.definition.run_settings import ArraySettings, RunSettings
from swathe.runs.planning.store_rate import StoreRate
from swathe.runs.planning.write_method import choose_write
from swathe.runs.storage import object_writer
from swathe.runs.writing.rank_group import RankGroup
from swathe.runs.writing.ranks import Ranks
from tests.runs.test_run import block_of, group_of, together

SHAPE = (17, 18, 19)
WHOLE = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)
PATTERNS = ("BBB", "*B*", "CYCLIC(3),*,B", "C**")
MIB = 1 << 20


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a store `disk` in a catalogue of its own."""
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(tmp_path / "disk"), "local")
    monkeypatch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", 1500)
    monkeypatch.setattr("swathe.runs.definition.shards.SHARD_BYTES", 6000)
    return tmp_path / "disk"


@pytest.mark.parametrize("method", ["collective", "independent", "subfile"])
def test_each_object_is_written_once_by_one_rank(
    method: str, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, exchanges, write = Counter[str](), list[int](), object_writer.write_object
    exchange = RankGroup.exchange

    def write_one(name: str, *rest: Any) -> None:
        names[name] += 1
        write(name, *rest)

    def count(group: RankGroup, *rest: Any) -> Any:
        exchanges.append(group.rank)
        return exchange(group, *rest)

    monkeypatch.setattr(object_writer, "write_object", write_one)
    monkeypatch.setattr(RankGroup, "exchange", count)

    def program(ranks: Ranks) -> None:
        with swathe.run("app", iterations=0, comm=ranks) as run:
            for number, pattern in enumerate(PATTERNS):
                array = run.array(f"a{number}", SHAPE, pattern=pattern, write=method)
                array.write(0, block_of(WHOLE, pattern, ranks))

    together(4, program)
    shards = {name: count for name, count in names.items() if "/c/" in name and "/a" in name}
    assert set(shards.values()) == {1} and len(shards) > 3 * len(PATTERNS)
    assert bool(exchanges) == (method != "independent")
    later = swathe.open_run("app")
    group = zarr.open_group(group_of("app"), mode="r")
    for number in range(len(PATTERNS)):
        np.testing.assert_array_equal(later[f"a{number}"][0][...], WHOLE)
        array = group[f"a{number}"]
        assert isinstance(array, zarr.Array)
        np.testing.assert_array_equal(array[0], WHOLE)
        assert (array.shards is None) == (method == "subfile")
    with Catalog.open() as catalog:
        label, folder = later.record.label, later.record.folder
        before = {name: array.settings.sharding for name, array in later.items()}
        catalog.remove_run(later.record.id)
    added = swathe.runs.add(f"disk:runs/{folder}")
    assert added.label != label
    again = swathe.open_run("app")
    for name, stored in again.items():
        sharding = stored.settings.sharding
        assert (sharding.shard_shape, sharding.count) == (
            before[name].shard_shape, before[name].count,
        )  # fmt: skip
        np.testing.assert_array_equal(stored[0][...], WHOLE)


def test_the_last_rows_of_subfiles_are_moved_and_removed(disk: Path, tmp_path: Path) -> None:
    with Catalog.open() as catalog:
        catalog.add_store("more", str(tmp_path / "more"), "local")
    with swathe.run("app", iterations=1) as run:
        array = run.array("a", SHAPE, location="disk", write="subfile", shards=(5, 18, 7))
        for iteration in range(2):
            array.write(iteration, WHOLE + iteration)
    assert swathe.runs.move("app", "more").objects == 2 * 4 * 3
    np.testing.assert_array_equal(swathe.open_run("app")["a"][1][...], WHOLE + 1)
    swathe.runs.remove("app")
    assert not [each for each in tmp_path.rglob("c/*") if each.is_file()]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"write": "sideways"}, "write: expected"),
        ({"shards": (4, 4)}, "shards: expected 3 lengths"),
        ({"chunks": (4, 4, 4), "shards": (8, 8, 6)}, "shards: expected whole chunks"),
        ({"chunks": (40, 4, 4)}, "shards: expected whole chunks"),
        ({"write": "subfile", "chunks": (4, 4, 4), "shards": (8, 8, 8)}, "as its chunks"),
        ({"shape": (1000, 1000, 1000), "write": "subfile", "chunks": (1, 1, 1)}, "at most 1000000"),
        ({"shape": (1000, 1000, 1000), "chunks": (1, 1, 1)}, "at most 65536 chunks"),
        ({"mode": "append", "write": "independent"}, "collective with mode append"),
    ],
)
def test_objects_that_cannot_be_are_refused(values: dict[str, Any], text: str) -> None:
    settings = {"name": "app", "iterations": 0, "arrays": {"a": {"shape": SHAPE, **values}}}
    with pytest.raises(SettingsError, match=text):
        RunSettings.from_mapping(settings)


def test_shards_over_two_blocks_are_not_written_independently(disk: Path) -> None:
    def program(ranks: Ranks) -> None:
        with swathe.run("app", iterations=0, comm=ranks) as run:
            run.array("a", (16, 8), write="independent", shards=(3, 8))

    with pytest.raises(
        OptionError, match=r"arrays.a.write: independent: .*blocks of ranks, \[4, 8\], found \[3, 8"
    ):
        together(4, program)


def rate(
    object_s: float, bytes_per_s: float, streams: int, spread: float | None = 0.1
) -> StoreRate:
    """Return the costs of a store by those of an object, the rate of a stream, and streams."""
    points = ((0, object_s), (64 * MIB, object_s + 64 * MIB / bytes_per_s))
    return StoreRate(Costs(0.0, 0.0, points, 1e12, NO_LIMIT, streams), spread)


CUBE = ArraySettings((128, 128, 128), "f4", pattern="BBB")
"""Of 8 MiB."""


@pytest.mark.parametrize(
    ("store", "values", "expected"),
    [
        (rate(1.0, 100 * MIB, 1), {}, ("collective", 1, 1)),  # objects cost
        (rate(0.001, 1 * MIB, 4), {}, ("collective", 4, 4)),  # streams gain
        (rate(0.001, 10_000 * MIB, 8), {}, ("independent", 8, 8)),  # sending costs
        (rate(0.002, 10_000 * MIB, 8), {"pattern": "C**"}, ("collective", 2, 2)),  # thin blocks
        (rate(0.05, 100 * MIB, 8), {"purpose": "visualise"}, ("subfile", 8, 8)),  # no index
        (rate(0.05, 100 * MIB, 8, None), {"purpose": "visualise"}, ("collective", 1, 1)),
        (rate(1.0, 100 * MIB, 1), {"write": "independent"}, ("independent", 8, 8)),
        (rate(1.0, 100 * MIB, 2), {"write": "subfile"}, ("subfile", 8, 2)),
    ],
)
def test_what_costs_least_is_chosen(
    store: StoreRate, values: dict[str, Any], expected: tuple[str, int, int]
) -> None:
    values = {"pattern": "BBB", **values}
    choice = choose_write("a", ArraySettings(CUBE.shape, "f4", **values), 8, [(store, 3)])
    array = choice.array
    assert (array.write, array.sharding.count, choice.writers) == expected, choice.reason
    assert choice.reason.startswith(f"{array.write} ({expected[1]} object")


def test_the_plan_says_how_an_array_is_written(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swathe.runs.definition.shards.CHUNK_BYTES", MIB)
    monkeypatch.setattr("swathe.runs.definition.shards.SHARD_BYTES", 64 * MIB)
    store = rate(0.001, 10_000 * MIB, 8)
    monkeypatch.setattr("swathe.runs.planning.store_rooms._rate", lambda *_: store)
    array = {"shape": CUBE.shape, "pattern": "BBB"}
    run = {"name": "app", "iterations": 0, "ranks": 8, "arrays": {"a": array}}
    plan = swathe.runs.plan(run)
    assert plan.writing["a"].startswith("independent (8 objects a dump, ")
    assert ": the least cost; not collective (" in plan.writing["a"]
    assert plan.settings.arrays["a"].write == "independent"
    (row,) = plan.prediction.rows()
    assert (row["write"], row["objects"]) == ("independent", 8)


def test_owners_have_the_blocks_of_their_shards() -> None:
    division = Pattern.parse("BLOCK,*,CYCLIC(2)", 3).division((10, 4, 9), 6)
    for rank in range(6):
        for box, _ in division.pieces(rank):
            assert division.owner(box) == rank
