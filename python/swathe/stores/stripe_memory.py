"""Which stripe a store is: the catalogue remembers it, so that disks not mounted are seen."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from swathe.core.errors import CatalogError

if TYPE_CHECKING:
    from swathe._swathe import Stores

log = logging.getLogger(__name__)


def remember_stripe(engine: Stores, name: str) -> None:
    """Keep in the catalogue which stripe a striped store is, if that is not known yet.

    From then on the store is no new one if all its servers are empty: reading and writing are
    errors. A catalogue that cannot be written to stays as it is, which is logged.

    Args:
        engine: stores of the catalogue.
        name: name of a store.

    Raises:
        NoSuchStoreError: If there is no such store.
    """
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        store = catalog.store(name)
        if not store.over or store.stripe:
            return
        stripe = json.loads(engine.stripe_name(name))
        if stripe is None:
            return
        try:
            catalog.remember_stripe(name, stripe)
        except CatalogError as error:
            log.info("%s: its stripe %s is not remembered: %s", name, stripe, error)
