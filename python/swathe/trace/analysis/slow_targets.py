"""Slowest targets of a run, and the reasons: what they waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.trace.analysis.columns import codes_of, join_codes, numbers_of, text_of
from swathe.trace.analysis.stages import AROUND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from swathe.trace.analysis.spans import Spans
    from swathe.trace.ulm import Events

    Rows = NDArray[np.int64]

SLOWEST, CANDIDATES = 10, 100


@dataclass(frozen=True)
class SlowTarget:
    """A slow target, and the reasons.

    Attributes:
        begun_s: beginning, after the first event.
        elapsed_s: duration of its outermost stage.
        stage: its stage with the largest excess over the usual time.
        stage_s: duration of that stage.
        usual_s: median duration of that stage.
        alike: other targets of the same object among the slowest hundred.
        waiting_in: seconds of that stage during which stages of the same object ran that belong to
            no target, such as `FETCH`; by stage.
        others_in: seconds of that stage during which its thread worked for other targets or
            objects, by stage, without nested stages.
        requests: longest requests it waited for: stage, REQUEST, STORE or PEER, bytes, seconds.
        result: RESULT of the event.
    """

    target: str
    job: str
    object: str
    begun_s: float
    elapsed_s: float
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
) -> list[SlowTarget]:
    """Find the slowest targets, one per object.

    Args:
        events: events of a run.
        spans: its stages.
        outer: stages of targets that are not nested in another of the same target.
        begun_ns: beginning of the run.
        medians: median seconds of stages, by name.
    """
    objects = codes_of(events, "OBJECT")[0][spans.start]
    target = join_codes([codes_of(events, name)[0] for name in ("JOB", "TARGET", "OBJECT")])
    target = target[spans.start]
    # Refused targets were not worked on.
    outer = outer[spans.duration_ns[outer] > 0]
    medians_ns = np.array([1e9 * medians.get(name, 0.0) for name in spans.names])
    order = outer[np.argsort(-spans.duration_ns[outer], kind="stable")][:CANDIDATES]
    # Repeated work is of one object or, if that is unknown, of one target.
    group = np.where(objects >= 0, objects, -1 - target)[order]
    _, first = np.unique(group, return_index=True)
    slowest = []
    for at in np.sort(first)[:SLOWEST]:
        span = int(order[at])
        alike = len(np.unique(target[order[group == group[at]]])) - 1
        inside = _of_same(spans, target, span)
        slowest.append(_why(events, spans, span, inside, medians_ns, begun_ns, alike))
    return slowest


def _of_same(spans: Spans, target: Rows, span: int) -> Rows:
    """Return the stages of a target within one of its stages, including itself."""
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
) -> SlowTarget:
    # A stage that contains others is slow because of them; only its own part counts.
    others = inside[inside != span]
    inner = others if len(others) else inside
    beyond_ns = spans.duration_ns[inner] - medians_ns[spans.stage[inner]]
    worst = int(inner[np.argmax(beyond_ns)])
    if spans.own_ns[span] > spans.duration_ns[span] / 2:
        worst = span
    waiting, requests = _waiting(events, spans, worst)
    row = int(spans.start[span])
    return SlowTarget(
        target=text_of(events, "TARGET", row),
        job=text_of(events, "JOB", row),
        object=text_of(events, "OBJECT", row),
        begun_s=float(spans.start_ns[span] - begun_ns) / 1e9,
        elapsed_s=float(spans.duration_ns[span]) / 1e9,
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
    """Find the stages of the same object that ran beside a stage."""
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
            "elapsed_s": float(spans.duration_ns[each]) / 1e9,
        }
        for each in part[np.argsort(-over_ns, kind="stable")][:3]
    ]
    return dict(sorted(waiting.items(), key=lambda item: -item[1])), requests


def _others(events: Events, spans: Spans, span: int) -> dict[str, float]:
    """Find what the thread of a stage did meanwhile for other targets."""
    from_ns, until_ns = spans.start_ns[span], spans.end_ns[span]
    last = np.searchsorted(spans.start_ns, until_ns)
    part = np.flatnonzero(spans.is_nested[:last] & (spans.end_ns[:last] > from_ns))
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
    """Return the time during which at least one interval was open; `start_ns` is sorted."""
    if not len(start_ns):
        return 0
    latest_ns = np.maximum.accumulate(end_ns)
    gaps = np.maximum(start_ns[1:] - latest_ns[:-1], 0).sum()
    return int(latest_ns[-1] - start_ns[0] - gaps)
