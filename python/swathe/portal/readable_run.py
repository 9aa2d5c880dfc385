"""Runs and dumps that a user may read."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Path

# FastAPI reads the types of parameters at run time.
from starlette.requests import Request

from swathe.catalog.records.runs import RunRecord
from swathe.core.errors import NoSuchRunError
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.runs.reading.stored_run import StoredRun
from swathe.runs.storage.zarr_group import group_folder

if TYPE_CHECKING:
    from swathe.portal.context import Portal
    from swathe.runs.reading.stored_array import StoredDump

LONGEST_LABEL = 150
RunLabel = Annotated[
    str, Path(max_length=LONGEST_LABEL, description="NAME@NUMBER, or NAME for the newest.")
]


def readable_run(request: Request, name: RunLabel, _user: Reader) -> RunRecord:
    """Return the run of a path, for a user who may read the stores that have dumps of it.

    Who may read may read all stores of the catalogue. A run whose folder leads out of its store by
    a link is refused, as each file there is.

    Raises:
        NoSuchRunError: If there is no such run.
        AccessError: If the user may not read one of its stores.
    """
    return find_readable_run(portal_of(request), name)


def find_readable_run(portal: Portal, label: str) -> RunRecord:
    """Return a run by `NAME@NUMBER` or `NAME`; errors are those of `readable_run`.

    A store that the catalogue no longer has is passed over: there is nothing to read.
    """
    if not label.isprintable():  # databases differ on control characters
        raise NoSuchRunError(f"there is no run {label[:100]!r}")
    record = portal.catalog.run(label)
    stores = {store.name for store in portal.catalog.stores()}
    for store in {each.store for each in portal.catalog.dump_totals(record.id)} & stores:
        portal.sources.check(group_folder(record, store))
    return record


ReadRun = Annotated[RunRecord, Depends(readable_run)]
"""Runs that users may read: those of the catalogue, in stores that it has."""


def stored_run(request: Request, record: ReadRun) -> StoredRun:
    """Return the run of a path with its arrays; errors are those of `readable_run`."""
    catalog = portal_of(request).catalog
    return StoredRun.open(record.label, catalog, lambda: nullcontext(catalog))


ReadStoredRun = Annotated[StoredRun, Depends(stored_run)]


def run_stores(run: StoredRun) -> list[str]:
    """Return the names of the stores that have a dump of a run."""
    return sorted({dump.store for array in run.values() for dump in array.dumps.values()})


def readable_dump(portal: Portal, run: StoredRun, array: str, iteration: int) -> StoredDump:
    """Return an array of a run at an iteration, if its store may be read.

    Raises:
        NoSuchRunError: If there is none, or the array is one that grows.
        AccessError: If its store may not be read.
    """
    dumps = run[array]
    if dumps.settings.mode == "append":
        raise NoSuchRunError(
            f"{run.record.label}, {array}: expected an array with dumps, found one that grows"
        )
    dump = dumps[iteration]
    portal.sources.check(group_folder(run.record, dumps.dumps[iteration].store))
    return dump
