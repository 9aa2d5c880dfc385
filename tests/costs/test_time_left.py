"""Time left of predicted work: the interval narrows, ends at 0, and follows a slower link."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swathe.core.format import clock_text, time_left_text
from swathe.costs.time_left import CutProgress, TimeLeft, TimeLeftModel

STEP_S = 0.1


def model(predicted_s: float = 60.0, factor: float = 1.3) -> TimeLeftModel:
    return TimeLeftModel(predicted_s, (predicted_s / factor, predicted_s * factor))


def progressed(one: TimeLeftModel, rate: float, seconds: float, *, at_s: float = 0.0) -> float:
    """Progress at a rate (predicted seconds per second); return the time."""
    for _ in range(round(seconds / STEP_S)):
        at_s += STEP_S
        one.update(at_s, one._part + rate * STEP_S / one.predicted_s)
    return at_s


def test_before_any_progress_the_prediction_holds() -> None:
    median_s, interval_s = model().left(0)
    assert (median_s, *interval_s) == pytest.approx((60, 60 / 1.3, 60 * 1.3))


@given(st.floats(0.3, 3), st.sampled_from([1.05, 1.3, 2]))
def test_a_steady_rate_is_followed(rate: float, factor: float) -> None:
    one = model(100, factor)
    at_s = progressed(one, rate, 20)
    assert one.left(at_s).median_s == pytest.approx(100 / rate - 20, rel=0.2)


@given(st.floats(0.9, 1.1), st.sampled_from([1.1, 1.3, 2]))
def test_the_interval_narrows_and_ends_at_zero(rate: float, factor: float) -> None:
    one = model(30, factor)
    width, at_s = float("inf"), 0.0
    while one._part < 1:
        at_s = progressed(one, rate, 1, at_s=at_s)
        low_s, high_s = one.left(at_s).interval_s
        assert high_s - low_s <= width + 1e-9
        width = high_s - low_s
    assert one.left(at_s) == (0, (0, 0))


@pytest.mark.parametrize("factor", [1.1, 1.3, 2])
def test_a_link_that_halves_shows_within_ten_seconds(factor: float) -> None:
    one = model(60, factor)
    at_s = progressed(one, 1, 20)
    assert one.left(at_s).median_s == pytest.approx(40, rel=0.02)
    at_s = progressed(one, 0.5, 10, at_s=at_s)
    assert one.left(at_s).median_s == pytest.approx(70, rel=0.15)
    at_s = progressed(one, 0.5, 5, at_s=at_s)
    assert one.left(at_s).median_s == pytest.approx(60, rel=0.07)


def test_silence_counts_once_it_is_longer_than_usual() -> None:
    one = model()
    at_s = progressed(one, 1, 20)
    usual = one.left(at_s).median_s
    lefts = [one.left(at_s + quiet_s).median_s for quiet_s in (0.1, 5, 10, 60)]
    assert lefts[0] == pytest.approx(usual - 0.1, rel=0.01)
    assert usual < lefts[1] < lefts[2] < lefts[3] < float("inf")
    # Also before the first step.
    assert 60 <= model().left(100).median_s < 300


@example(1.0, [(1e4, 5e-324)], 0.0)
@given(
    st.floats(1e-3, 1e6),
    st.lists(st.tuples(st.floats(0, 1e4), st.floats(-1, 2)), max_size=8),
    st.floats(0, 1e6),
)
def test_whatever_comes_the_interval_holds_the_median(
    predicted_s: float, steps: list[tuple[float, float]], at_s: float
) -> None:
    one = model(predicted_s)
    for step_at_s, part in steps:
        one.update(step_at_s, part)
        for now in (step_at_s, at_s):
            left = one.left(now)
            assert 0 <= left.interval_s[0] <= left.median_s <= left.interval_s[1] < float("inf")


def test_most_times_are_within_the_interval() -> None:
    within = 0
    for seed in range(200):
        chance = random.Random(seed)
        rate = 1.3 ** chance.gauss(0, 1 / 1.2816)
        one, at_s, part = model(60), 0.0, 0.0
        while part < 0.5:
            at_s += STEP_S
            part += rate * STEP_S / 60 * chance.lognormvariate(-0.125, 0.5)
            one.update(at_s, part)
        low_s, high_s = one.left(at_s).interval_s
        within += low_s <= (1 - part) * 60 / rate <= high_s
    assert within >= 160


def test_a_prediction_without_time_is_no_error() -> None:
    one = TimeLeftModel.of({"median_s": 0.0, "interval_s": [0.0, 0.0]})
    assert one.left(0).median_s < 0.01
    one.update(1, 0.5)
    assert one.left(1).median_s == pytest.approx(1, rel=0.3)


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (TimeLeft(80, (60, 110)), "1 min 20 s left (1:00 to 1:50)"),
        (TimeLeft(1.2, (0.9, 1.3)), "1 s left"),
        (TimeLeft(12000, (9000, 15000.4)), "3 h 20 min left (2:30:00 to 4:10:00)"),
        (TimeLeft(0.2, (0, 0.4)), "under 1 s left"),
        (TimeLeft(0, (0, 0)), "under 1 s left"),
    ],
)
def test_the_text_has_the_interval(left: TimeLeft, text: str) -> None:
    assert time_left_text(*left) == text


def test_a_clock_shows_hours_only_if_there_are_any() -> None:
    assert [clock_text(seconds) for seconds in (-1, 8, 3599.6)] == ["0:00", "0:08", "1:00:00"]


def test_progress_is_json() -> None:
    progress = CutProgress(3, 10, 0.25, TimeLeft(12.34, (10.0, 15.06)))
    assert progress.as_dict() == {
        "done": 3,
        "targets": 10,
        "part": 0.25,
        "left_s": 12.3,
        "interval_s": [10.0, 15.1],
    }
