"""What the switch interval of a portal costs its jobs: `python benches/switch_interval.py`.

One portal in this process, a local pool, a job of 20,000 rows of plain frames, in turns with the
interval of the portal and with that of Python. Prints wall and processor time as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from astropy.table import Table, vstack

import swathe
from swathe.catalog import Catalog
from swathe.core.sample_survey import make_sample
from swathe.portal.config import config_of
from swathe.portal.serve import SWITCH_S, serve

PYTHONS_S = 0.005


def main() -> None:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        folder = Path(made)
        database = os.environ["SWATHE_DATABASE"] = f"sqlite:///{folder}/catalog.sqlite"
        table = Table.read(make_sample(folder / "survey", 4, 1, given.rows), format="ascii.csv")
        table["file"] = [f"survey:{name.split('.')[0]}.fit" for name in table["file"]]
        table = vstack([table] * -(-given.rows // len(table)))[: given.rows]
        with Catalog.open(database) as catalog:
            catalog.add_store("survey", str(folder / "survey"))
        config = config_of(
            {
                "server": {"port": 0},
                "catalog": {"database": database},
                "results": {"folder": str(folder / "results")},
            }
        )
        measured: dict[float, list[tuple[float, float]]] = {SWITCH_S: [], PYTHONS_S: []}

        def measure(url: str) -> None:
            try:
                with swathe.connect(url) as portal:
                    for number in range(given.rounds + 1):  # the first warms up
                        for interval_s, seconds in measured.items():
                            sys.setswitchinterval(interval_s)
                            job = portal.submit(table, start=False)
                            start, computed = time.perf_counter(), time.process_time()
                            job.start()
                            assert job.wait(progress=False).counts["ok"] == given.rows
                            if number:
                                seconds.append(
                                    (time.perf_counter() - start, time.process_time() - computed)
                                )
                            job.delete()
                print(json.dumps({str(each): summary(runs) for each, runs in measured.items()}))
                sys.stdout.flush()
            finally:  # uvicorn ends the process with this signal
                os.kill(os.getpid(), signal.SIGTERM)

        urls: queue.Queue[str] = queue.Queue()
        worker = threading.Thread(target=lambda: measure(urls.get()))
        worker.start()
        serve(config, urls.put)
        worker.join()


def summary(runs: list[tuple[float, float]]) -> dict[str, object]:
    """Return the medians of the wall and processor times of runs, and the runs."""
    wall_s, processor_s = (statistics.median(times) for times in zip(*runs, strict=True))
    return {"wall_s": wall_s, "processor_s": processor_s, "runs": runs}


if __name__ == "__main__":
    main()
