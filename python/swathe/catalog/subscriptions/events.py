"""Events of subscriptions: the feed, and what is to be delivered to webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from swathe.catalog.database import Database
from swathe.catalog.due_turns import LOOKS, DueTurns
from swathe.catalog.records.checks import plain_text
from swathe.catalog.records.subscriptions import Delivery, Event, EventKind
from swathe.catalog.subscriptions.plain_values import to_event
from swathe.catalog.tables import SubscriptionEventRow, SubscriptionTable

MOST_EVENTS = 10_000
"""Events of a subscription that are stored; older ones are removed."""
LONGEST_FAULT = 500
LEASE_S = 60.0
"""Time for a delivery, after which another process may try it."""


def add_event(
    session: Session, subscription: SubscriptionTable, kind: EventKind, content: Mapping[str, Any]
) -> None:
    """Add an event. Its number is the next one of the subscription, which must be locked."""
    now = datetime.now(UTC)
    subscription.events += 1
    session.add(
        SubscriptionEventRow(
            subscription=subscription.number,
            number=subscription.events,
            kind=kind,
            at=now,
            content=dict(content),
        )
    )
    if subscription.events % 100 == 0:
        session.execute(
            delete(SubscriptionEventRow).where(
                SubscriptionEventRow.subscription == subscription.number,
                SubscriptionEventRow.number <= subscription.events - MOST_EVENTS,
            )
        )
    is_waiting = subscription.webhook_due_at is not None
    if subscription.webhook and not is_waiting and not subscription.webhook_fault:
        subscription.webhook_due_at = now
    is_waiting = subscription.mail_due_at is not None
    if subscription.mail and not is_waiting and not subscription.mail_fault:
        subscription.mail_due_at = now


class SubscriptionEvents(Database):
    """Events of subscriptions."""

    def subscription_events(self, subscription_id: str, after: int, limit: int) -> list[Event]:
        """Return the stored events after a number, in order."""
        query = (
            select(SubscriptionEventRow)
            .join(SubscriptionTable, SubscriptionTable.number == SubscriptionEventRow.subscription)
            .where(SubscriptionTable.id == subscription_id, SubscriptionEventRow.number > after)
            .order_by(SubscriptionEventRow.number)
            .limit(limit)
        )
        with self._reading() as session:
            return [to_event(row) for row in session.scalars(query)]

    def due_deliveries(self, limit: int, of_a_user: int) -> list[Delivery]:
        """Return the next event of each webhook that is due, earliest first.

        They are leased for LEASE_S: after that they are due again, if nothing was recorded.

        Args:
            limit: largest number of deliveries.
            of_a_user: largest number of those of one user.
        """
        now = datetime.now(UTC)
        number = SubscriptionEventRow.number
        first = (
            select(number)
            .where(
                SubscriptionEventRow.subscription == SubscriptionTable.number,
                number > SubscriptionTable.webhook_event,
            )
            .order_by(number)
            .limit(1)
            .correlate(SubscriptionTable)
            .scalar_subquery()
        )
        query = (
            select(SubscriptionTable, SubscriptionEventRow)
            .outerjoin(
                SubscriptionEventRow,
                (SubscriptionEventRow.subscription == SubscriptionTable.number) & (number == first),
            )
            .where(SubscriptionTable.webhook_due_at <= now)
            .order_by(SubscriptionTable.webhook_due_at)
            .limit(LOOKS * limit)
            .with_for_update(of=SubscriptionTable)
        )
        with self._writing() as session:
            deliveries: list[Delivery] = []
            turns = DueTurns(limit, of_a_user)
            for row, event in session.execute(query):
                if event is None or row.webhook is None:
                    if row.events <= row.webhook_event:  # none was added just now
                        row.webhook_due_at = None
                    continue
                if not turns.take(row.owner):
                    continue
                row.webhook_due_at = now + timedelta(seconds=LEASE_S)
                deliveries.append(
                    Delivery(
                        row.id,
                        row.owner,
                        row.webhook,
                        row.secret,
                        to_event(event),
                        row.webhook_tries,
                    )
                )
            return deliveries

    def record_delivery(self, delivery: Delivery) -> None:
        """Record that an event was delivered; the next one is due."""
        values = {"event": delivery.event.number, "tries": 0, "fault": ""}
        self._change_webhook(delivery, {**values, "due_at": datetime.now(UTC)})

    def record_failure(self, delivery: Delivery, reason: str, retry_at: datetime | None) -> None:
        """Record that an event could not be delivered; without a next try the webhook is disabled.

        That it is disabled is an event of the feed.
        """
        values = {"tries": delivery.tries + 1, "fault": fault_of(reason), "due_at": retry_at}
        self._change_webhook(delivery, values)

    def _change_webhook(self, delivery: Delivery, values: Mapping[str, Any]) -> None:
        with self._writing() as session:
            change_hint(
                session,
                "webhook",
                delivery.subscription,
                (delivery.event.number, delivery.tries),
                values,
                {"url": delivery.url},
            )


def change_hint(
    session: Session,
    kind: Literal["webhook", "mail"],
    subscription_id: str,
    as_read: tuple[int, int],
    values: Mapping[str, Any],
    content: Mapping[str, Any],
) -> None:
    """Change the state of a webhook or of mail, unless another process has done so meanwhile.

    If it is disabled, that is an event of the feed.

    Args:
        session: transaction.
        kind: beginning of the names of the columns.
        subscription_id: the subscription.
        as_read: number of the event that was delivered or not, and of earlier tries.
        values: `event`, `tries`, `fault`, `due_at`, as they change; it is disabled if it failed and
            there is no `due_at`.
        content: content of the event, besides the reason.
    """
    table = SubscriptionTable
    event, tries = as_read
    number = session.scalar(
        update(table)
        .where(
            table.id == subscription_id,
            getattr(table, f"{kind}_event") < event,
            getattr(table, f"{kind}_tries") == tries,
            getattr(table, f"{kind}_due_at").is_not(None),
        )
        .values({f"{kind}_{name}": value for name, value in values.items()})
        .returning(table.number)
    )
    if number is None or values["due_at"] is not None:
        return
    row = session.get(table, number)
    assert row is not None
    add_event(session, row, f"{kind}.disabled", {**content, "reason": values["fault"]})  # type: ignore[arg-type]


def fault_of(reason: str) -> str:
    """Return the reason of a failure as it is stored."""
    return plain_text(reason, LONGEST_FAULT) or "unknown error"


def events_after(
    session: Session,
    row: SubscriptionTable,
    number: int,
    limit: int,
    since: datetime | None = None,
) -> list[Event]:
    """Return stored events of a subscription after a number, and since a time, in order."""
    query = (
        select(SubscriptionEventRow)
        .where(
            SubscriptionEventRow.subscription == row.number, SubscriptionEventRow.number > number
        )
        .order_by(SubscriptionEventRow.number)
        .limit(limit)
    )
    if since is not None:
        query = query.where(SubscriptionEventRow.at >= since)
    return [to_event(each) for each in session.scalars(query)]
