"""Where north and east are on an image, and the sky position of its pixels, for viewers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import RegionError
from swathe.datasets.spherical import degrees, directions
from swathe.portal.vo.geometry.fast_wcs import galactic_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.portal.vo.images import OpenImage

POLE = math.cos(math.radians(1e-3))
"""Cosine of the distance to a pole within which north is that of right ascension 0."""


def compass_of(image: OpenImage) -> dict[str, Any] | None:
    """Return where north and east are at the centre of an image; `None` without a sky.

    `north` and `east` are steps of a pixel's side on NAXIS1 and NAXIS2, `pixel_deg` is that side.
    """
    if not has_sky(image):
        return None
    width, height = image.lengths[:2]
    x, y = (width - 1) / 2, (height - 1) / 2
    (centre,) = image.places.pixel_to_vector(np.array([x]), np.array([y]))
    if not np.isfinite(centre).all():
        return None
    scales = image.image.sky.scales
    pixel_deg = math.sqrt(scales[0] * scales[1])
    north = np.array([0.0, 0.0, 1.0]) - centre[2] * centre
    if abs(centre[2]) > POLE:
        north = np.array([1.0, 0.0, 0.0]) - centre[0] * centre
    north /= np.linalg.norm(north)
    step = math.radians(pixel_deg)
    ends = np.array([centre, centre + step * north, centre + step * np.cross(north, centre)])
    at_x, at_y = image.places.world_to_pixel(ends / np.linalg.norm(ends, axis=1)[:, None])
    steps = np.column_stack([at_x[1:] - at_x[0], at_y[1:] - at_y[0]])
    if not np.isfinite(steps).all():
        return None
    ra, dec = degrees(centre)
    return {
        "pixel_deg": pixel_deg,
        "north": steps[0].tolist(),
        "east": steps[1].tolist(),
        "ra": float(ra) % 360,
        "dec": float(dec),
    }


def position_of(image: OpenImage, x: float, y: float) -> dict[str, float | None]:
    """Return the position of a pixel, degrees, ICRS and galactic; `None` where there is none."""
    if has_sky(image):
        (vector,) = image.places.pixel_to_vector(np.array([float(x)]), np.array([float(y)]))
        if np.isfinite(vector).all():
            return {**_angles("ra", "dec", vector), **_angles("l", "b", galactic_matrix() @ vector)}
    return dict.fromkeys(("ra", "dec", "l", "b"))


def pixel_of(image: OpenImage, ra_deg: float, dec_deg: float) -> tuple[float, float] | None:
    """Return the pixel of a position, from 0; `None` if it has none."""
    if not has_sky(image):
        return None
    place = directions(np.array([ra_deg]), np.array([dec_deg]))
    (x,), (y,) = image.places.world_to_pixel(place)
    return (float(x), float(y)) if math.isfinite(x) and math.isfinite(y) else None


def _angles(lon: str, lat: str, vector: NDArray[np.float64]) -> dict[str, float | None]:
    lon_deg, lat_deg = degrees(vector)
    return {lon: float(lon_deg) % 360, lat: float(lat_deg)}


def has_sky(image: OpenImage) -> bool:
    """Return whether NAXIS1 and NAXIS2 are on the sky, in a frame of stars; the Sun has others."""
    from astropy.wcs.utils import wcs_to_celestial_frame

    try:
        if len(image.lengths) < 2 or image.sky_axes != (0, 1):
            return False
        wcs_to_celestial_frame(image.image.sky.wcs)
    except (RegionError, ValueError):
        return False
    return True
