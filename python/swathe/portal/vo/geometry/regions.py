"""Regions of the sky: circles, ranges and polygons, in ICRS.

Each has an outline as curves, and a test for positions inside. Positions are unit vectors of shape
`(n, 3)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from swathe.core.errors import RegionError
from swathe.datasets.spherical import BEHIND, angle, directions, flat, middle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ON_EDGE = 1e-12
"""Tolerance for rounding of a position on an outline, radians."""
LARGEST_POLYGON = math.radians(85)
"""Maximum radius of the bounding circle of a polygon, as great circles do not bound larger ones."""
MOST_PLACES = 16_384
"""Maximum number of points on all curves of a region."""


@dataclass(frozen=True)
class BoundaryCurve:
    """A closed curve.

    Attributes:
        places: Points along the curve, closed from the last to the first.
        corners: Indices of the points where the curve is not smooth.
    """

    places: NDArray[np.float64]
    corners: frozenset[int]


class SkyRegion(Protocol):
    """A part of the sky."""

    @property
    def centre(self) -> NDArray[np.float64]:
        """Unit vector of the centre."""

    @property
    def radius(self) -> float:
        """Radius of the bounding circle around the centre, radians."""

    @property
    def text(self) -> str:
        """The region as text, as a client writes it."""

    def curves(self, step: float) -> list[BoundaryCurve]:
        """Return the outline, with points about `step` radians apart."""

    def holds(self, places: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which positions are inside; NaN is outside."""


