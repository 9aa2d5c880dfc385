"""How long a new granule takes to be matched with many subscriptions.

    python benches/subscriptions.py [--smoke] [--subscriptions 10000] [--searches 50]

Boxes of subscriptions are drawn from a seed, and half of them have a time. Granules of a satellite,
2000 x 2300 km each, come one at a time. What is timed is the transaction that matches one: its
matches are entered in their groups.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from sqlalchemy import func, select

from find import measure, print_times
from items import granules
from swathe.catalog import Catalog, Replica
from swathe.catalog.tables import SubscriptionGranuleRow
from swathe.datasets.earth_search import boxes_that_touch
from swathe.subscriptions.request import SubscriptionRequest

DATASETS = {"boxes of 5 degrees": 5.0, "all the same box": 0.0}
"""Size of the boxes of subscriptions to a dataset, degrees; 0: one box for all."""
START = 51_544.0


def name_of(what: str) -> str:
    """Return the name of a dataset."""
    return what.replace(" ", "-")


def fill(catalog: Catalog, count: int) -> None:
    """Add the subscriptions to each dataset."""
    catalog.add_store("disk", "/archive")
    random = np.random.default_rng(5)
    for what, size in DATASETS.items():
        catalog.add_dataset(name_of(what), "disk", "", None)
        for number in range(count):
            west, south = random.uniform(-180, 180 - size), random.uniform(-80, 80 - size)
            box = (west, south, west + size, south + size) if size else (-180, -90, 180, 90)
            request = SubscriptionRequest(
                "reduce",
                name_of(what),
                bbox=box,
                time=(START, None) if number % 2 else None,
                options={"grid": "1deg"},
            )
            catalog.add_subscription(request.read(catalog, name_of(what)), count)


def count_matches(catalog: Catalog, path: str) -> int:
    """Return the number of subscriptions that a granule matches."""
    with catalog._reading() as session:
        here = SubscriptionGranuleRow.path == path
        return session.scalar(select(func.count()).where(here)) or 0


def time_searches(catalog: Catalog, _count: int, searches: int) -> None:
    """Print how long it takes to match granules."""
    print("| subscriptions | matches, median | median | 95 % |")
    print("|---|---|---|---|")
    every = list(granules(searches + 3))
    for what in DATASETS:
        took, counts = [], []
        for turn, plain in enumerate(every):
            granule = replace(plain, path=f"{name_of(what)}/{plain.path}")
            replica = Replica(granule.path, granule.path, granule.size, "1", "v", "ok")
            catalog.put_objects(name_of(what), "disk", [(replica, [granule])])
            start_s = time.perf_counter()
            assert catalog.match_changes(boxes_that_touch) == 1
            if turn >= 3:  # the first ones import
                took.append(time.perf_counter() - start_s)
                counts.append(count_matches(catalog, granule.path))
        print_times(what, counts, took)


if __name__ == "__main__":
    measure(__doc__, "subscriptions", 10_000, fill, time_searches)
