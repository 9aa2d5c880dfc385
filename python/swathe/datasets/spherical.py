"""Compute with directions, and with polygons whose sides are great circles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDING = 1e-15
"""Rounding error of a product of unit vectors."""
FLAT = 1e-9
"""Tolerance of angles in radians, 6 mm on the Earth, and of a sum of directions that cancels."""
BEHIND = 1e-3
"""Limit of the cosine of a corner's angle to a map's centre: beyond it the corner is not on the
map."""


def directions(lon_deg: NDArray[np.float64], lat_deg: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return unit vectors, along a new last axis."""
    lon, lat = np.radians(lon_deg), np.radians(lat_deg)
    across = np.cos(lat)
    return np.stack([across * np.cos(lon), across * np.sin(lon), np.sin(lat)], axis=-1)


def degrees(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitude from 0 to 360 and latitude of vectors of any length."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    lon = np.degrees(np.arctan2(y, x)) % 360.0
    # A negative number next to zero becomes 360 itself.
    return np.where(lon >= 360, 0.0, lon), np.degrees(np.arctan2(z, np.hypot(x, y)))


def length(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lengths of vectors, three times as fast as NumPy's function."""
    lengths: NDArray[np.float64] = np.sqrt(np.einsum("...k,...k->...", vectors, vectors))
    return lengths


def angle(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the angles between unit vectors in radians; accurate for small angles, too."""
    apart = length(a - b)
    together = length(a + b)
    angles: NDArray[np.float64] = 2 * np.arctan2(apart, together)
    return angles


def cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cross products along the last axis, five times as fast as NumPy's function."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def middle(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return a unit vector in the middle of others, and the radius of a circle around them.

    Directions all around have no middle: then any vector is returned, with its radius.
    """
    mean = vectors.mean(axis=0)
    length = float(np.linalg.norm(mean))
    centre = mean / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
    return centre, float(angle(vectors, centre).max())


def flat(vectors: NDArray[np.float64], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """Project directions to the plane that touches the sphere at `centre`; great circles are lines.

    Directions more than a right angle away are NaN.
    """
    pole = np.zeros(3)
    pole[np.argmin(np.abs(centre))] = 1
    east = cross(pole, centre)
    east /= np.linalg.norm(east)
    north = cross(centre, east)
    ahead = vectors @ centre
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead = np.where(ahead > BEHIND, ahead, np.nan)
        return np.stack([vectors @ east / ahead, vectors @ north / ahead], axis=-1)


def distances(polygons: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances of points from polygons in radians; 0 inside.

    Args:
        polygons: corners, `(n, corners, 3)`; each polygon is smaller than a hemisphere.
        points: unit vectors `(n, 3)`, one for each polygon, or `(1, 3)`.
    """
    points = np.broadcast_to(points, (len(polygons), 3))
    result = np.zeros(len(polygons))
    outside = np.flatnonzero(~_holds(polygons, points))
    result[outside] = distances_to_sides(polygons[outside], points[outside]).min(
        axis=-1, initial=np.inf
    )
    return result


def distances_to_sides(
    polygons: NDArray[np.float64], points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distances of points from each side of their polygons, `(n, corners)`."""
    start, end = polygons, np.roll(polygons, -1, axis=1)
    point = points[:, None, :]
    side = end - start
    # In the plane of the side: along it, and towards the point.
    normal = cross(start, side)
    long = length(normal)
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = normal / long[..., None]
        off = np.abs(np.einsum("nck,nck->nc", unit, np.broadcast_to(point, unit.shape)))
        after = np.einsum("nck,nck->nc", cross(unit, start), point - start) > 0
        before = np.einsum("nck,nck->nc", cross(end, unit), point - end) > 0
    beside = after & before & (long > 0)
    corner = np.minimum(angle(start, point), angle(end, point))
    return np.where(beside, np.arcsin(np.minimum(off, 1.0)), corner)


def _holds(polygons: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which polygons contain their points: those that wind around them.

    What a polygon with sides that cross covers twice, as one of a track out and back, is inside.
    """
    pole = np.zeros_like(points)
    pole[np.arange(len(points)), np.argmin(np.abs(points), axis=1)] = 1
    east = cross(pole, points)
    east /= np.linalg.norm(east, axis=1, keepdims=True)
    north = cross(points, east)
    ahead = np.einsum("nck,nk->nc", polygons, points)
    here = (ahead > BEHIND).all(axis=1)  # else the polygon is too far away
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.einsum("nck,nk->nc", polygons, east) / ahead
        y = np.einsum("nck,nk->nc", polygons, north) / ahead
        x_next, y_next = np.roll(x, -1, axis=1), np.roll(y, -1, axis=1)
        crosses = (y > 0) != (y_next > 0)
        at = x - y * (x_next - x) / (y_next - y)
        turns = np.where(crosses & (at > 0), np.sign(y_next - y), 0).sum(axis=1)
    result: NDArray[np.bool_] = here & (turns != 0)
    return result


def outlines_near(
    outlines: Sequence[Sequence[float]], point: NDArray[np.float64], reach: float
) -> NDArray[np.bool_]:
    """Return which polygons of `ra, dec, ra, dec, ...` in degrees touch a circle.

    Args:
        outlines: corners of the polygons.
        point: direction of the centre of the circle.
        reach: radius of the circle in radians. A polygon's edge and inside count.
    """
    result = np.zeros(len(outlines), bool)
    for numbers, polygons in _alike(outlines):
        # Most of many polygons have a corner in the circle, which is found fast. Else compare
        # sides.
        near = (polygons @ point).max(axis=1) > math.cos(min(reach, math.pi)) + ROUNDING
        rest = np.flatnonzero(~near)
        near[rest] = distances(polygons[rest], point[None]) <= reach
        result[numbers] = near
    return result


def circles_meet(
    outlines: Sequence[Sequence[float]], point: NDArray[np.float64], reach: float
) -> NDArray[np.bool_]:
    """Return which polygons may touch a circle: those that do, and some more, fast.

    The arguments are those of `outlines_near`. A polygon is in the circle around its corners.
    """
    result = np.ones(len(outlines), bool)
    for numbers, polygons in _alike(outlines):
        centers = polygons.sum(axis=1)
        size = length(centers)[:, None]
        has_center = size[:, 0] > FLAT
        centers = np.divide(centers, size, where=size > FLAT, out=np.zeros_like(centers))
        radii = angle(polygons, centers[:, None, :]).max(axis=1)
        # A circle that is larger than a hemisphere need not contain the sides between its points.
        is_small = has_center & (radii < math.pi / 2)
        result[numbers] = ~is_small | (angle(centers, point) <= radii + reach + FLAT)
    return result


def _alike(
    outlines: Sequence[Sequence[float]],
) -> Iterator[tuple[list[int], NDArray[np.float64]]]:
    """Yield the numbers of outlines with as many corners, and their corners as unit vectors."""
    alike: dict[int, list[int]] = {}
    for number, outline in enumerate(outlines):
        alike.setdefault(len(outline), []).append(number)
    for numbers in alike.values():
        corners = np.array([outlines[number] for number in numbers])
        yield numbers, directions(corners[:, ::2], corners[:, 1::2])
