"""Parse angles and sizes written as text (one word of a target).

An angle is a number of degrees (`150.1`), a number with a unit (`150.1d`, `2.2deg`, `0.5rad`, and
for a right ascension `10.5h`), or sexagesimal (`10:00:28.6`, `10h00m28.6s`, `+02d12m21s`). A
sexagesimal right ascension is in hours, all else in degrees.

A size is an angle or pixels with a unit (`30"`, `0.5arcmin`, `100pix`), or a height and a width
with an `x` between (`30"x20"`, `100x80pix`).

Texts longer than LONGEST_TEXT are refused before a regular expression is run on them. No
expression can backtrack over more than that.
"""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

from swathe.core.errors import RegionError

LONGEST_TEXT = 100
NUMBER = r"[+-]?(?:\d{1,25}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?"
ARCSEC, ARCMIN = 1 / 3600, 1 / 60
UNITS_DEG = {
    **dict.fromkeys(("d", "deg", "degree", "degrees", "\N{DEGREE SIGN}"), 1.0),
    **dict.fromkeys(("'", "arcmin", "arcmins", "arcminute", "arcminutes", "amin"), ARCMIN),
    **dict.fromkeys(('"', "''", "arcsec", "arcsecs", "arcsecond", "arcseconds", "asec"), ARCSEC),
    "mas": ARCSEC / 1000,
    **dict.fromkeys(("rad", "radian", "radians"), math.degrees(1)),
}
HOURS = ("h", "hour", "hours", "hourangle")
PIXELS = ("pix", "pixel", "pixels", "px")
OTHER_SIGNS = str.maketrans(
    {
        "\N{MINUS SIGN}": "-",
        "\N{PRIME}": "'",
        "\N{DOUBLE PRIME}": '"',
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
        "\N{MULTIPLICATION SIGN}": "x",
    }
)
SIZE_FORMS = '30", 0.5arcmin, 0.01deg or 100pix'

_ANGLE = re.compile(rf"({NUMBER})\s?([^\W\d_]{{1,10}}|[\"'°]{{1,2}})?")
_COLONS = re.compile(r"([+-]?)(\d{1,3}):(\d{1,2})(?::(\d{1,2}(?:\.\d{0,20})?))?")
_LETTERS = re.compile(
    r"([+-]?)(\d{1,3})([hd°])(\d{1,2})[m'](?:(\d{1,2}(?:\.\d{0,20})?)(?:s|''|\"))?"
)

Unit = Literal["deg", "pix"]


class Size(NamedTuple):
    """Height and width of a region.

    Attributes:
        height: size along NAXIS2.
        width: size along NAXIS1.
        unit: unit of both, degrees or pixels.
    """

    height: float
    width: float
    unit: Unit = "deg"

    def __str__(self) -> str:
        """Return the text that `parse_size` reads back."""
        sides = [self.height] if self.height == self.width else [self.height, self.width]
        return "x".join(f"{side!r}{self.unit}" for side in map(float, sides))

    @property
    def square_deg(self) -> float | None:
        """Return the side in degrees if the size is a square given as an angle, else `None`."""
        return self.height if self.unit == "deg" and self.height == self.width else None


def clean(text: str) -> str:
    """Return a text without outer blanks and with plain signs for minus, primes and times.

    Raises:
        RegionError: If the text is longer than any angle.
    """
    if len(text) > LONGEST_TEXT:
        raise RegionError(f"{text[:40]!r}...: expected up to {LONGEST_TEXT} characters")
    return text.strip().translate(OTHER_SIGNS)


def is_angle(text: str) -> bool:
    """Check whether a word has the form of an angle; its value may still be out of range."""
    try:
        word = clean(text)
    except RegionError:
        return False
    if parts := _ANGLE.fullmatch(word):
        unit = (parts[2] or "deg").lower()
        return unit in UNITS_DEG or unit in HOURS or unit in PIXELS
    return bool(_COLONS.fullmatch(word) or _LETTERS.fullmatch(word))


def parse_angle(text: str, what: str, *, hours: bool = False, unit_deg: float = 1.0) -> float:
    """Parse an angle.

    Args:
        text: one word.
        what: name of the value in errors, such as `ra`.
        hours: whether a sexagesimal value is in hours, as for a right ascension.
        unit_deg: degrees per unit of a number without a unit.

    Returns:
        Degrees.

    Raises:
        RegionError: If the text is not an angle.
    """
    word = clean(text)
    value = _sexagesimal(word, what, hours)
    if value is None:
        value = _with_unit(word, hours, unit_deg)
    if value is None or not math.isfinite(value):
        form = "10:00:28.6" if hours else "+02:12:21"
        raise RegionError(
            f"{what}: expected degrees, an angle with a unit, or {form}, found "
            f"{text.strip()[:40]!r}"
        )
    return value


