"""Targets of a job that are granules: arrays with their places, which are read whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import JobError, LimitError, SwatheError, TargetsError
from swathe.core.row_record import RowGranule, fault_of
from swathe.core.row_table import DictColumn, RowTable
from swathe.files.targets.bounds import BOUNDS
from swathe.files.targets.cells import texts
from swathe.files.targets.columns import BOX, CENTER
from swathe.files.targets.result_names import unique_names
from swathe.files.targets.target_list import SKY, rows_of_columns
from swathe.jobs.array_files import refused_files
from swathe.operations.reduction.swath import open_granule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from swathe.core.box import Box
    from swathe.core.row_record import Fault
    from swathe.files.array import Array
    from swathe.jobs.types import Options
    from swathe.operations.operation import ReducingOperation

FIRST_GRANULES = 16
"""Granules that are opened when a job is submitted; a prediction takes the others as alike."""
PIXEL_ARRAYS = 3
"""Values, latitudes and longitudes are the first arrays of a granule."""
REGIONS = frozenset({*BOX, *CENTER, *BOUNDS, *SKY, "size", "planes"})
"""Columns that choose a part of a file."""
VERSION = "object_version"
"""Column of the version that a granule must have."""


@dataclass
class GranuleReads:
    """What the first granules of a job, which were opened, say of all.

    Attributes:
        arrays: a row for each array that the engine reads of them.
        count: number of these granules.
        pixel_bytes: bytes of their values and places, at least; they wait in the scratch folder.
    """

    arrays: RowTable
    count: int
    pixel_bytes: int

    def scratch_bytes(self, granules: int) -> int:
        """Return the bytes that some granules take in the scratch folder, if all are alike."""
        return self.pixel_bytes * granules // max(self.count, 1)


def granule_rows(
    columns: Mapping[str, Any],
    count: int,
    operation: ReducingOperation,
    options: Options,
    check_source: Callable[[str], None],
    faults_of: Callable[[Sequence[str]], Mapping[str, str]],
) -> tuple[RowTable, set[int], GranuleReads]:
    """Return the rows of granules, those whose file cannot be read now, and what the first read.

    Their boxes are empty: a granule is read whole. The first granules on disk are opened.

    Args:
        columns: columns of the list, by standard names.
        count: number of its rows.
        operation: operation of the job.
        options: options of the job.
        check_source: function that raises an `AccessError` for a file that may not be read.
        faults_of: function that returns which files are on tape, and why they cannot be read now.

    Raises:
        TargetsError, JobError: If a column or an option chooses a part of the granules.
        AccessError: If no file may be read.
    """
    regions = sorted(REGIONS & columns.keys())
    if regions or "file" not in columns:
        raise TargetsError(
            f"operation {operation.name}: expected granules, which are read whole, in a column "
            f"'file', found {', '.join(regions) or 'no such column'}"
        )
    if options.planes is not None:
        raise JobError(f"option planes: expected none for operation {operation.name}, found some")
    rows = rows_of_columns(columns, count)
    rows.name = unique_names(rows.id)
    if any(versions := versions_of(columns, count)):
        rows.granule = DictColumn.of([RowGranule(version=each) for each in versions])
    rows = rows.with_status(refused_files(rows, check_source))
    faults: dict[int, Fault] = {}
    arrays: list[tuple[int, Array]] = []
    on_tape = faults_of(rows.take(rows.sound).source.few().values)
    is_on_disk = np.array([name not in on_tape for name in rows.source.values], bool)
    first = np.flatnonzero(rows.sound & is_on_disk[rows.source.codes])[:FIRST_GRANULES].tolist()
    for row in first:
        try:
            arrays += [(row, each) for each in _arrays_of(rows, row, operation, options)]
        except SwatheError as error:
            faults[row] = fault_of(error)
    rows.has_box[:] = True
    reads = _reads_of(rows, arrays, len(first) - len(faults))
    return rows.with_status(faults), set(faults), reads


def versions_of(columns: Mapping[str, Any], count: int) -> list[str]:
    """Return the versions that granules must have; empty: any."""
    return list(texts(columns[VERSION])) if VERSION in columns else [""] * count


def check_result(operation: ReducingOperation, options: Options, most_bytes: int | None) -> None:
    """Check that a result is not larger than a cutout may be.

    Raises:
        LimitError: If it has more than `most_bytes`.
    """
    size = operation.result_bytes(options.own)
    if most_bytes is not None and size > most_bytes:
        raise LimitError(
            f"operation {operation.name}: expected a result of up to {most_bytes:,} bytes "
            f"(limits.cutout_mb), found {size:,}; take a coarser grid"
        )


def _reads_of(rows: RowTable, arrays: list[tuple[int, Array]], count: int) -> GranuleReads:
    """Return what granules say of all, by their arrays with the numbers of their rows."""
    which: list[int] = []
    paths: list[str | None] = []
    boxes: list[Box] = []
    pixels: Counter[int] = Counter()
    pixel_bytes = 0
    for row, each in arrays:
        pixels[row] += 1
        if pixels[row] <= PIXEL_ARRAYS:
            pixel_bytes += each.size * each.dtype.itemsize
        if each.plane is not None and each.is_native:
            y, x = each.plane
            which.append(row)
            paths.append(each.path)
            boxes.append((0, 0, each.shape[x], each.shape[y]))
    parts = replace(
        rows.take(which), hdu=DictColumn.of(paths), box=np.array(boxes, np.int64).reshape(-1, 4)
    )
    return GranuleReads(parts, count, pixel_bytes)


def _arrays_of(
    rows: RowTable, row: int, operation: ReducingOperation, options: Options
) -> list[Array]:
    """Return the arrays that are read of a granule.

    Raises:
        SwatheError: If it cannot be read, or lacks one of them.
    """
    file = open_granule(rows.source.value(row))
    return operation.arrays_of(file, rows.hdu.value(row), options.own)
