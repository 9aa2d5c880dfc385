"""What this process reads from a cache: its pins and claims are renewed while it does."""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter
from typing import TYPE_CHECKING

from swathe.catalog.near_objects import LEASE
from swathe.core.errors import SwatheError
from swathe.core.host import process_name

if TYPE_CHECKING:
    from swathe import _swathe
    from swathe.catalog import Catalog

SWEEP_S, GRACE_S = 2.0, 0.5
"""Seconds after which an object that nobody reads any more may be evicted, and in which the engine
takes one that was opened for it."""


class Readers:
    """Near copies that this process reads, and claims that it has.

    The engine does not say when it closes an object. So the opened object is kept here, too, and
    asked whether anybody else has it.
    """

    def __init__(self, catalog: Catalog, store: str) -> None:
        """Begin without any."""
        self._catalog, self._store = catalog, store
        self._owner = process_name()
        self._sources: dict[int, list[tuple[_swathe.Source, float]]] = {}
        self._counts: Counter[str] = Counter()
        self._claims = 0
        self._lock = threading.Lock()
        self._keeper: threading.Thread | None = None
        self._renewed_s = time.monotonic()

    def __enter__(self) -> None:
        """Begin work on a copy, whose claim is renewed until its end."""
        with self._lock:
            self._claims += 1
        self._start()

    def __exit__(self, *_: object) -> None:
        """End work on a copy."""
        with self._lock:
            self._claims -= 1

    def add(self, number: int, source: _swathe.Source, *, is_hit: bool, fetched_bytes: int) -> None:
        """Note an opened copy, which is pinned, and count it."""
        with self._lock:
            self._sources.setdefault(number, []).append((source, time.monotonic()))
            self._counts["hits" if is_hit else "misses"] += 1
            self._counts["fetched_bytes"] += fetched_bytes
        self._start()

    def release(self, number: int) -> None:
        """Remove the pin of a copy, unless it is being read in this process."""
        with self._lock:
            is_read = number in self._sources
        if not is_read:
            self._catalog.release_near_objects(self._owner, numbers=[number])

    def sweep(self) -> None:
        """Release copies that nobody reads any more, and write the counts to the catalogue."""
        with self._lock:
            free = []
            for number, sources in list(self._sources.items()):
                since_s = time.monotonic() - GRACE_S
                sources[:] = [each for each in sources if each[0].is_shared or each[1] > since_s]
                if not sources:
                    free.append(number)
                    del self._sources[number]
            counts, self._counts = self._counts, Counter()
        if free:
            self._catalog.release_near_objects(self._owner, numbers=free)
        if counts:
            self._catalog.count_cache_uses(self._store, counts)

    def _start(self) -> None:
        with self._lock:
            if self._keeper is None or not self._keeper.is_alive():
                self._renewed_s = time.monotonic()
                keeper = threading.Thread(target=self._keep, name="swathe-cache-pins", daemon=True)
                self._keeper = keeper
                keeper.start()

    def _keep(self) -> None:
        while True:
            time.sleep(SWEEP_S)
            try:
                self.sweep()
                if time.monotonic() - self._renewed_s > LEASE.total_seconds() / 4:
                    self._catalog.renew_near_objects(self._owner)
                    self._renewed_s = time.monotonic()
            except SwatheError as error:
                warnings.warn(f"{self._store}: pins could not be renewed: {error}", stacklevel=1)
            with self._lock:
                if not self._sources and not self._claims and not self._counts:
                    self._keeper = None
                    return
