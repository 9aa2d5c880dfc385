"""When and in what light: what headers say, and nothing they do not."""

from __future__ import annotations

import math
from typing import Any

import pytest
from astropy.io import fits
from astropy.time import Time
from astropy.wcs import WCS

from swathe.core.sky import read_wcs
from swathe.datasets.header_metadata import (
    JOHNSON,
    SDSS,
    TWOMASS,
    band,
    origin,
    polarizations,
    times,
)

START = Time("2005-09-21T04:30:00", scale="utc").mjd


def header(**cards: Any) -> fits.Header:
    return fits.Header({name.replace("_", "-"): value for name, value in cards.items()})


@pytest.mark.parametrize(
    ("cards", "start", "end"),
    [
        ({}, None, None),
        ({"DATE_OBS": "2005-09-21T04:30:00"}, START, None),
        ({"DATE_OBS": "2005-09-21T04:30:00", "EXPTIME": 86400.0}, START, START + 1),
        ({"DATE_OBS": "2005-09-21T04:30:00", "EXPTIME": 0.0}, START, None),
        ({"DATE_OBS": "2005-09-21T04:30:00", "EXPTIME": "long"}, START, None),
        ({"MJD_OBS": START, "EXPTIME": 864}, START, START + 0.01),
        ({"MJD_BEG": START, "MJD_END": START + 0.5, "EXPTIME": 1}, START, START + 0.5),
        ({"DATE_BEG": "2005-09-21T04:30:00", "DATE_END": "2005-09-22T04:30:00"}, START, START + 1),
        ({"DATE_OBS": "2005-09-21"}, math.floor(START), math.floor(START) + 1),
        ({"DATE_OBS": "2005-09-21", "TIME_OBS": "04:30:00"}, START, None),
        ({"DATE_OBS": "21/09/95", "TIME_OBS": "04:30:00.0"}, START - 3653, None),
        ({"DATE_OBS": "2005-09-21T04:30:32", "TIMESYS": "TAI"}, START, None),
        ({"DATE_OBS": "2005-09-21T04:31:04.184", "TIMESYS": "TT"}, START, None),
        ({"DATE_OBS": "2005-09-21T04:30:00", "TIMESYS": "LOCAL"}, None, None),
        ({"DATE_OBS": "last night"}, None, None),
        ({"DATE_OBS": "2005-13-41T04:30:00"}, None, None),
        ({"DATE_OBS": 5.0, "MJD_OBS": "?"}, None, None),
        ({"MJD_OBS": 1e300}, None, None),
        ({"MJD_OBS": 2453634.6875}, None, None),
        ({"TAI": (START + 32 / 86400) * 86400, "ORIGIN": "SDSS"}, START, None),
        (
            {
                "DATE_OBS": "2005-09-21",
                "TIMESYS": "TAI",
                "TAI": (START + 32 / 86400) * 86400,
                "ORIGIN": "SDSS",
            },
            START,
            None,
        ),
        ({"TAI": (START + 32 / 86400) * 86400}, None, None),
        ({"MJD_END": START}, None, START),
    ],
)
def test_times(cards: dict[str, Any], start: float | None, end: float | None) -> None:
    found = times(header(**cards))
    for told, expected in zip(found, (start, end), strict=True):
        assert (told is None) == (expected is None)
        assert told is None or math.isclose(told, expected or 0, abs_tol=1e-8, rel_tol=0)


def test_times_of_the_first_header_count_where_the_images_own_say_nothing() -> None:
    primary = header(MJD_OBS=START, EXPTIME=864)
    assert times(header(), primary) == times(primary) != (None, None)
    assert times(header(MJD_OBS=START + 5), primary) == (START + 5, None)


