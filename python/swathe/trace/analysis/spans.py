"""Stages with beginning and end, found in events, and their nesting.

A START and an END form a pair if they have the same name, process and ids. Among several candidates
those of one thread come first, and of these the innermost. Nesting is derived from threads: a stage
that begins and ends in one thread is nested in the stages that this thread has not ended yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from swathe.trace.analysis.columns import codes_of, join_codes
from swathe.trace.analysis.stages import partners

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.trace.ulm import Events

    Rows = NDArray[np.int64]
    Mask = NDArray[np.bool_]

DEEPEST = 64
"""Deepest nesting in one thread; more are concurrent stages that alternate in it."""
ROUNDS = 4
END_EVENT = "TRACE_END"
"""The last point of a recorder, with its dropped events; not a stage."""


@dataclass(frozen=True)
class Spans:
    """Stages in order of their beginning, as parallel arrays.

    Attributes:
        names: names of stages.
        stage: index of the name.
        start, end: rows of the two events.
        start_ns, end_ns: their times.
        parent: enclosing stage of the same thread, -1 for none.
        is_nested: whether it and its nested stages alternate properly in one thread.
        own_ns: its time without nested stages.
        unfinished: rows of beginnings without an end.
        orphans: rows of ends without a beginning.
    """

    names: tuple[str, ...]
    stage: Rows
    start: Rows
    end: Rows
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    parent: Rows
    is_nested: Mask
    own_ns: NDArray[np.int64]
    unfinished: Rows
    orphans: Rows

    def __len__(self) -> int:
        return len(self.stage)

    @cached_property
    def duration_ns(self) -> NDArray[np.int64]:
        """Durations; never negative, even if a clock was set back."""
        lasting: Rows = np.maximum(self.end_ns - self.start_ns, 0)
        return lasting


def find_spans(events: Events, time_ns: NDArray[np.int64]) -> Spans:
    """Find the stages of events with these times."""
    names, stages, kinds = _stages(events.event.words)
    kind = kinds[events.event.codes]
    stage = stages[events.event.codes]
    partner = partners(events)
    starts = np.flatnonzero((kind > 0) & (partner >= 0))
    ends = partner[starts]
    over = np.flatnonzero((kind != 0) & (partner < 0))
    thread = codes_of(events, "THREAD")[0]
    order = np.lexsort((starts, -time_ns[ends], time_ns[starts]))
    starts, ends = starts[order], ends[order]
    track = join_codes([codes_of(events, name)[0] for name in ("HOST", "PID")] + [thread])
    parent, is_nested, own_ns = _nesting(
        stage[starts], track[starts], time_ns[starts], time_ns[ends], track[starts] == track[ends]
    )
    return Spans(
        names=names,
        stage=stage[starts],
        start=starts,
        end=ends,
        start_ns=time_ns[starts],
        end_ns=time_ns[ends],
        parent=parent,
        is_nested=is_nested,
        own_ns=own_ns,
        unfinished=over[kind[over] > 0],
        orphans=over[kind[over] < 0],
    )


def _stages(words: tuple[str, ...]) -> tuple[tuple[str, ...], Rows, Rows]:
    """Return names of stages; for each event the index of its stage, and 1, -1 or 0."""
    names: dict[str, int] = {}
    stages = np.full(len(words) + 1, -1, np.int64)
    kinds = np.zeros(len(words) + 1, np.int64)
    for code, word in enumerate(words):
        for ending, kind in (("_START", 1), ("_END", -1)):
            if word.endswith(ending) and len(word) > len(ending) and word != END_EVENT:
                stages[code] = names.setdefault(word.removesuffix(ending), len(names))
                kinds[code] = kind
    return tuple(names), stages, kinds


def _nesting(
    stage: Rows, track: Rows, begun_ns: Rows, over_ns: Rows, is_nested: Mask
) -> tuple[Rows, Mask, Rows]:
    """Return parents, which stages alternate properly in one thread, and own times."""
    # Stages that overlap with others of the same kind, such as cuts made together.
    together = _together(join_codes([track, stage]), begun_ns, over_ns)
    is_nested = is_nested & (over_ns > begun_ns) & ~together
    for tries in range(ROUNDS + 2):
        inside = np.flatnonzero(is_nested)
        parent, own_ns, crossing = _stack(inside, track, begun_ns, over_ns)
        if not len(crossing):
            break
        is_nested[crossing] = False
        if tries == ROUNDS:
            is_nested &= ~np.isin(track, track[crossing])
    return parent, is_nested, own_ns


def _together(key: Rows, begun_ns: Rows, over_ns: Rows) -> Mask:
    """Return which have a key of which two overlap without one enclosing the other."""
    order = np.argsort(key, kind="stable")
    number = np.unique(key, return_inverse=True)[1][order]
    if not len(order):
        return np.zeros(0, bool)
    begins, ends = begun_ns[order] - begun_ns.min(), over_ns[order] - begun_ns.min()
    # Latest earlier end of the same key: other keys are shifted before all of it.
    span = np.int64(ends.max() + 1)
    latest = np.maximum.accumulate(number * span + ends)[:-1] - number[1:] * span
    crosses = np.flatnonzero((begins[1:] < latest) & (ends[1:] > latest)) + 1
    return np.isin(key, key[order[crosses]])


def _stack(inside: Rows, track: Rows, begun_ns: Rows, over_ns: Rows) -> tuple[Rows, Rows, Rows]:
    """Return parents and own times of all, and which end after their parent.

    All beginnings and ends of a thread in order are like calls and returns of functions. The last
    one begun at a depth owns all that happens below it, and the time until the next event. At equal
    times ends come first, inner ends before outer ones.
    """
    parent = np.full(len(track), -1, np.int64)
    own_ns = np.maximum(over_ns - begun_ns, 0)
    own_ns[inside] = 0
    span = np.concatenate([inside, inside])
    sign = np.repeat(np.array([1, -1]), len(inside))
    at_ns = np.concatenate([begun_ns[inside], over_ns[inside]])
    order = np.lexsort((sign * span, sign, at_ns, track[span]))
    span, sign, at_ns = span[order], sign[order], at_ns[order]
    after = np.cumsum(sign)
    depth = np.where(sign > 0, after, after + 1)
    gap_ns = np.diff(at_ns, append=at_ns[-1:])
    crossing = [span[depth > DEEPEST]]
    for level in range(1, min(int(depth.max(initial=0)), DEEPEST) + 1):
        begins = (sign > 0) & (depth == level)
        last = np.maximum.accumulate(np.where(begins, np.arange(len(span)), 0))
        ending = np.flatnonzero((sign < 0) & (depth == level))
        other = span[last[ending]] != span[ending]
        crossing += [span[ending[other]], span[last[ending[other]]]]
        below = np.flatnonzero((sign > 0) & (depth == level + 1))
        parent[span[below]] = span[last[below]]
        closing = np.flatnonzero(after == level)
        np.add.at(own_ns, span[last[closing]], gap_ns[closing])
    return parent, own_ns, np.unique(np.concatenate(crossing))
