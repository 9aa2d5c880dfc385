"""A run of examples/astro3d over five placements of its arrays: predicted and actual seconds.

    python benches/run_study.py [--smoke] [--cells 128] [--iterations 120] [--links paper|lan|wan]

The study of Shen, Choudhary, Matarazzo and Sinha, "A distributed multi-storage resource
architecture and I/O performance prediction for scientific computing", Cluster Computing 6 (2003),
on stores that write as fast as theirs, times 100: `near` is a folder on the memory disk; `far`, a
remote disk, and `tape` are block servers, each behind a proxy of its own. With `--links lan` (1 ms,
600 Mb/s) or `wan` (56 ms, 160 Mb/s) `far` is behind a link of today, each way. `--cells` and
`--iterations` make the run smaller; the stores stay as they are.

Each store is measured (`swathe probe --write`). Each placement is predicted, then
run twice: each dump waits for the one before, as equation 2 of the paper has it; and as Swathe does
by default, where dumps are written while the next steps are computed. Then `mse` reads one dataset
and `volren` another. The last placement is `mixed` when the tape is down: predicted is the one with
the remote disk in its place. The result goes to build/bench/run-study.json.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import operator
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import links  # sets the catalogue of this process
import swathe
from examples.astro3d.__main__ import toml_lines
from examples.astro3d.datasets import settings
from examples.astro3d.simulation import Outcome, Simulation
from examples.launch import launch
from examples.mse import differences
from examples.volren.rendering import render
from harness import BUILD, options
from run_predictions import LINKS, probe
from stripe_lab import PROBE, LinkedServer, pattern
from swathe.catalog import Catalog
from swathe.operations.ray_casting import TransferFunction, View
from swathe.runs.planning.run_prediction import RunPrediction
from swathe.runs.planning.store_rate import Forecast
from swathe.runs.planning.store_rooms import store_rates
from tests.support import servers
from tests.support.block_servers import block_server

FASTER = 100
"""How much faster the stores are than those of the paper."""
F4_BYTES, U1_BYTES = 4 * 128**3, 128**3
FAR_F4_S, TAPE_F4_S, TAPE_U1_S = 38.688, 144.587, 44.427
"""Seconds of a dump of 128^3 in the paper."""
FAR_BYTES_PER_S = FASTER * F4_BYTES / FAR_F4_S
TAPE_BYTES_PER_S = FASTER * (F4_BYTES - U1_BYTES) / (TAPE_F4_S - TAPE_U1_S)
"""The line through its two points; the rest is there for each dump, however small."""
TAPE_DUMP_S = TAPE_U1_S / FASTER - U1_BYTES / TAPE_BYTES_PER_S
ROUND_TRIPS = 4
"""Of an object that is written to a block server, about; so the proxy makes the time of a dump."""
FAR_RTT_MS = 1
PLACEMENTS = {
    "all remote disk": {"analysis": "far", "visualisation": "far", "restart": "far"},
    "all tape": {"analysis": "tape", "visualisation": "tape", "restart": "tape"},
    "analysis local": {"analysis": "near", "visualisation": "tape", "restart": "tape"},
    "visualisation local": {"analysis": "tape", "visualisation": "near", "restart": "tape"},
    "mixed": {"analysis": "far", "visualisation": "near", "restart": "tape"},
}
DOWN, INSTEAD = "mixed, tape down", {"analysis": "far", "visualisation": "near", "restart": "far"}
PAPER = "paper"
NAME = "astro3d"


@dataclass(frozen=True)
class Row:
    """A placement, in seconds.

    Attributes:
        placement: its name.
        paper_s: of all dumps, by the rates of the paper; `None` with other links.
        predicted_s: of all dumps, those of an iteration together, as `swathe run predict` says.
        alone_s: predicted, each dump alone.
        interval_s: bounds of it.
        one_by_one_s: actual, each dump waits for the one before.
        waiting_s: for dumps that are written beside the computing.
        total_s: of that run.
        computing_s: of its steps.
        mse_s: of `mse` over the temperature.
        volren_s: of pictures of the temperature.
        stores: number of dumps in each store after the second run.
    """

    placement: str
    paper_s: float | None
    predicted_s: float
    alone_s: float
    interval_s: tuple[float, float]
    one_by_one_s: float
    waiting_s: float
    total_s: float
    computing_s: float
    mse_s: float
    volren_s: float
    stores: dict[str, int]


def start_stores(stack: ExitStack, link: str) -> LinkedServer:
    """Start the servers, and name the stores in the catalogue; return the tape."""
    rtt_ms, rate = LINKS.get(link, (FAR_RTT_MS, FAR_BYTES_PER_S))
    far = serve_slowly(rate, rtt_ms, stack, both_ways=link != PAPER)
    tape = serve_slowly(TAPE_BYTES_PER_S, round(1000 * TAPE_DUMP_S / ROUND_TRIPS), stack)
    near = links.FOLDER / "near"
    near.mkdir()
    for folder in (near, far.folder, tape.folder):
        (folder / PROBE).write_bytes(pattern(F4_BYTES))
    with Catalog.open() as catalog:
        catalog.add_store("near", str(near), "local")
        for name, server, tier in (("far", far, "wan"), ("tape", tape, "tape")):
            catalog.add_store(name, server.link.url.replace("http://", "dav://", 1), tier)
    return tape


def serve_slowly(
    rate: float, rtt_ms: int, stack: ExitStack, both_ways: bool = False
) -> LinkedServer:
    """Start a block server that is written at a rate, bytes per second, and read at that or any."""
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="server-", dir=links.FOLDER)))
    url = stack.enter_context(block_server(folder)).url
    limits = {"upload_bytes_per_s": round(rate)}
    if both_ways:
        limits["shared_bytes_per_s"] = round(rate)
    link = servers.proxy(url, rtt_ms=rtt_ms, **limits)
    return LinkedServer(folder, url, stack.enter_context(link))


def seconds_of(call: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    start_s = time.perf_counter()
    call()
    return time.perf_counter() - start_s


def measure(placement: str, words: argparse.Namespace) -> Row:
    """Predict and run a placement, and read its run."""
    is_down = placement == DOWN
    file = write_settings(words, INSTEAD if is_down else PLACEMENTS[placement])
    prediction = swathe.runs.predict(file)
    alone = predict_alone(prediction, words.ranks)
    if is_down:
        write_settings(words, PLACEMENTS["mixed"])
    outcomes = {waits: simulate(words, file, waits) for waits in (True, False)}
    beside = outcomes[False]
    is_of_paper = words.links == PAPER and not is_down
    row = Row(
        placement, paper_seconds(prediction) if is_of_paper else None,
        prediction.seconds, alone.median_s, (alone.low_s, alone.high_s),
        outcomes[True].writing_s,
        beside.writing_s, beside.total_s, beside.computing_s,
        seconds_of(lambda: launch(lambda own: list(differences(NAME, "temp", own)), words)),
        seconds_of(lambda: launch(lambda own: list(pictures(words, own)), words)),
        dumps_by_store(),
    )  # fmt: skip
    # A store that is down cannot remove what it has.
    for outcome in () if is_down else outcomes.values():
        swathe.runs.remove(outcome.label)
    return row


def predict_alone(prediction: RunPrediction, ranks: int) -> Forecast:
    """Return the time of the dumps of a run if each waits for the one before."""
    with Catalog.open() as catalog:
        rates = store_rates(catalog, {each.locations[0] for each in prediction.arrays})
    times = [
        rates[each.locations[0]].write_s(each.array, each.dumps, ranks)
        for each in prediction.arrays
    ]
    return functools.reduce(operator.add, times)


def write_settings(words: argparse.Namespace, placement: dict[str, str]) -> Path:
    """Write the settings of a placement; return their file."""
    file = links.FOLDER / "run.toml"
    table = settings(words.cells, words.iterations, words.every, words.ranks, placement, NAME)
    file.write_text("\n".join(toml_lines(table)))
    return file


def dumps_by_store() -> dict[str, int]:
    """Return the number of dumps of the newest run in each store."""
    arrays = swathe.open_run(NAME).values()
    return dict(Counter(dump.store for array in arrays for dump in array.dumps.values()))


def paper_seconds(prediction: RunPrediction) -> float:
    """Return the seconds of all dumps by the rates of the paper; the near store takes none."""
    lines = {"near": (0.0, math.inf), "far": (0.0, FAR_BYTES_PER_S)}
    lines["tape"] = TAPE_DUMP_S, TAPE_BYTES_PER_S
    total_s = 0.0
    for each in prediction.arrays:
        dump_s, rate = lines[each.locations[0]]
        total_s += each.dumps * (dump_s + each.array.dump_bytes / rate)
    return total_s


def simulate(words: argparse.Namespace, file: Path, waits: bool) -> Outcome:
    """Run the application; return the outcome of its first rank."""
    simulation = Simulation(
        words.cells, words.iterations, words.every, NAME, settings_file=file, waits=waits
    )
    return launch(simulation.run, words)[0]


def pictures(words: argparse.Namespace, ranks: Any) -> Iterator[object]:
    """Yield a picture of each dump of the temperature."""
    for dump in swathe.open_run(NAME)["vr_temp"].values():
        view = View(dump.shape, pixels=words.cells, step=1.0)
        yield render(dump, view, TransferFunction(), ranks)


def report(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the table, in Markdown."""
    heads = ("placement", "by the paper, s", "predicted, s", "alone, s", "interval, s",
             "one by one, s", "actual / alone", "waiting, s", "total, s", "computing, s",
             "mse, s", "volren, s", "dumps")  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        low, high = row.interval_s
        numbers = (row.one_by_one_s / row.alone_s, row.waiting_s, row.total_s,
                   row.computing_s, row.mse_s, row.volren_s)  # fmt: skip
        cells = (row.placement, "" if row.paper_s is None else f"{row.paper_s:.3g}",
                 f"{row.predicted_s:.3g}", f"{row.alone_s:.3g}", f"{low:.3g} to {high:.3g}",
                 f"{row.one_by_one_s:.3g}",
                 *(f"{each:.3g}" for each in numbers),
                 ", ".join(f"{name} {count}" for name, count in row.stores.items()))  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure the placements, and print the table."""
    parser = options(__doc__, [*PLACEMENTS, DOWN])
    parser.add_argument("--cells", type=int, default=128, help="along each axis (default: 128)")
    parser.add_argument("--iterations", type=int, default=120, help="the last one (default: 120)")
    parser.add_argument("--every", type=int, default=6, help="iterations of a dump (default: 6)")
    parser.add_argument("--ranks", type=int, default=2, help="threads (default: 2)")
    parser.add_argument("--links", choices=(PAPER, *LINKS), default=PAPER)
    words = parser.parse_args()
    if words.smoke:
        words.cells, words.iterations, words.every = 8, 2, 2
    words.mpi = False
    rows = []
    with links.work(), ExitStack() as stack:
        tape = start_stores(stack, words.links)
        for store in ("near", "far", "tape"):
            probe(store, words.smoke)
        for placement in words.only or (["mixed", DOWN] if words.smoke else [*PLACEMENTS, DOWN]):
            print(placement, file=sys.stderr, flush=True)
            if placement == DOWN:
                tape.link.process.kill()
            rows.append(measure(placement, words))
            # Written after each: a long study may be stopped.
            BUILD.mkdir(parents=True, exist_ok=True)
            text = json.dumps([vars(row) for row in rows], indent=1)
            (BUILD / "run-study.json").write_text(text)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(
        f"links: {words.links}; {words.cells}^3, {words.iterations} iterations, dumps every "
        f"{words.every}, {words.ranks} "
        f"threads; load of the machine at the end: {load}\n"
    )
    print("\n".join(report(rows)))


if __name__ == "__main__":
    main()
