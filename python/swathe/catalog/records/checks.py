"""Checks of values before they are stored in the catalogue."""

from __future__ import annotations

import math


def finite(value: float) -> float:
    """Return a number as a Python number: database drivers store NumPy numbers as blobs.

    Raises:
        ValueError: If it is infinite or NaN: databases differ on these.
    """
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"a number must be finite, not {number}")
    return number


def count(value: int) -> int:
    """Return a count as a Python integer.

    Raises:
        ValueError: If it is negative, or too large for a database.
    """
    number = int(value)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"a count must be from 0 to 2**63 - 1, not {number}")
    return number


def plain_text(text: str, longest: int) -> str:
    """Return a text that every database accepts: without nulls and lone surrogates."""
    if text.isascii() and "\0" not in text:
        return text[:longest]
    return text.replace("\0", "").encode("utf-8", "backslashreplace").decode()[:longest]
