"""AUTO beside the best of all placements, found by trying each, over what runs are predicted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from swathe.core.errors import LimitError
from swathe.costs.cost_model import Costs
from swathe.costs.run_costs import RunCosts
from swathe.runs.definition.run_settings import ArraySettings, RunSettings
from swathe.runs.planning.array_use import use_of
from swathe.runs.planning.placement import Decision, StoreRoom, decide
from swathe.runs.planning.run_prediction import predict_run
from swathe.runs.planning.shared_writes import Placement
from swathe.runs.planning.store_rate import StoreRate
from swathe.runs.planning.write_method import choose_write

CASES, ITERATIONS, RANKS = 100, 24, 4
MOST_CHOICES = 4**8


@dataclass(frozen=True)
class Case:
    """A run, all of whose arrays but some are placed by AUTO."""

    arrays: Mapping[str, ArraySettings]
    stores: Sequence[StoreRoom]
    rates: Mapping[str, StoreRate]

    @property
    def autos(self) -> list[str]:
        return [name for name, array in self.arrays.items() if array.location == ("auto",)]

    def decision(self) -> Decision:
        """Return where AUTO puts the arrays."""
        return decide(self.arrays, ITERATIONS, self.stores, None, lambda _: self.rates, ranks=RANKS)

    def cost_s(self, stores: Mapping[str, str]) -> float:
        """Return what some arrays in these stores cost, by `predict_run`."""
        placements: dict[str, tuple[Placement, ...]] = {}
        arrays = {}
        for name, store in stores.items():
            array = self.arrays[name]
            dumps = array.dumps(ITERATIONS)
            placements[name] = (Placement(store, 0, dumps),)
            arrays[name] = choose_write(name, array, RANKS, [(self.rates[store], dumps)]).array
        run = RunSettings("app", ITERATIONS, RANKS, None, arrays)
        prediction = predict_run(run, placements, self.rates)
        uses = [(use_of(each.array), each.read_s) for each in prediction.arrays]
        reading_s = math.fsum(use.weight * use.reads * read_s for use, read_s in uses)
        return prediction.seconds + reading_s

    def best_s(self) -> float:
        """Return the least cost of all placements that have room; infinity if none has.

        Arrays of other stores or other iterations share no time, so each group is predicted once.
        """
        group_s = cache(lambda group: self.cost_s(dict(group)))
        names, autos = [each.name for each in self.stores], self.autos
        # An axis for each array of AUTO, with its store.
        total_s = np.zeros((len(names),) * len(autos))
        for every in {array.every for array in self.arrays.values()}:
            these = [name for name, array in self.arrays.items() if array.every == every]
            axes = [at for at, name in enumerate(autos) if name in these]
            table = np.zeros([len(names) if at in axes else 1 for at in range(len(autos))])
            for choice in product(range(len(names)), repeat=len(axes)):
                stores = {autos[at]: names[store] for at, store in zip(axes, choice, strict=True)}
                groups: dict[str, list[tuple[str, str]]] = {}
                for name in these:
                    store = stores.get(name, self.arrays[name].location[0])
                    groups.setdefault(store, []).append((name, store))
                index = [0] * len(autos)
                for at, store_number in zip(axes, choice, strict=True):
                    index[at] = store_number
                costs_s = [group_s(tuple(group)) for group in groups.values()]
                table[tuple(index)] = math.fsum(costs_s)
            total_s = total_s + table
        numbers = np.indices(total_s.shape)
        for number, each in enumerate(self.stores):
            size = np.zeros(total_s.shape)
            for name, array in self.arrays.items():
                is_there = (
                    numbers[autos.index(name)] == number
                    if name in autos
                    else array.location[0] == each.name
                )
                size += is_there * array.dump_bytes * array.stored_dumps(ITERATIONS)
            if each.room_bytes is not None:
                total_s[size > each.room_bytes] = math.inf
        return float(total_s.min())


def array_of(values: dict[str, Any]) -> ArraySettings:
    run = RunSettings.from_mapping({"name": "app", "iterations": 1, "arrays": {"a": values}})
    return run.arrays["a"]


def drawn_case(seed: int) -> Case:
    """Return arrays, stores, costs and rooms; small arrays share latency, large ones bandwidth."""
    rng = np.random.default_rng([26, seed])
    names = [f"store{number}" for number in range(rng.integers(2, 5))]
    rates = {}
    for name in names:
        latency_s, stream = 10 ** rng.uniform(-3.5, -0.5), 10 ** rng.uniform(6.5, 9)
        points = ((2048, latency_s), (1 << 20, latency_s + (1 << 20) / stream))
        streams = int(rng.choice([1, 2, 4, 16]))
        total = stream * rng.uniform(1, streams)
        costs = Costs(latency_s, 0.0, points, total, 1e9, streams)
        rates[name] = StoreRate(costs, 0.1, folder_s=latency_s, host=RunCosts())
    arrays = {}
    most = int(math.log(MOST_CHOICES, len(names)) + 1e-9)
    for number in range(rng.integers(2, min(8, most) + 1)):
        location = "auto" if rng.random() < 0.85 else str(rng.choice(names))
        arrays[f"a{number}"] = array_of(
            {
                "shape": [int(2 ** rng.uniform(8, 22))],
                "every": int(rng.choice([1, 6, 24])),
                "location": location,
                "purpose": str(rng.choice(["analyse", "visualise", "checkpoint", "archive"])),
            },
        )
    size = sum(each.dump_bytes * each.stored_dumps(ITERATIONS) for each in arrays.values())
    rooms = [None if rng.random() < 0.4 else int(size * rng.uniform(0.2, 1.2)) for _ in names]
    stores = [StoreRoom(name, "lan", room) for name, room in zip(names, rooms, strict=True)]
    return Case(arrays, stores, rates)


def test_auto_is_as_good_as_the_best_of_all_placements() -> None:
    factors: list[float] = []
    seed = 0
    while len(factors) < CASES:
        seed += 1
        case = drawn_case(seed)
        best_s = case.best_s() if case.autos else math.inf
        if best_s == math.inf:  # what does not fit spans stores
            continue
        decision = case.decision()
        stores = {name: parts[0].store for name, parts in decision.placements.items()}
        factors.append(case.cost_s(stores) / best_s)
        assert all(len(parts) == 1 for parts in decision.placements.values())
        assert decision.auto is not None
        assert not decision.auto.choice.is_exact or factors[-1] < 1 + 1e-9
        left = {each.name: each.room_bytes for each in case.stores}
        for name, store in stores.items():
            array, room = case.arrays[name], left[store]
            if room is not None:
                left[store] = room - array.dump_bytes * array.stored_dumps(ITERATIONS)
        assert all(room is None or room >= 0 for room in left.values())
    assert max(factors) <= 1.1


def test_a_limit_of_time_is_that_of_the_whole_run() -> None:
    """Each array takes 1 s a dump alone, and both together take hardly more."""
    points = ((2048, 1.0), (1 << 20, 1.001))
    rate = StoreRate(Costs(0.0, 0.0, points, 1e9, 1e9, 16), 0.1, host=RunCosts())
    array = array_of({"shape": [1000], "location": "auto"})
    arrays = {"a": array, "b": array}
    stores = [StoreRoom("far", "wan")]

    def plan(within_s: float) -> None:
        decide(arrays, ITERATIONS, stores, None, lambda _: {"far": rate}, within_s)

    plan(1.5 * (ITERATIONS + 1))
    with pytest.raises(LimitError, match=r"the least possible is 2[5-9]"):
        plan(0.9 * (ITERATIONS + 1))
