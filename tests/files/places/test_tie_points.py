"""Places interpolated from tie points equal those of python-geotiepoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core.errors import RegionError
from swathe.files.places.dimension_maps import dimension_maps
from swathe.files.places.regions import region_of_bounds
from swathe.files.places.tie_points import tie_points
from tests.conftest import DATA

h5py = pytest.importorskip("h5py")
xarray = pytest.importorskip("xarray")
geointerpolator = pytest.importorskip("geotiepoints.geointerpolator")
interpolator = pytest.importorskip("geotiepoints.interpolator")
DIMMAP = DATA / "swath" / "swath_3_3d_dimmap.hdf"
CENTRES = [(0, 10), (40, 179.9), (-20, -180), (90, 0), (-90, 60), (89.5, 180)]
SHAPE = (110, 137)
cut: Any = swathe.cut
opened: Any = swathe.open


def vectors(latitude: Any, longitude: Any) -> tuple[Any, Any, Any]:
    return tuple(geointerpolator.lonlat2xyz(longitude, latitude, 1))


def degrees(x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    """Latitudes and longitudes on the sphere; those of geotiepoints are of points below it."""
    return np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))


def expect_same_places(one: tuple[Any, Any], other: tuple[Any, Any], most: float = 1e-6) -> None:
    """Compare pairs of latitudes and longitudes: distances on the sphere in degrees."""
    chord = np.sqrt(sum((a - b) ** 2 for a, b in zip(vectors(*one), vectors(*other), strict=True)))
    assert np.degrees(chord).max() < most


def by_geotiepoints(latitude: Any, longitude: Any, where: Any, shape: tuple[int, int]) -> Any:
    """Interpolate with geotiepoints; `where` are the elements of the tie points on both axes."""
    grid = interpolator.MultipleGridInterpolator(
        where, *vectors(latitude, longitude), bounds_error=False, fill_value=None
    )
    return degrees(*grid.interpolate(tuple(map(np.arange, shape))))


def swath(centre: tuple[float, float], count: int, step_km: float = 5) -> tuple[Any, Any]:
    """Places of `count` x `count` tie points around a centre, in single precision, askew."""
    north, east = np.radians(centre)
    y, x = np.mgrid[:count, :count] * step_km / 6371
    y, x = y - y.mean() + x / 7, x - x.mean() - y / 9
    up = np.array([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    right = np.array([-np.sin(east), np.cos(east), 0])
    on = np.cross(up, right)
    points = up[:, None, None] + right[:, None, None] * x + on[:, None, None] * y
    return tuple(each.astype("f4") for each in degrees(*points))


def made(
    path: Path, latitude: Any, longitude: Any, dims: Any = ("ty", "tx"), factor: int = 5
) -> Any:
    """Write a file whose tie points are those of every fifth element."""
    rows, columns = latitude.shape[0] * factor, latitude.shape[1] * factor - 1
    names = [f"{factor // 5 * 10}*nscans", "x"] if "nscans" in dims[0] else ["y", "x"]
    dataset = xarray.Dataset(
        {
            "t2": ((names[0], "band", "x"), np.zeros((rows, 2, columns), "i2")),
            "latitude": (dims, latitude, {"units": "degrees_north"}),
            "longitude": (dims, longitude, {"units": "degrees_east"}),
        }
    )
    dataset.to_netcdf(path)
    return opened(path)["/t2"]


@pytest.mark.parametrize("centre", CENTRES, ids=str)
@pytest.mark.parametrize("factor", [5, 10])
def test_five_to_one_equals_geotiepoints(
    tmp_path: Path, centre: tuple[float, float], factor: int
) -> None:
    latitude, longitude = swath(centre, 24)
    array = made(tmp_path / "a.nc", latitude, longitude, factor=factor)
    (ties,) = tie_points(array)
    shape = array.shape[0], array.shape[2]
    assert np.prod(shape) > 10_000
    where = tuple(np.arange(24) * factor + (factor - 1) / 2 for _ in range(2))
    expected = by_geotiepoints(latitude.astype("f8"), longitude.astype("f8"), where, shape)
    actual = ties.places([(0, shape[0]), (0, shape[1])])
    expect_same_places(actual, expected)
    part = ties.places([(31, 77), (50, 51)])
    expect_same_places(part, tuple(each[31:77, 50:51] for each in expected))


def test_scans_equal_geotiepoints(tmp_path: Path) -> None:
    latitude, longitude = (each.astype("f8") for each in swath((60, 178), 30))
    latitude[1::2] += 0.01  # scans overlap
    array = made(tmp_path / "a.nc", latitude, longitude, dims=("2*nscans", "tx"))
    (ties,) = tie_points(array)
    rows, columns = array.shape[0], array.shape[2]
    whole = geointerpolator.GeoInterpolator(
        (longitude, latitude),
        (np.arange(2, rows, 5) / 5, np.arange(2, columns + 1, 5) / 5),
        (np.arange(rows) / 5, np.arange(columns) / 5),
        chunk_size=10,
    )
    whole.fill_borders("y", "x")
    x, y, z = interpolator.Interpolator.interpolate(whole)
    expect_same_places(ties.places([(0, rows), (0, columns)]), degrees(x, y, z))


@pytest.mark.parametrize("centre", CENTRES, ids=str)
def test_bounds_of_interpolated_places(tmp_path: Path, centre: tuple[float, float]) -> None:
    array = made(tmp_path / "a.nc", *swath(centre, 24))
    (ties,) = tie_points(array)
    latitude, longitude = ties.places([(0, 120), (0, 119)])
    mask = abs(latitude - centre[0]) < 0.2
    if abs(centre[0]) < 80:
        mask &= abs((longitude - centre[1] + 180) % 360 - 180) < 0.3
        west, east = ((centre[1] + side + 180) % 360 - 180 for side in (-0.3, 0.3))
    else:
        west, east = -180, 180
    south, north = np.clip([centre[0] - 0.2, centre[0] + 0.2], -90, 90)
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    expected = [{0: (rows[0], rows[-1] + 1), 2: (columns[0], columns[-1] + 1)}]
    assert region_of_bounds(array, (west, south, east, north)) == expected


def test_a_cut_has_the_places_of_its_elements(tmp_path: Path) -> None:
    array = made(tmp_path / "a.nc", *swath((40, 179.9), 24))
    latitude, longitude = tie_points(array)[0].places([(0, 120), (0, 119)])
    cutout = cut(tmp_path / "a.nc", array="t2", box=(-2, 30, 20, 10), mode="partial")
    np.testing.assert_array_equal(cutout.coords["latitude"].data[:, 2:], latitude[30:40, :18])
    assert np.isnan(cutout.coords["longitude"].data[:, :2]).all()
    row = cut(tmp_path / "a.nc", array="t2", index={"y": 7, "x": slice(3, 9)})
    np.testing.assert_array_equal(row.coords["longitude"].data, longitude[7, 3:9])
    row.write(tmp_path / "cut.nc")
    with xarray.open_dataset(tmp_path / "cut.nc") as dataset:
        assert dataset.t2.latitude.dims == ("x",)
        np.testing.assert_array_equal(dataset.t2.latitude, latitude[7, 3:9])


@pytest.mark.skipif(not DIMMAP.is_file(), reason=f"no data in {DATA}")
@pytest.mark.parametrize(("name", "factor"), [("temperature_m", 2), ("temperature_h", 4)])
def test_dimension_maps_of_a_real_file(name: str, factor: int) -> None:
    from pyhdf.SD import SD

    array = opened(DIMMAP)[f"/Swath1/Data Fields/{name}"]
    (ties,) = tie_points(array)
    file = SD(str(DIMMAP))  # the first of three swaths with equal names
    latitude, longitude = (
        np.array(file.select(each)[:], "f8") for each in ("Latitude", "Longitude")
    )
    where = tuple(np.arange(count) * factor for count in latitude.shape)
    expected = by_geotiepoints(latitude, longitude, where, array.shape[1:])
    actual = ties.places([(0, length) for length in array.shape[1:]])
    expect_same_places(actual, expected)
    inside = (expected[0] >= 1) & (expected[1] >= 2) & (expected[1] <= 5)
    box = (2, 1, 5, 90)
    assert inside.any()
    rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
    region = {1: (rows[0], rows[-1] + 1), 2: (columns[0], columns[-1] + 1)}
    assert region_of_bounds(array, box) == [region]
    cutout = cut(DIMMAP, array=array.path, bounds=box)
    part = tuple(slice(*ends) for ends in region.values())
    np.testing.assert_array_equal(cutout.coords["Latitude"].data, actual[0][part])


MAP = """GROUP=SWATH_1
SwathName="S"
OBJECT=DimensionMap_1
GeoDimension="g"
DataDimension="d"
Offset={}
Increment={}
END_OBJECT=DimensionMap_1
"""


@pytest.mark.parametrize(
    ("offset", "increment", "expected"),
    [(1, 2, (1, 2)), (0, -4, (0, 0.25)), (1, -2, (-0.5, 0.5)), (-3, 1, (-3, 1))],
)
def test_maps_are_offset_and_increment(offset: int, increment: int, expected: Any) -> None:
    assert dimension_maps(MAP.format(offset, increment)) == {("g:S", "d:S"): expected}


@pytest.mark.parametrize(("offset", "increment"), [("0", "0"), ("a", 1), ("9" * 99, 1), (1, "٣٣x")])
def test_lies_are_no_maps(offset: Any, increment: Any) -> None:
    assert dimension_maps(MAP.format(offset, increment)) == {}
    assert dimension_maps(7) == {}


def test_tie_points_that_do_not_reach_are_none(tmp_path: Path) -> None:
    array = made(tmp_path / "a.nc", *(each[:20] for each in swath((0, 0), 24)))
    assert tie_points(array)
    h5 = tmp_path / "b.h5"
    with h5py.File(h5, "w") as file:
        file["latitude"] = file["longitude"] = np.zeros((4, 4))
        file["t2"] = np.zeros((7, 100))
    array = opened(h5)["/t2"]
    assert not tie_points(array)
    with pytest.raises(RegionError, match=r"on axes of the array .* found /latitude"):
        region_of_bounds(array, (0, 0, 1, 1))


def test_places_that_are_no_numbers_stay_unknown(tmp_path: Path) -> None:
    latitude, longitude = swath((0, 0), 24)
    latitude[3, 4], longitude[9, 9] = 91, np.nan
    (ties,) = tie_points(made(tmp_path / "a.nc", latitude, longitude))
    unknown = np.isnan(ties.places([(0, 120), (0, 119)])[0])
    assert unknown[17, 22]
    assert unknown[47, 47]
    assert not unknown[60:, 60:].any()


def test_several_tie_points_are_an_error_of_bounds_only(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name in ("lat", "latitude", "lon", "longitude"):
            file[name] = np.zeros((4, 4))
            file[name].attrs["units"] = f"degrees_{'north' if 'lat' in name else 'east'}"
        file["t2"] = np.zeros((20, 20))
    with pytest.raises(RegionError, match="expected one pair of tie points"):
        region_of_bounds(opened(path)["/t2"], (0, 0, 1, 1))
    assert not cut(path, array="t2", box=(1, 2, 3, 4)).coords


@pytest.mark.skipif(not DIMMAP.is_file(), reason=f"no data in {DATA}")
def test_arrays_with_places_of_their_own_have_no_tie_points() -> None:
    assert not tie_points(opened(DIMMAP)["/Swath1/Data Fields/temperature_l"])
