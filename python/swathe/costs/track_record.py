"""How far predictions could be leant on: their errors, and how often their intervals held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.catalog import Outcome


@dataclass(frozen=True)
class TrackRecord:
    """Outcomes of one store, or of all.

    Attributes:
        root: key of the store; empty for work of several stores, and for all.
        compared: number of outcomes that are compared: those that took at least 0.1 s.
        median_error: error of the predicted seconds in the median, relative to the actual ones.
        high_error: 90th percentile of the error.
        coverage: part of the outcomes within the interval of 80 %.
    """

    root: str
    compared: int
    median_error: float
    high_error: float
    coverage: float


def track_records(outcomes: Sequence[Outcome]) -> list[TrackRecord]:
    """Return the record of each store by its root, and last that of all; none without outcomes."""
    comparable = [outcome for outcome in outcomes if outcome.error is not None]
    if not comparable:
        return []
    roots = sorted({outcome.root for outcome in comparable})
    by_root = [[each for each in comparable if each.root == root] for root in roots]
    records = [_record(root, of) for root, of in zip(roots, by_root, strict=True)]
    return [*records, _record("", comparable)]


def _record(root: str, outcomes: Sequence[Outcome]) -> TrackRecord:
    actual = np.array([outcome.actual_s for outcome in outcomes])
    medians, low, high = (
        np.array([getattr(outcome, name) for outcome in outcomes])
        for name in ("predicted_s", "low_s", "high_s")
    )
    errors = np.abs(medians / actual - 1)
    inside = (low <= actual) & (actual <= high)
    median, ninetieth = np.quantile(errors, (0.5, 0.9)).tolist()
    return TrackRecord(root, len(outcomes), median, ninetieth, float(inside.mean()))
