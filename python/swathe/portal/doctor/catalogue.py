"""Checks of the database."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from swathe.catalog import Catalog
from swathe.catalog.database_status import DatabaseStatus, database_status
from swathe.core.errors import CatalogError
from swathe.core.format import seconds_text, size_text
from swathe.portal.doctor.check import Check

if TYPE_CHECKING:
    from swathe.portal.config import Config

SLOW_S = 0.1
"""A query that reads nothing and takes longer: each answer of the portal waits for several."""
MOST_LOG_BYTES = 1 << 30
"""A write-ahead log that is larger is not emptied, because a reader never ends."""


def database(config: Config) -> Check:
    """Check that the database is there, has the tables of this version, and can be written."""
    try:
        status = database_status(config.catalog.database)
        if not status.exists:
            return Check(
                "database",
                "WARN",
                f"{status.url}: there is none yet",
                "start the portal: it is made",
            )
        if not status.is_up_to_date:
            return Check(
                "database",
                "WARN",
                f"{_text(status)}; its tables are of an older version",
                "back it up (swathe catalog backup FILE); the portal migrates it when it starts",
            )
        with Catalog.open(config.catalog.database) as catalog:
            catalog.check_writable()
    except CatalogError as error:
        return Check("database", "FAIL", str(error), "see catalog.database of the settings")
    return _judge(status)


def is_readable(config: Config) -> bool:
    """Check whether the catalogue can be opened without a change of its tables."""
    with suppress(CatalogError):  # which the check of the database tells
        status = database_status(config.catalog.database)
        return status.exists and status.is_up_to_date
    return False


def server_offset_s(config: Config) -> float | None:
    """Return how far the clock of the database server is ahead; `None` if it has none."""
    with suppress(CatalogError):  # which the check of the database tells
        return database_status(config.catalog.database).offset_s
    return None


def _judge(status: DatabaseStatus) -> Check:
    if status.read_s > SLOW_S:
        return Check(
            "database",
            "WARN",
            f"{_text(status)}; a query takes {seconds_text(status.read_s)}",
            "use a database that is nearer, or find out what its disk is busy with",
        )
    if status.kind == "sqlite" and not status.has_log:
        return Check(
            "database",
            "WARN",
            f"{_text(status)}; it has no write-ahead log: readers wait for writers",
            "stop the portal, and run `sqlite3 FILE 'PRAGMA journal_mode=WAL'`; on a network file "
            "system use PostgreSQL",
        )
    if status.log_bytes > max(MOST_LOG_BYTES, status.bytes):
        return Check(
            "database",
            "WARN",
            f"{_text(status)}; its write-ahead log has {size_text(status.log_bytes)}",
            "end what reads the file without end, as a copy or an open `sqlite3`",
        )
    return Check("database", "OK", _text(status))


def _text(status: DatabaseStatus) -> str:
    name = "SQLite" if status.kind == "sqlite" else "PostgreSQL"
    return f"{status.url}: {name} {status.version}, {size_text(status.bytes)}"
