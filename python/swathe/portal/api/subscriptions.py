"""Endpoints on subscriptions: add, list, pause, resume and remove them, and their feeds."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from swathe.catalog.records.subscriptions import Subscription
from swathe.core.errors import NoSuchSubscriptionError
from swathe.datasets.cql2_text import parse_cql2_text
from swathe.portal.access import Reader, Submitter
from swathe.portal.api import models
from swathe.portal.api.jobs import JOB_ID
from swathe.portal.context import portal_of
from swathe.portal.users import User
from swathe.subscriptions.cloud_events import to_cloud_event
from swathe.subscriptions.request import SubscriptionRequest
from swathe.subscriptions.service import MOST_PAGE
from swathe.subscriptions.webhook_request import SECRET_PREFIX

router = APIRouter(tags=["subscriptions"])

LONGEST_LIST = 1000


def _own(request: Request, subscription_id: str, user: User) -> Subscription:
    """Return a subscription that a user may see.

    Raises:
        NoSuchSubscriptionError: If there is none, or it belongs to another user.
    """
    if JOB_ID.fullmatch(subscription_id):
        subscription = portal_of(request).catalog.subscription(subscription_id)
        if user.sees in (None, subscription.owner):
            return subscription
    raise NoSuchSubscriptionError(f"there is no subscription {subscription_id[:50]!r}")


def _read(request: Request, subscription_id: str, user: Reader) -> Subscription:
    return _own(request, subscription_id, user)


def _change(request: Request, subscription_id: str, user: Submitter) -> Subscription:
    return _own(request, subscription_id, user)


Readable = Annotated[Subscription, Depends(_read)]
Changeable = Annotated[Subscription, Depends(_change)]


@router.post("/subscriptions", response_model=models.NewSubscriptionDetail, status_code=201)
async def add(
    request: Request, response: Response, user: Submitter, body: models.NewSubscriptionModel
) -> Any:
    """Subscribe to what comes to a dataset. The secret of the webhook is returned here only."""
    portal = portal_of(request)
    values = {name: getattr(body, name) for name in body.model_fields_set - {"filter"}}
    if body.filter is not None:
        condition = body.filter
        values["condition"] = (
            parse_cql2_text(condition) if isinstance(condition, str) else condition
        )
    service = portal.subscriptions

    def run() -> tuple[Subscription, str]:
        subscription = service.add(SubscriptionRequest(**values), user.name)
        return subscription, portal.catalog.subscription_secret(subscription.id)

    subscription, secret = await run_in_threadpool(run)
    response.headers["Location"] = f"{portal.url(request)}/api/subscriptions/{subscription.id}"
    content = models.SubscriptionModel.model_validate(subscription).model_dump()
    return {**content, "secret": SECRET_PREFIX + secret if subscription.webhook else None}


@router.get("/subscriptions", response_model=models.SubscriptionList)
def subscriptions(
    request: Request,
    user: Reader,
    last: Annotated[int, Query(ge=1, le=LONGEST_LIST)] = LONGEST_LIST,
) -> Any:
    """List your subscriptions, newest first. An `admin` sees those of all users."""
    return {"subscriptions": portal_of(request).catalog.subscriptions(user.sees, last)}


@router.get("/subscriptions/{subscription_id}", response_model=models.SubscriptionModel)
def subscription(subscription: Readable) -> Any:
    """Return a subscription."""
    return subscription


@router.post("/subscriptions/{subscription_id}/pause", response_model=models.SubscriptionModel)
def pause(request: Request, subscription: Changeable) -> Any:
    """Pause a subscription. What comes meanwhile runs when it is resumed."""
    return portal_of(request).catalog.pause_subscription(subscription.id)


@router.post("/subscriptions/{subscription_id}/resume", response_model=models.SubscriptionModel)
def resume(request: Request, subscription: Changeable) -> Any:
    """Resume a subscription that is paused or failed, and its webhook if that is disabled."""
    return portal_of(request).catalog.resume_subscription(subscription.id)


@router.delete("/subscriptions/{subscription_id}", status_code=204)
def remove(request: Request, subscription: Changeable) -> None:
    """Remove a subscription with its feed. Its jobs stay."""
    portal_of(request).catalog.remove_subscription(subscription.id)


@router.get("/subscriptions/{subscription_id}/feed", response_model=models.FeedModel)
def feed(
    request: Request,
    subscription: Readable,
    after: Annotated[str | None, Query(max_length=200, description="Cursor of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = 100,
) -> Any:
    """Return the events after a cursor, as CloudEvents; without one, from the first.

    The cursor of the answer is that of the next page, also if this one is empty.
    """
    portal = portal_of(request)
    page = portal.subscriptions.feed(subscription.id, after, limit)
    url = portal.url(request)
    events = [to_cloud_event(each, subscription.id, url) for each in page.events]
    return {"events": events, "cursor": page.cursor, "has_gap": page.has_gap}
