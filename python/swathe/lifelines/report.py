"""Where the time of a run went: stages, slow targets, stalls, stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.lifelines.columns import codes_of, event_codes, joined, numbers_of, text_of
from swathe.lifelines.families import BESIDE, parents_of, roots_of
from swathe.lifelines.hosts import figures
from swathe.lifelines.offsets import Offset, aligned
from swathe.lifelines.spans import ENDED, find_spans
from swathe.lifelines.stages import AROUND
from swathe.lifelines.stalls import Stall, find_stalls
from swathe.measuring.costs import Costs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from swathe.lifelines.spans import Spans
    from swathe.trace import Events

    Rows = NDArray[np.int64]

SLOWEST, SEEN = 10, 100
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
class Slow:
    """A target that took long, and why.

    Attributes:
        begun_s: after the first event.
        seconds: of its outermost stage.
        stage: the one in it that took the most beyond what it usually takes.
        stage_s: so long it took.
        usual_s: the median of that stage.
        alike: so many others of the same object are among the slowest hundred.
        waiting_in: seconds of that stage during which something of the same object was under way
            that belongs to no target, as `FETCH`; by stage.
        requests: the longest of these: stage, REQUEST, STORE or PEER, bytes, seconds.
        result: as the event has it.
    """

    target: str
    job: str
    object: str
    begun_s: float
    seconds: float
    stage: str
    stage_s: float
    usual_s: float
    alike: int
    waiting_in: dict[str, float]
    requests: list[dict[str, Any]]
    result: str


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
    notes: list[str] = []
    outer = outermost_of_targets(events, spans)
    if not len(outer):
        notes.append("no stage has a TARGET: slow targets and stalls cannot be told")
    return Report(
        begun_ns=begun_ns,
        seconds=float(time_ns.max(initial=begun_ns) - begun_ns) / 1e9,
        events=len(time_ns),
        stages=stages,
        slowest=_slowest(events, spans, outer, begun_ns, stages),
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


def _slowest(
    events: Events, spans: Spans, outer: Rows, begun_ns: int, stages: list[Stage]
) -> list[Slow]:
    """Find the targets that took longest, one of each object."""
    objects = codes_of(events, "OBJECT")[0][spans.start]
    target = joined([codes_of(events, name)[0] for name in ("JOB", "TARGET", "OBJECT")])
    target = target[spans.start]
    medians = {stage.name: stage.median_s for stage in stages}
    medians_ns = np.array([1e9 * medians.get(name, 0.0) for name in spans.names])
    order = outer[np.argsort(-spans.duration_ns[outer], kind="stable")][:SEEN]
    # What was done twice is of one object and, where that is not known, of one target.
    group = np.where(objects >= 0, objects, -1 - target)[order]
    _, first = np.unique(group, return_index=True)
    found = []
    for at in np.sort(first)[:SLOWEST]:
        span = int(order[at])
        alike = len(np.unique(target[order[group == group[at]]])) - 1
        inside = _of_same(spans, target, span)
        found.append(_why(events, spans, span, inside, medians_ns, begun_ns, alike))
    return found


def _of_same(spans: Spans, target: Rows, span: int) -> Rows:
    """Give the stages of a target within one of its stages, itself too."""
    from_ns, until_ns = spans.start_ns[span], spans.end_ns[span]
    first, last = np.searchsorted(spans.start_ns, [from_ns, until_ns], side="left")
    part = np.arange(first, max(last, first + 1))
    same = (target[part] == target[span]) & (spans.end_ns[part] <= until_ns)
    return np.union1d(part[same], [span])


def _why(
    events: Events,
    spans: Spans,
    span: int,
    inside: Rows,
    medians_ns: NDArray[np.float64],
    begun_ns: int,
    alike: int,
) -> Slow:
    # A stage with others in it is late because they are; what counts is its own part.
    others = inside[inside != span]
    inner = others if len(others) else inside
    beyond_ns = spans.duration_ns[inner] - medians_ns[spans.stage[inner]]
    worst = int(inner[np.argmax(beyond_ns)])
    if spans.own_ns[span] > spans.duration_ns[span] / 2:
        worst = span
    waiting, requests = _waiting(events, spans, worst)
    row = int(spans.start[span])
    return Slow(
        target=text_of(events, "TARGET", row),
        job=text_of(events, "JOB", row),
        object=text_of(events, "OBJECT", row),
        begun_s=float(spans.start_ns[span] - begun_ns) / 1e9,
        seconds=float(spans.duration_ns[span]) / 1e9,
        stage=spans.names[spans.stage[worst]],
        stage_s=float(spans.duration_ns[worst]) / 1e9,
        usual_s=float(medians_ns[spans.stage[worst]]) / 1e9,
        alike=alike,
        waiting_in=waiting,
        requests=requests,
        result=text_of(events, "RESULT", int(spans.end[span])),
    )


def _waiting(
    events: Events, spans: Spans, span: int
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Find what of the same object was under way beside a stage."""
    objects = codes_of(events, "OBJECT")[0][spans.start]
    targets = codes_of(events, "TARGET")[0][spans.start]
    if objects[span] < 0:
        return {}, []
    from_ns, until_ns = spans.start_ns[span], spans.end_ns[span]
    last = np.searchsorted(spans.start_ns, until_ns)
    part = np.flatnonzero((objects[:last] == objects[span]) & (targets[:last] < 0))
    part = part[spans.end_ns[part] > from_ns]
    beside = [name not in AROUND for name in spans.names]
    part = part[np.array(beside, bool)[spans.stage[part]]] if len(part) else part
    over_ns = np.minimum(spans.end_ns[part], until_ns) - np.maximum(spans.start_ns[part], from_ns)
    waiting = {
        spans.names[stage]: union_ns(
            np.maximum(spans.start_ns[part[spans.stage[part] == stage]], from_ns),
            np.minimum(spans.end_ns[part[spans.stage[part] == stage]], until_ns),
        )
        / 1e9
        for stage in np.unique(spans.stage[part])
    }
    sizes = numbers_of(events, "BYTES")
    requests = [
        {
            "stage": spans.names[spans.stage[each]],
            "request": text_of(events, "REQUEST", int(spans.start[each])),
            "from": text_of(events, "STORE", int(spans.start[each]))
            or text_of(events, "PEER", int(spans.start[each])),
            "bytes": int(np.nan_to_num(sizes[spans.end[each]])),
            "seconds": float(spans.duration_ns[each]) / 1e9,
        }
        for each in part[np.argsort(-over_ns, kind="stable")][:3]
    ]
    return dict(sorted(waiting.items(), key=lambda item: -item[1])), requests


def union_ns(start_ns: Rows, end_ns: Rows) -> int:
    """Give how long at least one of these was under way; they are in order of their start."""
    if not len(start_ns):
        return 0
    reached = np.maximum.accumulate(end_ns)
    gaps = np.maximum(start_ns[1:] - reached[:-1], 0).sum()
    return int(reached[-1] - start_ns[0] - gaps)


def _stores(
    events: Events,
    spans: Spans,
    profiles: Mapping[str, Mapping[str, Any]],
    notes: list[str],
) -> list[Store]:
    fetch = [n for n, name in enumerate(spans.names) if name == "FETCH"]
    fetches = np.flatnonzero(np.isin(spans.stage, fetch))
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
