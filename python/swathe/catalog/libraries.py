"""Libraries of users: packages by owner, name and version."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from swathe.catalog.records.algorithms import LibraryRecord
from swathe.catalog.records.checks import plain_text
from swathe.catalog.tables import LibraryRow
from swathe.catalog.versions import VersionRecords, existing, newest, present, remove_versions

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

MOST_BYTES = 500_000_000
"""Bytes of all libraries of one user, removed ones too."""
MOST_LIBRARIES = 200
"""Versions of libraries of one user, removed ones too."""


class LibraryRecords(VersionRecords):
    """Libraries of users."""

    def add_library(
        self, name: str, version: str, source: bytes, owner: str, language: str, description: str
    ) -> tuple[LibraryRecord, bool]:
        """Add a version of a library; return its record, and whether it is new.

        Args:
            name: name, of this owner alone.
            version: version.
            source: its package.
            owner: user who adds it.
            language: language of its sources.
            description: line for lists.

        Raises:
            AlgorithmExistsError: If the version has another package.
            LimitError: If the user has too many, or too large ones.
        """

        def make() -> LibraryRow:
            return LibraryRow(
                owner=owner,
                name=name,
                version=version,
                language=language,
                sha256=sha256(source).hexdigest(),
                source=source,
                bytes=len(source),
                description=plain_text(description, 200),
                added_at=datetime.now(UTC),
                removed_at=None,
            )

        def same(session: Session) -> LibraryRow | None:
            label = f"{name}@{version}"
            return newest(session, LibraryRow, label, _is_of(owner), all_versions=True)

        return self._add_version(make, same, _record, MOST_LIBRARIES, MOST_BYTES)

    def libraries(self, owner: str) -> list[LibraryRecord]:
        """Return all versions of libraries of a user, by name, the newest of each first."""
        with self._reading() as session:
            rows = session.scalars(present(LibraryRow, _is_of(owner)))
            return [_record(row) for row in rows]

    def library(
        self, label: str, owner: str, *, all_versions: bool = False
    ) -> tuple[LibraryRecord, bytes]:
        """Return a version and its package by `NAME@VERSION`, or the newest by `NAME`.

        Args:
            label: name and version.
            owner: user whose library it is.
            all_versions: whether one that was removed counts, as for algorithms.

        Raises:
            NoSuchAlgorithmError: If there is none.
        """
        with self._reading() as session:
            row = existing(session, LibraryRow, label, _is_of(owner), all_versions=all_versions)
            return _record(row), row.source

    def remove_library(self, label: str, owner: str) -> list[LibraryRecord]:
        """Remove a version, or by `NAME` all; algorithms that name one still have it.

        Raises:
            NoSuchAlgorithmError: If there is none.
        """
        with self._writing() as session:
            row = existing(session, LibraryRow, label, _is_of(owner))
            rows = remove_versions(session, row, label, _is_of(owner))
            return [_record(each) for each in rows]


def _is_of(owner: str) -> ColumnElement[bool]:
    return LibraryRow.owner == owner


def _record(row: LibraryRow) -> LibraryRecord:
    return LibraryRecord(
        row.name,
        row.version,
        row.owner,
        row.language,
        row.sha256,
        row.bytes,
        row.description,
        row.added_at,
    )
