"""Slices as in NumPy, of one axis at a time."""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import TypeAlias

from swathe.core.errors import PixelIndexError, RegionError

Slices: TypeAlias = "int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]"


def one_per_axis(indices: tuple[int | slice | EllipsisType, ...], axes: int) -> list[int | slice]:
    """Return one index for each axis."""
    plain = [index for index in indices if not isinstance(index, EllipsisType)]
    dots = len(indices) - len(plain)
    if len(plain) > axes or dots > 1:
        raise RegionError(f"{len(plain)} indices and {dots} ellipses for {axes} axes")
    missing = [slice(None)] * (axes - len(plain))
    at = next((n for n, index in enumerate(indices) if index is Ellipsis), len(plain))
    return [*plain[:at], *missing, *plain[at:]]


def axis_range(index: int | slice, length: int) -> tuple[int, int, int | slice]:
    """Return the range `[first, last)` to read of an axis, and the index into that range."""
    if isinstance(index, slice):
        indices = range(*index.indices(length))
        if not indices:
            return 0, 0, slice(None)
        first, last = min(indices[0], indices[-1]), max(indices[0], indices[-1]) + 1
        return first, last, slice(None, None, index.step)
    number = operator.index(index)
    if not -length <= number < length:
        raise PixelIndexError(f"index {number} is out of range for an axis of {length}")
    first = number % length
    return first, first + 1, 0
