"""The catalogue, on both databases: what is put in comes out, whoever else is at it."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import string
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swathe.catalog import (
    SCHEMES,
    Catalog,
    Outcome,
    ProfileRecord,
    SampleRecord,
    Store,
    default_url,
    outcomes,
    profiles,
    root_url,
    this_host,
)
from swathe.catalog.database import is_locked
from swathe.catalog.database_errors import may_pass, remedy
from swathe.catalog.revisions import REVISIONS, VERSION_TABLE
from swathe.catalog.store_settings import validate_options
from swathe.catalog.tables import Base
from swathe.core import errors
from tests.support.postgres_server import PASSWORD, new_database
from tests.support.property_examples import examples

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
ROOT, HOST = "https://archive.example/dr17", "telescope"


def sample(**given: Any) -> SampleRecord:
    usual: dict[str, Any] = {
        "kind": "read",
        "bytes": 4096,
        "streams": 2,
        "elapsed_s": 0.25,
        "first_byte_s": 0.125,
        "at": NOON,
        "source": "probe",
    }
    return SampleRecord(**(usual | given))


def outcome(**given: Any) -> Outcome:
    usual: dict[str, Any] = {
        "at": NOON,
        "host": HOST,
        "summary": "1 target",
        "targets": 1,
        "root": ROOT,
        "predicted_s": 1.5,
        "low_s": 1.0,
        "high_s": 2.0,
        "actual_s": 1.25,
        "predicted_bytes": 1 << 40,
        "actual_bytes": 1 << 41,
        "predicted_requests": 10,
        "actual_requests": 11,
    }
    return Outcome(**(usual | given))


def scalar(catalog: Catalog, query: str) -> Any:
    with catalog._engine.connect() as connection:
        return connection.scalar(sqlalchemy.text(query))


def execute(url: str, *statements: str) -> None:
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


# ---- Opening


def test_usual_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", "postgresql://host/name")
    assert default_url() == "postgresql://host/name"
    monkeypatch.delenv("SWATHE_DATABASE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_url() == f"sqlite:///{tmp_path}/data/swathe/catalog.sqlite"
    with Catalog.open() as catalog:
        assert catalog.url == default_url()
    assert (tmp_path / "data" / "swathe" / "catalog.sqlite").exists()
    for none in ("", "relative"):
        monkeypatch.setenv("XDG_DATA_HOME", none)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert default_url() == f"sqlite:///{tmp_path}/.local/share/swathe/catalog.sqlite"


def test_tests_have_a_catalogue_of_their_own() -> None:
    assert "swathe-test-catalog-" in default_url()


def test_reopened_keeps_what_was_there(url: str) -> None:
    with Catalog.open(url) as catalog:
        catalog.add_store("survey", ROOT)
    with Catalog.open(url) as catalog:
        assert catalog.store("survey") == Store("survey", ROOT, "lan", {})


def test_up_to_date_database_is_opened_without_alembic_and_without_a_write(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    Catalog.open(f"sqlite:///{path}").close()
    before = path.read_bytes()
    code = (
        "import sys; from swathe.catalog import Catalog\n"
        "with Catalog.open(sys.argv[1]) as catalog: catalog.stores()\n"
        "assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, f"sqlite:///{path}"], check=True)
    assert path.read_bytes() == before


def test_sqlite_logs_ahead_checks_keys_and_waits(tmp_path: Path) -> None:
    with Catalog.open(f"sqlite:///{tmp_path / 'c.sqlite'}") as catalog:
        assert scalar(catalog, "PRAGMA journal_mode") == "wal"
        assert scalar(catalog, "PRAGMA foreign_keys") == 1
        assert scalar(catalog, "PRAGMA busy_timeout") == 30_000


def test_migrations_give_the_tables_of_the_code(catalog: Catalog) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    def ours(name: str | None, kind: str, *_: object) -> bool:
        return not (kind == "table" and name == VERSION_TABLE)

    with catalog._engine.connect() as connection:
        options = {
            "version_table": VERSION_TABLE,
            "compare_type": True,
            "compare_server_default": True,
            "include_name": ours,
        }
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []
        names = {
            name
            for table in Base.metadata.tables
            for name in _constraint_names(sqlalchemy.inspect(connection), table)
        }
    named: list[Any] = [
        each
        for table in Base.metadata.tables.values()
        for each in (*table.constraints, *table.indexes)
    ]
    assert names == {each.name for each in named}


def test_migrations_give_sqlite_what_the_code_would_create(tmp_path: Path) -> None:
    migrated, created = (f"sqlite:///{tmp_path / name}" for name in ("migrated", "created"))
    Catalog.open(migrated).close()
    engine = sqlalchemy.create_engine(created)
    Base.metadata.create_all(engine)
    engine.dispose()
    assert _definitions(migrated) == _definitions(created)
    assert len(_definitions(created)) > len(Base.metadata.tables)


def _definitions(url: str) -> dict[str, list[str]]:
    """Return the parts of the SQL that made each table and index, in no order."""
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:
        made = connection.execute(
            sqlalchemy.text("SELECT name, sql FROM sqlite_master WHERE tbl_name != :other"),
            {"other": VERSION_TABLE},
        ).all()
    engine.dispose()
    # A column that a migration adds stands in the line of the last constraint.
    return {
        name: sorted(part.strip() for part in re.split("[,\n]", sql or "") if part.strip())
        for name, sql in made
    }


def _constraint_names(inspector: sqlalchemy.Inspector, table: str) -> list[str]:
    found: list[Any] = [
        inspector.get_pk_constraint(table),
        *inspector.get_foreign_keys(table),
        *inspector.get_unique_constraints(table),
    ]
    indexes = inspector.get_indexes(table)
    found += [index for index in indexes if "duplicates_constraint" not in index]
    return [str(each["name"]) for each in found]


@pytest.mark.parametrize(
    ("url", "options", "key"),
    [
        ("s3://one", {"endpoint": "http://[::1]:9000"}, "s3://[::1]:9000/one"),
        ("gs://one/dr1", {"endpoint": "https://gcs.example/x"}, "gs://gcs.example:443/x/one/dr1"),
        (
            "az://frames",
            {"account": "survey", "anonymous": "true"},
            "az://survey.blob.core.windows.net:443/frames",
        ),
        ("root://door//archive", {"door": "http://Door:8443"}, "root://door:8443//archive"),
        ("s3://three", {"anonymous": "true"}, "s3://three"),
        ("https://archive.example/dr1", {}, "https://archive.example/dr1"),
        ("file:///data", {}, "file:///data"),
    ],
)
def test_key_of_a_store_names_its_server(
    url: str, options: dict[str, str], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)
    assert Store("survey", url, "lan", options).key == key


def test_every_migration_is_known() -> None:
    from alembic.script import ScriptDirectory

    from swathe.catalog import migrations

    script = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert tuple(step.revision for step in script.walk_revisions())[::-1] == REVISIONS


OPEN = """
import os, sys, time
from swathe.catalog import Catalog
import alembic.command, alembic.config
begin = time.monotonic() + 0.1
children = []
for number in range(8):
    if (child := os.fork()) == 0:
        time.sleep(max(0, begin - time.monotonic()))
        with Catalog.open(sys.argv[1]) as catalog:
            catalog.add_store(f"store-{number}", "/data")
            assert catalog.store(f"store-{number}").tier == "local"
        sys.exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
