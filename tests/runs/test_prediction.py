"""Placement by hints and room, and equation 2 of the multi-storage paper with its own figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.errors import LimitError, NoSuchStoreError, OptionError, SettingsError
from swathe.costs.cost_model import NO_LIMIT, Costs
from swathe.costs.run_costs import RunCosts
from swathe.runs.definition.run_settings import ArraySettings, Mode, RunSettings
from swathe.runs.definition.shards import CHUNK_BYTES, SHARD_BYTES
from swathe.runs.planning.placement import StoreRoom, place
from swathe.runs.planning.run_prediction import predict_run
from swathe.runs.planning.shared_writes import Placement
from swathe.runs.planning.store_rate import METADATA_BYTES, DumpOutcome, DumpSize, StoreRate
from swathe.runs.planning.store_rooms import _of_reading

DISK, LAN, TAPE = (
    StoreRoom("disk", "local", 10_000),
    StoreRoom("lab", "lan", 50_000),
    StoreRoom("vault", "tape", None),
)
MIB = 1 << 20
NO_COSTS = RunCosts(0.0, 0.0, 0.0, 0.0, 0.0)
"""Of a host that takes no time."""
MODES: tuple[Mode, Mode] = ("create", "overwrite")


def run_of(iterations: int = 9, **arrays: dict[str, Any]) -> RunSettings:
    given = {name: {"shape": [10, 25], **array} for name, array in arrays.items()}  # 1000 bytes
    return RunSettings.from_mapping({"name": "app", "iterations": iterations, "arrays": given})


def placements_of(
    run: RunSettings, stores: list[StoreRoom], default: str | None = None
) -> dict[str, tuple[Placement, ...]]:
    return place(run.arrays, run.iterations, stores, default)


def measured(*points: tuple[int, float]) -> StoreRate:
    """Return the costs of a store by the time of objects of some sizes, one after the other."""
    return StoreRate(Costs(0.0, 0.0, points, 1e12, NO_LIMIT, 1), 0.1, host=NO_COSTS)


def test_figures_of_the_paper() -> None:
    """Table of the paper: 19 arrays of 128^3, N = 120, each 6; all but one f4 on tape: 40,743.78 s.

    Its times of a dump: tape 144.587 s (f4) and 44.427 s (u1), remote disk 38.688 s (f4). It wrote
    no metadata: objects of that size take next to nothing here.
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
        "vault": measured((METADATA_BYTES, 1e-3), (2 * MIB, 44.427), (8 * MIB, 144.587)),
        "lab": measured((METADATA_BYTES, 1e-3), (2 * MIB, 10.0), (8 * MIB, 38.688)),
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


def test_a_disk_has_the_least_room_that_its_stores_name() -> None:
    stores = [StoreRoom("disk", "local", 500, disk=7), StoreRoom("other", "local", 90_000, disk=7)]
    with pytest.raises(LimitError, match="found disk 500 B"):
        placements_of(run_of(temp={"location": "disk"}), stores)


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
        run, placements_of(run, [DISK, LAN]), {"disk": costs, "lab": replace(costs, spread=None)}
    )
    assert prediction.without_costs == ("lab",)
    assert [each.seconds for each in prediction.arrays] == pytest.approx([10.0, 10.0])
    assert prediction.interval_s == pytest.approx((10 / 1.1 + 1, 11 + 100), rel=0.02)


def test_a_noisy_probe_has_no_lower_bound_of_zero() -> None:
    run = run_of(a={"location": "disk"})
    rate = StoreRate(measured((1000, 1.0), (2000, 2.0)).write, 2.5)
    low_s, high_s = predict_run(run, placements_of(run, [DISK]), {"disk": rate}).interval_s
    assert (low_s, high_s) == pytest.approx((10 / 3.5, 35), rel=0.02)


def test_checkpoints_count_the_metadata_of_each_dump() -> None:
    costs = measured((METADATA_BYTES, 0.01), (1 << 20, 1.0)).write
    rate = StoreRate(costs, 0.1, host=NO_COSTS)
    create, overwrite = (ArraySettings((1 << 20,), "u1", mode=mode) for mode in MODES)
    assert rate.write_s(create, 10).median_s == pytest.approx(10, rel=1e-3)
    # Two objects after each dump, and two before each that replaces one.
    assert rate.write_s(overwrite, 10).median_s == pytest.approx(10 + 0.01 * (20 + 16), rel=1e-3)
    assert rate.write_s(overwrite, 1).median_s == pytest.approx(1 + 0.02, rel=1e-3)


