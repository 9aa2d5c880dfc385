"""Parse one target from a line of text.

    ra dec [size]               150.1 2.2 0.5arcmin     10:00:28.6 +02:12:21 30"
    file ra dec [size]          survey:a.fits 150.1 2.2 30"
    file x y height width       survey:a.fits 812.4 533.9 100 80
    name [size]                 M31 30"

Words are separated by blanks, or by commas, semicolons or tabs. Numbers without a unit are degrees;
after a file with x and y they are pixels. A file before a position without a size must have a `.`,
`/` or `:`, since `M 31 30"` is an object and a size.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import NoReturn

from swathe.core.angles import (
    HOURS,
    PIXELS,
    UNITS_DEG,
    Size,
    clean,
    from_parts,
    is_angle,
    parse_angle,
    parse_size,
)
from swathe.core.errors import RegionError
from swathe.files.targets.resolver import NAME, UnknownNameError, is_on, resolve

LONGEST_LINE = 4096
FORMS = "RA Dec [size], FILE RA Dec [size], or FILE x y height width"
_DIGITS = re.compile(r"[+-]?\d{1,3}")
_SECONDS = re.compile(r"\d{1,2}(?:\.\d{0,20})?")
_UNITS = {*UNITS_DEG, *PIXELS, *HOURS}


@dataclass(frozen=True)
class TargetLine:
    """A target from a line.

    Attributes:
        file: object; empty if the line has none.
        sky: right ascension and declination in degrees, in the frame of the list.
        size: height and width of a sky target, if the line has a size.
        center: x, y, height, width in pixels.
        is_named: whether the position is that of a named object, in ICRS.
    """

    file: str = ""
    sky: tuple[float, float] | None = None
    size: Size | None = None
    center: tuple[float, float, float, float] | None = None
    is_named: bool = False

    @property
    def kind(self) -> str:
        """Return the kinds of values in the line."""
        place = "x y height width" if self.center else "RA Dec size" if self.size else "RA Dec"
        return f"FILE {place}" if self.file else place


def parse_line(text: str, *, hours: bool = True) -> TargetLine:
    """Parse one target.

    Args:
        text: line without a comment.
        hours: whether sexagesimal longitudes are in hours, as for right ascensions.

    Raises:
        RegionError: If it is not a target, with the invalid word.
    """
    words = words_of(text)
    if len(words) == 5 and not _begins_position(words):
        return _in_pixels(words)
    file = ""
    if _begins_with_file(words):
        file, words = words[0], words[1:]
    if _begins_position(words):
        return _in_sky(file, words, text, hours)
    return _named_object(words, text)


def parse_position(text: str, *, hours: bool = True) -> tuple[float, float, bool]:
    """Parse one position, or the name of an object.

    Args:
        text: position.
        hours: as in `parse_line`.

    Returns:
        Longitude and latitude in degrees, and whether they are ICRS from an object's name.

    Raises:
        RegionError: If it is neither.
    """
    line = parse_line(text, hours=hours)
    if line.sky is None or line.size is not None or line.file:
        _refuse(text, "RA Dec, or the name of an object")
    return *line.sky, line.is_named


def words_of(text: str) -> list[str]:
    """Split a line into words; a number and its unit are one word.

    Raises:
        RegionError: If the line is too long, or is more than one line.
    """
    if len(text) > LONGEST_LINE:
        raise RegionError(f"{text[:40]!r}...: expected up to {LONGEST_LINE} characters")
    mark = delimiter_of(text)
    if mark is None:
        parts = text.split()
    else:
        # One of the cells may be a position.
        parts = [word for part in cells_of(text, mark) for word in _cell_words(part.strip())]
    words: list[str] = []
    for part in parts:
        if part.lower() in _UNITS and words and is_angle(words[-1]):
            words[-1] += part
        else:
            words.append(part)
    return words


def delimiter_of(text: str) -> str | None:
    """Return the separator of a line: a tab, semicolon or comma; `None` for blanks."""
    return next((mark for mark in "\t;," if mark in text), None)


def cells_of(line: str, mark: str) -> list[str]:
    """Split a line at a separator; cells may be in double quotes.

    Raises:
        RegionError: If it is more than one line.
    """
    try:
        return next(csv.reader([line], delimiter=mark, skipinitialspace=True), [])
    except csv.Error as error:
        raise RegionError(f"{line[:40]!r}: expected one line: {error}") from error


def _cell_words(cell: str) -> list[str]:
    """Split a cell that is a position; any other cell is one word, as files may contain blanks."""
    parts = cell.split()
    is_place = len(parts) > 1 and all(is_angle(part) or part.lower() in _UNITS for part in parts)
    return parts if is_place else [cell]


def _begins_position(words: list[str]) -> bool:
    return len(words) >= 2 and is_angle(words[0]) and is_angle(words[1])


def _begins_with_file(words: list[str]) -> bool:
    """Check whether a file precedes a position: `M 31 30arcmin` is an object and a size."""
    if len(words) < 3 or _begins_position(words) or not _begins_position(words[1:]):
        return False
    return len(words) > 3 or any(mark in words[0] for mark in "./:")


def _in_pixels(words: list[str]) -> TargetLine:
    names = ("x", "y", "height", "width")
    values = []
    for name, word in zip(names, words[1:], strict=True):
        try:
            values.append(float(clean(word)))
        except ValueError:
            raise RegionError(f"{name}: expected a number of pixels, found {word[:40]!r}") from None
    x, y, height, width = values
    return TargetLine(words[0], center=(x, y, height, width))


def _in_sky(file: str, words: list[str], text: str, hours: bool) -> TargetLine:
    is_spaced = len(words) >= 6 and delimiter_of(text) is None
    sky, rest = _spaced_position(words, hours) if is_spaced else _position(words, hours)
    if len(rest) > 1:
        # Such as `30 x 20 arcsec`.
        _refuse(text, "RA Dec [size]")
    size = parse_size(rest[0], bare_deg=1.0) if rest else None
    return TargetLine(file, sky=sky, size=size)


def _position(words: list[str], hours: bool) -> tuple[tuple[float, float], list[str]]:
    """Return a position of two words, and the words after it."""
    return (parse_angle(words[0], "ra", hours=hours), parse_angle(words[1], "dec")), words[2:]


def _spaced_position(words: list[str], hours: bool) -> tuple[tuple[float, float], list[str]]:
    """Return a position such as `10 00 28.6 +02 12 21`, and the words after it."""
    wholes, seconds = (*words[:2], *words[3:5]), (words[2], words[5])
    if all(map(_DIGITS.fullmatch, wholes)) and all(map(_SECONDS.fullmatch, seconds)):
        return (
            _spaced_angle(words[:3], "ra", hours),
            _spaced_angle(words[3:6], "dec", False),
        ), words[6:]
    return _position(words, hours)


def _spaced_angle(words: list[str], what: str, hours: bool) -> float:
    """Return the degrees of `10 00 28.6`."""
    first_word = words[0]
    sign = first_word[0] if first_word[0] in "+-" else ""
    if words[1][0] in "+-":
        raise RegionError(f"{what}: expected minutes, found {words[1]!r}")
    return from_parts(sign, first_word.lstrip("+-"), words[1], words[2], what, hours=hours)


def _named_object(words: list[str], text: str) -> TargetLine:
    """Return the position of an object from its name."""
    size = None
    if len(words) > 1 and is_angle(words[-1]) and not words[-1].lstrip("+-").isdecimal():
        try:
            size, words = parse_size(words[-1]), words[:-1]
        except RegionError:
            size = None
    name = " ".join(words)
    is_name = bool(NAME.fullmatch(name)) and any(letter.isalpha() for letter in name)
    # Without names, only text that can be nothing else counts as one, such as NGC 1068.
    is_short = len(words) == 1 or (len(words) == 2 and any(map(str.isdecimal, name)))
    if not is_name or not (is_on() or is_short):
        _refuse(text, "RA Dec [size]")
    try:
        return TargetLine(sky=resolve(name), size=size, is_named=True)
    except UnknownNameError as error:
        _refuse(text, f"RA Dec [size], or {error}")


def _refuse(text: str, requirement: str) -> NoReturn:
    short = " ".join(text[:200].split())
    excerpt = short if len(short) <= 60 else f"{short[:57]}..."
    raise RegionError(f'"{excerpt}" is not a position: expected {requirement}')
