"""Groups that are to run: their jobs, each run once, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.datasets.datasets import dataset_number
from swathe.catalog.records.subscriptions import (
    DueGroup,
    DueGroups,
    EventKind,
    Firing,
    Member,
    RunResult,
)
from swathe.catalog.subscriptions.events import add_event
from swathe.catalog.subscriptions.plain_values import to_subscription
from swathe.catalog.tables import (
    DatasetRow,
    GranuleRow,
    StoreRow,
    SubscriptionGranuleRow,
    SubscriptionGroupRow,
    SubscriptionRunRow,
    SubscriptionTable,
)
from swathe.core.errors import SubscriptionError

MOST_GROUPS = 500
"""Groups of a job."""
MOST_MEMBERS = 5000
"""Objects of a job, unless one group has more."""
MOST_PATHS = 500
"""Paths in one query."""
SHOWN_MEMBERS = 1000
"""Objects of a group that an event names."""
RUNS = ("active", "ended")
"""States of subscriptions whose groups run."""


class SubscriptionRuns(Database):
    """Runs of subscriptions."""

    def due_groups(self, after: int = 0) -> DueGroups | None:
        """Return groups that are to run, of the next subscription after a number that has some.

        After the last one the first follows; `None` if there is none.
        """
        table, group = SubscriptionTable, SubscriptionGroupRow
        query = (
            select(table, StoreRow.name)
            .join(DatasetRow, DatasetRow.name == table.dataset)
            .join(StoreRow, StoreRow.id == DatasetRow.store_id)
            .where(
                table.state.in_(RUNS),
                table.number.in_(
                    select(group.subscription).where(group.due_at <= datetime.now(UTC))
                ),
            )
            .order_by(table.number <= after, table.number)
            .limit(1)
        )
        with self._reading() as session:
            row = session.execute(query).first()
            if row is None:
                return None
            subscription, store = row
            groups = _due_groups(session, subscription.number)
            return DueGroups(subscription.number, to_subscription(subscription), store, groups)

    def times_of(self, due: DueGroups) -> dict[str, tuple[float | None, float | None]]:
        """Return the first and the last time of each granule of groups, as MJD, by its path."""
        paths = sorted({one.path for each in due.groups for one in each.members})
        times: dict[str, tuple[float | None, float | None]] = {}
        with self._reading() as session:
            dataset = dataset_number(session, due.subscription.collection)
            for at in range(0, len(paths), MOST_PATHS):
                query = (
                    select(GranuleRow.path, func.min(GranuleRow.t_min), func.max(GranuleRow.t_max))
                    .where(
                        GranuleRow.dataset_id == dataset,
                        GranuleRow.path.in_(paths[at : at + MOST_PATHS]),
                    )
                    .group_by(GranuleRow.path)
                )
                for path, first, last in session.execute(query):
                    times[path] = first, last
        return times

    def known_signatures(self, number: int, signatures: Sequence[str]) -> set[str]:
        """Return which runs a subscription, by its number, has in its ledger."""
        run = SubscriptionRunRow
        query = select(run.signature).where(
            run.subscription == number, run.signature.in_(signatures)
        )
        with self._reading() as session:
            return set(session.scalars(query))

    def settle_groups(self, firing: Firing) -> None:
        """Note that groups need no job, since the ledger has their runs."""
        with self._writing() as session:
            record_firing(session, firing, None)

    def postpone_groups(self, due: DueGroups, seconds: float) -> None:
        """Let groups run later."""
        group = SubscriptionGroupRow
        at = datetime.now(UTC) + timedelta(seconds=seconds)
        with self._writing() as session:
            for each in due.groups:
                session.execute(
                    update(group)
                    .where(
                        group.subscription == due.number,
                        group.name == each.name,
                        group.changes == each.changes,
                    )
                    .values(due_at=at)
                )

    def jobs_of_runs(self) -> list[str]:
        """Return the jobs of runs that have not ended."""
        run = SubscriptionRunRow
        query = select(run.job).where(run.state == "waiting").distinct()
        with self._reading() as session:
            return list(session.scalars(query))

    def finish_runs(self, job: str, results: Mapping[str, RunResult], reason: str) -> None:
        """Record what became of the runs of a job that has ended.

        Args:
            job: id of the job.
            results: its results by group.
            reason: reason for runs without a result.
        """
        run = SubscriptionRunRow
        with self._writing() as session:
            query = select(run).where(run.job == job, run.state == "waiting").order_by(run.id)
            rows = session.scalars(query.with_for_update()).all()
            for row in rows:
                subscription = session.get(
                    SubscriptionTable, row.subscription, with_for_update=True
                )
                assert subscription is not None  # its runs are removed with it
                result = results.get(row.group_name)
                content: dict[str, Any] = {
                    "group": row.group_name,
                    "version": row.version,
                    "job": job,
                }
                if result is not None and result.status == "ok":
                    row.state = "done"
                    add_event(session, subscription, "run.done", {**content, "file": result.file})
                else:
                    row.state = "failed"
                    content["reason"] = reason if result is None else result.reason or reason
                    add_event(session, subscription, "run.failed", content)


def record_firing(session: Session, firing: Firing, job: str | None) -> None:
    """Record that a job runs groups, in the transaction that adds it; `None`: none is needed.

    A group that has changed since it was read stays due. One that has come back to the objects of
    an earlier run gets an event, unless the feed names its version already.

    Raises:
        SubscriptionError: If the ledger has one of the runs already, or the subscription was
            paused or removed meanwhile: then there must be no job.
    """
    due = firing.due
    subscription = session.get(SubscriptionTable, due.number, with_for_update=True)
    if subscription is None or subscription.state not in RUNS:
        raise SubscriptionError(f"subscription {due.subscription.id}: it was stopped meanwhile")
    run, group = SubscriptionRunRow, SubscriptionGroupRow
    earlier_runs = {
        row.signature: row
        for row in session.scalars(
            select(run).where(
                run.subscription == due.number, run.signature.in_(firing.signatures.values())
            )
        )
    }
    if job is not None and earlier_runs:
        raise SubscriptionError(f"subscription {due.subscription.id}: it runs these groups already")
    for each in due.groups:
        row = session.get(group, (due.number, each.name), with_for_update=True)
        if row is None:
            continue
        if row.changes == each.changes:
            row.due_at = None
        signature = firing.signatures[each.name]
        content: dict[str, Any] = {
            "group": each.name,
            "algorithm": firing.label,
            "granules": [
                {"granule": one.path, "object_version": one.version}
                for one in each.members[:SHOWN_MEMBERS]
            ],
        }
        if job is None:
            before = earlier_runs[signature]
            if row.changes == each.changes and row.current_version != before.version:
                row.current_version = before.version
                kind: EventKind = "result.missing" if before.state == "failed" else "run.current"
                facts = {"version": before.version, "job": before.job}
                add_event(session, subscription, kind, {**content, **facts})
            continue
        row.versions += 1
        row.current_version = row.versions
        new = run(
            subscription=due.number,
            signature=signature,
            group_name=each.name,
            version=row.versions,
            job=job,
            state="waiting",
        )
        session.add(new)
        content |= {"version": row.versions, "job": job}
        add_event(session, subscription, "run.submitted", content)
    session.flush()


def reopen_runs(session: Session, job: str) -> None:
    """Let failed runs of a job wait for its outcome again, in the transaction that resumes it."""
    run = SubscriptionRunRow
    session.execute(
        update(run).where(run.job == job, run.state == "failed").values(state="waiting")
    )


def _due_groups(session: Session, number: int) -> list[DueGroup]:
    """Return the groups of a subscription that are due, earliest first, as many as fit a job."""
    group, granule = SubscriptionGroupRow, SubscriptionGranuleRow
    query = (
        select(group.name, group.changes)
        .where(group.subscription == number, group.due_at <= datetime.now(UTC))
        .order_by(group.due_at, group.name)
        .limit(MOST_GROUPS)
    )
    due = session.execute(query).all()
    names = [each.name for each in due]
    here = (granule.subscription == number, granule.group_name.in_(names))
    counts = dict(
        session.execute(
            select(granule.group_name, func.count()).where(*here).group_by(granule.group_name)
        ).all()
    )
    group_names: list[str] = []
    total = 0
    for name in names:
        total += counts.get(name, 0)
        if group_names and total > MOST_MEMBERS:
            break
        group_names.append(name)
    members: dict[str, list[Member]] = {name: [] for name in group_names}
    rows = session.execute(
        select(granule.group_name, granule.path, granule.version)
        .where(granule.subscription == number, granule.group_name.in_(group_names))
        .order_by(func.coalesce(granule.t_min, 0.0), granule.path)
    )
    for name, path, version in rows:
        members[name].append(Member(path, version))
    changes: dict[str, int] = {each.name: each.changes for each in due}
    return [DueGroup(name, changes[name], members[name]) for name in group_names]
