"""Find the HEALPix cells of a circle, and convert cells to ranges of the finest order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from swathe.catalog.records.datasets import ALL_CELLS, ORDER
from swathe.datasets.spherical import degrees, directions

if TYPE_CHECKING:
    from numpy.typing import NDArray

RADIUS = 1.07
"""Angle in radians from a cell's centre to its farthest corner, times `2 ** order`: at most 1.0690,
measured over all cells of orders 0 to 8."""
FINER = 4
FINEST_OF_LARGE = 9
"""A circle is searched in cells this much smaller, but not beyond this order (0.12 degrees): about
the cell size of footprints."""
FINEST_SEARCH = 27
"""Extra orders that the library searches internally."""
ALL_SKY: tuple[int, int] = (0, ALL_CELLS - 1)


def cell_radius(order: int) -> float:
    """Return the radius in radians of a circle around a cell's centre that contains the cell."""
    return RADIUS / (1 << order)


def order_for(radius: float, finest: int = FINEST_SEARCH) -> int:
    """Return the order whose cells have at most this radius, within the valid orders."""
    if radius <= 0:
        return finest
    return min(max(0, math.ceil(math.log2(RADIUS / radius))), finest)


def centres(cells: NDArray[np.uint64], order: int) -> NDArray[np.float64]:
    """Return the directions of the centres of cells."""
    from cdshealpix import nested

    lon, lat = nested.healpix_to_lonlat(cells, order)
    return directions(lon.deg, lat.deg)


def cells_at(vectors: NDArray[np.float64], order: int) -> NDArray[np.uint64]:
    """Return the cells of directions, sorted and unique."""
    import astropy.units as u
    from astropy.coordinates import Latitude, Longitude
    from cdshealpix import nested

    lon, lat = degrees(vectors)
    places = Longitude(lon, u.deg), Latitude(lat, u.deg)
    cells: NDArray[np.uint64] = np.unique(nested.lonlat_to_healpix(*places, order))
    return cells


def cells_around(centre: NDArray[np.float64], radius: float, order: int) -> NDArray[np.uint64]:
    """Return the cells that touch a circle, and possibly some more; `radius` in radians."""
    import astropy.units as u
    from astropy.coordinates import Latitude, Longitude
    from cdshealpix import nested

    # A larger circle is requested: the library's own margin is not documented.
    wide = radius * (1 + 1e-9) + 1e-13
    if wide + cell_radius(order) >= math.pi / 2:
        # The library's circles must be small.
        cells = np.arange(12 * 4**order, dtype=np.uint64)
        apart = np.arccos(np.clip(centres(cells, order) @ centre, -1, 1))
        near: NDArray[np.uint64] = cells[apart <= wide + cell_radius(order)]
        return near
    lon, lat = degrees(centre)
    touching: NDArray[np.uint64] = nested.cone_search(
        Longitude(lon, u.deg), Latitude(lat, u.deg), wide * u.rad, order, flat=True
    )[0]
    return np.sort(touching)


def with_neighbours(cells: NDArray[np.uint64], order: int) -> NDArray[np.uint64]:
    """Return the cells and all that touch them, sorted and unique."""
    from cdshealpix import nested

    around = nested.neighbours(cells, order)
    cells_around: NDArray[np.uint64] = np.unique(around[around >= 0]).astype(np.uint64)
    return cells_around


def ranges(cells: NDArray[np.uint64], order: int) -> list[tuple[int, int]]:
    """Return sorted cells as ranges `(first, last)` of cells of the finest order."""
    if not len(cells):
        return []
    numbers = cells.astype(np.int64)
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    starts = numbers[np.concatenate([[0], breaks])]
    ends = numbers[np.concatenate([breaks - 1, [len(numbers) - 1]])]
    shift = 2 * (ORDER - order)
    return [
        (int(first) << shift, ((int(last) + 1) << shift) - 1)
        for first, last in zip(starts, ends, strict=True)
    ]


def ranges_around(centre: NDArray[np.float64], radius: float) -> list[tuple[int, int]]:
    """Return few ranges that contain all cells touching a circle; `radius` in radians."""
    if radius >= math.pi:
        return [ALL_SKY]
    # Cells as large as a large circle cover much outside it. Small cells match those of images.
    order = max(order_for(radius), min(order_for(radius / FINER), FINEST_OF_LARGE))
    return ranges(cells_around(centre, radius, order), order)
