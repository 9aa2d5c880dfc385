"""Fit the time of a single request as a function of its size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.format import rate_text
from swathe.costs.fit.robust_stats import (
    COPY_BYTES_PER_S,
    HUBER,
    LEAST_S,
    by_size,
    lower_median,
    noise_of,
    spread_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from swathe.costs.cost_model import Sample

    Array = NDArray[np.float64]

FIRST_WINDOW_BYTES = 16 << 10
"""About ten segments of TCP: so much is sent before the receiver answers."""

LEAST_SLOPE = 1 / COPY_BYTES_PER_S
"""Least slope, in seconds per byte."""


@dataclass(frozen=True)
class RequestCurve:
    """The fitted curve t()."""

    sizes: Array
    seconds: Array
    bytes_per_s: float
    noise: float
    spread: float

    def __call__(self, size: Array) -> Array:
        """Return the seconds of requests of these sizes."""
        slope = 1 / self.bytes_per_s
        beyond = np.maximum(size - self.sizes[-1], 0)
        return np.asarray(np.interp(size, self.sizes, self.seconds) + slope * beyond)


def fit_curve(reads: Sequence[Sample], notes: list[str]) -> RequestCurve:
    """Fit the time of a request as a function of its size, from requests that ran alone.

    First a straight line is fitted robustly. Then each size may deviate from it as far as its own
    samples support. Finally the curve is made to rise. Where the time for bytes is short beside
    the latency and its noise, that from the first byte on tells it.

    Args:
        reads: samples of reads.
        notes: notes are added to these.
    """
    alone = [sample for sample in reads if sample.streams == 1]
    if not alone:
        notes.append("request: never measured alone; fitted to requests that shared the line")
        alone = list(reads)
    size = np.round([sample.bytes / sample.requests for sample in alone])
    request_s = np.array(
        [sample.elapsed_s / math.ceil(sample.requests / sample.streams) for sample in alone]
    )
    sizes, seconds, counts, deviations = by_size(size, request_s)
    noise = noise_of(deviations)
    errors = np.hypot(1.25 * noise / np.sqrt(counts), 0.01)

    latency, slope = _line(sizes, seconds, errors)
    least_slope = float(2 * errors[-1] * latency / max(sizes[-1], 1.0))
    is_slope_known = slope > least_slope
    is_short = not is_slope_known or slope * sizes[-1] < latency / 2
    sending = _sending(alone, least_slope / 2) if is_short else None
    if sending is not None:
        slope = min(sending, float(seconds[-1] / max(sizes[-1], 1.0)))
        latency = max(float(np.median(seconds - slope * sizes)), 0.1 * float(seconds[0]), LEAST_S)
    line = latency + slope * sizes
    off = np.log(seconds / line)
    trust = np.maximum(0, 1 - (2 * errors / np.maximum(np.abs(off), 1e-12)) ** 2)
    curve = _rising(line * np.exp(trust * off), counts)
    if is_slope_known and sending is None and trust[-3:].any() and len(sizes) > 3:
        # The end is not straight: take the slope from the largest sizes.
        slope = float(np.clip(_median_slope(sizes[-4:], curve[-4:]), slope / 3, slope * 3))
    if not is_slope_known:
        if sending is None:
            # The largest slope that the noise could hide.
            slope = max(slope, least_slope / 2)
        notes.append(
            "request: the bandwidth of one stream is hidden by the latency; "
            f"{rate_text(1 / slope)} is used beyond the largest size"
        )
    slope = max(slope, LEAST_SLOPE)

    # From zero to twice the largest size, so that both ends come from the fit, not from two
    # samples.
    if sizes[0] > 0:
        empty = curve[0] * latency / (latency + slope * sizes[0])
        sizes, curve = np.append(0, sizes), np.append(empty, curve)
    sizes = np.append(sizes, max(2 * sizes[-1], 1.0))
    curve = np.append(curve, curve[-1] + slope * (sizes[-1] - sizes[-2]))
    curve = np.maximum(curve, LEAST_S)
    for point in range(1, len(sizes)):
        least = curve[point - 1] + (sizes[point] - sizes[point - 1]) / COPY_BYTES_PER_S
        curve[point] = max(curve[point], least)
    if len(counts) == 1:
        notes.append("request: only one size was measured")
    deviation_ratios = np.exp(np.concatenate(deviations))
    return RequestCurve(sizes, curve, 1 / slope, noise, spread_of(deviation_ratios))


def _sending(alone: Sequence[Sample], most: float) -> float | None:
    """Return the seconds per byte from the first byte on, of the largest requests; None if unknown.

    An answer that fits into the first window of TCP comes at once, whatever the line carries: then
    it is between that and `most`.
    """
    sizes_and_times = [
        (sample.bytes, (sample.elapsed_s - sample.first_byte_s) / sample.bytes)
        for sample in alone
        if sample.first_byte_s is not None and 0 < sample.first_byte_s < sample.elapsed_s
    ]
    if not sizes_and_times:
        return None
    largest = max(size for size, _ in sizes_and_times)
    byte_s = lower_median(np.array([each for size, each in sizes_and_times if 2 * size > largest]))
    if largest <= FIRST_WINDOW_BYTES:
        byte_s = math.sqrt(byte_s * max(byte_s, most))
    return max(byte_s, LEAST_SLOPE)


def fit_line(reads: Sequence[Sample]) -> tuple[float, float, float]:
    """Return latency, bandwidth, and spread of measured over fitted time of single requests."""
    size = np.array([float(sample.bytes) for sample in reads])
    request_s = np.array([sample.elapsed_s for sample in reads])
    sizes, seconds, counts, deviations = by_size(size, request_s)
    errors = np.hypot(1.25 * noise_of(deviations) / np.sqrt(counts), 0.01)
    latency, slope = _line(sizes, seconds, errors)
    return latency, 1 / slope, spread_of(request_s / (latency + slope * size))


def _line(sizes: Array, seconds: Array, errors: Array) -> tuple[float, float]:
    """Return latency and slope of the line through the medians: relative errors, Huber's loss."""
    latency = max(float(seconds[0]), LEAST_S)
    slope = max(float(seconds[-1] - latency) / max(float(sizes[-1]), 1.0), LEAST_SLOPE)
    if len(sizes) == 1:
        return latency, LEAST_SLOPE
    for _ in range(30):
        line = latency + slope * sizes
        off = np.abs(seconds / line - 1) / errors
        weight = np.minimum(1, HUBER / np.maximum(off, 1e-12)) / (errors * line) ** 2
        mean_size, mean_time = np.average([sizes, seconds], axis=1, weights=weight)
        variance = np.average((sizes - mean_size) ** 2, weights=weight)
        covariance = np.average((sizes - mean_size) * (seconds - mean_time), weights=weight)
        slope = max(float(covariance / max(variance, 1e-12)), LEAST_SLOPE)
        latency = float(mean_time - slope * mean_size)
        if latency < LEAST_S or latency < 1e-3 * seconds[0]:
            latency = max(LEAST_S, 1e-3 * float(seconds[0]))
            heavy = weight * sizes
            slope = max(
                float((heavy * (seconds - latency)).sum() / (heavy * sizes).sum()), LEAST_SLOPE
            )
    return latency, slope


def _rising(values: Array, weights: Array) -> Array:
    """Return the nearest values that never fall (isotonic regression of logarithms)."""
    blocks: list[list[float]] = []  # mean, weight, length
    for value, weight in zip(np.log(values).tolist(), weights.tolist(), strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, heavy, length = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * heavy) / (last[1] + heavy)
            last[1] += heavy
            last[2] += length
    rising = np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])
    return np.asarray(np.exp(rising), dtype=np.float64)


def _median_slope(sizes: Array, seconds: Array) -> float:
    """Return the median of the slopes of all pairs (Theil and Sen)."""
    one, other = np.triu_indices(len(sizes), 1)
    return float(np.median((seconds[other] - seconds[one]) / (sizes[other] - sizes[one])))
