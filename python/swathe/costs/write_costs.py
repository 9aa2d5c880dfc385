"""What it takes to write results to one output: a folder or an archive on one file system.

`swathe probe` measures it for the temporary folder. Each call of `cut_many` measures it for its own
output, so it is learned from the outcomes of this host.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.stored_record import stored_record
from swathe.costs.calibration import prior_sample, weighted_quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from swathe.catalog import Outcome

PRIOR = 0.5
"""Weight of the temporary folder, as a number of outcomes: other disks may be far slower."""
HALF_LIFE = 10
MOST_CALLS = 50
TURNS = 10
SAME = 0.01
"""Weight of the belief that results and bytes are slower by the same factor."""
HUBER = 0.5
"""Relative error from which an outcome counts less."""
MOST_RATIO = math.log(1000)
"""Logarithm of how much faster or slower an outcome counts at most."""


@dataclass(frozen=True)
class WriteCosts:
    """Seconds of a thread to write results. The defaults are of a 2.5 GHz Xeon of 2019.

    Attributes:
        result_s: for each result.
        byte_s: for each of its bytes.
        faster, slower: logarithms of how much less and more it is at most, in 80 of 100 calls.
        outcomes: number of calls from which it was learned.
    """

    result_s: float = 30e-6
    byte_s: float = 0.5e-9
    faster: float = 0.7
    slower: float = 1.4
    outcomes: int = 0

    @classmethod
    def of(cls, compute: str | None) -> WriteCosts:
        """Return the costs of the temporary folder, by the computing costs of a host as JSON.

        Raises:
            CatalogError: If they are not values by name.
        """
        record = {} if compute is None else json.loads(compute).get("write", {})
        return stored_record(cls, record, "costs of writing on this host")

    def learn(self, outcomes: Sequence[Outcome], output: str) -> WriteCosts:
        """Return the costs of an output after some outcomes, oldest first.

        Of an output that is new on its file system, the others there say most.

        Args:
            outcomes: outcomes of this host.
            output: key of the output, as `output_key` returns it.
        """
        _, _, mount = output.partition(" on ")
        writes = [each for each in outcomes if each.write_s > 0]
        there = self._after([each for each in writes if each.output.endswith(f" on {mount}")])
        return there._after([each for each in writes if each.output == output])

    def _after(self, outcomes: Sequence[Outcome]) -> WriteCosts:
        """Return the costs after some outcomes of the same output."""
        calls = outcomes[-MOST_CALLS:]
        if not calls:
            return self
        ages = np.arange(len(calls))[::-1]
        weights = np.append(0.5 ** (ages / HALF_LIFE), [SAME, SAME])
        # Both terms in units of the prior, each row relative to the time taken.
        terms = np.array(
            [[each.targets * self.result_s, each.written_bytes * self.byte_s] for each in calls]
        )
        terms /= np.array([each.write_s for each in calls])[:, None]
        factors = _factors(terms, weights)
        errors = np.log(np.maximum(terms @ factors, 1e-9))
        sample = prior_sample(self.faster, self.slower, PRIOR)
        sample += [
            (min(max(-error, -MOST_RATIO), MOST_RATIO), weight)
            for error, weight in zip(errors.tolist(), weights.tolist(), strict=False)
        ]
        low, high = weighted_quantiles(sample, (0.1, 0.9))
        result_factor, byte_factor = factors.tolist()
        return WriteCosts(
            self.result_s * result_factor,
            self.byte_s * byte_factor,
            max(-low, 0.0),
            max(high, 0.0),
            len(calls),
        )

    def widen(
        self, median_s: float, interval_s: tuple[float, float], write_s: float
    ) -> tuple[float, float]:
        """Return the interval of a job, of whose median `write_s` seconds are writing."""
        low_s, high_s = interval_s
        less_s = write_s * (1 - math.exp(-self.faster))
        more_s = write_s * (math.exp(self.slower) - 1)
        return (
            median_s - math.hypot(median_s - low_s, less_s),
            median_s + math.hypot(high_s - median_s, more_s),
        )

    def added_to(self, compute: str | None) -> str:
        """Return the computing costs of a host for jobs that write to this output, as JSON."""
        output = {name: getattr(self, name) for name in ("result_s", "byte_s")}
        return json.dumps({**json.loads(compute or "{}"), "output": output})


def _factors(terms: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much both costs differ from the prior.

    Outcomes far from the others count less. What calls do not tell apart changes by one factor.

    Args:
        terms: seconds for results and for bytes by the prior, over the seconds taken; (calls, 2).
        weights: weight of each call, and of the two rows of the prior.
    """
    common = 1 / float(np.exp(np.average(np.log(terms.sum(axis=1)), weights=weights[:-2])))
    rows = np.vstack([terms * common, np.eye(2)])
    ratios, robust = np.ones(2), np.ones(len(rows))
    for _ in range(TURNS):
        root = np.sqrt(weights * robust)
        ratios = np.linalg.lstsq(rows * root[:, None], root, rcond=None)[0]
        errors = np.abs(rows @ ratios - 1)
        robust[:-2] = np.minimum(1.0, HUBER / np.maximum(errors[:-2], 1e-9))
    return np.maximum(ratios, 0.01) * common


def output_key(path: str | os.PathLike[str], kind: str) -> str:
    """Return the kind of an output and its file system, as `zip on /home`."""
    folder = os.path.realpath(path if kind == "folder" else os.path.dirname(os.path.abspath(path)))
    return f"{kind} on {_mount_point(folder)}"


def _mount_point(folder: str) -> str:
    """Return the mount point of a folder, which need not exist yet."""
    return next(
        str(each) for each in (Path(folder), *Path(folder).parents) if os.path.ismount(each)
    )
