"""Values of parameters: of the type, and within the bounds, of a definition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from swathe.algorithms.definition import Parameter, Scalar
from swathe.core.errors import AlgorithmError
from swathe.core.value_errors import short_text

LONGEST_TEXT = 1000
MOST_INTEGER = 1 << 63
TYPE_WORDS = {
    "integer": "a whole number",
    "number": "a finite number",
    "string": f"a text of at most {LONGEST_TEXT} characters",
    "boolean": "true or false",
}


def values_of(parameters: Mapping[str, Parameter], values: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return a value for each parameter, defaults included.

    Raises:
        AlgorithmError: If a value does not fit, is missing, or belongs to no parameter.
    """
    for name in values:
        if name not in parameters:
            names = ", ".join(parameters) or "none"
            raise AlgorithmError(
                f"{short_text(name)}: expected the name of a parameter ({names}), found another"
            )
    scalars: dict[str, Scalar] = {}
    for name, each in parameters.items():
        value = values.get(name, each.default)
        if value is None:
            raise AlgorithmError(f"{name}: expected {requirement_of(each)}, found none")
        scalars[name] = check_value(name, each, value)
    return scalars


def check_value(name: str, parameter: Parameter, value: Any) -> Scalar:
    """Return a value of a parameter; a whole number for `number` becomes a float.

    Raises:
        AlgorithmError: If it has another type, or is out of bounds.
    """
    if not has_type(parameter, value) or not _is_within(parameter, value):
        raise AlgorithmError(
            f"{name}: expected {requirement_of(parameter)}, found {short_text(value)}"
        )
    return float(value) if parameter.type == "number" else value


def parse_value(name: str, parameter: Parameter, text: str) -> Scalar:
    """Return the value of a parameter that a text of the shell means.

    Raises:
        AlgorithmError: If it means none.
    """
    value: Any = text
    try:
        if parameter.type == "integer" and len(text) <= 20:
            value = int(text)
        elif parameter.type == "number":
            value = float(text)
    except ValueError:
        value = text
    if parameter.type == "boolean":
        value = {"true": True, "false": False}.get(text, text)
    return check_value(name, parameter, value)


def requirement_of(parameter: Parameter) -> str:
    """Return a description of the valid values."""
    if parameter.enum:
        return f"one of {', '.join(map(short_text, parameter.enum))}"
    bounds = (("from", parameter.minimum), ("to", parameter.maximum))
    words = [f"{word} {bound:g}" for word, bound in bounds if bound is not None]
    return " ".join((TYPE_WORDS[parameter.type], *words))


def has_type(parameter: Parameter, value: Any) -> bool:
    """Check whether a value has the type of a parameter."""
    if isinstance(value, bool):
        return parameter.type == "boolean"
    match parameter.type:
        case "integer":
            return isinstance(value, int) and abs(value) < MOST_INTEGER
        case "number" if isinstance(value, int):
            return abs(value) < MOST_INTEGER
        case "number":
            return isinstance(value, float) and math.isfinite(value)
        case "string":
            return (
                isinstance(value, str)
                and len(value) <= LONGEST_TEXT
                and (value.isprintable() or value.isspace())
            )
    return False


def _is_within(parameter: Parameter, value: Any) -> bool:
    if parameter.enum and value not in parameter.enum:
        return False
    if parameter.minimum is not None and value < parameter.minimum:
        return False
    return parameter.maximum is None or value <= parameter.maximum
