"""A server on this machine that answers with zeros: what receiving them takes is this host's part.

Run as a process of its own, so that its work is not counted; it prints its port, and ends when
standard input does.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LENGTH = 1 << 22
START_S, DELAY_S = 20.0, 0.003
ZEROS = memoryview(bytes(LENGTH))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(part) for part in asked.groups()) if asked else (0, LENGTH - 1)
        last = min(last, LENGTH - 1)
        # As of a server far away: to be woken for each answer is part of what receiving takes.
        time.sleep(DELAY_S)
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("ETag", '"zeros"')
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{LENGTH}")
        self.end_headers()
        self.wfile.write(ZEROS[first : last + 1])

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def loopback() -> Iterator[str]:
    """Give the URL of an object of 4 MiB on a server that runs meanwhile.

    Raises:
        OSError: where it cannot be started.
    """
    command = [sys.executable, "-m", "swathe.costs.probing.loopback_server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        timer = threading.Timer(START_S, server.kill)
        timer.start()
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            if not port:
                raise OSError("no server could be started on this machine to measure with")
            timer.cancel()
            yield f"http://127.0.0.1:{port}/zeros"
        finally:
            timer.cancel()
            server.kill()


def main() -> None:
    """Serve until standard input ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)  # noqa: T201 - this is what it is for
    sys.stdin.read()


if __name__ == "__main__":
    main()
