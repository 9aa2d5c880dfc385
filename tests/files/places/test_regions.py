"""Regions by bounds hold the pixels that all coordinates of the file say, read independently."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import swathe
from swathe.core.errors import FormatError, LimitError, NoOverlapError, RegionError
from swathe.files.array import Array
from swathe.files.array_file import ArrayFile
from swathe.files.places import coordinates
from swathe.files.places.regions import pair_on_axes, region_of_bounds
from tests.conftest import DATA
from tests.support.property_examples import examples

netcdf = pytest.importorskip("netCDF4")
xarray = pytest.importorskip("xarray")
SWATH = DATA / "swath"
JASON = "JA1_GPN_2PeP001_002_20020115_060706_20020115_070316.nc"
SWATHS = [
    ("SS_AMSR2-L2B_v08_r38622-v02.0-fv01.0.nc", "sea_surface_temperature", "lat", "lon"),
    ("SS_MODIS_A-JPL-L2P-v2014.0.nc", "sst_dtime", "lat", "lon"),
    ("SS_VIIRS_NPP-NAVO-L2P-v3.0.nc", "l2p_flags", "lat", "lon"),
    ("ascat_20150702_084200_metopa_45145_eps_o_250_2300_ovw.l2.nc", "wind_speed", "lat", "lon"),
    (
        "ascat_20211220_213600_metopb_48037_eps_o_250_3202_ovw.l2_subsetted.nc4",
        "wind_dir",
        "lat",
        "lon",
    ),
    (
        "TEMPO_NO2_L2_V03_20240601T211614Z_S012G02_subsetted.nc4",
        "product/vertical_column_stratosphere",
        "geolocation/latitude",
        "geolocation/longitude",
    ),
    (JASON, "swh_ku", "lat", "lon"),
    (
        JASON,
        "swh_20hz_c",
        "lat_20hz",
        "lon_20hz",
    ),
]
needs_data = pytest.mark.skipif(not SWATH.is_dir(), reason=f"no data in {SWATH}")
quick = settings(
    deadline=None,
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
Box = tuple[float, float, float, float]


@st.composite
def boxes(draw: st.DrawFn, least: float = -180, most: float = 180) -> Box:
    """Boxes with edges of any order of longitude, some of them on whole degrees."""
    longitude = st.one_of(
        st.integers(int(least), int(most)).map(float), st.floats(least, most, width=32)
    )
    latitude = st.one_of(st.integers(-90, 90).map(float), st.floats(-90, 90, width=32))
    south, north = sorted((draw(latitude), draw(latitude)))
    return draw(longitude), south, draw(longitude), north


def inside(latitude: Any, longitude: Any, box: Box) -> NDArray[np.bool_]:
    """Pixels in a box, each compared after its longitude was brought into that of the box."""
    west, south, east, north = box
    shape = np.shape(latitude)
    latitude = np.ma.filled(np.ma.asarray(latitude, float), np.nan).ravel()
    longitude = np.ma.filled(np.ma.asarray(longitude, float), np.nan).ravel()
    spans = [(west, east)] if west <= east else [(west, 360.0 + east)]
    mask = np.zeros(latitude.shape, bool)
    for low, high in spans:
        for turn in range(-3, 4):
            mask |= (longitude + 360 * turn >= low) & (longitude + 360 * turn <= high)
    answer: NDArray[np.bool_] = (mask & (latitude >= south) & (latitude <= north)).reshape(shape)
    return answer


def array_of(path: Path, name: str) -> Array:
    file = swathe.open(path)
    assert isinstance(file, ArrayFile)
    return file[name]


def places_of(name: str, latitude: str, longitude: str) -> tuple[Any, Any]:
    with netcdf.Dataset(SWATH / name) as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "WARNING: missing_value not used")
        return file[latitude][...], file[longitude][...]


def expect_smallest(array: Any, box: Box, mask: NDArray[np.bool_]) -> None:
    """The region is the smallest box of indices with all pixels of a mask on its last axes."""
    if not mask.any():
        with pytest.raises(NoOverlapError, match="the centres of its pixels are within west"):
            region_of_bounds(array, box)
        return
    (part,) = region_of_bounds(array, box)
    pair = pair_on_axes(array)
    assert pair is not None
    names = [array.dims.index(dim) for dim in pair[0].dims]
    assert [part[axis] for axis in names] == [
        (int(places.min()), int(places.max()) + 1) for places in mask.nonzero()
    ]
    assert len(part) == mask.ndim


@needs_data
@pytest.mark.parametrize(("name", "path", "latitude", "longitude"), SWATHS)
def test_swath_equals_brute_force(name: str, path: str, latitude: str, longitude: str) -> None:
    north, east = places_of(name, latitude, longitude)
    array = array_of(SWATH / name, path)
    random = np.random.default_rng(3)
    valid = np.flatnonzero(np.isfinite(np.ma.filled(np.ma.asarray(north, float), np.nan)))
    for number in range(8):
        at = random.choice(valid)
        y = float(np.ma.getdata(north).ravel()[at])
        x = (float(np.ma.getdata(east).ravel()[at]) + 180) % 360 - 180
        half = (0.05, 0.5, 3, 20)[number % 4]
        box = (
            (x - half + 180) % 360 - 180,
            max(-90, y - half),
            (x + half + 180) % 360 - 180,
            min(90, y + half),
        )
        expect_smallest(array, box, inside(north, east, box))


@needs_data
@quick
@given(box=boxes())
def test_swath_by_any_box(box: Box) -> None:
    name, path, latitude, longitude = SWATHS[3]
    array = array_of(SWATH / name, path)
    expect_smallest(array, box, inside(*places_of(name, latitude, longitude), box))


@needs_data
def test_swath_is_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    name, path, *_ = SWATHS[3]
    array = array_of(SWATH / name, path)
    whole = region_of_bounds(array, (-180, -60, 180, 60))
    monkeypatch.setattr(coordinates, "BLOCK_ELEMENTS", 100)
    assert region_of_bounds(array, (-180, -60, 180, 60)) == whole
    monkeypatch.setattr(coordinates, "MOST_ELEMENTS", 100)
    with pytest.raises(LimitError, match="expected at most 100 elements"):
        region_of_bounds(array, (-180, -60, 180, 60))


@needs_data
def test_geolocation_in_another_group_of_the_swath() -> None:
    array = array_of(SWATH / "swath_3_3d_dimmap.hdf", "/Swath1/Data Fields/temperature_l")
    pair = pair_on_axes(array)
    assert pair is not None
    latitude, longitude = pair
    assert latitude.path == "/Swath1/Geolocation Fields/Latitude"
    assert longitude.path == "/Swath1/Geolocation Fields/Longitude"
    box = (-10.0, -5.0, 60.0, 40.0)
    expect_smallest(array, box, inside(latitude.data, longitude.data, box))


@needs_data
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("swath/ascat_20211220_231800_metopb_48038_eps_o_250_3202_ovw.l2.nc4", "wind_speed"),
        ("formats/MOD14.hdf4", "FP_T21"),
    ],
)
def test_empty_arrays_raise(name: str, path: str) -> None:
    with pytest.raises(RegionError, match="expected"):
        region_of_bounds(array_of(DATA / name, path), (-180, -90, 180, 90))


def grid(path: Path, longitude: Any, latitude: Any, **attrs: Any) -> Any:
    """Return an array (time, lat, lon) of a NetCDF file."""
    dataset = xarray.Dataset(
        {"t2": (("time", "lat", "lon"), np.zeros((2, len(latitude), len(longitude)), "f4"))},
        coords={
            "lat": ("lat", np.asarray(latitude), {"units": "degrees_north"}),
            "lon": ("lon", np.asarray(longitude), {"units": "degrees_east", **attrs}),
        },
    )
    dataset.to_netcdf(path)
    return array_of(path, "t2")


LONGITUDES = {
    "from -180": np.arange(-180, 180, 2.5),
    "from 0": np.arange(0, 360, 2.5),
    "twice 0": np.arange(0, 361, 5.0),
    "centres": np.arange(-179.5, 180, 1),
    "descending": np.arange(180, -180, -4.0),
    "through the dateline": (np.arange(100, 260, 3.0) + 180) % 360 - 180,
    "regional": np.arange(200, 330.1, 2.5),
}


@pytest.fixture(scope="module")
def grids(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("grids")
    latitudes = [np.arange(90, -91, -2.5), np.arange(-89.5, 90, 1)]
    return {
        name: grid(folder / f"{number}.nc", values, latitudes[number % 2])
        for number, (name, values) in enumerate(LONGITUDES.items())
    }


def expect_grid(array: Any, box: Box) -> None:
    """The parts have all cells in the box, no other ones, and each once."""
    with netcdf.Dataset(array.url) as file:
        north, east = file["lat"][...], file["lon"][...]
    latitude, longitude = np.meshgrid(north, east, indexing="ij")
    mask = inside(latitude, longitude, box)
    if not mask.any():
        with pytest.raises(NoOverlapError):
            region_of_bounds(array, box)
        return
    parts = region_of_bounds(array, box)
    counts = np.zeros(mask.shape, int)
    for part in parts:
        assert set(part) == {1, 2}
        counts[slice(*part[1]), slice(*part[2])] += 1
    assert np.array_equal(counts, mask)
    assert len(parts) <= 2
    if len(parts) == 2:
        assert parts[0][2][1] == len(east)
        assert parts[1][2][0] == 0


@pytest.mark.parametrize("name", LONGITUDES)
@quick
@given(box=st.one_of(boxes(), boxes(0, 360)))
def test_grid_by_any_box(grids: dict[str, Any], name: str, box: Box) -> None:
    expect_grid(grids[name], box)


@pytest.mark.parametrize(
    ("name", "box", "columns"),
    [
        ("from -180", (170, -10, -170, 10), [(140, 144), (0, 5)]),
        ("from 0", (-5, -10, 5, 10), [(142, 144), (0, 3)]),
        ("from 0", (170, -10, -170, 10), [(68, 77)]),
        ("from -180", (190, -10, 200, 10), [(4, 9)]),
        ("centres", (-180, -90, 180, 90), [(0, 360)]),
        ("centres", (179.5, 0, -179.5, 1), [(359, 360), (0, 1)]),
    ],
)
def test_columns(grids: dict[str, Any], name: str, box: Box, columns: list[Any]) -> None:
    assert [part[2] for part in region_of_bounds(grids[name], box)] == columns


@pytest.mark.skipif(not (DATA / "formats").is_dir(), reason=f"no data in {DATA}")
@pytest.mark.parametrize("name", ["air.nc", "air_linked.nc"])
def test_grid_equals_xarray(name: str) -> None:
    path = DATA / "formats" / name
    array = array_of(path, "air")
    (part,) = region_of_bounds(array, (-130, 30, -100, 55))
    with xarray.open_dataset(path, engine="netcdf4") as dataset:
        y, x = dataset.air.dims[1:]
        expected = dataset.air.sel({y: slice(55, 30), x: slice(230, 260)})
        actual = dataset.air[:, slice(*part[1]), slice(*part[2])]
        assert actual.identical(expected)
        assert expected.size


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((0, 0, 1), "expected .west, south, east, north."),
        ("abcd", "expected .west, south, east, north."),
        (None, "expected .west, south, east, north."),
        ((0, 0, 1, "north"), "expected .west, south, east, north."),
        ((0, 10, 1, 5), "south at most north, found south 10.0, north 5.0"),
        ((0, -91, 1, 5), "expected south from -90 to 90, found -91"),
        ((-181, 0, 1, 5), "expected west from -180 to 360"),
        ((0, 0, 361, 5), "expected east from -180 to 360"),
        ((float("nan"), 0, 1, 5), "expected west from -180 to 360, found nan"),
        ((0, 0, 1, float("inf")), "expected north"),
    ],
)
def test_invalid_bounds_raise(grids: dict[str, Any], bounds: Any, message: str) -> None:
    with pytest.raises(RegionError, match=message):
        region_of_bounds(grids["from 0"], bounds)


@pytest.mark.parametrize(
    ("longitudes", "message"),
    [
        ([0.0, 10, 5], "expected values that ascend or descend"),
        ([0.0, 10, np.nan], "expected numbers, found 1 without a value"),
        (np.arange(0, 720, 10.0), "expected one turn of 360 degrees at most"),
    ],
)
def test_invalid_axis_raises(tmp_path: Path, longitudes: Any, message: str) -> None:
    array = grid(tmp_path / "a.nc", longitudes, [0.0, 1])
    with pytest.raises(FormatError, match=message):
        region_of_bounds(array, (0, 0, 20, 1))


def test_axis_without_place_raises(tmp_path: Path) -> None:
    array = grid(tmp_path / "a.nc", [0.0, 1], [0.0, 1], standard_name="grid_longitude")
    with pytest.raises(RegionError, match="expected latitude and longitude on axes"):
        region_of_bounds(array, (0, 0, 1, 1))


def curvilinear(path: Path, latitude: Any, longitude: Any, **more: Any) -> Any:
    """Return an array (x, band, y) whose places lie on (y, x)."""
    rows, columns = np.shape(latitude)
    dataset = xarray.Dataset(
        {
            "t2": (("x", "band", "y"), np.zeros((columns, 2, rows), "f4")),
            "lat": (("y", "x"), latitude, {"standard_name": "latitude"}),
            "lon": (("y", "x"), longitude, {"standard_name": "longitude"}),
            **more,
        }
    )
    dataset.to_netcdf(path)
    return array_of(path, "t2")


@pytest.mark.parametrize("pole", [90, -90])
def test_axes_in_another_order_around_a_pole(tmp_path: Path, pole: int) -> None:
    y, x = np.mgrid[-10:11, -12:13] * 1.0
    latitude = pole - np.sign(pole) * np.hypot(y, x)
    longitude = np.degrees(np.arctan2(y, x))
    latitude[3, 4] = longitude[5, 6] = np.nan
    array = curvilinear(tmp_path / "a.nc", latitude, longitude)
    near_pole = (-180, 87, 180, 90) if pole > 0 else (-180, -90, 180, -87)
    for box in [(170, -90, -170, 90), near_pole, (0, -90, 90, 90), (10, 80, 20, 86)]:
        expect_smallest(array, box, inside(latitude, longitude, box))


def test_places_that_are_no_numbers_are_outside(tmp_path: Path) -> None:
    latitude = np.array([[0.0, 1], [np.inf, 91]])
    longitude = np.array([[1e300, 10], [10, 10]])
    array = curvilinear(tmp_path / "a.nc", latitude, longitude)
    assert region_of_bounds(array, (-180, -90, 180, 90)) == [{2: (0, 1), 0: (1, 2)}]


def test_several_latitudes_raise(tmp_path: Path) -> None:
    places = np.zeros((2, 3))
    other = (("y", "x"), places, {"standard_name": "latitude"})
    array = curvilinear(tmp_path / "a.nc", places, places, lat_2=other)
    with pytest.raises(RegionError, match=r"expected one latitude .* found /lat and /lat_2"):
        region_of_bounds(array, (0, 0, 1, 1))


def test_texts_are_no_places(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("latitude", "longitude", "t2"):
            file[name] = np.full((2, 3), b"x")
    with pytest.raises(RegionError, match="expected numbers, found elements of"):
        region_of_bounds(array_of(tmp_path / "a.h5", "t2"), (0, 0, 1, 1))


def test_square_axes_without_names(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    latitude, longitude = np.mgrid[:4, :4] * 1.0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["latitude"], file["longitude"] = latitude, longitude
        file["t2"] = np.zeros((4, 4, 4))
    array = array_of(tmp_path / "a.h5", "t2")
    assert region_of_bounds(array, (0, 2, 0, 9)) == [{1: (2, 4), 2: (0, 1)}]


def test_axes_without_names_by_shape(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    latitude, longitude = np.mgrid[:4, :5] * 1.0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["latitude"], file["longitude"] = latitude, longitude
        file["t2"] = np.zeros((3, 4, 5))
        file["other"] = np.zeros((5, 3))
    array = array_of(tmp_path / "a.h5", "t2")
    assert region_of_bounds(array, (1.5, 2, 3, 9)) == [{1: (2, 4), 2: (2, 4)}]
    with pytest.raises(RegionError, match="expected latitude and longitude on axes"):
        region_of_bounds(array_of(tmp_path / "a.h5", "other"), (1.5, 2, 3, 9))
