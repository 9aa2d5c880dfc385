"""Placement by hints and room, and equation 2 of the multi-storage paper with its own figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.errors import LimitError, NoSuchStoreError, OptionError, SettingsError
from swathe.costs.cost_model import NO_LIMIT, Costs
from swathe.runs.placement import Placement, StoreRoom, place
from swathe.runs.run_prediction import WriteRate, predict_run
from swathe.runs.run_settings import ArraySettings, RunSettings
from swathe.runs.shards import CHUNK_BYTES, SHARD_BYTES

DISK, LAN, TAPE = (
    StoreRoom("disk", "local", 10_000),
    StoreRoom("lab", "lan", 50_000),
    StoreRoom("vault", "tape", None),
)
MIB = 1 << 20


def run_of(iterations: int = 9, **arrays: dict[str, Any]) -> RunSettings:
    given = {name: {"shape": [10, 25], **array} for name, array in arrays.items()}  # 1000 bytes
    return RunSettings.from_mapping({"name": "app", "iterations": iterations, "arrays": given})


def placements_of(
    run: RunSettings, stores: list[StoreRoom], default: str | None = None
) -> dict[str, tuple[Placement, ...]]:
    return place(run.arrays, run.iterations, stores, default)


def measured(*points: tuple[int, float]) -> WriteRate:
    """Return the costs of a store by the time of objects of some sizes, one after the other."""
    return WriteRate(Costs(0.0, 0.0, points, 1e12, NO_LIMIT, 1), 0.1)


def test_figures_of_the_paper() -> None:
    """Table of the paper: 19 arrays of 128^3, N = 120, each 6; all but one f4 on tape: 40,743.78 s.

    Its times of a dump: tape 144.587 s (f4) and 44.427 s (u1), remote disk 38.688 s (f4).
    """
    shape = [128, 128, 128]
    arrays: dict[str, dict[str, Any]] = {
        **{f"analysis{number}": {"dtype": "f4"} for number in range(6)},
        **{f"restart{number}": {"dtype": "f4", "mode": "overwrite"} for number in range(6)},
        **{f"picture{number}": {"dtype": "u1"} for number in range(7)},
    }
    arrays = {name: {**each, "shape": shape, "every": 6} for name, each in arrays.items()}
    arrays["analysis0"]["location"] = "remotedisk"
    run = run_of(120, **arrays)
    rates = {
        "vault": measured((2 * MIB, 44.427), (8 * MIB, 144.587)),
        "lab": measured((2 * MIB, 10.0), (8 * MIB, 38.688)),
    }
    stores = [StoreRoom("lab", "wan"), StoreRoom("vault", "tape")]
    prediction = predict_run(run, placements_of(run, stores), rates)
    assert prediction.seconds == pytest.approx(40743.78, rel=1e-3)
    assert {row["dumps"] for row in prediction.rows()} == {21}
    assert prediction.bytes_by_store == {"lab": 21 * 8 * MIB, "vault": 21 * (11 * 8 + 7 * 2) * MIB}
    assert prediction.without_costs == ()


def test_a_hint_is_the_store_of_its_tier_with_most_room() -> None:
    more = StoreRoom("scratch", "local", 20_000)
    run = run_of(
        a={"location": "LOCALDISK"}, b={"location": "remotedisk"}, c={}, d={"location": "disable"}
    )
    placements = placements_of(run, [DISK, more, LAN, TAPE])
    assert {name: [each.store for each in some] for name, some in placements.items()} == {
        "a": ["scratch"], "b": ["lab"], "c": ["vault"], "d": [],
    }  # fmt: skip
    assert placements_of(run_of(c={}), [DISK, LAN])["c"][0].store == "lab"
    assert placements_of(run_of(c={}), [DISK, LAN, TAPE], "disk")["c"][0].store == "disk"


def test_an_array_that_no_store_holds_goes_to_several() -> None:
    run = run_of(a={"location": "disk"}, b={"location": ["disk", "lab"], "every": 3})
    assert placements_of(run, [DISK, LAN])["b"] == (Placement("lab", 0, 4),)  # `a` fills the disk
    run = run_of(69, a={"location": ["localdisk", "remotedisk", "remotetape"]})
    parts = placements_of(run, [DISK, LAN, TAPE])["a"]
    assert parts == (Placement("vault", 0, 70),)  # the first that holds all
    parts = placements_of(run_of(59, a={"location": ["disk", "lab"]}), [DISK, LAN])["a"]
    assert parts == (Placement("disk", 0, 10), Placement("lab", 10, 50))
    with pytest.raises(
        LimitError, match=r"arrays.a: expected room for 59.57 KiB, found disk 9.766 KiB"
    ):
        placements_of(run_of(60, a={"location": ["disk", "lab"]}), [DISK, LAN])


def test_checkpoints_need_room_for_one() -> None:
    run = run_of(99, a={"location": "disk", "mode": "overwrite"})
    assert placements_of(run, [DISK])["a"] == (Placement("disk", 0, 100),)


@pytest.mark.parametrize(
    ("location", "error", "text"),
    [
        ("nowhere", NoSuchStoreError, r"arrays.a.location: .*disk, lab.*'nowhere'"),
        ("remotetape", OptionError, r"arrays.a.location: no store for remotetape"),
    ],
)
def test_locations_without_a_store(location: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        placements_of(run_of(a={"location": location}), [DISK, LAN])


def test_unmeasured_stores_have_wide_intervals() -> None:
    run = run_of(a={"location": "disk"}, b={"location": "lab"})
    costs = measured((1000, 1.0), (2000, 2.0))
    prediction = predict_run(
        run, placements_of(run, [DISK, LAN]), {"disk": costs, "lab": WriteRate(costs.costs)}
    )
    assert prediction.without_costs == ("lab",)
    assert [each.seconds for each in prediction.arrays] == pytest.approx([10.0, 10.0])
    assert prediction.interval_s == pytest.approx((9 + 1, 11 + 100))


SHAPES = st.lists(st.integers(1, 3000), min_size=1, max_size=4).map(tuple)


@given(SHAPES, st.sampled_from(["u1", "f4", "c16"]))
def test_shards_are_whole_chunks_of_bounded_size(shape: tuple[int, ...], dtype: str) -> None:
    array = ArraySettings(shape, dtype)
    chunk, shard = array.sharding.chunk_shape, array.sharding.shard_shape
    itemsize = np.dtype(dtype).itemsize
    assert 0 < np.prod(chunk, dtype=object) * itemsize <= CHUNK_BYTES
    assert np.prod(shard, dtype=object) * itemsize <= SHARD_BYTES
    for length, width, outer in zip(shape, chunk, shard, strict=True):
        assert outer % width == 0 and width <= length
        assert outer < length + width


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"iterations": 1}, "name: is missing"),
        ({"name": "a"}, "iterations: is missing"),
        ({"name": "a", "iterations": -1}, "run.iterations: expected at least 0, found -1"),
        ({"name": "a", "iterations": 1, "ranks": 0}, "run.ranks: expected at least 1"),
        ({"name": "../a", "iterations": 1}, "run.name: "),
        ({"name": "a", "iterations": 1, "what": 1}, "unknown key of a run: 'what'"),
        ({"name": "a", "iterations": 1, "arrays": 1}, r"arrays: expected a section"),
        ({"name": "a", "iterations": 1, "arrays": {"b": 1}}, r"arrays.b: expected a section"),
        ({"name": "a", "iterations": 1, "arrays": {"b/c": {}}}, "arrays: expected names"),
        ({"name": "a", "iterations": 1, "arrays": {"b": {}}}, "arrays.b.shape: is missing"),
    ],
)
def test_settings_that_are_wrong_are_named(values: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        RunSettings.from_mapping(values)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("shape", [], "at least 1"),
        ("shape", [0], "at least 1"),
        ("shape", [1 << 40, 1 << 40], "expected at most"),
        ("dtype", "O", "expected a type of numbers"),
        ("dtype", "f4,f4", "expected a type of numbers"),
        ("dtype", "no", "expected a NumPy type"),
        ("every", 0, "at least 1"),
        ("pattern", "BBB", "pattern: expected a letter for each axis"),
        ("location", [], "expected a store, a hint"),
        ("location", [1], "expected a store, a hint"),
        ("mode", "append", "'create' or 'overwrite'"),
        ("purpose", "fun", r"unknown key in \[arrays.b\]"),
        ("within_s", -1.0, "more than 0"),
        ("dims", ["x", "x"], "different names"),
        ("dims", ["x"], "2 different names"),
        ("colour", 1, r"unknown key in \[arrays.b\]"),
    ],
)
def test_arrays_that_are_wrong_are_named(key: str, value: Any, text: str) -> None:
    array = {"shape": [4, 4], **{key: value}}
    with pytest.raises(SettingsError, match=text) as raised:
        RunSettings.from_mapping({"name": "a", "iterations": 1, "arrays": {"b": array}})
    assert "arrays.b" in str(raised.value)
