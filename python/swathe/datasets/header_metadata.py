"""Read time, band and origin of an image from its header, if the header is unambiguous."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from astropy.io.fits import Header
    from astropy.time import Time
    from astropy.wcs import WCS
    from numpy.typing import NDArray

DAY_S = 86_400
SCALES = {
    "UTC": "utc",
    "UT": "utc",
    "GMT": "utc",
    "TAI": "tai",
    "IAT": "tai",
    "TT": "tt",
    "TDT": "tt",
    "ET": "tt",
    "TDB": "tdb",
    "TCG": "tcg",
    "TCB": "tcb",
}
"""Values of TIMESYS (FITS Standard 4.0, table 30) that need no Earth rotation table, with astropy's
names. UT may be off by 0.9 s."""
EXPOSURES = ("TELAPSE", "XPOSURE", "EXPTIME", "EXPOSURE")
FILTERS = ("FILTER", "BAND", "FILTNAM1")
ORIGINS = (("TELESCOP", "OBSERVAT"), ("INSTRUME",), ("OBJECT",))
STOKES = {
    1: "I",
    2: "Q",
    3: "U",
    4: "V",
    -1: "RR",
    -2: "LL",
    -3: "RL",
    -4: "LR",
    -5: "XX",
    -6: "YY",
    -7: "XY",
    -8: "YX",
}
"""Time reference frames of FITS Standard 4.0, table 29."""
MOST_STATES = 1_000
SEEN_MJD = (-50_000.0, 100_000.0)
"""Valid range of MJD, from 1722 to 2132; other numbers are not times of images."""

# Limits of the transmission: SVO Filter Profile Service, SLOAN/SDSS and 2MASS/2MASS.
SDSS = {
    "u": (3055.11e-10, 4030.64e-10),
    "g": (3797.64e-10, 5553.04e-10),
    "r": (5418.23e-10, 6994.42e-10),
    "i": (6692.41e-10, 8400.32e-10),
    "z": (7964.70e-10, 10873.33e-10),
}
TWOMASS = {
    "J": (10806.47e-10, 14067.97e-10),
    "H": (14787.38e-10, 18231.02e-10),
    "K": (19543.69e-10, 23552.40e-10),
}
# Centre and full width at half maximum: Binney & Merrifield, Galactic Astronomy (1998), table 2.1.
JOHNSON = {
    name: ((middle - width / 2) * 1e-9, (middle + width / 2) * 1e-9)
    for name, middle, width in (
        ("U", 365, 66),
        ("B", 445, 94),
        ("V", 551, 88),
        ("R", 658, 138),
        ("I", 806, 149),
    )
}
_JOHNSON_NAME = re.compile(
    r"(?:(?:johnson|bessell?|cousins|kron)[ _-]*([UBVRI])|"
    r"([UBVRI])[ _-]*(?:johnson|bessell?|cousins))",
    re.IGNORECASE,
)


def times(header: Header, primary: Header | None = None) -> tuple[float | None, float | None]:
    """Return start and end of an exposure, MJD in UTC; `None` if unknown.

    The cards of `primary` are used if the image's own header has no time. A date without a time
    covers the whole day.
    """
    # All from one header: start and duration from two headers do not belong together.
    for cards in (header, primary):
        if cards is None:
            continue
        start, end = _times(cards)
        if start is not None or end is not None:
            return start, end
    return None, None


def _times(cards: Header) -> tuple[float | None, float | None]:
    scale = SCALES.get(str(cards.get("TIMESYS", "UTC")).strip().upper())
    if scale is None:
        return None, None
    start = _moment(cards, "BEG", scale)
    end = _moment(cards, "END", scale)
    if start is None:
        start = _moment(cards, "OBS", scale)
    whole_day = False
    if start is None:
        start, whole_day = _date_and_clock(cards, scale)
    if (start is None or whole_day) and (tai := _sdss_tai(cards)) is not None:
        start, whole_day = tai, False
    if start is None or end is not None:
        ends = None if end is None else _utc(end)
        return (None if start is None else _utc(start)), ends
    begins = _utc(start)
    if begins is None:
        return None, None
    if whole_day:
        return begins, begins + 1
    exposure = next((s for s in (_number(cards, name) for name in EXPOSURES) if s), None)
    if exposure is None or exposure < 0:
        return begins, None
    return begins, begins + exposure / DAY_S


def _moment(cards: Header, kind: str, scale: str) -> Time | None:
    """Return the time of MJD-kind, or of DATE-kind if that has a time of day."""
    from astropy.time import Time

    mjd = _number(cards, f"MJD-{kind}")
    if mjd is not None:
        return Time(mjd, format="mjd", scale=scale) if SEEN_MJD[0] < mjd < SEEN_MJD[1] else None
    date = cards.get(f"DATE-{kind}")
    if isinstance(date, str) and "T" in date:
        return _read(date, scale)
    return None


def _date_and_clock(cards: Header, scale: str) -> tuple[Time | None, bool]:
    """Return the time of DATE-OBS with TIME-OBS, and whether it is a date without a time."""
    date = cards.get("DATE-OBS")
    if not isinstance(date, str):
        return None, False
    date = date.strip()
    if old := re.fullmatch(r"(\d\d)/(\d\d)/(\d\d)", date):
        day, month, year = old.groups()
        date = f"19{year}-{month}-{day}"  # FITS Standard 4.0, 9.1.1: in the 20th century
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        return None, False
    clock = cards.get("TIME-OBS")
    if isinstance(clock, str) and re.fullmatch(r"\d\d:\d\d:\d\d(\.\d*)?", clock.strip()):
        return _read(f"{date}T{clock.strip()}", scale), False
    return _read(date, scale), True


def _sdss_tai(cards: Header) -> Time | None:
    """Return the time of SDSS's card TAI: seconds since MJD 0 in the scale TAI."""
    from astropy.time import Time

    seconds = _number(cards, "TAI")
    if seconds is None or not SEEN_MJD[0] < seconds / DAY_S < SEEN_MJD[1] or not _is_sdss(cards):
        return None
    return Time(seconds / DAY_S, format="mjd", scale="tai")


