"""The live trace page, and lifelines of a run, if events are recorded to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from swathe.core.errors import AccessError, NotFoundError
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.portal.readable_run import ReadRun
from swathe.trace import recorded_file
from swathe.trace.viewer.live import LiveView

if TYPE_CHECKING:
    from swathe.portal.users import User
    from swathe.trace.viewer.encode import Parts

router = APIRouter(route_class=PageRoute)
LastVersion = Annotated[str, Query(alias="seen", max_length=60)]
MOST_EVENTS = 300_000
"""Maximum number of events shown, the newest; all are in the file."""


def shown_to(request: Request, user: User) -> LiveView:
    """Return the recorded events, if the user may see the work of all users.

    Raises:
        AccessError: If tokens are required, and the user is not an admin.
        NotFoundError: If no events are recorded to a file.
    """
    if not portal_of(request).sees_all(user):
        raise AccessError(
            "the trace of all users: expected a token with the scope 'admin', found one without it"
        )
    return recorded_view(request)


def recorded_view(request: Request) -> LiveView:
    """Return the recorded events of all users.

    Raises:
        NotFoundError: If no events are recorded to a file.
    """
    path = recorded_file()
    if path is None:
        raise NotFoundError(
            "no events are recorded to a file; start the portal with: "
            "swathe --trace FILE portal serve"
        )
    state = request.app.state
    if not hasattr(state, "trace"):
        state.trace = LiveView([path], most=MOST_EVENTS)
    return state.trace  # type: ignore[no-any-return]


@router.api_route("/trace", methods=["GET", "HEAD"])
def trace(request: Request, user: Reader) -> Response:
    """Show the live trace: the page polls the events."""
    shown_to(request, user)
    return page(
        request,
        "trace.html",
        settings={"source": "/trace/data", "follow": True, "bar": False},
    )


@router.get("/trace/data")
def data(request: Request, user: Reader, last_version: LastVersion = "") -> Response:
    """Return the events in the viewer's format, or 204 if it has them."""
    return _data(*shown_to(request, user).data(last_version))


@router.get("/runs/{name}/trace")
def run_data(
    request: Request, user: Reader, run: ReadRun, last_version: LastVersion = ""
) -> Response:
    """Return the events of a run in the viewer's format, or 204 if it has them."""
    has_reasons = portal_of(request).sees_all(user)
    view = recorded_view(request)
    return _data(*view.job_data(run.label, last_version, has_reasons=has_reasons))


def _data(version: str, parts: Parts | None) -> Response:
    headers = {**HEADERS, "Cache-Control": "no-store", "X-Version": version}
    if parts is None:
        return Response(status_code=204, headers=headers)
    return Response(b"".join(parts), headers=headers, media_type="application/octet-stream")
