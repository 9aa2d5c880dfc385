"""Rows of granules: each is read whole, and its pixels wait in a file for the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import SwatheError
from swathe.core.row_record import fault_of
from swathe.jobs.archives import input_of
from swathe.stores.results import move
from swathe.workers.result_rows import end_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from swathe.core.row_record import RowRecord
    from swathe.core.row_table import RowTable
    from swathe.operations.operation import ReducingOperation
    from swathe.workers.batch import Batch


def read_granules(
    rows: RowTable,
    reducing: ReducingOperation,
    batch: Batch,
    folder: Path,
    aside: Path,
    should_stop: Callable[[], bool],
) -> Iterator[RowRecord]:
    """Read granules one at a time, and yield their rows as they end.

    Args:
        rows: rows of granules.
        reducing: operation of the job.
        batch: batch of the rows.
        folder: local folder of the job's results.
        aside: folder of this batch.
        should_stop: function that returns whether to stop.

    Raises:
        OSError: If the pixels cannot be written.
    """
    for row in rows:
        if should_stop():
            return
        new = aside / f"{row.number}.npy"
        try:
            reducing.read_granule(row.source, row.hdu, batch.options.own, new, batch.cutout_bytes)
        except SwatheError as error:
            yield end_row(row, *fault_of(error))
            continue
        move(str(new), str(input_of(folder, row.number)), str(folder))
        yield row._replace(status="ok", reason="", bytes=0, sha256="")
