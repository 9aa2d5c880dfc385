"""A WCS that attributes give with the keywords of FITS: found, checked, and moved with a cut.

The attributes are those of an array, of a variable that its `grid_mapping` names, or of the groups
around it. They are keywords in capitals, or one attribute is the text of a header. Axis 1 of the
WCS is the last axis of the array.

References:
    FITS Standard 4.0, 8 (world coordinates).
"""

from __future__ import annotations

import math
import re
import warnings
from typing import TYPE_CHECKING, Any

from swathe.arrays.array_tree import groups_around
from swathe.core.errors import RegionError
from swathe.core.sky import SkyMapping, read_wcs
from swathe.files.variable import number_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.files.array import Array
    from swathe.files.array_region import ArrayRegion

Cards = dict[str, str | int | float]
"""Keywords of a WCS and their values."""
WORDS = re.compile(
    r"(CTYPE|CUNIT|CNAME)[1-9]\d?[A-Z]?|PS[1-9]\d?_\d{1,3}[A-Z]?|C[PQ]DIS[1-9]|D2IMDIS[1-9]"
    r"|RADESYS[A-Z]?|RADECSYS|SPECSYS[A-Z]?|WCSNAME[A-Z]?",
    re.ASCII,
)
"""Keywords of texts."""
NUMBERS = re.compile(
    r"(CRVAL|CRPIX|CDELT|CROTA)[1-9]\d?[A-Z]?|(CD|PC)[1-9]\d?_[1-9]\d?[A-Z]?|(CD|PC)\d{6}"
    r"|PV[1-9]\d?_\d{1,3}[A-Z]?|(A|B|AP|BP)_(ORDER|DMAX|\d_\d)|WCSAXES[A-Z]?"
    r"|(LON|LAT)POLE[A-Z]?|EQUINOX[A-Z]?|EPOCH|RESTFR(E)?Q[A-Z]?|RESTWAV[A-Z]?|VELREF",
    re.ASCII,
)
"""Keywords of finite numbers."""
PIXEL = re.compile(r"CRPIX(\d{1,2})[A-Z]?", re.ASCII)
"""Keyword of the reference pixel of an axis, which moves with a cut."""
KIND = re.compile(r"CTYPE(\d{1,2}[A-Z]?)", re.ASCII)
LIMITS = (
    (re.compile(r"WCSAXES[A-Z]?"), 99),
    (re.compile(r"(A|B|AP|BP)_ORDER"), 9),
)
"""Counts from which libraries take room, and the largest that keywords can number."""
TEXTS = frozenset(
    word for name in ("wcs", "header", "fits_header", "wcs_header") for word in (name, name.upper())
)
"""Attributes that may be a header as text: cards of 80 characters, or a card a line."""
CARD = 80
MOST_CARDS = 1000
"""Keywords of one WCS."""
MOST_TEXT = 1 << 20
"""Characters of a header."""
WORD = re.compile(r"[ -~]*")
MOST_WORD = 68
"""Characters of a text that fits one card."""


def has_wcs(attrs: Mapping[str, Any]) -> bool:
    """Check whether attributes have keywords of a WCS, or a header; it may still be invalid."""
    return has_keywords(attrs) or (not TEXTS.isdisjoint(attrs) and bool(_header_names(attrs)))


def has_keywords(attrs: Mapping[str, Any]) -> bool:
    """Check whether attributes are keywords of a WCS."""
    return "CTYPE1" in attrs or "CRPIX1" in attrs


def wcs_cards(array: Array) -> Cards | None:
    """Return the WCS of an array: of the nearest attributes that have one, or `None`.

    Raises:
        RegionError: If the nearest one is invalid.
    """
    tree = array.tree
    variables = [tree.near(array.path, name) for name in mapping_names(array.attrs)]
    mappings = [each.attributes for each in variables if each is not None]
    groups = [tree.groups.get(path, {}) for path in groups_around(array.path)]
    for attrs in (array.attrs, *mappings, *groups):
        if has_wcs(attrs):
            return cards_of(attrs, f"{array.url}, array {array.path}")
    return None


def mapping_names(attrs: Mapping[str, Any]) -> list[str]:
    """Return the variables that `grid_mapping` names: one, or those before colons (CF 5.6)."""
    text = attrs.get("grid_mapping")
    words = text.split() if isinstance(text, str) else []
    names = [word.removesuffix(":") for word in words if len(words) == 1 or word.endswith(":")]
    return list(dict.fromkeys(names))


def sky_mapping(cards: Cards, what: str) -> SkyMapping:
    """Return the mapping between the sky and the pixels of the last two axes.

    Raises:
        RegionError: If the WCS is invalid, or is not one of the sky.
    """
    from astropy.io import fits

    header = fits.Header(list(cards.items())).tostring()
    return SkyMapping(lambda: read_wcs(header.encode()), what)


def cards_of(attrs: Mapping[str, Any], what: str) -> Cards:
    """Return the WCS that attributes have, by their own keywords, else by a header.

    Args:
        attrs: attributes for which `has_wcs` holds.
        what: name of the array in errors.

    Raises:
        RegionError: If a value has another type, is not finite or too large, or an axis has no
            reference pixel.
    """
    if has_keywords(attrs):
        values = {name: number_of(attrs[name]) for name in attrs if is_of_wcs(name)}
    else:
        values = _header_values(attrs[_header_names(attrs)[0]], what)
    if len(values) > MOST_CARDS:
        raise RegionError(
            f"{what}: expected a WCS of at most {MOST_CARDS:,} keywords, found {len(values):,}"
        )
    cards = {name: _value(name, each, what) for name, each in values.items()}
    for axis in ("1", *(match[1] for match in map(KIND.fullmatch, cards) if match)):
        for name in (f"CTYPE{axis}", f"CRPIX{axis}"):
            if name not in cards:
                raise RegionError(f"{what}: expected a WCS with {name}, found none")
    return cards


