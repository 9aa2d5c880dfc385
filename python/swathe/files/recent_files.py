"""Files that were opened for the last cuts, so that the next one need not read headers."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe import _swathe
from swathe.files.array_file import ArrayFile
from swathe.stores.registry import caches_of, stores_for, tape_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swathe.arrays.array_tree import ArrayTree
    from swathe.files.array import Array

MOST_FILES = 8
"""Local files that stay open."""
MOST_PARTS = 2_000
"""Limit of the folders and metadata that are looked at before each cut from a folder kept open."""


class ArrayWindows(NamedTuple):
    """An array of a local file that is open, and its reader of windows."""

    file: ArrayFile
    array: Array
    reader: _swathe.WindowReader


@dataclass
class RecentFile:
    """A file that is open.

    Attributes:
        native: the engine's file.
        notes: warnings about it so far.
        name: its name, `NAME:path`, if it is one of a store.
        state: changes when a local file does.
        parts: of a folder, the files and folders whose states are its state.
        tree: its arrays, once they are known.
        windows: readers of windows of its arrays, by their paths.
    """

    native: _swathe.Object
    notes: list[str]
    name: str | None = None
    state: tuple[Any, ...] | None = None
    parts: tuple[str, ...] = ()
    tree: ArrayTree | None = None
    windows: dict[str, ArrayWindows] = field(default_factory=dict)


_recent: OrderedDict[str, RecentFile] = OrderedDict()
_recent_lock = Lock()


def array_windows(name: str, path: str) -> ArrayWindows | None:
    """Return the reader of windows of an array of a local file that is open.

    It looks itself whether the file has changed. `None` if there is none: the file is not open, or
    the engine does not read the array.
    """
    key = _key_of(name)
    with _recent_lock:
        entry = _recent.get(key)
        if entry is None:
            return None
        _recent.move_to_end(key)
    windows = entry.windows.get(path)
    if windows is None and entry.tree is not None and entry.state and not entry.parts:
        file = ArrayFile(entry.native, entry.tree, entry.notes)
        if path in file and (array := file[path]).is_native and array.plane is not None:
            reader = _swathe.WindowReader(entry.native, array.path, key, entry.state)
            windows = entry.windows[path] = ArrayWindows(file, array, reader)
    return windows


def recent_file(name: str, fresh: bool) -> RecentFile:
    """Return a file that is open, or open it: a local one if it is new or has changed.

    With `fresh`, an object on a server is asked for its version.
    """
    state = _state(name)
    if state is not None and stat.S_ISDIR(state[0]):
        return _recent_folder(name, fresh)
    if state is None:
        return open_anew(name, fresh)
    key = _key_of(name)
    with _recent_lock:
        entry = _recent.get(key)
        if entry is not None and entry.state == state:
            _recent.move_to_end(key)
            return entry
    _check_on_disk(name)
    return _keep(key, RecentFile(_swathe.open(name), [], None, state))


def _key_of(name: str) -> str:
    """Return the absolute path of a file: the working directory may have changed since."""
    return name if name.startswith("/") else os.path.abspath(name)


def open_anew(name: str, fresh: bool) -> RecentFile:
    """Open a file by its path, its URL, or its name in a store."""
    _check_on_disk(name)
    native = _swathe.open(name, stores_for([name]), fresh)
    return RecentFile(native, [], None if "://" in name else name)


def _check_on_disk(name: str) -> None:
    """Check that an object is not on tape only, if its store is one whose objects are staged.

    Raises:
        OnTapeError: If it is.
    """
    if tape_objects([name]) or caches_of([name]):
        from swathe.stores.staging.on_disk import check_on_disk

        check_on_disk(name)


def _recent_folder(name: str, fresh: bool) -> RecentFile:
    """Open a folder of files, or return it if its folders and metadata have not changed.

    A chunk that was written over in place is an error when it is read; then `fresh` is set.
    """
    key = _key_of(name)
    with _recent_lock:
        entry = _recent.get(key)
        if entry is not None:
            _recent.move_to_end(key)
    if entry is not None and not fresh and entry.state == tuple(map(_state, entry.parts)):
        return entry
    parts = tuple(_folder_parts(key))
    state = tuple(map(_state, parts))
    recent = RecentFile(_swathe.open(name), [], None, state, parts=parts)
    return _keep(key, recent) if len(parts) <= MOST_PARTS else recent


def _folder_parts(folder: str) -> Iterator[str]:
    """Iterate over a folder, those in it, and their files that are no chunks."""
    for place, _, files in os.walk(folder):
        yield place
        for name in files:
            if name.startswith(".z") or name.endswith(".json"):
                yield os.path.join(place, name)


def _keep(key: str, recent: RecentFile) -> RecentFile:
    """Keep a file open, in place of the one that was used longest ago."""
    with _recent_lock:
        _recent[key] = recent
        _recent.move_to_end(key)
        while len(_recent) > MOST_FILES:
            _recent.popitem(last=False)
    return recent


def forget(native: _swathe.Object) -> None:
    """Keep a file open no longer."""
    with _recent_lock:
        for key in [key for key, entry in _recent.items() if entry.native is native]:
            del _recent[key]


def _state(name: str) -> tuple[int, ...] | None:
    """Return a value that changes when a local file does; `None` for a URL or a missing file.

    It begins with the mode, which tells a folder from a file.
    """
    if "://" in name:
        return None
    try:
        now = os.stat(name)
    except (OSError, ValueError):
        return None
    return now.st_mode, now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns
