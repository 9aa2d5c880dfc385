"""Small boxes of arrays of local files that are open: one call of native code."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.cutting.one_array import cut_window

h5py = pytest.importorskip("h5py")
BOX = (30, 10, 8, 4)
SHAPE = (60, 80)


def write(path: Path, seed: int) -> np.ndarray:
    """Write an array in chunks in place of another file."""
    values = np.random.default_rng(seed).integers(0, 999, SHAPE, np.int16)
    new = path.with_suffix(".new")
    with h5py.File(new, "w") as file:
        file.create_dataset("a", data=values, chunks=(16, 16), compression="gzip")
    new.rename(path)
    return values


def window(path: Path) -> np.ndarray | None:
    cut = cut_window(str(path), "/a", BOX, "latency")
    return None if cut is None else np.asarray(cut.data)


def test_a_box_of_an_open_array_equals_the_slice(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    values = write(path, 1)
    assert window(path) is None, "nobody has opened it"
    whole = swathe.cut(path, array="/a", box=BOX)
    cut = cut_window(str(path), "/a", BOX, "latency")
    assert cut is not None
    np.testing.assert_array_equal(cut.data, values[10:14, 30:38])
    np.testing.assert_array_equal(cut.data, whole.data)
    assert cut.region == whole.region  # type: ignore[union-attr]


def test_what_is_no_small_box_within_is_cut_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    values = write(path, 1)
    swathe.cut(path, array="/a", box=BOX)
    for box in ((-1, 0, 8, 4), (76, 0, 8, 4), (0, 58, 8, 4), (0, 0, 0, 4), (0.5, 0, 8, 4), None):
        assert cut_window(str(path), "/a", box, "latency") is None, box
    assert cut_window(str(path), "/none", BOX, "latency") is None
    corner = swathe.cut(path, array="/a", box=(72, 56, 8, 4))
    np.testing.assert_array_equal(corner.data, values[56:, 72:])


def test_a_file_that_was_replaced_is_not_cut_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write(path, 1)
    swathe.cut(path, array="/a", box=BOX)
    assert window(path) is not None
    values = write(path, 2)
    assert window(path) is None
    cut = swathe.cut(path, array="/a", box=BOX)
    np.testing.assert_array_equal(cut.data, values[10:14, 30:38])
    # Of the same size, and changed at another time only.
    assert window(path) is not None
    os.utime(path, (1, 1))
    assert window(path) is None
    path.unlink()
    assert window(path) is None
