"""Stores of the catalogue, in the form the engine takes."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import unquote

from swathe import _swathe
from swathe.catalog.catalogue_file import StoresAndCosts, read_local_costs, read_stores
from swathe.core.errors import CatalogError
from swathe.core.host import this_host
from swathe.core.paths import default_url
from swathe.core.store_schemes import CACHE

if TYPE_CHECKING:
    from swathe.catalog import Store
    from swathe.catalog.cache_settings import CacheSettings

STORE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]+:")
LOCAL_ROOT = "file:///"
LOADS = 3
"""Times that a catalogue is loaded while others write to it, at most; then also at the next use."""
Content = TypeVar("Content")
"""Key in the catalogue of local files outside all named stores."""
END = r"(?![\w/.-])"
"""Endings of a root that end its name: no longer name begins with it."""
RELOAD_S = 5.0
"""Interval at which a catalogue on a server is read again; a file, when it has changed."""


@dataclass(frozen=True)
class StoreSnapshot:
    """A catalogue's stores and their costs, for a process without a catalogue.

    Attributes:
        host: machine of the catalogue; its measurements are used for unmeasured hosts.
        stores: name, root and options of each store; of a striped store also the stores below, as
            `over`. There are no credentials, since a catalogue holds none.
        costs: measured costs by host and key of the store.
        bounds: logarithms of the factors by which 80 of 100 jobs are at most faster and slower, by
            host and key of the store.
        compute: costs of computing by host.
    """

    host: str
    stores: list[dict[str, Any]]
    costs: dict[str, dict[str, Any]]
    bounds: dict[str, dict[str, tuple[float, float]]]
    compute: dict[str, Any]

    def seen_from(self, host: str) -> tuple[dict[str, Any], dict[str, tuple[float, float]], Any]:
        """Return costs, bounds and computing costs of a host, or those of `self.host`."""
        both = (self.host, host)
        costs = {root: of for each in both for root, of in self.costs.get(each, {}).items()}
        bounds = {root: of for each in both for root, of in self.bounds.get(each, {}).items()}
        return costs, bounds, self.compute.get(host, self.compute.get(self.host))


@dataclass(frozen=True)
class _CatalogContent:
    """Content of a catalogue, and the state of the catalogue when it was read.

    `names` holds the names of stores by root; `roots` is a pattern that finds roots in a text;
    `tapes` has the stores whose objects are staged, `caches` those in front of others, by name.
    """

    state: object
    stores: _swathe.Stores
    names: dict[str, str]
    roots: re.Pattern[str]
    bounds: dict[str, tuple[float, float]]
    compute: str | None
    tapes: dict[str, Store]
    caches: dict[str, CacheSettings]

    @property
    def has_tapes(self) -> bool:
        """Whether there are stores whose objects are staged."""
        return bool(self.tapes)


class TapeObject(NamedTuple):
    """An object in a store whose objects are staged: name of the store, and path in it."""

    store: str
    path: str

    @property
    def name(self) -> str:
        """The object as `NAME:path`."""
        return f"{self.store}:{self.path}"


@dataclass(frozen=True)
class _LocalCosts:
    """Measurements of local files and of this host, and the state of the catalogue with them.

    `has_tapes` says whether there are stores whose objects are staged.
    """

    state: object
    stores: _swathe.Stores | None
    compute: str | None
    has_tapes: bool


_catalogue: _CatalogContent | None = None
_snapshot_content: _CatalogContent | None = None
_local: _LocalCosts | None = None


def stores_for(objects: Iterable[str]) -> _swathe.Stores | None:
    """Return the stores of the catalogue if one of these objects may be in them.

    Plain paths need the catalogue only if local files or this host were measured. Opening the
    whole catalogue costs more than a cut, so for plain paths only these measurements are read.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    if any(STORE_NAME.match(name) for name in objects):
        return known_stores()
    local = _local_costs()
    return local.stores if local else None


def is_named(path: str) -> bool:
    """Check whether a path is `NAME:path` of a store of the catalogue."""
    stores = stores_for([path])
    return stores is not None and stores.locate(path)[1] != path


