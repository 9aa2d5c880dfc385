"""The smallest pixel box that holds what an image shows of a region of the sky.

The outline of the region is followed on the image. Where the image shows it wholly that is all.
Else it is cut off at the image's border, whose corners may lie in the region; so a region that only
comes near an image has no box. Images of all the sky, or of places that are no sky, have no such
order: of them pixels are looked at.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from swathe.datasets.spherical import angle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from swathe.core.box import Box
    from swathe.portal.vo.geometry.fast_wcs import Places
    from swathe.portal.vo.geometry.regions import Curve, Region

STEP_PIXELS = 128
"""Between places of an outline whose extremes are found by parabolas: a millionth of its radius."""
CUT_STEP_PIXELS = 1
"""Between places of an outline that is cut off somewhere."""
ROUNDING = 1e-6
"""Of a pixel: what an outline may reach into one without needing it."""
GRID = 512
"""Pixels along each axis that are looked at first, where an image has no order."""
STRIP = 1 << 20
"""Pixels looked at together."""

Span = tuple[float, float, float, float]


def smallest_box(
    region: Region, places: Places, width: int, height: int, orderly: bool
) -> Box | None:
    """Give the box, or none where no pixel shows any of the region.

    Args:
        region: what is to be in it.
        places: the image's.
        width: pixels along its first axis.
        height: along its second.
        orderly: whether one place of the sky is one pixel all over the image, near its border too.
    """
    if not orderly:
        return _from_pixels(region, places, width, height)
    if region.radius < math.pi / 2:
        span = _whole(region.curves(STEP_PIXELS * places.scale), places)
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
    """Give `[first, last)` of the pixels between two positions; a pixel reaches half around it."""
    first = math.floor(low + 0.5 + ROUNDING)
    last = max(math.ceil(high + 0.5 - ROUNDING), first + 1)
    return max(first, 0), min(last, length)


def _whole(curves: list[Curve], places: Places) -> Span | None:
    """Give the extremes of curves, or none where part of one has no place on the image."""
    spans = []
    for curve in curves:
        x, y = places.pixels(curve.places)
        spans.append((*_extremes(x, curve.corners), *_extremes(y, curve.corners)))
    found = _around(spans)
    return found if all(map(math.isfinite, found)) else None


def _around(spans: list[Span]) -> Span:
    if len(spans) == 1:
        return spans[0]
    low_x, high_x, low_y, high_y = zip(*spans, strict=True)
    return min(low_x), max(high_x), min(low_y), max(high_y)


def _extremes(values: NDArray[np.float64], corners: frozenset[int]) -> tuple[float, float]:
    """Give the least and the greatest value of a closed curve."""
    return (
        _extreme(values, int(values.argmin()), corners),
        _extreme(values, int(values.argmax()), corners),
    )


def _extreme(values: NDArray[np.float64], at: int, corners: frozenset[int]) -> float:
    """Give the extreme near a place, by the parabola through it and those beside it."""
    here = float(values[at])
    if at in corners:
        return here
    before, after = float(values[at - 1]), float(values[(at + 1) % len(values)])
    bend = before - 2 * here + after
    return here if bend == 0 else here - (after - before) ** 2 / (8 * bend)


def _cut_off(region: Region, places: Places, width: int, height: int) -> Span | None:
    """Give the extremes of what of a region is on the image."""
    right, high = width - 0.5, height - 0.5
    spans = []
    for curve in region.curves(CUT_STEP_PIXELS * places.scale):
        span = _inside(curve, places, right, high)
        if span is not None:
            spans.append(span)
    x, y = np.array([-0.5, right, right, -0.5]), np.array([-0.5, -0.5, high, high])
    held = region.holds(places.directions(x, y))
    if held.any():
        x, y = x[held], y[held]
        spans.append((float(x.min()), float(x.max()), float(y.min()), float(y.max())))
    return _around(spans) if spans else None


def _inside(curve: Curve, places: Places, right: float, high: float) -> Span | None:
    """Give the extremes of the parts of a curve that are on the image."""
    x, y = places.pixels(curve.places)
    dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
    # Of each line the part between two fractions of it, side of the image by side.
    start, end = np.zeros(len(x)), np.ones(len(x))
    with np.errstate(invalid="ignore", divide="ignore"):
        for at, step, most in ((x, dx, right), (y, dy, high)):
            low, far = (-0.5 - at) / step, (most - at) / step
            still = step == 0
            within = (at >= -0.5) & (at <= most)
            first = np.where(still, np.where(within, 0.0, 2.0), np.minimum(low, far))
            last = np.where(still, 1.0, np.maximum(low, far))
            start, end = np.maximum(start, first), np.minimum(end, last)
        shown = np.isfinite(dx) & np.isfinite(dy) & (start <= end)
    if not shown.any():
        return None
    x, y, dx, dy, start, end = (each[shown] for each in (x, y, dx, dy, start, end))
    real = _is_real(curve, shown, places, x + dx * (start + end) / 2, y + dy * (start + end) / 2)
    x, y, dx, dy, start, end = (each[real] for each in (x, y, dx, dy, start, end))
    if not len(x):
        return None
    along, up = (np.concatenate([at + d * start, at + d * end]) for at, d in ((x, dx), (y, dy)))
    return float(along.min()), float(along.max()), float(up.min()), float(up.max())


def _is_real(
    curve: Curve,
    shown: NDArray[np.bool_],
    places: Places,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Tell which lines are the curve: where a map begins anew, lines go across all of it."""
    ends = np.roll(curve.places, -1, axis=0)
    before, after = curve.places[shown], ends[shown]
    long = angle(before, after) + places.scale
    apart = angle(places.directions(x, y), before)
    found: NDArray[np.bool_] = apart <= 2 * long
    return found


