"""Strict JSON for bodies that are stored or sent on: what parsers disagree about is refused."""

from __future__ import annotations

import json
import math
from typing import Any

from swathe.core.errors import JobError, LimitError
from swathe.core.json_hooks import refuse_constant, unique_pairs
from swathe.core.value_errors import short_text

MOST_DEPTH = 32
"""Deepest nesting of objects and lists."""
LONGEST_INTEGER = 300
"""Most digits of an integer: a float holds 308, and thousands take seconds."""


def parse_strict(content: bytes, what: str, most_values: int) -> Any:
    """Parse JSON without NaN, infinities, repeated names, deep nesting or half UTF-16 pairs.

    Args:
        content: JSON as UTF-8.
        what: name of the text in errors.
        most_values: largest number of values.

    Raises:
        JobError: If the text is no such JSON.
        LimitError: If it has too many values.
    """
    values = sum(map(content.count, (b",", b"[", b"{")))
    if values > most_values:
        raise LimitError(f"{what}: expected at most {most_values:,} values, found {values:,}")
    try:
        value = json.loads(
            content.decode(),
            parse_constant=refuse_constant,
            parse_float=_finite,
            parse_int=_integer,
            object_pairs_hook=unique_pairs,
        )
        _check(value)
    except (ValueError, RecursionError) as error:
        raise JobError(f"{what}: expected JSON: {str(error)[:200]}") from error
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, found {short_text(text)}")
    return number


def _integer(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise ValueError(
            f"expected an integer of at most {LONGEST_INTEGER} digits, found {len(text)}"
        )
    return int(text)


def _check(value: Any) -> None:
    """Check nesting and texts, without recursion."""
    level = [value]
    for _ in range(MOST_DEPTH):
        for each in level:
            if isinstance(each, str):
                each.encode()  # half of a UTF-16 pair cannot be sent back
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (*each, *(each.values() if isinstance(each, dict) else ()))
        ]
        if not level:
            return
    raise ValueError(f"expected at most {MOST_DEPTH} levels of objects and lists, found more")
