"""Subscriptions, their groups, runs and events as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from swathe.core.grouping import GroupBy
    from swathe.core.row_record import RowStatus

SubscriptionState = Literal["active", "paused", "failed", "ended"]
"""`failed`: something must be put right before it is resumed. `ended`: nothing matches any more."""
RunOutcome = Literal["waiting", "done", "failed"]
MailState = Literal["requested", "confirmed", "stopped"]
"""What the owner of an address wants: no answer yet, mail, or none."""
EventKind = Literal[
    "run.submitted",
    "run.done",
    "run.failed",
    "run.current",
    "result.missing",
    "granule.withdrawn",
    "subscription.failed",
    "subscription.paused",
    "subscription.ended",
    "webhook.disabled",
    "mail.disabled",
]


@dataclass(frozen=True)
class SearchBounds:
    """Box that contains a search, to be compared first.

    Attributes:
        lon: longitude of its centre, 0 to 360 degrees.
        half_lon: half its width, degrees; 360 if it is anywhere.
        south: least latitude, degrees.
        north: greatest latitude, degrees.
        t_min: start, MJD (UTC).
        t_max: end, MJD (UTC).
    """

    lon: float
    half_lon: float
    south: float
    north: float
    t_min: float
    t_max: float


@dataclass(frozen=True)
class Grouping:
    """How matching objects form groups, and when a group runs.

    Attributes:
        by: what objects of a group have in common.
        least: smallest number of objects in a group; one with fewer waits.
        most: number of objects from which on a group is complete, and runs at once.
        wait_s: time after the last change of a group after which it runs though not complete.
    """

    by: GroupBy = "each"
    least: int = 1
    most: int = 1
    wait_s: float = 0.0


@dataclass(frozen=True)
class NewSubscription:
    """A subscription to add.

    Attributes:
        id: 22 characters.
        owner: name of the user.
        algorithm: operation, or algorithm as `NAME` or `NAME@VERSION`.
        collection: name of the dataset.
        search: what is compared exactly: `bbox`, `time`, `condition`, as they are present.
        bounds: box that contains the search.
        job_options: options of its jobs.
        grouping: its groups.
        until: end of the subscription.
        secret: key of its signatures, base64.
        webhook: URL that its events are sent to.
        mail: address that its events are mailed to.
        takes_present: whether objects that are there already match.
    """

    id: str
    owner: str
    algorithm: str
    collection: str
    search: dict[str, Any]
    bounds: SearchBounds
    job_options: dict[str, Any]
    grouping: Grouping
    until: datetime | None
    secret: str
    webhook: str | None
    mail: str | None
    takes_present: bool


@dataclass(frozen=True)
class Subscription:
    """A subscription.

    Attributes:
        id: 22 random characters, safe in URLs.
        owner: name of the user.
        algorithm: operation, or algorithm as `NAME` (the newest version) or `NAME@VERSION`.
        state: `active`, `paused`, `failed` or `ended`.
        reason: reason of `failed`, or why the portal has paused it.
        collection: name of the dataset.
        search: `{"bbox", "time", "condition"}`, as they are present: degrees, MJD (UTC), CQL2.
        job_options: options of its jobs.
        grouping: `{"by", "least", "most", "wait_s"}`.
        created_at: time of creation.
        until: end; `None`: none.
        events: number of its last event.
        webhook: URL that its events are sent to.
        webhook_fault: why the last event could not be delivered, or the webhook is disabled; empty
            if it could.
        mail: address that its events are mailed to.
        mail_fault: why no mail is sent, or the last one could not be; else empty.
    """

    id: str
    owner: str
    algorithm: str
    state: SubscriptionState
    reason: str
    collection: str
    search: dict[str, Any]
    job_options: dict[str, Any]
    grouping: dict[str, Any]
    created_at: datetime
    until: datetime | None
    events: int
    webhook: str | None
    webhook_fault: str
    mail: str | None
    mail_fault: str


class Member(NamedTuple):
    """An object of a group, at a version."""

    path: str
    version: str


@dataclass(frozen=True)
class DueGroup:
    """A group that is to run, as it was read.

    Attributes:
        name: name of the group.
        changes: number of its changes so far.
        members: its objects, in order of time.
    """

    name: str
    changes: int
    members: Sequence[Member]


@dataclass(frozen=True)
class DueGroups:
    """Groups of a subscription that are to run.

    Attributes:
        number: key of the subscription in the database.
        subscription: the subscription.
        store: first store of its dataset.
        groups: the groups.
    """

    number: int
    subscription: Subscription
    store: str
    groups: Sequence[DueGroup]


@dataclass(frozen=True)
class Firing:
    """Groups that a job runs, and those that need no run.

    Attributes:
        due: the groups, as they were read.
        signatures: signature of each group that has members, by name.
        label: algorithm and version.
    """

    due: DueGroups
    signatures: Mapping[str, str]
    label: str


class RunResult(NamedTuple):
    """Outcome of a run: status, reason and file name of a row of its job."""

    status: RowStatus
    reason: str
    file: str


@dataclass(frozen=True)
class Event:
    """An event of a subscription.

    Attributes:
        number: number in the subscription, from 1.
        kind: what has happened.
        at: time, UTC.
        content: `{"group", "version", "job", "granules", ...}`, by kind.
    """

    number: int
    kind: EventKind
    at: datetime
    content: dict[str, Any]


@dataclass(frozen=True)
class Delivery:
    """An event to be sent to a webhook.

    Attributes:
        subscription: id of the subscription.
        owner: its user.
        url: URL of the webhook.
        secret: key of the signature, base64.
        event: the event.
        tries: number of tries that failed so far.
    """

    subscription: str
    owner: str
    url: str
    secret: str
    event: Event
    tries: int


@dataclass(frozen=True)
class MailAddress:
    """An address that a user has asked to send mail to.

    Attributes:
        owner: the user.
        address: the address.
        key: what links in mails to it have, 32 characters.
        state: what its owner wants.
        tries: number of tries to send the request to confirm it that failed so far.
    """

    owner: str
    address: str
    key: str
    state: MailState
    tries: int


@dataclass(frozen=True)
class MailDigest:
    """Events to be mailed, as they were read.

    Attributes:
        subscription: the subscription.
        key: what links in mails to its address have.
        events: the first of the events.
        count: number of all events since the last mail.
        tries: number of tries that failed so far.
    """

    subscription: Subscription
    key: str
    events: Sequence[Event]
    count: int
    tries: int


@dataclass(frozen=True)
class MqttBacklog:
    """Events of a subscription that are not published yet.

    Attributes:
        subscription: id of the subscription.
        owner: its user.
        events: the first of them.
        last: number up to which there are no others.
    """

    subscription: str
    owner: str
    events: Sequence[Event]
    last: int
