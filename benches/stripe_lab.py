"""Servers behind links of their own, a striped store over them, and the time to read it."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import psutil

import swathe
from links import FOLDER
from swathe import _swathe
from tests.support import servers
from tests.support.block_servers import block_server

RATE = 14_250_000
"""Bytes per second of a server of the Distributed-Parallel Storage System."""
REQUEST_BYTES, AT_ONCE = 16 << 20, 4
POLL_S = 0.05
NAME, PROBE, PROBE_BYTES = "object", "probe", 32 << 20
PARITY, RTT_MS = 1, 1
"""Of stripes in the catalogue, and of their links."""
TURN_MS = 1.0
"""Time of what a proxy sends at once. At 0.25 ms, proxies and client take twice the processor."""
Rows: TypeAlias = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class LinkedServer:
    """A server over a new folder, and the link that leads to it."""

    folder: Path
    url: str
    link: servers.Proxy


class Lab:
    """Servers behind links, and the stores that lie over them.

    Attributes:
        servers: the servers, and their links.
        proxies: one for each server.
        written: `wide:` over the folders of the servers.
        read: the same over the links.
    """

    def __init__(
        self,
        shares: Sequence[int],
        rtt_ms: int,
        parity: int,
        rate: int,
        turn_ms: float,
        stack: ExitStack,
    ) -> None:
        linked = [serve("nginx", rate * share, stack, rtt_ms, turn_ms) for share in shares]
        self.servers = linked
        self.proxies = [server.link for server in linked]
        (linked[0].folder / PROBE).write_bytes(pattern(PROBE_BYTES))
        roots = [proxy.url for proxy in self.proxies]
        places = [
            (number, f"place-{place}")
            for number, share in enumerate(shares)
            for place in range(share)
        ]
        self.written = stores_of([f"file://{each.folder}" for each in linked], places, parity)
        costs = probe_costs(roots[0], PROBE)
        measured = {
            root: {**costs, "total_bytes_per_s": costs["total_bytes_per_s"] * share}
            for root, share in zip(roots, shares, strict=True)
        }
        self.read = stores_of(roots, places, parity, measured)


@contextmanager
def lab(
    shares: Sequence[int],
    rtt_ms: int,
    parity: int,
    rate: int = RATE,
    turn_ms: float = TURN_MS,
) -> Iterator[Lab]:
    """Start servers and their links; each has as many places as shares of the line.

    Args:
        shares: shares of each line.
        rtt_ms: round trip.
        parity: servers that may be lost.
        rate: bytes per second of a share.
        turn_ms: time of what a proxy sends at once.
    """
    with ExitStack() as stack:
        yield Lab(shares, rtt_ms, parity, rate, turn_ms, stack)


def serve(
    kind: Literal["nginx", "blocks"],
    rate: int,
    stack: ExitStack,
    rtt_ms: int = RTT_MS,
    turn_ms: float = TURN_MS,
) -> LinkedServer:
    """Start nginx or a block server behind a link with a rate in bytes per second, each way."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="server-", dir=FOLDER)))
    if kind == "nginx":
        server = stack.enter_context(servers.nginx(folder))
        folder, url = server.folder, server.url
    else:
        url = stack.enter_context(block_server(folder)).url
    limits = {"shared_bytes_per_s": rate, "upload_bytes_per_s": rate, "turn_ms": turn_ms}
    link = servers.proxy(url, rtt_ms=rtt_ms, **limits)
    return LinkedServer(folder, url, stack.enter_context(link))


