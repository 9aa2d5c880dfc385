"""Pixels of a place on the sky on one grid for all images, to compare them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.errors import NoOverlapError
from swathe.datasets.spherical import directions
from swathe.files.pyramid import check_read, plane_shape
from swathe.portal.pictures import room
from swathe.portal.vo.compass import has_sky

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from swathe.portal.vo.images import OpenImage


def pixels_of_place(
    image: OpenImage,
    planes: Sequence[int],
    ra_deg: float,
    dec_deg: float,
    size_deg: float,
    side: int,
) -> NDArray[np.float32]:
    """Return the pixels of a square around a place, north up, in a gnomonic projection.

    Args:
        image: the image.
        planes: index of the plane along each axis before NAXIS2, slowest first.
        ra_deg: right ascension of the centre.
        dec_deg: its declination.
        size_deg: side of the square.
        side: its pixels.

    Returns:
        The nearest pixels of the image, `(side, side)`, the northern row first, east first in a
        row; NaN outside the image.

    Raises:
        NoOverlapError: If the image does not show the place.
    """
    height, width = plane_shape(image.image, planes)
    nothing = f"{image.did}: expected an image of {ra_deg:g} {dec_deg:g}, found other positions"
    if not has_sky(image):
        raise NoOverlapError(nothing)
    x, y = (
        np.rint(each)
        for each in image.places.world_to_pixel(_grid(ra_deg, dec_deg, size_deg, side))
    )
    with np.errstate(invalid="ignore"):
        inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    if not inside.any():
        raise NoOverlapError(nothing)
    columns, rows = x[inside].astype(int), y[inside].astype(int)
    left, right = int(columns.min()), int(columns.max()) + 1
    low, high = int(rows.min()), int(rows.max()) + 1
    # Of large squares, rows between those of the grid are not read.
    step = max(1, (high - low) // (2 * side))
    count = (right - left) * -(-(high - low) // step)
    check_read(image.image, count)
    with room.reserve(count, image.did):
        part = image.image.section[(*planes, slice(low, high, step), slice(left, right))]
        pixels = np.full(side * side, np.nan, np.float32)
        pixels[inside] = np.asarray(part)[(rows - low) // step, columns - left]
    return pixels.reshape(side, side)


def _grid(ra_deg: float, dec_deg: float, size_deg: float, side: int) -> NDArray[np.float64]:
    """Return the directions of the pixels of a square, the northern row first."""
    ra, dec = math.radians(ra_deg), math.radians(dec_deg)
    centre = directions(np.array(ra_deg), np.array(dec_deg))
    east = np.array([-math.sin(ra), math.cos(ra), 0.0])
    north = np.array([-math.sin(dec) * math.cos(ra), -math.sin(dec) * math.sin(ra), math.cos(dec)])
    steps = (0.5 - (np.arange(side) + 0.5) / side) * math.radians(size_deg)
    up, left = np.meshgrid(steps, steps, indexing="ij")
    places = centre + left.reshape(-1, 1) * east + up.reshape(-1, 1) * north
    grid: NDArray[np.float64] = places / np.linalg.norm(places, axis=1)[:, None]
    return grid
