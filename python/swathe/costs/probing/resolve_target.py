"""What the user names, as a store and its objects."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.catalog import Catalog, root_url
from swathe.core.errors import AccessError, DatasetError, NotFoundError, RegionError, SourceError
from swathe.core.format import KIB
from swathe.costs.probing.page_cache import largest_files
from swathe.stores.listing import Listed, list_objects
from swathe.stores.registry import LOCAL_ROOT, known_stores

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LISTED, OBJECTS = 1000, 4
"""Of so many objects of a store the largest few are read: each has to be opened."""
NAME_ONE = "name an object to read: --object PATH, or the store's option probe_object"


@dataclass(frozen=True)
class ProbeTarget:
    """Where something is measured.

    Attributes:
        root: of the store, as the catalogue files what was measured of it: its key.
        shown: what the user named, without secrets.
        objects: to read, as the native half takes them.
        stores: what it needs to find them.
        folder: of a local store.
        writable: what names of objects begin with that can be written there; None where it is
            neither a folder nor a store of a bucket, of WebDAV or of XRootD.
    """

    root: str
    shown: str
    objects: tuple[str, ...]
    stores: _swathe.Stores | None = None
    folder: Path | None = None
    writable: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether its objects are files of this machine."""
        return self.root.startswith("file:")

    @property
    def files(self) -> list[Path]:
        """Paths of its objects that are files of this machine."""
        return [path for path in map(self.file, self.objects) if path is not None]

    def file(self, name: str) -> Path | None:
        """Path of an object that is a file of this machine."""
        stores = self.stores or _swathe.Stores("[]")
        return stores.local_path(name)


def find_place(name: str, objects: Sequence[str] = ()) -> ProbeTarget:
    """Find what is meant by a store's name, `NAME:path`, a URL or a path.

    Args:
        name: a store, or an object of one.
        objects: what to read of the store: paths in it, URLs, or paths of files. Else the object
            named; of a local folder its largest files; of other stores their option
            `probe_object`, or the largest of the first objects they list.

    Raises:
        NotFoundError: where there is nothing to read.
        RegionError: where an object is of another store.
        StoreSettingsError: where the URL is of no kind that is known.
    """
    stores = known_stores() or _swathe.Stores("[]")
    is_store = ":" not in name and stores.locate(f"{name}:")[1] != f"{name}:"
    root, url = stores.locate(f"{name}:" if is_store else name)
    named = _root(root)
    path = stores.local_path(f"{name}:" if is_store else name)
    folder = path if path is not None and path.is_dir() else None
    chosen = [_object(name, is_store, folder, text) for text in objects]
    if is_store and not chosen:
        with Catalog.open() as catalog:
            usual = catalog.store(name).options.get("probe_object")
        chosen = [] if usual is None else [f"{name}:{usual}"]
    for text in chosen:
        if _root(stores.locate(text)[0]) != named:
            raise RegionError(f"{_swathe.shown(text)}: is not an object of {_swathe.shown(name)}")
    if not chosen and folder is not None:
        chosen = largest_files(folder)
    if not chosen:
        if not is_store and url.endswith("/"):
            raise NotFoundError(f"{_swathe.shown(name)}: is no object, nor a store; {NAME_ONE}")
        if path is not None and not path.exists() and "/" not in name and ":" not in name:
            raise NotFoundError(f"{name}: is no file, nor a store; see: swathe store list")
        chosen = _largest_listed(name) if is_store else [name]
    writable = f"{folder}/" if folder is not None else None
    if is_store and path is None and stores.is_writable(f"{name}:"):
        writable = f"{name}:"
    return ProbeTarget(named, _swathe.shown(name), tuple(chosen), stores, folder, writable)


def _largest_listed(name: str) -> list[str]:
    """Give the largest of the first objects that a store lists."""
    with Catalog.open() as catalog:
        store = catalog.store(name)
    try:
        found = [
            each
            for each in islice(list_objects(store, "", None), LISTED)
            if isinstance(each, Listed) and (each.size is None or each.size >= KIB)
        ]
    except (AccessError, DatasetError, NotFoundError, SourceError) as error:
        raise NotFoundError(f"{name}: cannot be listed ({error}); {NAME_ONE}") from error
    if not found:
        raise NotFoundError(f"{name}: lists no object of at least 1 KiB; {NAME_ONE}")
    found.sort(key=lambda each: each.size or 0, reverse=True)
    return [f"{name}:{each.path}" for each in found[:OBJECTS]]


def _object(name: str, is_store: bool, folder: Path | None, text: str) -> str:
    """Give an object in words that stand alone."""
    if "://" in text or text.startswith("/"):
        return text
    if is_store:
        return text if text.startswith(f"{name}:") else f"{name}:{text}"
    return text if folder is None else str(folder / text)


def _root(root: str) -> str:
    return root_url(LOCAL_ROOT if root == "file://" else root)
