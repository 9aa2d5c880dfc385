"""Regions of GeoTIFF images by bounds hold the pixels that rasterio places there."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import swathe
from swathe.core.errors import FormatError, NoOverlapError, OptionError, RegionError
from swathe.files.array import Array
from swathe.files.array_file import ArrayFile
from swathe.files.places.geotiff import raster_ranges
from swathe.files.places.regions import region_of_bounds
from tests.conftest import DATA

rasterio = pytest.importorskip("rasterio")
pytest.importorskip("rasterio.warp")
tifffile = pytest.importorskip("tifffile")
FORMATS = DATA / "formats"
needs_data = pytest.mark.skipif(not FORMATS.is_dir(), reason=f"no data in {FORMATS}")
BOXES: list[Any] = [
    (-10, 30, 20, 55),
    (170, -20, -170, 10),
    (190, -20, 200.5, 10.25),
    (-180, -90, 180, 90),
    (-0.0625, 74, 0.0625, 75),
]


def array_of(path: Path) -> Array:
    file = swathe.open(path)
    assert isinstance(file, ArrayFile)
    return file["/0"]


def counts_of(array: Array, parts: list[Any]) -> NDArray[np.int64]:
    """Return how often each pixel (y, x) is in a part."""
    y, x = array.dims.index("y"), array.dims.index("x")
    counts = np.zeros((array.shape[y], array.shape[x]), int)
    for part in parts:
        counts[slice(*part[y]), slice(*part[x])] += 1
    return counts


def centres(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return latitude and longitude of all pixel centres, by GDAL."""
    with rasterio.open(path) as file:
        rows, columns = np.indices(file.shape)
        a, b, c, d, e, f = tuple(file.transform)[:6]
        x = (a * (columns + 0.5) + b * (rows + 0.5) + c).ravel()
        y = (d * (columns + 0.5) + e * (rows + 0.5) + f).ravel()
        if file.crs.is_projected:
            x, y = rasterio.warp.transform(file.crs, "OGC:CRS84", x, y)
        shape = file.shape
    return np.reshape(y, shape), np.reshape(x, shape)


def inside(path: Path, box: Any) -> NDArray[np.bool_]:
    west, south, east, north = box
    latitude, longitude = centres(path)
    width = east - west if west <= east else east - west + 360
    around = (longitude - west) % 360
    mask: NDArray[np.bool_] = (around <= width) & (latitude >= south) & (latitude <= north)
    return mask


@needs_data
@pytest.mark.parametrize("box", BOXES)
def test_geographic_image_equals_gdal(box: Any) -> None:
    path = FORMATS / "world.byte.tif"
    array = array_of(path)
    counts = counts_of(array, region_of_bounds(array, box))
    assert np.array_equal(counts, inside(path, box))
    assert counts.any()


@pytest.mark.parametrize("point", [False, True])
@pytest.mark.parametrize("bands", [1, 3])
def test_written_image_equals_gdal(tmp_path: Path, point: bool, bands: int) -> None:
    path = tmp_path / "a.tif"
    transform = rasterio.Affine(1.5, 0, 0, 0, -0.75, 40)
    profile = {"driver": "GTiff", "height": 90, "width": 240, "count": bands, "dtype": "uint8"}
    with rasterio.open(path, "w", crs="EPSG:4326", transform=transform, **profile) as file:
        if point:
            file.update_tags(AREA_OR_POINT="Point")
        file.write(np.zeros((bands, 90, 240), "u1"))
    array = array_of(path)
    for box in [(-20, -10, 20, 10), (100, 0, 130, 39), (-180, -90, 180, 90)]:
        assert np.array_equal(counts_of(array, region_of_bounds(array, box)), inside(path, box))


def test_image_that_is_rotated_gives_the_smallest_box(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    cosine, sine = 0.5 * np.cos(0.5), 0.5 * np.sin(0.5)
    transform = rasterio.Affine(cosine, sine, 10, sine, -cosine, 50)
    with rasterio.open(
        path, "w", "GTiff", 60, 40, 1, "EPSG:4326", transform=transform, dtype="uint8"
    ) as file:
        file.write(np.zeros((1, 40, 60), "u1"))
    mask = inside(path, (12, 45, 20, 55))
    expected = [(int(each.min()), int(each.max()) + 1) for each in mask.nonzero()]
    assert region_of_bounds(array_of(path), (12, 45, 20, 55)) == [dict(enumerate(expected))]
    with pytest.raises(NoOverlapError):
        region_of_bounds(array_of(path), (100, 45, 120, 55))


@needs_data
@pytest.mark.parametrize("name", ["RGB.byte.tif", "cogeo.tif"])
def test_projection_without_pyproj_raises(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "pyproj" else find(name, *rest),
    )
    with pytest.raises(OptionError, match=r"pip install .swathe\[geotiff\]"):
        region_of_bounds(array_of(FORMATS / name), (-80, 20, -70, 30))


@needs_data
def test_projection_by_pyproj() -> None:
    path = FORMATS / "RGB.byte.tif"
    box = (-78, 24.5, -77.25, 25)
    (part,) = region_of_bounds(array_of(path), box)
    mask = inside(path, box)
    expected = [(int(each.min()), int(each.max()) + 1) for each in mask.nonzero()]
    assert part == dict(enumerate(expected))


def fake(**attrs: Any) -> Any:
    """Return an array with these tags of a geographic image."""
    tags = {
        "GTModelTypeGeoKey": 2,
        "ModelTiepoint": np.array([0.0, 0, 0, 10, 50, 0]),
        "ModelPixelScale": np.array([1.0, 1, 0]),
    }
    merged = {**tags, **attrs}
    return SimpleNamespace(
        url="a.tif",
        path="/0",
        dims=("y", "x"),
        shape=(5, 6),
        ndim=2,
        plane=(0, 1),
        attrs={name: value for name, value in merged.items() if value is not None},
    )


@pytest.mark.parametrize(
    ("attrs", "error", "message"),
    [
        ({"GTModelTypeGeoKey": 32767}, RegionError, "expected a geographic or projected image"),
        ({"GTModelTypeGeoKey": None}, RegionError, "found None"),
        ({"GeogAngularUnitsGeoKey": 9101}, RegionError, "expected degrees"),
        ({"GeogPrimeMeridianGeoKey": 8903}, RegionError, "found units 9102, prime meridian 8903"),
        ({"ModelPixelScale": None}, FormatError, "found tie points only"),
        ({"ModelPixelScale": np.array([0.0, 1, 0])}, FormatError, "expected pixels with an area"),
        ({"ModelPixelScale": "wide"}, FormatError, "expected 2 numbers in ModelPixelScale"),
        ({"ModelTiepoint": np.array([1.0])}, FormatError, "expected 6 numbers in ModelTiepoint"),
        ({"ModelTiepoint": np.full(6, np.nan)}, FormatError, "expected 6 numbers"),
        ({"ModelPixelScale": np.array([100.0, 1, 0])}, FormatError, "one turn of 360 degrees"),
    ],
)
def test_damaged_tags_raise(attrs: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        region_of_bounds(fake(**attrs), (0, 0, 20, 60))


def test_tie_point_of_another_pixel() -> None:
    from swathe.files.places.bounds import Bounds

    array = fake(ModelTiepoint=np.array([2.0, 1, 0, 12, 49, 0]))
    box = Bounds.of((10, 47, 12, 50))
    assert raster_ranges(array, box) == raster_ranges(fake(), box) == [{0: (0, 3), 1: (0, 2)}]
