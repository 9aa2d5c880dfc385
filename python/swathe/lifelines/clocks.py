"""Clocks that differ: a collector says by how much each sender's is ahead of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from swathe.lifelines.stages import codes_of
from swathe.trace import Coded

if TYPE_CHECKING:
    from swathe.trace import Events


def aligned(events: Events) -> Events:
    """Give the events at the times of the collector's clock, where it recorded CLOCK points.

    Between two of these of a sender the offset is interpolated; before and after, it stays.
    """
    offsets = events.fields.get("OFFSET_S")
    if "CLOCK" not in events.event.words or offsets is None or isinstance(offsets, Coded):
        return events
    sender, senders = codes_of(events, "SENDER")
    clock = events.event.codes == events.event.words.index("CLOCK")
    clock &= (sender >= 0) & ~np.isnan(offsets)
    host, hosts = codes_of(events, "HOST")
    pid, pids = codes_of(events, "PID")
    times = events.time_ns.copy()
    for code in np.unique(sender[clock]):
        name, _, number = senders[code].rpartition(":")
        if name not in hosts or number not in pids:
            continue
        theirs = (host == list(hosts).index(name)) & (pid == list(pids).index(number)) & ~clock
        told = clock & (sender == code)
        shift = np.interp(times[theirs], times[told], offsets[told] * 1e9)
        times[theirs] -= np.round(shift).astype(np.int64)
    order = np.argsort(times, kind="stable")
    return replace(
        events,
        time_ns=times[order],
        event=_ordered(events.event, order),
        fields={
            name: _ordered(column, order) if isinstance(column, Coded) else column[order]
            for name, column in events.fields.items()
        },
    )


def _ordered(column: Coded, order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Coded:
    return Coded(column.codes[order], column.words)
