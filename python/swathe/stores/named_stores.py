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
    """

    store: Store
    host: str
    probed_at: datetime | None
    profile: ProfileRecord | None


def add(
    name: str,
    url: str,
    *,
    tier: str | None = None,
    options: Mapping[str, str] | None = None,
    over: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    parity: int | None = None,
    block_bytes: int | None = None,
) -> Store:
    """Add a store to the catalogue. Its objects are then `NAME:path` everywhere.

    Credentials are not stored: they stay in the environment.

    Example:
        >>> swathe.stores.add("survey", "https://archive.example/dr17")
        >>> swathe.cut("survey:frame-000001.fit.gz", box=(0, 0, 100, 100))
        >>> swathe.stores.add("wide", "striped:", over=["disk1", "lake:parts"], parity=1)

    Args:
        name: at least two of letters, digits, `_`, `.` and `-`.
        url: root of the store: a folder, or `file`, `http(s)`, `s3`, `gs`, `az`, `root(s)`,
            `dav(s)://...`; `striped:` for a striped store. A relative folder is taken from the
            working folder.
        tier: `local`, `lan`, `wan` or `tape`; by default `local` for folders, `lan` for others,
            and for a striped store the largest of those of its servers.
        options: options of the store, such as `endpoint`, `region`, `probe_object`; see
            `swathe store add --help`.
        over: servers of a striped store: `NAME` or `NAME:prefix` of a store, a URL or a folder. A
            web server, `http(s)://`, is taken for a WebDAV server.
        parity: number of servers of a striped store that may be lost; by default 1. With 0 the
            loss of one server is the loss of all objects.
        block_bytes: size of a block of a striped store, bytes; by default 1 MiB.

    Returns:
        The store as it is recorded, with its URL in standard form.

    Raises:
        StoreSettingsError: If a setting is invalid or looks like a credential, or the name is
            taken.
        NoSuchStoreError: If a striped store is over a store that does not exist.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import Catalog
    from swathe.catalog.store_urls import STRIPE_URL

    check_text("name", name)
    check_text("url", url)
    places = check_texts("over", [os.fspath(each) for each in _as_list(over)])
    root = url if "://" in url or url.lower() == STRIPE_URL else _absolute(url)
    with Catalog.open() as catalog:
        return catalog.add_store(
            name,
            root,
            tier,
            options,
            over=[_absolute(each) if each.startswith(LOCAL) else each for each in places],
            parity=parity,
            block_bytes=block_bytes,
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
        StoreSettingsError: If a dataset is in it, or a striped store is over it.
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

    host = this_host()
    with Catalog.open() as catalog:
        store = _store_of(catalog, check_text("name", name))
        probes = catalog.probes(store.key, host)
        profile = catalog.profile(store.key, host)
    return MeasuredStore(store, host, probes[0].at if probes else None, profile)


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
