"""What a pool of workers is to be ready for: what waits, and what is reserved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete, func, select

from swathe.catalog.database import Database
from swathe.catalog.tables import JobTable, ReservationTable

AT_WORK = ("QUEUED", "EXECUTING")
ENDED_AS = ("ok", "no_overlap", "missing", "error")
"""Columns with numbers of rows."""


@dataclass(frozen=True)
class Waiting:
    """Rows of a job that are not done, and the predicted seconds of each, if there are any."""

    job: str
    rows: int
    row_s: float | None


@dataclass(frozen=True)
class Reserved:
    """Workers that are to be there for some time; times are UTC."""

    number: int
    starts_at: datetime
    ends_at: datetime
    workers: int


@dataclass(frozen=True)
class Totals:
    """All jobs that are kept, together.

    Attributes:
        phases: how many jobs are in each phase.
        rows: how many rows have each status.
        queued: rows of jobs at work or in the queue that are not done.
        bytes: of results.
        busy_s: of work.
    """

    phases: dict[str, int]
    rows: dict[str, int]
    queued: int
    bytes: int
    busy_s: float


class Demand(Database):
    """What workers are wanted for."""

    def totals(self) -> Totals:
        """Return what there is of all jobs together."""
        sums = {
            "jobs": func.count(),
            "waiting": func.sum(JobTable.waiting),
            **{name: func.sum(getattr(JobTable, name)) for name in ENDED_AS},
            "bytes": func.sum(JobTable.bytes),
            "busy_s": func.sum(JobTable.busy_s),
        }
        labelled = [total.label(name) for name, total in sums.items()]
        query = select(JobTable.phase, *labelled).group_by(JobTable.phase)
        with self._reading() as session:
            rows = session.execute(query).mappings().all()
        phases = {str(row["phase"]): row for row in rows}
        return Totals(
            phases={phase: int(row["jobs"]) for phase, row in phases.items()},
            rows={
                name.replace("_", "-"): sum(int(row[name]) for row in rows)
                for name in ("waiting", *ENDED_AS)
            },
            queued=sum(int(phases[phase]["waiting"]) for phase in AT_WORK if phase in phases),
            bytes=sum(int(row["bytes"]) for row in rows),
            busy_s=sum(float(row["busy_s"]) for row in rows),
        )

    def waiting(self) -> list[Waiting]:
        """Give what waits to be done, those rows included that are being done."""
        columns = JobTable.id, JobTable.waiting, JobTable.inputs, JobTable.predicted
        query = select(*columns).where(JobTable.phase.in_(AT_WORK), JobTable.waiting > 0)
        with self._reading() as session:
            found = session.execute(query).all()
        return [
            Waiting(job, rows, None if predicted is None else predicted["seconds"] / max(inputs, 1))
            for job, rows, inputs, predicted in found
        ]

    def reserve(self, workers: int, starts_at: datetime, ends_at: datetime) -> Reserved:
        """Keep a reservation; those that are over are forgotten."""
        row = ReservationTable(starts_at=starts_at, ends_at=ends_at, workers=workers)
        with self._writing() as session:
            session.add(row)
            session.flush()
            # Afterwards: a number that was had is not given again.
            session.execute(
                delete(ReservationTable).where(
                    ReservationTable.ends_at <= datetime.now(UTC),
                    ReservationTable.number != row.number,
                )
            )
            return _reserved(row)

    def reservations(self) -> list[Reserved]:
        """Give the reservations that are not over, the first first."""
        query = select(ReservationTable).where(ReservationTable.ends_at > datetime.now(UTC))
        with self._reading() as session:
            found = session.scalars(query.order_by(ReservationTable.starts_at))
            return [_reserved(row) for row in found]

    def release(self, number: int) -> bool:
        """End a reservation; tells whether there was one."""
        now = datetime.now(UTC)
        with self._writing() as session:
            row = session.get(ReservationTable, number)
            if row is None or row.ends_at <= now:
                return False
            row.ends_at = now
            return True


def _reserved(row: ReservationTable) -> Reserved:
    return Reserved(row.number, row.starts_at, row.ends_at, row.workers)
