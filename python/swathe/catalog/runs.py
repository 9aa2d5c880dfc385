"""Runs of applications: their arrays, and where each of their iterations lies."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError

from swathe.catalog.database import Database
from swathe.catalog.records.runs import DumpRecord, RunArrayRecord, RunRecord, RunState
from swathe.catalog.tables import RunArrayRow, RunDumpRow, RunRow
from swathe.core.errors import CatalogError, NoSuchRunError, OptionError
from swathe.core.host import has_process, this_host

if TYPE_CHECKING:
    from sqlalchemy import Delete

ATTEMPTS = 20
"""Runs of one name that begin at the same time get a number one after the other."""


class RunRecords(Database):
    """Runs of applications."""

    def begin_run(self, name: str, iterations: int, ranks: int) -> RunRecord:
        """Add a run of an application; it has the next number of this name.

        Args:
            name: name of the application, at most 100 characters.
            iterations: number of its last iteration.
            ranks: number of processes that share each array.
        """
        for _ in range(ATTEMPTS):
            with self._writing() as session:
                last = session.scalar(select(func.max(RunRow.number)).where(RunRow.name == name))
                number = (last or 0) + 1
                row = RunRow(
                    name=name,
                    number=number,
                    # Other catalogues may have runs of this name in the same store.
                    folder=f"{name}-{number}-{token_hex(3)}.zarr",
                    host=this_host(),
                    pid=os.getpid(),
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
            session.execute(update(RunRow).where(RunRow.id == run_id).values(values))

    def runs(self, name: str | None = None) -> list[RunRecord]:
        """Return the runs of an application, or all, the newest first."""
        query = select(RunRow).order_by(RunRow.began_at.desc(), RunRow.id.desc())
        if name is not None:
            query = query.where(RunRow.name == name)
        with self._reading() as session:
            return [_record(row) for row in session.scalars(query)]

    def run(self, label: str) -> RunRecord:
        """Return a run by `NAME@NUMBER`, or the newest of an application by `NAME`.

        Raises:
            NoSuchRunError: If there is none.
        """
        name, at, number = label.partition("@")
        query = select(RunRow).where(RunRow.name == name).order_by(RunRow.number.desc()).limit(1)
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

    def remove_run(self, run_id: int) -> None:
        """Forget a run, its arrays and where they lie."""
        with self._writing() as session:
            session.execute(delete(RunRow).where(RunRow.id == run_id))

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

    def put_dump(self, array_id: int, dump: DumpRecord) -> None:
        """Record that an array at one iteration is durable, and where it lies."""
        with self._writing() as session:
            session.execute(_delete_dump(array_id, dump.iteration))
            session.add(
                RunDumpRow(
                    array_id=array_id,
                    iteration=dump.iteration,
                    slot=dump.slot,
                    store=dump.store,
                    bytes=dump.bytes,
                    seconds=dump.seconds,
                    at=dump.at,
                )
            )

    def remove_dump(self, array_id: int, iteration: int) -> None:
        """Forget where an array at one iteration lies."""
        with self._writing() as session:
            session.execute(_delete_dump(array_id, iteration))

    def dumps(self, array_id: int) -> list[DumpRecord]:
        """Return where the iterations of an array lie, in their order."""
        table = RunDumpRow
        query = select(table).where(table.array_id == array_id).order_by(table.iteration)
        with self._reading() as session:
            return [
                DumpRecord(row.iteration, row.slot, row.store, row.bytes, row.seconds, row.at)
                for row in session.scalars(query)
            ]


def _delete_dump(array_id: int, iteration: int) -> Delete:
    table = RunDumpRow
    return delete(table).where(table.array_id == array_id, table.iteration == iteration)


def _array_record(row: RunArrayRow) -> RunArrayRecord:
    return RunArrayRecord(row.id, row.name, dict(row.settings), list(row.stores))


def _record(row: RunRow) -> RunRecord:
    is_gone = row.state == "running" and row.host == this_host() and not has_process(row.pid)
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
