"""Configuration of the workers: stores and result store, with updates."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from swathe._swathe import StoreKind
from swathe.core.errors import CatalogError
from swathe.core.host import this_host
from swathe.stores.registry import STORE_NAME, StoreSnapshot, kind_of, storages
from swathe.workers.dask import worker

if TYPE_CHECKING:
    from swathe.jobs import ResultStore
    from swathe.workers.batch import Batch
    from swathe.workers.placement.rates import Rates, Speed

STORAGES_S = 5.0
"""Age in seconds after which the workers' list of stores is checked again."""


class WorkerConfig:
    """Configuration for workers, and its digest."""

    def __init__(self, pool: str, place: ResultStore, hosts: tuple[str, ...], rates: Rates) -> None:
        """Take the pool's id, the result store, and the servers that users may name.

        Measured costs of stores are passed to `rates`.

        Raises:
            OutputError: If workers cannot write to the result store.
            CatalogError: If the catalogue cannot be used.
        """
        self._pool, self._place, self._hosts, self._rates = pool, place, hosts, rates
        self._asked_at = 0.0
        self._tell(storages())

    @property
    def invitation(self) -> tuple[bytes, str]:
        """The configuration, and its digest."""
        return self._invitation

    def look(self, batch: Batch) -> None:
        """Check whether the catalogue has new stores; at once if a batch needs one."""
        names = {store["name"] for store in self._storages.stores}
        sources = filter(STORE_NAME.match, batch.rows.source.few().values)
        store_names = {source.partition(":")[0] for source in sources}
        old = time.monotonic() - self._asked_at > STORAGES_S
        if not old and all(name in names for name in store_names - {"http", "https"}):
            return
        # Workers use the configuration they have.
        with suppress(CatalogError):
            snapshot = storages()
            if snapshot != self._storages:
                self._tell(snapshot)
            self._asked_at = time.monotonic()

    def objects(self, batch: Batch) -> dict[str, int]:
        """Return the objects of a batch that workers cache: those on servers."""
        kinds = {store["name"]: kind_of(store) for store in self._storages.stores}
        counts: dict[str, int] = {}
        sources = batch.rows.source.few()
        for source, rows in zip(sources.values, np.bincount(sources.codes).tolist(), strict=True):
            name = source.partition(":")[0]
            if STORE_NAME.match(source) and not (kinds.get(name) or StoreKind(source)).is_local:
                counts[source] = rows
        return {source: round(count * batch.row_bytes) for source, count in counts.items()}

    def _tell(self, stores: StoreSnapshot) -> None:
        self._storages, self._asked_at = stores, time.monotonic()
        invitation = worker.invite(self._pool, self._place, stores, self._hosts)
        self._invitation = invitation, worker.state_of(invitation)
        self._rates.of_stores(_costs(stores))


def _costs(stores: StoreSnapshot) -> dict[str, Speed]:
    """Return seconds per request and bytes per second of each store, as measured from here."""
    measurements, _, _ = stores.seen_from(this_host())
    costs = {}
    for store in stores.stores:
        if (profile := measurements.get(store["root"])) is not None:
            costs[store["name"]] = profile["request"][0][1], profile["total_bytes_per_s"]
    return costs
