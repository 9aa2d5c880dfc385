"""Folders that hold the files of a store: its root, and those its links may lead to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from swathe.catalog import Store


def folders_of(url: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the root of a store and the folders of its option `roots`.

    Args:
        url: `file://...`, percent-encoded.
        options: options of the store.
    """
    root = unquote(url.removeprefix("file://"), errors="surrogateescape") or "/"
    return (root, *(folder for folder in options.get("roots", "").split(":") if folder))


def store_folders(stores: Iterable[Store]) -> dict[str, str]:
    """Return the folders of all local stores, also below striped ones, and whose each is."""
    all_stores = list(stores)
    # A store's own name counts, also where a striped store is over it.
    owners = [(server.store, store.name) for store in all_stores for server in store.over]
    owners += [(store, store.name) for store in all_stores]
    return {
        folder: f"the store {name!r}"
        for store, name in owners
        if store.kind.local_path is not None
        for folder in folders_of(store.url, store.options)
    }


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Check whether a path is in one of these folders after following all links.

    The answer holds for now only. The engine opens files of stores in a way that cannot be changed
    meanwhile.
    """
    real = _real(path)
    roots = (os.path.realpath(folder) for folder in folders)
    return any(os.path.commonpath([root, real]) == root for root in roots)


def _real(path: str) -> str:
    """Return a path with all links followed.

    Parts after the first missing one are not looked up: untrusted names may have a thousand parts,
    and lists may have a hundred thousand names.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not path.startswith("/") or ".." in parts:
        return os.path.realpath(path)
    prefix = ""
    for at, part in enumerate(parts, 1):
        prefix += f"/{part}"
        if not os.path.lexists(prefix):
            return os.path.join(os.path.realpath(prefix), *parts[at:])
    return os.path.realpath(path)
