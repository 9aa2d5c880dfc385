"""The MQTT broker that a portal publishes events to."""

from __future__ import annotations

import math
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swathe.core.errors import DeliveryError, SettingsError
from swathe.core.value_errors import short_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

PORT, TLS_PORT = 1883, 8883
TIMEOUT_S = 10.0
"""Time to connect, and then for the broker to acknowledge all messages of a call."""
MEDIA_TYPE = "application/cloudevents+json"
HEADER_BYTES = 13
"""Bytes of a packet besides topic, media type and content, at most."""
TOO_LARGE = 0x95
"""Code of the reason for which a broker ends a connection."""


@dataclass(frozen=True)
class MqttBroker:
    """A broker of MQTT 5.

    Attributes:
        host: its name or address.
        port: its port; 0: the usual one.
        has_tls: whether the connection is encrypted.
        user: user to sign in as; empty: nobody.
        password: password of the user.
    """

    host: str
    port: int = 0
    has_tls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)

    def check(self) -> None:
        """Check that the package for MQTT is there.

        Raises:
            SettingsError: If it is not.
        """
        try:
            import paho.mqtt.client  # noqa: F401
        except ImportError as error:
            raise SettingsError(f"mqtt.url: {error}; try: pip install 'swathe[mqtt]'") from error

    def publish(self, messages: Iterable[tuple[str, bytes]]) -> dict[str, str]:
        """Publish topics with their content, each at least once (QoS 1), in order.

        Returns:
            Why messages are refused, by topic: the broker has got the others. Those that are larger
            than it says to take are not sent.

        Raises:
            DeliveryError: If the broker has not answered all of them; it may have got some. It is
                final if the broker finds one too large.
        """
        call = _Call()
        try:
            client = self._client(call)
            client.connect(self.host, self.port or (TLS_PORT if self.has_tls else PORT))
            client.loop_start()
            try:
                return self._publish(client, call, messages)
            finally:
                client.disconnect()
                client.loop_stop()
        except (OSError, ValueError, RuntimeError) as error:
            if isinstance(error, DeliveryError):
                raise
            raise DeliveryError(f"mqtt: cannot be sent: {short_text(str(error))}") from error

    def _publish(
        self, client: Any, call: _Call, messages: Iterable[tuple[str, bytes]]
    ) -> dict[str, str]:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties: Any = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ContentType = MEDIA_TYPE
        call.wait_for_connection()
        until = time.monotonic() + TIMEOUT_S
        refusals, publications = {}, []
        for topic, content in messages:
            size = len(topic.encode()) + len(MEDIA_TYPE) + len(content) + HEADER_BYTES
            if size > call.most_bytes:
                refusals[topic] = (
                    f"expected a packet of at most {call.most_bytes:,} bytes, found {size:,}"
                )
                continue
            publication = client.publish(topic, content, qos=1, properties=properties)
            publications.append((topic, publication))
        for _, each in publications:
            while not each.is_published() and not call.fault and time.monotonic() < until:
                each.wait_for_publish(0.1)
            if call.fault or not each.is_published():
                reason = call.fault or f"no answer within {TIMEOUT_S:g} s"
                raise DeliveryError(
                    f"mqtt: expected the broker to take it, found {reason}",
                    is_final=call.is_too_large,
                )
        reasons = call.refusals
        return refusals | {
            topic: reasons[each.mid] for topic, each in publications if each.mid in reasons
        }

    def _client(self, call: _Call) -> Any:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

        client = Client(
            CallbackAPIVersion.VERSION2,
            protocol=MQTTProtocolVersion.MQTTv5,
            reconnect_on_failure=False,
        )
        client.connect_timeout = TIMEOUT_S
        if self.user:
            client.username_pw_set(self.user, self.password)
        if self.has_tls:
            client.tls_set_context(ssl.create_default_context())
        client.on_connect = call.on_connect
        client.on_disconnect = call.on_disconnect
        client.on_publish = call.on_publish
        return client


class _Call:
    """What a broker answers, on the thread of the client."""

    def __init__(self) -> None:
        self.fault = ""
        self.is_too_large = False
        self.most_bytes = math.inf
        self.refusals: dict[int, str] = {}
        self._is_connected = threading.Event()

    def wait_for_connection(self) -> None:
        if not self._is_connected.wait(TIMEOUT_S):
            self.fault = f"no answer within {TIMEOUT_S:g} s"
        if self.fault:
            raise DeliveryError(f"mqtt: expected a connection, found {self.fault}")

    def on_connect(
        self, _client: Any, _data: Any, _flags: Any, reason: Any, properties: Any
    ) -> None:
        self.most_bytes = getattr(properties, "MaximumPacketSize", math.inf)
        self._note(reason)
        self._is_connected.set()

    def on_publish(self, _client: Any, _data: Any, number: int, reason: Any, *_: Any) -> None:
        if reason.is_failure:
            self.refusals[number] = str(reason)

    def on_disconnect(self, _client: Any, _data: Any, _flags: Any, reason: Any, *_: Any) -> None:
        self._note(reason)
        self._is_connected.set()

    def _note(self, reason: Any) -> None:
        if reason.is_failure and not self.fault:
            self.fault = str(reason)
            self.is_too_large = reason.value == TOO_LARGE
