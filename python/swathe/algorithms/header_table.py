"""Tables of a header, whose errors are collected rather than raised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from swathe.core.errors import AlgorithmError
from swathe.core.value_errors import short_text

LONGEST_TEXT = 200
MOST_FAULTS = 50
"""Errors of a header that are told."""
MOST_ENTRIES = 50
"""Most inputs, outputs, parameters, arrays or packages."""


def fault_error(label: str, faults: Sequence[str]) -> AlgorithmError:
    """Return the error that reports the faults of a definition, the first of very many."""
    if len(faults) == 1:
        return AlgorithmError(f"{label}: {faults[0]}")
    rest = len(faults) - MOST_FAULTS
    texts = [*faults[:MOST_FAULTS], *([f"and {rest} more"] if rest > 0 else [])]
    lines = "".join(f"\n  {text}" for text in texts)
    return AlgorithmError(f"{label}: {len(faults)} errors{lines}", texts)


class HeaderTable:
    """Table of a header. A value that does not fit becomes a fault, and the default is returned.

    Attributes:
        key: last part of its name.
        values: its values by key.
        is_there: whether the header has it.
    """

    def __init__(self, name: str, values: dict[str, Any] | None, faults: list[str]) -> None:
        """Take the name, the values and the list that faults are added to."""
        self._name = name
        self._faults = faults
        self.key = name.rpartition(".")[2]
        self.values = values or {}
        self.is_there = values is not None

    def without_name(self) -> HeaderTable:
        """Return the same table, whose faults name its keys alone."""
        return HeaderTable("", self.values if self.is_there else None, self._faults)

    def name_of(self, key: str) -> str:
        """Return the name of a key with those of its tables."""
        return f"{self._name}.{key}".removeprefix(".")

    def fault(self, key: str, requirement: str, value: str) -> None:
        """Add a fault."""
        self._faults.append(f"{self.name_of(key)}: expected {requirement}, found {value}")

    def add_fault(self, text: str) -> None:
        """Add a fault that names its key."""
        self._faults.append(text)

    def refuse_unknown(self, keys: Sequence[str]) -> None:
        """Add a fault for each key that is not one of these."""
        for key in self.values:
            if key not in keys:
                self.fault(short_text(key).strip("'"), f"one of {', '.join(keys)}", "another key")

    def table(self, key: str, *, is_needed: bool = False) -> HeaderTable:
        """Return a table within this one; an empty one if it is missing."""
        values = self.values.get(key)
        if isinstance(values, dict):
            return HeaderTable(self.name_of(key), values, self._faults)
        if key in self.values or (is_needed and self.is_there):
            text = short_text(values) if key in self.values else "none"
            self.fault(key, "a table", text)
        return HeaderTable(self.name_of(key), None, self._faults)

    def text(
        self,
        key: str,
        pattern: re.Pattern[str],
        form: str,
        *,
        is_needed: bool = False,
        longest: int = LONGEST_TEXT,
    ) -> str:
        """Return a text that a pattern matches; empty by default."""
        value = self.values.get(key)
        if value is None and not is_needed:
            return ""
        if isinstance(value, str) and len(value) <= longest and pattern.fullmatch(value):
            return value
        self.fault(key, form, "none" if value is None else short_text(value))
        return ""

    def plain_text(self, key: str, longest: int) -> str:
        """Return a text on one line; empty by default."""
        value = self.values.get(key, "")
        if isinstance(value, str) and len(value) <= longest and value.isprintable():
            return value
        self.fault(key, f"a text of at most {longest} characters, on one line", short_text(value))
        return ""

    def texts(self, key: str, most: int) -> tuple[str, ...]:
        """Return texts that differ; none by default."""
        values = self.values.get(key, [])
        if not isinstance(values, list) or len(values) > most:
            self.fault(key, f"a list of at most {most} texts", short_text(values))
            return ()
        texts = []
        for value in values:
            if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT:
                self.fault(key, f"texts of 1 to {LONGEST_TEXT} characters", short_text(value))
            elif value in texts or not value.isprintable():
                self.fault(key, "texts that differ and can be printed", short_text(value))
            else:
                texts.append(value)
        return tuple(texts)

    def choice(self, key: str, choices: Sequence[str], default: str | None) -> Any:
        """Return one of some texts; the first if it is invalid."""
        value = self.values.get(key, default)
        if isinstance(value, str) and value in choices:
            return value
        text = "none" if value is None else short_text(value)
        self.fault(key, f"one of {', '.join(choices)}", text)
        return choices[0]

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self.values.get(key, default)
        if isinstance(value, bool):
            return value
        self.fault(key, "true or false", short_text(value))
        return default

    def integer(self, key: str, default: int, least: int, most: int) -> int:
        """Return a whole number within bounds."""
        value = self.values.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.fault(key, f"a whole number from {least} to {most:,}", short_text(value))
        return default

    def number(self, key: str) -> float | None:
        """Return a finite number; `None` by default."""
        value = self.values.get(key)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and abs(value) < 1e300:  # neither infinite nor NaN, and no longer integer
            return float(value) if isinstance(value, float) else value
        self.fault(key, "a finite number", short_text(value))
        return None
