"""Opening, reading and writing of a database, and its errors.

Opening reads one row if the tables are up to date. Otherwise the tables are created or migrated, in
one transaction under a lock. So several processes may open a new database at once, and may die at
any time.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import sqlalchemy
from sqlalchemy import Connection, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoResultFound, SQLAlchemyError
from sqlalchemy.orm import Session

from swathe.catalog.database_engine import keep_a_log, make_engine
from swathe.catalog.database_errors import advice, remedy
from swathe.catalog.revisions import DEVELOPMENT_REVISIONS, REVISIONS, VERSION_TABLE
from swathe.catalog.tables import Base
from swathe.core.errors import CatalogError, CatalogSetupError
from swathe.core.paths import default_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

SMALLEST_SQLITE_BYTES = 512
"""SQLite treats a file shorter than one page as empty, and overwrites it."""
MIGRATION_LOCK = 0x53574154484501
_SECRET_PARAMETER = re.compile(r"pass|secret|token|key|pwd", re.IGNORECASE)


class Database:
    """A database that is open and up to date."""

    def __init__(self, url: sqlalchemy.URL) -> None:
        self._url_text = url_text_of(url)
        self._secrets = _secrets(url)
        try:
            self._engine = make_engine(url)
        except ImportError as error:
            hint = "pip install 'swathe[postgres]'"
            raise CatalogError(self._message_of(f"{error}; try: {hint}")) from error
        # The same pool, other transactions: see make_engine.
        self._writer = self._engine.execution_options(swathe_write=True)
        # Statements of one read see the same state; with SQLite's write-ahead log they do anyway.
        self._reader = (
            self._engine
            if self._on_sqlite
            else self._engine.execution_options(isolation_level="REPEATABLE READ")
        )

    @classmethod
    def open(cls, url: str | None = None) -> Self:
        """Open the database of an SQLAlchemy URL, `sqlite:///...` or `postgresql+psycopg://...`.

        The default is `default_url()`. A missing database is created.

        Raises:
            CatalogError: If it cannot be opened, is not a Swathe database, or was made by a newer
                Swathe, or by one before the first version.
        """
        address = parse_url(url or default_url())
        if address.get_backend_name() == "sqlite":
            _make_room(address)
        database = cls(address)
        try:
            with database._errors():
                database._bring_up_to_date()
        except BaseException:
            database.close()
            raise
        return database

    def close(self) -> None:
        """Close the connections. A later use connects again."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """URL of the database, without its password."""
        return self._url_text

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is SQLite, else PostgreSQL."""
        return self._on_sqlite

    @property
    def _on_sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        """Yield a session that sees the database as of its first statement."""
        with self._errors(), Session(self._reader) as session:
            yield session

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """Yield a session for one transaction: all of it or nothing."""
        with self._errors(), Session(self._writer) as session, session.begin():
            yield session

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._error(error, error.orig or error) from error
        except (SQLAlchemyError, sqlite3.Error) as error:
            cause = error.__cause__ if isinstance(error.__cause__, ValueError | TypeError) else None
            if cause is not None:
                # A value that no column accepts is not an error of the database.
                raise cause from None
            raise self._error(error, error) from error

    def _error(self, error: BaseException, cause_text: object) -> CatalogError:
        """Return the error to raise; it says what to do if that is known."""
        message = self._message_of(cause_text)
        todo = remedy(error, self._engine.url.database if self._on_sqlite else None)
        if todo is not None:
            return CatalogSetupError(f"{message}; {todo}")
        todo = advice(error)
        return CatalogError(f"{message}; {todo}" if todo else message)

    def _message_of(self, what: object) -> str:
        text = " ".join(str(what).split()) or type(what).__name__
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return f"{self._url_text}: {text}"

    def check_writable(self) -> None:
        """Check that all tables can be written, before work whose results go there.

        Raises:
            CatalogSetupError: If they cannot.
            CatalogError: If the database cannot be used now.
        """
        with self._writing() as session:
            for table in Base.metadata.sorted_tables:
                column = next(iter(table.columns))
                session.execute(table.update().where(sqlalchemy.false()).values({column: column}))

    def is_up_to_date(self) -> bool:
        """Return whether the tables are of this version; another process may have changed them.

        Raises:
            CatalogError: If they are of a newer version, or the database cannot be used now.
        """
        with self._errors(), self._engine.connect() as connection:
            return self._is_up_to_date(connection)

    def _bring_up_to_date(self) -> None:
        with self._engine.connect() as connection:
            if self._is_up_to_date(connection):
                return
        if self._on_sqlite:
            keep_a_log(self._engine)
        with self._writer.begin() as connection:
            if not self._on_sqlite:
                lock = text("SELECT pg_advisory_xact_lock(:number)")
                connection.execute(lock, {"number": MIGRATION_LOCK})
            # Another process may have done it while this one waited.
            if not self._is_up_to_date(connection):
                _migrate(connection)

    def _is_up_to_date(self, connection: Connection) -> bool:
        # One query for all: another process may be creating them.
        tables = set(sqlalchemy.inspect(connection).get_table_names())
        if VERSION_TABLE not in tables:
            clash = tables if self._on_sqlite else tables & set(Base.metadata.tables)
            if clash:
                raise CatalogError(
                    self._message_of(f"not a Swathe catalogue: it has a table {min(clash)!r}")
                )
            return False
        try:
            version = connection.scalars(text(f"SELECT version_num FROM {VERSION_TABLE}")).one()
        except NoResultFound:
            return False
        if version in DEVELOPMENT_REVISIONS:
            todo = (
                "remove or rename the file"
                if self._on_sqlite
                else f"drop its tables and {VERSION_TABLE}"
            )
            raise CatalogError(
                self._message_of(
                    "catalogue of a development version of Swathe: expected tables of version "
                    f"{REVISIONS[-1]}, found {version}; {todo} to begin a new catalogue; the "
                    "stores, probes, datasets, jobs and tokens of the old one are lost"
                )
            )
        if version not in REVISIONS:
            raise CatalogError(
                self._message_of(
                    f"made by a newer Swathe: its tables have version {version}, this one knows "
                    f"them up to {REVISIONS[-1]}"
                )
            )
        return bool(version == REVISIONS[-1])


