"""Combine aligned images pixel by pixel: mean, median, clipped mean, weighted mean."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.errors import RegionError
from swathe.operations.grid import noise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from astropy.io import fits
    from numpy.typing import NDArray

    from swathe.operations.grid import AlignedImage, Grid

CLIP_SIGMAS = 3.0
CLIP_ROUNDS = 5
BLOCK_BYTES = 64 << 20
"""Pixels of all images that are combined at once."""
IMAGES_PER_COPY = 64
"""Images copied at once into the file of all images."""
SAME_PLACE_DEG = 1e-7


def write_stack(
    path: Path,
    grid: Grid,
    images: Sequence[AlignedImage],
    way: str,
    should_stop: Callable[[], bool],
) -> bool:
    """Write a stack and, as its second HDU, the number of images at each pixel.

    Args:
        path: file of the stack.
        grid: pixel grid of the stack.
        images: images of the same number of pixels.
        way: `mean`, `median`, `sigma-clipped` or `weighted`.
        should_stop: function that returns whether to stop.

    Returns:
        Whether the stack was written, and not stopped before the end.

    Raises:
        RegionError: If an image has no noise to weigh it by.
    """
    pixels = _Images([each.pixels for each in images], should_stop)
    match way:
        case "mean":
            stack = _weighted_mean(pixels, grid, lambda _pixels: 1.0)
        case "weighted":
            stack = _weighted_mean(pixels, grid, _inverse_variance)
        case "median":
            stack = _by_blocks(pixels, grid, path, _median)
        case _:
            stack = _by_blocks(pixels, grid, path, _clipped_mean)
    if pixels.was_stopped:
        return False
    _write(path, grid, images, way, *stack)
    return True


class _Images:
    """Aligned images, read one after the other."""

    def __init__(self, paths: Sequence[Path], should_stop: Callable[[], bool]) -> None:
        self._paths = paths
        self._is_stopped = should_stop
        self.was_stopped = False

    def __len__(self) -> int:
        return len(self._paths)

    def should_stop(self) -> bool:
        """Check whether to stop, and remember the answer."""
        self.was_stopped = self.was_stopped or self._is_stopped()
        return self.was_stopped

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        for path in self._paths:
            if self.should_stop():
                return
            yield np.load(path, allow_pickle=False)


Stack = tuple["NDArray[np.float64]", "NDArray[np.int32]"]


def _weighted_mean(
    images: _Images, grid: Grid, weigh: Callable[[NDArray[np.float32]], float]
) -> Stack:
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
        RegionError: If the noise is zero or unknown.
    """
    sigma = noise(pixels)
    if sigma <= 0:
        raise RegionError("an image has no noise to weigh it by; choose another way to stack")
    return 1.0 / sigma**2


def _by_blocks(
    images: _Images,
    grid: Grid,
    path: Path,
    combine: Callable[[NDArray[np.float64]], Stack],
) -> Stack:
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
            if len(batch) == IMAGES_PER_COPY:
                cube[:, first : first + len(batch)] = np.array(batch).T
                first, batch = first + len(batch), []
        if batch:
            cube[:, first : first + len(batch)] = np.array(batch).T
        step = max(1, BLOCK_BYTES // (8 * len(images)))
        for at in range(0, pixels, step):
            if images.should_stop():
                break
            block = np.asarray(cube[at : at + step], np.float64)
            result[at : at + step], count[at : at + step] = combine(block)
    finally:
        del cube
        cube_path.unlink()
    return result.reshape(grid.side, grid.side), count.reshape(grid.side, grid.side)


def _median(block: NDArray[np.float64]) -> Stack:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice")
        return np.nanmedian(block, axis=1), np.isfinite(block).sum(axis=1, dtype=np.int32)


def _clipped_mean(block: NDArray[np.float64]) -> Stack:
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
    inputs: Sequence[AlignedImage],
    way: str,
    stack: NDArray[np.float64],
    count: NDArray[np.int32],
) -> None:
    """Write the image, and after it the number of images at each pixel."""
    from astropy.io import fits

    header = _header(grid, inputs)
    header["STACK"] = (way, "how pixels were put together")
    header["NCOMBINE"] = (len(inputs), "images that went in")
    image = fits.PrimaryHDU(stack.astype(np.float32), header)
    counts = fits.ImageHDU(count, _header(grid, inputs), name="COUNT")
    fits.HDUList([image, counts]).writeto(path, checksum=True)


def _header(grid: Grid, inputs: Sequence[AlignedImage]) -> fits.Header:
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


def _is_near(grid: Grid, image: AlignedImage) -> bool:
    apart = (image.ra_deg - grid.ra_deg + 180) % 360 - 180
    return (
        abs(image.dec_deg - grid.dec_deg) < SAME_PLACE_DEG
        and abs(apart) * math.cos(math.radians(grid.dec_deg)) < SAME_PLACE_DEG
    )
