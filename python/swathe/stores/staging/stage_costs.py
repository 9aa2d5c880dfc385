"""How long staging takes, from the requests that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swathe.catalog.records.staging import StageOutcome

ALIKE = 2.0
"""By what factor a request of about the same size is larger or smaller, at most."""
LEAST_OUTCOMES = 6
"""From this number of requests on, parts of the time are told apart."""


@dataclass(frozen=True)
class StageParts:
    """Parts of the time of a request, as all drives together make them.

    Attributes:
        mount_s: seconds for each medium.
        position_s: seconds for each object.
        bytes_per_s: rate; `None` if the time does not depend on bytes.
    """

    mount_s: float
    position_s: float
    bytes_per_s: float | None

    def seconds(self, files: int, size: int, media: int) -> float:
        """Return the time of a request."""
        transfer_s = size / self.bytes_per_s if self.bytes_per_s else 0.0
        return self.mount_s * media + self.position_s * files + transfer_s


@dataclass(frozen=True)
class StageCosts:
    """Times of the requests of a store that have ended."""

    outcomes: Sequence[StageOutcome]

    def at_most_s(self, files: int, size: int, media: int = 1) -> float | None:
        """Return the seconds that staging takes at most, if the queue is empty.

        The longest of the requests of about this size counts, by a factor of `ALIKE`, with what
        they waited: an earlier one may have found its media mounted. If there are none, the lesser
        of the longest of smaller ones, scaled to this size, and the shortest of larger ones.
        `None` if no request has ended.
        """
        smaller: list[float] = []
        alike: list[float] = []
        larger: list[float] = []
        for each in self.outcomes:
            ratio = max(
                files / max(1, each.files),
                size / max(1, each.bytes),
                media / max(1, each.media),
            )
            of_size = smaller if ratio > ALIKE else larger if ratio < 1 / ALIKE else alike
            of_size.append(each.seconds * max(1.0, ratio))
        if alike:
            return max(alike)
        bounds = [max(smaller), *larger] if smaller else larger
        return min(bounds, default=None)

    def parts(self) -> StageParts | None:
        """Return mount, position and rate by least squares; `None` with too few requests."""
        if len(self.outcomes) < LEAST_OUTCOMES:
            return None
        import numpy as np
        from scipy.optimize import nnls  # type: ignore[import-untyped]  # its stubs are another package

        rows = np.array([(each.media, each.files, each.bytes) for each in self.outcomes], float)
        scale = np.maximum(rows.max(axis=0), 1.0)
        factors, _ = nnls(rows / scale, np.array([each.seconds for each in self.outcomes]))
        mount_s, position_s, byte_s = (factors / scale).tolist()
        return StageParts(mount_s, position_s, 1 / byte_s if byte_s > 0 else None)
