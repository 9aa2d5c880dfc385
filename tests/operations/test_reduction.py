"""Resolution reduction: cells and statistics as NumPy has them, conditions, bad input."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swathe
from swathe.core.errors import (
    FormatError,
    LimitError,
    NoSuchArrayError,
    NotFoundError,
    OptionError,
    OutputError,
    OutputExistsError,
    RegionError,
)
from swathe.operations.reduction.condition import Condition
from swathe.operations.reduction.pixels import Pixels
from swathe.operations.reduction.reduction import Reduction, check_pixels
from swathe.operations.reduction.swath import open_granule, swath_of
from tests.conftest import DATA

ALL = ("mean", "count", "std", "min", "max", "mode")
ANGLES = st.one_of(
    st.floats(-90, 90), st.sampled_from([-90.0, -89.75, -0.25, 0.0, 0.25, 89.75, 90.0])
)
TURNS = st.one_of(
    st.floats(-360, 360), st.sampled_from([-360.0, -180.0, 179.75, 180.0, 359.75, 360.0])
)
PIXELS = st.lists(st.tuples(ANGLES, TURNS, st.integers(0, 5), st.booleans()), max_size=60)


def swath(count: int = 200_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    lat, lon = rng.uniform(-90, 90, count), rng.uniform(-180, 180, count)
    return rng.normal(300, 5, count), lat, lon


@given(PIXELS, st.sampled_from([1.2, 1.5, 1.8, 7.5]))
def test_statistics_are_those_of_the_pixels_between_the_edges(
    pixels: list[tuple[float, float, int, bool]], step: float
) -> None:
    lat, lon, values, fill = (np.array(each) for each in zip(*pixels, strict=True)) if pixels else (
        np.zeros(0), np.zeros(0), np.zeros(0, int), np.zeros(0, bool)
    )  # fmt: skip
    reduction = Reduction(f"{step}deg", ALL)
    reduction.add(np.ma.MaskedArray(values, fill), lat, lon)
    result = reduction.result()
    assert result.row_edges is not None
    assert result.column_edges is not None
    rows = np.searchsorted(result.row_edges, lat, "right") - 1
    rows = np.minimum(rows, len(result.row_edges) - 2)
    turned = np.where(lon < -180, np.fmod(lon, 360) + 360 * (np.fmod(lon, 360) < -180), lon)
    turned = np.where(turned >= 180, turned - 360, turned)
    columns = np.searchsorted(result.column_edges, turned, "right") - 1
    assert result["pixels"].sum() == len(lat)
    for row, column in set(zip(rows.tolist(), columns.tolist(), strict=True)):
        here = (rows == row) & (columns == column)
        valid = values[here & ~fill]
        assert result["pixels"][row, column] == here.sum()
        assert result["count"][row, column] == len(valid)
        assert result.is_all_fill[row, column] == (len(valid) == 0)
        if len(valid):
            found = [result[name][row, column] for name in ("mean", "std", "min", "max", "mode")]
            mode = np.bincount(valid).argmax()
            expected = [valid.mean(), valid.std(), valid.min(), valid.max(), mode]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert not (result.is_empty & (result["count"] > 0)).any()


def test_mean_and_count_are_those_of_pyresample() -> None:
    """Places in cells, not on edges, and values without fill: there both define the same."""
    bucket = pytest.importorskip("pyresample.bucket")
    geometry = pytest.importorskip("pyresample.geometry")
    from_array = pytest.importorskip("dask.array").from_array
    rng = np.random.default_rng(11)
    rows, columns = rng.integers(0, 180, 50_000), rng.integers(0, 360, 50_000)
    lat, lon = (
        (each + rng.uniform(0.1, 0.9, each.size)) / 2 + start
        for each, start in ((rows, -45), (columns, -90))
    )
    values = rng.normal(300, 5, lat.size)
    reduction = Reduction("0.5deg", ("mean", "count"))
    reduction.add(values, lat, lon)
    result = reduction.result()
    area = geometry.AreaDefinition("a", "", "", "EPSG:4326", 720, 360, (-180, -90, 180, 90))
    resampler = bucket.BucketResampler(area, from_array(lon), from_array(lat))
    # Its rows begin in the north.
    count = resampler.get_count().compute()[::-1]
    mean = resampler.get_average(from_array(values)).compute()[::-1]
    np.testing.assert_array_equal(result["count"], count)
    np.testing.assert_allclose(result["mean"][count > 0], mean[count > 0], rtol=1e-12)
    assert (count > 0).sum() > 30_000


def test_std_of_large_values_is_stable() -> None:
    values = 1e9 + np.random.default_rng(1).normal(0, 1e-3, 100_000)
    values[0] = 1e9 + 10
    result = swathe.reduce(swathe.Swath(values, 0.5, 0.5), grid="1deg", statistics=("std",))
    exact = (values - 1e9).std()
    np.testing.assert_allclose(np.nanmax(result["std"]), exact, rtol=1e-6)


@pytest.mark.parametrize("grid", ["0.25deg", "N80", "healpix64", "healpix60-ring", "0.1deg"])
def test_threads_change_no_bit(grid: str) -> None:
    results = []
    for threads in (1, 2, 5):
        reduction = Reduction(grid, ("mean", "std"), threads)
        reduction.add(*swath())
        results.append(reduction.result())
    for other in results[1:]:
        for name, array in results[0].data.items():
            assert array.tobytes() == other[name].tobytes()


def test_parts_merge_in_any_order() -> None:
    values, lat, lon = swath(9_000)
    whole = Reduction("5deg", ("mean", "std", "min"))
    whole.add(values, lat, lon)
    parts = []
    for at in (slice(6000, None), slice(0, 2000), slice(2000, 6000)):
        parts.append(Reduction("5deg", ("mean", "std", "min")))
        parts[-1].add(values[at], lat[at], lon[at])
    parts[0].merge(parts[1])
    parts[0].merge(parts[2])
    for name, array in whole.result().data.items():
        np.testing.assert_allclose(parts[0].result()[name], array, rtol=1e-9)
    with pytest.raises(OptionError, match="same grid"):
        whole.merge(Reduction("2deg", ("mean", "std", "min")))


@pytest.mark.parametrize("order", ["nested", "ring"])
def test_healpix_cells_are_those_of_cdshealpix(order: str) -> None:
    healpix = pytest.importorskip("astropy_healpix")
    values, lat, lon = swath(50_000)
    cells = healpix.lonlat_to_healpix(*_degrees(lon, lat), 64, order=order)
    expected = np.bincount(cells, minlength=12 * 64 * 64)
    name = "healpix64" if order == "nested" else "healpix64-ring"
    result = swathe.reduce(swathe.Swath(values, lat, lon), grid=name)
    np.testing.assert_array_equal(result["count"], expected)


def _degrees(*angles: np.ndarray) -> list[Any]:
    from astropy import units

    return [angle * units.deg for angle in angles]


def test_gaussian_latitudes_are_roots_of_legendre() -> None:
    result = swathe.reduce(swathe.Swath(np.ones(1), 0.0, 0.0), grid="N80")
    roots = np.polynomial.legendre.leggauss(160)[0]
    np.testing.assert_allclose(np.sin(np.radians(result.coords["lat"])), roots, atol=1e-14)
    assert result["count"].shape == (160, 320)
    assert result.coords["lon"][0] == 0


def test_pixels_without_a_place_are_counted_apart() -> None:
    lat = np.ma.MaskedArray([0.5, -999.0, np.nan], [False, True, False])
    result = swathe.reduce(swathe.Swath(np.arange(3), lat, np.zeros(3)), grid="1deg")
    assert result.outside == 2
    assert result["pixels"].sum() == 1


def test_bounds_leave_out_other_pixels() -> None:
    grid = swathe.GridSpec.parse("1deg", bounds=(170, -10, 190, 10))
    source = swathe.Swath(np.arange(4.0), [0, 0, 10, 0], [-175, 175, 175, 0])
    result = swathe.reduce(source, grid=grid)
    assert result["count"].shape == (20, 20)
    assert (result["count"].sum(), result.outside) == (2, 2)


def test_where_takes_pixels_and_others_are_fill() -> None:
    fields = {"qa": np.array([0, 1, 4, 3], "u1")}
    source = swathe.Swath(np.arange(4.0), np.array([0.5, 0.5, 0.5, 20]), np.zeros(4), fields)
    result = swathe.reduce(source, grid="1deg", where="qa & 3 == 0")
    assert result["count"].sum() == 2
    assert result["mean"][90, 180] == 1
    assert result.is_all_fill.sum() == 1
    with pytest.raises(OptionError, match="'cloud'"):
        swathe.reduce(source, grid="1deg", where="cloud == 0")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "qa.__class__", "qa[0]", "qa ** 99", "lambda: qa",
        "qa < 1 & qa < 2", "'a' == qa", "True", "1 == 1", "", "qa ==", "(" * 300, "-" * 499 + "qa",
        "qa == 1" * 200, "qa == 99999999999999999999", "qa\0", "(x := qa) == 1",
    ],
)  # fmt: skip
def test_hostile_conditions_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="where"):
        Condition(text).mask({"qa": np.zeros(3, int)})


def test_a_condition_that_is_no_truth_or_shifts_far() -> None:
    arrays = {"qa": np.ones(3, int)}
    with pytest.raises(OptionError, match="type int64"):
        Condition("qa & 3").mask(arrays)
    assert Condition("qa << 1000000000 == 0").mask(arrays).all()


@pytest.mark.parametrize(
    ("data", "lat", "lon", "error"),
    [
        (np.ones(2), np.array([0, 90.1]), np.zeros(2), RegionError),
        (np.ones(2), np.zeros(2), np.array([0, np.inf]), RegionError),
        (np.ones(2), np.zeros(3), np.zeros(2), RegionError),
        (np.ones(2, complex), np.zeros(2), np.zeros(2), OptionError),
        (np.full(2, 2**60), np.zeros(2), np.zeros(2), OptionError),
    ],
)
def test_wrong_pixels_are_errors(data: Any, lat: Any, lon: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="expected"):
        Reduction("1deg", ("mean",)).add(data, lat, lon)


def test_mode_is_of_few_integers() -> None:
    reduction = Reduction("1deg", ("mode",))
    with pytest.raises(OptionError, match="integers"):
        reduction.add(np.ones(2), 0.5, 0.5)
    with pytest.raises(OptionError, match="256"):
        reduction.add(np.arange(257), 0.5, 0.5)
    assert reduction.result()["pixels"].sum() == 0
    reduction.add(np.arange(256), 0.5, 0.5)
    assert np.nanmax(reduction.result()["mode"]) == 0


@pytest.mark.parametrize(
    "grid", ["deg", "0deg", "0.7deg", "1e-9deg", "N0", "healpix3", "healpix0", "N1x", "25"]
)
def test_wrong_grids_are_errors(grid: str) -> None:
    with pytest.raises(OptionError, match="grid: expected"):
        Reduction(grid, ("mean",))


def test_other_wrong_options_are_errors() -> None:
    with pytest.raises(LimitError, match="at most"):
        Reduction("0.001deg", ("mean",))
    with pytest.raises(OptionError, match="median"):
        Reduction("1deg", ("median",))
    with pytest.raises(NotFoundError, match="found none"):
        swathe.reduce("/nowhere/*.nc", grid="1deg")


def test_results_are_written(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    values, lat, lon = swath(5000)
    source = swathe.Swath(values, lat, lon, attrs={"units": "K"})
    result = swathe.reduce(source, grid="5deg", statistics=ALL[:3])
    for suffix in (".nc", ".npy", ".fits"):
        result.write(tmp_path / f"out{suffix}")
    with netcdf.Dataset(tmp_path / "out.nc") as file:
        np.testing.assert_array_equal(np.ma.filled(file["mean"][:], np.nan), result["mean"])
        np.testing.assert_array_equal(file["pixels"][:], result["pixels"])
        assert (file["mean"].units, file["lat"].units) == ("K", "degrees_north")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), result["mean"])
    with pytest.raises(OutputExistsError):
        result.write(tmp_path / "out.nc")
    with pytest.raises(OutputError, match=r"\.xyz"):
        result.write(tmp_path / "out.xyz")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("swath/SS_MODIS_A-JPL-L2P-v2014.0.nc", "sea_surface_temperature"),
        ("formats/air.nc", "air"),
    ],
)
def test_files_are_masked_scaled_and_placed(path: str, name: str) -> None:
    netcdf = pytest.importorskip("netCDF4")
    if not (DATA / path).is_file():
        pytest.skip(f"{DATA / path} is not there")
    result = swathe.reduce(str(DATA / path), grid="5deg", array=name)
    with netcdf.Dataset(DATA / path) as file:
        values = file[name][:].astype(float)
    count = result["count"]
    assert count.sum() == np.ma.count(values)
    mean = np.nansum(result["mean"] * count) / count.sum()
    np.testing.assert_allclose(mean, values.mean(), rtol=1e-7)


@pytest.mark.parametrize(
    "kind", ["?", "u1", "i1", "<i2", ">i2", "u2", "i4", "u4", "i8", "u8", "f2", "<f4", ">f4", "f8"]
)
@pytest.mark.parametrize("place", ["f4", "f8", ">f4"])
def test_values_and_places_of_each_type_are_binned(kind: str, place: str) -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(0, 2, 9000).astype(kind)
    lat, lon = (rng.integers(-40, 40, 9000).astype(place) for _ in range(2))
    result = swathe.reduce(swathe.Swath(values, lat, lon), grid="10deg", statistics=ALL[:4])
    cells = (lat // 10 + 9).astype(int) * 36 + (lon // 10 + 18).astype(int)
    count = np.bincount(cells, minlength=18 * 36)
    np.testing.assert_array_equal(result["count"].ravel(), count)
    total = np.bincount(cells, values.astype(float), minlength=18 * 36)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(result["mean"].ravel(), total / count, rtol=1e-12)


def test_complex_places_are_errors() -> None:
    with pytest.raises(OptionError, match="places: expected real numbers"):
        Reduction("1deg", ("mean",)).add(np.ones(2), np.zeros(2, complex), np.zeros(2))


def test_a_source_is_never_replaced(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    source = tmp_path / "a.nc"
    shutil.copy(DATA / "formats" / "air.nc", source)
    before = source.read_bytes()
    result = swathe.reduce(str(source), array="air", grid="10deg")
    link = tmp_path / "b.nc"
    link.symlink_to(source)
    for target in (source, link):
        with pytest.raises(OutputError, match="source"):
            result.write(target, overwrite=True)
    assert source.read_bytes() == before
    result.write(tmp_path / "c.NC")
    result.write(tmp_path / "c.NC", overwrite=True)


@pytest.mark.parametrize(
    ("sources", "grid", "text"), [([], "5deg", "at least one"), ([], 0.25, "grid: expected")]
)
def test_no_source_or_grid_is_an_error(sources: Any, grid: Any, text: str) -> None:
    with pytest.raises(OptionError, match=text):
        swathe.reduce(sources, grid=grid)


def test_each_array_has_the_place_of_its_own_group(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "groups.h5"
    with h5py.File(path, "w") as file:
        for group, start in (("A", 0.0), ("B", 40.0)):
            places = start + np.arange(5.0).repeat(5).reshape(5, 5)
            file[f"{group}/lst"] = places
            for name in ("Latitude", "Longitude"):
                file[f"{group}/{name}"] = places if name == "Latitude" else places.T
    result = swathe.reduce(str(path), array="/B/lst", grid="10deg")
    rows, columns = np.nonzero(result["count"])
    assert (rows.tolist(), columns.tolist()) == ([13], [22])


def test_arrays_are_named_by_their_last_names(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = str(tmp_path / "groups.h5")
    with h5py.File(path, "w") as file:
        places = np.arange(5.0).repeat(5).reshape(5, 5)
        file["A/lst"], file["A/Latitude"], file["A/Longitude"] = places, places, places.T
        file["B/qa"] = (places > 1).astype("u1")
        file["B/flag"] = file["C/flag"] = file["B/qa"][...]
    result = swathe.reduce(path, array="lst", grid="10deg", where="qa == 1")
    assert result["count"].sum() == 15
    with pytest.raises(NoSuchArrayError, match="found 'last'; near it are /A/lst"):
        swathe.reduce(path, array="last", grid="10deg")
    with pytest.raises(NoSuchArrayError, match=r"where: .* 2 arrays have this name: /B/flag, /C"):
        swathe.reduce(path, array="lst", grid="10deg", where="flag == 1")


def test_places_of_5_km_are_interpolated_for_values_of_1_km(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyhdf")
    swathe.sample_swaths(tmp_path, days=1, granules=1, shape=(2030, 60), progress=False)
    (path,) = (tmp_path / "MOD11_L2").glob("*.hdf")
    with open_granule(path) as file:
        array = next(name for name in file if name.endswith("/LST"))
        height, width = file[array].shape
    cut: Any = swathe.cut(str(path), array=array, box=(0, 0, width, height))
    latitude, longitude = (cut.coords[name].data for name in ("Latitude", "Longitude"))
    assert latitude.shape == (height, width)
    condition = "QC & 3 == 0"
    granule = swath_of(str(path), array, Condition(condition), lambda _: None)
    source = swathe.Swath(granule.data, latitude, longitude, granule.fields)
    monkeypatch.setattr("swathe.operations.reduction.swath.BLOCK_ELEMENTS", 7000)
    expected, result = (
        swathe.reduce(each, array=array, grid="1deg", where=condition)
        for each in (source, str(path))
    )
    assert 1000 < result["count"].sum() < np.ma.count(granule.data)
    for name in ("count", "mean"):
        np.testing.assert_array_equal(result[name], expected[name])
    with pytest.raises(LimitError, match="expected values and places of up to 1,000,000 bytes"):
        swath_of(str(path), array, None, lambda _: None, 1_000_000)


@pytest.mark.parametrize("scale", ["two", [1.0, 2.0, 3.0], 1j])
def test_scale_that_is_no_number_is_an_error_of_the_file(tmp_path: Path, scale: Any) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name in ("lat", "lon", "v"):
            file[name] = np.arange(12).reshape(3, 4)
        file["v"].attrs["scale_factor"] = scale
    with pytest.raises(FormatError, match="scale_factor: expected a number"):
        swathe.reduce(str(path), array="/v", grid="10deg")


def test_what_a_small_file_becomes_is_bounded_before_it_is_read(tmp_path: Path) -> None:
    """Chunks that are not stored have the fill value, and a scale makes floats of bytes."""
    h5py = pytest.importorskip("h5py", reason="h5py writes the file")
    path = tmp_path / "empty.h5"
    with h5py.File(path, "w") as file:
        array = file.create_dataset("lst", (3000, 3000), "i1", chunks=(100, 100))
        array.attrs.update({"scale_factor": 0.02, "coordinates": "lat lon"})
        for name, units in (("lat", "degrees_north"), ("lon", "degrees_east")):
            file.create_dataset(name, (3000, 3000), "f4", chunks=(100, 100)).attrs["units"] = units
    assert path.stat().st_size < 100_000
    with pytest.raises(LimitError, match=r"up to 100,000,000 bytes .*, found 171,000,000"):
        swath_of(str(path), "/lst", None, lambda _: None, 100_000_000)


@pytest.mark.parametrize(
    ("latitude", "longitude", "found"),
    [
        (90.5, 0.0, "a latitude from -90 to 90, found 90.5"),
        (-np.inf, 0.0, "a latitude from -90 to 90, found -inf"),
        (0.0, np.inf, "a finite longitude, found inf"),
    ],
)
def test_wrong_places_are_found_without_binning(
    latitude: float, longitude: float, found: str
) -> None:
    pixels = Pixels.of(np.ones(2), np.array([1.0, latitude]), np.array([1.0, longitude]))
    with pytest.raises(RegionError, match=found):
        check_pixels(pixels, ("mean",))
    with pytest.raises(RegionError):
        Reduction("1deg", ("mean",)).add_pixels(pixels)


def test_pixels_that_can_be_added_pass_the_check() -> None:
    nowhere = Pixels.of(np.arange(3), np.array([90.0, -90.0, np.nan]), np.array([720.0, np.nan, 0]))
    check_pixels(nowhere, ("mean", "mode"))
    Reduction("1deg", ("mean", "mode")).add_pixels(nowhere)


def test_values_without_a_mode_are_found_without_binning() -> None:
    many = np.arange(300)
    with pytest.raises(OptionError, match="at most 256 values"):
        check_pixels(Pixels.of(many, 0.0, 0.0), ("mode",))
    check_pixels(Pixels.of(np.ma.masked_greater(many, 99), 0.0, 0.0), ("mode",))
    with pytest.raises(OptionError, match="expected integers, found float64"):
        check_pixels(Pixels.of(np.ones(3), 0.0, 0.0), ("mode",))


def test_a_wrong_place_names_its_file(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "beyond.nc"
    lat = np.full((2, 3), 90.5)
    places = {"lat": (("y", "x"), lat), "lon": (("y", "x"), np.zeros((2, 3)))}
    xarray.Dataset({"v": (("y", "x"), np.ones((2, 3)))}, places).to_netcdf(path)
    with pytest.raises(RegionError, match=r"beyond\.nc: pixel 0: expected a latitude from -90"):
        swathe.reduce([path], array="v", grid="1deg")


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:32633"])
def test_a_geotiff_is_reduced_by_its_transform(tmp_path: Path, crs: str) -> None:
    """Pixels are where rasterio and pyproj place them; nodata and scale are those of GDAL."""
    rasterio = pytest.importorskip("rasterio")
    pyproj = pytest.importorskip("pyproj")
    pytest.importorskip("tifffile")
    path = tmp_path / "map.tif"
    values = np.random.default_rng(3).integers(0, 500, (40, 50)).astype("i2")
    values[5:9] = -99
    step, corner = (0.1, (13.0, 49.0)) if crs == "EPSG:4326" else (10_000, (300_000, 5_500_000))
    place = rasterio.Affine(step, 0, corner[0], 0, -step, corner[1])
    options = {"count": 1, "dtype": "int16", "nodata": -99, "crs": crs, "transform": place}
    with rasterio.open(path, "w", driver="GTiff", height=40, width=50, **options) as file:
        file.write(values, 1)
        file.scales, file.offsets = (0.5,), (10.0,)
    result = swathe.reduce([path], grid="1deg", statistics=("mean", "count"))
    x, y = np.meshgrid(
        corner[0] + step * (np.arange(50) + 0.5), corner[1] - step * (np.arange(40) + 0.5)
    )
    to_degrees = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    lon, lat = to_degrees.transform(x, y)
    is_valid = values != -99
    cells = (np.floor(lat) + 90).astype(int)[is_valid], (np.floor(lon) + 180).astype(int)[is_valid]
    sums, counts = np.zeros((180, 360)), np.zeros((180, 360), int)
    np.add.at(sums, cells, values[is_valid] * 0.5 + 10)
    np.add.at(counts, cells, 1)
    assert np.array_equal(result.data["count"], counts)
    assert result.data["pixels"].sum() == values.size
    is_full = counts > 0
    np.testing.assert_allclose(result.data["mean"][is_full], sums[is_full] / counts[is_full])


def test_a_grid_of_hdf_eos_is_reduced_by_its_corners(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    hdf_eos5 = pytest.importorskip("tests.support.hdf_eos5")
    path = hdf_eos5.write_grid(tmp_path / "a.he5")
    result = swathe.reduce(
        [path], array=hdf_eos5.COLUMN, grid="15deg", statistics=("mean", "count")
    )
    with h5py.File(path) as file:
        layers = file[hdf_eos5.COLUMN][()].astype(float)
    # Its pixels are these cells, from the north.
    assert np.array_equal(result.data["count"], np.full(layers.shape[1:], len(layers)))
    np.testing.assert_allclose(result.data["mean"], layers.mean(axis=0)[::-1])
