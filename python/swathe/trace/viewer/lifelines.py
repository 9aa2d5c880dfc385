"""Lifelines: the events of each line, by time.

The line of a target has its own events, and those shared by all targets of its object (open, plan,
fetch, tiles decoded once), which name only the object. Of a shared stage before its cut it takes
the last that ended before its own next event: the one it waited for. Of a shared stage within the
cut it takes the first that the same thread began after the cut began. Of a stage around it, such as
a job, it takes the last that began before it. Work on the object before the process knew of the job
is not part of the line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from swathe.trace.analysis.columns import codes_of
from swathe.trace.analysis.stages import (
    AROUND,
    END,
    MOVING,
    POINT,
    START,
    WITHIN,
    Index,
    hash_codes,
    lanes,
    number_codes,
    partners,
    stage_of,
)
from swathe.trace.viewer.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swathe.trace.ulm import Events
    from swathe.trace.viewer.kinds import Kind

OUTCOMES = ("done", "no result", "unfinished", "failed")
DONE, EMPTY, OPEN, FAILED = range(4)
_RESULTS = {"error": FAILED, "missing": FAILED, "no-overlap": EMPTY, "cancelled": EMPTY}


@dataclass(frozen=True)
class Lifelines:
    """Lifelines of one kind.

    Attributes:
        kind: kind of the lines: one of KINDS.
        starts: start of each line in `points`, and the end of the last.
        points: indexes of events, line after line, by time.
        names: name of each line, codes into `words`.
        words: ids.
        outcome: index into OUTCOMES, for each line.
    """

    kind: str
    starts: NDArray[np.int64]
    points: NDArray[np.int32]
    names: NDArray[np.int32]
    words: Sequence[str]
    outcome: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.starts) - 1


class TracedEvents:
    """Events with their lanes, pairs and lines."""

    def __init__(self, events: Events) -> None:
        """Find the lanes and the pairs of `events`."""
        self.events = events
        self.lanes = lanes(events)
        self.partner = partners(events)
        heights = {word: height for height, word in enumerate(self.lanes)}
        self._heights = np.array([heights.get(w, -1) for w in events.event.words], np.int64)
        self.height: Index = self._heights[events.event.codes]
        times = events.time_ns
        # Equal times have equal ranks.
        self.rank = np.zeros(len(times), np.int64)
        np.cumsum(times[1:] != times[:-1], out=self.rank[1:])
        # By time, and at equal times by lane: the order, and its inverse.
        key = self.rank * (len(self.lanes) + 1) + self.height
        self._order: Index = np.argsort(key, kind="stable")
        self._place = np.empty(len(times), np.int64)
        self._place[self._order] = np.arange(len(times))
        self._codes: dict[str, tuple[NDArray[np.int32], Sequence[str]]] = {}

    def codes(self, name: str) -> tuple[NDArray[np.int32], Sequence[str]]:
        """Return a field as codes and words."""
        if name not in self._codes:
            self._codes[name] = codes_of(self.events, name)
        return self._codes[name]

    def kinds(self) -> list[Kind]:
        """Return the kinds of lines that can be drawn, best first; stages always."""
        is_present = {kind: self.codes(kind.upper())[0] >= 0 for kind in KINDS[:-1]}
        return [*(kind for kind in KINDS[:-1] if is_present[kind].any()), "stage"]

    def lines(self, kind: str) -> Lifelines:
        """Return the lifelines of a kind."""
        match kind:
            case "target":
                return self._targets()
            case "object":
                own = (self.codes("OBJECT")[0] >= 0) & (self.codes("TARGET")[0] < 0)
                return self._lines_by_ids(kind, own, ("HOST", "PID", "OBJECT"))
            case "request":
                own = self.codes("REQUEST")[0] >= 0
                return self._lines_by_ids(kind, own, ("HOST", "PID", "REQUEST"))
            case "lifeline":
                # A request in all processes that it passes.
                return self._lines_by_ids(kind, self.codes("LIFELINE")[0] >= 0, ("LIFELINE",))
            case "portal":
                return self._lines_by_ids(
                    kind, self.codes("PORTAL")[0] >= 0, ("HOST", "PID", "PORTAL")
                )
            case "job":
                own = (self.codes("JOB")[0] >= 0) & (self.codes("TARGET")[0] < 0)
                return self._lines_by_ids(kind, own & (self.codes("OBJECT")[0] < 0), ("JOB",))
            case "stage":
                return self._stages()
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}, found {kind!r}")

    @cached_property
    def outcomes(self) -> NDArray[np.uint8]:
        """Outcome of each event's stage."""
        events = self.events
        results = np.zeros(len(events.time_ns), np.uint8)
        starts = np.array([stage_of(word)[1] == START for word in events.event.words], bool)
        results[starts[events.event.codes] & (self.partner < 0)] = OPEN
        for name, by_word in (("RESULT", _RESULTS), ("LVL", {"Error": FAILED})):
            codes, words = self.codes(name)
            # One extra, for none.
            each = np.array([*(by_word.get(word, DONE) for word in words), DONE], np.uint8)
            np.maximum(results, each[codes], out=results)
        return results

    def _lines_by_ids(self, kind: str, own: NDArray[np.bool_], ids: tuple[str, ...]) -> Lifelines:
        """Make lines from their own events, one for each combination of ids."""
        mine = np.flatnonzero(own & (self.height >= 0))
        line, count = number_codes([self.codes(name)[0][mine] for name in ids], len(mine))
        return self._make_lines(kind, mine, line, count, ids[-1])

    def _targets(self) -> Lifelines:
        target, _ = self.codes("TARGET")
        job, _ = self.codes("JOB")
        mine = np.flatnonzero((target >= 0) & (self.height >= 0))
        # Events without a job are separated by process.
        alone = job[mine] < 0
        host, pid = (self.codes(name)[0][mine] for name in ("HOST", "PID"))
        none = np.int32(-1)
        ids = [job[mine], np.where(alone, host, none), np.where(alone, pid, none), target[mine]]
        line, count = number_codes(ids, len(mine))
        points, of = self._join(mine, line, count)
        return self._make_lines("target", mine, line, count, "TARGET", points, of)

    def _make_lines(
        self,
        kind: str,
        mine: Index,
        line: Index,
        count: int,
        id_name: str,
        more: Index | None = None,
        of: Index | None = None,
    ) -> Lifelines:
        """Sort own and joined events by line and time."""
        outcome = np.zeros(count, np.uint8)
        event_outcomes = self.outcomes[mine]
        for value in (EMPTY, OPEN, FAILED):
            outcome[line[event_outcomes == value]] = value
        codes, words = self.codes(id_name)
        names = np.zeros(count, np.int32)
        names[line] = codes[mine]
        if more is not None and of is not None:
            mine, line = np.concatenate([mine, more]), np.concatenate([line, of])
        # Sorting numbers is far faster than sorting indexes by numbers.
        key = line * len(self._place) + self._place[mine]
        key.sort()
        points = self._order[key % max(len(self._place), 1)]
        starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(line, minlength=count), out=starts[1:])
        return Lifelines(kind, starts, points.astype(np.int32), names, words, outcome)

    def _stages(self) -> Lifelines:
        """Make a line of each pair, and of each single event."""
        first = np.flatnonzero((self.height >= 0) & ~self._is_paired_end())
        last = self.partner[first]
        two = last >= 0
        starts = np.zeros(len(first) + 1, np.int64)
        np.cumsum(1 + two, out=starts[1:])
        points = np.zeros(int(starts[-1]), np.int32)
        points[starts[:-1]] = first
        points[starts[:-1][two] + 1] = last[two]
        event_outcomes = self.outcomes
        outcome = event_outcomes[first]
        outcome[two] = np.maximum(outcome[two], event_outcomes[last[two]])
        stages = [stage_of(word)[0] for word in self.events.event.words]
        names = self.events.event.codes[first]
        return Lifelines("stage", starts, points, names, stages, outcome)

    def _is_paired_end(self) -> NDArray[np.bool_]:
        ends = np.array([stage_of(word)[1] == END for word in self.events.event.words], bool)
        return ends[self.events.event.codes] & (self.partner >= 0)

    def _join(self, mine: Index, line: Index, count: int) -> tuple[Index, Index]:
        """Find the shared events of lines: their indexes, and the line of each."""
        common = np.flatnonzero((self.codes("TARGET")[0] < 0) & (self.height >= 0))
        if not len(common) or not count:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        by_object = self.codes("OBJECT")[0][common] >= 0
        by_job = ~by_object & (self.codes("JOB")[0][common] >= 0)
        by_worker = by_job & (self.codes("WORKER")[0][common] >= 0)
        names = [stage_of(word)[0] in WITHIN for word in self.events.event.words]
        within = by_object & np.array(names, bool)[self.events.event.codes[common]]
        pairs: list[tuple[Index, Index]] = []
        own = _OwnEvents(self, mine, line, count)
        for which, ids in (
            (by_object & ~within, ("HOST", "PID", "OBJECT")),
            (within, ("THREAD", "HOST", "PID", "OBJECT")),
            (by_worker, ("JOB", "WORKER")),
            (by_job & ~by_worker, ("JOB",)),
        ):
            if which.any():
                pairs += own.join(common[which], ids)
        if not pairs:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        events, lines = (np.concatenate(each) for each in zip(*pairs, strict=True))
        mask = (self.codes("OBJECT")[0][events] < 0) | (
            self.rank[events] >= own.start_ranks()[lines]
        )
        return events[mask], lines[mask]


