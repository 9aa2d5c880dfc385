"""Cuts: the same pixels and headers as those of `swathe.cut`."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from numpy.typing import NDArray

import swathe
from tests.capi.test_reading import fails
from tests.support.c_library import Image, Library
from tests.support.fits_frames import contents, noise, sky_header
from tests.support.servers import FileServer

TRIM, PARTIAL, STRICT, REPLACE = 0, 1, 2, 16


def numbers(*values: int) -> Any:
    return (ctypes.c_int64 * 4)(*values)


def pixels(
    library: Library, handle: int, box: Any, hdu: str | None = None, mode: int = TRIM
) -> tuple[Image, NDArray[Any]]:
    """Cut into memory; gives the description, and the pixels in the order of NumPy."""
    image = Image()
    count = library.call("cut_pixels", handle, hdu, box, mode, image, None, 0)
    buffer = ctypes.create_string_buffer(count)
    image = Image()
    assert library.call("cut_pixels", handle, hdu, box, mode, image, buffer, count) == count
    kind = f"{'f' if image.bitpix < 0 else 'u' if image.bitpix == 8 else 'i'}"
    kind += str(abs(image.bitpix) // 8)
    shape = tuple(image.shape[: image.axes])[::-1]
    return image, np.frombuffer(buffer.raw, kind).reshape(shape)


@pytest.fixture
def frame(tmp_path: Path) -> Path:
    """An image of 400 x 300 unsigned numbers."""
    path = tmp_path / "frame.fits"
    path.write_bytes(contents(noise(1), "fits", sky_header()))
    return path


@pytest.fixture
def handle(library: Library, frame: Path) -> Iterator[int]:
    handle = library.open(frame)
    yield handle
    library.close(handle)


def test_a_file_that_became_shorter_is_named(library: Library, frame: Path, tmp_path: Path) -> None:
    """Cuts say it as reads do: what was expected, what was found, and that the file changed."""
    handle, box = library.open(frame), numbers(30, 250, 50, 40)
    library.call("cut_pixels", handle, None, box, TRIM, None, None, 0)  # reads the headers
    os.truncate(frame, 4 * 2880)
    text = fails(library, errno.ESTALE, "cut", handle, None, box, TRIM, tmp_path / "cut.fits")
    assert "expected" in text
    assert "found" in text
    assert text.endswith("it changed since it was opened")
    assert not (tmp_path / "cut.fits").exists()
    library.close(handle)


def test_a_cut_is_that_of_python(
    library: Library, handle: int, frame: Path, tmp_path: Path
) -> None:
    output = tmp_path / "cutout.fits"
    library.call("cut", handle, None, numbers(30, 40, 50, 60), TRIM, output)
    with fits.open(output) as ours, fits.open(frame) as whole:
        np.testing.assert_array_equal(ours[0].data, whole[0].data[40:100, 30:80])
    theirs = swathe.cut(str(frame), box=(30, 40, 50, 60))
    assert output.read_bytes() == theirs.to_bytes()


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "i8", "f4", "f8", "u2"])
def test_pixels_are_in_the_order_of_this_machine(
    library: Library, tmp_path: Path, dtype: str
) -> None:
    data = (np.random.default_rng(3).random((90, 70)) * 120).astype(dtype)
    fits.PrimaryHDU(data).writeto(tmp_path / "a.fits")
    handle = library.open(tmp_path / "a.fits")
    image, values = pixels(library, handle, numbers(3, 4, 20, 10))
    library.close(handle)
    assert list(image.start[:2]) == [3, 4]
    physical = image.bzero + image.bscale * values
    np.testing.assert_array_equal(physical, data[4:14, 3:23])


@pytest.mark.parametrize("kind", ["fits.gz", "fits.fz"])
def test_images_that_are_compressed(library: Library, tmp_path: Path, kind: str) -> None:
    data = noise(1).astype("i2")
    path = tmp_path / f"a.{kind}"
    if kind == "fits.fz":
        fits.CompImageHDU(data).writeto(path)
    else:
        fits.PrimaryHDU(data).writeto(path)
    handle = library.open(path)
    _, values = pixels(library, handle, numbers(100, 50, 30, 20))
    library.close(handle)
    np.testing.assert_array_equal(values, data[50:70, 100:130])


def test_hdus_and_planes(library: Library, tmp_path: Path) -> None:
    cube = np.arange(3 * 20 * 30, dtype="f4").reshape(3, 20, 30)
    hdus = [fits.PrimaryHDU(), fits.ImageHDU(cube, name="SCI", ver=2)]
    fits.HDUList([*hdus, fits.ImageHDU(np.zeros(9, "i2"))]).writeto(tmp_path / "a.fits")
    handle = library.open(tmp_path / "a.fits")
    box = numbers(1, 2, 4, 5)
    for hdu in (None, "1", "sci", "SCI,2"):
        image, values = pixels(library, handle, box, hdu)
        assert list(image.shape[: image.axes]) == [4, 5, 3]
        np.testing.assert_array_equal(values, cube[:, 2:7, 1:5])
    buffer = ctypes.create_string_buffer(1000)
    for number, hdu in (
        (errno.ENXIO, "9"), (errno.ENXIO, "ERR"), (errno.EBADMSG, "0"), (errno.EINVAL, "2"),
        (errno.EINVAL, "SCI,x"),
    ):  # fmt: skip
        fails(library, number, "cut_pixels", handle, hdu, box, TRIM, None, buffer, 1000)
    library.close(handle)


def test_boxes_at_the_edge(library: Library, handle: int, frame: Path) -> None:
    edge = numbers(-10, -20, 30, 40)
    image, values = pixels(library, handle, edge, mode=TRIM)
    assert (list(image.start[:2]), values.shape) == ([0, 0], (20, 20))
    image, values = pixels(library, handle, edge, mode=PARTIAL)
    assert (list(image.start[:2]), values.shape) == ([-10, -20], (40, 30))
    stored = fits.getdata(frame)[:20, :20].astype(float)
    np.testing.assert_array_equal(image.bzero + image.bscale * values[20:, 10:], stored)
    arguments = (None, None, 0)
    fails(library, errno.EDOM, "cut_pixels", handle, None, edge, STRICT, *arguments)
    outside = numbers(4000, 0, 5, 5)
    fails(library, errno.EDOM, "cut_pixels", handle, None, outside, TRIM, *arguments)
    for box in (numbers(0, 0, 0, 5), numbers(0, 0, 5, -1), numbers(2**63 - 1, 0, 5, 5)):
        fails(library, errno.EINVAL, "cut_pixels", handle, None, box, TRIM, *arguments)
    fails(library, errno.EINVAL, "cut_pixels", handle, None, edge, 7, *arguments)
    fails(library, errno.EINVAL, "cut_pixels", handle, None, edge, REPLACE, *arguments)
    fails(library, errno.EFAULT, "cut_pixels", handle, None, None, TRIM, *arguments)


def test_memory_that_is_too_small(library: Library, handle: int) -> None:
    image, buffer = Image(), ctypes.create_string_buffer(100)
    box = numbers(0, 0, 10, 10)
    fails(library, errno.ERANGE, "cut_pixels", handle, None, box, TRIM, image, buffer, 100)
    assert image.bytes == 200
    assert buffer.raw == bytes(100), "nothing was written"


def test_outputs_are_not_replaced_unasked(
    library: Library, handle: int, frame: Path, tmp_path: Path
) -> None:
    box, output = numbers(0, 0, 9, 9), tmp_path / "cutout.fits"
    output.write_bytes(b"before")
    fails(library, errno.EEXIST, "cut", handle, None, box, TRIM, output)
    assert output.read_bytes() == b"before"
    library.call("cut", handle, None, box, TRIM | REPLACE, output)
    assert fits.getdata(output).shape == (9, 9)
    whole = frame.read_bytes()
    fails(library, errno.EINVAL, "cut", handle, None, box, TRIM | REPLACE, frame)
    assert frame.read_bytes() == whole
    fails(library, errno.EFAULT, "cut", handle, None, box, TRIM, None)


def test_what_is_no_image(library: Library, tmp_path: Path) -> None:
    buffer = ctypes.create_string_buffer(100)
    for name, data in (("empty", b""), ("text", b"no card" * 1000)):
        (tmp_path / name).write_bytes(data)
        handle = library.open(tmp_path / name)
        arguments = (handle, None, numbers(0, 0, 1, 1), TRIM, None, buffer, 100)
        fails(library, errno.EBADMSG, "cut_pixels", *arguments)
        library.close(handle)
    handle = library.open(tmp_path / "new", os.O_WRONLY | os.O_CREAT)
    fails(library, errno.EBADF, "cut", handle, None, numbers(0, 0, 1, 1), TRIM, tmp_path / "x")
    library.close(handle)


def test_the_headers_of_an_object_are_read_once(
    library: Library, server: FileServer, frame: Path
) -> None:
    (server.folder / "frame.fits").write_bytes(frame.read_bytes())
    handle = library.open(f"{server.url}/frame.fits")
    box = numbers(10, 10, 4, 1)
    buffer = ctypes.create_string_buffer(8)
    for _ in range(3):
        library.call("cut_pixels", handle, None, box, TRIM, None, buffer, 8)
    library.close(handle)
    expected = fits.getdata(frame)[10, 10:14].astype(int)
    assert list(np.frombuffer(buffer.raw, "i2").astype(int) + 32768) == list(expected)
    assert len(server.requests()) <= 5
