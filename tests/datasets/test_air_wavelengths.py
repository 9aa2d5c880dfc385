"""Wavelengths in air are converted to those in vacuum."""

from __future__ import annotations

import pytest
from astropy.io import fits
from astropy.wcs import WCS

from swathe.datasets.header_metadata import wavelengths


def test_wavelengths_in_air_are_those_in_vacuum() -> None:
    """The line of sodium D2: 588.995 nm in air, 589.158 nm in vacuum (NIST)."""
    cards = {"CTYPE1": "AWAV", "CRVAL1": 588.995, "CDELT1": 1.0, "CRPIX1": 1.0, "CUNIT1": "nm"}
    metres = wavelengths(WCS(fits.Header({"NAXIS": 1, "NAXIS1": 3, **cards})), [0.0])
    assert metres is not None
    assert metres[0] * 1e9 == pytest.approx(589.158, abs=1e-3)
