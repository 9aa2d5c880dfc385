"""Pictures of cuts of arrays: greys, colours, the right way up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import swathe
from swathe.core.errors import RegionError

tifffile = pytest.importorskip("tifffile")
h5py = pytest.importorskip("h5py")
cut: Any = swathe.cut
COLOURS = np.random.default_rng(4).integers(0, 256, (20, 30, 4), np.uint8)


def drawn(cutout: Any, path: Path) -> tuple[str, NDArray[Any]]:
    cutout.write(path)
    with Image.open(path) as image:
        return image.mode, np.asarray(image)


@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_three_bands_of_bytes_are_colours(planar: str, tmp_path: Path) -> None:
    bands = COLOURS[..., :3] if planar == "contig" else np.moveaxis(COLOURS[..., :3], -1, 0)
    tifffile.imwrite(tmp_path / "a.tif", bands, photometric="rgb", planarconfig=planar)
    mode, pixels = drawn(cut(tmp_path / "a.tif", box=(3, 5, 7, 4)), tmp_path / "cut.png")
    assert mode == "RGB"
    np.testing.assert_array_equal(pixels, COLOURS[5:9, 3:10, :3])


@pytest.mark.parametrize(("extra", "mode"), [("unassalpha", "RGBA"), ("unspecified", "RGB")])
def test_a_fourth_band_is_the_opacity_if_the_file_says_so(
    extra: str, mode: str, tmp_path: Path
) -> None:
    options = {"photometric": "rgb", "planarconfig": "contig", "extrasamples": [extra]}
    tifffile.imwrite(tmp_path / "a.tif", COLOURS, **options)
    assert cut(tmp_path / "a.tif", box=(3, 5, 7, 4)).shape == (4, 7, 4)
    actual, pixels = drawn(cut(tmp_path / "a.tif", box=(3, 5, 7, 4)), tmp_path / "cut.png")
    assert actual == mode
    np.testing.assert_array_equal(pixels, COLOURS[5:9, 3:10, : len(mode)])


def test_a_real_image_of_three_bands(data: Path, tmp_path: Path) -> None:
    path = data / "formats" / "RGB.byte.tif"
    mode, pixels = drawn(cut(path, box=(300, 200, 50, 40)), tmp_path / "cut.png")
    assert mode == "RGB"
    expected = tifffile.imread(path)
    expected = expected if expected.shape[-1] == 3 else np.moveaxis(expected, 0, -1)
    np.testing.assert_array_equal(pixels, expected[200:240, 300:350])


@pytest.mark.parametrize(
    ("values", "photometric", "message"),
    [
        (COLOURS[..., :3].astype("u2"), "rgb", "expected bytes .* bands, found uint16"),
        (COLOURS, "separated", "found CMYK"),
        (np.zeros((20, 30, 5), "u1"), "minisblack", "three or four bands of bytes"),
    ],
)
def test_other_bands_are_an_error_that_says_what_to_do(
    values: NDArray[Any], photometric: str, message: str, tmp_path: Path
) -> None:
    tifffile.imwrite(tmp_path / "a.tif", values, photometric=photometric, planarconfig="contig")
    with pytest.raises(RegionError, match=message) as error:
        cut(tmp_path / "a.tif", box=(3, 5, 7, 4)).write(tmp_path / "cut.png")
    assert "--index" in str(error.value)
    cut(tmp_path / "a.tif", box=(3, 5, 7, 4), index={"band": 0}).write(tmp_path / "cut.png")


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1)])
@pytest.mark.parametrize("steps", [0, 1])
def test_one_pixel_and_one_row_are_pictures(
    shape: tuple[int, int], steps: int, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = np.arange(2400.0).reshape((4, 20, 30) if steps else (80, 30))
    region = {"index": {"phony_dim_0": slice(2, 3)}} if steps else {}
    cutout = cut(tmp_path / "a.h5", box=(1, 2, shape[1], shape[0]), **region)
    assert cutout.shape == (1,) * steps + shape
    mode, pixels = drawn(cutout, tmp_path / "cut.png")
    assert (mode, pixels.shape) == ("L", shape)


def test_the_first_row_is_at_the_top_where_it_is_the_northern_one(tmp_path: Path) -> None:
    values = np.zeros((20, 30), "f4")
    values[:10] = 1
    tifffile.imwrite(tmp_path / "a.tif", values)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, latitudes in (("north", np.linspace(50, 31, 20)), ("south", np.arange(20.0))):
            group = file.create_group(name)
            group["lat"], group["v"] = latitudes, values
            group["lat"].make_scale("lat")
            group["lat"].attrs["units"] = "degrees_north"
            group["v"].dims[0].attach_scale(group["lat"])
        file["plain"] = values
    tops = {}
    for name, array in (
        ("a.tif", "/0"),
        ("a.h5", "/north/v"),
        ("a.h5", "/south/v"),
        ("a.h5", "plain"),
    ):
        cutout = cut(tmp_path / name, array=array, box=(0, 0, 30, 20))
        _, pixels = drawn(cutout, tmp_path / f"{array.strip('/').replace('/', '_')}.png")
        tops[array] = bool(pixels[0, 0] > pixels[-1, 0])
    assert tops == {"/0": True, "/north/v": True, "/south/v": False, "plain": False}
