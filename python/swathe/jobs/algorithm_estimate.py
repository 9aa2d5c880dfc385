"""Predicted cost of an algorithm on groups of granules.

Reading is predicted from the measured costs of the stores. Computing is learned from earlier runs
of the same version: seconds per run and per byte of input. Without a run of it, nothing is said.
What the portal does beside the programs is learned from earlier orders of any algorithm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.errors import SwatheError
from swathe.core.format import count_text, seconds_text, size_text
from swathe.costs.prediction import Prediction
from swathe.costs.store_costs import reading_costs
from swathe.jobs.estimate import overhead_s
from swathe.operations.kinds.algorithm import AlgorithmOperation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from swathe.catalog import Catalog
    from swathe.catalog.records.algorithms import GroupTiming
    from swathe.catalog.records.jobs import PastJob
    from swathe.core.row_table import RowTable
    from swathe.costs.cost_model import Costs
    from swathe.jobs.algorithm_rows import AlgorithmWork

FEW = 5
"""Runs below which the interval is widened by WIDER: they say little of their spread."""
WIDER = 2.0
BETWEEN = 0.2
"""Relative spread of times that differ by less than this is taken to be noise of a line."""


def predict_groups(
    catalog: Catalog,
    work: AlgorithmWork,
    rows: RowTable,
    timings: Sequence[GroupTiming],
    lanes: int,
    past_jobs: Sequence[PastJob],
) -> Prediction | None:
    """Predict the time of all groups; `None` if the version has not run yet, or there are none.

    Args:
        catalog: the catalogue, with the costs of stores.
        work: the algorithm, with the sizes of granules.
        rows: rows of granules that can be read, with their groups.
        timings: earlier runs of the version.
        lanes: number of groups that run at the same time.
        past_jobs: earlier jobs of any kind.
    """
    if not timings or not len(rows) or rows.group is None:
        return None
    granule_bytes = work.read_bytes / len(rows)
    sizes = np.bincount(rows.group.few().codes).astype(float) * granule_bytes
    seconds, (low, high) = run_seconds(timings, sizes)
    lanes = min(lanes, len(sizes))
    compute_s = float(seconds.sum())
    reading_s, requests = _shipping(catalog, work)
    orders = [
        replace(job, work_s=job.elapsed_s)
        for job in past_jobs
        if job.operation == AlgorithmOperation.name
    ]
    outside_s, least_s, most_s = overhead_s(
        orders, AlgorithmOperation.formats[0], len(rows) + len(sizes)
    )
    return Prediction(
        median_s=reading_s + compute_s / lanes + outside_s,
        interval_s=(
            reading_s + low * compute_s / lanes + least_s,
            reading_s + high * compute_s / lanes + most_s,
        ),
        bytes=work.copy_bytes,
        requests=requests,
        per_store={},
        compute_s=compute_s,
        overhead_s=outside_s,
    )


def run_seconds(
    timings: Sequence[GroupTiming], sizes: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Return the seconds of runs with inputs of some sizes, and the factors of an 80 % interval.

    The slope is the median of those of pairs of runs (Theil and Sen), if sizes differ; it is not
    negative. The factors are the 10th and 90th percentile of actual over fitted times.
    """
    size, took = np.array([(each.input_bytes, each.wall_s) for each in timings], float).T
    slope = 0.0
    if size.max() > size.min() * (1 + BETWEEN) and len(size) > 2:
        first, second = np.triu_indices(len(size[:200]), 1)
        apart = size[second] != size[first]
        steps = (took[second] - took[first])[apart] / (size[second] - size[first])[apart]
        slope = max(0.0, float(np.median(steps)))
    base = float(np.median(took - slope * size))
    if base < 0:  # a line through the origin
        base, slope = 0.0, float(np.median(took / np.maximum(size, 1)))
    ratios = took / np.maximum(base + slope * size, 1e-6)
    low, high = (float(each) for each in np.percentile(ratios, (10, 90)))
    if len(timings) < FEW:
        low, high = low / WIDER, high * WIDER
    return base + slope * sizes, (min(low, 1.0), max(high, 1.0))


def output_bytes(timings: Sequence[GroupTiming], groups: int) -> int:
    """Return the expected size of the outputs of some groups, by earlier runs; 0 without any."""
    sizes = [each.output_bytes for each in timings]
    return int(np.mean(sizes) * groups) if sizes else 0


def reading_notes(catalog: Catalog, work: AlgorithmWork) -> list[str]:
    """Return a note on each store: whether its granules are read in place or copied, and how long.

    A program has no network, so granules of other machines come to it as whole files.
    """
    notes = []
    count, size = work.local
    if count:
        granules = f"{count_text(count, 'granule')}, {size_text(size)}"
        notes.append(f"on this machine: {granules}: read where they are")
    for name, (count, size) in work.copies.items():
        note = f"{name}: {count_text(count, 'granule')}, {size_text(size)}: copied to where their "
        note += "group runs"
        if (costs := _costs_of(catalog, name)) is not None:
            note += f", about {seconds_text(_copying_s(costs[0], count, size))}"
            note += "" if costs[1] else f", by assumed costs: swathe probe {name} measures them"
        notes.append(note)
    return notes


def _shipping(catalog: Catalog, work: AlgorithmWork) -> tuple[float, int]:
    """Return the seconds and requests of copying granules from other stores."""
    seconds, requests = 0.0, 0
    for name, (count, size) in work.copies.items():
        costs = _costs_of(catalog, name)
        if costs is not None:
            seconds += _copying_s(costs[0], count, size)
            requests += count
    return seconds, requests


def _copying_s(costs: Costs, count: int, size: int) -> float:
    """Return the seconds of copying some granules of some size together."""
    return float(costs.open_s * count + costs.read_s(size, count))


def _costs_of(catalog: Catalog, name: str) -> tuple[Costs, bool] | None:
    """Return what reading from a store costs, and whether that was measured.

    `None` of a URL without a store.
    """
    try:
        return reading_costs(catalog, catalog.store(name))
    except SwatheError:
        return None
