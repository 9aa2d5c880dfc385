"""Hooks of `json.loads` for what parsers disagree about."""

from __future__ import annotations

from typing import Any, NoReturn

from swathe.core.value_errors import short_text


def unique_pairs(pairs: list[tuple[str, Any]], noun: str = "name") -> dict[str, Any]:
    """Return the pairs of an object as a mapping.

    Args:
        pairs: names and values.
        noun: what a name is called in the error.

    Raises:
        ValueError: If a name occurs twice.
    """
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise ValueError(f"expected each {noun} once, found {short_text(name)} twice")
        content[name] = value
    return content


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"expected a finite number, found {name}")
