"""Cuts over the edge of a global grid equal the concatenation of both sides by xarray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe

cut: Any = swathe.cut
xarray = pytest.importorskip("xarray")
LATITUDES = np.arange(-10.0, 11, 5)
BOXES = {
    "-180": ((170, -5, -170, 10),),
    "0": ((-20, -10, 30, 10), (355, -10, 5, 0)),
    "descends": ((170, -5, -170, 10),),
}
AXES = {
    "-180": np.arange(-180.0, 180, 2.5),
    "0": np.arange(0.0, 360, 2.5),
    "descends": np.arange(178.75, -180, -2.5),
}


def made(path: Path, longitudes: Any, scale: float = 1) -> Path:
    shape = (2, len(LATITUDES), len(longitudes))
    values = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    bounds = np.stack([longitudes - 1, longitudes + 1], 1)
    dataset = xarray.Dataset(
        {
            "t2": (("time", "lat", "lon"), values, {"units": "K"}),
            "lon_bnds": (("lon", "nv"), bounds),
        },
        coords={
            "time": ("time", np.arange(2.0), {"units": "days since 2000-01-01"}),
            "lat": ("lat", LATITUDES, {"units": "degrees_north"}),
            "lon": (
                "lon",
                longitudes,
                {
                    "units": "degrees_east",
                    "bounds": "lon_bnds",
                    "valid_range": np.array([-180, 360]) / scale,
                },
            ),
        },
    )
    packing = {"dtype": "i2", "scale_factor": scale, "_FillValue": -32768}
    dataset.to_netcdf(path, encoding={} if scale == 1 else {"lon": packing})
    return path


def expected_of(path: Path, box: Any, index: Any) -> Any:
    """Concatenate both sides; longitudes are those of the file, and then made continuous."""
    west, south, east, north = box
    with xarray.open_dataset(path) as dataset:
        whole = dataset.load().isel(index)
    inside = (whole.lat >= south) & (whole.lat <= north)
    lon = (whole.lon.values - west) % 360 <= (east - west) % 360
    (end, gap) = np.flatnonzero(np.diff(lon))
    part = whole.isel(lat=inside.values)
    sides = [part.isel(lon=slice(gap + 1, None)), part.isel(lon=slice(0, end + 1))]
    turn = 360 * np.round((sides[0].lon.values[-1] - sides[1].lon.values[0]) / 360)
    sides[1] = sides[1].assign_coords(lon=sides[1].lon + turn)
    sides[1]["lon_bnds"] = sides[1].lon_bnds + turn
    return xarray.concat(sides, "lon", data_vars="minimal")


@pytest.mark.parametrize(("name", "box"), [(name, box) for name in BOXES for box in BOXES[name]])
def test_both_sides_are_one_cut(tmp_path: Path, name: str, box: Any) -> None:
    source = made(tmp_path / "a.nc", AXES[name])
    cutout = cut(source, array="t2", bounds=box, index={"time": 1})
    expected = expected_of(source, box, {"time": 1})
    np.testing.assert_array_equal(cutout.data, expected.t2.values)
    cutout.write(tmp_path / "cut.nc")
    cutout.write(tmp_path / "cut.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "cut.npy"), expected.t2.values)
    with xarray.open_dataset(tmp_path / "cut.nc") as dataset:
        for key in ("t2", "lon", "lat", "lon_bnds"):
            np.testing.assert_array_equal(dataset[key].values, expected[key].values)
            assert dataset[key].dtype == expected[key].dtype
        assert "valid_range" not in dataset.lon.attrs
        steps = np.diff(dataset.lon)
    assert np.allclose(steps, steps[0])


def test_packed_longitudes_become_degrees(tmp_path: Path) -> None:
    source = made(tmp_path / "a.nc", AXES["-180"], scale=0.01)
    cutout = cut(source, array="t2", bounds=(170, -5, -170, 10), index={"time": slice(0, 1)})
    np.testing.assert_allclose(cutout.coords["lon"].data, np.arange(170, 190.1, 2.5), atol=1e-9)
    attrs = set(cutout.coords["lon"].attrs)
    assert {"units", "bounds"} <= attrs
    assert not attrs & {"scale_factor", "_FillValue", "valid_range"}
    start, width = len(AXES["-180"]) - 4, 9
    assert cutout.box == (start, 1, width, 4)
    assert f"{start}:{start + width}" in cutout.history()


def test_a_geotiff_goes_on_beyond_its_edge(tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    path, values = tmp_path / "a.tif", np.arange(36 * 72, dtype="i2").reshape(36, 72)
    transform = rasterio.Affine(5, 0, -180, 0, -5, 90)
    options = {"driver": "GTiff", "crs": "EPSG:4326", "transform": transform, "dtype": "int16"}
    with rasterio.open(path, "w", width=72, height=36, count=1, **options) as file:
        file.write(values, 1)
    cutout = cut(path, bounds=(165, 0, -160, 20))
    cutout.write(tmp_path / "cut.tif")
    with rasterio.open(tmp_path / "cut.tif") as file:
        np.testing.assert_array_equal(
            file.read(1), np.hstack([values[14:18, 69:], values[14:18, :4]])
        )
        assert tuple(file.bounds) == (165, 0, 200, 20)
        assert file.crs.to_epsg() == 4326


def test_the_first_meridian_is_there_once(tmp_path: Path) -> None:
    source = made(tmp_path / "cyclic.nc", np.arange(0.0, 361, 10))
    cutout = cut(source, array="t2", index={"time": 0}, bounds=(-15, -10, 25, 10))
    np.testing.assert_array_equal(cutout.coords["lon"].data, [350, 360, 370, 380])
    with xarray.open_dataset(source) as dataset:
        whole = dataset.t2[0].values
    expected = np.concatenate([whole[:, 35:37], whole[:, 1:3]], 1)
    np.testing.assert_array_equal(cutout.data, expected[: cutout.shape[0]])
