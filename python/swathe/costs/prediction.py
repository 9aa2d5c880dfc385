"""Predict the cost of a job before it runs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from swathe import _swathe
from swathe.core.argument_checks import check_count, check_objective, check_texts, check_threads
from swathe.core.format import seconds_text, size_text
from swathe.core.host import cores
from swathe.costs.calibration import calibrate
from swathe.costs.call_costs import CallCosts
from swathe.costs.format_costs import BOUND, FormatCosts, beside, pixels_of
from swathe.costs.past_outcomes import past_outcomes, root_of
from swathe.files.planes import plane_span
from swathe.stores.registry import bounds_of, compute_costs, stores_for

if TYPE_CHECKING:
    from swathe._swathe import HduKey
    from swathe.core.argument_checks import Objective
    from swathe.core.box import Mode
    from swathe.core.row_table import RowTable
    from swathe.core.sky import SkyMapping
    from swathe.costs.replica_stores import ReplicaStores
    from swathe.files.planes import Planes
    from swathe.files.targets.pieces import TablePiece
    from swathe.files.targets.target_list import ListOptions

UNMEASURED_BOUNDS = (math.log(2), math.log(2))
"""Of stores, or a machine, never probed: half to twice the predicted time."""
LOCAL_BOUNDS = (math.log(1.3), math.log(1.3))
LEAST_BOUND = math.log(1.05)
MOST_FAULTS = 100
"""Number of reasons listed why targets cannot be cut; the engine lists as many for objects."""
MOST_OBJECTS = 1000
"""Objects per store that `predict` inspects in the first 100,000 targets of a list."""
FURTHER_OBJECTS = 16
"""Objects per store that it inspects in each further part of a list."""


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
        compute_s: computing time, summed over all threads.
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
    compute_s: float = 0.0
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


def predict(
    targets: Any,
    *,
    stores: Sequence[str] = (),
    machines: int = 1,
    mode: Mode = "trim",
    planes: Planes | None = None,
    threads: int | None = None,
    objective: Objective = "auto",
    format: str | None = None,  # noqa: A002 - as `cut_many`
    file: str | os.PathLike[str] | None = None,
    size: Any = None,
    frame: str | None = None,
    ra: str | None = None,
    dec: str | None = None,
) -> Prediction:
    """Predict the cost of cutting these targets, without reading a pixel.

    Headers are read if the index lacks them: of up to 1,000 objects per store, and of 16 for each
    further 100,000 targets. The others are assumed to be like these. A list of any length is read
    in parts, as `cut_many` reads it; an iterator is used up.

    Args:
        targets: as in `cut_many`.
        stores: names of stores with replicas, or one name, with the same paths in each. Plain
            paths below the folder of such a store belong to it.
        machines: number of machines like this one that share the work and the stores.
        mode: as in `cut_many`.
        planes: as in `cut_many`.
        threads: as in `cut_many`.
        objective: as in `cut_many`. With `auto`, what this process reads now is counted as others.
        format: format of the results: `fits` (default), `npy` or `png`. The time to make them is
            that of this host, as `swathe probe` measured it; of a cube, that of one plane.
        file: file of targets that name none, as in `cut_many`.
        size: size of sky targets without one.
        frame: frame of positions.
        ra: name of the column of right ascension or longitude.
        dec: name of the column of declination or latitude.

    Raises:
        TargetsError: If the list cannot be read.
        NoSuchStoreError: If there is no such store.
        OptionError: If cutouts are not made in this format.
    """
    from swathe.files.targets.pieces import read_pieces, whole_objects
    from swathe.files.targets.target_list import choices_of, read_targets

    threads, objective = check_threads(threads) or cores(), check_objective(objective)
    machines = check_count("machines", machines, 100_000)
    stores = check_texts("stores", stores)
    span = None if planes is None else plane_span(planes)
    choices = choices_of(file=file, size=size, frame=frame, ra=ra, dec=dec)
    making = None if format in (None, "fits") else FormatCosts.of(compute_costs(), format)
    pieces = read_pieces(targets, choices)
    count, pixels = 0, 0.0

    def call(cutting: Prediction) -> Prediction:
        if making is not None:
            cutting = of_results(cutting, count, making.seconds(count, pixels))
        return of_call(cutting, known_call_costs(), count)

    if not stores:

        def read(piece: TablePiece) -> RowTable:
            options: dict[str, Any] = {"planes": span, "first": piece.first, "names": list}
            return read_targets(piece.table, sky_of, None, _most(piece.first), choices, **options)

        parts = []
        for part, (rows, *_) in enumerate(whole_objects(pieces, read)):
            parts.append(predict_targets(rows, mode, threads, machines, _most(part), objective))
            count, pixels = count + len(rows), pixels + pixels_of(rows)
        return call(total_of(parts))
    of_stores: dict[str, list[Prediction]] = {name: [] for name in stores}
    for piece in pieces:
        most = _most(piece.first)
        lists = target_lists(piece.table, stores, choices, most, planes=span, first=piece.first)
        for name, rows in lists.items():
            of_stores[name].append(predict_targets(rows, mode, threads, machines, most, objective))
        rows = next(iter(lists.values()))
        count, pixels = count + len(rows), pixels + pixels_of(rows)
    predictions = {name: total_of(parts) for name, parts in of_stores.items()}
    return call(mix_replicas(predictions, threads * machines))


def _most(part: int) -> int:
    """Return the number of objects to inspect in a part of a list."""
    return FURTHER_OBJECTS if part else MOST_OBJECTS


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
        faults=list(dict.fromkeys(chain(*(part.faults for part in parts))))[: 2 * MOST_FAULTS],
    )


def _sum(*costs: C) -> C:
    """Return the sums of numbers and intervals; any other value is that of the first."""
    sums: dict[str, Any] = {
        each.name: sum(getattr(cost, each.name) for cost in costs)
        for each in fields(costs[0])
        if type(getattr(costs[0], each.name)) in (int, float)
    }
    low, high = zip(*(cost.interval_s for cost in costs), strict=True)
    return replace(costs[0], **sums, interval_s=(sum(low), sum(high)))


def target_lists(
    targets: Any,
    stores: Sequence[str],
    choices: ListOptions,
    most_images: int | None = None,
    *,
    planes: tuple[int, int] | None,
    is_combined: bool = False,
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
            most_images=most_images,
            choices=choices,
            planes=planes,
            is_combined=is_combined,
            first=first,
        )
        for name in stores
    }


def predict_targets(
    rows: RowTable,
    mode: Mode,
    threads: int,
    machines: int,
    most: int | None = None,
    objective: Objective = "auto",
) -> Prediction:
    """Return the predicted cost of a list, with reasons why some targets cannot be cut.

    At most `most` objects per store are inspected.
    """
    job = to_engine_job(rows.to_predict(), mode=mode, threads=threads, objective=objective)
    prediction = predict_job(job, most, machines)
    first: dict[str, str] = {}
    for row, (status, reason) in rows.faults().items():
        if status != "no-overlap":
            first.setdefault(reason, f"target {rows.id[row]}: {reason}")
    return replace(prediction, faults=[*prediction.faults, *list(first.values())[:MOST_FAULTS]])


def to_engine_job(
    rows: RowTable,
    names: list[str] | None = None,
    replicas: ReplicaStores | None = None,
    **settings: Any,
) -> _swathe.Job:
    """Return rows as a job of the engine.

    Args:
        rows: rows with boxes; all have the same planes.
        names: path of each row's result in the output.
        replicas: stores that have copies of the rows' objects.
        **settings: further arguments of the job.

    Raises:
        ValueError: If the planes differ.
    """
    from swathe.files.targets.hdus import hdu_key

    source, hdu, planes = rows.source.few(), rows.hdu.few().map(hdu_key), rows.planes.few().values
    if len(planes) > 1:
        raise ValueError(f"rows of a job of the engine: expected the same planes, found {planes}")
    files = source.values
    if replicas is not None:
        copies = [replicas.copies(file) for file in files]
        settings["replicas"] = ([*replicas.target_s.items()], copies)
        files = [file for each in copies for _, file in each]
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
        **{"output": "", "kind": "folder", "stores": stores_for(files), **settings},
    )


def plane_spans(planes: tuple[int, ...] | None) -> list[tuple[int, int]]:
    """Return ranges of planes on NAXIS3 and the axes after it, from those of a `RowRecord`."""
    return [] if planes is None else list(zip(planes[::2], planes[1::2], strict=True))


def predict_job(job: _swathe.Job, most: int | None = None, machines: int = 1) -> Prediction:
    """Return the predicted cost of a job; at most `most` objects per store are inspected."""
    estimates = json.loads(job.estimate(compute_costs(), most, machines))
    per_store, explanations, faults = {}, [], []
    for estimate in estimates:
        per_store[estimate["root"]] = _cost(estimate)
        faults += estimate["faults"]
        explanations += [{"root": estimate["root"], **how} for how in estimate["explained"]]
    # Objects are read in the order of the list, so stores mostly follow one another.
    seconds = sum(cost.median_s for cost in per_store.values())
    bounds = _widest(per_store.values())
    return Prediction(
        seconds,
        _interval_s(seconds, bounds),
        sum(cost.bytes for cost in per_store.values()),
        sum(cost.requests for cost in per_store.values()),
        per_store,
        explained=explanations,
        faults=faults,
        compute_s=sum(cost.compute_s for cost in per_store.values()),
        model_s=sum(cost.model_s for cost in per_store.values()),
    )


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
    bounds = _widest(
        [cost for prediction in predictions.values() for cost in prediction.per_store.values()]
    )
    return Prediction(
        seconds,
        _interval_s(seconds, bounds),
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
        compute_s,
    )


def read_at_once(prediction: Prediction, threads: int) -> Prediction:
    """Return the cost of a job whose stores are read at the same time, as in a mixture."""
    slowest = max((cost.median_s for cost in prediction.per_store.values()), default=0.0)
    median_s = max(slowest, prediction.compute_s / threads)
    interval_s = _interval_s(median_s, _widest(prediction.per_store.values()))
    # An outcome of several stores says nothing of one.
    return replace(prediction, median_s=median_s, interval_s=interval_s, model_s=0.0)


def readable_objects(prediction: Prediction) -> int:
    """Return the number of readable objects."""
    return sum(cost.objects - cost.unreadable for cost in prediction.per_store.values())


def sky_of(file: str, hdu: HduKey | None) -> SkyMapping:
    """Return the sky mapping of an image."""
    from swathe.files.file import open_from_cache

    return open_from_cache(file).image(hdu).sky


def known_call_costs() -> CallCosts:
    """Return what a call takes around reading and cutting, by all that is known of this host.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    return CallCosts.of(compute_costs()).learn(past_outcomes().outcomes)


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


