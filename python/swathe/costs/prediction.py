"""Prediction of a job's cost, and sums and mixtures of several."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from swathe.core.format import seconds_text, size_text
from swathe.costs.format_costs import BOUND, beside

if TYPE_CHECKING:
    from swathe.costs.call_costs import CallCosts

MOST_FAULTS = 100
"""Number of reasons listed why targets cannot be cut; the engine lists as many for objects."""

C = TypeVar("C", "StoreCost", "Prediction")


@dataclass(frozen=True)
class StoreCost:
    """Predicted cost of one store.

    Attributes:
        median_s: median time of reading and cutting.
        interval_s: 10th and 90th percentile of the time.
        bytes: bytes moved from the store.
        requests: number of requests to the store; for local files, of reads.
        objects: number of objects read; in a list of more than 100,000 targets, an object counts
            once for each part of the list that has some of its targets.
        targets: number of targets cut.
        headers_read: number of objects whose headers were read now, since the index lacked them.
        unreadable: number of inspected objects that cannot be read.
        measured: whether the store was probed.
        compute_s: computing time, summed over all threads.
        write_s: the part of `compute_s` that writes results.
        is_local: whether its objects are files of this machine.
        model_s: time by the cost model, before earlier outcomes corrected it.
        outcomes: number of earlier outcomes of the store that count.
    """

    median_s: float
    interval_s: tuple[float, float]
    bytes: int
    requests: int
    objects: int
    targets: int
    headers_read: int
    unreadable: int
    measured: bool
    compute_s: float
    write_s: float
    is_local: bool
    model_s: float = 0.0
    outcomes: int = 0


@dataclass(frozen=True)
class Prediction:
    """Predicted cost of a job.

    Attributes:
        median_s: median time of the call, from the call to its return; of a job of a portal, of its
            batches.
        interval_s: 10th and 90th percentile of the time.
        bytes: bytes moved from all stores.
        requests: number of requests to all stores.
        per_store: cost by name or key of the store. With replicas it is the cost if that store
            alone were used.
        shares: part of the objects that each replica serves in the cheapest mixture. A replica
            that lacks some of the files gets no share.
        explained: how some objects will be read; see `swathe predict --explain`.
        faults: reasons why objects cannot be read (up to a hundred per store) and why targets
            cannot be cut, each reason once.
        notes: reasons why the time is not known well, as that an array is read by its library.
        staging: objects on tape by store, and how long staging takes at most; it does not count
            in `median_s`, and neither do these objects.
        compute_s: computing time, summed over all threads.
        write_s: the part of `compute_s` that writes results, as to a folder of the disk where
            temporary files are, unless the output is known.
        overhead_s: the part of `median_s` outside reading and cutting.
        model_s: time of reading and cutting by the cost model, before earlier outcomes corrected
            it.
    """

    median_s: float
    interval_s: tuple[float, float]
    bytes: int
    requests: int
    per_store: dict[str, StoreCost]
    shares: dict[str, float] = field(default_factory=dict)
    explained: list[dict[str, Any]] = field(default_factory=list, repr=False)
    faults: list[str] = field(default_factory=list, repr=False)
    notes: list[str] = field(default_factory=list)
    staging: list[str] = field(default_factory=list)
    compute_s: float = 0.0
    write_s: float = 0.0
    overhead_s: float = 0.0
    model_s: float = 0.0

    def _repr_html_(self) -> str:
        from swathe.files.notebook import page, table

        low, high = map(seconds_text, self.interval_s)
        facts = {
            "time": f"{seconds_text(self.median_s)} ({low} to {high} in 80 of 100 cases)",
            "moved": f"{size_text(self.bytes)} in {self.requests:,} requests",
            "computing": f"{seconds_text(self.compute_s)}, over all threads",
        }
        names = ["store", "time", "moved", "requests", "objects", "targets", "measured"]
        rows = [
            [
                *(root, seconds_text(cost.median_s), size_text(cost.bytes), f"{cost.requests:,}"),
                *(f"{cost.objects:,}", f"{cost.targets:,}", "yes" if cost.measured else "no"),
            ]
            for root, cost in self.per_store.items()
        ]
        tables = [table(names, rows)]
        if self.notes:
            tables.append(table(["why the interval is wide"], [[note] for note in self.notes]))
        if self.faults:
            tables.append(table(["cannot be cut"], [[fault] for fault in self.faults]))
        return page("Prediction", facts, tables=tables)

    @property
    def only_root(self) -> str:
        """Return the key of the only store; else an empty text."""
        return next(iter(self.per_store)) if len(self.per_store) == 1 else ""

    @property
    def root(self) -> str:
        """Return the key of the only store, if it is a server; else an empty text."""
        servers = [root for root, cost in self.per_store.items() if not cost.is_local]
        return servers[0] if len(servers) == len(self.per_store) == 1 else ""


def total_of(jobs: Iterable[Prediction]) -> Prediction:
    """Return the cost of jobs that run one after another."""
    parts = list(jobs)
    if len(parts) == 1:
        return parts[0]
    per_store: dict[str, StoreCost] = {}
    for name, cost in chain.from_iterable(part.per_store.items() for part in parts):
        before = per_store.get(name)
        per_store[name] = cost if before is None else _sum(before, cost)
    return replace(
        _sum(*parts),
        per_store=per_store,
        explained=list(chain(*(part.explained for part in parts))),
        notes=list(dict.fromkeys(chain(*(part.notes for part in parts)))),
        faults=list(dict.fromkeys(chain(*(part.faults for part in parts))))[: 2 * MOST_FAULTS],
    )


def times(prediction: Prediction, factor: float) -> Prediction:
    """Return the cost of a job that is `factor` times as large, on the same stores."""
    per_store = {name: _times(cost, factor) for name, cost in prediction.per_store.items()}
    return replace(_times(prediction, factor), per_store=per_store)


def _times(cost: C, factor: float) -> C:
    """Return a cost with all numbers multiplied; counts are rounded."""
    numbers: dict[str, Any] = {
        each.name: type(value)(round(value * factor) if type(value) is int else value * factor)
        for each in fields(cost)
        if type(value := getattr(cost, each.name)) in (int, float) and each.name != "outcomes"
    }
    low, high = cost.interval_s
    return replace(cost, **numbers, interval_s=(low * factor, high * factor))


def _sum(*costs: C) -> C:
    """Return the sums of numbers and intervals; any other value is that of the first."""
    sums: dict[str, Any] = {
        each.name: sum(getattr(cost, each.name) for cost in costs)
        for each in fields(costs[0])
        if type(getattr(costs[0], each.name)) in (int, float)
    }
    low, high = zip(*(cost.interval_s for cost in costs), strict=True)
    return replace(costs[0], **sums, interval_s=(sum(low), sum(high)))


def mix_replicas(alone: dict[str, Prediction], threads: int) -> Prediction:
    """Distribute the work over replicas so that all end at the same time, which is fastest.

    Each replica serves objects in proportion to its speed; computing gets no faster. A replica that
    lacks objects gets no share, since it would seem fast for what it cannot serve.
    """
    readable = {name: readable_objects(prediction) for name, prediction in alone.items()}
    complete = {name: alone[name] for name in alone if readable[name] == max(readable.values())}
    speeds = {name: 1 / max(prediction.median_s, 1e-9) for name, prediction in complete.items()}
    shares = {name: speeds.get(name, 0.0) / sum(speeds.values()) for name in alone}
    compute_s = max(prediction.compute_s for prediction in complete.values())
    seconds = max(1 / sum(speeds.values()), compute_s / threads)
    best = min(complete, key=lambda name: complete[name].median_s)
    if seconds > 0.98 * alone[best].median_s:
        # A second store gains nothing.
        seconds, shares = alone[best].median_s, {name: float(name == best) for name in alone}
    predictions = {name: alone[name] for name, share in shares.items() if share > 0}
    bounds = widest_bounds(
        [cost for prediction in predictions.values() for cost in prediction.per_store.values()]
    )
    return Prediction(
        seconds,
        interval_of(seconds, bounds),
        round(sum(prediction.bytes * shares[name] for name, prediction in predictions.items())),
        round(sum(prediction.requests * shares[name] for name, prediction in predictions.items())),
        # If no target can be cut, no storage is read.
        {
            name: cost
            for name, prediction in alone.items()
            for cost in [*prediction.per_store.values()][:1]
        },
        shares,
        [how for prediction in predictions.values() for how in prediction.explained],
        [fault for prediction in alone.values() for fault in prediction.faults],
        compute_s=compute_s,
        write_s=max(prediction.write_s for prediction in predictions.values()),
    )


def read_at_once(prediction: Prediction, threads: int) -> Prediction:
    """Return the cost of a job whose stores are read at the same time, as in a mixture."""
    slowest = max((cost.median_s for cost in prediction.per_store.values()), default=0.0)
    median_s = max(slowest, prediction.compute_s / threads)
    interval_s = interval_of(median_s, widest_bounds(prediction.per_store.values()))
    # An outcome of several stores says nothing of one.
    return replace(prediction, median_s=median_s, interval_s=interval_s, model_s=0.0)


def readable_objects(prediction: Prediction) -> int:
    """Return the number of readable objects."""
    return sum(cost.objects - cost.unreadable for cost in prediction.per_store.values())


def of_call(
    prediction: Prediction, costs: CallCosts, targets: int, elapsed_s: float | None = None
) -> Prediction:
    """Return the prediction of a call from that of reading and cutting.

    Args:
        prediction: prediction of reading and cutting.
        costs: costs of a call on this host.
        targets: number of targets.
        elapsed_s: seconds of the call until now, if it has begun.
    """
    after_s = costs.after(targets)
    less_s, more_s = costs.unsure(targets, is_begun=elapsed_s is not None)
    around_s = after_s + (costs.before(targets) if elapsed_s is None else elapsed_s)
    low_s, high_s = prediction.interval_s
    median_s = prediction.median_s + around_s
    faster_s = math.hypot(prediction.median_s - low_s, less_s)
    slower_s = math.hypot(high_s - prediction.median_s, more_s)
    return replace(
        prediction,
        median_s=median_s,
        interval_s=(median_s - faster_s, median_s + slower_s),
        overhead_s=around_s,
    )


def of_results(
    prediction: Prediction, results: int, making_s: float, bound: float = BOUND
) -> Prediction:
    """Return the prediction of reading, cutting and making results from that of the first two.

    Args:
        prediction: prediction of reading and cutting.
        results: number of results.
        making_s: seconds to make them from the cutouts.
        bound: factor by which these differ at most in 80 of 100 cases.
    """
    if results == 0:
        return prediction
    low_s, high_s = prediction.interval_s
    return replace(
        prediction,
        median_s=beside(prediction.median_s, making_s, results),
        interval_s=(
            beside(low_s, making_s / bound, results),
            beside(high_s, making_s * bound, results),
        ),
        compute_s=prediction.compute_s + making_s,
    )


def interval_of(seconds: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the interval around a median, from the logarithms of how far its ends are from it."""
    faster, slower = bounds
    return seconds * math.exp(-faster), seconds * math.exp(slower)


def widest_bounds(costs: Iterable[StoreCost]) -> tuple[float, float]:
    """Return the bounds of the least certain of some costs."""
    bounds = [(cost.median_s, *cost.interval_s) for cost in costs if cost.median_s > 0]
    faster = max((math.log(median / low) for median, low, _ in bounds), default=0.0)
    return faster, max((math.log(high / median) for median, _, high in bounds), default=0.0)
