"""The smallest pixel box that contains the part of a sky region shown by an image.

The outline of the region is mapped to pixels. If all of it is on the image, its extremes give the
box. Else it is clipped at the image's border, and corners of the image inside the region are added;
so a region that only comes near an image has no box. Images of the whole sky, or with pixels
outside the sky, have no simple outline: their pixels are tested.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from swathe.datasets.spherical import angle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.core.box import Box
    from swathe.portal.vo.geometry.fast_wcs import FastWcs
    from swathe.portal.vo.geometry.regions import BoundaryCurve, SkyRegion

STEP_PIXELS = 128
"""Step along an outline whose extremes are found by parabolas: error a millionth of its radius."""
CUT_STEP_PIXELS = 1
"""Step along an outline that is clipped somewhere."""
ROUNDING = 1e-6
"""Part of a pixel that an outline may cover without including the pixel."""
GRID = 512
"""Number of pixels along each axis that are tested first, if an image has no simple outline."""
STRIP = 1 << 20
"""Number of pixels tested together."""

Span = tuple[float, float, float, float]


def smallest_box(
    region: SkyRegion, places: FastWcs, width: int, height: int, orderly: bool
) -> Box | None:
    """Return the box, or None if no pixel shows any of the region.

    Args:
        region: Region of the sky.
        places: Mapping between the sky and the image.
        width: Number of pixels along the first axis.
        height: Number of pixels along the second axis.
        orderly: Whether each sky position is one pixel all over the image, near its border too.
    """
    if not orderly:
        return _from_pixels(region, places, width, height)
    if region.radius < math.pi / 2:
        span = _full_span(region.curves(STEP_PIXELS * places.scale), places)
        if span is not None:
            low_x, high_x, low_y, high_y = span
            if low_x >= -0.5 and low_y >= -0.5 and high_x <= width - 0.5 and high_y <= height - 0.5:
                return _box(span, width, height)
    return _box(_cut_off(region, places, width, height), width, height)


def _box(span: Span | None, width: int, height: int) -> Box | None:
    if span is None:
        return None
    low_x, high_x, low_y, high_y = span
    x0, x1 = _ends(low_x, high_x, width)
    y0, y1 = _ends(low_y, high_y, height)
    return (x0, y0, x1 - x0, y1 - y0) if x0 < x1 and y0 < y1 else None


def _ends(low: float, high: float, length: int) -> tuple[int, int]:
    """Return `[first, last)` of the pixels between two positions; a pixel is 0.5 each way."""
    first = math.floor(low + 0.5 + ROUNDING)
    last = max(math.ceil(high + 0.5 - ROUNDING), first + 1)
    return max(first, 0), min(last, length)


def _full_span(curves: list[BoundaryCurve], places: FastWcs) -> Span | None:
    """Return the extremes of curves, or None if part of one has no pixel position."""
    spans = []
    for curve in curves:
        x, y = places.world_to_pixel(curve.places)
        spans.append((*_extremes(x, curve.corners), *_extremes(y, curve.corners)))
    span = _around(spans)
    return span if all(map(math.isfinite, span)) else None


def _around(spans: list[Span]) -> Span:
    if len(spans) == 1:
        return spans[0]
    low_x, high_x, low_y, high_y = zip(*spans, strict=True)
    return min(low_x), max(high_x), min(low_y), max(high_y)


def _extremes(values: NDArray[np.float64], corners: frozenset[int]) -> tuple[float, float]:
    """Return the smallest and the largest value of a closed curve."""
    return (
        _extreme(values, int(values.argmin()), corners),
        _extreme(values, int(values.argmax()), corners),
    )


def _extreme(values: NDArray[np.float64], at: int, corners: frozenset[int]) -> float:
    """Return the extreme near an index, by a parabola through the value and its neighbours."""
    here = float(values[at])
    if at in corners:
        return here
    previous, following = float(values[at - 1]), float(values[(at + 1) % len(values)])
    bend = previous - 2 * here + following
    return here if bend == 0 else here - (following - previous) ** 2 / (8 * bend)


def _cut_off(region: SkyRegion, places: FastWcs, width: int, height: int) -> Span | None:
    """Return the extremes of the part of a region that is on the image."""
    right, high = width - 0.5, height - 0.5
    spans = []
    for curve in region.curves(CUT_STEP_PIXELS * places.scale):
        span = _inside(curve, places, right, high)
        if span is not None:
            spans.append(span)
    x, y = np.array([-0.5, right, right, -0.5]), np.array([-0.5, -0.5, high, high])
    inside = region.holds(places.pixel_to_vector(x, y))
    if inside.any():
        x, y = x[inside], y[inside]
        spans.append((float(x.min()), float(x.max()), float(y.min()), float(y.max())))
    return _around(spans) if spans else None


def _inside(curve: BoundaryCurve, places: FastWcs, right: float, high: float) -> Span | None:
    """Return the extremes of the parts of a curve that are on the image."""
    x, y = places.world_to_pixel(curve.places)
    dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
    # Clip each line at the sides of the image, as fractions of its length.
    start, end = np.zeros(len(x)), np.ones(len(x))
    with np.errstate(invalid="ignore", divide="ignore"):
        for at, step, most in ((x, dx, right), (y, dy, high)):
            low, far = (-0.5 - at) / step, (most - at) / step
            still = step == 0
            within = (at >= -0.5) & (at <= most)
            first = np.where(still, np.where(within, 0.0, 2.0), np.minimum(low, far))
            last = np.where(still, 1.0, np.maximum(low, far))
            start, end = np.maximum(start, first), np.minimum(end, last)
        visible = np.isfinite(dx) & np.isfinite(dy) & (start <= end)
    if not visible.any():
        return None
    x, y, dx, dy, start, end = (each[visible] for each in (x, y, dx, dy, start, end))
    real = _is_real(curve, visible, places, x + dx * (start + end) / 2, y + dy * (start + end) / 2)
    x, y, dx, dy, start, end = (each[real] for each in (x, y, dx, dy, start, end))
    if not len(x):
        return None
    along, up = (np.concatenate([at + d * start, at + d * end]) for at, d in ((x, dx), (y, dy)))
    return float(along.min()), float(along.max()), float(up.min()), float(up.max())


def _is_real(
    curve: BoundaryCurve,
    visible: NDArray[np.bool_],
    places: FastWcs,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Return which lines belong to the curve; at the edge of a map, lines jump across all of it."""
    ends = np.roll(curve.places, -1, axis=0)
    starts, stops = curve.places[visible], ends[visible]
    long = angle(starts, stops) + places.scale
    apart = angle(places.pixel_to_vector(x, y), starts)
    result: NDArray[np.bool_] = apart <= 2 * long
    return result