class _OwnEvents:
    """The own events of lines, and the shared events they join."""

    def __init__(self, trace: TracedEvents, mine: Index, line: Index, count: int) -> None:
        self._trace = trace
        # By line, then by time.
        key = line * len(mine) + np.arange(len(mine))
        key.sort()
        self._line, order = np.divmod(key, max(len(mine), 1))
        self._mine = mine[order]
        self._height = trace.height[self._mine]
        self._count = count
        starts = np.searchsorted(self._line, np.arange(count))
        self._starts = starts
        self._first = trace.rank[self._mine[starts]]
        ends = np.append(starts[1:], len(self._line)) - 1
        self._last = trace.rank[self._mine[ends]]

    def join(self, common: Index, ids: tuple[str, ...]) -> list[tuple[Index, Index]]:
        """Return for each lane the joined shared events, and their lines."""
        trace = self._trace
        able, line_ids = self._of_lines(ids)
        _, codes = np.unique(
            np.concatenate([self._mix(ids, common), line_ids]), return_inverse=True
        )
        of_common, of_line = codes[: len(common)], codes[len(common) :]
        words = trace.events.event.words
        present = np.unique(trace.events.event.codes[common])
        stages = {stage_of(words[code])[0] for code in present}
        pairs = []
        for stage in sorted(stages):
            heights = {
                kind: trace.lanes.index(name)
                for kind, name in ((START, f"{stage}_START"), (END, f"{stage}_END"), (POINT, stage))
                if name in trace.lanes
            }
            pairs += self._join_stage(stage, heights, common, of_common, able, of_line)
        return pairs

    def _join_stage(
        self,
        stage: str,
        heights: dict[int, int],
        common: Index,
        of_common: Index,
        able: Index,
        of_line: Index,
    ) -> list[tuple[Index, Index]]:
        joining = _Joining(self._trace, heights, common, of_common, of_line)
        if stage in AROUND and START in heights:
            pairs = self._around(joining, able)
        elif stage in WITHIN and START in heights:
            pairs = self._within(joining, able)
        else:
            pairs = self._before(joining, able)
        return [(events, able[lines]) for events, lines in pairs]

    def _around(self, joining: _Joining, able: Index) -> Iterator[tuple[Index, Index]]:
        """Join the stage around a line; also its end, if that is after the whole line."""
        everyone = np.arange(len(able))
        start = joining.last(START, self._first[able], everyone)
        yield start[start >= 0], everyone[start >= 0]
        end = np.where(start >= 0, self._trace.partner[start], -1)
        after = (end >= 0) & (self._trace.rank[end] >= self._last[able])
        yield end[after], everyone[after]

    def _within(self, joining: _Joining, able: Index) -> Iterator[tuple[Index, Index]]:
        """Join the first stage that begins within a line that has none of its own."""
        trace = self._trace
        everyone = np.arange(len(able))
        start = joining.first(START, self._first[able])
        is_present = (start >= 0) & (trace.rank[start] <= self._last[able])
        # A line with such a stage of its own, as results hashed one by one, joins none.
        alone = np.zeros(self._count, bool)
        alone[self._line[np.isin(self._height, [*joining.heights.values()])]] = True
        is_present &= ~alone[able]
        yield start[is_present], everyone[is_present]
        end = np.where(is_present, trace.partner[start], -1)
        yield end[end >= 0], everyone[end >= 0]

    def _before(self, joining: _Joining, able: Index) -> Iterator[tuple[Index, Index]]:
        """Join the last stage or point that ended before the line's next step."""
        heights = joining.heights
        everyone = np.arange(len(able))
        none = everyone
        for kind in (END, POINT):
            if kind not in heights:
                continue
            end = joining.last(kind, self._next(heights[kind])[able], everyone)
            is_present = end >= 0
            yield end[is_present], everyone[is_present]
            if kind == END:
                start = np.where(is_present, self._trace.partner[end], -1)
                yield start[start >= 0], everyone[start >= 0]
                none = everyone[~is_present]
        if START in heights:
            # Unfinished stages only if there is no finished one.
            before = self._next(heights[START])[able]
            start = joining.last(START, before, none, is_unpaired=True)
            yield start[start >= 0], none[start >= 0]

    def _next(self, height: int) -> Index:
        """Return for each line the rank of its first event above a lane, else of its last one."""
        lanes = self._trace.lanes
        if lanes[height] in MOVING and "READ_END" in lanes:
            # Bytes may arrive until the wait for them ended.
            height = lanes.index("READ_END") - 1
        ranks: Index = self._last.copy()
        lines, first = self._firsts(self._height > height)
        ranks[lines] = self._trace.rank[first]
        return ranks

    def _firsts(self, which: NDArray[np.bool_]) -> tuple[Index, Index]:
        """Return the lines that have such events, and the first event of each."""
        at = np.flatnonzero(which)
        lines = self._line[at]
        begins = np.flatnonzero(np.append(True, lines[1:] != lines[:-1]))[: len(lines)]
        return lines[begins], self._mine[at[begins]]

    def _mix(self, ids: tuple[str, ...], events: Index) -> NDArray[np.uint64]:
        return hash_codes([self._trace.codes(name)[0][events] for name in ids], len(events))

    def _of_lines(self, ids: tuple[str, ...]) -> tuple[Index, NDArray[np.uint64]]:
        """Return lines, and the ids of each as one number: of its first event with the last id."""
        lines, first = self._firsts(self._trace.codes(ids[-1])[0][self._mine] >= 0)
        return lines, self._mix(ids, first)

    def start_ranks(self) -> Index:
        """Return for each line the rank of its job's first event in its process; -1: no job."""
        trace = self._trace
        has = trace.codes("JOB")[0] >= 0
        lines, own = self._firsts(has[self._mine])
        # The job of a line, also if another process recorded its first event; else no line.
        able = np.flatnonzero(has & ((trace.codes("TARGET")[0] < 0) | (trace.height >= 0)))
        ids = [trace.codes(name)[0][able] for name in ("HOST", "PID", "JOB")]
        which, count = number_codes(ids, len(able))
        first = np.empty(count, np.int64)
        first[which[::-1]] = trace.rank[able[::-1]]
        ranks = np.full(self._count, -1)
        ranks[lines] = first[which[np.searchsorted(able, own)]]
        return ranks


