"""Slices of volumes as pictures, and the colours that pages and pictures share."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from swathe.core.errors import RegionError
from swathe.runs.reading.volume import BLANK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from swathe.runs.reading.volume import Volume

ColourMap = Literal["thermal", "blue", "grey"]
COLOUR_MAPS: Mapping[ColourMap, tuple[str, ...]] = {
    "thermal": ("#1a1a99", "#33b3e6", "#e6e64d", "#ff4d1a"),
    "blue": ("#d3e6f0", "#8dbdd6", "#418bb1", "#1c6892", "#0b4262"),
    "grey": ("#000000", "#ffffff"),
}
"""Colours at equal distances from the lower to the upper end of a range of values."""


def colour_table(colours: ColourMap) -> NDArray[np.uint8]:
    """Return red, green and blue of 256 steps of a colour map, of shape (256, 3)."""
    ends = np.array([list(bytes.fromhex(each[1:])) for each in COLOUR_MAPS[colours]], float)
    places = np.linspace(0, 255, len(ends))
    bands = [np.interp(np.arange(256), places, band) for band in ends.T]
    table: NDArray[np.uint8] = np.rint(np.stack(bands, -1)).astype(np.uint8)
    return table


def slice_picture(
    volume: Volume,
    axis: int,
    colours: ColourMap,
    low: float | None = None,
    high: float | None = None,
) -> bytes:
    """Return a plane as a PNG picture; voxels without a value are clear.

    Args:
        volume: a volume with one voxel along `axis`. Of the other two axes, the first is up.
        axis: the axis that the plane is normal to.
        colours: its colours.
        low: value at the lower end of the colours; by default the least.
        high: value at their upper end; by default the largest.

    Raises:
        RegionError: If `low` is not below `high`.
    """
    from PIL import Image

    first = volume.low if low is None else low
    last = volume.high if high is None else high
    if first >= last and not (low is None and high is None):
        raise RegionError(f"low, high: expected low below high, found {first:g} and {last:g}")
    values = volume.offset + volume.scale * np.arange(256.0)
    span = last - first
    if not (math.isfinite(span) and span > 0):
        span = 1.0
    parts = np.nan_to_num(np.clip((values - first) / span, 0, 1))
    plane = volume.voxels.squeeze(axis)[::-1]
    picture = Image.fromarray(np.ascontiguousarray(plane))
    picture.putpalette(colour_table(colours)[np.rint(parts * 255).astype(int)].tobytes())
    file = io.BytesIO()
    blank = {"transparency": BLANK} if volume.has_blank else {}
    picture.save(file, "PNG", compress_level=1, **blank)
    return file.getvalue()
