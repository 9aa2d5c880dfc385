"""Names of objects, looked up in the lists on this machine."""

from __future__ import annotations

import random
import re
import sqlite3
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord

from swathe.core.errors import RegionError
from swathe.files.targets.object_names import place_of

ARCSEC = 1 / 3600
VEGA, M31, M45 = (279.2347, 38.7837), (10.68479, 41.26906), (56.8692, 24.1053)


def apart(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the separation of two places in arcseconds."""
    a, b = (SkyCoord(*each, unit="deg") for each in (one, other))
    return float(a.separation(b).arcsec)


@pytest.mark.parametrize(
    "name",
    ["Vega", "vega", "\N{GREEK SMALL LETTER ALPHA} Lyr", "alf Lyr", "alpha Lyr", "Alpha Lyr",
     "3 Lyr", "HD 172167", "hd172167", "GJ 721", "HIP 91262", "HIP91262"],
)  # fmt: skip
def test_a_star_has_many_names(name: str) -> None:
    place = place_of(name)
    assert place is not None
    assert apart(place, VEGA) < 1


def test_stars_equal_hipparcos() -> None:
    """ICRS, J2000, from SIMBAD: of stars that move fast, too."""
    for name, place in {
        "Sirius": "06h45m08.917s -16d42m58.02s",
        "Barnard's Star": "17h57m48.499s +04d41m36.11s",
        "61 Cyg": "21h06m53.940s +38d44m57.90s",
        "alf Cen": "14h39m36.494s -60d50m02.37s",
        "Polaris": "02h31m49.095s +89d15m50.79s",
        "Belenos": "01h25m12.5s +28d34m00s",
    }.items():
        found, actual = place_of(name), SkyCoord(place)
        assert found is not None
        assert apart(found, (actual.ra.deg, actual.dec.deg)) < 1, name


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *((name, M31) for name in ("M31", "m 31", "Messier 31", "NGC 224", "ngc0224")),
        *((name, M31) for name in ("Andromeda Galaxy", "the andromeda  galaxy", "UGC 454")),
        *((name, M45) for name in ("M45", "Pleiades", "Mel 22")),
        ("Caldwell 14", (35.175, 57.1375)),
        ("Horsehead Nebula", (85.2458, -2.4583)),
        ("Large Magellanic Cloud", (80.8938, -69.7561)),
    ],
)
def test_nebulae_and_galaxies(name: str, place: tuple[float, float]) -> None:
    pytest.importorskip("pyongc")
    found = place_of(name)
    assert found is not None
    assert apart(found, place) < 1


def test_drawn_names_are_where_the_lists_say() -> None:
    """1,000 names of both lists, against their own positions."""
    database = files(pytest.importorskip("pyongc")) / "ongc.db"
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as ongc:
        nebulae = ongc.execute(
            "SELECT name, ra, dec FROM objects WHERE ra IS NOT NULL AND type != 'Dup'"
        ).fetchall()
    drawn = random.Random(28)
    text = files("swathe.files.targets").joinpath("stars.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    stars = [(name, float(row[1]), float(row[2])) for row in rows for name in row[3:] if name]
    count = Counter(name for name, _, _ in stars)
    stars = [star for star in stars if count[star[0]] == 1]
    for name, ra, dec in drawn.sample(stars, 500):
        assert place_of(name) == (ra, dec), name
    places = [(name, *np.degrees([ra, dec])) for name, ra, dec in drawn.sample(nebulae, 500)]
    for name, ra, dec in places:
        found = place_of(re.sub(r"^(NGC|IC)0*", r"\1 ", name))
        assert found is not None, name
        assert apart(found, (float(ra), float(dec))) < 1, name


def test_names_that_mean_nothing_or_several_things() -> None:
    assert place_of("nothing at all") is None
    assert place_of("NGC 99999") is None
    assert place_of("'; DROP TABLE objects; --") is None
    with pytest.raises(RegionError, match="expected one star of this name, found 2: HIP 5336"):
        place_of("Marfak")
    # The two stars of 61 Cyg are close together.
    first = place_of("61 Cyg")
    assert first is not None
    assert first[0] * u.deg > 316 * u.deg
