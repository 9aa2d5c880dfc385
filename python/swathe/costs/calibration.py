"""Correct predictions of a store by what earlier ones came to.

The prior is the bounds that the probe gave. The evidence are the ratios of actual to predicted
seconds of reading and cutting. Both are quantiles of one weighted sample: the prior counts as PRIOR
outcomes (the posterior of a Dirichlet process). An outcome counts half as much as one HALF_LIFE
outcomes later, and less if its job was much longer or shorter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PRIOR = 2.0
"""Weight of the probe's bounds, as a number of outcomes."""
HALF_LIFE = 25
MOST_OUTCOMES = 100
"""Newest outcomes of a store that count."""
ALIKE = math.log(4)
"""Logarithm of the ratio of two jobs' seconds at which one says half as much of the other."""
TENTH = NormalDist().inv_cdf(0.9)
POINTS = tuple(NormalDist().inv_cdf((at + 0.5) / 20) / TENTH for at in range(20))
"""The prior: quantiles of a normal distribution, whose 10th and 90th percentiles are -1 and 1."""
MOST_RATIO = math.log(100)


@dataclass(frozen=True)
class Calibration:
    """How the jobs of a store end.

    Attributes:
        bias: logarithm of actual over predicted time, in the median.
        faster, slower: logarithms of how much faster and slower than the median 80 of 100 jobs are
            at most.
        outcomes: number of outcomes that count.
    """

    bias: float
    faster: float
    slower: float
    outcomes: int


class Timing(Protocol):
    """A piece of work that was predicted, and is done."""

    @property
    def model_s(self) -> float:
        """Return the predicted seconds, before any correction."""

    @property
    def engine_s(self) -> float:
        """Return the actual seconds."""


def calibrate(
    outcomes: Sequence[Timing],
    model_s: float,
    bounds: tuple[float, float],
    weight_of: Callable[[Any], float] = lambda _: 1.0,
) -> Calibration:
    """Return how a job of a store will end.

    Args:
        outcomes: outcomes of the store, oldest first.
        model_s: predicted seconds of reading and cutting, before any correction.
        bounds: logarithms of how much faster and slower 80 of 100 jobs are by the probe.
        weight_of: function that returns how much an outcome counts by what it was, at most 1.
    """
    faster, slower = bounds
    usable = [each for each in outcomes if each.model_s > 0 and each.engine_s > 0][-MOST_OUTCOMES:]
    if not usable:
        return Calibration(0.0, faster, slower, 0)
    sample = prior_sample(faster, slower, PRIOR)
    for age, each in enumerate(reversed(usable)):
        ratio = math.log(each.engine_s / each.model_s)
        unlike = math.log(each.model_s / max(model_s, 1e-6)) / ALIKE
        weight = weight_of(each) * 0.5 ** (age / HALF_LIFE) / (1 + unlike**2)
        sample.append((min(max(ratio, -MOST_RATIO), MOST_RATIO), weight))
    low, bias, high = weighted_quantiles(sample, (0.1, 0.5, 0.9))
    return Calibration(bias, bias - low, high - bias, len(usable))


def prior_sample(faster: float, slower: float, weight: float) -> list[tuple[float, float]]:
    """Return values with weights, `weight` in all, whose 80 % interval has these bounds."""
    return [(at * (slower if at > 0 else faster), weight / len(POINTS)) for at in POINTS]


def weighted_quantiles(
    sample: Sequence[tuple[float, float]], parts: Sequence[float]
) -> list[float]:
    """Return quantiles of values with weights, linear between the middles of the weights."""
    pairs = sorted(sample)
    total = sum(weight for _, weight in pairs)
    middles, before = [], 0.0
    for value, weight in pairs:
        middles.append(((before + weight / 2) / total, value))
        before += weight
    return [_at(middles, part) for part in parts]


def _at(middles: Sequence[tuple[float, float]], part: float) -> float:
    last = middles[0]
    for middle in middles:
        if middle[0] >= part:
            (left, low), (right, high) = last, middle
            return high if right <= left else low + (high - low) * (part - left) / (right - left)
        last = middle
    return last[1]
