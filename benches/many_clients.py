"""Cuts by a hundred clients at the same time from one server, with and without vector reads.

    python benches/many_clients.py [--clients N] [--seconds N] [--objective NAME ...]

nginx serves frames as on a LAN (1 ms, 600 Mb/s) and a WAN (56 ms, 160 Mb/s); what all clients have
together is the line. Each client is a thread that cuts 100 x 100 pixels from random frames, one cut
after another, with the headers in the index and no other cache. Without vector reads the profile is
the same, but for the ranges of a request. Each objective of plans is measured in turn, several
times. One client is measured, too. Prints the median of cuts a second, of milliseconds of a cut,
and of bytes a cut.
"""

from __future__ import annotations

import argparse
import random
import statistics
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import swathe
from harness import HEIGHT, WIDTH, options, save, survey
from links import FRAMES, Link, probe, reach, work
from swathe.catalog import Catalog
from swathe.core.argument_checks import OBJECTIVES
from tests.support import servers

if TYPE_CHECKING:
    from swathe.core.argument_checks import Objective

LINKS = (Link("nginx", 1, shared=75_000_000), Link("nginx", 56, shared=20_000_000))
SIZE = 100


def drop_vectors() -> None:
    """Leave the ranges of a request out of all profiles."""
    with Catalog.open() as catalog:
        for profile in catalog.profiles():
            costs = {**profile.costs, "multi_range": None}
            at = datetime.now(UTC)
            catalog.put_profile(profile.root, profile.host, costs, profile.spread, at, ())


def measure(
    link: Link, proxy: servers.Proxy, clients: int, seconds: float, objective: Objective
) -> dict[str, Any]:
    """Let all clients cut for some seconds."""
    names = [f"{link.id}:frame-{number + 1:06}.fit" for number in range(FRAMES)]
    for name in names:
        swathe.cut(name, box=(0, 0, 1, 1))
    counts = [0] * clients
    proxy.clear()
    began = time.perf_counter()

    def cut(client: int) -> None:
        draw = random.Random(client)
        while time.perf_counter() - began < seconds:
            x, y = draw.randrange(WIDTH - SIZE), draw.randrange(HEIGHT - SIZE)
            box = (x, y, SIZE, SIZE)
            swathe.cut(draw.choice(names), box=box, objective=objective).data.sum()
            counts[client] += 1

    threads = [threading.Thread(target=cut, args=(client,)) for client in range(clients)]
    cpu = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    count, stats = sum(counts), proxy.stats()
    return {
        "cuts_per_s": count / took,
        "ms": 1000 * took * clients / count,
        "bytes_per_cut": stats["bytes_down"] / count,
        "client_cpus": (time.process_time() - cpu) / took,
    }


def compare(
    link: Link, proxy: servers.Proxy, clients: int, args: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Return the medians over some rounds; each round measures every objective once."""
    seconds, rounds = (0.5, 1) if args.smoke else (args.seconds, args.rounds)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in args.objective}
    for _ in range(rounds):
        for name in args.objective:
            rows[name].append(measure(link, proxy, clients, seconds, name))
    return {
        name: {key: statistics.median(row[key] for row in figures) for key in figures[0]}
        for name, figures in rows.items()
    }


def main() -> None:
    """Print what the clients reach on each link."""
    parser = options(__doc__, [])
    parser.add_argument("--clients", type=int, default=100, help="number of clients (100)")
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement (4)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of measurements (3)")
    parser.add_argument(
        "--objective",
        nargs="+",
        choices=OBJECTIVES,
        default=list(OBJECTIVES),
        help="objectives of plans (all)",
    )
    args = parser.parse_args()
    results = []
    with work():
        for link in LINKS[: 1 if args.smoke else None]:
            with reach(link, survey(FRAMES)) as proxy:
                probe(link)
                for way in ("vectors", "without"):
                    if way == "without":
                        drop_vectors()
                    for clients in (8 if args.smoke else args.clients, 1):
                        for objective, row in compare(link, proxy, clients, args).items():
                            show(link.name, way, clients, objective, row)
                            named = {"link": link.name, "way": way, "clients": clients}
                            results.append({**named, "objective": objective, **row})
    save("many_clients", {"clients": args.clients, "rows": results})


def show(link: str, way: str, clients: int, objective: str, row: dict[str, Any]) -> None:
    """Print a row."""
    line = "{cuts_per_s:7.1f} cuts/s, {ms:7.1f} ms, {bytes_per_cut:7.0f} bytes, {client_cpus:.2f}"
    print(f"{link}, {way:8} {clients:4}, {objective:10}: {line.format(**row)} CPUs", flush=True)


if __name__ == "__main__":
    main()
