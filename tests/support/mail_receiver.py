"""A mail server that keeps what is sent to it."""

from __future__ import annotations

import email
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import policy
from email.message import EmailMessage
from typing import Any

import pytest


class Mailbox:
    """Keeps messages, and answers with what is in `answers`, by command."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.answers: dict[str, str] = {}
        self.host, self.port = "127.0.0.1", 0

    async def handle_RCPT(
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if "RCPT" in self.answers:
            return self.answers["RCPT"]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        if "DATA" in self.answers:
            return self.answers["DATA"]
        message = email.message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        self.recipients += envelope.rcpt_tos
        return "250 OK"

    def take(self) -> list[EmailMessage]:
        """Return the messages since the last call."""
        messages, self.messages = self.messages, []
        return messages


def text_of(message: EmailMessage) -> str:
    """The text of a message."""
    text: str = message.get_content().replace("\r\n", "\n")
    return text


def key_in(message: EmailMessage) -> str:
    """The key of the link in a message."""
    match = re.search(r"/mail/([\w-]{32})\s", text_of(message))
    assert match is not None
    return match[1]


@contextmanager
def receiving_mail(
    tls: ssl.SSLContext | None = None, passwords: dict[str, str] | None = None
) -> Iterator[Mailbox]:
    """A mail server that runs; with a certificate it wants STARTTLS, with passwords a user."""
    controller = pytest.importorskip("aiosmtpd.controller")
    smtp = pytest.importorskip("aiosmtpd.smtp")

    def check(_server: Any, _session: Any, _envelope: Any, _kind: str, data: Any) -> Any:
        expected = (passwords or {}).get(data.login.decode())
        is_known = data.password.decode() == expected
        return smtp.AuthResult(success=is_known, handled=False)

    class FreePort(controller.Controller):  # type: ignore[name-defined, misc]
        """A server whose port the system chooses."""

        def _trigger_server(self) -> None:
            self.port = self.server.sockets[0].getsockname()[1]
            super()._trigger_server()

    mailbox = Mailbox()
    more = {"auth_required": True, "authenticator": check} if passwords else {}
    server = FreePort(
        mailbox,
        hostname=mailbox.host,
        port=0,
        tls_context=tls,
        require_starttls=tls is not None,
        auth_require_tls=tls is not None,
        **more,
    )
    server.start()
    mailbox.port = server.port
    try:
        yield mailbox
    finally:
        server.stop()
