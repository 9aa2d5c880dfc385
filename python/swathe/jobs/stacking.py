"""One image of several: each is put onto a grid around its target, then pixel by pixel together.

Grids are gnomonic (TAN), north up, with pixels of the size of the first image's. Pixels are
interpolated by cubic splines; where a pixel that counts is no number, neither is what it goes into.
Fluxes stay what they are: an image with larger pixels is given less in each.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swathe.boxes import Sky
from swathe.errors import RegionError
from swathe.jobs.results import input_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from astropy.io import fits
    from astropy.wcs import WCS
    from numpy.typing import NDArray

    from swathe.catalog.work import KeptRow
    from swathe.cutout import Cutout
    from swathe.jobs.values import Options

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
    def of(cls, row: KeptRow) -> Grid | None:
        """Give that of a result; `None` where its size is not known."""
        if row.box is None or row.sky is None:
            return None
        ra, dec, size = row.sky
        return cls(ra, dec, row.box[2], size / row.box[2])

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
    sky = Sky(lambda: cutout.wcs, f"{cutout.source}, HDU {cutout.hdu}")
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
    folder: Path,
    grid: Grid,
    rows: Sequence[KeptRow],
    options: Options,
    stopped: Callable[[], bool],
) -> bool:
    """Write the result of rows; tells whether it was not stopped before.

    Raises:
        RegionError: where a picture lacks a band.
    """
    if options.format == "rgb":
        _picture(path, folder, rows)
        return True
    images = _Images(folder, rows, stopped)
    match options.stack:
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
    _write(path, grid, rows, options, *stacked)
    return True


class _Images:
    """The aligned images of rows, one after the other."""

    def __init__(self, folder: Path, rows: Sequence[KeptRow], stopped: Callable[[], bool]) -> None:
        self._paths = [input_of(folder, row.number) for row in rows]
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
    rows: Sequence[KeptRow],
    options: Options,
    stacked: NDArray[np.float64],
    count: NDArray[np.int32],
) -> None:
    """Write the image, and behind it how many went into each pixel."""
    from astropy.io import fits

    header = _header(grid, rows)
    header["STACK"] = (options.stack, "how pixels were put together")
    header["NCOMBINE"] = (len(rows), "images that went in")
    image = fits.PrimaryHDU(stacked.astype(np.float32), header)
    counts = fits.ImageHDU(count, _header(grid, rows), name="COUNT")
    fits.HDUList([image, counts]).writeto(path, checksum=True)


def _header(grid: Grid, rows: Sequence[KeptRow]) -> fits.Header:
    """Give the place of the pixels: in the sky if all images are of one, else around targets."""
    from astropy.io import fits

    if all(_is_near(grid, row) for row in rows):
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


def _is_near(grid: Grid, row: KeptRow) -> bool:
    if row.sky is None:
        return False
    apart = (row.sky[0] - grid.ra_deg + 180) % 360 - 180
    return (
        abs(row.sky[1] - grid.dec_deg) < SAME_PLACE_DEG
        and abs(apart) * math.cos(math.radians(grid.dec_deg)) < SAME_PLACE_DEG
    )


def _picture(path: Path, folder: Path, rows: Sequence[KeptRow]) -> None:
    """Write a picture of three bands, red first, as Lupton et al. (2004) make them.

    Raises:
        RegionError: where there are not three.
    """
    from astropy.visualization import make_lupton_rgb
    from PIL import Image

    if len(rows) != 3:
        raise RegionError(f"a picture needs all three bands, there are {len(rows)}")
    bands, spreads = [], []
    for row in rows:
        pixels = np.load(input_of(folder, row.number), allow_pickle=False).astype(np.float64)
        known = pixels[np.isfinite(pixels)]
        if not known.size:  # the image is blank there: the other bands are shown
            bands.append(np.zeros_like(pixels))
            continue
        bands.append(np.nan_to_num(pixels - np.median(known), nan=0.0))
        spreads.append(_sigma(pixels))
    stretch = LUPTON_SIGMAS * max(float(np.mean(spreads or [0.0])), 1e-12)
    picture = make_lupton_rgb(*bands, minimum=0.0, stretch=stretch, Q=LUPTON_Q)
    Image.fromarray(picture[::-1]).save(path, "PNG")
