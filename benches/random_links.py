"""How far predictions can be leant on, over links drawn at random.

    python benches/random_links.py [--links N] [--first N] [--quick] [--busy]

A link has a round trip of 2 to 250 ms and 2 Mb/s to 1 Gb/s that all streams share; a stream alone
has 1/64 to all of that. nginx is behind it. Link N is drawn from the seed N, whatever runs before.
Each link is probed, and then cut_many is called for lists of random sizes, each predicted to take
at most 10 s. The time is the wall time of the call. With --busy another client reads from the
server during the lists of every second link, beside the link; the probe does not see it. Prints a
line for each, then error and how often the 80 % interval held, also with that client and without.
Writes build/bench/random_links.json. `make bench-plan` runs ten links (`random_cases`).
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import swathe
from harness import options, save, survey
from links import FOLDER, FRAMES, Link, boxes, probe, reach, work

KINDS = ("fit", "fit.fz", "fit.gz")
JOBS = 4
LONGEST_S = 10.0


def draw_link(number: int) -> Link:
    """Return the link of this number."""
    draw = random.Random(number)

    def log_uniform(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    rtt_ms, shared = log_uniform(2, 250), log_uniform(2e6, 1e9) / 8
    stream = shared / log_uniform(1, 64)
    return Link("nginx", round(rtt_ms), round(shared), round(stream), label=f"random-{number}")


CLIENT = """
import sys, urllib.request
while True:
    with urllib.request.urlopen(sys.argv[1]) as answer:
        while answer.read(1 << 20):
            pass
"""


@contextmanager
def another_client(url: str) -> Iterator[None]:
    """Read an object from the server again and again, by another process."""
    client = subprocess.Popen([sys.executable, "-c", CLIENT, url])
    try:
        yield
    finally:
        client.terminate()
        client.wait()


def jobs_of(link: Link, number: int) -> list[dict[str, Any]]:
    """Predict, run and time lists of boxes."""
    draw = random.Random(1000 + number)
    jobs: list[dict[str, Any]] = []
    for tries in range(40):
        if len(jobs) == JOBS:
            break
        count = round(math.exp(draw.uniform(0, math.log(1000))))
        size = round(math.exp(draw.uniform(math.log(10), math.log(1000))))
        kind = draw.choice(KINDS)
        rows = boxes(count, size, kind, link.id, seed=tries + 100 * number)
        expected = swathe.predict(rows)
        if expected.median_s > LONGEST_S:
            continue
        with tempfile.TemporaryDirectory(dir=FOLDER) as output:
            began = time.perf_counter()
            meta = swathe.cut_many(rows, output, progress=False).meta
            wall_s = time.perf_counter() - began
        assert meta["ok"] == count, meta
        low_s, high_s = expected.interval_s
        jobs.append(
            {
                "link": number, "rtt_ms": link.rtt_ms, "mb_s": link.shared / 1e6,
                "stream_mb_s": link.stream / 1e6, "count": count, "size": size, "kind": kind,
                "predicted_s": expected.median_s, "low_s": low_s, "high_s": high_s,
                "wall_s": wall_s, "bytes": meta["bytes_moved"], "requests": meta["requests"],
            }
        )  # fmt: skip
        line = "  {count:4} x {size:4} {kind:6}: {predicted_s:7.3f} s ({low_s:.3f} to {high_s:.3f})"
        print(line.format(**jobs[-1]) + f", took {wall_s:7.3f}", flush=True)
    return jobs


def summary(rows: list[dict[str, Any]]) -> None:
    """Print error and coverage."""
    _summary("in all", rows)
    if len({row["busy"] for row in rows}) > 1:
        _summary("server idle", [row for row in rows if not row["busy"]])
        _summary("server busy", [row for row in rows if row["busy"]])


def _summary(title: str, rows: list[dict[str, Any]]) -> None:
    names = ("wall_s", "predicted_s", "low_s", "high_s")
    wall, predicted, low, high = (np.array([row[name] for row in rows]) for name in names)
    error = np.abs(predicted / wall - 1)
    inside = np.mean((low <= wall) & (wall <= high))
    middle, most = np.quantile(error, (0.5, 0.9))
    print(
        f"{title}: {len(rows)} jobs over {len({row['link'] for row in rows})} links: "
        f"error {middle:.1%} in the median, {most:.1%} at the 90th percentile; "
        f"the interval held {inside:.0%}, {np.median(high / low):.2f} from end to end"
    )


def random_cases(
    sample: Path, numbers: range, *, quick: bool, busy: bool
) -> Iterator[dict[str, Any]]:
    """Yield the jobs of links drawn from their numbers; with `busy`, even ones have that client."""
    for number in numbers:
        link = draw_link(number)
        with reach(link, sample) as proxy:
            profile = probe(link, quick=quick)
            print(f"{number}: {link.name}: {profile['notes']}", flush=True)
            is_busy = busy and number % 2 == 0
            url = f"{proxy.upstream_url.rstrip('/')}/frame-000001.fit"
            with another_client(url) if is_busy else nullcontext():
                for row in jobs_of(link, number):
                    yield {**row, "busy": is_busy, "probe": profile}


def main() -> None:
    """Run over as many links as were asked for."""
    parser = options(__doc__, [])
    parser.add_argument("--links", type=int, default=25, help="links (25; 1 with --smoke)")
    parser.add_argument("--first", type=int, default=1, help="number of the first link (1)")
    parser.add_argument("--quick", action="store_true", help="as `swathe probe --quick`")
    parser.add_argument("--busy", action="store_true", help="with another client of the server")
    args = parser.parse_args()
    sample: Path = survey(FRAMES)
    rows: list[dict[str, Any]] = []
    numbers = range(args.first, args.first + (1 if args.smoke else args.links))
    try:
        with work():
            quick = args.quick or args.smoke
            rows.extend(random_cases(sample, numbers, quick=quick, busy=args.busy))
    finally:
        save("random_links", {"quick": args.quick, "rows": rows})
        if rows:
            summary(rows)


if __name__ == "__main__":
    main()