def _from_pixels(region: Region, places: Places, width: int, height: int) -> Box | None:
    """Look which pixels show the region: at a grid first, then at all beside those found."""
    step_x, step_y = -(-width // GRID), -(-height // GRID)
    columns = np.unique(np.append(np.arange(0, width, step_x), width - 1))
    rows = np.unique(np.append(np.arange(0, height, step_y), height - 1))
    spans = [_seen(region, places, columns, rows)]
    for curve in region.curves(CUT_STEP_PIXELS * places.scale):
        x, y = (np.rint(each) for each in places.pixels(curve.places))
        with np.errstate(invalid="ignore"):
            on = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        x, y = x[on], y[on]
        back = angle(places.directions(x, y), curve.places[on]) <= 2 * places.scale
        if back.any():
            x, y = x[back], y[back]
            spans.append((float(x.min()), float(x.max()), float(y.min()), float(y.max())))
    known = [span for span in spans if span is not None]
    if not known:
        return None
    low_x, high_x, low_y, high_y = map(int, _around(known))
    near_x = np.arange(max(0, low_x - step_x), min(width, high_x + step_x + 1))
    near_y = np.arange(max(0, low_y - step_y), min(height, high_y + step_y + 1))
    for strip_x, strip_y in (
        (near_x[near_x < low_x], near_y),
        (near_x[near_x > high_x], near_y),
        (near_x, near_y[near_y < low_y]),
        (near_x, near_y[near_y > high_y]),
    ):
        span = _seen(region, places, strip_x, strip_y)
        if span is not None:
            known.append(span)
    low_x, high_x, low_y, high_y = map(int, _around(known))
    return low_x, low_y, high_x - low_x + 1, high_y - low_y + 1


def _seen(
    region: Region, places: Places, columns: NDArray[np.int64], rows: NDArray[np.int64]
) -> Span | None:
    """Give the extremes of those pixels that show the region."""
    if not len(columns) or not len(rows):
        return None
    spans: list[Span] = []
    at_once = max(1, STRIP // len(columns))
    for first in range(0, len(rows), at_once):
        across, up = np.meshgrid(columns, rows[first : first + at_once])
        x, y = across.ravel().astype(float), up.ravel().astype(float)
        held = region.holds(places.directions(x, y))
        if held.any():
            x, y = x[held], y[held]
            spans.append((float(x.min()), float(x.max()), float(y.min()), float(y.max())))
    return _around(spans) if spans else None
