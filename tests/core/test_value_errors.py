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
        (int, "x", "expected a whole number, found 'x'"),
        (int, 1.5, "expected a whole number, found 1.5"),
        (float, "one", "expected a number, found 'one'"),
        (bool, "maybe", "expected true or false, found 'maybe'"),
        (Annotated[int, Field(ge=1)], 0, "expected at least 1, found 0"),
        (Annotated[float, Field(lt=2)], 3, "expected less than 2, found 3"),
        (Literal["trim", "strict"], "x", "expected 'trim' or 'strict', found 'x'"),
        (list[int], 5, "expected a list, found 5"),
        (Annotated[str, Field(max_length=2)], "abc", "expected at most 2 characters, found 'abc'"),
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
    assert short_text(True) == "true"
    assert short_text(10**5000) == "a number too long to be shown"


def test_kinds_are_those_of_pydantic() -> None:
    assert set(KINDS) <= set(get_args(ErrorType))
