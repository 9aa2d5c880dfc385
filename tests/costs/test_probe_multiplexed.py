"""What a probe learns of requests that share a connection of HTTP/2."""

from __future__ import annotations

import pytest

from swathe.costs.cost_model import Costs
from swathe.costs.probing.probe_result import Probe
from swathe.costs.probing.store_probe import measure_store
from tests.support.simulated_stores import PART_BYTES, SimulatedStore, place


def probed(store: SimulatedStore, quick: bool = False) -> Probe:
    return measure_store(place(), quick=quick, reader=store, clock=lambda: store.clock_s, seed=1)


@pytest.mark.parametrize("quick", [False, True])
def test_requests_at_the_same_time_and_their_costs_are_found(quick: bool) -> None:
    store = SimulatedStore(0.02, 2e7, 1e8, 400.0, shared_requests=128, shared_request_s=4e-5)
    result = probed(store, quick)
    shared = result.profile.costs.multiplexed
    assert shared is not None
    # More than the server lets be in flight are no quicker.
    assert (shared.requests, shared.header_bytes) == (100, PART_BYTES)
    assert shared.request_s == pytest.approx(4e-5, rel=0.1)
    assert shared.latency_s == pytest.approx(0.02, rel=0.05)
    assert shared.bytes_per_s == pytest.approx(2e7, rel=0.05)
    (note,) = [note for note in result.notes if "HTTP/2" in note]
    assert note.startswith("HTTP/2: one connection carries ")
    costs = result.as_dict()["costs"]
    assert Costs.from_dict(costs).multiplexed == shared


def test_a_server_without_it_is_noted() -> None:
    result = probed(SimulatedStore())
    assert result.profile.costs.multiplexed is None
    assert "HTTP/2 is not used: no HTTP/2" in result.notes


def test_requests_that_wait_for_each_other_are_of_no_use() -> None:
    result = probed(SimulatedStore(shared_requests=1))
    assert result.profile.costs.multiplexed is None
    assert "HTTP/2 is not used: requests at the same time are answered no faster" in result.notes


def test_small_objects_are_not_tried() -> None:
    result = probed(SimulatedStore(shared_requests=100, object_bytes=10_000))
    assert result.profile.costs.multiplexed is None
    assert "HTTP/2 is not used: not tried, as no object has 10 KiB" in result.notes


def test_a_server_that_takes_long_does_not_hold_the_probe() -> None:
    store = SimulatedStore(shared_requests=200, shared_request_s=0.5)
    probed(store, quick=True)
    assert store.clock_s < 12
