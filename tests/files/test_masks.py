"""Masks of TIFF: pixels without a value, as GDAL has them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import swathe
from swathe.files import masks

rasterio = pytest.importorskip("rasterio")
pytest.importorskip("tifffile")
h5py = pytest.importorskip("h5py")
cut: Any = swathe.cut
opened: Any = swathe.open
HEIGHT, WIDTH = 40, 60
VALUES = np.arange(1, HEIGHT * WIDTH + 1, dtype="u2").reshape(HEIGHT, WIDTH)
HAS_VALUE = (VALUES % 7 != 0) & (VALUES > 300)
BOX = (10, 2, 20, 15)
PART = slice(2, 17), slice(10, 30)


def write(path: Path, bands: int = 1, dtype: str = "uint16", **more: Any) -> Path:
    transform = rasterio.Affine(1, 0, -20, 0, -1, 20)
    profile = {"driver": "GTiff", "height": HEIGHT, "width": WIDTH, "count": bands, "dtype": dtype}
    options = {"crs": "EPSG:4326", "transform": transform, **more}
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(path, "w", **profile, **options) as file,
    ):
        for band in range(bands):
            file.write((VALUES + band).astype(dtype), band + 1)
        file.write_mask(HAS_VALUE)
    return path


def expected(values: NDArray[Any]) -> NDArray[Any]:
    return np.where(HAS_VALUE, values, np.nan)[PART]


@pytest.mark.parametrize("most", [masks.MOST_CACHED_PIXELS, 0], ids=["cached", "by parts"])
@pytest.mark.parametrize("interleave", ["pixel", "band"])
@pytest.mark.parametrize("bands", [1, 3])
def test_masked_pixels_have_no_value(
    bands: int, interleave: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masks, "MOST_CACHED_PIXELS", most)
    path = write(tmp_path / "a.tif", bands, interleave=interleave)
    for band in range(bands):
        region: Any = {"index": {"band": band}} if bands > 1 else {}
        one = cut(path, box=BOX, **region)
        np.testing.assert_array_equal(one.data, (VALUES + band)[PART])
        np.testing.assert_array_equal(one.physical, expected(VALUES + band))
    whole = cut(path, box=BOX)
    assert whole.mask.shape == whole.shape
    np.testing.assert_array_equal(np.isnan(whole.physical), whole.mask)
    mask = masks.whole_mask(opened(path)["/0"])
    assert mask is not None and mask.sum() == bands * np.sum(~HAS_VALUE)
    row = cut(path, index={"y": 20, **({"band": 0} if bands > 1 else {})})
    np.testing.assert_array_equal(row.mask, ~HAS_VALUE[20])


def test_a_region_that_is_not_masked_has_no_mask(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif")
    assert cut(path, box=(1, 20, 2, 1)).mask is None
    assert cut(path, box=(1, 20, 2, 1)).physical.dtype == np.uint16
    partial = cut(path, box=(-2, 18, 4, 3), mode="partial")
    assert partial.mask[:, :2].all() and np.isnan(partial.physical[:, :2]).all()


@pytest.mark.parametrize("bands", [1, 3])
def test_a_cut_as_tiff_keeps_the_mask(bands: int, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", bands)
    cutout = cut(path, box=BOX)
    cutout.write(tmp_path / "cut.tif")
    with rasterio.open(tmp_path / "cut.tif") as file:
        np.testing.assert_array_equal(file.dataset_mask() != 0, HAS_VALUE[PART])
        np.testing.assert_array_equal(file.read(1), VALUES[PART])
        assert file.count == bands
    again = cut(tmp_path / "cut.tif", box=(0, 0, 20, 15))
    np.testing.assert_array_equal(again.physical, cutout.physical)


@pytest.mark.parametrize("suffix", ["nc", "h5", "zarr", "asdf"])
def test_formats_of_several_arrays_have_the_mask_beside(suffix: str, tmp_path: Path) -> None:
    cutout = cut(write(tmp_path / "a.tif", 3), box=BOX)
    cutout.write(tmp_path / f"cut.{suffix}")
    mask = opened(tmp_path / f"cut.{suffix}")["mask"]
    np.testing.assert_array_equal(mask.data, HAS_VALUE[PART])
    assert "mask" not in cut(write(tmp_path / "b.tif"), box=(1, 20, 2, 1)).variables


def test_fits_and_pictures_leave_masked_pixels_out(tmp_path: Path) -> None:
    from astropy.io import fits

    path = write(tmp_path / "a.tif")
    cut(path, box=BOX).write(tmp_path / "cut.fits")
    np.testing.assert_array_equal(fits.getdata(tmp_path / "cut.fits"), expected(VALUES))
    colours = write(tmp_path / "b.tif", 3, "uint8", photometric="rgb")
    cut(colours, box=BOX).write(tmp_path / "cut.png")
    with Image.open(tmp_path / "cut.png") as image:
        first = np.asarray(image)[..., 0]
    np.testing.assert_array_equal(first, np.where(HAS_VALUE, VALUES.astype("u1"), 0)[PART])


def test_a_reduction_leaves_masked_pixels_out(tmp_path: Path) -> None:
    result = swathe.reduce(write(tmp_path / "a.tif"), grid="10deg", statistics=["mean", "count"])
    blocks = np.where(HAS_VALUE, VALUES, np.nan).reshape(4, 10, 6, 10)
    counts = np.isfinite(blocks).sum((1, 3))
    grid = np.asarray(result["count"])
    assert grid.sum() == HAS_VALUE.sum()
    assert sorted(grid[grid > 0]) == sorted(counts[counts > 0])


def test_both_sides_of_a_map_keep_their_masks(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif", transform=rasterio.Affine(6, 0, -180, 0, -4, 80))
    cutout = cut(path, bounds=(150, -80, -150, 80))
    columns = [*range(55, 60), *range(5)]
    np.testing.assert_array_equal(cutout.data, VALUES[:, columns])
    np.testing.assert_array_equal(cutout.mask, ~HAS_VALUE[:, columns])


def test_lists_keep_masks(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif")
    with (tmp_path / "list.csv").open("w") as file:
        rows = csv.writer(file)
        rows.writerows([["file", "x0", "y0", "width", "height"], [path, *BOX]])
    swathe.cut_many(tmp_path / "list.csv", tmp_path / "out", progress=False)
    (result,) = (tmp_path / "out").glob("*.tif")
    with rasterio.open(result) as file:
        np.testing.assert_array_equal(file.dataset_mask() != 0, HAS_VALUE[PART])


def test_real_masks_are_those_of_gdal(data: Path) -> None:
    for name in ("goes.tif", "cogeo.tif"):
        path = data / "formats" / name
        with rasterio.open(path) as file:
            mask = file.dataset_mask() == 0
        array = opened(path)["/0"]
        actual = masks.whole_mask(array)
        np.testing.assert_array_equal(
            np.zeros(mask.shape, bool) if actual is None else actual[..., 0], mask
        )


def test_a_mask_that_is_not_read_is_not_used_with_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tif")
    file = opened(path)
    storage: Any = file.tree.arrays["/0/mask"].storage
    storage.clear()
    storage.update(kind="refused", why="no decoder")
    with pytest.warns(UserWarning, match="its mask is not used, as it is not read: no decoder"):
        assert masks.whole_mask(file["/0"]) is None


def test_jpeg_of_ycbcr_is_rgb_as_it_is_decoded(data: Path, tmp_path: Path) -> None:
    cutout = cut(data / "formats" / "cogeo.tif", box=(20, 30, 40, 20))
    assert cutout.attrs["PhotometricInterpretation"] == 2
    cutout.write(tmp_path / "cut.tif")
    cutout.write(tmp_path / "cut.png")
    with rasterio.open(tmp_path / "cut.tif") as file:
        assert file.colorinterp[0].name == "red"
    with Image.open(tmp_path / "cut.png") as image:
        np.testing.assert_array_equal(np.asarray(image), cutout.data)
