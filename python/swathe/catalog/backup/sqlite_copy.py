"""Copies of a catalogue of SQLite."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote

from swathe.catalog.backup.archive import NO_CONTENT, unpack
from swathe.catalog.database_engine import BUSY_S
from swathe.catalog.revisions import VERSION_TABLE
from swathe.core.errors import CatalogError, FormatError, OutputError
from swathe.core.outputs import sole_writer, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swathe.catalog.backup.archive import BackupRecord


def copy_out(path: Path, copy: Path) -> str:
    """Copy a catalogue that may be in use; return the version of its tables.

    The copy is that of one moment. With a write-ahead log writers do not wait for it: it is made
    in one step, as many would begin anew with each change.

    Raises:
        CatalogError: If it cannot be read, or is damaged.
    """
    try:
        with closing(_connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            # A file of its own, without a log beside it.
            target.execute("PRAGMA journal_mode=DELETE")
            return _check(target)
    except sqlite3.Error as error:
        raise CatalogError(f"{path}: {error}") from error


def _check(database: sqlite3.Connection) -> str:
    """Check that a database is sound; return the version of its tables.

    Raises:
        sqlite3.Error: If it is damaged, or no catalogue.
    """
    (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(f"the database is damaged: {verdict}")
    row = database.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
    if row is None:
        raise sqlite3.DatabaseError("not a catalogue: it has no version of its tables")
    return str(row[0])


def is_empty(path: Path) -> bool:
    """Check whether a catalogue has nothing in it; True if there is none.

    Raises:
        CatalogError: If it cannot be read.
    """
    if not path.exists():
        return True
    try:
        with closing(_connect(path)) as database:
            names = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            tables = [name for (name,) in names.fetchall() if name not in NO_CONTENT]
            texts = (name.replace('"', '""') for name in tables)
            return not any(
                database.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in texts
            )
    except sqlite3.Error as error:
        raise CatalogError(f"{path}: {error}") from error


def copy_in(backup: Path, path: Path) -> tuple[BackupRecord, Path | None]:
    """Put the database of a backup in the place of a catalogue, completely or not at all.

    Returns:
        The record of the backup, and the path of the earlier catalogue, which stays beside the new
        one; `None` if there was none.

    Raises:
        FormatError: If the backup is damaged.
        CatalogError: If another process has the catalogue open.
        OutputError: If the new one cannot be written.
    """
    new = path.with_name(f".{path.name[:50]}.restore")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with sole_writer(path):
            try:
                record = _unpack(backup, new)
                old = _exchange(new, path)
            finally:
                _remove(new)
        sync_folder(path.parent)
        return record, old
    except OSError as error:
        if isinstance(error, CatalogError | OutputError):
            raise
        raise OutputError(f"{path}: cannot write: {error.strerror or error}") from error


def make_private(path: Path) -> BinaryIO:
    """Make a new file that only its owner may read; one that a killed process left is removed."""
    _remove(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _unpack(backup: Path, new: Path) -> BackupRecord:
    """Write the database of a backup to a file, with a write-ahead log, and check it."""
    with make_private(new) as file:
        record = unpack(backup, file)
        file.flush()
        os.fsync(file.fileno())
    _prepare(backup, new)
    return record


def _exchange(new: Path, path: Path) -> Path | None:
    """Put a file in the place of a catalogue; return the path of the earlier one, if there was one.

    Raises:
        CatalogError: If another process has the catalogue open.
    """
    if not path.exists():
        # A log without its database would be taken for that of the new one.
        _remove(path)
        os.replace(new, path)
        return None
    status = path.stat()
    os.chmod(new, status.st_mode & 0o777)
    if os.geteuid() == 0:  # the portal may be another user
        os.chown(new, status.st_uid, status.st_gid)
    old = path.with_name(f"{path.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%f}.old")
    with _alone(path):
        os.link(path, old)
        # From here on the earlier catalogue has two names, and loses one of them.
        os.replace(new, path)
    return old


def _remove(path: Path) -> None:
    """Remove a database with its logs, if there is one."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _prepare(backup: Path, new: Path) -> None:
    """Check an unpacked database, and give it a write-ahead log."""
    try:
        with closing(sqlite3.connect(new)) as database:
            _check(database)
            database.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        raise FormatError(f"{backup}: {error}; take another backup") from error


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Lock a catalogue that no other process has open, all of it in its file.

    Raises:
        CatalogError: If one has.
    """
    try:
        with closing(_connect(path, wait_s=0)) as database:
            # Only who is alone may end the write-ahead log.
            database.execute("PRAGMA journal_mode=DELETE")
            database.execute("BEGIN EXCLUSIVE")
            try:
                yield
            except BaseException:
                database.execute("ROLLBACK")
                database.execute("PRAGMA journal_mode=WAL")  # it stays in use
                raise
            database.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        raise CatalogError(
            f"{path}: expected a catalogue that no process has open, found one in use ({error}); "
            "stop the portal and other commands first"
        ) from error
    except sqlite3.DatabaseError as error:
        raise CatalogError(
            f"{path}: expected a catalogue, found something else ({error}); rename it first"
        ) from error


def _connect(path: Path, wait_s: float = BUSY_S) -> sqlite3.Connection:
    address = f"file:{quote(str(path))}?mode=rw"
    return sqlite3.connect(address, uri=True, timeout=wait_s, isolation_level=None)
