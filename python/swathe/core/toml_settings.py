"""Read TOML settings: each section is a dataclass, each key a field that pydantic checks.

Keys that are unknown, of the wrong type or out of bounds raise a `SettingsError` that names each as
`section.key`, a line for each.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from swathe.core.errors import SettingsError
from swathe.core.format import size_text
from swathe.core.inputs import read_regular
from swathe.core.value_errors import fault_text, short_text

T = TypeVar("T")

MOST_BYTES = 1 << 20
"""Largest file of settings."""
MOST_PARTS = 100
"""Most parts of a dotted key; the time and memory of tomllib grow with their square."""
TEXTS = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5}|\\?\Z)'
    r"|'''(?:[^']++|'(?!''))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]++|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
"""Texts and comments of TOML; one without an end, which is an error, goes to the end."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of settings.

    Raises:
        SettingsError: If the file cannot be read.
    """
    try:
        content = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    return parse_toml(content, str(path))


def parse_toml(content: bytes, label: str) -> dict[str, Any]:
    """Parse settings.

    Args:
        content: a file of TOML.
        label: what it is, for messages.

    Raises:
        SettingsError: If it is too long, or no TOML.
    """
    if len(content) > MOST_BYTES:
        raise SettingsError(f"{label}: expected at most {size_text(MOST_BYTES)}, found more")
    _check_keys(label, content.decode(errors="replace"))
    try:
        return tomllib.loads(content.decode())
    except ValueError as error:  # also that a number has too many digits
        raise SettingsError(f"{label}: is not valid TOML: {error}") from error
    except RecursionError:
        raise SettingsError(f"{label}: is not valid TOML: its values are nested too deep") from None


def _check_keys(label: str, text: str) -> None:
    """Check that no key has too many parts.

    Raises:
        SettingsError: If one has; names its line.
    """
    # Each text becomes its line feeds, so that lines keep their numbers.
    plain = TEXTS.sub(lambda text: "\n" * text[0].count("\n"), text)
    for number, line in enumerate(plain.split("\n"), 1):
        parts = 1 + max(each.count(".") for each in re.split(r"[=,{}\[\]]", line))
        if parts > MOST_PARTS:
            raise SettingsError(
                f"{label}, line {number}: expected keys of at most {MOST_PARTS} parts, found "
                f"{parts}"
            )


def section(name: str, kind: type[T], values: Any) -> T:
    """Return a section as an instance of its class.

    Raises:
        SettingsError: If keys are unknown, or values have the wrong type; all are named.
    """
    if not isinstance(values, Mapping):
        raise value_error(name, f"a section [{name}]", values)
    types = get_type_hints(kind, include_extras=True)
    errors, arguments = SettingsErrors(), {}
    for key, raw in values.items():
        with errors.collect():
            refuse_unknown(f"key in [{name}]", [key], types)
            arguments[key] = value(f"{name}.{key}", types[key], raw)
    errors.check()
    return kind(**arguments)


class SettingsErrors:
    """Errors of settings, so that a user sees all at once."""

    def __init__(self) -> None:
        """Begin with none."""
        self._texts: list[str] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Note an error of settings in a block, which ends there."""
        try:
            yield
        except SettingsError as error:
            self._texts.append(str(error))

    def check(self) -> None:
        """Check that there was none.

        Raises:
            SettingsError: With a line for each.
        """
        if self._texts:
            raise SettingsError("\n".join(self._texts))


def refuse_unknown(what: str, values: Iterable[Any], keys: Mapping[str, Any]) -> None:
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
