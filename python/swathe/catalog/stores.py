"""The stores of a catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from swathe.catalog.cache_settings import CACHE_URL, CacheSettings, validate_cache
from swathe.catalog.database import Database
from swathe.catalog.store_settings import (
    OVER,
    STRIPE,
    Store,
    check_apart,
    find_server,
    no_such_store,
    store_of_row,
    validate_store,
    validate_stripe,
)
from swathe.catalog.store_urls import STRIPE_URL
from swathe.catalog.tables import DatasetRow, NearObjectRow, ReplicaRow, StoreRow
from swathe.core.errors import StoreSettingsError

_STRIPES = select(StoreRow).where(StoreRow.url.startswith(STRIPE_URL))
_CACHES = select(StoreRow).where(StoreRow.url.startswith(CACHE_URL))


class Stores(Database):
    """Named stores."""

    def add_store(
        self,
        name: str,
        url: str,
        tier: str | None = None,
        options: Mapping[str, str] | None = None,
        *,
        over: Sequence[str] = (),
        parity: int | None = None,
        block_bytes: int | None = None,
        of: str | None = None,
        limit_bytes: int | None = None,
        write: str | None = None,
        check_s: float | None = None,
    ) -> Store:
        """Add a store. Without a tier, files are `local` and all else is `lan`.

        Returns the stored form: a normalised URL, and an absolute path as a `file://` URL.

        Args:
            name: its name.
            url: its root; `striped:` for a striped store, `cache:` for a cache.
            tier: distance; of a striped store by default the largest of those of its servers, of a
                cache that of its near store.
            options: options by name.
            over: servers of a striped store: `NAME`, `NAME:prefix`, paths or URLs; of a cache its
                near store.
            parity: number of servers of a striped store that may be lost; by default 1.
            block_bytes: size of a block of a striped store; by default 1 MiB.
            of: the slow store of a cache.
            limit_bytes: bytes that a cache keeps at most.
            write: when a cache writes to its slow store: `through` (default) or `back`.
            check_s: seconds for which a cache takes a source to be unchanged; by default 0.

        Raises:
            StoreSettingsError: If a setting is invalid or looks like a credential, or the name is
                taken.
            NoSuchStoreError: If a striped store is over a store that does not exist.
            CatalogError: If the database cannot be written.
        """
        kind = url.rstrip("/").lower()
        is_striped, is_front = kind == STRIPE_URL, kind == CACHE_URL
        if not is_striped and (parity is not None or block_bytes is not None):
            raise StoreSettingsError(
                f"over, parity and block are only for stores with the URL {STRIPE_URL}"
            )
        if not is_striped and not is_front and over:
            raise StoreSettingsError(
                f"over is only for stores with the URL {STRIPE_URL} or {CACHE_URL}"
            )
        if not is_front and (of, limit_bytes, write, check_s) != (None,) * 4:
            raise StoreSettingsError(
                f"of, limit, write and check are only for stores with the URL {CACHE_URL}"
            )
        if is_front and len(over) != 1:
            raise StoreSettingsError(
                f"a cache: expected one near store (--over), found {len(over)}"
            )
        store = None if is_striped or is_front else validate_store(name, url, tier, options)
        with self._writing() as session:
            if is_front:
                store = validate_cache(
                    name,
                    tier,
                    options,
                    of=of,
                    near=over[0],
                    limit_bytes=limit_bytes,
                    write=write,
                    check_s=check_s,
                    find=_finder(session, lock=True),
                )
            if store is None:
                find = _finder(session, lock=True)
                servers = [find_server(place, find) for place in over]
                store = validate_stripe(name, tier, options, servers, parity, block_bytes)
                check_apart(store, _striped_stores(session))
            row = StoreRow(
                name=store.name,
                url=store.url,
                tier=store.tier,
                options=store.options | _over_option(store),
                added_at=datetime.now(UTC),
            )
            session.add(row)
            try:
                session.flush()
            except IntegrityError:
                raise StoreSettingsError(f"there is a store {name!r} already") from None
        return store

    def stores(self) -> list[Store]:
        """Return all stores, by name."""
        with self._reading() as session:
            rows = {row.name: row for row in session.scalars(select(StoreRow))}

            def find(name: str) -> Store:
                if (row := rows.get(name)) is None:
                    raise no_such_store(name)
                return _store(row, find)

            # Databases differ in their sort order.
            return [find(name) for name in sorted(rows)]

    def store(self, name: str) -> Store:
        """Return the store of a name.

        Raises:
            NoSuchStoreError: If there is no such store.
        """
        with self._reading() as session:
            return _finder(session)(name)

    def remember_stripe(self, name: str, stripe: str) -> None:
        """Keep which stripe a striped store is, unless one is kept already.

        Raises:
            NoSuchStoreError: If there is no such store.
            CatalogError: If the database cannot be written.
        """
        with self._writing() as session:
            row = session.scalar(select(StoreRow).where(StoreRow.name == name).with_for_update())
            if row is None:
                raise no_such_store(name)
            row.options = {STRIPE: stripe, **row.options}

    def remove_store(self, name: str) -> None:
        """Remove a store's name; measurements stay, as they belong to its URL.

        Raises:
            NoSuchStoreError: If there is no such store.
            StoreSettingsError: If it contains a dataset, or parts of a striped store.
        """
        dataset_query = (
            select(DatasetRow.name)
            .outerjoin(ReplicaRow, ReplicaRow.dataset_id == DatasetRow.id)
            .join(StoreRow, StoreRow.id.in_((DatasetRow.store_id, ReplicaRow.store_id)))
            .where(StoreRow.name == name)
            .limit(1)
        )
        near_query = (
            select(NearObjectRow.path)
            .join(StoreRow, StoreRow.id == NearObjectRow.store_id)
            .where(StoreRow.name == name)
            .limit(1)
        )
        with self._writing() as session:
            if session.scalar(near_query) is not None:
                raise StoreSettingsError(
                    f"the cache {name!r} has objects; first: swathe store clear {name}"
                )
            dataset = session.scalar(dataset_query)
            if dataset is not None:
                raise StoreSettingsError(
                    f"the dataset {dataset!r} is in the store {name!r}; "
                    f"first: swathe dataset remove {dataset}"
                )
            result = session.execute(
                delete(StoreRow).where(StoreRow.name == name).returning(StoreRow.id)
            )
            if result.first() is None:
                raise no_such_store(name)
            for row in session.scalars(_CACHES):
                settings = CacheSettings.of(row.name, row.options)
                if name in {place.partition(":")[0] for place in (settings.source, settings.near)}:
                    raise StoreSettingsError(
                        f"the cache {row.name!r} is of or over the store {name!r}; "
                        f"first: swathe store remove {row.name}"
                    )
            # Asked after the removal: who adds a striped store holds the row of each server.
            for row in session.scalars(_STRIPES):
                if name in {place.partition(":")[0] for place in _places(row)}:
                    raise StoreSettingsError(
                        f"the striped store {row.name!r} has parts in the store {name!r}; "
                        f"first: swathe store remove {row.name}"
                    )


def _finder(session: Session, lock: bool = False) -> Callable[[str], Store]:
    """Return a function that reads the store of a name; with `lock` it stays until the end."""

    def find(name: str) -> Store:
        query = select(StoreRow).where(StoreRow.name == name)
        row = session.scalar(query.with_for_update(read=True) if lock else query)
        if row is None:
            raise no_such_store(name)
        return _store(row, find)

    return find


def _striped_stores(session: Session) -> list[Store]:
    rows = session.scalars(_STRIPES)
    return [_store(row, _finder(session)) for row in rows.all()]


def _store(row: StoreRow, find: Callable[[str], Store]) -> Store:
    return store_of_row(row.name, row.url, row.tier, row.options, find)


def _places(row: StoreRow) -> list[str]:
    """Return the servers of a striped store as the catalogue has them."""
    return list(row.options.get(OVER, ()))


def _over_option(store: Store) -> dict[str, list[str]]:
    return {OVER: [server.place for server in store.over]} if store.over else {}
