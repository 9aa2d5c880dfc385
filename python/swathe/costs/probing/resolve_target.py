"""Resolve a user's name to a store and its objects."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.catalog import Catalog, root_url
from swathe.catalog.store_urls import STRIPE_URL
from swathe.core.errors import AccessError, DatasetError, NotFoundError, RegionError, SourceError
from swathe.core.format import KIB
from swathe.costs.probing.page_cache import largest_files
from swathe.stores.listing import ListedObject, is_folder, list_objects
from swathe.stores.registry import LOCAL_ROOT, native_stores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MOST_ENTRIES, OBJECTS = 1000, 4
"""Number of objects read of a store, the largest ones, since each must be opened."""
NAME_ONE = "name an object to read, as STORE:path, or set the store's option probe_object"


@dataclass(frozen=True)
class ProbeTarget:
    """Store and objects to measure.

    Attributes:
        root: key of the store, under which the catalogue files its measurements.
        label: name given by the user, without secrets.
        objects: objects to read, as the engine names them.
        stores: stores needed to find them.
        folder: folder of a local store.
        writable: prefix of objects that can be written; None if the place is neither a folder nor
            a store of a bucket, of WebDAV, of XRootD or of several of these.
        are_listed: whether the objects were found in a list, so that the user named none of them.
    """

    root: str
    label: str
    objects: tuple[str, ...]
    stores: _swathe.Stores | None = None
    folder: Path | None = None
    writable: str | None = None
    are_listed: bool = False

    @property
    def is_local(self) -> bool:
        """Check whether the objects are files of this machine."""
        return _swathe.StoreKind(self.root).is_local

    @property
    def is_striped(self) -> bool:
        """Check whether the objects lie in parts on several servers."""
        return self.root.startswith(STRIPE_URL)

    @property
    def files(self) -> list[Path]:
        """Return the paths of the objects that are files of this machine."""
        return [path for path in map(self.file, self.objects) if path is not None]

    def file(self, name: str) -> Path | None:
        """Return the path of an object if it is a file of this machine."""
        stores = self.stores or _swathe.Stores("[]")
        return stores.local_path(name) if self.is_local else None


def find_place(name: str, objects: Sequence[str] = ()) -> ProbeTarget:
    """Resolve a store's name, `NAME:path`, a URL or a path.

    Args:
        name: a store, or an object of one.
        objects: objects to read: paths in the store, URLs, or paths of files. By default the
            object given by `name`; for a local folder its largest files; for other stores their
            option `probe_object`, or the largest of the first objects listed.

    Raises:
        NotFoundError: If there is nothing to read.
        RegionError: If an object belongs to another store.
        StoreSettingsError: If the URL has an unknown scheme.
    """
    stores = native_stores()
    is_store = ":" not in name and stores.locate(f"{name}:")[1] != f"{name}:"
    root, url = stores.locate(f"{name}:" if is_store else name)
    root_name = _root(root)
    path = stores.local_path(f"{name}:" if is_store else name)
    folder = path if path is not None and path.is_dir() else None
    objects_to_read = [_object(name, is_store, folder, text) for text in objects]
    if is_store and not objects_to_read:
        with Catalog.open() as catalog:
            usual = catalog.store(name).options.get("probe_object")
        objects_to_read = [] if usual is None else [f"{name}:{usual}"]
    for text in objects_to_read:
        if _root(stores.locate(text)[0]) != root_name:
            raise RegionError(
                f"{_swathe.redact_url(text)}: is not an object of {_swathe.redact_url(name)}"
            )
    are_listed = not objects_to_read and (is_store or folder is not None)
    if not objects_to_read and folder is not None:
        objects_to_read = largest_files(folder)
    if not objects_to_read:
        if not is_store and url.endswith("/"):
            raise NotFoundError(
                f"{_swathe.redact_url(name)}: is neither an object nor a store; {NAME_ONE}"
            )
        if is_store and path is not None and not path.exists():
            raise NotFoundError(f"{path}: the folder of the store {name!r} is not there")
        if path is not None and not path.exists() and "/" not in name and ":" not in name:
            raise NotFoundError(f"{name}: is neither a file nor a store; see: swathe store list")
        objects_to_read = _largest_objects(name) if is_store else [name]
    writable = f"{folder}/" if folder is not None else None
    if is_store and path is None and stores.is_writable(f"{name}:"):
        writable = f"{name}:"
    label = _swathe.redact_url(name)
    return ProbeTarget(
        root_name, label, tuple(objects_to_read), stores, folder, writable, are_listed
    )


@contextmanager
def refusing_folders(place: ProbeTarget) -> Iterator[None]:
    """Raise an error that names the folder if a measurement fails because an object is one.

    Raises:
        NotFoundError: If an object is a folder.
    """
    try:
        yield
    except (NotFoundError, SourceError) as error:
        for name in place.objects:
            if is_folder(place.stores or native_stores(), name):
                raise NotFoundError(
                    f"{_swathe.redact_url(name)}: expected an object, found a folder; name an "
                    "object in it, or add it as a store and probe that: swathe store add NAME URL"
                ) from error
        raise


def _largest_objects(name: str) -> list[str]:
    """Return the largest of the first objects that a store lists."""
    with Catalog.open() as catalog:
        store = catalog.store(name)
    try:
        entries = [
            each
            for each in islice(list_objects(store, "", None), MOST_ENTRIES)
            if isinstance(each, ListedObject) and (each.size is None or each.size >= KIB)
        ]
    except (AccessError, DatasetError, NotFoundError, SourceError) as error:
        raise NotFoundError(f"{name}: cannot be listed ({error}); {NAME_ONE}") from error
    if not entries:
        raise NotFoundError(f"{name}: lists no object of at least 1 KiB; {NAME_ONE}")
    entries.sort(key=lambda each: each.size or 0, reverse=True)
    return [f"{name}:{each.path}" for each in entries[:OBJECTS]]


def _object(name: str, is_store: bool, folder: Path | None, text: str) -> str:
    """Return the full name of an object."""
    if "://" in text or text.startswith("/"):
        return text
    if is_store:
        return text if text.startswith(f"{name}:") else f"{name}:{text}"
    return text if folder is None else str(folder / text)


def _root(root: str) -> str:
    return root_url(LOCAL_ROOT if root == "file://" else root)
