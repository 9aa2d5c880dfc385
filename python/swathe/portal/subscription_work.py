"""Work on subscriptions while a portal runs: matching, jobs, and what tells users about events."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from swathe.portal.processes.callbacks import Callbacks
from swathe.subscriptions.deliveries import Deliveries
from swathe.subscriptions.mail_deliveries import MailDeliveries
from swathe.subscriptions.mqtt_deliveries import MqttDeliveries
from swathe.workers.restarting_thread import RestartingThread

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.portal.context import Portal

PAUSE_S = 1.0
"""Seconds between looks at the catalogue, which other processes change."""


class SubscriptionWork:
    """Threads of a portal: for jobs, and for each way to tell users, as these may be slow."""

    def __init__(self, portal: Portal) -> None:
        """Take the portal."""
        self._ending = threading.Event()
        catalog, url, config = portal.catalog, portal.own_url, portal.config
        turns = {
            "jobs": portal.subscriptions.turn,
            "webhooks": Deliveries(catalog, url, config.access.webhooks).deliver,
            "callbacks": Callbacks(portal).deliver,
        }
        if portal.mail_server is not None:
            turns["mail"] = MailDeliveries(catalog, portal.mail_server, url).deliver
        if portal.broker is not None:
            mqtt = MqttDeliveries(catalog, portal.broker, config.mqtt.topic, url)
            turns["mqtt"] = mqtt.deliver
        self._threads = [
            RestartingThread(f"swathe-subscriptions-{name}", self._pausing(turn), self._ending)
            for name, turn in turns.items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _pausing(self, turn: Callable[[], bool]) -> Callable[[], None]:
        """Return a turn that is followed by a pause if nothing was done."""

        def run() -> None:
            if not turn():
                self._ending.wait(PAUSE_S)

        return run
