"""Grids and swaths of HDF-EOS 5: names of axes, bounds, places of cuts; texts that lie."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.arrays.struct_metadata import structures_of
from swathe.core.errors import FormatError, RegionError
from swathe.files.places import hdf_eos_grid
from swathe.files.places.hdf_eos_grid import eos_grid
from swathe.files.places.regions import region_of_bounds
from swathe.files.places.tie_points import tie_points
from tests.files.places.test_tie_points import by_geotiepoints, expect_same_places, swath

h5py = pytest.importorskip("h5py")
xarray = pytest.importorskip("xarray")
hdf_eos5 = pytest.importorskip("tests.support.hdf_eos5")
cut: Any = swathe.cut
opened: Any = swathe.open


def column(path: Path, **values: Any) -> Any:
    return opened(hdf_eos5.write_grid(path, **values))[hdf_eos5.COLUMN]


@pytest.mark.parametrize("parts", [1, 3])
def test_axes_have_the_names_of_fields(tmp_path: Path, parts: int) -> None:
    array = column(tmp_path / "a.he5", parts=parts)
    assert array.dims == ("Level:Ozone", "YDim:Ozone", "XDim:Ozone")
    assert array.root_attrs["StructMetadata.0"] == hdf_eos5.GRID.format(**hdf_eos5.GEOGRAPHIC)


def test_bounds_of_a_grid_are_its_pixels(tmp_path: Path) -> None:
    path = hdf_eos5.write_grid(tmp_path / "a.he5")
    cutout = cut(path, array=hdf_eos5.COLUMN, bounds=(10, 30, 50, 60))
    with h5py.File(path) as file:
        np.testing.assert_array_equal(cutout.data, file[hdf_eos5.COLUMN][:, 2:4, 13:15])
    np.testing.assert_array_equal(cutout.coords["lat"].data, [52.5, 37.5])
    np.testing.assert_array_equal(cutout.coords["lon"].data, [22.5, 37.5])
    across = cut(path, array=hdf_eos5.COLUMN, bounds=(165, -20, -165, 0))
    np.testing.assert_array_equal(across.coords["lon"].data, [172.5, 187.5])


def test_a_cut_of_a_grid_keeps_its_place(tmp_path: Path) -> None:
    path = hdf_eos5.write_grid(tmp_path / "a.he5")
    cut(path, array=hdf_eos5.COLUMN, box=(3, 2, 5, 4)).write(tmp_path / "cut.nc")
    with xarray.open_dataset(tmp_path / "cut.nc") as dataset:
        np.testing.assert_array_equal(dataset.Column.lat, 52.5 - 15 * np.arange(4))
        np.testing.assert_array_equal(dataset.Column.lon, -127.5 + 15 * np.arange(5))
        assert "StructMetadata.0" not in dataset.attrs
    again = cut(tmp_path / "cut.nc", array="Column", bounds=(-120, 0, -90, 30))
    np.testing.assert_array_equal(again.coords["lat"].data, [22.5, 7.5])
    single = cut(path, array=hdf_eos5.COLUMN, index={"YDim:Ozone": 3})
    assert single.coords["lat"].data == 37.5


@pytest.mark.parametrize(
    ("origin", "corner"),
    [
        ("UL", (1, -1)),
        ("UR", (1, 1)),
        ("LL", (-1, -1)),
        ("LR", (-1, 1)),
    ],
)
def test_the_origin_is_the_first_pixel(
    tmp_path: Path, origin: str, corner: tuple[int, int]
) -> None:
    grid = eos_grid(column(tmp_path / "a.he5", origin=f"HE5_HDFE_GD_{origin}"))
    assert grid is not None
    latitude, longitude = grid.places(np.array([0.5]), np.array([0.5]))
    assert (latitude[0, 0], longitude[0, 0]) == (82.5 * corner[0], 172.5 * corner[1])


def test_a_sinusoidal_grid_equals_its_formula(tmp_path: Path) -> None:
    radius, tile = 6371007.181, 1111950.519667
    array = column(
        tmp_path / "a.he5",
        upper_left=f"(0.0,{5 * tile})",
        lower_right=f"({2 * tile},{4 * tile})",
        projection="HE5_GCTP_SNSOID",
        parameters=f"({radius},0,0,0,0,0,0,0,0,0,0,0,0)",
    )
    y, x = 5 * tile - tile / 12 * (np.arange(12) + 0.5), tile / 12 * (np.arange(24) + 0.5)
    latitude = np.degrees(y / radius)[:, None]
    longitude = np.degrees(x / radius) / np.cos(np.radians(latitude))
    is_inside = (longitude >= 10) & (longitude <= 20) & (latitude >= 42) & (latitude <= 46)
    rows, columns = (np.flatnonzero(is_inside.any(axis)) for axis in (1, 0))
    assert region_of_bounds(array, (10, 42, 20, 46)) == [
        {1: (rows[0], rows[-1] + 1), 2: (columns[0], columns[-1] + 1)}
    ]
    cutout = cut(tmp_path / "a.he5", array=hdf_eos5.COLUMN, box=(2, 3, 4, 5))
    np.testing.assert_allclose(cutout.coords["y"].data, y[3:8])
    np.testing.assert_allclose(cutout.coords["x"].data, x[2:6])
    mapping = cutout.others[cutout.attrs["grid_mapping"]].attrs
    assert (mapping["grid_mapping_name"], mapping["earth_radius"]) == ("sinusoidal", radius)


@pytest.mark.parametrize(
    "values",
    [
        {"width": 25},
        {"height": 2**40},
        {"height": "9" * 5000},
        {"dims": '("YDim","XDim")'},
        {"dims": '("Level","YDim","YDim")'},
        {"dims": '("Level","YDim","XDim","Time")'},
        {"dims": '("Level","YDim","None")'},
        {"dims": '("a/b","YDim","XDim")'},
    ],
    ids=str,
)
def test_axes_that_lie_are_left_out(tmp_path: Path, values: dict[str, Any]) -> None:
    array = column(tmp_path / "a.he5", **values)
    assert [name.startswith("phony_dim_") for name in array.dims] == [True] * 3
    with pytest.raises(RegionError, match="expected latitude and longitude"):
        region_of_bounds(array, (0, 0, 10, 10))
    assert cut(tmp_path / "a.he5", array=hdf_eos5.COLUMN, box=(0, 0, 2, 2)).coords == {}


@pytest.mark.parametrize(
    "values",
    [
        {"upper_left": "DEFAULT"},
        {"upper_left": "(nan,0)"},
        {"upper_left": "(0,99000000)"},
        {"upper_left": "(-180.0,90.0)"},
        {"upper_left": "(-180.0,91.0)", "lower_right": "(180.0,-90.0)"},
        {"upper_left": "(1000000,1000000)", "lower_right": "(1000000,0)"},
        {"projection": "HE5_GCTP_SNSOID", "parameters": "(a)"},
    ],
    ids=str,
)
def test_corners_that_lie_are_errors(tmp_path: Path, values: dict[str, Any]) -> None:
    array = column(tmp_path / "a.he5", **values)
    with pytest.raises(FormatError, match=r"a\.he5, array .*/Column: StructMetadata: expected"):
        region_of_bounds(array, (0, 0, 10, 10))
    with pytest.warns(UserWarning, match="the cut has no place"):
        cutout = cut(tmp_path / "a.he5", array=hdf_eos5.COLUMN, box=(0, 0, 2, 2))
    assert cutout.coords == {}


def test_threads_that_ask_at_once_find_the_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second thread asks while the first one reads the text."""
    array, others = column(tmp_path / "a.he5"), []

    def read_with_another(text: object) -> object:
        monkeypatch.setattr(hdf_eos_grid, "structures_of", structures_of)
        with ThreadPoolExecutor(1) as pool:
            others.append(pool.submit(eos_grid, array).result())
        return structures_of(text)

    monkeypatch.setattr(hdf_eos_grid, "structures_of", read_with_another)
    grid = eos_grid(array)
    assert grid is not None and others == [grid]


