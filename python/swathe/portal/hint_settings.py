"""Settings of what tells users about events besides the feed: mail and MQTT."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from swathe.core.errors import SettingsError, SubscriptionError
from swathe.core.host import is_loopback
from swathe.core.inputs import read_regular
from swathe.core.toml_settings import value_error
from swathe.portal.setting_types import Address, BrokerUrl, FullPath, Topic
from swathe.subscriptions.mail_server import MailServer, Tls, check_address
from swathe.subscriptions.mqtt_broker import MqttBroker

LONGEST_PASSWORD = 1000


@dataclass(frozen=True)
class MailSettings:
    """The server that mail about subscriptions goes to (SMTP); without one there is no mail.

    Attributes:
        server: Name or address of the server.
        port: Port of the server; 0 = 587, 465 or 25, by `tls`.
        sender: Address that mail is from.
        tls: Encryption: after STARTTLS, from the begin of the connection, or none.
        user: User to sign in as; empty = nobody.
        password_file: File with the password of the user.
    """

    server: Address | None = None
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    sender: str = ""
    tls: Tls = "starttls"
    user: str = ""
    password_file: FullPath | None = None

    def check(self) -> None:
        """Check that they fit together.

        Raises:
            SettingsError: If they do not.
        """
        if self.server is None:
            _check_defaults(self, "mail", "server")
            return
        try:
            check_address(self.sender)
        except SubscriptionError as error:
            raise SettingsError(f"mail.sender: {str(error).removeprefix('mail: ')}") from None
        _check_user("mail", self.user, self.password_file)
        if self.user and self.tls == "none" and not is_loopback(self.server):
            raise value_error("mail.tls", "'starttls' or 'tls' to send a password", self.tls)

    @property
    def mail_server(self) -> MailServer | None:
        """Return the server; `None` if there is none.

        Raises:
            SettingsError: If the password cannot be read.
        """
        if self.server is None:
            return None
        password = _password("mail", self.password_file)
        return MailServer(self.server, self.sender, self.tls, self.port, self.user, password)


@dataclass(frozen=True)
class MqttSettings:
    """The broker to which events of all subscriptions are published (MQTT 5).

    Attributes:
        url: URL of the broker, `mqtt://HOST[:PORT]`; without one nothing is published.
        topic: Beginning of the topics `TOPIC/USER/SUBSCRIPTION`.
        tls: Whether the connection is encrypted.
        user: User to sign in as; empty = nobody.
        password_file: File with the password of the user.
    """

    url: BrokerUrl | None = None
    topic: Topic = "swathe"
    tls: bool = False
    user: str = ""
    password_file: FullPath | None = None

    def check(self) -> None:
        """Check that they fit together.

        Raises:
            SettingsError: If they do not.
        """
        if self.url is None:
            _check_defaults(self, "mqtt", "url")
            return
        _check_user("mqtt", self.user, self.password_file)
        if self.user and not self.tls and not is_loopback(urlsplit(self.url).hostname or ""):
            raise value_error("mqtt.tls", "true to send a password", self.tls)

    @property
    def broker(self) -> MqttBroker | None:
        """Return the broker; `None` if there is none.

        Raises:
            SettingsError: If the password cannot be read, or the package for MQTT is missing.
        """
        if self.url is None:
            return None
        parts = urlsplit(self.url)
        password = _password("mqtt", self.password_file)
        broker = MqttBroker(parts.hostname or "", parts.port or 0, self.tls, self.user, password)
        broker.check()
        return broker


def _check_defaults(settings: MailSettings | MqttSettings, section: str, key: str) -> None:
    """Check that a section without its main key has no other."""
    for each in fields(settings):
        if (value := getattr(settings, each.name)) != each.default:
            raise value_error(f"{section}.{each.name}", f"to come with {section}.{key}", str(value))


def _check_user(section: str, user: str, path: Path | None) -> None:
    if bool(user) != (path is not None):
        pair = f"{section}.user: expected it and {section}.password_file"
        raise SettingsError(f"{pair}, found one of both")


def _password(section: str, path: Path | None) -> str:
    """Return the password in a file, without the end of its line; empty if there is no file.

    Raises:
        SettingsError: If it cannot be read, or is no password.
    """
    if path is None:
        return ""
    name = f"{section}.password_file"
    try:
        content = read_regular(path, LONGEST_PASSWORD)
    except OSError as error:
        raise SettingsError(f"{name}: {path}: cannot be read: {error.strerror}") from error
    text = content.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
    if not text or len(content) > LONGEST_PASSWORD or not text.isprintable():
        raise SettingsError(
            f"{name}: {path}: expected one line of 1 to {LONGEST_PASSWORD} characters, found "
            "another content"
        )
    return text
