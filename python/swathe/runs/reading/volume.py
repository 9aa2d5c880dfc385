"""Reduce a dump to a volume of bytes for pictures: the means of blocks of its cells.

The dump is read in sections of bounded size, whatever its own. Bytes of type `u1` stay as they are;
other values are scaled so that the least is 1 and the largest 255, and 0 is where there is none.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import LimitError, RegionError
from swathe.files.variable import SCALING, Variable, number_of, physical_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from swathe.runs.reading.stored_array import StoredDump

MOST_SIZE = 128
"""Largest number of voxels along an axis of a volume."""
MOST_PLANE_SIZE = 1024
"""Largest number of pixels along an axis of a plane."""
SECTION_CELLS = 1 << 22
"""Cells read at a time: 32 MiB at 64 bits each."""
MOST_CELLS = 1 << 30
"""Cells of the region of one volume: 1024 along each axis."""
MOST_S = 60.0
"""Time for the sections of one volume, seconds."""
BLANK = 0
"""Byte of a voxel without a value, except in volumes of bytes."""
RANGE = re.compile(r"\s*+(\d{1,18}+)?+\s*+:\s*+(\d{1,18}+)?+\s*+")
FILLS = ("_FillValue", "missing_value", "valid_min", "valid_max", "valid_range")

Region = tuple[slice, ...]


@dataclass(frozen=True)
class Volume:
    """A region of a dump, reduced to bytes. The value of a byte is `offset + scale * byte`.

    Attributes:
        voxels: the bytes, slowest axis first.
        region: the cells of each axis that they are of.
        block: number of cells of a voxel along each axis; the last voxel may have fewer.
        dims: names of the axes.
        offset, scale: the value of byte 0, and that of one step.
        low, high: least and largest value; NaN if there is none.
        has_blank: whether byte 0 is no value.
        units: unit of the values; empty if it is not known.
    """

    voxels: NDArray[np.uint8]
    region: Region
    block: tuple[int, ...]
    dims: tuple[str, ...]
    offset: float
    scale: float
    low: float
    high: float
    has_blank: bool
    units: str


def parse_region(text: str, shape: Sequence[int]) -> Region:
    """Return the region of a text such as `0:64,:,16:`: a range of cells of each axis.

    Args:
        text: the ranges, slowest axis first; empty for the whole array.
        shape: shape of the array.

    Raises:
        RegionError: If it is none within the array.
    """
    parts = text.split(",") if text.strip() else [":"] * len(shape)
    matches = [RANGE.fullmatch(part) for part in parts]
    ranges = [
        slice(int(match[1] or 0), int(match[2]) if match[2] else length)
        for match, length in zip(matches, shape, strict=False)
        if match
    ]
    is_inside = all(
        each.start < each.stop <= length for each, length in zip(ranges, shape, strict=False)
    )
    if not len(parts) == len(ranges) == len(shape) or not is_inside:
        raise RegionError(
            f"region: expected first:last of {len(shape)} axes within {tuple(shape)}, "
            f"found {text!r:.80}"
        )
    return tuple(ranges)


def check_volume(shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Check that an array can be shown as a volume.

    Raises:
        RegionError: If it has no three axes, or no elements that are real numbers.
    """
    if len(shape) != 3 or dtype.kind not in "biuf":
        raise RegionError(
            f"expected an array of real numbers with three axes, found {dtype}, {tuple(shape)}"
        )


