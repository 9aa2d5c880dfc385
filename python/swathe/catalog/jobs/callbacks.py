"""Callbacks of jobs: which are due, and what became of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.due_turns import LOOKS, DueTurns
from swathe.catalog.records.jobs import END_PHASES, CallbackUrls, DueCallback
from swathe.catalog.tables import JobCallbackRow, JobTable

LEASE_S = 60.0
"""Time for a callback, after which another process may try it."""


class JobCallbacks(Database):
    """Callbacks of jobs."""

    def due_callbacks(self, limit: int, of_a_user: int) -> list[DueCallback]:
        """Return callbacks that are due, earliest first, of jobs that run, have ended or wait.

        They are leased for LEASE_S: after that they are due again, if nothing was recorded.

        Args:
            limit: largest number of callbacks.
            of_a_user: largest number of those of one user.
        """
        row, job = JobCallbackRow, JobTable
        now = datetime.now(UTC)
        query = (
            select(row, job.id, job.owner)
            .join(job, job.number == row.job)
            .where(
                row.due_at <= now,
                or_(
                    job.phase.in_((*END_PHASES, "PENDING")),
                    (job.phase == "EXECUTING") & row.in_progress.is_not(None),
                ),
            )
            .order_by(row.due_at)
            .limit(LOOKS * limit)
            .with_for_update(of=row)
        )
        with self._writing() as session:
            due: list[DueCallback] = []
            turns = DueTurns(limit, of_a_user)
            for each, job_id, owner in session.execute(query):
                if not turns.take(owner):
                    continue
                each.due_at = now + timedelta(seconds=LEASE_S)
                urls = CallbackUrls(each.success, each.in_progress, each.failure)
                due.append(DueCallback(each.job, job_id, urls, each.tries))
            return due

    def postpone_callback(self, due: DueCallback, retry_at: datetime, tries: int) -> None:
        """Let a callback be tried at a time, after a number of tries."""
        row = JobCallbackRow
        with self._writing() as session:
            session.execute(
                update(row)
                .where(row.job == due.number, row.tries == due.tries)
                .values(due_at=retry_at, tries=tries)
            )

    def end_progress_callback(self, due: DueCallback) -> None:
        """Record that the URL for progress was told; the others are due when the job ends."""
        row = JobCallbackRow
        with self._writing() as session:
            session.execute(
                update(row)
                .where(row.job == due.number)
                .values(in_progress=None, tries=0, due_at=datetime.now(UTC))
            )

    def end_callbacks(self, due: DueCallback) -> None:
        """Record that nothing more is to be sent about a job."""
        with self._writing() as session:
            session.execute(delete(JobCallbackRow).where(JobCallbackRow.job == due.number))


def add_callbacks(session: Session, job: int, urls: CallbackUrls) -> None:
    """Add the callbacks of a job, by its number, in the transaction that adds it."""
    session.add(
        JobCallbackRow(
            job=job,
            success=urls.success,
            in_progress=urls.in_progress,
            failure=urls.failure,
            tries=0,
            due_at=datetime.now(UTC),
        )
    )
