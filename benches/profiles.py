"""How well a probe and its fit recover simulated stores: `python benches/profiles.py`.

Each store is drawn at random, probed with the budgets of a probe on its own simulated clock, and
the time of reads that the probe did not make is predicted and compared with the store's.
"""

from __future__ import annotations

import time

import numpy as np

from harness import options
from swathe.costs.cost_model import Costs
from swathe.costs.probing.probe_result import Probe
from swathe.costs.probing.store_probe import measure_store
from tests.support.simulated_stores import SimulatedStore, busy_store, place, random_store


def probe_simulated(store: SimulatedStore, quick: bool) -> Probe:
    """Probe a simulated store on its own clock."""
    return measure_store(place(), reader=store, clock=lambda: store.clock_s, seed=1, quick=quick)


def truth(store: SimulatedStore) -> SimulatedStore:
    """The same store without noise."""
    return SimulatedStore(
        store.latency_s,
        store.stream_bytes_per_s,
        store.total_bytes_per_s,
        store.requests_per_s,
        store.served_bytes_per_s,
    )


def alone_s(store: SimulatedStore, size: float) -> float:
    """What one request takes, with what a busy server does for it."""
    own = min(store.stream_bytes_per_s, store.total_bytes_per_s)
    work = 0.0
    if store.served_bytes_per_s is not None:
        work = 1 / store.requests_per_s + size / store.served_bytes_per_s
    return store.latency_s + size / own + work


def errors(store: SimulatedStore, probe: Probe, reads: int = 40) -> list[float]:
    """Logarithms of predicted over true time of reads at random."""
    rng = np.random.default_rng(store.seed + 1)
    costs, exact, off = probe.profile.costs, truth(store), []
    for _ in range(reads):
        streams = int(rng.integers(1, costs.streams + 1))
        requests = round(float(np.exp(rng.uniform(0, np.log(400)))))
        size = round(float(np.exp(rng.uniform(np.log(1024), np.log(1.6e7)))))
        timings = exact.measure("", [(0, size)] * requests, streams)
        real = max(timing.end_s for timing in timings)
        off.append(float(np.log(costs.read_s(size * requests, requests, streams) / real)))
    return off


def main() -> None:
    """Print the accuracy over many stores."""
    parser = options(__doc__)
    parser.add_argument("--stores", type=int, default=100)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--busy", action="store_true", help="servers that take time for bytes")
    parser.add_argument("--worst", type=int, default=5)
    arguments = parser.parse_args()
    rows, host_s = [], 0.0
    named: dict[str, list[float]] = {}
    for seed in range(3 if arguments.smoke else arguments.stores):
        store = busy_store(seed) if arguments.busy else random_store(seed)
        began = time.perf_counter()
        probe = probe_simulated(store, arguments.quick)
        host_s += time.perf_counter() - began
        off = np.abs(errors(store, probe))
        rows.append((float(np.median(off)), float(np.quantile(off, 0.9)), seed, store, probe))
        costs = probe.profile.costs
        pairs = {
            "t(0)": (costs.request[0][1], alone_s(store, 0)),
            "stream": (costs.stream_bytes_per_s(), 1e9 / (alone_s(store, 1e9) - alone_s(store, 0))),
            "total": (costs.total_bytes_per_s, store.total_bytes_per_s),
            "requests": (costs.requests_per_s, store.requests_per_s),
        }
        if "total_bytes_per_s" not in probe.profile.spread:
            del pairs["total"]
        if "requests_per_s" not in probe.profile.spread:
            del pairs["requests"]
        if costs.served_bytes_per_s and store.served_bytes_per_s:
            pairs["served"] = costs.served_bytes_per_s, store.served_bytes_per_s
        if any(note.startswith("request:") for note in probe.profile.notes):
            del pairs["stream"]
        for name, (got, true) in pairs.items():
            named.setdefault(name, []).append(abs(float(np.log(got / true))))
    middle = np.array([row[0] for row in rows])
    print(f"{len(rows)} stores, {host_s / len(rows):.2f} s of this host each")
    print(
        f"median error of predictions of a store: median {np.median(middle):.1%}, "
        f"90 % {np.quantile(middle, 0.9):.1%}, worst {middle.max():.1%}; "
        f"{(middle < 0.1).mean():.0%} of stores within 10 %"
    )
    for name, far in named.items():
        print(
            f"{name:9} identified in {len(far)}: error median {np.median(far):.1%}, "
            f"90 % {np.quantile(far, 0.9):.1%}"
        )
    rows.sort(key=lambda row: -row[0])
    for median, high, seed, store, probe in rows[: arguments.worst]:
        costs, end = probe.profile.costs, f"{probe.end_reason} {probe.elapsed_s:.1f} s"
        print(f"\nseed {seed}: error median {median:.1%}, 90 % {high:.1%}; ended: {end}")
        print(f"  noise {store.noise:.1%}, {probe.bytes_moved / 1e6:.0f} MB were moved")
        print(f"  is    {figures(store)}")
        print(f"  found {figures(costs)}, {costs.streams} streams")
        for note in probe.profile.notes:
            print(f"  {note}")


def figures(of: SimulatedStore | Costs) -> str:
    """The parameters, in a line."""
    latency, stream = (
        (of.request[0][1], of.stream_bytes_per_s())
        if isinstance(of, Costs)
        else (of.latency_s, of.stream_bytes_per_s)
    )
    return (
        f"{1e3 * latency:.3g} ms, {stream / 1e6:.3g} of {of.total_bytes_per_s / 1e6:.3g} MB/s, "
        f"{of.requests_per_s:.3g} requests/s"
        + (f" and {of.served_bytes_per_s / 1e6:.3g} MB/s" if of.served_bytes_per_s else "")
    )


if __name__ == "__main__":
    main()
