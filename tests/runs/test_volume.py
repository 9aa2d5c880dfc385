"""Volumes of bytes: means of blocks, read in sections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from swathe.core.errors import LimitError, RegionError
from swathe.runs.reading import volume
from swathe.runs.reading.volume import Volume, parse_region, read_volume


class Dump:
    """A dump in memory that notes the number of cells of each section."""

    def __init__(self, values: np.ndarray, **attrs: Any) -> None:
        self.values, self.attrs = values, attrs
        self.shape, self.dtype, self.dims = values.shape, values.dtype, ("z", "y", "x")
        self.cells: list[int] = []

    def __getitem__(self, index: Any) -> np.ndarray:
        part: np.ndarray = self.values[index]
        self.cells.append(part.size)
        return part


def volume_of(dump: Dump, size: int = 128, region: str = "", **settings: Any) -> Volume:
    dump_of_run: Any = dump
    return read_volume(dump_of_run, parse_region(region, dump.shape), size, **settings)


def physical(of: Volume) -> np.ndarray:
    """Return the values that bytes stand for."""
    values = of.offset + of.scale * of.voxels.astype(float)
    return np.where(of.voxels == 0, np.nan, values) if of.has_blank else values


def test_bytes_stay_as_they_are() -> None:
    values = np.random.default_rng(1).integers(0, 256, (5, 6, 7), "u1")
    found = volume_of(Dump(values))
    np.testing.assert_array_equal(found.voxels, values)
    assert (found.offset, found.scale, found.block) == (0, 1, (1, 1, 1))
    scaled = volume_of(Dump(values, scale_factor=0.5, add_offset=10.0, units="K"))
    np.testing.assert_array_equal(scaled.voxels, values)
    assert (scaled.offset, scaled.scale, scaled.units) == (10, 0.5, "K")
    assert scaled.high == 10 + 0.5 * values.max()


@pytest.mark.parametrize("dtype", ["u1", "<i2", ">f4", "f8", "?"])
@pytest.mark.parametrize("section", [1, 100, 1 << 22])
def test_a_voxel_is_the_mean_of_its_block(
    dtype: str, section: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume, "SECTION_CELLS", section)
    values = (np.random.default_rng(2).random((9, 20, 13)) * 250).astype(dtype)
    dump = Dump(values)
    found = volume_of(dump, 4, "1:9,:,2:")
    assert found.voxels.shape == (4, 4, 4) and found.block == (2, 5, 3)
    assert sum(dump.cells) == 8 * 20 * 11 and max(dump.cells) <= max(section, 2 * 5 * 3)
    expected = np.array(
        [
            [[values[1:][z : z + 2, y : y + 5, x : x + 3].mean() for x in range(2, 13, 3)]
             for y in range(0, 20, 5)]
            for z in range(0, 8, 2)
        ]
    )  # fmt: skip
    np.testing.assert_allclose(physical(found), expected, rtol=0, atol=found.scale * 0.5001)
    if dtype != "u1":
        assert (found.low, found.high) == pytest.approx((expected.min(), expected.max()))


def test_cells_without_a_value_are_left_out() -> None:
    values = np.arange(64.0).reshape(4, 4, 4)
    values[0, 0, 0], values[0, 0, 1] = np.nan, np.inf
    values[2:, 2:, 2:] = np.nan
    found = volume_of(Dump(values), 2)
    block = values[:2, :2, :2].ravel()
    expected = block[np.isfinite(block)].mean()
    assert physical(found)[0, 0, 0] == pytest.approx(expected, abs=found.scale / 2)
    assert found.voxels[1, 1, 1] == 0 and (found.voxels != 0).sum() == 7
    fill = Dump(np.array([[[-9, 1], [2, 3]]], "i2"), _FillValue=np.int16(-9), scale_factor=2.0)
    filled = volume_of(fill)
    numbers = np.array([[[np.nan, 2.0], [4.0, 6.0]]])
    np.testing.assert_allclose(physical(filled), numbers, rtol=0, atol=filled.scale / 2)
    empty = volume_of(Dump(np.full((2, 2, 2), np.nan)))
    assert not empty.voxels.any() and np.isnan(empty.low)


def test_any_range_of_values_is_scaled() -> None:
    largest = np.finfo("f8").max
    found = volume_of(Dump(np.array([[[-largest, 0, largest]]])))
    assert found.voxels.ravel().tolist() == [1, 128, 255]
    flat = volume_of(Dump(np.full((2, 2, 2), 7.0)))
    assert set(physical(flat).ravel()) == {7.0}


@pytest.mark.parametrize("text", ["0:5", "0:5,:,:,:", "4:4,:,:", "0:10,:,:", "a,b,c", "-1:2,:,:"])
def test_a_region_outside_is_refused(text: str) -> None:
    with pytest.raises(RegionError, match="region: expected first:last of 3 axes"):
        parse_region(text, (9, 9, 9))


def test_what_is_too_much_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for values in (np.zeros((4, 4)), np.zeros((4, 4, 4), "c8")):
        with pytest.raises(RegionError, match="real numbers with three axes"):
            volume_of(Dump(values))
    large = Dump(np.lib.stride_tricks.as_strided(np.zeros(1, "u1"), (2048, 1024, 1024), (0, 0, 0)))
    with pytest.raises(LimitError, match="choose a part"):
        volume_of(large)
    assert not large.cells
    with pytest.raises(LimitError, match="took longer"):
        volume_of(Dump(np.zeros((4, 4, 4))), is_cancelled=lambda: True)
