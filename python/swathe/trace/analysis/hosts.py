"""Load of hosts, from the points of the monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from swathe.trace.analysis.columns import codes_of, event_codes, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.trace.ulm import Events

FIGURES = {
    "CPU": ("USER_PERCENT", "SYSTEM_PERCENT", "IOWAIT_PERCENT", "STEAL_PERCENT", "IDLE_PERCENT"),
    "MEMORY": ("USED_BYTES", "FREE_BYTES", "CACHED_BYTES"),
    "SWAP": ("USED_BYTES", "IN_BYTES_PER_S", "OUT_BYTES_PER_S"),
    "DISK": ("READ_SECTORS_PER_S", "WRITTEN_SECTORS_PER_S", "BUSY_PERCENT"),
    "NET": ("RECEIVED_BYTES_PER_S", "SENT_BYTES_PER_S"),
    "TCP": ("RETRANSMITS_PER_S", "RTT_S", "CONNECTIONS"),
    "PING": ("RTT_S",),
}
TOGETHER_NS, LATEST_NS = 100_000_000, 10_000_000_000
"""Points of one reading are written within the first time; a reading later than the second is
ignored."""
WHICH = {"DISK": "DEVICE", "NET": "INTERFACE", "PING": "STORE"}


def figures(
    events: Events,
    time_ns: NDArray[np.int64],
    from_ns: int | None = None,
    until_ns: int | None = None,
) -> dict[str, dict[str, float]]:
    """Return averages by host, such as `CPU.USER_PERCENT` or `DISK.sda.BUSY_PERCENT`.

    A point describes the time before it, so the first point after an interval counts too.
    """
    rows = np.flatnonzero(np.isin(events.event.codes, event_codes(events, FIGURES)))
    hosts, names = codes_of(events, "HOST")
    averages: dict[str, dict[str, float]] = {}
    for host in np.unique(hosts[rows]):
        part = rows[hosts[rows] == host]
        if from_ns is not None and until_ns is not None:
            at_ns = time_ns[part]
            after_ns = at_ns[at_ns >= until_ns].min(initial=until_ns + LATEST_NS)
            last_ns = after_ns + TOGETHER_NS if after_ns < until_ns + LATEST_NS else until_ns
            part = part[(at_ns > from_ns) & (at_ns <= last_ns)]
        averages[names[host] if host >= 0 else ""] = _of_host(events, part)
    return averages


def _of_host(events: Events, rows: NDArray[np.int64]) -> dict[str, float]:
    averages = {}
    for name, keys in FIGURES.items():
        of_name = rows[np.isin(events.event.codes[rows], event_codes(events, [name]))]
        which, words = codes_of(events, WHICH.get(name, ""))
        for code in np.unique(which[of_name]):
            part = of_name[which[of_name] == code]
            label = f"{name}.{words[code]}" if code >= 0 else name
            for key in keys:
                values = numbers_of(events, key)[part]
                if np.isfinite(values).any():
                    averages[f"{label}.{key}"] = float(np.nanmean(values))
    return averages
