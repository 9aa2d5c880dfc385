"""Backing up a catalogue while it is used, and putting a backup in its place."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from swathe.catalog.backup import postgres_copy, sqlite_copy
from swathe.catalog.backup.archive import BackupRecord, read_backup, unpack, write_backup
from swathe.catalog.catalog import Catalog
from swathe.catalog.database import parse_url, url_text_of
from swathe.catalog.revisions import REVISIONS
from swathe.core.errors import CatalogError, OutputError
from swathe.core.outputs import check_output, sole_writer
from swathe.core.paths import default_url

if TYPE_CHECKING:
    import os

    import sqlalchemy


def backup(
    file: str | os.PathLike[str], url: str | None = None, *, overwrite: bool = False
) -> BackupRecord:
    """Write a backup of a catalogue, which may be in use.

    Args:
        file: file to write; it gets its name when it is complete and on disk.
        url: URL of the catalogue; by default `default_url()`.
        overwrite: whether an existing file may be replaced.

    Raises:
        CatalogError: If the catalogue cannot be read, is damaged, or pg_dump is not installed.
        OutputError: If the file cannot be written, or exists.
    """
    path, address = Path(file).absolute(), parse_url(url or default_url())
    on_sqlite = address.get_backend_name() == "sqlite"
    database = Path(str(address.database))
    if on_sqlite and not database.exists():
        raise CatalogError(f"{database}: expected a catalogue, found no such file")
    check_output(path, overwrite=overwrite, sources=[database] if on_sqlite else ())
    copy = path.with_name(f".{path.name[:50]}.copy")
    try:
        with sole_writer(path):
            try:
                sqlite_copy.make_private(copy).close()
                if on_sqlite:
                    revision = sqlite_copy.copy_out(database, copy)
                    return write_backup(path, copy, "sqlite", revision, overwrite=overwrite)
                revision = postgres_copy.copy_out(address, copy)
                return write_backup(path, copy, "postgresql", revision, overwrite=overwrite)
            finally:
                copy.unlink(missing_ok=True)
    except OSError as error:
        if isinstance(error, CatalogError | OutputError):
            raise
        raise OutputError(f"{path}: cannot write: {error.strerror or error}") from error


def restore(
    file: str | os.PathLike[str], url: str | None = None, *, overwrite: bool = False
) -> tuple[BackupRecord, Path | None]:
    """Put a backup in the place of a catalogue, completely or not at all; migrate its tables.

    Args:
        file: a backup.
        url: URL of the catalogue; by default `default_url()`.
        overwrite: whether a catalogue with something in it may be replaced.

    Returns:
        The record of the backup, and the file of the earlier catalogue, which stays beside the new
        one; `None` if there was none, or in PostgreSQL.

    Raises:
        NotFoundError, FormatError: If the file is not a complete backup.
        CatalogError: If the backup is of another kind of database or a newer Swathe, or the
            catalogue is in use, or not empty and `overwrite` is false.
        OutputError: If the catalogue cannot be written.
    """
    path, address = Path(file), parse_url(url or default_url())
    record = read_backup(path)
    kind = address.get_backend_name()
    if record.kind != kind:
        raise CatalogError(f"{path}: expected a backup of {kind}, found one of {record.kind}")
    if record.revision not in REVISIONS:
        raise CatalogError(
            f"{path}: made by Swathe {record.swathe}: its tables have version {record.revision}, "
            f"this one knows them up to {REVISIONS[-1]}; install that Swathe"
        )
    if not overwrite and not _is_empty(address):
        raise CatalogError(
            f"{url_text_of(address)}: expected an empty catalogue, found "
            "one with something in it; replace it with --overwrite"
        )
    old = None
    if kind == "sqlite":
        record, old = sqlite_copy.copy_in(path, Path(str(address.database)).resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="swathe-restore-") as folder:
            dump = Path(folder) / "catalog"
            with dump.open("wb") as target:
                unpack(path, target)
            postgres_copy.copy_in(address, dump)
    with Catalog.open(url):
        return record, old


def _is_empty(address: sqlalchemy.URL) -> bool:
    if address.get_backend_name() == "sqlite":
        return sqlite_copy.is_empty(Path(str(address.database)))
    return postgres_copy.is_empty(address)
