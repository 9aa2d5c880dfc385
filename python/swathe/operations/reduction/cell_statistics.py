"""Names of the statistics of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

STATISTICS = ("mean", "count", "std", "min", "max", "mode")
DEFAULTS = STATISTICS[:2]
STATISTICS_TEXT = ", ".join(STATISTICS)
DEFAULTS_TEXT = ",".join(DEFAULTS)
MOST_VALUES = 256
"""Different values that have a mode."""


def names_of_statistics(statistics: Sequence[str]) -> tuple[str, ...]:
    """Return names of statistics, also from a text such as `mean,count`.

    Raises:
        OptionError: If one is unknown, or there is none.
    """
    names = statistics.split(",") if isinstance(statistics, str) else statistics
    all_names = tuple(name.strip() for name in names)
    unknown = [name for name in all_names if name not in STATISTICS]
    if unknown or not all_names:
        raise OptionError(f"statistics: expected some of {STATISTICS_TEXT}, found {unknown!r:.60}")
    return all_names
