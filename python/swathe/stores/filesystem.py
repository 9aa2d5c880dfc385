"""Stores as a filesystem of fsspec: `swathe://STORE/path`.

fsspec finds it by its entry point, so that astropy, dask, pandas, xarray and zarr read and write
every store with Swathe's credentials, retries, measured costs and verified copies.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

from swathe.core.errors import OutputError, SwatheError
from swathe.stores import named_stores
from swathe.stores.copies import copy_object
from swathe.stores.listing import UnlistedObject
from swathe.stores.object_file import (
    SwatheFile,
    SwatheTextFile,
    object_name,
    open_object,
    range_of,
)
from swathe.stores.object_ranges import read_ranges
from swathe.stores.objects import (
    SubFolder,
    list_folder,
    list_objects,
    object_identity,
    remove_objects,
)
from swathe.stores.registry import native_stores

# isort: split
# After object_file, which says what to install if there is no fsspec.
from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.spec import AbstractFileSystem
from fsspec.utils import isfilelike

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from swathe.stores.listing import ListedObject

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

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """Return a path without `swathe://`; `NAME:path`, as it is elsewhere, is `NAME/path`."""
        path = super()._strip_protocol(path)
        if isinstance(path, str) and ":" in path.partition("/")[0]:
            path = path.replace(":", "/", 1).rstrip("/")
        return path

    def ls(self, path: str, detail: bool = True, **_kwargs: Any) -> list[Any]:
        """Return what is in a folder, as fsspec has it.

        Raises:
            FileNotFoundError: If there is nothing.
        """
        path = self._strip_protocol(path)
        if not path:
            infos = [_folder_info(store.name) for store in named_stores.list()]
        else:
            infos = [_info(entry) for entry in _check_entries(list_folder(object_name(path)))]
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
            entries = list(_check_entries(list_objects(object_name(path))))
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
            source = open_object(path)
        except SwatheError:
            if self._has_objects(path):
                return _folder_info(path)
            raise
        return {"name": path, "size": source.size, "type": "file", "version": source.version}

    def _has_objects(self, path: str) -> bool:
        try:
            return next(list_objects(f"{object_name(path)}/"), None) is not None
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
        source = open_object(self._strip_protocol(path))
        return read_ranges(source, [range_of(source, start, end)])[0]

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
                source = open_object(path)
                ranges = [range_of(source, starts[at], ends[at]) for at in places]
                contents: Sequence[Any] = read_ranges(source, ranges)
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
        return SwatheTextFile(self.open(path, f"{mode.replace('t', '')}b", *args, **kwargs), **text)

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
            if keeps and object_identity(native_stores(), object_name(target)) in keeps:
                raise OutputError(f"{target}: cannot write: it is to be moved, too")
            copy_object(object_name(source), object_name(target), overwrite=True)

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
        engine = native_stores()
        keeps = frozenset(object_identity(engine, object_name(path)) for path in sources)
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
        target = object_name(self._strip_protocol(rpath))
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
        copy_object(object_name(path), os.path.abspath(lpath), overwrite=True)
        callback.absolute_update(info["size"])

    def rm_file(self, path: str) -> None:
        """Remove an object.

        Raises:
            FileNotFoundError: If there is none.
        """
        remove_objects(object_name(self._strip_protocol(path)))

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


def _path(name: str) -> str:
    """Return the path of the filesystem of `NAME:path`, without a slash at its end."""
    store, _, key = name.partition(":")
    return f"{store}/{key}".rstrip("/")


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
