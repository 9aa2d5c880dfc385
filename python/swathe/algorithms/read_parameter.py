"""Read the definition of one parameter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from swathe.algorithms.definition import PARAMETER_TYPES, Parameter
from swathe.algorithms.header_table import HeaderTable
from swathe.algorithms.parameters import TYPE_WORDS, check_value, has_type
from swathe.core.errors import AlgorithmError
from swathe.core.value_errors import short_text

KEYS = ("type", "minimum", "maximum", "default", "enum", "description")
MOST_CHOICES = 100
NUMBERS = ("integer", "number")


def read_parameter(table: HeaderTable) -> Parameter:
    """Return a parameter; errors of its table are collected there."""
    table.refuse_unknown(KEYS)
    type_name = table.choice("type", PARAMETER_TYPES, None)
    minimum, maximum = table.number("minimum"), table.number("maximum")
    for key in ("minimum", "maximum"):
        if key in table.values and type_name not in NUMBERS:
            table.fault(key, f"none for {type_name}", short_text(table.values[key]))
            minimum = maximum = None
    if minimum is not None and maximum is not None and minimum > maximum:
        table.fault("maximum", f"at least the minimum, {minimum:g}", f"{maximum:g}")
        minimum = maximum = None
    parameter = Parameter(
        type_name, minimum, maximum, description=table.plain_text("description", 200)
    )
    parameter = replace(parameter, enum=_choices(table, parameter))
    default = table.values.get("default")
    if default is None:
        return parameter
    try:
        return replace(parameter, default=check_value(table.name_of("default"), parameter, default))
    except AlgorithmError as error:
        table.add_fault(str(error))
        return parameter


def _choices(table: HeaderTable, parameter: Parameter) -> tuple[Any, ...]:
    """Return the possible values; none if any is allowed."""
    values = table.values.get("enum", [])
    words = TYPE_WORDS[parameter.type]
    if "enum" in table.values and not (
        isinstance(values, list) and 0 < len(values) <= MOST_CHOICES
    ):
        table.fault("enum", f"a list of 1 to {MOST_CHOICES} values", short_text(values))
        return ()
    for value in values:
        if not has_type(parameter, value):
            table.fault("enum", f"values that are each {words}", short_text(value))
            return ()
    return tuple(values)
