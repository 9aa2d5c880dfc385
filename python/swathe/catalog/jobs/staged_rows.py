"""Rows of jobs that wait for objects on tape: nobody leases them until their objects have come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.jobs.blocks import all_with_status, parts_between
from swathe.catalog.jobs.leases import LARGEST_CHUNK, end_complete_job, mark_results
from swathe.catalog.jobs.mapping import to_job_record
from swathe.catalog.records.jobs import UNDER_WAY, JobRecord
from swathe.catalog.tables import JobChunkTable, JobTable
from swathe.core.row_record import RowStatus
from swathe.core.row_table import DictColumn, RowTable

ObjectState: TypeAlias = str | bool
"""Whether an object can be read now, or the reason why it never can."""


class StagedRows(Database):
    """Rows that wait for objects on tape."""

    def staging_jobs(self) -> list[JobRecord]:
        """Return the started jobs with objects in stores whose objects are staged, oldest first."""
        query = (
            select(JobTable)
            .where(JobTable.phase.in_(UNDER_WAY), JobTable.staging.is_not(None))
            .order_by(JobTable.number)
        )
        with self._reading() as session:
            return [to_job_record(job) for job in session.scalars(query)]

    def objects_in_use(self, job: JobRecord) -> list[str]:
        """Return the objects of unfinished rows, in the order of work.

        An image of a combined result is in use until the job ends: it may have to be cut again.
        """
        statuses: tuple[RowStatus, ...] = (
            ("waiting", "ok") if job.inputs < job.rows else ("waiting",)
        )
        names: dict[str, None] = {}
        with self._reading() as session:
            for rows in all_with_status(session, job.number, *statuses):
                of_block = rows.take(rows.position < job.inputs).source
                names |= dict.fromkeys(of_block.list())
        return list(names)

    def move_staged_rows(
        self,
        number: int,
        state_of: Callable[[str], ObjectState],
        store: str,
        progress: Callable[[dict[str, Any], int], dict[str, Any]],
        size: Callable[[JobRecord, bool], int],
    ) -> bool:
        """Let rows be leased whose objects have come, and end those whose objects never will.

        Args:
            number: number of the job.
            state_of: function that returns the state of an object.
            store: name of the store.
            progress: function that returns the progress of staging in this store, from the one
                before and the number of objects that have failed now.
            size: function that returns the approximate number of rows of a chunk, as for
                `take_chunk`.

        Returns:
            Whether anything has changed.
        """
        with self._writing() as session:
            job = session.get(JobTable, number, with_for_update=True)
            if job is None or job.phase not in UNDER_WAY or job.staging is None:
                return False
            row_count = min(max(1, size(to_job_record(job), False)), LARGEST_CHUNK)
            faults: set[str] = set()
            has_moved = False
            for chunk in session.scalars(_staged_chunks(number)).all():
                parts = parts_between(session, number, chunk.first, chunk.last)
                rows = RowTable.concatenate([part.take(part.has("waiting")) for part in parts])
                rows.source = rows.source.few()
                states = [state_of(name) for name in rows.source.values]
                faults |= {
                    name
                    for name, state in zip(rows.source.values, states, strict=True)
                    if isinstance(state, str)
                }
                if len(rows) and not any(states):
                    continue
                has_moved = True
                session.delete(chunk)
                session.flush()
                _divide(session, job, rows, states, row_count)
            new = {**job.staging, store: progress(job.staging.get(store, {}), len(faults))}
            if has_moved and job.phase == "STAGING":
                job.phase = "EXECUTING" if job.started_at else "QUEUED"
            if not has_moved and new == job.staging:
                return False
            job.staging = new
            end_complete_job(session, job)
            job.changes += 1
            return True


def _staged_chunks(job: int) -> Any:
    return (
        select(JobChunkTable)
        .where(JobChunkTable.job == job, JobChunkTable.state == "staging")
        .order_by(JobChunkTable.first)
    )


def _divide(
    session: Session, job: JobTable, rows: RowTable, states: list[ObjectState], row_count: int
) -> None:
    """Store waiting rows as chunks by the states of their objects; those with a fault are ended."""
    # 0: stays on tape; 1: may be leased; 2: never comes.
    kinds = np.array([2 if isinstance(state, str) else int(state) for state in states], np.int8)
    kind = kinds[rows.source.codes]
    losses = rows.take(kind == 2)
    if len(losses):
        reasons = [state if isinstance(state, str) else "" for state in states]
        by_name = dict(zip(rows.source.values, reasons, strict=True))
        mark_results(session, job, losses.end("error", losses.source.map(by_name.__getitem__)))
    for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(kind)) + 1):
        if not len(part) or kind[part[0]] == 2:
            continue
        same = rows[int(part[0]) : int(part[-1]) + 1]
        if kind[part[0]] == 0:
            first, last = int(same.position[0]), int(same.position[-1])
            session.add(JobChunkTable(job=job.number, first=first, last=last, state="staging"))
            continue
        for first, last in _whole_objects(same.position, same.source, row_count):
            session.add(JobChunkTable(job=job.number, first=first, last=last, state="free"))


def _whole_objects(
    positions: Any, sources: DictColumn[str], row_count: int
) -> Iterator[tuple[int, int]]:
    """Yield first and last position of chunks of about this many rows, with whole objects."""
    ends = np.append(np.flatnonzero(np.diff(sources.codes)) + 1, len(positions))
    start = 0
    while start < len(positions):
        at = min(int(np.searchsorted(ends, start + row_count)), len(ends) - 1)
        end = min(int(ends[at]), start + LARGEST_CHUNK)
        yield int(positions[start]), int(positions[end - 1])
        start = end
