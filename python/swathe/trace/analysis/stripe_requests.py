"""Requests to the servers of stripes, with their times on the link, at the server and on the disk.

An id that the client sends with its request, LIFELINE, joins the events of both. The time on the
link is what the client waited and the server did not use. So it needs no common clock, but for the
delays of a server that came late to its work: those are intervals of time. A request that writes
may wait for the bytes that it is to send, as for those of a part while other parts are slow: that
time is neither the link's nor the server's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from swathe.trace.analysis.columns import codes_of, event_codes, join_codes, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.trace.analysis.spans import Spans
    from swathe.trace.ulm import Events

    Rows = NDArray[np.int64]
    Mask = NDArray[np.bool_]
    Seconds = NDArray[np.float64]


LONG, LONG_THERE = 10, 3
"""Multiples of the median duration, of all requests and of those to the same server, from which a
request without an end is reported."""


SHORT_BYTES = 65_536
"""Bytes to write up to which the time on the link is that until an answer begins."""


@dataclass(frozen=True)
class StripeRequests:
    """Requests of striped reads and writes, as parallel arrays in order of their beginning.

    Times in seconds, without those that the server was late. NaN in the times at the server: it
    recorded no events.

    Attributes:
        start, end: rows of the two events; the same row twice if it did not end.
        is_open: whether it did not end, and lasted far longer than others do.
        start_ns, end_ns: their times.
        server_row: row of the server's last event of the request, -1 for none.
        store: code of STORE.
        method: code of METHOD of those that write, -1 of those that read.
        asked_bytes: bytes of the requested ranges, or to write.
        status: status of the answer, 0 for none.
        latency_s: on the link until the answer began.
        transfer_s: on the link after that.
        server_s: at the server, without waits for its disk and for the link.
        disk_s: waits for the disk.
        late_s: delays of the server meanwhile.
        idle_s: waits for the bytes to send.
    """

    start: Rows
    end: Rows
    is_open: Mask
    start_ns: Rows
    end_ns: Rows
    server_row: Rows
    store: Rows
    method: Rows
    asked_bytes: Seconds
    status: Rows
    latency_s: Seconds
    transfer_s: Seconds
    server_s: Seconds
    disk_s: Seconds
    late_s: Seconds
    idle_s: Seconds

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total_s(self) -> Seconds:
        """Durations at the client."""
        return (self.end_ns - self.start_ns) / 1e9


def find_requests(events: Events, spans: Spans, time_ns: Rows) -> StripeRequests:
    """Find the requests of striped reads and writes, joined with the events of their servers.

    Args:
        events: events of a run.
        spans: its stages.
        time_ns: aligned times of the events.
    """
    process = join_codes([codes_of(events, name)[0] for name in ("HOST", "PID")])
    start, end, is_open, end_ns = _pairs(events, spans, time_ns, process)
    start_ns = time_ns[start]
    end_ns = np.maximum(end_ns, start_ns)
    lifeline = codes_of(events, "LIFELINE")[0]
    server_start, server_end, sending, answer = (
        _first_of(events, lifeline, name)[lifeline[start]]
        for name in ("SERVE_START", "SERVE_END", "SEND_START", "FETCH_ANSWER")
    )
    total_s = (end_ns - start_ns) / 1e9
    # Without an answer all of the time is before it.
    answer_ns = np.clip(np.where(answer >= 0, time_ns[answer], end_ns), start_ns, end_ns)
    before_s = (answer_ns - start_ns) / 1e9
    delays = _delays(events, process, time_ns)
    store = codes_of(events, "STORE")[0][start].astype(np.int64)
    servers = _server_processes(store, np.where(server_end >= 0, process[server_end], -1))
    late = [
        _overlap_s(delays, servers, begin_ns, over_ns)
        for begin_ns, over_ns in ((start_ns, answer_ns), (answer_ns, end_ns))
    ]
    late_s = late[0] + late[1]
    working = 1 - np.divide(late_s, total_s, out=np.zeros(len(start)), where=total_s > 0)
    own_s, wait_s, serve_s = _server_times(events, time_ns, server_start, server_end)
    has_both = (server_start >= 0) & (server_end >= 0)
    # It cannot take longer there than the client waited: the server may go on for nobody.
    idle_s = np.nan_to_num(numbers_of(events, "IDLE_S")[end])
    inside_s = (total_s - late_s - idle_s).clip(0)
    wait_s = np.minimum(wait_s * working, inside_s)
    own_s = np.minimum(own_s * working, inside_s - np.nan_to_num(wait_s))
    head_s = np.where(
        (sending >= 0) & has_both, (time_ns[sending] - time_ns[server_start]) / 1e9, serve_s
    )
    link_s = (inside_s - np.nan_to_num(wait_s) - np.nan_to_num(own_s)).clip(0)
    latency_s = (before_s - late[0] - np.nan_to_num(head_s) * working).clip(0, link_s)
    uploads = np.isin(events.event.codes[start], event_codes(events, ["UPLOAD_START"]))
    asked_bytes = np.nan_to_num(numbers_of(events, "ASKED_BYTES")[start])
    # Its answer begins when all was sent: only of a short one that says how far the server is.
    latency_s = np.where(uploads & (asked_bytes > SHORT_BYTES), 0.0, latency_s)
    return StripeRequests(
        start=start,
        end=end,
        is_open=is_open,
        start_ns=start_ns,
        end_ns=end_ns,
        server_row=server_end,
        store=store,
        method=np.where(uploads, codes_of(events, "METHOD")[0][start], -1).astype(np.int64),
        asked_bytes=asked_bytes,
        status=np.where(answer >= 0, np.nan_to_num(numbers_of(events, "STATUS")[answer]), 0).astype(
            np.int64
        ),
        latency_s=latency_s,
        transfer_s=link_s - latency_s,
        server_s=own_s,
        disk_s=wait_s,
        late_s=late_s,
        idle_s=idle_s,
    )


def _server_times(
    events: Events, time_ns: Rows, server_start: Rows, server_end: Rows
) -> tuple[Seconds, Seconds, Seconds]:
    """Return own times of servers, waits for disks, and whole times; NaN without their events."""

    def field(name: str) -> Seconds:
        values = numbers_of(events, name)[server_end]
        return np.where(server_end >= 0, np.nan_to_num(values), np.nan)

    disk_s, verify_s, queue_s = (field(name) for name in ("DISK_S", "VERIFY_S", "QUEUE_S"))
    work_s = disk_s + verify_s + queue_s
    verify_share = np.divide(verify_s, work_s, out=np.zeros(len(work_s)), where=work_s > 0)
    has_both = (server_start >= 0) & (server_end >= 0)
    serve_s = np.where(has_both, (time_ns[server_end] - time_ns[server_start]) / 1e9, np.nan)
    wait_s, line_s = field("WAIT_S"), field("SEND_S") + field("RECEIVE_S")
    own_s = np.maximum(serve_s - wait_s - line_s, 0) + wait_s * verify_share
    return own_s, wait_s * (1 - verify_share), serve_s


def _pairs(
    events: Events, spans: Spans, time_ns: Rows, process: Rows
) -> tuple[Rows, Rows, Mask, Rows]:
    """Return the requests in order of their beginning: first rows, last rows, is_open, and end_ns.

    A request without an end lasts until the last event of its process. It is open if that is far
    longer than others last. Else it may have been in flight when the trace ended: it is left out.
    """
    in_stripe = codes_of(events, "STRIPE")[0] >= 0
    names = ["FETCH_START", "UPLOAD_START"]
    fetches = in_stripe & np.isin(events.event.codes, event_codes(events, names))
    rows = np.flatnonzero(fetches[spans.start])
    start, end = spans.start[rows], spans.end[rows]
    lasting_ns = (time_ns[end] - time_ns[start]).clip(0)
    server = join_codes([process, codes_of(events, "STORE")[0]])
    without_end = spans.unfinished[fetches[spans.unfinished]]
    last_ns = {code: time_ns[process == code].max() for code in np.unique(process[without_end])}
    over_ns = np.array([last_ns[code] for code in process[without_end]], np.int64)
    usual_ns = np.full(len(without_end), LONG * np.median(lasting_ns) if len(start) else 0.0)
    for code in np.unique(server[without_end]):
        alike = server[start] == code
        if alike.any():
            usual_ns[server[without_end] == code] = LONG_THERE * np.median(lasting_ns[alike])
    long = over_ns - time_ns[without_end] > usual_ns
    start = np.concatenate([start, without_end[long]])
    end_ns = np.concatenate([time_ns[end], over_ns[long]])
    is_open = np.repeat([False, True], [len(end), len(start) - len(end)])
    end = np.concatenate([end, without_end[long]])
    order = np.argsort(time_ns[start], kind="stable")
    return start[order], end[order], is_open[order], end_ns[order]


def _first_of(events: Events, lifeline: NDArray[np.int32], name: str) -> Rows:
    """Return the first row of an event for each code of LIFELINE; -1 for none, also at the end."""
    rows = np.flatnonzero(np.isin(events.event.codes, event_codes(events, [name])))
    first = np.full(int(lifeline.max(initial=-1)) + 2, -1, np.int64)
    rows = rows[lifeline[rows] >= 0][::-1]
    first[lifeline[rows]] = rows
    return first


def _delays(events: Events, process: Rows, time_ns: Rows) -> dict[int, tuple[Rows, Rows]]:
    """Return the intervals in which servers were late, by process: beginnings and ends."""
    rows = np.flatnonzero(np.isin(events.event.codes, event_codes(events, ["SERVER_LATE"])))
    length_ns = (np.nan_to_num(numbers_of(events, "DELAY_S")[rows]) * 1e9).astype(np.int64)
    delays = {}
    for code in np.unique(process[rows]).tolist():
        mine = process[rows] == code
        order = np.argsort(time_ns[rows[mine]], kind="stable")
        over_ns = time_ns[rows[mine]][order]
        begin_ns = np.maximum(over_ns - length_ns[mine][order], np.append(0, over_ns[:-1]))
        delays[code] = begin_ns, over_ns
    return delays


def _server_processes(store: Rows, server: Rows) -> Rows:
    """Return the process of the server of each request, -1 if it is unknown.

    A server that came late may have begun a request never: the client had given it up. Then it is
    the process of most other requests to the same store.

    Args:
        store: code of the store of each request.
        server: process that recorded events of it, -1 for none.
    """
    servers = server.copy()
    for code in np.unique(store[server < 0]).tolist():
        others, counts = np.unique(server[(store == code) & (server >= 0)], return_counts=True)
        if len(others):
            servers[(store == code) & (server < 0)] = others[np.argmax(counts)]
    return servers


def _overlap_s(
    delays: dict[int, tuple[Rows, Rows]], servers: Rows, begin_ns: Rows, end_ns: Rows
) -> Seconds:
    """Return how long the server of each request was late within an interval."""
    overlap_s = np.zeros(len(servers))
    for code, (late_ns, over_ns) in delays.items():
        mine = np.flatnonzero(servers == code)
        until = partial(time_inside, (late_ns, over_ns))
        overlap_s[mine] = (until(end_ns[mine]) - until(begin_ns[mine])) / 1e9
    return overlap_s


def time_inside(intervals: tuple[Rows, Rows], moment_ns: Rows) -> Rows:
    """Return how much of ascending intervals is before each moment, in ns."""
    begin_ns, over_ns = intervals
    before_ns = np.append(0, np.cumsum(over_ns - begin_ns))
    count = np.searchsorted(over_ns, moment_ns)
    open_ns = moment_ns - np.append(begin_ns, moment_ns.max(initial=0))[count]
    inside_ns: Rows = before_ns[count] + np.maximum(open_ns, 0)
    return inside_ns
