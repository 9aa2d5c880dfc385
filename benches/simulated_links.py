"""How well probes fit, over simulated links drawn at random: no network, no clock, no other work.

    python benches/simulated_links.py [--links N] [--first N] [--quick]

Links are those of random_links.py. Each is probed, with noise of 8 % and one slow moment in twenty.
Then reads of random sizes over the same link without noise are compared with what the fitted costs
predict. Prints a line for each link, then the errors. Writes build/bench/simulated_links.json.
"""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Any

import numpy as np

from harness import options, save
from random_links import LONGEST_S, draw_link
from swathe.costs.cost_model import Costs
from swathe.costs.probing.store_probe import measure_store
from tests.support.simulated_stores import SimulatedStore, place

READS = 8
OBJECT_BYTES = 6_105_600
NOISE, SLOW_MOMENTS = 0.08, 0.05
SERVER_S = 1e-3
"""What the server and this host take beside the round trip."""


def store_of(number: int, *, is_quiet: bool) -> SimulatedStore:
    """Return the link of this number, simulated."""
    link = draw_link(number)
    latency_s = link.rtt_ms / 1e3 + SERVER_S
    return SimulatedStore(
        latency_s,
        link.stream,
        link.shared,
        3000.0,
        connect_s=latency_s,
        noise=0.0 if is_quiet else NOISE,
        outliers=0.0 if is_quiet else SLOW_MOMENTS,
        object_bytes=OBJECT_BYTES,
        vector_ranges=500,
        seed=number,
    )


def reads_of(number: int, costs: Costs) -> list[dict[str, Any]]:
    """Predict and simulate reads of requests of one size, by as many streams as are of use."""
    draw = random.Random(5000 + number)
    rows: list[dict[str, Any]] = []
    for _ in range(40):
        if len(rows) == READS:
            break
        size = round(math.exp(draw.uniform(math.log(300), math.log(2.3e6))))
        requests = round(math.exp(draw.uniform(0, math.log(300))))
        streams = min(requests, costs.streams)
        predicted_s = float(costs.read_s(size * requests, requests, streams))
        if predicted_s > LONGEST_S:
            continue
        source = store_of(number, is_quiet=True).open_source("")
        timings = source.measure([(0, size)] * requests, streams)
        actual_s = max(timing.end_s for timing in timings)
        rows.append(
            {
                "link": number, "bytes": size, "requests": requests, "streams": streams,
                "predicted_s": predicted_s, "actual_s": actual_s,
            }
        )  # fmt: skip
    return rows


def main() -> None:
    """Run over as many links as were asked for."""
    parser = options(__doc__, [])
    parser.add_argument("--links", type=int, default=60, help="links (60; 2 with --smoke)")
    parser.add_argument("--first", type=int, default=1, help="number of the first link (1)")
    parser.add_argument("--quick", action="store_true", help="as `swathe probe --quick`")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for number in range(args.first, args.first + (2 if args.smoke else args.links)):
        store = store_of(number, is_quiet=False)
        probe = measure_store(
            place(),
            quick=args.quick,
            reader=store,
            clock=partial(getattr, store, "clock_s"),
            seed=number,
        )
        reads = reads_of(number, probe.profile.costs)
        rows += reads
        errors = [abs(row["predicted_s"] / row["actual_s"] - 1) for row in reads]
        print(f"{draw_link(number).name}: error {np.median(errors):.1%}, at most {max(errors):.1%}")
    save("simulated_links", {"quick": args.quick, "rows": rows})
    errors = [abs(row["predicted_s"] / row["actual_s"] - 1) for row in rows]
    middle, most = np.quantile(errors, (0.5, 0.9))
    print(f"{len(rows)} reads: error {middle:.1%} in the median, {most:.1%} at the 90th percentile")


if __name__ == "__main__":
    main()
