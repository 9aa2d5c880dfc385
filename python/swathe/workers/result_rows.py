"""Single rows of a batch: the grid of a combined result, and a row that ended without a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.operations.grid import Grid
from swathe.stores.registry import with_store_names

if TYPE_CHECKING:
    from swathe.core.row_record import RowRecord, RowStatus


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
