"""No data, scale, offset and unit of GDAL, as rasterio reads and writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.arrays.gdal_metadata import metadata_of_bands, packing_of
from swathe.core.errors import RegionError

tifffile = pytest.importorskip("tifffile")
rasterio = pytest.importorskip("rasterio")
pytestmark = pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
cut: Any = swathe.cut
NODATA = 42113
SCALES, OFFSETS, UNITS = (
    (0.5, 0.25, 0.125),
    (1.0, 2.0, 3.0),
    ("m", "K", "kg <m> & \N{DEGREE SIGN}C"),
)


@pytest.mark.parametrize(
    ("dtype", "text", "fill"),
    [
        ("i2", "-9999", -9999),
        ("i2", "-9999.0", -9999),
        ("i2", "-9.999e3", -9999),
        ("u1", "255.0", 255),
        ("u1", "-1", None),
        ("u1", "0.5", None),
        ("i2", "1e9", None),
        ("i8", "9223372036854775807", 2**63 - 1),
        ("f4", "-3.4028234663852886e+38", np.float32(-3.4028234663852886e38)),
        ("f4", "nan", np.float32("nan")),
        ("f4", "nothing", None),
    ],
)
def test_nodata_is_the_fill_value(tmp_path: Path, dtype: str, text: str, fill: Any) -> None:
    path = tmp_path / "a.tif"
    tag = (NODATA, 2, 0, text, True)
    tifffile.imwrite(path, np.ones((4, 5), dtype), extratags=[tag], metadata=None)
    file: Any = swathe.open(path)
    attrs = file["/0"].attrs
    assert ("_FillValue" in attrs) == (fill is not None)
    if fill is not None:
        assert attrs["_FillValue"].dtype == dtype
        assert np.array_equal(attrs["_FillValue"], fill, equal_nan=True)


@pytest.mark.parametrize("nodata", [-3.4028234663852886e38, -9999.0, 1e20, float("nan")])
def test_missing_tiles_have_no_data(tmp_path: Path, nodata: float) -> None:
    path = tmp_path / "sparse.tif"
    options = {"tiled": True, "blockxsize": 16, "blockysize": 16, "SPARSE_OK": "TRUE"}
    size = {"height": 32, "width": 32, "count": 1, "dtype": "float32", "nodata": nodata}
    with rasterio.open(path, "w", driver="GTiff", **size, **options) as file:
        window = rasterio.windows.Window(0, 0, 16, 16)
        file.write(np.ones((16, 16), "f4"), 1, window=window)
    with rasterio.open(path) as file:
        values = file.read(1)
    cutout = cut(path, box=(0, 0, 32, 32))
    assert np.array_equal(cutout.data, values, equal_nan=True)
    assert np.isnan(cutout.physical).sum() == 3 * 256


@pytest.fixture(params=["pixel", "band"])
def bands(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Three bands with scales, offsets and units of their own."""
    path = tmp_path / "bands.tif"
    place = rasterio.Affine(1, 0, 5, 0, -1, 50)
    options = {"interleave": request.param, "crs": "EPSG:4326", "transform": place}
    size = {"height": 4, "width": 6, "count": 3, "dtype": "uint8"}
    with rasterio.open(path, "w", driver="GTiff", **size, **options) as file:
        for band in (1, 2, 3):
            file.write(np.full((4, 6), 10 * band, "u1"), band)
        file.scales, file.offsets, file.units = SCALES, OFFSETS, UNITS
    return path


@pytest.mark.parametrize("index", [0, 1, 2, slice(1, 2), slice(1, 3), slice(0, 3)])
def test_a_cut_of_bands_has_their_scales(bands: Path, tmp_path: Path, index: Any) -> None:
    cutout = cut(bands, index={"band": index}, box=(1, 1, 3, 2))
    chosen = slice(index, index + 1) if isinstance(index, int) else index
    part = tmp_path / "part.tif"
    cutout.write(part)
    with rasterio.open(part) as file:
        assert (file.scales, file.offsets) == (SCALES[chosen], OFFSETS[chosen])
        assert file.units == UNITS[chosen]
        stored = file.read()
    assert stored[:, 0, 0].tolist() == [10, 20, 30][chosen]
    numbers = np.unique(cutout.physical).tolist()
    if chosen.stop - chosen.start == 1:
        at = chosen.start
        assert numbers == [10 * (at + 1) * SCALES[at] + OFFSETS[at]]
        assert cutout.attrs["units"] == UNITS[at]
    else:  # no scale is that of all
        assert numbers == [10, 20, 30][chosen]


def test_several_bands_are_not_reduced_to_one_grid(bands: Path) -> None:
    with pytest.raises(RegionError, match=r"bands\.tif, array /0: expected one band, found 3"):
        swathe.reduce([bands], grid="1deg")


def test_odd_metadata() -> None:
    item = '<Item name="SCALE" sample="{}" role="scale">{}</Item>'
    assert packing_of(item.format(0, 2.5), 1) == {"scale_factor": 2.5}
    assert packing_of(item.format(0, 2.5), 2) == {}
    assert packing_of(item.format(0, "much"), 1) == {}
    assert packing_of(item.format(0, 1), 1) == {}
    assert packing_of("no xml <Item", 1) == {}
    long = f"<Item {'a' * 300_000}>x</Item>" * 3
    assert packing_of(long, 1) == {}
    both = item.format(0, 2) + "<Item>other</Item>" + item.format(1, 3)
    assert metadata_of_bands(both, 1, 2) == "<Item>other</Item>" + item.format(0, 3)
    assert metadata_of_bands(long, 0, 1) == long
