"""Webhooks: signed events, retries, and addresses that are refused."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any

import pytest
from sqlalchemy import update

from swathe.catalog import Catalog
from swathe.catalog.records.subscriptions import Delivery, Event
from swathe.catalog.tables import SubscriptionTable
from swathe.core.errors import WebhookError
from swathe.subscriptions import safe_post
from swathe.subscriptions.deliveries import JITTER, LADDER_S, Deliveries, pause_after
from swathe.subscriptions.service import Subscriptions
from swathe.subscriptions.webhook_address import CheckedBackend, check_url, is_public
from swathe.subscriptions.webhook_request import send
from tests.support.subscriptions import idle_service, new_dataset, put, request, work
from tests.support.webhook_receiver import Receiver, receiving

SECRET = base64.b64encode(b"k" * 32).decode()
URL = "https://archive.example"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def delivery(url: str, tries: int = 0) -> Delivery:
    event = Event(7, "run.done", datetime(2005, 5, 1, tzinfo=UTC), {"group": "a", "file": "é.nc"})
    return Delivery("s" * 22, "ann", url, SECRET, event, tries)


def test_an_event_is_signed_as_the_standard_has_it(receiver: Receiver) -> None:
    webhooks = pytest.importorskip("standardwebhooks.webhooks")
    send(delivery(receiver.url), URL, ["127.0.0.1"])
    ((headers, body),) = receiver.got
    event = webhooks.Webhook(f"whsec_{SECRET}").verify(body, headers)
    assert event == json.loads(body)
    assert event == {
        "specversion": "1.0",
        "id": f"{'s' * 22}.7",
        "source": f"{URL}/api/subscriptions/{'s' * 22}",
        "type": "org.swathe.run.done",
        "subject": "a",
        "time": "2005-05-01T00:00:00Z",
        "datacontenttype": "application/json",
        "data": {"group": "a", "file": "é.nc"},
    }
    assert headers["content-type"] == "application/cloudevents+json"
    assert headers["webhook-id"] == event["id"]
    with pytest.raises(webhooks.WebhookVerificationError):
        webhooks.Webhook(f"whsec_{SECRET}").verify(body + b" ", headers)


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    for status in (301, 307, 500, 410):
        receiver.statuses = [status]
        with pytest.raises(WebhookError, match=f"found {status}") as fault:
            send(delivery(receiver.url), URL, ["127.0.0.1"])
        assert fault.value.is_final == (status == 410)
    assert len(receiver.got) == 4


def test_a_host_that_is_not_public_is_refused(receiver: Receiver) -> None:
    port = receiver.server_port
    for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "2130706433", "[::]"):
        with pytest.raises(WebhookError, match=r"expected a public address|cannot be resolved"):
            send(delivery(f"http://{host}:{port}/"), URL, [])
    with pytest.raises(WebhookError, match="expected a public address"):
        send(delivery(receiver.url), URL, [f"127.0.0.1:{port + 1}", "other.example"])
    assert receiver.got == []
    send(delivery(receiver.url), URL, [f"127.0.0.1:{port}"])


def test_an_address_is_checked_before_an_event_comes(catalog: Catalog) -> None:
    new_dataset(catalog)
    _, jobs = idle_service(catalog)
    service = Subscriptions(jobs, webhook_hosts=["10.0.0.1", "[::1]:80"])  # type: ignore[arg-type]
    hosts = ("127.0.0.1", "10.0.0.2:10", "2130706433", "0x7f.1", "[::1]:81", "[::ffff:7f00:1]")
    for host in hosts:
        with pytest.raises(WebhookError, match="expected a public address"):
            service.add(request(webhook=f"http://{host}/x"), "ann")
    # A name is looked up when an event is sent.
    for host in (
        "localhost:9",
        "8.8.8.8",
        "10.0.0.1",
        "10.0.0.1:9",
        "[::1]",
        f"{'a' * 70}.example",
    ):
        service.add(request(webhook=f"http://{host}/x"), "ann")


def test_the_address_that_was_checked_is_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that resolves to a public address the first time, and to this machine later."""
    asked: list[str] = []

    def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        address = "203.0.113.9" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    backend = CheckedBackend([], 1.0)
    monkeypatch.setattr(
        "swathe.subscriptions.webhook_address.is_public", lambda at: at != ip_address("127.0.0.1")
    )
    reached: list[str] = []

    def connect(_self: Any, host: str, *_: Any, **__: Any) -> Any:
        reached.append(host)
        raise AssertionError("no connection in this test")

    monkeypatch.setattr("httpcore.SyncBackend.connect_tcp", connect)
    with pytest.raises(AssertionError):
        backend.connect_tcp("rebind.example", 80)
    assert (reached, asked) == (["203.0.113.9"], ["rebind.example"])
    with pytest.raises(WebhookError, match="expected a public address") as fault:
        backend.connect_tcp("rebind.example", 80)
    assert "127" not in str(fault.value)  # it would tell how names resolve inside


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        *((each, True) for each in ("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8")),
        *((each, False) for each in ("10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254")),
        *((each, False) for each in ("127.0.0.9", "0.0.0.0", "100.64.0.1", "224.0.0.1")),
        *((each, False) for each in ("255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1")),
        *((each, False) for each in ("fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1")),
        *((each, False) for each in ("::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::a00:1")),
        *((each, False) for each in ("192.0.0.8", "192.88.99.1", "3fff::1", "3fff:fff::1")),
        *((each, False) for each in ("2606:4700::5efe:a00:1", "2606:4700::200:5efe:7f00:1")),
        ("2606:4700::5efe:808:808", True),
    ],
)
def test_public_addresses(address: str, expected: bool) -> None:
    assert is_public(ip_address(address)) == expected


