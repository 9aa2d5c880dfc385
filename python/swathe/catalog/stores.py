"""The stores of a catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from swathe.catalog.database import Database
from swathe.catalog.store_settings import Store, validate_store
from swathe.catalog.tables import DatasetRow, ReplicaRow, StoreRow
from swathe.core.errors import NoSuchStoreError, StoreSettingsError


class Stores(Database):
    """Named stores."""

    def add_store(
        self,
        name: str,
        url: str,
        tier: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Store:
        """Add a store. Without a tier, files are `local` and all else is `lan`.

        Returns the stored form: a normalised URL, and an absolute path as a `file://` URL.

        Raises:
            StoreSettingsError: If a setting is invalid or looks like a credential, or the name is
                taken.
            CatalogError: If the database cannot be written.
        """
        store = validate_store(name, url, tier, options)
        row = StoreRow(
            name=store.name,
            url=store.url,
            tier=store.tier,
            options=store.options,
            added_at=datetime.now(UTC),
        )
        with self._writing() as session:
            session.add(row)
            try:
                session.flush()
            except IntegrityError:
                raise StoreSettingsError(f"there is a store {name!r} already") from None
        return store

    def stores(self) -> list[Store]:
        """Return all stores, by name."""
        with self._reading() as session:
            rows = [_store(row) for row in session.scalars(select(StoreRow))]
        # Databases differ in their sort order.
        return sorted(rows, key=lambda store: store.name)

    def store(self, name: str) -> Store:
        """Return the store of a name.

        Raises:
            NoSuchStoreError: If there is no such store.
        """
        with self._reading() as session:
            row = session.scalar(select(StoreRow).where(StoreRow.name == name))
            if row is None:
                raise _no_such(name)
            return _store(row)

    def remove_store(self, name: str) -> None:
        """Remove a store's name; measurements stay, as they belong to its URL.

        Raises:
            NoSuchStoreError: If there is no such store.
            StoreSettingsError: If it contains a dataset.
        """
        dataset_query = (
            select(DatasetRow.name)
            .outerjoin(ReplicaRow, ReplicaRow.dataset_id == DatasetRow.id)
            .join(StoreRow, StoreRow.id.in_((DatasetRow.store_id, ReplicaRow.store_id)))
            .where(StoreRow.name == name)
            .limit(1)
        )
        with self._writing() as session:
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
                raise _no_such(name)


def _store(row: StoreRow) -> Store:
    return Store(row.name, row.url, row.tier, dict(row.options))


def _no_such(name: str) -> NoSuchStoreError:
    return NoSuchStoreError(f"there is no store {name[:100]!r}; see: swathe store list")
