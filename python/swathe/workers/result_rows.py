"""Single rows of a batch: grid and size of a result, and a row that ended without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import RegionError
from swathe.operations.grid import Grid
from swathe.stores.registry import with_store_names

if TYPE_CHECKING:
    from swathe.core.row_record import RowRecord, RowStatus
    from swathe.operations.operation import ResultFormat


def grid_of(row: RowRecord) -> Grid | None:
    """Return the grid of a combined result; `None` if its size is not known."""
    if row.box is None or row.sky is None:
        return None
    ra, dec, size = row.sky
    return Grid(ra, dec, row.box[2], size / row.box[2])


def end_row(row: RowRecord, status: RowStatus, reason: str) -> RowRecord:
    """Return a row that ended without a result."""
    text = with_store_names(reason)
    return row._replace(status=status, reason=text, bytes=0, sha256="")


def check_size(pixels: int, file_format: ResultFormat, most_bytes: int | None) -> None:
    """Check that a result of this many pixels fits into four times the largest cutout.

    Raises:
        RegionError: If it does not.
    """
    pixel_bytes = file_format.memory_per_pixel
    if most_bytes is not None and pixels * pixel_bytes > 4 * most_bytes:
        raise RegionError(
            f"{file_format.noun} of {pixels:,} pixels: expected up to "
            f"{4 * most_bytes // pixel_bytes:,}, by limits.cutout_mb"
        )
