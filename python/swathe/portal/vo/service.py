"""The objects that the handlers share: open images, threads, memory budget and URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from swathe.portal.context import portal_of
from swathe.portal.vo.images import Images
from swathe.portal.vo.pixel_cache import PixelCache
from swathe.portal.vo.thread_limit import ResponseMemory, ThreadLimit

if TYPE_CHECKING:
    from starlette.requests import Request

    from swathe.portal.context import Portal


QUERY_THREADS = 4
MOST_QUERIES = 50
"""Maximum number of queries of TAP that wait for a thread or have one."""


class Service:
    """The Virtual Observatory services of one portal."""

    def __init__(self, portal: Portal) -> None:
        """Set the portal."""
        self.portal = portal
        self.images = Images(portal)
        self.workers = ThreadLimit()
        self.memory = ResponseMemory()
        self.pixels = PixelCache()
        # Queries may take a minute: cuts do not wait for them.
        self.queries = ThreadLimit(QUERY_THREADS, MOST_QUERIES)

    @property
    def authority(self) -> str:
        """Authority of the DIDs."""
        return self.portal.config.vo.authority

    def url(self, request: Request, path: str, did: str | None = None) -> str:
        """Return the URL of a service as the client uses it, optionally for an image."""
        query = "" if did is None else f"?ID={quote(did, safe='')}"
        return f"{self.portal.url(request)}/vo/{path}{query}"


def service_of(request: Request) -> Service:
    """Return the services of the portal of a request, made on the first one."""
    state = request.app.state
    if not hasattr(state, "vo"):
        state.vo = Service(portal_of(request))
    return cast("Service", state.vo)
