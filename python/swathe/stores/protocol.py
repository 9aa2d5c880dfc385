"""What a store of your own is: its objects and its methods.

A package adds a kind of store by an entry point of the group `swathe.stores`. Its name is the
scheme of the URLs, its value a class or a function that takes the URL of a store (without a slash
at its end) and its options, and returns an `ObjectStore`::

    [project.entry-points."swathe.stores"]
    mine = "my_package:MyStore"
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from swathe import _swathe


@dataclass(frozen=True)
class StoredObject:
    """An object of a store.

    Attributes:
        path: its name in the store: parts with `/` between them, none of them empty, `.` or `..`.
        size: bytes.
        version: text that another content of the object has not. Empty if the store cannot tell;
            then a change while the object is read is not noticed, and nothing of it is cached.
        modified: time of the last change, ISO 8601; None if the store does not tell.
        crc32c: CRC-32C of all bytes; None if the store does not tell.
    """

    path: str
    size: int
    version: str = ""
    modified: str | None = None
    crc32c: int | None = None


@runtime_checkable
class ObjectWriter(Protocol):
    """An object that is being written. Nobody sees it before it is finished."""

    def write(self, part: bytes) -> None:
        """Write the next bytes.

        Raises:
            OSError: If they cannot be written; `ConnectionError` or `TimeoutError` if writing all
                of the object again may help.
        """

    def finish(self, replace: bool) -> None:
        """Give the object its name, in one step: readers have the old object or the new one.

        Args:
            replace: whether an object of this name is replaced.

        Raises:
            OutputExistsError: If there is an object of this name, and `replace` is false.
            OSError: As for `write`.
        """

    def abort(self) -> None:
        """Remove what was written; called in place of `finish`, or after it failed."""


class FrontWriter(Protocol):
    """An object of a `FrontStore` that is being written under a name of another store.

    Attributes:
        stores: the stores that know the name.
        name: `NAME:path`, or the path of a file.
    """

    stores: _swathe.Stores
    name: str

    def finish(self, replace: bool) -> None:
        """Publish the object under its name when all is written, as `ObjectWriter.finish` does."""

    def abort(self) -> None:
        """Forget what was written, as `ObjectWriter.abort`."""


class FrontStore(Protocol):
    """A store whose objects lie in other stores, where they are opened, read and written.

    `list` and `remove` are those of `ObjectStore`.
    """

    def open_source(self, path: str) -> _swathe.Source:
        """Open an object where it lies.

        Raises:
            FileNotFoundError: If there is none of this name.
        """

    def begin_write(self, path: str, size: int) -> FrontWriter:
        """Begin to write an object of a known size, bytes."""

    def list(self, prefix: str) -> Iterable[StoredObject]:
        """Return the objects whose path is `prefix` or begins with `prefix/`."""

    def remove(self, path: str) -> None:
        """Remove an object."""


@runtime_checkable
class ObjectStore(Protocol):
    """A store of objects. Its methods are called by several threads at the same time.

    Other threads of Python go on while a method waits for input or output. Exceptions become
    errors of Swathe: `FileNotFoundError`, `PermissionError`, `FileExistsError` (and their
    subclasses in `swathe.errors`), `ChangedError`, and `OSError` with its number; any other is a
    `SourceError` with its class and text.
    """

    def stat(self, path: str) -> StoredObject:
        """Return an object.

        Raises:
            FileNotFoundError: If there is none of this name.
        """

    def read(self, path: str, version: str, start: int, stop: int) -> bytes:
        """Return the bytes `[start, stop)` of an object at a version.

        Raises:
            ChangedError: If the object has another version, or is gone.
        """

    def list(self, prefix: str) -> Iterable[StoredObject]:
        """Return the objects whose path is `prefix` or begins with `prefix/`; all if it is empty.

        They come in any order. An iterator is read by pages of 1,000.
        """

    def create(self, path: str) -> ObjectWriter:
        """Begin to write an object.

        Raises:
            NotImplementedError: If nothing can be written to the store.
        """

    def remove(self, path: str) -> None:
        """Remove an object.

        Raises:
            FileNotFoundError: If there is none of this name.
            NotImplementedError: If nothing can be removed from the store.
        """
