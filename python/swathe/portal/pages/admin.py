"""Pages for those who run the portal: users, tokens, jobs, stores, faults. Scope: `admin`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Path
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.core.errors import TokenError
from swathe.portal.access import needs
from swathe.portal.context import Portal, portal_of
from swathe.portal.health import disk_bytes, readiness_of
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.portal.users import User

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.catalog import Token
    from swathe.catalog.records.jobs import Share, UserUsage
    from swathe.jobs import Job

router = APIRouter(route_class=PageRoute)
READ = ["GET", "HEAD"]
Admin = Annotated[User, Depends(needs("admin"))]
Number = Annotated[int, Path(ge=1, le=1 << 62)]
MOST_USERS = 200
"""Users whose usage is shown."""
MOST_TOKENS = 500
FAILURES = 10
USUAL_SCOPES = "read submit"
CHOICES = ("read", USUAL_SCOPES, "submit", "admin")
"""Scopes that a token may have."""
LONGEST_DAYS = 3650
NO_STORE = {**HEADERS, "Cache-Control": "no-store"}


@dataclass(frozen=True)
class UserRow:
    """A user, with valid tokens, share and usage."""

    name: str
    tokens: int
    share: Share
    usage: UserUsage


@dataclass(frozen=True)
class StoreRow:
    """A store, and the number of objects of datasets that cannot be read there, by state."""

    name: str
    url: str
    faults: dict[str, int]


@router.api_route("/admin", methods=READ)
def overview(request: Request, _user: Admin) -> Response:
    """Show users, tokens, jobs, stores and faults."""
    return _overview(request)


def _overview(request: Request, error: str = "", code: int = 200) -> Response:
    portal = portal_of(request)
    tokens = portal.catalog.tokens()
    status = portal.pool.status()
    free, total = disk_bytes(portal)
    return page(
        request,
        "admin.html",
        code=code,
        error=error,
        users=_users(portal, tokens),
        most_users=MOST_USERS,
        tokens_of_all=tokens[::-1][:MOST_TOKENS],
        older=max(0, len(tokens) - MOST_TOKENS),
        choices=CHOICES,
        usual=USUAL_SCOPES,
        totals=portal.catalog.totals(),
        backlog=portal.catalog.removal_backlog(),
        failures=_failures(portal),
        stores=_stores(request, portal),
        parts=readiness_of(portal),
        troubles=[
            each for each in (portal.runner.trouble, portal.runner.lag, status.trouble) if each
        ],
        free_bytes=free,
        total_bytes=total,
    )


def _users(portal: Portal, tokens: Sequence[Token]) -> list[UserRow]:
    """Return the users that have tokens or shares, by name."""
    valid = [token.user for token in tokens if token.is_good()]
    names = sorted({*(token.user for token in tokens), *portal.config.shares})[:MOST_USERS]
    shares = portal.jobs.limits
    return [
        UserRow(name, valid.count(name), shares.share_of(name), portal.catalog.usage_of(name))
        for name in names
    ]


def _failures(portal: Portal) -> list[Job]:
    """Return the latest jobs that ended with an error."""
    return portal.jobs.list(None, phases=("ERROR",), last=FAILURES)


def _stores(request: Request, portal: Portal) -> list[StoreRow]:
    """Return the stores, and what of the datasets cannot be read in each."""
    faults: dict[str, dict[str, int]] = {}
    for counts in request.app.state.holdings.all():
        for store, states in counts.dataset.states.items():
            for state, number in states.items():
                if state != "ok":
                    of_store = faults.setdefault(store, {})
                    of_store[state] = of_store.get(state, 0) + number
    return [
        StoreRow(each.name, each.url, faults.get(each.name, {})) for each in portal.catalog.stores()
    ]


@router.post("/admin/tokens")
def add_token(
    request: Request,
    _user: Admin,
    name: Annotated[str, Form(max_length=200)] = "",
    scopes: Annotated[str, Form(max_length=100)] = "",
    days: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    """Make a token, and show it once."""
    try:
        expires_at = _expiry(days)
        secret, token = portal_of(request).catalog.add_token(
            name.strip(), scopes.split(), expires_at
        )
    except TokenError as error:
        return _overview(request, str(error), 422)
    answer = page(request, "admin_token.html", code=201, secret=secret, token=token)
    answer.headers.update(NO_STORE)
    return answer


def _expiry(days: str) -> datetime | None:
    """Return when a token ends; `None` if never.

    Raises:
        TokenError: If the number of days is invalid.
    """
    text = days.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= LONGEST_DAYS):
        raise TokenError(f"days: expected a number from 1 to {LONGEST_DAYS:,}, found {text!r}")
    return datetime.now(UTC) + timedelta(days=int(text))


@router.api_route("/admin/tokens/{number}/remove", methods=READ)
def ask(request: Request, _user: Admin, number: Number) -> Response:
    """Ask whether a token is to be removed."""
    token = _token(request, number)
    return page(
        request,
        "confirm.html",
        question="Remove this token?",
        subject=f"token {token.number} of {token.user}",
        about=", ".join(token.scopes),
        consequence="Who uses it is refused within two seconds. Jobs go on. This cannot be undone.",
        yes="Remove for good",
        action=f"/admin/tokens/{token.number}/remove",
        back="/admin",
        is_bad=True,
    )


@router.post("/admin/tokens/{number}/remove")
def remove(request: Request, _user: Admin, number: Number) -> Response:
    """Remove a token."""
    token = _token(request, number)
    portal_of(request).catalog.revoke_tokens(str(token.number))
    return RedirectResponse("/admin", 303, HEADERS)


def _token(request: Request, number: int) -> Token:
    """Return the record of a token.

    Raises:
        HTTPException: If there is none.
    """
    for token in portal_of(request).catalog.tokens():
        if token.number == number:
            return token
    raise HTTPException(404, f"there is no token {number}")