def test_what_a_dump_takes_beside_its_objects_is_counted() -> None:
    costs = measured((METADATA_BYTES, 0.01), (1 << 20, 1.0)).write
    host = RunCosts(0.5, 0.0, 1e-6, 2e-6, 4e-6)  # seconds of an entry, and of bytes or elements
    rate = StoreRate(costs, 0.1, folder_s=3.0, host=host)
    mib_s = MIB * 1e-6  # to copy one
    create, overwrite = (ArraySettings((1 << 20,), "u1", mode=mode) for mode in MODES)
    # Copied to its shard, and to the threads that send it, in a new folder; then entered.
    assert rate.write_s(create, 2).median_s == pytest.approx(2 * (4.5 + 5 * mib_s))
    assert rate.model_s([DumpSize(overwrite, MIB, 0)]) == pytest.approx(1 + 5 * mib_s)
    # Of dumps that replace each other, the first two are in new folders; 4 + 2 changes of metadata.
    four_s = 4 * (1 + 5 * mib_s) + 2 * 3 + 6 * (0.5 + 2 * 0.01)
    assert rate.write_s(overwrite, 4).median_s == pytest.approx(four_s, rel=1e-3)
    local = replace(rate, is_local=True)
    assert local.model_s([DumpSize.of(create)]) == pytest.approx(4 + mib_s)
    # Among ranks it is placed in its shard, and then copied; packing and sending come first.
    several, cyclic = (
        local.model_s([DumpSize.of(ArraySettings((1 << 20,), "u1", pattern=pattern))], 1000)
        for pattern in "BC"
    )
    assert several > 4 + 2 * mib_s
    assert cyclic - several == pytest.approx(mib_s)


def test_arrays_of_the_same_iterations_are_written_together() -> None:
    write = Costs(0.0, 0.0, ((0, 1.0), (1 << 20, 1.0 + 1e-9)), 1e12, NO_LIMIT, 8)
    rates = {"lab": StoreRate(write, 0.1, host=NO_COSTS)}
    for every, seconds in ((1, 20.0), (2, 20.0 + 10.0)):
        run = run_of(19, a={"location": "lab"}, b={"location": "lab", "every": every})
        prediction = predict_run(run, placements_of(run, [LAN]), rates)
        assert prediction.seconds == pytest.approx(seconds, rel=0.01)


def test_metadata_are_written_beside_the_dumps_of_other_arrays() -> None:
    """The larger dump takes 12 s, the smaller one and metadata 4 s each."""
    write = Costs(0.0, 0.0, ((0, 4.0), (4096, 4.0), (8192, 12.0)), 1e12, NO_LIMIT, 8)
    lab = StoreRate(write, 0.1, host=NO_COSTS)
    sizes = {"small": 1024, "large": 2048}
    for modes, dumps, seconds in (
        # The smaller one is stored after 4 s, and its metadata after 8, before the larger one.
        ({"large": "create", "small": "overwrite"}, 1, 12.0),
        # Those of the larger one come after it.
        ({"small": "create", "large": "overwrite"}, 1, 12.0 + 4.0),
        ({"small": "overwrite", "large": "overwrite"}, 1, 12.0 + 4.0),
        # The third dump waits for metadata before it, beside what was begun before it.
        ({"large": "create", "small": "overwrite"}, 3, 3 * 12.0),
        ({"small": "overwrite", "large": "create"}, 3, 3 * 12.0 + 4.0),
        ({"small": "create", "large": "overwrite"}, 3, 3 * (12.0 + 4.0) + 4.0),
        ({"small": "append", "large": "append"}, 2, 2 * (12.0 + 4.0)),
    ):
        arrays = {
            name: {"location": "lab", "mode": mode, "shape": [sizes[name]]}
            for name, mode in modes.items()
        }
        run = run_of(dumps - 1, **arrays)
        prediction = predict_run(run, placements_of(run, [LAN]), {"lab": lab})
        assert prediction.seconds == pytest.approx(seconds, rel=0.01), (modes, dumps)


