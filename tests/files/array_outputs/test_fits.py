"""Cuts written as FITS have the values of xarray, read by astropy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.wcs import WCS

import swathe
from swathe.core.errors import OutputError

cut: Any = swathe.cut
xarray = pytest.importorskip("xarray")
netcdf = pytest.importorskip("netCDF4")
VALUES = np.arange(12 * 20.0).reshape(12, 20)


def made(path: Path, values: Any, **packing: Any) -> Path:
    attrs = {"units": "K", "long_name": "surface temperature", "flag": np.int32(7), "n": "a"}
    coords = {
        "lat": ("lat", np.arange(12.0) * 0.5 + 40, {"units": "degrees_north"}),
        "lon": ("lon", np.arange(20, dtype="f4") * 0.1 + 5, {"units": "degrees_east"}),
        "level": ("lon", np.arange(20.0) ** 2),
    }
    dataset = xarray.Dataset({"t2": (("lat", "lon"), values, attrs)}, coords, {"title": "made"})
    dataset.to_netcdf(path, encoding={"t2": packing} if packing else {})
    return path


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4", "f8"])
def test_types_keep_their_values(tmp_path: Path, dtype: str) -> None:
    source = made(tmp_path / "a.nc", (VALUES % 101).astype(dtype))
    cutout = cut(source, array="t2", box=(3, 2, 7, 5))
    cutout.write(tmp_path / "cut.fits")
    with fits.open(tmp_path / "cut.fits") as hdus:
        hdus.verify("exception")
        assert hdus[0].data.dtype.newbyteorder("=") == np.dtype(dtype)
        np.testing.assert_array_equal(hdus[0].data, cutout.data)
        assert [hdu.name for hdu in hdus] == ["t2", "lat", "lon", "level"]
        np.testing.assert_array_equal(hdus["LEVEL"].data, np.arange(3.0, 10) ** 2)


@pytest.mark.parametrize("dtype", ["i2", "i4", "u1", "i1", "u2"])
def test_packing_is_kept_or_undone(tmp_path: Path, dtype: str) -> None:
    packing = {"dtype": dtype, "scale_factor": 2.0, "add_offset": 100.0, "_FillValue": 99}
    values = np.where(VALUES % 7 == 0, np.nan, VALUES % 50 * 2 + 100)
    source = made(tmp_path / "a.nc", values, **packing)
    cutout = cut(source, array="t2", box=(3, 2, 7, 5))
    cutout.write(tmp_path / "cut.fits")
    with xarray.open_dataset(source) as dataset:
        expected = dataset.t2[2:7, 3:10].values
    assert np.isnan(expected).any()
    with fits.open(tmp_path / "cut.fits") as hdus:
        np.testing.assert_array_equal(hdus[0].data, expected)
    with fits.open(tmp_path / "cut.fits", do_not_scale_image_data=True) as hdus:
        if dtype in ("i2", "i4", "u1"):
            np.testing.assert_array_equal(hdus[0].data, cutout.data)
            assert [hdus[0].header[key] for key in ("BSCALE", "BZERO", "BLANK")] == [2, 100, 99]
        else:
            assert hdus[0].header["BITPIX"] < 0


def test_axes_units_and_attributes_are_cards(tmp_path: Path) -> None:
    cut(made(tmp_path / "a.nc", VALUES), array="t2", box=(3, 2, 7, 5)).write(tmp_path / "cut.fits")
    header = fits.getheader(tmp_path / "cut.fits")
    assert header["BUNIT"] == "K"
    assert header["FLAG"] == 7
    assert header["long_name"] == "surface temperature"
    assert header["TITLE"] == "made"
    assert "cut /t2[2:7, 3:10]" in str(header["HISTORY"]).replace("\n", "")
    lon, lat = WCS(header).pixel_to_world_values(np.arange(7), np.zeros(7))
    np.testing.assert_allclose(lon, np.arange(3, 10) * 0.1 + 5, atol=1e-6)
    np.testing.assert_allclose(lat, 41)
    assert list(WCS(header).wcs.cunit) == ["deg", "deg"]


def test_unsigned_values_keep_their_blank(tmp_path: Path) -> None:
    source = made(tmp_path / "a.nc", VALUES.astype("u2"), dtype="u2", _FillValue=np.uint16(65535))
    cut(source, array="t2", box=(0, 0, 2, 2)).write(tmp_path / "cut.fits")
    assert fits.getheader(tmp_path / "cut.fits")["BLANK"] == 65535 - 32768


def test_texts_are_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["names"] = np.full((3, 4), b"x")
    cutout = cut(tmp_path / "a.h5", array="names", box=(0, 0, 2, 2))
    with pytest.raises(OutputError, match="expected numbers for FITS"):
        cutout.write(tmp_path / "cut.fits")


def test_a_coordinate_of_one_value_is_an_extension(data: Path, tmp_path: Path) -> None:
    source = data / "formats/air.nc"
    cut(source, array="/air", index={"time": 3}, box=(2, 3, 5, 5)).write(tmp_path / "cut.fits")
    with xarray.open_dataset(source, decode_times=False) as dataset:
        time = dataset["time"][3]
        with fits.open(tmp_path / "cut.fits") as hdus:
            assert [hdu.name for hdu in hdus] == ["air", "time", "lat", "lon"]
            assert hdus["time"].data.tolist() == [time.item()]
            assert hdus["time"].header["BUNIT"] == time.attrs["units"]


def hdf5_with(path: Path, values: Any, **attrs: Any) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["t"] = values
        file["t"].attrs.update(attrs)
    return path


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i1", "u1"])
def test_what_has_no_value_is_nan_or_blank(tmp_path: Path, dtype: str) -> None:
    values = np.arange(1, 13, dtype=dtype).reshape(3, 4)
    of_type = np.dtype(dtype).type
    fill, missing, most = {"i1": (-99, -98, 100), "u1": (255, 254, 200)}.get(
        dtype, (-9999, -999, 4000)
    )
    values[0, 1], values[1, 2], values[2, 3] = fill, missing, most + 1
    attrs = {"_FillValue": of_type(fill), "missing_value": of_type(missing), "valid_max": most}
    if dtype == "i2":
        attrs |= {"scale_factor": 0.5}
    cutout = cut(hdf5_with(tmp_path / "a.h5", values, **attrs), array="/t", box=(0, 0, 4, 3))
    expected = cutout.physical
    assert np.isnan(expected).sum() == 3
    cutout.write(tmp_path / "cut.fits")
    np.testing.assert_array_equal(fits.getdata(tmp_path / "cut.fits"), expected)
    rasterio = pytest.importorskip("rasterio")
    cutout.write(tmp_path / "cut.tif")
    with rasterio.open(tmp_path / "cut.tif") as file:
        np.testing.assert_array_equal(file.dataset_mask() == 0, np.isnan(expected))


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
def test_values_that_no_fill_value_tells_are_warned_of(tmp_path: Path) -> None:
    values = np.arange(12, dtype="u1").reshape(3, 4)
    source = hdf5_with(tmp_path / "a.h5", values, valid_range=np.array([1, 9], "u1"))
    cutout = cut(source, array="/t", box=(0, 0, 4, 3))
    cutout.write(tmp_path / "cut.fits")
    np.testing.assert_array_equal(fits.getdata(tmp_path / "cut.fits"), cutout.physical)
    with pytest.warns(UserWarning, match="3 elements without a value have one in TIFF"):
        cutout.write(tmp_path / "cut.tif")


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
@pytest.mark.parametrize("fill", [1e20, np.nan, 2.5])
def test_a_fill_value_that_is_none_of_the_type_is_left_out(tmp_path: Path, fill: float) -> None:
    values = np.arange(12, dtype="i2").reshape(3, 4)
    source = hdf5_with(tmp_path / "a.h5", values, missing_value=fill)
    cut(source, array="/t", box=(0, 0, 4, 3)).write(tmp_path / "cut.fits")
    with fits.open(tmp_path / "cut.fits") as hdus:
        assert "BLANK" not in hdus[0].header
        np.testing.assert_array_equal(hdus[0].data, values)
    rasterio = pytest.importorskip("rasterio")
    cut(source, array="/t", box=(0, 0, 4, 3)).write(tmp_path / "cut.tif")
    with rasterio.open(tmp_path / "cut.tif") as file:
        assert file.nodata is None
        assert file.dataset_mask().all()
