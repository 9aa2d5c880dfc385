"""What a probe learns of requests for many ranges."""

from __future__ import annotations

import pytest

from swathe.costs.probing.probe_result import Probe
from swathe.costs.probing.probe_vectors import VectorStudy, study_vectors
from swathe.costs.probing.resolve_target import ProbeTarget
from swathe.costs.probing.store_probe import measure_store
from tests.support.simulated_stores import PART_BYTES, SimulatedStore, VectorTiming, place


def probed(store: SimulatedStore, quick: bool = False, where: ProbeTarget | None = None) -> Probe:
    return measure_store(
        where or place(), quick=quick, reader=store, clock=lambda: store.clock_s, seed=1
    )


def test_most_ranges_and_their_costs_are_found() -> None:
    store = SimulatedStore(0.02, 2e7, 1e8, 400.0, vector_ranges=399, range_s=5e-5)
    result = probed(store)
    vectors = result.profile.costs.multi_range
    assert vectors is not None
    assert (vectors.ranges, vectors.part_bytes, vectors.gap_bytes) == (200, PART_BYTES, 0)
    assert vectors.range_s == pytest.approx(5e-5, rel=0.1)
    assert vectors.header_bytes == 7000
    (note,) = [note for note in result.notes if "ranges" in note]
    assert note == "requests for 200 ranges are honoured, not for 400: answer 200 OK"
    assert result.as_dict()["costs"]["multi_range"]["ranges"] == 200


def test_a_quick_probe_tries_two_a_hundred_and_four_hundred() -> None:
    for most, learned in ((1000, 400), (399, 100), (99, 2), (1, None)):
        vectors = probed(SimulatedStore(vector_ranges=most), quick=True).profile.costs.multi_range
        assert (None if vectors is None else vectors.ranges) == learned


def test_a_server_without_vectors_is_noted() -> None:
    result = probed(SimulatedStore())
    assert result.profile.costs.multi_range is None
    assert "requests for many ranges are not honoured: answer 200 OK" in result.notes


def test_a_server_that_merges_is_told_the_gap() -> None:
    result = probed(SimulatedStore(vector_ranges=1000, is_merging=True))
    vectors = result.profile.costs.multi_range
    assert vectors is not None
    assert (vectors.ranges, vectors.gap_bytes, vectors.part_bytes) == (1000, 4096 - 200, 0)
    assert "the server merges ranges: 1000 came as 1" in result.notes


def test_a_server_that_takes_long_does_not_hold_the_probe() -> None:
    store = SimulatedStore(vector_ranges=1000, range_s=0.5)
    result = probed(store, quick=True)
    vectors = result.profile.costs.multi_range
    assert vectors is not None and vectors.ranges == 2
    assert store.clock_s < 12


def test_small_objects_are_asked_for_fewer_ranges() -> None:
    few = probed(SimulatedStore(vector_ranges=1000, object_bytes=20_000)).profile.costs.multi_range
    assert few is not None and few.ranges == 20
    none = probed(SimulatedStore(vector_ranges=1000, object_bytes=1000))
    assert none.profile.costs.multi_range is None
    (note,) = [note for note in none.notes if "many ranges" in note]
    assert "not tried, as no object has 1 KiB" in note


def test_buckets_and_files_are_not_asked() -> None:
    result = probed(SimulatedStore(vector_ranges=1000), where=place("s3://bucket"))
    assert result.profile.costs.multi_range is None
    assert not [note for note in result.notes if "ranges" in note]


def test_each_number_of_ranges_is_tried_though_the_time_is_up() -> None:
    store = SimulatedStore(latency_s=0.3, vector_ranges=1000)
    study = study_vectors(
        store.open_source("a"), quick=True, max_time_s=0.1, clock=lambda: store.clock_s
    )
    assert [count for count, _ in study.answers] == [2, 100, 400]
    assert study.requests == 3


def test_the_least_cost_of_a_range_counts() -> None:
    """What else the machine does makes an answer slower, never quicker."""
    costs = probed(SimulatedStore(vector_ranges=1)).profile.costs
    study = VectorStudy(object_bytes=1 << 25)
    for count, more_s in ((2, 0.1), (100, 0.119), (400, 0.104)):
        seconds = float(costs.request_s(count * 300)) + more_s
        study.answers.append((count, VectorTiming(None, count, True, count * 300, seconds)))
    vectors = study.multi_range(costs)
    assert vectors is not None and vectors.ranges == 400
    assert vectors.range_s == pytest.approx(0.004 / 398)
