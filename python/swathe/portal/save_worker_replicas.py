"""Keeps in the catalogue what workers hold: at most once a second, and only what is new."""

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
from swathe.workers.restarting_thread import Lasting

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.worker_replicas import Place
    from swathe.workers import Pool

EVERY_S = 1.0
STILL_S = 10.0
"""How often to say that what is kept is still so."""
OLD_S = 60.0
"""Portals that have not said so for so long are dead."""
MOST = 1000
"""The largest are kept; all are counted."""


class Replicas:
    """A thread that keeps what the workers of a pool hold, as long as the block lasts."""

    def __init__(self, catalog: Catalog, pool: Pool) -> None:
        """Take where, and whose."""
        self._catalog, self._pool = catalog, pool
        self._id = token_hex(8)
        self._kept: dict[Place, int] = {}
        self._counts: tuple[int, int, int] | None = None
        self._told_at = 0.0
        self._ending = threading.Event()
        self._thread = Lasting("swathe-replicas", self._keep_soon, self._ending)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *raised: object) -> None:
        self._ending.set()
        self._thread.join()
        with suppress(CatalogError):  # it is away; others forget them in a minute
            self._catalog.forget_replicas(self._id)

    def _keep_soon(self) -> None:
        if not self._ending.wait(EVERY_S):
            self._keep()

    def _keep(self) -> None:
        told = self._pool.told()
        if told.kind == "local":
            return
        largest = heapq.nlargest(MOST, told.held, key=lambda each: each.bytes)
        now = {(each.worker, each.object): each.bytes for each in largest}
        total = sum(each.bytes for each in told.held)
        counts = len(told.workers), len(told.held), total
        still = time.monotonic() - self._told_at < STILL_S
        if now == self._kept and counts == self._counts and still:
            return
        if not still:
            self._catalog.forget_replicas(older_s=OLD_S)
        tells = WorkerReplicas(told.address, datetime.now(UTC), *counts, replicas=[])
        self._catalog.keep_replicas(self._id, tells, self._kept, now)
        self._kept, self._counts, self._told_at = now, counts, time.monotonic()
