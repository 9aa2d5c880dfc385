"""Environments of the operator: interpreters of Python, with the packages of a lock file."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from swathe.catalog.database import Database
from swathe.catalog.records.algorithms import EnvironmentRecord
from swathe.catalog.tables import EnvironmentRow
from swathe.core.errors import AlgorithmError, NoSuchAlgorithmError


class EnvironmentRecords(Database):
    """Environments of the operator."""

    def add_environment(self, record: EnvironmentRecord) -> EnvironmentRecord:
        """Add an environment.

        Raises:
            AlgorithmError: If there is one of this name: results of algorithms depend on it.
        """
        with self._writing() as session:
            row = EnvironmentRow(
                name=record.name,
                python=record.python,
                python_version=record.python_version,
                lock_sha256=record.lock_sha256,
                folders=list(record.folders),
                packages=dict(record.packages),
                added_at=datetime.now(UTC),
            )
            session.add(row)
            try:
                session.flush()
            except IntegrityError as error:
                raise AlgorithmError(
                    f"{record.name}: expected a new name, found an environment that has it; remove "
                    "it first"
                ) from error
            return _record(row)

    def environments(self) -> list[EnvironmentRecord]:
        """Return all environments by name."""
        with self._reading() as session:
            rows = session.scalars(select(EnvironmentRow).order_by(EnvironmentRow.name))
            return [_record(row) for row in rows]

    def environment(self, name: str) -> EnvironmentRecord:
        """Return an environment.

        Raises:
            NoSuchAlgorithmError: If there is none of this name.
        """
        with self._reading() as session:
            row = session.scalar(select(EnvironmentRow).where(EnvironmentRow.name == name))
            if row is None:
                raise _missing(name)
            return _record(row)

    def remove_environment(self, name: str) -> None:
        """Remove an environment; its folder stays.

        Raises:
            NoSuchAlgorithmError: If there is none of this name.
        """
        with self._writing() as session:
            row = session.scalar(select(EnvironmentRow).where(EnvironmentRow.name == name))
            if row is None:
                raise _missing(name)
            session.delete(row)


def _missing(name: str) -> NoSuchAlgorithmError:
    return NoSuchAlgorithmError(
        f"there is no environment {name[:120]!r}; see: swathe environment list"
    )


def _record(row: EnvironmentRow) -> EnvironmentRecord:
    return EnvironmentRecord(
        row.name,
        row.python,
        row.python_version,
        row.lock_sha256,
        tuple(row.folders),
        row.packages,
        row.added_at,
    )
