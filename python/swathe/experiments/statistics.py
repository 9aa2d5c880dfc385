"""Statistics: summaries, intervals, tests, and time series. No I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

EXACT = 400
"""Pairs up to which the rank test counts all orders; beyond, a normal distribution is accurate."""
DRAWS = 2000
AT_ONCE = 1_000_000
LEVEL = 0.95


@dataclass(frozen=True)
class SampleSummary:
    """Statistics of a time as in the studies.

    `std` is of a sample (n - 1); for one value it is NaN.
    """

    count: int
    min: float
    q1: float
    mean: float
    median: float
    q3: float
    max: float
    std: float


def summary(values: Sequence[float] | Array) -> SampleSummary:
    """Summarise values.

    Raises:
        ValueError: If there are none, or one is not finite.
    """
    data = np.asarray(values, float)
    if not len(data) or not np.isfinite(data).all():
        raise ValueError(f"a summary needs finite values, found {len(data)} of which some are not")
    low, q1, median, q3, high = np.quantile(data, (0, 0.25, 0.5, 0.75, 1))
    std = float(data.std(ddof=1)) if len(data) > 1 else math.nan
    return SampleSummary(
        len(data), float(low), float(q1), float(data.mean()), float(median), float(q3),
        float(high), std,
    )  # fmt: skip


@dataclass(frozen=True)
class Ratio:
    """Ratio of two medians, and its interval."""

    value: float
    low: float
    high: float


def ratio_of_medians(
    under: Sequence[Array],
    over: Sequence[Array],
    rng: np.random.Generator,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Ratio:
    """Bootstrap the ratio of the median of `over` to that of `under`.

    Both are grouped by rounds. Rounds are resampled, then values within each: values of one round
    share the same minute of the machine, and are less informative than the same number of different
    ones.

    0 over 0 counts as 1, anything else over 0 as infinite: the rate of a hung run is 0.
    """
    ratios = _over(*(_medians(rounds, rng, draws) for rounds in (over, under)))
    # Ends are drawn values, not interpolated: one may be infinite.
    low = np.quantile(ratios, (1 - level) / 2, method="lower")
    high = np.quantile(ratios, (1 + level) / 2, method="higher")
    medians = (np.median(np.concatenate(list(rounds)), keepdims=True) for rounds in (over, under))
    return Ratio(float(_over(*medians)[0]), float(low), float(high))


def _over(values: Array, others: Array) -> Array:
    none = np.where(values == 0, 1.0, np.inf)
    return np.divide(values, others, out=none, where=others != 0)


def _medians(rounds: Sequence[Array], rng: np.random.Generator, draws: int) -> Array:
    """Return medians of resampled values, rounds first."""
    sizes = np.array([len(values) for values in rounds])
    longest = int(sizes.max())
    table = np.array([np.pad(values, (0, longest - len(values))) for values in rounds])
    parts = []
    # In parts, so that memory stays small.
    step = max(1, AT_ONCE // table.size)
    for first in range(0, draws, step):
        count = min(step, draws - first)
        picks = rng.integers(len(rounds), size=(count, len(rounds), 1))
        of_round = sizes[picks]
        samples = table[picks, rng.integers(of_round, size=(count, len(rounds), longest))]
        flat = samples.reshape(count, -1)
        if len(set(sizes.tolist())) > 1:
            # Shorter rounds give no more than they have.
            flat[(np.arange(longest) >= of_round).reshape(count, -1)] = np.nan
            parts.append(np.nanmedian(flat, axis=1))
        else:
            parts.append(np.median(flat, axis=1))
    return np.concatenate(parts)


def rank_test(first: Array, second: Array) -> float:
    """Return the probability of ranks that differ as much, for equal distributions (Mann-Whitney).

    Two-sided; exact for few values without ties, else normal with corrections for ties and
    continuity.
    """
    count, other = len(first), len(second)
    if not count or not other:
        raise ValueError("a rank test needs values on both sides")
    both = np.concatenate([first, second])
    values, group, sizes = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[group]
    above = float(ranks[:count].sum() - count * (count + 1) / 2)
    most = max(above, count * other - above)
    if len(values) == len(both) and count * other <= EXACT:
        ways = _orders(count, other)
        return min(1.0, 2 * sum(ways[round(most) :]) / sum(ways))
    total = count + other
    ties = float((sizes**3 - sizes).sum()) / (total * (total - 1)) if total > 1 else 0.0
    spread = math.sqrt(count * other / 12 * (total + 1 - ties))
    if spread == 0:
        return 1.0
    return min(1.0, math.erfc((most - count * other / 2 - 0.5) / spread / math.sqrt(2)))


def least_chance(count: int, other: int) -> float:
    """Return the smallest probability of `rank_test` for these counts: complete separation."""
    return rank_test(np.arange(count, dtype=float), np.arange(count, count + other, dtype=float))


def _orders(count: int, other: int) -> list[int]:
    """Return the number of orders for each rank sum, from the smallest."""
    ways = [1] + [0] * (count * other)
    for step in range(1, count + 1):
        # From Gaussian binomial coefficients: times (1 - x^(other + step)), over (1 - x^step).
        for at in range(len(ways) - 1, other + step - 1, -1):
            ways[at] -= ways[at - other - step]
        for at in range(step, len(ways)):
            ways[at] += ways[at - step]
    return ways


def holm(probabilities: Sequence[float]) -> Array:
    """Correct the probabilities of several tests to the false-alarm rate of one test."""
    values = np.asarray(probabilities, float)
    order = np.argsort(values, kind="stable")
    products = values[order] * np.arange(len(values), 0, -1)
    result = np.empty(len(values))
    result[order] = np.minimum(np.maximum.accumulate(products), 1.0)
    return result


def edges_of(start: float, stop: float, width: float) -> Array:
    """Return window edges from start to stop; a shorter last window is left out."""
    # Times of day have a resolution of 0.2 microseconds: the last whole window counts too.
    count = int((stop - start) / width + 1e-4) + 1
    return np.asarray(start + width * np.arange(count), np.float64)


def rate_in(times: Array, edges: Array) -> Array:
    """Return the number of times in each window, per second."""
    counts, _ = np.histogram(times, edges)
    return np.asarray(counts / np.diff(edges), float)


def quantile_in(times: Array, values: Array, edges: Array, part: float) -> Array:
    """Return a quantile of the values in each window; NaN if there are none."""
    window = np.searchsorted(edges, times, side="right") - 1
    quantiles = np.full(len(edges) - 1, np.nan)
    for at in range(len(quantiles)):
        if len(inside := values[window == at]):
            quantiles[at] = np.quantile(inside, part)
    return quantiles


def busy_in(starts: Array, ends: Array, edges: Array) -> Array:
    """Return the average number of intervals open in each window."""
    open_s = _since(starts, edges) - _since(ends, edges)
    return np.asarray(np.diff(open_s) / np.diff(edges), float)


def _since(times: Array, edges: Array) -> Array:
    """Return the summed ages, at each edge, of all times before it."""
    # Relative to the first edge: sums of times of day would lose digits.
    offsets = np.sort(np.asarray(times, float)) - edges[0]
    before = np.searchsorted(offsets, edges - edges[0])
    return np.asarray(
        before * (edges - edges[0]) - np.append(0.0, np.cumsum(offsets))[before], np.float64
    )


def work_in(starts: Array, ends: Array, edges: Array, work: ArrayLike = 1) -> Array:
    """Return the work in each window, per second.

    Each interval has some work, and counts by the fraction of it that is inside the window.
    """
    lengths = np.maximum(ends - starts, 1e-9)[:, None]
    amounts = np.broadcast_to(np.asarray(work, float), np.shape(starts))
    fractions = amounts @ np.clip((edges - np.asarray(starts)[:, None]) / lengths, 0, 1)
    return np.asarray(np.diff(fractions) / np.diff(edges), float)


def first_above(times: Array, values: Array, limit: float, samples: int = 2) -> float:
    """Return the time from which `samples` values in a row reach a limit; infinite if never."""
    above = np.asarray(values, float) >= limit
    for at in range(len(above) - samples + 1):
        if above[at : at + samples].all():
            return float(times[at])
    return math.inf