def test_corners_in_plain_degrees(tmp_path: Path) -> None:
    plain = {"upper_left": "(-180.0,90.0)", "lower_right": "(180.0,-90.0)"}
    for name, corners in {"packed": {}, "plain": plain}.items():
        hdf_eos5.write_grid(tmp_path / f"{name}.he5", **corners)
    packed, degrees = (
        eos_grid(opened(tmp_path / f"{name}.he5")[hdf_eos5.COLUMN]) for name in ("packed", "plain")
    )
    assert packed is not None
    assert packed == degrees
    assert packed.y == (90, -90)


def test_another_projection_is_named(tmp_path: Path) -> None:
    array = column(tmp_path / "a.he5", projection="HE5_GCTP_ROBIN")
    with pytest.raises(RegionError, match="found GCTP_ROBIN"):
        region_of_bounds(array, (0, 0, 10, 10))


@pytest.mark.parametrize("centre", [(40, 179.9), (90, 0)], ids=str)
def test_a_swath_with_a_map_equals_geotiepoints(
    tmp_path: Path, centre: tuple[float, float]
) -> None:
    latitude, longitude = swath(centre, 24)
    path = hdf_eos5.write_swath(tmp_path / "a.he5", latitude, longitude)
    array = opened(path)[hdf_eos5.RADIANCE]
    assert array.dims == ("Track:Scan", "Xtrack:Scan")
    (ties,) = tie_points(array)
    where = tuple(np.arange(24) * 5 + 2 for _ in range(2))
    expected = by_geotiepoints(latitude.astype("f8"), longitude.astype("f8"), where, array.shape)
    expect_same_places(ties.places([(0, 120), (0, 120)]), expected)
    north = float(expected[0][60, 60])
    box = (-180, north - 0.2, 180, min(north + 0.2, 90))
    rows, columns = (
        np.flatnonzero(((expected[0] >= box[1]) & (expected[0] <= box[3])).any(axis))
        for axis in (1, 0)
    )
    cutout = cut(path, array=hdf_eos5.RADIANCE, bounds=box)
    assert cutout.start == (rows[0], columns[0])
    assert cutout.shape == (rows[-1] + 1 - rows[0], columns[-1] + 1 - columns[0])
    assert cutout.coords["Latitude"].data.shape == cutout.shape


