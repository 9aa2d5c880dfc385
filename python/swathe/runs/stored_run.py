"""Read a run: where each iteration of its arrays lies is known to the catalogue."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.errors import ChangedError, FormatError, NoSuchRunError, SourceError
from swathe.runs.run_settings import ArraySettings
from swathe.runs.run_storage import group_folder
from swathe.stores.listing import UnlistedObject, listed_objects
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import DTypeLike, NDArray

    from swathe.catalog import Catalog
    from swathe.catalog.records.runs import DumpRecord, RunArrayRecord, RunRecord
    from swathe.files.array import Array

MOST_NAMES = 12
"""Names or iterations in a message, at most."""


class StoredRun(Mapping[str, "StoredArray"]):
    """The arrays of a run by name.

    Attributes:
        record: the run in the catalogue.
    """

    def __init__(self, record: RunRecord, arrays: Mapping[str, StoredArray]) -> None:
        """Set the run and its arrays."""
        self.record = record
        self._arrays = dict(arrays)

    @classmethod
    def open(cls, label: str, catalog: Catalog) -> StoredRun:
        """Return a run by `NAME@NUMBER`, or the newest of an application by `NAME`.

        Raises:
            NoSuchRunError: If there is none.
        """
        record = catalog.run(label)
        arrays = {
            array.name: StoredArray(record, array, catalog.dumps(array.id))
            for array in catalog.run_arrays(record.id)
        }
        return cls(record, arrays)

    def __getitem__(self, name: str) -> StoredArray:
        """Return an array by its name.

        Raises:
            NoSuchRunError: If the run has no such array.
        """
        if name not in self._arrays:
            raise NoSuchRunError(
                f"{self.record.label}: expected an array ({_names_text(self._arrays)}), found "
                f"{name!r:.80}"
            )
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class StoredArray(Mapping[int, "StoredDump"]):
    """The dumps of an array by iteration.

    Attributes:
        name: its name.
        settings: its settings.
        dumps: where its iterations lie.
    """

    def __init__(self, run: RunRecord, array: RunArrayRecord, dumps: list[DumpRecord]) -> None:
        """Set the array and where its iterations lie."""
        self.name = array.name
        self.settings = ArraySettings.of_record(array.settings)
        self.dumps = {dump.iteration: dump for dump in dumps}
        self._run = run

    def __getitem__(self, iteration: int) -> StoredDump:
        """Return the array at an iteration; nothing is read before its elements are.

        Raises:
            NoSuchRunError: If it was not written.
        """
        if iteration not in self.dumps:
            raise NoSuchRunError(
                f"{self._run.label}, {self.name}: expected an iteration that was written "
                f"({_names_text(self.dumps)}), found {iteration!r:.40}"
            )
        dump = self.dumps[iteration]
        folder = group_folder(self._run, dump.store)
        return StoredDump(folder, self.name, iteration, dump.slot, self.settings)

    def __iter__(self) -> Iterator[int]:
        return iter(self.dumps)

    def __len__(self) -> int:
        return len(self.dumps)


class StoredDump:
    """An array at one iteration. A section reads only the chunks that it touches.

    NumPy, dask (`dask.array.from_array`) and xarray take it as an array.

    Attributes:
        shape: lengths of its axes.
        dtype: type of its elements.
        ndim: number of its axes.
        dims: names of its axes, if the settings have them.
    """

    def __init__(
        self, folder: str, name: str, iteration: int, slot: int, settings: ArraySettings
    ) -> None:
        """Set where it lies: a group, an array in it, and a place along its first axis."""
        self._iteration, self._settings = iteration, settings
        self.shape, self.dtype = settings.shape, np.dtype(settings.dtype)
        self.ndim, self.dims = len(self.shape), settings.dims
        self._folder, self._name, self._slot = folder, name, slot

    def __getitem__(self, index: Any) -> NDArray[Any]:
        """Return elements, as NumPy would: whole numbers, slices and `...`.

        Raises:
            NotFoundError, AccessError, SourceError: If it cannot be read.
            FormatError: If it is damaged.
            RegionError: If an index is out of range.
        """
        indices = index if isinstance(index, tuple) else (index,)
        return np.asarray(self._array[(self._slot, *indices)])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all elements; each call reads them anew."""
        if copy is False:
            raise ValueError("a stored array is read: there is no array without a copy")
        return self[...].astype(self.dtype if dtype is None else dtype, copy=False)

    def __repr__(self) -> str:
        return f"<StoredDump {self._folder}/{self._name}[{self._slot}] {self.shape} {self.dtype}>"

    @cached_property
    def _array(self) -> Array:
        from swathe.files.array_file import ArrayFile
        from swathe.files.file import open as open_file

        file = open_file(self._folder)
        label = f"{self._folder}, array {self._name}"
        if not isinstance(file, ArrayFile):
            raise FormatError(f"{label}: expected a Zarr")
        array = file[f"/{self._name}"]
        expected_shape = (*array.shape[:1], *self.shape)
        if array.shape != expected_shape or array.dtype != self.dtype or self._slot < 0:
            raise FormatError(
                f"{label}: expected {expected_shape}, {self.dtype}, found {array.shape}, "
                f"{array.dtype}"
            )
        if self._settings.mode == "overwrite":
            iterations = list(array.attrs.get("iterations", ()))
            if iterations[self._slot : self._slot + 1] != [self._iteration]:
                raise ChangedError(
                    f"{label}: iteration {self._iteration} was replaced by a later one"
                )
        self._check_shards(label)
        return array

    def _check_shards(self, label: str) -> None:
        """Check that all shards are there: one that is not would be read as fill."""
        folder = f"{self._folder}/{self._name}/c/{self._slot}/"
        listing = native_stores().list(folder, may_lack=True)
        count = sum(1 for _ in listed_objects(listing, folder.partition(":")[2], None))
        if count != self._settings.sharding.count:
            raise FormatError(
                f"{label}, iteration {self._iteration}: expected "
                f"{self._settings.sharding.count} shards, found {count}"
            )


def remove_objects_of(record: RunRecord, catalog: Catalog) -> int:
    """Remove the objects of a run from its stores; return how many.

    Raises:
        OutputError, AccessError, SourceError: If a store cannot be listed, or an object of it
            cannot be removed.
    """
    engine, count = native_stores(), 0
    names = {
        name
        for array in catalog.run_arrays(record.id)
        for name in (*array.stores, *(dump.store for dump in catalog.dumps(array.id)))
    }
    for store in map(catalog.store, sorted(names)):
        folder = f"{group_folder(record, store.name)}/"
        listing = engine.list(folder, with_hidden=True, may_lack=True)
        for entry in listed_objects(listing, folder.partition(":")[2], None):
            if isinstance(entry, UnlistedObject):
                raise SourceError(f"{store.name}:{entry.path}: cannot be listed: {entry.reason}")
            engine.remove(f"{store.name}:{entry.path}")
            count += 1
        if (local := engine.local_path(folder)) is not None:
            _remove_empty_folders(local)
    return count


def _remove_empty_folders(folder: Path) -> None:
    """Remove a folder of this machine and what is in it, if that is folders only."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # not empty
            os.rmdir(path)


def _names_text(names: Mapping[Any, object]) -> str:
    text = ", ".join(str(name) for name, _ in zip(names, range(MOST_NAMES), strict=False))
    return f"{text}, ..." if len(names) > MOST_NAMES else text or "there is none"
