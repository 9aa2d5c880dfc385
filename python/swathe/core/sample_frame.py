"""Draw a synthetic SDSS-like frame: its stars, its pixels and its header, from a seed."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from astropy.io import fits
    from numpy.typing import NDArray

Card = tuple[str, str | int | float, str]
"""Keyword, value and comment of a card."""
RECIPE = 2
"""Version of the recipe; raise it when the same seed gives different bytes."""

NAXIS1, NAXIS2 = 2048, 1489
PIXEL_ARCSEC = 0.396
FWHM_ARCSEC = 1.2
SOFTBIAS = 1000
GAIN = 3.9  # electrons per count
DARK_VARIANCE = 2.2  # counts squared: read noise and dark current
SATURATION = 65535

STARS = 300
FAINTEST_PEAK = 30.0  # counts above the sky, about five sigma
BRIGHTEST_PEAK = 2e6  # far beyond saturation; bounds the time to draw a star
FLUX_SLOPE = 0.6  # N(brighter than f) goes as f ** -slope; two or three stars in 300 saturate

# A Moffat profile with beta = 3 needs only products and quotients, which IEEE 754 rounds
# alike on every machine, and its wings let a bright star fade softly.
MOFFAT_ALPHA_PX = FWHM_ARCSEC / PIXEL_ARCSEC / (2 * (2 ** (1 / 3) - 1) ** 0.5)

CUTOUT_PX = 100
TARGET_PEAKS = (150.0, 50000.0)  # counts above the sky: bright, yet not saturated
LONELY_PX = 30.0  # no star with over 2 % of a target's flux is closer than this

# Stripe 82 lies along the equator. SDSS frames of 1489 rows overlap the next by 128.
STRIPE_RA_DEG, STRIPE_DEC_DEG = 10.0, -1.05
STEP_DEG = (NAXIS2 - 128) * PIXEL_ARCSEC / 3600
FRAMES_PER_TURN = int(360 / STEP_DEG)
STRIP_DEC_DEG = 0.21  # between two turns of the sky
TILT_DEG = 2.0  # of the rows against the meridian
EXPTIME_S = 53.907456  # a star's drift over the 2048 rows of an SDSS detector
STEP_S = (NAXIS2 - 128) * EXPTIME_S / 2048
FIRST_TAI_S = 51813 * 86400  # 2000-09-26, in seconds since MJD 0


@dataclass(frozen=True)
class Stars:
    """Stars of one frame, brightest first; all arrays have shape (STARS,).

    Attributes:
        x: centres in zero-based pixels along NAXIS1, rounded to 0.001 pixel. The profile is drawn
            at the rounded position, so these are exact and not a measurement.
        y: centres along NAXIS2, likewise.
        peak: height of the profile above the sky at its centre, in counts, before saturation.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    peak: NDArray[np.float64]


def stars(seed: int, frame: int) -> Stars:
    """Return the stars of a frame (numbered from 1)."""
    import numpy as np

    rng = _generator(seed, frame, "stars")
    # Rounded to the three decimals of targets.csv, so that both agree.
    x = np.round(rng.uniform(0, NAXIS1 - 1, STARS), 3)
    y = np.round(rng.uniform(0, NAXIS2 - 1, STARS), 3)
    peak = FAINTEST_PEAK * (1 - rng.random(STARS)) ** (-1 / FLUX_SLOPE)
    peak = np.minimum(peak, BRIGHTEST_PEAK)
    order = np.argsort(-peak)
    return Stars(x[order], y[order], peak[order])


def draw(seed: int, frame: int) -> NDArray[np.uint16]:
    """Draw the pixels of a frame (numbered from 1).

    Returns:
        Counts as uint16, shape (NAXIS2, NAXIS1): soft bias, sky, stars and noise, clipped at
        SATURATION.
    """
    import numpy as np

    rng = _generator(seed, frame, "noise")
    light = np.full((NAXIS2, NAXIS1), rng.uniform(95, 110), dtype=np.float32)
    catalogue = stars(seed, frame)
    for x, y, peak in zip(catalogue.x, catalogue.y, catalogue.peak, strict=True):
        _add_star(light, float(x), float(y), float(peak))
    noise = rng.standard_normal(light.shape, dtype=np.float32)
    noise *= np.sqrt(light / np.float32(GAIN) + np.float32(DARK_VARIANCE))
    light += noise
    light += np.float32(SOFTBIAS)
    np.rint(light, out=light)
    return np.clip(light, 0, SATURATION, out=light).astype(np.uint16)


