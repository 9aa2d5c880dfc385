"""Make pictures of pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from swathe.core.errors import RegionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

Stretch = Literal["asinh", "linear", "log", "sqrt"]
STRETCHES: tuple[Stretch, ...] = get_args(Stretch)
LARGEST_SIDE = 4096
"""Largest side of a picture in pixels; larger images are thinned."""
SOFTENING, LOG_SCALE = 0.1, 1000
"""Parameters of the stretches `asinh` and `log`."""
SAMPLES, LEAST_SAMPLES, LEAST_PART = 1000, 5, 0.5
"""Samples of zscale: how many, and how many must stay, as a number and as a part."""
FITS, CLIP_SIGMAS, CONTRAST = 5, 2.5, 0.25
"""Fits of zscale, beyond which distance from the line a sample is an outlier, and its contrast."""


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
    levels = np.clip((np.where(finite, plane, black) - black) / spread, 0, 1)
    return np.asarray(stretch_levels(levels, stretch)[::-1] * 255).round().astype(np.uint8)


def _limits(
    values: NDArray[np.float64], low: float | None, high: float | None
) -> tuple[float, float]:
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):  # squares of huge values
        black, white = zscale(values)
        if low is not None:
            black = float(np.percentile(values, low))
        if high is not None:
            white = float(np.percentile(values, high))
    return black, white


def zscale(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the limits of IRAF's zscale: a line fitted to sorted samples, without outliers.

    The numbers are those of `astropy.visualization.ZScaleInterval`, whose import takes 0.3 s.
    """
    import numpy as np

    samples = np.sort(values[:: max(1, values.size // SAMPLES)][:SAMPLES])
    count = len(samples)
    least = max(LEAST_SAMPLES, int(count * LEAST_PART))
    x, kernel = np.arange(count), np.ones(max(1, int(count * 0.01)), bool)
    bad = np.zeros(count, bool)
    low, high = float(samples[0]), float(samples[-1])
    good, before, slope = count, count + 1, 0.0
    for _ in range(FITS):
        if good >= before or good < least:
            break
        line = np.polyfit(x, samples, deg=1, w=(~bad).astype(int))
        flat = samples - np.polyval(line, x)
        limit = CLIP_SIGMAS * flat[~bad].std()
        bad[(flat < -limit) | (flat > limit)] = True
        bad = np.convolve(bad, kernel, mode="same")
        good, before, slope = int((~bad).sum()), good, float(line[0])
    if good < least:
        return low, high
    center, median, slope = (count - 1) // 2, float(np.median(samples)), slope / CONTRAST
    return (
        max(low, median - (center - 1) * slope),
        min(high, median + (count - center) * slope),
    )


def stretch_levels(values: NDArray[np.float64], stretch: Stretch) -> NDArray[np.float64]:
    """Return values of 0 to 1 along a curve from 0 to 1."""
    import numpy as np

    levels: NDArray[np.float64]
    match stretch:
        case "asinh":
            levels = np.arcsinh(values / SOFTENING) / np.arcsinh(1 / SOFTENING)
        case "log":
            levels = np.log(LOG_SCALE * values + 1) / np.log(LOG_SCALE + 1)
        case "sqrt":
            levels = np.sqrt(values)
        case "linear":
            levels = values
    return levels


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
