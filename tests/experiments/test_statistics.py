"""Statistics of experiments, against numpy and scipy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe.experiments.statistics import (
    busy_in,
    edges_of,
    first_above,
    holm,
    least_chance,
    quantile_in,
    rank_test,
    rate_in,
    ratio_of_medians,
    summary,
    work_in,
)


def scipys(first: Any, second: Any, method: str) -> float:
    """Return what scipy finds; to import it takes long, and every process collects this file."""
    from scipy import stats  # type: ignore[import-untyped]  # its stubs are another package

    return float(stats.mannwhitneyu(first, second, method=method).pvalue)


values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60)
whole = st.lists(st.integers(0, 8).map(float), min_size=1, max_size=30)


@given(values)
def test_summaries_are_those_of_numpy(given_values: list[float]) -> None:
    found = summary(given_values)
    q1, median, q3 = np.percentile(given_values, [25, 50, 75])
    assert (found.q1, found.median, found.q3) == (q1, median, q3)
    assert (found.min, found.max) == (min(given_values), max(given_values))
    assert found.mean == np.mean(given_values)
    assert found.count == len(given_values)
    if len(given_values) > 1:
        assert found.std == np.std(given_values, ddof=1)
    else:
        assert math.isnan(found.std)


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [math.inf]])
def test_a_summary_of_no_numbers_raises(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        summary(bad)


@given(whole, whole)
def test_the_rank_test_with_ties_is_scipys(first: list[float], second: list[float]) -> None:
    found = rank_test(np.array(first), np.array(second))
    both = {*first, *second}
    if len(both) == len(first) + len(second):
        expected = scipys(first, second, method="exact")
    elif len(both) == 1:
        expected = 1.0
    else:
        expected = scipys(first, second, method="asymptotic")
    assert found == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
def test_the_exact_rank_test_is_scipys(count: int, other: int, seed: int) -> None:
    drawn = np.random.default_rng(seed).permutation(count + other).astype(float)
    first, second = drawn[:count], drawn[count:]
    expected = scipys(first, second, method="exact")
    assert rank_test(first, second) == pytest.approx(expected, rel=1e-9)


def test_the_rank_test_of_many_is_scipys() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(0, 1, 300), rng.normal(0.2, 1, 400)
    expected = scipys(first, second, method="asymptotic")
    assert rank_test(first, second) == pytest.approx(expected, rel=1e-9)


def test_a_rank_test_of_nothing_raises() -> None:
    with pytest.raises(ValueError, match="both sides"):
        rank_test(np.array([]), np.array([1.0]))


@pytest.mark.parametrize(("count", "other"), [(3, 3), (1, 5), (5, 5), (10, 8), (30, 30)])
def test_the_least_chance_is_that_of_values_wholly_apart(count: int, other: int) -> None:
    first, second = np.arange(count, dtype=float), np.arange(100.0, 100.0 + other)
    found = least_chance(count, other)
    assert found == rank_test(first, second)
    if count * other < 400:
        assert found == pytest.approx(2 / math.comb(count + other, count))


def test_holm_is_as_written_in_books() -> None:
    # Holm (1979): the smallest times n, the next times n - 1, never falling.
    assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


def test_the_interval_holds_the_true_ratio_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(100):
        under = [rng.lognormal(0, 0.3, 40)]
        over = [rng.lognormal(math.log(1.3), 0.3, 40)]
        found = ratio_of_medians(under, over, rng, draws=300)
        held += found.low <= 1.3 <= found.high
    assert 85 <= held <= 100


def test_rounds_that_differ_make_the_interval_wide() -> None:
    rng = np.random.default_rng(5)
    alike = [rng.normal(10, 0.1, 50) for _ in range(4)]
    drifting = [rng.normal(10 + turn, 0.1, 50) for turn in range(4)]
    narrow = ratio_of_medians(alike, alike, rng)
    wide = ratio_of_medians(drifting, drifting, rng)
    assert wide.high - wide.low > 5 * (narrow.high - narrow.low)


def test_rounds_may_be_of_different_lengths() -> None:
    rng = np.random.default_rng(5)
    rounds = [np.array([1.0, 1.0]), np.array([3.0]), np.array([2.0, 2.0, 2.0])]
    found = ratio_of_medians([np.array([1.0])], rounds, rng)
    assert (found.value, found.low, found.high) == (2.0, 1.0, 3.0)


def test_a_median_of_nothing_makes_no_ratio_of_numbers() -> None:
    rng = np.random.default_rng(5)
    none, some, mixed = np.zeros(5), np.arange(1.0, 6.0), np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    for under, over, value, high in (
        (none, none, 1.0, 1.0),
        (none, some, math.inf, math.inf),
        (some, none, 0.0, 0.0),
        (mixed, mixed, 1.0, math.inf),
    ):
        found = ratio_of_medians([under], [over], rng)
        assert (found.value, found.high) == (value, high)
    assert found.low == 0.0


def test_windows_count_and_take_quantiles() -> None:
    edges = edges_of(10.0, 13.5, 1.0)
    assert edges.tolist() == [10, 11, 12, 13]
    times = np.array([9.9, 10.0, 10.5, 12.5, 13.2])
    assert rate_in(times, edges).tolist() == [2, 0, 1]
    found = quantile_in(times, np.array([1.0, 2.0, 4.0, 8.0, 9.0]), edges, 0.5)
    assert found[0] == 3.0 and math.isnan(found[1]) and found[2] == 8.0


def test_whole_windows_of_times_of_day_are_all_there() -> None:
    for start in 1.7e9 + np.arange(0, 1, 0.01):
        assert len(edges_of(start, start + 0.6, 0.2)) == 4


def test_busy_is_how_many_overlap_on_average() -> None:
    starts, ends = np.array([0.0, 0.5, 5.0]), np.array([2.0, 1.0, 6.0])
    assert busy_in(starts, ends, np.array([0.0, 1.0, 2.0, 3.0])).tolist() == [1.5, 1.0, 0.0]
    assert busy_in(starts[:0], ends[:0], np.array([0.0, 1.0])).tolist() == [0.0]


def test_work_counts_where_it_was_done() -> None:
    starts, ends = np.array([0.0, 0.5, 5.0]), np.array([2.0, 1.0, 6.0])
    assert work_in(starts, ends, np.array([0.0, 1.0, 3.0])).tolist() == [1.5, 0.25]
    assert work_in(starts[:0], ends[:0], np.array([0.0, 1.0])).tolist() == [0.0]


def test_a_resource_has_run_out_when_two_samples_say_so() -> None:
    times = np.arange(6.0)
    assert first_above(times, np.array([0, 95, 10, 95, 95, 0.0]), 90) == 3
    assert first_above(times, np.array([0, 95, 10, 95, 10, 95.0]), 90) == math.inf
