"""Words for values that checks of types refuse."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core.core_schema import ErrorType

from swathe.core.value_errors import KINDS, fault_text, short_text


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (int, "x", "must be a whole number, not 'x'"),
        (int, 1.5, "must be a whole number, not 1.5"),
        (float, "one", "must be a number, not 'one'"),
        (bool, "maybe", "must be true or false, not 'maybe'"),
        (Annotated[int, Field(ge=1)], 0, "must be at least 1, not 0"),
        (Annotated[float, Field(lt=2)], 3, "must be less than 2.0, not 3"),
        (Literal["trim", "strict"], "x", "must be trim or strict, not 'x'"),
        (list[int], 5, "must be a list, not 5"),
        (Annotated[str, Field(max_length=2)], "abc", "must be at most 2 characters, not 'abc'"),
    ],
)
def test_words(kind: Any, value: object, words: str) -> None:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(kind).validate_python(value)
    assert fault_text(raised.value.errors()[0]) == words


def test_long_values_are_shortened() -> None:
    words = fault_text({"type": "int_type", "input": "x" * 1000, "msg": ""})
    assert len(words) < 100
    assert words.endswith("...")
    assert short_text(10**5000) == "a number too long to be shown"


def test_kinds_are_those_of_pydantic() -> None:
    assert set(KINDS) <= set(get_args(ErrorType))
