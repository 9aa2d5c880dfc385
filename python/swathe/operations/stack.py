"""Combine images: each is resampled to a grid around its target, then all pixel by pixel.

Grids are gnomonic (TAN), north up, with the pixel size of the first image. Pixels are interpolated
by cubic splines. An output pixel is NaN if an input pixel with weight is NaN. Flux is conserved:
values are scaled by the ratio of the pixel areas.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from swathe.core.errors import NoOverlapError, RegionError
from swathe.core.sky import SkyMapping
from swathe.operations.formats import BANDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from astropy.io import fits
    from astropy.wcs import WCS
    from numpy.typing import NDArray

    from swathe.files.cutout import Cutout
    from swathe.operations.formats import Format, Stack

LARGEST_SIDE = 8_192
"""Limit of the side of a combined image, in pixels."""
TURNED = 1.42
"""Factor by which inputs are cut larger, so that they fill the result at any rotation."""
AROUND_PIXELS = 8
"""Extra pixels around an input, for interpolation."""
SPLINE = 3
RINGS = 2
"""Rings of pixels around a NaN pixel that get no weight either."""
NEEDED = 0.999
"""Least weight of valid pixels for an output pixel."""
CLIP_SIGMAS = 3.0
CLIP_ROUNDS = 5
BLOCK_BYTES = 64 << 20
"""Pixels of all images that are combined at once."""
GATHERED = 64
"""Images copied at once into the file of all images."""
SAME_PLACE_DEG = 1e-7
MAD_TO_SIGMA = 1.4826
LUPTON_Q = 8.0
LUPTON_SIGMAS = 10.0
"""Range of the linear part of a picture's stretch, in standard deviations of the sky."""


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
            RegionError: if the grid would be too large.
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


class Input(NamedTuple):
    """An image of a result.

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
    sides = np.ceil(boxes[:, 2:] * TURNED).astype(np.int64) + 2 * AROUND_PIXELS
    return np.column_stack([boxes[:, :2] - (sides - boxes[:, 2:]) // 2, sides])


def without_images(inputs: Iterable[tuple[str, str, str]]) -> tuple[str, str]:
    """Return status and reason of a result without any image.

    Args:
        inputs: id, status and reason of each of its rows.
    """
    failed = [each for each in inputs if each[1] in ("error", "missing")]
    because = f"; {failed[0][0]}: {failed[0][2]}" if failed else ""
    return "error" if failed else "no-overlap", f"there is no image of it{because}"


def align(cutout: Cutout, grid: Grid, path: Path) -> None:
    """Write an image resampled to a grid, for `make_result`.

    Raises:
        NoOverlapError: if the image has no pixel on the grid.
        RegionError: as in `align_pixels`.
    """
    pixels = align_pixels(cutout, grid)
    if not np.isfinite(pixels).any():
        raise NoOverlapError("none of its pixels is within the result")
    np.save(path, pixels, allow_pickle=False)


def align_pixels(cutout: Cutout, grid: Grid) -> NDArray[np.float32]:
    """Return an image resampled to a grid; NaN outside the image.

    Raises:
        RegionError: if the image has more than one plane, or no sky position.
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
    filled = np.where(valid, data, np.median(data[valid]) if valid.any() else 0.0)
    if not valid.all():
        # The spline rings around the values put in for NaN pixels.
        valid = binary_erosion(valid, iterations=RINGS, border_value=1)
    pixels = map_coordinates(filled, positions, order=SPLINE, mode="constant", cval=np.nan)
    weight = map_coordinates(valid.astype(float), positions, order=1, mode="constant", cval=0.0)
    pixels[weight < NEEDED] = np.nan
    area = sky.scales[0] * sky.scales[1]
    pixels *= grid.scale_deg**2 / area
    result: NDArray[np.float32] = pixels.reshape(grid.side, grid.side).astype(np.float32)
    return result


