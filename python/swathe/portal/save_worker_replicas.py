"""Saving of workers' cached objects in the catalogue: changes only, at most once a second."""

from __future__ import annotations

import heapq
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING

from swathe.catalog.worker_replicas import WorkerReplicas
from swathe.core.errors import CatalogError
from swathe.workers.restarting_thread import RestartingThread

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.worker_replicas import Place
    from swathe.workers import Pool

EVERY_S = 1.0
STILL_S = 10.0
"""Interval between confirmations of an unchanged record."""
OLD_S = 60.0
"""A portal without a confirmation for this time is dead."""
MOST_REPLICAS = 1000
"""Number of the largest objects that are saved; the counts include all."""


class Replicas:
    """A thread that saves the cached objects of a pool's workers during the context."""

    def __init__(self, catalog: Catalog, pool: Pool) -> None:
        """Set the catalogue to write to, and the pool."""
        self._catalog, self._pool = catalog, pool
        self._id = token_hex(8)
        self._sizes: dict[Place, int] = {}
        self._counts: tuple[int, int, int] | None = None
        self._told_at = 0.0
        self._ending = threading.Event()
        self._thread = RestartingThread("swathe-replicas", self._keep_soon, self._ending)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exception: object) -> None:
        self._ending.set()
        self._thread.join()
        with suppress(
            CatalogError
        ):  # the database is away; other portals remove the record in a minute
            self._catalog.forget_replicas(self._id)

    def _keep_soon(self) -> None:
        if not self._ending.wait(EVERY_S):
            self._keep()

    def _keep(self) -> None:
        status = self._pool.status()
        if status.kind == "local":
            return
        largest = heapq.nlargest(MOST_REPLICAS, status.held, key=lambda each: each.bytes)
        now = {(each.worker, each.object): each.bytes for each in largest}
        total = sum(each.bytes for each in status.held)
        counts = len(status.workers), len(status.held), total
        is_recent = time.monotonic() - self._told_at < STILL_S
        if now == self._sizes and counts == self._counts and is_recent:
            return
        if not is_recent:
            self._catalog.forget_replicas(older_s=OLD_S)
        record = WorkerReplicas(status.address, datetime.now(UTC), *counts, replicas=[])
        self._catalog.keep_replicas(self._id, record, self._sizes, now)
        self._sizes, self._counts, self._told_at = now, counts, time.monotonic()
