"""What a named store costs from this host: reading and writing, measured or assumed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from swathe import _swathe
from swathe.catalog import this_host
from swathe.costs.cost_model import Costs, Profile, Sample
from swathe.costs.probing.probe_writes import writing_profile
from swathe.costs.probing.save import WRITE_STAGES
from swathe.costs.probing.write_stages import WriteStages
from swathe.stores.registry import LOCAL_ROOT

if TYPE_CHECKING:
    from swathe.catalog import Catalog, Store


def reading_costs(catalog: Catalog, store: Store) -> tuple[Costs, bool]:
    """Return the costs of reading, and whether they were measured."""
    for root in _roots(store):
        if (profile := catalog.profile(root, this_host())) is not None:
            return Costs.from_dict(profile.costs), True
    return Costs.from_dict(json.loads(_swathe.assumed_costs(store.kind.is_local))), False


def writing_costs(catalog: Catalog, store: Store) -> Profile | None:
    """Return the costs of writing with their spread; `None` if they were not measured.

    A request is an object, or a part of one, written and verified.
    """
    for root in _roots(store):
        samples = [
            Sample("write", sample.bytes, sample.elapsed_s, sample.requests, sample.streams)
            for sample in catalog.samples(root, this_host(), ["write"])
        ]
        try:
            if (profile := writing_profile(samples)) is not None:
                return profile
        except ValueError:  # none of them can be true
            return None
    return None


def write_stages(catalog: Catalog, store: Store) -> WriteStages | None:
    """Return the parts of a write by the last probe that measured them; `None` if there is none."""
    of_roots = (stages_at(catalog, root) for root in _roots(store))
    return next((stages for stages in of_roots if stages is not None), None)


def stages_at(catalog: Catalog, root: str) -> WriteStages | None:
    """Return the parts of a write at a root, as `write_stages`."""
    for probe in catalog.probes(root, this_host()):
        if WRITE_STAGES in probe.parameters:
            return WriteStages.from_dict(probe.parameters[WRITE_STAGES])
    return None


def _roots(store: Store) -> tuple[str, ...]:
    """Return the roots under which a store's measurements may be stored."""
    return (store.key, LOCAL_ROOT) if store.kind.is_local else (store.key,)