def make_result(
    path: Path,
    grid: Grid,
    inputs: Sequence[Input],
    form: Format,
    stack: Stack,
    stopped: Callable[[], bool],
) -> bool:
    """Write the result of images; return false if it was stopped before the end.

    Raises:
        RegionError: if a picture lacks a band.
    """
    if form == "rgb":
        _picture(path, [each.pixels for each in inputs])
        return True
    images = _Images([each.pixels for each in inputs], stopped)
    match stack:
        case "mean":
            stacked = _weighted_mean(images, grid, lambda _pixels: 1.0)
        case "weighted":
            stacked = _weighted_mean(images, grid, _inverse_variance)
        case "median":
            stacked = _by_blocks(images, grid, path, _median)
        case "sigma-clipped":
            stacked = _by_blocks(images, grid, path, _clipped_mean)
    if images.was_stopped:
        return False
    _write(path, grid, inputs, stack, *stacked)
    return True


class _Images:
    """Aligned images, read one after the other."""

    def __init__(self, paths: Sequence[Path], stopped: Callable[[], bool]) -> None:
        self._paths = paths
        self._asked = stopped
        self.was_stopped = False

    def __len__(self) -> int:
        return len(self._paths)

    def stopped(self) -> bool:
        """Check whether to stop, and remember the answer."""
        self.was_stopped = self.was_stopped or self._asked()
        return self.was_stopped

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        for path in self._paths:
            if self.stopped():
                return
            yield np.load(path, allow_pickle=False)


Stacked = tuple["NDArray[np.float64]", "NDArray[np.int32]"]


def _weighted_mean(
    images: _Images, grid: Grid, weigh: Callable[[NDArray[np.float32]], float]
) -> Stacked:
    """Return the weighted mean of the valid images at each pixel, and their number."""
    total = np.zeros((grid.side, grid.side))
    weights = np.zeros_like(total)
    count = np.zeros(total.shape, np.int32)
    for pixels in images:
        valid = np.isfinite(pixels)
        weight = weigh(pixels)
        total[valid] += weight * pixels[valid]
        weights[valid] += weight
        count += valid
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, total / np.where(count > 0, weights, 1.0), np.nan), count


def _inverse_variance(pixels: NDArray[np.float32]) -> float:
    """Return the weight of an image from its background noise: the spread around the median.

    Raises:
        RegionError: if the noise is zero or unknown.
    """
    sigma = _sigma(pixels)
    if sigma <= 0:
        raise RegionError("an image has no noise to weigh it by; choose another way to stack")
    return 1.0 / sigma**2


def _sigma(pixels: NDArray[np.float32]) -> float:
    valid = pixels[np.isfinite(pixels)].astype(np.float64)
    return MAD_TO_SIGMA * float(np.median(np.abs(valid - np.median(valid))))


