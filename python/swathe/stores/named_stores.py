"""Add, remove, list and show the stores of the catalogue: `swathe.stores`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swathe.core.argument_checks import check_text, check_texts

if TYPE_CHECKING:
    import builtins
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from swathe.catalog import Catalog, ProfileRecord, Store
    from swathe.catalog.cache_settings import WriteMode
    from swathe.catalog.records.caches import CacheUsage

LOCAL = ("/", "./", "../", "~")
"""Beginnings of servers of a striped store that are folders."""


@dataclass(frozen=True)
class MeasuredStore:
    """A store, and its costs from this machine.

    Attributes:
        store: the store.
        host: name of this machine.
        probed_at: time of the last probe from here, UTC; `None` if there was none.
        profile: measured costs; `None` if there are none.
        usage: what a cache has; `None` for other stores.
    """

    store: Store
    host: str
    probed_at: datetime | None
    profile: ProfileRecord | None
    usage: CacheUsage | None = None


def add(
    name: str,
    url: str,
    *,
    tier: str | None = None,
    options: Mapping[str, str] | None = None,
    over: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    parity: int | None = None,
    block_bytes: int | None = None,
    of: str | None = None,
    limit_bytes: int | None = None,
    write: WriteMode | None = None,
    check_s: float | None = None,
) -> Store:
    """Add a store to the catalogue. Its objects are then `NAME:path` everywhere.

    Credentials are not stored: they stay in the environment.

    Example:
        >>> swathe.stores.add("survey", "https://archive.example/dr17")
        >>> swathe.cut("survey:frame-000001.fit.gz", box=(0, 0, 100, 100))
        >>> swathe.stores.add("wide", "striped:", over=["disk1", "lake:parts"], parity=1)
        >>> swathe.stores.add("hot", "cache:", of="tape", over="wide", limit_bytes=2 * 10**12)

    Args:
        name: at least two of letters, digits, `_`, `.` and `-`.
        url: root of the store: a folder, or `file`, `http(s)`, `s3`, `gs`, `az`, `root(s)`,
            `dav(s)://...`; `db:sqlite:///...` or `db:postgresql://user@host/name`; `striped:` for a
            striped store; `cache:` for a cache in front of another store; or of a scheme that a
            package adds. A relative folder is taken from the working folder.
        tier: `local`, `lan`, `wan` or `tape`; by default `local` for folders and SQLite, `lan` for
            others, and for a striped store the largest of those of its servers.
        options: options of the store, such as `endpoint`, `region`, `probe_object`; see
            `swathe store add --help`. Kinds that packages add have options of their own.
        over: servers of a striped store: `NAME` or `NAME:prefix` of a store, a URL or a folder. A
            web server, `http(s)://`, is taken for a WebDAV server. Of a cache: where it keeps
            objects, `NAME` or `NAME:prefix` of a store, or a folder.
        parity: number of servers of a striped store that may be lost; by default 1. With 0 the
            loss of one server is the loss of all objects.
        block_bytes: size of a block of a striped store, bytes; by default 1 MiB.
        of: the store whose objects a cache keeps, `NAME` or `NAME:prefix`.
        limit_bytes: bytes that a cache keeps at most.
        write: whether an object is in the store that a cache is of when its writing ends
            (`through`, by default), or is moved there later (`back`).
        check_s: seconds for which a cache takes an object to be unchanged after it looked at it; by
            default 0.

    Returns:
        The store as it is recorded, with its URL in standard form.

    Raises:
        StoreSettingsError: If a setting is invalid or looks like a credential, or the name is
            taken.
        NoSuchStoreError: If a striped store or a cache is over a store that does not exist.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import Catalog
    from swathe.catalog.cache_settings import CACHE_URL
    from swathe.catalog.store_urls import STRIPE_URL

    check_text("name", name)
    check_text("url", url)
    places = check_texts("over", [os.fspath(each) for each in _as_list(over)])
    is_over = url.lower() in (STRIPE_URL, CACHE_URL)
    root = url if "://" in url or is_over else _absolute(url)
    with Catalog.open() as catalog:
        return catalog.add_store(
            name,
            root,
            tier,
            options,
            over=[_absolute(each) if each.startswith(LOCAL) else each for each in places],
            parity=parity,
            block_bytes=block_bytes,
            of=of,
            limit_bytes=limit_bytes,
            write=write,
            check_s=check_s,
        )


def _as_list(
    over: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> Sequence[str | os.PathLike[str]]:
    return [over] if isinstance(over, str | os.PathLike) else over


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def remove(name: str) -> None:
    """Remove a store from the catalogue. Its files and measured costs are kept.

    Example:
        >>> swathe.stores.remove("survey")

    Raises:
        NoSuchStoreError: If there is no such store.
        StoreSettingsError: If a dataset is in it, a striped store or a cache is over it, or it is a
            cache that has objects.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        catalog.remove_store(check_text("name", name))


def list() -> builtins.list[Store]:
    """Return all stores of the catalogue, by name.

    Example:
        >>> [store.name for store in swathe.stores.list()]
        ['survey']

    Raises:
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        return catalog.stores()


def show(name: str) -> MeasuredStore:
    """Return a store with its costs measured from this machine.

    A path or URL, as `probe` takes it, is shown as the store that its probe measured: all local
    files, or the server.

    Example:
        >>> swathe.stores.show("survey").profile.costs["request"][0]  # bytes, seconds
        [4096, 0.021]

    Raises:
        NoSuchStoreError: If there is no such store.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import Catalog, this_host
    from swathe.catalog.cache_settings import is_cache

    host = this_host()
    with Catalog.open() as catalog:
        store = _store_of(catalog, check_text("name", name))
        probes = catalog.probes(store.key, host)
        profile = catalog.profile(store.key, host)
        usage = catalog.cache_usage(store.name) if is_cache(store) else None
    return MeasuredStore(store, host, probes[0].at if probes else None, profile, usage)


def _store_of(catalog: Catalog, name: str) -> Store:
    """Return the store of a name, or the store that a probe of a path or URL measures.

    Raises:
        NoSuchStoreError: If it is a name, and there is no such store.
    """
    from swathe import _swathe
    from swathe.catalog import root_url
    from swathe.catalog.store_settings import Store
    from swathe.stores.registry import LOCAL_ROOT, native_stores

    if not ("/" in name or ":" in name or Path(name).exists()) or name in {
        store.name for store in catalog.stores()
    }:
        return catalog.store(name)
    root, _ = native_stores().locate(name)
    url = root_url(LOCAL_ROOT if root == "file://" else root)
    tier = "local" if _swathe.StoreKind(url).is_local else "lan"
    return Store(_swathe.redact_url(name), url, tier)
