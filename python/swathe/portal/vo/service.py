"""What the handlers share: images kept open, threads, and where they are called from."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import quote, unquote

from swathe.portal.state import portal_of
from swathe.portal.vo.faults import VoError, told
from swathe.portal.vo.images import Images
from swathe.portal.vo.workers import Workers

if TYPE_CHECKING:
    from starlette.requests import Request

    from swathe.errors import SwatheError
    from swathe.portal.state import Portal


class Service:
    """The interfaces of one portal."""

    def __init__(self, portal: Portal) -> None:
        """Take the portal."""
        self.portal = portal
        self.images = Images(portal)
        self.workers = Workers()

    @property
    def authority(self) -> str:
        """Of the DIDs."""
        return self.portal.config.vo.authority

    def url(self, request: Request, path: str, did: str | None = None) -> str:
        """Give the URL of one of the interfaces as the client knows it, perhaps for an image."""
        query = "" if did is None else f"?ID={quote(did, safe='')}"
        return f"{self.portal.url(request)}/vo/{path}{query}"

    def told(self, error: SwatheError) -> VoError:
        """Give what a client is told of an error: files by their stores, not where they lie."""
        found = told(error)
        if found is error:
            return found
        text = str(found)
        for store in self.portal.catalog.stores():
            if store.url.startswith("file://"):
                root = unquote(store.url.removeprefix("file://"), errors="surrogateescape")
                text = text.replace(f"{root.rstrip('/')}/", f"{store.name}:")
        return VoError(found.label, text, found.status, found.headers)


def service_of(request: Request) -> Service:
    """Give what there is for the portal that a request came to; made at the first one."""
    state = request.app.state
    if not hasattr(state, "vo"):
        state.vo = Service(portal_of(request))
    return cast("Service", state.vo)
