"""Rows of a new job, in the form the catalogue stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from swathe import _swathe
from swathe.core.errors import JobError, RegionError
from swathe.core.row_record import RowRecord
from swathe.core.row_table import RowTable, is_repeated
from swathe.files.targets.result_names import unique_names
from swathe.operations.grid import Grid, scale_deg

if TYPE_CHECKING:
    from swathe.jobs.expand_targets import ExpandedJob


def to_row_table(work: ExpandedJob) -> RowTable:
    """Return the rows as the catalogue stores them, by position: rows of one object together.

    Rows with errors come first, combined results last.
    """
    # Workers try again to read these images.
    rows = work.rows.with_status(dict.fromkeys(work.unread, ("waiting", "")))
    if not work.is_of_images:
        rows.has_box = rows.sound  # unread ones too: a row without a box is never tried again
    sound, count = rows.sound, len(rows)
    order = np.lexsort((rows.hdu.codes * sound, rows.source.codes * sound, sound))
    group = rows.group
    inputs = replace(
        rows,
        result=rows.result if group is None else count + group.codes.astype(np.int64),
        # An input row gets a name that no file can have.
        name=rows.name if group is None else [f"{row}/" for row in range(count)],
        source=rows.source.map(_swathe.redact_url),
        sky=rows.sky if is_repeated(rows.sky) else np.where(sound[:, None], rows.sky, np.nan),
        group=None,
    )
    if not np.array_equal(order, np.arange(count)):  # of a long list a copy takes much memory
        inputs = inputs.take(order)
    inputs.position = np.arange(count)
    if group is None:
        return inputs
    results = _result_rows(work.rows, is_of_images=work.is_of_images)
    return RowTable.concatenate([inputs, RowTable.of(list(results))])


def _result_rows(rows: RowTable, *, is_of_images: bool) -> Iterator[RowRecord]:
    """Yield the rows of combined results; of images, with their size as box if it is known."""
    if rows.group is None:
        return
    scale = scale_deg(rows) if is_of_images else None
    names = unique_names(rows.group.values)
    sound = np.flatnonzero(rows.sound)
    codes, firsts = np.unique(rows.group.codes[sound], return_index=True)
    first = dict(zip(codes.tolist(), sound[firsts].tolist(), strict=True))
    for code, (group, name) in enumerate(zip(rows.group.values, names, strict=True)):
        box, sky = None, None
        if scale is not None and code in first:
            ra, dec, size = rows.sky[first[code]].tolist()
            try:
                side = Grid.around(ra, dec, size, scale).side
            except RegionError as error:
                raise JobError(f"{group}: {error}") from error
            box, sky = (0, 0, side, side), (ra, dec, side * scale)
        number = len(rows) + code
        yield RowRecord(number, number, None, group, name, "", None, box, None, sky)
