"""Striped stores: as fast as their servers together, also if one of them is gone or slow.

    python benches/striped.py [--smoke] [--only PART] [--seconds S] [--servers N] [--rtt-ms MS]
        [--rate MB_S] [--turn-ms MS]

Where nothing else is said, each server is an nginx process over a folder of the memory disk, behind
a proxy of its own with a round trip and 14.25 MB/s, as those of the Distributed-Parallel Storage
System had in 1999. One server is probed, and all have its costs. An object is written to the
folders, and read over the links in requests of 16 MiB, four at a time, so that it takes some
seconds by the sum of the lines. Client, proxies and servers share the cores of this machine. Parts:

    links       1, 2, 4, 8 and 16 servers at 1 and 45 ms, without parity; CPU seconds of client,
                proxies and servers for a GB, and how many cores they used together; and curl, which
                reads the parts with as many requests at a time
    write       1, 2, 4 and 8 block servers at 1 ms, without parity and with one shard of it
    unequal     three servers with 1, 2 and 4 times that line, and as many places each, at 1 ms
    dead        five servers with one of parity, one of them gone
    slow        the same, one of them ten times as slow
    local       four folders with and without parity beside one file: GB/s, processor time for a GB
    cuts        1,000 cuts from 200 frames, beside one server with the sum of the lines
    tuning      windows of TCP from 8 kB to 16 MB, 1 to 8 sockets, beside what a probe chooses
    parity      shards of parity computed by one core (builds a test of the crate)
    repair      the parts of a lost server made again, alone, beside reads, and after a kill
    peers       four servers on this machine, without links: ours, nginx, xrdcp, aria2c, GlusterFS,
                SeaweedFS
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from harness import HERE, options, save
from link_windows import race_windows
from links import FOLDER, work
from stripe_cuts import compare_cuts
from stripe_lab import (
    NAME,
    RATE,
    RTT_MS,
    TURN_MS,
    Rows,
    lab,
    pattern,
    put,
    read,
    read_by_curl,
    read_row,
    serve,
    stores_of,
    used_cpu_s,
)
from stripe_peers import compare_peers
from stripe_repair import repair_beside_reads
from swathe import _swathe

PARTS = (
    "links",
    "write",
    "unequal",
    "dead",
    "slow",
    "local",
    "cuts",
    "tuning",
    "parity",
    "repair",
    "peers",
)
SERVERS = (1, 2, 4, 8, 16)
RTTS_MS = (1, 45)


def read_over_links(
    counts: Sequence[int], rtts_ms: Sequence[int], rate: int, turn_ms: float, seconds: float
) -> Rows:
    """Read with each number of servers, at each round trip, by lines of `rate` bytes per second."""
    for rtt_ms in rtts_ms:
        for count in counts:
            size = int(rate * count * seconds)
            with lab([1] * count, rtt_ms, 0, rate, turn_ms) as there:
                put(there.written, size)
                before = used_cpu_s()
                took_s, _ = read(there.read)
                cpu_s = {name: cpu_s - before[name] for name, cpu_s in used_cpu_s().items()}
                curl_s = read_by_curl(there.servers)
            per_gb = {name: round(each / size * 1e9, 2) for name, each in cpu_s.items()}
            cores = round(sum(cpu_s.values()) / took_s, 2)
            name = f"{count} servers, {rtt_ms} ms"
            yield read_row(name, size, took_s, rate * count, cpu_s_per_gb=per_gb, cores=cores)
            yield read_row(f"{name}, curl", size, curl_s, rate * count)


def write_over_links(counts: Sequence[int], seconds: float) -> Rows:
    """Write to each number of servers, with as much parity as fits."""
    for parity in (0, 1):
        for count in counts:
            if count <= parity:
                continue
            rate = RATE * (count - parity)
            size = int(rate * seconds)
            with ExitStack() as stack:
                linked = [serve("blocks", RATE, stack) for _ in range(count)]
                roots = [each.link.url.replace("http://", "dav://") for each in linked]
                stores = stores_of(roots, [(number, "") for number in range(count)], parity)
                took_s = put(stores, size)
            yield read_row(f"written to {count} servers, parity {parity}", size, took_s, rate)


def read_unequal(shares: Sequence[int], seconds: float) -> Rows:
    """Read from servers whose lines are not alike."""
    rate = RATE * sum(shares)
    size = int(rate * seconds)
    with lab(shares, 1, 0) as there:
        put(there.written, size)
        yield read_row(f"shares {shares}", size, read(there.read)[0], rate)


def read_without_one(seconds: float, *, is_dead: bool) -> Rows:
    """Read from five servers. One of them is gone, or ten times as slow."""
    size = int(RATE * 4 * seconds)
    with lab([1] * 5, 1, 1) as there:
        put(there.written, size)
        yield read_row("five servers", size, read(there.read)[0], RATE * 5)
        proxy = there.proxies[2]
        if is_dead:
            proxy.process.kill()
            proxy.process.wait()
        else:
            proxy.set(shared_bytes_per_s=RATE // 10)
        took_s, _ = read(there.read)
        what = "one of five gone" if is_dead else "one of five ten times as slow"
        hedges = json.loads(there.read.stripe_hedges("wide"))
        yield read_row(what, size, took_s, RATE * 4, **hedges)


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
            yield read_row(
                f"four folders, parity {parity}",
                size,
                took_s,
                size / file_s,
                cpu_s_per_gb=f"{cpu_s / size * 1e9:.2f}",
                file_cpu_s_per_gb=f"{file_cpu_s / size * 1e9:.2f}",
                write_mb_per_s=f"{size / put_s / 1e6:.0f}",
            )


def code_parity() -> Rows:
    """Compute shards of parity in the crate itself, which prints what it measured."""
    command = ["cargo", "test", "--release", "-p", "swathe-stripe", "--lib", "parity_rates", "--"]
    command += ["--ignored", "--nocapture"]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not rows:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    for row in rows:
        print(
            f"{row['data']} + {row['parity']}: {row['encode_gb_per_s']:.2f} GB/s of data a core, "
            f"a lost shard rebuilt: {row['rebuild_gb_per_s']:.2f} GB/s",
            flush=True,
        )
        yield row


def main() -> None:
    """Measure all parts, print them, and write build/bench/striped.json."""
    parser = options(__doc__, PARTS)
    parser.add_argument("--seconds", type=float, default=20, help="of each read by the lines (20)")
    parser.add_argument("--servers", type=int, action="append", help="in links (1, 2, 4, 8, 16)")
    parser.add_argument(
        "--rtt-ms", type=int, action="append", help="in links (1 and 45) and cuts (1)"
    )
    parser.add_argument(
        "--rate", type=float, default=RATE / 1e6, help="MB/s of a line in links and cuts (14.25)"
    )
    parser.add_argument(
        "--turn-ms",
        type=float,
        default=TURN_MS,
        help="time of what a proxy sends at once, in links: a longer one takes less of the "
        f"processor ({TURN_MS:g})",
    )
    arguments = parser.parse_args()
    is_smoke, seconds = arguments.smoke, arguments.seconds
    if is_smoke:
        seconds = 0.5
    counts, rtts_ms = arguments.servers or SERVERS, arguments.rtt_ms or RTTS_MS
    if is_smoke:
        counts, rtts_ms = (2,), (1,)
    rate, rtt_ms = int(arguments.rate * 1e6), (arguments.rtt_ms or [RTT_MS])[0]
    parts: dict[str, Callable[[], Rows]] = {
        "links": lambda: read_over_links(counts, rtts_ms, rate, arguments.turn_ms, seconds),
        "write": lambda: write_over_links((2,) if is_smoke else SERVERS[:4], seconds),
        "unequal": lambda: read_unequal((1, 2) if is_smoke else (1, 2, 4), seconds),
        "dead": lambda: read_without_one(seconds, is_dead=True),
        "slow": lambda: read_without_one(seconds, is_dead=False),
        "local": lambda: read_folders((64 << 20) if is_smoke else (2 << 30), 1 if is_smoke else 5),
        "cuts": lambda: compare_cuts(rate, rtt_ms, is_smoke=is_smoke),
        "tuning": lambda: race_windows(is_smoke=is_smoke),
        "parity": code_parity,
        "repair": lambda: repair_beside_reads(is_smoke=is_smoke),
        "peers": lambda: compare_peers(is_smoke=is_smoke),
    }
    results = {}
    with work():
        for name, part in parts.items():
            if name in (arguments.only or PARTS):
                results[name] = list(part())
    save("striped", results)


if __name__ == "__main__":
    main()
