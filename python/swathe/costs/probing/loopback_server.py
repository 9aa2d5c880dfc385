"""A server on this machine that sends zeros, to measure this host's cost of receiving.

It runs in a process of its own, so that its work is not counted. It prints its port, and ends when
its standard input is closed.
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
        byte_range = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(part) for part in byte_range.groups()) if byte_range else (0, LENGTH - 1)
        last = min(last, LENGTH - 1)
        # As with a distant server: waking up for each answer is part of the cost of receiving.
        time.sleep(DELAY_S)
        self.send_response(206 if byte_range else 200)
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("ETag", '"zeros"')
        if byte_range:
            self.send_header("Content-Range", f"bytes {first}-{last}/{LENGTH}")
        self.end_headers()
        self.wfile.write(ZEROS[first : last + 1])

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def loopback() -> Iterator[str]:
    """Start a server, and yield the URL of an object of 4 MiB on it.

    Raises:
        OSError: If the server cannot be started.
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
                raise OSError("the local server for measuring could not be started")
            timer.cancel()
            yield f"http://127.0.0.1:{port}/zeros"
        finally:
            timer.cancel()
            server.kill()


def main() -> None:
    """Serve until standard input is closed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)  # noqa: T201 - the parent process reads it
    sys.stdin.read()


if __name__ == "__main__":
    main()
