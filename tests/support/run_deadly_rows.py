"""A process that works on jobs, and dies when it comes to a row named `deadly`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from swathe.catalog import Catalog
from swathe.core.row_table import RowTable
from swathe.jobs import Folder, Jobs, Limits
from swathe.workers import Runner, execute

run = execute._BatchRun._cut


def main() -> None:
    url, results = sys.argv[1:]
    catalog = Catalog.open(url)
    with Jobs(catalog, Folder(Path(results)), limits=Limits()) as jobs:
        runner = Runner(jobs, threads=2)
        runner.start()
        while any(job.phase in ("QUEUED", "EXECUTING") for job in jobs.list()):
            time.sleep(0.05)
        runner.stop()


def cut(work: execute._BatchRun, rows: RowTable) -> None:
    if "deadly" in rows.id:
        os.kill(os.getpid(), signal.SIGKILL)
    run(work, rows)


if __name__ == "__main__":
    execute._BatchRun._cut = cut  # type: ignore[assignment, method-assign]
    main()
