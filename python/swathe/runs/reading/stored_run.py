"""Read a run: where each iteration of its arrays lies is known to the catalogue."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from swathe.core.errors import AccessError, NoSuchRunError, NoSuchStoreError, SourceError
from swathe.runs.reading.grown_array import GrownArray
from swathe.runs.reading.stored_array import Reopen, StoredArray, names_text
from swathe.runs.storage.zarr_group import group_folder, list_paths
from swathe.stores.registry import native_stores

if TYPE_CHECKING:
    from pathlib import Path

    from swathe.catalog import Catalog
    from swathe.catalog.records.runs import RunRecord

log = logging.getLogger(__name__)


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
    def open(cls, label: str, catalog: Catalog, reopen: Reopen | None = None) -> StoredRun:
        """Return a run by `NAME@NUMBER`, or the newest of an application by `NAME`.

        Args:
            label: the run.
            catalog: its catalogue.
            reopen: opens the catalogue again, when a dump is no longer where it was.

        Raises:
            NoSuchRunError: If there is none.
        """
        record = catalog.run(label)
        arrays: dict[str, StoredArray] = {}
        for array in catalog.run_arrays(record.id):
            kind = GrownArray if array.settings.get("mode") == "append" else StoredArray
            dumps, failovers = catalog.dumps(array.id), catalog.failovers(array.id)
            arrays[array.name] = kind(record, array, dumps, failovers, reopen)
        return cls(record, arrays)

    def __getitem__(self, name: str) -> StoredArray:
        """Return an array by its name.

        Raises:
            NoSuchRunError: If the run has no such array.
        """
        if name not in self._arrays:
            raise NoSuchRunError(
                f"{self.record.label}: expected an array ({names_text(self._arrays)}), found "
                f"{name!r:.80}"
            )
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def remove_objects_of(record: RunRecord, catalog: Catalog, *, force: bool = False) -> int:
    """Remove the objects of a run from its stores; return how many.

    Nothing is removed before all stores have answered.

    Args:
        record: the run.
        catalog: its catalogue.
        force: whether to leave objects where they are in stores that do not answer, or that the
            catalogue no longer has.

    Raises:
        NoSuchStoreError: If the catalogue no longer has a store of it.
        OutputError, AccessError, SourceError: If a store cannot be listed, or an object of it
            cannot be removed.
    """
    folders = []
    names = {
        name
        for array in catalog.run_arrays(record.id)
        for name in (*array.stores, *(dump.store for dump in catalog.dumps(array.id)))
    }
    for name in sorted(names):
        try:
            folder = f"{group_folder(record, catalog.store(name).name)}/"
            next(iter(list_paths(folder, dot_names=True)), None)
        except (NoSuchStoreError, AccessError, SourceError) as error:
            if not force:
                raise
            log.warning("%s: its objects in the store %s stay: %s", record.label, name, error)
            continue
        folders.append(folder)
    return sum(map(remove_objects_below, folders))


def remove_objects_below(folder: str) -> int:
    """Remove all objects below a folder of a store, `STORE:path/`; return how many.

    Raises:
        OutputError, AccessError, SourceError: If it cannot be listed, or an object of it cannot be
            removed.
    """
    engine, count = native_stores(), 0
    store = folder.partition(":")[0]
    for path in list_paths(folder, dot_names=True):
        engine.remove(f"{store}:{path}")
        count += 1
    if (local := engine.local_path(folder)) is not None:
        _remove_empty_folders(local)
    return count


def _remove_empty_folders(folder: Path) -> None:
    """Remove a folder of this machine and what is in it, if that is folders only."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # not empty
            os.rmdir(path)
