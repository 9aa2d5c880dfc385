"""Sign-in: the token is stored in a cookie that scripts cannot read and other sites cannot send."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from swathe.core.errors import TokenError
from swathe.core.host import is_loopback
from swathe.portal.access import cookie_of
from swathe.portal.context import portal_of
from swathe.portal.pages.render import HEADERS, SIGN_IN, PageRoute, page

router = APIRouter(route_class=PageRoute)
KEPT_S = 30 * 86_400
LONGEST_TOKEN = 1000


@router.api_route(SIGN_IN, methods=["GET", "HEAD"])
def ask(request: Request, next_page: Annotated[str, Query(alias="next")] = "/") -> Response:
    """Show the sign-in form."""
    return _form(request, next_page)


def _form(request: Request, next_page: str, error: str | None = None, code: int = 200) -> Response:
    # Cookies ignore ports, so browsers also send them to servers of other users on this machine.
    is_local = is_loopback(request.url.hostname or "")
    return page(
        request, "sign_in.html", code=code, next=_within(next_page), error=error, shared=is_local
    )


@router.post(SIGN_IN)
def sign_in(
    request: Request,
    token: Annotated[str, Form(max_length=LONGEST_TOKEN)] = "",
    next_page: Annotated[str, Form(alias="next", max_length=4000)] = "/",
) -> Response:
    """Store a valid token in a cookie."""
    portal = portal_of(request)
    try:
        portal.access.user(token.strip())
    except TokenError as error:
        return _form(request, next_page, str(error), 401)
    answer = RedirectResponse(_within(next_page), 303, HEADERS)
    answer.set_cookie(
        cookie_of(request),
        token.strip(),
        max_age=KEPT_S,
        httponly=True,
        samesite="strict",
        secure=portal.url(request).startswith("https://"),
    )
    return answer


@router.post("/sign-out")
def sign_out(request: Request) -> Response:
    """Delete the cookie with the token."""
    answer = RedirectResponse(SIGN_IN, 303, HEADERS)
    answer.delete_cookie(
        cookie_of(request),
        secure=portal_of(request).url(request).startswith("https://"),
        httponly=True,
        samesite="strict",
    )
    return answer


def _within(path: str) -> str:
    """Return a path if it is a page of this portal, else that of the front page."""
    harmless = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if harmless else "/"
