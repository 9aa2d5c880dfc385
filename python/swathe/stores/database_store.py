"""Databases as stores: objects are rows, and so are their chunks.

A read is one statement, which sees one state of the database. A new object is written without a
name, part after part; one transaction at the end gives it its name and removes the old one.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import sqlalchemy
from sqlalchemy import (
    Connection,
    Row,
    Select,
    and_,
    literal,
    or_,
    select,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from swathe.catalog.database_engine import make_engine
from swathe.catalog.database_errors import may_pass, remedy
from swathe.core.errors import (
    ChangedError,
    NotFoundError,
    SourceError,
    StoreSettingsError,
)
from swathe.core.store_schemes import DATABASE
from swathe.stores.database_tables import (
    chunks,
    has_tables,
    make_tables,
    objects,
    remove_rows,
    take_turns,
)
from swathe.stores.database_writer import DatabaseWriter
from swathe.stores.protocol import StoredObject

PAGE = 1000
"""Objects that a statement lists."""
FULL = "53100"
"""State of PostgreSQL: the disk is full."""


class DatabaseStore:
    """The objects of a database; see `swathe.stores.ObjectStore` for the methods."""

    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        """Prepare a store. Nothing is connected to yet.

        Args:
            root: `db:sqlite:///absolute/path` or `db:postgresql://user@host/name`.
            options: `probe_object` alone, which is of no use here.

        Raises:
            StoreSettingsError: If the URL is of no database, its driver is not installed, or there
                are other options.
        """
        self.root = root
        if others := sorted(set(options) - {"probe_object"}):
            raise StoreSettingsError(f"{root}: options: expected none, found {', '.join(others)}")
        address = _address(root)
        self.path = Path(address.database or "") if address.drivername == "sqlite" else None
        try:
            self._engine = make_engine(address)
        except ImportError as error:
            hint = "pip install 'swathe[postgres]'"
            raise StoreSettingsError(f"{root}: {error}; try: {hint}") from error
        self._writer = self._engine.execution_options(swathe_write=True)
        self._is_ready = False

    def close(self) -> None:
        """Close the connections. A later use connects again."""
        self._engine.dispose()

    def stat(self, path: str) -> StoredObject:
        """Return an object."""
        with self._reading() as connection:
            row = None if connection is None else connection.execute(_object_query(path)).first()
        if row is None:
            raise NotFoundError(f"{self.root}: no object {path}")
        return _object(row)

    def read(self, path: str, version: str, start: int, stop: int) -> bytes:
        """Return the bytes `[start, stop)` of an object at a version."""
        number = version.partition("-")[0]
        content = None
        if number.isdecimal():
            with self._reading() as connection:
                content = _content(connection, path, int(number), start, stop)
        if content is None:
            raise ChangedError(f"{self.root}: {path} is no longer version {version}")
        return content

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose path is `prefix` or begins with `prefix/`, by name."""
        query = select(objects).order_by(objects.c.name).limit(PAGE)
        if prefix:
            # "0" follows on "/".
            below = and_(objects.c.name >= f"{prefix}/", objects.c.name < f"{prefix}0")
            query = query.where(or_(objects.c.name == prefix, below))
        last = ""
        while True:
            with self._reading() as connection:
                page = query.where(objects.c.name > last)
                rows = [] if connection is None else connection.execute(page).all()
            yield from map(_object, rows)
            if len(rows) < PAGE:
                return
            last = rows[-1].name

    def create(self, path: str) -> DatabaseWriter:
        """Begin to write an object."""
        self._make_ready()
        return DatabaseWriter(self.root, path, self._writing)

    def remove(self, path: str) -> None:
        """Remove an object."""
        count = 0
        if self._exists():
            with self._writing() as connection:
                take_turns(connection, path)
                count = remove_rows(connection, objects.c.name == path)
        if not count:
            raise NotFoundError(f"{self.root}: no object {path}")

    @contextmanager
    def _reading(self) -> Iterator[Connection | None]:
        """Yield a connection to read; None if there are no objects."""
        if not self._exists():
            yield None
            return
        with self._errors(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Yield a connection for one transaction: all of it or nothing."""
        with self._errors(), self._writer.begin() as connection:
            yield connection

    def _exists(self) -> bool:
        """Check whether the database and its tables are there."""
        if self.path is not None and not self.path.exists():
            self._is_ready = False
        elif not self._is_ready:
            with self._errors(), self._engine.connect() as connection:
                self._is_ready = has_tables(connection)
        return self._is_ready

    def _make_ready(self) -> None:
        if self._exists():
            return
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._errors():
            make_tables(self._engine)
        self._is_ready = True

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise what the database says as exceptions of a store."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if _is_full(cause):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            todo = remedy(error, str(self.path) if self.path else None)
            message = f"{self.root}: {' '.join(str(cause).split())}"
            if todo is None and may_pass(error):
                raise ConnectionError(message) from error
            raise SourceError(message if todo is None else f"{message}; {todo}") from error


def _address(root: str) -> sqlalchemy.URL:
    """Return the URL of SQLAlchemy for that of a store."""
    parts = urlsplit(root.removeprefix(f"{DATABASE}:"))
    if parts.scheme == "sqlite" and parts.path.strip("/"):
        path = unquote(parts.path, errors="surrogateescape")
        return sqlalchemy.URL.create("sqlite", database=path)
    if parts.scheme == "postgresql" and parts.path.strip("/"):
        return sqlalchemy.URL.create(
            "postgresql+psycopg",
            username=unquote(parts.username) if parts.username else None,
            host=parts.hostname,
            port=parts.port,
            database=unquote(parts.path.strip("/")),
        )
    raise StoreSettingsError(
        "a database: expected the name of a store, or NAME:path in one; objects of a database have "
        "no URLs of their own"
    )


def _object_query(path: str) -> Select[Any]:
    return select(objects).where(objects.c.name == path)


def _object(row: Row[Any]) -> StoredObject:
    changed_at = datetime.fromtimestamp(row.changed_at, UTC).isoformat(timespec="microseconds")
    version = f"{row.id}-{row.crc32c:08x}"
    return StoredObject(row.name, row.size, version, changed_at, row.crc32c)


def _content(
    connection: Connection | None, path: str, number: int, start: int, stop: int
) -> bytes | None:
    """Return a part of an object; None if no object has this number and name.

    One statement reads the object and the chunks of the part: they are of one state.
    """
    if connection is None:
        return None
    length = objects.c.chunk_bytes
    in_part = chunks.c.number.between(literal(start) // length, literal(stop - 1) // length)
    table = objects.outerjoin(chunks, and_(chunks.c.object_id == objects.c.id, in_part))
    query = select(length, chunks.c.number, chunks.c.content).select_from(table)
    is_it = and_(objects.c.id == number, objects.c.name == path)
    rows = connection.execute(query.where(is_it).order_by(chunks.c.number)).all()
    if not rows:
        return None
    chunk_bytes = rows[0].chunk_bytes
    first, last = start // chunk_bytes, (stop - 1) // chunk_bytes
    if [row.number for row in rows] != list(range(first, last + 1)):
        raise SourceError(
            f"{path}: damaged: expected chunks {first} to {last}, found "
            f"{sum(row.number is not None for row in rows)} of them"
        )
    offset = start - first * chunk_bytes
    content = rows[0].content if len(rows) == 1 else b"".join(row.content for row in rows)
    return bytes(memoryview(content)[offset : offset + stop - start])


def _is_full(cause: object) -> bool:
    """Check whether the disk of a database is full."""
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
    return getattr(cause, "sqlstate", None) == FULL