def header(seed: int, frame: int) -> fits.Header:
    """Return the header of a frame (numbered from 1), as in SDSS, with a TAN WCS."""
    from astropy.io import fits

    result = fits.Header([*_observation_cards(seed, frame), *_sky_cards(frame)])
    result["VERSION"] = ("v5_6_3", "Version of the pipeline imitated")
    result["COMMENT"] = "Made by swathe.core.sample_survey in the likeness of an SDSS fpC frame."
    result["COMMENT"] = "Stars and noise are drawn from a seed; the sky position is fictitious."
    result["HISTORY"] = "bias, sky, Moffat stars (beta = 3), noise, clipping"
    return result


def _observation_cards(seed: int, frame: int) -> list[Card]:
    """Return the cards of the telescope, the time and the detector."""
    from datetime import datetime, timedelta

    turn, step = divmod(frame - 1, FRAMES_PER_TURN)
    tai_s = FIRST_TAI_S + (frame - 1) * STEP_S
    began = datetime(1858, 11, 17) + timedelta(seconds=tai_s)
    run, camcol, field = 1000 + seed % 9000, 1 + turn % 6, 10 + step
    return [
        ("TELESCOP", "2.5m", "made up after the Sloan telescope"),
        ("ORIGIN", "Swathe", "sample survey, not an observation"),
        ("FLAVOR", "science", "Flavor of this run"),
        ("OBJECT", "82 N", "e.g., 'stripe 50.6 degrees, north strip'"),
        ("OBSERVER", "swathe", "Observer"),
        ("STRIPE", 82, "Stripe index number"),
        ("STRIP", "N", "Strip in the stripe being tracked"),
        ("RUN", run, "Run number"),
        ("CAMCOL", camcol, "Column in the imaging camera"),
        ("CAMROW", 1, "Row in the imaging camera"),
        ("CCDLOC", 10 + camcol, "Survey location of CCD (e.g., rowCol)"),
        ("FILTER", "r", "Filter used"),
        ("FRAME", frame, "Frame sequence number within the run"),
        ("FIELD", field, "Field sequence number within the turn"),
        ("SEED", seed, "Seed of the sample"),
        ("RECIPE", RECIPE, "Version of the recipe of the sample"),
        ("TIMESYS", "TAI", "Time system"),
        ("DATE-OBS", began.isoformat(timespec="milliseconds"), "TAI date and time at row 0"),
        # Without this card astropy would add it to the WCS and warn.
        ("MJD-OBS", round(tai_s / 86400, 8), "[d] TAI at row 0"),
        ("TAIHMS", f"{began:%H:%M:%S.%f}"[:11], "TAI time at row 0 (HH:MM:SS.ss)"),
        ("TAI", round(tai_s, 3), "[s] since MJD 0, at row 0"),
        ("EXPTIME", EXPTIME_S, "[s] Exposure time"),
        ("DRIFTSCA", 1, "Taken in drift scan mode"),
        ("BUNIT", "DNs", "Unit of the pixels"),
        ("SOFTBIAS", SOFTBIAS, "Software bias added to all DN"),
        ("GAIN", GAIN, "Electrons per DN"),
        ("DARKVAR", DARK_VARIANCE, "[DN**2] Dark current and read noise"),
        ("SATURATE", SATURATION, "DN at which a pixel is full"),
        ("FWHM", FWHM_ARCSEC, "[arcsec] Full width at half maximum of a star"),
        ("BADLINES", 0, "Number of bad lines in frame"),
    ]


