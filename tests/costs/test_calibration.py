"""Outcomes of a store correct its predictions, and its intervals hold as often as they say."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import swathe
from swathe.catalog import Catalog, Outcome, OutcomeLog, this_host
from swathe.costs.calibration import calibrate
from swathe.costs.call_costs import CallCosts
from swathe.costs.past_outcomes import past_outcomes
from tests.support.catalogs import new_catalog
from tests.support.fits_frames import contents, noise

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def outcome(
    model_s: float, engine_s: float, *, root: str = "", targets: int = 1, around_s: float = 0.01
) -> Outcome:
    times = (1.0, 0.5, 2.0, engine_s + around_s)
    parts = (model_s, engine_s, around_s / 4, 3 * around_s / 4)
    return Outcome(NOON, this_host(), "a cut", targets, root, *times, 1, 1, 1, 1, *parts)


@pytest.mark.parametrize("bounds", [(0.15, 0.4), (0.05, 0.05), (0.7, 1.4)])
@pytest.mark.parametrize("seed", range(3))
def test_after_20_outcomes_the_interval_holds_the_next_ones(
    bounds: tuple[float, float], seed: int
) -> None:
    """Stores whose bias and scatter the probe did not see; the interval of 80 % holds 70 to 90."""
    draw = random.Random(seed)
    held = jobs = 0
    for _ in range(60):
        bias, scatter = draw.uniform(-0.7, 0.7), math.exp(draw.uniform(math.log(0.03), 0))
        past: list[Outcome] = []
        for number in range(30):
            model_s = math.exp(draw.uniform(math.log(0.1), math.log(3)))
            engine_s = model_s * math.exp(draw.gauss(bias, scatter))
            if number >= 20:
                told = calibrate(past, model_s, bounds)
                off = math.log(engine_s / model_s) - told.bias
                held += -told.faster <= off <= told.slower
                jobs += 1
            past.append(outcome(model_s, engine_s))
    assert 0.7 <= held / jobs <= 0.9


def test_without_outcomes_the_probe_counts() -> None:
    told = calibrate([], 1.0, (0.2, 0.5))
    assert (told.bias, told.faster, told.slower, told.outcomes) == (0.0, 0.2, 0.5, 0)


def test_old_outcomes_and_those_of_other_sizes_count_less() -> None:
    slow, right = [outcome(1, 2)] * 60, [outcome(1, 1)] * 60
    assert calibrate(slow, 1.0, (0.2, 0.2)).bias == pytest.approx(math.log(2), abs=0.02)
    assert calibrate([*slow, *right], 1.0, (0.2, 0.2)).bias == pytest.approx(0, abs=0.02)
    assert calibrate([*right, *slow], 1.0, (0.2, 0.2)).bias > 0.6
    few = slow[:6]
    assert calibrate(few, 1.0, (0.2, 0.2)).bias > 2 * calibrate(few, 300.0, (0.2, 0.2)).bias


def test_one_odd_outcome_changes_little() -> None:
    told = calibrate([*[outcome(1, 1)] * 10, outcome(1, 1e6)], 1.0, (0.1, 0.1))
    assert abs(told.bias) < 0.05


def test_the_time_around_the_engine_is_learned_from_calls() -> None:
    assumed = CallCosts()
    assert assumed.learn([]) == assumed
    short = [outcome(1, 1, around_s=0.04)] * 20
    long = [outcome(1, 1, targets=10_000, around_s=0.44)] * 20
    learned = assumed.learn([*short, *long])
    assert learned.before(1) + learned.after(1) == pytest.approx(0.04, rel=0.2)
    assert learned.before(20_000) + learned.after(20_000) == pytest.approx(0.84, rel=0.2)
    first = assumed.learn([outcome(1, 1, around_s=2)])
    assert first.before(1) + first.after(1) < 0.05


@pytest.mark.parametrize("calls", [1, 4, 10])
def test_what_new_processes_load_says_nothing_of_long_lists(calls: int) -> None:
    learned = CallCosts().learn([outcome(1, 1, targets=3000, around_s=0.7)] * calls)
    assert learned.before(150_000) + learned.after(150_000) < 3
    assert learned.unsure(150_000, is_begun=False)[1] < 3
    if calls == 10:
        assert learned.before(1) + learned.after(1) == pytest.approx(0.7, rel=0.1)


def test_a_call_is_corrected_by_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_catalog(tmp_path / "catalog.sqlite")
    monkeypatch.setenv("SWATHE_DATABASE", url)
    frame = tmp_path / "a.fit"
    frame.write_bytes(contents(noise(3, (50, 60)), "fit"))
    rows = {"file": [str(frame)], "x0": [1], "y0": [2], "width": [9], "height": [8]}
    before = swathe.predict(rows)
    made = swathe.cut_many(rows, tmp_path / "out", progress=False).meta
    [counted] = past_outcomes().outcomes
    assert counted.root == "file:///"
    assert counted.predicted_s == pytest.approx(made["predicted_s"], abs=1e-5)
    assert counted.before_s + counted.engine_s + counted.after_s == pytest.approx(counted.actual_s)
    assert made["actual_s"] <= counted.actual_s < made["actual_s"] + 1
    log = OutcomeLog.of(url)
    assert log is not None
    [cost] = before.per_store.values()
    for _ in range(40):
        log.append(outcome(cost.model_s, 3 * cost.model_s, root="file:///"))
    after = swathe.predict(rows)
    assert after.model_s == pytest.approx(before.model_s, rel=0.5)
    assert after.median_s - after.overhead_s == pytest.approx(3 * after.model_s, rel=0.1)
    # The same from the catalogue; a probe of the store makes them old.
    with Catalog.open() as catalog:
        assert len(catalog.outcomes()) == 41
        later = swathe.predict(rows)
        assert later.median_s == pytest.approx(after.median_s, rel=0.1)
        catalog.add_probe("file:///", this_host(), {}, 1.0, 1, NOON + timedelta(days=999))
    [probed] = swathe.predict(rows).per_store.values()
    assert probed.outcomes == 0
