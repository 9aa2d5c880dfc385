"""The catalogue: an SQL database of stores, measurements, datasets and jobs.

>>> from swathe.catalog import Catalog
>>> with Catalog.open() as catalog:
...     catalog.add_store("survey", "https://archive.example/dr17")
...     catalog.store("survey").url

Rules: it stores no credentials but secrets of webhooks and of links in mails; all times are in UTC;
every history is bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from swathe.catalog.outcome_log import OutcomeLog
from swathe.catalog.records.datasets import Dataset, Footprint, Granule, Match, Replica
from swathe.catalog.records.measurements import Outcome, ProbeRecord, ProfileRecord, SampleRecord
from swathe.catalog.store_settings import TIERS, Store
from swathe.catalog.store_urls import SCHEMES, root_url
from swathe.core.host import this_host
from swathe.core.lazy import lazy_names
from swathe.core.paths import default_url

if TYPE_CHECKING:
    from swathe.catalog.catalog import Catalog, use_catalog
    from swathe.catalog.datasets.dataset_summaries import DatasetProblem, DatasetSummary
    from swathe.catalog.datasets.granule_table import GranuleCopy
    from swathe.catalog.datasets.granules import GranuleQuery
    from swathe.catalog.tokens import SCOPES, Scope, Token

__all__ = [
    "SCHEMES",
    "SCOPES",
    "TIERS",
    "Catalog",
    "Dataset",
    "DatasetProblem",
    "DatasetSummary",
    "Footprint",
    "Granule",
    "GranuleCopy",
    "GranuleQuery",
    "Match",
    "Outcome",
    "OutcomeLog",
    "ProbeRecord",
    "ProfileRecord",
    "Replica",
    "SampleRecord",
    "Scope",
    "Store",
    "Token",
    "default_url",
    "root_url",
    "this_host",
    "use_catalog",
]

_LATER = {
    "Catalog": "swathe.catalog.catalog",
    "use_catalog": "swathe.catalog.catalog",
    "GranuleCopy": "swathe.catalog.datasets.granule_table",
    "SCOPES": "swathe.catalog.tokens",
    "Scope": "swathe.catalog.tokens",
    "DatasetSummary": "swathe.catalog.datasets.dataset_summaries",
    "Token": "swathe.catalog.tokens",
    "DatasetProblem": "swathe.catalog.datasets.dataset_summaries",
    "GranuleQuery": "swathe.catalog.datasets.granules",
}
"""Names that need SQLAlchemy, whose import takes a third of a second, and their modules."""


__getattr__ = lazy_names(__name__, _LATER)
