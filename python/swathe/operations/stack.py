"""One image of several: each is put onto a grid around its target, then pixel by pixel together.

Grids are gnomonic (TAN), north up, with pixels of the size of the first image's. Pixels are
interpolated by cubic splines; where a pixel that counts is no number, neither is what it goes into.
Fluxes stay what they are: an image with larger pixels is given less in each.
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
"""Pixels of what is made of several images."""
TURNED = 1.42
"""What goes into others is cut larger, so that it fills the result whichever way it is turned,"""
AROUND_PIXELS = 8
"""and some pixels around it, for their interpolation."""
SPLINE = 3
RINGS = 2
"""Pixels around one without a number that do not count either."""
NEEDED = 0.999
"""Of the pixels that count, this part must be numbers."""
CLIP_SIGMAS = 3.0
CLIP_ROUNDS = 5
BLOCK_BYTES = 64 << 20
"""Pixels of all images that are put together at once."""
GATHERED = 64
"""Images written to the cube of all together."""
SAME_PLACE_DEG = 1e-7
MAD_TO_SIGMA = 1.4826
LUPTON_Q = 8.0
LUPTON_SIGMAS = 10.0
"""How many standard deviations of the sky the linear part of the stretch of a picture has."""


@dataclass(frozen=True)
class Grid:
    """Pixels around a place in the sky, north up, east left."""

    ra_deg: float
    dec_deg: float
    side: int
    scale_deg: float

    @classmethod
    def around(cls, ra_deg: float, dec_deg: float, size_deg: float, scale_deg: float) -> Grid:
        """Give that of a result of this size, with pixels as large as those of the images.

        Raises:
            RegionError: where it would be too large.
        """
        side = max(1, round(size_deg / scale_deg))
        if side > LARGEST_SIDE:
            raise RegionError(
                f"would be {side} pixels wide; what is made of several images may be {LARGEST_SIDE}"
            )
        # Jobs keep the size, and have that of a pixel from it: so that both are the same bits.
        return cls(ra_deg, dec_deg, side, side * scale_deg / side)

    def at(self, ra_deg: float, dec_deg: float) -> Grid:
        """Give the same pixels around another place."""
        return Grid(ra_deg, dec_deg, self.side, self.scale_deg)

    def wcs(self) -> WCS:
        """Give where the pixels are."""
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
    """An image that goes into a result.

    Attributes:
        pixels: on the grid around its target, as `align` wrote them.
        ra_deg: place of the target.
        dec_deg: likewise.
    """

    pixels: Path
    ra_deg: float
    dec_deg: float


def grown(boxes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give larger boxes around the same middles, for what goes into other results."""
    sides = np.ceil(boxes[:, 2:] * TURNED).astype(np.int64) + 2 * AROUND_PIXELS
    return np.column_stack([boxes[:, :2] - (sides - boxes[:, 2:]) // 2, sides])


def without_images(inputs: Iterable[tuple[str, str, str]]) -> tuple[str, str]:
    """Give status and reason of a result of which there is no image.

    Args:
        inputs: id, status and reason of what should have gone in.
    """
    failed = [each for each in inputs if each[1] in ("error", "missing")]
    because = f"; {failed[0][0]}: {failed[0][2]}" if failed else ""
    return "error" if failed else "no-overlap", f"there is no image of it{because}"


def align(cutout: Cutout, grid: Grid, path: Path) -> None:
    """Write the pixels of an image at those of a grid, for `made`.

    Raises:
        NoOverlapError: where none of them is there.
        RegionError: as `aligned`.
    """
    pixels = aligned(cutout, grid)
    if not np.isfinite(pixels).any():
        raise NoOverlapError("none of its pixels is within the result")
    np.save(path, pixels, allow_pickle=False)


def aligned(cutout: Cutout, grid: Grid) -> NDArray[np.float32]:
    """Give the pixels of an image at those of a grid; NaN where it has none.

    Raises:
        RegionError: where the image has more than one plane, or no place in the sky.
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
    sky = SkyMapping(lambda: cutout.wcs, f"{cutout.source}, HDU {cutout.hdu}")
    down, across = np.mgrid[: grid.side, : grid.side]
    lon, lat = grid.wcs().all_pix2world(across.ravel(), down.ravel(), 0)
    x, y = sky.pixels(SkyCoord(lon, lat, unit="deg", frame="icrs"))
    there = np.array([y, x])
    lost = ~np.isfinite(there).all(axis=0)
    there[:, lost] = -1e6
    known = np.isfinite(data)
    filled = np.where(known, data, np.median(data[known]) if known.any() else 0.0)
    if not known.all():
        # The spline rings around what is put in for pixels without a number.
        known = binary_erosion(known, iterations=RINGS, border_value=1)
    pixels = map_coordinates(filled, there, order=SPLINE, mode="constant", cval=np.nan)
    weight = map_coordinates(known.astype(float), there, order=1, mode="constant", cval=0.0)
    pixels[weight < NEEDED] = np.nan
    area = sky.scales[0] * sky.scales[1]
    pixels *= grid.scale_deg**2 / area
    found: NDArray[np.float32] = pixels.reshape(grid.side, grid.side).astype(np.float32)
    return found


def made(
    path: Path,
    grid: Grid,
    inputs: Sequence[Input],
    form: Format,
    stack: Stack,
    stopped: Callable[[], bool],
) -> bool:
    """Write the result of images; tells whether it was not stopped before.

    Raises:
        RegionError: where a picture lacks a band.
    """
    if form == "rgb":
        _picture(path, [each.pixels for each in inputs])
        return True
    images = _Images([each.pixels for each in inputs], stopped)
    match stack:
        case "mean":
            stacked = _weighted(images, grid, lambda _pixels: 1.0)
        case "weighted":
            stacked = _weighted(images, grid, _inverse_variance)
        case "median":
            stacked = _by_blocks(images, grid, path, _median)
        case "sigma-clipped":
            stacked = _by_blocks(images, grid, path, _clipped)
    if images.was_stopped:
        return False
    _write(path, grid, inputs, stack, *stacked)
    return True


class _Images:
    """Aligned images, one after the other."""

    def __init__(self, paths: Sequence[Path], stopped: Callable[[], bool]) -> None:
        self._paths = paths
        self._asked = stopped
        self.was_stopped = False

    def __len__(self) -> int:
        return len(self._paths)

    def stopped(self) -> bool:
        """Tell whether to stop, and remember it."""
        self.was_stopped = self.was_stopped or self._asked()
        return self.was_stopped

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        for path in self._paths:
            if self.stopped():
                return
            yield np.load(path, allow_pickle=False)


Stacked = tuple["NDArray[np.float64]", "NDArray[np.int32]"]


def _weighted(
    images: _Images, grid: Grid, weigh: Callable[[NDArray[np.float32]], float]
) -> Stacked:
    """Give the weighted mean of the images that have a number at a pixel, and how many have."""
    total = np.zeros((grid.side, grid.side))
    weights = np.zeros_like(total)
    count = np.zeros(total.shape, np.int32)
    for pixels in images:
        known = np.isfinite(pixels)
        weight = weigh(pixels)
        total[known] += weight * pixels[known]
        weights[known] += weight
        count += known
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, total / np.where(count > 0, weights, 1.0), np.nan), count


def _inverse_variance(pixels: NDArray[np.float32]) -> float:
    """Weigh an image by the noise of its background: the spread of pixels around their median.

    Raises:
        RegionError: where there is no noise to tell by.
    """
    sigma = _sigma(pixels)
    if sigma <= 0:
        raise RegionError("an image has no noise to weigh it by; take another way to stack")
    return 1.0 / sigma**2


def _sigma(pixels: NDArray[np.float32]) -> float:
    known = pixels[np.isfinite(pixels)].astype(np.float64)
    return MAD_TO_SIGMA * float(np.median(np.abs(known - np.median(known))))


def _by_blocks(
    images: _Images,
    grid: Grid,
    path: Path,
    combine: Callable[[NDArray[np.float64]], Stacked],
) -> Stacked:
    """Put images together that must all be seen at once, so many pixels at a time.

    They go into a file with the pixels of one place side by side: nothing is read twice.
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


def _clipped(block: NDArray[np.float64]) -> Stacked:
    """Give the mean without what lies more than some sigmas from the median, several times over."""
    kept = np.where(np.isfinite(block), block, np.nan)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice|Mean of empty|Degrees of freedom")
        for _ in range(CLIP_ROUNDS):
            middle = np.nanmedian(kept, axis=1, keepdims=True)
            reach = CLIP_SIGMAS * np.nanstd(kept, axis=1, keepdims=True)
            outside = np.abs(kept - middle) > reach
            if not outside.any():
                break
            kept[outside] = np.nan
        return np.nanmean(kept, axis=1), np.isfinite(kept).sum(axis=1, dtype=np.int32)


def _write(
    path: Path,
    grid: Grid,
    inputs: Sequence[Input],
    stack: Stack,
    stacked: NDArray[np.float64],
    count: NDArray[np.int32],
) -> None:
    """Write the image, and behind it how many went into each pixel."""
    from astropy.io import fits

    header = _header(grid, inputs)
    header["STACK"] = (stack, "how pixels were put together")
    header["NCOMBINE"] = (len(inputs), "images that went in")
    image = fits.PrimaryHDU(stacked.astype(np.float32), header)
    counts = fits.ImageHDU(count, _header(grid, inputs), name="COUNT")
    fits.HDUList([image, counts]).writeto(path, checksum=True)


def _header(grid: Grid, inputs: Sequence[Input]) -> fits.Header:
    """Give the place of the pixels: in the sky if all images are of one, else around targets."""
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
    """Write a picture of three bands, red first, as Lupton et al. (2004) make them.

    Raises:
        RegionError: where there are not three.
    """
    from astropy.visualization import make_lupton_rgb
    from PIL import Image

    if len(images) != BANDS:
        raise RegionError(f"a picture needs all three bands, there are {len(images)}")
    bands, spreads = [], []
    for image in images:
        pixels = np.load(image, allow_pickle=False).astype(np.float64)
        known = pixels[np.isfinite(pixels)]
        if not known.size:  # the image is blank there: the other bands are shown
            bands.append(np.zeros_like(pixels))
            continue
        bands.append(np.nan_to_num(pixels - np.median(known), nan=0.0))
        spreads.append(_sigma(pixels))
    stretch = LUPTON_SIGMAS * max(float(np.mean(spreads or [0.0])), 1e-12)
    picture = make_lupton_rgb(*bands, minimum=0.0, stretch=stretch, Q=LUPTON_Q)
    Image.fromarray(picture[::-1]).save(path, "PNG")
