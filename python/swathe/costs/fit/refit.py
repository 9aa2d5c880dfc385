"""Update costs from the times of real reads."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.costs.cost_model import NO_LIMIT, Costs, Profile, Sample, line_s, queue_s
from swathe.costs.fit.robust_stats import (
    COPY_BYTES_PER_S,
    LEAST_S,
    counts_of,
    ratios,
    screen,
    spread_of,
    weighted_median,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

HALF_LIFE_SAMPLES = 12.0
HISTORY_SAMPLES = 4.0
"""Weight of the profile in a refit, as a number of samples, against all new ones."""


def refit(
    profile: Profile,
    samples: Sequence[Sample],
    most: float = 32.0,
) -> Profile:
    """Update costs from real reads, oldest first; the same reads may be passed again later.

    Latency, bandwidth of a stream, total bandwidth and throughput of the server may each change by
    a factor. The factors minimise the absolute error. The profile counts as HISTORY_SAMPLES samples
    of "no change", and a sample counts half as much as one HALF_LIFE_SAMPLES later. So a single
    sample never changes anything, however odd. A lasting change is followed as soon as it has the
    larger weight. Of two explanations the one with fewer changes is used. No factor exceeds `most`.
    """
    sound_samples, rejections = screen(samples)
    if not sound_samples:
        return replace(profile, rejections=rejections)
    costs = profile.costs
    for name in ("connect", "open"):
        times = np.array([sample.elapsed_s for sample in sound_samples if sample.kind == name])
        old = getattr(costs, f"{name}_s")
        if len(times):
            values, weights = np.append(old, times), np.append(HISTORY_SAMPLES, _recency(times))
            changes: dict[str, Any] = {f"{name}_s": weighted_median(values, weights)}
            costs = replace(costs, **changes)
    reads = [sample for sample in sound_samples if sample.kind == "read"]
    spread = dict(profile.spread)
    if reads:
        costs = _follow(costs, reads, most)
        if len(reads) >= 10:
            spread["model"] = spread_of(ratios(costs, reads[-60:]))
    return replace(profile, costs=costs, spread=spread, rejections=rejections)


_PARTS = ("latency", "stream", "total", "rate")
_STEPS = np.append(0.0, np.log(np.geomspace(1 / 32, 32, 201)))
_DIRECTIONS = np.array(
    [
        (1, 0, 0, 0),
        (0, 1, 0, 0),
        (0, 0, 1, 0),
        (0, 0, 0, 1),
        (0, 1, 1, 0),  # the line
        (1, 0, 0, 1),  # the server
        (1, 1, 1, 1),  # the host
    ]
)
"""Parts (_PARTS) that may change, alone or together."""


def _follow(costs: Costs, reads: Sequence[Sample], most: float) -> Costs:
    """Return costs with the parts of the model scaled to fit the reads."""
    weights = _recency(np.array(reads))
    log_seconds = np.log([sample.elapsed_s for sample in reads])
    size, requests, streams = counts_of(reads)
    empty = costs.request[0][1]
    body = costs.request_s(size / requests) - empty
    sending = size / costs.total_bytes_per_s
    works = costs.served_bytes_per_s is not None
    serving = size / requests * costs.byte_s()
    serve = 1 / costs.requests_per_s + serving
    # Times to the first byte determine the latency alone, if they are known.
    first_byte_s = [sample.first_byte_s or math.nan for sample in reads]
    first = np.log(np.maximum(np.array(first_byte_s), LEAST_S) / empty)
    first_weights = np.where(np.isnan(first), 0.0, weights / 2)
    first = np.nan_to_num(first)

    def loss(factors: Array) -> Array:
        """Return absolute error plus penalty of each row: logarithms of a time factor per part."""
        latency, stream, total, rate = np.exp(factors).T
        each = empty * latency + np.multiply.outer(body, stream)
        own = empty * latency + np.multiply.outer(serving, rate) if works else each
        queue = queue_s(requests, streams, each, own, np.multiply.outer(serve, rate), works)
        sent_s = np.multiply.outer(sending, total)
        off = np.maximum(queue, line_s(requests, streams, empty * latency, sent_s), out=queue)
        np.abs(np.subtract(np.log(off, out=off), log_seconds[:, None], out=off), out=off)
        shifts = np.abs(factors)
        history = HISTORY_SAMPLES * (0.75 * shifts.max(axis=1) + 0.25 * shifts.sum(axis=1))
        misfit = weights @ off
        late = first_weights @ np.abs(np.subtract.outer(first, factors[:, 0]))
        return np.asarray(misfit + late + history, dtype=np.float64)

    best = np.zeros(len(_PARTS))
    least = float(loss(best[None])[0])
    # First the one change that explains most, then the next.
    for _ in range(2 * len(_PARTS)):
        candidates = (best + _STEPS[:, None, None] * _DIRECTIONS).reshape(-1, len(_PARTS))
        misses = loss(candidates)
        if misses.min() >= least - 1e-9:
            break
        least, best = float(misses.min()), candidates[np.argmin(misses)]
    if not best.any():
        return costs
    best = np.clip(best, -math.log(most), math.log(most))
    return _scale_costs(costs, dict(zip(_PARTS, best.tolist(), strict=True)))


def _scale_costs(costs: Costs, factors: dict[str, float]) -> Costs:
    """Return costs with times multiplied by the exponentials of these factors."""
    times = {name: math.exp(min(max(factor, -20), 20)) for name, factor in factors.items()}
    empty = costs.request[0][1]
    request: list[tuple[int, float]] = []
    last = 0, 0.0
    for size, seconds in costs.request:
        new = empty * times["latency"] + (seconds - empty) * times["stream"]
        if request:
            new = max(new, last[1] + (size - last[0]) / COPY_BYTES_PER_S)
        last = (size, max(new, LEAST_S))
        request.append(last)
    rate = costs.served_bytes_per_s
    return replace(
        costs,
        request=tuple(request),
        total_bytes_per_s=min(costs.total_bytes_per_s / times["total"], COPY_BYTES_PER_S),
        requests_per_s=min(costs.requests_per_s / times["rate"], NO_LIMIT),
        served_bytes_per_s=None if rate is None else rate / times["rate"],
    )


def _recency(samples: NDArray[np.generic]) -> Array:
    """Return weights of samples, the newest last: 1, halved every HALF_LIFE_SAMPLES."""
    return np.asarray(0.5 ** (np.arange(len(samples))[::-1] / HALF_LIFE_SAMPLES))
