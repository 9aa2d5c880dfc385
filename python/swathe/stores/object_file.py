"""Objects of stores as files of fsspec: read at one version, or written whole."""

from __future__ import annotations

import io
import tempfile
from typing import TYPE_CHECKING, Any

from swathe.core.errors import NoSuchStoreError, SettingsError
from swathe.stores.copies import copy_object
from swathe.stores.object_ranges import read_ranges
from swathe.stores.objects import store_of
from swathe.stores.registry import native_stores

try:
    from fsspec.spec import AbstractBufferedFile
except ModuleNotFoundError as error:
    raise SettingsError(f"{error}; try: pip install 'swathe[fs]'") from error

if TYPE_CHECKING:
    from fsspec.spec import AbstractFileSystem

    from swathe._swathe import Source


class SwatheFile(AbstractBufferedFile):  # type: ignore[misc]  # fsspec has no types
    """An object that is read at one version, or written whole when it is closed."""

    def __init__(
        self, fs: AbstractFileSystem, path: str, mode: str = "rb", *args: Any, **kwargs: Any
    ):
        """Open an object.

        Raises:
            FileNotFoundError, PermissionError, OSError: If it cannot be opened.
            FileExistsError: If it exists, and the mode is `xb`.
        """
        self._source: Source | None = None
        self._content: Any = None
        if mode == "rb":
            self._source = open_object(path)
            kwargs["size"] = self._source.size
        elif mode == "xb" and fs.exists(path):
            raise FileExistsError(path)
        elif mode == "ab":
            raise NotImplementedError(f"{path}: expected mode rb, wb or xb, found ab")
        super().__init__(fs, path, mode, *args, **kwargs)

    def __exit__(self, kind: Any, *_: Any) -> None:
        """Close it; after an error nothing is written."""
        if kind is not None and self.writable():
            self.autocommit = False
        self.close()
        if kind is not None:
            self.discard()

    @property
    def details(self) -> dict[str, Any]:
        """Return what `info` returns, of the version that is open."""
        source = self._source
        if source is None:
            return dict(self.fs.info(self.path))
        return {"name": self.path, "size": source.size, "type": "file", "version": source.version}

    def _fetch_range(self, start: int, end: int) -> bytes:
        assert self._source is not None
        return read_ranges(self._source, [(start, min(end, self._source.size))])[0]

    def _initiate_upload(self) -> None:
        # A store takes an object whole, and its size first.
        self._content = tempfile.NamedTemporaryFile(prefix="swathe-write-")  # noqa: SIM115

    def _upload_chunk(self, final: bool = False) -> bool:
        self._content.write(self.buffer.getbuffer())
        if final:
            self._content.flush()
            if self.autocommit:
                self.commit()
        return True

    def commit(self) -> None:
        """Write the object, unless it was discarded."""
        if self._content is None:
            return
        try:
            copy_object(self._content.name, object_name(self.path), overwrite=self.mode != "xb")
        finally:
            self.discard()

    def discard(self) -> None:
        """Forget what was written."""
        if self._content is not None:
            self._content.close()
            self._content = None


class SwatheTextFile(io.TextIOWrapper):
    """A text that is written whole when it is closed."""

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """Close it; after an error nothing is written."""
        file = self.buffer
        if kind is None or not isinstance(file, SwatheFile):
            self.close()
            return
        file.autocommit = False
        self.close()
        file.discard()


def object_name(path: str) -> str:
    """Return `NAME:path` of a path of the filesystem.

    Raises:
        FileNotFoundError: If there is no such store.
    """
    store, _, key = path.partition("/")
    name = f"{store}:{key}"
    try:
        store_of(name)
    except NoSuchStoreError as error:
        raise FileNotFoundError(f"{path}: {error.args[0]}") from error
    return name


def open_object(path: str) -> Source:
    """Open an object by its path in the filesystem.

    Raises:
        FileNotFoundError, PermissionError, OSError: If it cannot be opened.
    """
    return native_stores().open(object_name(path))


def range_of(source: Source, start: int | None, end: int | None) -> tuple[int, int]:
    """Return a range of an object as Python's slices have it."""
    first, last, _ = slice(start, end).indices(source.size)
    return first, max(first, last)
