"""What fetching costs: as was measured, and no single word is believed."""

from __future__ import annotations

import math

import pytest

from swathe.workers.placement.rates import (
    MOST_PACES,
    NEAR,
    TELLERS,
    USUAL_SPEED,
    ComputeRates,
    Rates,
)


def test_stores_and_workers_cost_what_was_measured() -> None:
    rates = Rates()
    assert rates.store_s("web:a", 0) == USUAL_SPEED[0]
    assert rates.peer == NEAR
    rates.of_stores({"web": (0.1, 1e6)})
    rates.learn("w0", (0.002, 5e7))
    assert rates.store_s("web:a", 1_000_000) == pytest.approx(1.1)
    assert rates.store_s("other:a", 0) == USUAL_SPEED[0]
    assert rates.peer_s(50_000_000) == pytest.approx(1.002)


def test_one_that_errs_has_little_weight() -> None:
    rates = Rates()
    for number in range(9):
        rates.learn(f"w{number}", (0.001, 1e8))
    rates.learn("slow", (50.0, 2e3))
    assert rates.peer == (0.001, 1e8)
    for number in range(9):
        rates.forget(f"w{number}")
    rates.forget("slow")
    assert rates.peer == (50.0, 2e3)


@pytest.mark.parametrize(
    "told",
    [None, (0.0, 1e8), (-1.0, 1e8), (math.nan, 1e8), (0.001, math.inf), (0.001, 0.0), (1e9, 1e8),
     (0.001, 1e20)],
)  # fmt: skip
def test_what_cannot_be_is_not_taken(told: tuple[float, float] | None) -> None:
    rates = Rates()
    rates.learn("w0", told)
    assert rates.peer == NEAR


def test_only_the_last_words_count() -> None:
    rates = Rates()
    for number in range(1000):
        rates.learn(f"w{number}", (0.001, 1e7 if number < 1000 - TELLERS else 1e9))
    assert rates.peer == (0.001, 1e9)


def test_jobs_take_what_they_took_before() -> None:
    paces = ComputeRates()
    paces.learn("a", 0, 5.0)
    assert paces.of_job("a") is None
    assert paces.expected_s("a", 3.0) == 3.0
    paces.learn("a", 10, 5.0)
    assert paces.of_job("a") == 0.5
    # The last ones count more, and jobs of which none is back are taken to be as another.
    paces.learn("a", 10, 15.0)
    assert paces.of_job("a") == pytest.approx(0.8)
    assert paces.of_job("b") is None
    assert paces.expected_s("b", 3.0) == pytest.approx(2.4)
    for number in range(MOST_PACES):
        paces.learn(f"{number}", 1, 1.0)
    assert paces.of_job("a") is None
