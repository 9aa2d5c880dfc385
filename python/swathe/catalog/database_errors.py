"""Errors of a database: temporary ones, and those that a person must fix."""

from __future__ import annotations

import os
import sqlite3

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from swathe.core.errors import CatalogError, CatalogSetupError

WRITE = "the file and its folder must be writable for this user"
GRANT = (
    "its role must be allowed to write: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN "
    "SCHEMA public, on a server that is no standby, without default_transaction_read_only"
)
READ = "the file must be readable for this user, and its folder there and writable"
WAIT = (
    "another process writes for longer than this one waits (?timeout= of its URL, seconds): try "
    "again when it has ended; if many write at once, use PostgreSQL"
)
TABLES = "tables are missing: restore them, or name another database"
LOGIN = "set user, password and database in the URL, or the password in ~/.pgpass"

_SQLITE = {
    sqlite3.SQLITE_READONLY: WRITE,
    sqlite3.SQLITE_PERM: WRITE,
    sqlite3.SQLITE_AUTH: WRITE,
}
_STATES = {
    "25006": GRANT,  # a transaction that is read-only
    "42501": GRANT,
    "42P01": TABLES,
    "42703": TABLES,
    "3F000": TABLES,
    "28000": LOGIN,
    "28P01": LOGIN,
    "3D000": LOGIN,
}
# PostgreSQL's library gives no code for a refused connection.
_REFUSALS = (
    "password authentication failed",
    "authentication failed for user",
    "no password supplied",
    "no pg_hba.conf entry",
    "is not permitted to log in",
    "permission denied for database",
)


def remedy(error: BaseException, path: str | None = None) -> str | None:
    """Return the remedy if the setup of a database is wrong, so that waiting does not help.

    `error` is of the database, `path` its file if it has one. `None` means that the error is
    temporary, or a mistake in the statement.
    """
    cause = error.orig if isinstance(error, DBAPIError) else error
    text = str(cause)
    if isinstance(cause, sqlite3.Error):
        # Errors of Python's module itself have no code.
        code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_ERROR and text.startswith(("no such table", "no such column")):
            return TABLES
        if code == sqlite3.SQLITE_CANTOPEN and path is not None and not _is_usable(path):
            return READ  # otherwise too many files are open
        return _SQLITE.get(code)
    state = getattr(cause, "sqlstate", None)
    if state is None and isinstance(cause, Exception):
        missing = "does not exist" in text and ("role " in text or "database " in text)
        if isinstance(error, OperationalError) and (
            missing or any(refusal in text for refusal in _REFUSALS)
        ):
            return LOGIN
    return _STATES.get(state or "")


def advice(error: BaseException) -> str | None:
    """Return what to do about a temporary error of a database, if there is more than waiting."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    return WAIT if code == sqlite3.SQLITE_BUSY else None


def may_pass(error: BaseException) -> bool:
    """Check whether a retry may succeed: the database is unreachable, busy or full.

    `error` is of the database, or the `CatalogError` made from it.
    """
    if isinstance(error, CatalogSetupError):
        return False
    cause = error.__cause__ if isinstance(error, CatalogError) else error
    if cause is not None and remedy(cause) is not None:
        return False
    if isinstance(cause, DBAPIError) and cause.connection_invalidated:
        return True
    # SQLite's error at the begin of a transaction is not wrapped.
    passing = (OperationalError, InterfaceError, NoConnectionError, sqlite3.OperationalError)
    return isinstance(cause, (*passing, OSError))


def _is_usable(path: str) -> bool:
    """Check whether a file can be opened or created; SQLite creates others beside it."""
    path = os.path.abspath(path.removeprefix("file:"))
    is_readable = os.access(path, os.R_OK) or not os.path.exists(path)
    return is_readable and os.access(os.path.dirname(path), os.W_OK | os.X_OK)
