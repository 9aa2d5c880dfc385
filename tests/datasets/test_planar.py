"""Outlines on the Earth as polygons of longitude and latitude."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.path import Path as OtherPolygon

from swathe.datasets.earth_outline import earth_footprint
from swathe.datasets.earth_search import EarthArea
from swathe.datasets.planar import PlanarArea, box_of, geojson_of, planar_rings, rings_of
from swathe.files.places.bounds import Bounds


def swath(lon: float, lat: float, wide: float = 4.0) -> list[list[float]]:
    """The outlines of a swath around a place."""
    step = np.linspace(-wide / 2, wide / 2, 9)
    latitude = np.clip(lat + step, -90, 90)
    rows, columns = np.meshgrid(latitude, lon + step / math.cos(math.radians(lat)), indexing="ij")
    return earth_footprint(rows, columns, (1.0, 1.0)).outlines


def polygons_of(geometry: dict[str, Any] | None) -> list[list[list[float]]]:
    assert geometry is not None
    parts = geometry["coordinates"]
    return [
        ring
        for polygon in (parts if geometry["type"] == "MultiPolygon" else [parts])
        for ring in polygon
    ]


@given(st.floats(-180, 180), st.floats(-80, 80), st.floats(-180, 180), st.floats(-85, 85))
def test_polygons_hold_the_same_places(lon: float, lat: float, there: float, up: float) -> None:
    outlines = swath(lon, lat)
    rings = polygons_of(geojson_of(rings_of(outlines)))
    for ring in rings:
        assert ring[0] == ring[-1]
        assert all(-180 <= x <= 180 and -90 <= y <= 90 for x, y in ring)
        area = sum(a[0] * b[1] - b[0] * a[1] for a, b in itertools.pairwise(ring))
        assert area > 0  # counter-clockwise
    for x, y in ((lon, lat), (there, up)):
        near = EarthArea(Bounds(x - 0.1, max(-90, y - 0.1), x + 0.1, min(90, y + 0.1)))
        corner = EarthArea(Bounds(x, y, x, y))
        if near.touches([outlines]) != corner.touches([outlines]):
            continue  # at an edge, where a great circle and a straight line differ
        places = [(x - 360, y), (x, y), (x + 360, y)]
        held = any(OtherPolygon(ring).contains_points(places).any() for ring in rings)
        assert held == corner.touches([outlines])[0]


def test_at_the_dateline_and_at_a_pole() -> None:
    rings = rings_of(swath(179.0, 10.0))
    assert len(rings) == 2
    west, south, east, north = box_of(rings)
    assert west == pytest.approx(177, abs=0.3)
    assert east == pytest.approx(-179, abs=0.3)
    assert (south, north) == pytest.approx((8, 12), abs=0.3)
    around = np.arange(0, 360, 10.0)
    cap = [np.column_stack([around, np.full(36, -80.0)]).ravel().tolist()]
    assert box_of(rings_of(cap))[::2] == [-180, 180]
    assert box_of(rings_of(cap))[1] == -90
    assert PlanarArea([np.array([[12.0, -89.9]])]).touches([cap]) == [True]
    assert PlanarArea([np.array([[12.0, -70.0]])]).touches([cap]) == [False]


CORNER = st.tuples(st.floats(-20, 20), st.floats(-20, 20))


@given(
    st.lists(CORNER, min_size=3, max_size=6, unique=True), st.floats(-25, 25), st.floats(-25, 25)
)
def test_areas_touch_as_another_program_has_it(
    corners: list[tuple[float, float]], lon: float, lat: float
) -> None:
    outlines = swath(lon, lat)
    rings = rings_of(outlines)
    ring = np.array(corners)
    parts = planar_rings(ring)
    if not parts:
        return
    other = OtherPolygon([*corners, corners[0]])
    expected = any(other.intersects_path(OtherPolygon([*each, each[0]])) for each in rings)
    found = PlanarArea(parts).touches([outlines])[0]
    if found != expected:
        # Where they only just touch, or cross themselves, programs may differ: not elsewhere.
        smaller, larger = (
            PlanarArea(planar_rings(ring.mean(axis=0) + (ring - ring.mean(axis=0)) * factor))
            for factor in (0.98, 1.02)
        )
        is_plain = len(corners) == 3
        assert not is_plain or smaller.touches([outlines]) != larger.touches([outlines])


def test_lines_and_points() -> None:
    outlines = swath(0.0, 0.0)
    crossing, beside = np.array([[-10.0, 0.0], [10.0, 0.5]]), np.array([[-10.0, 9.0], [10.0, 9.0]])
    assert PlanarArea([crossing]).touches([outlines]) == [True]
    assert PlanarArea([beside]).touches([outlines]) == [False]
    assert PlanarArea([beside, np.array([[0.5, 0.5]])]).touches([outlines, []]) == [True, False]
