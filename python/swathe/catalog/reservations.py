"""Demand on a pool of workers: waiting work and reservations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import case, delete, func, select

from swathe.catalog.database import Database
from swathe.catalog.jobs.mapping import COUNTS
from swathe.catalog.records.jobs import AT_WORK
from swathe.catalog.tables import JobChunkTable, JobTable, ReservationTable


@dataclass(frozen=True)
class WaitingJobs:
    """Unfinished rows of a job, and the predicted seconds per row, if any."""

    job: str
    rows: int
    row_s: float | None


@dataclass(frozen=True)
class ReservationRecord:
    """A reservation of workers; times are UTC."""

    number: int
    starts_at: datetime
    ends_at: datetime
    workers: int


@dataclass(frozen=True)
class Totals:
    """Totals over all jobs in the catalogue.

    Attributes:
        phases: number of jobs per phase.
        rows: number of rows per status.
        queue_rows: unfinished rows of running and queued jobs.
        bytes: size of the results.
        work_s: seconds of work.
        oldest_at: when the oldest job that has unfinished rows was made; `None` if there is none.
    """

    phases: dict[str, int]
    rows: dict[str, int]
    queue_rows: int
    bytes: int
    work_s: float
    oldest_at: datetime | None = None


class ReservationRecords(Database):
    """Demand for workers."""

    def totals(self) -> Totals:
        """Return the totals over all jobs."""
        sums = {
            "jobs": func.count(),
            "waiting": func.sum(JobTable.waiting),
            **{name: func.sum(getattr(JobTable, name)) for name in COUNTS[1:]},
            "bytes": func.sum(JobTable.bytes),
            "work_s": func.sum(JobTable.work_s),
            "oldest_at": func.min(case((JobTable.waiting > 0, JobTable.created_at))),
        }
        columns = [total.label(name) for name, total in sums.items()]
        query = select(JobTable.phase, *columns).group_by(JobTable.phase)
        with self._reading() as session:
            rows = session.execute(query).mappings().all()
        phases = {str(row["phase"]): row for row in rows}
        oldest_times = [
            phases[phase]["oldest_at"]
            for phase in AT_WORK
            if phase in phases and phases[phase]["oldest_at"] is not None
        ]
        return Totals(
            phases={phase: int(row["jobs"]) for phase, row in phases.items()},
            rows={name.replace("_", "-"): sum(int(row[name]) for row in rows) for name in COUNTS},
            queue_rows=sum(int(phases[phase]["waiting"]) for phase in AT_WORK if phase in phases),
            bytes=sum(int(row["bytes"]) for row in rows),
            work_s=sum(float(row["work_s"]) for row in rows),
            oldest_at=min(oldest_times, default=None),
        )

    def waiting(self) -> list[WaitingJobs]:
        """Return the waiting work with rows being executed, without rows that wait for tape."""
        chunk = JobChunkTable
        on_tape = (
            select(func.coalesce(func.sum(chunk.last - chunk.first + 1), 0))
            .where(chunk.job == JobTable.number, chunk.state == "staging")
            .scalar_subquery()
        )
        waiting = (JobTable.waiting - on_tape).label("waiting")
        columns = JobTable.id, waiting, JobTable.inputs, JobTable.predicted
        query = select(*columns).where(JobTable.phase.in_(AT_WORK), JobTable.waiting > 0)
        with self._reading() as session:
            records = session.execute(query).all()
        return [
            WaitingJobs(
                job, rows, None if prediction is None else prediction["median_s"] / max(inputs, 1)
            )
            for job, rows, inputs, prediction in records
            if rows > 0
        ]

    def reserve(self, workers: int, starts_at: datetime, ends_at: datetime) -> ReservationRecord:
        """Add a reservation; past ones are deleted."""
        row = ReservationTable(starts_at=starts_at, ends_at=ends_at, workers=workers)
        with self._writing() as session:
            session.add(row)
            session.flush()
            # Deleted afterwards, so that numbers are not reused.
            session.execute(
                delete(ReservationTable).where(
                    ReservationTable.ends_at <= datetime.now(UTC),
                    ReservationTable.number != row.number,
                )
            )
            return _reservation_of(row)

    def reservations(self) -> list[ReservationRecord]:
        """Return the reservations that have not ended, earliest first."""
        query = select(ReservationTable).where(ReservationTable.ends_at > datetime.now(UTC))
        with self._reading() as session:
            rows = session.scalars(query.order_by(ReservationTable.starts_at))
            return [_reservation_of(row) for row in rows]

    def release(self, number: int) -> bool:
        """End a reservation; return whether there was one."""
        now = datetime.now(UTC)
        with self._writing() as session:
            row = session.get(ReservationTable, number)
            if row is None or row.ends_at <= now:
                return False
            row.ends_at = now
            return True


def _reservation_of(row: ReservationTable) -> ReservationRecord:
    return ReservationRecord(row.number, row.starts_at, row.ends_at, row.workers)