"""


@pytest.mark.more
def test_eight_processes_open_a_new_database_at_once(url: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", OPEN, url], capture_output=True, text=True, check=True
    )
    assert (ran.stdout, ran.stderr) == (f"{[0] * 8}\n", "")
    with Catalog.open(url) as catalog:
        assert [store.name for store in catalog.stores()] == [f"store-{n}" for n in range(8)]


def test_newer_database_is_refused(url: str) -> None:
    Catalog.open(url).close()
    execute(url, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(errors.CatalogError, match="newer Swathe: its tables have version 9999"):
        Catalog.open(url)


@pytest.mark.parametrize("revision", ["0001", "0002", "0013"])
def test_catalogue_of_a_development_version_is_refused(revision: str, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with Catalog.open(f"sqlite:///{path}") as catalog:
        catalog.add_store("survey", ROOT)
    execute(f"sqlite:///{path}", f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'")
    before = path.read_bytes()
    assert refused(f"sqlite:///{path}") == (
        f"sqlite:///{path}: catalogue of a development version of Swathe: expected tables of "
        f"version {REVISIONS[-1]}, found {revision}; remove or rename the file to begin a new "
        "catalogue; the stores, probes, datasets, jobs and tokens of the old one are lost"
    )
    assert path.read_bytes() == before
    path.rename(tmp_path / "old.sqlite")
    with Catalog.open(f"sqlite:///{path}") as catalog:
        assert catalog.stores() == []


def test_tables_of_a_development_version_are_refused(postgres: sqlalchemy.URL) -> None:
    with new_database(postgres) as url:
        Catalog.open(url).close()
        execute(url, f"UPDATE {VERSION_TABLE} SET version_num = '0007'")
        assert "found 0007; drop its tables and swathe_schema to begin" in refused(url)
        tables = ", ".join([*Base.metadata.tables, VERSION_TABLE])
        execute(url, f"DROP TABLE {tables}")
        Catalog.open(url).close()


def test_database_of_another_program_is_refused_and_left_alone(url: str) -> None:
    execute(url, "CREATE TABLE stores (bread TEXT)")
    with pytest.raises(errors.CatalogError, match="not a Swathe catalogue: it has a table 'stores"):
        Catalog.open(url)
    engine = sqlalchemy.create_engine(url)
    assert sqlalchemy.inspect(engine).get_table_names() == ["stores"]
    engine.dispose()


def test_schema_that_never_got_its_tables_is_mended(url: str) -> None:
    execute(url, f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL)")
    with Catalog.open(url) as catalog:
        assert catalog.stores() == []


def test_requests_of_samples_and_notes_of_profiles_are_kept(url: str) -> None:
    with Catalog.open(url) as catalog:
        catalog.add_samples(ROOT, HOST, [sample(requests=7)])
        catalog.put_profile(ROOT, HOST, {"a": 1}, {}, NOON, ["told\0 by a probe"])
        assert [each.requests for each in catalog.samples(ROOT, HOST)] == [7]
        profile = catalog.profile(ROOT, HOST)
    assert profile is not None and profile.notes == ("told by a probe",)
    execute(url, "UPDATE profiles SET notes = NULL")
    with Catalog.open(url) as catalog:
        profile = catalog.profile(ROOT, HOST)
    assert profile is not None and profile.notes == ()


def test_computing_is_kept_for_each_host(catalog: Catalog) -> None:
    assert catalog.compute(HOST) is None
    catalog.put_compute(HOST, {"cut_s": 1e-4, "tile_byte_s": {"RICE_1": 1e-9}}, NOON)
    catalog.put_compute(HOST, {"cut_s": 2e-4}, NOON)
    catalog.put_compute("other", {"cut_s": 3e-4}, NOON)
    assert catalog.compute(HOST) == {"cut_s": 2e-4}
    with pytest.raises(ValueError, match="not JSON compliant"):
        catalog.put_compute(HOST, {"cut_s": float("nan")}, NOON)


def test_migration_that_fails_leaves_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import op

    create = op.create_table

    def fail_at_the_last(name: str, *columns: Any, **options: Any) -> None:
        if name == "tokens":
            raise KeyboardInterrupt
        create(name, *columns, **options)

    monkeypatch.setattr(op, "create_table", fail_at_the_last)
    with pytest.raises(KeyboardInterrupt):
        Catalog.open(url)
    engine = sqlalchemy.create_engine(url)
    assert sqlalchemy.inspect(engine).get_table_names() == []
    engine.dispose()
    monkeypatch.undo()
    with Catalog.open(url) as catalog:
        assert catalog.outcomes() == []


def refused(url: str) -> str:
    """What is said of a database that cannot be opened."""
    with pytest.raises(errors.CatalogError) as caught:
        Catalog.open(url)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("content", [b"no database at all\n" * 200, b"x"])
def test_no_database(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    assert refused(f"sqlite:///{path}") == f"sqlite:///{path}: file is not a database"
    assert path.read_bytes() == content


def test_damaged_database(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with Catalog.open(f"sqlite:///{path}") as catalog:
        catalog.add_samples(ROOT, HOST, [sample()] * 1000)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xaa" * (len(content) - 4096)
    path.write_bytes(content)
    with (
        pytest.raises(errors.CatalogError, match="malformed"),
        Catalog.open(f"sqlite:///{path}") as catalog,
    ):
        catalog.samples(ROOT, HOST)


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot make its folder" in refused(f"sqlite:///{tmp_path}/file/c.sqlite")
    assert "unable to open" in refused(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("sqlite://host/c", "needs a file"),
        ("/data/catalog.sqlite", "cannot be read"),
        ("mysql://u:hush@host/name", "not supported"),
        ("oracle+cx://u:hush@host/name", "not supported"),
        ("postgresql+asyncpg://u:hush@host/name", "not supported"),
        ("postgresql://u:hush@host:port/name", "cannot be read"),
        ("postgresql://u:x@hush@host/name", "cannot be read"),
        ("postgresql://u:x@y/hush@host/name", "cannot be read"),
        ("postgresql://u:hush@host", "cannot be read"),
        ("postgresql://u:hush@127.0.0.1:1/name", r"u:\*\*\*@127.0.0.1:1/name: .*refused"),
        ("postgres://u:hush@127.0.0.1:1/name", "refused"),
        ("postgresql://127.0.0.1:1/name?user=u&password=hush", "refused"),
        ("postgresql://127.0.0.1:1/name?sslmode=hush-no&sslpassword=x", "sslmode"),
    ],
)
def test_url_that_leads_nowhere(
    url: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    message = refused(url)
    assert re.search(said, message)
    assert "hush" not in message.replace("hush-no", "")
    assert not list(tmp_path.iterdir())


def test_postgres_without_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    message = refused("postgresql://u:hush@host/name")
    assert "pip install 'swathe[postgres]'" in message
    assert "hush" not in message


def test_wrong_password_is_not_told(postgres: sqlalchemy.URL) -> None:
    wrong = postgres.set(password="hush-hush").render_as_string(hide_password=False)
    if postgres.password != PASSWORD:
        pytest.skip("the server given may ask for no password")
    message = refused(wrong)
    assert "password authentication failed" in message
    assert "hush" not in message
    assert ":***@" in message
    assert "; set user, password and database" in message
    missing = postgres.set(database="nowhere").render_as_string(hide_password=False)
    assert 'database "nowhere" does not exist; set user' in refused(missing)


def test_password_is_hidden_in_the_url(url: str) -> None:
    with Catalog.open(url) as catalog:
        assert PASSWORD not in catalog.url
        assert PASSWORD not in repr(catalog)


def test_locked_database(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    url = f"sqlite:///{path}?timeout=0.1"
    with Catalog.open(url) as catalog:
        catalog.add_store("survey", ROOT)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.CatalogError, match=r"c.sqlite.*database is locked; .*again"):
            catalog.add_store("again", ROOT)
        assert [store.name for store in catalog.stores()] == ["survey"]
        other.execute("ROLLBACK")
        other.close()
        catalog.add_store("again", ROOT)


def test_lock_of_another_connection_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a b.sqlite"
    url = f"sqlite:///{path}"
    with Catalog.open(url):
        assert not is_locked(url)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert is_locked(url)
        holder.execute("ROLLBACK")
        assert not is_locked(url)
    missing = tmp_path / "none.sqlite"
    assert not is_locked(f"sqlite:///{missing}")
    assert not missing.exists()
    assert is_locked("postgresql://host/name")
    with pytest.raises(errors.CatalogError):
        is_locked("mysql://host/name")


def test_read_only_database(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with Catalog.open(f"sqlite:///{path}") as catalog:
        catalog.add_store("survey", ROOT)
        with Catalog.open(f"sqlite:///file:{path}?mode=ro&uri=true") as reader:
            assert reader.store("survey").url == ROOT
            with pytest.raises(errors.CatalogSetupError, match=r"readonly.*must be writable"):
                reader.remove_store("survey")
            with pytest.raises(errors.CatalogSetupError, match="must be writable") as caught:
                reader.check_writable()
            assert not may_pass(caught.value)
        catalog.check_writable()
        with catalog._engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE samples")
        with pytest.raises(errors.CatalogSetupError, match=r"no such table.*restore them"):
            catalog.check_writable()


def test_read_only_role(postgres: sqlalchemy.URL) -> None:
    role, shown = f"reader_{uuid.uuid4().hex[:12]}", postgres.render_as_string(hide_password=False)
    with new_database(postgres) as url, Catalog.open(url) as catalog:
        catalog.add_store("survey", ROOT)
        catalog.check_writable()
        execute(url, f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        try:
            execute(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
            theirs = sqlalchemy.make_url(url).set(username=role, password=PASSWORD)
            for query in ({}, {"options": "-c default_transaction_read_only=on"}):
                told = theirs.set(query=query).render_as_string(hide_password=False)
                with Catalog.open(told) as reader:
                    assert reader.store("survey").url == ROOT
                    for use in (reader.check_writable, lambda: reader.add_store("again", ROOT)):
                        with pytest.raises(errors.CatalogSetupError, match="GRANT") as caught:
                            use()
                        assert not may_pass(caught.value)
        finally:
            execute(url, f"DROP OWNED BY {role}")
            execute(shown, f"DROP ROLE {role}")


def test_what_may_pass_is_told_from_what_must_be_set_up(tmp_path: Path) -> None:
    away = "postgresql://u:hush@127.0.0.1:1/name"
    with pytest.raises(errors.CatalogError, match="refused") as caught:
        Catalog.open(away)
    assert type(caught.value) is errors.CatalogError and may_pass(caught.value)
    path = tmp_path / "c.sqlite"
    with Catalog.open(f"sqlite:///{path}?timeout=0.1") as catalog:
        other = sqlite3.connect(path)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.CatalogError, match="locked") as caught:
            catalog.check_writable()
        other.close()
    assert type(caught.value) is errors.CatalogError and may_pass(caught.value)
    (tmp_path / "folder").mkdir()
    said = sqlite3.OperationalError("unable to open database file")
    said.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    assert remedy(said, str(tmp_path / "none" / "c.sqlite")) is not None
    for known in (str(path), f"file:{path}"):
        assert remedy(said, known) is None  # too many files are open


def test_full_disk(tmp_path: Path) -> None:
    with Catalog.open(f"sqlite:///{tmp_path / 'c.sqlite'}") as catalog:
        pages = scalar(catalog, "PRAGMA page_count")
        with catalog._engine.connect() as connection:
            driver: Any = connection.connection.dbapi_connection
            driver.execute(f"PRAGMA max_page_count={pages + 1}")
        with pytest.raises(errors.CatalogError, match="disk is full"):
            catalog.add_samples(ROOT, HOST, [sample()] * 1000)
        assert catalog.samples(ROOT, HOST) == []


def test_server_that_goes_away(postgres: sqlalchemy.URL) -> None:
    with new_database(postgres) as url, Catalog.open(url) as catalog:
        catalog.add_store("survey", ROOT)
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
        name = catalog._engine.url.database
        execute(postgres.render_as_string(hide_password=False), f"{end}'{name}'")
        assert len(catalog.stores()) == 1  # it connects anew


# ---- Stores

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{1,20}", fullmatch=True).filter(
    lambda name: name.lower() not in SCHEMES
)
# Nothing that is a credential by its look.
WORDS = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=12)
PATHS = st.lists(
    st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=20).filter(
        lambda part: part not in (".", "..")
    ),
    min_size=1,
    max_size=4,
).map(lambda parts: "/" + "/".join(parts))
WEB = st.builds(lambda host, path: f"http://{host}:8080/{path}", WORDS, WORDS)
OTHERS = st.builds(lambda *of: "{}://{}/{}".format(*of), st.sampled_from(SCHEMES[1:]), WORDS, WORDS)
URLS = st.one_of(PATHS, WEB, OTHERS)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "endpoint": WEB,
        "door": WEB,
        "region": WORDS,
        "profile": WORDS,
        "anonymous": st.sampled_from(["true", "false"]),
        "account": st.from_regex(r"[a-z0-9]{3,24}", fullmatch=True),
        "token_file": WORDS.map("/run/{}".format),
    },
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """One SQLite catalogue for many examples."""
    with Catalog.open(f"sqlite:///{tmp_path_factory.mktemp('shared')}/c.sqlite") as catalog:
        yield catalog


@pytest.mark.more
@given(NAMES, URLS, st.sampled_from(["local", "lan", "wan", "tape"]), OPTIONS)
@example("s3s", "/", "tape", {})
@settings(max_examples=examples(100))
def test_stores_come_out_as_they_went_in(
    shared: Catalog, name: str, url: str, tier: str, options: dict[str, str]
) -> None:
    added = shared.add_store(name, url, tier, options)
    try:
        assert shared.store(name) == added
        assert shared.stores() == [added]
        assert (added.name, added.tier, added.options) == (name, tier, options)
        assert root_url(added.url) == added.url
    finally:
        shared.remove_store(name)


def test_stores(catalog: Catalog) -> None:
    catalog.add_store("web", "https://Host.Example/A/", options={"token_file": "/run/token"})
    catalog.add_store("disk", "/data//frames/", options={})
    catalog.add_store("Tape", "root://door//archive", "tape", {"door": "http://door:8443/"})
    assert catalog.stores() == [
        Store("Tape", "root://door//archive", "tape", {"door": "http://door:8443"}),
        Store("disk", "file:///data/frames", "local", {}),
        Store("web", "https://host.example/A", "lan", {"token_file": "/run/token"}),
    ]
    with pytest.raises(errors.StoreSettingsError, match="there is a store 'disk' already"):
        catalog.add_store("disk", "/other")
    assert catalog.store("disk").url == "file:///data/frames"
    catalog.remove_store("disk")
    for use in (catalog.store, catalog.remove_store):
        with pytest.raises(errors.NoSuchStoreError, match="no store 'disk'"):
            use("disk")
    catalog.add_store("disk", "/other")


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("/", "file:///"),
        ("//data/../x y/", "file:///x%20y"),
        ("/100%", "file:///100%25"),
        ("/\udcff", "file:///%FF"),
        ("file:///x%20y/", "file:///x%20y"),
        ("FILE://localhost/x", "file:///x"),
        ("HTTPS://A.B:8080//c/D//", "https://a.b:8080//c/D"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        ("s3://Bucket/", "s3://Bucket"),
        ("az://$web/x", "az://$web/x"),
        (
            "/data/run=3;key=4/AKIAABCDEFGHIJKLMNOP",
            "file:///data/run%3D3%3Bkey%3D4/AKIAABCDEFGHIJKLMNOP",
        ),
        ("https://host/~user/a@b/token", "https://host/~user/a@b/token"),
    ],
)
def test_one_root_has_one_text(given: str, root: str) -> None:
    assert root_url(given) == root
    assert root_url(root) == root


@pytest.mark.parametrize(
    ("name", "url", "tier", "options", "said"),
    [
        ("x", "/data", None, {}, "2 to 100"),
        ("", "/data", None, {}, "2 to 100"),
        ("1a", "/data", None, {}, "a letter"),
        ("a b", "/data", None, {}, "letters, digits"),
        ("ab\n", "/data", None, {}, "letters, digits"),
        ("é1", "/data", None, {}, "letters, digits"),
        ("a" * 101, "/data", None, {}, "2 to 100"),
        ("S3", "/data", None, {}, "URL scheme"),
        ("roots", "/data", None, {}, "URL scheme"),
        ("ok", "data", None, {}, "absolute path"),
        ("ok", "", None, {}, "absolute path"),
        ("ok", "ftp://host/x", None, {}, "ftp:// is not a known scheme"),
        ("ok", "file://host/x", None, {}, "file:///absolute/path"),
        ("ok", "file:x", None, {}, "absolute path"),
        ("ok", "/a\0b", None, {}, "null"),
        ("ok", "/" + "a" * 2000, None, {}, "2000"),
        ("ok", "http://", None, {}, "scheme://host/path"),
        ("ok", "http://host:99999/", None, {}, "host or port"),
        ("ok", "http://[::1/", None, {}, "host or port"),
        ("ok", "http://ho st/", None, {}, "blanks"),
        ("ok", "http://host/é", None, {}, "ASCII"),
        ("ok", "http://host/x?page=3", None, {}, "no query"),
        ("ok", "http://host/x#top", None, {}, "no fragment"),
        ("ok", "/data", "moon", {}, "local, lan, wan, tape"),
        ("ok", "/data", None, {"colour": "red"}, "endpoint, region"),
        ("ok", "/data", None, {"anonymous": "perhaps"}, "true or false"),
        ("ok", "/data", None, {"endpoint": "s3://x"}, "endpoint"),
        ("ok", "/data", None, {"endpoint": "davs://x"}, "endpoint"),
        ("ok", "/data", None, {"door": "root://x"}, "door"),
        ("ok", "/data", None, {"token_file": "run/token"}, "absolute path"),
        ("ok", "/data", None, {"region": ""}, "region"),
        ("ok", "/data", None, {"profile": "a\nb"}, "profile"),
        ("ok", "az://images", None, {"account": "Survey_1"}, "small letters and digits"),
    ],
)
def test_settings_without_sense(
    name: str, url: str, tier: str | None, options: dict[str, str], said: str, shared: Catalog
) -> None:
    with pytest.raises(errors.StoreSettingsError, match=said) as caught:
        shared.add_store(name, url, tier, options)
    assert "\n" not in str(caught.value)
    assert shared.stores() == []


SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("https://user:hush@host/x", {}),
        ("https://hush@host/x", {}),
        ("s3://AKIAHUSHHUSHHUSHHUSH:hush@bucket", {}),
        ("root://user:hush@host//x", {}),
        ("https://user%3Ahush%40host/x", {}),
        ("user:hush@host/x", {}),
        ("ftp://user:hush@host/x", {}),
        ("file://user:hush@host/x", {}),
        ("https://host/x?token=hush", {}),
        ("https://host/x?a=1&X-Amz-Signature=hush", {}),
        ("https://host/x?sv=2024&sig=hush", {}),
        ("https://host/x%3Fauthz=hush", {}),
        ("https://host/x;password=hush", {}),
        ("https://host/x#access_token=hush", {}),
        ("root://host//x?authz=Bearer%20hush", {}),
        (f"https://host/{TOKEN}/x", {}),
        ("/data", {"key": "hush"}),
        ("/data", {"secret": "hush"}),
        ("/data", {"AWS_SECRET_ACCESS_KEY": "hush"}),
        ("/data", {"token": "hush"}),
        ("/data", {"password": "hush"}),
        ("/data", {"endpoint": "https://user:hush@host"}),
        ("/data", {"door": "https://host/?authz=hush"}),
        ("/data", {"token_file": TOKEN}),
        ("/data", {"profile": SECRET}),
        ("/data", {"region": "AKIAHUSHHUSHHUSHHUSH"}),
    ],
)
def test_credentials_are_refused_and_told_nowhere(
    url: str, options: dict[str, str], shared: Catalog
) -> None:
    with pytest.raises(errors.StoreSettingsError) as caught:
        shared.add_store("ok", url, None, options)
    uses: list[Callable[[], object]] = [
        lambda: shared.add_probe(url, HOST, {}, 1, 1),
        lambda: shared.add_samples(url, HOST, [sample()]),
        lambda: shared.put_profile(url, HOST, {}, {}, NOON),
        lambda: shared.add_outcome(outcome(root=url)),
    ]
    for use in () if options else uses:
        with pytest.raises(errors.StoreSettingsError):
            use()
    message = str(caught.value)
    assert "BEARER_TOKEN_FILE" in message
    path = Path(shared._engine.url.database or "")
    content = b"".join(each.read_bytes() for each in path.parent.iterdir())
    assert b"samples" in content
    for secret in ("hush", "HUSH", SECRET, TOKEN, TOKEN[:20]):
        assert secret not in message
        assert secret.encode() not in content


def test_values_that_only_look_a_little_secret_are_kept(shared: Catalog) -> None:
    options = {"profile": "key-ring", "token_file": "/run/secrets/token", "region": "eu-west-1"}
    shared.add_store("key", "https://host/tokens/auth", options=options)
    assert shared.store("key").options == options
    shared.remove_store("key")


# ---- What was measured


def test_samples(catalog: Catalog) -> None:
    vienna = timezone(timedelta(hours=1))
    first = sample(at=NOON.astimezone(vienna), first_byte_s=None, bytes=1 << 40)
    second = sample(kind="open", at=NOON + timedelta(microseconds=1), source="read")
    probe = catalog.add_probe(ROOT, HOST, {"sizes": [1, 2.5], "deep": {"a": None}}, 3.5, 1 << 40)
    catalog.add_samples(ROOT, HOST, iter([second]))
    catalog.add_samples(ROOT + "/", HOST, [first], probe)
    catalog.add_samples(ROOT, "elsewhere", [sample()])
    catalog.add_samples("/data", HOST, [])
    found = catalog.samples(ROOT, HOST)
    assert found == [first, second]
    assert {each.at.utcoffset() for each in found} == {timedelta(0)}
    assert catalog.samples(ROOT, HOST, kinds=["open", "list"]) == [second]
    assert catalog.samples(ROOT, HOST, kinds=[]) == []
    assert catalog.samples(ROOT, HOST, since=second.at.astimezone(vienna)) == [second]
    assert catalog.samples("/data", HOST) == []
    assert scalar(catalog, "SELECT count(*) FROM samples WHERE probe_id IS NOT NULL") == 1


def test_probes(catalog: Catalog) -> None:
    old = catalog.add_probe(ROOT, HOST, {"a": 1}, 3, 4, at=NOON)
    new = catalog.add_probe("/data", HOST, {}, np.float64(1.5), 7)
    catalog.add_probe(ROOT, "elsewhere", {}, 1, 1, at=NOON - timedelta(1))
    assert old != new
    assert [probe.id for probe in catalog.probes(host=HOST)] == [new, old]
    assert len(catalog.probes()) == 3
    (found,) = catalog.probes(ROOT, HOST)
    assert (found.root, found.host, found.at, found.parameters) == (ROOT, HOST, NOON, {"a": 1})
    assert abs(catalog.probes("/data")[0].at - datetime.now(UTC)) < timedelta(minutes=1)


def test_numbers_of_numpy_are_numbers(catalog: Catalog) -> None:
    numbers = sample(bytes=np.int64(5), streams=np.uint8(1), elapsed_s=np.float32(0.5))
    catalog.add_samples(ROOT, HOST, [numbers])
    assert catalog.samples(ROOT, HOST) == [sample(bytes=5, streams=1, elapsed_s=0.5)]
    catalog.put_profile(ROOT, HOST, {"a": np.float32(0.5), "b": np.arange(2)}, {}, NOON)
    profile = catalog.profile(ROOT, HOST)
    assert profile is not None
    assert profile.costs == {"a": 0.5, "b": [0, 1]}


def test_values_no_database_takes(catalog: Catalog) -> None:
    nan, inf = float("nan"), float("inf")
    naive = NOON.replace(tzinfo=None)
    uses: list[Callable[[], object]] = [
        lambda: catalog.add_samples(ROOT, HOST, [sample(at=naive)]),
        lambda: catalog.add_samples(ROOT, HOST, [sample(elapsed_s=nan)]),
        lambda: catalog.add_samples(ROOT, HOST, [sample(bytes=-1)]),
        lambda: catalog.add_samples(ROOT, HOST, [sample(bytes=1 << 63)]),
        lambda: catalog.add_samples(ROOT, HOST, [sample(source="rumour")]),
        lambda: catalog.add_samples(ROOT, "", [sample()]),
        lambda: catalog.add_samples(ROOT, "a\0", [sample()]),
        lambda: catalog.samples(ROOT, HOST, since=naive),
        lambda: catalog.add_probe(ROOT, HOST, {}, inf, 1),
        lambda: catalog.add_probe(ROOT, HOST, {}, 1, 1, at=naive),
        lambda: catalog.put_profile(ROOT, HOST, {"a": nan}, {}, NOON),
        lambda: catalog.put_profile(ROOT, HOST, {}, {"a": inf}, NOON),
        lambda: catalog.put_profile(ROOT, HOST, {}, {}, naive),
        lambda: catalog.add_outcome(outcome(at=naive)),
        lambda: catalog.add_outcome(outcome(high_s=inf)),
    ]
    for use in uses:
        with pytest.raises(ValueError) as caught:
            use()
        assert type(caught.value) is ValueError
    for table in ("links", "samples", "probes", "profiles", "outcomes"):
        assert scalar(catalog, f"SELECT count(*) FROM {table}") == 0


def test_samples_of_no_probe(catalog: Catalog) -> None:
    with pytest.raises(errors.CatalogError, match=r"(?i)foreign key"):
        catalog.add_samples(ROOT, HOST, [sample()], probe_id=12345)
    assert catalog.samples(ROOT, HOST) == []


def test_profiles(catalog: Catalog) -> None:
    assert catalog.profile(ROOT, HOST) is None
    assert catalog.profiles() == []
    costs = {"latency_s": 0.056, "stream_bytes_per_s": 1e7, "by_size": [[1, 2], [3, 4]]}
    catalog.put_profile(ROOT, HOST, costs, {"latency_s": 0.001}, NOON)
    catalog.put_profile(ROOT, HOST, {"latency_s": 9}, {}, NOON - timedelta(1))
    catalog.put_profile("/data", HOST, {}, {}, NOON)
    catalog.put_profile(ROOT, "elsewhere", {}, {}, NOON)
    latest = ProfileRecord(ROOT, HOST, costs, {"latency_s": 0.001}, NOON)
    assert catalog.profile(ROOT + "/", HOST) == latest
    assert catalog.profiles() == [
        ProfileRecord("file:///data", HOST, {}, {}, NOON),
        ProfileRecord(ROOT, "elsewhere", {}, {}, NOON),
        latest,
    ]


def test_outcomes(catalog: Catalog) -> None:
    kept = [outcome(targets=number, summary=f"{number}") for number in range(5)]
    for each in kept:
        catalog.add_outcome(each)
    assert catalog.outcomes() == kept[::-1]
    assert catalog.outcomes(2) == kept[:2:-1]
    catalog.add_outcome(outcome(root="", summary="bad \udcff\0 name" + "x" * 2000))
    assert catalog.outcomes(1)[0].summary.startswith("bad \\udcff name")


def test_this_host() -> None:
    assert this_host() == os.uname().nodename


# ---- Bounds


def test_samples_are_bounded_and_quick(catalog: Catalog) -> None:
    batch, statements = 10_000, list[str]()

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    sqlalchemy.event.listen(catalog._engine, "before_cursor_execute", note)
    for number in range(3):
        rows = [
            sample(bytes=row, at=NOON + timedelta(seconds=number), source="read")
            for row in range(batch)
        ]
        statements.clear()
        catalog.add_samples(ROOT, HOST, rows)
        # Not one for each row.
        assert len(statements) < 100
        catalog.add_samples(ROOT, HOST, [sample(at=NOON - timedelta(days=1 + number))])
    found = catalog.samples(ROOT, HOST)
    assert [each.source for each in found[:3]] == ["probe"] * 3
    assert len(found) == 3 + profiles.MOST_SAMPLES == 3 + 2 * batch
    assert {each.at for each in found[3:]} == {NOON + timedelta(seconds=s) for s in (1, 2)}


def test_histories_are_bounded(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (profiles.MOST_PROFILES, outcomes.MOST_OUTCOMES) == (50, 10_000)
    monkeypatch.setattr(outcomes, "MOST_OUTCOMES", 20)
    monkeypatch.setattr(profiles, "MOST_PROBES", 5)
    for number in range(60):
        catalog.put_profile(ROOT, HOST, {"n": number}, {}, NOON + timedelta(seconds=number))
        catalog.put_profile("/data", HOST, {}, {}, NOON) if number < 3 else None
        catalog.add_outcome(outcome(targets=number))
        probe = catalog.add_probe(ROOT, HOST, {"n": number}, 1, 1)
        catalog.add_samples(ROOT, HOST, [sample()], probe)
    assert scalar(catalog, "SELECT count(*) FROM profiles") == 53
    latest = catalog.profile(ROOT, HOST)
    assert latest is not None
    assert latest.costs == {"n": 59}
    assert [each.targets for each in catalog.outcomes()] == list(range(59, 39, -1))
    assert [probe.parameters["n"] for probe in catalog.probes()] == [59, 58, 57, 56, 55]
    assert len(catalog.samples(ROOT, HOST)) == 60


# ---- Company


@pytest.mark.more
def test_threads_share_a_catalogue(catalog: Catalog) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(10):
                at = NOON + timedelta(seconds=step)
                catalog.add_samples(ROOT, HOST, [sample(streams=number, at=at)] * 20)
                catalog.put_profile(ROOT, HOST, {}, {}, at)
                catalog.add_outcome(outcome())
                catalog.samples(ROOT, HOST)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(catalog.samples(ROOT, HOST)) == 8 * 10 * 20
    assert scalar(catalog, "SELECT count(*) FROM links") == 1
    assert scalar(catalog, "SELECT count(*) FROM profiles") == 50


INSERT = """
import sys
from datetime import UTC, datetime
from swathe.catalog import Catalog, SampleRecord
rows = [SampleRecord("read", 1, 1, 1.0, None, datetime.now(UTC), "read")] * int(sys.argv[2])
with Catalog.open(sys.argv[1]) as catalog:
    for number in range(int(sys.argv[3])):
        catalog.add_samples("https://archive.example/dr17", "telescope", rows)
        print(number, flush=True)
