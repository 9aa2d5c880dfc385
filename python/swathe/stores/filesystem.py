"""Stores as a filesystem of fsspec: `swathe://STORE/path`.

fsspec finds it by its entry point, so that astropy, dask, pandas, xarray and zarr read and write
every store with Swathe's credentials, retries, measured costs and verified copies.
"""

from __future__ import annotations

import io
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

from swathe import _swathe
from swathe.core.errors import NoSuchStoreError, OutputError, SettingsError, SwatheError
from swathe.stores import named_stores
from swathe.stores.listing import UnlistedObject
from swathe.stores.objects import (
    SubFolder,
    copy_object,
    list_folder,
    list_objects,
    object_identity,
    remove_objects,
    store_of,
)
from swathe.stores.registry import known_stores

try:
    from fsspec.callbacks import DEFAULT_CALLBACK
    from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
    from fsspec.utils import isfilelike
except ModuleNotFoundError as error:
    raise SettingsError(f"{error}; try: pip install 'swathe[fs]'") from error

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from swathe._swathe import Source
    from swathe.stores.listing import ListedObject

READ_BYTES = 64 << 20
"""Most bytes that the engine returns at once."""
TEXT_OPTIONS = ("encoding", "errors", "newline")
"""Options of files opened as text."""
OBJECTS_AT_ONCE = 16
"""Objects from which `cat_ranges` reads at the same time."""


class SwatheFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The stores of the catalogue as folders, each with its objects below.

    Stores have no empty folders: making one does nothing. Errors are those of Swathe, which are
    FileNotFoundError, PermissionError, FileExistsError and OSError, too.

    Example:
        >>> fs = swathe.fs()
        >>> fs.cat_ranges(["survey/dr17/a.fits"] * 2, [0, 80_000], [2880, 84_000])
    """

    protocol: ClassVar[str] = "swathe"
    root_marker: ClassVar[str] = ""

    def ls(self, path: str, detail: bool = True, **_kwargs: Any) -> list[Any]:
        """Return what is in a folder, as fsspec has it.

        Raises:
            FileNotFoundError: If there is nothing.
        """
        path = self._strip_protocol(path)
        if not path:
            infos = [_folder_info(store.name) for store in named_stores.list()]
        else:
            infos = [_info(entry) for entry in _check_entries(list_folder(_name(path)))]
            if not infos and "/" in path:
                raise FileNotFoundError(path)
        return infos if detail else [each["name"] for each in infos]

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Return all objects below a folder, by one listing unless a depth is given."""
        path = self._strip_protocol(path)
        if maxdepth is not None or withdirs or not path:
            return super().find(path, maxdepth, withdirs, detail, **kwargs)
        try:
            entries = list(_check_entries(list_objects(_name(path))))
        except FileNotFoundError:
            entries = []
        infos = {each["name"]: each for each in map(_info, entries)}
        return dict(sorted(infos.items())) if detail else sorted(infos)

    def walk(
        self,
        path: str,
        maxdepth: int | None = None,
        topdown: bool = True,
        on_error: Any = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Yield folders with what is in them; a folder that cannot be listed is an error.

        By default fsspec would leave it out, and a copy would lack it without a word.
        """
        yield from super().walk(
            path, maxdepth, topdown, on_error or _raise_unless_missing, **kwargs
        )

    def info(self, path: str, **_kwargs: Any) -> dict[str, Any]:
        """Return name, size, type and, of an object, version.

        Raises:
            FileNotFoundError: If there is neither an object nor anything below.
        """
        path = self._strip_protocol(path)
        store, _, key = path.partition("/")
        if not key:
            if path and path not in {each.name for each in named_stores.list()}:
                raise FileNotFoundError(path)
            return _folder_info(store)
        try:
            source = _open(path)
        except SwatheError:
            if self._has_objects(path):
                return _folder_info(path)
            raise
        return {"name": path, "size": source.size, "type": "file", "version": source.version}

    def _has_objects(self, path: str) -> bool:
        try:
            return next(list_objects(f"{_name(path)}/"), None) is not None
        except SwatheError:
            return False  # the error of opening it says more

    def ukey(self, path: str) -> str:
        """Return the version of an object: it changes when the object does.

        Raises:
            IsADirectoryError: If it is a folder.
        """
        info = self.info(path)
        if info["type"] == "directory":
            raise IsADirectoryError(path)
        return str(info["version"])

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_kwargs: Any
    ) -> bytes:
        """Return the bytes of an object, or some of them; negative ones count from its end."""
        source = _open(self._strip_protocol(path))
        return _read(source, [_range(source, start, end)])[0]

    def cat_ranges(
        self,
        paths: list[str],
        starts: int | Sequence[int | None] | None,
        ends: int | Sequence[int | None] | None,
        max_gap: int | None = None,  # noqa: ARG002 - the signature is that of fsspec
        on_error: str = "return",
        **_kwargs: Any,
    ) -> list[Any]:
        """Return the bytes of many ranges; those of one object are planned by its store's costs.

        `max_gap` is not used: whether a gap is read through follows from these costs. With
        `on_error="return"` an error takes the place of the bytes.
        """
        if not isinstance(paths, list):
            raise TypeError(f"paths: expected a list, found {type(paths).__name__}")
        starts, ends = (
            [each] * len(paths) if each is None or isinstance(each, int) else list(each)
            for each in (starts, ends)
        )
        if not len(paths) == len(starts) == len(ends):
            lengths = f"{len(paths)}, {len(starts)} and {len(ends)}"
            raise ValueError(f"paths, starts and ends: expected one length, found {lengths}")
        of_path: dict[str, list[int]] = {}
        for at, path in enumerate(paths):
            of_path.setdefault(self._strip_protocol(path), []).append(at)
        results: list[Any] = [None] * len(paths)

        def read(path: str, places: list[int]) -> None:
            try:
                source = _open(path)
                ranges = [_range(source, starts[at], ends[at]) for at in places]
                contents: Sequence[Any] = _read(source, ranges)
            except (SwatheError, FileNotFoundError) as error:
                if on_error != "return":
                    raise
                contents = [error] * len(places)
            for at, content in zip(places, contents, strict=True):
                results[at] = content

        with ThreadPoolExecutor(OBJECTS_AT_ONCE) as threads:
            for future in [threads.submit(read, *each) for each in of_path.items()]:
                future.result()
        return results

    def open(self, path: str, mode: str = "rb", *args: Any, **kwargs: Any) -> Any:
        """Open an object, as fsspec has it; of a text, too, nothing is written after an error."""
        if "b" in mode or "r" in mode:
            return super().open(path, mode, *args, **kwargs)
        text = {name: kwargs.pop(name) for name in TEXT_OPTIONS if name in kwargs}
        return _TextFile(self.open(path, f"{mode.replace('t', '')}b", *args, **kwargs), **text)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> SwatheFile:
        return SwatheFile(
            self,
            path,
            mode,
            block_size or "default",
            autocommit,
            cache_options=cache_options,
            **kwargs,
        )

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        """Write an object; with mode `create` an existing one is an error."""
        with self.open(path, "xb" if mode == "create" else "wb", **kwargs) as file:
            file.write(value)

    def cp_file(self, path1: str, path2: str, keeps: Collection[str] = (), **_kwargs: Any) -> None:
        """Copy an object; the copy is verified. `keeps`: identities of objects not to replace."""
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if not self.isdir(source):
            if keeps and object_identity(_engine(), _name(target)) in keeps:
                raise OutputError(f"{target}: cannot write: it is to be moved, too")
            copy_object(_name(source), _name(target), overwrite=True)

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **_kwargs: Any,
    ) -> None:
        """Copy objects, and remove them when all copies are verified.

        Raises:
            FileNotFoundError: If there is nothing of a name.
            IsADirectoryError: If one is a folder, without `recursive`.
            OutputError: If an object would be replaced that is to be moved, too.
        """
        if path1 == path2:
            return
        paths = self.expand_path(path1, recursive=recursive, maxdepth=maxdepth)
        kinds = {path: self.info(path)["type"] for path in paths}
        sources = [path for path, kind in kinds.items() if kind == "file"]
        if not recursive and len(sources) < len(kinds):
            raise IsADirectoryError(next(path for path in kinds if path not in sources))
        engine = _engine()
        keeps = frozenset(object_identity(engine, _name(path)) for path in sources)
        self.copy(
            path1, path2, recursive=recursive, maxdepth=maxdepth, on_error="raise", keeps=keeps
        )
        # Not what is there now: that may be the copies.
        for path in sources:
            self.rm_file(path)

    def put_file(
        self,
        lpath: str,
        rpath: str,
        callback: Any = DEFAULT_CALLBACK,
        mode: str = "overwrite",
        **_kwargs: Any,
    ) -> None:
        """Copy a file of this machine to a store; the copy is verified."""
        if os.path.isdir(lpath):
            return
        size = os.path.getsize(lpath)
        callback.set_size(size)
        target = _name(self._strip_protocol(rpath))
        copy_object(os.path.abspath(lpath), target, overwrite=mode != "create")
        callback.absolute_update(size)

    def get_file(
        self,
        rpath: str,
        lpath: Any,
        callback: Any = DEFAULT_CALLBACK,
        outfile: Any = None,
        **kwargs: Any,
    ) -> None:
        """Copy an object to a file of this machine; the copy is verified."""
        path = self._strip_protocol(rpath)
        if outfile is not None or isfilelike(lpath):
            super().get_file(path, lpath, callback, outfile, **kwargs)
            return
        info = self.info(path)
        if info["type"] == "directory":
            os.makedirs(lpath, exist_ok=True)
            return
        callback.set_size(info["size"])
        os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
        copy_object(_name(path), os.path.abspath(lpath), overwrite=True)
        callback.absolute_update(info["size"])

    def rm_file(self, path: str) -> None:
        """Remove an object.

        Raises:
            FileNotFoundError: If there is none.
        """
        remove_objects(_name(self._strip_protocol(path)))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Remove objects; a folder only with `recursive`.

        Raises:
            FileNotFoundError: If there is nothing of a name.
            IsADirectoryError: If one is a folder, without `recursive`.
        """
        for each in self.expand_path(path, recursive=recursive, maxdepth=maxdepth):
            kind = self.info(each)["type"]
            if kind == "file":
                self.rm_file(each)
            elif not recursive:
                raise IsADirectoryError(each)

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        """Do nothing: a folder exists when something is in it."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Do nothing, as `mkdir`."""

    def rmdir(self, path: str) -> None:
        """Do nothing: a folder without objects does not exist."""


class SwatheFile(AbstractBufferedFile):  # type: ignore[misc]  # fsspec has no types
    """An object that is read at one version, or written whole when it is closed."""

    def __init__(
        self, fs: SwatheFileSystem, path: str, mode: str = "rb", *args: Any, **kwargs: Any
    ):
        """Open an object.

        Raises:
            FileNotFoundError, PermissionError, OSError: If it cannot be opened.
            FileExistsError: If it exists, and the mode is `xb`.
        """
        self._source: Source | None = None
        self._content: Any = None
        if mode == "rb":
            self._source = _open(path)
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
        return _read(self._source, [(start, min(end, self._source.size))])[0]

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
            copy_object(self._content.name, _name(self.path), overwrite=self.mode != "xb")
        finally:
            self.discard()

    def discard(self) -> None:
        """Forget what was written."""
        if self._content is not None:
            self._content.close()
            self._content = None


class _TextFile(io.TextIOWrapper):
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


def fs() -> SwatheFileSystem:
    """Return the stores of the catalogue as a filesystem of fsspec.

    `fsspec.filesystem("swathe")` returns the same, and `fsspec.open("swathe://STORE/path")` opens
    an object of it.

    Example:
        >>> with swathe.fs().open("survey/dr17/frame-1.fits") as file:
        ...     hdus = astropy.io.fits.open(file)

    Without fsspec, which the extra `fs` installs, `swathe.fs` is a SettingsError.
    """
    return SwatheFileSystem()


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _name(path: str) -> str:
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


def _path(name: str) -> str:
    """Return the path of the filesystem of `NAME:path`, without a slash at its end."""
    store, _, key = name.partition(":")
    return f"{store}/{key}".rstrip("/")


def _engine() -> _swathe.Stores:
    return known_stores() or _swathe.Stores("[]")


def _open(path: str) -> Source:
    return _engine().open(_name(path))


def _range(source: Source, start: int | None, end: int | None) -> tuple[int, int]:
    """Return a range of an object as Python's slices have it."""
    first, last, _ = slice(start, end).indices(source.size)
    return first, max(first, last)


def _read(source: Source, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return the bytes of ranges, in as many steps as the engine's limit asks for."""
    results: list[bytes] = []
    together: list[tuple[int, int]] = []
    total_bytes = 0
    for start, end in ranges:
        if end - start > READ_BYTES:
            results += source.read_ranges(together)
            # One after the other: a server may say that its object has any size.
            parts = ((at, min(at + READ_BYTES, end)) for at in range(start, end, READ_BYTES))
            results.append(b"".join(source.read_ranges([part])[0] for part in parts))
            together, total_bytes = [], 0
            continue
        if total_bytes + end - start > READ_BYTES:
            results += source.read_ranges(together)
            together, total_bytes = [], 0
        together.append((start, end))
        total_bytes += end - start
    return results + source.read_ranges(together)


def _check_entries(
    entries: Iterator[ListedObject | UnlistedObject | SubFolder],
) -> Iterator[ListedObject | SubFolder]:
    """Yield the entries of a listing.

    Raises:
        OSError: If one could not be listed, or its name leads out of its folder.
    """
    for entry in entries:
        if isinstance(entry, UnlistedObject):
            raise OSError(f"{entry.path}: {entry.reason}")
        if {".", ".."}.intersection(entry.path.partition(":")[2].split("/")):
            # `get` makes names of files of it, which would lead out of the folder.
            raise OSError(f"{entry.path}: expected a name without . and .. as folders")
        yield entry


def _info(entry: ListedObject | SubFolder) -> dict[str, Any]:
    if isinstance(entry, SubFolder):
        return _folder_info(_path(entry.path))
    name = _path(entry.path)
    info = {"name": name, "size": entry.size, "type": "file"}
    marks = {"modified": entry.modified, "ETag": entry.etag}
    return info | {key: value for key, value in marks.items() if value is not None}


def _folder_info(path: str) -> dict[str, Any]:
    return {"name": path, "size": 0, "type": "directory"}
