"""An image at several resolutions, in tiles, for viewers.

Level 0 shows the image in one tile; each level doubles its resolution, and the last one has its own
pixels. Tiles are counted from the top left corner, as pictures are: the first row of a tile is the
highest NAXIS2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import RegionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from swathe.files.image import Image

TILE = 256
"""Side of a tile in pixels."""
MOST_READ = 1 << 22
"""Pixels that are read for a tile: of a coarse one, fewer rows."""
MOST_PIXELS = 1 << 26
"""Pixels beyond which no picture is made: of an image with very long rows."""
MOST_SAMPLES = 1 << 16
MOST_TOGETHER = 1 << 20
"""Pixels whose means are computed at once."""
LARGEST = float(np.finfo(np.float32).max)
LONGEST_SPECTRUM = 1 << 16
OVERVIEW = 512
"""Rows that are read for the first picture of an image."""


@dataclass(frozen=True)
class Pyramid:
    """The levels of an image.

    Attributes:
        width: pixels of the image along NAXIS1.
        height: along NAXIS2.
    """

    width: int
    height: int

    @property
    def levels(self) -> int:
        """Return the number of levels."""
        return max(0, math.ceil(math.log2(max(self.width, self.height) / TILE))) + 1

    def step(self, level: int) -> int:
        """Return the pixels of the image along a pixel of a level."""
        return 1 << (self.levels - 1 - level)

    def tile(self, level: int, column: int, row: int) -> tuple[range, range]:
        """Return the columns and rows of the image that a tile shows; rows descend.

        Raises:
            RegionError: If there is no such tile.
        """
        if not 0 <= level < self.levels:
            raise RegionError(f"level: expected 0 to {self.levels - 1}, found {level}")
        side = TILE * self.step(level)
        columns, rows = -(-self.width // side), -(-self.height // side)
        if not (0 <= column < columns and 0 <= row < rows):
            raise RegionError(
                f"tile: expected one of {columns} x {rows} of level {level}, found {column}, {row}"
            )
        top = self.height - row * side
        left = column * side
        return (
            range(left, min(left + side, self.width)),
            range(top - 1, max(top - side, 0) - 1, -1),
        )

    def read_pixels(self, level: int, columns: range, rows: range) -> int:
        """Return how many pixels are read for a tile."""
        return len(columns) * -(-len(rows) // self.skip(level, columns, rows))

    def skip(self, level: int, columns: range, rows: range) -> int:
        """Return the distance of the rows of a tile that are read: a power of two up to the step.

        Columns are all read, since whole rows of compressed images are decoded anyway.
        """
        skip, step = 1, self.step(level)
        while skip < step and -(-len(rows) // skip) * len(columns) > MOST_READ:
            skip *= 2
        return skip


def read_tile(
    image: Image, planes: Sequence[int], level: int, column: int, row: int
) -> NDArray[np.float32]:
    """Return the pixels of a tile: means of those of the image, NaN where none has a value.

    Args:
        image: the image.
        planes: index of the plane along each axis before NAXIS2, slowest first.
        level: from 0, the whole image.
        column: of the tile, from the left.
        row: from the top.

    Raises:
        RegionError: If there is no such plane or tile, or a tile needs too many pixels.
    """
    height, width = plane_shape(image, planes)
    pyramid = Pyramid(width, height)
    columns, rows = pyramid.tile(level, column, row)
    step, skip = pyramid.step(level), pyramid.skip(level, columns, rows)
    check_read(image, pyramid.read_pixels(level, columns, rows))
    below = rows[-1] - 1 if rows[-1] else None
    pixels = image.section[(*planes, slice(rows[0], below, -skip), _slice(columns))]
    return _means(np.asarray(pixels), step // skip, step)


@dataclass(frozen=True)
class Overview:
    """A small image of a plane.

    Attributes:
        pixels: up to 512 rows, the highest first, and means along them: its pixels are square.
        samples: single pixels of these rows.
    """

    pixels: NDArray[np.float32]
    samples: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """Return the bytes of both."""
        return self.pixels.nbytes + self.samples.nbytes


def read_overview(image: Image, planes: Sequence[int]) -> Overview:
    """Read a small image of a plane.

    Raises:
        RegionError: If there is no such plane, or its rows have too many pixels.
    """
    height, width = plane_shape(image, planes)
    step = overview_step(height, width)
    check_read(image, width * -(-height // step))
    rows = np.asarray(image.section[(*planes, slice(None, None, -step), slice(None))])
    samples = np.clip(rows[:, :: max(1, rows.size // MOST_SAMPLES)], -LARGEST, LARGEST)
    return Overview(_means(rows, 1, step), samples.astype(np.float32))


def overview_step(height: int, width: int) -> int:
    """Return the pixels of an image along a pixel of its overview."""
    return -(-max(height, width) // OVERVIEW)


def read_pixel(image: Image, planes: Sequence[int], x: int, y: int) -> float:
    """Return the value of a pixel of a plane, from 0; NaN if it has none.

    Raises:
        RegionError: If there is no such plane or pixel.
    """
    height, width = plane_shape(image, planes)
    _check_pixel(x, y, width, height)
    return float(image.section[(*planes, y, x)])


def read_spectrum(image: Image, planes: Sequence[int], x: int, y: int) -> NDArray[np.float64]:
    """Return the values of a pixel along NAXIS3; of a cube of more axes, at the plane's indices.

    Raises:
        RegionError: If there is no such plane or pixel, no third axis, or it is too long.
    """
    height, width = plane_shape(image, planes)
    _check_pixel(x, y, width, height)
    if not planes or image.shape[-3] > LONGEST_SPECTRUM:
        raise RegionError(
            f"{image.url}, HDU {image.index}: expected a third axis of at most "
            f"{LONGEST_SPECTRUM} pixels, found shape {image.shape}"
        )
    values = image.section[(*planes[:-1], slice(None), y, x)]
    return np.asarray(values, np.float64)


def _check_pixel(x: int, y: int, width: int, height: int) -> None:
    if not (0 <= x < width and 0 <= y < height):
        raise RegionError(f"x, y: expected a pixel of {width} x {height}, found {x}, {y}")


def plane_shape(image: Image, planes: Sequence[int]) -> tuple[int, int]:
    """Return height and width of a plane.

    Raises:
        RegionError: If there is no such plane.
    """
    shape = image.shape
    if len(shape) < 2 or 0 in shape:
        raise RegionError(f"{image.url}, HDU {image.index}: its shape {shape} has no plane")
    if len(planes) != len(shape) - 2 or any(
        not 0 <= index < length for index, length in zip(planes, shape, strict=False)
    ):
        raise RegionError(f"plane: expected one of the shape {shape[:-2]}, found {tuple(planes)}")
    return shape[-2], shape[-1]


def check_read(image: Image, pixels: int) -> None:
    """Check how many pixels are read for a picture.

    Raises:
        RegionError: If they are too many.
    """
    if pixels > MOST_PIXELS:
        raise RegionError(
            f"{image.url}, HDU {image.index}: expected an image whose picture needs at most "
            f"{MOST_PIXELS} pixels, found shape {image.shape}"
        )


def _slice(columns: range) -> slice:
    return slice(columns.start, columns.stop)


def _means(pixels: NDArray[Any], down: int, across: int) -> NDArray[np.float32]:
    """Return means of blocks; the last ones may have fewer pixels. Pixels of NaN do not count."""
    height, width = pixels.shape
    means = np.empty((-(-height // down), -(-width // across)), np.float32)
    # Some rows at a time: copies in double precision take several times their memory.
    blocks = max(1, MOST_TOGETHER // max(1, width * down))
    for first in range(0, len(means), blocks):
        part = pixels[first * down : (first + blocks) * down]
        means[first : first + blocks] = _means_of_part(part, down, across)
    return means


def _means_of_part(pixels: NDArray[Any], down: int, across: int) -> NDArray[np.float64]:
    values = pixels.astype(np.float64)
    valid = np.isfinite(values)
    sums, counts = np.where(valid, values, 0.0), valid.astype(np.float64)
    for axis, length in ((0, down), (1, across)):
        if length > 1:
            starts = np.arange(0, values.shape[axis], length)
            sums = np.add.reduceat(sums, starts, axis=axis)
            counts = np.add.reduceat(counts, starts, axis=axis)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # Sums of huge values may overflow; single precision ends sooner than double.
        means: NDArray[np.float64] = np.clip(sums / counts, -LARGEST, LARGEST)
    return means
