"""A worker of a pool that takes its time: `slow_worker.py SECONDS HOLD pool worker ...`.

Batches take so much longer, and while there is a file HOLD only the first of the process ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from swathe.catalog.records.jobs import ChunkResult
from swathe.cli.app import main
from swathe.jobs import ResultStore
from swathe.workers.batch import Batch
from swathe.workers.dask import worker
from swathe.workers.execute import run_batch

PAUSE_S = float(sys.argv.pop(1))
HOLD = Path(sys.argv.pop(1))
BATCHES = count()


def slow(
    batch: Batch, place: ResultStore, threads: int, should_stop: Callable[[], bool], *others: Any
) -> ChunkResult:
    """Do a batch, and wait a little, or longer."""
    time.sleep(PAUSE_S)
    if next(BATCHES):
        while HOLD.exists() and not should_stop():
            time.sleep(0.05)
    result = run_batch(batch, place, threads, should_stop, *others)
    return replace(result, work_s=result.work_s + PAUSE_S)


worker.run_batch = slow  # type: ignore[assignment,attr-defined]  # all that it is for
main()
