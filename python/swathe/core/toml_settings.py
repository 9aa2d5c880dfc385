"""Settings as users declare them in TOML: sections, each a dataclass, each key a field of it.

What is unknown, of the wrong type or out of bounds is a `SettingsError` that names `section.key`.
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
        SettingsError: where it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: is no TOML: {error}") from error


def section(name: str, kind: type[T], values: Any) -> T:
    """Give a section in its class.

    Raises:
        SettingsError: where a key is unknown or a value of the wrong type.
    """
    if not isinstance(values, Mapping):
        raise SettingsError(f"{name}: expected a section [{name}], found {found(values)}")
    types = get_type_hints(kind)
    refuse_unknown(f"key in [{name}]", values, types)
    return kind(**{key: value(f"{name}.{key}", types[key], values[key]) for key in values})


def refuse_unknown(what: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Stop at the first name that is not known.

    Raises:
        SettingsError: that says which are.
    """
    for name in given:
        if name not in known:
            raise SettingsError(f"unknown {what}: {name!r}; known are {', '.join(known)}")


def value(name: str, kind: Any, given: Any) -> Any:
    """Give a value in the type of its field.

    Raises:
        SettingsError: where it is of another.
    """
    if get_origin(kind) is Literal:
        if given in get_args(kind):
            return given
        raise wrong(name, f"one of {', '.join(map(repr, get_args(kind)))}", given)
    if get_origin(kind) is tuple:
        each = get_args(kind)[0]
        if isinstance(given, list) and (get_origin(each) is Literal or _are(each, given)):
            return tuple(value(name, each, one) for one in given)
        raise wrong(name, f"a list of {PLURALS[each]}" if each in PLURALS else "a list", given)
    if get_origin(kind) is UnionType:
        # What need not be there; nothing in a file says that it is not.
        kind = get_args(kind)[0]
    if kind is Path:
        if isinstance(given, str) and given.startswith(("/", "~/")):
            return Path(given).expanduser()
        raise wrong(name, "an absolute path", given)
    if kind is float and type(given) is int:
        return float(given)
    if type(given) is not kind:  # True is an int, too
        raise wrong(name, WORDS[kind], given)
    return given


def _are(kind: Any, given: list[Any]) -> bool:
    kinds = (int, float) if kind is float else (kind,)
    return all(type(one) in kinds for one in given)


def wrong(name: str, expected: str, given: Any) -> SettingsError:
    """Give the error for a value that makes no sense."""
    return SettingsError(f"{name}: expected {expected}, found {found(given)}")


def found(given: Any) -> str:
    """Give a value as it is shown to whoever wrote it."""
    if isinstance(given, bool):
        return str(given).lower()
    return repr(given)[:200]
