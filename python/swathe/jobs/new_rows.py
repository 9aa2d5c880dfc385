"""Rows of a new job, in the form the catalogue stores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from swathe import _swathe
from swathe.catalog.jobs.row_table import CODES, DIGEST_BYTES, DictColumn, RowTable
from swathe.catalog.records.jobs import RowRecord
from swathe.core.errors import JobError, RegionError
from swathe.costs.prediction import sky_of
from swathe.files.targets.target_list import hdu_text, unique_names
from swathe.operations.grid import Grid

if TYPE_CHECKING:
    from swathe.catalog.records.jobs import RowStatus
    from swathe.jobs.expand_targets import ExpandedJob


def to_row_table(work: ExpandedJob) -> RowTable:
    """Return the rows as the catalogue stores them, by position: rows of one object together.

    Rows with errors come first, combined results last.
    """
    read, count = work.read, len(work.read)
    faults = {row: fault for row, fault in read.faults.items() if row not in work.unread}
    wrong = np.array(sorted(faults), np.int64)
    todo = np.ones(count, bool)
    todo[wrong] = False
    order = np.lexsort((read.hdu, read.file, todo))
    order = np.concatenate([wrong, order[len(wrong) :]])

    results = {name: count + number for number, name in enumerate(work.results())}
    into = np.full(count, -1)
    if work.group is not None:
        into = np.array([results[name] for name in work.group], np.int64)
    placed = np.ones(count, bool)
    placed[[*read.unplaced, *work.unread, *faults]] = False
    sky = np.full((count, 3), np.nan) if work.sky is None else work.sky.copy()
    sky[wrong] = np.nan
    inputs = RowTable(
        number=np.arange(count),
        position=np.arange(count),
        result=into,
        id=read.ids,
        # An input row gets a name that no file can have.
        name=read.names if work.group is None else [f"{row}/" for row in range(count)],
        source=DictColumn([_swathe.redact_url(file) for file in read.files], read.file),
        hdu=DictColumn([hdu_text(hdu) for hdu in read.hdus], read.hdu),
        box=read.boxes,
        placed=placed,
        planes=DictColumn.of(work.planes),
        sky=sky,
        status=np.zeros(count, np.uint8),
        reason=DictColumn.same("", count),
        bytes=np.zeros(count, np.int64),
        version=DictColumn.same("", count),
        sha256=np.zeros((count, DIGEST_BYTES), np.uint8),
    ).take(order)
    inputs.position = np.arange(count)
    if faults:
        row_faults = [faults[row] for row in wrong.tolist()]
        status = np.array([CODES[cast("RowStatus", status)] for status, _ in row_faults], np.uint8)
        ended = inputs[: len(row_faults)].ended(
            status, DictColumn.of([reason for _, reason in row_faults])
        )
        inputs = RowTable.joined([ended, inputs[len(row_faults) :]])
    return RowTable.joined([inputs, RowTable.of(list(_result_rows(work, results)))])


def _result_rows(work: ExpandedJob, results: dict[str, int]) -> Iterator[RowRecord]:
    """Yield the rows of combined results, with their size as box if it is known."""
    if work.group is None or work.sky is None:
        return
    scale = _scale_deg(work)
    first = {}
    for row, name in enumerate(work.group):
        if name not in first and row not in work.read.faults:
            first[name] = row
    names = unique_names(list(results))
    for (name, number), file_name in zip(results.items(), names, strict=True):
        box, sky = None, None
        if scale is not None and name in first:
            ra, dec, size = work.sky[first[name]].tolist()
            try:
                side = Grid.around(ra, dec, size, scale).side
            except RegionError as error:
                raise JobError(f"{name}: {error}") from error
            box, sky = (0, 0, side, side), (ra, dec, side * scale)
        yield RowRecord(number, number, None, name, file_name, "", None, box, None, sky)


def _scale_deg(work: ExpandedJob) -> float | None:
    """Return the pixel size of the results in degrees: that of the first readable image."""
    later = set(work.read.unplaced)
    for row in work.todo():
        if row not in later:
            scales = sky_of(
                work.read.files[work.read.file[row]], work.read.hdus[work.read.hdu[row]]
            ).scales
            return math.sqrt(scales[0] * scales[1])
    return None
