"""Requests for subscriptions, checked."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from swathe.algorithms.algorithm_version import algorithm_version
from swathe.algorithms.parameters import values_of
from swathe.catalog.datasets.conditions import condition_of
from swathe.catalog.datasets.objects import EARLY, LATE
from swathe.catalog.records.subscriptions import (
    Grouping,
    NewSubscription,
    SearchBounds,
)
from swathe.core.errors import SubscriptionError
from swathe.core.grouping import GROUPS, GroupBy
from swathe.core.value_errors import short_text
from swathe.datasets.search_times import read_open_times
from swathe.files.places.bounds import Bounds
from swathe.jobs.service import new_id
from swathe.jobs.types import Options
from swathe.operations.operation import GroupingOperation
from swathe.operations.registry import operations
from swathe.subscriptions.mail_server import check_address
from swathe.subscriptions.webhook_address import check_url

if TYPE_CHECKING:
    from swathe.algorithms.definition import GranuleInput
    from swathe.catalog import Catalog

LONGEST_WAIT_S = 30 * 86_400.0
MOST_MEMBERS = 10_000
"""Granules of a group for which an operation without a declared number waits."""
SECRET_BYTES = 32
MOST_CHARACTERS = 65_536
"""Characters of a filter and of options: all subscriptions of a dataset are read together."""


@dataclass(frozen=True)
class SubscriptionRequest:
    """What a user asks for.

    Attributes:
        algorithm: algorithm, as `NAME` (the newest version at each run) or `NAME@VERSION`; or an
            operation on granules, as `reduce`.
        collection: name of the dataset.
        bbox: box of longitude and latitude, `(west, south, east, north)`.
        time: start and end, either may be `None`: MJD (UTC) or text.
        condition: condition in CQL2, as its JSON form.
        options: parameters and files of the algorithm, and as `register_as` the dataset that its
            outputs are added to; or options of the operation.
        group: how granules form groups; else as the algorithm says, or `each`.
        wait_s: time after the last change of a group after which it runs though not complete.
        until: end of the subscription.
        webhook: URL that events are sent to.
        mail: address that events are mailed to.
        takes_present: whether granules that are there already match.
    """

    algorithm: str
    collection: str
    bbox: tuple[float, float, float, float] | None = None
    time: tuple[Any, Any] | None = None
    condition: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    group: GroupBy | None = None
    wait_s: float = 0.0
    until: datetime | None = None
    webhook: str | None = None
    mail: str | None = None
    takes_present: bool = False

    def read(self, catalog: Catalog, owner: str) -> NewSubscription:
        """Check the request; return the subscription to add.

        Raises:
            NoSuchAlgorithmError, AlgorithmError, JobError: If there is no such algorithm, or its
                options do not fit.
            DatasetError, RegionError: If the search is invalid.
            SubscriptionError: If something else is invalid.
            WebhookError: If the URL of the webhook is invalid.
        """
        options, of_input = self._options(catalog)
        search: dict[str, Any] = {}
        if self.bbox is not None:
            box = Bounds.of(self.bbox)
            search["bbox"] = [box.west, box.south, box.east, box.north]
        if (time := read_open_times(self.time)) is not None:
            search["time"] = list(time)
        if self.condition is not None:
            condition_of(self.condition)
            search["condition"] = dict(self.condition)
        size = len(json.dumps([search, self.options]))
        if size > MOST_CHARACTERS:
            raise SubscriptionError(
                f"filter and options: expected at most {MOST_CHARACTERS:,} characters as JSON, "
                f"found {size:,}"
            )
        return NewSubscription(
            id=new_id(),
            owner=owner,
            algorithm=self.algorithm,
            collection=self.collection,
            search=search,
            bounds=_bounds_of(search),
            job_options=options.as_dict(),
            grouping=self._grouping(of_input),
            until=self._until(),
            secret=base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode(),
            webhook=None if self.webhook is None else check_url(self.webhook),
            mail=None if self.mail is None else check_address(self.mail),
            takes_present=self.takes_present,
        )

    def _until(self) -> datetime | None:
        """Return the end in UTC."""
        if self.until is None:
            return None
        try:
            until = self.until.astimezone(UTC)
        except OverflowError:
            raise SubscriptionError(
                f"until: expected a time that UTC has, found {self.until}"
            ) from None
        if until <= datetime.now(UTC):
            raise SubscriptionError(f"until: expected a time to come, found {self.until}")
        return until

    def _options(self, catalog: Catalog) -> tuple[Options, GranuleInput | None]:
        """Return the options of the jobs, and the input of the algorithm."""
        kinds = {name: each for name, each in operations().items() if name != "algorithm"}
        if self.algorithm in kinds:
            if not isinstance(kinds[self.algorithm], GroupingOperation):
                raise SubscriptionError(
                    f"algorithm: expected one, or an operation on granules, found {self.algorithm}"
                )
            return Options.from_mapping({**self.options, "operation": self.algorithm}), None
        definition = algorithm_version(catalog, self.algorithm).definition
        unknown = sorted(set(self.options) - {"parameters", "files", "register_as"})
        if unknown:
            raise SubscriptionError(
                "options: expected parameters, files and register_as, found "
                f"{short_text(unknown[0])}"
            )
        values_of(definition.parameters, self.options.get("parameters") or {})
        options = {"operation": "algorithm", "algorithm": self.algorithm, **self.options}
        return Options.from_mapping(options), definition.granules[1]

    def _grouping(self, of_input: GranuleInput | None) -> Grouping:
        """Return the groups, as the algorithm or the user declares them."""
        if not 0 <= self.wait_s <= LONGEST_WAIT_S:
            raise SubscriptionError(
                f"wait: expected 0 to {LONGEST_WAIT_S:g} s, found {short_text(self.wait_s)}"
            )
        if of_input is not None:
            if self.group not in (None, of_input.group):
                raise SubscriptionError(
                    f"group: expected {of_input.group}, as {self.algorithm} declares, found "
                    f"{self.group}"
                )
            if of_input.window.before or of_input.window.after:
                raise SubscriptionError(
                    f"{self.algorithm}: expected an algorithm without neighbours in time (window) "
                    "for a subscription; order it instead"
                )
            if of_input.collection not in ("", self.collection):
                raise SubscriptionError(
                    f"collection: expected {of_input.collection}, as {self.algorithm} declares, "
                    f"found {short_text(self.collection)}"
                )
            return Grouping(of_input.group, of_input.least, of_input.most, self.wait_s)
        group = self.group or "each"
        if group not in GROUPS:
            raise SubscriptionError(
                f"group: expected one of {', '.join(GROUPS)}, found {short_text(group)}"
            )
        return Grouping(group, 1, 1 if group == "each" else MOST_MEMBERS, self.wait_s)


def _bounds_of(search: Mapping[str, Any]) -> SearchBounds:
    """Return the box that contains a search."""
    lon, half, south, north = 180.0, 360.0, -90.0, 90.0
    if "bbox" in search:
        west, south, east, north = search["bbox"]
        width = east - west + (360 if west > east else 0)
        lon, half = (west + width / 2) % 360, min(width / 2, 180.0)
    start, end = search.get("time", (None, None))
    return SearchBounds(
        lon, half, south, north, EARLY if start is None else start, LATE if end is None else end
    )
