"""Pixel grids of combined results, and images resampled to them.

Grids are gnomonic (TAN), north up, with the pixel size of the first image. Pixels are interpolated
by cubic splines. An output pixel is NaN if an input pixel with weight is NaN. Flux is conserved:
values are scaled by the ratio of the pixel areas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from swathe.core.errors import NoOverlapError, RegionError
from swathe.core.sky import SkyMapping
from swathe.files.file import open_from_cache
from swathe.files.targets.hdus import hdu_key

if TYPE_CHECKING:
    from pathlib import Path

    from astropy.wcs import WCS
    from numpy.typing import NDArray

    from swathe.core.row_table import RowTable
    from swathe.files.cutout import Cutout

LARGEST_SIDE = 8_192
"""Limit of the side of a combined image, in pixels."""
ROTATION_FACTOR = 1.42
"""Factor by which inputs are cut larger, so that they fill the result at any rotation."""
MARGIN_PIXELS = 8
"""Extra pixels around an input, for interpolation."""
SPLINE = 3
NAN_RINGS = 2
"""Rings of pixels around a NaN pixel that get no weight either."""
LEAST_WEIGHT = 0.999
"""Least weight of valid pixels for an output pixel."""
MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class Grid:
    """Pixel grid around a sky position, north up, east left."""

    ra_deg: float
    dec_deg: float
    side: int
    scale_deg: float

    @classmethod
    def around(cls, ra_deg: float, dec_deg: float, size_deg: float, scale_deg: float) -> Grid:
        """Return the grid of a result of this size, with the pixel size of the images.

        Raises:
            RegionError: If the grid would be too large.
        """
        side = max(1, round(size_deg / scale_deg))
        if side > LARGEST_SIDE:
            raise RegionError(
                f"would be {side} pixels wide; a combined image may be {LARGEST_SIDE}"
            )
        # Jobs keep the size and compute the pixel size from it. Do the same, for the same bits.
        return cls(ra_deg, dec_deg, side, side * scale_deg / side)

    def at(self, ra_deg: float, dec_deg: float) -> Grid:
        """Return the same grid around another position."""
        return Grid(ra_deg, dec_deg, self.side, self.scale_deg)

    def wcs(self) -> WCS:
        """Return the WCS of the grid."""
        from astropy.wcs import WCS

        wcs = WCS(naxis=2)
        wcs.wcs.ctype = ["RA---TAN", "DEC--TAN"]
        wcs.wcs.cunit = ["deg", "deg"]
        wcs.wcs.crval = [self.ra_deg, self.dec_deg]
        wcs.wcs.crpix = [(self.side + 1) / 2] * 2
        wcs.wcs.cdelt = [-self.scale_deg, self.scale_deg]
        wcs.wcs.radesys = "ICRS"
        return wcs


class AlignedImage(NamedTuple):
    """An image of a result, resampled to its grid.

    Attributes:
        pixels: file of the pixels on the grid around the target, written by `align`.
        ra_deg: right ascension of the target.
        dec_deg: declination of the target.
    """

    pixels: Path
    ra_deg: float
    dec_deg: float


def enlarge_boxes(boxes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return larger boxes with the same centres, for inputs of combined images."""
    sides = np.ceil(boxes[:, 2:] * ROTATION_FACTOR).astype(np.int64) + 2 * MARGIN_PIXELS
    return np.column_stack([boxes[:, :2] - (sides - boxes[:, 2:]) // 2, sides])


def scale_deg(rows: RowTable) -> float | None:
    """Return the pixel size in degrees of the first readable image; `None` if there is none."""
    for row in rows.take(np.flatnonzero(rows.has_box & rows.sound)[:1]):
        scales = open_from_cache(row.source).image(hdu_key(row.hdu)).sky.scales
        return math.sqrt(scales[0] * scales[1])
    return None


def align(cutout: Cutout, grid: Grid, path: Path) -> None:
    """Write an image resampled to a grid, for the operation.

    Raises:
        NoOverlapError: If the image has no pixel on the grid.
        RegionError: As in `align_pixels`.
    """
    pixels = align_pixels(cutout, grid)
    if not np.isfinite(pixels).any():
        raise NoOverlapError("none of its pixels is within the result")
    np.save(path, pixels, allow_pickle=False)


def align_pixels(cutout: Cutout, grid: Grid) -> NDArray[np.float32]:
    """Return an image resampled to a grid; NaN outside the image.

    Raises:
        RegionError: If the image has more than one plane, or no sky position.
    """
    from astropy.coordinates import SkyCoord
    from scipy.ndimage import (  # type: ignore[import-untyped]  # its stubs are another package
        binary_erosion,
        map_coordinates,
    )

    data = np.asarray(cutout.data, np.float64)
    if math.prod(data.shape[:-2]) != 1:
        raise RegionError(f"an image of {data.shape} has more than one plane; give planes")
    data = data.reshape(data.shape[-2:])
    sky = SkyMapping(lambda: cutout.wcs, f"{cutout.url}, HDU {cutout.hdu}")
    down, across = np.mgrid[: grid.side, : grid.side]
    lon, lat = grid.wcs().all_pix2world(across.ravel(), down.ravel(), 0)
    x, y = sky.world_to_pixel(SkyCoord(lon, lat, unit="deg", frame="icrs"))
    positions = np.array([y, x])
    off_image = ~np.isfinite(positions).all(axis=0)
    positions[:, off_image] = -1e6
    valid = np.isfinite(data)
    finite_data = np.where(valid, data, np.median(data[valid]) if valid.any() else 0.0)
    if not valid.all():
        # The spline rings around the values put in for NaN pixels.
        valid = binary_erosion(valid, iterations=NAN_RINGS, border_value=1)
    pixels = map_coordinates(finite_data, positions, order=SPLINE, mode="constant", cval=np.nan)
    weight = map_coordinates(valid.astype(float), positions, order=1, mode="constant", cval=0.0)
    pixels[weight < LEAST_WEIGHT] = np.nan
    area = sky.scales[0] * sky.scales[1]
    pixels *= grid.scale_deg**2 / area
    result: NDArray[np.float32] = pixels.reshape(grid.side, grid.side).astype(np.float32)
    return result


def noise(pixels: NDArray[np.float32]) -> float:
    """Return the background noise of an image: the spread around the median."""
    valid = pixels[np.isfinite(pixels)].astype(np.float64)
    return MAD_TO_SIGMA * float(np.median(np.abs(valid - np.median(valid))))
