"""Retry of failed rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from swathe.catalog.jobs.blocks import all_with_status, mark_waiting, parts_at
from swathe.catalog.jobs.leases import LARGEST_CHUNK, add_groups
from swathe.catalog.records.jobs import TO_RETRY, ChunkState
from swathe.catalog.tables import JobChunkTable, JobTable
from swathe.core.row_table import CODES, RowTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

BRIEF = [
    ("position", np.int64),
    ("result", np.int64),
    ("status", np.uint8),
    ("bytes", np.int64),
]
"""Columns of each row held in memory: there may be as many as the job has rows."""


def retry(session: Session, job: JobTable) -> None:
    """Reset failed rows to waiting if a retry may succeed."""
    failed = all_with_status(session, job.number, *TO_RETRY)
    # Errors in the list itself stay.
    again = _brief_columns(rows.take(rows.has_box | rows.in_sky) for rows in failed)
    again = np.concatenate([again, _results_of(session, job, again)])
    if not len(again):
        return
    is_group, fewer = again["position"] >= job.inputs, {}
    for status, code in CODES.items():
        column, of_status = status.replace("-", "_"), again["status"] == code
        setattr(job, column, getattr(job, column) - int(of_status.sum()))
        fewer[status] = int((of_status & is_group).sum())
    job.waiting += len(again)
    add_groups(job, {"waiting": int(is_group.sum())}, fewer)
    job.bytes -= int(again["bytes"][again["result"] < 0].sum())
    positions = np.sort(again["position"])
    mark_waiting(session, job.number, positions)
    leased_positions = positions[positions < job.cursor]
    for first, last in _stretches(session, job, leased_positions):
        # Objects that were on disk may be on tape again.
        is_staged = job.staging is not None and first < job.inputs
        state: ChunkState = "staging" if is_staged else "free"
        session.add(JobChunkTable(job=job.number, first=first, last=last, state=state))
    if job.staging is not None:
        # What failed is asked for again.
        job.staging = {store: {**each, "failed": 0} for store, each in job.staging.items()}


def _brief_columns(parts: Iterator[RowTable]) -> NDArray[Any]:
    """Return the needed columns of rows."""
    columns = [np.empty(0, BRIEF)]
    for rows in parts:
        brief = np.empty(len(rows), BRIEF)
        for name, _ in BRIEF:
            brief[name] = getattr(rows, name)
        columns.append(brief)
    return np.concatenate(columns)


def _results_of(session: Session, job: JobTable, again: NDArray[Any]) -> NDArray[Any]:
    """Return the combined results of rows that must be made again and are not among the rows."""
    # They are the last rows, in either order: their numbers are their positions.
    into = np.setdiff1d(again["result"][again["result"] >= 0], again["position"])
    parts = parts_at(session, job.number, into)
    return _brief_columns(rows.take(~rows.has("waiting")) for rows in parts)


def _stretches(
    session: Session, job: JobTable, positions: NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """Yield few intervals that cover all ascending positions, except those in a chunk.

    An interval covers a limited number of positions, and does not reach over a chunk or the first
    combined result.
    """
    chunks = session.execute(
        select(JobChunkTable.first, JobChunkTable.last)
        .where(JobChunkTable.job == job.number)
        .order_by(JobChunkTable.first)
    ).all()
    before = np.searchsorted([first for first, _ in chunks], positions, side="right")
    ends = np.maximum.accumulate([-1, *(last for _, last in chunks)])
    free = ends[before] < positions
    remaining, sides = positions[free], (before + (positions >= job.inputs))[free]
    for part in np.split(remaining, np.flatnonzero(np.diff(sides)) + 1):
        for at in range(0, len(part), LARGEST_CHUNK):
            some = part[at : at + LARGEST_CHUNK].tolist()
            yield some[0], some[-1]
