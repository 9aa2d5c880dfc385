"""Make results of arrays: the elements that the engine cut, and what belongs to them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swathe.core.errors import LimitError, NoSuchArrayError
from swathe.files.array_cutout import cut_region
from swathe.files.array_file import ArrayFile
from swathe.files.array_region import region_of
from swathe.files.file import open_any
from swathe.files.targets.hdus import is_array_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from swathe.core.box import Mode
    from swathe.core.row_record import RowRecord
    from swathe.core.row_table import DictColumn
    from swathe.files.array import Array
    from swathe.files.array_cutout import ArrayCutout
    from swathe.files.array_region import ArrayRegion

FITS_SUFFIX = ".fits"
"""Suffix of such results of files that have no arrays."""


def is_of_array(row: RowRecord) -> bool:
    """Check whether a row is a region of an array, not of an image of FITS."""
    return is_array_path(row.hdu)


def are_npy_of_arrays(file_format: str, hdus: DictColumn[Any]) -> bool:
    """Check whether all results are `.npy` of arrays: the engine writes these in their final form.

    Args:
        file_format: format of the results.
        hdus: HDU or array of each.
    """
    return file_format == "npy" and all(map(is_array_path, hdus.few().values))


@dataclass
class ArrayResults:
    """Results of arrays, each like `swathe.cut` of its region.

    Attributes:
        convert: function that returns the content of a result of a cut, by the name of the result
            and a function that returns whether to stop.
        should_stop: that function.
        mode: `trim`, `partial` or `strict`.
        fill: physical value of elements outside of the arrays, as the engine was told.
        most_bytes: largest size of the elements of one result in bytes; `None`: any.
    """

    convert: Callable[[ArrayCutout, Path, Callable[[], bool]], bytes]
    should_stop: Callable[[], bool]
    mode: Mode
    fill: float | None
    most_bytes: int | None = None
    _file: ArrayFile | None = field(default=None, init=False)
    _source: str = field(default="", init=False)

    def why_apart(self, row: RowRecord) -> str | None:
        """Return why the engine does not cut a row that can be read otherwise; else `None`.

        Raises:
            SwatheError: If the file or its array cannot be opened.
        """
        array = self._array(row)
        if array.is_native or array.is_refused:
            return None
        return f"read by the library: {array.problem}" if array.problem else "read from the index"

    def version(self, row: RowRecord) -> str:
        """Return the version of the file of a row."""
        return self._array(row).version

    def elements(self, row: RowRecord) -> int:
        """Return the number of elements of a result.

        Raises:
            SwatheError: If the region is not within the array, or too large.
        """
        return math.prod(self._region(row, self._array(row)).shape)

    def content(self, row: RowRecord, cut: Path | None, version: str, name: Path) -> bytes:
        """Return a result, in the format of the suffix of `name`.

        Args:
            row: the row, with its box.
            cut: elements that the engine cut, as `.npy`; `None` to read them here.
            version: version of the file that the engine read.
            name: name of the result.

        Raises:
            LimitError: If it has more than `most_bytes`.
            Interruption: If the work was stopped.
            SwatheError: If it cannot be read, or the format cannot hold it.
        """
        array = self._array(row)
        assert self._file is not None
        region = self._region(row, array)
        inside = region.within(array.shape)
        elements: NDArray[Any] | None = None
        if cut is not None and version == array.version:
            import numpy as np

            if name.suffix == ".npy":
                return cut.read_bytes()
            if self.fill is not None or inside.shape == region.shape:
                elements = np.load(cut, allow_pickle=False)
        region_cut = cut_region(self._file, array, region, elements=elements)
        return self.convert(region_cut, name, self.should_stop)

    def _array(self, row: RowRecord) -> Array:
        if self._file is None or self._source != row.source:
            file = open_any(row.source)
            if not isinstance(file, ArrayFile):
                raise NoSuchArrayError(f"{row.source}: expected a file of arrays, found FITS")
            self._file, self._source = file, row.source
        return self._file.array(row.hdu)

    def _region(self, row: RowRecord, array: Array) -> ArrayRegion:
        plane = array.plane or ()
        others = [axis for axis in reversed(range(array.ndim)) if axis not in plane]
        spans = row.planes or ()
        ranges = dict(zip(others, zip(spans[::2], spans[1::2], strict=True), strict=False))
        region = region_of(array, box=row.box, ranges=ranges, mode=self.mode)
        size = array.dtype.itemsize * math.prod(region.shape)
        if self.most_bytes is not None and size > self.most_bytes:
            raise LimitError(
                f"{array.url}, array {array.path}: expected a region of up to "
                f"{self.most_bytes:,} bytes, found {size:,}"
            )
        return region
