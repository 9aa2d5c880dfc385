"""A PostgreSQL server of the tests' own, or the one that SWATHE_TEST_POSTGRES names."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy

from tests.support.servers import free_port

PASSWORD = "open-Sesame-of-the-tests"


@contextmanager
def postgres_server() -> Iterator[sqlalchemy.URL]:
    """Give the URL of a server on which databases can be made; skips where there is none."""
    if server_url := os.environ.get("SWATHE_TEST_POSTGRES"):
        yield sqlalchemy.make_url(server_url).set(drivername="postgresql+psycopg")
        return
    programs = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[4])
    )
    if not programs:
        pytest.skip("no PostgreSQL: apt-get install postgresql, or set SWATHE_TEST_POSTGRES")
    # Not below pytest's own folder, which only its user may enter; and short, for the socket.
    folder = Path(tempfile.mkdtemp(prefix="swathe-pg-", dir="/tmp"))
    try:
        with _cluster(programs[-1].parent, folder) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _cluster(programs: Path, folder: Path) -> Iterator[sqlalchemy.URL]:
    # PostgreSQL refuses to run as root.
    user = "postgres" if os.getuid() == 0 else None
    if user:
        shutil.chown(folder, user)

    def run(program: str, *arguments: object) -> None:
        log = folder / "log"
        # Into a file: the server would keep a pipe open.
        with (folder / f"{program}.out").open("ab") as out:
            process = subprocess.run(
                [programs / program, *map(str, arguments)],
                user=user,
                group=user,
                extra_groups=[] if user else None,
                cwd=folder,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=120,
                check=False,
            )
        output = Path(out.name).read_text() + (log.read_text() if log.exists() else "")
        assert process.returncode == 0, output

    secret = folder / "secret"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    data = folder / "data"
    how = ["-U", "swathe", "-A", "scram-sha-256", "-E", "UTF8", f"--pwfile={secret}", "--no-sync"]
    run("initdb", "-D", data, *how)
    port = free_port()
    options = f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off -c max_connections=50"
    run("pg_ctl", "start", "-w", "-D", data, "-l", folder / "log", "-o", options)
    try:
        yield sqlalchemy.URL.create(
            "postgresql+psycopg", "swathe", PASSWORD, "127.0.0.1", port, "postgres"
        )
    finally:
        run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data)


@contextmanager
def new_database(server: sqlalchemy.URL) -> Iterator[str]:
    """Give the URL of an empty database, with its password; it is dropped afterwards."""
    name = f"swathe_test_{uuid.uuid4().hex[:12]}"
    _execute(server, f'CREATE DATABASE "{name}"')
    try:
        yield server.set(database=name).render_as_string(hide_password=False)
    finally:
        _execute(server, f'DROP DATABASE "{name}" WITH (FORCE)')


def _execute(server: sqlalchemy.URL, statement: str) -> None:
    engine = sqlalchemy.create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)
    finally:
        engine.dispose()
