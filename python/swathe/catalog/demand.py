"""What a pool of workers is to be ready for: what waits, and what is reserved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete, select

from swathe.catalog.database import Database
from swathe.catalog.tables import JobTable, ReservationTable


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


class Demand(Database):
    """What workers are wanted for."""

    def waiting(self) -> list[Waiting]:
        """Give what waits to be done, those rows included that are being done."""
        columns = JobTable.id, JobTable.waiting, JobTable.inputs, JobTable.predicted
        query = select(*columns).where(
            JobTable.phase.in_(("QUEUED", "EXECUTING")), JobTable.waiting > 0
        )
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
