"""Maps of the Earth."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from swathe.portal.pages.earthmap import DEGREE, MOST_CORNERS, earth_map

SQUARE = [10.0, 20.0, 14.0, 20.0, 14.0, 23.0, 10.0, 23.0]


def polygons(outline: list[float]) -> list[np.ndarray]:
    """Longitudes and latitudes of what is drawn of an outline."""
    drawn = earth_map([("a", [outline])])
    assert drawn is not None
    ElementTree.fromstring(drawn.svg)
    [path] = re.findall(r'<path class="outline" d="([^"]*)"', drawn.svg)
    parts = [part.strip("MZ").split("L") for part in path.split("ZM")]
    places = [np.array([place.split() for place in part], float) / DEGREE for part in parts]
    return [np.column_stack([place[:, 0] - 180, 90 - place[:, 1]]) for place in places]


def test_corners_are_at_their_places() -> None:
    [drawn] = polygons(SQUARE)
    for corner in np.reshape(SQUARE, (-1, 2)):
        assert np.abs(drawn - corner).max(axis=1).min() < 0.05, corner


def test_dateline_is_on_both_sides() -> None:
    parts = polygons([175.0, -5.0, -175.0, -5.0, -175.0, 5.0, 175.0, 5.0])
    assert len(parts) == 2
    middles = sorted(float(np.mean([part[:, 0].min(), part[:, 0].max()])) for part in parts)
    np.testing.assert_allclose(middles, [-180, 180], atol=0.1)
    assert all(np.ptp(part[:, 0]) < 11 for part in parts)


@pytest.mark.parametrize("sign", [1, -1])
def test_outline_around_a_pole_reaches_the_edge(sign: int) -> None:
    ring = [value for lon in range(0, 360, 30) for value in (float(lon), sign * 70.0)]
    parts = polygons(ring)
    every = np.concatenate(parts)
    assert every[:, 1].max() * sign == pytest.approx(90) or every[:, 1].min() == pytest.approx(-90)
    assert every[:, 0].min() <= -180 and every[:, 0].max() >= 180
    # Great circles between corners of one latitude go nearer to the pole.
    assert (np.abs(every[:, 1]) > 69.9).all()


def test_names_of_files_are_text() -> None:
    drawn = earth_map([('<script>"&', [SQUARE])])
    assert drawn is not None
    assert "<script>" not in drawn.svg
    titles = [each.text for each in ElementTree.fromstring(drawn.svg).iter() if "title" in each.tag]
    assert titles == ['<script>"&']


def test_size_is_bounded() -> None:
    many = SQUARE * (MOST_CORNERS // 8)
    drawn = earth_map([("a", [many]), ("b", [many]), ("c", [many])])
    assert drawn is not None and drawn.arrays == 2
    assert earth_map([]) is None
