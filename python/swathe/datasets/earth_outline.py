"""Compute the footprint of an array on the Earth: polygons, and HEALPix cells.

Longitude and latitude are directions, so poles and the dateline are no special case. The places of
pixels are divided into parts of at most 40 degrees around their centre. Each part has a polygon
with great circles as sides, which is used only if it contains the places, and little else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from swathe.catalog.records.datasets import EarthFootprint
from swathe.core.errors import RegionError
from swathe.datasets import healpix
from swathe.datasets.footprint import MARGIN
from swathe.datasets.spherical import (
    angle,
    cross,
    degrees,
    directions,
    distances,
    distances_to_sides,
    flat,
    length,
    middle,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LARGEST_PART = math.radians(40)
TOLERANCE_PIXELS = 0.25
"""Distance of an outline from the edge of the pixels, unless it needs too many corners."""
COARSEST_PIXELS = 2.0
COARSEST_PART = 1 / 500
"""Largest distances of an outline, in pixels or as a part of its radius."""
FEW_CORNERS, MOST_CORNERS = 200, 2000
MOST_PARTS = 200
MOST_APART = 8
"""Radius of a few places that have no polygon of their own, relative to their usual distance."""
PLACES = 600
"""Places of a part, beside those of its edge, that are compared with its polygon."""
BORDER = 16
"""Rows and columns along the edge whose places are all compared with the polygon."""
MOST_EDGE = 2**19
"""Rows and columns of all parts that are tried."""
MOST_ROUNDS = 40
"""How often all places of an edge are compared with its polygon, while corners are added."""
MOST_TRIES = 4
"""How often a polygon is made wider until all places are in it."""
MOST_PAIRS = 2**18
"""Places times corners that are compared at the same time."""
LARGEST_EXCESS = 1.5
"""Area of a polygon, relative to that of the pixels in it."""


def earth_footprint(
    latitude: NDArray[np.float64],
    longitude: NDArray[np.float64],
    steps: tuple[float, float],
    slack: float = 0.0,
) -> EarthFootprint:
    """Return the footprint of places in rows and columns, in degrees; NaN where there is none.

    Args:
        latitude: latitudes, two axes; numbers beyond the poles are no place.
        longitude: longitudes from -360 to 720, of the same shape; others are no place.
        steps: pixels from one row to the next, and from one column to the next.
        slack: how far places between these may lie outside of them, in pixels.

    Raises:
        RegionError: If there is no place, or no polygons follow the places.
    """
    with np.errstate(invalid="ignore"):
        is_place = (np.abs(latitude) <= 90) & (longitude >= -360) & (longitude <= 720)
        vectors = directions(longitude, latitude)
    vectors[~is_place] = np.nan
    if not is_place.any():
        raise RegionError("expected latitudes and longitudes of pixels, found none")
    polygons = []
    for polygon in _polygons(vectors, max(steps), slack, _pixel(vectors)):
        polygons.append(polygon)
        if len(polygons) > MOST_PARTS:
            raise RegionError(
                f"expected at most {MOST_PARTS} polygons around the pixels, found more: its "
                "latitudes and longitudes are not continuous"
            )
    centre, _ = middle(vectors[is_place])
    return _footprint_of(polygons, centre)


def with_edges(
    vectors: NDArray[np.float64], axis: int, steps: tuple[float, float]
) -> NDArray[np.float64]:
    """Return directions of rows or columns, with two more half a pixel outside the first and last.

    Args:
        vectors: directions of pixels, along the last axis.
        axis: axis of the pixels.
        steps: pixels between the first two, and between the last two.
    """
    if vectors.shape[axis] < 2:
        return vectors
    rows = np.moveaxis(vectors, axis, 0)
    first = rows[0] + (rows[0] - rows[1]) * 0.5 / steps[0]
    last = rows[-1] + (rows[-1] - rows[-2]) * 0.5 / steps[1]
    ends = [each / length(each)[..., None] for each in (first, last)]
    # A pixel whose neighbour has no place is itself the edge.
    ends = [
        np.where(np.isfinite(end), end, edge)
        for end, edge in zip(ends, (rows[0], rows[-1]), strict=True)
    ]
    return np.moveaxis(np.concatenate([ends[0][None], rows, ends[1][None]]), 0, axis)


def _polygons(
    vectors: NDArray[np.float64], step: float, slack: float, apart: float
) -> Iterator[NDArray[np.float64]]:
    """Yield the corners of polygons that cover directions; parts share a row or column.

    Args:
        vectors: directions, two axes and one more.
        step: pixels from one direction to the next.
        slack: as of `earth_footprint`.
        apart: usual angle between two directions.

    Raises:
        RegionError: If directions side by side are too far apart.
    """
    parts = [
        each
        for half in _split_at_gaps(vectors, 0, step, apart)
        for each in _split_at_gaps(half, 1, step, apart)
    ]
    left = MOST_EDGE
    while parts:
        part = parts.pop()
        left -= sum(part.shape[:2])
        if left < 0:
            raise RegionError(
                "expected latitudes and longitudes that change little from pixel to pixel, found "
                "edges that go back and forth"
            )
        is_place = np.isfinite(part[..., 0])
        rows, columns = (np.flatnonzero(is_place.any(axis=axis)) for axis in (1, 0))
        if not len(rows):
            continue
        part = part[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        polygon = _polygon(part, step, slack)
        if polygon is not None:
            yield polygon
            continue
        axis = 0 if part.shape[0] >= part.shape[1] else 1
        half = part.shape[axis] // 2
        if part.shape[axis] < 4:
            places = part[np.isfinite(part[..., 0])]
            centre, radius = middle(places)
            if radius <= MOST_APART * apart:
                yield _octagon(centre, radius + apart / 2)
                continue
            raise RegionError(
                "expected latitudes and longitudes that change little from pixel to pixel, found "
                "others"
            )
        parts += np.split(part, [half + 1], axis=axis)[:1] + np.split(part, [half], axis=axis)[1:]


def _split_at_gaps(
    vectors: NDArray[np.float64], axis: int, step: float, apart: float
) -> list[NDArray[np.float64]]:
    """Split directions where all neighbours are far apart, as the two sides of a scatterometer.

    Pixels beside a gap reach half a pixel into it.
    """
    steps = length(np.diff(vectors, axis=axis))
    least = np.where(np.isfinite(steps), steps, np.inf).min(axis=1 - axis, initial=np.inf)
    gaps = np.flatnonzero(np.isfinite(least) & (least > MOST_APART * apart)) + 1
    parts = np.split(vectors, gaps[:MOST_PARTS], axis=axis)
    last = len(parts) - 1
    for number, part in enumerate(parts):
        if part.shape[axis] > 1:
            wide = np.moveaxis(with_edges(part, axis, (step, step)), axis, 0)
            wide = wide[int(number == 0) : len(wide) - int(number == last)]
            parts[number] = np.moveaxis(wide, 0, axis)
    return parts


def _octagon(centre: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Return the corners of an octagon that contains a circle."""
    east = np.cross(np.eye(3)[np.argmin(np.abs(centre))], centre)
    east /= np.linalg.norm(east)
    turns = np.arange(8)[:, None] * math.pi / 4
    around = np.cos(turns) * east + np.sin(turns) * np.cross(centre, east)
    reach = math.atan(math.tan(radius) / math.cos(math.pi / 8))
    corners: NDArray[np.float64] = math.cos(reach) * centre + math.sin(reach) * around
    return corners


