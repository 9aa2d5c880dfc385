"""Report on a run: where its time went, by stages, slow targets, stalls and stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.costs.cost_model import Costs
from swathe.trace.analysis.align_clocks import SenderOffset, align_times
from swathe.trace.analysis.bottlenecks import Bottleneck, ServerTimes, find_bottlenecks
from swathe.trace.analysis.columns import codes_of, event_codes, join_codes, numbers_of, text_of
from swathe.trace.analysis.hosts import figures
from swathe.trace.analysis.parents import BESIDE, parents_of, roots_of
from swathe.trace.analysis.slow_targets import SlowTarget, find_slowest, union_ns
from swathe.trace.analysis.spans import END_EVENT, find_spans
from swathe.trace.analysis.stages import AROUND
from swathe.trace.analysis.stalls import Stall, find_stalls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from swathe.trace.analysis.spans import Spans
    from swathe.trace.ulm import Events

    Rows = NDArray[np.int64]

LONGEST_LIST = 100


@dataclass(frozen=True)
class StageTimes:
    """Totals of a stage; times in seconds.

    Attributes:
        share: its own time, without nested stages, as a fraction of all threads' time; `None` for
            stages that only wait while others work, such as cuts of one object made together. It
            may exceed 1 for stages that run beside others.
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
class StoreReads:
    """Reads from a store.

    Attributes:
        busy_s: time with at least one request in flight.
        in_flight: average number of requests in flight during that time.
        bytes_per_s: rate during that time.
        profiled_bytes_per_s: highest rate measured by `swathe probe`; `None` without profile.
        expected_bytes_per_s: predicted rate for requests of this size and concurrency.
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
class TraceReport:
    """The whole report.

    Attributes:
        begun_ns: first event, ns since 1970.
        elapsed_s: seconds until the last event.
        unfinished: stages that began and did not end, by name.
        servers: the disks of the servers of striped reads.
        bottlenecks: what slows striped reads: first damage, then other failures, then what is slow;
            of each, what costs most time first.
        last_begun: up to 100 of these: stage, target, object.
        orphans: ends without a beginning.
        dropped: events dropped by senders or the recorder.
        damaged: lines of the file that are not events; also those that collectors left out.
        hosts: average load over the whole run, by host.
        offsets: clock offsets of senders that were subtracted.
        notes: what could not be determined, and why.
    """

    begun_ns: int
    elapsed_s: float
    events: int
    stages: list[StageTimes]
    slowest: list[SlowTarget]
    stalls: list[Stall]
    stores: list[StoreReads]
    servers: list[ServerTimes]
    bottlenecks: list[Bottleneck]
    unfinished: dict[str, int]
    last_begun: list[dict[str, str]]
    orphans: int
    dropped: int
    damaged: int
    hosts: dict[str, dict[str, float]]
    offsets: list[SenderOffset]
    notes: list[str] = field(default_factory=list)


def make_report(
    events: Events, profiles: Mapping[str, Mapping[str, Any]] | None = None
) -> TraceReport:
    """Analyse where the time went.

    Args:
        events: events of a run.
        profiles: costs by name or root of a store, from the catalogue.
    """
    time_ns, offsets = align_times(events)
    spans = find_spans(events, time_ns)
    begun_ns = int(time_ns.min()) if len(time_ns) else 0
    stages = _stages(events, spans)
    medians = {stage.name: stage.median_s for stage in stages}
    notes: list[str] = []
    servers, bottlenecks = find_bottlenecks(events, spans, time_ns)
    outer = outermost_of_targets(events, spans)
    if not len(outer):
        notes.append("no stage has a TARGET: slow targets and stalls cannot be determined")
    return TraceReport(
        begun_ns=begun_ns,
        elapsed_s=float(time_ns.max(initial=begun_ns) - begun_ns) / 1e9,
        events=len(time_ns),
        stages=stages,
        slowest=find_slowest(events, spans, outer, begun_ns, medians),
        stalls=find_stalls(events, time_ns, spans, outer, begun_ns),
        stores=_stores(events, spans, profiles or {}, notes),
        servers=servers,
        bottlenecks=bottlenecks,
        unfinished=_by_name(events, spans.unfinished),
        last_begun=_open_stages(events, spans.unfinished),
        orphans=len(spans.orphans),
        dropped=_count_drops(events),
        damaged=events.damaged_count + _count_left_out(events),
        hosts=figures(events, time_ns),
        offsets=offsets,
        notes=notes,
    )


def outermost_of_targets(events: Events, spans: Spans) -> Rows:
    """Return the stages of targets that are not nested in another stage of the same target."""
    target = join_codes([codes_of(events, "JOB")[0], codes_of(events, "TARGET")[0]])[spans.start]
    has = codes_of(events, "TARGET")[0][spans.start] >= 0
    around = np.isin(spans.stage, [n for n, name in enumerate(spans.names) if name in AROUND])
    within = parents_of(events, spans)
    parent = np.maximum(within, 0)
    inner = (within >= 0) & has[parent] & (target[parent] == target) & ~around[parent]
    return np.flatnonzero(has & ~inner & ~around)


def _stages(events: Events, spans: Spans) -> list[StageTimes]:
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
    # If stages begin in a thread before others have ended, the working one is unknown.
    works = spans.is_nested & ~around[spans.stage] & ~beside[spans.stage[roots_of(spans.parent)]]
    work_s = np.bincount(spans.stage, weights=own_s * works, minlength=count)
    # If nothing else was recorded, the stages that run beside are all there is.
    whole_s = float(work_s.sum()) or float(owns[~around].sum()) or 1.0
    shares = np.where(beside, owns, work_s) / whole_s
    works_at_all = np.bincount(spans.stage, weights=works, minlength=count) > 0
    sorted_s = seconds[np.lexsort((seconds, spans.stage))]
    ends = np.cumsum(number)
    stages = []
    for stage in np.argsort(-owns, kind="stable"):
        times = sorted_s[ends[stage] - number[stage] : ends[stage]]
        if len(times):
            median_s, p95_s = np.percentile(times, (50, 95))
            stages.append(
                StageTimes(
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
    return stages


def _stores(
    events: Events,
    spans: Spans,
    profiles: Mapping[str, Mapping[str, Any]],
    notes: list[str],
) -> list[StoreReads]:
    fetch = [n for n, name in enumerate(spans.names) if name == "FETCH"]
    # Requests of the host monitor are not work.
    by_monitor = codes_of(events, "MONITOR")[0][spans.start] >= 0
    fetches = np.flatnonzero(np.isin(spans.stage, fetch) & ~by_monitor)
    stores, words = codes_of(events, "STORE")
    sizes = np.nan_to_num(numbers_of(events, "BYTES"))
    failed = _is(events, "RESULT", "error")
    summaries = []
    for code in np.unique(stores[spans.start[fetches]]):
        part = fetches[stores[spans.start[fetches]] == code]
        name = words[code] if code >= 0 else ""
        busy_s = union_ns(spans.start_ns[part], spans.end_ns[part]) / 1e9
        seconds = spans.duration_ns[part] / 1e9
        size = int(sizes[spans.end[part]].sum())
        in_flight = float(seconds.sum()) / busy_s if busy_s else 0.0
        costs = profiles.get(name)
        if costs is None:
            notes.append(f"{name or 'FETCH without STORE'}: no profile; see: swathe probe")
        summaries.append(
            StoreReads(
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
                else _profile_rate(Costs.from_dict(costs), len(part), size, in_flight),
            )
        )
    return sorted(summaries, key=lambda store: -store.bytes)


def _profile_rate(costs: Costs, requests: int, size: int, in_flight: float) -> float | None:
    if not size:
        return None
    streams = max(round(in_flight), 1)
    return size / float(costs.read_s(size, requests, streams, 0))


def _is(events: Events, name: str, word: str) -> NDArray[np.bool_]:
    """Return the mask of events whose field is a word."""
    codes, words = codes_of(events, name)
    return codes == words.index(word) if word in words else np.zeros(len(codes), bool)


def _by_name(events: Events, rows: Rows) -> dict[str, int]:
    number = np.bincount(events.event.codes[rows], minlength=len(events.event.words))
    return {
        events.event.words[code].removesuffix("_START"): int(number[code])
        for code in np.argsort(-number, kind="stable")
        if number[code]
    }


def _open_stages(events: Events, rows: Rows) -> list[dict[str, str]]:
    return [
        {
            "stage": events.event.words[events.event.codes[row]].removesuffix("_START"),
            "target": text_of(events, "TARGET", int(row)),
            "object": text_of(events, "OBJECT", int(row)),
        }
        for row in rows[-LONGEST_LIST:]
    ]


def _count_drops(events: Events) -> int:
    rows = np.isin(events.event.codes, event_codes(events, [END_EVENT]))
    return int(np.nansum(numbers_of(events, "DROPPED")[rows]))


def _count_left_out(events: Events) -> int:
    """Count the events that collectors could not accept."""
    rows = np.isin(events.event.codes, event_codes(events, ["DAMAGED"]))
    kinds = ("DAMAGED", "LONG", "HALF")
    return int(sum(np.nansum(numbers_of(events, kind)[rows]) for kind in kinds))
