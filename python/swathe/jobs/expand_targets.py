"""Turn a list of targets into job rows. A row is one region of one image.

Targets that name a file are read as in `cut_many`. Sky positions without a file are searched in the
datasets. Each image that covers a position becomes one row.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from swathe.core.errors import (
    JobError,
    TargetsError,
)
from swathe.core.format import size_text
from swathe.core.row_table import RowTable
from swathe.costs.format_costs import SOURCE
from swathe.costs.tape_objects import TapeObjects
from swathe.files.targets.columns import standard_columns
from swathe.files.targets.list_tables import read_list
from swathe.files.targets.target_list import SKY, one_angle
from swathe.jobs.algorithm_rows import algorithm_rows, algorithm_work
from swathe.jobs.expanded_job import ExpandedJob, JobTargets, check_rows
from swathe.jobs.granules import check_result, granule_rows
from swathe.jobs.listed_files import name_results, rows_of_files
from swathe.jobs.sky_positions import rows_of_positions
from swathe.operations.array_results import FITS_SUFFIX
from swathe.operations.grid import enlarge_boxes

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.catalog import Catalog
    from swathe.core.row_record import Fault
    from swathe.jobs.types import Options
    from swathe.operations.operation import ReducingOperation


def expand(
    target_list: Any,
    options: Options,
    catalog: Catalog,
    check_source: Callable[[str], None],
    most_rows: int,
    cutout_bytes: int | None = None,
) -> ExpandedJob:
    """Expand targets into rows.

    If pixels outside the image are filled, a box has at most `cutout_bytes` pixels.

    Raises:
        TargetsError: If the list cannot be read or lacks columns.
        JobError: If the options do not fit the list.
        LimitError: If there would be more than `most_rows`.
        AccessError: If none of the files may be read.
        NoSuchDatasetError: If there is no such dataset.
    """
    if isinstance(target_list, str | os.PathLike):
        raise TargetsError("the targets of a job are a table or a mapping of columns, not a path")
    table, _, wrong = read_list(target_list)
    if wrong:
        raise TargetsError(next(iter(wrong.values())))
    check_rows(len(table), most_rows)
    job_list = JobTargets(
        columns=one_angle(standard_columns(table), "a job"),
        names=table.colnames,
        count=len(table),
        options=options,
        catalog=catalog,
        check_source=check_source,
        most_rows=most_rows,
        cutout_bytes=cutout_bytes,
        tape=TapeObjects(is_patient=True),
    )
    return options.results.kind.by_targets(
        partial(_of_regions, job_list),
        partial(_of_granules, job_list),
        partial(_of_algorithm, job_list),
    )


def _of_regions(job_list: JobTargets) -> ExpandedJob:
    """Expand a list of regions of images and arrays."""
    columns, options = job_list.columns, job_list.options
    in_sky = all(name in columns for name in SKY)
    if options.is_combined and not in_sky:
        raise JobError(
            f"operation {options.operation}: expected targets in the sky ({', '.join(SKY)}), "
            "found none"
        )
    if "file" not in columns and not in_sky:
        raise TargetsError(
            "the targets need a column 'file', or positions in the sky with a size "
            f"({', '.join(SKY)}); found: {', '.join(job_list.names)}"
        )
    is_listed = "file" in columns
    options.check(are_bands_needed=not is_listed)
    if is_listed:
        for name in ("dataset", "time"):
            if getattr(options, name):
                raise JobError(
                    f"option {name}: it selects images only for sky positions without a file"
                )
        work = rows_of_files(job_list)
    else:
        work = rows_of_positions(job_list)
    if work.rows.group is not None:
        check_rows(len(work.rows) + len(work.results), job_list.most_rows)
        work.rows.box = enlarge_boxes(work.rows.box)
    if work.options(options).format == SOURCE:
        files = work.rows.source.list()
        suffixes = [work.suffixes.get(file, FITS_SUFFIX) for file in files]
        names = zip(work.rows.name, suffixes, strict=True)
        work.rows.name = [name + suffix for name, suffix in names]
    if job_list.cutout_bytes is not None and options.mode == "partial" and not options.is_combined:
        work.rows = _refuse_large(work.rows, job_list.cutout_bytes)
    return work


def _of_granules(job_list: JobTargets, operation: ReducingOperation) -> ExpandedJob:
    """Expand a list of granules."""
    columns, count, options = job_list.columns, job_list.count, job_list.options
    options.check(are_bands_needed=False)
    check_result(operation, options, job_list.cutout_bytes)
    for name in ("dataset", "time"):
        if getattr(options, name):
            raise JobError(f"option {name}: expected none for operation {operation.name}")
    rows, unread, reads = granule_rows(
        columns, count, operation, options, job_list.check_source, job_list.tape.faults_of
    )
    rows.group = name_results(options, [], columns, count)
    work = ExpandedJob(count, rows, unread, reads=reads, tape=job_list.tape)
    check_rows(count + len(work.results), job_list.most_rows)
    return work


def _of_algorithm(job_list: JobTargets) -> ExpandedJob:
    """Expand a list of granules that an algorithm reads."""
    check_source = job_list.check_source
    work = algorithm_work(job_list.catalog, job_list.options, check_source)
    rows = algorithm_rows(
        job_list.columns,
        job_list.count,
        work,
        check_source,
        job_list.tape.faults_of,
        partial(check_rows, most=job_list.most_rows),
    )
    new = ExpandedJob(job_list.count, rows, algorithm=work, tape=job_list.tape)
    check_rows(len(rows) + len(new.results), job_list.most_rows)
    return new


def _refuse_large(rows: RowTable, most: int) -> RowTable:
    """Refuse boxes with more pixels than a cutout may have bytes."""
    import numpy as np

    pixels = rows.box[:, 2].astype(float) * rows.box[:, 3]
    faults: dict[int, Fault] = {}
    for row in np.flatnonzero((pixels > most) & rows.sound).tolist():
        width, height = rows.box[row, 2:].tolist()
        faults[row] = (
            "error",
            f"a cutout of {width} x {height} pixels exceeds the limit of {size_text(most)} "
            "(limits.cutout_mb)",
        )
    return rows.with_status(faults)
