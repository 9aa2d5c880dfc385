"""Update profiles from the times of real reads."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from swathe.catalog import SampleRecord as KeptSample
from swathe.catalog import root_url, this_host
from swathe.core.errors import StoreSettingsError
from swathe.costs.cost_model import Costs, Profile, Sample
from swathe.costs.fit.refit import refit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from swathe.catalog import Catalog
    from swathe.catalog.read_log import ReadLog

    Timing = tuple[str, int, int, float, float]

ENOUGH = 20
"""Number of new reads of a store before its profile is fitted again."""
MOST_READS = 200
"""Number of newest reads used in a fit."""
MOST_OTHERS = 100
"""Number of reads beside others that are kept of one call and store. They only show what readers
saw, and to enter each takes 0.1 ms: a list of cuts from a striped store sends thousands."""
MOST_CHANGE = 2.0
"""Largest factor by which a parameter changes in one fit."""
NEIGHBOURS = 4
NOTE = "updated from real reads since the probe"


def feed_back(catalog: Catalog, timings: Iterable[Timing]) -> list[str]:
    """Store the timings of real reads, and update profiles from them.

    Args:
        catalog: catalogue that stores the timings.
        timings: timings from `_swathe.take_timings()`: key of the store, bytes, requests in flight,
            seconds to the first byte, seconds.

    Returns:
        The roots whose profiles changed.

    Raises:
        CatalogError: If the catalogue cannot be read or written.
    """
    by_root = _by_root(timings)
    for root, samples in by_root.items():
        catalog.add_samples(root, this_host(), samples)
    return [root for root in by_root if _follow(catalog, root)]


def log_reads(read_log: ReadLog, timings: Iterable[Timing]) -> bool:
    """Append timings to the log of a catalogue; return whether `feed_back_log` is due.

    Raises:
        CatalogError: If the log cannot be used.
    """
    by_root = _by_root(timings)
    for root, samples in by_root.items():
        read_log.append(root, this_host(), samples)
    return bool(by_root) and read_log.is_due(ENOUGH)


def feed_back_log(catalog: Catalog) -> list[str]:
    """Enter the timings that wait in the log, and update profiles from them, as `feed_back`.

    Raises:
        CatalogError: If the catalogue cannot be read or written.
    """
    return [root for root in catalog.enter_reads() if _follow(catalog, root)]


def _by_root(timings: Iterable[Timing]) -> dict[str, list[KeptSample]]:
    """Return timings as samples by store; without those of schemes that stores do not have."""
    by_key: dict[str, list[Timing]] = defaultdict(list)
    for timing in timings:
        by_key[timing[0]].append(timing)
    by_root: dict[str, list[KeptSample]] = {}
    for key, of_key in by_key.items():
        with suppress(StoreSettingsError):
            by_root.setdefault(root_url(key), []).extend(_sample_records(of_key))
    return by_root


def _sample_records(timings: Sequence[Timing]) -> list[KeptSample]:
    now = datetime.now(UTC)
    samples = [
        KeptSample("read", size, in_flight, seconds, min(first_byte_s, seconds), now, "read")
        for (_, size, _, first_byte_s, seconds), in_flight in zip(
            timings, _in_flight([timing[2] for timing in timings]), strict=True
        )
        if size > 0 and seconds > 0 and first_byte_s >= 0
    ]
    alone = [sample for sample in samples if sample.streams == 1]
    others = [sample for sample in samples if sample.streams > 1]
    step = max(len(others) / MOST_OTHERS, 1.0)
    count = min(len(others), MOST_OTHERS)
    return alone[-MOST_READS:] + [others[int(at * step)] for at in range(count)]


def _in_flight(counts: Sequence[int]) -> list[int]:
    """Return the number of requests with which each one shared the store.

    A request counts only those sent before it, so the first of many simultaneous requests counts
    none. The largest count of its neighbours is used.
    """
    return [
        max(counts[max(at - NEIGHBOURS, 0) : at + NEIGHBOURS + 1], default=1)
        for at in range(len(counts))
    ]


def _follow(catalog: Catalog, root: str) -> bool:
    """Fit a profile to the reads since its last fit, if there are enough.

    Only reads that were alone at the store determine the time of a request. For others it is not
    known how many shared the line until they ended. The total bandwidth stays as probed.
    """
    host = this_host()
    record = catalog.profile(root, host)
    if record is None:
        return False
    reads = [
        Sample("read", sample.bytes, sample.elapsed_s, first_byte_s=sample.first_byte_s)
        for sample in catalog.samples(root, host, kinds=("read",), since=record.fitted_at)
        if sample.source == "read" and sample.streams == 1
    ]
    if len(reads) < ENOUGH:
        return False
    spread = {name: float(value) for name, value in record.spread.items()}
    profile = Profile(Costs.from_dict(record.costs), spread, record.notes)
    new_profile = refit(profile, reads[-MOST_READS:], most=MOST_CHANGE)
    costs = replace(
        new_profile.costs,
        total_bytes_per_s=profile.costs.total_bytes_per_s,
        requests_per_s=profile.costs.requests_per_s,
        served_bytes_per_s=profile.costs.served_bytes_per_s,
    )
    notes = [*(note for note in record.notes if note != NOTE), NOTE]
    # Later than the reads, so that they do not count again.
    now = datetime.now(UTC)
    catalog.put_profile(root, host, costs.as_dict(), new_profile.spread, now, notes)
    return True
