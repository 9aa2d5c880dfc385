"""The storages that the catalogue knows, as the engine takes them."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from swathe import _swathe
from swathe.catalog.local_costs import read_local_costs
from swathe.core.errors import CatalogError
from swathe.core.host import this_host
from swathe.core.paths import default_url

if TYPE_CHECKING:
    from swathe.catalog import Store

NAMED = re.compile(r"[A-Za-z][A-Za-z0-9_.-]+:")
LOCAL_ROOT = "file:///"
"""In the catalogue, that of local files that lie in no named store."""
END = r"(?![\w/.-])"
"""Where a root ends that is meant itself: no longer name begins with it."""
RELOAD_S = 5.0
"""A catalogue on a server is asked again after this time; a file, when it has changed."""


@dataclass(frozen=True)
class StoreSnapshot:
    """What a catalogue knows of storages, to be taken over by a process that has none.

    Attributes:
        host: the machine it comes from; what was measured there stands in for others.
        stores: name, root and options of each; no credentials, for a catalogue has none.
        costs: by host and key of the store.
        spreads: by host and key of the store.
        compute: by host, what computing costs there.
    """

    host: str
    stores: list[dict[str, Any]]
    costs: dict[str, dict[str, Any]]
    spreads: dict[str, dict[str, float]]
    compute: dict[str, Any]

    def seen_from(self, host: str) -> tuple[dict[str, Any], dict[str, float], Any]:
        """Give costs, spreads and costs of computing of a host, or what stands in for them."""
        both = (self.host, host)
        costs = {root: of for each in both for root, of in self.costs.get(each, {}).items()}
        spreads = {root: of for each in both for root, of in self.spreads.get(each, {}).items()}
        return costs, spreads, self.compute.get(host, self.compute.get(self.host))


@dataclass(frozen=True)
class _Known:
    """What was read of a catalogue, and what state it was in.

    `names` are those of stores by their roots, which `roots` finds in a text.
    """

    state: object
    stores: _swathe.Stores
    names: dict[str, str]
    roots: re.Pattern[str]
    spreads: dict[str, float]
    compute: str | None


_loaded: _Known | None = None
_adopted: _Known | None = None
_local: tuple[object, _swathe.Stores | None] | None = None


def stores_for(objects: Iterable[str]) -> _swathe.Stores | None:
    """Give the storages of the catalogue, where one of these objects may lie in them.

    Plain paths need none, but where local files or this host were measured: opening the catalogue
    as a whole costs more than a cut, so for them a look is taken at that alone.

    Raises:
        CatalogError: where there is a catalogue that cannot be read.
    """
    if any(NAMED.match(name) for name in objects):
        return known_stores()
    return _local_files()


def is_named(path: str) -> bool:
    """Tell whether this is `NAME:path` of a store of the catalogue."""
    stores = stores_for([path])
    return stores is not None and stores.locate(path)[1] != path


def known_stores() -> _swathe.Stores | None:
    """Give all storages of the catalogue; `None` where there is no catalogue."""
    known = _known()
    return known.stores if known else None


def local_paths(objects: Iterable[str]) -> list[str]:
    """Return the paths of those objects that are files of this machine.

    Raises:
        CatalogError: if there is a catalogue that cannot be read.
    """
    names = list(objects)
    stores = stores_for(names) or _swathe.Stores("[]")
    paths = (stores.local_path(name) for name in names)
    return [str(path) for path in paths if path is not None]


def with_store_names(text: str) -> str:
    """Give a text with files of stores called `NAME:path`, not by where they lie."""
    try:
        known = _known()
    except CatalogError:
        known = _loaded  # that it is away may be what the text tells
    if known is None or not known.names:
        return text
    return known.roots.sub(lambda found: f"{known.names[found[0]]}:", text)


def to_native(stores: Iterable[Store]) -> _swathe.Stores:
    """Give these stores and no others as the engine takes them, with costs taken for granted."""
    described = [
        {"name": store.name, "root": _plain(store.url), "options": store.options}
        for store in stores
    ]
    return _swathe.Stores(json.dumps(described))


def spread_of(root: str) -> float:
    """Give half the relative range of the middle 80 % of times measured over times predicted."""
    known = _known()
    return known.spreads.get(root, 0.0) if known else 0.0


def compute_costs() -> str | None:
    """Give what computing costs on this host, as JSON; `None` where it was not measured."""
    known = _known()
    return known.compute if known else None


def storages() -> StoreSnapshot:
    """Give what the catalogue knows of storages, as seen from all hosts.

    Raises:
        CatalogError: where there is none, or it cannot be read.
    """
    from swathe.catalog import Catalog

    costs: dict[str, dict[str, Any]] = {}
    spreads: dict[str, dict[str, float]] = {}
    with Catalog.open(default_url()) as catalog:
        for kept in catalog.profiles():
            costs.setdefault(kept.host, {})[kept.root] = kept.costs
            spreads.setdefault(kept.host, {})[kept.root] = float(kept.spread.get("model", 0))
        stores = [
            {"name": store.name, "root": store.url, "options": store.options}
            for store in catalog.stores()
        ]
        hosts = {this_host(), *costs}
        compute = {host: found for host in hosts if (found := catalog.compute(host)) is not None}
    return StoreSnapshot(this_host(), stores, costs, spreads, compute)


def use_snapshot(found: StoreSnapshot) -> None:
    """Use these storages from now on, whatever catalogue this process may have."""
    global _adopted
    _adopted = _of(found, this_host(), None)


def _known() -> _Known | None:
    global _loaded
    if _adopted is not None:
        return _adopted
    url = default_url()
    state = _state(url)
    if state is None:
        return None
    if _loaded is None or _loaded.state != state:
        _loaded = _load(url)
    return _loaded


def _load(url: str) -> _Known:
    # Loading may touch the files, so their state is taken after it.
    found = storages()
    return _of(found, this_host(), _state(url))


def _of(found: StoreSnapshot, host: str, state: object) -> _Known:
    """Give storages as the engine takes them, as seen from a host."""
    costs, spreads, compute = found.seen_from(host)
    described = [{**store, "root": _plain(store["root"])} for store in found.stores]
    measured = {_plain(root): of for root, of in costs.items()}
    names: dict[str, str] = {}
    for store in found.stores:
        root = _plain(store["root"]).removeprefix("file://")
        if root:  # else every slash would be one
            names.setdefault(f"{root}/", store["name"])
            names.setdefault(root, store["name"])
    told = None if compute is None else json.dumps(compute)
    seen = {_plain(root): spread for root, spread in spreads.items()}
    stores = _swathe.Stores(json.dumps(described), json.dumps(measured), told)
    return _Known(state, stores, names, _any_of(names), seen, told)


def _any_of(roots: Iterable[str]) -> re.Pattern[str]:
    """Give what finds roots where they begin a path, the innermost first."""
    ordered = sorted(roots, key=lambda root: -len(root))
    ways = (re.escape(root) + ("" if root.endswith("/") else END) for root in ordered)
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(ways)})")


def _plain(root: str) -> str:
    """Give a root as the engine has it: of files not percent-encoded, that of all as file://."""
    if root == LOCAL_ROOT:
        return "file://"
    return unquote(root) if root.startswith("file://") else root


def _local_files() -> _swathe.Stores | None:
    """Give what was measured of files in no store and of this host, if anything was.

    Of a catalogue in a file only.
    """
    global _local
    if _adopted is not None:
        return _adopted.stores
    url = default_url()
    state = _state(url)
    if state is None or not url.startswith("sqlite"):
        return None
    if _local is None or _local[0] != state:
        costs, compute = read_local_costs(url.partition(":///")[2], LOCAL_ROOT, this_host())
        stores = None
        if costs is not None or compute is not None:
            measured = {} if costs is None else {_plain(LOCAL_ROOT): json.loads(costs)}
            stores = _swathe.Stores("[]", json.dumps(measured), compute)
        # Looking may have touched the files.
        _local = _state(url), stores
    return _local[1]


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
