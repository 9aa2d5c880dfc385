"""Checks of answers of staging services."""

from __future__ import annotations

import io
import json
from typing import Any, get_args

from swathe.core.errors import StagingError
from swathe.core.format import harmless_text
from swathe.core.value_errors import short_text
from swathe.stores.staging.stager import FileState, Locality, ObjectPlace, StageProgress

LONGEST_TEXT = 1000
LONGEST_LINE = 1 << 16
"""Longest line of JSON, in bytes."""
SPARE_LINES = 100
"""Lines that a service may answer more than it was asked for."""
MOST_NUMBER = (1 << 63) - 1


def parse_json(who: str, text: str | bytes) -> Any:
    """Return a JSON value.

    Raises:
        StagingError: If the text is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise StagingError(f"{who}: expected JSON, found {short_text(text)}") from None


def parse_objects(who: str, text: bytes, most: int) -> list[dict[str, Any]]:
    """Return the objects of JSON lines.

    Args:
        who: the service.
        text: the lines.
        most: lines that are expected at most; some more are read.

    Raises:
        StagingError: If a line is none, one is too long, or there are too many.
    """
    values: list[dict[str, Any]] = []
    file = io.BytesIO(text)
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise StagingError(
                f"{who}: expected lines of at most {LONGEST_LINE} bytes, found {short_text(line)}"
            )
        if not (line := line.strip()):
            continue
        value = parse_json(who, line)
        if not isinstance(value, dict):
            raise StagingError(f"{who}: expected lines of JSON objects, found {short_text(value)}")
        if len(values) >= most + SPARE_LINES:
            raise StagingError(f"{who}: expected at most {most} lines, found more")
        values.append(value)
    return values


def one_line(text: str) -> str:
    """Return a text of a service for a message: one line, control characters escaped."""
    return harmless_text(" ".join(text.split()), "")


def text_of(who: str, value: dict[str, Any], key: str) -> str:
    """Return a text of an answer.

    Raises:
        StagingError: If it is missing, empty or too long.
    """
    text = value.get(key)
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_TEXT:
        raise StagingError(
            f"{who}: expected a text as {key!r} of up to {LONGEST_TEXT} characters, found "
            f"{short_text(value)}"
        )
    return text


def place_of(who: str, value: dict[str, Any], paths: set[str]) -> ObjectPlace:
    """Return where an object is, from a line of an answer.

    Raises:
        StagingError: If it is of no object that was asked for, or wrong.
    """
    return ObjectPlace(
        _path_of(who, value, paths),
        _choice(who, value, "locality", get_args(Locality)),
        _count(who, value, "bytes"),
        _text(who, value, "medium"),
        _count(who, value, "position"),
        _text(who, value, "reason"),
    )


def progress_of(who: str, value: dict[str, Any], paths: set[str]) -> StageProgress:
    """Return the state of an object, from a line of an answer.

    Raises:
        StagingError: If it is of no object that was asked for, or wrong.
    """
    return StageProgress(
        _path_of(who, value, paths),
        _choice(who, value, "state", get_args(FileState)),
        _count(who, value, "place"),
        _text(who, value, "reason"),
    )


def _path_of(who: str, value: dict[str, Any], paths: set[str]) -> str:
    path = text_of(who, value, "path") if len(str(value.get("path"))) < LONGEST_TEXT else ""
    if path not in paths:
        raise StagingError(
            f"{who}: expected objects that were asked for, found {short_text(value)}"
        )
    return path


def _choice(who: str, value: dict[str, Any], key: str, choices: tuple[Any, ...]) -> Any:
    if value.get(key) not in choices:
        raise StagingError(
            f"{who}: expected {key} one of {', '.join(choices)}, found {short_text(value)}"
        )
    return value[key]


def _count(who: str, value: dict[str, Any], key: str) -> int | None:
    number = value.get(key)
    if number is None:
        return None
    is_whole = isinstance(number, int) and not isinstance(number, bool)
    if not is_whole or not 0 <= number <= MOST_NUMBER:
        raise StagingError(f"{who}: expected {key} a whole number, found {short_text(value)}")
    return int(number)


def _text(who: str, value: dict[str, Any], key: str) -> str | None:
    return None if value.get(key) is None else one_line(text_of(who, value, key))
