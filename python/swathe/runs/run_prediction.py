"""What a run's writing will cost: for each array, its dumps times the time of one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swathe.costs.cost_model import Costs
from swathe.runs.placement import Placement
from swathe.runs.run_settings import ArraySettings, RunSettings

UNKNOWN_FACTOR = 10.0
"""By what factor the time of a store may be less or more, if nothing was measured."""
LEAST_SPREAD = 0.1
"""Relative half width of the interval of a store that was measured, at least."""


@dataclass(frozen=True)
class WriteRate:
    """What writing to a store costs from here.

    Attributes:
        costs: costs of the store; a request is an object, or a part of one, written and verified.
        spread: half the range of the middle 80 % of times, relative to the prediction; `None` if
            the store was not measured.
    """

    costs: Costs
    spread: float | None = None

    def seconds(self, requests: int, size: int) -> float:
        """Return the seconds to write a number of objects of equal size at the same time.

        Args:
            requests: number of objects.
            size: their bytes in all.
        """
        streams = min(self.costs.streams, requests)
        return float(self.costs.read_s(size, requests, streams, -(-size // requests)))

    def interval_s(self, median_s: float) -> tuple[float, float]:
        """Return the bounds between which 8 of 10 times lie."""
        if self.spread is None:
            return median_s / UNKNOWN_FACTOR, median_s * UNKNOWN_FACTOR
        spread = max(self.spread, LEAST_SPREAD)
        return median_s * max(1 - spread, 0.0), median_s * (1 + spread)


@dataclass(frozen=True)
class ArrayCost:
    """What the dumps of an array cost.

    Attributes:
        name: name of the array.
        array: its settings.
        locations: names of the stores of its dumps, in their order.
        dumps: number of dumps.
        seconds: predicted time of all dumps.
        interval_s: bounds of it.
        bytes_by_store: bytes that are written, by store.
    """

    name: str
    array: ArraySettings
    locations: tuple[str, ...]
    dumps: int
    seconds: float
    interval_s: tuple[float, float]
    bytes_by_store: Mapping[str, int]

    @property
    def exceeds_limit(self) -> bool:
        """Check whether it takes longer than its `within_s`."""
        return self.array.within_s is not None and self.seconds > self.array.within_s


@dataclass(frozen=True)
class RunPrediction:
    """What writing the arrays of a run costs, if nothing else is done meanwhile.

    Attributes:
        run: the settings.
        arrays: costs of each array, in their order.
        without_costs: stores whose writing was not measured; their costs are assumed.
    """

    run: RunSettings
    arrays: tuple[ArrayCost, ...]
    without_costs: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Return the predicted seconds of all dumps."""
        return math.fsum(each.seconds for each in self.arrays)

    @property
    def interval_s(self) -> tuple[float, float]:
        """Return the bounds of it; errors of one store go the same way, so bounds are added."""
        low = math.fsum(each.interval_s[0] for each in self.arrays)
        return low, math.fsum(each.interval_s[1] for each in self.arrays)

    @property
    def bytes_by_store(self) -> dict[str, int]:
        """Return the bytes that are written, by store."""
        total: dict[str, int] = {}
        for each in self.arrays:
            for store, size in each.bytes_by_store.items():
                total[store] = total.get(store, 0) + size
        return total

    def rows(self) -> list[dict[str, Any]]:
        """Return the table of the multi-storage paper: a row for each array, by column."""
        return [
            {
                "name": each.name,
                "amode": each.array.mode,
                "ndims": len(each.array.shape),
                "etype": each.array.dtype,
                "pattern": each.array.pattern,
                "dims": list(each.array.shape),
                "location": list(each.locations) or ["disable"],
                "frequency": each.array.every,
                "dumps": each.dumps,
                "bytes": sum(each.bytes_by_store.values()),
                "seconds": each.seconds,
                "interval_s": list(each.interval_s),
            }
            for each in self.arrays
        ]


def predict_run(
    run: RunSettings,
    placements: Mapping[str, Sequence[Placement]],
    rates: Mapping[str, WriteRate],
) -> RunPrediction:
    """Return what the dumps of a run cost: `sum_j (N / freq_j + 1) n_j t_j(s)`.

    The formula is equation 2 of Shen, Choudhary, Matarazzo and Sinha, "A distributed multi-storage
    resource architecture and I/O performance prediction for scientific computing", Cluster
    Computing 6 (2003). `n_j` is the number of shards of a dump, which are written at the same time.

    Args:
        run: the settings.
        placements: stores of the dumps, by array, as `place` returns them.
        rates: costs of these stores, by name.
    """
    rows = []
    for name, array in run.arrays.items():
        shards = array.sharding.count
        seconds, low_s, high_s = 0.0, 0.0, 0.0
        sizes: dict[str, int] = {}
        for placement in placements[name]:
            rate = rates[placement.store]
            median_s = placement.dumps * rate.seconds(shards, array.dump_bytes)
            bounds = rate.interval_s(median_s)
            seconds, low_s, high_s = seconds + median_s, low_s + bounds[0], high_s + bounds[1]
            size = placement.dumps * array.dump_bytes
            sizes[placement.store] = sizes.get(placement.store, 0) + size
        dumps = sum(placement.dumps for placement in placements[name])
        rows.append(ArrayCost(name, array, tuple(sizes), dumps, seconds, (low_s, high_s), sizes))
    stores = {store for each in rows for store in each.locations}
    without_costs = sorted(store for store in stores if rates[store].spread is None)
    return RunPrediction(run, tuple(rows), tuple(without_costs))
