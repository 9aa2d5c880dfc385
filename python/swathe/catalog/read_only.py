"""Queries that only read, and end in time: those that users write.

On PostgreSQL a transaction that is read-only has a timeout for statements. SQLite has connections
of their own for these queries, which cannot write and ask every some steps whether to go on.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError

from swathe.catalog.database import Database
from swathe.catalog.database_engine import make_engine
from swathe.core.errors import QueryError

STEPS = 20_000
"""Steps of SQLite between two checks: a millisecond or so."""
LONGEST_TEXT = 200_000
"""Maximum size of a text that SQLite makes, bytes: of an answer, 500 rows are in memory."""
LONGEST_PATTERN = 1000
"""Maximum size of a pattern of LIKE, bytes: one comparison cannot be stopped, and takes up to the
product of both sizes."""
LOOK_S = 0.5
ROWS = 500
QUERY_STATES = ("0A", "21", "22", "2F", "42803", "42804", "42883", "53", "54", "57014")
"""States of PostgreSQL, or their begins, that a query may be the cause of: a value out of range, a
number that is none, too complex, too long, and what it does not support."""
QUERY_CODES = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_INTERRUPT)


def _never() -> bool:
    """Do not stop."""
    return False


@dataclass(frozen=True)
class ReadLimit:
    """Limit of one query: its end, by the monotonic clock, and whether to stop before."""

    seconds: float
    end_s: float
    should_stop: Callable[[], bool] = _never

    @classmethod
    def of(cls, seconds: float, should_stop: Callable[[], bool] = _never) -> ReadLimit:
        """Return the limit of a query that begins now."""
        return cls(seconds, time.monotonic() + seconds, should_stop)

    @property
    def is_over(self) -> bool:
        """Whether the query has to end."""
        return time.monotonic() > self.end_s or self.should_stop()

    def check(self) -> None:
        """Check that the query may go on.

        Raises:
            QueryError: If it may not.
        """
        if self.is_over:
            raise self.error()

    def error(self) -> QueryError:
        """Return the error of a query that takes too long."""
        if self.should_stop():
            return QueryError("the query was stopped")
        return QueryError(
            f"the query: expected an answer within {self.seconds:g} s, found none; ask for less, "
            "or as a job with a longer EXECUTIONDURATION"
        )


class ReadOnlyQueries(Database):
    """Queries of users."""

    _own_engine: Engine | None = None
    _own_lock = threading.Lock()

    @contextmanager
    def limited_rows(
        self, statement: Any, limit: ReadLimit, prepare: Callable[[Any], None]
    ) -> Iterator[Iterator[Any]]:
        """Yield the rows of a SELECT, in a transaction that cannot write.

        `prepare` is called with each connection of SQLite, to register functions.

        Raises:
            QueryError: If it takes too long, or its values do not fit what it asks.
            CatalogError: If the database cannot be used.
        """
        options = {"yield_per": ROWS, "compiled_cache": None}
        with (
            self._errors(),
            self._query_errors(limit),
            self._transaction(limit, prepare) as connection,
            connection.execute(statement, execution_options=options) as rows,
        ):
            yield self._within(rows, limit)

    def close(self) -> None:
        """Close the connections. A later use connects again."""
        super().close()
        if self._own_engine is not None:
            self._own_engine.dispose()

    def _within(self, rows: Any, limit: ReadLimit) -> Iterator[Any]:
        for number, row in enumerate(rows):
            if number % ROWS == 0:
                limit.check()
            yield row

    @contextmanager
    def _query_errors(self, limit: ReadLimit) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if limit.is_over and _is_of_query(cause):
                raise limit.error() from error
            if _is_of_query(cause):
                message = " ".join(str(cause).split("\n")[0].split())
                raise QueryError(f"the query cannot be answered: {message}") from error
            raise

    @contextmanager
    def _transaction(
        self, limit: ReadLimit, prepare: Callable[[Any], None]
    ) -> Iterator[Connection]:
        limit.check()
        if self._on_sqlite:
            with self._query_engine(prepare).connect() as connection:
                driver: Any = connection.connection.driver_connection
                driver.set_progress_handler(lambda: limit.is_over, STEPS)
                try:
                    yield connection
                finally:
                    driver.set_progress_handler(None, 0)
            return
        with self._engine.connect() as connection:
            options = {"postgresql_readonly": True, "isolation_level": "REPEATABLE READ"}
            connection = connection.execution_options(**options)
            timeout_ms = max(1, int(1000 * (limit.end_s - time.monotonic())))
            connection.execute(text(f"SET LOCAL statement_timeout = {timeout_ms}"))
            with _stopping(connection, limit):
                yield connection

    def _query_engine(self, prepare: Callable[[Any], None]) -> Engine:
        with self._own_lock:
            if self._own_engine is None:
                engine = make_engine(self._engine.url)

                def restrict(connection: sqlite3.Connection, _record: object) -> None:
                    connection.execute("PRAGMA query_only=ON")
                    connection.execute("PRAGMA case_sensitive_like=ON")
                    connection.execute("PRAGMA trusted_schema=OFF")
                    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_TEXT)
                    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LONGEST_PATTERN)
                    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
                    prepare(connection)

                event.listen(engine, "connect", restrict)
                self._own_engine = engine
            return self._own_engine


def _is_of_query(cause: object) -> bool:
    """Check whether the query is the cause of an error of the database."""
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return code in QUERY_CODES and not str(cause).startswith("no such table")
    return str(getattr(cause, "sqlstate", None) or "").startswith(QUERY_STATES)


@contextmanager
def _stopping(connection: Connection, limit: ReadLimit) -> Iterator[None]:
    """Stop the statement of a connection of PostgreSQL when the limit says so."""
    if limit.should_stop is _never:
        yield
        return
    driver: Any = connection.connection.driver_connection
    end = threading.Event()

    def watch() -> None:
        while not end.wait(LOOK_S):
            if limit.should_stop():
                driver.cancel()
                return

    watcher = threading.Thread(target=watch, name="swathe-query", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        end.set()
        watcher.join()
