"""Positions as people write them, and names, each beside astropy or a list."""

from __future__ import annotations

import pytest
from astropy.coordinates import SkyCoord
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.errors import RegionError
from swathe.files.targets.place_text import LONGEST, read_place

RA, DEC = 150.119166667, 2.205833333
"""10:00:28.6 +02:12:21"""
NOTATIONS = """
10:00:28.6 +02:12:21
10:00:28.6+02:12:21
10 00 28.6 +02 12 21
10 00 28.6 2 12 21
10h00m28.6s +02d12m21s
10h00m28.6s +02°12'21"
10h 00m 28.6s +02d 12m 21s
10h 00m 28.6s +02° 12\u2032 21\u2033
10h00m28.6s, +02d12m21s
10:00:28.6, +02:12:21
10:00:28.6;+02:12:21
150.1192 2.2058
150.1192 +2.2058
150.1192,2.2058
150.1192, 2.2058
150.1192d 2.2058d
150.1192deg 2.2058deg
150.1192° 2.2058°
150.1192°, +2.2058°
1.501192e2 2.2058
10h00.477m +02d12.35m
10h00.477m +2°12.35'
10 00.477 +02 12.35
10:00.477 +02:12.35
10.00794h +2.2058d
10.00794h 2.2058°
J100028.6+021221
J100028.60+021221.0
SDSS J100028.60+021221.0
2MASS J10002860+0212210
RA=150.1192 Dec=2.2058
ra: 150.1192, dec: 2.2058
RA 10:00:28.6 Dec +02:12:21
ra=10h00m28.6s dec=+02d12m21s
RA=10:00:28.6, DEC=+02:12:21
\u03b1=10h00m28.6s \u03b4=+02°12\u203221\u2033
10\u02b000\u1d5028.6\u02e2 +02°12\u203221\u2033
(150.1192, 2.2058)
[150.1192, 2.2058]
150.1192 \u22122.2058
10:00:28.6 \u221202:12:21
10:00:28.6 \u2013 02:12:21
10:00:28.6 - 02:12:21
10h00m28,6s +02d12m21s
10:00:28.6 +02:12:21 J2000
10:00:28.6 +02:12:21 ICRS
150.1192 2.2058 fk5
236.82 42.12 galactic
G236.82+42.12
l=236.82 b=42.12
gal 236.82 42.12
2.62007rad 0.0385rad
10:00:28.6 N02:12:21
150.1192E 2.2058N
10:00:28.6 2:12:21
10h00m28.6s 2d12m21s
""".strip().splitlines()
SOUTH = ("\N{MINUS SIGN}", "\N{EN DASH}", "28.6 - ")


def apart(text: str, actual: SkyCoord) -> float:
    place = read_place(text)
    found = SkyCoord(place.ra_deg, place.dec_deg, unit="deg")
    return float(found.separation(actual).arcsec)


@pytest.mark.parametrize("text", NOTATIONS)
def test_notations(text: str) -> None:
    dec = -DEC if any(sign in text for sign in SOUTH) else DEC
    # Texts have 4 decimals of a degree, or 2 of galactic ones, or of minutes.
    digits = 40.0 if "236.8" in text else 2.0 if "." in text.replace("28.6", "") else 0.1
    assert apart(text, SkyCoord(RA, dec, unit="deg")) < digits
    assert read_place(text).name is None


def test_there_are_many() -> None:
    assert len(set(NOTATIONS)) >= 50


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("10:00:28.6 +02:12:21 FK5", "fk5"),
        ("B1950 10:00:28.6 +02:12:21", "fk4"),
        ("10 00 28.6 +02 12 21 (B1950)", "fk4"),
        ("ecl 150.119166667 2.205833333", "barycentricmeanecliptic"),
        ("l=150.119166667 b=2.205833333", "galactic"),
        ("150.119166667, 2.205833333 gal", "galactic"),
    ],
)
def test_frames(text: str, frame: str) -> None:
    assert apart(text, SkyCoord(RA, DEC, unit="deg", frame=frame).icrs) < 0.01


@given(st.floats(0, 359.999), st.floats(-89.99, 89.99), st.sampled_from(["hmsdms", ":", " "]))
def test_what_astropy_writes(ra: float, dec: float, form: str) -> None:
    actual = SkyCoord(ra, dec, unit="deg")
    style = {} if form == "hmsdms" else {"sep": form}
    assert apart(actual.to_string("hmsdms", precision=3, **style), actual) < 0.02
    assert apart(f"{ra:.7f} {dec:+.7f}", actual) < 0.01


def test_names() -> None:
    place = read_place("  vega ")
    assert place.name == "vega"
    assert apart("vega", SkyCoord("18h36m56.336s +38d47m01.28s")) < 1
    pytest.importorskip("pyongc")
    assert read_place("Messier  31") == read_place("Messier 31")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not the name of an object"),
        ("nothing", '"nothing" is not a position: expected RA Dec, or the name of a star'),
        ("1 2 3", "is not a position"),
        ("10:70:00 1:0:0", "ra: expected minutes and seconds below 60"),
        ("25:00:00 1:0:0", "ra: expected hours up to 24"),
        ("10 95", "-90 to 90 degrees, found 10.0, 95.0"),
        ("10:00.5:30 1:0:0", "ra: expected whole minutes before seconds, found '00.5'"),
        ("1" * (LONGEST + 1), f"expected a position of up to {LONGEST} characters"),
    ],
)
def test_what_is_no_position(text: str, told: str) -> None:
    with pytest.raises(RegionError, match=told):
        read_place(text)


@given(st.text(max_size=LONGEST + 10) | st.text("0123456789.:+-hmsd'\" ,;NSE=", max_size=40))
def test_any_text_is_a_position_or_an_error(text: str) -> None:
    try:
        place = read_place(text)
    except RegionError:
        return
    assert 0 <= place.ra_deg <= 360
    assert -90 <= place.dec_deg <= 90
