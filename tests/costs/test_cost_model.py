"""The model of what reads cost."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe.costs.cost_model import Costs, MultiRange, line_s, queue_s

IDLE = 0.75  # of crates/plan/src/costs.rs
COSTS = Costs(0.04, 0.02, ((0, 0.02), (1_000_000, 0.04)), 2e8, 500.0, 32)


def test_one_request_takes_its_time_on_the_curve() -> None:
    assert COSTS.read_s(500_000) == pytest.approx(0.03)


def test_the_curve_goes_on_with_its_last_slope() -> None:
    assert COSTS.request_s(3_000_000) == pytest.approx(0.08)
    assert COSTS.stream_bytes_per_s() == pytest.approx(5e7)


def test_requests_queue_for_streams() -> None:
    assert COSTS.read_s(0, requests=9, streams=4) == pytest.approx(3 * 0.02)


def test_streams_share_the_line() -> None:
    assert COSTS.read_s(32_000_000, requests=32, streams=32) == pytest.approx(0.02 + 0.16)


def test_the_server_serves_so_many() -> None:
    assert COSTS.read_s(0, requests=320, streams=32) == pytest.approx(0.02 + 319 / 500)


def test_a_busy_server_takes_time_for_bytes_and_each_round() -> None:
    busy = replace(COSTS, served_bytes_per_s=1e6)
    each_s = 1 / 500 + 0.01
    own_s = 0.02 + 0.01
    assert busy.read_s(80_000, requests=8, streams=8) == pytest.approx(own_s + 7 * each_s)
    # The first round of twenty makes its requests wait too, but for a quarter of them.
    rounds_s = 2 * own_s + (19 + IDLE * 19) * each_s
    served_s = own_s + 39 * each_s
    assert busy.read_s(400_000, requests=40, streams=20) == pytest.approx(max(rounds_s, served_s))
    assert busy.read_s(20_000, requests=2, streams=1) == pytest.approx(2 * own_s)


def test_a_busy_server_works_on_while_its_streams_carry_what_it_has_served() -> None:
    busy = replace(COSTS, served_bytes_per_s=2e8, total_bytes_per_s=1e12)
    alone_s = 0.02 + 10e6 / 5e7
    assert busy.read_s(20e6, requests=2, streams=2) == pytest.approx(alone_s)
    assert busy.read_s(80e6, requests=8, streams=8) == pytest.approx(0.02 + 80e6 / 2e8 + 7 / 500)
    assert busy.read_s(40e6, requests=4, streams=1) == pytest.approx(4 * alone_s)


def test_the_largest_request_is_waited_for() -> None:
    assert COSTS.read_s(100, requests=2, streams=2, largest=1_000_000) == pytest.approx(0.04)


def test_arrays_are_welcome() -> None:
    assert COSTS.read_s([0, 1_000_000], [1, 1], 1) == pytest.approx([0.02, 0.04])


def test_batches_are_the_first_axis_of_times() -> None:
    requests, streams = [9, 40], [4, 20]
    times = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    line, queue = (
        line_s(requests, streams, 0.02, times),
        queue_s(requests, streams, 0.02 + times, 0.02, times, True),
    )
    for batch, point in np.ndindex(times.shape):
        one = requests[batch], streams[batch]
        time_s = times[batch, point]
        assert line[batch, point] == line_s(*one, 0.02, time_s)
        assert queue[batch, point] == queue_s(*one, 0.02 + time_s, 0.02, time_s, True)


def test_batches_must_fit_the_times() -> None:
    with pytest.raises(ValueError, match="expected 2 numbers, found 3"):
        line_s([9, 40], [4, 20, 1], 0.02, [0.1, 0.2])
    with pytest.raises(ValueError, match="expected a multiple of 2 numbers, found 3"):
        line_s([9, 40], [4, 20], 0.02, [0.1, 0.2, 0.3])


def test_costs_that_no_store_can_have_are_refused() -> None:
    falling = replace(COSTS, request=((0, 0.02), (1_000_000, 0.01)))
    with pytest.raises(ValueError, match=r"request cannot be 0\.01"):
        falling.read_s(1000)
    with pytest.raises(ValueError, match="total_bytes_per_s cannot be 0"):
        replace(COSTS, total_bytes_per_s=0.0).request_s(1000)


@given(
    size=st.integers(0, 1 << 40),
    more=st.integers(0, 1 << 40),
    requests=st.integers(1, 10_000),
    streams=st.integers(1, 64),
)
def test_more_bytes_never_take_less(size: int, more: int, requests: int, streams: int) -> None:
    less = COSTS.read_s(size, requests, streams)
    assert COSTS.read_s(size + more, requests, streams) >= less * (1 - 1e-12)


@given(requests=st.integers(1, 10_000), streams=st.integers(1, 63))
def test_more_streams_never_take_longer(requests: int, streams: int) -> None:
    assert COSTS.read_s(1e6, requests, streams + 1) <= COSTS.read_s(1e6, requests, streams)


def test_costs_survive_json() -> None:
    multi_range = MultiRange(200, 7000, 1e-5, 110)
    for costs in (COSTS, replace(COSTS, multi_range=multi_range)):
        assert Costs.from_dict(json.loads(json.dumps(costs.as_dict()))) == costs
        costs.read_s(1000)


def test_costs_of_a_profile_kept_before_are_read() -> None:
    kept = COSTS.as_dict()
    del kept["served_bytes_per_s"], kept["multi_range"], kept["multiplexed"]
    assert Costs.from_dict(kept) == COSTS


def test_names_are_those_of_the_native_half() -> None:
    assert set(COSTS.as_dict()) == {
        "connect_s",
        "open_s",
        "request",
        "total_bytes_per_s",
        "requests_per_s",
        "streams",
        "buffer_bytes",
        "served_bytes_per_s",
        "multi_range",
        "multiplexed",
    }


def test_a_thin_line_ranks_one_read_before_many() -> None:
    """The PERFLAB case: all streams share 3.5 MB/s, so splitting gains nothing.

    With bandwidth of a stream alone, six of them would be predicted six times as fast.
    """
    thin = replace(COSTS, request=((0, 0.235), (3_500_000, 1.235)), total_bytes_per_s=3.5e6)
    fused, split = thin.read_s(6e6), thin.read_s(6e6, requests=6, streams=6)
    assert split >= fused * 0.95
    assert np.isfinite(fused)
