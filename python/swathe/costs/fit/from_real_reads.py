"""Profiles follow what real reads take."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from swathe.catalog import Sample as KeptSample
from swathe.catalog import root_url, this_host
from swathe.core.errors import StoreSettingsError
from swathe.costs.cost_model import Costs, Profile, Sample
from swathe.costs.fit.refit import refit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from swathe.catalog import Catalog

    Timing = tuple[str, int, int, float, float]

ENOUGH = 20
"""New reads of a store before its profile is fitted anew."""
MOST = 200
"""The newest so many reads are fitted to."""
MOST_CHANGE = 2.0
"""No part of a profile changes by more than this factor at a time."""
NEIGHBOURS = 4
NOTE = "followed real reads since it was probed"


def feed_back(catalog: Catalog, timings: Iterable[Timing]) -> list[str]:
    """Keep the timings of real reads, and let profiles follow them.

    Args:
        catalog: where they go.
        timings: as `_swathe.take_timings()` gives them: key of the store, bytes, requests in
            flight, seconds to the first byte, seconds.

    Returns:
        The roots whose profiles changed.

    Raises:
        CatalogError: where the catalogue cannot be read or written.
    """
    by_root: dict[str, list[Timing]] = defaultdict(list)
    for timing in timings:
        by_root[timing[0]].append(timing)
    changed = []
    for given, of_root in by_root.items():
        try:
            root = root_url(given)
        except StoreSettingsError:
            continue  # a scheme that no store has
        catalog.add_samples(root, this_host(), _kept(of_root))
        if _follow(catalog, root):
            changed.append(root)
    return changed


def _kept(timings: Sequence[Timing]) -> list[KeptSample]:
    now = datetime.now(UTC)
    return [
        KeptSample("read", size, flying, seconds, min(first_byte_s, seconds), now, "read")
        for (_, size, _, first_byte_s, seconds), flying in zip(
            timings, _in_flight([timing[2] for timing in timings]), strict=True
        )
        if size > 0 and seconds > 0 and first_byte_s >= 0
    ]


def _in_flight(told: Sequence[int]) -> list[int]:
    """How many requests each shared the store with.

    A request is told of those sent before it only, so the first of many that are sent at once
    knows of none: it is as for its neighbours.
    """
    return [
        max(told[max(at - NEIGHBOURS, 0) : at + NEIGHBOURS + 1], default=1)
        for at in range(len(told))
    ]


def _follow(catalog: Catalog, root: str) -> bool:
    """Fit a profile to the reads since it was fitted, if there are enough.

    Only those that had the store to themselves tell what a request takes; of others it is not
    known how many shared the line until they ended. What all together carry stays as probed.
    """
    host = this_host()
    kept = catalog.profile(root, host)
    if kept is None:
        return False
    reads = [
        Sample("read", sample.bytes, sample.seconds, first_byte_s=sample.first_byte_s)
        for sample in catalog.samples(root, host, kinds=("read",), since=kept.fitted_at)
        if sample.source == "read" and sample.streams == 1
    ]
    if len(reads) < ENOUGH:
        return False
    spread = {name: float(value) for name, value in kept.spread.items()}
    profile = Profile(Costs.from_dict(kept.costs), spread, kept.notes)
    found = refit(profile, reads[-MOST:], most=MOST_CHANGE)
    costs = replace(
        found.costs,
        total_bytes_per_s=profile.costs.total_bytes_per_s,
        requests_per_s=profile.costs.requests_per_s,
        served_bytes_per_s=profile.costs.served_bytes_per_s,
    )
    notes = [*(note for note in kept.notes if note != NOTE), NOTE]
    # After the reads, so that they do not count again.
    now = datetime.now(UTC)
    catalog.put_profile(root, host, costs.as_dict(), found.spread, now, notes)
    return True
