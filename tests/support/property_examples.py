"""How many examples the tests of properties try."""

from hypothesis import settings

ALL = 100
"""Examples of a property whose test says no number, if all are tried."""
THOROUGH = 60
"""The same with `--hypothesis-profile=thorough`."""
QUICK = 25
"""The same in everybody's run."""


def examples(number: int) -> int:
    """Return how many examples to try where all would be `number`: all, or as the profile says."""
    return max(1, number * settings().max_examples // ALL)
