"""Minimal server on loopback for a page that shows a trace."""

from __future__ import annotations

import logging
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from swathe.core.errors import SwatheError
from swathe.trace.viewer.page import page

if TYPE_CHECKING:
    from swathe.trace.viewer.live import LiveView

HOST = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost")
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
log = logging.getLogger("swathe.trace.viewer")


def server(view: LiveView, title: str, port: int, **settings: Any) -> ThreadingHTTPServer:
    """Return the server of the page at `/` and its data at `/data`; port 0: any free port.

    Raises:
        OSError: If the port is taken.
    """
    content = page(title, source="data", **settings)

    class Handler(BaseHTTPRequestHandler):
        """Answers GET."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            """Send the page or its data."""
            # Other host names that resolve to this machine may belong to pages that want to read
            # the data.
            name = re.sub(r":[0-9]*$", "", self.headers.get("Host", ""))
            if name not in NAMES:
                self._answer(400, b"this is not called so", "text/plain")
                return
            url = urlsplit(self.path)
            if url.path == "/":
                self._answer(200, content, "text/html; charset=utf-8")
            elif url.path == "/data":
                self._data(parse_qs(url.query).get("seen", [""])[0])
            else:
                self._answer(404, b"there is no such page", "text/plain")

        def _data(self, last_version: str) -> None:
            try:
                version, parts = view.data(last_version)
            except SwatheError as error:
                self._answer(500, str(error).encode(), "text/plain; charset=utf-8")
                return
            if parts is None:
                self.send_response(204)
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(sum(len(part) for part in parts)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Version", version)
            self.end_headers()
            for part in parts:
                self.wfile.write(part)

        def _answer(self, status: int, body: bytes, media_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        # The name of the base class.
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep requests out of the terminal."""
            log.debug(format, *args)

    httpd = ThreadingHTTPServer((HOST, port), Handler)
    httpd.daemon_threads = True
    return httpd
