"""Medians, noise, and which samples are possible: what all fitting shares."""

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
"""No host copies memory faster: bandwidth above it was never measured, whatever the clock says."""

LEAST_S, MOST_S = 1e-9, 1e6
"""No request is faster than the one, and none was waited for longer than the other: 12 days."""

TIE = 0.05
"""Differences below this are none, even where the noise is smaller."""

NOISE = 0.1
"""Assumed where no size was measured three times."""

HUBER = 1.5


def screen(samples: Iterable[Sample]) -> tuple[list[Sample], dict[str, int]]:
    """Part the possible samples from the impossible, which are counted by reason."""
    kept, rejected = [], Counter[str]()
    for sample in samples:
        reason = _impossible(sample)
        if reason:
            rejected[reason] += 1
        else:
            kept.append(sample)
    return kept, dict(rejected)


def _impossible(sample: Sample) -> str | None:
    first, seconds = sample.first_byte_s, sample.seconds
    # Of differences, none is as good as any.
    least = 0.0 if sample.kind == "connect" else LEAST_S
    if not least <= seconds <= MOST_S:
        return "time not possible"
    if first is not None and not 0 <= first <= seconds:
        return "first byte before the start or after the end"
    if sample.bytes < 0 or sample.requests < 1 or sample.streams < 1:
        return "senseless size or count"
    if sample.asked_bytes is not None and sample.bytes != sample.asked_bytes:
        return "size is not what was asked for"
    if sample.bytes > COPY_BYTES_PER_S * seconds:
        return "faster than a copy in memory"
    return None


def by_size(size: Array, seconds: Array) -> tuple[Array, Array, Array, list[Array]]:
    """Medians of size and time in half octaves, counts, and logarithms of time over median."""
    octave = np.round(2 * np.log2(size + 1))
    groups = [octave == value for value in np.unique(octave)]
    middles = np.array([middle(size[group]) for group in groups])
    medians = np.array([middle(seconds[group]) for group in groups])
    counts = np.array([float(group.sum()) for group in groups])
    deviations = [
        np.log(seconds[group] / median) for group, median in zip(groups, medians, strict=True)
    ]
    return middles, medians, counts, deviations


def middle(values: Array) -> float:
    """The median; of two in the middle the smaller, for what is odd about a time makes it long."""
    return float(np.sort(values)[(len(values) - 1) // 2])


def noise_of(deviations: Sequence[Array]) -> float:
    """Relative noise of one sample, from groups of at least three that should be alike."""
    # A median of three hides one of them: the deviations of the rest are that much smaller.
    scales = [
        1.4826 * float(np.median(np.abs(group))) * math.sqrt(len(group) / (len(group) - 1))
        for group in deviations
        if len(group) >= 3
    ]
    return max(float(np.median(scales)), 0.003) if scales else NOISE


def weighted_median(values: Array, weights: Array) -> float:
    """The value that half the weight is not above."""
    order = np.argsort(values)
    half = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
    return float(values[order][half])


def counts_of(reads: Sequence[Sample]) -> tuple[Array, Array, Array]:
    """Bytes, requests and streams of samples."""
    table = [(sample.bytes, sample.requests, sample.streams) for sample in reads]
    size, requests, streams = np.array(table, dtype=float).T
    return size, requests, streams


def ratios(costs: Costs, reads: Sequence[Sample]) -> Array:
    """Measured over predicted time."""
    return np.array([sample.seconds for sample in reads]) / costs.read_s(*counts_of(reads))


def spread_of(values: Array) -> float:
    """Half the range of the middle 80 %, relative to the median."""
    if len(values) < 2:
        return 0.0
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    return float((high - low) / 2 / middle) if middle > 0 else 0.0
