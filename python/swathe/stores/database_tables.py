"""Tables of a database that is a store of objects.

An object is a row with its name, and its bytes are rows of equal length but for the last. An object
that is being written has no name yet.
"""

from __future__ import annotations

import sqlalchemy
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    delete,
    select,
    text,
)

from swathe.catalog.database_engine import keep_a_log
from swathe.core.errors import SourceError

Id = BigInteger().with_variant(Integer(), "sqlite")
NAME = Text().with_variant(Text(collation="C"), "postgresql")
"""Names are compared byte by byte, as SQLite does."""
SET_UP_LOCK = 0x53574154484502

metadata = MetaData()
objects = Table(
    "swathe_objects",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", NAME, unique=True),
    Column("size", BigInteger, nullable=False),
    Column("crc32c", BigInteger, nullable=False),
    Column("chunk_bytes", Integer, nullable=False),
    Column("changed_at", Float(53), nullable=False, index=True),
    # The number of an object that was removed is not used again.
    sqlite_autoincrement=True,
)
chunks = Table(
    "swathe_chunks",
    metadata,
    Column("object_id", ForeignKey(objects.c.id), primary_key=True, autoincrement=False),
    Column("number", Id, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)


def has_tables(connection: Connection) -> bool:
    """Check whether the database has the tables.

    Raises:
        SourceError: If it is an SQLite file of another program.
    """
    names = set(sqlalchemy.inspect(connection).get_table_names())
    if set(metadata.tables) <= names:
        return True
    if names and connection.dialect.name == "sqlite":
        raise SourceError(f"expected a database of objects, found a table {min(names)!r}")
    return False


def make_tables(engine: Engine) -> None:
    """Create the tables, if they are not there. Several processes may do so at the same time."""
    if engine.dialect.name == "sqlite":
        keep_a_log(engine)
    with engine.execution_options(swathe_write=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            lock = text("SELECT pg_advisory_xact_lock(:number)")
            connection.execute(lock, {"number": SET_UP_LOCK})
        if not has_tables(connection):
            metadata.create_all(connection)
            if engine.dialect.name == "postgresql":
                # It would try to compress each chunk.
                external = "ALTER TABLE swathe_chunks ALTER COLUMN content SET STORAGE EXTERNAL"
                connection.execute(text(external))


def take_turns(connection: Connection, path: str) -> None:
    """Wait until no other transaction gives an object this name; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        lock = text("SELECT pg_advisory_xact_lock(hashtextextended(:path, 0))")
        connection.execute(lock, {"path": path})


def remove_rows(connection: Connection, which: sqlalchemy.ColumnElement[bool]) -> int:
    """Remove objects with their chunks, and return how many."""
    ids = select(objects.c.id).where(which)
    connection.execute(delete(chunks).where(chunks.c.object_id.in_(ids)))
    return connection.execute(delete(objects).where(which)).rowcount