def of_results(prediction: Prediction, results: int, making_s: float) -> Prediction:
    """Return the prediction of reading, cutting and making results from that of the first two."""
    if results == 0:
        return prediction
    low_s, high_s = prediction.interval_s
    return replace(
        prediction,
        median_s=beside(prediction.median_s, making_s, results),
        interval_s=(
            beside(low_s, making_s / BOUND, results),
            beside(high_s, making_s * BOUND, results),
        ),
        compute_s=prediction.compute_s + making_s,
    )


def _cost(estimate: dict[str, Any]) -> StoreCost:
    model_s, root = estimate["median_s"], estimate["root"]
    earlier = past_outcomes().of(root_of(root))
    calibration = calibrate(earlier, model_s, _bounds(estimate))
    seconds = model_s * math.exp(calibration.bias)
    names = ("objects", "targets", "headers_read", "unreadable", "compute_s")
    return StoreCost(
        seconds,
        _interval_s(seconds, (calibration.faster, calibration.slower)),
        **{name: estimate["traffic"][name] for name in ("bytes", "requests")},
        **{name: estimate[name] for name in names},
        measured=estimate["is_measured"],
        is_local=_swathe.StoreKind(root).is_local,
        model_s=model_s,
        outcomes=calibration.outcomes,
    )


def _interval_s(seconds: float, bounds: tuple[float, float]) -> tuple[float, float]:
    faster, slower = bounds
    return seconds * math.exp(-faster), seconds * math.exp(slower)


def _bounds(estimate: dict[str, Any]) -> tuple[float, float]:
    """Return logarithms of how much faster and slower 80 of 100 jobs are at most."""
    if _swathe.StoreKind(estimate["root"]).is_local:
        return UNMEASURED_BOUNDS if compute_costs() is None else LOCAL_BOUNDS
    if not estimate["is_measured"]:
        return UNMEASURED_BOUNDS
    faster, slower = bounds_of(estimate["root"])
    return max(faster, LEAST_BOUND), max(slower, LEAST_BOUND)


def _widest(costs: Iterable[StoreCost]) -> tuple[float, float]:
    """Return the bounds of the least certain of some costs."""
    bounds = [(cost.median_s, *cost.interval_s) for cost in costs if cost.median_s > 0]
    faster = max((math.log(median / low) for median, low, _ in bounds), default=0.0)
    return faster, max((math.log(high / median) for median, _, high in bounds), default=0.0)
