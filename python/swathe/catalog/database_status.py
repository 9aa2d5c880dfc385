"""The state of a catalogue, looked at without changing it: what an operator asks first."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Connection, text

from swathe.catalog.database import Database, parse_url, url_text_of
from swathe.core.paths import default_url

if TYPE_CHECKING:
    import sqlalchemy


@dataclass(frozen=True)
class DatabaseStatus:
    """State of a database.

    Attributes:
        kind: `sqlite` or `postgresql`.
        url: its URL, without the password.
        exists: whether there is one; a missing file of SQLite is made when it is first used.
        is_up_to_date: whether its tables are of this version of Swathe.
        bytes: size.
        log_bytes: size of the write-ahead log of SQLite; 0 for others.
        has_log: whether SQLite has a write-ahead log, so that readers do not wait for writers.
        version: version of the database program.
        offset_s: how far the clock of its server is ahead of that of this machine; `None` if it has
            no clock of its own.
        read_s: seconds that a query took.
    """

    kind: Literal["sqlite", "postgresql"]
    url: str
    exists: bool
    is_up_to_date: bool = False
    bytes: int = 0
    log_bytes: int = 0
    has_log: bool = False
    version: str = ""
    offset_s: float | None = None
    read_s: float = 0.0


class Look(Database):
    """A database that is open, whatever its tables."""

    def status(self) -> DatabaseStatus:
        """Return its state.

        Raises:
            CatalogError: If it cannot be used, or is not a catalogue that this version can read.
        """
        is_up_to_date = self.is_up_to_date()
        with self._errors(), self._engine.connect() as connection:
            start_s = time.perf_counter()
            connection.scalar(text("SELECT 1"))
            read_s = time.perf_counter() - start_s
            if self._on_sqlite:
                return self._of_file(connection, is_up_to_date, read_s)
            size = connection.scalar(text("SELECT pg_database_size(current_database())"))
            version = connection.scalar(text("SHOW server_version"))
            sent_s = time.time()
            server_time = connection.scalar(text("SELECT clock_timestamp()"))
            middle_s = (sent_s + time.time()) / 2
            assert isinstance(server_time, datetime)
            return DatabaseStatus(
                "postgresql",
                self.url,
                exists=True,
                is_up_to_date=is_up_to_date,
                bytes=int(size or 0),
                version=str(version),
                offset_s=server_time.astimezone(UTC).timestamp() - middle_s,
                read_s=read_s,
            )

    def _of_file(
        self, connection: Connection, is_up_to_date: bool, read_s: float
    ) -> DatabaseStatus:
        path = Path(str(self._engine.url.database))
        log_path = Path(f"{path}-wal")
        return DatabaseStatus(
            "sqlite",
            self.url,
            exists=True,
            is_up_to_date=is_up_to_date,
            bytes=path.stat().st_size,
            log_bytes=log_path.stat().st_size if log_path.exists() else 0,
            has_log=connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal",
            version=str(connection.scalar(text("SELECT sqlite_version()"))),
            read_s=read_s,
        )


def database_status(url: str | None = None) -> DatabaseStatus:
    """Return the state of the database of a URL; by default that of `default_url()`.

    It is neither made nor migrated.

    Raises:
        CatalogError: If it cannot be used, or is not a catalogue that this version can read.
    """
    address = parse_url(url or default_url())
    if not file_exists(address):
        return DatabaseStatus("sqlite", url_text_of(address), exists=False)
    with Look(address) as database:
        return database.status()


def file_exists(address: sqlalchemy.URL) -> bool:
    """Check whether the file of a catalogue exists; True for databases that are no files."""
    return address.get_backend_name() != "sqlite" or Path(str(address.database)).exists()
