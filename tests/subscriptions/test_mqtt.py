"""Events published to a real broker of MQTT, and what becomes of them while it is down."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from swathe.catalog import Catalog
from swathe.catalog.subscriptions.mqtt import MOST_SUBSCRIPTIONS
from swathe.catalog.tables import SubscriptionEventRow
from swathe.core.errors import DeliveryError
from swathe.subscriptions import mqtt_deliveries
from swathe.subscriptions.cloud_events import to_cloud_event
from swathe.subscriptions.mqtt_broker import MqttBroker
from swathe.subscriptions.mqtt_deliveries import MqttDeliveries
from tests.support.servers import free_port
from tests.support.subscriptions import idle_service, new_dataset, put, request, work

client = pytest.importorskip("paho.mqtt.client")
MOSQUITTO = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
if not Path(MOSQUITTO).exists():
    pytest.skip("mosquitto is not installed", allow_module_level=True)

URL = "https://archive.example"


@contextmanager
def broker(folder: Path, port: int, *settings: str) -> Iterator[None]:
    """A broker that runs at a port of this machine."""
    lines = [f"listener {port} 127.0.0.1", "persistence false", "user root", *settings]
    (folder / "mosquitto.conf").write_text("\n".join(lines))
    with (folder / "mosquitto.log").open("a") as log:
        command = [MOSQUITTO, "-c", str(folder / "mosquitto.conf")]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def listening(port: int, topic: str = "swathe/#") -> Iterator[queue.Queue[Any]]:
    """A client that has subscribed to a topic; gives its messages."""
    messages: queue.Queue[Any] = queue.Queue()
    ready: queue.Queue[bool] = queue.Queue()
    reader = client.Client(client.CallbackAPIVersion.VERSION2, protocol=client.MQTTv5)
    reader.on_message = lambda _client, _data, message: messages.put(message)
    reader.on_connect = lambda *_: reader.subscribe(topic, qos=1)
    reader.on_subscribe = lambda *_: ready.put(True)
    until = time.monotonic() + 60
    while True:
        try:
            reader.connect("127.0.0.1", port)
        except ConnectionRefusedError:
            assert time.monotonic() < until
            time.sleep(0.05)
        else:
            break
    reader.loop_start()
    try:
        ready.get(timeout=60)
        yield messages
    finally:
        reader.disconnect()
        reader.loop_stop()


def test_messages_are_the_events_of_the_feed(catalog: Catalog, tmp_path: Path) -> None:
    new_dataset(catalog)
    service, _ = idle_service(catalog)
    ids = [service.add(request(), owner).id for owner in ("ann+a@mail.example", "bob")]
    for number in range(60):
        put(catalog, f"{number:02}")
    work(service)
    port = free_port()
    deliveries = MqttDeliveries(catalog, MqttBroker("127.0.0.1", port), "swathe", URL)
    with broker(tmp_path, port, "allow_anonymous true"), listening(port) as messages:
        while deliveries.deliver():
            pass
        got = [messages.get(timeout=60) for _ in range(120)]
        assert not deliveries.deliver()
        assert messages.empty()
    assert {each.qos for each in got} == {1}
    assert {each.properties.ContentType for each in got} == {"application/cloudevents+json"}
    for owner, subscription in zip(("ann%2Ba@mail.example", "bob"), ids, strict=True):
        mine = [each for each in got if each.topic == f"swathe/{owner}/{subscription}"]
        feed = catalog.subscription_events(subscription, 0, 100)
        expected = [to_cloud_event(each, subscription, URL) for each in feed]
        assert [json.loads(each.payload) for each in mine] == expected


def test_events_wait_for_a_broker_that_is_down_but_not_for_ever(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_deliveries, "PAUSES_S", (0.0,))
    new_dataset(catalog)
    service, _ = idle_service(catalog)
    subscription = service.add(request(), "ann").id
    port = free_port()
    deliveries = MqttDeliveries(catalog, MqttBroker("127.0.0.1", port), "swathe", URL)
    for path in "abc":
        put(catalog, path)
    work(service)
    assert not deliveries.deliver()
    with catalog._writing() as session:
        old = datetime.now(UTC) - timedelta(days=1, minutes=1)
        first = SubscriptionEventRow.number == 1
        session.execute(update(SubscriptionEventRow).where(first).values(at=old))
    with broker(tmp_path, port, "allow_anonymous true"), listening(port) as messages:
        assert deliveries.deliver()
        numbers = [json.loads(messages.get(timeout=60).payload)["id"] for _ in range(2)]
        assert numbers == [f"{subscription}.2", f"{subscription}.3"]
        assert not deliveries.deliver()


def test_a_broker_that_refuses_gets_them_again(catalog: Catalog, tmp_path: Path) -> None:
    new_dataset(catalog)
    service, _ = idle_service(catalog)
    service.add(request(), "ann")
    put(catalog, "a")
    work(service)
    port = free_port()
    (tmp_path / "acl").write_text("topic read #\n")
    with broker(tmp_path, port, "allow_anonymous false"):
        with pytest.raises(DeliveryError, match=r"expected a connection, found Not auth") as fault:
            wait_until_it_listens(port)
        assert not fault.value.is_final
    with broker(tmp_path, port, "allow_anonymous true", f"acl_file {tmp_path / 'acl'}"):
        with listening(port):
            pass
        deliveries = MqttDeliveries(catalog, MqttBroker("127.0.0.1", port), "swathe", URL)
        # What a broker refuses is left to the feed.
        assert deliveries.deliver()
    assert catalog.mqtt_backlogs(10) == []


def wait_until_it_listens(port: int) -> None:
    """Publish nothing, until a broker is there."""
    until = time.monotonic() + 60
    while True:
        try:
            MqttBroker("127.0.0.1", port).publish([])
        except DeliveryError as error:
            if "refused" not in str(error).lower() or time.monotonic() > until:
                raise
        time.sleep(0.05)


@pytest.mark.parametrize(
    "settings", ["acl_file {folder}/acl", "max_packet_size 1000"], ids=["refused", "too large"]
)
def test_events_of_one_user_do_not_stop_those_of_others(
    catalog: Catalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: str,
) -> None:
    monkeypatch.setattr(mqtt_deliveries, "PAUSES_S", (0.0,))
    new_dataset(catalog)
    service, _ = idle_service(catalog)
    for _ in range(MOST_SUBSCRIPTIONS + 1):
        service.add(request(), "eve")
    put(catalog, "x" * 900)
    work(service)
    service.add(request(), "bob")
    for number in range(3):
        put(catalog, f"{number}")
    work(service)
    (tmp_path / "acl").write_text("topic read #\ntopic write swathe/bob/#\n")
    port = free_port()
    deliveries = MqttDeliveries(catalog, MqttBroker("127.0.0.1", port), "swathe", URL)
    with (
        broker(tmp_path, port, "allow_anonymous true", settings.format(folder=tmp_path)),
        listening(port, "swathe/bob/#") as messages,
    ):
        assert deliveries.deliver() and deliveries.deliver()
        assert len({json.loads(messages.get(timeout=30).payload)["id"] for _ in range(3)}) == 3
        assert catalog.mqtt_backlogs(100) == []


def test_an_event_that_ends_the_connection_is_left_to_the_feed(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_dataset(catalog)
    service, _ = idle_service(catalog)
    service.add(request(), "eve")
    for name in ("a", "x" * 900, "b"):
        put(catalog, name)
    work(service)
    taken: list[str] = []

    def publish(_broker: MqttBroker, messages: Sequence[tuple[str, bytes]]) -> dict[str, str]:
        """Act as a broker that does not say how much it takes."""
        if any(len(content) > 900 for _, content in messages):
            raise DeliveryError("mqtt: Packet too large", is_final=True)
        taken.extend(json.loads(content)["id"].partition(".")[2] for _, content in messages)
        return {}

    monkeypatch.setattr(MqttBroker, "publish", publish)
    assert MqttDeliveries(catalog, MqttBroker("broker.example"), "swathe", URL).deliver()
    assert taken == ["1", "3"]
    assert catalog.mqtt_backlogs(100) == []


def test_a_long_event_is_sent_without_its_granules(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_dataset(catalog)
    service, _ = idle_service(catalog)
    subscription = service.add(request(), "ann").id
    monkeypatch.setattr(mqtt_deliveries, "MOST_BYTES", 900)
    put(catalog, "x" * 900)
    work(service)
    sent: list[tuple[str, bytes]] = []

    def publish(_broker: MqttBroker, messages: list[tuple[str, bytes]]) -> dict[str, str]:
        sent.extend(messages)
        return {}

    monkeypatch.setattr(MqttBroker, "publish", publish)
    assert MqttDeliveries(catalog, MqttBroker("broker.example"), "swathe", URL).deliver()
    (event,) = (json.loads(content) for _, content in sent)
    assert event["id"] == f"{subscription}.1"
    assert sorted(event["data"]) == ["algorithm", "group", "job", "version"]
