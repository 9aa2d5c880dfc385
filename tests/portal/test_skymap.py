"""Maps of the sky."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from cdshealpix import nested
from numpy.typing import NDArray

from swathe.datasets.healpix import ranges_around
from swathe.datasets.spherical import directions
from swathe.portal.pages.skymap import (
    FINEST,
    HEIGHT,
    MARGIN,
    MOST_CELLS,
    WIDTH,
    counts,
    mollweide,
    part_map,
    sky_counts,
    sky_map,
)

SHIFT = 2 * (29 - FINEST)
ALL = 12 * 4**FINEST - 1


def around(ra: float, dec: float, radius_deg: float, image: int = 1) -> list[tuple[int, int, int]]:
    """What the catalogue gives of an image that covers a circle."""
    found = ranges_around(directions(np.array(ra), np.array(dec)), np.radians(radius_deg))
    return sorted({(image, first >> SHIFT, last >> SHIFT) for first, last in found})


def paths(svg: str) -> list[list[NDArray[np.float64]]]:
    """Corners of each cell drawn: one polygon, or two where it lies across the edge."""
    ElementTree.fromstring(svg)
    found = re.findall(r'<path class="cell-\d" d="([^"]*)"', svg)
    return [
        [
            np.array([place.split() for place in part.split("L")], float)
            for part in path.strip("MZ").split("ZM")
        ]
        for path in found
    ]


def area(corners: NDArray[np.float64]) -> float:
    x, y = corners.T
    return abs(float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))) / 2


def test_places_on_the_map() -> None:
    lon, lat = np.array([0.0, 180.0, -180.0, 0.0, 90.0]), np.array([0.0, 0.0, 0.0, 90.0, 0.0])
    x, y = mollweide(lon, lat)
    middle = MARGIN + WIDTH / 2, MARGIN + HEIGHT / 2
    # East is left.
    np.testing.assert_allclose(x, [middle[0], MARGIN, MARGIN + WIDTH, middle[0], MARGIN + 250])
    np.testing.assert_allclose(y, [middle[1], middle[1], middle[1], MARGIN, middle[1]], atol=0.5)


def test_map_keeps_areas() -> None:
    # Mollweide's property: a check of the projection that shares no formula with it.
    cells = np.arange(12 * 4**3, dtype=np.uint64)
    lon, lat = nested.vertices(cells, 3, step=64)
    middles = nested.healpix_to_lonlat(cells, 3)[0].deg
    lon = middles[:, None] + (lon.deg - middles[:, None] + 180) % 360 - 180
    x, y = mollweide(lon, lat.deg)
    found = [area(np.stack(each, axis=-1)) for each in zip(x, y, strict=True)]
    np.testing.assert_allclose(found, np.pi * WIDTH * HEIGHT / 4 / len(cells), rtol=2e-2)


def test_counts() -> None:
    coverage = [(1, 3, 5), (1, 5, 6), (2, 5, 5), (3, ALL, ALL)]
    number = counts(np.array(coverage), FINEST)
    assert {cell: int(number[cell]) for cell in np.flatnonzero(number)} == {
        3: 1,
        4: 1,
        5: 2,  # two images; the first touches it twice
        6: 1,
        ALL: 1,
    }
    assert counts(np.zeros((0, 3), np.int64), FINEST).sum() == 0


@pytest.mark.parametrize(
    ("ra", "dec"), [(0.0, 0.0), (359.9, 40.0), (180.0, 0.0), (179.9, -50.0), (30.0, 90.0)]
)
def test_image_is_drawn_where_it_is(ra: float, dec: float) -> None:
    drawn = paths(sky_map(sky_counts(around(ra, dec, 3)), 1).svg)
    assert drawn
    (x,), (y,) = mollweide(np.array([(ra + 180) % 360 - 180]), np.array([dec]))
    for cell in drawn:
        for polygon in cell:
            # No cell is drawn from one side of the map to the other.
            assert np.ptp(polygon[:, 0]) < 60
            assert np.ptp(polygon[:, 1]) < 30
        near = [np.hypot(*(polygon.mean(axis=0) - (x, y))) for polygon in cell]
        other = [
            np.hypot(*(polygon.mean(axis=0) - (2 * MARGIN + WIDTH - x, y))) for polygon in cell
        ]
        assert min(near + other) < (60 if abs(dec) < 80 else 130)  # the pole is wide


def test_cell_across_the_edge_is_drawn_at_both_sides() -> None:
    drawn = paths(sky_map(sky_counts(around(180.0, 0.0, 2)), 1).svg)
    both = [cell for cell in drawn if len(cell) == 2]
    assert both
    for cell in both:
        left, right = sorted(float(polygon[:, 0].mean()) for polygon in cell)
        assert right - left == pytest.approx(WIDTH, rel=0.02)


def test_map_of_many_images_stays_small() -> None:
    rng = np.random.default_rng(1)
    coverage = sorted(
        (image, int(at), int(at)) for image, at in enumerate(rng.integers(0, ALL, 100_000))
    )
    found = sky_map(sky_counts(coverage), 100_000)
    assert len(paths(found.svg)) <= MOST_CELLS
    assert len(found.svg) < 400_000
    assert found.most > 50


def test_images_of_the_whole_sky_hide_no_others() -> None:
    found = sky_map(sky_counts([(1, 0, ALL), *around(10, 10, 1, image=2)]), 2)
    assert found.all_sky == 1
    assert len(paths(found.svg)) < 10


def test_map_of_nothing() -> None:
    found = sky_map(sky_counts([]), 0)
    assert (found.most, paths(found.svg)) == (0, [])


def test_names_in_outlines_are_text() -> None:
    drawn = part_map([[10, 10, 10.1, 10, 10.1, 10.1]], ["<script>alert(1)</script>"])
    assert drawn is not None
    ElementTree.fromstring(drawn)
    assert "<script" not in drawn


def test_outlines_across_ra_0_lie_together() -> None:
    left = [359.8, -0.1, 359.9, -0.1, 359.9, 0.1, 359.8, 0.1]
    right = [0.1, -0.1, 0.2, -0.1, 0.2, 0.1, 0.1, 0.1]
    drawn = part_map([left, right], ["left", "right"])
    assert drawn is not None
    first, second = re.findall(r'class="outline" d="M([^"]*)Z"', drawn)
    x_of = [[float(place.split()[0]) for place in path.split("L")] for path in (first, second)]
    # East is left: the image of the larger right ascension, that at 0.1 to 0.2, comes first.
    assert max(x_of[1]) < min(x_of[0])
    assert min(x_of[1]) >= 0
    assert max(x_of[0]) <= 1000


def test_outline_at_the_pole() -> None:
    drawn = part_map([[0, 89, 90, 89, 180, 89, 270, 89]], ["pole"])
    assert drawn is not None
    (path,) = re.findall(r'class="outline" d="M([^"]*)Z"', drawn)
    corners = np.array([place.split() for place in path.split("L")], float)
    sides = np.hypot(*(corners - np.roll(corners, 1, axis=0)).T)
    np.testing.assert_allclose(sides, sides[0], rtol=1e-3)


def test_outlines_all_over_the_sky_are_no_part_of_it() -> None:
    assert part_map([[0, 0, 1, 0, 1, 1], [180, 0, 181, 0, 181, 1]], ["a", "b"]) is None
    assert part_map([], []) is None
