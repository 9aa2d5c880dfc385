"""Outlines on the Earth as polygons of longitude and latitude, as GeoJSON has them (RFC 7946).

Sides of outlines are great circles; sides in GeoJSON are straight in longitude and latitude. So
long sides get more corners. A polygon that crosses the dateline is cut there, and one with a pole
in it goes along the pole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from swathe.datasets.spherical import angle, degrees, directions, length

LONGEST_SIDE = math.radians(1)
"""A longer side is divided."""
Ring = NDArray[np.float64]
"""Corners of a polygon, shape `(n, 2)`: longitude from -180 to 180, latitude; not closed."""


def rings_of(outlines: Sequence[Sequence[float]]) -> list[Ring]:
    """Return polygons of longitude and latitude that cover the same as outlines do.

    Args:
        outlines: polygons with the corners lon, lat, lon, lat, ..., joined by great circles.
    """
    rings = []
    for outline in outlines:
        corners = np.array(outline, float).reshape(-1, 2)
        lon, lat = degrees(_short_sides(directions(corners[:, 0], corners[:, 1])))
        rings += _cut_at_dateline(_without_jumps(lon, lat))
    return rings


def planar_rings(corners: Ring) -> list[Ring]:
    """Return a polygon whose sides are straight in longitude and latitude, cut at the dateline."""
    return _cut_at_dateline(corners)


def _short_sides(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return directions along the sides of a polygon, close to each other."""
    ends = np.roll(corners, -1, axis=0)
    counts = np.maximum(1, np.ceil(angle(corners, ends) / LONGEST_SIDE).astype(int))
    along = np.concatenate([np.arange(count) / count for count in counts])[:, None]
    places = np.repeat(corners, counts, axis=0) * (1 - along)
    places += np.repeat(ends, counts, axis=0) * along
    corners_of_sides: NDArray[np.float64] = places / length(places)[:, None]
    return corners_of_sides


