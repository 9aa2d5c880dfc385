"""What a run's writing will cost: for each array, its dumps times the time of one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from swathe.runs.definition.run_settings import ArraySettings, RunSettings
from swathe.runs.planning.shared_writes import (
    GroupKey,
    Placement,
    StoredArray,
    in_groups,
    share_of,
    stored_arrays,
)
from swathe.runs.planning.store_rate import Forecast, StoreRate


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
        bytes_by_store: bytes that are written, by store; with `via` near and far.
        read_s: predicted time of reading all that is kept of it once, with staging it at most.
    """

    name: str
    array: ArraySettings
    locations: tuple[str, ...]
    dumps: int
    seconds: float
    interval_s: tuple[float, float]
    bytes_by_store: Mapping[str, int]
    read_s: float

    @property
    def overruns(self) -> dict[str, float]:
        """Return the limits of time that it does not meet, seconds, by key of the settings."""
        limits = {
            "within_s": (self.seconds, self.array.within_s),
            "read_within_s": (self.read_s, self.array.read_within_s),
        }
        return {
            key: limit
            for key, (took, limit) in limits.items()
            if limit is not None and took > limit
        }


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
    def compute_s(self) -> float | None:
        """Return the seconds of computing; `None` if the settings do not say."""
        each_s = self.run.compute_s
        return None if each_s is None else each_s * (self.run.iterations + 1)

    @property
    def wall_s(self) -> float | None:
        """Return the seconds of the run if computing goes on while dumps are written."""
        return None if self.compute_s is None else max(self.compute_s, self.seconds)

    @property
    def bytes_by_store(self) -> dict[str, int]:
        """Return the bytes that are written, by store."""
        total: dict[str, int] = {}
        for each in self.arrays:
            for store, size in each.bytes_by_store.items():
                total[store] = total.get(store, 0) + size
        return total

    def as_dict(self) -> dict[str, Any]:
        """Return the prediction as JSON has it: the run, its table, totals and warnings."""
        return {
            "name": self.run.name,
            "iterations": self.run.iterations,
            "ranks": self.run.ranks,
            "arrays": self.rows(),
            "seconds": self.seconds,
            "interval_s": list(self.interval_s),
            "compute_s": self.compute_s,
            "wall_s": self.wall_s,
            "bytes_by_store": self.bytes_by_store,
            "without_costs": list(self.without_costs),
        }

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
                "write": each.array.write if each.dumps else "",
                "objects": each.array.sharding.count if each.dumps else 0,
                "bytes": each.dumps * each.array.dump_bytes,
                "seconds": each.seconds,
                "read_s": each.read_s,
                "interval_s": list(each.interval_s),
            }
            for each in self.arrays
        ]


def predict_run(
    run: RunSettings,
    placements: Mapping[str, Sequence[Placement]],
    rates: Mapping[str, StoreRate],
) -> RunPrediction:
    """Return what the dumps of a run cost: `sum_j (N / freq_j + 1) n_j t_j(s)`.

    The formula is equation 2 of Shen, Choudhary, Matarazzo and Sinha, "A distributed multi-storage
    resource architecture and I/O performance prediction for scientific computing", Cluster
    Computing 6 (2003). `n_j` is the number of shards of a dump, which are written at the same time.
    Arrays that have the same store and iterations are written together: each has a share of their
    time, as it would take alone. Entries and metadata of each dump are added, see
    `StoreRate.entry_s`. With `via` a dump is written to the near store, and copied to its place
    while the next ones are written; with `drain="later"` the time of copying is not counted.

    Args:
        run: the settings.
        placements: stores of the dumps, by array, as `place` returns them.
        rates: costs of these stores, and of near stores, by name.
    """
    in_stores = {
        name: stored_arrays(array, placements[name], rates, run.ranks)
        for name, array in run.arrays.items()
    }
    groups = in_groups(chain.from_iterable(in_stores.values()))
    shares = {key: share_of(group) for key, group in groups.items()}
    rows = tuple(
        _array_cost(name, array, placements[name], in_stores[name], shares)
        for name, array in run.arrays.items()
    )
    stores = {store for each in rows for store in each.bytes_by_store}
    without_costs = sorted(store for store in stores if not rates[store].is_measured)
    return RunPrediction(run, rows, tuple(without_costs))


def _array_cost(
    name: str,
    array: ArraySettings,
    placements: Sequence[Placement],
    in_stores: Sequence[StoredArray],
    shares: Mapping[GroupKey, float],
) -> ArrayCost:
    time, read_s = Forecast(), 0.0
    sizes: dict[str, int] = {}
    for placement, each in zip(placements, in_stores, strict=True):
        time += each.write_s(shares[each.key])
        read_dumps = array.dumps_to_read(each.dumps)
        read_s += read_dumps * each.last.read_s(array) + each.last.stage_s(array, read_dumps)
        for store in dict.fromkeys((placement.store, each.first_store)):
            sizes[store] = sizes.get(store, 0) + each.dumps * array.dump_bytes
    locations = tuple(dict.fromkeys(placement.store for placement in placements))
    dumps = sum(placement.dumps for placement in placements)
    interval_s = (time.low_s, time.high_s)
    return ArrayCost(name, array, locations, dumps, time.median_s, interval_s, sizes, read_s)
