"""Tiles and overviews of images, and slices with a step; NumPy is the judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits
from numpy.typing import NDArray

import swathe
from swathe.core.errors import RegionError
from swathe.files import pyramid
from swathe.files.pyramid import (
    Pyramid,
    read_overview,
    read_pixel,
    read_spectrum,
    read_tile,
)
from tests.support.fits_frames import KINDS, contents, noise

WIDTH, HEIGHT = 700, 530


@pytest.fixture(params=KINDS)
def frame(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"frame.{request.param}"
    path.write_bytes(contents(noise(3, (HEIGHT, WIDTH)), request.param, fits.Header()))
    return path


def floats(tmp_path: Path, pixels: NDArray[np.float32]) -> Path:
    path = tmp_path / "floats.fits"
    fits.PrimaryHDU(pixels).writeto(path)
    return path


@pytest.mark.parametrize(
    "slices",
    [
        np.s_[::7, ::3],
        np.s_[100:5:-3, :],
        np.s_[5::200],
        np.s_[..., ::64, 0],
        np.s_[::-1, 3:9],
        np.s_[529::10],
        np.s_[::1000, ::1000],
    ],
)
def test_slices_with_a_step(frame: Path, slices: tuple[slice, ...]) -> None:
    image = swathe.open(frame).image()
    assert np.array_equal(image.section[slices], noise(3, (HEIGHT, WIDTH))[slices])


def test_a_step_reads_only_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "tall.fits"
    cube = noise(1, (2, 4000, 300))
    fits.PrimaryHDU(cube).writeto(path)
    image = swathe.open(path).image()
    before = image._native.traffic()["bytes_moved"]
    rows = image.section[:, ::100, 5]
    assert np.array_equal(rows, cube[:, ::100, 5])
    assert image._native.traffic()["bytes_moved"] - before < cube.nbytes / 20


@pytest.mark.parametrize("scaled", [False, True])
def test_tiles_are_means_of_blocks_from_the_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scaled: bool
) -> None:
    pixels = np.random.default_rng(5).normal(0, 1, (HEIGHT, WIDTH)).astype(np.float32)
    pixels[100:140, 600:] = np.nan
    image = swathe.open(floats(tmp_path, pixels)).image()
    levels = Pyramid(WIDTH, HEIGHT).levels
    assert levels == 3
    skip = 1
    if scaled:  # fewer rows than all are read
        monkeypatch.setattr(pyramid, "MOST_READ", 200 * 700)
    upright = pixels[::-1]
    for level in range(levels):
        step = 1 << (levels - 1 - level)
        for row in range(-(-HEIGHT // (256 * step))):
            for column in range(-(-WIDTH // (256 * step))):
                top, left = row * 256 * step, column * 256 * step
                block = upright[top : top + 256 * step, left : left + 256 * step]
                if scaled:
                    columns, rows = Pyramid(WIDTH, HEIGHT).tile(level, column, row)
                    skip = Pyramid(WIDTH, HEIGHT).skip(level, columns, rows)
                tile = read_tile(image, (), level, column, row)
                expected = means(block[::skip], step // skip, step)
                assert tile.shape == expected.shape
                np.testing.assert_allclose(tile, expected, rtol=1e-5, atol=1e-6)


def test_of_a_coarse_tile_fewer_rows_are_read() -> None:
    wide = Pyramid(40_000, 30_000)
    columns, rows = wide.tile(0, 0, 0)
    assert wide.skip(0, columns, rows) == wide.step(0) == 256
    assert wide.read_pixels(0, columns, rows) == 40_000 * 118
    assert wide.skip(wide.levels - 1, *wide.tile(wide.levels - 1, 0, 0)) == 1


def means(pixels: NDArray[np.float32], down: int, across: int) -> NDArray[np.float64]:
    """Return means of blocks, by loops."""
    rows = range(0, pixels.shape[0], down)
    columns = range(0, pixels.shape[1], across)
    blocks = [[pixels[y : y + down, x : x + across].astype(float) for x in columns] for y in rows]
    return np.array([[mean(block) for block in row] for row in blocks])


def mean(block: NDArray[np.float64]) -> float:
    valid = block[np.isfinite(block)]
    return float(valid.mean()) if valid.size else np.nan


def test_an_overview_shows_the_whole_plane(tmp_path: Path) -> None:
    cube = np.arange(2 * 1500 * 900, dtype=np.float32).reshape(2, 1500, 900)
    image = swathe.open(floats(tmp_path, cube)).image()
    overview = read_overview(image, (1,))
    assert overview.pixels.shape == (500, 300)
    np.testing.assert_allclose(overview.pixels, means(cube[1, ::-1][::3], 1, 3), rtol=1e-6)
    assert np.isin(overview.samples, cube[1, ::-3]).all()
    assert 1000 < overview.samples.size <= 1 << 17


def test_samples_have_the_noise_of_pixels(tmp_path: Path) -> None:
    wide = np.random.default_rng(2).normal(10, 1, (1, 100_000)).astype(np.float32)
    samples = read_overview(swathe.open(floats(tmp_path, wide)).image(), ()).samples
    assert samples.std() == pytest.approx(1, abs=0.05)


def test_pixels_and_spectra(tmp_path: Path) -> None:
    cube = np.arange(3 * 4 * 5 * 6, dtype=np.float32).reshape(3, 4, 5, 6)
    image = swathe.open(floats(tmp_path, cube)).image()
    assert read_pixel(image, (2, 3), 5, 1) == cube[2, 3, 1, 5]
    assert np.array_equal(read_spectrum(image, (2, 3), 5, 1), cube[2, :, 1, 5])


@pytest.mark.parametrize(
    ("planes", "tile", "why"),
    [
        ((), (0, 0, 0), "plane: expected one of the shape"),
        ((2,), (0, 0, 0), "plane: expected one of the shape"),
        ((-1,), (0, 0, 0), "plane: expected one of the shape"),
        ((0,), (1, 0, 0), "level: expected 0 to 0, found 1"),
        ((0,), (-1, 0, 0), "level: expected"),
        ((0,), (0, 1, 0), "tile: expected one of 1 x 1 of level 0, found 1, 0"),
    ],
)
def test_what_there_is_not(
    tmp_path: Path, planes: tuple[int, ...], tile: tuple[int, int, int], why: str
) -> None:
    image = swathe.open(floats(tmp_path, np.zeros((2, 5, 6), np.float32))).image()
    with pytest.raises(RegionError, match=why):
        read_tile(image, planes, *tile)


def test_other_images_have_no_tiles(tmp_path: Path) -> None:
    line = swathe.open(floats(tmp_path, np.zeros(5, np.float32))).image()
    with pytest.raises(RegionError, match="has no plane"):
        read_overview(line, ())
    plane = swathe.open(tmp_path / "floats.fits").image()
    with pytest.raises(RegionError):
        read_spectrum(plane, (), 0, 0)


def test_means_of_many_rows_are_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.random.default_rng(3).normal(0, 1, (333, 50))
    expected = pyramid._means(pixels, 4, 3)
    monkeypatch.setattr(pyramid, "MOST_TOGETHER", 1000)
    np.testing.assert_array_equal(pyramid._means(pixels, 4, 3), expected)
    np.testing.assert_allclose(expected, means(pixels.astype(np.float32), 4, 3), atol=1e-6)


def test_huge_values_stay_visible(tmp_path: Path) -> None:
    path = tmp_path / "huge.fits"
    fits.PrimaryHDU(np.array([[1e300, -1e300], [0.0, np.nan]])).writeto(path)
    tile = read_tile(swathe.open(path).image(), (), 0, 0, 0)
    assert tile[1, 0] > 3e38 and tile[1, 1] < -3e38 and tile[0, 0] == 0 and np.isnan(tile[0, 1])


def test_an_image_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "declared.fits"
    header = fits.PrimaryHDU(np.zeros((1, 1), np.int16)).header
    header["NAXIS1"], header["NAXIS2"] = 1_000_000, 1_000_000
    path.write_bytes(header.tostring().encode())
    with pytest.raises(RegionError, match="whose picture needs at most"):
        read_overview(swathe.open(path).image(), ())
