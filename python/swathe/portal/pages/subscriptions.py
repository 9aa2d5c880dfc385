"""Pages on subscriptions: the list, one with its latest events, and actions on it."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.catalog.records.subscriptions import Event
from swathe.portal.access import Reader
from swathe.portal.api.subscriptions import Changeable, Readable
from swathe.portal.context import portal_of
from swathe.portal.pages.operation_fields import granule_operation
from swathe.portal.pages.render import HEADERS, PageRoute, page

router = APIRouter(route_class=PageRoute)
READ = ["GET", "HEAD"]
SUBSCRIPTIONS = 100
EVENTS = 50
Action = Literal["pause", "resume", "remove"]
QUESTIONS: dict[Action, tuple[str, str, str]] = {
    "pause": (
        "Pause this subscription?",
        "Nothing runs until you resume it. What comes meanwhile runs then.",
        "Pause",
    ),
    "resume": (
        "Resume this subscription?",
        "What has come meanwhile runs. Its webhook is enabled, if it has one.",
        "Resume",
    ),
    "remove": (
        "Remove this subscription?",
        "Its feed is removed, too. Its jobs and their results stay. This cannot be undone.",
        "Remove for good",
    ),
}


@router.api_route("/subscriptions", methods=READ)
def subscriptions(request: Request, user: Reader) -> Response:
    """List subscriptions, newest first, with the last event of each."""
    catalog = portal_of(request).catalog
    records = catalog.subscriptions(user.sees, SUBSCRIPTIONS)
    return page(
        request,
        "subscriptions.html",
        subscriptions=[(each, _latest(request, each.id, each.events, 1)) for each in records],
        sees_all=user.sees is None,
        may_submit=user.may("submit"),
    )


def _latest(request: Request, subscription_id: str, last: int, count: int) -> list[Event]:
    """Return the latest events of a subscription, the newest first."""
    catalog = portal_of(request).catalog
    return catalog.subscription_events(subscription_id, max(0, last - count), count)[::-1]


@router.api_route("/subscriptions/{subscription_id}", methods=READ)
def subscription(request: Request, user: Reader, subscription: Readable) -> Response:
    """Show a subscription: what it matches, what it runs, and its latest events."""
    operation = granule_operation(subscription.algorithm)
    options = () if operation is None else operation.options
    return page(
        request,
        "subscription.html",
        subscription=subscription,
        options={each.name: subscription.job_options.get(each.name) for each in options},
        events=_latest(request, subscription.id, subscription.events, EVENTS),
        may_submit=user.may("submit"),
    )


@router.api_route("/subscriptions/{subscription_id}/{action}", methods=READ)
def ask(request: Request, subscription: Changeable, action: Action) -> Response:
    """Ask the user to confirm an action."""
    question, consequence, yes = QUESTIONS[action]
    return page(
        request,
        "confirm.html",
        question=question,
        subject=f"{subscription.algorithm} on {subscription.collection}",
        about="",
        consequence=consequence,
        yes=yes,
        action=f"/subscriptions/{subscription.id}/{action}",
        back=f"/subscriptions/{subscription.id}",
        is_bad=action == "remove",
    )


@router.post("/subscriptions/{subscription_id}/{action}")
def act(request: Request, subscription: Changeable, action: Action) -> Response:
    """Perform a confirmed action."""
    catalog = portal_of(request).catalog
    match action:
        case "pause":
            catalog.pause_subscription(subscription.id)
        case "resume":
            catalog.resume_subscription(subscription.id)
        case "remove":
            catalog.remove_subscription(subscription.id)
    place = "" if action == "remove" else f"/{subscription.id}"
    return RedirectResponse(f"/subscriptions{place}", 303, HEADERS)
