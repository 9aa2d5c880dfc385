"""Room in a cache: which copies leave first, and their eviction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.core.host import process_name, this_host
from swathe.stores.front.near_copy import remove_copies
from swathe.stores.staging.stage_costs import StageCosts

if TYPE_CHECKING:
    from swathe.catalog import Catalog
    from swathe.catalog.cache_settings import CacheSettings
    from swathe.catalog.records.caches import NearObject

ASSUMED_S, ASSUMED_BYTES_PER_S = 0.1, 50e6
"""Costs of fetching where nothing was measured."""
LEAST_IDLE_S = 1.0


@dataclass(frozen=True)
class FetchCosts:
    """Seconds that fetching an object takes, by what was measured of its store.

    Attributes:
        staging: earlier requests to stage, if the store is a tape.
        profile: measured costs of the store, JSON; `None` if it was not probed.
    """

    staging: StageCosts
    profile: str | None

    @classmethod
    def of(cls, catalog: Catalog, settings: CacheSettings) -> FetchCosts:
        """Return the costs of the slow store of a cache, as seen from this host."""
        import json

        store = catalog.store(settings.source.partition(":")[0])
        record = catalog.profile(store.key, this_host())
        staging = StageCosts(catalog.stage_outcomes(store.name))
        return cls(staging, None if record is None else json.dumps(record.costs))

    def seconds(self, copy: NearObject) -> float:
        """Return the seconds until a copy would be here again."""
        staging_s = self.staging.at_most_s(1, copy.bytes) or 0.0
        if self.profile is not None:
            import numpy as np

            out, size = np.zeros(1), np.array([float(copy.bytes)])
            _swathe.request_s(self.profile, out, size)
            return staging_s + float(out[0])
        if copy.fetch_s is not None:
            return staging_s + copy.fetch_s
        return staging_s + ASSUMED_S + copy.bytes / ASSUMED_BYTES_PER_S


def in_eviction_order(
    copies: Sequence[NearObject], fetch_s: Callable[[NearObject], float], now: datetime
) -> list[NearObject]:
    """Return copies, those first that are cheap to get again for their size and long unused.

    The worth of a copy is the fetching that its bytes save in a second: seconds to fetch it, times
    its uses, over its size and the time since its last use. Older versions are worth nothing.
    """

    def worth(copy: NearObject) -> float:
        if copy.state == "stale":
            return -1.0
        idle_s = max((now - copy.used_at).total_seconds(), LEAST_IDLE_S)
        return fetch_s(copy) * max(copy.uses, 1) / (max(copy.bytes, 1) * idle_s)

    return sorted(copies, key=worth)


def make_room(
    catalog: Catalog, engine: _swathe.Stores, settings: CacheSettings, lacking_bytes: int
) -> int:
    """Evict copies until this many bytes are free; return how many are.

    None is evicted that is pinned, being read, or not written to its source yet. What killed
    processes left is removed first.
    """
    owner = process_name()
    free_bytes = 0

    def remove(numbers: Sequence[int]) -> int:
        claims = catalog.begin_removal(numbers, owner, force=False)
        return remove_copies(catalog, engine, settings, claims, is_eviction=True)

    free_bytes += remove(catalog.abandoned_objects(settings.name))
    if free_bytes >= lacking_bytes:
        return free_bytes
    free = [
        each
        for each in catalog.near_objects(settings.name)
        if each.state == "cached" and not each.pins
    ]
    costs = FetchCosts.of(catalog, settings) if free else None
    for copy in in_eviction_order(free, costs.seconds, datetime.now(UTC)) if costs else ():
        if free_bytes >= lacking_bytes:
            break
        free_bytes += remove([copy.id])
    return free_bytes
