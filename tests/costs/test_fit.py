"""Costs recovered from samples of stores that are known."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swathe.costs.cost_model import Costs, Profile, Sample
from swathe.costs.fit.fit import fit, fit_local
from swathe.costs.fit.refit import refit
from swathe.costs.fit.robust_stats import COPY_BYTES_PER_S, screen
from swathe.costs.probing.store_probe import measure_store
from tests.support.property_examples import examples
from tests.support.simulated_stores import SimulatedStore, place, random_store

MIB = 1 << 20


def probed(store: SimulatedStore) -> Profile:
    found = measure_store(place(), reader=store, clock=lambda: store.clock_s, seed=1)
    return found.profile


@cache
def probed_random(seed: int) -> tuple[SimulatedStore, Profile]:
    store = random_store(seed)
    return store, probed(store)


def samples(sizes: list[int], seconds: list[float]) -> list[Sample]:
    return [Sample("read", size, time) for size, time in zip(sizes, seconds, strict=True)]


def valid(costs: Costs) -> bool:
    sizes, seconds = zip(*costs.request, strict=True)
    numbers = (costs.connect_s, costs.open_s, costs.total_bytes_per_s, costs.requests_per_s)
    return (
        all(map(math.isfinite, (*numbers, *seconds)))
        and min(costs.connect_s, costs.open_s) >= 0
        and min(costs.total_bytes_per_s, costs.requests_per_s, *seconds) > 0
        and costs.streams >= 1
        and len(sizes) >= 2
        and all(np.diff(sizes) > 0)
        and all(np.diff(seconds) > 0)
    )


# What comes out ---------------------------------------------------------------------------------


def test_parameters_of_a_quiet_store_are_found() -> None:
    store = SimulatedStore(0.02, 2e7, 1e8, 400.0, connect_s=0.04, open_s=0.03)
    profile = probed(store)
    costs = profile.costs
    assert costs.connect_s == pytest.approx(0.04)
    assert costs.open_s == pytest.approx(0.03, rel=0.02)
    assert float(costs.request_s(0)) == pytest.approx(0.02, rel=0.01)
    assert costs.stream_bytes_per_s() == pytest.approx(2e7, rel=0.02)
    # Answers that the server spaced out leave the line idle for less than the model says.
    assert costs.total_bytes_per_s == pytest.approx(1e8, rel=0.12)
    assert costs.requests_per_s == pytest.approx(400, rel=0.1)
    assert 5 <= costs.streams <= 16
    assert {"total_bytes_per_s", "requests_per_s", "model"} <= set(profile.spread)


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_what_a_busy_server_takes_for_requests_and_bytes_is_found(noise: float) -> None:
    store = SimulatedStore(1e-3, 2e9, 4e9, 2e4, served_bytes_per_s=1e9, noise=noise)
    profile = probed(store)
    costs = profile.costs
    assert costs.requests_per_s == pytest.approx(2e4, rel=0.25)
    assert costs.served_bytes_per_s == pytest.approx(1e9, rel=0.25)
    assert {"requests_per_s", "served_bytes_per_s"} <= set(profile.spread)
    assert costs.read_s(1e6, 10, 10) == pytest.approx(1e-3 + 1e5 / 2e9 + 10 * 1.5e-4, rel=0.15)


@pytest.mark.more
def test_no_time_for_bytes_is_found_where_there_is_none() -> None:
    """But in one, through whose noise it is not told from the line."""
    profiles = [probed_random(seed)[1] for seed in range(25)]
    assert sum(profile.costs.served_bytes_per_s is not None for profile in profiles) <= 1
    for profile in profiles:
        found = profile.costs.served_bytes_per_s is not None
        assert ("served_bytes_per_s" in profile.spread) is found


@pytest.mark.more
def test_parameters_are_found_through_noise_and_outliers() -> None:
    """Latency within 10 %, the bandwidths and limits that could be told within 25 %: 9 of 10."""
    latency, others = [], []
    for seed in range(25):
        store, profile = probed_random(seed)
        costs = profile.costs
        latency.append(costs.request[0][1] / store.latency_s)
        if not any(note.startswith("request:") for note in profile.notes):
            others.append(costs.stream_bytes_per_s() / store.stream_bytes_per_s)
        if "total_bytes_per_s" in profile.spread:
            others.append(costs.total_bytes_per_s / store.total_bytes_per_s)
        if "requests_per_s" in profile.spread:
            others.append(costs.requests_per_s / store.requests_per_s)
    assert np.quantile(np.abs(np.log(latency)), 0.9) < 0.10
    assert np.quantile(np.abs(np.log(others)), 0.9) < 0.25


@pytest.mark.more
def test_unseen_reads_are_predicted() -> None:
    """Within 10 % in the median over reads, for nine stores of ten."""
    off = []
    for seed in range(25):
        store, profile = probed_random(seed)
        costs = profile.costs
        exact = replace(store, noise=0.0, outliers=0.0)
        rng = np.random.default_rng(seed)
        errors = []
        for _ in range(15):
            streams = int(rng.integers(1, costs.streams + 1))
            requests = int(np.exp(rng.uniform(0, np.log(200))))
            size = int(np.exp(rng.uniform(np.log(1024), np.log(1.6e7))))
            timings = exact.measure("", [(0, size)] * requests, streams)
            real = max(timing.end_s for timing in timings)
            errors.append(abs(math.log(costs.read_s(size * requests, requests, streams) / real)))
        off.append(np.median(errors))
    assert np.quantile(off, 0.9) < 0.10


def test_a_thin_line_is_told_from_slow_streams() -> None:
    """As PERFLAB had it: whatever the streams, 3.5 MB/s at 235 ms, so fusing reads wins or ties."""
    thin = probed(SimulatedStore(0.235, 3.5e6, 3.5e6, noise=0.05, outliers=0.05)).costs
    assert thin.total_bytes_per_s == pytest.approx(3.5e6, rel=0.15)
    assert thin.read_s(6e6, 6, 6) > 0.9 * thin.read_s(6e6)
    assert thin.read_s(6e6, 24, 6) > 0.95 * thin.read_s(6e6)
    wide = probed(SimulatedStore(0.235, 3.5e6, 3.5e8, noise=0.05, outliers=0.05)).costs
    assert wide.read_s(6e6, 6, 6) < 0.4 * wide.read_s(6e6)


def test_streams_that_do_not_help_are_not_used() -> None:
    assert probed(SimulatedStore(1e-4, 1e9, 1e9, 1e4, noise=0.05)).costs.streams <= 2
    assert probed(SimulatedStore(0.05, 1e7, 1e10, 1e6, noise=0.05)).costs.streams == 64


def test_few_streams_are_not_enough_because_no_more_were_measured_there() -> None:
    """Of a store that is far a probe measures few sizes with few numbers of streams."""
    far = SimulatedStore(0.15, 1.25e7, 1.25e7, 1e6)
    measured = [(1024, 64, 256), (1024, 16, 64), (2**18, 64, 128), (2**20, 2, 8), (2**22, 4, 8)]
    alone = [(size, 1, 1) for size in (1024, 2**14, 2**18, 2**20, 2**22)]
    samples = [read(far, *each) for each in (*alone, *alone, *measured)]
    assert fit(samples).costs.streams == 64


def read(store: SimulatedStore, size: int, streams: int, requests: int) -> Sample:
    """Read once."""
    timings = store.measure("", [(0, size)] * requests, streams)
    seconds = max(timing.end_s for timing in timings)
    return Sample("read", size * requests, seconds, requests, streams)


def test_limits_that_do_not_show_are_told() -> None:
    profile = fit(samples([1024, MIB] * 3, [0.02, 0.04] * 3))
    assert "total_bytes_per_s" not in profile.spread
    for name in ("total_bytes_per_s", "requests_per_s", "streams", "connect_s", "open_s"):
        assert any(note.startswith(name) for note in profile.notes)


def test_bandwidth_lost_in_latency_is_told() -> None:
    rng = np.random.default_rng(1)
    times = (0.3 * np.exp(rng.normal(0, 0.1, 40))).tolist()
    profile = fit(samples([1024, 4096] * 20, times))
    assert any("bandwidth of one stream is hidden" in note for note in profile.notes)
    assert valid(profile.costs)


def test_what_was_not_seen_widens_the_interval() -> None:
    """By how much more or less than the prediction a job may take."""
    store = SimulatedStore(noise=0.02)
    alone = [read(store, size, 1, 1) for size in (10_000, 300_000) for _ in range(10)]
    several = [read(store, 300_000, streams, streams) for streams in (2, 4) for _ in range(5)]
    line = [read(store, 300_000, streams, streams) for streams in (16, 64) for _ in range(10)]
    one_size = fit(alone[:10]).spread
    one_stream = fit(alone).spread
    no_limit = fit([*alone, *several]).spread
    all_seen = fit([*alone, *several, *line]).spread
    assert one_size["unseen_slower"] > no_limit["unseen_slower"] > all_seen["unseen_slower"] > 0
    # What was never tried together is used one after the other: the rest may be faster.
    assert one_stream["unseen_faster"] > no_limit["unseen_faster"] > all_seen["unseen_faster"] > 0


def test_the_first_byte_tells_latency_from_bandwidth_if_one_size_was_read() -> None:
    store = SimulatedStore(latency_s=0.03, stream_bytes_per_s=20_000)
    found = [replace(read(store, 12_000, 1, 1), first_byte_s=0.03) for _ in range(4)]
    assert fit(found).costs.read_s(120_000, 1, 1) == pytest.approx(6.03, rel=0.05)
    # Where all came with the first byte, nothing is known of the bandwidth.
    assert valid(fit([replace(each, first_byte_s=each.elapsed_s) for each in found]).costs)


def test_the_first_byte_tells_a_bandwidth_that_the_noise_of_the_latency_hides() -> None:
    rng = np.random.default_rng(3)
    waits = (0.2 * np.exp(rng.normal(0, 0.15, 12))).tolist()
    sizes = [1024, 20_000] * 6
    found = [
        Sample("read", size, wait + size / 4e6, first_byte_s=wait)
        for size, wait in zip(sizes, waits, strict=True)
    ]
    profile = fit(found)
    assert profile.costs.stream_bytes_per_s() == pytest.approx(4e6, rel=0.1)
    assert profile.costs.read_s(1e6, 1, 1) == pytest.approx(0.45, rel=0.1)


def test_what_fits_into_the_first_window_says_little_of_the_bandwidth() -> None:
    rng = np.random.default_rng(3)
    waits = (0.2 * np.exp(rng.normal(0, 0.15, 12))).tolist()
    found = [
        Sample("read", size, wait + 1e-5, first_byte_s=wait)
        for size, wait in zip([1024, 14_000] * 6, waits, strict=True)
    ]
    assert 1e6 < fit(found).costs.stream_bytes_per_s() < 1e8


def test_the_time_to_open_an_object_stands_for_a_large_request_if_there_was_none() -> None:
    store = SimulatedStore(latency_s=0.05, stream_bytes_per_s=20_000)
    small = [read(store, 1024, 1, 1) for _ in range(3)]
    opens = [Sample("open", 32_768, 0.05 + 32_768 / 20_000) for _ in range(3)]
    profile = fit([*small, *opens])
    assert profile.costs.read_s(100_000, 1, 1) == pytest.approx(5.05, rel=0.05)
    assert profile.costs.open_s == 0
    # With requests as large, it is what it is.
    large = [read(store, 32_768, 1, 1) for _ in range(3)]
    late = [replace(each, elapsed_s=each.elapsed_s + 2) for each in opens]
    assert fit([*small, *large, *late]).costs.open_s == pytest.approx(2, rel=0.05)


def test_a_limit_that_was_not_reached_is_less_than_streams_that_share_nothing() -> None:
    store = SimulatedStore(latency_s=0.1, stream_bytes_per_s=1e6)
    alone = [read(store, size, 1, 1) for size in (1024, 2**18, 2**20) for _ in range(3)]
    several = [read(store, 1024, 16, 64) for _ in range(3)]
    costs = fit([*alone, *several]).costs
    assert 2e6 < costs.total_bytes_per_s < 12e6


def test_the_curve_follows_a_bend() -> None:
    """Large requests at a tenth of the bandwidth of small ones, as through a small cache."""
    sizes = [1024 * 4**power for power in range(8)] * 5
    times = [0.001 + min(size, MIB) / 1e9 + max(size - MIB, 0) / 1e8 for size in sizes]
    costs = fit(samples(sizes, times)).costs
    assert costs.request_s(sizes[:8]) == pytest.approx(times[:8], rel=0.1)
    assert costs.stream_bytes_per_s() == pytest.approx(1e8, rel=0.2)


def test_an_outlier_in_twenty_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    sizes = [1024 * 4**power for power in range(8)] * 10
    times = [(0.01 + size / 1e8) * math.exp(rng.normal(0, 0.02)) for size in sizes]
    odd = [time * (30 if place % 20 == 7 else 1) for place, time in enumerate(times)]
    clean, dirty = fit(samples(sizes, times)).costs, fit(samples(sizes, odd)).costs
    assert dirty.request_s(sizes) == pytest.approx(clean.request_s(sizes), rel=0.03)


@pytest.mark.parametrize(
    ("reason", "bad"),
    [
        ("impossible time", Sample("read", 1, 0.0)),
        ("impossible time", Sample("read", 1, -1.0)),
        ("impossible time", Sample("read", 1, math.nan)),
        ("impossible time", Sample("read", 1, math.inf)),
        ("first byte before the start or after the end", Sample("read", 1, 1.0, first_byte_s=2.0)),
        ("first byte before the start or after the end", Sample("read", 1, 1.0, first_byte_s=-1.0)),
        ("size differs from the request", Sample("read", 1, 1.0, asked_bytes=2)),
        ("faster than a copy in memory", Sample("read", 1 << 40, 1e-3)),
        ("invalid size or count", Sample("read", -1, 1.0)),
        ("invalid size or count", Sample("read", 1, 1.0, requests=0)),
    ],
)
def test_impossible_samples_are_counted_and_left_out(reason: str, bad: Sample) -> None:
    good = Sample("read", 1000, 0.1)
    assert screen([good, bad]) == ([good], {reason: 1})


def test_nothing_to_fit_raises() -> None:
    with pytest.raises(ValueError, match="no usable sample of a read"):
        fit([Sample("open", 0, 1.0), Sample("read", 1, 0.0)])


anything = st.builds(
    Sample,
    kind=st.sampled_from(["connect", "open", "read", "write"]),
    bytes=st.integers(-10, 1 << 45),
    elapsed_s=st.floats() | st.floats(1e-9, 1e4),
    requests=st.integers(0, 300),
    streams=st.integers(0, 64),
    first_byte_s=st.none() | st.floats(),
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(anything, max_size=30))
def test_costs_are_finite_and_positive_whatever_was_measured(found: list[Sample]) -> None:
    always = Sample("read", 4096, 0.01)
    with np.errstate(all="raise", under="ignore"):
        profile = fit([*found, always])
        assert valid(profile.costs)
        assert all(math.isfinite(value) and value >= 0 for value in profile.spread.values())
        again = refit(profile, [*found, always])
    assert valid(again.costs)


# As reads go on ---------------------------------------------------------------------------------

KNOWN = Profile(
    Costs(0.04, 0.02, ((0, 0.02), (MIB, 0.03), (16 * MIB, 0.18)), 5e8, 2000.0, 32),
    {"model": 0.05},
)


def reads(costs: Costs, count: int, seed: int = 0, noise: float = 0.05) -> list[Sample]:
    """Reads as a store of these costs would answer them."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        requests, streams = int(rng.integers(1, 200)), int(rng.integers(1, 33))
        size = int(np.exp(rng.uniform(np.log(1e3), np.log(4e6)))) * requests
        seconds = float(costs.read_s(size, requests, streams) * np.exp(rng.normal(0, noise)))
        found.append(Sample("read", size, seconds, requests, streams))
    return found


