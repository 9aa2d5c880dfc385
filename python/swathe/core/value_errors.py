"""Invalid values in messages: short, and pydantic's errors about them in plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swathe import _swathe

LONGEST = 60
NUMBERS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
KINDS = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object of names and values",
    "model_type": "an object of names and values",
    "model_attributes_type": "an object of names and values",
    "datetime_parsing": "a date and time, as 2026-11-21T13:04:00Z",
    "datetime_from_date_parsing": "a date and time, as 2026-11-21T13:04:00Z",
    "timezone_aware": "a date and time with its zone, as 2026-11-21T13:04:00Z",
}
"""Expected values, by pydantic's type of error."""


def fault_text(fault: Mapping[str, Any]) -> str:
    """Return the error about a value as plain text: `expected X, found Y`.

    Args:
        fault: `type`, `input`, `ctx` and `msg`, as in `errors()` of a pydantic ValidationError.
    """
    kind, context = fault["type"], fault.get("ctx") or {}
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is unknown"
    if kind == "json_invalid":
        return "is not valid JSON"
    if kind == "value_error":
        return str(fault["msg"]).removeprefix("Value error, ").removesuffix(".")
    return f"expected {_requirement(fault, kind, context)}, found {short_text(fault.get('input'))}"


def _requirement(fault: Mapping[str, Any], kind: str, context: Mapping[str, Any]) -> str:
    """Return a description of the valid values."""
    if kind in KINDS:
        return KINDS[kind]
    if kind in NUMBERS:
        words, name = NUMBERS[kind]
        bound = context[name]
        return f"{words} {bound:g}" if isinstance(bound, float) else f"{words} {bound}"
    if kind in ("literal_error", "enum"):
        return str(context["expected"])
    if kind == "string_too_long":
        return f"at most {context['max_length']} characters"
    if kind == "string_too_short":
        return f"at least {context['min_length']} characters"
    if kind in ("too_long", "too_short"):
        limit, name = (
            ("at most", "max_length") if kind == "too_long" else ("at least", "min_length")
        )
        return f"a list of {limit} {context[name]} values"
    return f"valid ({fault['msg']})"


def short_text(value: object) -> str:
    """Return a value of a user for a message: the beginning of a long one, URLs without secrets."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(_without_secrets(value))
    except ValueError:  # a number with too many digits
        return "a number too long to be shown"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _without_secrets(value: object) -> object:
    if isinstance(value, str) and "@" in value:
        return _swathe.redact_url(value.encode("utf-8", "backslashreplace").decode())
    if type(value) in (list, tuple):
        assert isinstance(value, list | tuple)
        return type(value)(map(_without_secrets, value[:LONGEST]))
    return value
