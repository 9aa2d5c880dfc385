"""What a portal tells its workers, and when that is another: where objects and results are."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from swathe.core.errors import CatalogError
from swathe.core.host import this_host
from swathe.stores.registry import NAMED, StoreSnapshot, storages
from swathe.workers.dask import worker

if TYPE_CHECKING:
    from swathe.jobs import ResultStore
    from swathe.workers.batch import Batch
    from swathe.workers.placement.rates import Rates, Speed

STORAGES_S = 5.0
"""How old what workers are told of storages may be."""


class Briefing:
    """What workers are told: the invitation, and by what it is known."""

    def __init__(self, pool: str, place: ResultStore, hosts: tuple[str, ...], rates: Rates) -> None:
        """Take whose workers they are, where results go, which servers users may name.

        What was measured of stores is told to `rates`.

        Raises:
            OutputError: where workers could not put results there.
            CatalogError: where the catalogue cannot be used.
        """
        self._pool, self._place, self._hosts, self._rates = pool, place, hosts, rates
        self._asked_at = 0.0
        self._tell(storages())

    @property
    def invitation(self) -> tuple[bytes, str]:
        """What to tell, and by what it is known."""
        return self._invitation

    def look(self, batch: Batch) -> None:
        """See whether the catalogue has new storages: at once where a batch needs one."""
        known = {store["name"] for store in self._storages.stores}
        sources = filter(NAMED.match, batch.rows.source.few().values)
        named = {source.partition(":")[0] for source in sources}
        old = time.monotonic() - self._asked_at > STORAGES_S
        if not old and all(name in known for name in named - {"http", "https"}):
            return
        # Workers do with what they know.
        with suppress(CatalogError):
            found = storages()
            if found != self._storages:
                self._tell(found)
            self._asked_at = time.monotonic()

    def objects(self, batch: Batch) -> dict[str, int]:
        """Give the objects of a batch that workers keep blocks of: those that servers have."""
        roots = {store["name"]: store["root"] for store in self._storages.stores}
        counts: dict[str, int] = {}
        sources = batch.rows.source.few()
        for source, rows in zip(sources.values, np.bincount(sources.codes).tolist(), strict=True):
            name = source.partition(":")[0]
            if NAMED.match(source) and not roots.get(name, source).startswith("file:"):
                counts[source] = rows
        return {source: round(count * batch.row_bytes) for source, count in counts.items()}

    def _tell(self, found: StoreSnapshot) -> None:
        self._storages, self._asked_at = found, time.monotonic()
        invitation = worker.invite(self._pool, self._place, found, self._hosts)
        self._invitation = invitation, worker.state_of(invitation)
        self._rates.of_stores(_costs(found))


def _costs(found: StoreSnapshot) -> dict[str, Speed]:
    """Give seconds of a request and bytes per second of each store, as measured from here."""
    measured, _, _ = found.seen_from(this_host())
    costs = {}
    for store in found.stores:
        if (kept := measured.get(store["root"])) is not None:
            costs[store["name"]] = kept["request"][0][1], kept["total_bytes_per_s"]
    return costs
