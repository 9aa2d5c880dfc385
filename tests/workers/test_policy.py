"""How many workers are wanted, who goes, and what is handed over."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from swathe.workers.autoscale.policy import (
    Growth,
    GrowthLimits,
    HeldBlock,
    IdleWorker,
    PoolDemand,
    Reservation,
    choose_leavers,
    count_ending,
    needed_workers,
    plan_hand_over,
)

LIMITS = GrowthLimits(minimum=0, maximum=100, spare=2, soon_s=60.0, idle_s=300.0, start_s=30.0)
NOTHING = PoolDemand(waiting_s=0.0, threads=4, busy=0)
MB = 1_000_000


def test_a_few_are_always_ready() -> None:
    assert needed_workers(NOTHING, LIMITS, 0.0) == 2
    assert needed_workers(replace(NOTHING, busy=7), LIMITS, 0.0) == 9


def test_as_many_as_do_what_waits_soon_enough() -> None:
    assert needed_workers(replace(NOTHING, waiting_s=4 * 60.0 * 10), LIMITS, 0.0) == 12
    assert needed_workers(replace(NOTHING, waiting_s=4 * 60.0 * 10 + 1), LIMITS, 0.0) == 13
    assert needed_workers(replace(NOTHING, waiting_s=1.0, busy=20), LIMITS, 0.0) == 22


def test_minimum_and_maximum_hold() -> None:
    assert needed_workers(NOTHING, replace(LIMITS, minimum=5), 0.0) == 5
    flood = PoolDemand(1e9, 1, busy=100, ending=50)
    assert needed_workers(flood, LIMITS, 0.0, [Reservation(0.0, 9.0, 10_000)]) == 100


def test_one_that_ends_is_replaced_before() -> None:
    assert count_ending([math.inf, 1000.0, 91.0, 89.0, 10.0, -5.0], LIMITS, 0.0) == 3
    assert needed_workers(replace(NOTHING, busy=5, ending=3), LIMITS, 0.0) == 10


def test_what_is_reserved_is_there_when_it_starts() -> None:
    reserved = [Reservation(100.0, 200.0, 20), Reservation(150.0, 160.0, 5)]
    found = [
        needed_workers(NOTHING, LIMITS, now, reserved) for now in (69.0, 70.0, 150.0, 199.0, 200.0)
    ]
    assert found == [2, 20, 25, 20, 2]


def test_more_are_wanted_at_once_and_fewer_only_after_a_while() -> None:
    growth = Growth(LIMITS)
    busy = replace(NOTHING, busy=10)
    assert growth.target(NOTHING, 0.0) == 2
    assert growth.target(busy, 10.0) == 12
    assert growth.target(NOTHING, 20.0) == 12
    assert growth.target(replace(NOTHING, busy=5), 200.0) == 12
    assert growth.target(NOTHING, 310.0) == 12
    assert growth.target(NOTHING, 311.0) == 7
    assert growth.target(NOTHING, 501.0) == 2


def test_short_lulls_send_nobody_away() -> None:
    growth = Growth(LIMITS)
    found = {
        growth.target(replace(NOTHING, busy=8 * (int(now) % 100 == 0)), now)
        for now in map(float, range(0, 5000, 10))
    }
    assert found == {10}


def test_target_is_the_most_of_the_last_while() -> None:
    rng = random.Random(1)
    growth, seen, now = Growth(LIMITS), [], 0.0
    for _ in range(500):
        now += rng.expovariate(1 / 40)
        demand = replace(NOTHING, busy=rng.randrange(50))
        seen.append((now, needed_workers(demand, LIMITS, now)))
        most = max(count for at, count in seen if at >= now - LIMITS.idle_s)
        assert growth.target(demand, now) == most


def test_who_holds_least_goes_first_and_then_who_was_idle_longest() -> None:
    idle = [
        IdleWorker("rich", 0.0, 50.0),
        IdleWorker("poor", 90.0, 1.0),
        IdleWorker("poor, longer", 80.0, 1.0),
        IdleWorker("just now", 399.0, 0.0),
    ]
    assert choose_leavers(idle, 10, LIMITS, 400.0) == ["poor, longer", "poor", "rich"]
    assert choose_leavers(idle, 1, LIMITS, 400.0) == ["poor, longer"]
    assert choose_leavers(idle, 0, LIMITS, 400.0) == choose_leavers(idle, -3, LIMITS, 400.0) == []


def test_the_worthiest_is_handed_over_first() -> None:
    blocks = [
        HeldBlock("dear", 100 * MB, 100.0),
        HeldBlock("dearest per byte", 10 * MB, 50.0),
        HeldBlock("cheap", 100 * MB, 1.5),
    ]
    heirs = {"w1": 1000 * MB}
    assert plan_hand_over(blocks, heirs, 100 * MB, 60.0).heirs == [
        ("dearest per byte", "w1"),
        ("dear", "w1"),
        ("cheap", "w1"),
    ]
    plan = plan_hand_over(blocks, heirs, 100 * MB, 1.15)
    assert plan.heirs == [("dearest per byte", "w1"), ("dear", "w1")]
    assert plan.refusals == {"cheap": "no time"}


def test_what_is_cheaper_to_fetch_again_is_refused() -> None:
    plan = plan_hand_over([HeldBlock("a", 100 * MB, 0.9)], {"w1": 1000 * MB}, 100 * MB, 60.0)
    assert plan == ([], {"a": "cheaper to fetch again"})


def test_what_would_take_an_hour_is_refused() -> None:
    blocks = [HeldBlock(f"o{number}", 6 * MB, 30.0) for number in range(1000)]
    given, refused = plan_hand_over(blocks, {"w1": 10**12}, 1.7 * MB, 60.0)
    assert len(given) == 17
    assert list(refused.values()) == ["no time"] * 983
    # Over a slow line all of it is.
    assert plan_hand_over(blocks, {"w1": 10**12}, 0.1 * MB, 3600.0).heirs == []


def test_heirs_are_filled_evenly_and_never_over_their_room() -> None:
    blocks = [HeldBlock(f"o{number}", 10 * MB, 10.0) for number in range(30)]
    rooms = {"w1": 95 * MB, "w2": 95 * MB, "full": 5 * MB}
    given, refused = plan_hand_over(blocks, rooms, 1e9, 60.0)
    assert set(refused.values()) == {"no room"}
    shares = [sum(heir == name for _, heir in given) for name in ("w1", "w2", "full")]
    assert shares == [9, 9, 0]
    alone = plan_hand_over(blocks, {}, 1e9, 60.0)
    assert (alone.heirs, set(alone.refusals.values())) == ([], {"no other worker"})
    assert plan_hand_over(blocks, {"w1": 10**12}, 0.0, 60.0).heirs == []


@pytest.mark.parametrize("seed", range(20))
def test_hand_over_keeps_within_budget_and_room(seed: int) -> None:
    rng = random.Random(seed)
    blocks = [
        HeldBlock(f"o{number}", rng.randrange(50 * MB), rng.random() * 5) for number in range(200)
    ]
    heirs = {f"w{number}": rng.randrange(300 * MB) for number in range(8)}
    rate, budget = rng.choice([1e6, 1e7, 1e9]), rng.choice([0.0, 1.0, 60.0])
    given, refused = plan_hand_over(blocks, heirs, rate, budget)
    assert {source for source, _ in given} | set(refused) == {each.source for each in blocks}
    assert len(given) + len(refused) == len(blocks)
    of = {block.source: block for block in blocks}
    assert len({source for source, _ in given}) == len(given)
    assert sum(of[source].size for source, _ in given) <= budget * rate
    assert all(of[source].size / rate < of[source].refetch_s for source, _ in given)
    for heir, room in heirs.items():
        assert sum(of[source].size for source, name in given if name == heir) <= room


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"minimum": 5, "maximum": 4}, "minimum, maximum: expected 0 <= minimum <= maximum"),
        ({"minimum": -1}, "minimum, maximum"),
        ({"spare": -1}, "spare: expected 0 or more, found -1"),
        ({"soon_s": 0.0}, "soon_s: expected seconds, found 0.0"),
        ({"idle_s": math.nan}, "idle_s: expected seconds, found nan"),
        ({"start_s": math.inf}, "start_s: expected seconds, found inf"),
    ],
)
def test_limits_that_make_no_sense_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(LIMITS, **values)


def test_reservations_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"until: expected later than 5.0, found 5.0"):
        Reservation(5.0, 5.0, 1)
    with pytest.raises(ValueError, match="workers: expected at least 1, found 0"):
        Reservation(5.0, 6.0, 0)
