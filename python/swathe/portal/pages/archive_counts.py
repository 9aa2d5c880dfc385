"""Cached counts and maps of the whole archive, computed again only after changes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from swathe.catalog import Dataset, DatasetSummary
from swathe.core.errors import SwatheError
from swathe.portal.pages.skymap import FINEST, SkyCounts, SkyMap, sky_counts, sky_map

if TYPE_CHECKING:
    from swathe.catalog import Catalog

FRESH_S = 5.0
"""Minimum age of outdated counts before they are computed again."""
REST = 20
"""Minimum age in multiples of the computing time, so that large archives stay fast."""
LONG_S = 0.5
"""Time of computing beyond which nobody waits for a newer value."""
log = logging.getLogger("swathe.portal")


@dataclass(frozen=True)
class DatasetCounts:
    """A dataset and the summary of its images."""

    dataset: Dataset
    summary: DatasetSummary


@dataclass(frozen=True)
class CachedValue:
    """A value computed from a state: valid for this state, and for a newer one until `until`.

    Computing it took `duration_s`.
    """

    content: Any
    state: Any
    until: float
    duration_s: float


class ArchiveCounts:
    """Cache of counts and maps."""

    def __init__(self, catalog: Catalog) -> None:
        """Set the catalogue to read."""
        self._catalog = catalog
        self._lock = threading.Lock()
        self._cache: dict[str, CachedValue] = {}
        self._locks: dict[str, threading.Lock] = {}

    def all(self) -> list[DatasetCounts]:
        """Return all datasets with their counts, sorted by name."""
        dataset_counts: list[DatasetCounts] = self._cached_value(
            "", self._catalog.changes(), self._read, rests=True
        )
        return dataset_counts

    def begin(self) -> None:
        """Compute the values of the front page, so that its first visitor need not wait."""
        with suppress(SwatheError):  # a request for the page reports the error
            self.map()

    def one(self, dataset: Dataset) -> DatasetCounts:
        """Return the counts of a dataset, which may have been added just now."""
        by_name = {each.dataset.name: each for each in self.all()}
        return by_name.get(dataset.name) or DatasetCounts(dataset, DatasetSummary())

    def map(self, dataset: str | None = None) -> SkyMap:
        """Draw the map of the images of one dataset, or of all."""
        datasets = self._of(dataset)
        images = sum(each.summary.images_on_sky for each in datasets)
        drawing: SkyMap = self._cached_value(
            f"map:{dataset or ''}", datasets, lambda: sky_map(self.cells(dataset), images)
        )
        return drawing

    def cells(self, dataset: str | None = None) -> SkyCounts:
        """Return the images of each HEALPix cell, of one dataset or of all.

        Raises:
            NoSuchDatasetError: If there is no such dataset.
        """
        if dataset is not None:
            self._catalog.dataset(dataset)
        cells: SkyCounts = self._cached_value(
            f"cells:{dataset or ''}",
            self._of(dataset),
            lambda: sky_counts(self._catalog.coverage(FINEST, dataset)),
        )
        return cells

    def _of(self, dataset: str | None) -> list[DatasetCounts]:
        return [each for each in self.all() if dataset in (None, each.dataset.name)]

    def _read(self) -> list[DatasetCounts]:
        summaries = self._catalog.summaries()
        datasets = self._catalog.datasets()
        return [
            DatasetCounts(each, summaries.get(each.name, DatasetSummary())) for each in datasets
        ]

    def _cached_value(
        self, name: str, state: Any, make: Callable[[], Any], *, rests: bool = False
    ) -> Any:
        """Return a cached value, or compute it again, one thread at a time for each name.

        A value that took long is computed beside, and the older one returned meanwhile.
        """
        with self._lock:
            own = self._locks.setdefault(name, threading.Lock())
            entry = self._cache.get(name)
        if entry is not None:
            if entry.state == state or time.monotonic() < entry.until:
                return entry.content
            if entry.duration_s > LONG_S:
                if own.acquire(blocking=False):
                    work = partial(self._compute_beside, own, name, state, make, rests)
                    threading.Thread(target=work, name=f"swathe-{name}", daemon=True).start()
                return entry.content
        with own:
            entry = self._cache.get(name)
            if entry is None or (entry.state != state and time.monotonic() >= entry.until):
                entry = self._compute(name, state, make, rests)
            return entry.content

    def _compute_beside(
        self,
        own: threading.Lock,
        name: str,
        state: Any,
        make: Callable[[], Any],
        rests: bool,
    ) -> None:
        try:
            self._compute(name, state, make, rests)
        except SwatheError as error:
            log.warning("%s: %s", name, error)  # the next request tries again
        finally:
            own.release()

    def _compute(self, name: str, state: Any, make: Callable[[], Any], rests: bool) -> CachedValue:
        start_s = time.monotonic()
        content = make()
        duration_s = time.monotonic() - start_s
        rest = max(FRESH_S, REST * duration_s) if rests else 0.0
        value = CachedValue(content, state, time.monotonic() + rest, duration_s)
        with self._lock:
            self._cache[name] = value
        return value
