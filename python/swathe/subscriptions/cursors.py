"""Cursors of feeds: the number of an event, signed, so that only those of the portal are taken."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

from swathe.core.errors import CursorError
from swathe.core.value_errors import short_text

NUMBER_BYTES, TAG_BYTES = 8, 16
_FORM = re.compile(r"[A-Za-z0-9_-]{32}")


def cursor_of(secret: str, subscription: str, number: int) -> str:
    """Return the cursor after an event of a subscription, by the subscription's secret."""
    place = number.to_bytes(NUMBER_BYTES, "big")
    return base64.urlsafe_b64encode(place + _tag(secret, subscription, place)).decode()


def number_of(secret: str, subscription: str, cursor: str) -> int:
    """Return the number of the event after which a feed goes on.

    Raises:
        CursorError: If the cursor is not one of this subscription.
    """
    if _FORM.fullmatch(cursor):
        content = base64.urlsafe_b64decode(cursor)
        place, tag = content[:NUMBER_BYTES], content[NUMBER_BYTES:]
        if hmac.compare_digest(tag, _tag(secret, subscription, place)):
            return int.from_bytes(place, "big")
    raise CursorError(
        f"after: expected the cursor of a page of this feed, found {short_text(cursor)}"
    )


def _tag(secret: str, subscription: str, place: bytes) -> bytes:
    key = base64.b64decode(secret)
    content = b"cursor " + subscription.encode() + place
    return hmac.digest(key, content, hashlib.sha256)[:TAG_BYTES]