def _strip(ends: NDArray[np.float64], half: float) -> NDArray[np.float64]:
    """Return the corners of a strip around a line, `half` radians to both sides."""
    across = np.cross(ends[0], ends[1])
    across *= half / np.linalg.norm(across)
    corners = np.stack([ends[0] - across, ends[1] - across, ends[1] + across, ends[0] + across])
    return corners / length(corners)[:, None]


def _polygon(part: NDArray[np.float64], step: float, slack: float) -> NDArray[np.float64] | None:
    """Return the corners of a polygon around directions; `None` if none is close enough."""
    places = part[np.isfinite(part[..., 0])]
    centre, radius = middle(places)
    if radius > LARGEST_PART:
        return None
    edge = _edge(part)
    if len(edge) < 3:
        return None
    pixel = _pixel(part) / step
    tolerance = TOLERANCE_PIXELS * pixel
    coarsest = max(COARSEST_PIXELS * pixel, COARSEST_PART * radius)
    polygon = _simple(edge, tolerance)
    while (polygon is None or len(polygon) > FEW_CORNERS) and tolerance < coarsest:
        tolerance *= 2
        polygon = _simple(edge, tolerance)
    if polygon is None:
        return None
    if len(polygon) == 2:
        strip = _strip(polygon, pixel / 2)
        off = _farthest(strip, edge)
        return _with_margin(strip, centre, 1.5 * off) if off <= 2 * tolerance + 1e-9 else None
    if len(polygon) > MOST_CORNERS:
        return None
    some = places[:: max(1, len(places) // PLACES)]
    if _farthest(polygon, some) > 2 * tolerance + 1e-9:
        return None
    # Places are in the polygon, not beside it, or a search for them would miss them. Where a sharp
    # corner was cut off, some may still be outside.
    around, wider = np.concatenate([edge, some, _border(part)]), 0.0
    for _ in range(MOST_TRIES):
        off = _farthest(polygon, around)
        if off > 2 * tolerance + 1e-9:
            return None
        if off <= 1e-9:
            break
        polygon = _with_margin(polygon, centre, 1.5 * off)
        wider += 1.5 * off
    else:
        return None
    # Places between these, that were left out, may lie a little farther outside.
    polygon = _with_margin(polygon, centre, slack * pixel)
    wider += slack * pixel
    area = abs(_areas(flat(polygon, centre)[:, None])[0])
    on_map = flat(part, centre)
    corners = [on_map[:-1, :-1], on_map[:-1, 1:], on_map[1:, 1:], on_map[1:, :-1]]
    pixels = np.nansum(np.abs(_areas(np.stack(corners))))
    margin = (2 * tolerance + wider) * length(np.diff(polygon, axis=0, append=polygon[:1])).sum()
    return polygon if area <= LARGEST_EXCESS * pixels + margin else None


def _border(part: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the places near the edge: rows of scans overlap there, and go back and forth."""
    is_place = np.isfinite(part[..., 0])
    is_border = np.zeros_like(is_place)
    for axis in (0, 1):
        counts = np.cumsum(is_place, axis=axis)
        rest = counts.take([-1], axis=axis) - counts
        is_border |= (counts <= BORDER) | (rest < BORDER)
    border: NDArray[np.float64] = part[is_place & is_border]
    return border


def _farthest(polygon: NDArray[np.float64], points: NDArray[np.float64]) -> float:
    """Return the largest distance in radians of points from a polygon; 0 if all are inside."""
    block = max(1, MOST_PAIRS // len(polygon))
    parts = [points[start : start + block] for start in range(0, len(points), block)]
    return max(
        float(distances(np.broadcast_to(polygon, (len(each), *polygon.shape)), each).max())
        for each in parts
    )


def _with_margin(
    polygon: NDArray[np.float64], centre: NDArray[np.float64], by: float
) -> NDArray[np.float64]:
    """Return the corners of a polygon whose sides lie `by` radians farther outside."""
    if by <= 0:
        return polygon
    far = by * (1 + 1e-6)
    turn = np.sign(_areas(flat(polygon, centre)[:, None])[0])
    polygon = polygon[angle(polygon, np.roll(polygon, -1, axis=0)) > 1e-12]
    after = cross(np.roll(polygon, -1, axis=0), polygon) * turn
    after /= length(after)[:, None]
    before = np.roll(after, 1, axis=0)
    cosine = np.einsum("nk,nk->n", before, after)[:, None]
    ahead, behind = cross(polygon, before) * turn, cross(after, polygon) * turn
    is_sharp = (cosine[:, 0] < 0) & (np.einsum("nk,nk->n", behind, before) > 0)
    # Both sides meet farther outside. A sharp corner is cut off, and has two.
    one = polygon + far * (before + after) / np.maximum(1 + cosine, 0.5)
    two = polygon + far * (before + ahead), polygon + far * (after + behind)
    corners = np.stack([np.where(is_sharp[:, None], two[0], one), two[1]], axis=1)
    corners = corners[np.column_stack([np.ones(len(polygon), bool), is_sharp])]
    wider: NDArray[np.float64] = corners / length(corners)[:, None]
    return wider


def _edge(part: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first row, the last places of all rows, the last row, the first places of all."""
    is_place = np.isfinite(part[..., 0])
    rows = np.flatnonzero(is_place.any(axis=1))
    first = is_place.argmax(axis=1)
    last = is_place.shape[1] - 1 - is_place[:, ::-1].argmax(axis=1)
    top, bottom = (part[row][is_place[row]] for row in (rows[0], rows[-1]))
    right, left = part[rows, last[rows]], part[rows, first[rows]]
    edge = np.concatenate([top, right[1:], bottom[::-1][1:], left[::-1][1:]])
    # At a pole a row is one point, and the last point is the first again.
    return edge[angle(edge, np.roll(edge, 1, axis=0)) > 1e-12]


def _pixel(part: NDArray[np.float64]) -> float:
    """Return the median angle between neighbours, in radians; of the longer axis of a pixel."""
    sizes = [0.0]
    for axis in (0, 1):
        apart = length(np.diff(part, axis=axis))
        apart = apart[np.isfinite(apart)]
        if len(apart):
            sizes.append(float(np.median(apart)))
    return max(sizes)


def _simple(edge: NDArray[np.float64], tolerance: float) -> NDArray[np.float64] | None:
    """Return the corners of a polygon that are needed to follow it (Douglas and Peucker).

    Of one that goes back and forth, with which that takes long, it is `None`.
    """
    ring = np.concatenate([edge, edge[:1]])
    opposite = int(angle(edge, edge[0]).argmax())
    is_corner = np.zeros(len(edge), bool)
    is_corner[[0, opposite]] = True
    sections = [(0, opposite), (opposite, len(edge))]
    left = MOST_ROUNDS * len(edge)
    while sections:
        start, end = sections.pop()
        if end - start < 2:
            continue
        left -= end - start
        if left < 0:
            return None
        between = ring[start + 1 : end]
        chord = np.broadcast_to(ring[[start, end]], (len(between), 2, 3))
        off = distances_to_sides(chord, between)[:, 0]
        farthest = int(off.argmax())
        if off[farthest] > tolerance:
            at = start + 1 + farthest
            is_corner[at] = True
            sections += [(start, at), (at, end)]
    return edge[is_corner]


def _areas(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return signed areas of polygons on a map, corners along the first axis."""
    x, y = corners[..., 0], corners[..., 1]
    x_next, y_next = np.roll(x, -1, axis=0), np.roll(y, -1, axis=0)
    areas: NDArray[np.float64] = (x * y_next - x_next * y).sum(axis=0) / 2
    return areas


def _footprint_of(
    polygons: list[NDArray[np.float64]], centre: NDArray[np.float64]
) -> EarthFootprint:
    radius = float(angle(np.concatenate(polygons), centre).max())
    if radius > math.pi / 2:
        # The farthest place may lie between corners.
        radius = math.pi
    ranges = [each for polygon in polygons for each in _ranges_of(polygon)]
    lon, lat = degrees(centre)
    outlines = []
    for polygon in polygons:
        corners = np.column_stack(degrees(polygon))
        outlines.append(np.round(corners, 7).ravel().tolist())
    fov = min(360.0, 2 * math.degrees(radius) * MARGIN)
    return EarthFootprint(float(lon), float(lat), fov, _union(ranges), outlines)


def _ranges_of(polygon: NDArray[np.float64]) -> list[tuple[int, int]]:
    centre, radius = middle(polygon)
    order = healpix.order_for(radius / 3)
    near = healpix.cells_around(centre, radius + healpix.cell_radius(order), order)
    polygons = np.broadcast_to(polygon, (len(near), *polygon.shape))
    off = distances(polygons, healpix.centres(near, order))
    return healpix.ranges(near[off <= healpix.cell_radius(order)], order)


def _union(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    union: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if union and first <= union[-1][1] + 1:
            union[-1] = union[-1][0], max(last, union[-1][1])
        else:
            union.append((first, last))
    return union
