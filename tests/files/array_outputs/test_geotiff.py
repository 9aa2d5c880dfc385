"""Cuts of NetCDF written as GeoTIFF keep packing and place, as rasterio reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core.errors import NoOverlapError, OutputError

cut: Any = swathe.cut
xarray = pytest.importorskip("xarray")
rasterio = pytest.importorskip("rasterio")
VALUES = np.arange(12 * 20.0).reshape(12, 20)


LONGITUDES = np.arange(20, dtype="f4") * 0.1 + 5


def made(path: Path, latitudes: Any, dtype: str = "i2", longitudes: Any = LONGITUDES) -> Path:
    values = np.where(VALUES % 7 == 0, np.nan, VALUES)
    coords = {
        "lat": ("lat", latitudes, {"units": "degrees_north"}),
        "lon": ("lon", longitudes, {"units": "degrees_east"}),
    }
    packing = {"dtype": dtype, "scale_factor": 0.5, "add_offset": 100.0, "_FillValue": -999}
    dataset = xarray.Dataset({"t2": (("lat", "lon"), values, {"units": "K"})}, coords)
    dataset.to_netcdf(path, encoding={"t2": packing})
    return path


@pytest.mark.parametrize("direction", [-1, 1])
def test_packing_and_place_are_kept(tmp_path: Path, direction: int) -> None:
    latitudes = (np.arange(12) * 0.25 + 40)[::direction]
    source = made(tmp_path / "a.nc", latitudes)
    cutout = cut(source, array="t2", box=(3, 2, 7, 5))
    cutout.write(tmp_path / "cut.tif")
    with rasterio.open(tmp_path / "cut.tif") as file:
        np.testing.assert_array_equal(file.read(1), cutout.data)
        assert file.scales == (0.5,)
        assert file.offsets == (100,)
        assert file.units == ("K",)
        assert file.nodata == -999
        assert file.crs.to_epsg() == 4326
        x, y = file.xy(0, 0)
        assert (x, y) == pytest.approx((5.3, latitudes[2]), abs=1e-6)
        x, y = file.xy(4, 6)
        assert (x, y) == pytest.approx((5.9, latitudes[6]), abs=1e-6)
        physical = file.read(1, masked=True) * file.scales[0] + file.offsets[0]
    np.testing.assert_array_equal(physical.filled(np.nan), cutout.physical)


@pytest.mark.parametrize(
    ("longitudes", "west"),
    [
        (np.arange(200, 250, 2.5), -158.75),
        (np.arange(250, 200, -2.5), -128.75),
        (np.arange(178, 188, 0.5), 178.25),  # across the dateline: as they are
        (np.arange(180, 190, 0.5), -179.75),
        (np.arange(179.5, 189.5, 0.5), -180.25),  # its first centre is 180
    ],
)
def test_longitudes_east_of_the_dateline_become_western(
    tmp_path: Path, longitudes: Any, west: float
) -> None:
    source = made(tmp_path / "a.nc", np.arange(12.0), longitudes=longitudes)
    cut(source, array="t2", box=(1, 2, 7, 5)).write(tmp_path / "cut.tif")
    with rasterio.open(tmp_path / "cut.tif") as file:
        assert min(file.bounds.left, file.bounds.right) == pytest.approx(west)


def test_uneven_grids_have_no_place(tmp_path: Path) -> None:
    source = made(tmp_path / "a.nc", np.arange(12.0) ** 2 / 2)
    cut(source, array="t2", box=(3, 2, 7, 5)).write(tmp_path / "cut.tif")
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
        rasterio.open(tmp_path / "cut.tif").close()


def test_quality_planes_that_are_missing_are_a_warning(tmp_path: Path) -> None:
    source = made(tmp_path / "a.nc", np.arange(12.0))
    with pytest.warns(UserWarning, match="expected quality planes in ancillary_variables"):
        cut(source, array="t2", box=(3, 2, 7, 5), with_quality=True)


@pytest.mark.parametrize("suffix", ["tif", "npy", "png"])
def test_quality_planes_that_a_file_leaves_out_are_a_warning(tmp_path: Path, suffix: str) -> None:
    values = np.arange(12, dtype="i2").reshape(3, 4)
    attrs = {"ancillary_variables": "qa"}
    dataset = xarray.Dataset({"t2": (("y", "x"), values, attrs), "qa": (("y", "x"), values)})
    dataset.to_netcdf(tmp_path / "a.nc")
    cutout = cut(tmp_path / "a.nc", array="t2", box=(0, 0, 3, 3), with_quality=True)
    with pytest.warns(UserWarning, match=rf"\.{suffix} has one array: quality planes qa are left"):
        cutout.write(tmp_path / f"cut.{suffix}")
    assert (tmp_path / f"cut.{suffix}").stat().st_size
    cutout.write(tmp_path / "cut.nc")  # no warning, which would be an error here
    cut(tmp_path / "a.nc", array="t2", box=(0, 0, 3, 3)).write(tmp_path / f"b.{suffix}")


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
def test_a_part_without_an_axis_of_the_map_has_no_place(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    source = tmp_path / "a.tif"
    tags = [(33550, 12, 3, (2.0, 2.0, 0.0), True), (33922, 12, 6, (0, 0, 0, 10.0, 20.0, 0), True)]
    values = np.arange(5 * 7 * 3, dtype="u1").reshape(5, 7, 3)
    tifffile.imwrite(source, values, extratags=tags, photometric="rgb")
    with rasterio.open(source) as file:
        assert not file.transform.is_identity
    cutout = cut(source, index={"y": 2})
    assert "y" not in cutout.dims
    cutout.write(tmp_path / "cut.tif")
    with rasterio.open(tmp_path / "cut.tif") as file:
        assert file.transform.is_identity and file.crs is None


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
def test_texts_that_are_not_ascii_are_kept(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    text = '<GDALMetadata><Item name="UNITTYPE" sample="0" role="unittype">°C</Item></GDALMetadata>'
    values = np.arange(20, dtype="i2").reshape(4, 5)
    metadata = (42112, 2, 0, text.encode(), True)
    tifffile.imwrite(tmp_path / "a.tif", values, extratags=[metadata])
    swathe.cut(tmp_path / "a.tif", box=(1, 1, 3, 2)).write(tmp_path / "cut.tif")
    with rasterio.open(tmp_path / "cut.tif") as file:
        assert file.units == ("°C",)
        np.testing.assert_array_equal(file.read(1), values[1:3, 1:4])


def test_numbers_of_more_than_64_bits_are_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["t"] = np.ones((3, 4), np.longdouble)
    cutout = swathe.cut(tmp_path / "a.h5", array="/t", box=(0, 0, 2, 2))
    with pytest.raises(OutputError, match="axes of numbers for TIFF, found"):
        cutout.write(tmp_path / "cut.tif")


@pytest.mark.parametrize("suffix", [".nc", ".h5", ".zarr"])
@pytest.mark.parametrize("name", ["world.byte.tif", "RGB.byte.tif"])
def test_a_part_in_another_format_has_its_own_place(
    data: Path, tmp_path: Path, name: str, suffix: str
) -> None:
    for needed in ("pyproj", "zarr" if suffix == ".zarr" else "h5py"):
        pytest.importorskip(needed)
    source = data / "formats" / name
    bounds = (10, 40, 20, 50) if name == "world.byte.tif" else (-78, 24, -77.5, 25)
    swathe.cut(source, array="/0", bounds=bounds).write(tmp_path / f"cut{suffix}")
    inner = (12, 42, 14, 44) if name == "world.byte.tif" else (-77.9, 24.2, -77.8, 24.4)
    again = swathe.cut(tmp_path / f"cut{suffix}", array="/0", bounds=inner)
    np.testing.assert_array_equal(again.data, swathe.cut(source, array="/0", bounds=inner).data)
    with pytest.raises(NoOverlapError):
        swathe.cut(tmp_path / f"cut{suffix}", array="/0", bounds=(100, 60, 102, 62))
