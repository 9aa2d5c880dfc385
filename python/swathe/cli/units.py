"""Values of options: times (`90s`, `2h`), sizes (`500MB`, `1GiB`), and finite numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import typer

UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
TIME_FORMS = "a time with its unit, as 90s, 30min, 2h or 7d"
UNITS_BYTES = {
    "": 1.0,
    "B": 1.0,
    **{f"{prefix}B": 1e3**power for power, prefix in enumerate("kMGT", 1)},
    **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGT", 1)},
}
SIZE_FORMS = "bytes, or a size as 500MB, 10GB or 1GiB"
MOST_S, MOST_BYTES = 36500 * 86400.0, 2.0**62

_QUANTITY = re.compile(r"(\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,2})?)\s?([A-Za-z]{0,4})")


def time_option(*names: str, least_s: float = 0.0, most_s: float = MOST_S, **settings: Any) -> Any:
    """Return an option that takes a time, and gives it in seconds."""

    def parse_time(text: str | float) -> float:
        """Parse a time with its unit."""
        seconds = _number(text, UNITS_S, TIME_FORMS)
        if not least_s <= seconds <= most_s:
            raise typer.BadParameter(
                f"expected {least_s:g} to {most_s:,.12g} seconds, found {text!r}"
            )
        return seconds

    return typer.Option(*names, metavar="TIME", parser=parse_time, show_default=False, **settings)


def size_option(*names: str, least_bytes: int = 0, **settings: Any) -> Any:
    """Return an option that takes a size, and gives it in bytes."""

    def parse_bytes(text: str | int) -> int:
        """Parse a size with or without a unit."""
        size = _number(text, UNITS_BYTES, SIZE_FORMS)
        if not least_bytes <= size <= MOST_BYTES:
            raise typer.BadParameter(
                f"expected {least_bytes:,} to {MOST_BYTES:,.0f} bytes, found {text!r}"
            )
        return round(size)

    return typer.Option(*names, metavar="SIZE", parser=parse_bytes, show_default=False, **settings)


def quantity_option(*names: str, least: float, most: float, **settings: Any) -> Any:
    """Return an option that takes a finite number."""

    def parse_quantity(text: str | float) -> float:
        """Parse a number."""
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not least <= number <= most:
            raise typer.BadParameter(f"expected a number from {least:g} to {most:g}, found {text}")
        return number

    return typer.Option(*names, parser=parse_quantity, **settings)


def _number(text: str | float, units: Mapping[str, float], forms: str) -> float:
    """Return a quantity in the unit whose factor is 1. Defaults of options are numbers already.

    Raises:
        typer.BadParameter: If the text is not a number with one of these units.
    """
    if not isinstance(text, str):
        return text
    parts = _QUANTITY.fullmatch(text.strip()[:60])
    factor = units.get(parts[2]) if parts else None
    if parts is None or factor is None:
        raise typer.BadParameter(f"expected {forms}, found {text[:40]!r}")
    number = float(parts[1]) * factor
    assert math.isfinite(number)
    return number
