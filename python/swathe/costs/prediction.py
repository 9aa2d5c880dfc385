"""Predict the cost of a job before it runs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.argument_checks import check_count, check_objective, check_texts, check_threads
from swathe.core.errors import SwatheError
from swathe.core.format import seconds_text, size_text
from swathe.core.host import cores
from swathe.core.paths import default_url
from swathe.files.planes import plane_span
from swathe.stores.registry import bounds_of, compute_costs, stores_for

if TYPE_CHECKING:
    from swathe._swathe import HduKey, Mode, Objective
    from swathe.core.row_table import RowTable
    from swathe.core.sky import SkyMapping
    from swathe.files.planes import Planes
    from swathe.files.targets.target_list import ListOptions

UNMEASURED_BOUNDS = (math.log(2), math.log(2))
"""Of stores, or a machine, never probed: half to twice the predicted time."""
LOCAL_BOUNDS = (math.log(1.3), math.log(1.3))
LEAST_BOUND = math.log(1.05)
MOST_FAULTS = 100
"""Number of reasons listed why targets cannot be cut; the engine lists as many for objects."""


@dataclass(frozen=True)
class StoreCost:
    """Predicted cost of one store.

    Attributes:
        median_s: median time.
        interval_s: 10th and 90th percentile of the time.
        bytes: bytes moved from the store.
        requests: number of requests to the store; for local files, of reads.
        objects: number of objects read.
        targets: number of targets cut.
        headers_read: number of objects whose headers were read now, since the index lacked them.
        unreadable: number of inspected objects that cannot be read.
        measured: whether the store was probed.
        compute_s: computing time, summed over all threads.
        is_local: whether its objects are files of this machine.
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
    is_local: bool


@dataclass(frozen=True)
class Prediction:
    """Predicted cost of a job.

    Attributes:
        median_s: median time.
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
        compute_s: computing time, summed over all threads.
        overhead_s: for a job of a portal, the part of `median_s` outside reading and cutting.
    """

    median_s: float
    interval_s: tuple[float, float]
    bytes: int
    requests: int
    per_store: dict[str, StoreCost]
    shares: dict[str, float] = field(default_factory=dict)
    explained: list[dict[str, Any]] = field(default_factory=list, repr=False)
    faults: list[str] = field(default_factory=list, repr=False)
    compute_s: float = 0.0
    overhead_s: float = 0.0

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
        if self.faults:
            tables.append(table(["cannot be cut"], [[fault] for fault in self.faults]))
        return page("Prediction", facts, tables=tables)

    @property
    def root(self) -> str:
        """Return the key of the only store, if it is a server; else an empty text."""
        servers = [root for root, cost in self.per_store.items() if not cost.is_local]
        return servers[0] if len(servers) == len(self.per_store) == 1 else ""


def predict(
    targets: Any,
    *,
    stores: Sequence[str] = (),
    machines: int = 1,
    mode: Mode = "trim",
    planes: Planes | None = None,
    threads: int | None = None,
    objective: Objective = "auto",
    file: str | os.PathLike[str] | None = None,
    size: Any = None,
    frame: str | None = None,
    ra: str | None = None,
    dec: str | None = None,
) -> Prediction:
    """Predict the cost of cutting these targets, without reading a pixel.

    Headers are read if the index lacks them.

    Args:
        targets: as in `cut_many`.
        stores: names of stores with replicas, or one name, with the same paths in each. Plain
            paths below the folder of such a store belong to it.
        machines: number of machines like this one that share the work and the stores.
        mode: as in `cut_many`.
        planes: as in `cut_many`.
        threads: as in `cut_many`.
        objective: as in `cut_many`. With `auto`, what this process reads now is counted as others.
        file: file of targets that name none, as in `cut_many`.
        size: size of sky targets without one.
        frame: frame of positions.
        ra: name of the column of right ascension or longitude.
        dec: name of the column of declination or latitude.

    Raises:
        TargetsError: If the list cannot be read.
        NoSuchStoreError: If there is no such store.
    """
    from swathe.files.targets.target_list import choices_of, read_targets

    threads, objective = check_threads(threads) or cores(), check_objective(objective)
    machines = check_count("machines", machines, 100_000)
    stores = check_texts("stores", stores)
    span = None if planes is None else plane_span(planes)
    choices = choices_of(file=file, size=size, frame=frame, ra=ra, dec=dec)
    if not stores:
        rows = read_targets(targets, sky_of, choices=choices, planes=span)
        return predict_targets(rows, mode, threads, machines, objective)
    predictions = {
        name: predict_targets(rows, mode, threads, machines, objective)
        for name, rows in target_lists(targets, stores, choices, planes=span).items()
    }
    return mix_replicas(predictions, threads * machines)


