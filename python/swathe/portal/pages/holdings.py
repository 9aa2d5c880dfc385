"""What the pages tell of an archive as a whole, counted at most every few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swathe.catalog import Dataset, Summary
from swathe.portal.pages.skymap import FINEST, SkyMap, sky_map

if TYPE_CHECKING:
    from swathe.catalog import Catalog

FRESH_S = 5.0
"""Counts are not older than this, and maps of datasets that did not change are kept."""


@dataclass(frozen=True)
class Held:
    """A dataset and what its images have in common."""

    dataset: Dataset
    summary: Summary


class Holdings:
    """Counts and maps, kept for a while: both read many rows."""

    def __init__(self, catalog: Catalog) -> None:
        """Take the catalogue to read."""
        self._catalog = catalog
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Any, float, Any]] = {}

    def all(self) -> list[Held]:
        """Give all datasets, in order of their names."""
        return self._fresh("", None, self._read)  # type: ignore[no-any-return]

    def map(self, dataset: str | None = None) -> SkyMap:
        """Draw where the images of a dataset, or of all, lie."""
        names = [held for held in self.all() if dataset in (None, held.dataset.name)]
        state = [(held.dataset, held.summary) for held in names]
        images = sum(held.summary.placed for held in names)

        def draw() -> SkyMap:
            coverage = self._catalog.coverage(FINEST, dataset)
            return sky_map(coverage, images)

        return self._fresh(f"map:{dataset or ''}", state, draw)  # type: ignore[no-any-return]

    def _read(self) -> list[Held]:
        summaries = self._catalog.summaries()
        found = self._catalog.datasets()
        return [Held(each, summaries.get(each.name, Summary())) for each in found]

    def _fresh(self, name: str, state: Any, make: Callable[[], Any]) -> Any:
        """Give what was made of this state, made anew where that is another or too old.

        One at a time makes it; a known state never grows old.
        """
        with self._lock:
            of, made_at, made = self._kept.get(name, (None, float("-inf"), None))
            fresh = state is not None or time.monotonic() - made_at < FRESH_S
            if made is not None and of == state and fresh:
                return made
            made = make()
            self._kept[name] = (state, time.monotonic(), made)
            return made
