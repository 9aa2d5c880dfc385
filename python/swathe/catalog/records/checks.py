"""Checks of values before they go into the catalogue."""

from __future__ import annotations

import math


def finite(value: float) -> float:
    """Give a number as one of Python: drivers take those of NumPy for blobs.

    Raises:
        ValueError: where it is infinite or no number, which databases treat each in its own way.
    """
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"a number must be finite, not {number}")
    return number


def count(value: int) -> int:
    """Give a count as a number of Python.

    Raises:
        ValueError: where it is negative, or no database can hold it.
    """
    number = int(value)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"a count must be from 0 to 2**63 - 1, not {number}")
    return number


def plain_text(text: str, longest: int) -> str:
    """Give a text that every database takes: without nulls and halves of characters."""
    if text.isascii() and "\0" not in text:
        return text[:longest]
    return text.replace("\0", "").encode("utf-8", "backslashreplace").decode()[:longest]
