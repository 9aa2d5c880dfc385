"""Connections to SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, Engine, event

BUSY_S = 30
"""Seconds to wait for locks."""
CONNECT_S = 10


def make_engine(url: sqlalchemy.URL) -> Engine:
    """Return an engine whose waits for locks and connections end.

    On SQLite a transaction with the execution option `swathe_write` takes the lock for writing when
    it begins.

    Raises:
        ImportError: If the driver of the database is not installed.
    """
    if url.get_backend_name() == "sqlite":
        waits = {} if "timeout" in url.query else {"timeout": BUSY_S}
        engine = sqlalchemy.create_engine(url, connect_args=waits)
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", _begin)
        return engine
    waits = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_S}
    # A transaction that waited for a row or lock must see its new state.
    engine = sqlalchemy.create_engine(
        url, connect_args=waits, pool_pre_ping=True, isolation_level="READ COMMITTED"
    )
    event.listen(engine, "connect", _without_compiling)
    return engine


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    # Python's module would begin transactions late, and of the wrong kind.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys=ON")


def _without_compiling(connection: Any, _record: object) -> None:
    # PostgreSQL would spend 0.1 s on compiling a search that takes 2 ms.
    with connection.cursor() as cursor:
        cursor.execute("SET jit = off")
    connection.commit()


def _begin(connection: Connection) -> None:
    # A transaction that reads first and then writes fails at once if another wrote in between.
    write = connection.get_execution_options().get("swathe_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def keep_a_log(engine: Engine) -> None:
    """Let readers continue while someone writes: a write-ahead log.

    The change needs exclusive access to the file, and SQLite does not wait for that.
    """
    limit = time.monotonic() + BUSY_S
    while True:
        try:
            with engine.connect() as connection:
                driver: Any = connection.connection.dbapi_connection
                driver.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > limit:
                raise
            time.sleep(0.02)
