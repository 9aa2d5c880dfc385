"""The storages that the catalogue knows, as the engine takes them."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from swathe import _swathe

NAMED = re.compile(r"[A-Za-z][A-Za-z0-9_.-]+:")
RELOAD_S = 5.0
"""A catalogue on a server is asked again after this time; a file, when it has changed."""

_loaded: tuple[object, _swathe.Stores | None] | None = None


def stores_for(objects: Iterable[str]) -> _swathe.Stores | None:
    """Give the storages of the catalogue, where one of these objects may lie in them.

    `None` for plain paths only: they need no catalogue, and opening it costs more than a cut.

    Raises:
        CatalogError: where there is a catalogue that cannot be read.
    """
    if not any(NAMED.match(name) for name in objects):
        return None
    return known_stores()


def is_named(object: str) -> bool:
    """Tell whether this is `NAME:path` of a store of the catalogue."""
    stores = stores_for([object])
    return stores is not None and stores.locate(object)[1] != object


def known_stores() -> _swathe.Stores | None:
    """Give all storages of the catalogue; `None` where there is no catalogue."""
    global _loaded
    from swathe.catalog import default_url

    url = default_url()
    state = _state(url)
    if state is None:
        return None
    if _loaded is None or _loaded[0] != state:
        described = json.dumps(_described(url))
        # Loading may have touched the files.
        _loaded = _state(url), _swathe.Stores(described)
    return _loaded[1]


def _described(url: str) -> list[dict[str, Any]]:
    from swathe.catalog import Catalog, this_host

    host = this_host()
    with Catalog.open(url) as catalog:
        costs = {kept.root: kept.costs for kept in catalog.profiles() if kept.host == host}
        stores = [
            {"name": store.name, "root": _plain(store.url), "options": store.options}
            | {"costs": costs.pop(store.url, None)}
            for store in catalog.stores()
        ]
    unnamed = [
        {"name": "", "root": _plain(root), "options": {}, "costs": of} for root, of in costs.items()
    ]
    return stores + unnamed


def _plain(root: str) -> str:
    return unquote(root) if root.startswith("file://") else root


def _state(url: str) -> tuple[object, ...] | None:
    """Give what changes when the catalogue does; `None` where there is none."""
    prefix, _, path = url.partition(":///")
    if not prefix.startswith("sqlite"):
        return url, time.monotonic() // RELOAD_S
    found = []
    for name in (path, f"{path}-wal"):
        try:
            stat = os.stat(name)
        except OSError:
            if name == path:
                return None
            continue
        found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return url, *found
