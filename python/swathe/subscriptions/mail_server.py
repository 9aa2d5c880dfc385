"""The server that a portal's mail goes to, and the addresses that mail may have."""

from __future__ import annotations

import re
import smtplib
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from swathe.core.errors import DeliveryError, SubscriptionError
from swathe.core.value_errors import short_text

if TYPE_CHECKING:
    from email.message import EmailMessage

Tls = Literal["starttls", "tls", "none"]
PORTS: dict[Tls, int] = {"starttls": 587, "tls": 465, "none": 25}
TIMEOUT_S = 10.0
"""Time for each answer of the server."""
LONGEST_ADDRESS, LONGEST_LOCAL_PART = 254, 64
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
WORD = r"[A-Za-z0-9#$&'*+=?^_`{}~-]+"
ADDRESS = re.compile(rf"({WORD}(?:\.{WORD})*+)@{LABEL}(?:\.{LABEL})*+")
"""One address as RFC 5321 has it, in ASCII, without quotes, comments, and what routes mail on."""


def check_address(address: str) -> str:
    """Return an address of mail, if it is one.

    Raises:
        SubscriptionError: If it is none, or more than one.
    """
    match = ADDRESS.fullmatch(address) if len(address) <= LONGEST_ADDRESS else None
    if match is None or len(match[1]) > LONGEST_LOCAL_PART:
        raise SubscriptionError(
            f"mail: expected one address as ann@archive.example, found {short_text(address)}"
        )
    return address


@dataclass(frozen=True)
class MailServer:
    """A server that takes mail for all addresses (SMTP).

    Attributes:
        host: its name or address.
        sender: address that mail is from.
        tls: how the connection is encrypted: after STARTTLS, from its begin, or not.
        port: its port; 0: the usual one.
        user: user to sign in as; empty: nobody.
        password: password of the user.
    """

    host: str
    sender: str
    tls: Tls = "starttls"
    port: int = 0
    user: str = ""
    password: str = field(default="", repr=False)

    def send(self, message: EmailMessage, address: str) -> None:
        """Send a message to an address.

        Raises:
            DeliveryError: If the server cannot be used or refuses it; final if it refuses the
                address for good.
        """
        try:
            smtp = self._connection()
            try:
                if self.tls == "starttls":
                    smtp.starttls(context=ssl.create_default_context())
                if self.user:
                    smtp.login(self.user, self.password)
                smtp.send_message(message, self.sender, [address])
            finally:
                # However the server says goodbye: it has the message, or has refused it.
                with suppress(OSError):
                    smtp.quit()
                smtp.close()
        except smtplib.SMTPRecipientsRefused as error:
            code, text = error.recipients[address]
            raise DeliveryError(
                f"mail: {address} is refused: {code} {_text(text)}", is_final=500 <= code < 600
            ) from error
        except smtplib.SMTPResponseException as error:
            answer = f"{error.smtp_code} {_text(error.smtp_error)}"
            raise DeliveryError(f"mail: expected the server to take it, found {answer}") from error
        except (OSError, ValueError) as error:  # the errors of smtplib are of OSError
            reason = short_text(str(error) or type(error).__name__)
            raise DeliveryError(f"mail: cannot be sent: {reason}") from error

    def _connection(self) -> smtplib.SMTP:
        port = self.port or PORTS[self.tls]
        if self.tls == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(self.host, port, timeout=TIMEOUT_S, context=context)
        return smtplib.SMTP(self.host, port, timeout=TIMEOUT_S)


def _text(answer: bytes | str) -> str:
    text = answer if isinstance(answer, str) else answer.decode("utf-8", "replace")
    return short_text(" ".join(text.split()))