"""


def inserting(url: str, rows: int, times: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-W", "error", "-c", INSERT, url, str(rows), str(times)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


@pytest.mark.more
def test_processes_insert_at_once(url: str) -> None:
    processes = [inserting(url, 50, 10) for _ in range(3)]
    for process in processes:
        process.communicate(timeout=120)
    assert [process.returncode for process in processes] == [0] * 3
    with Catalog.open(url) as catalog:
        assert len(catalog.samples(ROOT, HOST)) == 3 * 10 * 50


@pytest.mark.more
@pytest.mark.parametrize("wait_s", [0.0, 0.03])
def test_killed_amid_an_insert_leaves_a_sound_database(wait_s: float, url: str) -> None:
    rows = 700
    process = inserting(url, rows, 1000)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(wait_s)
    process.send_signal(signal.SIGKILL)
    done = 1 + len(process.communicate(timeout=120)[0].splitlines())
    with Catalog.open(url) as catalog:
        limit = time.monotonic() + 120
        while True:
            found = len(catalog.samples(ROOT, HOST))
            if found >= min(rows * done, 20_000) or time.monotonic() > limit:
                break
            time.sleep(0.05)
        # The last may have been committed, but not told.
        assert found in (min(rows * done, 20_000), min(rows * (done + 1), 20_000))
        catalog.add_samples(ROOT, HOST, [sample()])
        if catalog.url.startswith("sqlite"):
            assert scalar(catalog, "PRAGMA integrity_check") == "ok"


def test_secret_words_are_those_of_the_issue() -> None:
    for word in ("key", "secret", "token", "password", "AWS_SESSION_TOKEN", "auth"):
        with pytest.raises(errors.StoreSettingsError, match="credential"):
            validate_options({word: "x"})


def test_the_number_of_a_reservation_is_not_given_again(catalog: Catalog) -> None:
    now, later = datetime.now(UTC), datetime.now(UTC) + timedelta(hours=1)
    # Over when the next one comes.
    past = catalog.reserve(2, now - timedelta(hours=1), now)
    ended = catalog.reserve(2, now, later)
    assert catalog.release(ended.number)
    assert not catalog.release(ended.number)
    assert not catalog.release(past.number)
    assert catalog.reservations() == []
    made = catalog.reserve(3, now, later)
    assert made.number > ended.number > past.number
    assert catalog.reservations() == [made]


def test_work_on_a_striped_store_tells_its_progress(catalog: Catalog) -> None:
    catalog.add_store("disk", "/data")
    catalog.add_store("wide", "striped:", over=["disk:a", "disk:b"])
    number = catalog.begin_stripe_work("wide", "repair", "wide:dr17", os.getpid(), 2**40)
    catalog.tell_stripe_work(number, 2**33, 1, 2**50)
    (work,) = catalog.stripe_work("wide")
    assert (work.objects, work.done, work.failed, work.written_bytes) == (2**40, 2**33, 1, 2**50)
    assert work.is_running and work.began_at <= work.told_at
    assert (work.total_bytes, work.done_bytes, work.left_s) == (None, None, None)
    catalog.tell_stripe_work(number, 2**33, 1, 2**50, is_stopped=True)
    assert [each.is_running for each in catalog.stripe_work("wide")] == [False]
    other = catalog.begin_stripe_work("wide", "rebalance", "wide", os.getpid(), 1, 2**52)
    catalog.tell_stripe_work(other, 0, 0, None, done_bytes=2**51, bytes_per_s=2.0**41)
    assert [each.left_s for each in catalog.stripe_work("wide")] == [2.0**10]
    assert [each.kind for each in catalog.stripe_work("wide")] == ["rebalance"]
    catalog.end_stripe_work(other)
    assert catalog.stripe_work("wide") == catalog.stripe_work("disk") == []