def _read(text: str, scale: str) -> Time | None:
    from astropy.time import Time

    text = text.strip().removesuffix("Z")
    try:
        return Time(text, format="isot" if "T" in text else "iso", scale=scale)
    except ValueError:
        return None


def _utc(time: Time) -> float | None:
    try:
        mjd = float(time.utc.mjd)
    except Exception:  # times before UTC, or beyond the table of leap seconds
        return None
    return mjd if SEEN_MJD[0] < mjd < SEEN_MJD[1] else None


def _number(cards: Header, name: str) -> float | None:
    value = cards.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def band(
    header: Header, wcs: WCS | None, shape: tuple[int, ...], primary: Header | None = None
) -> tuple[str | None, float | None, float | None]:
    """Return the filter name as in the header, and its wavelength range in metres.

    The range is that of a spectral axis. Else it is known for filters of SDSS, 2MASS and Johnson,
    if the header identifies the filter without doubt.
    """
    for cards in (header, primary):
        filter_band = None if cards is None else _filter(cards)
        if filter_band is not None:
            break
    along = None if wcs is None else _spectral(wcs, shape)
    if filter_band is None:
        return (None, None, None) if along is None else (None, *along)
    name, of = filter_band
    ends = along or of
    return (name, None, None) if ends is None else (name, *ends)


def _filter(cards: Header) -> tuple[str, tuple[float, float] | None] | None:
    name = next(
        (value.strip() for value in map(cards.get, FILTERS) if isinstance(value, str) and value), ""
    )
    if not name:
        return None
    if _is_sdss(cards):
        return name, SDSS.get(name)
    if str(cards.get("ORIGIN", "")).strip().upper().startswith("2MASS"):
        return name, TWOMASS.get(name.upper().removesuffix("S"))
    match = _JOHNSON_NAME.fullmatch(name)
    if match is not None:
        return name, JOHNSON[(match[1] or match[2]).upper()]
    return name, None