def target_lists(
    targets: Any,
    stores: Sequence[str],
    choices: ListOptions,
    *,
    planes: tuple[int, int] | None,
    combined: bool = False,
    first: int = 0,
) -> dict[str, RowTable]:
    """Return a list of targets as it is in each of some stores with replicas.

    Raises:
        TargetsError: If the list cannot be read.
        NoSuchStoreError: If there is no such store.
    """
    from swathe.core.errors import NoSuchStoreError
    from swathe.files.targets.target_list import read_targets
    from swathe.stores.registry import is_named

    for name in stores:
        if not is_named(f"{name}:x"):
            raise NoSuchStoreError(f"there is no store {name!r}; see: swathe store list")
    return {
        name: read_targets(
            targets,
            sky_of,
            store=name,
            choices=choices,
            planes=planes,
            combined=combined,
            first=first,
        )
        for name in stores
    }


def predict_targets(
    rows: RowTable, mode: Mode, threads: int, machines: int, objective: Objective = "auto"
) -> Prediction:
    """Return the predicted cost of a list, with reasons why some targets cannot be cut."""
    job = to_engine_job(rows.take(rows.sound), mode=mode, threads=threads, objective=objective)
    prediction = predict_job(job, machines=machines)
    first: dict[str, str] = {}
    for row, (status, reason) in rows.faults().items():
        if status != "no-overlap":
            first.setdefault(reason, f"target {rows.id[row]}: {reason}")
    return replace(prediction, faults=[*prediction.faults, *list(first.values())[:MOST_FAULTS]])


def to_engine_job(rows: RowTable, names: list[str] | None = None, **settings: Any) -> _swathe.Job:
    """Return rows as a job of the engine.

    Args:
        rows: rows with boxes; all have the same planes.
        names: path of each row's result in the output.
        **settings: further arguments of the job.

    Raises:
        ValueError: If the planes differ.
    """
    from swathe.files.targets.target_list import hdu_key

    source, hdu, planes = rows.source.few(), rows.hdu.few().map(hdu_key), rows.planes.few().values
    if len(planes) > 1:
        raise ValueError(f"rows of a job of the engine: expected the same planes, found {planes}")
    return _swathe.Job(
        source.values,
        source.codes,
        hdu.values,
        hdu.codes,
        rows.box,
        names if names is not None else [""] * len(rows),
        planes=plane_spans(planes[0] if planes else None),
        # Only events use them.
        ids=rows.id if _swathe.trace_is_on() else None,
        **{"output": "", "kind": "folder", "stores": stores_for(source.values), **settings},
    )


def plane_spans(planes: tuple[int, ...] | None) -> list[tuple[int, int]]:
    """Return ranges of planes on NAXIS3 and the axes after it, from those of a `RowRecord`."""
    return [] if planes is None else list(zip(planes[::2], planes[1::2], strict=True))


def predict_job(job: _swathe.Job, most: int | None = None, machines: int = 1) -> Prediction:
    """Return the predicted cost of a job; at most `most` objects per store are inspected."""
    estimates = json.loads(job.estimate(compute_costs(), most, machines))
    per_store, explained, faults = {}, [], []
    for estimate in estimates:
        per_store[estimate["root"]] = _cost(estimate)
        faults += estimate["faults"]
        explained += [{"root": estimate["root"], **how} for how in estimate["explained"]]
    # Objects are read in the order of the list, so stores mostly follow one another.
    seconds = sum(cost.median_s for cost in per_store.values())
    bounds = _widest(per_store.values())
    return Prediction(
        seconds,
        _interval_s(seconds, bounds),
        sum(cost.bytes for cost in per_store.values()),
        sum(cost.requests for cost in per_store.values()),
        per_store,
        explained=explained,
        faults=faults,
        compute_s=sum(cost.compute_s for cost in per_store.values()),
    )


def mix_replicas(alone: dict[str, Prediction], threads: int) -> Prediction:
    """Distribute the work over replicas so that all end at the same time, which is fastest.

    Each replica serves objects in proportion to its speed; computing gets no faster. A replica that
    lacks objects gets no share, since it would seem fast for what it cannot serve.
    """
    readable = {name: readable_objects(prediction) for name, prediction in alone.items()}
    whole = {name: alone[name] for name in alone if readable[name] == max(readable.values())}
    speeds = {name: 1 / max(prediction.median_s, 1e-9) for name, prediction in whole.items()}
    shares = {name: speeds.get(name, 0.0) / sum(speeds.values()) for name in alone}
    compute_s = max(prediction.compute_s for prediction in whole.values())
    seconds = max(1 / sum(speeds.values()), compute_s / threads)
    best = min(whole, key=lambda name: whole[name].median_s)
    if seconds > 0.98 * alone[best].median_s:
        # A second store gains nothing.
        seconds, shares = alone[best].median_s, {name: float(name == best) for name in alone}
    used = {name: alone[name] for name, share in shares.items() if share > 0}
    bounds = _widest(
        [cost for prediction in used.values() for cost in prediction.per_store.values()]
    )
    return Prediction(
        seconds,
        _interval_s(seconds, bounds),
        round(sum(prediction.bytes * shares[name] for name, prediction in used.items())),
        round(sum(prediction.requests * shares[name] for name, prediction in used.items())),
        # If no target can be cut, no storage is read.
        {
            name: cost
            for name, prediction in alone.items()
            for cost in [*prediction.per_store.values()][:1]
        },
        shares,
        [how for prediction in used.values() for how in prediction.explained],
        [fault for prediction in alone.values() for fault in prediction.faults],
        compute_s,
    )