def is_locked(url: str | None = None) -> bool:
    """Check whether another connection has locked the catalogue for writing.

    A lock of PostgreSQL cannot be checked: there the result is always true.

    Raises:
        CatalogError: If the URL is not that of a catalogue.
    """
    address = parse_url(url or default_url())
    path = address.database or ""
    if address.get_backend_name() != "sqlite" or path.startswith("file:"):
        return True
    try:
        uri = f"file:{quote(path)}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        return "locked" in str(error)
    return False


def parse_url(url: str) -> sqlalchemy.URL:
    """Parse the URL of a catalogue.

    Raises:
        CatalogError: If it is not one.
    """
    hint = "a database's URL is sqlite:////absolute/path or postgresql+psycopg://user@host/name"
    try:
        address = sqlalchemy.make_url(url)
    except (ArgumentError, ValueError, TypeError):
        # The cause may contain the password.
        raise CatalogError(f"the database's URL cannot be read; {hint}") from None
    match address.drivername:
        case "sqlite" | "sqlite+pysqlite":
            if address.database in (None, "", ":memory:") or address.host:
                raise CatalogError("the catalogue needs a file: sqlite:////absolute/path")
        case "postgresql" | "postgres" | "postgresql+psycopg":
            # If an @ in the password is not written as %40, the end of the password would be shown.
            if "@" in f"{address.host}{address.database}" or not address.database:
                raise CatalogError(
                    "the database's URL cannot be read: it lacks the name of a database, or its "
                    "user or password has an '@' or '/' that is not written as %40 or %2F"
                )
            address = address.set(drivername="postgresql+psycopg")
        case _:
            raise CatalogError(f"the database is of a kind that is not supported; {hint}")
    return address


def _secrets(url: sqlalchemy.URL) -> list[str]:
    secrets = [str(url.password)] if url.password else []
    for name, value in url.query.items():
        if _SECRET_PARAMETER.search(name):
            secrets += [value] if isinstance(value, str) else value
    return [secret for secret in secrets if secret]


def url_text_of(url: sqlalchemy.URL) -> str:
    """Return a URL for messages, without its secrets."""
    query = {
        name: "***" if _SECRET_PARAMETER.search(name) else value
        for name, value in url.query.items()
    }
    return url.set(query=query).render_as_string(hide_password=True)


def _make_room(url: sqlalchemy.URL) -> None:
    path = url.database or ""
    if path.startswith("file:"):
        return
    try:
        Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
        size = os.stat(path).st_size if os.path.isfile(path) else 0
    except (OSError, ValueError) as error:
        raise CatalogError(f"{url_text_of(url)}: cannot make its folder: {error}") from error
    if 0 < size < SMALLEST_SQLITE_BYTES:
        raise CatalogError(f"{url_text_of(url)}: file is not a database")


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
