"""The mails of a portal: a request to confirm an address, and a digest of events."""

from __future__ import annotations

from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from swathe.core.format import count_text, harmless_text, moment_text

if TYPE_CHECKING:
    from swathe.catalog.records.subscriptions import Event, MailAddress, MailDigest

# Long lines stay whole: others are encoded, and then links in headers are none.
POLICY = SMTP.clone(max_line_length=998)
LONGEST_NAME = 200
"""Characters of names of groups and files, and of reasons."""


def request_message(request: MailAddress, sender: str, portal_url: str) -> EmailMessage:
    """Return the mail that asks the owner of an address to confirm it."""
    text = f"""\
The user {request.owner} of the portal {portal_url}
asks for mail about subscriptions to this address, {request.address}.

If you are this user, confirm it on this page:
{_link(request.key, portal_url)}

If not, ignore this mail: for a month no other will come.
"""
    subject = f"Confirm mail of {_host(portal_url)}"
    message = _message(request.address, sender, subject, text)
    message["Message-ID"] = f"<{request.key[:16]}.confirm@{_host(portal_url)}>"
    return message


def digest_message(digest: MailDigest, address: str, sender: str, portal_url: str) -> EmailMessage:
    """Return the mail about what has happened since the last one.

    A mail that is sent again has the same Message-ID.
    """
    subscription, link = digest.subscription, _link(digest.key, portal_url)
    count = count_text(digest.count, "event")
    name = f"{subscription.algorithm} on {subscription.collection}"
    lines = [f"{name}: {count}.", "", *map(_line, digest.events)]
    if digest.count > len(digest.events):
        lines.append(f"... and {count_text(digest.count - len(digest.events), 'further event')}.")
    text = "\n".join(lines)
    text += f"""

All events: {portal_url}/subscriptions/{subscription.id}

To stop mail from {subscription.owner} of this portal, open {link}
"""
    message = _message(address, sender, f"{count} of {name}", text)
    message["Message-ID"] = f"<{subscription.id}.{subscription.events}@{_host(portal_url)}>"
    message["List-Unsubscribe"] = f"<{link}/stop>"
    message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return message


def _message(address: str, sender: str, subject: str, text: str) -> EmailMessage:
    message = EmailMessage(POLICY)
    message["From"] = sender
    message["To"] = address
    message["Subject"] = harmless_text(subject, "")
    message["Date"] = format_datetime(datetime.now(UTC))
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    return message


def _line(event: Event) -> str:
    """Return an event as a line."""
    content = event.content
    group = content.get("group") or content.get("granule")
    version = f" version {content['version']}" if "version" in content else ""
    end = content.get("reason") or content.get("file")
    parts = [moment_text(event.at), event.kind]
    parts += [f"{_short(group)}{version}"] if group else []
    parts += [_short(end)] if end else []
    return "  ".join(parts)


def _short(text: object) -> str:
    return harmless_text(str(text)[:LONGEST_NAME], "")


def _link(key: str, portal_url: str) -> str:
    return f"{portal_url}/mail/{key}"


def _host(portal_url: str) -> str:
    return urlsplit(portal_url).hostname or "localhost"
