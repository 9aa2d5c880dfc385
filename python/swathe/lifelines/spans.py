"""Stages that have a beginning and an end, found in events, and which lie in which.

A START and an END belong together that have the same name, process and ids; of several at once
first those of one thread, and of these the innermost. What lies in what is told by threads: a
stage that begins and ends in one thread lies in those that this thread has not ended yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from swathe.lifelines.columns import codes_of, joined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.trace import Events

    Rows = NDArray[np.int64]
    Mask = NDArray[np.bool_]

IDS = ("JOB", "TARGET", "OBJECT", "REQUEST", "WORKER", "STORE", "PEER")
DEEPEST = 32
"""Stages of one thread in one another; more are concurrent ones that take turns in it."""
ROUNDS = 4
ENDED = "TRACE_END"
"""The last point of a recorder, with what it dropped: no stage."""


@dataclass(frozen=True)
class Spans:
    """Stages in order of their beginning, as parallel arrays.

    Attributes:
        names: of stages.
        stage: number of the name.
        start, end: rows of the two events.
        start_ns, end_ns: their times.
        parent: the one it lies in by thread, -1 for none.
        nested: whether it and what lies in it take turns in one thread.
        own_ns: its time without that of the stages in it.
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
    nested: Mask
    own_ns: NDArray[np.int64]
    unfinished: Rows
    orphans: Rows

    def __len__(self) -> int:
        return len(self.stage)

    @cached_property
    def duration_ns(self) -> NDArray[np.int64]:
        """From beginning to end; none is negative, whatever was done to clocks."""
        lasting: Rows = np.maximum(self.end_ns - self.start_ns, 0)
        return lasting


def find_spans(events: Events, time_ns: NDArray[np.int64]) -> Spans:
    """Find the stages of events, which have these times."""
    names, stages, kinds = _stages(events.event.words)
    kind = kinds[events.event.codes]
    stage = stages[events.event.codes]
    rows = np.flatnonzero(kind)
    columns = [stage[rows]]
    columns += [codes_of(events, name)[0][rows] for name in ("HOST", "PID", *IDS)]
    key = joined(columns)
    thread = codes_of(events, "THREAD")[0]
    starts, ends, left = _paired(joined([key, thread[rows]]), kind[rows])
    more_starts, more_ends, rest = _paired(key[left], kind[rows][left])
    starts = rows[np.concatenate([starts, left[more_starts]])]
    ends = rows[np.concatenate([ends, left[more_ends]])]
    over = rows[left[rest]]
    order = np.lexsort((starts, -time_ns[ends], time_ns[starts]))
    starts, ends = starts[order], ends[order]
    track = joined([codes_of(events, name)[0] for name in ("HOST", "PID")] + [thread])
    parent, nested, own_ns = _nesting(starts, ends, track, time_ns)
    return Spans(
        names=names,
        stage=stage[starts],
        start=starts,
        end=ends,
        start_ns=time_ns[starts],
        end_ns=time_ns[ends],
        parent=parent,
        nested=nested,
        own_ns=own_ns,
        unfinished=np.sort(over[kind[over] > 0]),
        orphans=np.sort(over[kind[over] < 0]),
    )


def _stages(words: tuple[str, ...]) -> tuple[tuple[str, ...], Rows, Rows]:
    """Give names of stages; for each event the number of its, and 1, -1 or 0."""
    names: dict[str, int] = {}
    stages = np.full(len(words) + 1, -1, np.int64)
    kinds = np.zeros(len(words) + 1, np.int64)
    for code, word in enumerate(words):
        for ending, kind in (("_START", 1), ("_END", -1)):
            if word.endswith(ending) and len(word) > len(ending) and word != ENDED:
                stages[code] = names.setdefault(word.removesuffix(ending), len(names))
                kinds[code] = kind
    return tuple(names), stages, kinds


def _paired(key: Rows, kind: Rows) -> tuple[Rows, Rows, Rows]:
    """Pair beginnings with ends of the same key, the innermost first; what is left is last."""
    order = np.argsort(key, kind="stable")
    starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    while len(order) > 1:
        first, second = order[:-1], order[1:]
        fits = (key[first] == key[second]) & (kind[first] > 0) & (kind[second] < 0)
        at = np.flatnonzero(fits)
        if not len(at):
            break
        starts.append(first[at])
        ends.append(second[at])
        keep = np.ones(len(order), bool)
        keep[at] = keep[at + 1] = False
        order = order[keep]
    return np.concatenate(starts), np.concatenate(ends), np.sort(order)


def _nesting(
    starts: Rows, ends: Rows, track: Rows, time_ns: NDArray[np.int64]
) -> tuple[Rows, Mask, NDArray[np.int64]]:
    """Give parents, who takes turns with others in one thread, and own times."""
    nested = track[starts] == track[ends]
    for tries in range(ROUNDS + 2):
        inside = np.flatnonzero(nested)
        parent, own_ns, wrong = _stack(inside, starts, ends, track, time_ns)
        if not len(wrong):
            break
        nested[wrong] = False
        if tries == ROUNDS:
            nested &= ~np.isin(track[starts], track[starts[wrong]])
    return parent, nested, own_ns


def _stack(
    inside: Rows, starts: Rows, ends: Rows, track: Rows, time_ns: NDArray[np.int64]
) -> tuple[Rows, NDArray[np.int64], Rows]:
    """Give parents and own times of all, and which do not end before what they lie in.

    All beginnings and ends of a thread in order are like calls and returns of functions: the last
    that began at a depth owns all that happens below it, and the time until the next event.
    """
    parent = np.full(len(starts), -1, np.int64)
    own_ns = np.maximum(time_ns[ends] - time_ns[starts], 0)
    own_ns[inside] = 0
    row = np.concatenate([starts[inside], ends[inside]])
    sign = np.repeat(np.array([1, -1]), len(inside))
    order = np.lexsort((row, track[row]))
    row, sign, span = row[order], sign[order], np.concatenate([inside, inside])[order]
    after = np.cumsum(sign)
    depth = np.where(sign > 0, after, after + 1)
    gap_ns = np.maximum(np.diff(time_ns[row], append=time_ns[row[-1:]]), 0)
    wrong = [span[depth > DEEPEST]]
    for level in range(1, min(int(depth.max(initial=0)), DEEPEST) + 1):
        begins = (sign > 0) & (depth == level)
        last = np.maximum.accumulate(np.where(begins, np.arange(len(row)), 0))
        ending = np.flatnonzero((sign < 0) & (depth == level))
        other = span[last[ending]] != span[ending]
        wrong += [span[ending[other]], span[last[ending[other]]]]
        below = np.flatnonzero((sign > 0) & (depth == level + 1))
        parent[span[below]] = span[last[below]]
        spent = np.flatnonzero(after == level)
        np.add.at(own_ns, span[last[spent]], gap_ns[spent])
    return parent, own_ns, np.unique(np.concatenate(wrong))
