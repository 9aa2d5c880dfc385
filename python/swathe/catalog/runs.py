"""Runs of applications: their arrays, and where each of their iterations lies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from swathe.catalog.database import Database
from swathe.catalog.records.runs import (
    DumpRecord,
    DumpTotals,
    FailoverRecord,
    RecentDump,
    RunArrayRecord,
    RunRecord,
    RunState,
)
from swathe.catalog.tables import RunArrayRow, RunDumpRow, RunFailoverRow, RunRow
from swathe.core.errors import CatalogError, NoSuchRunError, OptionError
from swathe.core.host import has_process, process_space, this_host

if TYPE_CHECKING:
    from sqlalchemy import Select

ATTEMPTS = 20
"""Runs of one name that begin at the same time get a number one after the other."""
RECENT_RUNS = 20
"""Runs whose dumps say how long writing to a store takes."""
TOMBSTONE = "removed"
"""State of a run that was removed, in the database only."""


class RunRecords(Database):
    """Runs of applications."""

    def begin_run(
        self, name: str, iterations: int, ranks: int, *, folder: str | None = None
    ) -> RunRecord:
        """Add a run of an application; it has the next number of this name.

        Args:
            name: name of the application, at most 100 characters.
            iterations: number of its last iteration.
            ranks: number of processes that share each array.
            folder: name of its folder in stores; by default one that no other run has.
        """
        for _ in range(ATTEMPTS):
            with self._writing() as session:
                if folder is not None:
                    query = _present().where(RunRow.folder == folder)
                    if (row := session.scalar(query)) is not None:
                        raise OptionError(
                            f"{folder}: the catalogue has this run, {row.name}@{row.number}"
                        )
                last = session.scalar(select(func.max(RunRow.number)).where(RunRow.name == name))
                number = (last or 0) + 1
                row = RunRow(
                    name=name,
                    number=number,
                    # Other catalogues may have runs of this name in the same store.
                    folder=folder or f"{name}-{number}-{token_hex(3)}.zarr",
                    host=this_host(),
                    process_space=process_space(),
                    pid=os.getpid(),
                    holder=None,
                    iterations=iterations,
                    ranks=ranks,
                    state="running",
                    began_at=datetime.now(UTC),
                    ended_at=None,
                )
                session.add(row)
                try:
                    session.flush()
                except IntegrityError:
                    session.rollback()
                    continue
                return _record(row)
        raise CatalogError(f"run {name}: no number was free after {ATTEMPTS} attempts")

    def end_run(self, run_id: int, state: RunState) -> None:
        """Record that a run has ended."""
        with self._writing() as session:
            values = {"state": state, "ended_at": datetime.now(UTC)}
            query = update(RunRow).where(RunRow.id == run_id, RunRow.state != TOMBSTONE)
            session.execute(query.values(values))

    def runs(self, name: str | None = None, most: int | None = None) -> list[RunRecord]:
        """Return the runs of an application, or all, the newest first; `most` of them."""
        query = _present().order_by(RunRow.id.desc())  # clocks may jump
        if name is not None:
            query = query.where(RunRow.name == name)
        with self._reading() as session:
            return [_record(row) for row in session.scalars(query.limit(most))]

    def run(self, label: str) -> RunRecord:
        """Return a run by `NAME@NUMBER`, or the newest of an application by `NAME`.

        Raises:
            NoSuchRunError: If there is none.
        """
        name, at, number = label.partition("@")
        query = _present().where(RunRow.name == name).order_by(RunRow.number.desc()).limit(1)
        if at:
            if not number.isascii() or not number.isdigit() or len(number) > 18:
                raise NoSuchRunError(
                    f"expected NAME or NAME@NUMBER of a run, found {label[:120]!r}"
                )
            query = query.where(RunRow.number == int(number))
        with self._reading() as session:
            row = session.scalar(query)
            if row is None:
                raise NoSuchRunError(f"there is no run {label[:120]!r}; see: swathe run list")
            return _record(row)

    @contextmanager
    def hold_run(self, run: RunRecord, work: str, *, force: bool = False) -> Iterator[None]:
        """Work on the dumps of a run alone, as one that moves or removes them.

        Args:
            run: the run.
            work: what is done, for others that wait.
            force: whether to begin although another process has not ended its work.

        Raises:
            OptionError: If another process works on it.
        """
        process = {"host": this_host(), "space": process_space(), "pid": os.getpid()}
        own = json.dumps({**process, "work": work, "token": token_hex(4)})
        with self._writing() as session:
            row = session.get_one(RunRow, run.id)
            before = row.holder
            holder = json.loads(before or "{}")
            if (
                holder
                and not force
                and not _is_gone(holder["host"], holder["space"], holder["pid"])
            ):
                raise OptionError(
                    f"{run.label}: process {holder['pid']} of {holder['host']} is at work on it "
                    f"({holder['work']}); begin with force if that process is gone"
                )
            # Read again: of two that begin at once, the database lets one write after the other.
            query = update(RunRow).where(RunRow.id == run.id)
            query = query.where(RunRow.holder.is_not_distinct_from(before)).returning(RunRow.id)
            if session.scalar(query.values(holder=own)) is None:
                raise OptionError(f"{run.label}: another process began to work on it")
        try:
            yield
        finally:
            with self._writing() as session:
                query = update(RunRow).where(RunRow.id == run.id, RunRow.holder == own)
                session.execute(query.values(holder=None))

    def remove_run(self, run_id: int) -> None:
        """Forget a run, its arrays and where they lie. No later run gets its number."""
        with self._writing() as session:
            session.execute(delete(RunArrayRow).where(RunArrayRow.run_id == run_id))
            query = update(RunRow).where(RunRow.id == run_id).values(state=TOMBSTONE)
            name = session.scalar(query.returning(RunRow.name))
            # The next number is counted from the highest one; lower ones need not be known.
            last = session.scalar(select(func.max(RunRow.number)).where(RunRow.name == name))
            lower = delete(RunRow).where(RunRow.name == name, RunRow.state == TOMBSTONE)
            session.execute(lower.where(RunRow.number < last))

    def add_run_array(
        self, run_id: int, name: str, settings: dict[str, Any], stores: list[str]
    ) -> RunArrayRecord:
        """Add an array to a run.

        Args:
            run_id: the run.
            name: name of the array, at most 100 characters.
            settings: its settings, of plain values.
            stores: names of the stores that its dumps go to.

        Raises:
            OptionError: If the run has an array of this name.
        """
        with self._writing() as session:
            row = RunArrayRow(run_id=run_id, name=name, settings=settings, stores=stores)
            session.add(row)
            try:
                session.flush()
            except IntegrityError:
                raise OptionError(f"array {name}: the run has one of this name already") from None
            return _array_record(row)

    def run_arrays(self, run_id: int) -> list[RunArrayRecord]:
        """Return the arrays of a run, in the order in which they were added."""
        query = select(RunArrayRow).where(RunArrayRow.run_id == run_id).order_by(RunArrayRow.id)
        with self._reading() as session:
            return [_array_record(row) for row in session.scalars(query)]

    def remove_run_array(self, array_id: int) -> None:
        """Forget an array of a run, and where it lies."""
        with self._writing() as session:
            session.execute(delete(RunArrayRow).where(RunArrayRow.id == array_id))

    def put_dump(self, array_id: int, dump: DumpRecord) -> None:
        """Record that an array at one iteration is durable, and where it lies."""
        key = {"array_id": array_id, "iteration": dump.iteration}
        with self._writing() as session:
            connection = session.connection()
            connection.execute(_DELETE_DUMP, key)
            connection.execute(_INSERT_DUMP, key | asdict(dump))

    def set_array_stores(self, array_id: int, stores: list[str]) -> None:
        """Record which stores have an array of a run, or parts of it."""
        with self._writing() as session:
            query = update(RunArrayRow).where(RunArrayRow.id == array_id)
            session.execute(query.values(stores=stores))

    def remove_dump(self, array_id: int, iteration: int) -> None:
        """Forget where an array at one iteration lies."""
        with self._writing() as session:
            key = {"array_id": array_id, "iteration": iteration}
            session.connection().execute(_DELETE_DUMP, key)

    def dumps(self, array_id: int) -> list[DumpRecord]:
        """Return where the iterations of an array lie, in their order."""
        table = RunDumpRow
        query = select(table).where(table.array_id == array_id).order_by(table.iteration)
        with self._reading() as session:
            return [_dump_record(row) for row in session.scalars(query)]

    def dump_page(
        self, array_id: int, most: int, after: int = -1, *, is_newest_first: bool = False
    ) -> list[DumpRecord]:
        """Return where some iterations of an array lie.

        Args:
            array_id: the array.
            most: how many, at most.
            after: only later iterations than this one.
            is_newest_first: whether the last iterations are returned, the last first.
        """
        table = RunDumpRow
        query = select(table).where(table.array_id == array_id, table.iteration > after)
        order = table.iteration.desc() if is_newest_first else table.iteration
        with self._reading() as session:
            return [_dump_record(row) for row in session.scalars(query.order_by(order).limit(most))]

    def dump(self, array_id: int, iteration: int) -> DumpRecord | None:
        """Return where an array at one iteration lies; `None` if it was not written."""
        with self._reading() as session:
            row = session.get(RunDumpRow, (array_id, iteration))
            return None if row is None else _dump_record(row)

    def dump_totals(self, run_id: int) -> list[DumpTotals]:
        """Return the dumps of a run in numbers, for each array and store that has some."""
        dump = RunDumpRow
        query = (
            select(
                *(dump.array_id, dump.store, func.count(), func.sum(dump.bytes)),
                *(func.sum(dump.seconds), func.count(dump.target)),
                *(func.min(dump.iteration), func.max(dump.iteration)),
            )
            .join(RunArrayRow, RunArrayRow.id == dump.array_id)
            .where(RunArrayRow.run_id == run_id)
            .group_by(dump.array_id, dump.store)
            .order_by(dump.array_id, func.min(dump.iteration))
        )
        with self._reading() as session:
            rows = session.execute(query).all()
            # PostgreSQL adds whole numbers to decimal ones.
            return [
                DumpTotals(array_id, store, dumps, int(size), seconds, to_drain, first, last)
                for array_id, store, dumps, size, seconds, to_drain, first, last in rows
            ]

    def recent_dumps(self, store: str, host: str, most: int) -> list[RecentDump]:
        """Return dumps that recent runs of a host wrote to a store, oldest first.

        Args:
            store: name of the store.
            host: the machine that began the runs.
            most: how many, at most.

        Returns:
            The dumps. Those that were moved there are left out.
        """
        newest = select(RunRow.id).where(RunRow.host == host, RunRow.state != TOMBSTONE)
        newest = newest.order_by(RunRow.id.desc())
        query = (
            select(RunRow.id, RunRow.ranks, RunArrayRow.settings, RunDumpRow)
            .join(RunArrayRow, RunArrayRow.id == RunDumpRow.array_id)
            .join(RunRow, RunRow.id == RunArrayRow.run_id)
            .where(RunArrayRow.run_id.in_(newest.limit(RECENT_RUNS)))
            .where(RunDumpRow.store == store, RunDumpRow.seconds > 0)
            # Not by time: clocks may jump.
            .order_by(RunRow.id.desc(), RunDumpRow.iteration.desc(), RunDumpRow.array_id.desc())
            .limit(most)
        )
        with self._reading() as session:
            rows = session.execute(query).all()
            return [
                RecentDump(run_id, ranks, dict(settings), _dump_record(row))
                for run_id, ranks, settings, row in reversed(rows)
            ]

    def add_failover(self, array_id: int, failover: FailoverRecord) -> None:
        """Record that an array has left a store, and add the next ones to its stores."""
        with self._writing() as session:
            session.add(
                RunFailoverRow(
                    array_id=array_id,
                    store=failover.store,
                    next_stores=list(failover.next_stores),
                    iteration=failover.iteration,
                    reason=failover.reason,
                    at=failover.at,
                )
            )
            row = session.get_one(RunArrayRow, array_id)
            row.stores = list(dict.fromkeys([*row.stores, *failover.next_stores]))

    def failovers(self, array_id: int) -> list[FailoverRecord]:
        """Return the stores that an array has left, in order."""
        table = RunFailoverRow
        query = select(table).where(table.array_id == array_id).order_by(table.id)
        with self._reading() as session:
            return [
                FailoverRecord(row.store, tuple(row.next_stores), row.iteration, row.reason, row.at)
                for row in session.scalars(query)
            ]


_DELETE_DUMP = delete(RunDumpRow).where(
    RunDumpRow.array_id == bindparam("array_id"), RunDumpRow.iteration == bindparam("iteration")
)
_INSERT_DUMP = insert(RunDumpRow)
"""Made once, and run without objects for rows: while a run computes between its dumps, the memory
caches forget the code."""


def _present() -> Select[RunRow]:
    """Return the query for all runs that were not removed."""
    return select(RunRow).where(RunRow.state != TOMBSTONE)


def _dump_record(row: RunDumpRow) -> DumpRecord:
    return DumpRecord(
        *(row.iteration, row.slot, row.store, row.bytes, row.seconds, row.at), target=row.target
    )


def _array_record(row: RunArrayRow) -> RunArrayRecord:
    return RunArrayRecord(row.id, row.name, dict(row.settings), list(row.stores))


def _is_gone(host: str, space: str, pid: int) -> bool:
    """Check whether a process has ended, as far as this one can tell.

    A process in another namespace is not seen from here; one of an earlier boot has ended.
    """
    if host != this_host():
        return False
    if space == process_space() or not space:
        return not has_process(pid)
    return space.partition(" ")[0] != process_space().partition(" ")[0]


def _record(row: RunRow) -> RunRecord:
    is_gone = row.state == "running" and _is_gone(row.host, row.process_space or "", row.pid)
    return RunRecord(
        row.id,
        row.name,
        row.number,
        row.folder,
        row.host,
        row.pid,
        row.iterations,
        row.ranks,
        "stopped" if is_gone else row.state,
        row.began_at,
        row.ended_at,
    )
