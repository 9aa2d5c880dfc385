"""The objects that a user means: by name, by a table of targets, a dataset or a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from swathe.catalog.records.caches import READABLE
from swathe.core.errors import NoSuchRunError, OptionError
from swathe.core.store_schemes import CACHE
from swathe.stores.registry import tape_objects

if TYPE_CHECKING:
    from swathe.catalog import Catalog


def tape_names(things: Sequence[str]) -> list[str]:
    """Return `NAME:path` of objects.

    Args:
        things: `NAME:path` of an object; the path of a table with a column `file`; the name of a
            dataset; `NAME` or `NAME@NUMBER` of a run. Of these the objects in stores whose objects
            are staged, and in caches, count. `NAME:` of a cache is all that it has copies of.

    Raises:
        OptionError: If one is nothing of these.
        TargetsError: If a table cannot be read.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import Catalog

    names: dict[str, None] = {}
    with Catalog.open() as catalog:
        stores = catalog.stores()
        tapes = {store.name for store in stores if store.is_staged}
        caches = {store.name for store in stores if store.url.startswith(f"{CACHE}://")}
        for thing in things:
            if thing.endswith(":") and thing[:-1] in caches:
                names |= dict.fromkeys(_copies_in(thing[:-1], catalog))
            else:
                names |= dict.fromkeys(_names_of(thing, catalog, tapes | caches))
    return list(names)


def _names_of(thing: str, catalog: Catalog, tapes: set[str]) -> Iterator[str]:
    if thing.partition(":")[0] in tapes and ":" in thing:
        yield thing
    elif os.path.isfile(thing):
        for name in _files_of(thing):
            if name.partition(":")[0] in tapes and ":" in name:
                yield name
            else:
                yield from (each.name for each in tape_objects([name]).values())
    elif "@" not in thing and thing in {each.name for each in catalog.datasets()}:
        yield from _copies_of(thing, catalog, tapes)
    else:
        yield from _objects_of_run(thing, catalog, tapes)


def _copies_in(cache: str, catalog: Catalog) -> list[str]:
    copies = catalog.near_objects(cache)
    return [f"{cache}:{each.path}" for each in copies if each.state in READABLE]


def _files_of(table: str) -> Iterator[str]:
    from swathe.files.targets.cells import texts
    from swathe.files.targets.columns import standard_columns
    from swathe.files.targets.pieces import read_pieces

    for piece in read_pieces(table):
        columns = standard_columns(piece.table.table)
        if "file" not in columns:
            raise OptionError(f"{table}: expected a column 'file', found none")
        yield from dict.fromkeys(texts(columns["file"]))


def _copies_of(dataset: str, catalog: Catalog, tapes: set[str]) -> Iterator[str]:
    record = catalog.dataset(dataset)
    for store in sorted(tapes & {record.store, *record.states}):
        yield from (f"{store}:{copy.path}" for copy in catalog.replicas(dataset, store))


def _objects_of_run(label: str, catalog: Catalog, tapes: set[str]) -> Iterator[str]:
    from swathe.stores.listing import ListedObject
    from swathe.stores.objects import list_objects

    try:
        run = catalog.run(label)
    except NoSuchRunError:
        raise OptionError(
            f"{label}: expected NAME:path of a store whose objects are staged, a table, a dataset "
            "or a run, found none"
        ) from None
    arrays = catalog.run_arrays(run.id)
    stores = {dump.store for array in arrays for dump in catalog.dumps(array.id)}
    for store in sorted(tapes & stores):
        for entry in list_objects(f"{store}:runs/{run.folder}/"):
            if isinstance(entry, ListedObject):
                yield entry.path