def test_one_odd_sample_changes_nothing() -> None:
    for factor in (0.01, 100):
        odd = reads(KNOWN.costs, 1)[0]
        odd = replace(odd, elapsed_s=odd.elapsed_s * factor)
        assert refit(KNOWN, [odd]).costs == KNOWN.costs


def test_a_quiet_store_is_left_alone() -> None:
    again = refit(KNOWN, reads(KNOWN.costs, 40)).costs
    sizes = [1000, MIB, 16 * MIB]
    assert again.request_s(sizes) == pytest.approx(KNOWN.costs.request_s(sizes), rel=0.1)
    assert again.total_bytes_per_s == pytest.approx(5e8, rel=0.1)


@pytest.mark.parametrize("factor", [0.2, 0.5, 3.0])
def test_a_lasting_change_of_latency_is_followed(factor: float) -> None:
    request = tuple((size, time + 0.02 * (factor - 1)) for size, time in KNOWN.costs.request)
    now = replace(KNOWN.costs, request=request)
    again = refit(KNOWN, [*reads(KNOWN.costs, 60), *reads(now, 30, seed=1)]).costs
    off = [
        abs(math.log(again.read_s(s.bytes, s.requests, s.streams) / s.elapsed_s))
        for s in reads(now, 50, seed=2, noise=0)
    ]
    assert np.median(off) < 0.1


