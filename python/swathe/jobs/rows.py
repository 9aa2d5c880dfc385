"""The rows of a job as the catalogue keeps them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, cast

from swathe import _swathe
from swathe.catalog.work import KeptRow
from swathe.errors import JobError
from swathe.predict import sky_of
from swathe.targets import hdu_text, unique_names

if TYPE_CHECKING:
    from swathe.catalog.work import RowStatus
    from swathe.jobs.expansion import Work

LARGEST_SIDE = 8_192
"""Pixels of what is made of several images."""


def kept_rows(work: Work) -> Iterator[KeptRow]:
    """Give the rows as the catalogue keeps them, those of one object together by position.

    Rows with faults come first; results that are made of others last.
    """
    import numpy as np

    read = work.read
    faults = {row: fault for row, fault in read.faults.items() if row not in work.unread}
    todo = np.array([row for row in range(len(read)) if row not in faults], np.int64)
    together = todo[np.lexsort((todo, read.hdu[todo], read.file[todo]))]
    position = np.empty(len(read), np.int64)
    position[[*sorted(faults), *together.tolist()]] = np.arange(len(read))

    results = {name: len(read) + number for number, name in enumerate(work.results())}
    # What goes into others gets a name that no file can have.
    names = read.names if work.group is None else [f"{row}/" for row in range(len(read))]
    later = {*read.unplaced, *work.unread, *faults}
    keys = [hdu_text(hdu) for hdu in read.hdus]
    shown = [_swathe.shown(file) for file in read.files]
    columns = zip(
        position.tolist(),
        repeat(None, len(read)) if work.group is None else map(results.__getitem__, work.group),
        read.ids,
        names,
        map(shown.__getitem__, read.file.tolist()),
        map(keys.__getitem__, read.hdu.tolist()),
        map(tuple, read.boxes.tolist()),
        work.planes,
        repeat(None, len(read)) if work.sky is None else map(tuple, work.sky.tolist()),
        strict=True,
    )
    for row, values in enumerate(columns):
        kept = KeptRow(row, *values)
        if row in later:
            kept = kept._replace(box=None)
        if row in faults:
            status, reason = faults[row]
            kept = kept._replace(sky=None, status=cast("RowStatus", status), reason=reason)
        yield kept
    yield from _result_rows(work, results)


def _result_rows(work: Work, results: dict[str, int]) -> Iterator[KeptRow]:
    """Give the rows that are made of others, their size as box where that can be told."""
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
            side = max(1, round(size / scale))
            if side > LARGEST_SIDE:
                raise JobError(
                    f"{name}: would be {side} pixels wide; what is made of several images may be "
                    f"{LARGEST_SIDE}"
                )
            box, sky = (0, 0, side, side), (ra, dec, side * scale)
        yield KeptRow(number, number, None, name, file_name, "", None, box, None, sky)


def _scale_deg(work: Work) -> float | None:
    """Give the size of a pixel of results: that of the first image that can be read."""
    later = set(work.read.unplaced)
    for row in work.todo():
        if row not in later:
            scales = sky_of(
                work.read.files[work.read.file[row]], work.read.hdus[work.read.hdu[row]]
            ).scales
            return math.sqrt(scales[0] * scales[1])
    return None
