"""Read TOML settings: each section is a dataclass, each key a field that pydantic checks.

A key that is unknown, of the wrong type or out of bounds raises a `SettingsError` that names it as
`section.key`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from swathe.core.errors import SettingsError
from swathe.core.format import size_text
from swathe.core.inputs import check_regular
from swathe.core.value_errors import fault_text, short_text

T = TypeVar("T")

MOST_BYTES = 1 << 20
"""Largest file of settings."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of settings.

    Raises:
        SettingsError: If the file cannot be read.
    """
    try:
        check_regular(path)
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise SettingsError(f"{path}: expected at most {size_text(MOST_BYTES)}, found more")
    try:
        return tomllib.loads(content.decode())
    except ValueError as error:  # also that a number has too many digits
        raise SettingsError(f"{path}: is not valid TOML: {error}") from error
    except RecursionError:
        raise SettingsError(f"{path}: is not valid TOML: its values are nested too deep") from None


def section(name: str, kind: type[T], values: Any) -> T:
    """Return a section as an instance of its class.

    Raises:
        SettingsError: If a key is unknown, or a value has the wrong type.
    """
    if not isinstance(values, Mapping):
        raise value_error(name, f"a section [{name}]", values)
    types = get_type_hints(kind, include_extras=True)
    refuse_unknown(f"key in [{name}]", values, types)
    return kind(**{key: value(f"{name}.{key}", types[key], values[key]) for key in values})


def refuse_unknown(what: str, values: Mapping[str, Any], keys: Mapping[str, Any]) -> None:
    """Raise an error for the first unknown name.

    Raises:
        SettingsError: With the list of known names.
    """
    for name in values:
        if name not in keys:
            raise SettingsError(f"unknown {what}: {name!r}; known are {', '.join(keys)}")


def value(name: str, kind: Any, raw: Any) -> Any:
    """Return a value in the type of its field.

    Raises:
        SettingsError: If the value has another type, or is out of bounds.
    """
    from pydantic import TypeAdapter, ValidationError  # the start of `swathe` does not wait for it

    try:
        plain = tuple(raw) if isinstance(raw, list) else raw
        return TypeAdapter(kind).validate_python(plain, strict=True)
    except ValidationError as error:
        raise SettingsError(f"{name}: {fault_text(error.errors()[0])}") from None


def value_error(name: str, requirement: str, raw: Any) -> SettingsError:
    """Return the error for an invalid value."""
    return SettingsError(f"{name}: expected {requirement}, found {short_text(raw)}")
