"""Targets of a job that are granules: files that are read whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import JobError, LimitError, SwatheError, TargetsError
from swathe.core.row_record import fault_of
from swathe.core.row_table import DictColumn, RowTable
from swathe.files.targets.bounds import BOUNDS
from swathe.files.targets.columns import BOX, CENTER
from swathe.files.targets.result_names import unique_names
from swathe.files.targets.target_list import SKY, rows_of_columns
from swathe.jobs.array_files import refused_files
from swathe.operations.reduction.granule import open_granule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swathe.core.box import Box
    from swathe.core.row_record import Fault
    from swathe.files.array import Array
    from swathe.jobs.types import Options
    from swathe.operations.operation import ReducingOperation

FIRST_GRANULES = 16
"""Granules that are opened when a job is submitted; a prediction takes the others as alike."""
REGIONS = frozenset({*BOX, *CENTER, *BOUNDS, *SKY, "size", "planes"})
"""Columns that choose a part of a file."""


def granule_rows(
    columns: Mapping[str, Any],
    count: int,
    reducing: ReducingOperation,
    options: Options,
    check_source: Callable[[str], None],
) -> tuple[RowTable, set[int]]:
    """Return the rows of granules, and those whose file cannot be read now.

    Their boxes are empty: a granule is read whole. The first granules are opened.

    Args:
        columns: columns of the list, by standard names.
        count: number of its rows.
        reducing: operation of the job.
        options: options of the job.
        check_source: function that raises an `AccessError` for a file that may not be read.

    Raises:
        TargetsError, JobError: If a column or an option chooses a part of the granules.
        AccessError: If no file may be read.
    """
    regions = sorted(REGIONS & columns.keys())
    if regions or "file" not in columns:
        raise TargetsError(
            f"operation {reducing.name}: expected granules, which are read whole, in a column "
            f"'file', found {', '.join(regions) or 'no such column'}"
        )
    if options.planes is not None:
        raise JobError(f"option planes: expected none for operation {reducing.name}, found some")
    rows = rows_of_columns(columns, count)
    rows.name = unique_names(rows.id)
    rows = rows.with_status(refused_files(rows, check_source))
    faults: dict[int, Fault] = {}
    for row in np.flatnonzero(rows.sound)[:FIRST_GRANULES].tolist():
        try:
            _arrays_of(rows, row, reducing, options)
        except SwatheError as error:
            faults[row] = fault_of(error)
    rows.has_box[:] = True
    return rows.with_status(faults), set(faults)


def check_result(reducing: ReducingOperation, options: Options, most_bytes: int | None) -> None:
    """Check that a result is not larger than a cutout may be.

    Raises:
        LimitError: If it has more than `most_bytes`.
    """
    size = reducing.result_bytes(options.own)
    if most_bytes is not None and size > most_bytes:
        raise LimitError(
            f"operation {reducing.name}: expected a result of up to {most_bytes:,} bytes "
            f"(limits.cutout_mb), found {size:,}; take a coarser grid"
        )


def rows_to_predict(
    rows: RowTable, reducing: ReducingOperation, options: Options
) -> tuple[RowTable, int]:
    """Return a row for each array that the first granules need, and the number of these granules.

    Args:
        rows: rows of granules that can be read.
        reducing: operation of the job.
        options: options of the job.
    """
    which: list[int] = []
    paths: list[str | None] = []
    boxes: list[Box] = []
    first = range(min(len(rows), FIRST_GRANULES))
    for row in first:
        for each in _arrays_of(rows, row, reducing, options):
            if each.plane is not None and each.is_native:
                y, x = each.plane
                which.append(row)
                paths.append(each.path)
                boxes.append((0, 0, each.shape[x], each.shape[y]))
    arrays = replace(
        rows.take(which), hdu=DictColumn.of(paths), box=np.array(boxes, np.int64).reshape(-1, 4)
    )
    return arrays, len(first)


def _arrays_of(
    rows: RowTable, row: int, reducing: ReducingOperation, options: Options
) -> list[Array]:
    """Return the arrays that are read of a granule.

    Raises:
        SwatheError: If it cannot be read, or lacks one of them.
    """
    file = open_granule(rows.source.value(row))
    return reducing.arrays_of(file, rows.hdu.value(row), options.own)
