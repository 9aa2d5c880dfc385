"""The axes of a cube: selection of planes by wavelength, time and polarization."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from swathe.datasets.header_metadata import SCALES, polarizations, wavelengths
from swathe.portal.vo.errors import usage

if TYPE_CHECKING:
    from astropy.wcs import WCS
    from numpy.typing import NDArray

    from swathe.portal.vo.parameters import Interval

LONGEST_AXIS = 100_000
"""Maximum number of planes, as the ends of each are in memory."""
Span = tuple[int, int]


class Axis:
    """An axis, with the start and end of each plane along it.

    Attributes:
        number: Number of the axis; 0 is NAXIS1.
        low: Lower end of each plane, metres or MJD in UTC.
        high: Upper end of each plane, in the same unit; not less than `low`.
    """

    def __init__(self, number: int, edges: NDArray[np.float64]) -> None:
        """Set the values at the edges of planes: one more than there are planes."""
        self.number = number
        self.low, self.high = np.minimum(edges[:-1], edges[1:]), np.maximum(edges[:-1], edges[1:])

    @property
    def ends(self) -> Interval:
        """Return the smallest and the largest value."""
        return float(self.low.min()), float(self.high.max())

    def planes(self, values: Interval) -> Span | None:
        """Return the planes that overlap an interval, `[first, last)`; None if none does."""
        low, high = values
        overlaps = (self.low < high) & (self.high > low)
        if low == high:
            overlaps = (self.low <= high) & (self.high >= low)
        (at,) = np.nonzero(overlaps)
        return (int(at[0]), int(at[-1]) + 1) if len(at) else None


class Stokes:
    """An axis of polarization.

    Attributes:
        number: Number of the axis; 0 is NAXIS1.
        states: States of its planes, in the words of ObsCore; "" if a number is not a state.
    """

    def __init__(self, number: int, states: list[str]) -> None:
        self.number, self.states = number, states

    def planes(self, values: frozenset[str]) -> Span | None:
        """Return the planes from the first to the last of these states; None if none exists."""
        at = [plane for plane, state in enumerate(self.states) if state in values]
        return (at[0], at[-1] + 1) if at else None


def spectral_axis(wcs: WCS, lengths: tuple[int, ...]) -> Axis | None:
    """Return the axis of wavelengths, or None; `lengths` are NAXIS1, NAXIS2, ..."""
    number = wcs.wcs.spec
    if not 0 <= number < len(lengths):
        return None
    metres = wavelengths(wcs, _edges(lengths[number]).tolist())
    if metres is None or not np.isfinite(metres).all():
        return None
    return Axis(number, metres)


def time_axis(wcs: WCS, lengths: tuple[int, ...]) -> Axis | None:
    """Return the time axis; None if there is none, or its unit or scale is unknown."""
    import astropy.units as u
    from astropy.time import Time

    kinds = [str(kind).strip().upper() for kind in wcs.wcs.ctype]
    number = next(
        (at for at, kind in enumerate(kinds) if kind[:4] == "TIME" or kind in SCALES), None
    )
    if number is None or number >= len(lengths):
        return None
    scale_name = kinds[number] if kinds[number] in SCALES else str(wcs.wcs.timesys or "UTC").upper()
    scale = SCALES.get(scale_name.strip())
    try:
        alone = wcs.sub([number + 1])
        unit = u.Unit(str(alone.wcs.cunit[0]) or str(wcs.wcs.timeunit) or "s")
        days = (alone.all_pix2world(_edges(lengths[number]), 0)[0] * unit).to_value(u.day)
        start = [value if math.isfinite(value) else 0.0 for value in wcs.wcs.mjdref]
        if scale is None:
            return None
        mjd = Time(np.full(len(days), start[0]), start[1] + days, format="mjd", scale=scale).utc.mjd
    except Exception:  # invalid units or missing tables: the axis is unknown
        return None
    return Axis(number, mjd) if np.isfinite(mjd).all() else None


def stokes_axis(wcs: WCS, lengths: tuple[int, ...]) -> Stokes | None:
    """Return the axis of polarization, or None."""
    states = polarizations(wcs, lengths)
    return None if states is None else Stokes(*states)


def _edges(length: int) -> NDArray[np.float64]:
    if length > LONGEST_AXIS:
        raise usage(
            f"an axis: expected at most {LONGEST_AXIS} planes to select from, found {length}"
        )
    edges: NDArray[np.float64] = np.linspace(-0.5, length - 0.5, length + 1)
    return edges