@pytest.mark.parametrize("factor", [0.1, 0.5])
def test_a_line_that_became_thin_is_followed(factor: float) -> None:
    now = replace(KNOWN.costs, total_bytes_per_s=5e8 * factor)
    again = refit(KNOWN, [*reads(KNOWN.costs, 60), *reads(now, 30, seed=1)]).costs
    off = [
        abs(math.log(again.read_s(s.bytes, s.requests, s.streams) / s.elapsed_s))
        for s in reads(now, 50, seed=2, noise=0)
    ]
    assert np.median(off) < 0.1


def test_a_busy_server_that_slows_down_is_followed() -> None:
    known = Profile(replace(KNOWN.costs, served_bytes_per_s=1e8), {"model": 0.05})
    now = replace(known.costs, requests_per_s=1000.0, served_bytes_per_s=5e7)
    again = refit(known, [*reads(known.costs, 60), *reads(now, 30, seed=1)]).costs
    assert again.requests_per_s == pytest.approx(1000, rel=0.1)
    assert again.served_bytes_per_s == pytest.approx(5e7, rel=0.1)


def test_opening_is_followed_too() -> None:
    again = refit(KNOWN, [Sample("connect", 0, 0.2)] * 12).costs
    assert again.connect_s == pytest.approx(0.2)
    assert refit(KNOWN, [Sample("connect", 0, 0.2)]).costs == KNOWN.costs