def _from_pixels(region: SkyRegion, places: FastWcs, width: int, height: int) -> Box | None:
    """Test which pixels show the region: on a grid first, then all pixels near the matches."""
    step_x, step_y = -(-width // GRID), -(-height // GRID)
    columns = np.unique(np.append(np.arange(0, width, step_x), width - 1))
    rows = np.unique(np.append(np.arange(0, height, step_y), height - 1))
    spans = [_span_of(region, places, columns, rows)]
    for curve in region.curves(CUT_STEP_PIXELS * places.scale):
        x, y = (np.rint(each) for each in places.world_to_pixel(curve.places))
        with np.errstate(invalid="ignore"):
            on = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        x, y = x[on], y[on]
        back = angle(places.pixel_to_vector(x, y), curve.places[on]) <= 2 * places.scale
        if back.any():
            x, y = x[back], y[back]
            spans.append((float(x.min()), float(x.max()), float(y.min()), float(y.max())))
    found_spans = [span for span in spans if span is not None]
    if not found_spans:
        return None
    low_x, high_x, low_y, high_y = map(int, _around(found_spans))
    near_x = np.arange(max(0, low_x - step_x), min(width, high_x + step_x + 1))
    near_y = np.arange(max(0, low_y - step_y), min(height, high_y + step_y + 1))
    for strip_x, strip_y in (
        (near_x[near_x < low_x], near_y),
        (near_x[near_x > high_x], near_y),
        (near_x, near_y[near_y < low_y]),
        (near_x, near_y[near_y > high_y]),
    ):
        span = _span_of(region, places, strip_x, strip_y)
        if span is not None:
            found_spans.append(span)
    low_x, high_x, low_y, high_y = map(int, _around(found_spans))
    return low_x, low_y, high_x - low_x + 1, high_y - low_y + 1


def _span_of(
    region: SkyRegion, places: FastWcs, columns: NDArray[np.int64], rows: NDArray[np.int64]
) -> Span | None:
    """Return the extremes of the pixels that show the region."""
    if not len(columns) or not len(rows):
        return None
    spans: list[Span] = []
    at_once = max(1, STRIP // len(columns))
    for first in range(0, len(rows), at_once):
        across, up = np.meshgrid(columns, rows[first : first + at_once])
        x, y = across.ravel().astype(float), up.ravel().astype(float)
        inside = region.holds(places.pixel_to_vector(x, y))
        if inside.any():
            x, y = x[inside], y[inside]
            spans.append((float(x.min()), float(x.max()), float(y.min()), float(y.max())))
    return _around(spans) if spans else None
