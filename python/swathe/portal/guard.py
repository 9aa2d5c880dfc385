"""What keeps web pages of others from using a portal by way of a visitor's browser.

Two ways are closed: requests that change something from pages of another origin, and names that
lead to this machine although they are not its own (DNS rebinding).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from swathe.portal.config import LOOPBACK_NAMES, is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from swathe.portal.config import Config

SAFE = ("GET", "HEAD", "OPTIONS")
EXPOSED = (
    "Accept-Ranges",
    "Content-Disposition",
    "Content-Length",
    "Content-Range",
    "ETag",
    "Location",
    "Retry-After",
)
"""Headers of answers that pages of other origins may see: viewers read files by ranges."""


class Guard:
    """Refuses such requests."""

    def __init__(self, app: ASGIApp, config: Config) -> None:
        """Take the application behind, and the settings of the portal."""
        self._app = app
        self._origins = frozenset(config.access.origins)
        server = config.server
        own = urlsplit(server.url).hostname
        # Of an address that all can reach it is not known what it is called, unless it is told.
        self._names: frozenset[str] | None = None
        if own or is_loopback(server.host):
            host = f"[{server.host}]" if ":" in server.host else server.host.lower()
            own = f"[{own}]" if own and ":" in own else own
            self._names = frozenset({*LOOPBACK_NAMES, host, *([own] if own else [])})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 400 or 403, or pass the request on."""
        refused = self._refused(scope) if scope["type"] == "http" else None
        if refused is None:
            await self._app(scope, receive, send)
            return
        status, error = refused
        answer = JSONResponse({"error": error, "kind": "AccessError"}, status)
        await answer(scope, receive, send)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = re.sub(r":[0-9]*$", "", host).lower()
        if self._names is not None and name not in self._names:
            return 400, f"this portal is not called {name[:100]!r}; see server.url of its settings"
        if scope["method"] in SAFE:
            return None
        origin = headers.get("origin")
        if origin is None:
            # Browsers that send no Origin with a POST may send this.
            alone = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
            return None if alone else (403, "a page of another origin may not do this")
        if origin in self._origins or origin.partition("://")[2].lower() == host.lower():
            return None
        return 403, f"pages of {origin[:100]!r} may not do this; see access.origins"
