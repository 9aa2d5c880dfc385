"""Read one position as people write it: in one of many notations, or as the name of an object.

Lists of targets are read more strictly (`text_line`), since a word of theirs may also be a file or
a size. Here the whole text is one position.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe.core.angles import from_parts
from swathe.core.errors import RegionError
from swathe.files.targets.frames import frame_by_name, in_frame
from swathe.files.targets.resolver import UnknownNameError, resolve

if TYPE_CHECKING:
    from astropy.coordinates import SkyCoord

LONGEST = 200
SIGNS = str.maketrans({
    "\u2010": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-",
    "\u00b0": "d", "\u00ba": "d", "\u02da": "d", "\u00b4": "'", "\u2018": "'", "\u2019": "'",
    "\u2032": "'", "\u201c": '"', "\u201d": '"', "\u2033": '"', "\u03b1": "ra", "\u03b4": "dec",
})  # fmt: skip
"""Signs that mean the same: of minus, degrees, minutes and seconds of arc, and alpha and delta."""
_FRAME = re.compile(
    r"[\s,;(]+\(?(icrs|fk5|fk4|j2000|b1950|gal(?:actic)?|ecl(?:iptic)?)(?:\.0)?\)?$", re.I
)
_FIRST_FRAME = re.compile(r"^(icrs|fk5|fk4|j2000|b1950|gal(?:actic)?|ecl(?:iptic)?)[\s:,]+", re.I)
_LABELS = re.compile(
    r"^(?:r\.?a\.?|l|glon)\s*(?:\((?:j2000|deg)\))?\s*[=:]?\s*(?P<lon>\S.*?)[\s,;]*\b"
    r"(?:dec?\.?|decl\.?|b|glat)\s*(?:\((?:j2000|deg)\))?\s*[=:]?\s*(?P<lat>\S.*)$",
    re.I,
)
_IS_GALACTIC = re.compile(r"^(?:l\s*[=:\d\s]|glon)", re.I)
_GALACTIC_NAME = re.compile(r"^G(\d{1,3}(?:\.\d+)?)([+-]\d{1,2}(?:\.\d+)?)$")
_POSITION_NAME = re.compile(
    r"^(?:[A-Za-z0-9]+ )?J?(\d\d)(\d\d)(\d\d)(\.?\d*)([+-]\d\d)(\d\d)(\d\d)(\.?\d*)$"
)
_NUMBER = r"\d+(?:[.]\d*)?|[.]\d+"
_DECIMAL = rf"[+-]?(?:{_NUMBER})(?:e[+-]?\d+)?"
_SEXAGESIMAL = (
    r"([+-]?)\s*(\d{1,3})\s*({unit}|:|\s)\s*(\d{1,2}(?:[.]\d*)?)"
    r"(?:\s*(?:m|'|:|\s)\s*(\d{1,2}(?:[.]\d*)?)?)?\s*(?:s|\"|'')?"
)
_HOURS = _SEXAGESIMAL.replace("{unit}", "h|d")
_DEGREES = _SEXAGESIMAL.replace("{unit}", "d")
_PAIRS = re.compile(rf"{_HOURS}[\s,;]*?{_DEGREES}", re.I)
_DECIMALS = re.compile(
    rf"({_DECIMAL})\s*(h|d|deg|rad)?\s*(?:E)?[\s,;]+({_DECIMAL})\s*(?:d|deg|rad)?\s*([NS])?", re.I
)
_COMPASS = re.compile(r"(?<=[\s,;])([NS])\s*(?=\d)", re.I)
_MINUS_APART = re.compile(r"([+-])\s+(?=\d)")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d+\s*[sm\"'])")
RADIANS_DEG = math.degrees(1)
EQUATORIAL = {"icrs", "fk5", "fk4", "j2000", "b1950"}


class Place(NamedTuple):
    """A position in the sky.

    Attributes:
        ra_deg: right ascension, degrees (ICRS).
        dec_deg: declination, degrees.
        name: name of the object that it is; `None` if it was written as a position.
    """

    ra_deg: float
    dec_deg: float
    name: str | None


def read_place(text: str) -> Place:
    """Return the position that a text means.

    Raises:
        RegionError: If it is none.
    """
    if len(text) > LONGEST:
        raise RegionError(f"{text[:40]!r}...: expected a position of up to {LONGEST} characters")
    name = " ".join(text.split())
    notation = _notation(name)
    if notation is not None:
        lon, lat, frame = notation
        return _place(in_frame(lon, lat, frame_by_name(frame)))
    try:
        ra, dec = resolve(name)
    except UnknownNameError as error:
        raise RegionError(f'"{name[:60]}" is not a position: expected RA Dec, or {error}') from None
    return Place(ra, dec, name)


def _place(coordinate: SkyCoord) -> Place:
    return Place(float(coordinate.ra.deg[0]) % 360, float(coordinate.dec.deg[0]), None)


def _notation(text: str) -> tuple[float, float, str] | None:
    """Return longitude, latitude and frame of a position; `None` if the text is none."""
    plain = unicodedata.normalize("NFKC", text.translate(SIGNS)).translate(SIGNS).strip()
    frame = "icrs"
    for pattern in (_FRAME, _FIRST_FRAME):
        if match := pattern.search(plain):
            frame = _frame_of(match[1])
            plain = (plain[: match.start()] + plain[match.end() :]).strip()
    if (plain[:1], plain[-1:]) in {("(", ")"), ("[", "]")}:
        plain = plain[1:-1].strip()
    if match := _LABELS.match(plain):
        frame = "galactic" if _IS_GALACTIC.match(plain) else frame
        plain = f"{match['lon'].rstrip(' ,;')} {match['lat']}"
    if match := _GALACTIC_NAME.match(plain):
        return float(match[1]), float(match[2]), "galactic"
    if match := _POSITION_NAME.match(plain):
        return *_of_name(*match.groups()), frame
    plain = _DECIMAL_COMMA.sub(".", plain)
    plain = _COMPASS.sub(lambda match: "+" if match[1].upper() == "N" else "-", plain)
    plain = _MINUS_APART.sub(r"\1", plain)
    if match := _DECIMALS.fullmatch(plain):
        return *_of_decimals(*match.groups()), frame
    if match := _PAIRS.fullmatch(plain):
        lon, lat = match.groups()[:5], match.groups()[5:]
        is_in_hours = frame in EQUATORIAL and lon[2].lower() != "d"
        return _of_parts(lon, "ra", is_in_hours), _of_parts(lat, "dec", False), frame
    return None


def _frame_of(word: str) -> str:
    word = word.lower()
    for whole in ("galactic", "ecliptic"):
        word = whole if whole.startswith(word) else word
    return word


def _of_name(
    hours: str, minutes: str, seconds: str, rest: str,
    degrees: str, arcminutes: str, arcseconds: str, other_rest: str,
) -> tuple[float, float]:  # fmt: skip
    """Return the position in a name such as J100028.60+021221.0; a point may be left out."""
    parts = [f"{one}{'' if more[:1] in ('.', '') else '.'}{more}" for one, more in
             ((seconds, rest), (arcseconds, other_rest))]  # fmt: skip
    ra = from_parts("", hours, minutes, parts[0], "ra", hours=True)
    return ra, from_parts(degrees[0], degrees[1:], arcminutes, parts[1], "dec", hours=False)


def _of_decimals(lon: str, unit: str | None, lat: str, compass: str | None) -> tuple[float, float]:
    factors = {"h": (15.0, 1.0), "rad": (RADIANS_DEG, RADIANS_DEG)}
    lon_factor, lat_factor = factors.get((unit or "").lower(), (1.0, 1.0))
    sign = -1 if (compass or "").upper() == "S" else 1
    return float(lon) * lon_factor, sign * float(lat) * lat_factor


def _of_parts(parts: tuple[Any, ...], what: str, is_in_hours: bool) -> float:
    """Return the degrees of an angle whose minutes may be decimal, if it has no seconds."""
    sign, units, _, minutes, seconds = parts
    whole, point, fraction = minutes.partition(".")
    if point and seconds:
        raise RegionError(f"{what}: expected whole minutes before seconds, found {minutes!r}")
    if point:
        seconds = str(round(float(f"0.{fraction or 0}") * 60, 9))
    return from_parts(sign, units, whole, seconds or "0", what, hours=is_in_hours)