def read_at_once(prediction: Prediction, threads: int) -> Prediction:
    """Return the cost of a job whose stores are read at the same time, as in a mixture."""
    slowest = max((cost.median_s for cost in prediction.per_store.values()), default=0.0)
    median_s = max(slowest, prediction.compute_s / threads)
    interval_s = _interval_s(median_s, _widest(prediction.per_store.values()))
    return replace(prediction, median_s=median_s, interval_s=interval_s)


def readable_objects(prediction: Prediction) -> int:
    """Return the number of readable objects."""
    return sum(cost.objects - cost.unreadable for cost in prediction.per_store.values())


def record_outcome(
    prediction: Prediction, meta: dict[str, Any], summary: str, cuts: int
) -> list[str]:
    """Record the outcome of a prediction in the catalogue, and the times of real reads.

    Returns warnings for the user. If there is nothing to compare, `cuts` is 0. The work is done by
    then, so a catalogue that cannot be written is only a warning.
    """
    from datetime import UTC, datetime

    from swathe.catalog import Outcome, OutcomeLog, this_host

    low_s, high_s = prediction.interval_s
    outcome = Outcome(
        at=datetime.now(UTC),
        host=this_host(),
        summary=summary,
        targets=cuts,
        root=prediction.root,
        predicted_s=prediction.median_s,
        low_s=low_s,
        high_s=high_s,
        actual_s=meta["actual_s"],
        predicted_bytes=prediction.bytes,
        actual_bytes=meta["bytes_moved"],
        predicted_requests=prediction.requests,
        actual_requests=meta["requests"],
    )
    timings = _swathe.take_timings()
    outcome_log = OutcomeLog.of(default_url())
    try:
        is_due = cuts > 0 and (outcome_log is None or outcome_log.append(outcome))
        if is_due or timings:
            from swathe.catalog import Catalog

            with Catalog.open() as catalog:
                if is_due and outcome_log is None:
                    catalog.add_outcome(outcome)
                elif is_due:
                    catalog.enter_outcomes()
                if timings:
                    from swathe.costs.fit.from_real_reads import feed_back

                    feed_back(catalog, timings)
    except SwatheError as error:
        return [f"the prediction was not recorded: {error}"]
    return []


def sky_of(file: str, hdu: HduKey | None) -> SkyMapping:
    """Return the sky mapping of an image."""
    from swathe.files.file import open_cached

    return open_cached(file).image(hdu).sky


def _cost(estimate: dict[str, Any]) -> StoreCost:
    seconds = estimate["seconds"]
    names = ("objects", "targets", "headers_read", "unreadable", "measured", "compute_s")
    return StoreCost(
        seconds,
        _interval_s(seconds, _bounds(estimate)),
        **{name: estimate["traffic"][name] for name in ("bytes", "requests")},
        **{name: estimate[name] for name in names},
        is_local=_swathe.StoreKind(estimate["root"]).is_local,
    )


def _interval_s(seconds: float, bounds: tuple[float, float]) -> tuple[float, float]:
    faster, slower = bounds
    return seconds * math.exp(-faster), seconds * math.exp(slower)


def _bounds(estimate: dict[str, Any]) -> tuple[float, float]:
    """Return logarithms of how much faster and slower 80 of 100 jobs are at most."""
    if _swathe.StoreKind(estimate["root"]).is_local:
        return UNMEASURED_BOUNDS if compute_costs() is None else LOCAL_BOUNDS
    if not estimate["measured"]:
        return UNMEASURED_BOUNDS
    faster, slower = bounds_of(estimate["root"])
    return max(faster, LEAST_BOUND), max(slower, LEAST_BOUND)


def _widest(costs: Iterable[StoreCost]) -> tuple[float, float]:
    """Return the bounds of the least certain of some costs."""
    used = [(cost.median_s, *cost.interval_s) for cost in costs if cost.median_s > 0]
    faster = max((math.log(median / low) for median, low, _ in used), default=0.0)
    return faster, max((math.log(high / median) for median, _, high in used), default=0.0)
