"""Predicted and actual seconds of orders, after the first runs of their algorithms.

    python benches/order_predictions.py [--smoke] [--orders 16]

The reductions and the swaths are those of `order_study.py`. A portal runs 10 orders of each
algorithm with random spans of days. Then each further order is estimated, as by `swathe order
--estimate`, and run. Its time is that from the order to its end, as its user sees it.
"""

from __future__ import annotations

import random
import statistics
import time

import swathe
from harness import BUILD, options, save, work_folder
from order_study import DAYS, KINDS, SMALL, add_algorithms, fill, sandbox
from swathe.client.portal import RemotePortal
from swathe.core.sample_granules import SHAPE, sample_swaths
from tests.support.portals import served

FIRST_RUNS = 10


def span(kind: str, rng: random.Random) -> tuple[str, str]:
    """Return some days for an order."""
    first, last = sorted(rng.randint(1, DAYS[kind]) for _ in range(2))
    return f"2005-05-{first:02}", f"2005-05-{last:02}T23:59:59"


def run_s(portal: RemotePortal, kind: str, days: tuple[str, str]) -> float:
    """Return the seconds of an order.

    Raises:
        RuntimeError: If it fails.
    """
    begin = time.perf_counter()
    end = portal.order(f"modis-{kind}", time=days).wait(progress=False)
    if end.phase != "COMPLETED" or end.counts["error"]:
        raise RuntimeError(f"order of modis-{kind}, {days}: expected it to succeed, found {end}")
    return time.perf_counter() - begin


def main() -> None:
    """Run, estimate and compare; print the table and the medians."""
    parser = options(__doc__, list(KINDS))
    parser.add_argument("--orders", type=int, default=16, help="estimated for each algorithm")
    parser.add_argument("--users", default="72000:20", help="user ids of programs, FIRST:COUNT")
    words = parser.parse_args()
    shape, granules = (SMALL, 1) if words.smoke else (SHAPE, 2)
    kinds = words.only or list(KINDS)[: 1 if words.smoke else None]
    first_runs, orders = (2, 1) if words.smoke else (FIRST_RUNS, words.orders)
    swaths = sample_swaths(
        BUILD / f"swaths-{shape[0]}x{shape[1]}-{granules}", granules=granules, shape=shape
    )
    rng = random.Random(1)
    rows = []
    with work_folder() as folder:
        folder.chmod(0o755)
        fill(folder, swaths)
        with served(folder, sandbox(words.users)) as running:
            add_algorithms(running.url)
            with swathe.connect(running.url) as portal:
                for kind in kinds:
                    for _ in range(first_runs):
                        run_s(portal, kind, span(kind, rng))
                    for _ in range(orders):
                        days = span(kind, rng)
                        estimate = portal.estimate_order(f"modis-{kind}", time=days)
                        if estimate.prediction is None:
                            raise RuntimeError(f"modis-{kind}: expected a prediction, found none")
                        low_s, high_s = estimate.prediction.interval_s
                        predicted_s = estimate.prediction.median_s
                        actual_s = run_s(portal, kind, days)
                        rows.append(
                            (kind, estimate.read_bytes, predicted_s, low_s, high_s, actual_s)
                        )
    save("order-predictions", rows)
    print("| algorithm | orders | input, MB | actual, s | median error | worst | in interval |")
    print("|" + " --- |" * 7)
    for kind in (*kinds, "all"):
        own = [row[1:] for row in rows if kind in (row[0], "all")]
        errors = [abs(actual / predicted - 1) for _, predicted, _, _, actual in own]
        inside = sum(low <= actual <= high for _, _, low, high, actual in own)
        sizes, actuals = [row[0] / 1e6 for row in own], [row[-1] for row in own]
        print(
            f"| {kind} | {len(own)} | {min(sizes):.0f} to {max(sizes):.0f} | {min(actuals):.1f} to "
            f"{max(actuals):.1f} | {statistics.median(errors):.1%} | {max(errors):.0%} | "
            f"{inside} |"
        )


if __name__ == "__main__":
    main()