@pytest.mark.parametrize(
    ("cards", "name", "ends"),
    [
        ({}, None, None),
        ({"FILTER": "r", "ORIGIN": "SDSS"}, "r", SDSS["r"]),
        ({"FILTER": "r"}, "r", None),
        ({"FILTER": "R", "ORIGIN": "SDSS"}, "R", None),
        ({"FILTER": "j", "ORIGIN": "2MASS"}, "j", TWOMASS["J"]),
        ({"FILTER": "Ks", "ORIGIN": "2MASS"}, "Ks", TWOMASS["K"]),
        ({"FILTER": "Johnson V"}, "Johnson V", JOHNSON["V"]),
        ({"BAND": "B_Bessell"}, "B_Bessell", JOHNSON["B"]),
        ({"FILTER": "V"}, "V", None),
        ({"FILTER": "  "}, None, None),
        ({"FILTER": 3}, None, None),
    ],
)
def test_filters(cards: dict[str, Any], name: str | None, ends: Any) -> None:
    assert band(header(**cards), None, (5, 5)) == (name, *(ends or (None, None)))
    assert band(header(), None, (5, 5), header(**cards)) == (name, *(ends or (None, None)))


@pytest.mark.parametrize(
    ("cards", "ends"),
    [
        ({"CTYPE3": "WAVE", "CUNIT3": "nm", "CRVAL3": 500.0, "CDELT3": 1.0}, (499.5e-9, 509.5e-9)),
        ({"CTYPE3": "FREQ", "CUNIT3": "Hz", "CRVAL3": 3e9, "CDELT3": 1e6}, (0.09961, 0.09995)),
        ({"CTYPE3": "VRAD", "CUNIT3": "m/s", "CRVAL3": 0.0, "CDELT3": 1e3}, None),
        ({"CTYPE3": "VOPT", "CUNIT3": "m/s", "CRVAL3": 0.0, "CDELT3": 1e3, "RESTWAV": 0.21},
         (0.20999965, 0.21000665)),
        ({"CTYPE3": "STOKES", "CRVAL3": 1.0, "CDELT3": 1.0}, None),
        ({"CTYPE3": "WAVE", "CUNIT3": "m", "CRVAL3": -5.0, "CDELT3": 1.0}, None),
    ],
)  # fmt: skip
def test_spectral_axes(cards: dict[str, Any], ends: Any) -> None:
    both = fits.Header({"NAXIS": 3, "CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CRPIX3": 1.0})
    both.update(cards)
    wcs = read_wcs(both.tostring().encode("ascii"))
    name, *found = band(both, wcs, (10, 5, 5))
    assert name is None
    assert found == ([None, None] if ends is None else pytest.approx(list(ends), rel=1e-3))


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ({}, (None, None, None)),
        ({"TELESCOP": " VLT ", "INSTRUME": "FORS", "OBJECT": "M31"}, ("VLT", "FORS", "M31")),
        ({"OBSERVAT": "ESO", "OBJECT": ""}, ("ESO", None, None)),
        ({"TELESCOP": 2.5, "INSTRUME": True}, (None, None, None)),
    ],
)
def test_origin(cards: dict[str, Any], expected: tuple[str | None, ...]) -> None:
    assert origin(header(**cards)) == expected
    # Those of the first header count for what the image's own does not say.
    assert origin(header(OBJECT="M33"), header(**cards))[2] == "M33"
    assert origin(header(), header(**cards)) == expected


@pytest.mark.parametrize(
    ("value", "step", "expected"),
    [
        (1.0, 1.0, ["I", "Q", "U", "V"]),
        (-5.0, -1.0, ["XX", "YY", "XY", "YX"]),
        (3.0, 1.0, ["U", "V", "", ""]),
        (4.0, -1.0, ["V", "U", "Q", "I"]),
    ],
)
def test_polarizations(value: float, step: float, expected: list[str]) -> None:
    wcs = WCS(naxis=3)
    wcs.wcs.ctype = ["RA---TAN", "DEC--TAN", "STOKES"]
    wcs.wcs.crval, wcs.wcs.cdelt, wcs.wcs.crpix = [10, 0, value], [-1e-3, 1e-3, step], [1, 1, 1]
    assert polarizations(wcs, (50, 40, 4)) == (2, expected)
    assert polarizations(wcs, (50, 40)) is None
    assert polarizations(wcs, (50, 40, 10**9)) is None
