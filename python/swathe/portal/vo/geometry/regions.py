"""Regions of the sky: circles, ranges and polygons, in ICRS.

Each tells its outline as curves, and which places it holds. Places are unit vectors `(n, 3)`.
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
"""Radians: what rounding may put between a place and an outline it is on."""
LARGEST_POLYGON = math.radians(85)
"""Radius of the circle that must hold a polygon: two great circles would bound all beyond."""
MOST_PLACES = 16_384
"""Of all curves of a region."""


@dataclass(frozen=True)
class Curve:
    """A closed curve.

    Attributes:
        places: along it; from the last it goes to the first.
        corners: numbers of the places where it is not smooth.
    """

    places: NDArray[np.float64]
    corners: frozenset[int]


class Region(Protocol):
    """A part of the sky."""

    @property
    def centre(self) -> NDArray[np.float64]:
        """A unit vector."""

    @property
    def radius(self) -> float:
        """With the centre a circle that holds it, radians."""

    @property
    def text(self) -> str:
        """As a client would write it."""

    def curves(self, step: float) -> list[Curve]:
        """Give its outline, with places about `step` radians apart."""

    def holds(self, places: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which places lie in it; of those that are none (NaN), none does."""


class Circle:
    """All within a radius around a place."""

    def __init__(self, ra_deg: float, dec_deg: float, radius_deg: float) -> None:
        """Take degrees."""
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
        """As a client would write it."""
        return f"CIRCLE {self.ra_deg:.10g} {self.dec_deg:.10g} {self.radius_deg:.10g}"

    def curves(self, step: float) -> list[Curve]:
        """Give it as one curve."""
        count = 64
        while count < MOST_PLACES and 2 * math.pi * self.radius > count * step:
            count *= 2
        across = math.sin(self.radius)
        frame = np.array([across * self._east, across * self._north])
        return [Curve(_turn(count) @ frame + math.cos(self.radius) * self.centre, frozenset())]

    def holds(self, places: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which places lie in it."""
        return angle(places, self.centre) <= self.radius + ON_EDGE


@lru_cache(maxsize=16)
def _turn(count: int) -> NDArray[np.float64]:
    """Give cosine and sine all around, `(count, 2)`."""
    around = np.linspace(0, 2 * math.pi, count, endpoint=False)
    return np.column_stack([np.cos(around), np.sin(around)])


class Polygon:
    """The smaller of the two sides of a polygon of great circles."""

    def __init__(self, degrees: Sequence[float]) -> None:
        """Take `ra, dec, ra, dec, ...`.

        Raises:
            RegionError: where it is larger than a polygon may be, or has less than three corners.
        """
        given = np.array(degrees, float)
        corners = directions(given[::2], given[1::2])
        # A corner given twice, as the first often is again at the end, makes no side.
        corners = corners[angle(corners, np.roll(corners, 1, axis=0)) > ON_EDGE]
        if len(corners) < 3:
            raise RegionError("a polygon has at least three corners in different places")
        self.corners = corners
        self.degrees = list(degrees)
        self.centre, self.radius = middle(corners)
        if self.radius > LARGEST_POLYGON:
            raise RegionError("a polygon must fit into a circle of 85 degrees")

    @property
    def text(self) -> str:
        """As a client would write it."""
        return "POLYGON " + " ".join(f"{value:.10g}" for value in self.degrees)

    def curves(self, step: float) -> list[Curve]:
        """Give it as one curve."""
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
        return [Curve(places, frozenset(first.tolist()))]

    def holds(self, places: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which places lie in it: on a flat map, a ray to the right crosses it oddly."""
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
    """Between two right ascensions, from the first eastwards to the second, and declinations."""

    def __init__(self, ra1_deg: float, ra2_deg: float, dec1_deg: float, dec2_deg: float) -> None:
        """Take degrees; `dec1_deg` is not above `dec2_deg`."""
        self.degrees = ra1_deg, ra2_deg, dec1_deg, dec2_deg
        self.width_deg = ra2_deg - ra1_deg if ra1_deg <= ra2_deg else ra2_deg + 360 - ra1_deg
        ra = np.array([ra1_deg, ra1_deg + self.width_deg / 2, ra1_deg + self.width_deg])
        dec = np.array([dec1_deg, (dec1_deg + dec2_deg) / 2, dec2_deg])
        across, up = np.meshgrid(ra, dec)
        if self.width_deg >= 180:
            # Around a pole; the circle around it that reaches the farther of its edges.
            north = dec1_deg + dec2_deg >= 0
            self.centre = np.array([0.0, 0.0, 1.0 if north else -1.0])
            self.radius = math.radians(90 - dec1_deg if north else 90 + dec2_deg)
            return
        # Along an edge the farthest place is an end or its middle.
        self.centre = directions(ra[1:2], dec[1:2])[0]
        seen = directions(across.ravel(), up.ravel())
        equator = dec1_deg <= 0 <= dec2_deg
        if equator:
            seen = np.concatenate([seen, directions(ra, np.zeros(3))])
        self.radius = float(angle(seen, self.centre).max())

    @property
    def text(self) -> str:
        """As a client would write it."""
        return "RANGE " + " ".join(f"{value:.10g}" for value in self.degrees)

    def curves(self, step: float) -> list[Curve]:
        """Give one curve, or where it goes all around, one for each declination."""
        ra1, _, dec1, dec2 = self.degrees
        ra2 = ra1 + self.width_deg
        if self.width_deg == 360:
            return [
                Curve(
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
        return [Curve(np.concatenate(sides), frozenset(first.tolist()))]

    def holds(self, places: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which places lie in it."""
        ra1, _, dec1, dec2 = self.degrees
        x, y, z = places.T
        slack = math.degrees(ON_EDGE)
        with np.errstate(invalid="ignore"):
            dec = np.degrees(np.arctan2(z, np.hypot(x, y)))
            east = (np.degrees(np.arctan2(y, x)) - ra1 + slack) % 360.0
            found: NDArray[np.bool_] = (
                (dec >= dec1 - slack) & (dec <= dec2 + slack) & (east <= self.width_deg + 2 * slack)
            )
        return found


def _line(
    start: tuple[float, float], end: tuple[float, float], step: float, most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give right ascensions and declinations along an edge, without its end."""
    apart = math.hypot(end[0] - start[0], end[1] - start[1])
    count = int(min(max(8, math.ceil(math.radians(apart) / step)), most))
    along = np.linspace(0, 1, count, endpoint=False)
    return start[0] + along * (end[0] - start[0]), start[1] + along * (end[1] - start[1])
