"""Rows of granules: each is read whole, and its pixels wait in a file for the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.core.errors import ChangedError, SwatheError
from swathe.core.row_record import fault_of
from swathe.workers.result_rows import end_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from swathe.core.row_record import RowRecord
    from swathe.core.row_table import RowTable
    from swathe.operations.operation import ReducingOperation
    from swathe.workers.batch import Batch


def read_granules(
    rows: RowTable,
    operation: ReducingOperation,
    batch: Batch,
    aside: Path,
    count: Callable[[Mapping[str, Any]], None],
    should_stop: Callable[[], bool],
) -> Iterator[tuple[RowRecord, Path | None]]:
    """Read granules one at a time; yield their rows as they end, with the file of their pixels.

    A granule that cannot be read has no file.

    Args:
        rows: rows of granules.
        operation: operation of the job.
        batch: batch of the rows.
        aside: folder of this batch.
        count: function that is called with the traffic of each granule.
        should_stop: function that returns whether to stop.

    Raises:
        OSError: If the pixels cannot be written.
    """
    for row in rows:
        if should_stop():
            return
        new = aside / f"{row.number}.npy"
        try:
            version = operation.read_granule(
                row.source, row.hdu, batch.options.own, new, batch.cutout_bytes, count
            )
            check_version(row, version)
        except SwatheError as error:
            yield end_row(row, *fault_of(error)), None
            continue
        yield row._replace(status="ok", reason="", version=version, bytes=0, sha256=""), new


def check_version(row: RowRecord, version: str) -> None:
    """Check that a granule has the version that its row asks for, if it asks for one.

    Raises:
        ChangedError: If it has another one.
    """
    if row.granule is not None and row.granule.version not in ("", version):
        raise ChangedError(f"{row.source}: {another_version(row.granule.version, version)}")


def another_version(requirement: str, version: str) -> str:
    """Return what an error says of a granule that has another version than it must have."""
    return f"expected version {requirement}, found {version}: it was replaced"
