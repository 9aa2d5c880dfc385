"""The file of a backup: a zip of the database and of a record with its version and checksum.

A zip has its directory at the end: one that was cut off has none.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO, Literal

from swathe import _swathe
from swathe.catalog.revisions import VERSION_TABLE
from swathe.core.errors import FormatError, NotFoundError
from swathe.core.outputs import write_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Kind = Literal["sqlite", "postgresql"]
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
    UnicodeDecodeError,
)
"""What the library raises for damaged zips, besides errors of the system."""
CONTENT, RECORD = "catalog", "backup.json"
"""Names in the zip."""
NO_CONTENT = (VERSION_TABLE, "change_counters")
"""Tables that also an empty catalogue has rows in."""
PART_BYTES = 1 << 20
MOST_RECORD_BYTES = 1 << 16


@dataclass(frozen=True)
class BackupRecord:
    """What a backup says of itself.

    Attributes:
        kind: kind of the database: `sqlite` (its file), or `postgresql` (a dump of pg_dump).
        revision: version of the tables.
        swathe: version of Swathe that made it.
        made_at: when, as ISO 8601.
        bytes: size of the database in it.
        sha256: checksum of the database in it.
    """

    kind: Kind
    revision: str
    swathe: str
    made_at: str
    bytes: int
    sha256: str


def write_backup(
    path: Path, content: Path, kind: Kind, revision: str, *, overwrite: bool
) -> BackupRecord:
    """Write the backup of a copy of a database; it gets its name when it is complete and on disk.

    Only its owner may read it: a catalogue has hashes of tokens, and secrets of webhooks.

    Raises:
        OutputError: If it cannot be written, or exists and `overwrite` is false.
    """
    records = []

    def save(file: BinaryIO) -> None:
        os.fchmod(file.fileno(), 0o600)
        digest, size = hashlib.sha256(), 0
        # A dump of pg_dump is compressed already.
        method = zipfile.ZIP_DEFLATED if kind == "sqlite" else zipfile.ZIP_STORED
        with zipfile.ZipFile(file, "w", method, compresslevel=1) as archive:
            with content.open("rb") as source, archive.open(CONTENT, "w", force_zip64=True) as to:
                while part := source.read(PART_BYTES):
                    digest.update(part)
                    size += len(part)
                    to.write(part)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            version = _swathe.__version__
            record = BackupRecord(kind, revision, version, now, size, digest.hexdigest())
            archive.writestr(RECORD, json.dumps(asdict(record), indent=1))
            records.append(record)

    write_file(path, save, overwrite=overwrite, sources=[content], durable=True)
    return records[0]


def read_backup(path: Path) -> BackupRecord:
    """Return the record of a backup, after a check of all its bytes.

    Raises:
        NotFoundError: If there is no such file.
        FormatError: If it is not a complete backup.
    """
    with _open(path) as (archive, record):
        for _ in _parts(path, archive, record):
            pass
        return record


def unpack(path: Path, to: BinaryIO) -> BackupRecord:
    """Write the database of a backup to a file, and return the record.

    Raises:
        NotFoundError, FormatError: As `read_backup`; the file then has only a part.
        OSError: If the file cannot be written.
    """
    with _open(path) as (archive, record):
        for part in _parts(path, archive, record):
            to.write(part)
        return record


@contextmanager
def _open(path: Path) -> Iterator[tuple[zipfile.ZipFile, BackupRecord]]:
    """Open a backup; errors of the zip in the block are those of a backup that is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive, _record(path, archive)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: there is no such backup") from error
    except IsADirectoryError as error:
        raise _fault(path, "a folder") from error
    except DAMAGE as error:
        raise _fault(path, f"a file that is damaged or cut off ({error})") from error
    except OSError as error:
        # A damaged zip may have offsets that no file has.
        if error.errno != errno.EINVAL:
            raise
        raise _fault(path, f"a file that is damaged or cut off ({error})") from error


def _record(path: Path, archive: zipfile.ZipFile) -> BackupRecord:
    if sorted(archive.namelist()) != sorted((CONTENT, RECORD)):
        raise _fault(path, "another zip")
    with archive.open(RECORD) as file:
        content = file.read(MOST_RECORD_BYTES + 1)
    try:
        values = json.loads(content[:MOST_RECORD_BYTES])
        record = BackupRecord(**values)
    except (ValueError, TypeError, RecursionError) as error:
        raise _fault(path, f"a record that cannot be read ({error})") from error
    kinds = {"bytes": int}
    for field in fields(BackupRecord):
        kind = kinds.get(field.name, str)
        if not isinstance(value := getattr(record, field.name), kind):
            raise _fault(path, f"a record with {field.name} = {value!r:.50}")
    if record.kind not in ("sqlite", "postgresql"):
        raise _fault(path, f"one of a database {record.kind!r:.50}")
    return record


def _parts(path: Path, archive: zipfile.ZipFile, record: BackupRecord) -> Iterator[bytes]:
    """Yield the bytes of the database; at their end check size and checksum."""
    digest, size = hashlib.sha256(), 0
    with archive.open(CONTENT) as file:
        while part := file.read(PART_BYTES):
            digest.update(part)
            size += len(part)
            if size > record.bytes:
                raise _fault(path, f"more than the {record.bytes:,} bytes of its record")
            yield part
    if (size, digest.hexdigest()) != (record.bytes, record.sha256):
        raise _fault(path, f"{size:,} bytes with another checksum than its record has")


def _fault(path: Path, text: str) -> FormatError:
    return FormatError(
        f"{path}: expected a complete backup of a catalogue, found {text}; take another backup"
    )
