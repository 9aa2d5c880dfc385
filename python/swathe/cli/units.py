"""Values of options: times (`90s`, `2h`), sizes (`500MB`, `1GiB`), and finite numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import typer

from swathe.core import quantities

MOST_S, MOST_BYTES = 36500 * 86400.0, 2.0**62


def time_option(*names: str, least_s: float = 0.0, most_s: float = MOST_S, **settings: Any) -> Any:
    """Return an option that takes a time, and gives it in seconds."""

    def parse_time(text: str | float) -> float:
        """Parse a time with its unit."""
        seconds = _number(quantities.parse_seconds, text)
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
        size = _number(quantities.parse_bytes, text)
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


def _number(parse: Callable[[str], float], text: str | float) -> float:
    """Return a quantity in its base unit. Defaults of options are numbers already.

    Raises:
        typer.BadParameter: If the text is not a number with a unit.
    """
    if not isinstance(text, str):
        return text
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
