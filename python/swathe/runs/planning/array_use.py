"""How an array is read, by its purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swathe.runs.definition.run_settings import ArraySettings, Purpose


@dataclass(frozen=True)
class Use:
    """How an array is read.

    Attributes:
        weight: what a second of reading counts, beside a second of writing.
        reads: how often it is read.
    """

    weight: float = 1.0
    reads: float = 0.0


USES: Mapping[Purpose, Use] = {
    "analyse": Use(1.0, 1.0),
    "visualise": Use(3.0, 1.0),
    "checkpoint": Use(1.0, 0.1),
    "archive": Use(0.1, 1.0),
}
"""How arrays are read by their purpose, unless they say how often. Someone waits for pictures; few
runs are restarted; nobody waits for an archive. Without a purpose, writing counts alone."""


def use_of(array: ArraySettings) -> Use:
    """Return how an array is read."""
    use = USES[array.purpose] if array.purpose else Use()
    return use if array.reads is None else replace(use, reads=array.reads)
