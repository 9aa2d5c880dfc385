"""Parse the planes of a cube."""

from __future__ import annotations

from typing import Any

from swathe.core.errors import RegionError


def planes_of_list(planes: Any) -> Any:
    """Return a list of consecutive planes as `(first, last)`; other values unchanged.

    Raises:
        RegionError: if the planes are not consecutive.
    """
    if not isinstance(planes, list):
        return planes
    is_run = all(isinstance(plane, int) for plane in planes) and bool(planes)
    if not is_run or planes != list(range(planes[0], planes[0] + len(planes))):
        raise RegionError(
            f"planes: expected consecutive numbers, found {str(planes)[:60]}; "
            "a pair (first, last) leaves out the last"
        )
    return planes[0], planes[-1] + 1