@dataclass(frozen=True)
class _Joining:
    """The shared events of one stage, and the lines they may belong to, grouped by ids.

    Attributes:
        heights: lane of each kind of event of the stage.
        of_common: group of each shared event.
        of_line: group of each line.
    """

    trace: TracedEvents
    heights: dict[int, int]
    common: Index
    of_common: Index
    of_line: Index

    def last(self, kind: int, before: Index, lines: Index, *, is_unpaired: bool = False) -> Index:
        """Return for some lines the last event of a kind at or before a rank; -1: none."""
        groups, ranks, events = self._events(kind, is_unpaired)
        return _last(groups, ranks, events, self.of_line[lines], before[lines])

    def first(self, kind: int, after: Index) -> Index:
        """Return for each line the first event of a kind at or after a rank; -1: none."""
        return _first(*self._events(kind), self.of_line, after)

    def _events(self, kind: int, is_unpaired: bool = False) -> tuple[Index, Index, Index]:
        """Return groups, ranks and indexes of the events of a kind."""
        choice = self.trace.height[self.common] == self.heights[kind]
        if is_unpaired:
            choice &= self.trace.partner[self.common] < 0
        events = self.common[choice]
        return self.of_common[choice], self.trace.rank[events], events


def _first(groups: Index, ranks: Index, events: Index, of: Index, after: Index) -> Index:
    """Return for each of `of` the first event of its group at or after a rank; -1 if none."""
    # The last one in reversed time.
    most = int(max(ranks.max(initial=0), after.max(initial=0)))
    order = np.arange(len(ranks))[::-1]
    return _last(groups[order], most - ranks[order], events[order], of, most - after)


def _last(groups: Index, ranks: Index, events: Index, of: Index, before: Index) -> Index:
    """Return for each of `of` the last event of its group at or before a rank; -1 if none."""
    most = int(max(ranks.max(initial=0), before.max(initial=0))) + 1
    key = groups * most + ranks
    order = np.argsort(key, kind="stable")
    at = np.searchsorted(key[order], of * most + before, side="right") - 1
    rows_before = order[np.maximum(at, 0)] if len(order) else np.zeros(len(of), np.int64)
    if not len(order):
        return np.full(len(of), -1, np.int64)
    fits = (at >= 0) & (groups[rows_before] == of)
    rows: Index = np.where(fits, events[rows_before], -1)
    return rows
