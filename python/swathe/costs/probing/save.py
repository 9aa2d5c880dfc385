"""Store measurements in the catalogue."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Any

from swathe.catalog import SampleRecord as KeptSample
from swathe.catalog import this_host
from swathe.core.format import KIB
from swathe.costs.run_costs import KEY as RUN
from swathe.stores.stripe_plan import SERVER_RATES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swathe.catalog import Catalog
    from swathe.costs.cost_model import Sample
    from swathe.costs.probing.probe_result import Probe
    from swathe.costs.probing.read_buffer import BufferStudy

WRITE_STAGES = "write_stages"
"""Key of the parts of a write among the parameters of a probe; older versions leave it out."""
LEAST_BUFFER = 16 * KIB
COMMITS = 3
"""Transactions that are timed."""


def keep_probe(catalog: Catalog, probe: Probe) -> None:
    """Store a probe, its samples, and its profile, which all later reads use.

    Raises:
        CatalogError: If the catalogue cannot be written.
    """
    parameters = {**probe.parameters.as_dict(), "cache": probe.cache, "stopped": probe.end_reason}
    if probe.stripe is not None:
        parameters[SERVER_RATES] = probe.stripe.server_rates()
    if probe.stages is not None:
        parameters[WRITE_STAGES] = probe.stages.as_dict()
    traffic = probe.bytes_moved
    number = catalog.add_probe(probe.root, probe.host, parameters, probe.elapsed_s, traffic)
    catalog.add_samples(probe.root, probe.host, _sample_records(probe.samples), number)
    profile = probe.profile
    notes = [*profile.notes, *probe.notes]
    costs, now = profile.costs.as_dict(), datetime.now(UTC)
    if (earlier := catalog.profile(probe.root, probe.host)) is not None:
        costs["buffer_bytes"] = earlier.costs.get("buffer_bytes")
    catalog.put_profile(probe.root, probe.host, costs, profile.spread, now, notes)


def keep_buffer(catalog: Catalog, root: str, study: BufferStudy) -> int | None:
    """Store the buffer size that a study chose, for reading files of a local store.

    Returns:
        Buffer size used from now on, in bytes; at least LEAST_BUFFER, since a study of a small
        object chooses smaller ones. None if the store was not probed: it has no profile to hold
        the size.

    Raises:
        CatalogError: If the catalogue cannot be written.
    """
    profile = catalog.profile(root, study.host)
    if profile is None:
        return None
    size = max(study.choice, LEAST_BUFFER)
    costs = {**profile.costs, "buffer_bytes": size}
    # Keep the time of the fit, so that reads since then still count.
    catalog.put_profile(root, study.host, costs, profile.spread, profile.fitted_at, profile.notes)
    return size


def keep_host(catalog: Catalog, compute: dict[str, Any]) -> dict[str, Any]:
    """Store the costs of computing on this host, and what an entry in the catalogue takes.

    Costs that were measured earlier and not now stay: a quick probe leaves out some.

    Returns:
        All costs of this host.

    Raises:
        CatalogError: If the catalogue cannot be written.
    """
    compute = _join(catalog.compute(this_host()) or {}, compute)
    times_s = []
    for _ in range(COMMITS):
        began_s = time.perf_counter()
        catalog.put_compute(this_host(), compute, datetime.now(UTC))
        times_s.append(time.perf_counter() - began_s)
        compute = {**compute, RUN: {**compute.get(RUN, {}), "commit_s": median(times_s)}}
    catalog.put_compute(this_host(), compute, datetime.now(UTC))
    return compute


def _join(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name, at all levels: the later ones, else the earlier ones."""
    values = {**earlier, **later}
    for name in earlier.keys() & later.keys():
        if isinstance(earlier[name], Mapping) and isinstance(later[name], Mapping):
            values[name] = _join(earlier[name], later[name])
    return values


def _sample_records(samples: Iterable[Sample]) -> list[KeptSample]:
    return [
        KeptSample(
            kind=sample.kind,
            bytes=sample.bytes,
            streams=sample.streams,
            elapsed_s=sample.elapsed_s,
            first_byte_s=sample.first_byte_s,
            at=datetime.fromtimestamp(sample.at, UTC),
            source="probe",
            requests=sample.requests,
        )
        for sample in samples
    ]
