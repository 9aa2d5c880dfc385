"""What a call of `cut_many` takes around reading and cutting: the list, plans, the manifest.

Each call measures it, so it is learned from the outcomes of this host. The catalogue keeps what was
learned with the computing costs.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.stored_record import stored_record
from swathe.costs.calibration import prior_sample, weighted_quantiles
from swathe.costs.fit.robust_stats import weighted_median

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.catalog import Outcome

PRIOR = 4.0
"""Weight of what is known already, as a number of outcomes."""
HALF_LIFE = 25
MOST_CALLS = 200
MANY = 10_000
"""Targets from which the time of each shows: in a call of fewer, a new process loads longer."""
LEAST_S = 1e-9


@dataclass(frozen=True)
class CallCosts:
    """Seconds of a call around reading and cutting. The defaults are of a 2.5 GHz Xeon of 2019.

    Attributes:
        before_s: until reading begins: the list is read, and the job planned.
        before_target_s: the same, for each target.
        after_s: from the last result on: the manifest is written, the output closed.
        after_target_s: the same, for each target.
        faster, slower: logarithms of how much less and more the seconds of a call are at most, in
            80 of 100 calls.
        target_faster, target_slower: the same of the seconds for each target.
    """

    before_s: float = 4e-3
    before_target_s: float = 6e-6
    after_s: float = 4e-3
    after_target_s: float = 6e-6
    faster: float = 0.5
    slower: float = 0.7
    target_faster: float = 0.5
    target_slower: float = 0.7

    def before(self, targets: int) -> float:
        """Return the seconds before reading."""
        return self.before_s + targets * self.before_target_s

    def after(self, targets: int) -> float:
        """Return the seconds after it."""
        return self.after_s + targets * self.after_target_s

    def unsure(self, targets: int, *, is_begun: bool) -> tuple[float, float]:
        """Return how many seconds less and more 80 of 100 calls take at most.

        Args:
            targets: number of targets.
            is_begun: whether only the seconds after reading are still unsure.
        """
        fixed_s = self.after_s if is_begun else self.after_s + self.before_s
        each_s = self.after_target_s if is_begun else self.after_target_s + self.before_target_s
        parts = fixed_s, targets * each_s
        less = 1 - math.exp(-self.faster), 1 - math.exp(-self.target_faster)
        more = math.exp(self.slower) - 1, math.exp(self.target_slower) - 1
        return math.hypot(*map(mul, parts, less)), math.hypot(*map(mul, parts, more))

    @classmethod
    def of(cls, compute: str | None) -> CallCosts:
        """Return what the computing costs of a host say, as JSON; the defaults if nothing.

        Raises:
            CatalogError: If they are not values by name.
        """
        record = {} if compute is None else json.loads(compute).get("call", {})
        return stored_record(cls, record, "costs of calls on this host")

    def learn(self, outcomes: Sequence[Outcome]) -> CallCosts:
        """Return the costs after some outcomes, oldest first."""
        calls = [each for each in outcomes if each.before_s > 0 and each.after_s > 0][-MOST_CALLS:]
        if not calls:
            return self
        weights = (0.5 ** (np.arange(len(calls))[::-1] / HALF_LIFE)).tolist()
        targets = [each.targets for each in calls]
        before = list(zip((each.before_s for each in calls), targets, weights, strict=True))
        after = list(zip((each.after_s for each in calls), targets, weights, strict=True))
        before_s, before_target_s = _line(before, self.before_s, self.before_target_s)
        after_s, after_target_s = _line(after, self.after_s, self.after_target_s)
        costs = CallCosts(before_s, before_target_s, after_s, after_target_s)
        few = prior_sample(self.faster, self.slower, PRIOR)
        many = prior_sample(self.target_faster, self.target_slower, PRIOR)
        for each, weight in zip(calls, weights, strict=True):
            expected_s = costs.before(each.targets) + costs.after(each.targets)
            sample = few if each.targets < MANY else many
            sample.append((math.log((each.before_s + each.after_s) / expected_s), weight))
        low, high = weighted_quantiles(few, (0.1, 0.9))
        target_low, target_high = weighted_quantiles(many, (0.1, 0.9))
        return replace(
            costs,
            faster=max(-low, 0.0),
            slower=max(high, 0.0),
            target_faster=max(-target_low, 0.0),
            target_slower=max(target_high, 0.0),
        )


def _line(
    calls: Sequence[tuple[float, int, float]], fixed_s: float, each_s: float
) -> tuple[float, float]:
    """Return seconds of a call, and for each target, by weighted medians.

    The first is that of calls of few targets, the second that of the others.

    Args:
        calls: seconds, targets and weight of each.
        fixed_s: the prior of the seconds of a call.
        each_s: the prior of the seconds of a target.
    """
    few = [(call_s - count * each_s, weight) for call_s, count, weight in calls if count < MANY]
    fixed_s = _median([*few, (fixed_s, PRIOR)])
    many = [
        ((call_s - fixed_s) / count, weight) for call_s, count, weight in calls if count >= MANY
    ]
    each_s = _median([*many, (each_s, PRIOR)])
    return max(fixed_s, LEAST_S), max(each_s, LEAST_S)


def _median(sample: Sequence[tuple[float, float]]) -> float:
    values, weights = np.array(sample).T
    return weighted_median(values, weights)
