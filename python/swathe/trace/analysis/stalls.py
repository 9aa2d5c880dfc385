"""Stalls: times in which many targets were in progress, and almost none ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swathe.trace.analysis.hosts import figures
from swathe.trace.analysis.stages import AROUND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.trace.analysis.spans import Spans
    from swathe.trace.ulm import Events

    Rows = NDArray[np.int64]

USUAL_ENDS = 20
"""Average number of targets that end in one interval."""
ALMOST_NOTHING = 0.05
"""Fraction of these that counts as almost none."""
DURATIONS = 2.0
"""Shortest interval, in usual durations of a target."""
MANY = 0.5
"""Fraction of the usual number of targets in progress; at least two."""
LONGEST_LIST = 20


@dataclass(frozen=True)
class Stall:
    """A stall.

    Attributes:
        begun_s: beginning, after the first event.
        duration_s: seconds until targets ended again.
        targets: targets in progress all the time.
        end_count: targets that ended in that time.
        usual_count: targets that usually end in that time.
        stage: stage with the most time; empty if nothing else was recorded.
        stages: seconds by stage, summed over all in progress; longest first.
        hosts: average load by host, as far as recorded.
    """

    begun_s: float
    duration_s: float
    targets: int
    end_count: int
    usual_count: float
    stage: str
    stages: dict[str, float]
    hosts: dict[str, dict[str, float]]


def find_stalls(
    events: Events, time_ns: NDArray[np.int64], spans: Spans, outer: Rows, begun_ns: int
) -> list[Stall]:
    """Find the stalls of a run, at most 20, longest first.

    Args:
        events: events of the run.
        time_ns: their times.
        spans: its stages.
        outer: outermost stages of targets.
        begun_ns: time of the first event.
    """
    if len(outer) < 2 * USUAL_ENDS:
        return []
    starts, ends = np.sort(spans.start_ns[outer]), np.sort(spans.end_ns[outer])
    whole_ns = int(ends[-1] - starts[0])
    if whole_ns <= 0:
        return []
    usual_ns = float(np.median(spans.duration_ns[outer]))
    piece_ns = int(max(USUAL_ENDS * whole_ns / len(outer), DURATIONS * usual_ns, 1))
    # Intervals overlap by half, so that none is missed because of its beginning.
    edges = np.arange(starts[0], ends[-1], max(piece_ns // 2, 1))
    end_count = np.searchsorted(ends, edges + piece_ns) - np.searchsorted(ends, edges)
    # At least this many were in progress from beginning to end.
    under_way = np.searchsorted(starts, edges, side="right") - np.searchsorted(
        ends, edges + piece_ns, side="right"
    )
    usual_count = len(outer) * piece_ns / whole_ns
    usually = np.searchsorted(starts, edges, side="right") - np.searchsorted(ends, edges)
    many = max(2.0, MANY * float(np.median(usually)))
    is_stall = (end_count <= np.ceil(ALMOST_NOTHING * usual_count)) & (under_way >= many)
    runs = np.flatnonzero(np.diff(np.concatenate([[False], is_stall, [False]])))
    stalls = []
    for first, after in runs.reshape(-1, 2):
        from_ns, until_ns = _exactly(ends, int(edges[first]), int(edges[after - 1]) + piece_ns)
        stalls.append((until_ns - from_ns, from_ns, until_ns))
    stalls.sort(reverse=True)
    rate = len(outer) / whole_ns
    return [
        _stall(events, time_ns, spans, outer, from_ns, until_ns, begun_ns, rate)
        for _, from_ns, until_ns in stalls[:LONGEST_LIST]
    ]


def _exactly(ends: Rows, from_ns: int, until_ns: int) -> tuple[int, int]:
    """Return the longest time without an end around or within this interval, or itself."""
    first = max(int(np.searchsorted(ends, from_ns)) - 1, 0)
    last = min(int(np.searchsorted(ends, until_ns)), len(ends) - 1)
    around = ends[first : last + 1]
    gaps = np.diff(around)
    if not len(gaps):
        return from_ns, until_ns
    at = int(np.argmax(gaps))
    if gaps[at] >= (until_ns - from_ns) / 2:
        return int(around[at]), int(around[at + 1])
    return from_ns, until_ns


def _stall(
    events: Events,
    time_ns: NDArray[np.int64],
    spans: Spans,
    outer: Rows,
    from_ns: int,
    until_ns: int,
    begun_ns: int,
    rate: float,
) -> Stall:
    last = np.searchsorted(spans.start_ns, until_ns)
    over_ns = np.minimum(spans.end_ns[:last], until_ns) - np.maximum(spans.start_ns[:last], from_ns)
    is_outer = np.zeros(len(spans), bool)
    is_outer[outer] = True
    around = np.array([name in AROUND for name in spans.names])
    counts = np.flatnonzero((over_ns > 0) & ~is_outer[:last] & ~around[spans.stage[:last]])
    seconds = np.bincount(
        spans.stage[counts], weights=over_ns[counts] / 1e9, minlength=len(spans.names)
    )
    stages = {
        spans.names[stage]: float(seconds[stage])
        for stage in np.argsort(-seconds, kind="stable")
        if seconds[stage]
    }
    begins, ends = spans.start_ns[outer], spans.end_ns[outer]
    end_count = int(((ends > from_ns) & (ends < until_ns)).sum())
    return Stall(
        begun_s=(from_ns - begun_ns) / 1e9,
        duration_s=(until_ns - from_ns) / 1e9,
        targets=int(((begins <= from_ns + (until_ns - from_ns) // 10) & (ends >= until_ns)).sum()),
        end_count=end_count,
        usual_count=rate * (until_ns - from_ns),
        stage=next(iter(stages), ""),
        stages=stages,
        hosts=figures(events, time_ns, from_ns, until_ns),
    )
