"""Boxes of longitude and latitude, in degrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swathe.core.errors import RegionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TURNS = (-720.0, -360.0, 0.0, 360.0, 720.0)
"""What is added to longitudes from -360 to 720 to compare them with bounds from -180 to 360."""


@dataclass(frozen=True)
class Bounds:
    """A box of longitude and latitude in degrees; its edges belong to it.

    If `west` is greater than `east`, the box crosses the dateline, or the meridian where
    longitudes begin again.
    """

    west: float
    south: float
    east: float
    north: float

    @classmethod
    def of(cls, values: Any) -> Bounds:
        """Check `(west, south, east, north)`.

        Longitudes are from -180 to 360, latitudes from -90 to 90.

        Raises:
            RegionError: If they are not four such numbers, or south is greater than north.
        """
        form = "bounds: expected (west, south, east, north) in degrees"
        try:
            west, south, east, north = (float(each) for each in values)
        except (TypeError, ValueError):
            raise RegionError(f"{form}, found {values!r:.100}") from None
        for name, value, least, most in (
            ("west", west, -180, 360),
            ("east", east, -180, 360),
            ("south", south, -90, 90),
            ("north", north, -90, 90),
        ):
            if not (math.isfinite(value) and least <= value <= most):
                raise RegionError(f"bounds: expected {name} from {least} to {most}, found {value}")
        if south > north:
            raise RegionError(
                f"{form} with south at most north, found south {south}, north {north}"
            )
        return cls(west, south, east, north)

    def __str__(self) -> str:
        return f"({self.west:g}, {self.south:g}, {self.east:g}, {self.north:g})"

    def has_latitude(self, latitude: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return a mask of the latitudes in the box; NaN is outside."""
        return (latitude >= self.south) & (latitude <= self.north)

    def has_longitude(self, longitude: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return a mask of the longitudes in the box, of any turn from -360 to 720.

        NaN and other numbers are outside.
        """
        import numpy as np

        crosses = self.west > self.east
        mask = np.zeros(longitude.shape, bool)
        for turn in TURNS:
            degrees = longitude + turn if turn else longitude
            if crosses:
                mask |= (degrees > self.east) & (degrees < self.west)
            else:
                mask |= (degrees >= self.west) & (degrees <= self.east)
        if crosses:
            mask = ~mask
        return mask & (longitude >= -360) & (longitude <= 720)

    def has(
        self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Return a mask of the places in the box."""
        mask = self.has_latitude(latitude)
        mask[mask] = self.has_longitude(longitude[mask])
        return mask
