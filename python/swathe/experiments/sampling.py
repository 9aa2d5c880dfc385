"""What this machine is doing, read by a thread at intervals."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import psutil


@dataclass(frozen=True)
class Point:
    """One reading: when, of what, and the figures."""

    time_ns: int
    name: str
    fields: dict[str, Any]


class Monitor:
    """Reads processors, memory, swap, disks and network between `start` and `stop`."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.samples: list[Point] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Monitor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _read(self) -> None:
        before = self._counters()
        while not self._ending.wait(self.interval_s):
            after = self._counters()
            took = after[0] - before[0]
            now = time.time_ns()
            told = psutil.cpu_times_percent(None)
            idle = {"IDLE_PERCENT": told.idle, "IOWAIT_PERCENT": getattr(told, "iowait", 0.0)}
            self.samples.append(Point(now, "CPU", idle))
            self.samples.append(Point(now, "MEMORY", {"USED_BYTES": psutil.virtual_memory().used}))
            swapped = (after[1] - before[1]) / took
            self.samples.append(Point(now, "SWAP", {"IN_BYTES_PER_S": swapped}))
            for name, busy in after[2].items():
                share = min(100.0, (busy - before[2].get(name, busy)) / took / 10)
                self.samples.append(Point(now, "DISK", {"DEVICE": name, "BUSY_PERCENT": share}))
            received = (after[3] - before[3]) / took
            self.samples.append(Point(now, "NET", {"RECEIVED_BYTES_PER_S": received}))
            before = after

    @staticmethod
    def _counters() -> tuple[float, int, dict[str, int], int]:
        swap = psutil.swap_memory()
        disks = psutil.disk_io_counters(perdisk=True) or {}
        busy = {name: getattr(of, "busy_time", 0) for name, of in disks.items()}
        received = psutil.net_io_counters().bytes_recv
        return time.monotonic(), swap.sin + swap.sout, busy, received
