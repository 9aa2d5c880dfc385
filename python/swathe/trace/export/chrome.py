"""Export as a Chrome trace, which Perfetto and `chrome://tracing` show.

A stage that alternates properly with others in its thread is a complete event ("X") of that thread;
any other is a pair of asynchronous events ("b", "e"). Points are instants, those of the host
monitor are counters. Times are microseconds after the first event. Events are not sorted by time.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.trace.analysis.align_clocks import align_times
from swathe.trace.analysis.attributes import attributes
from swathe.trace.analysis.columns import codes_of, join_codes, text_of
from swathe.trace.analysis.hosts import FIGURES, WHICH
from swathe.trace.analysis.spans import find_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from swathe.trace.analysis.spans import Spans
    from swathe.trace.ulm import Events

    Rows = NDArray[np.int64]

AT_ONCE = 4096
LARGEST_PID = 1 << 22
"""Largest process number of Linux; two hosts may use the same number."""


def chrome_trace(events: Events) -> Iterator[str]:
    """Yield the pieces of a JSON text."""
    time_ns, _ = align_times(events)
    begun_ns = int(time_ns.min()) if len(time_ns) else 0
    began = datetime.fromtimestamp(begun_ns / 1e9, UTC).isoformat()
    about = json.dumps({"began": began, "damaged_lines": events.damaged_count})
    yield f'{{"displayTimeUnit":"ms","otherData":{about},"traceEvents":[\n'
    first = True
    for each in _Chrome(events, time_ns, begun_ns).all():
        yield ("" if first else ",\n") + json.dumps(each, separators=(",", ":"))
        first = False
    yield "\n]}\n"


class _Chrome:
    """Chrome events of a trace."""

    def __init__(self, events: Events, time_ns: NDArray[np.int64], begun_ns: int) -> None:
        self.events, self.time_ns, self.begun_ns = events, time_ns, begun_ns
        self.process = join_codes([codes_of(events, "HOST")[0], codes_of(events, "PID")[0]])
        threads, self.thread_names = codes_of(events, "THREAD")
        self.thread = threads + 1
        self.numbers = self._numbers()

    def all(self) -> Iterator[dict[str, Any]]:
        """Yield all events."""
        spans = find_spans(self.events, self.time_ns)
        yield from self._names()
        yield from self._stages(spans)
        yield from self._open_stages(spans)
        yield from self._points()

    def _numbers(self) -> dict[int, int]:
        """Return process numbers: their own, if no other host has the same."""
        numbers: dict[int, int] = {}
        codes, rows = np.unique(self.process, return_index=True)
        for code, row in zip(codes.tolist(), rows.tolist(), strict=True):
            text = text_of(self.events, "PID", row)
            number = int(text) if text.isdecimal() and len(text) < 10 else 0
            if number in numbers.values() or not number:
                number = LARGEST_PID + len(numbers)
            numbers[code] = number
        return numbers

    def _names(self) -> Iterator[dict[str, Any]]:
        codes, rows = np.unique(self.process, return_index=True)
        for code, row in zip(codes.tolist(), rows.tolist(), strict=True):
            host, prog, pid = (text_of(self.events, name, row) for name in ("HOST", "PROG", "PID"))
            name = f"{prog} {pid} at {host}"
            yield self._name_event("process_name", code, 0, name)
        _, rows = np.unique(join_codes([self.process, self.thread]), return_index=True)
        for row in rows.tolist():
            thread = int(self.thread[row])
            name = f"thread {self.thread_names[thread - 1]}" if thread else "no thread"
            yield self._name_event("thread_name", int(self.process[row]), thread, name)

    def _name_event(self, kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
        return {
            "ph": "M",
            "name": kind,
            "pid": self.numbers[process],
            "tid": thread,
            "args": {"name": name},
        }

    def _us(self, time_ns: int) -> float:
        return (time_ns - self.begun_ns) / 1000

    def _at(self, row: int) -> dict[str, Any]:
        return {"pid": self.numbers[int(self.process[row])], "tid": int(self.thread[row])}

    def _stages(self, spans: Spans) -> Iterator[dict[str, Any]]:
        lasting_ns = spans.duration_ns
        for first in range(0, len(spans), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            starts, ends = spans.start[part], spans.end[part]
            at_start = attributes(self.events, starts)
            at_end = attributes(self.events, ends)
            for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
                number = first + at
                name = spans.names[spans.stage[number]]
                args = {**at_start[at], **at_end[at]}
                fields = {"name": name, "cat": name, "ts": self._us(int(spans.start_ns[number]))}
                if spans.is_nested[number]:
                    dur = int(lasting_ns[number]) / 1000
                    yield {"ph": "X", **fields, "dur": dur, **self._at(start), "args": args}
                    continue
                both = {"name": name, "cat": name, "id": f"0x{number + 1:x}"}
                yield {"ph": "b", **fields, **both, **self._at(start), "args": args}
                over = self._us(max(int(spans.end_ns[number]), int(spans.start_ns[number])))
                yield {"ph": "e", **both, "ts": over, **self._at(end)}

    def _open_stages(self, spans: Spans) -> Iterator[dict[str, Any]]:
        for row, args in zip(
            spans.unfinished.tolist(), attributes(self.events, spans.unfinished), strict=True
        ):
            name = self.events.event.words[self.events.event.codes[row]]
            yield self._instant(row, f"{name}, unfinished", args)

    def _instant(self, row: int, name: str, args: dict[str, Any]) -> dict[str, Any]:
        ts = self._us(int(self.time_ns[row]))
        return {"ph": "i", "s": "t", "name": name, "ts": ts, **self._at(row), "args": args}

    def _points(self) -> Iterator[dict[str, Any]]:
        words = self.events.event.words
        is_point = np.array([not word.endswith(("_START", "_END")) for word in words] + [False])
        rows = np.flatnonzero(is_point[self.events.event.codes])
        for first in range(0, len(rows), AT_ONCE):
            part = rows[first : first + AT_ONCE]
            for row, args in zip(part.tolist(), attributes(self.events, part), strict=True):
                name = words[self.events.event.codes[row]]
                if name not in FIGURES:
                    yield self._instant(row, name, args)
                    continue
                which = args.get(WHICH.get(name, ""), "")
                figures = {key: value for key, value in args.items() if key in FIGURES[name]}
                if figures:
                    ts = self._us(int(self.time_ns[row]))
                    label = f"{name} {which}".rstrip()
                    yield {"ph": "C", "name": label, "ts": ts, **self._at(row), "args": figures}
