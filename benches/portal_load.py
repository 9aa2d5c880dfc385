"""Load for a server, from a process of its own: requests over HTTP/1.1, on plain sockets.

    python benches/portal_load.py < JSON

takes `{"host", "port", "paths", "clients", "requests", "rate"}`. Without a rate each client asks
anew when it was answered (closed load). With one, requests are due at that many a second, whatever
becomes of those before (open load), and their time counts from when they were due.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

HEAD = "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
TIMEOUT_S = 60.0


@dataclass
class Load:
    """What is asked, and how it went."""

    host: str
    port: int
    asked: list[bytes]
    seconds: list[float] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    bytes: int = 0

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        return await asyncio.open_connection(self.host, self.port, limit=1 << 20)

    async def client(self, jobs: asyncio.Queue[tuple[int, float | None] | None]) -> None:
        """Ask what is in the queue, one after the other on one connection."""
        reader, writer = await self.connect()
        while (job := await jobs.get()) is not None:
            number, due = job
            start_s = due if due is not None else time.perf_counter()
            try:
                writer.write(self.asked[number % len(self.asked)])
                status, length = await asyncio.wait_for(answer(reader), TIMEOUT_S)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                self.wrong(type(error).__name__)
                writer.close()
                reader, writer = await self.connect()
                continue
            self.seconds.append(time.perf_counter() - start_s)
            self.bytes += length
            if status != 200:
                self.wrong(str(status))
        writer.close()

    def wrong(self, what: str) -> None:
        """Count an error."""
        self.errors[what] = self.errors.get(what, 0) + 1


async def answer(reader: asyncio.StreamReader) -> tuple[int, int]:
    """Read an answer; return its status and length."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    lengths = [line for line in lines if line.startswith(b"content-length:")]
    length = int(lengths[0].partition(b":")[2]) if lengths else 0
    await reader.readexactly(length)
    return int(lines[0].split(b" ")[1]), length


async def run(order: dict[str, Any]) -> dict[str, Any]:
    """Make the load; return what was measured."""
    host, port = order["host"], order["port"]
    contents = [HEAD.format(path=path, host=host, port=port).encode() for path in order["paths"]]
    load = Load(host, port, contents)
    clients, requests, rate = order["clients"], order["requests"], order.get("rate")
    jobs: asyncio.Queue[tuple[int, float | None] | None] = asyncio.Queue()
    if rate is None:
        for number in range(requests):
            jobs.put_nowait((number, None))
    working = [asyncio.create_task(load.client(jobs)) for _ in range(clients)]
    start_s = time.perf_counter()
    if rate is not None:
        for number in range(requests):
            due = start_s + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            jobs.put_nowait((number, due))
    for _ in working:
        jobs.put_nowait(None)
    await asyncio.gather(*working)
    took = time.perf_counter() - start_s
    ordered = sorted(load.seconds)

    def percentile(part: float) -> float:
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0

    return {
        "clients": clients,
        "asked_rate": rate,
        "requests": requests,
        "seconds": took,
        "rate": len(ordered) / took,
        "p50_ms": 1e3 * percentile(0.50),
        "p95_ms": 1e3 * percentile(0.95),
        "p99_ms": 1e3 * percentile(0.99),
        "errors": load.errors,
        "bytes": load.bytes,
    }


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        found = asyncio.run(run(json.load(sys.stdin)))
    else:
        found = uvloop.run(run(json.load(sys.stdin)))
    print(json.dumps(found))