def _sky_cards(frame: int) -> list[Card]:
    """Return the cards of the WCS.

    The scan runs along NAXIS2 with right ascension, so the CD matrix is a quarter turn, a
    flip and the small TILT_DEG; CRPIX is the centre of the frame.
    """
    import math

    turn, step = divmod(frame - 1, FRAMES_PER_TURN)
    ra_deg = (STRIPE_RA_DEG + step * STEP_DEG) % 360
    dec_deg = STRIPE_DEC_DEG + turn * STRIP_DEC_DEG
    along = PIXEL_ARCSEC / 3600 * math.cos(math.radians(TILT_DEG))
    across = PIXEL_ARCSEC / 3600 * math.sin(math.radians(TILT_DEG))
    return [
        ("RADESYS", "ICRS", "Celestial frame"),
        ("EQUINOX", 2000.0, "[yr] Equinox"),
        ("RA", round(ra_deg, 6), "[deg] of the frame's centre"),
        ("DEC", round(dec_deg, 6), "[deg] of the frame's centre"),
        ("SPA", 90.0 + TILT_DEG, "[deg] Scan position angle"),
        ("IPA", 82.5, "[deg] Instrument rotator position angle"),
        ("CTYPE1", "RA---TAN", "Gnomonic projection"),
        ("CTYPE2", "DEC--TAN", "Gnomonic projection"),
        ("CUNIT1", "deg", "Unit of CRVAL1"),
        ("CUNIT2", "deg", "Unit of CRVAL2"),
        ("CRPIX1", (NAXIS1 + 1) / 2, "Column of the reference point, from 1"),
        ("CRPIX2", (NAXIS2 + 1) / 2, "Row of the reference point, from 1"),
        ("CRVAL1", round(ra_deg, 9), "[deg] RA of the reference point"),
        ("CRVAL2", round(dec_deg, 9), "[deg] Dec of the reference point"),
        ("CD1_1", round(across, 15), "[deg] RA per column"),
        ("CD1_2", round(along, 15), "[deg] RA per row"),
        ("CD2_1", round(along, 15), "[deg] Dec per column"),
        ("CD2_2", round(-across, 15), "[deg] Dec per row"),
    ]


def _generator(seed: int, frame: int, part: str) -> np.random.Generator:
    """Return a random generator for one part of one frame, independent of all others."""
    import numpy as np

    key = (RECIPE, frame, ("stars", "noise").index(part))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def _add_star(light: NDArray[np.float32], x: float, y: float, peak: float) -> None:
    """Add a Moffat star to the image in place, out to the radius where it has 0.1 counts."""
    import numpy as np

    reach = int(MOFFAT_ALPHA_PX * (peak / 0.1) ** (1 / 6)) + 2
    left, low = max(0, round(x) - reach), max(0, round(y) - reach)
    stamp = light[low : round(y) + reach + 1, left : round(x) + reach + 1]
    dy = (np.arange(stamp.shape[0]) + (low - y)) / MOFFAT_ALPHA_PX
    dx = (np.arange(stamp.shape[1]) + (left - x)) / MOFFAT_ALPHA_PX
    base = 1 + (dy * dy)[:, None] + (dx * dx)[None, :]
    stamp += (peak / (base * base * base)).astype(np.float32)


def good_stars(seed: int, frame: int) -> list[tuple[float, float]]:
    """Return the centres (x, y) in pixels of the stars fit to be targets, brightest first.

    They are bright but not saturated, half a cutout from every edge, and alone: no
    neighbour pulls the centroid of their light.
    """
    import numpy as np

    catalogue = stars(seed, frame)
    margin = CUTOUT_PX // 2
    inside = (catalogue.x >= margin) & (catalogue.x <= NAXIS1 - 1 - margin)
    inside &= (catalogue.y >= margin) & (catalogue.y <= NAXIS2 - 1 - margin)
    bright = (catalogue.peak >= TARGET_PEAKS[0]) & (catalogue.peak <= TARGET_PEAKS[1])
    near = (
        np.hypot(catalogue.x[:, None] - catalogue.x, catalogue.y[:, None] - catalogue.y) < LONELY_PX
    )
    near &= catalogue.peak > 0.02 * catalogue.peak[:, None]
    alone = near.sum(axis=1) == 1  # itself
    rows = np.flatnonzero(inside & bright & alone)
    return [(float(catalogue.x[star]), float(catalogue.y[star])) for star in rows]


def fits_bytes(hdus: list[fits.PrimaryHDU | fits.CompImageHDU]) -> bytes:
    """Return the bytes of a FITS file with these HDUs."""
    from astropy.io import fits

    file = io.BytesIO()
    fits.HDUList(hdus).writeto(file)
    return file.getvalue()
