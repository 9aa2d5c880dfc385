"""Coordinates whose values have equal steps, as a linear axis needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_OFF = 1e-4
"""Distance of a value from equal steps, in steps; single precision needs it."""


def step_of(values: NDArray[np.float64]) -> float | None:
    """Return the step of equal steps; `None` if they are not, or there is one value only."""
    import numpy as np

    if len(values) < 2 or not np.isfinite(values).all():
        return None
    step = float(values[-1] - values[0]) / (len(values) - 1)
    even = values[0] + step * np.arange(len(values))
    return step if step and abs(values - even).max() <= MOST_OFF * abs(step) else None
