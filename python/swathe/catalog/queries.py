"""Queries of users as jobs: stored, leased to the portal that runs them, ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, insert, or_, select
from sqlalchemy.orm import Session, aliased

from swathe.catalog.database import Database
from swathe.catalog.jobs.blocks import LONGEST_NAME, LONGEST_REASON
from swathe.catalog.jobs.jobs import newest_first, record_deletion_of
from swathe.catalog.jobs.mapping import id_to_query, unknown_job
from swathe.catalog.records.checks import plain_text
from swathe.catalog.records.jobs import ACTIVE, AT_WORK, Phase
from swathe.catalog.records.queries import QueryRecord
from swathe.catalog.tables import QueryTable
from swathe.core.errors import JobError

MOST_TRIES = 2
"""A query that was begun this often, and whose portal died each time, is an error."""
PLAIN = [each.name for each in fields(QueryRecord) if each.name != "parameters"]


class QueryQueue(Database):
    """The queries of all users."""

    def add_query(self, query: QueryRecord, check: Callable[[int], None]) -> QueryRecord:
        """Store a query. `check` is called with the number of queries of its user at work.

        Raises:
            LimitError: If `check` does.
        """
        values = {name: getattr(query, name) for name in PLAIN}
        values["name"] = plain_text(query.name, LONGEST_NAME)
        values["parameters"] = _parameters(query.parameters)
        with self._writing() as session:
            count = select(func.count()).where(
                QueryTable.owner == query.owner, QueryTable.phase.in_(ACTIVE)
            )
            check(session.scalar(count) or 0)
            session.execute(insert(QueryTable), [values])
        return query

    def query(self, query_id: str) -> QueryRecord:
        """Return a query.

        Raises:
            NoSuchJobError: If there is no such query.
        """
        with self._reading() as session:
            return _record(_row(session, query_id))

    def queries(
        self,
        owner: str | None = None,
        phases: Sequence[Phase] = (),
        after: datetime | None = None,
        last: int | None = None,
    ) -> list[QueryRecord]:
        """Return queries, newest first."""
        query = newest_first(QueryTable, owner, phases, after, last)
        with self._reading() as session:
            return [_record(row) for row in session.scalars(query)]

    def query_state(self, query_id: str) -> tuple[Phase, int]:
        """Return the phase of a query and its number of changes.

        Raises:
            NoSuchJobError: If there is no such query.
        """
        columns = QueryTable.phase, QueryTable.changes
        query = select(*columns).where(QueryTable.id == id_to_query(query_id))
        with self._reading() as session:
            row = session.execute(query).one_or_none()
        if row is None:
            raise unknown_job(query_id)
        return row[0], row[1]

    def start_query(self, query_id: str) -> QueryRecord:
        """Release a pending query. Others are unchanged."""

        def change(row: QueryTable) -> None:
            if row.phase == "PENDING":
                row.phase = "QUEUED"

        return self._change_query(query_id, change)

    def cancel_query(self, query_id: str) -> QueryRecord:
        """Cancel a query. One that has ended is unchanged."""

        def change(row: QueryTable) -> None:
            if row.phase in ACTIVE:
                row.phase, row.ended_at, row.lease_until = "ABORTED", datetime.now(UTC), None

        return self._change_query(query_id, change)

    def change_query(
        self,
        query_id: str,
        *,
        expires_at: datetime | None = None,
        duration_s: int | None = None,
        parameters: Sequence[tuple[str, str]] | None = None,
    ) -> QueryRecord:
        """Set the time of deletion, or, before the start, the duration and the parameters.

        Raises:
            JobError: If it was started already.
        """

        def change(row: QueryTable) -> None:
            if expires_at is not None:
                row.expires_at = expires_at
            if (duration_s, parameters) != (None, None) and row.phase != "PENDING":
                raise JobError(f"job {row.id}: expected it not to be started, found {row.phase}")
            if duration_s is not None:
                row.duration_s = duration_s
            if parameters is not None:
                row.parameters = _parameters(parameters)

        return self._change_query(query_id, change)

    def delete_query(self, query_id: str) -> None:
        """Delete a query; its results are removed as those of jobs are.

        Raises:
            NoSuchJobError: If there is no such query.
        """
        with self._writing() as session:
            row = _row(session, query_id, lock=True)
            record_deletion_of(session, row.id, row.owner, row.bytes)
            session.execute(delete(QueryTable).where(QueryTable.number == row.number))

    def expired_queries(self) -> list[str]:
        """Return the ids of expired queries."""
        query = select(QueryTable.id).where(QueryTable.expires_at <= datetime.now(UTC))
        with self._reading() as session:
            return list(session.scalars(query))

    # ---- For the portal that runs them

    def lease_query(self, lease_s: float) -> QueryRecord | None:
        """Lease the query that waits longest, or one whose portal died; None if there is none.

        A user has one query at work, so that others have their turn.
        """
        now = datetime.now(UTC)
        is_free = or_(QueryTable.phase == "QUEUED", QueryTable.lease_until < now)
        other = aliased(QueryTable)
        is_at_work = (
            select(other.number)
            .where(other.owner == QueryTable.owner, other.phase == "EXECUTING")
            .where(other.lease_until >= now)
            .exists()
        )
        query = (
            select(QueryTable)
            .where(QueryTable.phase.in_(AT_WORK), is_free, ~is_at_work)
            .order_by(QueryTable.number)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        with self._reading() as session:
            if session.scalars(query.with_only_columns(QueryTable.id)).first() is None:
                return None  # without a lock for writing, as it is asked every second
        with self._writing() as session:
            row = session.scalars(query).first()
            if row is None:
                return None
            row.changes += 1
            if row.tries >= MOST_TRIES:
                row.phase, row.ended_at, row.lease_until = "ERROR", now, None
                row.failure = f"the portal stopped {MOST_TRIES} times while it ran"
                return None
            row.phase, row.tries = "EXECUTING", row.tries + 1
            row.started_at = row.started_at or now
            row.lease_until = now + timedelta(seconds=lease_s)
            session.flush()
            return _record(row)

    def renew_query(self, query_id: str, lease_s: float) -> bool:
        """Renew a lease; return whether the query is still to be run."""
        with self._writing() as session:
            query = select(QueryTable).where(QueryTable.id == query_id)
            row = session.scalars(query).one_or_none()
            if row is None or row.phase != "EXECUTING":
                return False
            row.lease_until = datetime.now(UTC) + timedelta(seconds=lease_s)
            return True

    def release_query(self, query_id: str) -> None:
        """Let another portal run a query, as this one ends."""
        with self._writing() as session:
            query = select(QueryTable).where(QueryTable.id == query_id)
            row = session.scalars(query).one_or_none()
            if row is not None and row.phase == "EXECUTING":
                row.phase, row.lease_until, row.tries = "QUEUED", None, row.tries - 1
                row.changes += 1

    def end_query(
        self, query_id: str, *, size: int = 0, media_type: str = "", failure: str | None = None
    ) -> QueryRecord:
        """Record the end of a query: its answer, or why it failed. A cancelled one is unchanged.

        Raises:
            NoSuchJobError: If it was deleted.
        """

        def change(row: QueryTable) -> None:
            if row.phase == "EXECUTING":
                row.phase = "COMPLETED" if failure is None else "ERROR"
                row.ended_at, row.lease_until = datetime.now(UTC), None
                row.bytes, row.media_type = size, media_type or None
                row.failure = None if failure is None else plain_text(failure, LONGEST_REASON)

        return self._change_query(query_id, change)

    def _change_query(self, query_id: str, change: Callable[[QueryTable], None]) -> QueryRecord:
        with self._writing() as session:
            row = _row(session, query_id, lock=True)
            change(row)
            row.changes += 1
            session.flush()
            return _record(row)


def _parameters(pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [[plain_text(part, len(part)) for part in pair] for pair in pairs]


def _row(session: Session, query_id: str, lock: bool = False) -> QueryTable:
    query = select(QueryTable).where(QueryTable.id == id_to_query(query_id))
    row = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise unknown_job(query_id)
    return row


def _record(row: QueryTable) -> QueryRecord:
    values: dict[str, Any] = {name: getattr(row, name) for name in PLAIN}
    return QueryRecord(parameters=[(name, value) for name, value in row.parameters], **values)