def is_of_wcs(name: str) -> bool:
    """Check whether a name is a keyword of a WCS."""
    return (WORDS.fullmatch(name) or NUMBERS.fullmatch(name)) is not None


def _value(name: str, value: Any, what: str) -> str | int | float:
    """Return the checked value of a keyword."""
    import numpy as np

    array = np.asarray(value)
    fault = f"found {array.tolist()!r:.60}"
    if WORDS.fullmatch(name):
        if isinstance(value, str) and len(value) <= MOST_WORD and WORD.fullmatch(value):
            return value.strip()
        raise RegionError(f"{what}: {name}: expected a text of ASCII, {fault}")
    if array.ndim or array.dtype.kind not in "iuf" or not math.isfinite(value):
        raise RegionError(f"{what}: {name}: expected a finite number, {fault}")
    for pattern, most in LIMITS:
        if pattern.fullmatch(name) and not (0 <= value <= most and value == int(value)):
            raise RegionError(f"{what}: {name}: expected 0 to {most}, {fault}")
    number: int | float = array.item()
    return number


def _header_names(attrs: Mapping[str, Any]) -> list[str]:
    """Return the names of the attributes that are a header with a WCS."""
    return [
        name
        for name in attrs
        if name in TEXTS
        and isinstance(attrs[name], str)
        and len(attrs[name]) <= MOST_TEXT
        and "CTYPE1" in attrs[name]
    ]


def _split(text: str) -> list[str]:
    """Return the cards of a header."""
    if "\n" in text:
        return text.split("\n")
    return [text[at : at + CARD] for at in range(0, len(text), CARD)]


def _header_values(text: str, what: str) -> dict[str, Any]:
    """Return the values of the cards of a WCS.

    Raises:
        RegionError: If one of them is no card, or stands twice.
    """
    from astropy.io import fits

    values: dict[str, Any] = {}
    for card in _split(text):
        name = card[:8].rstrip()
        if name == "END":
            break
        if is_of_wcs(name):
            if name in values:
                raise RegionError(f"{what}: expected one card {name}, found two")
            try:
                values[name] = fits.Card.fromstring(card[:CARD]).value
            except (ValueError, TypeError, fits.VerifyError) as error:
                raise RegionError(f"{what}: expected a card, found {card!r:.100}") from error
    return values


def move_wcs(attrs: dict[str, Any], names: tuple[str, ...], region: ArrayRegion) -> dict[str, Any]:
    """Return attributes whose WCS is that of a region of their array.

    Only leading axes of the array may be dropped, and axes named y and x must be the last: else the
    WCS is left out. An invalid one is left out with a warning.

    Args:
        attrs: attributes for which `has_wcs` holds; they stay as they are.
        names: names of the axes of the array.
        region: region of the array.
    """
    axes = len(names)
    is_turned = "y" in names and "x" in names and names[-2:] != ("y", "x")
    if is_turned or region.single != set(range(len(region.single))):
        return without_wcs(attrs)
    try:
        cards = cards_of(attrs, "")
    except RegionError as error:
        warnings.warn(f"the cut has no WCS, as that of its source is invalid{error}", stacklevel=2)
        return without_wcs(attrs)
    shifts = {
        name: region.start[axes - int(match[1])]
        for name in cards
        if (match := PIXEL.fullmatch(name)) and int(match[1]) <= axes
    }
    headers = _header_names(attrs)
    parts: dict[str, Any] = {name: _without_cards(attrs[name]) for name in headers}
    if has_keywords(attrs):
        numbers = {name: shift for name, shift in shifts.items() if shift}
        parts |= {name: float(number_of(attrs[name])) - numbers[name] for name in numbers}
    else:
        parts[headers[0]] = _move_header(attrs[headers[0]], shifts)
    return {**attrs, **parts}


def without_wcs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes without those of a WCS; a header keeps its other cards."""
    headers = {name: _without_cards(attrs[name]) for name in _header_names(attrs)}
    return {name: value for name, value in {**attrs, **headers}.items() if not is_of_wcs(name)}


def _move_header(text: str, shifts: Mapping[str, int]) -> str:
    """Return a header with other reference pixels."""
    from astropy.io import fits

    cards = _split(text)
    for number, card in enumerate(cards):
        name = card[:8].rstrip()
        if name == "END":
            break
        if shift := shifts.get(name):
            before = fits.Card.fromstring(card[:CARD])
            after = str(fits.Card(name, float(before.value) - shift)).rstrip()
            if before.comment:
                after = f"{after} / {before.comment}"[:CARD]
            cards[number] = after if "\n" in text else after.ljust(CARD)
    return _join(text, cards)


def _without_cards(text: str) -> str:
    return _join(text, [card for card in _split(text) if not is_of_wcs(card[:8].rstrip())])


def _join(text: str, cards: list[str]) -> str:
    return ("\n" if "\n" in text else "").join(cards)
