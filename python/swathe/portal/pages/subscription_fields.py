"""Fields of the form that subscribes an algorithm to a dataset, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from swathe.catalog.datasets.conditions import condition_of
from swathe.core.errors import SubscriptionError, SwatheError
from swathe.core.value_errors import short_text
from swathe.datasets.cql2_text import parse_cql2_text
from swathe.datasets.search_times import read_until
from swathe.files.targets.bounds import BOUNDS
from swathe.portal.pages.order_fields import OrderForm
from swathe.subscriptions.mail_server import check_address
from swathe.subscriptions.request import LONGEST_WAIT_S, SubscriptionRequest
from swathe.subscriptions.webhook_address import check_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.core.grouping import GroupBy

Value = TypeVar("Value")
HOUR_S = 3600.0
DELIVERY = ("version", "register_as", "wait_h", "present", "until", "webhook", "mail")
FILTER = "filter"


@dataclass
class SubscriptionForm(OrderForm):
    """A form that is filled in: the search of an order, and what a subscription has besides."""

    own: ClassVar[tuple[str, ...]] = (
        "collection",
        "time_from",
        "time_to",
        *BOUNDS,
        FILTER,
        *DELIVERY,
    )

    def request(self) -> SubscriptionRequest:
        """Return the request; what is wrong with its fields is in `faults`."""
        version = self._version()
        return SubscriptionRequest(
            algorithm=f"{self.algorithm.name}@{version}" if version else self.algorithm.name,
            collection=self.collection(),
            bbox=self.bounds(),
            time=self.time(),
            condition=self._value(FILTER, _condition),
            options=self._options(),
            group=self._group(),
            wait_s=self._value("wait_h", _seconds_of_hours) or 0.0,
            until=self._value("until", _future_time),
            webhook=self._value("webhook", check_url),
            mail=self._value("mail", check_address),
            takes_present=self.fields["present"] == "yes",
        )

    def _version(self) -> str:
        """Return the version that runs; empty: the newest at each run."""
        return self.fields["version"]

    def _group(self) -> GroupBy | None:
        """Return how granules form groups; `None`: as the algorithm declares."""
        return None

    def _options(self) -> Mapping[str, Any]:
        options: dict[str, Any] = {"parameters": self.parameters(), "files": self.files()}
        name = self.fields["register_as"]
        return options | ({"register_as": name} if name else {})

    def _value(self, name: str, check: Callable[[str], Value]) -> Value | None:
        """Return the value of a field; `None` if it is empty, or invalid."""
        if not (text := self.fields[name]) or name in self.faults:
            return None
        try:
            return check(text)
        except SwatheError as error:
            self.faults[name] = str(error).partition(": ")[2]
            return None


def _condition(text: str) -> Mapping[str, Any]:
    condition = parse_cql2_text(text)
    condition_of(condition)
    return condition


def _future_time(text: str) -> datetime:
    at = read_until(text)
    if at <= datetime.now(UTC):
        raise SubscriptionError(f"until: expected a time to come, found {short_text(text)}")
    return at


def _seconds_of_hours(text: str) -> float:
    most = LONGEST_WAIT_S / HOUR_S
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours <= most:
        raise SubscriptionError(f"wait: expected 0 to {most:g} hours, found {short_text(text)}")
    return hours * HOUR_S