class Circle:
    """A circle: all positions within a radius."""

    def __init__(self, ra_deg: float, dec_deg: float, radius_deg: float) -> None:
        """Set centre and radius, degrees."""
        self.ra_deg, self.dec_deg, self.radius_deg = ra_deg, dec_deg, radius_deg
        self.radius = math.radians(radius_deg)
        ra, dec = math.radians(ra_deg), math.radians(dec_deg)
        x, y = math.cos(ra), math.sin(ra)
        up, across = math.sin(dec), math.cos(dec)
        self.centre = np.array([across * x, across * y, up])
        self._east = np.array([-y, x, 0.0])
        self._north = np.array([-up * x, -up * y, across])

    @property
    def text(self) -> str:
        """The region as text, as a client writes it."""
        return f"CIRCLE {self.ra_deg:.10g} {self.dec_deg:.10g} {self.radius_deg:.10g}"

    def curves(self, step: float) -> list[BoundaryCurve]:
        """Return the outline as one curve."""
        count = 64
        while count < MOST_PLACES and 2 * math.pi * self.radius > count * step:
            count *= 2
        across = math.sin(self.radius)
        frame = np.array([across * self._east, across * self._north])
        return [
            BoundaryCurve(_turn(count) @ frame + math.cos(self.radius) * self.centre, frozenset())
        ]

    def holds(self, places: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which positions are inside."""
        return angle(places, self.centre) <= self.radius + ON_EDGE


@lru_cache(maxsize=16)
def _turn(count: int) -> NDArray[np.float64]:
    """Return cosine and sine around a full circle, shape `(count, 2)`."""
    around = np.linspace(0, 2 * math.pi, count, endpoint=False)
    return np.column_stack([np.cos(around), np.sin(around)])


class Polygon:
    """The smaller of the two sides of a polygon of great circles."""

    def __init__(self, degrees: Sequence[float]) -> None:
        """Set the corners, `ra, dec, ra, dec, ...`, degrees.

        Raises:
            RegionError: If the polygon is too large, or has less than three corners.
        """
        angles = np.array(degrees, float)
        corners = directions(angles[::2], angles[1::2])
        # Drop repeated corners, as the first is often repeated at the end.
        corners = corners[angle(corners, np.roll(corners, 1, axis=0)) > ON_EDGE]
        if len(corners) < 3:
            raise RegionError("a polygon: expected at least three different corners, found less")
        self.corners = corners
        self.degrees = list(degrees)
        self.centre, self.radius = middle(corners)
        if self.radius > LARGEST_POLYGON:
            raise RegionError(
                "a polygon: expected a size within a circle of radius 85 degrees, found more"
            )

    @property
    def text(self) -> str:
        """The region as text, as a client writes it."""
        return "POLYGON " + " ".join(f"{value:.10g}" for value in self.degrees)

    def curves(self, step: float) -> list[BoundaryCurve]:
        """Return the outline as one curve."""
        ends = np.roll(self.corners, -1, axis=0)
        lengths = angle(self.corners, ends)
        most = max(4, MOST_PLACES // len(lengths))
        counts = np.clip(np.ceil(lengths / step), 4, most).astype(int)
        sides = [
            start + np.linspace(0, 1, count, endpoint=False)[:, None] * (end - start)
            for start, end, count in zip(self.corners, ends, counts, strict=True)
        ]
        places = np.concatenate(sides)
        places /= np.linalg.norm(places, axis=1, keepdims=True)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        return [BoundaryCurve(places, frozenset(first.tolist()))]

    def holds(self, places: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which positions are inside: a ray from them crosses the outline an odd time."""
        corners = flat(self.corners, self.centre)
        x, y = flat(places, self.centre).T
        odd = np.zeros(len(places), bool)
        with np.errstate(invalid="ignore", divide="ignore"):
            for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
                if y1 != y2:
                    crosses = (y1 > y) != (y2 > y)
                    odd ^= crosses & (x < x1 + (y - y1) * (x2 - x1) / (y2 - y1))
        return odd & (places @ self.centre > BEHIND)


class Range:
    """A range of right ascension, from the first eastwards to the second, and of declination."""

    def __init__(self, ra1_deg: float, ra2_deg: float, dec1_deg: float, dec2_deg: float) -> None:
        """Set the limits, degrees; `dec1_deg` is at most `dec2_deg`."""
        self.degrees = ra1_deg, ra2_deg, dec1_deg, dec2_deg
        self.width_deg = ra2_deg - ra1_deg if ra1_deg <= ra2_deg else ra2_deg + 360 - ra1_deg
        ra = np.array([ra1_deg, ra1_deg + self.width_deg / 2, ra1_deg + self.width_deg])
        dec = np.array([dec1_deg, (dec1_deg + dec2_deg) / 2, dec2_deg])
        across, up = np.meshgrid(ra, dec)
        if self.width_deg >= 180:
            # Use the circle around the pole that contains the farther edge.
            north = dec1_deg + dec2_deg >= 0
            self.centre = np.array([0.0, 0.0, 1.0 if north else -1.0])
            self.radius = math.radians(90 - dec1_deg if north else 90 + dec2_deg)
            return
        # The farthest position of an edge is one of its ends or its middle.
        self.centre = directions(ra[1:2], dec[1:2])[0]
        points = directions(across.ravel(), up.ravel())
        equator = dec1_deg <= 0 <= dec2_deg
        if equator:
            points = np.concatenate([points, directions(ra, np.zeros(3))])
        self.radius = float(angle(points, self.centre).max())

    @property
    def text(self) -> str:
        """The region as text, as a client writes it."""
        return "RANGE " + " ".join(f"{value:.10g}" for value in self.degrees)

    def curves(self, step: float) -> list[BoundaryCurve]:
        """Return one curve, or two circles of declination if the range covers all of RA."""
        ra1, _, dec1, dec2 = self.degrees
        ra2 = ra1 + self.width_deg
        if self.width_deg == 360:
            return [
                BoundaryCurve(
                    directions(*_line((0.0, dec), (360.0, dec), step, MOST_PLACES // 2)),
                    frozenset(),
                )
                for dec in (dec1, dec2)
                if abs(dec) < 90
            ]
        ends = [(ra1, dec1), (ra2, dec1), (ra2, dec2), (ra1, dec2)]
        sides = [
            directions(*_line(start, end, step, MOST_PLACES // 4))
            for start, end in zip(ends, [*ends[1:], ends[0]], strict=True)
        ]
        first = np.cumsum([0, *map(len, sides[:-1])])
        return [BoundaryCurve(np.concatenate(sides), frozenset(first.tolist()))]

    def holds(self, places: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which positions are inside."""
        ra1, _, dec1, dec2 = self.degrees
        x, y, z = places.T
        slack = math.degrees(ON_EDGE)
        with np.errstate(invalid="ignore"):
            dec = np.degrees(np.arctan2(z, np.hypot(x, y)))
            east = (np.degrees(np.arctan2(y, x)) - ra1 + slack) % 360.0
            inside: NDArray[np.bool_] = (
                (dec >= dec1 - slack) & (dec <= dec2 + slack) & (east <= self.width_deg + 2 * slack)
            )
        return inside


def _line(
    start: tuple[float, float], end: tuple[float, float], step: float, most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return right ascensions and declinations along an edge, without its end."""
    apart = math.hypot(end[0] - start[0], end[1] - start[1])
    count = int(min(max(8, math.ceil(math.radians(apart) / step)), most))
    along = np.linspace(0, 1, count, endpoint=False)
    return start[0] + along * (end[0] - start[0]), start[1] + along * (end[1] - start[1])
