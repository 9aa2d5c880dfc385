"""Windows of TCP and sockets, as the tables of tuning of 1999: each choice, and the automatic one.

The proxy lets a connection send at most a window in a round trip, as a small buffer of the server
or of a router's owner does. A column of the table is a number of sockets: each reads an equal part
of the object. The automatic choice reads the same bytes as all readers of Swathe do: a probe has
measured the link, and the plan says how many requests are in flight. The window of a row is that of
the link, which a reader cannot change.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from links import FOLDER
from stripe_lab import Rows, pattern, probe_costs
from swathe import _swathe
from tests.support import servers

WINDOWS = (8 << 10, 64 << 10, 512 << 10, 4 << 20, 16 << 20)
SOCKETS = (1, 2, 4, 8)
MOST_BYTES = 48 << 20
LEAST_BYTES = 32 << 10
WARM_SOCKETS = 64
"""Connections that are open before anything is measured."""
REPEATS = 3
LONG_MS = 100
"""A quick probe of 5 s has too few round trips for links as long as this."""
ENOUGH = 4
"""How often what is under way on a line fits into a window that does not limit it."""


class TcpLink(NamedTuple):
    """A line: all connections together, and its round trip."""

    bytes_per_s: int
    rtt_ms: int


LINKS = (
    *(TcpLink(20_000_000, rtt_ms) for rtt_ms in (1, 20, 60, 150)),
    TcpLink(5_000_000, 60),
)


def race_windows(*, is_smoke: bool) -> Rows:
    """Measure each link with each window."""
    links, windows = (LINKS[1:2], WINDOWS[1:2]) if is_smoke else (LINKS, WINDOWS)
    with tempfile.TemporaryDirectory(prefix="server-", dir=FOLDER) as folder, ExitStack() as stack:
        server = stack.enter_context(servers.nginx(Path(folder)))
        (server.folder / "object").write_bytes(pattern(MOST_BYTES))
        for link in links:
            for window in windows:
                yield measure_window(server.url, link, window, 0.3 if is_smoke else 1.0)
                if window > ENOUGH * link.bytes_per_s * link.rtt_ms / 1e3:
                    break


def measure_window(
    server_url: str, link: TcpLink, window: int, seconds: float
) -> dict[str, object]:
    """Read with each number of sockets and with the automatic choice; print and return a row."""
    settings = {"rtt_ms": link.rtt_ms, "shared_bytes_per_s": link.bytes_per_s}
    with servers.proxy(server_url, **settings, window_bytes=window) as proxy:
        costs = probe_costs(proxy.url, "object", quick=link.rtt_ms < LONG_MS)
        rates = {
            str(sockets): rate_of(proxy.url, costs, link, window, sockets, seconds)
            for sockets in SOCKETS
        }
        best = max(rates, key=rates.__getitem__)
        rates["auto"] = rate_of(proxy.url, costs, link, window, None, seconds)
    row = {
        "what": f"{link.bytes_per_s / 1e6:.0f} MB/s, {link.rtt_ms} ms, {window >> 10} KiB",
        "mb_per_s": {name: rate / 1e6 for name, rate in rates.items()},
        "streams": costs["streams"],
        "best_sockets": int(best),
        "auto_of_best": rates["auto"] / rates[best],
    }
    columns = ", ".join(f"{name}: {rate / 1e6:.2f}" for name, rate in rates.items())
    print(f"{row['what']}: {columns} MB/s; auto {row['auto_of_best']:.3f} of the best", flush=True)
    return row


def rate_of(
    url: str,
    costs: dict[str, object],
    link: TcpLink,
    window: int,
    sockets: int | None,
    seconds: float,
) -> float:
    """Return the bytes per second of a read with `sockets` sockets; `None`: as a plan chooses."""
    most = (sockets or SOCKETS[-1]) * window / (link.rtt_ms / 1e3)
    expected = min(link.bytes_per_s, most)
    size = int(min(max(expected * seconds, LEAST_BYTES), MOST_BYTES))
    source = _swathe.Stores("[]", json.dumps({url: costs})).open(f"{url}/object")
    source.measure([(0, 1)] * WARM_SOCKETS, WARM_SOCKETS)
    read: Callable[[], object]
    if sockets is None:
        read = lambda: source.read_ranges([(0, size)])  # noqa: E731
    else:
        each = -(-size // sockets)
        parts = [(at, min(each, size - at)) for at in range(0, size, each)]
        read = lambda: source.measure(parts, sockets)  # noqa: E731
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        read()
        times.append(time.perf_counter() - began)
    return size / statistics.median(times)
