"""Striped stores: as fast as their servers together, also if one of them is gone or slow.

    python benches/striped.py [--smoke] [--only PART] [--seconds S]

Each server is an nginx process over a folder of the memory disk, behind a proxy of its own with a
round trip and 14.25 MB/s, as those of the Distributed-Parallel Storage System had in 1999. One
server is probed, and all have its costs. An object is written to the folders, and read over the
links in requests of 16 MiB, four at a time, so that it takes some seconds by the sum of the lines.
Client, proxies and servers share the cores of this machine. Parts:

    links       1, 2, 4, 8 and 16 servers at 1 and 45 ms, without parity
    unequal     three servers with 1, 2 and 4 times that line, and as many places each, at 1 ms
    dead        five servers with one of parity, one of them gone
    slow        the same, one of them ten times as slow
    local       four folders with and without parity beside one file: GB/s, processor time for a GB
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from harness import options, save
from links import FOLDER, work
from swathe import _swathe
from tests.support import servers

RATE = 14_250_000
PARTS = ("links", "unequal", "dead", "slow", "local")
SERVERS = (1, 2, 4, 8, 16)
RTTS_MS = (1, 45)
REQUEST_BYTES, AT_ONCE = 16 << 20, 4
POLL_S = 0.05
NAME = "object"
Rows = Iterator[dict[str, Any]]


class Lab:
    """Servers behind links, and the stores that lie over them.

    Attributes:
        proxies: one for each server.
        written: `wide:` over the folders of the servers.
        read: the same over the links.
    """

    def __init__(self, shares: Sequence[int], rtt_ms: int, parity: int, stack: ExitStack) -> None:
        folders, self.proxies = [], []
        for share in shares:
            new = stack.enter_context(tempfile.TemporaryDirectory(prefix="server-", dir=FOLDER))
            server = stack.enter_context(servers.nginx(Path(new)))
            folders.append(server.folder)
            settings = {"rtt_ms": rtt_ms, "shared_bytes_per_s": RATE * share}
            self.proxies.append(stack.enter_context(servers.proxy(server.url, **settings)))
        (folders[0] / "probe").write_bytes(pattern(32 << 20))
        roots = [proxy.url for proxy in self.proxies]
        places = [
            (number, f"place-{place}")
            for number, share in enumerate(shares)
            for place in range(share)
        ]
        self.written = stores_of([f"file://{folder}" for folder in folders], places, parity)
        costs = probe_costs(roots[0], "probe")
        measured = {
            root: {**costs, "total_bytes_per_s": costs["total_bytes_per_s"] * share}
            for root, share in zip(roots, shares, strict=True)
        }
        self.read = stores_of(roots, places, parity, measured)


@contextmanager
def lab(shares: Sequence[int], rtt_ms: int, parity: int) -> Iterator[Lab]:
    """Start servers and their links; each has as many places as shares of the line."""
    with ExitStack() as stack:
        yield Lab(shares, rtt_ms, parity, stack)


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


def probe_costs(url: str, name: str) -> dict[str, Any]:
    """Return the costs of a server, as `swathe probe` measures them."""
    command = [sys.executable, "-m", "swathe.cli", "probe", f"{url}/{name}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    costs: dict[str, Any] = json.loads(done.stdout)["costs"]
    return costs


def put(stores: _swathe.Stores, size: int) -> float:
    """Write an object of some bytes to `wide:`; return the seconds."""
    with tempfile.NamedTemporaryFile(dir=FOLDER) as file:
        file.write(pattern(size))
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


def read(stores: _swathe.Stores, name: str = f"wide:{NAME}") -> tuple[float, float]:
    """Read an object; return the seconds, and those of processors."""
    source = stores.open(name)
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    source.measure(requests_of(source.size), AT_ONCE)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu_s


def row_of(what: str, size: int, seconds: float, rate: float, **more: Any) -> dict[str, Any]:
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


def read_over_links(counts: Sequence[int], rtts_ms: Sequence[int], seconds: float) -> Rows:
    """Read with each number of servers, at each round trip."""
    for rtt_ms in rtts_ms:
        for count in counts:
            size = int(RATE * count * seconds)
            with lab([1] * count, rtt_ms, 0) as there:
                put(there.written, size)
                took_s, cpu_s = read(there.read)
            cpu = f"{cpu_s / size * 1e9:.2f}"
            name = f"{count} servers, {rtt_ms} ms"
            yield row_of(name, size, took_s, RATE * count, cpu_s_per_gb=cpu)


def read_unequal(shares: Sequence[int], seconds: float) -> Rows:
    """Read from servers whose lines are not alike."""
    rate = RATE * sum(shares)
    size = int(rate * seconds)
    with lab(shares, 1, 0) as there:
        put(there.written, size)
        yield row_of(f"shares {shares}", size, read(there.read)[0], rate)


def read_without_one(seconds: float, *, is_dead: bool) -> Rows:
    """Read from five servers. One of them is gone, or ten times as slow."""
    size = int(RATE * 4 * seconds)
    with lab([1] * 5, 1, 1) as there:
        put(there.written, size)
        yield row_of("five servers", size, read(there.read)[0], RATE * 5)
        proxy = there.proxies[2]
        if is_dead:
            proxy.process.kill()
            proxy.process.wait()
        else:
            proxy.set(shared_bytes_per_s=RATE // 10)
        took_s, _ = read(there.read)
        what = "one of five gone" if is_dead else "one of five ten times as slow"
        hedges = json.loads(there.read.stripe_hedges("wide"))
        yield row_of(what, size, took_s, RATE * 4, **hedges)


def read_folders(size: int, repeats: int) -> Rows:
    """Read an object from four folders, and a file."""
    with ExitStack() as stack:
        new = [
            stack.enter_context(tempfile.TemporaryDirectory(prefix="disk-", dir=FOLDER))
            for _ in range(5)
        ]
        whole = Path(new[4]) / NAME
        whole.write_bytes(pattern(size))
        plain = _swathe.Stores("[]")
        roots = [f"file://{folder}" for folder in new[:4]]
        places = [(number, "") for number in range(4)]
        striped = {parity: stores_of(roots, places, parity) for parity in (0, 1)}
        for parity, stores in striped.items():
            put_s = put(stores, size)
            times = [read(stores) for _ in range(repeats)]
            files = [read(plain, str(whole)) for _ in range(repeats)]
            took_s, cpu_s = (statistics.median(each) for each in zip(*times, strict=True))
            file_s, file_cpu_s = (statistics.median(each) for each in zip(*files, strict=True))
            yield row_of(
                f"four folders, parity {parity}",
                size,
                took_s,
                size / file_s,
                cpu_s_per_gb=f"{cpu_s / size * 1e9:.2f}",
                file_cpu_s_per_gb=f"{file_cpu_s / size * 1e9:.2f}",
                write_mb_per_s=f"{size / put_s / 1e6:.0f}",
            )


def main() -> None:
    """Measure all parts, print them, and write build/bench/striped.json."""
    parser = options(__doc__, PARTS)
    parser.add_argument("--seconds", type=float, default=20, help="of each read by the lines (20)")
    arguments = parser.parse_args()
    is_smoke, seconds = arguments.smoke, arguments.seconds
    if is_smoke:
        seconds = 0.5
    counts, rtts_ms = ((2,), (1,)) if is_smoke else (SERVERS, RTTS_MS)
    parts: dict[str, Callable[[], Rows]] = {
        "links": lambda: read_over_links(counts, rtts_ms, seconds),
        "unequal": lambda: read_unequal((1, 2) if is_smoke else (1, 2, 4), seconds),
        "dead": lambda: read_without_one(seconds, is_dead=True),
        "slow": lambda: read_without_one(seconds, is_dead=False),
        "local": lambda: read_folders((64 << 20) if is_smoke else (2 << 30), 1 if is_smoke else 5),
    }
    results = {}
    with work():
        for name, part in parts.items():
            if name in (arguments.only or PARTS):
                results[name] = list(part())
    save("striped", results)


if __name__ == "__main__":
    main()
