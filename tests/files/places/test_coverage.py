"""What an array covers, as errors of bounds outside of it say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swathe.core.errors import NoOverlapError, SourceError
from swathe.files.places.coverage import Coverage
from swathe.files.places.regions import region_of_bounds
from tests.conftest import DATA
from tests.files.places.test_regions import array_of, curvilinear, grid
from tests.support.property_examples import examples

BOX = (0.0, -0.5, 1.0, 0.5)
LONGITUDES = st.lists(st.floats(-360, 720, width=32), min_size=1, max_size=20)
LATITUDES = st.floats(-90, 90, width=32)


@settings(deadline=None, max_examples=examples(100))
@given(longitudes=LONGITUDES, data=st.data())
def test_bounds_have_all_places_and_no_smaller_ones_have(longitudes: Any, data: Any) -> None:
    lon = np.array(longitudes)
    lat = np.array([data.draw(LATITUDES) for _ in longitudes])
    coverage = Coverage()
    for part in (slice(0, 3), slice(3, None)):
        assert not coverage.has(lat[part], lon[part]).any()
    bounds = coverage.bounds()
    assert bounds is not None
    assert (bounds.south, bounds.north) == (lat.min(), lat.max())
    ends = np.array([bounds.west, bounds.east])
    if bounds.east - bounds.west < 360:
        at = lon % 360
        assert all(np.isclose(abs((at - end + 180) % 360 - 180).min(), 0) for end in ends)
        assert ((at - bounds.west + 1e-9) % 360 <= (bounds.east - bounds.west) % 360 + 1e-6).all()
        steps = np.diff(np.sort(at), append=at.min() + 360)
        assert np.isclose((bounds.west - bounds.east) % 360 or 360, steps.max())


@pytest.mark.parametrize(
    ("longitudes", "text"),
    [
        ([10.0, 12, 14], "west 10, south 20, east 14, north 30"),
        ([200.0, 202, 204], "west -160, south 20, east -156, north 30"),
        ([176.0, 178, 180, -178, -176], "west 176, south 20, east -176, north 30"),
        (np.arange(0, 360, 2.5), "west -180, south 20, east 180, north 30"),
        (np.arange(-180, 180, 45.0), "west -180, south 20, east 180, north 30"),
        ([5.0], "west 5, south 20, east 5, north 30"),
    ],
)
def test_grid(tmp_path: Path, longitudes: Any, text: str) -> None:
    array = grid(tmp_path / "a.nc", longitudes, [20.0, 25, 30])
    with pytest.raises(NoOverlapError) as error:
        region_of_bounds(array, BOX)
    assert str(error.value).endswith(
        "array /t2: expected pixels in the bounds (0, -0.5, 1, 0.5), found none; "
        f"the centres of its pixels are within {text}"
    )


def test_swath_with_fill(tmp_path: Path) -> None:
    longitudes = np.array([[170.0, 179], [-170, np.nan]])
    latitudes = np.array([[-10.0, 10], [20, 40]])
    array = curvilinear(tmp_path / "a.nc", latitudes, longitudes)
    with pytest.raises(NoOverlapError, match=r"west 170, south -10, east -170, north 20$"):
        region_of_bounds(array, BOX)
    none = curvilinear(tmp_path / "b.nc", latitudes, longitudes * np.nan)
    with pytest.raises(NoOverlapError, match="found none; none of its pixels has a place"):
        region_of_bounds(none, BOX)


def test_a_coverage_that_cannot_be_read_is_no_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SourceError("the connection was reset")

    array = grid(tmp_path / "a.nc", [10.0, 12], [20.0, 25])
    monkeypatch.setattr(Coverage, "has_latitude", fail)
    with pytest.raises(NoOverlapError, match="what it covers is unknown: the connection was reset"):
        region_of_bounds(array, BOX)


def test_places_are_read_once_for_the_errors_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = grid(tmp_path / "a.nc", [10.0, 12], [20.0, 25])
    monkeypatch.setattr(Coverage, "bounds", lambda self: counts.append(1))
    counts: list[int] = []
    for _ in range(3):
        with pytest.raises(NoOverlapError):
            region_of_bounds(array, BOX)
    assert counts == [1]


@pytest.mark.skipif(not (DATA / "formats").is_dir(), reason=f"no data in {DATA}")
@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("world.byte.tif", "/0", "west -180, south -74.9375, east 180, north 74.9375"),
        ("RGB.byte.tif", "/0", "west -78.9571, south 23.5664, east -76.5764, north 25.5495"),
    ],
)
def test_geotiff(name: str, path: str, text: str) -> None:
    if name == "RGB.byte.tif":
        pytest.importorskip("pyproj")
    with pytest.raises(NoOverlapError, match=text):
        region_of_bounds(array_of(DATA / "formats" / name, path), (0, 89.9, 0, 90))
