"""Read TOML settings: each section is a dataclass, each key a field of it.

A key that is unknown, of the wrong type or out of bounds raises a `SettingsError` that names it as
`section.key`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from swathe.core.errors import SettingsError

T = TypeVar("T")

WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
PLURALS = {str: "texts", int: "whole numbers", float: "numbers"}


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of settings.

    Raises:
        SettingsError: if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # also that a number has too many digits
        raise SettingsError(f"{path}: is not valid TOML: {error}") from error
    except RecursionError:
        raise SettingsError(f"{path}: is not valid TOML: its values are nested too deep") from None


def section(name: str, kind: type[T], values: Any) -> T:
    """Return a section as an instance of its class.

    Raises:
        SettingsError: if a key is unknown, or a value has the wrong type.
    """
    if not isinstance(values, Mapping):
        raise SettingsError(f"{name}: expected a section [{name}], found {describe_value(values)}")
    types = get_type_hints(kind)
    refuse_unknown(f"key in [{name}]", values, types)
    return kind(**{key: value(f"{name}.{key}", types[key], values[key]) for key in values})


def refuse_unknown(what: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise an error for the first unknown name.

    Raises:
        SettingsError: with the list of known names.
    """
    for name in values:
        if name not in known:
            raise SettingsError(f"unknown {what}: {name!r}; known are {', '.join(known)}")


def value(name: str, kind: Any, raw: Any) -> Any:
    """Return a value in the type of its field.

    Raises:
        SettingsError: if the value has another type.
    """
    if get_origin(kind) is Literal:
        if raw in get_args(kind):
            return raw
        raise value_error(name, f"one of {', '.join(map(repr, get_args(kind)))}", raw)
    if get_origin(kind) is tuple:
        each = get_args(kind)[0]
        if isinstance(raw, list) and (get_origin(each) is Literal or _are(each, raw)):
            return tuple(value(name, each, one) for one in raw)
        raise value_error(name, f"a list of {PLURALS[each]}" if each in PLURALS else "a list", raw)
    if get_origin(kind) is UnionType:
        # An optional field: TOML cannot write a null, so the value has the other type.
        kind = get_args(kind)[0]
    if kind is Path:
        if isinstance(raw, str) and raw.startswith(("/", "~/")):
            return Path(raw).expanduser()
        raise value_error(name, "an absolute path", raw)
    if kind is float and type(raw) is int:
        try:
            return float(raw)
        except OverflowError:
            raise value_error(name, WORDS[kind], raw) from None
    if type(raw) is not kind:  # True is an int, too
        raise value_error(name, WORDS[kind], raw)
    return raw


def _are(kind: Any, values: list[Any]) -> bool:
    kinds = (int, float) if kind is float else (kind,)
    return all(type(one) in kinds for one in values)


def value_error(name: str, expected: str, raw: Any) -> SettingsError:
    """Return the error for an invalid value."""
    return SettingsError(f"{name}: expected {expected}, found {describe_value(raw)}")


def describe_value(raw: Any) -> str:
    """Return a value as shown in errors."""
    if isinstance(raw, bool):
        return str(raw).lower()
    try:
        return repr(raw)[:200]
    except ValueError:  # a hexadecimal number with too many digits
        return "a number too long to be shown"
