"""Where the time of a run went: stages, slow targets, stalls, stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.costs.cost_model import Costs
from swathe.trace.analysis.align_clocks import Offset, aligned
from swathe.trace.analysis.columns import codes_of, event_codes, joined, numbers_of, text_of
from swathe.trace.analysis.hosts import figures
from swathe.trace.analysis.parents import BESIDE, parents_of, roots_of
from swathe.trace.analysis.slow_targets import Slow, find_slowest, union_ns
from swathe.trace.analysis.spans import ENDED, find_spans
from swathe.trace.analysis.stages import AROUND
from swathe.trace.analysis.stalls import Stall, find_stalls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from swathe.trace import Events
    from swathe.trace.analysis.spans import Spans

    Rows = NDArray[np.int64]

TOLD = 100


@dataclass(frozen=True)
class Stage:
    """A stage, over all that went through it; seconds.

    Attributes:
        share: its own time, without the stages in it, of that of all threads; `None` for those
            that only wait while others work, as cuts of one object that are made together. Of
            those that run beside others it may exceed 1.
    """

    name: str
    count: int
    total_s: float
    own_s: float
    share: float | None
    median_s: float
    p95_s: float
    max_s: float
    bytes: int
    failed: int


@dataclass(frozen=True)
class Store:
    """What was read from a store.

    Attributes:
        busy_s: at least one request was under way.
        in_flight: requests, on average over that time.
        bytes_per_s: over that time.
        profiled_bytes_per_s: the most that was measured by `swathe probe`; `None` without profile.
        expected_bytes_per_s: what the profile predicts for requests of this size, so many at once.
    """

    name: str
    requests: int
    bytes: int
    failed: int
    busy_s: float
    in_flight: float
    median_s: float
    bytes_per_s: float
    profiled_bytes_per_s: float | None
    expected_bytes_per_s: float | None


@dataclass(frozen=True)
class Report:
    """All of it.

    Attributes:
        begun_ns: the first event, ns since 1970.
        seconds: until the last.
        unfinished: stages that began and did not end, by name.
        last_begun: of these, up to 100: stage, target, object.
        orphans: ends without a beginning.
        dropped: events that senders, or the recorder, could not keep.
        damaged: lines of the file that are no events; and what collectors left out.
        hosts: average figures over the whole run, by host.
        offsets: what was taken off the clocks of senders.
        notes: what could not be told, and why.
    """

    begun_ns: int
    seconds: float
    events: int
    stages: list[Stage]
    slowest: list[Slow]
    stalls: list[Stall]
    stores: list[Store]
    unfinished: dict[str, int]
    last_begun: list[dict[str, str]]
    orphans: int
    dropped: int
    damaged: int
    hosts: dict[str, dict[str, float]]
    offsets: list[Offset]
    notes: list[str] = field(default_factory=list)


def make_report(events: Events, profiles: Mapping[str, Mapping[str, Any]] | None = None) -> Report:
    """Look where the time went.

    Args:
        events: of a run.
        profiles: costs by the name or the root of a store, as the catalogue has them.
    """
    time_ns, offsets = aligned(events)
    spans = find_spans(events, time_ns)
    begun_ns = int(time_ns.min()) if len(time_ns) else 0
    stages = _stages(events, spans)
    medians = {stage.name: stage.median_s for stage in stages}
    notes: list[str] = []
    outer = outermost_of_targets(events, spans)
    if not len(outer):
        notes.append("no stage has a TARGET: slow targets and stalls cannot be told")
    return Report(
        begun_ns=begun_ns,
        seconds=float(time_ns.max(initial=begun_ns) - begun_ns) / 1e9,
        events=len(time_ns),
        stages=stages,
        slowest=find_slowest(events, spans, outer, begun_ns, medians),
        stalls=find_stalls(events, time_ns, spans, outer, begun_ns),
        stores=_stores(events, spans, profiles or {}, notes),
        unfinished=_by_name(events, spans.unfinished),
        last_begun=_last_begun(events, spans.unfinished),
        orphans=len(spans.orphans),
        dropped=_dropped(events),
        damaged=events.damaged_count + _left_out(events),
        hosts=figures(events, time_ns),
        offsets=offsets,
        notes=notes,
    )


def outermost_of_targets(events: Events, spans: Spans) -> Rows:
    """Give the stages of targets that lie in no other stage of the same target."""
    target = joined([codes_of(events, "JOB")[0], codes_of(events, "TARGET")[0]])[spans.start]
    has = codes_of(events, "TARGET")[0][spans.start] >= 0
    around = np.isin(spans.stage, [n for n, name in enumerate(spans.names) if name in AROUND])
    within = parents_of(events, spans)
    parent = np.maximum(within, 0)
    inner = (within >= 0) & has[parent] & (target[parent] == target) & ~around[parent]
    return np.flatnonzero(has & ~inner & ~around)


def _stages(events: Events, spans: Spans) -> list[Stage]:
    count = len(spans.names)
    if not len(spans):
        return []
    seconds, own_s = spans.duration_ns / 1e9, spans.own_ns / 1e9
    size = np.nan_to_num(numbers_of(events, "BYTES")[spans.end])
    failed = _is(events, "RESULT", "error")[spans.end]
    number = np.bincount(spans.stage, minlength=count)
    totals = np.bincount(spans.stage, weights=seconds, minlength=count)
    owns = np.bincount(spans.stage, weights=own_s, minlength=count)
    sizes = np.bincount(spans.stage, weights=size, minlength=count)
    faults = np.bincount(spans.stage, weights=failed, minlength=count)
    around = np.array([name in AROUND for name in spans.names])
    beside = np.array([name in BESIDE for name in spans.names])
    # Of those that begin in a thread before others have ended no one can say who works.
    works = spans.nested & ~around[spans.stage] & ~beside[spans.stage[roots_of(spans.parent)]]
    worked = np.bincount(spans.stage, weights=own_s * works, minlength=count)
    # Where nothing else was recorded, what runs beside is all there is.
    whole_s = float(worked.sum()) or float(owns[~around].sum()) or 1.0
    shares = np.where(beside, owns, worked) / whole_s
    works_at_all = np.bincount(spans.stage, weights=works, minlength=count) > 0
    ordered = seconds[np.lexsort((seconds, spans.stage))]
    ends = np.cumsum(number)
    found = []
    for stage in np.argsort(-owns, kind="stable"):
        times = ordered[ends[stage] - number[stage] : ends[stage]]
        if len(times):
            median_s, p95_s = np.percentile(times, (50, 95))
            found.append(
                Stage(
                    name=spans.names[stage],
                    count=len(times),
                    total_s=float(totals[stage]),
                    own_s=float(owns[stage]),
                    share=float(shares[stage]) if works_at_all[stage] or beside[stage] else None,
                    median_s=float(median_s),
                    p95_s=float(p95_s),
                    max_s=float(times[-1]),
                    bytes=int(sizes[stage]),
                    failed=int(faults[stage]),
                )
            )
    return found


def _stores(
    events: Events,
    spans: Spans,
    profiles: Mapping[str, Mapping[str, Any]],
    notes: list[str],
) -> list[Store]:
    fetch = [n for n, name in enumerate(spans.names) if name == "FETCH"]
    # What a host monitor asks for is no work.
    asked = codes_of(events, "MONITOR")[0][spans.start] >= 0
    fetches = np.flatnonzero(np.isin(spans.stage, fetch) & ~asked)
    stores, words = codes_of(events, "STORE")
    sizes = np.nan_to_num(numbers_of(events, "BYTES"))
    failed = _is(events, "RESULT", "error")
    found = []
    for code in np.unique(stores[spans.start[fetches]]):
        part = fetches[stores[spans.start[fetches]] == code]
        name = words[code] if code >= 0 else ""
        busy_s = union_ns(spans.start_ns[part], spans.end_ns[part]) / 1e9
        seconds = spans.duration_ns[part] / 1e9
        size = int(sizes[spans.end[part]].sum())
        in_flight = float(seconds.sum()) / busy_s if busy_s else 0.0
        costs = profiles.get(name)
        if costs is None:
            notes.append(f"{name or 'FETCH without STORE'}: has no profile; see: swathe probe")
        found.append(
            Store(
                name=name,
                requests=len(part),
                bytes=size,
                failed=int(failed[spans.end[part]].sum()),
                busy_s=busy_s,
                in_flight=in_flight,
                median_s=float(np.median(seconds)),
                bytes_per_s=size / busy_s if busy_s else 0.0,
                profiled_bytes_per_s=None if costs is None else float(costs["total_bytes_per_s"]),
                expected_bytes_per_s=None
                if costs is None
                else _expected(Costs.from_dict(costs), len(part), size, in_flight),
            )
        )
    return sorted(found, key=lambda store: -store.bytes)


def _expected(costs: Costs, requests: int, size: int, in_flight: float) -> float | None:
    if not size:
        return None
    streams = max(round(in_flight), 1)
    return size / float(costs.read_s(size, requests, streams, 0))


def _is(events: Events, name: str, word: str) -> NDArray[np.bool_]:
    """Tell of which events a field is a word."""
    codes, words = codes_of(events, name)
    return codes == words.index(word) if word in words else np.zeros(len(codes), bool)


def _by_name(events: Events, rows: Rows) -> dict[str, int]:
    number = np.bincount(events.event.codes[rows], minlength=len(events.event.words))
    return {
        events.event.words[code].removesuffix("_START"): int(number[code])
        for code in np.argsort(-number, kind="stable")
        if number[code]
    }


def _last_begun(events: Events, rows: Rows) -> list[dict[str, str]]:
    return [
        {
            "stage": events.event.words[events.event.codes[row]].removesuffix("_START"),
            "target": text_of(events, "TARGET", int(row)),
            "object": text_of(events, "OBJECT", int(row)),
        }
        for row in rows[-TOLD:]
    ]


def _dropped(events: Events) -> int:
    rows = np.isin(events.event.codes, event_codes(events, [ENDED]))
    return int(np.nansum(numbers_of(events, "DROPPED")[rows]))


def _left_out(events: Events) -> int:
    """Count what collectors could not take."""
    rows = np.isin(events.event.codes, event_codes(events, ["DAMAGED"]))
    kinds = ("DAMAGED", "LONG", "HALF")
    return int(sum(np.nansum(numbers_of(events, kind)[rows]) for kind in kinds))
