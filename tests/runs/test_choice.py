"""The choice of stores: compared with every choice there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from swathe.core.errors import LimitError
from swathe.runs.planning.choice import Choice, Demand, Disks, Offer, choose

STORES = ("disk", "lab", "far", "vault")


def demand(name: str, dumps: int, dump_bytes: int, *offers: Offer, spans: bool = True) -> Demand:
    return Demand(name, dumps, dump_bytes, spans, offers)


def disks_of(*rooms: int | None) -> Disks:
    """Return stores with a disk each."""
    stores = STORES[: len(rooms)]
    return Disks({each: each for each in stores}, dict(zip(stores, rooms, strict=True)))


def least_cost(demands: Sequence[Demand], disks: Disks, budget_s: float) -> float | None:
    """Return the least cost of all ways to give whole arrays to stores within all limits."""
    ways = np.indices([len(each.offers) for each in demands]).reshape(len(demands), -1)

    def total(value: Callable[[Demand, Offer], float]) -> NDArray[np.float64]:
        """Return the sum of a value over the arrays, for each way."""
        tables = [np.array([value(each, offer) for offer in each.offers]) for each in demands]
        return sum((table[way] for table, way in zip(tables, ways, strict=True)), np.zeros(1))

    def bytes_on(disk: object, each: Demand, offer: Offer) -> float:
        return each.bytes * (disks.disk_of[offer.store] == disk)

    is_possible = total(lambda _demand, offer: offer.write_s) <= budget_s
    for disk, room in disks.room_bytes.items():
        size = total(partial(bytes_on, disk))
        is_possible &= size <= (math.inf if room is None else room)
    costs = total(lambda _demand, offer: offer.cost_s)[is_possible]
    return float(costs.min()) if costs.size else None


def check_room(demands: Sequence[Demand], disks: Disks, found: Choice) -> None:
    """Check that all dumps have a place, and no disk more than its room."""
    left: dict[object, float] = {
        disk: math.inf if room is None else room for disk, room in disks.room_bytes.items()
    }
    for each in demands:
        parts = found.parts[each.name]
        assert sum(dumps for _, dumps in parts) == each.dumps
        for offer, dumps in parts:
            left[disks.disk_of[offer.store]] -= dumps * each.dump_bytes
    assert min(left.values(), default=0) >= 0


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Demand], Disks]:
    """Draw arrays, whose costs have little to do with each other, and stores on shared disks."""
    stores = STORES[: draw(st.integers(1, 4))]
    numbers = st.integers(0, 30)
    demands = [
        demand(
            f"a{at}", draw(st.integers(1, 3)), draw(st.integers(1, 5)),
            *(Offer(store, draw(numbers), draw(numbers), 0.0) for store in stores),
            spans=draw(st.booleans()),
        )
        for at in range(draw(st.integers(1, 8)))
    ]  # fmt: skip
    disk_of: Mapping[str, str] = {each: draw(st.sampled_from(stores)) for each in stores}
    room = st.one_of(st.none(), st.integers(0, 40))
    return demands, Disks(disk_of, {each: draw(room) for each in set(disk_of.values())})


@settings(deadline=None, max_examples=100)
@given(cases(), st.one_of(st.just(math.inf), st.integers(0, 120)))
def test_no_choice_costs_less(case: tuple[list[Demand], Disks], budget_s: float) -> None:
    demands, disks = case
    least = least_cost(demands, disks, budget_s)
    found = choose(demands, disks, budget_s)
    if found is None:
        assert least is None
        return
    check_room(demands, disks, found)
    assert found.is_exact and found.write_s <= budget_s * (1 + 1e-9)
    whole = all(len(parts) == 1 for parts in found.parts.values())
    assert whole == (least is not None)
    if least is not None:
        assert found.cost_s == pytest.approx(least)


def test_arrays_span_stores_only_if_nothing_else_fits() -> None:
    offers = Offer("disk", 1, 1, 0), Offer("lab", 2, 2, 0)
    demands = [demand("a", 10, 10, *offers), demand("b", 10, 10, *offers, spans=False)]
    found = choose(demands, disks_of(100, 150))
    assert found is not None and all(len(parts) == 1 for parts in found.parts.values())
    found = choose([*demands, demand("c", 5, 10, *offers)], disks_of(120, 140))
    assert found is not None
    assert sum(len(parts) > 1 for parts in found.parts.values()) == 1
    check_room([*demands, demand("c", 5, 10, *offers)], disks_of(120, 140), found)
    assert choose(demands, disks_of(99, 90)) is None


def test_equal_costs_go_where_most_room_is_left() -> None:
    offers = Offer("disk", 1, 1, 0), Offer("lab", 1, 1, 0), Offer("far", 1, 1, 0)
    demands = [demand(f"a{at}", 1, 10, *offers) for at in range(4)]
    found = choose(demands, disks_of(100, 115, None))
    assert found is not None
    assert [parts[0][0].store for parts in found.parts.values()] == ["lab", "lab", "disk", "lab"]


def test_many_arrays_alike_are_chosen_exactly() -> None:
    """Those of the multi-storage paper: 19 arrays of two sizes, on disks that hold some of them."""
    offers = Offer("disk", 1, 1, 0), Offer("lab", 4, 4, 0), Offer("vault", 20, 20, 0)
    demands = [demand(f"a{at}", 21, 8 if at < 12 else 2, *offers) for at in range(19)]
    disks = Disks({"disk": 0, "lab": 1, "vault": 2}, {0: 5 * 168, 1: 4 * 168, 2: None})
    found = choose(demands, disks)
    assert found is not None and found.is_exact
    # Seven small ones and three large ones are near, four large ones in the lab.
    assert found.cost_s == 10 * 1 + 4 * 4 + 5 * 20


def test_a_search_that_was_ended_says_so() -> None:
    offers = Offer("disk", 1, 1, 0), Offer("lab", 1.5, 1.5, 0)
    demands = [demand(f"a{at}", 1, 10 + at * at % 7, *offers) for at in range(16)]
    found = choose(demands, disks_of(90, 1000), most_steps=40)
    assert found is not None and not found.is_exact
    check_room(demands, disks_of(90, 1000), found)
    with pytest.raises(LimitError, match="stores for 16 arrays within 9 steps, found none yet"):
        choose(demands, disks_of(90, 1000), most_steps=9)