def test_nothing_new_changes_nothing() -> None:
    assert refit(KNOWN, []).costs == KNOWN.costs
    assert KNOWN.costs.total_bytes_per_s < COPY_BYTES_PER_S


def test_local_files_are_fitted_by_the_commoner_kind_of_reads() -> None:
    sizes = [1024 << power for power in range(14)] * 3
    cold = [
        replace(each, in_memory=False)
        for each in samples(sizes, [5e-3 + size / 2e8 for size in sizes])
    ]
    warm = [
        replace(each, in_memory=True)
        for each in samples(sizes, [1e-6 + size / 1e10 for size in sizes])
    ]
    for most, least, latency_s, rate in ((cold, warm, 5e-3, 2e8), (warm, cold, 1e-6, 1e10)):
        profile = fit_local([*most, *least[:20]])
        costs = profile.costs
        assert costs.request[0][0] == 0
        assert costs.request[0][1] == pytest.approx(latency_s, rel=0.01)
        assert costs.stream_bytes_per_s() == pytest.approx(rate, rel=0.01)
        assert any("fitted only to the" in note for note in profile.notes)


def test_short_reads_from_memory_beside_long_ones_from_disk_are_fitted() -> None:
    sizes, seconds = [1 << 10, 1 << 14, 1 << 18, 1 << 22], [2e-7, 1.5e-5, 2.5e-4, 5.6e-3]
    profile = fit_local(samples(sizes * 6, seconds * 6))
    assert profile.costs.request[0] == (0, 2e-7)
    assert 5e8 < profile.costs.stream_bytes_per_s() < 5e9
    assert any("long reads are slower" in note for note in profile.notes)


def test_what_no_file_can_be_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a local file"):
        fit_local(samples([1, 2, 4, 8] * 3, [2e-9] * 12))
    with pytest.raises(ValueError, match="no usable sample"):
        fit_local([])
