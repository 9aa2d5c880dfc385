"""What the switch interval of a portal costs its jobs.

    python benches/switch_interval.py [--smoke] [--rows 20000] [--rounds 5]

One portal in this process, a local pool, a job on plain frames, in turns with the interval of the
portal and with that of Python. Prints wall and processor time as JSON.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import statistics
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from astropy.table import Table, vstack

import swathe
from harness import options, work_folder
from swathe.catalog import Catalog
from swathe.core.sample_survey import make_sample
from swathe.portal.config import Config, config_of
from swathe.portal.serve import SWITCH_S, serve

PYTHON_SWITCH_S = 0.005


def main() -> None:
    """Measure, and print the medians."""
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rows, rounds = (200, 1) if arguments.smoke else (arguments.rows, arguments.rounds)
    with work_folder() as folder:
        table = survey_table(folder / "survey", rows)
        with Catalog.open(os.environ["SWATHE_DATABASE"]) as catalog:
            catalog.add_store("survey", str(folder / "survey"))
        urls: queue.Queue[str] = queue.Queue()
        client = threading.Thread(target=lambda: measure(urls.get(), table, rounds))
        client.start()
        with suppress(KeyboardInterrupt):  # uvicorn raises the signal again when it has ended
            serve(config_in(folder), urls.put)
        client.join()


def survey_table(survey: Path, rows: int) -> Table:
    """Return targets on the plain frames of a sample survey, which is made."""
    table = Table.read(make_sample(survey, 4, 1, rows), format="ascii.csv")
    table["file"] = [f"survey:{name.split('.')[0]}.fit" for name in table["file"]]
    return vstack([table] * -(-rows // len(table)))[:rows]


def config_in(folder: Path) -> Config:
    """Return the settings of the portal; its results are in the folder."""
    return config_of(
        {
            "server": {"port": 0},
            "catalog": {"database": os.environ["SWATHE_DATABASE"]},
            "results": {"folder": str(folder / "results")},
        }
    )


def measure(url: str, table: Table, rounds: int) -> None:
    """Run jobs in turns with both intervals, print their times, and end the portal."""
    times: dict[float, list[tuple[float, float]]] = {SWITCH_S: [], PYTHON_SWITCH_S: []}
    try:
        with swathe.connect(url) as portal:
            for number in range(rounds + 1):  # the first warms up
                for interval_s, runs in times.items():
                    sys.setswitchinterval(interval_s)
                    job = portal.submit(table, start=False)
                    start, cpu_start_s = time.perf_counter(), time.process_time()
                    job.start()
                    assert job.wait(progress=False).counts["ok"] == len(table)
                    if number:
                        runs.append(
                            (time.perf_counter() - start, time.process_time() - cpu_start_s)
                        )
                    job.delete()
        print(json.dumps({str(each): summary(runs) for each, runs in times.items()}), flush=True)
    finally:
        os.kill(os.getpid(), signal.SIGINT)


def summary(runs: list[tuple[float, float]]) -> dict[str, object]:
    """Return the medians of the wall and processor times of runs, and the runs."""
    wall_s, processor_s = (statistics.median(times) for times in zip(*runs, strict=True))
    return {"wall_s": wall_s, "processor_s": processor_s, "runs": runs}


if __name__ == "__main__":
    main()