@pytest.mark.parametrize(
    "url",
    [
        *("", "ftp://a.example/", "file:///etc/passwd", "//a.example", "http://", "http://:80/"),
        *("http://u:p@a.example/", "http://a.example:0/", "http://a.example:99999/"),
        *("http://a.example/\r\nX: y", "http://a.example\\@b/", "http://é.example/", "gopher://a/"),
        "http://a.example/" + "x" * 3000,
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(WebhookError, match="expected http"):
        check_url(url)


@contextmanager
def talker(content: bytes, pause_s: float) -> Iterator[str]:
    """A server that sends bytes for ever, slowly or not."""
    ending = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk() -> None:
            connection, _ = server.accept()
            with connection:
                try:
                    connection.sendall(b"HTTP/1.1 ")
                    while not ending.wait(pause_s):
                        connection.sendall(content)
                except OSError:
                    return  # it was closed by the sender, as it should be

        thread = threading.Thread(target=talk)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        ending.set()
        thread.join()


def test_answers_without_end_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_post, "REQUEST_S", 0.5)
    for content, pause_s in ((b"2", 0.05), (b"200 OK\r\nX: " + b"y" * 50_000, 0.0)):
        with (
            talker(content, pause_s) as url,
            pytest.raises(WebhookError, match=r"no answer|cannot be sent"),
        ):
            send(delivery(url), URL, ["127.0.0.1"])
    body = b"200 OK\r\nContent-Length: 10000000000\r\n\r\n" + b"z" * 60_000
    with talker(body, 0.0) as url:
        send(delivery(url), URL, ["127.0.0.1"])  # the status counts


def due_now(catalog: Catalog) -> None:
    with catalog._writing() as session:
        table = SubscriptionTable
        waiting = table.webhook_due_at.is_not(None)
        session.execute(update(table).where(waiting).values(webhook_due_at=datetime.now(UTC)))


def test_events_are_delivered_in_order_and_again_after_failures(
    catalog: Catalog, receiver: Receiver
) -> None:
    new_dataset(catalog)
    service, _ = idle_service(catalog)
    subscription = service.add(request(webhook=receiver.url), "ann").id
    deliveries = Deliveries(catalog, URL, ["127.0.0.1"])
    assert not deliveries.deliver()
    for path in "ab":
        put(catalog, path)
    work(service)
    receiver.statuses = [204, 503]
    assert deliveries.deliver()
    assert deliveries.deliver()
    assert not deliveries.deliver()
    assert "found 503" in catalog.subscription(subscription).webhook_fault
    due_now(catalog)
    while deliveries.deliver():
        pass
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert ids == [f"{subscription}.{number}" for number in (1, 2, 2)]
    assert catalog.subscription(subscription).webhook_fault == ""


def test_a_webhook_that_fails_for_a_week_is_disabled(catalog: Catalog, receiver: Receiver) -> None:
    new_dataset(catalog)
    service, _ = idle_service(catalog)
    subscription = service.add(request(webhook=receiver.url), "ann").id
    put(catalog, "a")
    work(service)
    deliveries = Deliveries(catalog, URL, ["127.0.0.1"])
    receiver.statuses = [500] * 100
    for _ in range(len(LADDER_S) + 1):
        assert deliveries.deliver()
        due_now(catalog)
    assert not deliveries.deliver()
    put(catalog, "b")
    work(service)
    assert not deliveries.deliver()
    kinds = [each.kind for each in catalog.subscription_events(subscription, 0, 100)]
    assert kinds == ["run.submitted", "webhook.disabled", "run.submitted"]
    receiver.statuses.clear()
    catalog.resume_subscription(subscription)
    while deliveries.deliver():
        pass
    assert receiver.got[-1][0]["webhook-id"] == f"{subscription}.3"


def test_the_ladder_takes_a_week() -> None:
    assert LADDER_S[:5] == (60, 600, 3600, 6 * 3600, 16 * 3600)
    assert 6.5 * 86_400 < sum(LADDER_S) < 7.5 * 86_400
    pauses = {pause_after(0).total_seconds() for _ in range(20)}
    assert len(pauses) > 1
    assert all(60 * (1 - JITTER) <= each <= 60 * (1 + JITTER) for each in pauses)
