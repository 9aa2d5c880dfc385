"""Tables of subscriptions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from swathe.catalog.records.subscriptions import MailState, RunOutcome, SubscriptionState
from swathe.catalog.tables.base import Base, Id

MQTT_IS_BEHIND = text("events > mqtt_event")
"""Condition for subscriptions with events that MQTT has not delivered."""


class SubscriptionTable(Base):
    """A subscription: a search, and the job to run for what it finds from now on.

    `lon` to `t_max` bound the search, in degrees and MJD. Changes up to `since` came before it. If
    it does not follow the log, as while it is paused, `behind_from` is the last change that it has
    seen. `events` is the number of its last event, `webhook_event`, `mail_event` and `mqtt_event`
    are those of the last ones delivered.
    """

    __tablename__ = "subscriptions"
    __table_args__ = (
        Index(
            "ix_subscriptions_search",
            *("dataset", "state", "behind_from", "t_min", "t_max"),
            *("south", "north", "lon", "half_lon"),
        ),
        Index(
            "ix_subscriptions_mqtt",
            "number",
            sqlite_where=MQTT_IS_BEHIND,
            postgresql_where=MQTT_IS_BEHIND,
        ),
    )
    number: Mapped[int] = mapped_column(Id, primary_key=True)
    id: Mapped[str] = mapped_column(String(22), unique=True)
    owner: Mapped[str] = mapped_column(String(200), index=True)
    name: Mapped[str] = mapped_column(Text)
    state: Mapped[SubscriptionState] = mapped_column(String(10))
    reason: Mapped[str] = mapped_column(Text)
    dataset: Mapped[str] = mapped_column(String(100))
    search: Mapped[dict[str, Any]] = mapped_column(JSON)
    lon: Mapped[float]
    half_lon: Mapped[float]
    south: Mapped[float]
    north: Mapped[float]
    t_min: Mapped[float]
    t_max: Mapped[float]
    job_options: Mapped[dict[str, Any]] = mapped_column(JSON)
    grouping: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    until: Mapped[datetime | None]
    since: Mapped[int] = mapped_column(BigInteger)
    behind_from: Mapped[int | None] = mapped_column(BigInteger)
    events: Mapped[int] = mapped_column(BigInteger)
    secret: Mapped[str] = mapped_column(String(64))
    webhook: Mapped[str | None] = mapped_column(Text)
    webhook_fault: Mapped[str] = mapped_column(Text)
    webhook_event: Mapped[int] = mapped_column(BigInteger)
    webhook_tries: Mapped[int]
    webhook_due_at: Mapped[datetime | None] = mapped_column(index=True)
    mail: Mapped[str | None] = mapped_column(String(254))
    mail_fault: Mapped[str] = mapped_column(Text, server_default=text("''"))
    mail_event: Mapped[int] = mapped_column(BigInteger, server_default="0")
    mail_tries: Mapped[int] = mapped_column(server_default="0")
    mail_due_at: Mapped[datetime | None] = mapped_column(index=True)
    mqtt_event: Mapped[int] = mapped_column(BigInteger, server_default="0")


def _subscription_key() -> Mapped[int]:
    """Return the first column of a key of what belongs to a subscription."""
    return mapped_column(
        ForeignKey("subscriptions.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    )


class SubscriptionGranuleRow(Base):
    """An object that is there now and matches a subscription."""

    __tablename__ = "subscription_granules"
    __table_args__ = (Index(None, "subscription", "group_name"),)
    subscription: Mapped[int] = _subscription_key()
    path: Mapped[str] = mapped_column(String(1000), primary_key=True, index=True)
    version: Mapped[str] = mapped_column(Text)
    group_name: Mapped[str] = mapped_column(String(1000))
    t_min: Mapped[float | None]


class SubscriptionGroupRow(Base):
    """A group of objects of a subscription.

    It has changed `changes` times, and is to run at `due_at`, if it has changed since its last run.
    `current_version` is the version that the feed named last as that of its present objects; null
    if an object was withdrawn since.
    """

    __tablename__ = "subscription_groups"
    subscription: Mapped[int] = _subscription_key()
    name: Mapped[str] = mapped_column(String(1000), primary_key=True)
    changes: Mapped[int] = mapped_column(BigInteger)
    due_at: Mapped[datetime | None] = mapped_column(index=True)
    versions: Mapped[int]
    current_version: Mapped[int | None]


class SubscriptionRunRow(Base):
    """A run of a group, the ledger of a subscription: no signature comes twice.

    The signature is that of the group, the algorithm and its version, and the versions of objects.
    """

    __tablename__ = "subscription_runs"
    __table_args__ = (UniqueConstraint("subscription", "signature"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    subscription: Mapped[int] = mapped_column(
        ForeignKey("subscriptions.number", ondelete="CASCADE")
    )
    signature: Mapped[str] = mapped_column(String(64))
    group_name: Mapped[str] = mapped_column(String(1000))
    version: Mapped[int]
    job: Mapped[str] = mapped_column(String(22))
    state: Mapped[RunOutcome] = mapped_column(String(10), index=True)


class SubscriptionEventRow(Base):
    """An event of a subscription, by its number in it."""

    __tablename__ = "subscription_events"
    subscription: Mapped[int] = _subscription_key()
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(50))
    at: Mapped[datetime]
    content: Mapped[dict[str, Any]] = mapped_column(JSON)


class MailAddressRow(Base):
    """An address that a user has asked to send mail to. `key` is what links in mails have.

    The request to confirm it is sent at `due_at`.
    """

    __tablename__ = "mail_addresses"
    __table_args__ = (UniqueConstraint("owner", "address"),)
    number: Mapped[int] = mapped_column(Id, primary_key=True)
    owner: Mapped[str] = mapped_column(String(200))
    address: Mapped[str] = mapped_column(String(254))
    key: Mapped[str] = mapped_column(String(32), unique=True)
    state: Mapped[MailState] = mapped_column(String(10))
    requested_at: Mapped[datetime]
    tries: Mapped[int]
    due_at: Mapped[datetime | None] = mapped_column(index=True)
