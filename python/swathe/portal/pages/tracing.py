"""The page of what this portal does just now, where its events are recorded to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from swathe.core.errors import AccessError, NotFoundError
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.trace import recorded_file
from swathe.trace.viewer.live import Shown

if TYPE_CHECKING:
    from swathe.portal.users import User

router = APIRouter(route_class=PageRoute)
MOST = 300_000
"""Events that are shown, the newest; the others are in the file."""


def shown_to(request: Request, user: User) -> Shown:
    """Give what is recorded: it tells of the work of all users.

    Raises:
        AccessError: where tokens are needed, and this user is no admin.
        NotFoundError: where nothing is recorded to a file.
    """
    if not portal_of(request).sees_all(user):
        raise AccessError("a trace tells of all users: a token with the scope 'admin' is needed")
    path = recorded_file()
    if path is None:
        raise NotFoundError("nothing is recorded to a file here: swathe --trace FILE serve")
    state = request.app.state
    if not hasattr(state, "trace"):
        state.trace = Shown([path], most=MOST)
    return state.trace  # type: ignore[no-any-return]


@router.api_route("/trace", methods=["GET", "HEAD"])
def trace(request: Request, user: Reader) -> Response:
    """Show what goes on: the page asks for the events, again and again."""
    shown_to(request, user)
    return page(
        request,
        "trace.html",
        settings={"source": "/trace/data", "follow": True, "bar": False},
    )


@router.get("/trace/data")
def data(
    request: Request, user: Reader, seen: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Send the events as the viewer takes them, unless it has them."""
    version, parts = shown_to(request, user).data(seen)
    headers = {**HEADERS, "Cache-Control": "no-store", "X-Version": version}
    if parts is None:
        return Response(status_code=204, headers=headers)
    return Response(b"".join(parts), headers=headers, media_type="application/octet-stream")
