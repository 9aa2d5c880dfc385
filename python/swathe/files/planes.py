"""Parse the planes of a cube."""

from __future__ import annotations

import operator
from typing import SupportsIndex, TypeAlias

from swathe.core.errors import RegionError
from swathe.core.value_errors import short_text

Planes: TypeAlias = SupportsIndex | slice | tuple[int, int] | list[int]
"""Planes along NAXIS3, zero-based: one, a slice, `(first, last)` without the last, or a list of
consecutive planes."""

MOST_PLANES = 1 << 53
"""Limit of the length of NAXIS3."""


def plane_span(planes: Planes, length: int | None = None) -> tuple[int, int]:
    """Return planes as `(first, last)`, without the last.

    Args:
        planes: planes along NAXIS3.
        length: number of planes of the image, from whose end negative numbers and open slices
            count; the caller checks that the image has the planes. `None` if the images are not
            known yet: then the end must be given.

    Raises:
        RegionError: If the planes are not consecutive; without a length also if there are none.
    """
    try:
        first, last = _ends(planes, length)
    except (TypeError, ValueError) as error:
        if isinstance(error, RegionError):
            raise
        raise RegionError(
            "planes: expected a plane, a slice, (first, last) or a list of planes, "
            f"found {short_text(planes)}"
        ) from error
    if length is None and not 0 <= first < last <= MOST_PLANES:
        raise RegionError(
            f"planes: expected 0 <= first < last <= {MOST_PLANES:,}, found {short_text(planes)}"
        )
    return first, last


def _ends(planes: Planes, length: int | None) -> tuple[int, int]:
    if isinstance(planes, list):
        return _ends_of_list(planes)
    if isinstance(planes, slice):
        if planes.step not in (None, 1):
            raise RegionError(f"planes: expected consecutive planes, found {planes}")
        if length is not None:
            return planes.indices(length)[:2]
        if planes.stop is None:
            raise RegionError(f"planes of many files: expected a last plane, found {planes}")
        return operator.index(planes.start or 0), operator.index(planes.stop)
    if isinstance(planes, tuple):
        first, last = (operator.index(plane) for plane in planes)
        return first, last
    first = operator.index(planes)
    first += length if length is not None and first < 0 else 0
    return first, first + 1


def _ends_of_list(planes: list[int]) -> tuple[int, int]:
    is_run = all(isinstance(plane, int) for plane in planes) and bool(planes)
    if not is_run or planes != list(range(planes[0], planes[0] + len(planes))):
        raise RegionError(
            f"planes: expected consecutive numbers, found {str(planes)[:60]}; "
            "a pair (first, last) leaves out the last"
        )
    return planes[0], planes[-1] + 1
