"""Pictures of results."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from swathe.core.errors import FormatError, LimitError, RegionError
from swathe.jobs import Result
from swathe.portal import pictures
from swathe.portal.pictures import MOST_PIXELS, PixelBudget, preview


def result(path: Path) -> Result:
    size = path.stat().st_size
    return Result(str(path), path.name, size, "", "", "", lambda: path.open("rb"))


def png(path: Path, width: int, height: int) -> Result:
    """A picture that says how large it is, and ends."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + b"IDAT" + bytes(4))
    return result(path)


@pytest.mark.parametrize("width", [8_200, 10_000, 20_000])
def test_pictures_that_are_too_large_are_refused_as_images_are(tmp_path: Path, width: int) -> None:
    with pytest.raises(RegionError, match=rf"a\.png: expected an image of .* {MOST_PIXELS} pixels"):
        preview(png(tmp_path / "a.png", width, width), "asinh", None, None, 64)


@pytest.fixture(params=["npy", "png", "fits"])
def shown(tmp_path: Path, request: pytest.FixtureRequest) -> Result:
    path = tmp_path / f"a.{request.param}"
    data = np.arange(600, dtype="u1").reshape(20, 30)
    if request.param == "npy":
        np.save(path, data)
    elif request.param == "png":
        Image.fromarray(data).save(path)
    else:
        from astropy.io import fits

        fits.writeto(path, data)
    return result(path)


def test_pixels_read_at_once_are_bounded(shown: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "WAIT_S", 0.01)
    monkeypatch.setattr(pictures, "room", PixelBudget(1_000))
    for _ in range(2):
        with pictures.room.reserve(401, "another"), pytest.raises(LimitError, match=r"a\.\w+: too"):
            preview(shown, "asinh", None, None, 16)
        with Image.open(io.BytesIO(preview(shown, "asinh", None, None, 30))) as picture:
            assert picture.size == (30, 20)


def test_arrays_that_end_too_soon(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((20, 30)))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(FormatError, match=r"a\.npy: cannot be read"):
        preview(result(path), "asinh", None, None, 16)
