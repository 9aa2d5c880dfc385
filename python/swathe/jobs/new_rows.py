"""Rows of a new job, in the form the catalogue stores."""

from __future__ import annotations

from collections import Counter
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
from swathe.stores.registry import tape_sources

if TYPE_CHECKING:
    from swathe.jobs.expanded_job import ExpandedJob


NO_BOX = (0, 0, 0, 0)


def to_row_table(work: ExpandedJob) -> tuple[RowTable, dict[str, int], int]:
    """Return the rows as the catalogue stores them, by position: rows of one object together.

    Rows with errors come first, then those of objects that are staged from tape, in the order of
    the tapes; combined results come last.

    Returns:
        The rows, the number of objects by store that are staged, and the number of their rows.
    """
    # Workers try again to read these images.
    rows = work.rows.with_status(dict.fromkeys(work.unread, ("waiting", "")))
    if not work.is_of_images:
        rows.has_box = rows.sound  # unread ones too: a row without a box is never tried again
    sound, count = rows.sound, len(rows)
    place = np.arange(len(rows.source.values)) + len(rows.source.values)
    numbers = {name: number for number, name in enumerate(rows.source.values)}
    in_use = set(rows.take(sound).source.few().values)
    tapes = [name for name in work.tape.in_order(rows.source.values) if name in in_use]
    place[[numbers[name] for name in tapes]] = np.arange(len(tapes))
    place = place[rows.source.codes]
    order = np.lexsort((rows.hdu.codes * sound, place * sound, sound))
    staged_rows = int((sound & (place < len(rows.source.values))).sum())
    objects = dict(Counter(each.store for each in set(tape_sources(tapes).values())))
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
        return inputs, objects, staged_rows
    results = _result_rows(work)
    both = RowTable.concatenate([inputs, RowTable.of(list(results))])
    return both, objects, staged_rows


def _result_rows(work: ExpandedJob) -> Iterator[RowRecord]:
    """Yield the rows of combined results; of images, with their size as box if it is known.

    Those of an algorithm have an empty box, so that a run that failed can be tried again.
    """
    rows = work.rows
    if rows.group is None:
        return
    scale = scale_deg(rows) if work.is_of_images else None
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
        row = RowRecord(number, number, None, group, name, "", None, box, None, sky)
        if work.algorithm is not None:
            fault = work.algorithm.faults.get(group)
            row = (
                row._replace(box=NO_BOX)
                if fault is None
                else row._replace(status="error", reason=fault)
            )
        yield row