def pattern(size: int) -> bytes:
    """Return bytes that differ from place to place, quickly."""
    block = random.Random(1).randbytes((1 << 20) + 1)
    return (block * (size // len(block) + 1))[:size]


def stores_of(
    roots: Sequence[str],
    places: Sequence[tuple[int, str]],
    parity: int,
    costs: dict[str, dict[str, Any]] | None = None,
) -> _swathe.Stores:
    """Return the engine's stores: `wide:` over folders of these roots, and costs by root."""
    over = [
        {"store": {"name": f"s{at}", "root": roots[at], "options": {}}, "prefix": prefix}
        for at, prefix in places
    ]
    wide = {"name": "wide", "root": "striped://wide", "options": {"parity": str(parity)}}
    return _swathe.Stores(json.dumps([{**wide, "over": over}]), json.dumps(costs or {}))


def probe_costs(url: str, name: str, *, quick: bool = False) -> dict[str, Any]:
    """Return the costs of a server, as `swathe probe` measures them."""
    command = [sys.executable, "-m", "swathe.cli", "probe", f"{url}/{name}", "--json"]
    command += ["--quick"] if quick else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    costs: dict[str, Any] = json.loads(done.stdout)["costs"]
    return costs


def put(stores: _swathe.Stores, size: int) -> float:
    """Write an object of some bytes to `wide:`; return the seconds."""
    with tempfile.NamedTemporaryFile(dir=FOLDER) as file:
        piece = pattern(PROBE_BYTES)
        for at in range(0, size, PROBE_BYTES):
            file.write(piece[: size - at])
        file.flush()
        began = time.perf_counter()
        copies = _swathe.Copies([(file.name, None, f"wide:{NAME}", True)], 1, stores)
        while (outcomes := copies.poll(POLL_S)) is not None:
            for outcome in outcomes:
                if outcome.kind is not None:
                    raise RuntimeError(outcome.reason)
        return time.perf_counter() - began


def requests_of(size: int) -> list[tuple[int, int]]:
    """Return offset and bytes of the requests that read an object."""
    return [(at, min(REQUEST_BYTES, size - at)) for at in range(0, size, REQUEST_BYTES)]


def used_cpu_s() -> dict[str, float]:
    """Return the CPU seconds that this process and those it started have used, by their program."""
    used: dict[str, float] = {}
    this = psutil.Process()
    for process in (this, *this.children(recursive=True)):
        name = "client" if process == this else process.name()
        times = process.cpu_times()
        used[name] = used.get(name, 0.0) + times.user + times.system
    return used


def read(stores: _swathe.Stores, name: str = f"wide:{NAME}") -> tuple[float, float]:
    """Read an object; return the seconds, and those of processors."""
    source = stores.open(name)
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    source.measure(requests_of(source.size), AT_ONCE)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu_s


def read_by_curl(linked: Sequence[LinkedServer]) -> float:
    """Read the part on each server by as many processes of curl as requests are sent by `read`.

    They do nothing with what arrives, and wait for nobody: what links and processors allow. Returns
    the seconds.
    """
    commands = []
    for server in linked:
        (part,) = server.folder.rglob(f"{NAME}.stripe.*")
        size = part.stat().st_size
        starts = [size * at // AT_ONCE for at in range(AT_ONCE + 1)]
        url = f"{server.link.url}/{part.relative_to(server.folder)}"
        commands += [
            ("curl", "-sf", "-o", "/dev/null", "-r", f"{first}-{stop - 1}", url)
            for first, stop in pairwise(starts)
        ]
    began = time.perf_counter()
    processes = [subprocess.Popen(command) for command in commands]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise RuntimeError(f"curl: expected code 0 of each, found {codes}")
    return time.perf_counter() - began


def read_row(what: str, size: int, seconds: float, rate: float, **more: Any) -> dict[str, Any]:
    """Print and return a row: what was read, and its part of a rate."""
    row = {
        "what": what,
        "bytes": size,
        "seconds": seconds,
        "mb_per_s": size / seconds / 1e6,
        "part": size / seconds / rate,
        **more,
    }
    extra = "".join(f", {name} {value}" for name, value in more.items())
    print(
        f"{what}: {size / 1e6:.0f} MB in {seconds:.2f} s, {row['mb_per_s']:.1f} MB/s, "
        f"{row['part']:.3f} of {rate / 1e6:.2f} MB/s{extra}",
        flush=True,
    )
    return row


def serve_folders(
    rates: Sequence[int], stack: ExitStack, rtt_ms: int = RTT_MS
) -> tuple[list[str], list[Path]]:
    """Start nginx behind a link for each rate; return their URLs and folders."""
    linked = [serve("nginx", rate, stack, rtt_ms) for rate in rates]
    for server in linked:
        (server.folder / PROBE).write_bytes(pattern(PROBE_BYTES))
    return [server.link.url for server in linked], [server.folder for server in linked]


def declare_stripe(roots: Sequence[str], stripe: str = "wide", server: str = "disk") -> None:
    """Declare a striped store over these roots, in place of the roots that it had."""
    names = [f"{server}{number}" for number in range(len(roots))]
    present = {store.name for store in swathe.stores.list()}
    for name in (stripe, *names):
        if name in present:
            swathe.stores.remove(name)
    for name, root in zip(names, roots, strict=True):
        swathe.stores.add(name, root)
    swathe.stores.add(stripe, "striped:", over=names, parity=PARITY)
