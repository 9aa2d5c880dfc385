"""What became of groups of granules on which algorithms ran, and how long versions take."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, select

from swathe.catalog.database import Database
from swathe.catalog.records.algorithms import MOST_LOG, GroupRunRecord, GroupTiming, short_log
from swathe.catalog.records.checks import plain_text
from swathe.catalog.tables import AlgorithmTimingRow, GroupRunRow, JobTable
from swathe.core.errors import NoSuchResultError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MOST_TIMINGS = 500
"""Runs of a version from which its time is predicted: the latest."""
MEASUREMENTS = ("input_bytes", "output_bytes", "wall_s", "cpu_s", "memory_bytes", "ended_at")
LONGEST_PROBLEM = 1000
MOST_LOGS = 64 << 20
"""Bytes of the logs of a job, which are in the database and not in the quota of its user. Each
group has the same share, so that no chunk has to count those of the others."""


class GroupRunRecords(Database):
    """Runs of algorithms on groups."""

    def group_run(self, job: int, row: int) -> GroupRunRecord:
        """Return the latest run of a group of a job.

        Args:
            job: number of the job.
            row: number of the group's row.

        Raises:
            NoSuchResultError: If it was not run yet.
        """
        with self._reading() as session:
            run = session.get(GroupRunRow, (job, row))
            if run is None:
                raise NoSuchResultError(f"row {row}: no algorithm has run for it yet")
            return GroupRunRecord(
                row=run.row,
                group=run.group_name,
                algorithm=run.algorithm,
                problem=run.problem,
                log=zlib.decompress(run.log).decode(),
                **{name: getattr(run, name) for name in MEASUREMENTS},
            )

    def group_timings(self, algorithm: str) -> list[GroupTiming]:
        """Return the latest runs of a version that succeeded, for predictions."""
        query = (
            select(AlgorithmTimingRow)
            .where(AlgorithmTimingRow.algorithm == algorithm)
            .order_by(AlgorithmTimingRow.id.desc())
            .limit(MOST_TIMINGS)
        )
        with self._reading() as session:
            return [
                GroupTiming(each.input_bytes, each.output_bytes, each.wall_s)
                for each in session.scalars(query)
            ]

    def group_run_counts(self) -> dict[str, int]:
        """Return how many runs of each version succeeded, at most `MOST_TIMINGS`."""
        query = select(AlgorithmTimingRow.algorithm, func.count())
        with self._reading() as session:
            rows = session.execute(query.group_by(AlgorithmTimingRow.algorithm)).all()
        return {row[0]: row[1] for row in rows}


def save_group_runs(session: Session, job: int, runs: Sequence[GroupRunRecord]) -> None:
    """Store runs of groups; a later run of a group replaces an earlier one."""
    if not runs:
        return
    record = session.get_one(JobTable, job)
    most = min(MOST_LOG, MOST_LOGS // (record.rows - record.inputs))
    for run in runs:
        measurements: dict[str, Any] = {name: getattr(run, name) for name in MEASUREMENTS}
        session.merge(
            GroupRunRow(
                job=job,
                row=run.row,
                group_name=plain_text(run.group, LONGEST_PROBLEM),
                algorithm=run.algorithm,
                problem=plain_text(run.problem, LONGEST_PROBLEM),
                log=zlib.compress(short_log(run.log, most).encode()),
                **measurements,
            )
        )
        if not run.problem:
            session.add(AlgorithmTimingRow(algorithm=run.algorithm, **measurements))
    session.flush()
    for algorithm in {run.algorithm for run in runs}:
        of_version = AlgorithmTimingRow.algorithm == algorithm
        oldest = (
            select(AlgorithmTimingRow.id)
            .where(of_version)
            .order_by(AlgorithmTimingRow.id.desc())
            .offset(MOST_TIMINGS)
            .limit(1)
            .scalar_subquery()
        )
        session.execute(
            delete(AlgorithmTimingRow)
            .where(of_version, AlgorithmTimingRow.id <= oldest)
            .execution_options(synchronize_session=False)
        )
