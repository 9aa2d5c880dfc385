"""Answers that go on for long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from swathe.portal.http.long_responses import Streams


def test_clients_that_come_and_go_leave_no_threads() -> None:
    streams = Streams(2)
    running: list[threading.Thread] = []

    def work(gone: Callable[[], bool]) -> str:
        running.append(threading.current_thread())
        while not gone():
            over.wait(0.01)
        # As what cannot end yet.
        over.wait(120)
        return "ended"

    async def come_and_go() -> None:
        for number in range(20):
            asked = asyncio.create_task(streams.wait_for(work))
            await asyncio.sleep(0.01)
            while len(running) < min(number + 1, 2):
                await asyncio.sleep(0.01)
            asked.cancel()
            await asyncio.wait([asked])
            assert asked.cancelled()
        assert len(running) == 2
        over.set()
        assert await streams.wait_for(lambda _gone: "another") == "another"
        assert len(running) == 2

    over = threading.Event()
    try:
        asyncio.run(come_and_go())
    finally:
        over.set()
