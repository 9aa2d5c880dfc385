"""Compute the sky footprint of an image: HEALPix cells and, if possible, an outline.

Pixels extend half a pixel around their centres: an image covers x from -0.5 to NAXIS1 - 0.5.

Most images have an outline: a polygon with great circles as sides that follows the image's edge to
a fiftieth of a pixel, distortions included. Other images (the whole sky, half of it, projections
with pixels off the sky) keep their WCS instead, and searches use it.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from swathe.catalog.records.datasets import Footprint
from swathe.core.errors import RegionError
from swathe.core.sky import SkyMapping
from swathe.datasets import healpix
from swathe.datasets.spherical import angle, degrees, distances, distances_to_sides, flat, middle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

GRID = 9
"""Sample positions along each axis of an image."""
SIDE = (64, 512)
"""Sample positions along each side of an outline; the next is used if the first are too few."""
TOLERANCE_PIXELS = 0.02
LARGEST_OUTLINE = math.radians(45)
"""Radius of the largest image that gets an outline."""
MARGIN = 1.0001
"""Factor by which circles around images are enlarged beyond the sample positions; the pixels
between two positions are added."""
WIDE_CELLS = 16
"""Cells along the radius of an image without outline; twice as many where it is sampled."""
WIDE_GRID = 512


def footprint(sky: SkyMapping, shape: Sequence[int]) -> Footprint:
    """Return the footprint of an image with a shape in NumPy order.

    Raises:
        RegionError: If no pixel has a sky position, or its frame cannot be converted to ICRS.
    """
    height, width = shape[-2:]
    if not height or not width:
        raise RegionError(f"{sky.label}: it has no pixels")
    # All in one call: a call costs more than a thousand positions do.
    around = _along_sides(width, height, SIDE[0])
    vectors = sky.pixel_to_vector(*np.concatenate([_all_over(width, height, GRID, GRID), around]).T)
    if np.isfinite(vectors).all():
        grid = vectors[: GRID * GRID].reshape(GRID, GRID, 3)
        corners = _outline(sky, width, height, vectors[GRID * GRID :])
        if corners is not None and _is_true(corners, grid, sky):
            return _with_outline(sky, corners)
    return _without_outline(sky, width, height)


def _all_over(width: int, height: int, columns: int, rows: int) -> NDArray[np.float64]:
    x, y = np.linspace(-0.5, width - 0.5, columns), np.linspace(-0.5, height - 0.5, rows)
    across, up = np.meshgrid(x, y)
    return np.column_stack([across.ravel(), up.ravel()])


def _along_sides(width: int, height: int, count: int) -> NDArray[np.float64]:
    """Return positions along the four sides in order, each side with both of its ends."""
    right, high = width - 0.5, height - 0.5
    around = np.array([(-0.5, -0.5), (right, -0.5), (right, high), (-0.5, high), (-0.5, -0.5)])
    part = np.linspace(0, 1, count + 1)[:, None]
    return np.concatenate([start + part * (end - start) for start, end in pairwise(around)])


def _outline(
    sky: SkyMapping, width: int, height: int, around: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return the corners of an outline; `None` if there is no polygon close enough."""
    tolerance = TOLERANCE_PIXELS * math.radians(min(sky.scales))
    for count in SIDE:
        if count != SIDE[0]:
            around = sky.pixel_to_vector(*_along_sides(width, height, count).T)
            if not np.isfinite(around).all():
                return None
        sides = around.reshape(4, count + 1, 3)
        steps = [_step(side, tolerance) for side in sides]
        if None not in steps:
            corners = np.concatenate(
                [side[:-1:step] for side, step in zip(sides, steps, strict=True)]
            )
            # At a pole a side of the image may be one point.
            distinct = angle(corners, np.roll(corners, 1, axis=0)) > 0
            return corners[distinct] if distinct.sum() >= 3 else None
    return None


def _step(side: NDArray[np.float64], tolerance: float) -> int | None:
    """Return the step between positions that become corners; `None` if none is close enough."""
    step = len(side) - 1
    while step >= 2:
        ends = side[::step]
        chords = np.repeat(np.stack([ends[:-1], ends[1:]], axis=1), step, axis=0)
        off = distances_to_sides(chords, side[:-1])[:, 0].max()
        if off <= tolerance:
            return step
        if step == 2 and off <= 4 * tolerance:
            return 1  # halving a side divides its error by four
        step //= 2
    return None


