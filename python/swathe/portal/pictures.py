"""Preview pictures of results."""

from __future__ import annotations

import io
import math
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from swathe.core.errors import FormatError, LimitError, RegionError
from swathe.files.array_file import ArrayFile
from swathe.files.file import open_any
from swathe.files.masks import whole_mask
from swathe.files.preview import Stretch, grey
from swathe.files.variable import Variable, physical_values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray
    from PIL import Image

    from swathe.jobs import Result

MOST_PIXELS = 1 << 26
"""Maximum number of pixels of an image to preview, as it is read whole."""
MOST_TOGETHER = 2 * MOST_PIXELS
"""Maximum number of pixels read in parallel: 1 GiB at 64 bits each."""
WAIT_S = 10.0
"""Maximum time that a picture waits for others, as a page requests many."""
RETRY_S = 5
"""Delay suggested to a client after that time, seconds."""
_MOST = f"expected an image of at most {MOST_PIXELS} pixels per plane"


def preview(
    result: Result, stretch: Stretch, low: float | None, high: float | None, size: int
) -> bytes:
    """Return a PNG picture whose longer side is `size` pixels; for cubes, of the first plane.

    Raises:
        RegionError: If the image is too large, has no two axes, or `low` is not below `high`.
        FormatError: If the image cannot be read.
        LimitError: If too many pixels are being read for other pictures.
    """
    check_limits(low, high)
    is_drawn = result.name.endswith(".png")
    return png_of(_color_picture(result) if is_drawn else _greys(result, stretch, low, high), size)


def check_limits(low: float | None, high: float | None) -> None:
    """Check the percentiles of black and white.

    Raises:
        RegionError: If `low` is not below `high`.
    """
    if low is not None and high is not None and low >= high:
        raise RegionError(f"low, high: expected low below high, found {low} and {high}")


def png_of(image: Image.Image, size: int) -> bytes:
    """Return a picture as PNG whose longer side is `size` pixels."""
    from PIL import Image

    scale = size / max(image.size)
    shape = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    smooth = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.BOX
    file = io.BytesIO()
    image.resize(shape, smooth).save(file, "PNG", compress_level=1)
    return file.getvalue()


def _color_picture(result: Result) -> Image.Image:
    """Return a result that is itself a picture."""
    from PIL import Image

    try:
        with (
            result.open() as file,
            Image.open(file) as picture,
            _room_for(result, (picture.height, picture.width)),
        ):
            return picture.copy()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise RegionError(f"{result.name}: {_MOST}: {error}") from error


def _greys(result: Result, stretch: Stretch, low: float | None, high: float | None) -> Image.Image:
    """Draw the first plane of a result in grey."""
    from PIL import Image

    if result.name.endswith(".npy"):
        with _plane_of_array(result) as plane:
            return Image.fromarray(grey(plane, stretch, low, high))
    source = open_any(result.file)
    if isinstance(source, ArrayFile):
        return Image.fromarray(grey(_plane_of_file(result, source), stretch, low, high))
    image = source.image()
    with _room_for(result, image.shape):
        plane = image.section[(0,) * (len(image.shape) - 2)]
        return Image.fromarray(grey(plane, stretch, low, high))


def _plane_of_file(result: Result, source: ArrayFile) -> NDArray[Any]:
    """Return the physical values of the first plane of the array that a result is of.

    Raises:
        NoSuchArrayError: If the result has no such array.
        RegionError: If the plane is too large, or no plane of numbers.
    """
    name = result.array.rpartition("/")[2]
    array = source[name] if name in source else source.array()
    if array.dtype.kind not in "iuf" or array.ndim < 2:
        raise RegionError(
            f"{result.name}: expected a plane of numbers, found {array.dtype} of {array.shape}"
        )
    with _room_for(result, array.shape):
        plane = array[(0,) * (array.ndim - 2)]
        mask = whole_mask(array)
        mask = None if mask is None else mask[(0,) * (array.ndim - 2)]
        return physical_values(Variable(plane, ("y", "x"), array.attrs, mask))


@contextmanager
def _plane_of_array(result: Result) -> Iterator[NDArray[Any]]:
    import numpy as np

    with result.open() as file:
        try:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        except ValueError as error:
            raise FormatError(f"{result.name}: cannot be read: {error}") from error
        with _room_for(result, shape):
            plane = shape[-2:]
            content = file.read(math.prod(plane) * dtype.itemsize)
            try:
                pixels = np.frombuffer(content, dtype).reshape(plane)
            except ValueError as error:
                raise FormatError(f"{result.name}: cannot be read: {error}") from error
            yield pixels


class PixelBudget:
    """Memory budget for pixels read in parallel."""

    def __init__(self, pixels: int) -> None:
        """Set the number of pixels."""
        self._free = self._all = pixels
        self._change = threading.Condition()

    @contextmanager
    def reserve(self, pixels: int, what: str) -> Iterator[None]:
        """Reserve pixels during the context; wait up to `WAIT_S` seconds for them.

        Raises:
            LimitError: If too few are free after that time, or at any time.
        """
        if pixels > self._all:
            raise LimitError(f"{what}: expected at most {self._all} pixels, found {pixels}")
        with self._change:
            if not self._change.wait_for(lambda: self._free >= pixels, WAIT_S):
                raise LimitError(
                    f"{what}: too many large pictures are being made; try again soon", RETRY_S
                )
            self._free -= pixels
        try:
            yield
        finally:
            with self._change:
                self._free += pixels
                self._change.notify_all()


room = PixelBudget(MOST_TOGETHER)


def _room_for(result: Result, shape: tuple[int, ...]) -> AbstractContextManager[None]:
    """Return the context in which a plane of this shape may be read.

    Raises:
        RegionError: If the plane is too large, or the shape is not that of an image.
    """
    if len(shape) < 2 or 0 in shape or shape[-1] * shape[-2] > MOST_PIXELS:
        raise RegionError(f"{result.name}: {_MOST}, found shape {shape}")
    return room.reserve(shape[-1] * shape[-2], result.name)
