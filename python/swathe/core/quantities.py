"""Quantities with their units: times (`90s`, `2 h`) and sizes (`500MB`, `1 GiB`)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from swathe.core.value_errors import short_text

UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
TIME_FORMS = "a time with its unit, as 90s, 30min, 2h or 7d"
UNITS_BYTES = {
    "": 1.0,
    "B": 1.0,
    "KB": 1e3,
    **{f"{prefix}B": 1e3**power for power, prefix in enumerate("kMGT", 1)},
    **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGT", 1)},
}
SIZE_FORMS = "bytes, or a size as 500MB, 10GB or 1GiB"

_QUANTITY = re.compile(r"(\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,2})?)\s?([A-Za-z]{0,4})")


def parse_seconds(text: str) -> float:
    """Parse a time with its unit; return seconds.

    Raises:
        ValueError: If it is no time.
    """
    return _parse(text, UNITS_S, TIME_FORMS)


def parse_bytes(text: str) -> float:
    """Parse a size with or without a unit; return bytes.

    Raises:
        ValueError: If it is no size.
    """
    return _parse(text, UNITS_BYTES, SIZE_FORMS)


def _parse(text: str, units: Mapping[str, float], forms: str) -> float:
    """Return a quantity in the unit whose factor is 1."""
    parts = _QUANTITY.fullmatch(text.strip()[:60])
    factor = units.get(parts[2]) if parts else None
    if parts is None or factor is None:
        raise ValueError(f"expected {forms}, found {short_text(text)}")
    number = float(parts[1]) * factor
    assert math.isfinite(number)
    return number
