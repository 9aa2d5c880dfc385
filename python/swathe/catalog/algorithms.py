"""Algorithms of users: sources by name and version. A name belongs to its first owner."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from swathe.catalog.records.algorithms import AlgorithmRecord
from swathe.catalog.records.checks import plain_text
from swathe.catalog.tables import AlgorithmRow
from swathe.catalog.versions import VersionRecords, existing, newest, present, remove_versions
from swathe.core.errors import AccessError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MOST_VERSIONS = 1000
"""Versions of one user, removed ones too: their sources are kept."""
MOST_BYTES = 1_000_000_000
"""Bytes of all sources of one user."""


class AlgorithmRecords(VersionRecords):
    """Algorithms of users."""

    def add_algorithm(
        self,
        name: str,
        version: str,
        source: bytes,
        owner: str,
        description: str = "",
        most: int = MOST_VERSIONS,
    ) -> tuple[AlgorithmRecord, bool]:
        """Add a version of an algorithm. The same source again is the same version.

        Args:
            name: name of the algorithm; the first who adds a version of it owns it.
            version: version.
            source: its source.
            owner: user who adds it.
            description: line for lists.
            most: most versions that the user may have.

        Returns:
            The record, and whether it is new.

        Raises:
            AccessError: If another user owns the name.
            AlgorithmExistsError: If the version has another source.
            LimitError: If the user has too many versions, or too large ones.
        """

        def make() -> AlgorithmRow:
            return AlgorithmRow(
                name=name,
                version=version,
                owner=owner,
                sha256=sha256(source).hexdigest(),
                source=source,
                bytes=len(source),
                description=plain_text(description, 200),
                added_at=datetime.now(UTC),
                removed_at=None,
            )

        def same(session: Session) -> AlgorithmRow | None:
            first = newest(session, AlgorithmRow, name, all_versions=True)
            if first is not None and first.owner != owner:
                raise AccessError(f"{name}: belongs to another user; choose another name")
            return newest(session, AlgorithmRow, f"{name}@{version}", all_versions=True)

        return self._add_version(make, same, _record, most, MOST_BYTES)

    def algorithms(self) -> list[AlgorithmRecord]:
        """Return all versions, by name, the newest of each first."""
        with self._reading() as session:
            return [_record(row) for row in session.scalars(present(AlgorithmRow))]

    def algorithm(self, label: str, *, all_versions: bool = False) -> tuple[AlgorithmRecord, bytes]:
        """Return a version and its source by `NAME@VERSION`, or the newest by `NAME`.

        Args:
            label: `NAME@VERSION` or `NAME`.
            all_versions: whether a version that was removed counts: jobs keep theirs.

        Raises:
            NoSuchAlgorithmError: If there is none.
        """
        with self._reading() as session:
            row = existing(session, AlgorithmRow, label, all_versions=all_versions)
            return _record(row), row.source

    def remove_algorithm(self, label: str, owner: str | None = None) -> list[AlgorithmRecord]:
        """Remove a version, or by `NAME` all; their sources are kept, so that none changes.

        Args:
            label: `NAME@VERSION` or `NAME`.
            owner: user who removes; `None`: one who may remove those of others.

        Raises:
            NoSuchAlgorithmError: If there is none.
            AccessError: If another user owns it.
        """
        with self._writing() as session:
            row = existing(session, AlgorithmRow, label)
            if owner is not None and row.owner != owner:
                raise AccessError(f"{label[:120]}: belongs to another user")
            return [_record(each) for each in remove_versions(session, row, label)]


def _record(row: AlgorithmRow) -> AlgorithmRecord:
    return AlgorithmRecord(
        row.name,
        row.version,
        row.owner,
        row.sha256,
        row.bytes,
        row.description,
        row.added_at,
    )
