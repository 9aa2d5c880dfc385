"""Backups of a catalogue: made while it is written, complete or refused, returned or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config

from swathe.catalog import Catalog, migrations
from swathe.catalog.backup import archive, backup, read_backup, restore, sqlite_copy
from swathe.catalog.revisions import REVISIONS
from swathe.core.errors import (
    CatalogError,
    CatalogSetupError,
    FormatError,
    NotFoundError,
    OutputError,
    OutputExistsError,
)
from tests.support.fits_frames import Runner
from tests.support.portals import wait_until
from tests.support.postgres_server import PASSWORD


@pytest.fixture
def filled(url: str) -> Iterator[str]:
    """The URL of a catalogue with a store, of each kind of database."""
    with Catalog.open(url) as catalog:
        catalog.add_store("first", "/data/first")
    yield url


def names(url: str) -> list[str]:
    with Catalog.open(url) as catalog:
        return [store.name for store in catalog.stores()]


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def test_a_backup_comes_back(filled: str, tmp_path: Path) -> None:
    file = tmp_path / "catalog.backup"
    record = backup(file, filled)
    assert record == read_backup(file)
    assert (record.kind, record.revision) == (
        filled.partition(":")[0].partition("+")[0],
        REVISIONS[-1],
    )
    assert file.stat().st_mode & 0o777 == 0o600
    with Catalog.open(filled) as catalog:
        catalog.add_store("second", "/data/second")
    with pytest.raises(CatalogError, match="expected an empty catalogue, found one with something"):
        restore(file, filled)
    assert names(filled) == ["first", "second"]
    assert restore(file, filled, overwrite=True)[0] == record
    assert names(filled) == ["first"]
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_an_empty_catalogue_is_replaced_without_asking(filled: str, tmp_path: Path) -> None:
    file = tmp_path / "catalog.backup"
    backup(file, filled)
    with Catalog.open(filled) as catalog:
        catalog.remove_store("first")
    restore(file, filled)
    assert names(filled) == ["first"]


def test_an_existing_backup_is_kept(filled: str, tmp_path: Path) -> None:
    file = tmp_path / "catalog.backup"
    backup(file, filled)
    with pytest.raises(OutputExistsError):
        backup(file, filled)
    assert backup(file, filled, overwrite=True).bytes > 0


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    with Catalog.open(url) as catalog:
        catalog.add_store("first", "/data/first")
    return url


def test_a_backup_is_of_one_moment_while_others_write(sqlite_url: str, tmp_path: Path) -> None:
    """Rows of one transaction are in it together, however many are written meanwhile."""
    stop = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(file_of(sqlite_url), timeout=60)) as database:
            number = 0
            while not stop.is_set():
                with database:
                    for half in "ab":
                        database.execute(
                            "INSERT INTO stores (name, url, tier, options, added_at)"
                            " VALUES (?, ?, 'local', '{}', '2026-01-01 00:00:00')",
                            (f"{half}-{number}", f"file:///{half}/{number}"),
                        )
                number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(names(sqlite_url)) > 20)
        for number in range(5):
            backup(tmp_path / f"{number}.backup", sqlite_url)
    finally:
        stop.set()
        writer.join()
    counts = []
    for number in range(5):
        other = f"sqlite:///{tmp_path}/{number}.sqlite"
        restore(tmp_path / f"{number}.backup", other)
        stored = names(other)
        halves = [{name[2:] for name in stored if name[:2] == f"{half}-"} for half in "ab"]
        assert halves[0] == halves[1]
        counts.append(len(stored))
    assert counts == sorted(counts) and counts[0] > 20
    assert "first" in names(sqlite_url)


def test_the_earlier_catalogue_stays_beside(sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "catalog.backup"
    backup(file, sqlite_url)
    with Catalog.open(sqlite_url) as catalog:
        catalog.add_store("second", "/data/second")
    os.chmod(file_of(sqlite_url), 0o640)
    old = restore(file, sqlite_url, overwrite=True)[1]
    assert old is not None and old.parent == tmp_path
    assert names(f"sqlite:///{old}") == ["first", "second"]
    assert file_of(sqlite_url).stat().st_mode & 0o777 == 0o640
    with closing(sqlite3.connect(file_of(sqlite_url))) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_disk_that_fails_leaves_the_catalogue_as_it_was(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "catalog.backup"
    backup(file, sqlite_url)
    before = sorted(tmp_path.iterdir())

    def fail(*_paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("swathe.catalog.backup.sqlite_copy.os.link", fail)
    with pytest.raises(OutputError, match="No space left on device"):
        restore(file, sqlite_url, overwrite=True)
    assert sorted(tmp_path.iterdir()) == before
    with closing(sqlite3.connect(file_of(sqlite_url))) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert names(sqlite_url) == ["first"]


def test_a_log_without_its_database_is_not_that_of_the_new_one(
    sqlite_url: str, tmp_path: Path
) -> None:
    file, path = tmp_path / "catalog.backup", file_of(sqlite_url)
    backup(file, sqlite_url)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE stores SET name = 'renamed'")
        database.commit()
        log = path.with_name(f"{path.name}-wal").read_bytes()
        assert log
    path.unlink()
    path.with_name(f"{path.name}-wal").write_bytes(log)
    restore(file, sqlite_url)
    assert names(sqlite_url) == ["first"]


def test_a_catalogue_in_use_is_not_replaced(sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "catalog.backup"
    backup(file, sqlite_url)
    before = sorted(tmp_path.iterdir())
    with Catalog.open(sqlite_url) as catalog:
        assert catalog.stores()
        with pytest.raises(CatalogError, match=r"found one in use .*; stop the portal"):
            restore(file, sqlite_url, overwrite=True)
        assert [store.name for store in catalog.stores()] == ["first"]
        catalog.add_store("second", "/data/second")
    assert names(sqlite_url) == ["first", "second"]
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_database_in_use_is_not_replaced(filled: str, tmp_path: Path) -> None:
    file = tmp_path / "catalog.backup"
    backup(file, filled)
    with Catalog.open(filled) as catalog:
        catalog.add_store("second", "/data/second")
        with pytest.raises(CatalogError, match="found 1 connections") as info:
            restore(file, filled, overwrite=True)
    assert PASSWORD not in str(info.value)
    assert names(filled) == ["first", "second"]


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_dump_that_fails_changes_nothing(
    filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "catalog.backup"
    copy = tmp_path / "copy"
    copy.write_bytes(b"PGDMP, but no more of it")
    archive.write_backup(file, copy, "postgresql", REVISIONS[-1], overwrite=False)
    with pytest.raises(CatalogError, match="pg_restore failed") as info:
        restore(file, filled, overwrite=True)
    assert PASSWORD not in str(info.value)
    assert names(filled) == ["first"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CatalogSetupError, match="pg_dump: expected in \\$PATH, found none"):
        backup(tmp_path / "other", filled)


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_the_password_is_no_argument(
    filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    run = subprocess.run

    def note(command: list[str], **options: Any) -> Any:
        calls.append(command)
        return run(command, **options)

    monkeypatch.setattr("swathe.catalog.backup.postgres_copy.subprocess.run", note)
    backup(tmp_path / "b", filled)
    restore(tmp_path / "b", filled, overwrite=True)
    assert [Path(command[0]).name for command in calls] == ["pg_dump", "pg_restore", "psql"]
    assert PASSWORD not in str(calls)


@pytest.mark.parametrize("cut", [0, 1, 100, 0.5, -100, -1])
def test_a_backup_that_was_cut_is_refused(sqlite_url: str, tmp_path: Path, cut: float) -> None:
    file = tmp_path / "catalog.backup"
    backup(file, sqlite_url)
    content = file.read_bytes()
    file.write_bytes(content[: int(cut * len(content)) if cut == 0.5 else int(cut)])
    for act in (lambda: read_backup(file), lambda: restore(file, sqlite_url, overwrite=True)):
        with pytest.raises(FormatError, match="expected a complete backup of a catalogue, found"):
            act()
    assert names(sqlite_url) == ["first"]


def test_a_backup_with_another_byte_is_refused(tmp_path: Path) -> None:
    file, copy = tmp_path / "catalog.backup", tmp_path / "copy"
    copy.write_bytes(os.urandom(5000))
    # Stored without compression, as bits of compressed zeros may change without effect.
    archive.write_backup(file, copy, "postgresql", REVISIONS[-1], overwrite=False)
    content = bytearray(file.read_bytes())
    # Behind the first header, and before that of the record: those have bytes that nobody reads.
    for place in range(100, 5000, 350):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(FormatError, match="damaged or cut off"):
            read_backup(file)


def put(file: Path, record: object, content: bytes = b"") -> None:
    """Write a zip like a backup."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("catalog", content)
        zipped.writestr("backup.json", record if isinstance(record, str) else json.dumps(record))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"bytes": 10}, "more than the 10 bytes"),
        ({"bytes": 10**12}, "another checksum"),
        ({"bytes": "many"}, "a record with bytes"),
        ({"kind": "oracle"}, "one of a database 'oracle'"),
        ({"sha256": None}, "a record with sha256"),
        ({"more": 1}, "a record that cannot be read"),
    ],
)
def test_records_are_checked(
    sqlite_url: str, tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    content = bytes(100_000)
    sha256 = hashlib.sha256(content).hexdigest()
    values = {"kind": "sqlite", "revision": "v0022", "swathe": "1", "made_at": "", "sha256": sha256}
    put(tmp_path / "b", {**values, "bytes": len(content), **changes}, content)
    with pytest.raises(FormatError, match=text):
        read_backup(tmp_path / "b")


def test_other_files_are_no_backups(sqlite_url: str, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_backup(tmp_path / "none")
    with pytest.raises(FormatError, match="found a folder"):
        read_backup(tmp_path)
    put(tmp_path / "deep", "[" * 10**5)
    with pytest.raises(FormatError, match="a record that cannot be read"):
        read_backup(tmp_path / "deep")
    with zipfile.ZipFile(tmp_path / "other", "w") as zipped:
        zipped.writestr("../catalog", b"")
    with pytest.raises(FormatError, match="another zip"):
        read_backup(tmp_path / "other")
    # A database that is whole, but no catalogue.
    with closing(sqlite3.connect(tmp_path / "any.sqlite")) as database:
        database.execute("CREATE TABLE swathe_schema (version_num TEXT)")
    archive.write_backup(
        tmp_path / "b", tmp_path / "any.sqlite", "sqlite", "v0022", overwrite=False
    )
    with pytest.raises(FormatError, match="no version of its tables"):
        restore(tmp_path / "b", sqlite_url, overwrite=True)
    assert names(sqlite_url) == ["first"]


def test_backups_of_others_are_refused(sqlite_url: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    sqlite_copy.copy_out(file_of(sqlite_url), copy)
    for number, (kind, revision, text) in enumerate(
        [
            ("postgresql", "v0022", "expected a backup of sqlite, found one of postgresql"),
            ("sqlite", "v9999", "install that Swathe"),
        ]
    ):
        file = tmp_path / f"b{number}"
        archive.write_backup(file, copy, kind, revision, overwrite=False)  # type: ignore[arg-type]
        with pytest.raises(CatalogError, match=text):
            restore(file, sqlite_url, overwrite=True)


def test_older_tables_are_migrated(tmp_path: Path) -> None:
    """A catalogue as a version before this one made it."""
    old = tmp_path / "old.sqlite"
    engine = sqlalchemy.create_engine(f"sqlite:///{old}")
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, REVISIONS[-2])
    engine.dispose()
    record = backup(tmp_path / "b", f"sqlite:///{old}")
    assert record.revision == REVISIONS[-2]
    url = f"sqlite:///{tmp_path}/new.sqlite"
    restore(tmp_path / "b", url)
    with Catalog.open(url) as catalog:
        assert catalog.is_up_to_date() and catalog.stores() == []


def test_a_damaged_catalogue_is_not_backed_up(sqlite_url: str, tmp_path: Path) -> None:
    path = file_of(sqlite_url)
    content = bytearray(path.read_bytes())
    content[8192:60_000] = b"\x55" * (60_000 - 8192)
    path.write_bytes(content)
    with pytest.raises(CatalogError):
        backup(tmp_path / "b", sqlite_url)
    assert not (tmp_path / "b").exists()
    with pytest.raises(CatalogError, match="found no such file"):
        backup(tmp_path / "b", f"sqlite:///{tmp_path}/none.sqlite")


KILLED = """
import os, signal, sys
from swathe.catalog import backup as package
from swathe.catalog.backup import {module}
act = {module}.{name}
def die(*arguments, **options):
    {before}
    os.kill(os.getpid(), signal.SIGKILL)
{module}.{name} = die
from swathe.catalog.backup.backup import backup, restore
{call}
"""


@pytest.mark.parametrize(
    ("module", "name", "before", "call"),
    [
        ("archive", "json.dumps", "pass", "backup(sys.argv[2] + '.new', sys.argv[1])"),
        ("sqlite_copy", "os.replace", "pass", "restore(sys.argv[2], sys.argv[1], overwrite=True)"),
        (
            "sqlite_copy",
            "os.replace",
            "act(*arguments)",
            "restore(sys.argv[2], sys.argv[1], overwrite=True)",
        ),
    ],
)
def test_a_kill_leaves_a_whole_catalogue(
    sqlite_url: str, tmp_path: Path, module: str, name: str, before: str, call: str
) -> None:
    file = tmp_path / "catalog.backup"
    backup(file, sqlite_url)
    with Catalog.open(sqlite_url) as catalog:
        catalog.add_store("second", "/data/second")
    script = KILLED.format(module=module, name=name, before=before, call=call)
    ended = subprocess.run(
        [sys.executable, "-c", script, sqlite_url, str(file)], capture_output=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert not (tmp_path / "catalog.backup.new").exists()
    assert read_backup(file)
    assert names(sqlite_url) == (["first"] if "act(" in before else ["first", "second"])
    # And it works the next time, and leaves nothing of this one.
    backup(tmp_path / "catalog.backup.new", sqlite_url)
    restore(file, sqlite_url, overwrite=True)
    assert names(sqlite_url) == ["first"]
    leftovers = {path.suffix for path in tmp_path.iterdir() if path.name.startswith(".")}
    assert leftovers <= {".part"}  # as of every file that was not written to its end


def test_the_commands(run: Runner, tmp_path: Path) -> None:
    file = tmp_path / "catalog.backup"
    run.ran("store", "add", "survey", str(tmp_path))
    made = run.ran("catalog", "backup", file, "--json").json
    assert made["file"] == str(file) and made["kind"] == "sqlite"
    assert run.ran("catalog", "check", file, "--json").json == made
    assert run.ran("catalog", "restore", file).code == 7
    told = run.ran("catalog", "restore", file, "--overwrite")
    assert told.code == 0
    assert ".old; remove it when you need it no more" in told.out
    file.write_bytes(file.read_bytes()[:-50])
    ran = run.ran("catalog", "check", file)
    assert (ran.code, ran.out) == (4, "")
    assert "expected a complete backup" in ran.err


def test_a_name_of_a_zip_that_is_no_text_is_damage(sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "catalog.backup"
    backup(file, sqlite_url)
    content = bytearray(file.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 8 : entry + 10] = (0x800).to_bytes(2, "little")  # names are UTF-8
    content[entry + 46] = 0xFF
    file.write_bytes(content)
    with pytest.raises(FormatError, match="damaged or cut off"):
        read_backup(file)


def test_a_link_to_a_catalogue_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    target, link = tmp_path / "disk" / "catalog.sqlite", tmp_path / "catalog.sqlite"
    link.symlink_to(target)
    url, file = f"sqlite:///{link}", tmp_path / "catalog.backup"
    with Catalog.open(url) as catalog:
        catalog.add_store("first", "/data/first")
    backup(file, url)
    with Catalog.open(url) as catalog:
        catalog.add_store("second", "/data/second")
    old = restore(file, url, overwrite=True)[1]
    assert link.is_symlink() and link.resolve() == target
    assert names(url) == names(f"sqlite:///{target}") == ["first"]
    assert old is not None and old.parent == target.parent
