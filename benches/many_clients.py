"""Cuts by a hundred clients at the same time from one server, with and without vector reads.

    python benches/many_clients.py [--clients N] [--seconds N]

nginx serves frames as on a LAN (1 ms, 600 Mb/s) and a WAN (56 ms, 160 Mb/s); what all clients have
together is the line. Each client is a thread that cuts 100 x 100 pixels from random frames, one cut
after another, with the headers in the index and no other cache. Without vector reads the profile is
the same, but for the ranges of a request. Prints cuts a second and bytes a cut.
"""

from __future__ import annotations

import random
import threading
import time
from datetime import UTC, datetime
from typing import Any

import swathe
from harness import HEIGHT, WIDTH, options, save, survey
from links import FRAMES, Link, probe, reach, work
from swathe.catalog import Catalog
from tests.support import servers

LINKS = (Link("nginx", 1, shared=75_000_000), Link("nginx", 56, shared=20_000_000))
SIZE = 100


def drop_vectors() -> None:
    """Leave the ranges of a request out of all profiles."""
    with Catalog.open() as catalog:
        for profile in catalog.profiles():
            costs = {**profile.costs, "multi_range": None}
            at = datetime.now(UTC)
            catalog.put_profile(profile.root, profile.host, costs, profile.spread, at, ())


def measure(link: Link, proxy: servers.Proxy, clients: int, seconds: float) -> dict[str, Any]:
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
            swathe.cut(draw.choice(names), box=(x, y, SIZE, SIZE)).data.sum()
            counts[client] += 1

    threads = [threading.Thread(target=cut, args=(client,)) for client in range(clients)]
    cpu = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    done = sum(counts)
    return {
        "cuts_per_s": done / took,
        "bytes_per_cut": proxy.stats()["bytes_down"] / done,
        "client_cpus": (time.process_time() - cpu) / took,
    }


def main() -> None:
    """Print what the clients reach on each link."""
    parser = options(__doc__, [])
    parser.add_argument("--clients", type=int, default=100, help="number of clients (100)")
    parser.add_argument("--seconds", type=float, default=8, help="of each measurement (8)")
    args = parser.parse_args()
    seconds = 1 if args.smoke else args.seconds
    results = []
    with work():
        for link in LINKS:
            with reach(link, survey(FRAMES)) as proxy:
                probe(link)
                found = {"vectors": measure(link, proxy, args.clients, seconds)}
                drop_vectors()
                found["without"] = measure(link, proxy, args.clients, seconds)
            for way, row in found.items():
                line = (
                    "{cuts_per_s:7.1f} cuts/s, {bytes_per_cut:9.0f} bytes a cut, {client_cpus:.2f}"
                )
                print(f"{link.name}, {way:8}: {line.format(**row)} CPUs", flush=True)
                results.append({"link": link.name, "way": way, **row})
    save("many_clients", {"clients": args.clients, "rows": results})


if __name__ == "__main__":
    main()
