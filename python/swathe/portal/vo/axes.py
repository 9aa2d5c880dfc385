"""The axes of a cube: which planes show light of a band, of a time, of a polarization."""

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
"""Planes: the ends of each are kept in memory."""
Span = tuple[int, int]


class Axis:
    """An axis, and where each plane along it begins and ends.

    Attributes:
        number: 0 is NAXIS1.
        low: of each plane, metres or MJD in UTC.
        high: the same; not less than `low`.
    """

    def __init__(self, number: int, edges: NDArray[np.float64]) -> None:
        """Take the values where planes begin, and at the end where the last one ends."""
        self.number = number
        self.low, self.high = np.minimum(edges[:-1], edges[1:]), np.maximum(edges[:-1], edges[1:])

    @property
    def ends(self) -> Interval:
        """The least and the greatest value."""
        return float(self.low.min()), float(self.high.max())

    def planes(self, wanted: Interval) -> Span | None:
        """Give the planes that show any of an interval, `[first, last)`; none where none do."""
        low, high = wanted
        found = (self.low < high) & (self.high > low)
        if low == high:
            found = (self.low <= high) & (self.high >= low)
        (at,) = np.nonzero(found)
        return (int(at[0]), int(at[-1]) + 1) if len(at) else None


class Stokes:
    """An axis of polarization.

    Attributes:
        number: 0 is NAXIS1.
        states: of its planes, by the words of ObsCore; "" where a number is no state.
    """

    def __init__(self, number: int, states: list[str]) -> None:
        self.number, self.states = number, states

    def planes(self, wanted: frozenset[str]) -> Span | None:
        """Give the planes from the first to the last of these states; none where none is there."""
        at = [plane for plane, state in enumerate(self.states) if state in wanted]
        return (at[0], at[-1] + 1) if at else None


def spectral_axis(wcs: WCS, lengths: tuple[int, ...]) -> Axis | None:
    """Give the axis of wavelengths, if any; `lengths` are NAXIS1, NAXIS2, ..."""
    number = wcs.wcs.spec
    if not 0 <= number < len(lengths):
        return None
    metres = wavelengths(wcs, _edges(lengths[number]).tolist())
    if metres is None or not np.isfinite(metres).all():
        return None
    return Axis(number, metres)


def time_axis(wcs: WCS, lengths: tuple[int, ...]) -> Axis | None:
    """Give the axis of times; none where there is none, or what it counts is not known."""
    import astropy.units as u
    from astropy.time import Time

    kinds = [str(kind).strip().upper() for kind in wcs.wcs.ctype]
    number = next(
        (at for at, kind in enumerate(kinds) if kind[:4] == "TIME" or kind in SCALES), None
    )
    if number is None or number >= len(lengths):
        return None
    told = kinds[number] if kinds[number] in SCALES else str(wcs.wcs.timesys or "UTC").upper()
    scale = SCALES.get(told.strip())
    try:
        alone = wcs.sub([number + 1])
        unit = u.Unit(str(alone.wcs.cunit[0]) or str(wcs.wcs.timeunit) or "s")
        days = (alone.all_pix2world(_edges(lengths[number]), 0)[0] * unit).to_value(u.day)
        start = [value if math.isfinite(value) else 0.0 for value in wcs.wcs.mjdref]
        if scale is None:
            return None
        mjd = Time(np.full(len(days), start[0]), start[1] + days, format="mjd", scale=scale).utc.mjd
    except Exception:  # units that are none, tables that are not there: nothing is known then
        return None
    return Axis(number, mjd) if np.isfinite(mjd).all() else None


def stokes_axis(wcs: WCS, lengths: tuple[int, ...]) -> Stokes | None:
    """Give the axis of polarization; none where there is none."""
    found = polarizations(wcs, lengths)
    return None if found is None else Stokes(*found)


def _edges(length: int) -> NDArray[np.float64]:
    if length > LONGEST_AXIS:
        raise usage(f"an axis of {length} planes is too long to be selected from")
    edges: NDArray[np.float64] = np.linspace(-0.5, length - 0.5, length + 1)
    return edges
