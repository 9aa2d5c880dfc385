"""Compare the outlines of arrays with a box of longitude and latitude, or a point."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from swathe.datasets import healpix
from swathe.datasets.spherical import (
    angle,
    circles_meet,
    directions,
    distances,
    length,
    outlines_near,
)
from swathe.files.places.bounds import Bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NEAR = 1e-9
"""Tolerance in radians, 6 mm, between a place and the edge of a polygon."""


class EarthArea:
    """A box of longitude and latitude on the Earth; a point if its sides are equal.

    Attributes:
        bounds: the box.
    """

    def __init__(self, bounds: Bounds) -> None:
        """Set the box."""
        self.bounds = bounds
        self._width = bounds.east - bounds.west + (360 if bounds.west > bounds.east else 0)
        corner = np.array([bounds.west]), np.array([bounds.south])
        self._corner = directions(*corner)[0]
        self._center, self._radius = self._circle()

    def _circle(self) -> tuple[NDArray[np.float64], float]:
        """Return the centre and the radius of a circle that contains the box."""
        south, north, width = self.bounds.south, self.bounds.north, self._width
        lon = self.bounds.west + np.array([0, 0, width, width, width / 2])
        points = directions(lon, np.array([south, north, south, north, (south + north) / 2]))
        # A box that is wider than half a turn is in no circle that is smaller than the Earth.
        radius = math.pi if width > 180 else float(angle(points, points[4]).max()) + NEAR
        return points[4], radius

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Return HEALPix cells of order 29 that contain the box, and some more."""
        if self._radius >= math.pi:
            return [healpix.ALL_SKY]
        return healpix.ranges_around(self._center, self._radius)

    @property
    def latitudes(self) -> tuple[float, float]:
        """Return the first and the last latitude, degrees."""
        return self.bounds.south, self.bounds.north

    def touches(self, arrays: Sequence[Sequence[Sequence[float]]]) -> list[bool]:
        """Return which arrays touch the box with one of their outlines."""
        every = [
            (number, outline) for number, outlines in enumerate(arrays) for outline in outlines
        ]
        is_close = circles_meet([outline for _, outline in every], self._center, self._radius)
        close = [each for each, is_here in zip(every, is_close, strict=True) if is_here]
        if not close:
            return [False] * len(arrays)
        owners, outlines = zip(*close, strict=True)
        near = outlines_near(outlines, self._corner, NEAR)
        polygons = [_corners(outline) for outline in outlines]
        starts = np.concatenate(polygons)
        ends = np.concatenate([np.roll(polygon, -1, axis=0) for polygon in polygons])
        sides = self._has(starts) | self._crosses(starts, ends)
        first = np.cumsum([0, *(len(polygon) for polygon in polygons[:-1])])
        near |= np.logical_or.reduceat(sides, first)
        result = np.zeros(len(arrays), bool)
        np.logical_or.at(result, list(owners), near)
        return [bool(each) for each in result]

    def _has(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        x, y, z = np.moveaxis(points, -1, 0)
        latitude = np.degrees(np.arctan2(z, np.hypot(x, y)))
        return self.bounds.has(latitude, np.degrees(np.arctan2(y, x)))

    def _crosses(self, starts: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which sides of polygons cross a parallel or meridian of the box."""
        long = angle(starts, ends)
        along = ends - starts * np.einsum("nk,nk->n", starts, ends)[:, None]
        size = length(along)
        along = np.divide(along, size[:, None], where=size[:, None] > 0, out=np.zeros_like(along))
        crosses = np.zeros(len(starts), bool)
        for latitude in (self.bounds.south, self.bounds.north):
            # Where the height of the great circle is that of the parallel.
            most = np.hypot(starts[:, 2], along[:, 2])
            height = math.sin(math.radians(latitude))
            with np.errstate(divide="ignore", invalid="ignore"):
                turn = np.arccos(height / most)
            top = np.arctan2(along[:, 2], starts[:, 2])
            for at in (top - turn, top + turn):
                point = self._on_side(starts, along, at % math.tau, long)
                crosses |= self._has_longitude(point)
        for longitude in (self.bounds.west, self.bounds.east):
            sin, cos = math.sin(math.radians(longitude)), math.cos(math.radians(longitude))
            normal = np.array([-sin, cos, 0.0])
            half = np.arctan2(-(starts @ normal), along @ normal)
            for at in (half, half + math.pi):
                point = self._on_side(starts, along, at % math.tau, long)
                with np.errstate(invalid="ignore"):
                    ahead = point @ np.array([cos, sin, 0.0]) > 0
                crosses |= ahead & self._has_latitude(point)
        return crosses

    def _on_side(
        self,
        starts: NDArray[np.float64],
        along: NDArray[np.float64],
        at: NDArray[np.float64],
        long: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the points at an angle along sides; NaN if it is not on the side."""
        point = starts * np.cos(at)[:, None] + along * np.sin(at)[:, None]
        with np.errstate(invalid="ignore"):
            point[~(at <= long)] = np.nan
        return point

    def _has_longitude(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self.bounds.has_longitude(np.degrees(np.arctan2(points[:, 1], points[:, 0])))

    def _has_latitude(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        with np.errstate(invalid="ignore"):
            return self.bounds.has_latitude(np.degrees(np.arcsin(np.clip(points[:, 2], -1, 1))))


def boxes_that_touch(
    boxes: Sequence[Sequence[float]], outlines: Sequence[Sequence[float]]
) -> list[bool]:
    """Return which of many boxes touch an array with one of its outlines.

    Most are decided together, by the distance of their centres from the outlines; the others, at
    its edge, one by one.

    Args:
        boxes: boxes `(west, south, east, north)` in degrees, as of `Bounds`.
        outlines: outlines of the array.
    """
    if not boxes or not outlines:
        return [False] * len(boxes)
    west, south, east, north = np.array(boxes, float).T
    width = east - west + 360 * (west > east)
    centers = directions(west + width / 2, (south + north) / 2)
    # A box that is wider than half a turn is in no circle that is smaller than the Earth.
    radius = np.where(width > 180, math.pi, 0.0)
    for lon in (west, east):
        for lat in (south, north):
            radius = np.maximum(radius, angle(directions(lon, lat), centers))
    inside, near = np.zeros(len(boxes), bool), np.zeros(len(boxes), bool)
    for outline in outlines:
        polygon = _corners(outline)
        shape = (len(boxes), *polygon.shape)
        distance = distances(np.broadcast_to(polygon, shape), centers)
        inside |= distance == 0
        near |= distance <= radius + NEAR
    return [
        bool(is_inside or (is_near and EarthArea(Bounds.of(box)).touches([outlines])[0]))
        for box, is_inside, is_near in zip(boxes, inside, near, strict=True)
    ]


def _corners(outline: Sequence[float]) -> NDArray[np.float64]:
    corners = np.array(outline).reshape(-1, 2)
    return directions(corners[:, 0], corners[:, 1])


def region_text(outlines: Sequence[Sequence[float]]) -> str:
    """Return outlines as text of STC-S, in longitude and latitude on the Earth (GEO_D)."""
    polygons = [" %.6f" * len(outline) % tuple(outline) for outline in outlines]
    if len(polygons) == 1:
        return f"POLYGON GEO_D{polygons[0]}"
    return f"UNION GEO_D ({' '.join(f'POLYGON{polygon}' for polygon in polygons)})"
