"""Failed rows that are tried again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from swathe.catalog.blocks import all_with_status, mark_rows, rows_between
from swathe.catalog.chunks import LARGEST_CHUNK
from swathe.catalog.rows import CODES, Rows
from swathe.catalog.tables import JobChunkTable, JobTable
from swathe.catalog.work import FAILED


def retry(session: Session, job: JobTable) -> None:
    """Make failed rows, of which a second try may come out otherwise, wait again."""
    failed = Rows.joined(list(all_with_status(session, job.number, *FAILED)))
    # What the list itself had wrong stays wrong.
    again = failed.take(failed.placed | failed.in_sky)
    again = Rows.joined([again, _results_of(session, job, again)])
    if not len(again):
        return
    for status, code in CODES.items():
        column = status.replace("-", "_")
        setattr(job, column, getattr(job, column) - int((again.status == code).sum()))
    job.waiting += len(again)
    job.bytes -= int(again.bytes[again.result < 0].sum())
    mark_rows(session, job.number, again.ended("waiting"))
    covered = session.execute(
        select(JobChunkTable.first, JobChunkTable.last).where(JobChunkTable.job == job.number)
    ).all()
    left = [
        position
        for position in np.sort(again.position).tolist()
        if position < job.cursor and not any(first <= position <= last for first, last in covered)
    ]
    for first, last in _runs(left, job.inputs):
        session.add(JobChunkTable(job=job.number, first=first, last=last, state="free"))


def _results_of(session: Session, job: JobTable, again: Rows) -> Rows:
    """Give the results that rows go into, of those that do not wait and are not among the rows."""
    into = np.unique(again.result[again.result >= 0])
    if not len(into):
        return Rows.of([])
    made = rows_between(session, job.number, job.inputs, job.rows - 1)
    fresh = ~np.isin(made.number, again.number) & ~made.has("waiting")
    return made.take(np.isin(made.number, into) & fresh)


def _runs(positions: Sequence[int], inputs: int) -> list[tuple[int, int]]:
    """Give few stretches that hold all positions: at most so many, none over the first result."""
    runs: list[tuple[int, int]] = []
    count = 0
    for position in positions:
        begins = not runs or count == LARGEST_CHUNK or (runs[-1][0] < inputs <= position)
        if begins:
            runs.append((position, position))
            count = 0
        runs[-1] = (runs[-1][0], position)
        count += 1
    return runs
