"""Databases as stores."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

import swathe
from swathe.core.errors import ChangedError, NotFoundError, SourceError, StoreSettingsError
from swathe.stores import database_writer
from swathe.stores.database_store import DatabaseStore
from tests.support.fits_frames import Runner
from tests.support.postgres_server import PASSWORD, new_database

CHUNK = database_writer.CHUNK_BYTES


def put(store: DatabaseStore, path: str, *parts: bytes, replace: bool = False) -> str:
    """Write an object, and return its version."""
    writer = store.create(path)
    for part in parts:
        writer.write(part)
    writer.finish(replace)
    return store.stat(path).version


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "objects.db"


@pytest.fixture
def store(file: Path) -> Iterator[DatabaseStore]:
    opened = DatabaseStore(f"db:sqlite://{file}", {})
    yield opened
    opened.close()


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(file)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_objects_are_rows_of_256_kib(store: DatabaseStore, file: Path) -> None:
    content = bytes(range(251)) * 3000
    put(store, "dr1/a", content[:1000], content[1000:400_000], content[400_000:])
    lengths = rows(file, "SELECT number, length(content) FROM swathe_chunks ORDER BY number")
    assert lengths == [(0, CHUNK), (1, CHUNK), (2, len(content) - 2 * CHUNK)]
    assert rows(file, "SELECT name, size FROM swathe_objects") == [("dr1/a", len(content))]
    status = store.stat("dr1/a")
    assert status.size == len(content)
    for start, stop in [(0, 1), (CHUNK - 1, CHUNK + 1), (CHUNK, 2 * CHUNK), (0, len(content))]:
        assert store.read("dr1/a", status.version, start, stop) == content[start:stop]


def test_checksums_are_as_others_compute_them(store: DatabaseStore) -> None:
    put(store, "a", b"1234", b"56789")
    assert store.stat("a").crc32c == 0xE3069283  # of RFC 3720: "123456789"


def test_reading_creates_nothing(store: DatabaseStore, file: Path) -> None:
    with pytest.raises(NotFoundError):
        store.stat("a")
    with pytest.raises(NotFoundError):
        store.remove("a")
    with pytest.raises(ChangedError):
        store.read("a", "1-0", 0, 1)
    assert list(store.list("")) == []
    assert not file.parent.exists()


def test_a_file_of_another_program_is_refused(store: DatabaseStore, file: Path) -> None:
    file.parent.mkdir()
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    with pytest.raises(SourceError, match="found a table 'theirs'"):
        store.create("a")
    with pytest.raises(SourceError, match="found a table 'theirs'"):
        store.stat("a")


def test_a_file_that_is_no_database_is_an_error(store: DatabaseStore, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"no database at all" * 100)
    with pytest.raises(SourceError, match="not a database"):
        store.stat("a")
    assert file.read_bytes() == b"no database at all" * 100


def test_a_version_that_was_replaced_is_not_read(store: DatabaseStore) -> None:
    first = put(store, "a", b"first")
    second = put(store, "a", b"first", replace=True)
    assert first != second
    with pytest.raises(ChangedError, match="a is no longer version"):
        store.read("a", first, 0, 5)
    store.remove("a")
    with pytest.raises(ChangedError):
        store.read("a", second, 0, 5)
    with pytest.raises(ChangedError):
        store.read("a", "no version of ours", 0, 5)


def test_a_chunk_that_is_missing_is_an_error(store: DatabaseStore, file: Path) -> None:
    version = put(store, "a", bytes(3 * CHUNK))
    connection = sqlite3.connect(file)
    connection.execute("DELETE FROM swathe_chunks WHERE number = 1")
    connection.commit()
    connection.close()
    for start, stop in [(CHUNK, CHUNK + 1), (0, 3 * CHUNK), (CHUNK + 5, 2 * CHUNK + 5)]:
        with pytest.raises(SourceError, match="damaged: expected chunks"):
            store.read("a", version, start, stop)
    assert store.read("a", version, 0, CHUNK) == bytes(CHUNK)


def test_what_nobody_finished_is_removed_after_a_day(
    store: DatabaseStore, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = store.create("a")
    left.write(bytes(CHUNK))
    put(store, "b", b"1")
    assert len(rows(file, "SELECT 1 FROM swathe_objects")) == 2
    monkeypatch.setattr(database_writer, "FORGET_S", -1.0)
    put(store, "c", b"1")
    names = rows(file, "SELECT name FROM swathe_objects ORDER BY name")
    assert names == [("b",), ("c",)]
    with pytest.raises(SourceError, match="was removed"):
        left.finish(False)
    assert rows(file, "SELECT count(*) FROM swathe_chunks") == [(2,)]


def test_an_aborted_object_leaves_nothing(store: DatabaseStore, file: Path) -> None:
    writer = store.create("a")
    writer.write(bytes(2 * CHUNK))
    writer.abort()
    assert rows(file, "SELECT * FROM swathe_objects") == []
    assert rows(file, "SELECT * FROM swathe_chunks") == []


def test_one_thread_writes_two_objects_at_once(store: DatabaseStore) -> None:
    one, two = store.create("one"), store.create("two")
    for _ in range(3):
        one.write(bytes(CHUNK))
        two.write(b"2" * CHUNK)
    two.finish(False)
    one.finish(False)
    assert [each.path for each in store.list("")] == ["one", "two"]
    assert store.read("two", store.stat("two").version, 10, 20) == b"2" * 10


def test_processes_create_a_database_at_the_same_time(file: Path) -> None:
    stores = [DatabaseStore(f"db:sqlite://{file}", {}) for _ in range(4)]
    threads = [
        threading.Thread(target=put, args=(store, f"{number}", b"1"))
        for number, store in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.path for each in stores[0].list("")] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("db:sqlite:///data/objects.db", "db:sqlite:///data/objects.db"),
        ("db:sqlite:////data//x/../a b.db/", "db:sqlite:///data/a%20b.db"),
        ("DB:SQLITE:///data/objects.db", "db:sqlite:///data/objects.db"),
        ("db:postgresql://Ana@DB.example:5433/site", "db:postgresql://Ana@db.example:5433/site"),
        ("db:postgres:///site", "db:postgresql:///site"),
    ],
)
def test_urls_have_one_form(run: Runner, url: str, root: str) -> None:
    store = swathe.stores.add("rows", url.replace("a b", "a%20b"))
    assert store.url == root
    assert store.tier == ("local" if "sqlite" in root else "lan")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("db:sqlite://host/x", "db:sqlite:///absolute/path"),
        ("db:sqlite:///", "db:sqlite:///absolute/path"),
        ("db:sqlite:///x?mode=ro", "db:sqlite:///absolute/path"),
        ("db:mysql://host/x", "db:sqlite:///absolute/path"),
        ("db:postgresql://host", "db:sqlite:///absolute/path"),
        ("db:postgresql://host/a/b", "db:sqlite:///absolute/path"),
        ("db:postgresql://ana:secret-word@host/x", "contains a password"),
        ("db:postgresql://ana:se/cret-word@host/x", "database"),
        ("db:postgresql://host:port/x", "host or port cannot be read"),
    ],
)
def test_urls_that_are_refused(run: Runner, url: str, why: str) -> None:
    with pytest.raises(StoreSettingsError, match=why) as caught:
        swathe.stores.add("rows", url)
    assert "cret-word" not in str(caught.value)


def test_options_are_refused() -> None:
    with pytest.raises(StoreSettingsError, match="expected none, found endpoint"):
        DatabaseStore("db:sqlite:///x/y", {"endpoint": "x"})


@pytest.mark.more
def test_a_password_is_in_no_error(
    postgres: sqlalchemy.URL, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with new_database(postgres) as made:
        url = sqlalchemy.make_url(made)
        root = f"db:postgresql://{url.username}@{url.host}:{url.port}/{url.database}"
        secrets = tmp_path / "pgpass"
        secrets.write_text(f"{url.host}:{url.port}:*:{url.username}:{PASSWORD}\n")
        secrets.chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(secrets))
        store = DatabaseStore(root, {})
        version = put(store, "a", bytes(CHUNK) + b"123")
        assert store.read("a", version, CHUNK - 1, CHUNK + 2) == b"\x0012"
        monkeypatch.setenv("PGPASSWORD", f"wrong-{PASSWORD}")
        with pytest.raises(SourceError, match="password authentication failed") as caught:
            DatabaseStore(root, {}).stat("a")
        store.close()
        assert PASSWORD not in str(caught.value)
        assert "pgpass" in str(caught.value)
    with pytest.raises((SourceError, ConnectionError)) as gone:
        DatabaseStore("db:postgresql://ana@127.0.0.1:1/x", {}).stat("a")
    assert PASSWORD not in str(gone.value)
