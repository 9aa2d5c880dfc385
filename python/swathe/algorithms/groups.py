"""Groups of granules: each group is one run of an algorithm."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from swathe.algorithms.definition import GranuleInput
from swathe.core.errors import AlgorithmError
from swathe.core.grouping import group_name

REQUIREMENTS = {"day": "a time", "orbit": "an orbit number"}
"""What grouping needs to know of each granule."""


@dataclass(frozen=True)
class Granule:
    """A granule that can be an input.

    Attributes:
        id: name in logs, unlike that of other granules.
        path: file.
        start: first time, UTC; `None`: unknown.
        end: last time.
        orbit: number of the orbit; `None`: unknown.
    """

    id: str
    path: str
    start: datetime | None = None
    end: datetime | None = None
    orbit: int | None = None


@dataclass(frozen=True)
class GranuleGroup:
    """Granules of one run, in order of time if that is known.

    Attributes:
        name: name of the group: a day as `2005-05-01`, the number of an orbit, an id, or `all`.
        granules: granules of the group.
        before: neighbours before them in time.
        after: neighbours after them.
    """

    name: str
    granules: tuple[Granule, ...]
    before: tuple[Granule, ...] = ()
    after: tuple[Granule, ...] = ()

    @property
    def roles(self) -> list[tuple[str, Granule]]:
        """Return all granules of a run in order, each with its role."""
        parts = (("before", self.before), ("group", self.granules), ("after", self.after))
        return [(role, each) for role, granules in parts for each in granules]

    def problem(self, of_input: GranuleInput) -> str | None:
        """Return why it cannot be run; `None` if it can."""
        count = len(self.granules)
        if of_input.least <= count <= of_input.most:
            return None
        return (
            f"group {self.name}: expected {of_input.least} to {of_input.most} granules, found "
            f"{count}"
        )


def groups_of(
    granules: Sequence[Granule],
    of_input: GranuleInput,
    check_count: Callable[[int], None] = lambda _count: None,
) -> list[GranuleGroup]:
    """Return the groups of granules, in order of their first granules.

    Args:
        granules: the granules.
        of_input: what the algorithm declares of them.
        check_count: function that gets the number of granules of all groups so far, neighbours
            included, which are granules of each group that gets them; raises an error if too many.

    Raises:
        AlgorithmError: If grouping or neighbours need what a granule does not tell.
    """
    window = of_input.window
    for each in granules:
        is_needed = window.before or window.after or of_input.group == "day"
        if (is_needed and each.start is None) or (of_input.group == "orbit" and each.orbit is None):
            requirement = REQUIREMENTS.get(of_input.group, REQUIREMENTS["day"])
            raise AlgorithmError(
                f"{each.path}: expected {requirement} in its attributes, found none"
            )
    unknown = datetime.max.replace(tzinfo=UTC)
    order = sorted(granules, key=lambda each: each.start or unknown)
    members: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(order):
        name = group_name(of_input.group, each.id, each.start, each.orbit)
        assert name is not None  # what it needs was checked above
        members[name].append(number)
    groups = []
    count = 0
    for name, numbers in members.items():
        first, last = numbers[0], numbers[-1]
        count += min(first, window.before) + len(numbers)
        count += min(len(order) - 1 - last, window.after)
        check_count(count)
        groups.append(
            GranuleGroup(
                name,
                tuple(order[number] for number in numbers),
                tuple(order[max(0, first - window.before) : first]),
                tuple(order[last + 1 : last + 1 + window.after]),
            )
        )
    return groups