def test_a_swath_of_other_sizes_has_no_maps(tmp_path: Path) -> None:
    path = hdf_eos5.write_swath(tmp_path / "a.he5", *swath((0, 0), 24), rows=7, count=5)
    array = opened(path)[hdf_eos5.RADIANCE]
    assert array.dims == ("phony_dim_0", "phony_dim_1")
    assert tie_points(array) == []


def test_texts_that_are_no_text_describe_nothing(tmp_path: Path) -> None:
    path = hdf_eos5.write_grid(tmp_path / "a.he5")
    with h5py.File(path, "a") as file:
        del file["HDFEOS INFORMATION/StructMetadata.0"]
        file["HDFEOS INFORMATION/StructMetadata.0"] = np.arange(9)
    assert opened(path)[hdf_eos5.COLUMN].dims[0].startswith("phony_dim_")
    with h5py.File(path, "a") as file:
        del file["HDFEOS INFORMATION/StructMetadata.0"]
        file["HDFEOS INFORMATION/StructMetadata.0"] = h5py.ExternalLink("/etc/passwd", "/")
    assert opened(path)[hdf_eos5.COLUMN].dims[0].startswith("phony_dim_")


@pytest.mark.parametrize(
    ("left", "right"), [(-360, 360), (-1, 360), (180, -200)], ids=["two turns", "more", "back"]
)
def test_a_grid_of_more_than_one_turn_is_an_error(
    tmp_path: Path, left: float, right: float
) -> None:
    corners = {"upper_left": f"({left},90.0)", "lower_right": f"({right},-90.0)"}
    path = hdf_eos5.write_grid(tmp_path / "a.he5", **corners)
    with pytest.raises(FormatError, match=f"expected longitudes of one turn .* {left:g} to "):
        cut(path, array=hdf_eos5.COLUMN, bounds=(10, 30, 50, 60))
    with pytest.warns(UserWarning, match="the cut has no place"):
        assert "lon" not in cut(path, array=hdf_eos5.COLUMN, box=(0, 0, 2, 2)).coords


@pytest.mark.parametrize("origin", ["UL", "UR"])
def test_a_grid_over_the_dateline_goes_on(tmp_path: Path, origin: str) -> None:
    corners = {"upper_left": "(170000000.0,90000000.0)", "lower_right": "(-178000000.0,-90000000.)"}
    array = column(tmp_path / "a.he5", **corners, origin=f"HE5_HDFE_GD_{origin}")
    grid = eos_grid(array)
    assert grid is not None
    _, longitude = grid.places(np.array([0.5]), np.arange(24) + 0.5)
    expected = 170.25 + 0.5 * np.arange(24)
    np.testing.assert_allclose(longitude[0], expected if origin == "UL" else expected[::-1])
    (part,) = region_of_bounds(array, (179, -90, -179, 90))
    assert part[2] == ((18, 22) if origin == "UL" else (2, 6))