def _is_true(corners: NDArray[np.float64], grid: NDArray[np.float64], sky: SkyMapping) -> bool:
    """Check whether a polygon covers the image and nothing else."""
    centre, radius = middle(corners)
    if radius > LARGEST_OUTLINE or angle(grid, centre).max() > radius * 1.01 + 1e-9:
        return False
    inner = grid[1:-1, 1:-1].reshape(-1, 3)
    polygons = np.broadcast_to(corners, (len(inner), *corners.shape))
    slack = math.radians(max(sky.scales))
    if distances(polygons, inner).max() > slack:
        return False
    # With folds, the summed area of the parts exceeds the area of the outline.
    on_map = flat(grid, centre)
    parts = _areas(np.stack([on_map[:-1, :-1], on_map[:-1, 1:], on_map[1:, 1:], on_map[1:, :-1]]))
    total = float(_areas(flat(corners, centre)[:, None])[0])
    same_way = (parts > 0).all() or (parts < 0).all()
    return bool(same_way and math.isclose(abs(parts.sum()), abs(total), rel_tol=0.05))


def _areas(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return signed areas of polygons on a map, corners along the first axis."""
    x, y = corners[..., 0], corners[..., 1]
    x_next, y_next = np.roll(x, -1, axis=0), np.roll(y, -1, axis=0)
    areas: NDArray[np.float64] = (x * y_next - x_next * y).sum(axis=0) / 2
    return areas


def _with_outline(sky: SkyMapping, corners: NDArray[np.float64]) -> Footprint:
    centre, radius = middle(corners)
    slack = TOLERANCE_PIXELS * math.radians(max(sky.scales))
    order = healpix.order_for(radius / 3)
    near = healpix.cells_around(centre, radius + slack, order)
    middles = healpix.centres(near, order)
    polygons = np.broadcast_to(corners, (len(near), *corners.shape))
    cells = near[distances(polygons, middles) <= healpix.cell_radius(order) + slack]
    lon, lat = degrees(corners)
    outline = np.column_stack([lon, lat]).ravel().tolist()
    return _make_footprint(sky, centre, radius, healpix.ranges(cells, order), outline, None)


def _without_outline(sky: SkyMapping, width: int, height: int) -> Footprint:
    """Sample both ways: sky positions of pixels, and sky positions that are on the image."""
    counts = min(WIDE_GRID, 2 * width + 1), min(WIDE_GRID, 2 * height + 1)
    vectors = sky.pixel_to_vector(*_all_over(width, height, *counts).T)
    vectors = vectors[np.isfinite(vectors).all(axis=-1)]
    if not len(vectors):
        raise RegionError(f"{sky.label}: none of its pixels has a place in the sky")
    centre, radius = middle(vectors)
    if radius > math.pi / 2:
        # The mean of directions all around says little, so it is the image's own centre.
        own = sky.pixel_to_vector(np.array([(width - 1) / 2]), np.array([(height - 1) / 2]))[0]
        if np.isfinite(own).all():
            centre, radius = own, float(angle(vectors, own).max())
    order = healpix.order_for(max(radius, 1e-9) / WIDE_CELLS)
    reach = radius + 2 * healpix.cell_radius(order)
    finer = healpix.cells_around(centre, min(reach, math.pi), order + 1)
    middles = healpix.centres(finer, order + 1)
    on_sky = on_image(sky, width, height, middles)
    cells = np.union1d(finer[on_sky] >> np.uint64(2), healpix.cells_at(vectors, order))
    # The sky between two sample positions is at most two cells away.
    for _ in range(2):
        cells = healpix.with_neighbours(cells, order)
    # Near the rim of a hemisphere a pixel covers degrees.
    farthest = float(angle(middles[on_sky], centre).max(initial=0)) + healpix.cell_radius(order + 1)
    radius = min(max(radius, farthest), math.pi)
    wcs: str = sky.wcs.to_header_string(relax=True)
    return _make_footprint(sky, centre, radius, healpix.ranges(cells, order), None, wcs)


def on_image(
    sky: SkyMapping,
    width: int,
    height: int,
    vectors: NDArray[np.float64],
    margin_pixels: float = 0.0,
) -> NDArray[np.bool_]:
    """Return which directions are on an image, or within a margin around it."""
    from astropy.coordinates import SkyCoord

    lon, lat = degrees(vectors)
    x, y = sky.world_to_pixel(SkyCoord(lon, lat, unit="deg", frame="icrs"))
    low = -0.5 - margin_pixels
    with np.errstate(invalid="ignore"):
        inside: NDArray[np.bool_] = (
            (x >= low)
            & (x <= width - 0.5 + margin_pixels)
            & (y >= low)
            & (y <= height - 0.5 + margin_pixels)
        )
    return inside


def _make_footprint(
    sky: SkyMapping,
    centre: NDArray[np.float64],
    radius: float,
    ranges: list[tuple[int, int]],
    outline: list[float] | None,
    wcs: str | None,
) -> Footprint:
    lon, lat = degrees(centre)
    fov = min(360.0, 2 * math.degrees(radius) * MARGIN)
    scale = 3600 * math.sqrt(sky.scales[0] * sky.scales[1])
    return Footprint(float(lon), float(lat), fov, scale, ranges, outline, wcs)
