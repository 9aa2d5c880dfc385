"""Write a superfile: entries are appended, and the object has its name when all are in it."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import (
    LimitError,
    NotFoundError,
    OptionError,
    OutputError,
    OutputExistsError,
    SwatheError,
)
from swathe.core.outputs import EXISTS, check_output, make_folder, publish, sync_folder
from swathe.runs.superfiles.array_content import array_bytes
from swathe.runs.superfiles.zip_index import (
    MEDIA_TYPE,
    MOST_ENTRIES,
    check_entry_name,
    media_type_of,
)
from swathe.stores.copies import copy_object
from swathe.stores.objects import store_of
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

ARRAY_TYPE = "application/x-npy"
MODE = 0o644 << 16
"""Mode of unpacked files."""


class SuperfileWriter:
    """A superfile that is being written; it is not safe for several threads at once.

    What is added waits on the local disk: beside its name if that is a file, else in the temporary
    folder. It is sent to the store, and verified there, when the superfile is closed.

    Attributes:
        name: `STORE:path`, or a path.
    """

    def __init__(self, name: str, *, overwrite: bool = False) -> None:
        """Begin a superfile.

        Args:
            name: `STORE:path`, or a path.
            overwrite: whether an object of this name is replaced.

        Raises:
            NoSuchStoreError: If there is no such store.
            OutputExistsError: If there is such an object, and `overwrite` is false.
            OutputError: If it cannot be written.
        """
        self.name, self._overwrite = name, overwrite
        self._path = _check_target(name, overwrite=overwrite)
        self._names: set[str] = set()
        self._folders: set[str] = set()
        with _writing(name), ExitStack() as stack:
            if self._path is None:
                folder = tempfile.TemporaryDirectory(prefix="swathe-superfile-")
                self._spool = Path(stack.enter_context(folder)) / "object"
            else:
                part = f".{self._path.name[:50]}-{token_hex(4)}.part"
                self._spool = make_folder(self._path.parent) / part
                stack.callback(self._spool.unlink, missing_ok=True)
            self._file = stack.enter_context(self._spool.open("xb+"))
            self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED)
            self._open: ExitStack | None = stack.pop_all()

    def add(
        self,
        name: str,
        content: bytes | bytearray | memoryview | NDArray[Any] | Iterator[bytes],
        *,
        media_type: str | None = None,
    ) -> None:
        """Add an entry.

        Args:
            name: its name, with `/` between folders.
            content: its bytes, also in pieces; an array is stored as `numpy.save` writes it.
            media_type: kind of the content, as `image/png`; by default that of its name.

        Raises:
            OptionError: If a name is not allowed, was added before, or is that of a folder and of
                an entry; if the content is none; or if the superfile is closed.
            LimitError: If there are too many entries.
            OutputError: If the local disk is full; then the superfile is discarded.
        """
        if self._open is None:
            raise OptionError(f"{self.name}: the superfile was closed")
        if check_entry_name(name) in self._names:
            raise OptionError(f"{self.name}: expected each name once, found {name!r:.80} twice")
        parents = list(_folders_of(name))
        if name in self._folders or not self._names.isdisjoint(parents):
            raise OptionError(
                f"{self.name}: expected an entry or a folder of a name, found both by {name!r:.80}"
            )
        if len(self._names) >= MOST_ENTRIES:
            raise LimitError(f"{self.name}: expected at most {MOST_ENTRIES} entries")
        if isinstance(content, np.ndarray):
            content, usual_type = array_bytes(content), ARRAY_TYPE
        else:
            usual_type = media_type_of(name)
        media_type = usual_type if media_type is None else media_type
        if not MEDIA_TYPE.fullmatch(media_type):
            raise OptionError(
                f"{self.name}, entry {name}: expected a media type as image/png, found "
                f"{media_type!r:.80}"
            )
        view: memoryview | Iterator[bytes]
        try:
            view = content if isinstance(content, Iterator) else memoryview(content).cast("B")
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"{self.name}, entry {name}: expected bytes that follow each other, or an array of "
                f"NumPy, found {type(content).__name__}: {error}"
            ) from error
        info = zipfile.ZipInfo(name)
        info.external_attr, info.comment = MODE, media_type.encode()
        self._write(info, view)
        self._names.add(name)
        self._folders.update(parents)

    def _write(self, info: zipfile.ZipInfo, content: memoryview | Iterator[bytes]) -> None:
        """Write an entry; a part of one is none, so after an error the superfile is discarded."""
        try:
            with _writing(self.name):
                if isinstance(content, memoryview):
                    self._zip.writestr(info, content)
                    return
                with self._zip.open(info, "w", force_zip64=True) as entry:
                    for piece in content:
                        entry.write(piece)
        except BaseException:
            self.discard()
            raise

    def close(self) -> None:
        """Write the directory, and send the object to its store, where it is verified.

        Raises:
            OutputExistsError: If there is such an object now, and `overwrite` is false.
            OutputError, AccessError, SourceError: If it cannot be written.
        """
        if self._open is None:
            return
        with self._open, _writing(self.name):
            self._open = None
            self._zip.close()
            self._file.flush()
            if self._path is None:
                copy_object(os.fspath(self._spool), self.name, overwrite=self._overwrite)
            else:
                os.fsync(self._file.fileno())
                publish(self._spool, self._path, overwrite=self._overwrite)
                sync_folder(self._path.parent)

    def discard(self) -> None:
        """Forget what was added; no object is written."""
        if self._open is None:
            return
        with self._open:
            self._open = None
            with suppress(OSError):  # the disk is full; the file is removed
                self._zip.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it; after an error nothing is written."""
        if kind is None:
            self.close()
        else:
            self.discard()


def _folders_of(name: str) -> Iterator[str]:
    """Yield the folders that an entry lies in."""
    parts = name.split("/")
    yield from ("/".join(parts[:count]) for count in range(1, len(parts)))


def _check_target(name: str, *, overwrite: bool) -> Path | None:
    """Return the path of an object to write that is a file; `None` elsewhere.

    Raises:
        NoSuchStoreError: If there is no such store.
        OutputError: If it exists, or cannot be written.
    """
    store_of(name)
    engine = native_stores()
    if not engine.is_writable(name) or name.endswith(("/", ":")):
        raise OutputError(f"{name}: cannot be written: expected a path, or NAME:path of a store")
    path = engine.local_path(name)
    if path is not None:
        make_folder(path.parent)
        check_output(path, overwrite=overwrite)
    elif not overwrite:
        with suppress(NotFoundError):
            engine.open(name)
            raise OutputExistsError(f"{name}: {EXISTS}")
    return path


@contextmanager
def _writing(name: str) -> Iterator[None]:
    """Raise errors of the local disk as those of an output.

    Raises:
        OutputError: If writing fails.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, SwatheError):
            raise
        raise OutputError(f"{name}: cannot write: {error.strerror or error}") from error
