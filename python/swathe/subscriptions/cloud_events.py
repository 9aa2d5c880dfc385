"""Events in the form of CloudEvents 1.0, for the feed and for webhooks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swathe.catalog.records.subscriptions import Event

TYPE = "org.swathe."
"""Beginning of the types of events."""


def to_cloud_event(event: Event, subscription: str, portal_url: str) -> dict[str, Any]:
    """Return an event as a CloudEvent: its `id` is unique in the portal, its data by kind."""
    content: dict[str, Any] = {
        "specversion": "1.0",
        "id": f"{subscription}.{event.number}",
        "source": f"{portal_url}/api/subscriptions/{subscription}",
        "type": TYPE + event.kind,
        "time": event.at.isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": event.content,
    }
    if "group" in event.content:
        content["subject"] = event.content["group"]
    return content


def to_json(event: Event, subscription: str, portal_url: str) -> bytes:
    """Return an event as JSON."""
    return json.dumps(to_cloud_event(event, subscription, portal_url)).encode()
