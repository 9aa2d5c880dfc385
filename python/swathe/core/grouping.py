"""How granules form groups, for orders and subscriptions alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from datetime import datetime

GroupBy: TypeAlias = Literal["each", "day", "orbit", "all"]
GROUPS: tuple[GroupBy, ...] = get_args(GroupBy)


def group_name(by: GroupBy, name: str, start: datetime | None, orbit: int | None) -> str | None:
    """Return the name of the group of a granule.

    Args:
        by: how granules form groups.
        name: name of the granule, unlike that of others.
        start: its first time, UTC; `None`: unknown.
        orbit: number of its orbit; `None`: unknown.

    Returns:
        A day as `2005-05-01`, the number of an orbit, the name of the granule, or `all`; `None` if
        the group needs a time or an orbit that is unknown.
    """
    match by:
        case "each":
            return name
        case "day":
            return None if start is None else start.strftime("%Y-%m-%d")
        case "orbit":
            return None if orbit is None else str(orbit)
    return "all"
