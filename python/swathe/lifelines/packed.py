"""Events and their lines as the viewer takes them: a header in JSON, then plain arrays.

Times are microseconds after the first event, as differences; codes are one more than in `Events`,
so that 0 is none, in as few bytes as they fit in; a field that few events have is packed as the
indexes of those and their values.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from swathe.lifelines.lines import OUTCOMES, Traced
from swathe.lifelines.loads import first_loads, loads
from swathe.trace import Coded

if TYPE_CHECKING:
    from collections.abc import Sequence

SPARSE = 0.4
"""Numbers that fewer of the events have are packed as indexes and values."""
_TYPES = {"u1": 255, "u2": 65535, "u4": 2**32 - 1}


class _Arrays:
    """Arrays one after the other, each at a multiple of eight bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes | memoryview] = []
        self.length = 0

    def put(self, array: NDArray[Any]) -> dict[str, Any]:
        """Add an array; give what the header says of it."""
        data = np.ascontiguousarray(array)
        told = {"type": data.dtype.str[1:], "at": self.length, "count": len(data)}
        self.parts.append(data.data.cast("B") if len(data) else b"")
        spare = -data.nbytes % 8
        self.parts.append(bytes(spare))
        self.length += data.nbytes + spare
        return told

    def put_least(self, array: NDArray[Any], most: int) -> dict[str, Any]:
        """Add numbers from 0 to `most`, in as few bytes as they fit in."""
        kind = next((kind for kind, limit in _TYPES.items() if most <= limit), "f8")
        return self.put(array.astype(f"<{kind}"))

    def put_rising(self, array: NDArray[Any]) -> dict[str, Any]:
        """Add numbers as the differences between them."""
        steps = np.diff(array, prepend=array[:1])
        return {**self.put_least(steps, int(steps.max(initial=0))), "first": _first(array)}

    def put_steps(self, array: NDArray[Any]) -> dict[str, Any]:
        """Add indexes that rise and fall as the differences between them."""
        steps = np.diff(array.astype(np.int64), prepend=0)
        return self.put(steps.astype("<i4"))


def _first(array: NDArray[Any]) -> int:
    return int(array[0]) if len(array) else 0


def packed(
    traced: Traced, kinds: Sequence[str] | None = None, **told: Any
) -> list[bytes | memoryview]:
    """Give the bytes of a page's data, in parts.

    Args:
        traced: what to show.
        kinds: of lines, the one to show first in front; else all that there are.
        told: goes into the header as it is.
    """
    events = traced.events
    arrays = _Arrays()
    times = events.time_ns // 1000
    start = _first(times)
    apart = traced.partner - np.arange(len(times))
    known = loads(traced)
    kinds = [kind for kind in kinds or traced.kinds() if kind != "stage"]
    header: dict[str, Any] = {
        "version": 1,
        "count": len(times),
        "start_us": start,
        "time": arrays.put_rising(times - start),
        "events": list(events.event.words),
        "event": arrays.put_least(events.event.codes, len(events.event.words)),
        "partner": arrays.put(np.where(traced.partner < 0, 0, apart).astype("<i4")),
        "lanes": traced.lanes,
        "outcomes": OUTCOMES,
        "outcome": arrays.put(traced.outcomes),
        "loads": [asdict(load) for load in known],
        "first_loads": [load.name for load in first_loads(known)],
        "fields": [_field(arrays, name, column) for name, column in events.fields.items()],
        "kinds": [_lines(arrays, traced, kind) for kind in kinds],
        "damaged": [[each.line, each.reason] for each in events.damaged],
        "damaged_count": events.damaged_count,
        **told,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [struct.pack("<II", len(text), 0) + text, *arrays.parts]


def _field(arrays: _Arrays, name: str, column: Coded | NDArray[np.float64]) -> dict[str, Any]:
    if isinstance(column, Coded):
        codes = column.codes
        if len(codes) and (codes == codes[0]).all():
            word = column.words[codes[0]] if codes[0] >= 0 else None
            return {"name": name, "how": "same", "value": word}
        data = arrays.put_least(codes + 1, len(column.words))
        return {"name": name, "how": "coded", "words": list(column.words), "data": data}
    there = np.flatnonzero(~np.isnan(column))
    values = column[there]
    low, high = values.min(initial=0), values.max(initial=0)
    if low >= 0 and high < 2**32 and (values == np.floor(values)).all():
        if len(there) and len(there) == len(column) and low == high:
            return {"name": name, "how": "same", "value": float(low)}
        if len(there) >= SPARSE * len(column) and high < 2**32 - 1:
            filled = np.zeros(len(column), np.float64)
            filled[there] = values + 1
            data = arrays.put_least(filled, int(high) + 1)
            return {"name": name, "how": "whole", "data": data}
        data = arrays.put_least(values, int(high))
    elif len(there) >= SPARSE * len(column):
        return {"name": name, "how": "numbers", "data": arrays.put(column.astype("<f8"))}
    else:
        data = arrays.put(values.astype("<f8"))
    return {"name": name, "how": "few", "index": arrays.put_rising(there), "data": data}


def _lines(arrays: _Arrays, traced: Traced, kind: str) -> dict[str, Any]:
    lines = traced.lines(kind)
    lengths = np.diff(lines.starts)
    return {
        "kind": kind,
        "count": len(lines),
        "lengths": arrays.put_least(lengths, int(lengths.max(initial=0))),
        "points": arrays.put_steps(lines.points),
        "outcome": arrays.put(lines.outcome),
    }
