"""Versions of what users add: algorithms and libraries. A version never changes.

One that was removed keeps its source: nothing else can take its name, and jobs still have it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from swathe.catalog.database import Database
from swathe.catalog.records.checks import plain_text
from swathe.catalog.tables import AlgorithmRow, LibraryRow
from swathe.core.errors import (
    AlgorithmError,
    AlgorithmExistsError,
    LimitError,
    NoSuchAlgorithmError,
)
from swathe.core.format import size_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import ColumnElement, Select
    from sqlalchemy.orm import Session

Row = TypeVar("Row", AlgorithmRow, LibraryRow)
Record = TypeVar("Record")

NOUNS = {AlgorithmRow: "algorithm", LibraryRow: "library"}


class VersionRecords(Database):
    """Versions in one of the tables of `NOUNS`."""

    def _add_version(
        self,
        make: Callable[[], Row],
        same: Callable[[Session], Row | None],
        record: Callable[[Row], Record],
        most: int,
        most_bytes: int,
    ) -> tuple[Record, bool]:
        """Add a version. The same source again is the same version.

        Args:
            make: function that returns a new row.
            same: function that returns the row that has its name and version, removed or not.
            record: function that returns the record of a row.
            most: most versions that its owner may have.
            most_bytes: most bytes of all their sources.

        Returns:
            The record, and whether it is new.

        Raises:
            AlgorithmExistsError: If the version has another source.
            LimitError: If the user has too many versions, or too large ones.
        """
        for _ in range(2):
            with self._writing() as session:
                new = make()
                label = f"{new.name}@{new.version}"
                row = same(session)
                if row is not None:
                    if row.sha256 != new.sha256:
                        raise AlgorithmExistsError(
                            f"{label}: expected the source that this version has, found another; "
                            "give it a new version"
                        )
                    is_new, row.removed_at = row.removed_at is not None, None
                    return record(row), is_new
                _check_room(session, new, most, most_bytes)
                session.add(new)
                try:
                    session.flush()
                except IntegrityError:  # another process has just added it
                    session.rollback()
                    continue
                return record(new), True
        raise AlgorithmError(f"{label}: is being added and removed at the same time")


def present(table: type[Row], *conditions: ColumnElement[bool]) -> Select[Row]:
    """Return the query of all versions that were not removed, by name, the newest of each first.

    Args:
        table: the table.
        conditions: conditions on its columns, as SQLAlchemy has them.
    """
    query: Select[Row] = select(table).where(table.removed_at.is_(None), *conditions)
    return query.order_by(table.name, table.id.desc())


def newest(
    session: Session,
    table: type[Row],
    label: str,
    *conditions: ColumnElement[bool],
    all_versions: bool = False,
) -> Row | None:
    """Return a version by `NAME@VERSION`, or the newest by `NAME`; `None` if there is none.

    Args:
        session: the session.
        table: the table.
        label: name and version.
        conditions: conditions on its columns.
        all_versions: whether one that was removed counts: jobs keep theirs.
    """
    if label != plain_text(label, 200):
        return None
    name, at, version = label.partition("@")
    query = select(table).where(table.name == name, *conditions)
    if at:
        query = query.where(table.version == version)
    if not all_versions:
        query = query.where(table.removed_at.is_(None))
    row: Row | None = session.scalar(query.order_by(table.id.desc()).limit(1))
    return row


def existing(
    session: Session,
    table: type[Row],
    label: str,
    *conditions: ColumnElement[bool],
    all_versions: bool = False,
) -> Row:
    """Return a version as `newest` does.

    Raises:
        NoSuchAlgorithmError: If there is none.
    """
    row = newest(session, table, label, *conditions, all_versions=all_versions)
    if row is None:
        noun = NOUNS[table]
        raise NoSuchAlgorithmError(f"there is no {noun} {label[:120]!r}; see: swathe {noun} list")
    return row


def remove_versions(
    session: Session, row: Row, label: str, *conditions: ColumnElement[bool]
) -> list[Row]:
    """Mark a version as removed, or all of its name if the label has no version; return them."""
    table = type(row)
    query = present(table, table.name == row.name, *conditions)
    rows = [row] if "@" in label else list(session.scalars(query))
    for each in rows:
        each.removed_at = datetime.now(UTC)
    return rows


def _check_room(session: Session, new: Row, most: int, most_bytes: int) -> None:
    """Check that the owner of a new version may add it.

    Raises:
        LimitError: If there are too many, or too large ones.
    """
    table = type(new)
    query = select(func.count(), func.sum(table.bytes)).where(table.owner == new.owner)
    count, total = session.execute(query).one()
    if count >= most or (total or 0) + new.bytes > most_bytes:
        raise LimitError(
            f"{new.owner}: expected at most {most:,} versions of {table.__tablename__}, "
            f"removed ones among them, and "
            f"{size_text(most_bytes)} in all"
        )