@pytest.mark.parametrize(
    ("drain", "far_s", "seconds"),
    [("end", 3.0, 1 + 10 * 3), ("end", 0.5, 10 * 1 + 0.5), ("later", 3.0, 10 * 1)],
)
def test_dumps_are_copied_on_while_others_are_written_near(
    drain: str, far_s: float, seconds: float
) -> None:
    run = run_of(a={"via": "disk", "drain": drain, "location": "lab"}, b={"location": "lab"})
    rates = {"disk": measured((1000, 1.0), (MIB, 9.0)), "lab": measured((1000, far_s), (MIB, 9.0))}
    prediction = predict_run(run, placements_of(run, [DISK, LAN]), rates)
    near, far = prediction.arrays
    assert near.seconds == pytest.approx(seconds)
    assert (near.locations, near.bytes_by_store) == (("lab",), {"lab": 10_000, "disk": 10_000})
    assert far.seconds == pytest.approx(10 * far_s)
    assert [row["bytes"] for row in prediction.rows()] == [10_000, 10_000]
    assert prediction.bytes_by_store == {"lab": 20_000, "disk": 10_000}


def test_recent_dumps_correct_predictions() -> None:
    array = ArraySettings((1 << 20,), "u1")
    costs = measured((METADATA_BYTES, 0.01), (1 << 20, 1.0)).write
    slow = tuple(DumpOutcome(1.0, 3.0) for _ in range(30))
    for spread in (0.1, None):
        time = StoreRate(costs, spread, outcomes=slow).write_s(array, 10)
        assert time.median_s == pytest.approx(30, rel=0.1)
        assert time.low_s <= time.median_s <= time.high_s < 100
    unlike = tuple(DumpOutcome(1e-4, 3e-4) for _ in range(3))  # far smaller dumps say less
    assert StoreRate(costs, 0.1, outcomes=unlike).write_s(array, 1).median_s < 1.2


def test_dumps_of_as_many_ranks_say_most() -> None:
    array = ArraySettings((1 << 20,), "u1", write="independent")
    costs = measured((METADATA_BYTES, 0.01), (1 << 20, 1.0)).write
    mixed = tuple(DumpOutcome(1.0, 3.0 if at % 2 else 1.0, 8 if at % 2 else 1) for at in range(40))
    rate = StoreRate(costs, 0.1, outcomes=mixed)
    assert rate.write_s(array, 1, ranks=1).median_s == pytest.approx(1, rel=0.2)
    assert rate.write_s(array, 1, ranks=8).median_s == pytest.approx(3, rel=0.2)


def test_a_probe_of_small_objects_says_nothing_of_bandwidth() -> None:
    read = measured((1000, 0.1), (8_001_000, 1.1)).write
    write = _of_reading(measured((0, 0.29), (1000, 0.3)).write, read)
    assert float(write.request_s(1000)) == pytest.approx(0.3)
    assert float(write.request_s(8_001_000)) == pytest.approx(1.3)


def test_computing_goes_on_while_dumps_are_written() -> None:
    rates = {"disk": measured((1000, 1.0), (2000, 2.0))}
    for compute_s, wall_s in ((None, None), (0.5, 10.0), (3, 30.0)):
        run = replace(run_of(a={"location": "disk"}), compute_s=compute_s)
        prediction = predict_run(run, placements_of(run, [DISK]), rates)
        assert prediction.wall_s == (None if wall_s is None else pytest.approx(wall_s))


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
        ("mode", "add", "'create', 'overwrite' or 'append'"),
        ("purpose", "fun", "'analyse', 'visualise', 'checkpoint' or 'archive'"),
        ("reads", -1.0, "at least 0"),
        ("read_within_s", 0.0, "more than 0"),
        ("within_s", -1.0, "more than 0"),
        ("dims", ["x", "x"], "different names"),
        ("dims", ["x"], "2 different names"),
        ("units", "K\n", "expected one line of up to 200 characters, found 'K.n'"),
        ("colour", 1, r"unknown key in \[arrays.b\]"),
    ],
)
def test_arrays_that_are_wrong_are_named(key: str, value: Any, text: str) -> None:
    array = {"shape": [4, 4], **{key: value}}
    with pytest.raises(SettingsError, match=text) as raised:
        RunSettings.from_mapping({"name": "a", "iterations": 1, "arrays": {"b": array}})
    assert "arrays.b" in str(raised.value)


def test_all_errors_of_settings_are_named_at_once() -> None:
    arrays = {"a": {"shape": [0], "every": "x"}, "b": {}, "c": {"shape": [4], "dtype": "q9"}}
    with pytest.raises(SettingsError) as caught:
        RunSettings.from_mapping({"what": 1, "iterations": -1, "name": "a", "arrays": arrays})
    lines = [line.split(": ")[0] for line in str(caught.value).splitlines()]
    assert lines == [
        *("unknown key of a run", "run.iterations", "arrays.a.shape", "arrays.a.every"),
        *("arrays.b.shape", "arrays.c.dtype"),
    ]
