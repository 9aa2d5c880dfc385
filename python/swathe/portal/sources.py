"""Files that users may read: those of registered stores and of allowed servers.

The engine reads any file it is given. So names that it might understand differently are refused
here: `..`, links that lead out of a folder, URLs that parsers read differently. The engine checks
links again when it opens the file. Allowed servers may redirect only to each other
(`_swathe.confine`).
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from swathe.core.errors import AccessError
from swathe.stores.folders import folders_of, is_within

if TYPE_CHECKING:
    from swathe.catalog import Catalog, Store

PLAIN_URL = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?(/[^\s\\]*)?", re.I)
DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:[/?#]|\Z)", re.IGNORECASE)
PORTS = {"http": 80, "https": 443}
FRESH_S = 1.0
"""Time for which the list of stores is cached."""
LONGEST = 4000


class Sources:
    """Check of the files that may be read."""

    def __init__(self, catalog: Catalog, hosts: Collection[str] = ()) -> None:
        """Set the catalogue of stores, and the allowed servers as `host` or `host:port`."""
        self._catalog = catalog
        self._hosts = frozenset(hosts)
        self._lock = threading.Lock()
        self._stores: dict[str, Store] = {}
        self._asked_at = -FRESH_S

    def check(self, file: str) -> None:
        """Check that a file is `STORE:path` or a URL of an allowed server.

        Raises:
            AccessError: If the file is neither.
        """
        if len(file) > LONGEST or not file.isprintable():
            raise AccessError(
                f"{file[:100]!r}: expected STORE:path of at most {LONGEST} printable characters"
            )
        if "://" in file:
            self._check_url(file)
            return
        name, colon, path = file.partition(":")
        store = self._store(name) if colon else None
        if store is None:
            what = f"no store {name[:100]!r}" if colon else "a path without a store"
            raise AccessError(
                f"{file[:200]}: expected STORE:path with a registered store, found {what}"
            )
        parts = path.split("/")
        is_root = all(part in ("", ".") for part in parts)
        if ".." in parts or path.startswith("//") or is_root:
            raise AccessError(f"{file[:200]}: expected a path in the store {name}")
        if store.kind.local_path is not None:
            # A missing file is reported later.
            folders = folders_of(store.url, store.options)
            if not is_within(os.path.join(folders[0], path.lstrip("/")), folders):
                raise AccessError(f"{file[:200]}: leads out of its store")

    def _check_url(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        if scheme != scheme.lower() or DOTS.search(rest):
            raise AccessError(
                f"{scheme[:20]}://...: expected a URL that begins with http:// or https:// in "
                "lower "
                "case, and has no . or .. between slashes of its path, also written as %2e"
            )
        plain = PLAIN_URL.fullmatch(url)
        if plain is None or not url.isascii():
            raise AccessError(
                f"{url.partition('://')[0][:20]}://...: expected http(s)://host/path, without a "
                "user "
                "and blanks; other files are read from stores, as STORE:path"
            )
        host, usual = plain[2].lower(), PORTS[plain[1].lower()]
        port = int(plain[3][1:]) if plain[3] else usual
        names = {f"{host}:{port}"} | ({host} if port == usual else set())
        if not names & self._hosts:
            raise AccessError(f"{host}:{port}: files of this server may not be read by URL here")

    def _store(self, name: str) -> Store | None:
        with self._lock:
            if time.monotonic() - self._asked_at > FRESH_S:
                self._stores = {store.name: store for store in self._catalog.stores()}
                self._asked_at = time.monotonic()
            return self._stores.get(name)
