"""Granules that come, are replaced and go, and jobs that nobody runs."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from swathe.catalog import Catalog, Granule, Replica
from swathe.catalog.records.datasets import ALL_CELLS, EarthFootprint
from swathe.catalog.records.jobs import JobRecord
from swathe.core.row_record import STATUSES
from swathe.core.row_table import RowTable
from swathe.jobs import Jobs
from swathe.subscriptions.request import SubscriptionRequest
from swathe.subscriptions.service import Subscriptions

DATASET = "swaths"
DAY = 53_491.0
"""1 May 2005, as MJD."""


def new_dataset(catalog: Catalog, name: str = DATASET) -> None:
    """Add an empty dataset of the store `archive`."""
    if name == DATASET:
        catalog.add_store("archive", "https://archive.example/swaths")
    catalog.add_dataset(name, "archive", "", None)


def square(lon: float, lat: float, half: float) -> EarthFootprint:
    """A square on the Earth."""
    west, east, south, north = lon - half, lon + half, lat - half, lat + half
    outline = [west, south, east, south, east, north, west, north]
    return EarthFootprint(lon % 360, lat, 3 * half, [(0, ALL_CELLS - 1)], [outline])


def put(
    catalog: Catalog,
    path: str,
    version: str = "1",
    day: float = DAY,
    place: tuple[float, float] | None = (10.0, 50.0),
    dataset: str = DATASET,
    **more: Any,
) -> None:
    """Enter a granule at a version, as a scan of the store does."""
    earth = None if place is None else square(*place, 1.0)
    granule = Granule(
        path, 0, "lst", (9, 9), 9, version, day, day + 0.003, place=earth, array="/lst", **more
    )
    replica = Replica(path, path, 9, version, version, "ok")
    catalog.put_objects(dataset, "archive", [(replica, [granule])])


def withdraw(catalog: Catalog, path: str, dataset: str = DATASET) -> None:
    """Note that a granule is gone, as a scan of the store does."""
    catalog.set_states(dataset, "archive", [path], "vanished")


class IdleJobs:
    """Jobs that are stored and never run: their lists are not read."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.fault: Exception | None = None
        self.last_table: dict[str, list[str]] = {}

    def submit(self, table: Any, options: Any, owner: str, *, name: str, firing: Any) -> None:
        """Store a job without rows, with what it is the cause of."""
        if self.fault is not None:
            raise self.fault
        self.last_table = table
        now = datetime.now(UTC)
        counts = dict.fromkeys(STATUSES, 0)
        job = JobRecord(
            0, secrets.token_urlsafe(16), owner, name, "QUEUED", options.as_dict(), [], now, None,
            None, now + timedelta(days=1), 0, 0, counts, 0, None, 0.0, 0, 0, None, [], 1,
        )  # fmt: skip
        assert len(table["file"]) == sum(len(each.members) for each in firing.due.groups)
        self.catalog.add_job(job, RowTable.of([]), lambda _usage: None, 0, firing)


def idle_service(catalog: Catalog) -> tuple[Subscriptions, IdleJobs]:
    """The subscriptions of a catalogue whose jobs nobody runs."""
    jobs = IdleJobs(catalog)
    return Subscriptions(cast(Jobs, jobs), webhook_hosts=["127.0.0.1"]), jobs


def request(**fields: Any) -> SubscriptionRequest:
    """A request to reduce what comes to the dataset."""
    usual: dict[str, Any] = {
        "algorithm": "reduce",
        "collection": DATASET,
        "options": {"grid": "5deg"},
    }
    return SubscriptionRequest(**(usual | fields))


def work(service: Subscriptions) -> None:
    """Do all the work there is."""
    while service.match() or service.fire():
        pass


def runs_of(
    catalog: Catalog, subscription: str
) -> list[tuple[str, int, tuple[tuple[str, str], ...]]]:
    """Group, version and granules of all runs, by the feed."""
    return [
        (
            event.content["group"],
            event.content["version"],
            tuple((each["granule"], each["object_version"]) for each in event.content["granules"]),
        )
        for event in catalog.subscription_events(subscription, 0, 10_000)
        if event.kind == "run.submitted"
    ]
