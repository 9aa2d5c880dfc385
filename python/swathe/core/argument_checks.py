"""Check arguments of the Python interface: `NAME: expected X, found Y`."""

from __future__ import annotations

import math
import operator
from typing import Any, Literal, TypeAlias, get_args

from swathe.core.errors import OptionError
from swathe.core.value_errors import short_text

MOST_THREADS = 1024
Objective: TypeAlias = Literal["auto", "latency", "throughput"]
Stage: TypeAlias = Literal["wait"]
"""What plans of reads keep small."""
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


def check_count(name: str, value: Any, most: int, least: int = 1) -> int:
    """Return a whole number.

    Raises:
        TypeError: If it is not a whole number.
        ValueError: If it is below `least` or above `most`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    # Python takes True for 1.
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name}: expected a whole number, found {short_text(value)}")
    if not least <= number <= most:
        raise ValueError(f"{name}: expected {least:,} to {most:,}, found {short_text(number)}")
    return number


def check_threads(value: Any) -> int | None:
    """Return a number of threads, or `None` for the default.

    Raises:
        TypeError, ValueError: As in `check_count`.
    """
    return None if value is None else check_count("threads", value, MOST_THREADS)


def check_positive(name: str, value: Any) -> float:
    """Return a finite number above 0.

    Raises:
        TypeError: If it is not a number.
        ValueError: If it is not finite, or not above 0.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}: expected a number, found {short_text(value)}") from None
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name}: expected a finite number above 0, found {short_text(value)}")
    return number


def check_fill(value: Any) -> float | None:
    """Return a fill value, or `None` for the default.

    Raises:
        TypeError: If it is not a number.
    """
    if value is None:
        return None
    try:
        return float("" if isinstance(value, str | bytes) else value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"fill: expected a number, found {short_text(value)}") from None


def check_objective(value: Any) -> Objective:
    """Return what plans keep small: `auto`, `latency` or `throughput`.

    Raises:
        OptionError: If it is another value.
    """
    for choice in OBJECTIVES:
        if value == choice:
            return choice
    raise OptionError(
        f"objective: expected {', '.join(OBJECTIVES[:-1])} or {OBJECTIVES[-1]}, "
        f"found {short_text(value)}"
    )


def check_text(name: str, value: Any) -> str:
    """Return a text.

    Raises:
        TypeError: If it is not a text.
        ValueError: If it holds a character that cannot be written, or that ends texts.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a text, found {short_text(value)}")
    check_unicode(name, value)
    if "\0" in value:
        raise ValueError(f"{name}: expected no character NUL, found {short_text(value)}")
    return value


def check_unicode(name: str, value: str) -> str:
    """Return a text or a path.

    Raises:
        ValueError: If it holds a character that cannot be written as UTF-8.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: expected valid Unicode, found {short_text(value)}") from None
    return value


def check_texts(name: str, values: Any) -> list[str]:
    """Return texts; a single one is a list of one.

    Raises:
        TypeError: If they are not texts.
        ValueError: As in `check_text`.
    """
    try:
        each = iter([values] if isinstance(values, str) else values)
    except TypeError:
        raise TypeError(f"{name}: expected texts, found {short_text(values)}") from None
    return [check_text(name, value) for value in each]
