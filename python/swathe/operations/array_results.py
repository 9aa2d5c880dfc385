"""Make results of arrays: the elements that the engine cut, and what belongs to them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swathe.core.errors import LimitError, NoSuchArrayError
from swathe.core.row_record import other_side, plane_spans
from swathe.files.array_cutout import cut_region
from swathe.files.array_file import ArrayFile
from swathe.files.array_region import region_of
from swathe.files.array_sides import join_sides
from swathe.files.file import open_any
from swathe.files.targets.hdus import is_array_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from swathe.core.box import Mode
    from swathe.core.row_record import RowRecord
    from swathe.core.row_table import RowTable
    from swathe.files.array import Array
    from swathe.files.array_cutout import ArrayCutout
    from swathe.files.array_region import ArrayRegion

FITS_SUFFIX = ".fits"
"""Suffix of such results of files that have no arrays."""


def is_of_array(row: RowRecord) -> bool:
    """Check whether a row is a region of an array, not of an image of FITS."""
    return is_array_path(row.hdu)


def are_npy_of_arrays(file_format: str, rows: RowTable) -> bool:
    """Check whether all results are `.npy` of arrays: the engine writes these in their final form.

    Args:
        file_format: format of the results.
        rows: their rows. The engine does not join the two sides of a grid.
    """
    return (
        file_format == "npy"
        and all(map(is_array_path, rows.hdu.few().values))
        and not any(map(other_side, rows.planes.few().values))
    )


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
        if array.is_refused:
            return None
        if other_side(row.planes):
            return ""  # both ends of the rows of a grid: nothing that a user must know
        if array.is_native:
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
        regions = self._regions(row, self._array(row))
        return sum(math.prod(region.shape) for region in regions)

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
        region, *others = self._regions(row, array)
        inside = region.within(array.shape)
        elements: NDArray[Any] | None = None
        if cut is not None and version == array.version and not others:
            import numpy as np

            if name.suffix == ".npy":
                return cut.read_bytes()
            if self.fill is not None or inside.shape == region.shape:
                elements = np.load(cut, allow_pickle=False)
        region_cut = cut_region(self._file, array, region, elements=elements)
        if others and array.plane is not None:
            after = cut_region(self._file, array, others[0])
            region_cut = join_sides(region_cut, after, array.plane[1])
        return self.convert(region_cut, name, self.should_stop)

    def _array(self, row: RowRecord) -> Array:
        if self._file is None or self._source != row.source:
            file = open_any(row.source)
            if not isinstance(file, ArrayFile):
                raise NoSuchArrayError(f"{row.source}: expected a file of arrays, found FITS")
            self._file, self._source = file, row.source
        return self._file.array(row.hdu)

    def _regions(self, row: RowRecord, array: Array) -> list[ArrayRegion]:
        """Return the region of a row; two of one that goes over the edge of a global grid."""
        plane = array.plane or ()
        others = [axis for axis in reversed(range(array.ndim)) if axis not in plane]
        ranges = dict(zip(others, plane_spans(row.planes), strict=False))
        boxes = [row.box]
        if row.box is not None and (after := other_side(row.planes)):
            x0, y0, width, height = row.box
            boxes = [(x0, y0, width - after, height), (0, y0, after, height)]
        regions = [region_of(array, box=box, ranges=ranges, mode=self.mode) for box in boxes]
        size = array.dtype.itemsize * sum(math.prod(region.shape) for region in regions)
        if self.most_bytes is not None and size > self.most_bytes:
            raise LimitError(
                f"{array.url}, array {array.path}: expected a region of up to "
                f"{self.most_bytes:,} bytes, found {size:,}"
            )
        return regions
