"""Time left of work whose cost was predicted, from its progress so far.

The ratio of actual to predicted seconds has a prior: the interval of the prediction. Evidence is
the progress so far, in predicted seconds per second; older progress fades. The prior counts less
the more the evidence contradicts it, as a prior with heavy tails does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

    from swathe.costs.prediction import Prediction

HALF_LIFE_S = 2.5
"""After this time progress counts half. If progress is rarer, it counts half at each."""
NOISE = 0.4
"""Standard deviation of the logarithm of the ratio from one step of progress."""
DRIFT = 0.1
"""Of the same from any number of steps: the rest of the work differs from the part done."""
QUANTILE = 1.2816
"""Standard deviations to the 10th and 90th percentile."""
QUIET = 2.0
"""Time without progress counts as evidence once it is longer than this many usual steps."""
LEAST_S = 1e-3
LEAST_BOUND = math.log(1.02)
MOST_RATIO = math.log(1e6)
"""Bound of the logarithm of actual to predicted time that progress can show."""


class TimeLeft(NamedTuple):
    """Time left.

    Attributes:
        median_s: median, in seconds.
        interval_s: 10th and 90th percentile, in seconds.
    """

    median_s: float
    interval_s: tuple[float, float]


class CutProgress(NamedTuple):
    """Progress of `cut_many`, as its argument `progress` receives it.

    Attributes:
        done: number of targets done.
        targets: number of targets; of a list in pieces, those of the present piece.
        part: part of the predicted time that is done, 0 to 1.
        left: time left.
    """

    done: int
    targets: int
    part: float
    left: TimeLeft

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON: `done`, `targets`, `part`, `left_s`, `interval_s`."""
        left = self.left
        return {
            "done": self.done,
            "targets": self.targets,
            "part": round(self.part, 4),
            "left_s": round(left.median_s, 1),
            "interval_s": [round(seconds, 1) for seconds in left.interval_s],
        }


class _Evidence(NamedTuple):
    """Progress, faded.

    Attributes:
        elapsed_s: seconds that passed.
        done_s: predicted seconds of the work done in them.
        steps: number of steps.
    """

    elapsed_s: float = 0.0
    done_s: float = 0.0
    steps: float = 0.0

    def after(self, elapsed_s: float, done_s: float) -> _Evidence:
        """Return it with one more step."""
        fade = max(2 ** (-elapsed_s / HALF_LIFE_S), 0.5)
        # Mean weight of what happened during the step.
        weight = (1 - fade) / -math.log(fade) if fade < 1 - 1e-9 else 1.0
        return _Evidence(
            self.elapsed_s * fade + elapsed_s * weight,
            self.done_s * fade + done_s * weight,
            self.steps * fade + 1,
        )


@dataclass
class TimeLeftModel:
    """Time left of one piece of work.

    Attributes:
        predicted_s: median of its predicted time, in seconds.
        interval_s: 10th and 90th percentile of that.
    """

    predicted_s: float
    interval_s: tuple[float, float]
    _evidence: _Evidence = field(default_factory=_Evidence)
    _part: float = 0.0
    _at_s: float = 0.0

    @classmethod
    def of(cls, prediction: Prediction | Mapping[str, Any]) -> TimeLeftModel:
        """Return the model of predicted work: a prediction, or a mapping with two of its keys."""
        if isinstance(prediction, Mapping):
            median_s, (low_s, high_s) = prediction["median_s"], prediction["interval_s"]
        else:
            median_s, (low_s, high_s) = prediction.median_s, prediction.interval_s
        median_s = max(median_s, LEAST_S)
        return cls(median_s, (max(min(low_s, median_s), LEAST_S / 2), max(high_s, median_s)))

    def update(self, at_s: float, part: float) -> None:
        """Take the progress.

        Args:
            at_s: seconds since the work began.
            part: part of the predicted seconds that is done, 0 to 1.
        """
        if part > self._part and at_s > self._at_s:
            done_s = (min(part, 1.0) - self._part) * self.predicted_s
            self._evidence = self._evidence.after(at_s - self._at_s, done_s)
            self._at_s, self._part = at_s, min(part, 1.0)

    def left(self, at_s: float) -> TimeLeft:
        """Return the time left, `at_s` seconds after the work began.

        In 80 of 100 cases the actual one is within the interval.
        """
        quiet_s = max(at_s - self._at_s, 0.0)
        rest_s = (1 - self._part) * self.predicted_s
        if rest_s <= 0:
            return TimeLeft(0.0, (0.0, 0.0))
        evidence = self._evidence
        if self._is_quiet(quiet_s):
            # As if a usual step ended now; before the first, as if half of the work did.
            step_s = evidence.done_s / evidence.steps if evidence.steps else rest_s / 2
            step_s = min(step_s, rest_s)
            evidence, rest_s, quiet_s = evidence.after(quiet_s, step_s), rest_s - step_s / 2, 0.0
        mean, (faster, slower) = self._posterior(evidence)

        def left_s(ratio: float) -> float:
            # Of a step that takes longer than usual, some is always left.
            return max(rest_s * ratio - quiet_s, 0.1 * rest_s * ratio)

        low_s, median_s, high_s = (
            left_s(math.exp(log)) for log in (mean - faster, mean, mean + slower)
        )
        return TimeLeft(median_s, (low_s, high_s))

    def _is_quiet(self, quiet_s: float) -> bool:
        """Check whether the last step is longer ago than usual."""
        evidence = self._evidence
        if not evidence.steps:
            return quiet_s > self.predicted_s / 2
        return quiet_s > QUIET * evidence.elapsed_s / evidence.steps

    def _posterior(self, evidence: _Evidence) -> tuple[float, tuple[float, float]]:
        """Return the mean of the logarithm of actual to predicted time, and its bounds."""
        low_s, high_s = self.interval_s
        faster, slower = (
            max(math.log(ratio), LEAST_BOUND)
            for ratio in (self.predicted_s / low_s, high_s / self.predicted_s)
        )
        if evidence.elapsed_s <= 0 or evidence.done_s <= 0:
            return 0.0, (faster, slower)
        prior_sd = (faster + slower) / 2 / QUANTILE
        log_ratio = math.log(evidence.elapsed_s) - math.log(evidence.done_s)
        log_ratio = min(max(log_ratio, -MOST_RATIO), MOST_RATIO)
        seen_variance = NOISE**2 / evidence.steps + DRIFT**2
        conflict = log_ratio**2 / (prior_sd**2 + seen_variance)
        prior_weight = 1 / (1 + conflict**2) / prior_sd**2
        precision = prior_weight + 1 / seen_variance
        narrower = 1 / (math.sqrt(precision) * prior_sd)
        return log_ratio / seen_variance / precision, (faster * narrower, slower * narrower)
