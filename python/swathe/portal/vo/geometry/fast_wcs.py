"""Fast mapping from sky positions to pixels of one image and back.

`SkyMapping` uses astropy's coordinates, which takes milliseconds for any number of positions. Most
frames are rotated ICRS, so that one matrix is enough. Distortions are included.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from swathe.datasets.spherical import degrees, directions

if TYPE_CHECKING:
    from astropy.coordinates import BaseCoordinateFrame
    from numpy.typing import NDArray

    from swathe.core.sky import SkyMapping

Pixels = tuple["NDArray[np.float64]", "NDArray[np.float64]"]


class FastWcs:
    """The sky on one image. Positions are ICRS unit vectors, pixels are zero-based."""

    def __init__(self, sky: SkyMapping) -> None:
        """Set the general, slower mapping."""
        self._sky = sky
        self._wcs = sky.wcs
        self._turn = _turn(sky)
        # Whether a formula gives the pixels, without an iteration.
        self.quick = self._turn is not None and not self._wcs.has_distortion
        self._lng, self._lat = self._wcs.wcs.lng, self._wcs.wcs.lat
        # Radians per pixel.
        self.scale = float(np.radians(min(sky.scales)))

    def world_to_pixel(self, places: NDArray[np.float64]) -> Pixels:
        """Return the pixels of positions, perhaps outside the image; NaN if there is none."""
        if not self.quick or self._turn is None:
            from astropy.coordinates import SkyCoord

            lon, lat = degrees(places)
            return self._sky.world_to_pixel(SkyCoord(lon, lat, unit="deg", frame="icrs"))
        x, y, z = (self._turn @ places.T) if self._turn.size else places.T
        world = np.empty((len(places), 2))
        np.degrees(np.arctan2(y, x), world[:, self._lng])
        np.degrees(np.arctan2(z, np.hypot(x, y)), world[:, self._lat])
        result: NDArray[np.float64] = self._wcs.wcs.s2p(world, 0)["pixcrd"]
        return result[:, 0], result[:, 1]

    def pixel_to_vector(
        self, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the sky positions of pixels; NaN outside the sky."""
        if self._turn is None:
            return self._sky.pixel_to_vector(x, y)
        world = self._wcs.all_pix2world(np.column_stack([x, y]), 0)
        lat = world[:, self._lat]
        # Some projections return numbers for pixels outside the sky.
        lat[~(np.abs(lat) <= 90)] = np.nan
        world_directions = directions(world[:, self._lng], lat)
        return world_directions @ self._turn if self._turn.size else world_directions


def _turn(sky: SkyMapping) -> NDArray[np.float64] | None:
    """Return the matrix from ICRS to the image's frame: empty for ICRS, `None` if there is none."""
    from astropy.coordinates import FK5, ICRS, Galactic
    from astropy.wcs.utils import wcs_to_celestial_frame

    try:
        frame = wcs_to_celestial_frame(sky.wcs)
    except ValueError:
        return None
    if isinstance(frame, ICRS):
        return np.empty((0, 0))
    if not isinstance(frame, FK5 | Galactic):
        return None
    return _matrix(frame)


@cache
def galactic_matrix() -> NDArray[np.float64]:
    """Return the matrix from ICRS to galactic coordinates."""
    from astropy.coordinates import Galactic

    return _matrix(Galactic())


def _matrix(frame: BaseCoordinateFrame) -> NDArray[np.float64]:
    from astropy.coordinates import SkyCoord

    axes = SkyCoord([0, 90, 0], [0, 0, 90], unit="deg", frame="icrs").transform_to(frame)
    matrix: NDArray[np.float64] = np.array(axes.cartesian.xyz.value)
    return matrix
