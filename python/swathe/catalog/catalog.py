"""The catalogue for users: one database, one mixin per subject."""

from __future__ import annotations

from swathe.catalog.datasets.dataset_summaries import Summaries
from swathe.catalog.datasets.datasets import Datasets
from swathe.catalog.datasets.granule_table import Copies
from swathe.catalog.datasets.granules import Granules
from swathe.catalog.jobs.jobs import JobQueue
from swathe.catalog.jobs.leases import Chunks
from swathe.catalog.outcomes import Predictions
from swathe.catalog.profiles import Performance
from swathe.catalog.reservations import Demand
from swathe.catalog.stores import Stores
from swathe.catalog.tokens import Tokens
from swathe.catalog.worker_replicas import Workers


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
    """Stores, measurements, outcomes of predictions, datasets, tokens, jobs and workers.

    Safe to share between threads, not between processes: each opens its own. Every method raises
    `CatalogError` if the database cannot be used: locked, read-only, full or unreachable.
    """
