"""Schedule of clients that join over time, and evaluation of their records.

Closed model: a client sends its next request after the answer. Open model: requests are due at
fixed times, whatever happens to earlier ones. A late request is sent at once, and its response time
counts from when it was due, so that a stall of the server is not hidden (no coordinated omission).
Requests not sent when the client leaves are records too.

Times are seconds of the client host's clock, until they are corrected.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.experiments.statistics import busy_in, edges_of, quantile_in, rate_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

OK, FAILED, UNSENT = 0, 1, 2
RECORD = np.dtype(
    [
        ("client", "i4"),
        ("host", "i4"),
        ("due", "f8"),
        ("sent", "f8"),
        ("done", "f8"),
        ("bytes", "i8"),
        ("status", "i1"),
    ]
)
GRACE_S = 2.0
"""Seconds after the end in which late requests may still be sent."""


@dataclass(frozen=True)
class Schedule:
    """When clients join and send requests.

    Attributes:
        start: time at which the first client joins.
        join_s: seconds between clients.
        end: time at which all leave.
        rate: requests per second and client; 0 for the closed model.
    """

    start: float
    join_s: float
    end: float
    rate: float = 0.0

    def joins(self, client: int) -> float:
        """Return when a client, counted from 0, joins."""
        return self.start + client * self.join_s

    def due(self, client: int) -> Array:
        """Return when its requests are due, in the open model.

        Clients are shifted by fractions of a period that spread any number of them evenly.
        """
        joins = self.joins(client)
        phase = (client * 0.6180339887498949) % 1
        count = max(0, int(np.ceil((self.end - joins) * self.rate - phase)))
        return np.asarray(joins + (np.arange(count) + phase) / self.rate, np.float64)


class SteadyClock:
    """Time of day that never steps back while it is used."""

    def __init__(self) -> None:
        self._base = time.time() - time.perf_counter()

    def now(self) -> float:
        """Return seconds since 1970."""
        return self._base + time.perf_counter()

    def now_ns(self) -> int:
        """Return nanoseconds since 1970."""
        return round(1e9 * self.now())

    def wait(self, until: float) -> None:
        """Sleep until a time."""
        while (seconds_left := until - self.now()) > 0:
            time.sleep(seconds_left)


def run_client(
    number: int,
    schedule: Schedule,
    ask: Callable[[int], int],
    clock: SteadyClock | Any,
    tell: Callable[[str], None] = lambda _text: None,
) -> list[tuple[Any, ...]]:
    """Run one client; return its records.

    Args:
        number: number of the client, from 0.
        schedule: schedule of all clients.
        ask: makes the n-th request; returns the bytes of the answer, raises if there is none.
        clock: clock of this host.
        tell: called with the reason of its first failure.
    """
    records: list[tuple[Any, ...]] = []
    has_reported = False

    def one(due: float | None) -> None:
        nonlocal has_reported
        sent_s = clock.now()
        status, size = OK, 0
        try:
            size = ask(len(records))
        except Exception as error:  # a store or server may raise anything
            status = FAILED
            if not has_reported:
                tell(f"{type(error).__name__}: {error}")
            has_reported = True
        records.append(
            (number, 0, sent_s if due is None else due, sent_s, clock.now(), size, status)
        )

    clock.wait(schedule.joins(number))
    if not schedule.rate:
        while clock.now() < schedule.end:
            one(None)
        return records
    for due in schedule.due(number).tolist():
        clock.wait(due)
        now = clock.now()
        if now > schedule.end + GRACE_S:
            records.append((number, 0, due, now, now, 0, UNSENT))
        else:
            one(due)
    return records


def as_records(rows: Iterable[tuple[Any, ...]]) -> NDArray[Any]:
    """Return rows as an array of RECORD."""
    return np.array(list(rows), dtype=RECORD)


def over_time(
    records: NDArray[Any], schedule: Schedule, clients: int, window_s: float
) -> dict[str, Array]:
    """Return figures per window: offered load, throughput, responses, clients, concurrency.

    Throughput counts good answers at their arrival. All other figures count requests when they were
    due, or, in the closed model, when they were sent, so that answers after the end are not lost:
    `offered`, `late` (answered after the end), `failed`, `unsent`. `median` and `p95` of responses
    are in milliseconds; an unsent request counts with its waiting time. `sent` counts requests at
    the time of sending. `lag` is the 95 % quantile of the clients' own delay, in milliseconds. Time
    left after whole windows belongs to the last one.
    """
    edges = edges_of(schedule.start, schedule.end, window_s)
    edges[-1] = schedule.end
    status = records["status"]
    # A request due at the very beginning may seem earlier, by the clock of another host.
    due = np.clip(records["due"], schedule.start, np.nextafter(schedule.end, 0.0))
    good = records[status == OK]
    waits = status != FAILED
    response = (records["done"] - records["due"])[waits]
    joins = np.array([schedule.joins(client) for client in range(clients)])
    requests, lag_s = lags(records, schedule)
    middle = (edges[:-1] + edges[1:]) / 2
    return {
        "time": middle - schedule.start,
        "clients": np.searchsorted(joins, middle, side="right").astype(float),
        "offered": rate_in(due, edges),
        "sent": rate_in(requests["sent"], edges),
        "throughput": rate_in(good["done"], edges),
        "median": 1e3 * quantile_in(due[waits], response, edges, 0.5),
        "p95": 1e3 * quantile_in(due[waits], response, edges, 0.95),
        "lag": 1e3 * quantile_in(requests["sent"], lag_s, edges, 0.95),
        "busy": busy_in(requests["due"], requests["done"], edges),
        "late": rate_in(due[(status == OK) & (records["done"] > schedule.end)], edges),
        "failed": rate_in(due[status == FAILED], edges),
        "unsent": rate_in(due[status == UNSENT], edges),
    }


def lags(records: NDArray[Any], schedule: Schedule) -> tuple[NDArray[Any], Array]:
    """Return the sent requests, and their delays after the earliest possible time, in seconds.

    The earliest time is when a request was due, or in the closed model when the client joined, and
    when the client had its previous answer. A delay is caused by the client and its host, not by
    the server.
    """
    requests = records[records["status"] != UNSENT]
    requests = requests[np.lexsort((requests["sent"], requests["client"]))]
    join_s = schedule.start + requests["client"] * schedule.join_s
    able = requests["due"] if schedule.rate else join_s
    same = requests["client"][1:] == requests["client"][:-1]
    answer_s = np.append(-np.inf, np.where(same, requests["done"][:-1], -np.inf))[: len(requests)]
    return requests, requests["sent"] - np.maximum(able, answer_s)


def each_client(records: NDArray[Any], schedule: Schedule, clients: int) -> list[dict[str, Any]]:
    """Return for each client: answers, rate while present, quartiles of its responses."""
    rows = []
    for client in range(clients):
        mine = records[records["client"] == client]
        good = mine[mine["status"] == OK]
        response = 1e3 * (good["done"] - good["due"])
        q1, median, q3 = np.quantile(response, (0.25, 0.5, 0.75)) if len(good) else [np.nan] * 3
        rows.append(
            {
                "client": client + 1,
                "host": int(mine["host"][0]) if len(mine) else -1,
                "answers": len(good),
                "failed": int((mine["status"] == FAILED).sum()),
                "unsent": int((mine["status"] == UNSENT).sum()),
                "rate": len(good) / (schedule.end - schedule.joins(client)),
                "q1": float(q1),
                "median": float(median),
                "q3": float(q3),
            }
        )
    return rows


ENOUGH = 0.95
"""Fraction of the peak that counts as equal."""


@dataclass(frozen=True)
class Peak:
    """Peak of a ramp.

    Attributes:
        rate: good answers per second in the best three adjacent windows or, if higher, with all
            clients.
        clients: smallest number of clients with a rate within 5 % of the peak.
        response_ms: median response in the middle window.
        all_ms: median response with all clients.
        all_rate: throughput with all clients.
    """

    rate: float
    clients: int
    response_ms: float
    all_ms: float
    all_rate: float


def peak(at: dict[str, Array]) -> Peak:
    """Find the peak of a ramp, over three adjacent windows, so that no single one decides."""
    rates = at["throughput"]
    # With fewer windows than weights `convolve` would average the weights.
    width = min(3, len(rates))
    smooth = np.convolve(rates, np.ones(width) / width, "valid")
    first = (len(rates) - len(smooth)) // 2
    everyone = at["clients"] == at["clients"].max(initial=0.0)
    all_rate = _median(at["throughput"][everyone])
    # In a short ramp all three may begin before all clients have joined.
    best = max(float(smooth.max(initial=0.0)), all_rate)
    good = np.flatnonzero(smooth >= ENOUGH * best) + first
    enough = int((good if len(good) else np.flatnonzero(everyone))[0]) if best else 0
    return Peak(
        best,
        int(at["clients"][enough]),
        float(at["median"][enough]),
        _median(at["median"][everyone]),
        all_rate,
    )


def _median(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else float("nan")