def tape_stores() -> dict[str, Store]:
    """Return the stores whose objects are staged, by name.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    content = _current_catalogue()
    return content.tapes if content else {}


def tape_objects(objects: Iterable[str]) -> dict[str, TapeObject]:
    """Return those of some objects that are in stores whose objects are staged.

    Args:
        objects: names, paths or URLs; paths and URLs below the root of such a store belong to it.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    names = [name for name in dict.fromkeys(objects) if name]
    if not names or not (any(map(STORE_NAME.match, names)) or _has_tapes()):
        return {}
    content = _current_catalogue()
    if content is None or not content.tapes:
        return {}
    places = {name: _tape_object(name, content) for name in names}
    return {name: place for name, place in places.items() if place is not None}


def _tape_object(name: str, content: _CatalogContent) -> TapeObject | None:
    """Return the store and the path of an object, if its store is one whose objects are staged."""
    store, colon, path = name.partition(":")
    if colon and store in content.tapes:
        return TapeObject(store, path)
    if STORE_NAME.match(name) and "://" not in name:
        return None
    plain = name if "://" in name else os.path.abspath(name)
    root = content.roots.match(plain)
    if root is None or content.names[root[0]] not in content.tapes:
        return None
    path = plain[root.end() :]
    return TapeObject(content.names[root[0]], path) if path else None


def tape_sources(objects: Iterable[str]) -> dict[str, TapeObject]:
    """Return the objects of staged stores that some objects are, or are near copies of.

    Args:
        objects: names, paths or URLs, as for `tape_objects`, and names in caches of such stores.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    names = [name for name in dict.fromkeys(objects) if name]
    caches = caches_of(names)
    sources = {}
    for name in names:
        store, _, path = name.partition(":")
        sources[name] = caches[store].source_name(path) if store in caches else name
    places = tape_objects(sources.values())
    return {name: places[source] for name, source in sources.items() if source in places}


def caches_of(objects: Iterable[str]) -> dict[str, CacheSettings]:
    """Return the caches that some objects, `NAME:path`, are in, by name.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    names = {name.partition(":")[0] for name in objects if STORE_NAME.match(name)}
    content = _current_catalogue() if names else None
    if content is None:
        return {}
    return {name: cache for name, cache in content.caches.items() if name in names}


def has_catalogue() -> bool:
    """Check whether this process uses a catalogue, not stores that another process has sent it."""
    return _snapshot_content is None and catalogue_state(default_url()) is not None


def known_stores() -> _swathe.Stores | None:
    """Return all stores of the catalogue; `None` if there is no catalogue."""
    content = _current_catalogue()
    return content.stores if content else None


def native_stores() -> _swathe.Stores:
    """Return all stores of the catalogue in the engine's form; none if there is no catalogue."""
    return known_stores() or _swathe.Stores("[]")


def local_paths(objects: Iterable[str]) -> list[str]:
    """Return the paths of the objects that are files on this machine.

    Raises:
        CatalogError: If a catalogue exists but cannot be read.
    """
    names = list(objects)
    stores = stores_for(names) or _swathe.Stores("[]")
    paths = (stores.local_path(name) for name in names)
    return [str(path) for path in paths if path is not None]


def with_store_names(text: str) -> str:
    """Return a text in which paths and URLs of stores are replaced by `NAME:path`."""
    try:
        content = _current_catalogue()
    except CatalogError:
        content = _catalogue  # the text may be about the missing catalogue
    if content is None or not content.names:
        return text
    return content.roots.sub(lambda match: f"{content.names[match[0]]}:", text)


def to_native(stores: Iterable[Store]) -> _swathe.Stores:
    """Return only these stores, in the engine's form, with assumed costs."""
    return _swathe.Stores(json.dumps([_to_engine(_description(store)) for store in stores]))


def _description(store: Store) -> dict[str, Any]:
    """Return name, root and options of a store, and the stores below a striped one."""
    description = {"name": store.name, "root": store.url, "options": store.options}
    if not store.over:
        return description
    over = [{"prefix": each.prefix, "store": _description(each.store)} for each in store.over]
    return {**description, "over": over}


def kind_of(description: Mapping[str, Any]) -> _swathe.StoreKind:
    """Return the kind of a store of a snapshot."""
    over = [each["store"]["root"] for each in description.get("over", ())]
    return _swathe.StoreKind(description["root"], over)


