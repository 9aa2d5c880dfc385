"""The targets of a run that took longest, and why: what they waited for, and behind whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.trace.analysis.columns import codes_of, joined, numbers_of, text_of
from swathe.trace.analysis.stages import AROUND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from swathe.trace import Events
    from swathe.trace.analysis.spans import Spans

    Rows = NDArray[np.int64]

SLOWEST, SEEN = 10, 100


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
        others_in: seconds of that stage during which its thread did something for other targets
            or objects, by stage, without the stages in it.
        requests: the longest of what was waited for: stage, REQUEST, STORE or PEER, bytes, seconds.
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
    others_in: dict[str, float]
    requests: list[dict[str, Any]]
    result: str


def find_slowest(
    events: Events, spans: Spans, outer: Rows, begun_ns: int, medians: Mapping[str, float]
) -> list[Slow]:
    """Find the targets that took longest, one of each object.

    Args:
        events: of a run.
        spans: its stages.
        outer: those of targets that lie in no other of the same target.
        begun_ns: when the run began.
        medians: what stages usually take, seconds by name.
    """
    objects = codes_of(events, "OBJECT")[0][spans.start]
    target = joined([codes_of(events, name)[0] for name in ("JOB", "TARGET", "OBJECT")])
    target = target[spans.start]
    # Of what was refused nothing was done.
    outer = outer[spans.duration_ns[outer] > 0]
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
        others_in=_others(events, spans, worst),
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


def _others(events: Events, spans: Spans, span: int) -> dict[str, float]:
    """Find what the thread of a stage did meanwhile that was of no use to its target."""
    from_ns, until_ns = spans.start_ns[span], spans.end_ns[span]
    last = np.searchsorted(spans.start_ns, until_ns)
    part = np.flatnonzero(spans.nested[:last] & (spans.end_ns[:last] > from_ns))
    of, own = spans.start[part], spans.start[span]
    codes = {
        name: codes_of(events, name)[0]
        for name in ("HOST", "PID", "THREAD", "JOB", "TARGET", "OBJECT")
    }
    same = {name: column[of] == column[own] for name, column in codes.items()}
    mine = same["JOB"] & same["OBJECT"] & (same["TARGET"] | (codes["TARGET"][of] < 0))
    around = np.array([name in AROUND for name in spans.names])[spans.stage[part]]
    part = part[same["HOST"] & same["PID"] & same["THREAD"] & ~mine & ~around]
    over_ns = np.minimum(spans.end_ns[part], until_ns) - np.maximum(spans.start_ns[part], from_ns)
    spent_s = np.bincount(
        spans.stage[part], np.minimum(over_ns, spans.own_ns[part]) / 1e9, len(spans.names)
    )
    return {
        spans.names[stage]: float(spent_s[stage])
        for stage in np.argsort(-spent_s, kind="stable")
        if spent_s[stage] > 0
    }


def union_ns(start_ns: Rows, end_ns: Rows) -> int:
    """Give how long at least one of these was under way; they are in order of their start."""
    if not len(start_ns):
        return 0
    reached = np.maximum.accumulate(end_ns)
    gaps = np.maximum(start_ns[1:] - reached[:-1], 0).sum()
    return int(reached[-1] - start_ns[0] - gaps)
