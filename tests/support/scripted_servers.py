"""Servers of a test's own, which answer as it says."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """What all of them do alike."""

    # Headers and content are sent apart: with it each answer would take 40 ms.
    disable_nagle_algorithm = True

    def taken(self) -> bytes:
        """The content of the request.

        It is to be read before the answer, or the client that still sends it may find the
        connection broken and read no answer.
        """
        return self.rfile.read(int(self.headers["Content-Length"] or 0))

    def answer(
        self, status: int, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer a request whole; `headers` go before those it would have."""
        self.send_response(status)
        answer_headers = {} if status == 204 else {"Content-Length": str(len(content))}
        for name, value in (answer_headers | dict(headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    # Else a sixth client that comes at once is let in a second later, or two, or four.
    request_queue_size = 128
    # So that the end of the server joins them.
    daemon_threads = False

    def __init__(self, handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._open = set[Any]()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, unless the client has hung up, as it may."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        """End all connections: clients keep some for what they may ask next."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a server until the end of the block; gives its URL."""
    server = _Server(handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.hang_up()
        server.server_close()


@contextmanager
def hanging_server() -> Iterator[str]:
    """Take connections and say nothing until the end of the block; gives host and port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    try:
        # The system accepts for it.
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
