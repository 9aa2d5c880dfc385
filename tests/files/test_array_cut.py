"""Cuts of arrays equal slices by xarray and rasterio, and so do their files."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.arrays.array_tree import ArrayDescription, ArrayTree
from swathe.core.box import Mode
from swathe.core.errors import (
    FormatError,
    LimitError,
    NoOverlapError,
    NoSuchArrayError,
    OptionError,
    OutputError,
    OutputExistsError,
    PartialOverlapError,
    PixelIndexError,
    RegionError,
)
from swathe.files.array_region import ArrayRegion
from tests.conftest import DATA

cut: Any = swathe.cut  # its results are `ArrayCutout` here
h5py = pytest.importorskip("h5py")
xarray = pytest.importorskip("xarray")
FORMATS = DATA / "formats"
needs_data = pytest.mark.skipif(not FORMATS.is_dir(), reason=f"no data in {FORMATS}")
SWATHS = sorted(path for path in (DATA / "swath").glob("SS_*.nc"))
LONE = {"lat": (3, 11), "lon": (2, 12)}


def opened(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return xarray.open_dataset(path, engine="netcdf4").load()


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """Return a NetCDF4 file: packed values, 2-D coordinates, bounds, grid mapping, quality."""
    path = tmp_path / "packed.nc"
    values = np.arange(4 * 20 * 30.0).reshape(4, 20, 30)
    rows, columns = np.mgrid[:20, :30]
    dataset = xarray.Dataset(
        {
            "t2": (
                ("time", "y", "x"),
                np.where(values % 7 == 0, np.nan, values),
                {
                    "units": "K",
                    "ancillary_variables": "quality",
                    "grid_mapping": "crs",
                    "comment": "Temperatur in Zürich",
                },
            ),
            "quality": (("time", "y", "x"), (values % 3).astype("i1")),
            "crs": ((), np.int32(0), {"grid_mapping_name": "latitude_longitude"}),
            "y_bnds": (("y", "nv"), np.stack([np.arange(20.0), np.arange(1.0, 21)], 1)),
        },
        coords={
            "time": ("time", np.arange(4.0), {"units": "days since 2000-01-01"}),
            "y": ("y", np.arange(20.0) + 0.5, {"bounds": "y_bnds"}),
            "lat": (("y", "x"), rows * 0.5, {"units": "degrees_north"}),
            "lon": (("y", "x"), columns * 0.5, {"units": "degrees_east"}),
        },
        attrs={"title": "made", "history": "before"},
    )
    packing = {"dtype": "i2", "scale_factor": 0.1, "add_offset": 100.0, "_FillValue": -999}
    dataset.to_netcdf(path, encoding={"t2": packing}, engine="netcdf4")
    return path


def test_a_cut_is_a_slice_of_xarray(packed: Path) -> None:
    cutout = cut(packed, array="t2", index={"time": 3}, box=(5, 6, 10, 8))
    expected = opened(packed).t2[3, 6:14, 5:15]
    assert cutout.dims == ("y", "x")
    assert cutout.box == (5, 6, 10, 8)
    assert cutout.start == (3, 6, 5)
    assert cutout.dtype == np.int16
    assert cutout.fill == -999
    np.testing.assert_array_equal(cutout.physical, expected.values)
    assert cutout.physical.dtype == expected.dtype
    assert cutout.coords["time"].data.shape == ()
    np.testing.assert_array_equal(cutout.coords["lat"].data, expected.lat.values)


def test_a_file_of_a_cut_has_all_that_belongs_to_it(packed: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.nc"
    region = {"time": slice(1, 3), "y": slice(6, 14)}
    cut(packed, array="t2", index=region, with_quality=True).write(path)
    part, expected = opened(path), opened(packed).isel(**region)
    part = part.set_coords(set(expected.coords) & set(part.variables))
    xarray.testing.assert_equal(part, expected[list(part.data_vars)])
    assert set(part.variables) == set(expected.variables)
    assert part.t2.attrs == expected.t2.attrs
    for key in ("scale_factor", "add_offset", "_FillValue", "dtype"):
        assert part.t2.encoding[key] == expected.t2.encoding[key]
    newest, before = part.attrs["history"].split("\n")
    assert before == "before"
    assert "cut /t2[1:3, 6:14, 0:30]" in newest
    with h5py.File(path) as file:
        assert file["t2"].dims[1][0].name == "/y"


def test_quality_comes_only_if_asked_for(packed: Path) -> None:
    cutout = cut(packed, array="t2", box=(0, 0, 2, 2))
    assert set(cutout.others) == {"crs", "y_bnds"}


def test_a_cut_is_written_once(packed: Path, tmp_path: Path) -> None:
    cutout = cut(packed, array="t2", index={"time": 0})
    cutout.write(tmp_path / "cut.npy")
    with pytest.raises(OutputExistsError):
        cutout.write(tmp_path / "cut.npy")
    with pytest.raises(OutputError, match="source"):
        cutout.write(packed, overwrite=True)
    with pytest.raises(OutputError, match=r"known: \.nc"):
        cutout.write(tmp_path / "cut.doc")
    cutout.write(tmp_path / "cut.png")
    np.testing.assert_array_equal(np.load(tmp_path / "cut.npy"), cutout.data)
    many = cut(packed, array="t2", box=(0, 0, 2, 2))
    with pytest.raises(RegionError, match="index="):
        many.write(tmp_path / "many.png")


def test_a_cut_is_an_array_and_a_value(packed: Path) -> None:
    cutout = cut(packed, array="t2", index={"time": 1}, center=(10, 10), shape=4)
    assert cutout.shape == (4, 4)
    np.testing.assert_array_equal(np.asarray(cutout), cutout.data)
    np.testing.assert_array_equal(cutout + 1, cutout.physical + 1)
    copy = pickle.loads(pickle.dumps(cutout))
    np.testing.assert_array_equal(copy.data, cutout.data)
    assert "/t2" in repr(copy)
    assert "degrees" not in copy._repr_html_()
    decoded = xarray.decode_cf(cutout.to_xarray()).t2
    np.testing.assert_array_equal(decoded.values, cutout.physical)


def test_modes_trim_fill_or_refuse(packed: Path) -> None:
    options: dict[str, Any] = {"array": "t2", "index": {"time": 0}, "box": (-2, 18, 4, 5)}
    trimmed = cut(packed, **options)
    assert (trimmed.shape, trimmed.box) == ((2, 2), (0, 18, 2, 2))
    filled = cut(packed, **options, mode="partial")
    assert filled.shape == (5, 4)
    np.testing.assert_array_equal(filled.data[:2, 2:], trimmed.data)
    assert (filled.data[2:] == -999).all()
    assert filled.coords["y"].data.tolist() == [18.5, 19.5, 20.5, 21.5, 22.5]
    with pytest.raises(PartialOverlapError, match="axis y: expected elements within 0:20"):
        cut(packed, **options, mode="strict")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"index": {"z": 1}}, RegionError, "expected an axis of time, y, x, found 'z'"),
        ({"index": {"time": 4}}, PixelIndexError, "found 4"),
        ({"index": {"time": slice(0, 4, 2)}}, RegionError, "step 2"),
        ({"index": {"time": "a"}}, RegionError, "found 'a'"),
        ({"index": {"y": 1}, "box": (0, 0, 2, 2)}, RegionError, "axis y: expected one range"),
        ({"box": (30, 0, 2, 2)}, NoOverlapError, "axis x"),
        ({"box": (0, 0, 2, 2), "hdu": 1}, OptionError, "hdu"),
        ({}, RegionError, "give one of"),
    ],
)
def test_bad_regions_are_refused(
    packed: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        cut(packed, array="t2", **options)


def test_options_of_arrays_are_refused_for_fits(tmp_path: Path) -> None:
    from astropy.io import fits

    path = tmp_path / "image.fits"
    fits.writeto(path, np.zeros((4, 4), "i2"))
    with pytest.raises(OptionError, match="array; hdu= names an HDU"):
        cut(path, array="SCI", box=(0, 0, 2, 2))


@needs_data
def test_a_real_grid_equals_xarray(tmp_path: Path) -> None:
    source, path = FORMATS / "air.nc", tmp_path / "cut.nc"
    cut(source, index={"time": 3}, box=(2, 3, 10, 8)).write(path)
    expected = opened(source).isel(time=3, lat=slice(*LONE["lat"]), lon=slice(*LONE["lon"]))
    xarray.testing.assert_identical(opened(path).air, expected.air)


@pytest.mark.parametrize("source", SWATHS, ids=lambda path: path.name[:20])
def test_arrays_of_real_swaths_equal_xarray(source: Path, tmp_path: Path) -> None:
    whole = xarray.open_dataset(source, engine="netcdf4")
    planes = [name for name, each in whole.data_vars.items() if each.ndim >= 2]
    assert planes
    for number, name in enumerate(planes[:4]):
        path = tmp_path / f"{number}.nc"
        height = whole[name].shape[-2]
        box = (3, height // 2, 17, 9)
        cut(source, array=name, box=box).write(path)
        expected = whole[name][..., height // 2 : height // 2 + 9, 3:20]
        part = opened(path)[name]
        np.testing.assert_array_equal(part.values, expected.values)
        assert part.dtype == expected.dtype
        assert set(part.attrs) == set(expected.attrs)
        for key, value in expected.attrs.items():
            np.testing.assert_array_equal(part.attrs[key], value)
        for coordinate in expected.coords:
            np.testing.assert_array_equal(part[coordinate].values, expected[coordinate].values)


def test_netcdf_classic_stays_classic(tmp_path: Path) -> None:
    source, path = tmp_path / "classic.nc", tmp_path / "cut.nc"
    values = np.arange(60, dtype="i2").reshape(3, 4, 5)
    dataset = xarray.Dataset({"v": (("t", "y", "x"), values, {"units": "m", "_FillValue": 7})})
    dataset = dataset.assign_coords(x=np.arange(5.0))
    dataset.to_netcdf(source, format="NETCDF3_CLASSIC", engine="netcdf4", unlimited_dims=["t"])
    cut(source, array="v", box=(1, 1, 3, 2)).write(path)
    assert path.read_bytes()[:4] == b"CDF\x02"
    xarray.testing.assert_identical(opened(path).v, opened(source).v[:, 1:3, 1:4])


@needs_data
@pytest.mark.parametrize("name", ["RGB.byte.tif", "RGBA.uint16.tif", "rgb_lzw.tif", "rotated.tif"])
def test_geotiff_keeps_place_and_bands(name: str, tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    pytest.importorskip("tifffile")
    from rasterio.windows import Window

    source, path = FORMATS / name, tmp_path / "cut.tif"
    file: Any = swathe.open(source)
    x0, y0, width, height = (1, 2, 3, 4) if name == "rotated.tif" else (20, 30, 50, 40)
    cut(source, array=next(iter(file)), box=(x0, y0, width, height)).write(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with rasterio.open(source) as whole, rasterio.open(path) as part:
            window = Window(x0, y0, width, height)
            np.testing.assert_array_equal(part.read(), whole.read(window=window))
            assert part.crs == whole.crs
            assert part.nodata == whole.nodata
            a, b, c, d, e, f = whole.transform[:6]
            moved = (a, b, c + a * x0 + b * y0, d, e, f + d * x0 + e * y0)
            assert np.allclose(part.transform[:6], moved, rtol=1e-12, atol=1e-9)


def test_a_missing_library_is_named(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    cutout = cut(packed, array="t2", box=(0, 0, 2, 2))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(OptionError, match=r"swathe\[hdf\]"):
        cutout.write(tmp_path / "cut.nc")
    assert not list(tmp_path.glob("*cut.nc*"))


@needs_data
def test_bounds_and_times_choose_as_xarray_does() -> None:
    source = FORMATS / "air.nc"
    dataset = opened(source)
    cutout = cut(source, array="air", bounds=(-110, 55, -60, 70), time=("2014-10-03", "2014-10-04"))
    expected = dataset.air.sel(
        lon=slice(250, 300), lat=slice(70, 55), time=slice("2014-10-03", "2014-10-04T23:59")
    )
    assert cutout.shape == expected.shape
    assert np.array_equal(cutout.physical, expected.values)
    assert np.array_equal(cutout.coords["lon"].data, expected.lon.values)
    with pytest.raises(NoOverlapError):
        cut(source, array="air", bounds=(0, -50, 20, -40))
    with pytest.raises(RegionError, match="west"):
        cut(source, array="air", bounds=(0, 50, 20, 40))


def test_bounds_are_for_arrays(data: Path) -> None:
    with pytest.raises(OptionError, match="bounds"):
        cut(data / "compressed" / "m13.fits", bounds=(0, 0, 1, 1))


@needs_data
def test_fill_outside_has_no_physical_value(tmp_path: Path) -> None:
    cutout = cut(
        FORMATS / "air.nc", array="air", box=(-2, -2, 4, 4), index={"time": 0}, mode="partial"
    )
    assert np.isnan(cutout.physical[:2]).all()
    assert not np.isnan(cutout.physical[2:, 2:]).any()
    cutout.write(tmp_path / "cut.nc")
    assert np.isnan(opened(tmp_path / "cut.nc").air.values[:2]).all()


def test_axes_go_on_outside(tmp_path: Path) -> None:
    """Coordinates of axes have no missing values: a part of the file can be cut again."""
    source = tmp_path / "grid.nc"
    lat, lon = np.linspace(50, 41, 10), np.arange(5, 13, dtype="i2")
    xarray.Dataset(
        {"t": (("lat", "lon"), np.arange(80.0).reshape(10, 8))}, {"lat": lat, "lon": lon}
    ).to_netcdf(source)
    cutout = cut(source, array="t", box=(-2, 7, 11, 6), mode="partial")
    assert np.allclose(cutout.coords["lat"].data, 50 - np.arange(7, 13))
    assert np.array_equal(cutout.coords["lon"].data, np.arange(3, 14))
    assert cutout.coords["lon"].data.dtype == np.int16
    part = tmp_path / "part.nc"
    cutout.write(part)
    with opened(part) as data:
        assert np.array_equal(data.lon, np.arange(3, 14))
        assert "_FillValue" not in data.lon.encoding
    assert np.isnan(cut(part, array="t", bounds=(2.5, 38.5, 3.5, 40.5)).data).all()
    inside = cut(part, array="t", bounds=(4.5, 40.5, 6.5, 42.5))
    assert inside.data.tolist() == [[64, 65], [72, 73]]


def test_places_outside_are_none(tmp_path: Path) -> None:
    """Zeros there would be places: with an offset of 50 degrees in the north."""
    source = tmp_path / "swath.h5"
    with h5py.File(source, "w") as file:
        for name in ("lat", "lon"):
            file[name] = np.arange(12, dtype="i2").reshape(3, 4)
            file[name].attrs.update({"scale_factor": 0.01, "add_offset": 50.0})
        file["v"] = np.ones((3, 4))
    cutout = cut(source, array="v", box=(-2, -1, 5, 4), mode="partial")
    part = tmp_path / "part.nc"
    cutout.write(part)
    for name in ("lat", "lon"):
        with opened(part) as data:
            values = data[name].values
        assert np.isnan(values[:1]).all() and np.isnan(values[:, :2]).all()
        assert np.allclose(values[1:, 2:], 50 + np.arange(12).reshape(3, 4)[:, :3] / 100)


def test_axes_of_another_group_are_axes(tmp_path: Path) -> None:
    source = tmp_path / "grid.h5"
    axes = {"time": [0.0, 1], "lat": np.arange(50.0, 40, -1), "lon": np.arange(5.0, 13)}
    with h5py.File(source, "w") as file:
        array = file.create_dataset("sci/v", data=np.arange(160.0).reshape(2, 10, 8))
        units = {"time": "days since 2000-01-01", "lat": "degrees_north", "lon": "degrees_east"}
        for axis, (name, values) in enumerate(axes.items()):
            file[f"grid/{name}"] = values
            file[f"grid/{name}"].attrs["units"] = units[name]
            file[f"grid/{name}"].make_scale(name)
            array.dims[axis].attach_scale(file[f"grid/{name}"])
    cutout = cut(source, array="/sci/v", box=(2, 3, 4, 5), index={"time": 1})
    assert [*cutout.coords] == ["lat", "lon", "time"]
    part = tmp_path / "part.nc"
    cutout.write(part)
    with opened(part) as data:
        assert float(data.v.sel(lat=47, lon=7)) == 80 + 3 * 8 + 2
    rasterio = pytest.importorskip("rasterio")
    cutout.write(tmp_path / "part.tif")
    with rasterio.open(tmp_path / "part.tif") as image:
        assert tuple(image.bounds) == (6.5, 42.5, 10.5, 47.5)


def test_coordinates_of_a_cut_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "many.h5"
    names = [f"c{number}" for number in range(30)]
    with h5py.File(source, "w") as file:
        file["v"] = np.zeros((10, 10))
        file["v"].attrs["coordinates"] = " ".join(names)
        for name in names:
            file.create_dataset(name, (100, 10, 10), "f8", chunks=(1, 10, 10))
    monkeypatch.setattr("swathe.files.array_companions.MOST_BYTES", 1_000_000)
    with pytest.raises(LimitError, match=r"array /v: expected up to 1,000,000 bytes .* with /c12"):
        cut(source, array="v", box=(0, 0, 10, 10))


@pytest.mark.parametrize("dtype", ["u2", "u4", "u8"])
def test_fits_of_unsigned_integers_has_no_value_where_there_is_none(
    tmp_path: Path, dtype: str
) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    source = tmp_path / "a.nc"
    fill = np.iinfo(dtype).max
    values = np.arange(12, dtype=dtype).reshape(3, 4)
    values[1] = fill
    xarray.Dataset({"v": (("y", "x"), values, {"_FillValue": fill})}).to_netcdf(source)
    for box, kind in (((0, 0, 4, 3), "f"), ((0, 0, 4, 1), "u")):
        cut(source, array="v", box=box).write(tmp_path / "a.fits", overwrite=True)
        data = fits.getdata(tmp_path / "a.fits")
        assert data.dtype.kind == kind
        assert np.array_equal(data[0], [0, 1, 2, 3])
        assert kind == "u" or (np.isnan(data[1]).all() and np.array_equal(data[2], values[2]))


def test_axes_stay_where_their_type_ends(tmp_path: Path) -> None:
    source = tmp_path / "grid.h5"
    with h5py.File(source, "w") as file:
        file["row"] = np.arange(4, dtype="u1")
        file["t"] = np.zeros((4, 3))
        file["row"].make_scale("row")
        file["t"].dims[0].attach_scale(file["row"])
    cutout = cut(source, array="t", box=(0, -2, 3, 4), mode="partial")
    assert cutout.coords["row"].data.tolist() == [255, 255, 0, 1]
    assert cutout.coords["row"].attrs["_FillValue"] == 255
    cutout = cut(source, array="t", box=(0, 2, 3, 4), mode="partial")
    assert cutout.coords["row"].data.tolist() == [2, 3, 4, 5]


@needs_data
def test_places_of_another_group(tmp_path: Path) -> None:
    """The array does not name the places and times in the group beside its own."""
    source = DATA / "swath" / "TEMPO_NO2_L2_V03_20240601T211614Z_S012G02_subsetted.nc4"
    index = {"mirror_step": slice(5, 25), "xtrack": slice(100, 140)}
    cutout = cut(source, array="/product/vertical_column_stratosphere", index=index)
    part = tmp_path / "part.nc"
    cutout.write(part)
    with h5py.File(source) as file, opened(part) as data:
        for name in ("latitude", "longitude"):
            values = file[f"geolocation/{name}"][5:25, 100:140]
            assert np.array_equal(cutout.coords[name].data, values)
            assert np.array_equal(data.coords[name], values)
        assert np.array_equal(cutout.coords["time"].data, file["geolocation/time"][5:25])
        bounds = [data.longitude.min(), data.latitude.min(), data.longitude.max(), 90]
    assert cut(part, bounds=[float(each) for each in bounds]).shape == (20, 40)


def test_places_of_axes_without_names(tmp_path: Path) -> None:
    source = tmp_path / "plain.h5"
    values = np.arange(12.0).reshape(3, 4)
    with h5py.File(source, "w") as file:
        file["place/lat"], file["place/lon"] = values, values + 20
        file["a/lon"] = "not a coordinate"
        file["a/values"] = values.astype("i2")
    cutout = cut(source, array="/a/values", box=(1, 0, 3, 2))
    assert np.array_equal(cutout.coords["lat"].data, values[:2, 1:])
    assert np.array_equal(cutout.coords["lon"].data, values[:2, 1:] + 20)
    part = tmp_path / "part.h5"
    cutout.write(part)
    assert cut(part, array="/values", bounds=(24, 4, 27, 7)).data.tolist() == [[5, 6, 7]]
    # Latitudes have no places, and two pairs are none.
    assert cut(source, array="/place/lat", box=(0, 0, 2, 2)).coords == {}
    with h5py.File(source, "a") as file:
        file["place/nav_lat"], file["place/nav_lon"] = values, values
    assert cut(source, array="/a/values", box=(1, 0, 3, 2)).coords == {}


def test_a_chunk_beyond_the_end_is_the_fault_of_its_array(tmp_path: Path) -> None:
    path = tmp_path / "chunk.h5"
    with h5py.File(path, "w") as file:
        for name in "ab":
            file.create_dataset(name, data=np.arange(64.0).reshape(8, 8), chunks=(4, 8))
        place = file["a"].id.get_chunk_info(1).byte_offset
    content, before = path.read_bytes(), place.to_bytes(8, "little")
    assert content.count(before) == 1
    path.write_bytes(content.replace(before, (1 << 40).to_bytes(8, "little")))
    file = swathe.open(path)
    assert file["/b"].section[4:6, 2].tolist() == [34.0, 42.0]
    with pytest.raises(
        FormatError, match=r"chunk\.h5, array /a: .* chunk 1: expected bytes within"
    ):
        file["/a"].section[0, 0]


def test_a_shorter_classic_file_has_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "short.nc"
    arrays = {
        name: (("y", "x"), np.full((8, 8), value)) for name, value in (("a", 1.0), ("b", 2.0))
    }
    xarray.Dataset(arrays).to_netcdf(path, format="NETCDF3_CLASSIC")
    path.write_bytes(path.read_bytes()[:-40])
    assert cut(path, array="a", box=(0, 0, 8, 8)).data.sum() == 64
    with pytest.raises(FormatError, match=r"short\.nc, array /b: .* expected 512 bytes from"):
        cut(path, array="b", box=(0, 0, 1, 1))


def test_index_that_is_no_mapping(packed: Path) -> None:
    with pytest.raises(RegionError, match="index: expected a mapping"):
        cut(packed, array="t2", index=3)


def test_rejected_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "short.nc"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + b"x" * 99)
    with pytest.raises(FormatError, match=r"short\.nc: expected a valid HDF5 file"):
        swathe.open(path)


def test_region_of_a_view_needs_no_list_of_its_elements(tmp_path: Path) -> None:
    asdf = pytest.importorskip("asdf")
    values = np.arange(60.0).reshape(6, 10)
    path = tmp_path / "view.asdf"
    with asdf.config_context() as config:
        config.default_array_save_base = True
        asdf.AsdfFile({"base": values, "view": values[:, ::2]}).write_to(path)
    view: Any = swathe.open(path)["/view"]
    assert view.problem is not None
    assert np.array_equal(view[2:5, 1:3], values[2:5, 2:6:2])
    assert np.array_equal(view[...], values[:, ::2])


@pytest.mark.parametrize("name", ["/s/geo/lat", "geo/lat", "../s/geo/lat"])
@pytest.mark.parametrize("suffix", ["nc", "h5", "zarr"])
def test_coordinates_by_path_have_names_in_the_cut(tmp_path: Path, name: str, suffix: str) -> None:
    source, path = tmp_path / "a.h5", tmp_path / f"cut.{suffix}"
    values = np.arange(600, dtype="f4").reshape(20, 30)
    with h5py.File(source, "w") as file:
        for each, other in (("/s/lst", values), ("/s/geo/lat", values / 10), ("/s/crs", 0)):
            file[each] = other
        file["/s/lst"].attrs.update(coordinates=name, grid_mapping=f"/s/crs: {name}")
        for at, axis in enumerate(("y", "x")):
            file[f"/s/{axis}"] = np.arange(values.shape[at])
            file[f"/s/{axis}"].make_scale(axis)
            for each in ("/s/lst", "/s/geo/lat"):
                file[each].dims[at].attach_scale(file[f"/s/{axis}"])
    part = cut(source, array="/s/lst", box=(3, 4, 6, 5))
    assert set(part.coords) == {"y", "x", name}
    assert part.to_xarray().lat.dims == ("y", "x") and "lat" in part.to_xarray().coords
    part.write(path)
    one: Any = swathe.open(path)
    assert set(one) == {"/lst", "/lat", "/crs", "/y", "/x"}
    assert np.array_equal(one["/lat"].data, values[4:9, 3:9] / 10)
    assert (one["/lst"].attrs["coordinates"], one["/lst"].attrs["grid_mapping"]) == (
        "lat",
        "crs: lat",
    )


def test_names_of_coordinates_by_path_stay_apart(packed: Path) -> None:
    part = cut(packed, array="t2", box=(3, 4, 6, 5), index={"time": 0})
    other = part.coords["lat"]
    part.coords |= {"/a/lat": other, "../b/lat": other}
    assert {"lat", "a_lat", "b_lat"} <= part.variables.keys()


def test_quality_planes_come_if_a_cut_before_left_them_out(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(12).reshape(3, 4)
        file["a"].attrs["ancillary_variables"] = "flags"
        file["flags"] = np.zeros((3, 4), "u1")
    asked = [cut(path, array="/a", box=(1, 0, 2, 2), with_quality=each) for each in (0, 1, 0)]
    assert [list(each.others) for each in asked] == [[], ["flags"], []]


@pytest.mark.parametrize("mode", ["trim", "strict", "partial"])
def test_a_window_of_an_open_file_is_that_of_a_section(packed: Path, mode: Mode) -> None:
    window, other = (
        cut(packed, array="t2", mode=mode, **region)
        for region in ({"box": (5, 6, 10, 8)}, {"section": np.s_[:, 6:14, 5:15]})
    )
    np.testing.assert_array_equal(window.data, other.data)
    assert window.region == other.region and window.attrs == other.attrs
    assert window.coords.keys() == other.coords.keys() and window.others.keys() == {"crs", "y_bnds"}
    assert (window.fill, window.plane, window.global_attrs) == (-999, (1, 2), other.global_attrs)


def test_a_window_is_cut_from_the_file_that_is_there_now(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    for number in (1, 2):
        with h5py.File(tmp_path / "new.h5", "w") as file:
            file["a"] = np.full((30, 40), number)
        (tmp_path / "new.h5").replace(path)
        cuts = [cut(path, array="a", box=(0, 0, 2, 2)) for _ in range(2)]
        assert [each.data.max() for each in cuts] == [number, number]
    with pytest.raises(NoSuchArrayError, match="arrays are /a"):
        cut(path, array="b", box=(0, 0, 2, 2))


def test_a_region_within_is_that_region() -> None:
    region = ArrayRegion((0, 2), (3, 4))
    assert region.within((3, 4)) is region
    assert ArrayRegion((-1, 2), (3, 5)).within((3, 4)) == ArrayRegion((0, 2), (3, 4))


def test_the_last_name_of_an_array_is_enough(tmp_path: Path) -> None:
    with h5py.File(path := tmp_path / "a.h5", "w") as file:
        file["g/LST"] = np.arange(12).reshape(3, 4)
        file["g/QC"] = file["h/QC"] = np.zeros((3, 4))
    source: Any = swathe.open(path)
    assert source["LST"].path == "/g/LST" and "LST" in source and "QC" not in source
    cuts = [cut(path, array="LST", box=(0, 0, 2, 2)) for _ in range(2)]  # the second: it is open
    assert {each.path for each in cuts} == {"/g/LST"}
    with pytest.raises(NoSuchArrayError, match="2 arrays have this name: /g/QC, /h/QC"):
        cut(path, array="QC", box=(0, 0, 2, 2))
    with pytest.raises(NoSuchArrayError, match="found 'lst'; near it are /g/LST"):
        cut(path, array="lst", box=(0, 0, 2, 2))
    with pytest.raises(NoSuchArrayError, match="expected the path of an array, found 3"):
        cut(path, array=3, box=(0, 0, 2, 2))


def test_attributes_of_all_arrays_are_read_once_for_an_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut that names no array asks which is the default."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["plane"] = np.arange(12).reshape(3, 4)
        for number in range(20):
            file[f"axis{number}"] = np.arange(4)
    opened: Any = swathe.open(tmp_path / "a.h5")
    find = ArrayTree._find_planes
    trees: list[ArrayTree] = []

    def find_and_note(tree: ArrayTree) -> list[ArrayDescription]:
        trees.append(tree)
        return find(tree)

    monkeypatch.setattr(ArrayTree, "_find_planes", find_and_note)
    assert [each.path for each in opened.tree.planes()] == ["/plane"]
    opened.tree.planes().clear()
    assert opened.tree.only_plane is not None and len(trees) == 1
