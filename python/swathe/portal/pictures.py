"""Pictures of results, as small as they are shown."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from swathe.errors import FormatError, RegionError
from swathe.preview import Stretch, grey

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL import Image

    from swathe.jobs import Result

MOST_PIXELS = 1 << 26
"""Of images that are shown: they are read as a whole."""


def preview(
    result: Result, stretch: Stretch, low: float | None, high: float | None, size: int
) -> bytes:
    """Give a picture, PNG, whose longer side is `size`; of cubes, the first plane.

    Raises:
        RegionError: where the image is too large, has no two axes, or `low` is not below `high`.
        FormatError: where it cannot be read.
    """
    from PIL import Image

    if low is not None and high is not None and low >= high:
        raise RegionError(f"low must be below high, not {low} and {high}")
    if result.name.endswith(".png"):
        with result.open() as stored, Image.open(stored) as drawn:
            image: Image.Image = drawn.copy()
    else:
        image = Image.fromarray(grey(_plane(result), stretch, low, high))
    scale = size / max(image.size)
    shape = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    smooth = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.BOX
    file = io.BytesIO()
    image.resize(shape, smooth).save(file, "PNG", compress_level=1)
    return file.getvalue()


def _plane(result: Result) -> NDArray[Any]:
    """Give the first plane of a result."""
    import swathe

    if result.name.endswith(".npy"):
        return _plane_of_array(result)
    image = swathe.open(result.file).image()
    _check(result, image.shape)
    plane: NDArray[Any] = image.section[(0,) * (len(image.shape) - 2)]
    return plane


def _plane_of_array(result: Result) -> NDArray[Any]:
    import numpy as np

    with result.open() as file:
        try:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            _check(result, shape)
            plane = shape[-2:]
            stored = file.read(math.prod(plane) * dtype.itemsize)
            return np.frombuffer(stored, dtype).reshape(plane)
        except ValueError as error:
            if isinstance(error, RegionError):
                raise
            raise FormatError(f"{result.name}: cannot be read: {error}") from error


def _check(result: Result, shape: tuple[int, ...]) -> None:
    if len(shape) < 2 or 0 in shape or shape[-1] * shape[-2] > MOST_PIXELS:
        raise RegionError(
            f"{result.name}: a picture is of an image of at most {MOST_PIXELS} pixels, not of "
            f"shape {shape}"
        )
