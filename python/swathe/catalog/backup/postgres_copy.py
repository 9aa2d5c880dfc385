"""Copies of a catalogue in PostgreSQL, by its own programs: pg_dump, pg_restore and psql."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from swathe.catalog.backup.archive import NO_CONTENT
from swathe.catalog.database import Database
from swathe.catalog.revisions import VERSION_TABLE
from swathe.catalog.tables import Base
from swathe.core.errors import CatalogError, CatalogSetupError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy

SERVICE = "swathe"
TABLES = (*Base.metadata.tables, VERSION_TABLE)


class _Place(Database):
    """A database of PostgreSQL, whatever its tables."""

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Yield a connection.

        Raises:
            CatalogError: If the database cannot be used.
        """
        with self._errors(), self._engine.connect() as connection:
            yield connection


def copy_out(address: sqlalchemy.URL, copy: Path) -> str:
    """Dump a catalogue that may be in use; return the version of its tables.

    The dump is that of one moment; nobody waits for it.

    Raises:
        CatalogError: If it cannot be read, or pg_dump is not installed.
    """
    with closing(_Place(address)) as place, place.connection() as connection:
        tables = _tables(connection)
        if VERSION_TABLE not in tables:
            raise CatalogError(f"{place.url}: expected a catalogue, found no table {VERSION_TABLE}")
        version = str(connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")))
        schema = connection.scalar(text("SELECT current_schema()"))
    names = [f'--table="{schema}"."{name}"' for name in TABLES if name in tables]
    _run(address, "pg_dump", ["--format=custom", f"--file={copy}", "--no-owner", *names])
    return version


def is_empty(address: sqlalchemy.URL) -> bool:
    """Check whether a catalogue has nothing in it; True if there is none.

    Raises:
        CatalogError: If it cannot be read.
    """
    with closing(_Place(address)) as place, place.connection() as connection:
        names = sorted(_tables(connection) - {*NO_CONTENT})
        return not any(
            connection.execute(text(f'SELECT 1 FROM "{name}" LIMIT 1')).first() for name in names
        )


def copy_in(address: sqlalchemy.URL, dump: Path) -> None:
    """Put a dump in the place of a catalogue, in one transaction: completely or not at all.

    Raises:
        CatalogError: If another process is connected, the dump cannot be restored, or a program
            is not installed.
    """
    with closing(_Place(address)) as place, place.connection() as connection:
        others = connection.scalar(
            text(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        )
        if others:
            raise CatalogError(
                f"{place.url}: expected a catalogue that no process has open, found {others} "
                "connections; stop the portal and other commands first"
            )
        schema = connection.scalar(text("SELECT current_schema()"))
    # Tables of a newer version may refer to those of the dump: all are dropped before.
    drops, script = dump.with_suffix(".drop.sql"), dump.with_suffix(".sql")
    drops.write_text(
        "".join(f'DROP TABLE IF EXISTS "{schema}"."{name}" CASCADE;\n' for name in TABLES)
    )
    _run(address, "pg_restore", ["--no-owner", f"--file={script}", str(dump)])
    options = ["--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1"]
    _run(address, "psql", [*options, f"--file={drops}", f"--file={script}"])


def _tables(connection: Connection) -> set[str]:
    """Return the names of the tables of a catalogue that the database has."""
    query = text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    try:
        return {*connection.scalars(query)} & {*TABLES}
    except SQLAlchemyError as error:
        raise CatalogError(f"the tables cannot be listed: {error}") from error


def _run(address: sqlalchemy.URL, program: str, arguments: list[str]) -> None:
    """Run a program of PostgreSQL.

    Other users of the machine see the arguments of a program, so the address and the password are
    in a file that only it reads.
    """
    path = shutil.which(program)
    if path is None:
        raise CatalogSetupError(
            f"{program}: expected in $PATH, found none; install the client programs of PostgreSQL "
            "(apt-get install postgresql-client)"
        )
    with tempfile.TemporaryDirectory(prefix="swathe-service-") as folder:
        service = Path(folder) / "service.conf"
        service.write_text(_service(address))
        environment = os.environ | {"PGSERVICEFILE": str(service), "PGSERVICE": SERVICE}
        process = subprocess.run(
            [path, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
    if process.returncode:
        message = " ".join(process.stderr.decode(errors="replace").split())[-1000:]
        raise CatalogError(f"{program} failed with exit code {process.returncode}: {message}")


def _service(address: sqlalchemy.URL) -> str:
    """Return the file in which programs of PostgreSQL read the address of a database."""
    values = {
        "host": address.host,
        "port": address.port,
        "user": address.username,
        "password": address.password,
        "dbname": address.database,
        **{
            name: value if isinstance(value, str) else value[0]
            for name, value in address.query.items()
        },
    }
    lines = [f"{name}={value}" for name, value in values.items() if value is not None]
    if any("\n" in line or "\r" in line for line in lines):
        raise CatalogError("the database's URL has a line feed, which pg_dump does not accept")
    return "\n".join((f"[{SERVICE}]", *lines, ""))
