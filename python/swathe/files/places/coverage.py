"""What an array covers: the smallest box of longitude and latitude with all of its places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from swathe.files.places.bounds import Bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINS = 360
"""Parts of the circle, of a degree each, whose least and largest longitudes are noted."""
LARGEST_STEP = 90.0
"""Degrees between the longitudes of neighbours in a grid around the Earth, at most."""


def _ends(count: int) -> NDArray[np.float64]:
    """Return the least and the largest number of each of some sets, which are empty."""
    ends = np.empty((2, count))
    ends[0], ends[1] = np.inf, -np.inf
    return ends


@dataclass(frozen=True)
class Coverage(Bounds):
    """The whole Earth, as bounds that note the places compared with them, and have none."""

    west: float = -180.0
    south: float = -90.0
    east: float = 180.0
    north: float = 90.0
    _latitudes: NDArray[np.float64] = field(default_factory=lambda: _ends(1), init=False)
    _longitudes: NDArray[np.float64] = field(default_factory=lambda: _ends(BINS), init=False)

    def has_latitude(self, latitude: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Note latitudes; those beyond the poles are no place."""
        places = latitude[np.abs(latitude) <= 90]
        if places.size:
            self._latitudes[0] = min(self._latitudes[0, 0], places.min())
            self._latitudes[1] = max(self._latitudes[1, 0], places.max())
        return np.zeros(latitude.shape, bool)

    def has_longitude(self, longitude: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Note longitudes of any turn from -360 to 720; others are no place."""
        places = longitude[(longitude >= -360) & (longitude <= 720)] % 360
        bins = np.minimum(places.astype(np.intp), BINS - 1)
        np.minimum.at(self._longitudes[0], bins, places)
        np.maximum.at(self._longitudes[1], bins, places)
        return np.zeros(longitude.shape, bool)

    def has(
        self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Note places."""
        is_place = (np.abs(latitude) <= 90) & (longitude >= -360) & (longitude <= 720)
        self.has_latitude(latitude[is_place])
        self.has_longitude(longitude[is_place])
        return np.zeros(latitude.shape, bool)

    def bounds(self) -> Bounds | None:
        """Return the smallest bounds with all places that were noted; `None` without any.

        The longitude begins after the largest part of the circle without a place. If none is much
        larger than the others, the places go around the Earth.
        """
        south, north = self._latitudes[:, 0].tolist()
        least, largest = self._longitudes[:, np.isfinite(self._longitudes[0])]
        if south > north or not least.size:
            return None
        steps = np.roll(least, -1) - largest
        steps[-1] += 360
        first = (int(np.argmax(steps)) + 1) % len(steps)
        step, *rest = np.sort(steps)[::-1].tolist()
        if rest and step <= min(1.5 * rest[0], LARGEST_STEP):
            return Bounds(-180, south, 180, north)
        west, east = _from_greenwich(least[first]), _from_greenwich(largest[first - 1])
        return Bounds(west, south, east, north)

    def __str__(self) -> str:
        bounds = self.bounds()
        if bounds is None:
            return "none of its pixels has a place"
        return (
            f"the centres of its pixels are within west {bounds.west:g}, south {bounds.south:g}, "
            f"east {bounds.east:g}, north {bounds.north:g}"
        )


def _from_greenwich(longitude: float) -> float:
    """Return a longitude from -180 to 180."""
    return float(longitude - 360 if longitude > 180 else longitude)
