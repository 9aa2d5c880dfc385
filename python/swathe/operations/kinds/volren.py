"""Render volumes: a picture of three axes of an array, or of a cube, by ray casting."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from swathe.core.errors import RegionError
from swathe.operations.operation import ConvertingOperation, NumberOption, ResultFormat, check_stop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from swathe.files.array_cutout import ArrayCutout
    from swathe.files.cutout import Cutout

STEP = 0.5
"""Distance of samples along a ray, in voxels."""
MOST_SAMPLES = 200_000_000
"""Samples of all rays of a picture: half a minute."""
SAMPLE_COST = 1000
"""A step along all rays takes as long as so many samples, however few the rays are."""


class VolrenOperation(ConvertingOperation):
    """One picture for each target."""

    name = "volren"
    title = "Render a volume"
    formats = (
        ResultFormat(
            "volren",
            "PNG, of a volume",
            "a picture of a volume",
            ".png",
            "image/png",
            0.05,
            1.0,
            is_compressed=True,
            memory_per_pixel=24,
        ),
    )
    options = (
        NumberOption(
            "azimuth", "Azimuth", "Direction of view around z, degrees", (), 30.0, None, -360, 360
        ),
        NumberOption(
            "elevation", "Elevation", "Direction of view above x and y, degrees", (), 20.0, None,
            -90, 90,
        ),
        NumberOption(
            "side", "Side", "Width and height of the picture, pixels", (), 256, None, 1, 1024,
            is_whole=True,
        ),
        NumberOption(
            "opacity", "Opacity", "Extinction of the greatest value, per voxel", (), 0.05, None,
            1e-6, 1e3,
        ),
    )  # fmt: skip

    def convert(
        self,
        cutout: Cutout,
        name: Path,  # noqa: ARG002 - there is one format
        options: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> bytes:
        """Return the picture of a cube."""
        return _picture(cutout.data, options, cutout.url, should_stop)

    def convert_array(
        self,
        cutout: ArrayCutout,
        name: Path,  # noqa: ARG002 - as above
        options: Mapping[str, Any],
        should_stop: Callable[[], bool],
    ) -> bytes:
        """Return the picture of an array, without its axes of one element."""
        values = cutout.data if cutout.dtype == "u1" else cutout.physical
        return _picture(values, options, f"{cutout.url}, array {cutout.path}", should_stop)

    def result_bytes(self, options: Mapping[str, Any]) -> int:
        """Return the size of a picture before it is compressed."""
        return 3 * int(options["side"]) ** 2


def _picture(
    values: NDArray[Any], options: Mapping[str, Any], what: str, should_stop: Callable[[], bool]
) -> bytes:
    """Return the picture of a volume as PNG.

    Raises:
        RegionError: If it has not three axes, or its picture takes too long.
        Interruption: If the work was stopped.
    """
    from swathe.operations.ray_casting import TransferFunction, View, png_of, render

    if values.dtype.kind not in "biuf":
        raise RegionError(f"{what}: expected numbers, found elements of {values.dtype}")
    volume = values.reshape([length for length in values.shape if length > 1])
    if volume.ndim != 3:
        raise RegionError(
            f"{what}: expected three axes of more than one element, found {values.shape}"
        )
    view = View(volume.shape, options["azimuth"], options["elevation"], options["side"], STEP)
    samples = view.samples() * (view.pixels**2 + SAMPLE_COST)
    if samples > MOST_SAMPLES:
        raise RegionError(
            f"{what}: expected a picture of up to {MOST_SAMPLES:,} samples, found {samples:,}; "
            "choose a smaller side or region"
        )
    transfer = TransferFunction(options["opacity"])
    return png_of(render(_levels(volume), view, transfer, partial(check_stop, should_stop)))


def _levels(volume: NDArray[Any]) -> NDArray[Any]:
    """Return the values as bytes: 0 for the least and for those that are none, 255 for the most."""
    import numpy as np

    if volume.dtype == np.uint8:
        return volume
    is_finite = np.isfinite(volume)
    if not is_finite.any():
        return np.zeros(volume.shape, np.uint8)
    # Halves, as the difference of two numbers may be none.
    halves = np.where(is_finite, volume, volume[is_finite][0]) / 2.0
    least = halves.min()
    levels = (halves - least) * (255 / ((halves.max() - least) or 1))
    return np.where(is_finite, np.rint(levels), 0).astype(np.uint8)


OPERATION = VolrenOperation()
