"""Footprints on the Earth hold the pixels they are made of, and little else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from swathe.catalog.records.datasets import EarthFootprint
from swathe.core.errors import RegionError
from swathe.datasets.array_places import _track_along
from swathe.datasets.earth_outline import earth_footprint
from swathe.datasets.earth_search import EarthArea
from swathe.datasets.spherical import angle, degrees, directions
from swathe.files.places.bounds import Bounds

Places = tuple[NDArray[np.float64], NDArray[np.float64]]


def swath(lat: float, lon: float, turn: float, rows: int = 80, columns: int = 60) -> Places:
    """Latitudes and longitudes of a swath of 0.2 degrees a pixel around a place."""
    x = np.radians(np.arange(columns) - columns / 2) * 0.2
    y = np.radians(np.arange(rows) - rows / 2) * 0.2
    y, x = np.meshgrid(y, x, indexing="ij")
    x, y = x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)
    centre = directions(np.array(lon), np.array(lat))
    east = np.array([-math.sin(math.radians(lon)), math.cos(math.radians(lon)), 0.0])
    north = np.cross(centre, east)
    vectors = centre + x[..., None] * east + y[..., None] * north
    longitude, latitude = degrees(vectors)
    return latitude, (longitude + 180) % 360 - 180


def covers(place: EarthFootprint, lat: float, lon: float) -> bool:
    return EarthArea(Bounds(lon, lat, lon, lat)).touches([place.outlines])[0]


def check(
    place: EarthFootprint,
    latitude: NDArray[np.float64],
    longitude: NDArray[np.float64],
    slack_deg: float = 0.1,
) -> None:
    """Compare a footprint with the distance to the nearest pixel, at places around the pixels."""
    is_place = np.isfinite(latitude)
    pixels = directions(longitude[is_place], latitude[is_place])
    near = pixels[:: max(1, len(pixels) // 40)]
    rng = np.random.default_rng(1)
    for point in [*near, *(each + rng.normal(0, 0.03, 3) for each in near)]:
        point = point / np.linalg.norm(point)
        apart = math.degrees(angle(pixels, point).min())
        lon, lat = (float(each) for each in degrees(point))
        if apart < 0.05:
            # An outline may leave out a quarter of a pixel, which is 0.05 degrees.
            south, north = max(-90, lat - slack_deg), min(90, lat + slack_deg)
            wide = slack_deg / max(1e-3, math.cos(math.radians(lat)))
            box = ((lon - wide + 180) % 360 - 180, south, (lon + wide + 180) % 360 - 180, north)
            assert EarthArea(Bounds(*box)).touches([place.outlines]) == [True], box
        elif apart > 0.4:
            assert not covers(place, lat, lon), (lat, lon, apart)


@pytest.mark.parametrize("turn", [0.0, 0.7])
@pytest.mark.parametrize(
    ("lat", "lon"), [(0, 0), (10, 179.9), (-35, -180), (90, 0), (-90, 0), (86, 178)]
)
def test_swaths_everywhere(lat: float, lon: float, turn: float) -> None:
    latitude, longitude = swath(lat, lon, turn)
    place = earth_footprint(latitude, longitude, (1, 1))
    assert len(place.outlines) == 1
    assert len(place.outlines[0]) <= 80
    assert angle(
        directions(np.array(place.lon), np.array(place.lat)),
        directions(np.array(float(lon)), np.array(float(lat))),
    ) < math.radians(0.5)
    check(place, latitude, longitude)


def test_gaps_and_ragged_edges() -> None:
    latitude, longitude = swath(88, 30, 0.3)
    rng = np.random.default_rng(2)
    latitude[rng.random(latitude.shape) < 0.1] = np.nan
    latitude[20:24] = np.nan
    latitude[:, :3] = 1e30
    longitude[50:, 40:] = -9999.0
    place = earth_footprint(latitude, longitude, (1, 1))
    # Gaps within are covered, too; what is missing at the edge is not.
    latitude, longitude = swath(88, 30, 0.3)
    latitude[:, :3], latitude[50:, 40:] = np.nan, np.nan
    check(place, latitude, longitude, slack_deg=0.4)


def test_pixels_beside_a_gap_reach_into_it() -> None:
    """Two sides of a scatterometer: pixels of 0.1 degrees, 2 degrees apart; ragged outside."""
    lat, lon = np.meshgrid(np.arange(0, 8, 0.1), np.arange(0, 4, 0.1), indexing="ij")
    lon[:, 20:] += 2
    rng = np.random.default_rng(9)
    for row in range(len(lat)):
        lat[row, : rng.integers(0, 4)] = np.nan
    place = earth_footprint(lat, lon, (1, 1))
    at = np.isfinite(lat)
    for y, x in zip(lat[at][::7], lon[at][::7], strict=True):
        assert covers(place, float(y), float(x)), (y, x)
    assert covers(place, 4.0, 1.94)
    assert covers(place, 4.0, 3.96)
    assert not covers(place, 4.0, 2.1)
    assert not covers(place, 4.0, 3.8)


def test_whole_globe_has_parts() -> None:
    lat, lon = np.meshgrid(np.linspace(-90, 90, 91), np.linspace(-180, 180, 181), indexing="ij")
    place = earth_footprint(lat, lon, (1, 1))
    assert len(place.outlines) > 8
    rng = np.random.default_rng(3)
    for _ in range(50):
        assert covers(place, float(rng.uniform(-90, 90)), float(rng.uniform(-180, 180)))


def test_noise_is_no_place() -> None:
    rng = np.random.default_rng(4)
    latitude, longitude = rng.uniform(-90, 90, (40, 40)), rng.uniform(-180, 180, (40, 40))
    with pytest.raises(RegionError, match="expected"):
        earth_footprint(latitude, longitude, (1, 1))
    with pytest.raises(RegionError, match="found none"):
        earth_footprint(np.full((3, 3), 95.0), np.zeros((3, 3)), (1, 1))


def test_line_is_a_strip() -> None:
    latitude = np.linspace(10, 20, 60).reshape(20, 3)
    place = earth_footprint(latitude, np.full((20, 3), 50.0), (1, 1))
    assert covers(place, 15.01, 50.0)
    assert not covers(place, 15.01, 51.0)


LINE = np.linspace(0, 10, 300)
TRACKS = {
    "out and back": (np.append(LINE, LINE[::-1]), np.zeros(600)),
    "out and back without its end twice": (np.append(LINE, LINE[-2::-1]), np.zeros(599)),
    "a wavy one out and back": (
        np.append(LINE, LINE[::-1]),
        np.append(np.sin(3 * LINE), np.sin(3 * LINE[::-1])),
    ),
    "back beside it": (np.append(LINE, LINE[::-1]), np.repeat([0, 0.003], 300)),
    "at rest": (np.concatenate([LINE[:100], np.full(200, LINE[99]), LINE[100:]]), np.zeros(500)),
    "each place twenty times": (np.repeat(LINE, 20), np.zeros(6000)),
    "in circles": (5 + np.sin(np.linspace(0, 40, 600)), 5 + np.cos(np.linspace(0, 40, 600))),
}


@pytest.mark.parametrize("name", TRACKS)
def test_tracks_that_turn_back_or_rest(name: str) -> None:
    latitude, longitude = TRACKS[name]
    place = _track_along(name, latitude, longitude)
    for lat, lon in zip(latitude[::7], longitude[::7], strict=True):
        assert covers(place, float(lat), float(lon)), (lat, lon)
    assert not covers(place, 5.0, 6.5)


def test_places_at_rest_have_no_outline() -> None:
    with pytest.raises(RegionError, match="expected two places or more in rest, found 1"):
        _track_along("rest", np.full(5, 3.0), np.full(5, 2.0))


def test_edges_that_go_back_and_forth_end() -> None:
    """Corners are not added without end: 8,000 rows took minutes, 60,000 did not end."""
    rows = 8000
    latitude = np.repeat(np.linspace(-60, 60, rows)[:, None], 3, axis=1)
    steps = (np.arange(rows) * 3) % 7
    longitude = np.add.outer(steps.astype(float), np.arange(3) * 0.01)
    place = earth_footprint(latitude, longitude, (1, 1))
    for row in range(0, rows, 500):
        assert covers(place, float(latitude[row, 1]), float(longitude[row, 1]))
