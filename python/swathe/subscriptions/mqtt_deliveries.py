"""Events published by MQTT, as CloudEvents: those of all subscriptions of a portal."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from swathe.core.errors import DeliveryError
from swathe.subscriptions.cloud_events import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.catalog import Catalog
    from swathe.catalog.records.subscriptions import Event, MqttBacklog
    from swathe.subscriptions.mqtt_broker import MqttBroker

log = logging.getLogger(__name__)

AT_ONCE = 100
PAUSES_S = (1.0, 5.0, 15.0, 60.0)
"""Pauses after failures; the last one is for all that follow."""
MOST_FAILURES = 3
"""Subscriptions whose events fail apart, after which the broker is left for a while."""
MOST_BYTES = 100_000
"""Longest event: brokers refuse others. One that is longer is sent without its granules."""


class MqttDeliveries:
    """Events that are published. The feed has them all: a message is only a hint."""

    def __init__(self, catalog: Catalog, broker: MqttBroker, topic: str, portal_url: str) -> None:
        """Take the catalogue, the broker, the beginning of topics, and the portal's URL."""
        self._catalog, self._broker, self._portal_url = catalog, broker, portal_url
        self._topic = topic
        self._failures, self._pause_until = 0, 0.0

    def deliver(self) -> bool:
        """Publish the next events; return whether there were some that the broker took.

        Events that the broker refuses, or finds too large, are left to the feed. If it ends the
        connection, those of each subscription are tried apart, so that one that it cannot take
        stops no others.
        """
        if time.monotonic() < self._pause_until:
            return False
        backlogs = self._catalog.mqtt_backlogs(AT_ONCE)
        try:
            self._publish(backlogs)
        except DeliveryError as error:
            log.warning("events wait: %s", error)
            pause_s = PAUSES_S[min(self._failures, len(PAUSES_S) - 1)]
            self._failures += 1
            self._pause_until = time.monotonic() + pause_s
            may_be_one = len(backlogs) > 1 or error.is_final
            return may_be_one and self._publish_apart(backlogs)
        self._failures = 0
        return bool(backlogs)

    def _publish_apart(self, backlogs: Sequence[MqttBacklog]) -> bool:
        """Publish the events of each subscription by a call of its own; return if any was taken."""
        failures, is_any_taken = 0, False
        try:
            self._broker.publish(())
        except DeliveryError:
            return False  # it cannot be reached
        for each in backlogs:
            try:
                for event in each.events:
                    self._publish_one(replace(each, events=[event], last=event.number))
                    is_any_taken = True
                self._catalog.record_publication([each])
            except DeliveryError as error:
                log.warning("events of %s wait: %s", each.subscription, error)
                failures += 1
                if failures == MOST_FAILURES:
                    break
        return is_any_taken

    def _publish_one(self, backlog: MqttBacklog) -> None:
        """Publish one event, and record it, also if the broker finds it too large.

        Raises:
            DeliveryError: If the broker cannot be used.
        """
        try:
            self._publish([backlog])
        except DeliveryError as error:
            if not error.is_final:
                raise
            log.warning("%s: left to the feed: %s", self._topic_of(backlog), error)
            self._catalog.record_publication([backlog])

    def _publish(self, backlogs: Sequence[MqttBacklog]) -> None:
        """Publish events, and record it.

        Raises:
            DeliveryError: If the broker cannot be used.
        """
        messages = [
            (self._topic_of(each), self._json(each.subscription, event))
            for each in backlogs
            for event in each.events
        ]
        for topic, reason in (self._broker.publish(messages) if messages else {}).items():
            log.warning("%s: the broker refuses an event, the feed has it: %s", topic, reason)
        self._catalog.record_publication(backlogs)

    def _topic_of(self, backlog: MqttBacklog) -> str:
        # A plus sign in a topic would stand for any name.
        return f"{self._topic}/{quote(backlog.owner, safe='@')}/{backlog.subscription}"

    def _json(self, subscription: str, event: Event) -> bytes:
        content = to_json(event, subscription, self._portal_url)
        if len(content) <= MOST_BYTES:
            return content
        fields = {name: value for name, value in event.content.items() if name != "granules"}
        return to_json(replace(event, content=fields), subscription, self._portal_url)
