"""Planes of a cube as users give them."""

from __future__ import annotations

from typing import Any

from swathe.core.errors import RegionError


def planes_of_list(planes: Any) -> Any:
    """Give a list of planes that follow each other as `(first, last)`; all else as it is.

    Raises:
        RegionError: where they do not follow each other.
    """
    if not isinstance(planes, list):
        return planes
    is_run = all(isinstance(plane, int) for plane in planes) and bool(planes)
    if not is_run or planes != list(range(planes[0], planes[0] + len(planes))):
        raise RegionError(
            f"planes: expected numbers that follow each other, found {str(planes)[:60]}; "
            "a pair (first, last) leaves out the last"
        )
    return planes[0], planes[-1] + 1
