"""Events of subscriptions that MQTT is to publish."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from sqlalchemy import select, update

from swathe.catalog.database import Database
from swathe.catalog.records.subscriptions import MqttBacklog
from swathe.catalog.subscriptions.events import events_after
from swathe.catalog.tables import SubscriptionTable
from swathe.catalog.tables.subscriptions import MQTT_IS_BEHIND

BACKLOG_DAYS = 1
"""Age of events in days from which on they are not published."""
MOST_SUBSCRIPTIONS = 20


class SubscriptionMqtt(Database):
    """Events that MQTT is to publish."""

    def mqtt_backlogs(self, limit: int) -> list[MqttBacklog]:
        """Return events that are not published yet, of a few subscriptions, in order.

        Those that are older than BACKLOG_DAYS are left out.

        Args:
            limit: largest number of events.
        """
        table = SubscriptionTable
        query = select(table).where(MQTT_IS_BEHIND).order_by(table.number)
        since = datetime.now(UTC) - timedelta(days=BACKLOG_DAYS)
        with self._reading() as session:
            backlogs = []
            rows = session.scalars(query.limit(min(limit, MOST_SUBSCRIPTIONS))).all()
            for row in rows:
                events = events_after(session, row, row.mqtt_event, limit // len(rows), since)
                last = events[-1].number if events else row.events
                backlogs.append(MqttBacklog(row.id, row.owner, events, last))
            return backlogs

    def record_publication(self, backlogs: Iterable[MqttBacklog]) -> None:
        """Record that events were published; those before them are not published any more."""
        table = SubscriptionTable
        with self._writing() as session:
            for each in backlogs:
                session.execute(
                    update(table)
                    .where(table.id == each.subscription, table.mqtt_event < each.last)
                    .values(mqtt_event=each.last)
                )
