"""The catalogue as users see it: one database, one mixin for each subject."""

from __future__ import annotations

from swathe.catalog.chunks import Chunks
from swathe.catalog.copies import Copies
from swathe.catalog.datasets import Datasets
from swathe.catalog.demand import Demand
from swathe.catalog.granules import Granules
from swathe.catalog.jobs import JobQueue
from swathe.catalog.performance import Performance
from swathe.catalog.predictions import Predictions
from swathe.catalog.stores import Stores
from swathe.catalog.summaries import Summaries
from swathe.catalog.tokens import Tokens
from swathe.catalog.workers import Workers


class Catalog(
    Stores,
    Performance,
    Predictions,
    Datasets,
    Granules,
    Copies,
    Summaries,
    Tokens,
    JobQueue,
    Chunks,
    Demand,
    Workers,
):
    """Stores, what was measured, how predictions came out, datasets, users' tokens, jobs, workers.

    One may be shared by threads, not by processes: each opens its own. Every method raises
    `CatalogError` where the database cannot be used: locked, read-only, full, unreachable.
    """
