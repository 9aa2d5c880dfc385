"""Mail about events: confirmed addresses, digests, retries, and what is refused."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from swathe.catalog import Catalog
from swathe.catalog.records.subscriptions import MailAddress
from swathe.catalog.subscriptions.mail import DIGEST_EVENTS, DIGEST_S, MOST_REQUESTS
from swathe.catalog.tables import MailAddressRow, SubscriptionTable
from swathe.core.errors import DeliveryError, LimitError, SubscriptionError
from swathe.subscriptions.deliveries import LADDER_S
from swathe.subscriptions.mail_deliveries import MailDeliveries
from swathe.subscriptions.mail_messages import request_message
from swathe.subscriptions.mail_server import MailServer, check_address
from swathe.subscriptions.service import Subscriptions
from tests.support.mail_receiver import Mailbox, key_in, receiving_mail, text_of
from tests.support.servers import make_certificate
from tests.support.subscriptions import IdleJobs, new_dataset, put, request, work

URL = "https://archive.example"
SENDER = "portal@archive.example"
ANN = "ann@mail.example"
ADDRESS = MailAddress("ann", ANN, "k" * 32, "requested", 0)


@pytest.fixture(scope="module")
def server() -> Iterator[Mailbox]:
    with receiving_mail() as mailbox:
        yield mailbox


@pytest.fixture
def mailbox(server: Mailbox) -> Mailbox:
    server.take()
    server.recipients.clear()
    server.answers.clear()
    return server


@pytest.fixture
def service(catalog: Catalog) -> Subscriptions:
    new_dataset(catalog)
    jobs: Any = IdleJobs(catalog)
    return Subscriptions(jobs, sends_mail=True)


def deliveries_of(catalog: Catalog, mailbox: Mailbox) -> MailDeliveries:
    server = MailServer(mailbox.host, SENDER, "none", mailbox.port)
    return MailDeliveries(catalog, server, URL)


def due_now(catalog: Catalog) -> None:
    """Let the time pass until all that waits is due."""
    now = datetime.now(UTC)
    with catalog._writing() as session:
        for column in (SubscriptionTable.mail_due_at, MailAddressRow.due_at):
            query = update(column.class_).where(column.is_not(None))
            session.execute(query.values({column.key: now}))


def test_an_address_is_confirmed_then_gets_digests_until_it_stops_them(
    catalog: Catalog, service: Subscriptions, mailbox: Mailbox
) -> None:
    added = service.add(request(mail=ANN), "ann")
    assert "not confirmed" in added.mail_fault
    deliveries = deliveries_of(catalog, mailbox)
    for path in ("a", "b\r\nBcc: eve@x", "c"):
        put(catalog, path)
    work(service)
    assert deliveries.deliver()
    (first,) = mailbox.take()
    assert (first["To"], first["From"]) == (ANN, SENDER)
    assert "The user ann of the portal https://archive.example" in text_of(first)
    key = key_in(first)
    due_now(catalog)
    assert not deliveries.deliver(), "nothing more before it is confirmed"

    catalog.confirm_mail(key)
    assert catalog.subscription(added.id).mail_fault == ""
    assert deliveries.deliver()
    (digest,) = mailbox.take()
    assert digest["Subject"] == "3 events of reduce on swaths"
    assert digest["List-Unsubscribe"] == f"<{URL}/mail/{key}/stop>"
    assert digest["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert digest["Message-ID"] == f"<{added.id}.3@archive.example>"
    text = text_of(digest)
    assert text.count("run.submitted") == 3
    assert r"b\r\nBcc: eve@x" in text.replace(r"\x0d", r"\r").replace(r"\x0a", r"\n")
    assert f"To stop mail from ann of this portal, open {URL}/mail/{key}" in text

    put(catalog, "d")
    work(service)
    assert not deliveries.deliver(), "not before a minute is over"
    due_at = scalar(catalog, SubscriptionTable.mail_due_at)
    assert 0.5 * DIGEST_S < (due_at - datetime.now(UTC)).total_seconds() <= DIGEST_S
    due_now(catalog)
    deliveries.deliver()
    assert [each["Subject"] for each in mailbox.take()] == ["1 event of reduce on swaths"]

    catalog.stop_mail(key)
    put(catalog, "e")
    work(service)
    due_now(catalog)
    assert not deliveries.deliver()
    assert "stopped" in catalog.resume_subscription(added.id).mail_fault
    with pytest.raises(SubscriptionError, match="its owner has stopped mail"):
        service.add(request(mail=ANN), "ann")
    assert {*mailbox.recipients} == {ANN}
    catalog.confirm_mail(key)
    assert deliveries.deliver()
    assert "mail.disabled" in text_of(*mailbox.take())


def scalar(catalog: Catalog, column: Any) -> Any:
    with catalog._reading() as session:
        return session.scalar(select(column))


def confirmed(catalog: Catalog, service: Subscriptions, deliveries: MailDeliveries) -> str:
    """A subscription whose mail is confirmed, with an event; its id."""
    added = service.add(request(mail=ANN), "ann").id
    deliveries.deliver()
    catalog.confirm_mail(scalar(catalog, MailAddressRow.key))
    put(catalog, "a")
    work(service)
    return added


def test_failures_are_tried_again_and_events_gather(
    catalog: Catalog, service: Subscriptions, mailbox: Mailbox
) -> None:
    deliveries = deliveries_of(catalog, mailbox)
    added = confirmed(catalog, service, deliveries)
    mailbox.take()
    mailbox.answers["DATA"] = "451 try again"
    assert deliveries.deliver()
    assert "451" in catalog.subscription(added).mail_fault
    for number in range(DIGEST_EVENTS):
        put(catalog, f"b{number:03}")
    work(service)
    mailbox.answers.clear()
    due_now(catalog)
    assert deliveries.deliver()
    (digest,) = mailbox.take()
    assert digest["Subject"] == f"{DIGEST_EVENTS + 1} events of reduce on swaths"
    assert text_of(digest).count("run.submitted") == DIGEST_EVENTS
    assert "... and 1 further event." in text_of(digest)
    assert catalog.subscription(added).mail_fault == ""

    put(catalog, "c")
    work(service)
    mailbox.answers["DATA"] = "554 no"  # of the portal or its text, not of the address
    for _ in range(len(LADDER_S) + 1):
        due_now(catalog)
        assert deliveries.deliver()
    due_now(catalog)
    assert not deliveries.deliver()
    assert catalog.subscription_events(added, 0, 100)[-1].kind == "mail.disabled"
    mailbox.answers.clear()
    catalog.resume_subscription(added)
    assert deliveries.deliver()
    assert len(mailbox.take()) == 1


def test_a_mailbox_that_does_not_exist_gets_no_second_mail(
    catalog: Catalog, service: Subscriptions, mailbox: Mailbox
) -> None:
    deliveries = deliveries_of(catalog, mailbox)
    mailbox.answers["RCPT"] = "550 no such user"
    added = service.add(request(mail=ANN), "ann").id
    assert deliveries.deliver()
    due_now(catalog)
    assert not deliveries.deliver()
    assert "550" in catalog.subscription(added).mail_fault
    mailbox.answers.clear()
    catalog.resume_subscription(added)
    assert deliveries.deliver()
    assert len(mailbox.take()) == 1


def test_a_user_can_ask_few_addresses_and_each_once(
    catalog: Catalog, service: Subscriptions, mailbox: Mailbox
) -> None:
    deliveries = deliveries_of(catalog, mailbox)
    for number in range(MOST_REQUESTS):
        for _ in range(2):
            added = service.add(request(mail=f"a{number}@mail.example"), "ann")
            catalog.remove_subscription(added.id)
    with pytest.raises(LimitError, match="not confirmed"):
        service.add(request(mail="b@mail.example"), "ann")
    service.add(request(mail="a0@mail.example"), "bob")
    while deliveries.deliver():
        pass
    assert len(mailbox.take()) == MOST_REQUESTS + 1


def test_without_a_server_mail_is_refused(catalog: Catalog) -> None:
    new_dataset(catalog)
    jobs: Any = IdleJobs(catalog)
    with pytest.raises(SubscriptionError, match=r"no server|mail\.server"):
        Subscriptions(jobs).add(request(mail=ANN), "ann")


@pytest.mark.parametrize(
    "address",
    [
        *("", "ann", "@mail.example", "ann@", "ann@mail.example,bob@x", "ann@mail example"),
        *("ann@mail.example\r\nBcc: bob@x", "ann@mail.example\n", "Ann <ann@mail.example>"),
        *('"a b"@mail.example', "a..b@mail.example", ".a@mail.example", "ann@[127.0.0.1]"),
        *("ann@-mail.example", "é@mail.example", "ann@é.example", "a@b@c", "x" * 65 + "@a.example"),
        *("ann%b.example@mail.example", "b!ann@mail.example", "|cat@mail.example"),
        "a@" + "b." * 200 + "example",
    ],
)
def test_addresses_that_are_refused(address: str) -> None:
    with pytest.raises(SubscriptionError, match="mail: expected one address"):
        check_address(address)


def test_addresses_that_are_accepted() -> None:
    for address in (ANN, "me@x", "a.b+c@mail-1.example", "o'neil@mail.example"):
        assert check_address(address) == address


def test_a_server_signs_in_over_tls_it_can_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    message = request_message(ADDRESS, SENDER, URL)
    with receiving_mail(context, {"portal": "hush"}) as mailbox:
        good = MailServer(mailbox.host, SENDER, "starttls", mailbox.port, "portal", "hush")
        assert "hush" not in repr(good)
        with pytest.raises(DeliveryError, match="certificate") as fault:
            good.send(message, ANN)
        assert not fault.value.is_final
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate"))
        good.send(message, ANN)
        bad = MailServer(mailbox.host, SENDER, "starttls", mailbox.port, "portal", "other")
        with pytest.raises(DeliveryError, match="535"):
            bad.send(message, ANN)
        assert len(mailbox.take()) == 1


def test_a_mail_that_was_taken_is_sent_however_the_server_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_take_one, args=(listener,))
        thread.start()
        message = EmailMessage()
        message["To"] = ANN
        message.set_content("hello")
        port = listener.getsockname()[1]
        MailServer("127.0.0.1", "portal@archive.example", "none", port).send(message, ANN)
        thread.join(60)


def _take_one(listener: socket.socket) -> None:
    """Take a mail, and answer its QUIT by an error."""
    client, _ = listener.accept()
    with client, client.makefile("rwb", 0) as lines:
        lines.write(b"220 here\r\n")
        is_content = False
        while line := lines.readline():
            if is_content and line != b".\r\n":
                continue
            is_content = line.upper().startswith(b"DATA")
            if line.upper().startswith(b"QUIT"):
                lines.write(b"421 closing\r\n")
                return
            lines.write(b"354 go\r\n" if is_content else b"250 ok\r\n")


def test_a_server_without_tls_gets_nothing_in_clear(mailbox: Mailbox) -> None:
    server = MailServer(mailbox.host, SENDER, "starttls", mailbox.port)
    with pytest.raises(DeliveryError, match="STARTTLS"):
        server.send(request_message(ADDRESS, SENDER, URL), ANN)
    assert mailbox.take() == []
