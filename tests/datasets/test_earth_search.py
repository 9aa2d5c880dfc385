"""Boxes of longitude and latitude against polygons: compared with points all over both."""

from __future__ import annotations

import numpy as np
import pytest

from swathe.datasets.earth_search import EarthArea, boxes_that_touch, region_text
from swathe.datasets.healpix import ALL_SKY
from swathe.datasets.spherical import circles_meet, degrees, directions, outlines_near
from swathe.files.places.bounds import Bounds

BOXES = [
    (-10, -10, 10, 10),
    (170, -5, -170, 5),
    (0, 80, 360, 90),
    (-180, -90, 180, -70),
    (350, 60, 359, 80),
    (-1, -60, 1, 60),
    (-180, 40, 180, 41),
]


def polygon(lat: float, lon: float, size: float) -> list[float]:
    """Corners of a triangle around a place."""
    centre = directions(np.array(lon), np.array(lat))
    east = np.cross(np.eye(3)[np.argmin(np.abs(centre))], centre)
    east /= np.linalg.norm(east)
    turns = np.array([0.3, 2.2, 4.4])[:, None]
    corners = centre + size * (np.cos(turns) * east + np.sin(turns) * np.cross(centre, east))
    return np.column_stack(degrees(corners)).ravel().tolist()


def inside(outline: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Latitudes and longitudes of points all over a triangle."""
    corners = directions(np.array(outline[::2]), np.array(outline[1::2]))
    a, b = np.meshgrid(np.linspace(0, 1, 150), np.linspace(0, 1, 150))
    weights = np.stack([a, b, 1 - a - b], axis=-1)[a + b <= 1]
    lon, lat = degrees(weights @ corners)
    return lat, lon


@pytest.mark.parametrize("box", BOXES)
def test_box_touches_as_points_do(box: tuple[float, float, float, float]) -> None:
    rng = np.random.default_rng(5)
    bounds = Bounds.of(box)
    outlines = [
        polygon(float(rng.uniform(-89, 89)), float(rng.uniform(0, 360)), float(size))
        for size in rng.uniform(0.02, 0.6, 60)
    ]
    touches = EarthArea(bounds).touches([[each] for each in outlines])
    brute = [bool(bounds.has(*inside(each)).any()) for each in outlines]
    # The points miss a sliver; they never find what is not there.
    wrong = [at for at in range(60) if brute[at] and not touches[at]]
    assert not wrong
    assert sum(touches) - sum(brute) <= 3
    assert any(touches)
    assert not all(touches)


def test_box_within_a_polygon_and_around_it() -> None:
    outline = polygon(90, 0, 0.5)
    assert EarthArea(Bounds(10, 85, 11, 86)).touches([[outline]]) == [True]
    assert EarthArea(Bounds(0, 84, 360, 85)).touches([[outline]]) == [True]
    assert EarthArea(Bounds(-180, 0, 180, 90)).touches([[outline]]) == [True]
    assert EarthArea(Bounds(10, -5, 11, 5)).touches([[outline], []]) == [False, False]
    assert EarthArea(Bounds(0, 0, 1, 1)).touches([]) == []


def test_circles_leave_out_no_polygon_that_touches() -> None:
    rng = np.random.default_rng(11)
    for reach in (1e-6, 0.3, 2.0, np.pi):
        center = directions(rng.uniform(0, 360, 1), rng.uniform(-90, 90, 1))[0]
        outlines = [
            polygon(float(rng.uniform(-90, 90)), float(rng.uniform(0, 360)), float(size))
            for size in rng.uniform(0.01, 1.5, 300)
        ]
        near = outlines_near(outlines, center, reach)
        meet = circles_meet(outlines, center, reach)
        assert near.any() and not (near & ~meet).any()
        assert reach > 1 or not meet.all()


def test_wide_box_is_searched_everywhere() -> None:
    assert EarthArea(Bounds(-180, 0, 180, 1)).ranges == [ALL_SKY]
    assert EarthArea(Bounds(179, 0, -179, 1)).ranges != [ALL_SKY]


def test_region_text_names_the_frame() -> None:
    assert region_text([[1, 2, 3, 4, 5, 6]]).startswith("POLYGON GEO_D 1.000000 2.000000")
    assert region_text([[1, 2], [3, 4]]).startswith("UNION GEO_D (POLYGON 1.0")


def test_many_boxes_are_compared_as_each_alone() -> None:
    random = np.random.default_rng(7)
    outlines = [[170.0, -10.0, 175.0, -12.0, -170.0, 8.0, 172.0, 9.0], [40.0, 80, 160, 85, -80, 84]]
    boxes = []
    for _ in range(300):
        west, south = random.uniform(-180, 180), random.uniform(-90, 60)
        east = west + random.choice([0.0, 3.0, 40.0, 200.0])
        boxes.append((west, south, east - 360 * (east > 360), south + random.uniform(0, 30)))
    boxes += [(165, 0, -165, 1), (171, -5, 172, 5), (-180, -90, 180, 90), (50, 82, 50, 82)]
    results = boxes_that_touch(boxes, outlines)
    alone = [EarthArea(Bounds.of(box)).touches([outlines])[0] for box in boxes]
    assert results == alone
    assert 10 < sum(results) < 290
    assert boxes_that_touch(boxes, []) == [False] * len(boxes)
