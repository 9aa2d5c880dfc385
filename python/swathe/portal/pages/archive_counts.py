"""Cached counts and maps of the whole archive, computed again only after changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swathe.catalog import Dataset, DatasetSummary
from swathe.core.errors import SwatheError
from swathe.portal.pages.skymap import FINEST, SkyMap, sky_map

if TYPE_CHECKING:
    from swathe.catalog import Catalog

FRESH_S = 5.0
"""Minimum age of outdated counts before they are computed again."""
REST = 20
"""Minimum age in multiples of the computing time, so that large archives stay fast."""


@dataclass(frozen=True)
class DatasetCounts:
    """A dataset and the summary of its images."""

    dataset: Dataset
    summary: DatasetSummary


@dataclass(frozen=True)
class CachedValue:
    """A value computed from a state: valid for this state, and for a newer one until `until`."""

    content: Any
    state: Any
    until: float


class ArchiveCounts:
    """Cache of counts and maps."""

    def __init__(self, catalog: Catalog) -> None:
        """Set the catalogue to read."""
        self._catalog = catalog
        self._lock = threading.Lock()
        self._cache: dict[str, CachedValue] = {}

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
        datasets = [each for each in self.all() if dataset in (None, each.dataset.name)]
        images = sum(each.summary.images_on_sky for each in datasets)

        def draw() -> SkyMap:
            return sky_map(self._catalog.coverage(FINEST, dataset), images)

        drawing: SkyMap = self._cached_value(f"map:{dataset or ''}", datasets, draw)
        return drawing

    def _read(self) -> list[DatasetCounts]:
        summaries = self._catalog.summaries()
        datasets = self._catalog.datasets()
        return [
            DatasetCounts(each, summaries.get(each.name, DatasetSummary())) for each in datasets
        ]

    def _cached_value(
        self, name: str, state: Any, make: Callable[[], Any], *, rests: bool = False
    ) -> Any:
        """Return a cached value, or compute it again, one thread at a time."""
        with self._lock:
            entry = self._cache.get(name)
            if entry is None or (entry.state != state and time.monotonic() >= entry.until):
                start_s = time.monotonic()
                value = make()
                duration_s = time.monotonic() - start_s
                rest = max(FRESH_S, REST * duration_s) if rests else 0.0
                entry = CachedValue(value, state, time.monotonic() + rest)
                self._cache[name] = entry
            return entry.content
