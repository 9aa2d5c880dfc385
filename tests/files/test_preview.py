"""Pictures of pixels: the right way up, sane limits, any type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.visualization import (
    AsinhStretch,
    LinearStretch,
    LogStretch,
    SqrtStretch,
    ZScaleInterval,
)
from numpy.typing import NDArray
from PIL import Image

import swathe
from swathe.core.errors import RegionError
from swathe.files.preview import LARGEST_SIDE, Stretch, contact_sheet, grey, picture, zscale
from tests.support.fits_frames import contents, noise

STRETCHES: dict[Stretch, Any] = {
    "asinh": AsinhStretch(0.1),
    "linear": LinearStretch(),
    "log": LogStretch(),
    "sqrt": SqrtStretch(),
}


@pytest.mark.parametrize("count", [1, 4, 5, 11, 999, 1001, 2500])
def test_limits_and_stretches_are_those_of_astropy(count: int) -> None:
    random = np.random.default_rng(count)
    outliers = np.where(random.random(count) < 0.1, 1e4, random.normal(0, 1, count))
    for values in (random.exponential(1, count), np.full(count, 7.0), outliers):
        assert zscale(values) == tuple(map(float, ZScaleInterval().get_limits(values)))
    plane = random.random((2, count))
    for name, curve in STRETCHES.items():
        low, high = zscale(plane.ravel())
        expected = curve(np.clip((plane - low) / (high - low), 0, 1)) if high > low else plane
        greys = np.asarray(expected[::-1] * 255).round()
        assert high <= low or (grey(plane, name) == greys).all()


def star(dtype: str = "f8") -> NDArray[Any]:
    """A sky of 60 x 80 pixels with a star at x = 60, y = 10."""
    data = noise(1, (60, 80)).astype(float)
    y, x = np.indices(data.shape)
    data += 5000 * np.exp(-((x - 60) ** 2 + (y - 10) ** 2) / 8)
    return data.astype(dtype)


@pytest.mark.parametrize("dtype", ["u2", ">i2", ">i4", "i8", ">f4", "f8"])
def test_y_points_up_and_the_star_is_white(dtype: str) -> None:
    made = grey(star(dtype))
    assert made.dtype == np.uint8
    assert made.shape == (60, 80)
    assert made[59 - 10, 60] == 255
    assert made[10, 60] < 200
    assert np.median(made) < 200


def test_all_types_give_the_same_picture() -> None:
    assert (grey(star("u2")) == grey(star(">i4").astype(">f8"))).all()


def test_pixels_without_a_value_are_black() -> None:
    data = star()
    data[20:30, 5:9] = np.nan
    data[0, 0] = np.inf
    data[0, 1] = -np.inf
    made = grey(data)
    assert (made[::-1][20:30, 5:9] == 0).all()
    assert made[::-1][0, :2].tolist() == [0, 0]
    assert made[59 - 10, 60] == 255
    assert (grey(np.full((3, 4), np.nan)) == 0).all()


@pytest.mark.parametrize("value", [0, 7, -3.5, 1e300])
def test_constant_image_is_drawn(value: float) -> None:
    assert len(np.unique(grey(np.full((9, 9), value)))) == 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (2, 2)])
def test_tiny_images_are_drawn(shape: tuple[int, int]) -> None:
    assert grey(noise(1, shape)).shape == shape


def test_cube_shows_its_first_plane() -> None:
    cube = np.stack([star(), -star()])
    assert (grey(cube) == grey(star())).all()
    assert (grey(cube[None]) == grey(star())).all()


def test_large_image_is_thinned() -> None:
    assert max(grey(np.zeros((3, 2 * LARGEST_SIDE + 1))).shape) <= LARGEST_SIDE


def test_image_without_a_plane_raises() -> None:
    with pytest.raises(RegionError, match="two axes"):
        grey(np.zeros(5))


def test_picture_is_grey() -> None:
    made = picture(star())
    assert (made.mode, made.size) == ("L", (80, 60))


def test_png_of_a_cutout(tmp_path: Path) -> None:
    (tmp_path / "a.fit").write_bytes(contents(star("u2"), "fit"))
    cut = swathe.cut(tmp_path / "a.fit", box=(20, 0, 60, 40))
    cut.write(tmp_path / "cut.png")
    with Image.open(tmp_path / "cut.png") as made:
        assert (made.mode, made.size) == ("L", (60, 40))
        assert made.getpixel((40, 39 - 10)) == 255


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_contact_sheet_holds_every_cutout(count: int) -> None:
    sheet = contact_sheet([star()] * count, [f"star {n}" for n in range(count)], 3, 50)
    assert sheet.size == (3 * 54, -(-count // 3) * 68)
    pixels = np.asarray(sheet)
    for number in range(count):
        x, y = number % 3 * 54 + 2, number // 3 * 68 + 2
        tile = pixels[y : y + 50, x : x + 50]
        row, column = np.argwhere(tile == 255).mean(axis=0)
        assert abs(column - 60.5 * 50 / 80) < 3
        assert abs(row - 49.5 * 50 / 60) < 3
        assert (pixels[y + 50 : y + 66, x : x + 50] > 100).any()  # the caption


def test_contact_sheet_needs_a_caption_each() -> None:
    with pytest.raises(ValueError, match="zip"):
        contact_sheet([star()], [])