def origin(
    header: Header, primary: Header | None = None
) -> tuple[str | None, str | None, str | None]:
    """Return telescope, instrument and object as in the header."""
    facility, instrument, target = (
        next(
            (
                value.strip()
                for cards in (header, primary)
                if cards is not None
                for value in map(cards.get, names)
                if isinstance(value, str) and value.strip()
            ),
            None,
        )
        for names in ORIGINS
    )
    return facility, instrument, target


def _is_sdss(cards: Header) -> bool:
    return any(str(cards.get(key, "")).strip().upper() == "SDSS" for key in ("ORIGIN", "SURVEY"))


def _spectral(wcs: WCS, shape: tuple[int, ...]) -> tuple[float, float] | None:
    """Return the ends of a spectral axis that is independent of the other axes."""
    axis = wcs.wcs.spec
    if axis < 0 or axis >= len(shape):
        return None
    metres = wavelengths(wcs, [-0.5, shape[::-1][axis] - 0.5])
    if metres is None:
        return None
    first, last = map(float, metres)
    sound = all(math.isfinite(value) and value > 0 for value in (first, last))
    return (min(first, last), max(first, last)) if sound else None


def wavelengths(wcs: WCS, positions: Sequence[float]) -> NDArray[np.float64] | None:
    """Return wavelengths in metres at zero-based positions along a spectral axis.

    `None` if no spectral axis is independent of the other axes, or its type is unknown.
    """
    import astropy.units as u
    from astropy.wcs import WCSSUB_SPECTRAL

    try:
        alone = wcs.sub([WCSSUB_SPECTRAL])
        if alone.naxis != 1:
            return None
        kind = str(alone.wcs.ctype[0])[:4]
        values = alone.all_pix2world(positions, 0)[0] * u.Unit(str(alone.wcs.cunit[0]))
        if kind in ("VRAD", "VOPT", "ZOPT"):
            values = _from_velocity(values, kind, alone)
        elif kind == "AWAV":
            values = _from_air(values)
        elif kind not in ("FREQ", "WAVE", "ENER", "WAVN"):
            return None
        metres: NDArray[np.float64] = values.to_value(u.m, u.spectral())
    except Exception:  # invalid units, or axes bound to others: nothing is known then
        return None
    return metres


def polarizations(wcs: WCS, lengths: Sequence[int]) -> tuple[int, list[str]] | None:
    """Return the polarization axis (0 is NAXIS1) and the states of its planes, if any.

    The states are ObsCore's words; "" for a number that is not a state.
    """
    kinds = [str(kind).strip().upper() for kind in wcs.wcs.ctype]
    if "STOKES" not in kinds or kinds.index("STOKES") >= len(lengths):
        return None
    number = kinds.index("STOKES")
    if lengths[number] > MOST_STATES:
        return None
    try:
        values = wcs.sub([number + 1]).all_pix2world(list(range(lengths[number])), 0)[0]
    except Exception:  # an axis bound to others
        return None
    return number, [
        STOKES.get(round(value), "") if math.isfinite(value) else "" for value in values.tolist()
    ]


def _from_air(values: Any) -> Any:
    """Return wavelengths in vacuum from those in air of 15 degrees: Edlen 1953, as in WCSLIB.

    FITS paper III, eq. 65, is for 0 degrees; tables of lines and spectrographs use this one.
    """
    import astropy.units as u

    squares = values.to_value(u.um) ** -2
    index = 1 + 6.4328e-5 + 2.94981e-2 / (146 - squares) + 2.554e-4 / (41 - squares)
    return values * index


def _from_velocity(values: Any, kind: str, wcs: WCS) -> Any:
    import astropy.units as u

    if wcs.wcs.restfrq > 0:
        rest = wcs.wcs.restfrq * u.Hz
    elif wcs.wcs.restwav > 0:
        rest = wcs.wcs.restwav * u.m
    else:
        raise ValueError("velocities without a rest frequency or wavelength")
    if kind == "VRAD":
        return values.to(u.m, u.doppler_radio(rest))
    if kind == "VOPT":
        return values.to(u.m, u.doppler_optical(rest))
    return (1 + values.to_value(u.one)) * rest.to(u.m, u.spectral())
