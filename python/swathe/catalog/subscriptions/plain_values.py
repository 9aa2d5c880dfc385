"""Rows of subscriptions and of their events as plain values."""

from __future__ import annotations

from dataclasses import fields

from swathe.catalog.records.subscriptions import Event, Subscription
from swathe.catalog.tables import SubscriptionEventRow, SubscriptionTable

COLUMNS = {"algorithm": "name", "collection": "dataset"}
"""Columns of fields of other names."""
FIELDS = {each.name: COLUMNS.get(each.name, each.name) for each in fields(Subscription)}
"""Column of each field of a subscription."""


def to_subscription(row: SubscriptionTable) -> Subscription:
    """Return a subscription as a plain value."""
    return Subscription(**{name: getattr(row, column) for name, column in FIELDS.items()})


def to_event(row: SubscriptionEventRow) -> Event:
    """Return an event as a plain value."""
    return Event(row.number, row.kind, row.at, row.content)  # type: ignore[arg-type]
