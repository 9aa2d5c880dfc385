"""Positions of objects by their names, without a network.

Stars are those of `stars.tsv`: names of the IAU and older ones, and designations of Bayer,
Flamsteed, Henry Draper, Gliese and Hipparcos. Galaxies, clusters and nebulae are those of OpenNGC,
with Messier's and Caldwell's, if the package pyongc is installed.

References:
    OpenNGC, Mattia Verga, CC BY-SA 4.0, https://github.com/mattiaverga/OpenNGC
    d3-celestial, Olaf Frohn, BSD-3-Clause, https://github.com/ofrohn/d3-celestial
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

from swathe.core.errors import RegionError

STARS = "stars.tsv"
MOST_ENTRIES = 10_000
GREEK = (
    "alf alpha", "bet beta", "gam gamma", "del delta", "eps epsilon", "zet zeta", "eta",
    "tet theta", "iot iota", "kap kappa", "lam lambda", "mu", "nu", "ksi xi", "omi omicron", "pi",
    "rho", "sig sigma", "tau", "ups upsilon", "phi", "chi", "psi", "ome omega",
)  # fmt: skip
"""Letters of Bayer's designations as catalogues and people write them, in the order of Unicode."""
LETTERS = {word: words.split()[0] for words in GREEK for word in words.split()}
FINAL_SIGMA = 0x3C2
CODES = (code for code in range(0x3B1, 0x3CA) if code != FINAL_SIGMA)
TO_LETTERS = {code: words.split()[0] for code, words in zip(CODES, GREEK, strict=True)}
FIRST_WORD = re.compile(r"([a-z]+)(\d*)$")
SMALL_OR_LARGE = re.compile(r"[A-Za-z]\d* [A-Za-z]{3}")
TOGETHER_DEG = 0.1
CATALOGUE_NUMBER = re.compile(r"(?<!\w)(\w+) (\d+)")


@lru_cache(MOST_ENTRIES)
def place_of(name: str) -> tuple[float, float] | None:
    """Return right ascension and declination (ICRS, J2000, degrees) of an object.

    Returns:
        `None` if no list has an object of this name.

    Raises:
        RegionError: If several stars have this name that are not close together.
    """
    stars = _stars().get(_key_of(name), [])
    if any(
        max(abs(ra - stars[0][1]), abs(dec - stars[0][2])) > TOGETHER_DEG for _, ra, dec in stars
    ):
        raise RegionError(
            f"{name}: expected one star of this name, found {len(stars)}: "
            f"{', '.join(f'HIP {number}' for number, _, _ in stars)}"
        )
    if stars:
        return stars[0][1:]
    return _nebula(name) if has_nebulae() else None


@lru_cache
def has_nebulae() -> bool:
    """Check whether OpenNGC is installed."""
    return importlib.util.find_spec("pyongc") is not None


def _key_of(name: str) -> str:
    """Return what names have in common that mean the same: no accents, blanks or signs."""
    text = unicodedata.normalize("NFKD", name).casefold()
    plain = "".join(each for each in text if not unicodedata.combining(each))
    words = plain.translate(TO_LETTERS).split()
    words = words[1:] if words[:1] == ["the"] else words
    if len(words) > 1 and (match := FIRST_WORD.match(words[0])) and match[1] in LETTERS:
        words[0] = LETTERS[match[1]] + match[2].lstrip("0")
    if SMALL_OR_LARGE.fullmatch(name.strip()):
        # A and a of a constellation are two stars.
        words[0] = name.strip()[0] + words[0][1:]
    return re.sub(r"[\W_]", "", "".join(words))


@lru_cache
def _stars() -> dict[str, list[tuple[int, float, float]]]:
    """Return Hipparcos number and position of stars, by the keys of their names."""
    stars: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    first_of_several: dict[str, tuple[int, float, float]] = {}
    text = (Path(__file__).parent / STARS).read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        hip, ra, dec, name, bayer, *others = line.split("\t")
        star = int(hip), float(ra), float(dec)
        for each in dict.fromkeys((f"HIP {hip}", name, bayer, *others)):
            if each:
                stars[_key_of(each)].append(star)
        if re.match(r"\w1 ", bayer):
            first_of_several[_key_of(bayer.replace("1", "", 1))] = star
    for key, star in first_of_several.items():
        if key not in stars:
            stars[key].append(star)
    return dict(stars)


def _nebula(name: str) -> tuple[float, float] | None:
    """Return the position of an object of OpenNGC; `None` if it has none of this name."""
    from pyongc import ongc

    plain_name = " ".join(name.split())
    whole = plain_name.upper().replace("MESSIER", "M").replace("CALDWELL", "C")
    nebula = ongc.get(CATALOGUE_NUMBER.sub(r"\1\2", whole, 1)) or ongc.get(whole)
    if nebula is None:
        identifier = _common_names().get(_key_of(plain_name))
        nebula = None if identifier is None else ongc.get(identifier)
    if nebula is None or nebula.coords is None:
        return None
    (hours, minutes, seconds), (degrees, arcminutes, arcseconds) = nebula.coords
    ra = 15 * (hours + minutes / 60 + seconds / 3600)
    sign = -1 if nebula.dec.startswith("-") else 1
    return float(ra), float(sign * (abs(degrees) + arcminutes / 60 + arcseconds / 3600))


@lru_cache
def _common_names() -> dict[str, str]:
    """Return the identifiers of the objects of OpenNGC that have common names, by their keys."""
    from pyongc import ongc

    return {
        _key_of(common): each.name
        for each in ongc.listObjects(withname=True)
        for common in each.identifiers[3] or ()
    }
