"""What the pages tell of an archive as a whole, counted where it changed: that reads many rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swathe.catalog import Dataset, Summary
from swathe.core.errors import SwatheError
from swathe.portal.pages.skymap import FINEST, SkyMap, sky_map

if TYPE_CHECKING:
    from swathe.catalog import Catalog

FRESH_S = 5.0
"""Counts of what has changed are at least this old before they are made again."""
REST = 20
"""And this many times the time that they took to make, so that large archives stay quick."""


@dataclass(frozen=True)
class DatasetCounts:
    """A dataset and what its images have in common."""

    dataset: Dataset
    summary: Summary


@dataclass(frozen=True)
class CachedValue:
    """What was made of a state: good as long as that is so, and of another until some time."""

    made: Any
    state: Any
    until: float


class Holdings:
    """Counts and maps, kept for a while."""

    def __init__(self, catalog: Catalog) -> None:
        """Take the catalogue to read."""
        self._catalog = catalog
        self._lock = threading.Lock()
        self._kept: dict[str, CachedValue] = {}

    def all(self) -> list[DatasetCounts]:
        """Give all datasets, in order of their names."""
        found: list[DatasetCounts] = self._known(
            "", self._catalog.changes(), self._read, rests=True
        )
        return found

    def begin(self) -> None:
        """Make what the front page tells, so that its first visitor need not wait for it."""
        with suppress(SwatheError):  # who asks for the page is told
            self.map()

    def one(self, dataset: Dataset) -> DatasetCounts:
        """Give what is known of a dataset, which may have been added just now."""
        held = {each.dataset.name: each for each in self.all()}
        return held.get(dataset.name) or DatasetCounts(dataset, Summary())

    def map(self, dataset: str | None = None) -> SkyMap:
        """Draw where the images of a dataset, or of all, lie."""
        held = [each for each in self.all() if dataset in (None, each.dataset.name)]
        images = sum(each.summary.placed for each in held)

        def draw() -> SkyMap:
            return sky_map(self._catalog.coverage(FINEST, dataset), images)

        found: SkyMap = self._known(f"map:{dataset or ''}", held, draw)
        return found

    def _read(self) -> list[DatasetCounts]:
        summaries = self._catalog.summaries()
        found = self._catalog.datasets()
        return [DatasetCounts(each, summaries.get(each.name, Summary())) for each in found]

    def _known(self, name: str, state: Any, make: Callable[[], Any], *, rests: bool = False) -> Any:
        """Give what was made of this state, perhaps of one before; one at a time makes it anew."""
        with self._lock:
            kept = self._kept.get(name)
            if kept is None or (kept.state != state and time.monotonic() >= kept.until):
                started = time.monotonic()
                made = make()
                taken = time.monotonic() - started
                rest = max(FRESH_S, REST * taken) if rests else 0.0
                kept = CachedValue(made, state, time.monotonic() + rest)
                self._kept[name] = kept
            return kept.made
