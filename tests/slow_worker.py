"""A worker of a pool that takes its time: `slow_worker.py SECONDS pool worker ...`."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

from swathe.catalog.work import Done
from swathe.cli import main
from swathe.workers import member
from swathe.workers.doing import run

PAUSE_S = float(sys.argv.pop(1))


def slow(*given: Any) -> Done:
    """Do a batch, and wait a little."""
    time.sleep(PAUSE_S)
    done = run(*given)
    return replace(done, seconds=done.seconds + PAUSE_S)


member.run = slow  # type: ignore[assignment,attr-defined]  # all that it is for
main()
