"""Encoding of events and lines for the viewer: a header in JSON, then plain arrays.

Times are microseconds after the first event, as differences. Codes are one more than in `Events`,
so that 0 means none, in as few bytes as possible. A field that few events have is packed as their
indexes and values. Arrays keep their positions while data grow: a viewer that already has data
receives only the changed blocks of each array.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from swathe.trace.analysis.stages import AROUND
from swathe.trace.ulm import CodedColumn
from swathe.trace.viewer.lifelines import OUTCOMES, TracedEvents
from swathe.trace.viewer.loads import APART, first_loads, loads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SPARSE = 0.4
"""Fraction of events below which a number field is packed as indexes and values."""
_TYPES = {"u1": 255, "u2": 65535, "u4": 2**32 - 1}
BLOCK = 512
"""Bytes per block of an array: unchanged blocks are not sent."""

Parts = list[bytes | memoryview]


class _Arrays:
    """Arrays one after another, each at a multiple of eight bytes."""

    def __init__(self) -> None:
        self.all: dict[str, NDArray[Any]] = {}
        self.at: dict[str, int] = {}
        self.length = 0

    def put(self, name: str, array: NDArray[Any]) -> dict[str, Any]:
        """Add an array; return its entry for the header."""
        data = np.ascontiguousarray(array)
        entry = {"type": data.dtype.str[1:], "at": self.length, "count": len(data)}
        self.all[name], self.at[name] = data, self.length
        self.length += data.nbytes + -data.nbytes % 8
        return entry

    def put_least(self, name: str, array: NDArray[Any], most: int) -> dict[str, Any]:
        """Add numbers from 0 to `most`, in as few bytes as possible."""
        kind = next((kind for kind, limit in _TYPES.items() if most <= limit), "f8")
        return self.put(name, array.astype(f"<{kind}"))

    def put_rising(self, name: str, array: NDArray[Any]) -> dict[str, Any]:
        """Add numbers as their differences."""
        steps = np.diff(array, prepend=array[:1])
        return {**self.put_least(name, steps, int(steps.max(initial=0))), "first": _first(array)}

    def put_steps(self, name: str, array: NDArray[Any]) -> dict[str, Any]:
        """Add indexes that rise and fall, as their differences."""
        steps = np.diff(array.astype(np.int64), prepend=0)
        return self.put(name, steps.astype("<i4"))

    def put_words(self, name: str, words: Sequence[str]) -> dict[str, Any]:
        """Add texts, as the elements of a JSON list."""
        text = json.dumps(words, separators=(",", ":"))[1:-1].encode()
        return self.put(name, np.frombuffer(text, "<u1"))


@dataclass(frozen=True)
class ViewData:
    """Data of a page: header and arrays."""

    header: dict[str, Any]
    arrays: _Arrays

    def content(self) -> Parts:
        """Return the bytes, in parts."""
        return self._frame(self.header, {})

    def since(self, before: ViewData) -> Parts:
        """Return the bytes for a viewer with the earlier data: only the changed blocks."""
        equal_ranges = {
            name: _alike(before.arrays.all[name], array)
            for name, array in self.arrays.all.items()
            if name in before.arrays.all
        }
        copies = [
            [before.arrays.at[name] + first, self.arrays.at[name] + first, last - first]
            for name, stretches in equal_ranges.items()
            for first, last in stretches
        ]
        return self._frame({**self.header, "copies": copies}, equal_ranges)

    def _frame(self, header: dict[str, Any], ranges: Mapping[str, list[tuple[int, int]]]) -> Parts:
        """Return the lengths of header and arrays, the header, and the changed blocks."""
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        parts: Parts = [struct.pack("<II", len(text), self.arrays.length) + text]
        for name, array in self.arrays.all.items():
            data = array.data.cast("B") if len(array) else memoryview(b"")
            at = 0
            for first, last in ranges.get(name, ()):
                parts.append(data[at:first])
                at = last
            parts += [data[at:], bytes(-array.nbytes % 8)]
        return parts


def _alike(before: NDArray[Any], after: NDArray[Any]) -> list[tuple[int, int]]:
    """Return the ranges of whole blocks, in bytes, that are equal in both."""
    blocks = min(before.nbytes, after.nbytes) // BLOCK
    if before.dtype != after.dtype or not blocks:
        return []
    one, other = (
        each.view(np.uint8)[: blocks * BLOCK].view(np.uint64).reshape(blocks, -1)
        for each in (before, after)
    )
    same = np.concatenate([[False], (one == other).all(axis=1), [False]])
    edges = np.flatnonzero(same[1:] != same[:-1]) * BLOCK
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _first(array: NDArray[Any]) -> int:
    return int(array[0]) if len(array) else 0


def encode_view(
    trace: TracedEvents, kinds: Sequence[str] | None = None, **more_header: Any
) -> ViewData:
    """Return a page's data.

    Args:
        trace: events and lines to show.
        kinds: kinds of lines, the first one shown first; by default all.
        more_header: further entries of the header.
    """
    events = trace.events
    arrays = _Arrays()
    times = events.time_ns // 1000
    start = _first(times)
    apart = trace.partner - np.arange(len(times))
    all_loads = loads(trace)
    kinds = [kind for kind in kinds or trace.kinds() if kind != "stage"]
    header: dict[str, Any] = {
        "version": 1,
        "count": len(times),
        "start_us": start,
        "time": arrays.put_rising("time", times - start),
        "events": list(events.event.words),
        "event": arrays.put_least("event", events.event.codes, len(events.event.words)),
        "partner": arrays.put("partner", np.where(trace.partner < 0, 0, apart).astype("<i4")),
        "lanes": trace.lanes,
        "outcomes": OUTCOMES,
        "around": AROUND,
        "apart": APART,
        "outcome": arrays.put("outcome", trace.outcomes),
        "loads": [asdict(load) for load in all_loads],
        "first_loads": [load.name for load in first_loads(all_loads)],
        "fields": [_field(arrays, name, column) for name, column in events.fields.items()],
        "kinds": [_lines(arrays, trace, kind) for kind in kinds],
        "damaged": [[each.line, each.reason] for each in events.damaged],
        "damaged_count": events.damaged_count,
        **more_header,
    }
    return ViewData(header, arrays)


def _field(arrays: _Arrays, name: str, column: CodedColumn | NDArray[np.float64]) -> dict[str, Any]:
    if isinstance(column, CodedColumn):
        codes = column.codes
        if len(codes) and (codes == codes[0]).all():
            word = column.words[codes[0]] if codes[0] >= 0 else None
            return {"name": name, "how": "same", "value": word}
        data = arrays.put_least(f"field {name}", codes + 1, len(column.words))
        words = arrays.put_words(f"words {name}", column.words)
        return {"name": name, "how": "coded", "words": words, "data": data}
    present = np.flatnonzero(~np.isnan(column))
    values = column[present]
    low, high = values.min(initial=0), values.max(initial=0)
    if low >= 0 and high < 2**32 and (values == np.floor(values)).all():
        if len(present) and len(present) == len(column) and low == high:
            return {"name": name, "how": "same", "value": float(low)}
        if len(present) >= SPARSE * len(column) and high < 2**32 - 1:
            shifted_values = np.zeros(len(column), np.float64)
            shifted_values[present] = values + 1
            data = arrays.put_least(f"field {name}", shifted_values, int(high) + 1)
            return {"name": name, "how": "whole", "data": data}
        data = arrays.put_least(f"field {name}", values, int(high))
    elif len(present) >= SPARSE * len(column):
        return {
            "name": name,
            "how": "numbers",
            "data": arrays.put(f"field {name}", column.astype("<f8")),
        }
    else:
        data = arrays.put(f"field {name}", values.astype("<f8"))
    return {
        "name": name,
        "how": "few",
        "index": arrays.put_rising(f"index {name}", present),
        "data": data,
    }


def _lines(arrays: _Arrays, trace: TracedEvents, kind: str) -> dict[str, Any]:
    lines = trace.lines(kind)
    lengths = np.diff(lines.starts)
    return {
        "kind": kind,
        "count": len(lines),
        "lengths": arrays.put_least(f"lengths {kind}", lengths, int(lengths.max(initial=0))),
        "points": arrays.put_steps(f"points {kind}", lines.points),
        "outcome": arrays.put(f"outcome {kind}", lines.outcome),
    }
