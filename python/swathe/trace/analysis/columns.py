"""Fields of events as integers: equal codes mean equal text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.trace.ulm import CodedColumn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from swathe.trace.ulm import Events

    Numbers = NDArray[np.float64]
    Codes = NDArray[np.int32]
    Keys = NDArray[np.int64]

LARGEST = 1 << 62


def codes_of(events: Events, name: str) -> tuple[Codes, tuple[str, ...]]:
    """Return a field as codes (-1 if an event has none), and the text of each code."""
    field = events.fields.get(name)
    if field is None:
        return np.full(len(events.time_ns), -1, np.int32), ()
    if isinstance(field, CodedColumn):
        return field.codes, field.words
    values = field
    present = ~np.isnan(values)
    numbers, inverse = np.unique(values[present], return_inverse=True)
    codes = np.full(len(values), -1, np.int32)
    codes[present] = inverse
    words = tuple(str(int(number)) if number.is_integer() else str(number) for number in numbers)
    return codes, words


def numbers_of(events: Events, name: str) -> Numbers:
    """Return a field as numbers, NaN if an event has none."""
    field = events.fields.get(name)
    if field is None:
        return np.full(len(events.time_ns), np.nan)
    if not isinstance(field, CodedColumn):
        return field
    values = np.full(len(field.words) + 1, np.nan)
    for code, word in enumerate(field.words):
        try:
            values[code] = float(word)
        except ValueError:
            continue
    return values[field.codes]


def text_of(events: Events, name: str, row: int) -> str:
    """Return a field of one event as text; empty if it has none."""
    field = events.fields.get(name)
    if field is None:
        return ""
    if isinstance(field, CodedColumn):
        code = int(field.codes[row])
        return field.words[code] if code >= 0 else ""
    value = float(field[row])
    if np.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() else str(value)


def join_codes(columns: Iterable[NDArray[np.integer[Any]]]) -> Keys:
    """Return a number for each combination of codes."""
    key, most = np.zeros(0, np.int64), 1
    for codes in columns:
        if not len(key):
            key = np.zeros(len(codes), np.int64)
        if not len(codes):
            continue
        count = int(codes.max()) + 2
        if count == 1:
            continue
        if most > LARGEST // count:
            distinct, key = np.unique(key, return_inverse=True)
            most = len(distinct)
        key = key * count + (codes + 1)
        most *= count
    return key


def event_codes(events: Events, names: Iterable[str]) -> list[int]:
    """Return the codes of these event names, as far as they occur."""
    return [code for code, word in enumerate(events.event.words) if word in set(names)]
