"""The catalogue: what Swathe knows of stores, kept in SQL between runs.

>>> from swathe.catalog import Catalog
>>> with Catalog.open() as catalog:
...     catalog.add_store("survey", "https://archive.example/dr17")
...     catalog.store("survey").url

Rules: no credential enters it; every time is in UTC; every history is bounded.
"""

from swathe.catalog.catalog import Catalog
from swathe.catalog.copies import GranuleCopy
from swathe.catalog.granules import Wanted
from swathe.catalog.holdings import Dataset, Footprint, Granule, Match, Replica
from swathe.catalog.settings import BUCKETS, SCHEMES, TIERS, WEBDAV, Store, root_url
from swathe.catalog.summaries import Summary, Trouble
from swathe.catalog.tokens import SCOPES, Scope, Token
from swathe.catalog.values import Outcome, Probe, Profile, Sample
from swathe.environment import default_url, this_host

__all__ = [
    "BUCKETS",
    "SCHEMES",
    "SCOPES",
    "TIERS",
    "WEBDAV",
    "Catalog",
    "Dataset",
    "Footprint",
    "Granule",
    "GranuleCopy",
    "Match",
    "Outcome",
    "Probe",
    "Profile",
    "Replica",
    "Sample",
    "Scope",
    "Store",
    "Summary",
    "Token",
    "Trouble",
    "Wanted",
    "default_url",
    "root_url",
    "this_host",
]