def _to_engine(
    description: Mapping[str, Any], costs: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the description of a store with roots as the engine writes them, and its costs."""
    plain = {**description, "root": _plain(description["root"])}
    if over := description.get("over"):
        plain["over"] = [{**each, "store": _to_engine(each["store"], costs)} for each in over]
    if costs and (key := _swathe.store_key(plain["root"], plain["options"])) in costs:
        plain["costs"] = costs[key]
    return plain


def stores_json() -> str:
    """Return the stores of the catalogue as JSON, as `libswathe` reads them (`$SWATHE_STORES`).

    Costs are those that were measured from this host. The catalogue has no credentials.

    Raises:
        CatalogError: If there is no catalogue, or it cannot be read.
    """
    snapshot = storages()
    costs, _, _ = snapshot.seen_from(this_host())
    measurements = {_plain(root): of for root, of in costs.items()}
    entries = [_to_engine(store, measurements) for store in snapshot.stores]
    return json.dumps(entries, indent=1)


def bounds_of(root: str) -> tuple[float, float]:
    """Return logarithms of the factors by which 80 of 100 jobs are at most faster and slower."""
    content = _current_catalogue()
    return content.bounds.get(root, (0.0, 0.0)) if content else (0.0, 0.0)


def compute_costs() -> str | None:
    """Return the computing costs of this host as JSON; `None` if they were not measured."""
    local = _local_costs() if _is_file(default_url()) else _current_catalogue()
    return local.compute if local else None


def storages() -> StoreSnapshot:
    """Return the stores and costs of the catalogue, as measured on all hosts.

    Raises:
        CatalogError: If there is no catalogue, or it cannot be read.
    """
    content = _stores_and_costs(default_url())
    costs: dict[str, dict[str, Any]] = {}
    bounds: dict[str, dict[str, tuple[float, float]]] = {}
    for root, host, costs_here, spread in content.profiles:
        costs.setdefault(host, {})[root] = costs_here
        bounds.setdefault(host, {})[root] = _bounds(spread)
    stores = [_description(store) for store in content.stores]
    hosts = {this_host(), *costs}
    compute = {host: of for host, of in content.compute.items() if host in hosts}
    return StoreSnapshot(this_host(), stores, costs, bounds, compute)


def _stores_and_costs(url: str) -> StoresAndCosts:
    """Return what a catalogue has; of a file, without SQLAlchemy where possible."""
    content = read_stores(_file_path(url)) if _is_file(url) else None
    if content is not None:
        return content
    from swathe.catalog import Catalog

    with Catalog.open(url) as catalog:
        profiles = [(of.root, of.host, of.costs, of.spread) for of in catalog.profiles()]
        hosts = {this_host(), *(host for _, host, _, _ in profiles)}
        computes = {host: catalog.compute(host) for host in hosts}
        compute = {host: costs for host, costs in computes.items() if costs is not None}
        return StoresAndCosts(catalog.stores(), profiles, compute)


def _bounds(spread: Mapping[str, Any]) -> tuple[float, float]:
    """Return how far jobs may be off: the scatter of reads, and limits that no read reached."""
    faster, slower = (
        math.hypot(spread.get("model", 0), spread.get(f"unseen_{name}", 0))
        for name in ("faster", "slower")
    )
    return faster, slower


def use_snapshot(snapshot: StoreSnapshot) -> None:
    """Use these stores from now on in place of those of a catalogue."""
    global _snapshot_content
    _snapshot_content = _of(snapshot, this_host(), None)


def _current_catalogue() -> _CatalogContent | None:
    global _catalogue
    if _snapshot_content is not None:
        return _snapshot_content
    url = default_url()
    state = catalogue_state(url)
    if state is None:
        return None
    if _catalogue is None or _catalogue.state != state:
        _catalogue = _load(url)
    return _catalogue


def _load(url: str) -> _CatalogContent:
    snapshot, state = _with_state(url, storages)
    return _of(snapshot, this_host(), state)


def _with_state(url: str, load: Callable[[], Content]) -> tuple[Content, object]:
    """Return what is loaded from a catalogue, with a state that is not newer.

    Loading may change the files itself, once: then it is loaded again, as others may have written
    to them meanwhile.
    """
    for _ in range(LOADS):
        state, content = catalogue_state(url), load()
        if catalogue_state(url) == state:
            break
    return content, state


def _of(snapshot: StoreSnapshot, host: str, state: object) -> _CatalogContent:
    """Return stores in the engine's form, as seen from a host."""
    costs, bounds, compute = snapshot.seen_from(host)
    descriptions = [_to_engine(store) for store in snapshot.stores]
    measurements = {_plain(root): of for root, of in costs.items()}
    names: dict[str, str] = {}
    for plain_root, name in _named_roots(snapshot.stores):
        root = plain_root.removeprefix("file://")
        if root:  # an empty root would match every slash
            names.setdefault(f"{root}/", name)
            names.setdefault(root, name)
    compute_json = None if compute is None else json.dumps(compute)
    plain_bounds = {_plain(root): of for root, of in bounds.items()}
    stores = _swathe.Stores(json.dumps(descriptions), json.dumps(measurements), compute_json)
    tapes, caches = _tape_stores(snapshot.stores), _caches(snapshot.stores)
    roots = _any_of(names)
    return _CatalogContent(state, stores, names, roots, plain_bounds, compute_json, tapes, caches)


def _tape_stores(descriptions: Sequence[Mapping[str, Any]]) -> dict[str, Store]:
    """Return the stores whose objects are staged, by name."""
    tapes = [each for each in descriptions if "staging" in each["options"]]
    if not tapes:
        return {}
    from swathe.catalog.store_settings import Store

    return {
        each["name"]: Store(each["name"], each["root"], "tape", dict(each["options"]))
        for each in tapes
    }


def _caches(descriptions: Sequence[Mapping[str, Any]]) -> dict[str, CacheSettings]:
    """Return the settings of caches, by name."""
    caches = [each for each in descriptions if each["root"].startswith(f"{CACHE}://")]
    if not caches:
        return {}
    from swathe.catalog.cache_settings import CacheSettings

    return {each["name"]: CacheSettings.of(each["name"], each["options"]) for each in caches}


def _named_roots(stores: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the root of each store with its name; last of servers known by a striped one only."""
    for store in stores:
        yield _plain(store["root"]), store["name"]
    for store in stores:
        for server in store.get("over", ()):
            yield _plain(server["store"]["root"]), store["name"]


def _any_of(roots: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds roots at the start of a path, innermost first."""
    inner_first = sorted(roots, key=lambda root: -len(root))
    ways = (re.escape(root) + ("" if root.endswith("/") else END) for root in inner_first)
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(ways)})")


