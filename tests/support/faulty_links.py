"""Links to servers that stop in the middle of work: they hang, or drip a byte a second."""

from __future__ import annotations

import socket
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

State = Literal["whole", "hanging", "dripping"]
PIECE_BYTES = 1 << 16
DRIP_S = 1.0


class FaultyLink:
    """A link to a server, which can be told to fail.

    Attributes:
        url: address of the link.
        state: `hanging`: connections are taken, and nothing passes; `dripping`: requests pass, and
            a byte a second of the answers. It holds for open connections, too.
    """

    def __init__(self, upstream_url: str) -> None:
        self.state: State = "whole"
        host, _, port = urllib.parse.urlsplit(upstream_url).netloc.partition(":")
        self._upstream = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._ending = threading.Event()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while not self._ending.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._upstream)
            except OSError:
                client.close()
                continue
            self._open += [client, server]
            for ends in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                self._send(piece, target, is_answer)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _send(self, piece: bytes, target: socket.socket, is_answer: bool) -> None:
        while piece and not self._ending.is_set():
            if self.state == "hanging":
                self._ending.wait(0.1)
            elif self.state == "dripping" and is_answer:
                target.sendall(piece[:1])
                piece = piece[1:]
                self._ending.wait(DRIP_S)
            else:
                target.sendall(piece)
                return

    def end(self) -> None:
        """Take no more connections, and end those there are."""
        self._ending.set()
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def faulty_link(upstream_url: str) -> Iterator[FaultyLink]:
    """Lead to a server until the end of the block."""
    link = FaultyLink(upstream_url)
    try:
        yield link
    finally:
        link.end()
