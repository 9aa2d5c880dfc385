"""Make a colour picture of three images of each group, red first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swathe.core.errors import OptionError, RegionError
from swathe.operations.operation import ALIGNING_MEMORY, CombiningOperation, ResultFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from swathe.operations.grid import AlignedImage, Grid

BANDS = 3
LUPTON_Q = 8.0
LUPTON_SIGMAS = 10.0
"""Range of the linear part of a picture's stretch, in standard deviations of the sky."""


class RgbOperation(CombiningOperation):
    """One picture of three bands for each target, or for each group of three images."""

    name = "rgb"
    title = "Colour picture of three bands"
    formats = (
        ResultFormat(
            "rgb",
            "PNG, colour from three bands",
            "a picture of three bands",
            ".png",
            "image/png",
            0.1,
            30e-3,
            pixel_bytes=3,
            is_compressed=True,
            memory_per_pixel=ALIGNING_MEMORY,
        ),
    )

    def check_bands(self, bands: Sequence[str], *, are_needed: bool) -> None:
        """Check that there are three bands; images that are listed need none."""
        if len(bands) != BANDS and (bands or are_needed):
            raise OptionError(f"bands: expected three, red first, found {len(bands)}")

    def name_results(self, targets: Sequence[str], groups: Sequence[str]) -> list[str]:
        """Return the ids of the targets, or the groups of images that were listed."""
        return list(targets) or super().name_results(targets, groups)

    def choose_images(
        self,
        image_bands: Sequence[str],
        bands: Sequence[str],
        distance: Callable[[int], float] | None,
    ) -> tuple[list[int], str]:
        """Choose one image of each band; of images that were searched, the nearest."""
        if not bands:
            fault = f"a picture needs three images, red first; found {len(image_bands)}"
            every = list(range(len(image_bands)))
            return (every, "") if len(image_bands) == BANDS else ([], fault)
        images = []
        for band in bands:
            of_band = [index for index, each in enumerate(image_bands) if each == band]
            if distance is not None and of_band:
                of_band = [min(of_band, key=distance)]
            if distance is not None and not of_band:
                return [], f"no image of band {band} shows it"
            if len(of_band) != 1:
                return [], f"a picture needs one image of band {band}; found {len(of_band)}"
            images += of_band
        return images, ""

    def make(
        self,
        path: Path,
        grid: Grid,  # noqa: ARG002 - the images are on it
        images: Sequence[AlignedImage],
        options: Mapping[str, Any],  # noqa: ARG002 - it has none
        should_stop: Callable[[], bool],  # noqa: ARG002 - it takes no time
    ) -> bool:
        """Write the picture."""
        _picture(path, [each.pixels for each in images])
        return True


def _picture(path: Path, images: Sequence[Path]) -> None:
    """Write a picture of three bands, red first, as in Lupton et al. (2004).

    Raises:
        RegionError: If there are not three images.
    """
    import numpy as np
    from astropy.visualization import make_lupton_rgb
    from PIL import Image

    from swathe.operations.grid import noise

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
        spreads.append(noise(pixels))
    stretch = LUPTON_SIGMAS * max(float(np.mean(spreads or [0.0])), 1e-12)
    with np.errstate(invalid="ignore"):  # It divides 0 by 0 where all bands are 0, and drops it.
        picture = make_lupton_rgb(*bands, minimum=0.0, stretch=stretch, Q=LUPTON_Q)
    Image.fromarray(picture[::-1]).save(path, "PNG")


OPERATION = RgbOperation()
