"""Styles, scripts and pictures of the pages, with a hash of their content in the URL.

A page requests `/static/NAME?v=HASH`, so that browsers may cache files without a time limit.
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
"""Files of the portal's pages only. The style sheet and the logo are in the trace viewer's
folder."""
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
BOKEH = "bokeh.min.js"
"""Part of the package bokeh."""
VIEWER = "viewer.js"
"""Script joined from several files."""
FOR_GOOD = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class Asset:
    """A file, plain and compressed."""

    plain: bytes
    gzip: bytes
    media_type: str
    tag: str


def path_of(name: str) -> Path | None:
    """Return the path of a file, or None."""
    if name == BOKEH:
        import bokeh

        return Path(bokeh.__file__).parent / "server" / "static" / "js" / BOKEH
    files = [*FOLDER.iterdir(), *STATIC.iterdir()]
    paths = {path.name: path for path in files if path.suffix in MEDIA_TYPES}
    return paths.get(name)


@cache
def asset(name: str) -> Asset:
    """Return a file.

    Raises:
        NotFoundError: If there is no file of this name.
    """
    path = Path(name) if name == VIEWER else path_of(name)
    if path is None:
        raise NotFoundError(f"no such file of the pages: {name[:100]!r}")
    plain = script() if name == VIEWER else path.read_bytes()
    tag = hashlib.sha256(plain).hexdigest()[:16]
    return Asset(plain, gzip.compress(plain, 6, mtime=0), MEDIA_TYPES[path.suffix], tag)


def url(name: str) -> str:
    """Return the URL of a file, which changes with its contents."""
    return f"/static/{name}?v={asset(name).tag}"


def respond(request: Request, name: str) -> Response:
    """Return a file, or 304 if the browser has it."""
    content = asset(name)
    accepts_gzip = "gzip" in request.headers.get("accept-encoding", "")
    # The plain and the compressed form have different tags.
    tag = f'"{content.tag}{"-gz" if accepts_gzip else ""}"'
    cache_control = FOR_GOOD if request.query_params.get("v") == content.tag else "no-cache"
    headers = {"ETag": tag, "Cache-Control": cache_control, "Vary": "Accept-Encoding"}
    headers["X-Content-Type-Options"] = "nosniff"
    if content.media_type == MEDIA_TYPES[".svg"]:
        headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if accepts_gzip:
        headers["Content-Encoding"] = "gzip"
    body = content.gzip if accepts_gzip else content.plain
    return Response(body, headers=headers, media_type=content.media_type)
