"""What was decoded stays in memory: decoded once, and never given for another file."""

from __future__ import annotations

import contextlib
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from tests.support.fits_frames import KINDS, contents, noise, swathe_command

PACKED = KINDS[1:]
LARGE = (900, 1000)
"""More than an open file holds of its stream."""
OLD_S = 60
"""A file that was changed just now is not kept."""


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWATHE_MEMORY_BYTES", str(64 << 20))


def age(path: Path) -> None:
    """Give a file a date in the past, the same each time."""
    past = time.time() // 1000 * 1000 - OLD_S
    os.utime(path, (past, past))


def damage(path: Path) -> None:
    """Overwrite what is packed in a file in place, without a trace in its date or size."""
    with path.open("r+b") as file:
        size = path.stat().st_size
        file.seek(size // 3)
        file.write(os.urandom(size // 2))
    age(path)


@pytest.mark.parametrize("kind", KINDS)
def test_pixels_are_right_however_often_they_are_cut(kind: str, tmp_path: Path) -> None:
    data = noise(4, (500, 700))
    path = tmp_path / f"a.{kind}"
    path.write_bytes(contents(data, kind))
    age(path)
    rng = random.Random(1)
    for _ in range(60):
        x0, y0 = rng.randrange(650), rng.randrange(450)
        width, height = rng.randrange(1, 700 - x0), rng.randrange(1, 500 - y0)
        cut = swathe.cut(path, box=(x0, y0, width, height))
        np.testing.assert_array_equal(cut.data, data[y0 : y0 + height, x0 : x0 + width])


@pytest.mark.parametrize("kind", PACKED)
def test_what_is_kept_is_not_decoded_again(kind: str, tmp_path: Path) -> None:
    data = noise(5, LARGE)
    path = tmp_path / f"a.{kind}"
    path.write_bytes(contents(data, kind))
    age(path)
    before = swathe.cut(path, box=(0, 100, 400, 750))
    damage(path)
    if kind != "fit.fz":  # of tiles, the table of where they lie is read again
        again = swathe.cut(path, box=(30, 120, 50, 40))
        np.testing.assert_array_equal(again.data, before.data[20:60, 30:80])


@pytest.mark.parametrize("kind", PACKED)
def test_limit_of_zero_keeps_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWATHE_MEMORY_BYTES", "0")
    path = tmp_path / f"a.{kind}"
    path.write_bytes(contents(noise(6, LARGE), kind))
    age(path)
    before = swathe.cut(path, box=(0, 100, 400, 750)).data
    damage(path)
    with contextlib.suppress(swathe.errors.FormatError):  # not all damage shows but in the pixels
        again = swathe.cut(path, box=(0, 250, 400, 400)).data
        assert not np.array_equal(again, before[150:550])


@pytest.mark.parametrize("kind", PACKED)
def test_replaced_file_is_read_again(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    for seed in range(5):
        data = noise(seed)
        path.write_bytes(contents(data, kind))
        if seed % 2:  # the others were changed so recently that they may change again
            os.utime(path, (time.time() - OLD_S - seed,) * 2)
        for _ in range(2):
            cut = swathe.cut(path, box=(10, 20, 300, 200))
            np.testing.assert_array_equal(cut.data, data[20:220, 10:310])


def test_what_is_needed_of_a_damaged_tile_is_still_given(tmp_path: Path) -> None:
    data = np.arange(120_000, dtype=np.int32).reshape(300, 400) % 5003
    image = fits.CompImageHDU(data, compression_type="RICE_1", tile_shape=(300, 400))
    path = tmp_path / "a.fits.fz"
    image.writeto(path)
    with fits.open(path, disable_image_compression=True) as hdus:
        at = hdus[1]._data_offset
    with path.open("r+b") as file:  # the tile ends early, says the descriptor in the only row
        file.seek(at)
        length = int.from_bytes(file.read(4))
        file.seek(at)
        file.write((length * 2 // 3).to_bytes(4))
    age(path)
    for _ in range(2):
        cut = swathe.cut(path, box=(0, 0, 400, 40))
        np.testing.assert_array_equal(cut.data, data[:40])
    with pytest.raises(swathe.errors.SwatheError):
        swathe.cut(path, box=(0, 250, 400, 40))


@pytest.mark.more
@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_a_batch_share_what_is_decoded(kind: str, tmp_path: Path) -> None:
    data = noise(7, (900, 1000))
    path = tmp_path / f"a.{kind}"
    path.write_bytes(contents(data, kind))
    age(path)
    rng = np.random.default_rng(2)
    boxes = np.column_stack([rng.integers(0, 940, 700), rng.integers(0, 850, 700)])
    table = tmp_path / "targets.csv"
    rows = [f"{path},{x},{y},60,50" for x, y in boxes]
    table.write_text("\n".join(["file,x0,y0,width,height", *rows]))
    swathe.cut_many(table, tmp_path / "out", threads=4)
    manifest = swathe.cut_many(table, tmp_path / "again", threads=4)
    assert len(manifest) == len(boxes)
    for row, (x, y) in zip(manifest, boxes, strict=True):
        pixels = fits.getdata(tmp_path / "again" / row["path"])
        np.testing.assert_array_equal(pixels, data[y : y + 50, x : x + 60])


def test_wrong_limit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.fit"
    path.write_bytes(contents(noise(9), "fit"))
    done = swathe_command("cut", path, "--box", 0, 0, 9, 9, env={"SWATHE_MEMORY_BYTES": "many"})
    assert done.returncode == 3
    assert "SWATHE_MEMORY_BYTES must be a number of bytes" in done.stderr
