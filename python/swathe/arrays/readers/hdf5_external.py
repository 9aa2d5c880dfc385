"""Arrays of HDF5 whose elements lie in other files of its folder: storage, links, virtual arrays.

Only for a file of a user who allows it, in a process that may read that folder and nothing else.
h5py reads them; each file that is named is looked for before.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h5py

from swathe.arrays.index_writer import IndexWriter, by_library, refusal
from swathe.arrays.readers.hdf5 import (
    ERRORS,
    MOST_OBJECTS,
    UNKNOWN,
    library_errors,
    part_of,
    storage_of,
    tree_of,
)
from swathe.arrays.readers.hdf5_links import address_of, other_file_of, target_of
from swathe.arrays.readers.hdf5_types import attributes_of
from swathe.arrays.readers.other_files import file_within
from swathe.core.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_FILES = 500
"""Limit of the files that are open at the same time."""


class OpenFiles:
    """Files of one folder, each open once.

    Attributes:
        folder: real path of the folder.
    """

    def __init__(self, folder: str) -> None:
        """Open nothing yet."""
        self.folder = folder
        self._files: dict[str, h5py.File] = {}

    def find(self, name: str, around: str) -> str:
        """Return the path of a file that another one names.

        Raises:
            FormatError: If it lies outside of the folder, or does not exist.
        """
        return file_within(self.folder, name, around)

    def open(self, name: str, around: str) -> h5py.File:
        """Open a file that another one names.

        Raises:
            FormatError: As `find` does, or if there are too many.
        """
        path = self.find(name, around)
        if path not in self._files:
            if len(self._files) == MOST_FILES:
                raise FormatError(f"expected {MOST_FILES} files at most, found more")
            self._files[path] = h5py.File(path, "r")
        return self._files[path]

    def close(self) -> None:
        """Close all files."""
        for each in self._files.values():
            each.close()


def describe(folder: str, name: str) -> bytes:
    """Return a chunk index of the arrays of a file that lie in others.

    An array that is still refused has the reason. An array that a link to a group leads to has the
    path of the link before its own.

    Args:
        folder: real path of the folder of the file.
        name: name of the file in it.

    Raises:
        FormatError: If it is not a valid HDF5 file.
    """
    writer = IndexWriter("hdf5", f"h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}")
    with _open(folder, name) as (root, files):
        tree = tree_of(root)
        for path in tree.refusals:
            for at, why, target in _targets(root, path, files):
                _add(writer, at, why, target, files)
        for path, dataset in tree.datasets.items():
            if _is_refused(dataset):
                _add(writer, path, "", dataset, files)
        return writer.to_bytes()


def read(folder: str, name: str, array: str, start: Sequence[int], stop: Sequence[int]) -> bytes:
    """Return the elements `[start, stop)` of an array of `describe`, in C order.

    Raises:
        FormatError: If the library cannot read them.
        RegionError: If the region is not within the array.
    """
    with _open(folder, name) as (root, files):
        why, dataset = target_of(root, array, files)
        if not isinstance(dataset, h5py.Dataset):
            raise FormatError(f"{array}: expected an array, found {why or 'a group'}")
        # HDF5 looks for external storage from the working directory.
        os.chdir(os.path.dirname(dataset.file.filename))
        return part_of(array, dataset, storage_of(None, None, dataset, files), start, stop)


def _is_refused(dataset: h5py.Dataset) -> bool:
    """Check whether an array is refused without other files."""
    try:
        return bool(storage_of(None, None, dataset)[0]["kind"] == "refused")
    except ERRORS:
        return False  # the index says why


@contextmanager
def _open(folder: str, name: str) -> Iterator[tuple[h5py.File, OpenFiles]]:
    files = OpenFiles(folder)
    with library_errors():
        try:
            yield files.open(name, os.path.join(folder, name)), files
        finally:
            files.close()


def _targets(root: h5py.File, path: str, files: OpenFiles) -> Iterator[tuple[str, str, Any]]:
    """Yield the arrays that a link leads to: path, why it is not read, and array."""
    waiting = [path]
    visits: set[tuple[str, int]] = set()
    count = 0
    while waiting:
        at = waiting.pop(0)
        count += 1
        if count > MOST_OBJECTS:
            raise FormatError(f"{path}: expected {MOST_OBJECTS} objects at most")
        try:
            why, target = target_of(root, at, files)
        except (FormatError, *ERRORS) as error:
            why, target = str(error), None
        if isinstance(target, h5py.Group):
            key = target.file.filename, address_of(target)
            if key not in visits:
                visits.add(key)
                waiting += [f"{at}/{name}" for name in target]
            continue
        yield at, why, target


def _add(writer: IndexWriter, path: str, why: str, dataset: Any, files: OpenFiles) -> None:
    """Add an array to the index, or why it is refused."""
    if not isinstance(dataset, h5py.Dataset):
        writer.add(path, UNKNOWN, (), refusal(why or "no array"))
        return
    where = other_file_of(dataset) or f"an array of another file, {dataset.file.filename!r}"
    try:
        storage, dtype, shape = storage_of(None, None, dataset, files)
    except (FormatError, *ERRORS) as error:
        storage, dtype, shape = refusal(f"{where}: {error}"), UNKNOWN, dataset.shape or ()
    if storage["kind"] not in ("refused", "inline"):
        storage = by_library(where)
    writer.add(path, dtype, shape, storage, attributes=attributes_of(dataset))
