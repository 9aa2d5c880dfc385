"""Objects of a database that are being written: without a name until they are whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from sqlalchemy import Connection, and_, insert, select, update

from swathe import _swathe
from swathe.core.errors import OutputExistsError, SourceError
from swathe.core.format import KIB
from swathe.stores.database_tables import chunks, objects, remove_rows, take_turns

CHUNK_BYTES = 256 * KIB
FORGET_S = 86_400.0
"""Age at which an object that nobody has finished is removed."""


class DatabaseWriter:
    """An object of a database that is being written."""

    def __init__(
        self, root: str, path: str, writing: Callable[[], AbstractContextManager[Connection]]
    ) -> None:
        """Begin an object that has no name yet, and remove what others left behind.

        Args:
            root: URL of the store, for messages.
            path: name that the object will have.
            writing: function that begins a transaction.
        """
        self._root, self._path, self._writing = root, path, writing
        self._rest = bytearray()
        self._size = self._count = self._crc32c = 0
        now = time.time()
        row = {"size": 0, "crc32c": 0, "chunk_bytes": CHUNK_BYTES, "changed_at": now}
        with writing() as connection:
            is_old = and_(objects.c.name.is_(None), objects.c.changed_at < now - FORGET_S)
            remove_rows(connection, is_old)
            result = connection.execute(insert(objects).values(row).returning(objects.c.id))
            self._id: int = result.scalar_one()

    def write(self, part: bytes) -> None:
        """Write the next bytes."""
        self._size += len(part)
        self._crc32c = _swathe.crc32c(part, self._crc32c)
        self._rest += part
        whole = len(self._rest) // CHUNK_BYTES * CHUNK_BYTES
        if whole:
            with self._writing() as connection:
                self._add_chunks(connection, whole)

    def finish(self, replace: bool) -> None:
        """Give the object its name, in one transaction."""
        columns = {"name": self._path, "size": self._size, "crc32c": self._crc32c}
        with self._writing() as connection:
            take_turns(connection, self._path)
            self._add_chunks(connection, len(self._rest))
            other = connection.scalar(select(objects.c.id).where(objects.c.name == self._path))
            if other is not None and not replace:
                raise OutputExistsError(f"{self._root}: {self._path}: exists already")
            remove_rows(connection, objects.c.name == self._path)
            self._change(connection, columns)

    def abort(self) -> None:
        """Remove what was written."""
        with self._writing() as connection:
            remove_rows(connection, and_(objects.c.id == self._id, objects.c.name.is_(None)))

    def _add_chunks(self, connection: Connection, count: int) -> None:
        """Move the first bytes of those that wait into rows."""
        if count == 0:
            return
        self._change(connection, {})
        view = bytes(memoryview(self._rest)[:count])
        rows = [
            {
                "object_id": self._id,
                "number": self._count + at // CHUNK_BYTES,
                "content": view[at : at + CHUNK_BYTES],
            }
            for at in range(0, count, CHUNK_BYTES)
        ]
        connection.execute(insert(chunks), rows)
        self._count += len(rows)
        del self._rest[:count]

    def _change(self, connection: Connection, values: Mapping[str, object]) -> None:
        query = update(objects).where(objects.c.id == self._id)
        result = connection.execute(query.values(changed_at=time.time(), **values))
        if result.rowcount != 1:
            raise SourceError(
                f"{self._root}: {self._path}: what was written of it was removed, as it was "
                f"older than {FORGET_S / 3600:.0f} hours"
            )
