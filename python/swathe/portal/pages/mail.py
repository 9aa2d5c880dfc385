"""The page that links in mails lead to: the owner of an address confirms it, or stops mail.

Who has the link has read the mail, so it needs no token. Only POST changes something: programs
that check mail open its links.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from swathe.portal.context import portal_of
from swathe.portal.pages.render import PageRoute, page

router = APIRouter(route_class=PageRoute)
Key = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{32}$")]


@router.api_route("/mail/{key}", methods=["GET", "HEAD"])
def mail(request: Request, key: Key) -> Response:
    """Show what the owner of an address has chosen, and a button for the other choice."""
    address = portal_of(request).catalog.mail_address(key)
    if address is None:
        raise HTTPException(404, "no address has this link; a newer mail may have another")
    return page(request, "mail.html", mail=address)


@router.post("/mail/{key}/{action}")
def choose(request: Request, key: Key, action: Literal["confirm", "stop"]) -> Response:
    """Record a choice. Mail programs send it, too, so it answers without a redirect (RFC 8058)."""
    catalog = portal_of(request).catalog
    change = catalog.confirm_mail if action == "confirm" else catalog.stop_mail
    change(key)
    return mail(request, key)
