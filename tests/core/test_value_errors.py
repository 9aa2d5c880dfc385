"""Words for values that checks of types refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core.core_schema import ErrorType

from swathe.core.errors import SettingsError
from swathe.core.value_errors import KINDS, fault_text, short_text
from swathe.experiments.settings import SingleSettings, settings_of
from swathe.portal.config import read_config


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


def test_values_with_a_password_are_shown_without_it_atk() -> None:
    url = "http://me:hidden@h:1"
    for value in (url, [url], ("*", url), [[url]], "postgresql://me:hidden@h/db"):
        assert "hidden" not in short_text(value), value
        assert "h:1" in short_text(value) or "/db" in short_text(value)
    assert short_text("a@\ud800") == repr("a@\\ud800")


def test_settings_with_a_password_are_told_without_it_atk(tmp_path: Path) -> None:
    file = tmp_path / "portal.toml"
    for key in ("server.url", "access.origins", "workers.url"):
        section, _, name = key.partition(".")
        file.write_text(f'[{section}]\n{name} = "https://me:hidden@h.example"\n')
        with pytest.raises(SettingsError, match=section) as raised:
            read_config(file)
        assert "hidden" not in str(raised.value)


def test_names_of_frames_that_are_no_formats_are_told_atk(tmp_path: Path) -> None:
    file = tmp_path / "bench.toml"
    for name in ("{0[a]}", "{:>99999999999999999999}", "{!x}"):
        file.write_text(f'[single]\nname = "{name}"\n')
        with pytest.raises(SettingsError, match=r"single\.name: expected a name with a number"):
            settings_of(SingleSettings, file, {})
