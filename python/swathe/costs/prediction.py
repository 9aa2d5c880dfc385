"""What a job will cost, before it is run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.errors import SwatheError
from swathe.core.format import seconds_text, size_text
from swathe.core.host import cores
from swathe.files.planes import planes_of_list
from swathe.stores.registry import compute_costs, spread_of, stores_for

if TYPE_CHECKING:
    from swathe._swathe import HduKey, Mode
    from swathe.core.sky import SkyMapping
    from swathe.files.targets.target_list import Targets

UNMEASURED_SPREAD = 1.0
"""Of storages, or a machine, never probed: the time may be half or twice what is expected."""
LOCAL_SPREAD = 0.3
MOST_FAULTS = 100
"""So many reasons why targets cannot be cut are told; of objects the engine tells as many."""


@dataclass(frozen=True)
class StoreCost:
    """What one storage is expected to cost.

    Attributes:
        seconds: median.
        interval_s: 10th and 90th percentile.
        bytes: moved from the storage.
        requests: made to it; of local files, reads.
        objects: read from.
        targets: cut.
        headers_read: objects whose headers were read now, because the index lacked them.
        unreadable: objects that were looked into and cannot be read.
        measured: whether the storage was probed.
        compute_s: seconds of computing, over all threads.
    """

    seconds: float
    interval_s: tuple[float, float]
    bytes: int
    requests: int
    objects: int
    targets: int
    headers_read: int
    unreadable: int
    measured: bool
    compute_s: float


@dataclass(frozen=True)
class Prediction:
    """What a job is expected to cost.

    Attributes:
        seconds: median.
        interval_s: 10th and 90th percentile.
        bytes: moved from all storages.
        requests: made to all storages.
        per_store: by storage: its name or key; with several replicas, what each would cost alone.
        shares: the part of the objects that each replica serves in the cheapest mixture; none
            where it lacks what another has.
        explained: how some objects will be read; see `swathe predict --explain`.
        faults: why objects cannot be read, of up to a hundred of each storage, and why targets
            cannot be cut, each reason once.
        compute_s: seconds of computing, over all threads.
        beside_s: of a job of a portal, the part of `seconds` beside reading and cutting.
    """

    seconds: float
    interval_s: tuple[float, float]
    bytes: int
    requests: int
    per_store: dict[str, StoreCost]
    shares: dict[str, float] = field(default_factory=dict)
    explained: list[dict[str, Any]] = field(default_factory=list, repr=False)
    faults: list[str] = field(default_factory=list, repr=False)
    compute_s: float = 0.0
    beside_s: float = 0.0

    def _repr_html_(self) -> str:
        from swathe.files.notebook import page, table

        low, high = map(seconds_text, self.interval_s)
        facts = {
            "time": f"{seconds_text(self.seconds)} ({low} to {high} in 8 of 10 cases)",
            "moved": f"{size_text(self.bytes)} in {self.requests:,} requests",
            "computing": f"{seconds_text(self.compute_s)}, over all threads",
        }
        names = ["store", "time", "moved", "requests", "objects", "targets", "measured"]
        rows = [
            [
                *(root, seconds_text(cost.seconds), size_text(cost.bytes), f"{cost.requests:,}"),
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
        """Key of the one store that all comes from; empty where it is several, or no server."""
        roots = list(self.per_store)
        return roots[0] if len(roots) == 1 and not roots[0].startswith("file:") else ""


def predict(
    targets: Any,
    *,
    stores: Sequence[str] = (),
    workers: int = 1,
    mode: Mode = "trim",
    planes: tuple[int, int] | None = None,
    threads: int | None = None,
    file: str | os.PathLike[str] | None = None,
    size: Any = None,
    frame: str | None = None,
    ra: str | None = None,
    dec: str | None = None,
) -> Prediction:
    """Say what cutting these targets will cost, without reading a pixel.

    Args:
        targets: as for `cut_many`.
        stores: replicas: names of stores, in each of which the files lie under the same paths;
            plain paths below the folder of such a store are taken as its own.
        workers: machines like this one that share the work, and the storages.
        mode: as for `cut_many`.
        planes: as for `cut_many`, as a pair.
        threads: as for `cut_many`.
        file: as for `cut_many`, as are the others below.
        size: of targets that have none.
        frame: of positions.
        ra: name of the column of right ascension or longitude.
        dec: name of the column of declination or latitude.

    Headers are read where the index lacks them.

    Raises:
        TargetsError: where the list cannot be read.
        NoSuchStoreError: where there is no such store.
    """
    from swathe.core.errors import NoSuchStoreError
    from swathe.files.targets.target_list import choices_of, read_targets
    from swathe.stores.registry import is_named

    threads = threads or cores()
    planes = planes_of_list(planes)
    choices = choices_of(file=file, size=size, frame=frame, ra=ra, dec=dec)
    if not stores:
        read = read_targets(targets, sky_of, choices=choices)
        return _expected_of(read, mode, planes, threads, workers)
    for name in stores:
        if not is_named(f"{name}:x"):
            raise NoSuchStoreError(f"there is no store {name!r}")
    found = {}
    for name in stores:
        read = read_targets(targets, sky_of, store=name, choices=choices)
        found[name] = _expected_of(read, mode, planes, threads, workers)
    return mixture(found, threads * workers)


def _expected_of(
    read: Targets, mode: Mode, planes: tuple[int, int] | None, threads: int, machines: int
) -> Prediction:
    """Say what a list will cost, and why some of it cannot be cut."""
    found = expected(
        to_engine_job(read, mode=mode, planes=planes, threads=threads), machines=machines
    )
    first: dict[str, str] = {}
    for row, (status, reason) in sorted(read.faults.items()):
        if status != "no-overlap":
            first.setdefault(reason, f"target {read.ids[row]}: {reason}")
    return replace(found, faults=[*found.faults, *list(first.values())[:MOST_FAULTS]])


def to_engine_job(
    read: Targets,
    rows: Iterable[int] | None = None,
    names: list[str] | None = None,
    planes: tuple[int, ...] | None = None,
    **settings: Any,
) -> _swathe.Job:
    """Give targets as the engine takes them, those of some rows or all."""
    import numpy as np

    chosen = np.arange(len(read)) if rows is None else np.array(list(rows), np.int64)
    if rows is None:
        chosen = chosen[[row not in read.faults for row in chosen.tolist()]]
    return _swathe.Job(
        read.files,
        read.file[chosen],
        read.hdus,
        read.hdu[chosen],
        read.boxes[chosen],
        names if names is not None else [""] * len(chosen),
        planes=plane_spans(planes),
        # Only events have them.
        ids=[read.ids[row] for row in chosen.tolist()] if _swathe.trace_is_on() else None,
        **{"output": "", "kind": "folder", "stores": stores_for(read.files), **settings},
    )


def plane_spans(planes: tuple[int, ...] | None) -> list[tuple[int, int]]:
    """Give first and last on NAXIS3 and the axes behind it, of planes as `RowRecord` has them."""
    return [] if planes is None else list(zip(planes[::2], planes[1::2], strict=True))


def expected(job: _swathe.Job, most: int | None = None, machines: int = 1) -> Prediction:
    """Say what a job will cost; of each storage at most `most` objects are looked into."""
    estimates = json.loads(job.estimate(compute_costs(), most, machines))
    per_store, explained, faults = {}, [], []
    for estimate in estimates:
        per_store[estimate["root"]] = _cost(estimate)
        faults += estimate["faults"]
        explained += [{"root": estimate["root"], **how} for how in estimate["explained"]]
    # Objects are taken in the order of the list, so that storages mostly follow one another.
    seconds = sum(cost.seconds for cost in per_store.values())
    ratio = _ratio(per_store.values())
    return Prediction(
        seconds,
        _interval_s(seconds, ratio),
        sum(cost.bytes for cost in per_store.values()),
        sum(cost.requests for cost in per_store.values()),
        per_store,
        explained=explained,
        faults=faults,
        compute_s=sum(cost.compute_s for cost in per_store.values()),
    )


def mixture(alone: dict[str, Prediction], threads: int) -> Prediction:
    """Spread the work over replicas so that all end together: that is soonest.

    Each serves objects in proportion to its speed; computing is not made faster by that. One that
    lacks objects that another has serves none: it would seem fast for what it cannot give.
    """
    readable = {name: _readable(found) for name, found in alone.items()}
    whole = {name: alone[name] for name in alone if readable[name] == max(readable.values())}
    speeds = {name: 1 / max(found.seconds, 1e-9) for name, found in whole.items()}
    shares = {name: speeds.get(name, 0.0) / sum(speeds.values()) for name in alone}
    compute_s = max(found.compute_s for found in whole.values())
    seconds = max(1 / sum(speeds.values()), compute_s / threads)
    best = min(whole, key=lambda name: whole[name].seconds)
    if seconds > 0.98 * alone[best].seconds:
        # Not worth a second storage.
        seconds, shares = alone[best].seconds, {name: float(name == best) for name in alone}
    used = {name: alone[name] for name, share in shares.items() if share > 0}
    ratio = _ratio([cost for found in used.values() for cost in found.per_store.values()])
    return Prediction(
        seconds,
        _interval_s(seconds, ratio),
        round(sum(found.bytes * shares[name] for name, found in used.items())),
        round(sum(found.requests * shares[name] for name, found in used.items())),
        # Where no target can be cut, no storage is read.
        {name: cost for name, found in alone.items() for cost in [*found.per_store.values()][:1]},
        shares,
        [how for found in used.values() for how in found.explained],
        [fault for found in alone.values() for fault in found.faults],
        compute_s,
    )


def _readable(found: Prediction) -> int:
    """Give how many objects can be read."""
    return sum(cost.objects - cost.unreadable for cost in found.per_store.values())


def record_outcome(
    prediction: Prediction, meta: dict[str, Any], summary: str, cuts: int
) -> list[str]:
    """Note in the catalogue what became of a prediction, and how long real reads took.

    Gives what the user should be told. Where there is nothing to compare with, `cuts` is 0.

    The work is done by then, so that a catalogue that cannot be written is no more than a note.
    """
    from datetime import UTC, datetime

    from swathe.catalog import Catalog, Outcome, this_host

    low_s, high_s = prediction.interval_s
    outcome = Outcome(
        at=datetime.now(UTC),
        host=this_host(),
        summary=summary,
        targets=cuts,
        root=prediction.root,
        predicted_s=prediction.seconds,
        low_s=low_s,
        high_s=high_s,
        actual_s=meta["actual_s"],
        predicted_bytes=prediction.bytes,
        actual_bytes=meta["bytes_moved"],
        predicted_requests=prediction.requests,
        actual_requests=meta["requests"],
    )
    try:
        with Catalog.open() as catalog:
            if outcome.targets:
                catalog.add_outcome(outcome)
            if timings := _swathe.take_timings():
                from swathe.costs.fit.from_real_reads import feed_back

                feed_back(catalog, timings)
    except SwatheError as error:
        return [f"the prediction was not kept: {error}"]
    return []


def sky_of(file: str, hdu: HduKey | None) -> SkyMapping:
    """Give the place in the sky of an image."""
    from swathe.files.file import open_cached

    return open_cached(file).image(hdu).sky


def _cost(estimate: dict[str, Any]) -> StoreCost:
    seconds = estimate["seconds"]
    names = ("objects", "targets", "headers_read", "unreadable", "measured", "compute_s")
    return StoreCost(
        seconds,
        _interval_s(seconds, 1 + _spread(estimate)),
        **{name: estimate["traffic"][name] for name in ("bytes", "requests")},
        **{name: estimate[name] for name in names},
    )


def _interval_s(seconds: float, ratio: float) -> tuple[float, float]:
    return seconds / ratio, seconds * ratio


def _spread(estimate: dict[str, Any]) -> float:
    """Give half the relative range of the middle 80 %."""
    if estimate["root"].startswith("file://"):
        return UNMEASURED_SPREAD if compute_costs() is None else LOCAL_SPREAD
    if not estimate["measured"]:
        return UNMEASURED_SPREAD
    return max(spread_of(estimate["root"]), 0.05)


def _ratio(costs: Iterable[StoreCost]) -> float:
    return max((cost.interval_s[1] / cost.seconds for cost in costs if cost.seconds > 0), default=1)