def _by_blocks(
    images: _Images,
    grid: Grid,
    path: Path,
    combine: Callable[[NDArray[np.float64]], Stacked],
) -> Stacked:
    """Combine images that must all be in memory, a block of pixels at a time.

    They are first written to a file with all values of a pixel side by side, so nothing is read
    twice.
    """
    pixels = grid.side**2
    result, count = np.full(pixels, np.nan), np.zeros(pixels, np.int32)
    cube_path = path.with_suffix(".cube")
    cube = np.memmap(cube_path, np.float32, "w+", shape=(pixels, len(images)))
    try:
        batch: list[NDArray[np.float32]] = []
        first = 0
        for image in images:
            batch.append(image.ravel())
            if len(batch) == GATHERED:
                cube[:, first : first + len(batch)] = np.array(batch).T
                first, batch = first + len(batch), []
        if batch:
            cube[:, first : first + len(batch)] = np.array(batch).T
        step = max(1, BLOCK_BYTES // (8 * len(images)))
        for at in range(0, pixels, step):
            if images.stopped():
                break
            block = np.asarray(cube[at : at + step], np.float64)
            result[at : at + step], count[at : at + step] = combine(block)
    finally:
        del cube
        cube_path.unlink()
    return result.reshape(grid.side, grid.side), count.reshape(grid.side, grid.side)


def _median(block: NDArray[np.float64]) -> Stacked:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice")
        return np.nanmedian(block, axis=1), np.isfinite(block).sum(axis=1, dtype=np.int32)


def _clipped_mean(block: NDArray[np.float64]) -> Stacked:
    """Return the mean after clipping values far from the median, in several rounds."""
    values = np.where(np.isfinite(block), block, np.nan)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice|Mean of empty|Degrees of freedom")
        for _ in range(CLIP_ROUNDS):
            middle = np.nanmedian(values, axis=1, keepdims=True)
            reach = CLIP_SIGMAS * np.nanstd(values, axis=1, keepdims=True)
            outside = np.abs(values - middle) > reach
            if not outside.any():
                break
            values[outside] = np.nan
        return np.nanmean(values, axis=1), np.isfinite(values).sum(axis=1, dtype=np.int32)


def _write(
    path: Path,
    grid: Grid,
    inputs: Sequence[Input],
    stack: Stack,
    stacked: NDArray[np.float64],
    count: NDArray[np.int32],
) -> None:
    """Write the image, and after it the number of images at each pixel."""
    from astropy.io import fits

    header = _header(grid, inputs)
    header["STACK"] = (stack, "how pixels were put together")
    header["NCOMBINE"] = (len(inputs), "images that went in")
    image = fits.PrimaryHDU(stacked.astype(np.float32), header)
    counts = fits.ImageHDU(count, _header(grid, inputs), name="COUNT")
    fits.HDUList([image, counts]).writeto(path, checksum=True)


def _header(grid: Grid, inputs: Sequence[Input]) -> fits.Header:
    """Return the header: a sky WCS if all images have one target position, else offsets."""
    from astropy.io import fits

    if all(_is_near(grid, each) for each in inputs):
        header: fits.Header = grid.wcs().to_header()
        return header
    middle = (grid.side + 1) / 2
    header = fits.Header()
    for axis, name, scale in ((1, "XOFFSET", -grid.scale_deg), (2, "YOFFSET", grid.scale_deg)):
        header[f"CTYPE{axis}"] = (name, "from the targets, on tangent planes")
        header[f"CUNIT{axis}"] = "deg"
        header[f"CRPIX{axis}"] = middle
        header[f"CRVAL{axis}"] = 0.0
        header[f"CDELT{axis}"] = scale
    return header


def _is_near(grid: Grid, image: Input) -> bool:
    apart = (image.ra_deg - grid.ra_deg + 180) % 360 - 180
    return (
        abs(image.dec_deg - grid.dec_deg) < SAME_PLACE_DEG
        and abs(apart) * math.cos(math.radians(grid.dec_deg)) < SAME_PLACE_DEG
    )


def _picture(path: Path, images: Sequence[Path]) -> None:
    """Write a picture of three bands, red first, as in Lupton et al. (2004).

    Raises:
        RegionError: if there are not three images.
    """
    from astropy.visualization import make_lupton_rgb
    from PIL import Image

    if len(images) != BANDS:
        raise RegionError(f"a picture needs all three bands, found {len(images)}")
    bands, spreads = [], []
    for image in images:
        pixels = np.load(image, allow_pickle=False).astype(np.float64)
        valid = pixels[np.isfinite(pixels)]
        if not valid.size:  # this image is blank here; the other bands are shown
            bands.append(np.zeros_like(pixels))
            continue
        bands.append(np.nan_to_num(pixels - np.median(valid), nan=0.0))
        spreads.append(_sigma(pixels))
    stretch = LUPTON_SIGMAS * max(float(np.mean(spreads or [0.0])), 1e-12)
    picture = make_lupton_rgb(*bands, minimum=0.0, stretch=stretch, Q=LUPTON_Q)
    Image.fromarray(picture[::-1]).save(path, "PNG")
