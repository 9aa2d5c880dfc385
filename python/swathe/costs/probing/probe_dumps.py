"""Measure what a host takes to bring the elements of a dump together."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from swathe.costs.fit.robust_stats import lower_median

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

SIDE, PARTS = 216, 4
"""Length of the axes of an array of 40 MB, and the number of parts along each. A copy of this size
is made in new memory, as the shards of a run are."""
ROUNDS = 5
RANKS, STEPS = 4, 250


def measure_dumps() -> dict[str, float]:
    """Return the costs of `RunCosts` but `commit_s`, which the catalogue has."""
    whole = np.zeros((SIDE, SIDE, SIDE), np.float32)
    part = SIDE // PARTS
    in_parts = whole.reshape(PARTS, part, PARTS, part, PARTS, part).transpose(0, 2, 4, 1, 3, 5)
    cyclic = np.arange(0, SIDE, PARTS)
    target = np.ix_(np.arange(SIDE), np.arange(SIDE), cyclic)
    source = np.zeros((SIDE, SIDE, len(cyclic)), "f4")

    def scatter() -> None:
        whole[target] = source

    return {
        "copy_byte_s": _median_s(in_parts.copy) / whole.nbytes,
        "scatter_s": _median_s(scatter) / source.size,
        "spool_byte_s": _median_s(lambda: _spool(whole)) / whole.nbytes,
        "step_s": _step_s() / RANKS,
    }


def _median_s(act: Callable[[], object]) -> float:
    times_s = []
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        act()
        times_s.append(time.perf_counter() - began_s)
    return lower_median(np.array(times_s))


def _spool(content: NDArray[np.float32]) -> None:
    with os.fdopen(os.memfd_create("swathe-probe"), "wb") as file:
        file.write(content.data)


def _step_s() -> float:
    """Return the seconds in which threads wait for each other once, as ranks of a run do.

    A `threading.Barrier` takes 10 times as long: nobody enters it again before all have left it.
    """
    condition, counts, ends_s = threading.Condition(), [0] * STEPS, [0.0] * STEPS

    def take() -> None:
        for step in range(STEPS):
            with condition:
                counts[step] += 1
                if counts[step] == RANKS:
                    ends_s[step] = time.perf_counter()
                    condition.notify_all()
                while counts[step] < RANKS:
                    condition.wait()

    threads = [threading.Thread(target=take) for _ in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return float(np.mean(np.diff(ends_s)))
