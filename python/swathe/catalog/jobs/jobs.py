"""Jobs of users: requests and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import numpy as np
from sqlalchemy import Select, delete, func, insert, select, update
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.datasets.datasets import claim_dataset
from swathe.catalog.jobs.blocks import (
    LONGEST_NAME,
    insert_rows,
    row_by_name,
    rows_at,
    rows_from,
    rows_into,
    rows_with_status,
)
from swathe.catalog.jobs.callbacks import add_callbacks
from swathe.catalog.jobs.leases import end_complete_job
from swathe.catalog.jobs.mapping import (
    add_notes,
    fail,
    find_job,
    id_to_query,
    job_values,
    to_job_record,
    unknown_job,
)
from swathe.catalog.jobs.retry import retry
from swathe.catalog.jobs.shares import usage_of
from swathe.catalog.records.checks import plain_text
from swathe.catalog.records.datasets import OutputDataset
from swathe.catalog.records.jobs import (
    ACTIVE,
    CallbackUrls,
    DeletedJob,
    JobRecord,
    PastJob,
    Phase,
    RemovalBacklog,
    UserUsage,
)
from swathe.catalog.records.subscriptions import Firing
from swathe.catalog.subscriptions.firing import record_firing, reopen_runs
from swathe.catalog.tables import (
    DeletedJobTable,
    JobBlockTable,
    JobChunkTable,
    JobTable,
    QueryTable,
)
from swathe.core.errors import JobError
from swathe.core.row_record import RowRecord, RowStatus
from swathe.core.row_table import RowTable


class JobQueue(Database):
    """The jobs of all users."""

    def add_job(
        self,
        job: JobRecord,
        rows: RowTable,
        check: Callable[[UserUsage], None],
        staged_rows: int = 0,
        firing: Firing | None = None,
        dataset: OutputDataset | None = None,
        callbacks: CallbackUrls | None = None,
    ) -> JobRecord:
        """Store a job with its rows, by position; `check` raises if its user exceeds a limit.

        The `number` of `job` is ignored. The first `staged_rows` of the waiting rows wait for
        objects on tape. `firing` has the groups of a subscription that it runs, `dataset` is filled
        with its outputs, `callbacks` are the URLs that hear of it.

        Raises:
            DatasetError: If the name of the dataset is taken.
            SubscriptionError: If these groups run already, or the subscription was stopped.
        """
        values = job_values(job)
        first = values["cursor"]
        values["cursor"] += staged_rows
        with self._writing() as session:
            check(usage_of(session, job.owner))
            if dataset is not None:
                claim_dataset(session, dataset)
            number = session.scalars(insert(JobTable).returning(JobTable.number), [values]).one()
            insert_rows(session, number, rows)
            if staged_rows:
                last = first + staged_rows - 1
                chunk = JobChunkTable(job=number, first=first, last=last, state="staging")
                session.add(chunk)
                session.flush()
            if firing is not None:
                record_firing(session, firing, job.id)
            if callbacks is not None:
                add_callbacks(session, number, callbacks)
            return to_job_record(find_job(session, job.id))

    def job(self, job_id: str) -> JobRecord:
        """Return a job.

        Raises:
            NoSuchJobError: If there is no such job.
        """
        with self._reading() as session:
            return to_job_record(find_job(session, job_id))

    def jobs(
        self,
        owner: str | None = None,
        phases: Sequence[Phase] = (),
        after: datetime | None = None,
        last: int | None = None,
    ) -> list[JobRecord]:
        """Return jobs, newest first."""
        query = newest_first(JobTable, owner, phases, after, last)
        with self._reading() as session:
            return [to_job_record(row) for row in session.scalars(query)]

    def job_rows(
        self, job: int, *, start: int = 0, limit: int = 1000, status: RowStatus | None = None
    ) -> RowTable:
        """Return rows of a job, by its number, in the user's order."""
        with self._reading() as session:
            if status is not None:
                return rows_with_status(session, job, [status], start, limit)
            return rows_from(session, job, start, limit)

    def job_results(self, job: int, numbers: Sequence[int]) -> RowTable:
        """Return combined results, by their numbers."""
        with self._reading() as session:
            # They are the last rows, in either order.
            return rows_at(session, job, np.array(numbers, np.int64))

    def rows_into(self, job: int, results: Sequence[int]) -> RowTable:
        """Return the input rows of some combined results, in the user's order."""
        with self._reading() as session:
            return rows_into(session, job, results)

    def row_by_name(self, job: int, name: str) -> RowRecord | None:
        """Return the row with a file name, given without suffix."""
        if plain_text(name, len(name)) != name:
            return None  # no database can hold it
        with self._reading() as session:
            return row_by_name(session, job, name)

    # ---- Changes by users

    def start_job(self, job_id: str, check: Callable[[UserUsage], None]) -> JobRecord:
        """Start a pending job. Others are unchanged."""

        def change(session: Session, job: JobTable) -> None:
            if job.phase == "PENDING":
                check(usage_of(session, job.owner))
                job.phase = "QUEUED"
                end_complete_job(session, job)

        return self._change(job_id, change)

    def cancel_job(self, job_id: str) -> JobRecord:
        """Cancel a job. One that has ended is unchanged."""

        def change(_session: Session, job: JobTable) -> None:
            if job.phase in ACTIVE:
                job.phase, job.ended_at = "ABORTED", datetime.now(UTC)

        return self._change(job_id, change)

    def fail_job(self, job_id: str, reason: Callable[[UserUsage], str | None]) -> JobRecord:
        """End a job if `reason`, called with its user's usage, returns a text.

        A job that has ended is unchanged.
        """

        def change(session: Session, job: JobTable) -> None:
            if (text := reason(usage_of(session, job.owner))) is not None:
                fail(job, text)

        return self._change(job_id, change)

    def resume_job(self, job_id: str, check: Callable[[UserUsage], None]) -> JobRecord:
        """Reset failed and unfinished rows to waiting.

        Raises:
            JobError: If the job has not ended.
        """

        def change(session: Session, job: JobTable) -> None:
            if job.phase in ACTIVE:
                raise JobError(
                    f"job {job.id}: expected a job that has ended, found phase {job.phase}"
                )
            check(usage_of(session, job.owner))
            retry(session, job)
            reopen_runs(session, job.id)
            job.phase, job.failure, job.ended_at = "QUEUED", None, None
            end_complete_job(session, job)

        return self._change(job_id, change)

    def change_job(
        self, job_id: str, *, name: str | None = None, expires_at: datetime | None = None
    ) -> JobRecord:
        """Set the name or the expiry time of a job."""

        def change(_session: Session, job: JobTable) -> None:
            if name is not None:
                job.name = plain_text(name, LONGEST_NAME)
            if expires_at is not None:
                job.expires_at = expires_at

        return self._change(job_id, change)

    def delete_job(self, job_id: str) -> None:
        """Delete a job and its rows; the deletion stays recorded until it is forgotten.

        Raises:
            NoSuchJobError: If there is no such job.
        """
        with self._writing() as session:
            job = find_job(session, job_id, lock=True)
            number = job.number
            record_deletion_of(session, job_id, job.owner, job.bytes + job.scratch_bytes)
            for table in (JobBlockTable, JobChunkTable):
                session.execute(delete(table).where(table.job == number))
            session.execute(delete(JobTable).where(JobTable.number == number))

    def record_deletion(self, job_id: str) -> None:
        """Record a deleted job again, if its record was forgotten before its last results came."""
        with self._writing() as session:
            if session.get(DeletedJobTable, job_id) is None:
                record_deletion_of(session, job_id, "", 0)

    def deleted_jobs(self, before: datetime | None = None) -> list[DeletedJob]:
        """Return deleted jobs, earliest first: all, or those to remove.

        These are the jobs whose results are not removed yet, and jobs deleted before a time.
        """
        columns = DeletedJobTable.id, DeletedJobTable.deleted_at, DeletedJobTable.removed
        query = select(*columns).order_by(DeletedJobTable.deleted_at)
        if before is not None:
            query = query.where(
                DeletedJobTable.removed.is_(False) | (DeletedJobTable.deleted_at < before)
            )
        with self._reading() as session:
            return [DeletedJob(*row) for row in session.execute(query)]

    def removal_backlog(self) -> RemovalBacklog:
        """Return the size of the results of deleted jobs that remain, over all users."""
        size = func.coalesce(func.sum(DeletedJobTable.bytes), 0)
        query = select(func.count(), size).where(DeletedJobTable.removed.is_(False))
        with self._reading() as session:
            jobs, size_bytes = session.execute(query).one()
        return RemovalBacklog(int(jobs), int(size_bytes))

    def record_removal(self, job_id: str) -> None:
        """Record that the results of a deleted job are removed."""
        with self._writing() as session:
            session.execute(
                update(DeletedJobTable).where(DeletedJobTable.id == job_id).values(removed=True)
            )

    def forget_deletion(self, job_id: str) -> None:
        """Forget the record of a deletion: nothing is left of the job."""
        with self._writing() as session:
            session.execute(delete(DeletedJobTable).where(DeletedJobTable.id == job_id))

    def _change(self, job_id: str, change: Callable[[Session, JobTable], None]) -> JobRecord:
        with self._writing() as session:
            job = find_job(session, job_id, lock=True)
            change(session, job)
            job.changes += 1
            session.flush()
            return to_job_record(job)

    def note_job(self, job_id: str, text: str) -> None:
        """Add a warning to a job."""

        def change(_session: Session, job: JobTable) -> None:
            add_notes(job, [text])

        self._change(job_id, change)

    def note_empty_scratch(self, job_id: str) -> None:
        """Record that no pixels of a job wait for combined results any more."""

        def change(_session: Session, job: JobTable) -> None:
            job.scratch_bytes = 0

        self._change(job_id, change)

    def usage_of(self, owner: str) -> UserUsage:
        """Return the usage of a user."""
        with self._reading() as session:
            return usage_of(session, owner)

    def past_jobs(self, last: int) -> list[PastJob]:
        """Return the durations of the last finished jobs that had a prediction."""
        query = (
            select(
                *(JobTable.options, JobTable.predicted, JobTable.ok, JobTable.work_s),
                *(JobTable.started_at, JobTable.ended_at),
            )
            .where(JobTable.phase == "COMPLETED", JobTable.predicted.is_not(None))
            .order_by(JobTable.number.desc())
            .limit(last)
        )
        with self._reading() as session:
            return [
                PastJob(
                    options.get("operation", "cut"),
                    options.get("format", "fits"),
                    ok,
                    work_s,
                    prediction["median_s"] - prediction["overhead_s"],
                    (end - start).total_seconds() if start and end else 0.0,
                )
                for options, prediction, ok, work_s, start, end in session.execute(query)
                if prediction is not None
            ]

    def expired_jobs(self) -> list[str]:
        """Return the ids of expired jobs."""
        query = select(JobTable.id).where(JobTable.expires_at <= datetime.now(UTC))
        with self._reading() as session:
            return list(session.scalars(query))

    def job_state(self, job_id: str) -> tuple[Phase, int]:
        """Return the phase of a job and its number of changes.

        Raises:
            NoSuchJobError: If there is no such job.
        """
        query = select(JobTable.phase, JobTable.changes).where(JobTable.id == id_to_query(job_id))
        with self._reading() as session:
            row = session.execute(query).one_or_none()
        if row is None:
            raise unknown_job(job_id)
        return row[0], row[1]


T = TypeVar("T", JobTable, QueryTable)


def newest_first(
    table: type[T],
    owner: str | None,
    phases: Sequence[Phase],
    after: datetime | None,
    last: int | None,
) -> Select[T]:
    """Select jobs, of cutting or of queries, newest first.

    Args:
        table: that of the jobs.
        owner: user whose jobs they are; `None` for those of all.
        phases: their phases; empty for any.
        after: time after which they were made.
        last: largest number of them.
    """
    query = select(table).order_by(table.number.desc())
    if owner is not None:
        query = query.where(table.owner == owner)
    if phases:
        query = query.where(table.phase.in_(phases))
    if after is not None:
        query = query.where(table.created_at > after)
    return query if last is None else query.limit(max(0, last))


def record_deletion_of(session: Session, job_id: str, owner: str, size: int) -> None:
    """Record a deleted job, whose results are removed later."""
    session.add(
        DeletedJobTable(
            id=job_id, owner=owner, bytes=size, deleted_at=datetime.now(UTC), removed=False
        )
    )