def read_volume(
    dump: StoredDump,
    region: Region,
    size: int = MOST_SIZE,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Volume:
    """Read a region of a dump, reduced to at most `size` voxels along each axis.

    Each voxel is the mean of a block of cells, of those that have a value.

    Args:
        dump: a dump of three axes.
        region: the range of each axis, within the dump.
        size: largest length of an axis of the volume.
        is_cancelled: returns whether nobody waits for the volume any more.

    Raises:
        RegionError: If the dump is none of real numbers with three axes.
        LimitError: If the region has more than 2^30 cells, or reading takes longer than 60 s.
        NotFoundError, AccessError, SourceError, FormatError: If it cannot be read.
    """
    check_volume(dump.shape, dump.dtype)
    lengths = [each.stop - each.start for each in region]
    if math.prod(lengths) > MOST_CELLS:
        raise LimitError(
            f"region: expected at most {MOST_CELLS} cells, found {math.prod(lengths)}; choose a "
            "part of the array"
        )
    block = tuple(-(-length // size) for length in lengths)
    shape = tuple(-(-length // step) for length, step in zip(lengths, block, strict=True))
    attrs = dump.attrs
    is_plain = dump.dtype == np.uint8
    means = np.empty(shape, np.uint8 if is_plain else np.float64)
    end_s = time.monotonic() + MOST_S
    for part in sections(shape, block):
        if is_cancelled() or time.monotonic() > end_s:
            raise LimitError(
                f"reading the region took longer than {MOST_S:.0f} s; choose a smaller one"
            )
        cells = tuple(
            slice(each.start + first * step, min(each.start + last * step, each.stop))
            for each, step, (first, last) in zip(region, block, part, strict=True)
        )
        values = dump[cells]
        if not is_plain and any(name in attrs for name in (*SCALING, *FILLS)):
            values = physical_values(Variable(values, (), attrs))
        target = means[tuple(slice(*each) for each in part)]
        part_means = block_means(values, block)
        target[...] = np.rint(part_means) if is_plain else part_means
    dims = dump.dims or tuple(f"axis {axis}" for axis in range(3))
    units = str(attrs.get("units", ""))[:100]
    if is_plain:
        scale, offset = (
            float(number_of(attrs.get(name, 1 - at))) for at, name in enumerate(SCALING)
        )
        low, high = (offset + scale * float(each) for each in (means.min(), means.max()))
        return Volume(means, region, block, dims, offset, scale, low, high, False, units)
    voxels, offset, scale, low, high = scale_to_bytes(means)
    return Volume(voxels, region, block, dims, offset, scale, low, high, True, units)


def sections(shape: Sequence[int], block: Sequence[int]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the parts of a volume in which it is read, as the first and last voxel of each axis.

    Args:
        shape: shape of the volume.
        block: cells of a voxel along each axis; a part has at most 2^22 cells, or one voxel.
    """
    lengths = list(shape)
    while math.prod(lengths) * math.prod(block) > SECTION_CELLS and max(lengths) > 1:
        # Parts like cubes touch the least chunks, and halves begin where chunks do.
        cells = [
            length * step if length > 1 else 0 for length, step in zip(lengths, block, strict=True)
        ]
        axis = cells.index(max(cells))
        lengths[axis] = -(-lengths[axis] // 2)
    yield from product(
        *(
            [(at, min(at + step, length)) for at in range(0, length, step)]
            for step, length in zip(lengths, shape, strict=True)
        )
    )


def block_means(values: NDArray[Any], block: Sequence[int]) -> NDArray[Any]:
    """Return the means of blocks of cells, of those that are finite; NaN if none is.

    Args:
        values: the cells.
        block: cells of a block along each axis; the last block of an axis may have fewer.
    """
    if all(step == 1 for step in block):
        return np.where(np.isfinite(values), values, np.nan) if values.dtype.kind == "f" else values
    if values.dtype.kind != "f":
        return _block_sums(values, block) / _block_sums(np.ones(values.shape, bool), block)
    is_finite = np.isfinite(values)
    sums = _block_sums(np.where(is_finite, values, 0), block)
    counts = _block_sums(is_finite, block)
    means: NDArray[np.float64] = np.full(sums.shape, np.nan)
    return np.divide(sums, counts, out=means, where=counts > 0)


def _block_sums(values: NDArray[Any], block: Sequence[int]) -> NDArray[np.float64]:
    for axis in reversed(range(values.ndim)):
        first_cells = np.arange(0, values.shape[axis], block[axis])
        values = np.add.reduceat(values, first_cells, axis, dtype=np.float64)
    return values


def scale_to_bytes(
    values: NDArray[Any],
) -> tuple[NDArray[np.uint8], float, float, float, float]:
    """Return values as bytes from 1 to 255, with offset, scale, least and largest value.

    Values that are not finite are 0.
    """
    is_finite = np.isfinite(values)
    if not is_finite.any():
        return np.zeros(values.shape, np.uint8), math.nan, math.nan, math.nan, math.nan
    low = float(np.min(values, where=is_finite, initial=math.inf))
    high = float(np.max(values, where=is_finite, initial=-math.inf))
    # Half of the range, as the whole may be larger than the largest number.
    half = high / 2 - low / 2
    scale = half / 127 if half > 0 else 1.0
    steps = np.where(is_finite, np.clip(values / scale - low / scale, 0, 254), -1)
    return np.rint(steps + 1).astype(np.uint8), low - scale, scale, low, high
