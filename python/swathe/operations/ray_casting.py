"""Ray casting: parallel rays through a block of a volume, with emission and absorption.

Samples lie at the same places for any division into blocks, and each belongs to one block, so the
blocks together are the whole. The coordinates are those of the array: voxel i is from i to i + 1.

References:
    Max, Optical models for direct volume rendering, IEEE TVCG 1, 99 (1995).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Floats: TypeAlias = NDArray[np.float64]
CLEAR = 1.0
"""Light that passes where nothing is."""


@dataclass(frozen=True)
class View:
    """Where the rays go. The picture shows the whole volume from any side.

    Attributes:
        shape: lengths of the axes z, y and x of the volume.
        azimuth_deg: angle around z, from x to y.
        elevation_deg: angle above the plane of x and y.
        pixels: width and height of the picture.
        step: distance of samples, voxels.
    """

    shape: tuple[int, ...]
    azimuth_deg: float = 30.0
    elevation_deg: float = 20.0
    pixels: int = 256
    step: float = 0.5

    def axes(self) -> Floats:
        """Return the unit vectors of view, right and up, in z, y and x, of shape (3, 3)."""
        azimuth, elevation = np.radians([self.azimuth_deg, self.elevation_deg])
        sines, cosines = np.sin([azimuth, elevation]), np.cos([azimuth, elevation])
        away = [-sines[1], -cosines[1] * sines[0], -cosines[1] * cosines[0]]
        right = [0.0, cosines[0], -sines[0]]
        up = [cosines[1], -sines[1] * sines[0], -sines[1] * cosines[0]]
        return np.array([away, right, up])

    @property
    def centre(self) -> Floats:
        """Return the centre of the volume."""
        return np.array(self.shape) / 2

    @property
    def radius(self) -> float:
        """Return half the diagonal of the volume, which is half the side of the picture."""
        return float(np.linalg.norm(self.centre))

    def pixel_places(self) -> Floats:
        """Return where pixels lie along right and up, voxels from the centre."""
        return ((np.arange(self.pixels) + 0.5) / self.pixels * 2 - 1) * self.radius

    def samples(self) -> int:
        """Return the number of samples of a ray."""
        return int(np.ceil(2 * self.radius / self.step))

    def depth(self, number: int) -> float:
        """Return how far behind the centre a sample lies, voxels."""
        return (number + 0.5) * self.step - self.radius


@dataclass(frozen=True)
class TransferFunction:
    """Colour and opacity of a value from 0 to 255.

    Attributes:
        opacity: extinction of the value 255, per voxel; that of others is in proportion.
        colours: red, green and blue at equal distances from 0 to 255, each from 0 to 1.
    """

    opacity: float = 0.05
    colours: Sequence[Sequence[float]] = field(
        default=((0.1, 0.1, 0.6), (0.2, 0.7, 0.9), (0.9, 0.9, 0.3), (1.0, 0.3, 0.1))
    )

    def tables(self, step: float) -> tuple[Floats, Floats]:
        """Return for each value the colour, and the light that passes one step."""
        values = np.arange(256) / 255
        places = np.linspace(0, 1, len(self.colours))
        bands = np.transpose(self.colours)
        colour = np.stack([np.interp(values, places, band) for band in bands], -1)
        return colour, np.exp(-self.opacity * values * step)


@dataclass(frozen=True)
class Block:
    """A part of a volume, with one voxel more on each side that has a neighbour.

    Attributes:
        values: the voxels.
        origin: place of the first of them in the volume.
        start: where the part itself begins.
        end: where it ends.
    """

    values: NDArray[np.uint8]
    origin: tuple[int, ...]
    start: tuple[int, ...]
    end: tuple[int, ...]


def png_of(picture: Floats) -> bytes:
    """Return a picture as PNG.

    Args:
        picture: red, green and blue from 0 to 1, of shape (pixels, pixels, 3), the top first.
    """
    levels = np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(levels).save(file, "png")
    return file.getvalue()


def render(
    volume: NDArray[np.uint8],
    view: View,
    transfer: TransferFunction,
    step: Callable[[], None] = lambda: None,
) -> Floats:
    """Return the picture of a whole volume, as `png_of` takes it; `step` as `cast` calls it."""
    none = (0, 0, 0)
    return cast(Block(volume, none, none, volume.shape), view, transfer, step)[::-1, :, :3]


def cast(
    block: Block, view: View, transfer: TransferFunction, step: Callable[[], None] = lambda: None
) -> Floats:
    """Return the picture of a block: red, green, blue and the light that passes.

    Args:
        block: the block.
        view: where the rays go.
        transfer: colour and opacity of values.
        step: function that is called before each sample of the rays; it ends them by an exception.

    Returns:
        Shape (pixels, pixels, 4); the first axis is up.
    """
    away, right, up = view.axes()
    places = view.pixel_places()
    picture = np.zeros((view.pixels, view.pixels, 4))
    picture[..., 3] = CLEAR
    corners = np.stack(np.meshgrid(*zip(block.start, block.end, strict=True), indexing="ij"), -1)
    corners = corners.reshape(-1, 3) - view.centre
    rows, columns = (_between(places, corners @ axis) for axis in (up, right))
    offsets = view.centre + (places[rows, None, None] * up + places[None, columns, None] * right)
    part = picture[rows, columns]
    colours, passing = transfer.tables(view.step)
    depths = corners @ away
    for number in range(view.samples()):
        step()
        depth = view.depth(number)
        if depths.min() <= depth <= depths.max():
            _add_sample(part, block, offsets + depth * away, colours, passing)
    return picture


def _add_sample(
    part: Floats, block: Block, points: Floats, colours: Floats, passing: Floats
) -> None:
    """Add one sample of each ray behind those before it."""
    inside = np.all((points >= block.start) & (points < block.end), -1)
    if not inside.any():
        return
    values = interpolate(block, points[inside])
    level = np.arange(256)
    colour = np.stack([np.interp(values, level, band) for band in colours.T], -1)
    # Of the logarithm, as extinction is linear in the value.
    light = np.exp(np.interp(values, level, np.log(passing)))
    pixels = part[inside]
    pixels[:, :3] += (pixels[:, 3] * (1 - light))[:, None] * colour
    pixels[:, 3] *= light
    part[inside] = pixels


def interpolate(block: Block, points: Floats) -> Floats:
    """Return the values at points, linear between the centres of voxels.

    Args:
        block: the voxels.
        points: places in the volume, of shape (n, 3).
    """
    last = np.array(block.values.shape) - 1
    places = np.clip(points - 0.5 - block.origin, 0, last)
    low = np.minimum(places.astype(np.intp), np.maximum(last - 1, 0))
    weight, high = places - low, np.minimum(low + 1, last)
    ends = ((low, 1 - weight), (high, weight))
    result = np.zeros(len(points))
    for z, weight_z in ends:
        for y, weight_y in ends:
            for x, weight_x in ends:
                voxels = block.values[z[:, 0], y[:, 1], x[:, 2]]
                result += voxels * (weight_z[:, 0] * weight_y[:, 1] * weight_x[:, 2])
    return result


def _between(places: Floats, ends: Floats) -> slice:
    """Return the ascending places between the least and the largest of some ends."""
    return slice(
        int(np.searchsorted(places, ends.min())), int(np.searchsorted(places, ends.max(), "right"))
    )
