"""Subscriptions of a remote portal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from swathe.client.answers import entry, subscription_of
from swathe.core.argument_checks import check_text
from swathe.core.errors import SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from swathe.catalog.records.subscriptions import Subscription
    from swathe.client.connection import PortalConnection


class RemoteSubscriptions:
    """Subscriptions of a user of a remote portal: a part of `RemotePortal`."""

    _connection: PortalConnection

    @property
    def url(self) -> str:
        """URL of the portal."""
        return self._connection.url

    def subscribe(
        self,
        algorithm: str,
        collection: str,
        *,
        bbox: Sequence[float] | None = None,
        time: tuple[Any, Any] | None = None,
        condition: str | Mapping[str, Any] | None = None,
        group: str | None = None,
        wait_s: float = 0.0,
        until: datetime | None = None,
        webhook: str | None = None,
        mail: str | None = None,
        takes_present: bool = False,
        **options: Any,
    ) -> tuple[Subscription, str | None]:
        """Subscribe to what comes to a dataset: each group of granules that matches becomes a job.

        Example:
            >>> subscription, _ = portal.subscribe("lst-quarter-degree", "MOD11_L2", wait_s=600)
            >>> for event in portal.feed(subscription.id)["events"]:
            ...     print(event["type"], event["data"])

        Args:
            algorithm: Algorithm as `NAME`, the newest version at each run, or `NAME@VERSION`; or
                `reduce`.
            collection: Name of the dataset.
            bbox: Box `(west, south, east, north)` in degrees; west > east crosses the dateline.
            time: Start and end of the observation, either may be `None`: MJD, or text (UTC).
            condition: Condition in CQL2, as text or JSON.
            group: How granules form groups for `reduce`: `each`, `day`, `orbit` or `all`; an
                algorithm declares it.
            wait_s: Time after its last granule after which a group that is not complete runs.
            until: End of the subscription, with a time zone.
            webhook: URL that events are sent to.
            mail: Address that events are mailed to, once its owner has confirmed it.
            takes_present: Whether granules that are there already count.
            **options: `parameters`, `files` and `register_as` of an algorithm, or options of
                `reduce`.

        Returns:
            The subscription, and the secret of its webhook, which is not shown again.

        Raises:
            NoSuchDatasetError, NoSuchAlgorithmError: If there is no such dataset or algorithm.
            AlgorithmError, JobError: If the options do not fit.
            DatasetError, RegionError, SubscriptionError, WebhookError: If something is invalid.
            LimitError: If you have too many subscriptions, or too many addresses that are not
                confirmed.
        """
        if "bounds" in options:
            raise SubscriptionError("subscribe: expected bbox, found bounds")
        content: dict[str, Any] = {
            "algorithm": algorithm,
            "collection": collection,
            "bbox": None if bbox is None else list(bbox),
            "time": None if time is None else [_time_value(each) for each in time],
            "filter": condition,
            "group": group,
            "wait_s": wait_s,
            "until": None if until is None else until.isoformat(),
            "webhook": webhook,
            "mail": mail,
            "takes_present": takes_present,
            "options": options,
        }
        fields = {key: value for key, value in content.items() if value is not None}
        answer = self._connection.post_json("subscriptions", json=fields)
        secret = answer.pop("secret", None)
        return subscription_of(answer, self.url), secret

    def subscriptions(self) -> list[Subscription]:
        """Return the user's subscriptions, newest first."""
        contents = entry(
            self._connection.get_json("subscriptions"), "subscriptions", list, self.url
        )
        return [subscription_of(content, self.url) for content in contents]

    def subscription(self, subscription_id: str) -> Subscription:
        """Return a subscription by its id.

        Raises:
            NoSuchSubscriptionError: If the user has none with this id; also in the methods below.
        """
        return subscription_of(
            self._connection.get_json(_subscription_path(subscription_id)), self.url
        )

    def pause_subscription(self, subscription_id: str) -> Subscription:
        """Pause a subscription. What comes meanwhile runs when it is resumed."""
        return self._change_subscription(subscription_id, "pause")

    def resume_subscription(self, subscription_id: str) -> Subscription:
        """Resume a subscription that is paused or failed, and its webhook if that is disabled."""
        return self._change_subscription(subscription_id, "resume")

    def remove_subscription(self, subscription_id: str) -> None:
        """Remove a subscription with its feed. Its jobs stay."""
        self._connection.request_once("DELETE", _subscription_path(subscription_id))

    def feed(
        self, subscription_id: str, after: str | None = None, limit: int = 100
    ) -> dict[str, Any]:
        """Return a page of the feed: `events` (CloudEvents), `cursor` for `after`, and `has_gap`.

        Raises:
            CursorError: If `after` is not a cursor of this feed.
        """
        parameters: dict[str, Any] = {"limit": limit}
        if after is not None:
            parameters["after"] = after
        path = f"{_subscription_path(subscription_id)}/feed"
        return self._connection.get_json(path, **parameters)

    def _change_subscription(self, subscription_id: str, change: str) -> Subscription:
        answer = self._connection.post_json(f"{_subscription_path(subscription_id)}/{change}")
        return subscription_of(answer, self.url)


def _subscription_path(subscription_id: str) -> str:
    return f"subscriptions/{quote(check_text('subscription_id', subscription_id), safe='')}"


def _time_value(value: Any) -> str | float | None:
    """Return a time as a value of JSON; `None` if it is open."""
    return value if value is None or isinstance(value, int | float) else str(value)
