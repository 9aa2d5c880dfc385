"""Styles, scripts and pictures of the pages, sent with names of their contents.

A page asks for `/static/NAME?v=HASH`, so that browsers may keep what they got for good.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from swathe.core.errors import NotFoundError
from swathe.trace.viewer.page import STATIC, script

FOLDER = Path(__file__).parent / "static"
"""What only pages of the portal have; the style sheet and the mark lie with the viewer, below."""
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
BOKEH = "bokeh.min.js"
"""Comes with the package of that name."""
VIEWER = "viewer.js"
"""Of several files."""
FOR_GOOD = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class Asset:
    """A file as it is sent."""

    plain: bytes
    packed: bytes
    media_type: str
    tag: str


def path_of(name: str) -> Path | None:
    """Give where a file is, if there is one of this name."""
    if name == BOKEH:
        import bokeh

        return Path(bokeh.__file__).parent / "server" / "static" / "js" / BOKEH
    files = [*FOLDER.iterdir(), *STATIC.iterdir()]
    known = {path.name: path for path in files if path.suffix in MEDIA_TYPES}
    return known.get(name)


@cache
def asset(name: str) -> Asset:
    """Give a file.

    Raises:
        NotFoundError: where there is none of this name.
    """
    path = Path(name) if name == VIEWER else path_of(name)
    if path is None:
        raise NotFoundError(f"there is no file {name[:100]!r} of the pages")
    plain = script() if name == VIEWER else path.read_bytes()
    tag = hashlib.sha256(plain).hexdigest()[:16]
    return Asset(plain, gzip.compress(plain, 6, mtime=0), MEDIA_TYPES[path.suffix], tag)


def url(name: str) -> str:
    """Give the URL of a file, which changes with its contents."""
    return f"/static/{name}?v={asset(name).tag}"


def respond(request: Request, name: str) -> Response:
    """Send a file, or say that the browser has it."""
    found = asset(name)
    packed = "gzip" in request.headers.get("accept-encoding", "")
    # Two forms of a file have two tags.
    tag = f'"{found.tag}{"-gz" if packed else ""}"'
    kept = FOR_GOOD if request.query_params.get("v") == found.tag else "no-cache"
    headers = {"ETag": tag, "Cache-Control": kept, "Vary": "Accept-Encoding"}
    headers["X-Content-Type-Options"] = "nosniff"
    if found.media_type == MEDIA_TYPES[".svg"]:
        headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if packed:
        headers["Content-Encoding"] = "gzip"
    body = found.packed if packed else found.plain
    return Response(body, headers=headers, media_type=found.media_type)
