"""Which stripe a store is: the catalogue remembers it, so that disks not mounted are seen."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from swathe.core.errors import SwatheError
from swathe.stores.registry import has_catalogue

if TYPE_CHECKING:
    from swathe._swathe import Stores

log = logging.getLogger(__name__)


def remember_stripe(engine: Stores, name: str) -> None:
    """Keep in the catalogue which stripe a striped store is, if that is not known yet.

    From then on the store is no new one if all its servers are empty: reading and writing are
    errors. What was done before has succeeded, so an error is logged only, as of a catalogue that
    cannot be written to.

    Args:
        engine: stores of the catalogue.
        name: name of a store.
    """
    from swathe.catalog import Catalog

    if not has_catalogue():
        return
    try:
        with Catalog.open() as catalog:
            store = catalog.store(name)
            if not store.over or store.stripe:
                return
            stripe = json.loads(engine.stripe_name(name))
            if stripe is not None:
                catalog.remember_stripe(name, stripe)
    except SwatheError as error:
        log.warning("%s: which stripe it is was not remembered: %s", name, error)
