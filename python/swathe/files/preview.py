"""Make pictures of pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from swathe.core.errors import RegionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

Stretch = Literal["asinh", "linear", "log", "sqrt"]
LARGEST_SIDE = 4096
"""Largest side of a picture in pixels; larger images are thinned."""


def picture(data: NDArray[Any]) -> Image:
    """Return a grey picture of the first plane, `(..., y, x)`, y upwards, NaN black.

    The limits are those of IRAF's zscale; the stretch is asinh.
    """
    from PIL import Image

    return Image.fromarray(grey(data))


def grey(
    data: NDArray[Any],
    stretch: Stretch = "asinh",
    low: float | None = None,
    high: float | None = None,
) -> NDArray[np.uint8]:
    """Return the first plane as 8-bit greys, the top row first.

    Args:
        data: pixels, `(..., y, x)`.
        stretch: curve from values to greys.
        low: percentage of pixels below black; `None` for the limit of zscale.
        high: percentage of pixels below white; `None` for the limit of zscale.

    Raises:
        RegionError: If there is no plane.
    """
    import numpy as np

    if data.ndim < 2:
        raise RegionError(f"a picture needs two axes, not shape {data.shape}")
    plane = data.reshape(-1, *data.shape[-2:])[0]
    step = max(1, -(-max(plane.shape) // LARGEST_SIDE))
    plane = plane[::step, ::step].astype(float)
    finite = np.isfinite(plane)
    if not finite.any():
        return np.zeros(plane.shape, np.uint8)
    black, white = _limits(plane[finite], low, high)
    spread = white - black
    if not (np.isfinite(black) and 0 < spread < np.inf):
        black, spread = float(plane[finite].min()), 1.0
    scaled = np.clip((np.where(finite, plane, black) - black) / spread, 0, 1)
    return np.asarray(_stretch(scaled, stretch)[::-1] * 255).round().astype(np.uint8)


def _limits(
    values: NDArray[np.float64], low: float | None, high: float | None
) -> tuple[float, float]:
    import numpy as np
    from astropy.visualization import ZScaleInterval

    with np.errstate(over="ignore", invalid="ignore"):  # squares of huge values
        black, white = map(float, ZScaleInterval().get_limits(values))
        if low is not None:
            black = float(np.percentile(values, low))
        if high is not None:
            white = float(np.percentile(values, high))
    return black, white


def _stretch(values: NDArray[np.float64], stretch: Stretch) -> NDArray[np.float64]:
    from astropy.visualization import AsinhStretch, LinearStretch, LogStretch, SqrtStretch

    ways = {
        "asinh": AsinhStretch(0.1),
        "linear": LinearStretch(),
        "log": LogStretch(),
        "sqrt": SqrtStretch(),
    }
    stretched: NDArray[np.float64] = ways[stretch](values)
    return stretched


def contact_sheet(
    cutouts: Sequence[NDArray[Any]], captions: Sequence[str], columns: int = 8, side: int = 140
) -> Image:
    """Return one picture of many cutouts with captions, each `side` pixels wide."""
    from PIL import Image, ImageDraw

    caption_height = 14
    rows = -(-len(cutouts) // columns)
    sheet = Image.new("L", (columns * (side + 4), rows * (side + caption_height + 4)), 24)
    draw = ImageDraw.Draw(sheet)
    for number, (data, caption) in enumerate(zip(cutouts, captions, strict=True)):
        x, y = (
            number % columns * (side + 4) + 2,
            number // columns * (side + caption_height + 4) + 2,
        )
        tile = picture(data).resize((side, side), Image.Resampling.NEAREST)
        sheet.paste(tile, (x, y))
        draw.text((x + 2, y + side + 1), caption, fill=200)
    return sheet
