"""HEALPix cells: those of a circle in the sky, and as ranges of the finest order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from swathe.catalog.records.datasets import ALL_CELLS, ORDER
from swathe.datasets.spherical import degrees, directions

if TYPE_CHECKING:
    from numpy.typing import NDArray

RADIUS = 1.07
"""Radians from the middle of a cell to its farthest corner, times `2 ** order`: at most 1.0690, as
measured over all cells of orders 0 to 8."""
FINER = 4
FINEST_OF_LARGE = 9
"""A circle is searched in cells that are so much smaller, where that makes none smaller than of
this order, 0.12 degrees: about those that footprints of images have."""
FINEST_SEARCH = 27
"""The library looks two orders deeper."""
ALL_SKY: tuple[int, int] = (0, ALL_CELLS - 1)


def cell_radius(order: int) -> float:
    """Give the radius of a circle that holds a cell around its middle, radians."""
    return RADIUS / (1 << order)


def order_for(radius: float, finest: int = FINEST_SEARCH) -> int:
    """Give the order whose cells have at most this radius, within what there is."""
    if radius <= 0:
        return finest
    return min(max(0, math.ceil(math.log2(RADIUS / radius))), finest)


def centres(cells: NDArray[np.uint64], order: int) -> NDArray[np.float64]:
    """Give the directions of the middles of cells."""
    from cdshealpix import nested

    lon, lat = nested.healpix_to_lonlat(cells, order)
    return directions(lon.deg, lat.deg)


def cells_at(vectors: NDArray[np.float64], order: int) -> NDArray[np.uint64]:
    """Give the cells of directions, each once, in order."""
    import astropy.units as u
    from astropy.coordinates import Latitude, Longitude
    from cdshealpix import nested

    lon, lat = degrees(vectors)
    places = Longitude(lon, u.deg), Latitude(lat, u.deg)
    cells: NDArray[np.uint64] = np.unique(nested.lonlat_to_healpix(*places, order))
    return cells


def cells_around(centre: NDArray[np.float64], radius: float, order: int) -> NDArray[np.uint64]:
    """Give the cells that touch a circle, and perhaps some beside; `radius` in radians."""
    import astropy.units as u
    from astropy.coordinates import Latitude, Longitude
    from cdshealpix import nested

    # The library is asked for some more than the circle: its own margin is not documented.
    wide = radius * (1 + 1e-9) + 1e-13
    if wide + cell_radius(order) >= math.pi / 2:
        # Its circles are for small ones only.
        cells = np.arange(12 * 4**order, dtype=np.uint64)
        apart = np.arccos(np.clip(centres(cells, order) @ centre, -1, 1))
        near: NDArray[np.uint64] = cells[apart <= wide + cell_radius(order)]
        return near
    lon, lat = degrees(centre)
    found: NDArray[np.uint64] = nested.cone_search(
        Longitude(lon, u.deg), Latitude(lat, u.deg), wide * u.rad, order, flat=True
    )[0]
    return np.sort(found)


def with_neighbours(cells: NDArray[np.uint64], order: int) -> NDArray[np.uint64]:
    """Give the cells and all that touch them, each once, in order."""
    from cdshealpix import nested

    around = nested.neighbours(cells, order)
    grown: NDArray[np.uint64] = np.unique(around[around >= 0]).astype(np.uint64)
    return grown


def ranges(cells: NDArray[np.uint64], order: int) -> list[tuple[int, int]]:
    """Give cells, in order, as ranges of those of the finest order, `(first, last)`."""
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
    """Give few ranges that hold all that touches a circle; `radius` in radians."""
    if radius >= math.pi:
        return [ALL_SKY]
    # Cells as large as a large circle hold much beside it; small ones are as those of images.
    order = max(order_for(radius), min(order_for(radius / FINER), FINEST_OF_LARGE))
    return ranges(cells_around(centre, radius, order), order)
