"""Alignment of the clocks of several machines to the collector's clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swathe.trace.analysis.columns import codes_of, event_codes, join_codes, numbers_of
from swathe.trace.ulm import CodedColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.trace.ulm import Events


@dataclass(frozen=True)
class SenderOffset:
    """Offset of a sender's clock from the collector's.

    Attributes:
        sender: `HOST:PID`.
        offset_s: median offset, positive if the sender is ahead.
        spread_s: smallest possible error of the offset.
        drift_s: largest minus smallest measured offset.
        count: number of measurements.
        events: number of corrected events.
    """

    sender: str
    offset_s: float
    spread_s: float
    drift_s: float
    count: int
    events: int


def align_times(events: Events) -> tuple[NDArray[np.int64], list[SenderOffset]]:
    """Return the times of events by the collector's clock, and the offsets subtracted.

    The offset is interpolated linearly between two CLOCK points of a sender.
    """
    time_ns = events.time_ns.copy()
    clock_rows = np.flatnonzero(np.isin(events.event.codes, event_codes(events, ["CLOCK"])))
    if not len(clock_rows):
        return time_ns, []
    senders, names = codes_of(events, "SENDER")
    offset_s, spread_s = numbers_of(events, "OFFSET_S"), numbers_of(events, "SPREAD_S")
    usable = clock_rows[(senders[clock_rows] >= 0) & np.isfinite(offset_s[clock_rows])]
    rows_of = _rows_by_process(events)
    offsets = []
    for sender in np.unique(senders[usable]):
        at = usable[senders[usable] == sender]
        rows = rows_of.get(names[sender], np.zeros(0, np.int64))
        # CLOCK points carry the collector's time, other events their own.
        theirs_ns = events.time_ns[at] + np.round(offset_s[at] * 1e9).astype(np.int64)
        begun_ns = theirs_ns[0]
        ahead_s = np.interp(
            (events.time_ns[rows] - begun_ns).astype(float),
            (theirs_ns - begun_ns).astype(float),
            offset_s[at],
        )
        time_ns[rows] -= np.round(ahead_s * 1e9).astype(np.int64)
        offsets.append(
            SenderOffset(
                sender=names[sender],
                offset_s=float(np.median(offset_s[at])),
                spread_s=float(np.nanmin(spread_s[at])) if np.isfinite(spread_s[at]).any() else 0.0,
                drift_s=float(np.ptp(offset_s[at])),
                count=len(at),
                events=len(rows),
            )
        )
    return time_ns, offsets


def on_one_clock(events: Events) -> Events:
    """Return the events with times by the collector's clock, sorted by them."""
    time_ns, offsets = align_times(events)
    if not offsets:
        return events
    order = np.argsort(time_ns, kind="stable")
    fields = {
        name: _reorder(column, order) if isinstance(column, CodedColumn) else column[order]
        for name, column in events.fields.items()
    }
    return replace(
        events, time_ns=time_ns[order], event=_reorder(events.event, order), fields=fields
    )


def _reorder(column: CodedColumn, order: NDArray[np.int64]) -> CodedColumn:
    return CodedColumn(column.codes[order], column.words)


def _rows_by_process(events: Events) -> dict[str, NDArray[np.int64]]:
    """Return the rows of each `HOST:PID`."""
    hosts, host_words = codes_of(events, "HOST")
    pids, pid_words = codes_of(events, "PID")
    rows = np.flatnonzero((hosts >= 0) & (pids >= 0))
    key = join_codes([hosts[rows], pids[rows]])
    order = np.argsort(key, kind="stable")
    edges = np.flatnonzero(np.diff(key[order])) + 1
    by_process = {}
    for part in np.split(rows[order], edges):
        if len(part):
            name = f"{host_words[hosts[part[0]]]}:{pid_words[pids[part[0]]]}"
            by_process[name] = part
    return by_process
