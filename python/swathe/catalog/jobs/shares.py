"""Shares of users: what each has taken of slots and disk, and whose turn it is.

A slot is charged by the lease of a program, and given back with it: there is no other counter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from swathe.catalog.datasets.datasets import bytes_of_owner
from swathe.catalog.records.jobs import ACTIVE, AT_WORK, Share, UserUsage
from swathe.catalog.tables import DeletedJobTable, JobChunkTable, JobTable, QueryTable

Shares = Callable[[str], Share]
"""Returns the share of a user."""


class AtWork(NamedTuple):
    """Programs of a user at work, and the bytes that their outputs may take."""

    slots: int = 0
    reserved_bytes: int = 0


def usage_of(session: Session, owner: str) -> UserUsage:
    """Return the usage of a user."""
    mine = JobTable.owner == owner
    jobs, rows = session.execute(
        select(func.count(), func.coalesce(func.sum(JobTable.waiting), 0)).where(
            mine, JobTable.phase.in_(ACTIVE)
        )
    ).one()
    each_bytes = JobTable.bytes + JobTable.scratch_bytes
    size = session.scalar(select(func.coalesce(func.sum(each_bytes), 0)).where(mine))
    deleted_bytes = session.scalar(
        select(func.coalesce(func.sum(DeletedJobTable.bytes), 0)).where(
            DeletedJobTable.owner == owner, DeletedJobTable.removed.is_(False)
        )
    )
    answers = select(func.coalesce(func.sum(QueryTable.bytes), 0)).where(QueryTable.owner == owner)
    size = int(size or 0) + bytes_of_owner(session, owner) + int(session.scalar(answers) or 0)
    at_work = programs_at_work(session, [owner]).get(owner, AtWork())
    return UserUsage(owner, int(jobs), int(rows), size, int(deleted_bytes or 0), *at_work)


def programs_at_work(session: Session, owners: Iterable[str]) -> dict[str, AtWork]:
    """Return the leased programs of users; those who have none are left out.

    A program runs the groups of its lease one after another, and all of them may fill disk.
    """
    groups = JobChunkTable.last - JobChunkTable.first + 1
    query = (
        select(JobTable.owner, func.count(), func.sum(JobTable.group_bytes * groups))
        .join(JobChunkTable, JobChunkTable.job == JobTable.number)
        .where(
            JobTable.owner.in_(set(owners)),
            JobTable.groups.is_not(None),
            JobChunkTable.state == "taken",
            JobChunkTable.first >= JobTable.inputs,
        )
        .group_by(JobTable.owner)
    )
    return {
        owner: AtWork(int(slots), int(size or 0)) for owner, slots, size in session.execute(query)
    }


def groups_with_room(session: Session, job: JobTable, share: Share) -> int:
    """Return how many groups a job may run in one more slot: there is disk for what they may write.

    Without that disk one group of the user runs at a time: what it writes counts afterwards.
    """
    slots = programs_at_work(session, [job.owner]).get(job.owner, AtWork()).slots
    if share.slots and slots >= share.slots:
        return 0
    usage = usage_of(session, job.owner)
    free_bytes = share.result_bytes - usage.stored_bytes - usage.reserved_bytes
    groups = max(0, free_bytes // job.group_bytes) if job.group_bytes else job.rows
    return int(max(groups, slots == 0))


def in_turn(session: Session, shares: Shares) -> list[int]:
    """Return the jobs that may have work, in the order of service.

    Programs come first: they have places of their own. Of their users the one with the fewest at
    work, divided by the priority, comes first. Else the time that users have waited counts,
    multiplied by the priority: it grows without limit, so everyone's turn comes.
    """
    runs_programs = and_(JobTable.groups.is_not(None), JobTable.cursor >= JobTable.inputs)
    active = session.execute(
        select(
            *(JobTable.number, JobTable.owner, JobTable.created_at, JobTable.served_at),
            runs_programs,
        ).where(JobTable.phase.in_(AT_WORK))
    ).all()
    if not active:
        return []
    owners = {owner for _, owner, *_ in active}
    latest = session.execute(
        select(JobTable.owner, func.max(JobTable.served_at), func.max(JobTable.program_at))
        .where(JobTable.owner.in_(owners))
        .group_by(JobTable.owner)
    ).all()
    never, now = datetime.min.replace(tzinfo=UTC), datetime.now(UTC)
    # The owner of a job deleted meanwhile may be missing.
    times = {owner: (served_at, program_at) for owner, served_at, program_at in latest}
    at_work = programs_at_work(session, owners)
    turns = []
    for number, owner, created_at, served_at, is_program in active:
        priority = shares(owner).priority
        last_at, program_at = times.get(owner, (None, None))
        since = (program_at or created_at) if is_program else (last_at or never)
        wait = (now - since).total_seconds() * priority
        load = at_work.get(owner, AtWork()).slots / priority if is_program else 0.0
        turns.append((not is_program, load, -wait, served_at or never, number))
    return [number for *_, number in sorted(turns)]