def _with_unit(word: str, hours: bool, unit_deg: float) -> float | None:
    """Return the degrees of a number with or without a unit."""
    parts = _ANGLE.fullmatch(word)
    if parts is None:
        return None
    number, unit = parts.groups()
    if unit is None:
        return float(number) * unit_deg
    if hours and unit.lower() in HOURS:
        return float(number) * 15
    scale = UNITS_DEG.get(unit.lower())
    return None if scale is None else float(number) * scale


def _sexagesimal(word: str, what: str, hours: bool) -> float | None:
    """Return the degrees of a sexagesimal value; `None` if the word is not sexagesimal."""
    if parts := _COLONS.fullmatch(word):
        sign, units, minutes, seconds = parts.groups()
        in_hours = hours
    elif parts := _LETTERS.fullmatch(word):
        sign, units, unit, minutes, seconds = parts.groups()
        in_hours = unit == "h"
        if in_hours and not hours:
            raise RegionError(f"{what}: expected degrees, found hours, {word!r}")
    else:
        return None
    return from_parts(sign, units, minutes, seconds or "0", what, hours=in_hours)


def from_parts(
    sign: str, units: str, minutes: str, seconds: str, what: str, *, hours: bool
) -> float:
    """Return the degrees of a sexagesimal value from its parts, which are numbers as text.

    Raises:
        RegionError: If minutes or seconds exceed 60, or hours exceed 24.
    """
    text = f"{sign}{units}:{minutes}:{seconds}"
    # Catalogues round up to 60 seconds.
    if int(minutes) >= 60 or float(seconds) > 60:
        raise RegionError(f"{what}: expected minutes and seconds below 60, found {text!r}")
    value = int(units) + int(minutes) / 60 + float(seconds) / 3600
    if hours and value > 24:
        raise RegionError(f"{what}: expected hours up to 24, found {text!r}")
    return (-value if sign == "-" else value) * (15 if hours else 1)


def parse_size(text: str, what: str = "size", *, bare_deg: float | None = None) -> Size:
    """Parse a size.

    Args:
        text: a size such as `30"`, `0.5 arcmin`, `100pix` or `30"x20"`.
        what: name of the value in errors.
        bare_deg: degrees per unit of a number without a unit; `None` if a unit is required.

    Raises:
        RegionError: If the text is not a size, is not positive, or lacks a unit.
    """
    words = [_ANGLE.fullmatch(word) for word in _sides(clean(text))]
    parts = [word.groups() for word in words if word is not None]
    if len(parts) != len(words):
        raise RegionError(f"{what}: expected {SIZE_FORMS}, found {text.strip()[:40]!r}")
    last = parts[-1][1]
    sides = [_side(number, unit or last, text, what, bare_deg) for number, unit in parts]
    units = {unit for _, unit in sides}
    if len(units) > 1:
        raise RegionError(f"{what}: expected one unit, found {text.strip()[:40]!r}")
    return Size(sides[0][0], sides[-1][0], units.pop())


def _sides(text: str) -> list[str]:
    """Split a height and a width at the `x` before a digit or a point."""
    for at, letter in enumerate(text[:-1]):
        after = text[at + 1 :].lstrip()
        if letter == "x" and at and (after[:1].isdigit() or after[:1] == "."):
            return [text[:at].strip(), after]
    return [text]


def _side(
    number: str, unit: str | None, text: str, what: str, bare_deg: float | None
) -> tuple[float, Unit]:
    value = float(number)
    if not math.isfinite(value) or value <= 0:
        raise RegionError(f"{what}: expected a positive size, found {text.strip()[:40]!r}")
    if unit is None:
        if bare_deg is None:
            raise RegionError(
                f"{what}: expected a unit, such as {SIZE_FORMS}, found {text.strip()[:40]!r}"
            )
        return value * bare_deg, "deg"
    if unit.lower() in PIXELS:
        return value, "pix"
    scale = UNITS_DEG.get(unit.lower())
    if scale is None:
        raise RegionError(f"{what}: expected {SIZE_FORMS}, found unit {unit!r}")
    return value * scale, "deg"