def _without_jumps(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> Ring:
    """Return corners without jumps of longitude; a ring around a pole is led along the pole."""
    lon_deg = np.degrees(np.unwrap(np.radians(np.append(lon, lon[0]))))
    whole = lon_deg[-1] - lon_deg[0]
    ring = np.column_stack([lon_deg[:-1], lat])
    if abs(whole) < 180:
        return ring
    pole = math.copysign(90, lat.mean())
    ends = [[lon_deg[-1], lat[0]], [lon_deg[-1], pole], [lon_deg[0], pole]]
    return np.concatenate([ring, ends])


def _cut_at_dateline(ring: Ring) -> list[Ring]:
    """Return the parts of a ring of any longitudes, each within -180 to 180."""
    west = math.floor((ring[:, 0].min() + 180) / 360)
    east = math.ceil((ring[:, 0].max() + 180) / 360)
    rings = []
    for turn in range(west, max(east, west + 1)):
        turn_ring = ring - [360 * turn, 0]
        part = _half(_half(turn_ring, -180, 1), 180, -1)
        if len(part) >= 3 and np.ptp(part[:, 0]) > 0:
            rings.append(part)
    return rings


def _half(ring: Ring, limit: float, sign: int) -> Ring:
    """Return the part of a ring on one side of a meridian (Sutherland and Hodgman)."""
    corners: list[NDArray[np.float64]] = []
    for start, end in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        inside = (start[0] - limit) * sign >= 0
        if inside:
            corners.append(start)
        if inside != ((end[0] - limit) * sign >= 0):
            part = (limit - start[0]) / (end[0] - start[0])
            corners.append(np.array([limit, start[1] + part * (end[1] - start[1])]))
    return np.array(corners).reshape(-1, 2)


def geojson_of(rings: Sequence[Ring]) -> dict[str, object] | None:
    """Return a Polygon or MultiPolygon of GeoJSON, corners counter-clockwise; None without rings.

    Coordinates have six digits after the point: 0.1 m.
    """
    polygons = []
    for ring in rings:
        following = np.roll(ring, -1, axis=0)
        area = (ring[:, 0] * following[:, 1] - following[:, 0] * ring[:, 1]).sum()
        corners = np.round(ring if area >= 0 else ring[::-1], 6) + 0.0
        polygons.append([[*corners.tolist(), corners[0].tolist()]])
    if not polygons:
        return None
    if len(polygons) == 1:
        return {"type": "Polygon", "coordinates": polygons[0]}
    return {"type": "MultiPolygon", "coordinates": polygons}


def box_of(rings: Sequence[Ring]) -> list[float]:
    """Return `[west, south, east, north]` of polygons; west > east over the dateline."""
    corners = np.concatenate(list(rings))
    south, north = corners[:, 1].min(), corners[:, 1].max()
    spans = sorted((ring[:, 0].min(), ring[:, 0].max()) for ring in rings)
    # The widest gap between the polygons, all around, is what the box leaves out.
    gap, west, east = -1.0, -180.0, 180.0
    reach = max(last for _, last in spans) - 360
    for first, last in spans:
        if first - reach > gap:
            gap, west, east = first - reach, first, reach
        reach = max(reach, last)
    if gap <= 0:
        west, east = -180.0, 180.0
    elif east < -180:
        east += 360
    return [round(float(each), 6) + 0.0 for each in (west, south, east, north)]


class PlanarArea:
    """Polygons of longitude and latitude, and lines and points as well, to compare arrays with.

    Attributes:
        box: `[west, south, east, north]`.
    """

    def __init__(self, rings: Sequence[Ring]) -> None:
        """Set polygons; those of one or two corners are points and lines."""
        self._rings = list(rings)
        self.box = box_of(self._rings)

    def touches(self, arrays: Sequence[Sequence[Sequence[float]]]) -> list[bool]:
        """Return which arrays touch this area with one of their outlines."""
        return [
            any(_meet(ring, other) for ring in rings_of(outlines) for other in self._rings)
            for outlines in arrays
        ]


def _meet(one: Ring, other: Ring) -> bool:
    """Return whether two polygons, lines or points have a point in common."""
    if (one.min(axis=0) > other.max(axis=0)).any() or (one.max(axis=0) < other.min(axis=0)).any():
        return False
    if _holds(one, other[:1])[0] or _holds(other, one[:1])[0]:
        return True
    return bool(_cross(one, other).any())


def _holds(ring: Ring, points: Ring) -> NDArray[np.bool_]:
    """Return which points are inside a polygon: a ray from them crosses it an odd time."""
    if len(ring) < 3:
        return np.zeros(len(points), bool)
    x1, y1 = ring[:, 0], ring[:, 1]
    x2, y2 = np.roll(ring, -1, axis=0).T
    x, y = points[:, :1], points[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        crosses = ((y1 > y) != (y2 > y)) & (x < x1 + (y - y1) * (x2 - x1) / (y2 - y1))
    odd: NDArray[np.bool_] = crosses.sum(axis=1) % 2 == 1
    return odd


def _cross(one: Ring, other: Ring) -> NDArray[np.bool_]:
    """Return which sides of one polygon meet sides of the other, ends included."""
    a, b = one[:, None], np.roll(one, -1, axis=0)[:, None]
    c, d = other[None], np.roll(other, -1, axis=0)[None]

    def side(p: Ring, q: Ring, r: Ring) -> NDArray[np.float64]:
        product: NDArray[np.float64] = (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1])
        return np.sign(product - (q[..., 1] - p[..., 1]) * (r[..., 0] - p[..., 0]))

    apart = side(a, b, c) * side(a, b, d) <= 0
    apart &= side(c, d, a) * side(c, d, b) <= 0
    # Sides on one line meet only where their boxes do.
    low = np.maximum(np.minimum(a, b), np.minimum(c, d))
    high = np.minimum(np.maximum(a, b), np.maximum(c, d))
    return apart & (low <= high).all(axis=-1)
