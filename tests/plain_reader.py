"""A second opinion on `_swathe.measure`: threads, `pread` and `http.client`, nothing more."""

from __future__ import annotations

import http.client
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from simulated import Timing


class PlainReader:
    """Reads files and plain HTTP, with idle connections kept."""

    def __init__(self) -> None:
        self.idle: list[http.client.HTTPConnection] = []
        self.lock = threading.Lock()

    def close(self) -> None:
        """Close all connections."""
        for connection in self.idle:
            connection.close()

    def measure(
        self,
        url: str,
        requests: list[tuple[int, int]],
        streams: int,
        *,
        fresh: bool = False,
        stores: object = None,
    ) -> list[Timing]:
        """As `_swathe.measure`."""
        began = time.perf_counter()
        timings: list[Timing | None] = [None] * len(requests)
        todo = iter(range(len(requests)))

        def work() -> None:
            while True:
                with self.lock:
                    place = next(todo, None)
                if place is None:
                    return
                timings[place] = self._one(url, *requests[place], fresh, began)

        threads = [threading.Thread(target=work) for _ in range(min(streams, len(requests)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [timing for timing in timings if timing is not None]

    def measure_open(self, url: str, stores: object = None) -> tuple[float, int]:
        """As `_swathe.measure_open`."""
        began = time.perf_counter()
        if not url.startswith("http"):
            size = os.stat(url.removeprefix("file://")).st_size
        else:
            with self._connection(url, fresh=False) as (connection, _):
                connection.request("HEAD", urlsplit(url).path)
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    raise FileNotFoundError(url)
                size = int(answer.headers["Content-Length"])
        return time.perf_counter() - began, size

    def _one(self, url: str, offset: int, length: int, fresh: bool, began: float) -> Timing:
        start = time.perf_counter() - began
        if not url.startswith("http"):
            with open(url.removeprefix("file://"), "rb", buffering=0) as file:
                content = os.pread(file.fileno(), length, offset)
            end = time.perf_counter() - began
            return Timing(len(content), start, end, end)
        with self._connection(url, fresh) as (connection, connect_s):
            span = f"bytes={offset}-{offset + length - 1}"
            connection.request("GET", urlsplit(url).path, headers={"Range": span})
            answer = connection.getresponse()
            first = time.perf_counter() - began
            content = answer.read()
            end = time.perf_counter() - began
        return Timing(len(content), start, first, end, connect_s)

    @contextmanager
    def _connection(
        self, url: str, fresh: bool
    ) -> Iterator[tuple[http.client.HTTPConnection, float | None]]:
        with self.lock:
            connection = self.idle.pop() if self.idle and not fresh else None
        connect_s = None
        if connection is None:
            began = time.perf_counter()
            connection = http.client.HTTPConnection(urlsplit(url).netloc)
            connection.connect()
            connect_s = time.perf_counter() - began if fresh else None
        yield connection, connect_s
        with self.lock:
            self.idle.append(connection)