def _plain(root: str) -> str:
    """Return a root as the engine writes it: files not percent-encoded, all files as file://."""
    if root == LOCAL_ROOT:
        return "file://"
    return unquote(root) if _swathe.StoreKind(root).is_local else root


def _local_costs() -> _LocalCosts | _CatalogContent | None:
    """Return the measurements of local files and of this host; `None` if there is no catalogue.

    Only a catalogue in a file is read.
    """
    global _local
    if _snapshot_content is not None:
        return _snapshot_content
    url = default_url()
    state = catalogue_state(url)
    if state is None or not _is_file(url):
        return None
    if _local is None or _local.state != state:
        content, seen_state = _with_state(
            url, lambda: read_local_costs(_file_path(url), LOCAL_ROOT, this_host())
        )
        costs, compute, has_tapes = content
        stores = None
        if costs is not None or compute is not None:
            costs_by_root = {} if costs is None else {_plain(LOCAL_ROOT): json.loads(costs)}
            stores = _swathe.Stores("[]", json.dumps(costs_by_root), compute)
        _local = _LocalCosts(seen_state, stores, compute, has_tapes)
    return _local


def _has_tapes() -> bool:
    """Check whether the catalogue has stores whose objects are staged, without reading it whole."""
    local = _local_costs() if _is_file(default_url()) else _current_catalogue()
    return local is not None and local.has_tapes


def _is_file(url: str) -> bool:
    """Check whether a catalogue is a file."""
    return url.startswith("sqlite")


def _file_path(url: str) -> str:
    """Return the path of a catalogue in a file."""
    return url.partition(":///")[2]


def catalogue_state(url: str) -> tuple[object, ...] | None:
    """Return a value that changes when the catalogue does; `None` if there is no catalogue."""
    if not _is_file(url):
        return url, time.monotonic() // RELOAD_S
    path, marks = _file_path(url), []
    for name in (path, f"{path}-wal"):
        try:
            stat = os.stat(name)
        except OSError:
            if name == path:
                return None
            continue
        # Whoever opens the file makes an empty one beside it, which says nothing.
        if name == path or stat.st_size:
            marks.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return url, *marks
