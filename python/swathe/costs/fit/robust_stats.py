"""Robust statistics for all fits: medians, noise, and rejection of impossible samples."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from swathe.costs.cost_model import Costs, Sample

    Array = NDArray[np.float64]

COPY_BYTES_PER_S = 2e11
"""Upper limit of memory bandwidth of any host; a faster sample is a fault of the clock."""

LEAST_S, MOST_S = 1e-9, 1e6
"""Least and largest possible time of a request; the largest is 12 days."""

TIE = 0.05
"""Relative differences below this are ignored, even if the noise is smaller."""

NOISE = 0.1
"""Relative noise assumed if no size was measured three times."""

HUBER = 1.5


def screen(samples: Iterable[Sample]) -> tuple[list[Sample], dict[str, int]]:
    """Return the possible samples, and the number of impossible ones by reason."""
    possible, rejections = [], Counter[str]()
    for sample in samples:
        reason = _impossible(sample)
        if reason:
            rejections[reason] += 1
        else:
            possible.append(sample)
    return possible, dict(rejections)


def _impossible(sample: Sample) -> str | None:
    first, seconds = sample.first_byte_s, sample.elapsed_s
    # Differences of times may be zero or less.
    least = 0.0 if sample.kind == "connect" else LEAST_S
    if not least <= seconds < MOST_S:
        return "impossible time"
    if first is not None and not 0 <= first <= seconds:
        return "first byte before the start or after the end"
    if sample.bytes < 0 or sample.requests < 1 or sample.streams < 1:
        return "invalid size or count"
    if sample.asked_bytes is not None and sample.bytes != sample.asked_bytes:
        return "size differs from the request"
    if sample.bytes > COPY_BYTES_PER_S * seconds:
        return "faster than a copy in memory"
    return None


def by_size(size: Array, seconds: Array) -> tuple[Array, Array, Array, list[Array]]:
    """Return medians of size and time by half octave, counts, and logarithms of time / median."""
    octave = np.round(2 * np.log2(size + 1))
    groups = [octave == value for value in np.unique(octave)]
    middles = np.array([lower_median(size[group]) for group in groups])
    medians = np.array([lower_median(seconds[group]) for group in groups])
    counts = np.array([float(group.sum()) for group in groups])
    deviations = [
        np.log(seconds[group] / median) for group, median in zip(groups, medians, strict=True)
    ]
    return middles, medians, counts, deviations


def lower_median(values: Array) -> float:
    """Return the median; of two middle values the smaller one, since errors make times longer."""
    return float(np.sort(values)[(len(values) - 1) // 2])


def noise_of(deviations: Sequence[Array]) -> float:
    """Return the relative noise of one sample, from groups of at least three similar samples."""
    # A median of three equals one of them, so the other deviations are smaller than the noise.
    scales = [
        1.4826 * float(np.median(np.abs(group))) * math.sqrt(len(group) / (len(group) - 1))
        for group in deviations
        if len(group) >= 3
    ]
    return max(float(np.median(scales)), 0.003) if scales else NOISE


def weighted_median(values: Array, weights: Array) -> float:
    """Return the largest value with at most half the weight below it."""
    order = np.argsort(values)
    half = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
    return float(values[order][half])


def counts_of(reads: Sequence[Sample]) -> tuple[Array, Array, Array]:
    """Return bytes, requests and streams of samples."""
    table = [(sample.bytes, sample.requests, sample.streams) for sample in reads]
    size, requests, streams = np.array(table, dtype=float).T
    return size, requests, streams


def ratios(costs: Costs, reads: Sequence[Sample]) -> Array:
    """Return measured over predicted times."""
    return np.array([sample.elapsed_s for sample in reads]) / costs.read_s(*counts_of(reads))


def spread_of(values: Array) -> float:
    """Return half the range of the middle 80 %, relative to the median."""
    if len(values) < 2:
        return 0.0
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    return float((high - low) / 2 / middle) if middle > 0 else 0.0
