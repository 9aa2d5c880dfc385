"""Host monitor: processors, memory, disks, network, and the response time of stores.

The figures are those of `sar` and `vmstat`, from the kernel's counters. Rates are averages since
the previous reading. Devices and interfaces that never moved any data are left out.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from swathe import _swathe
from swathe.core.errors import SwatheError
from swathe.core.host import this_host
from swathe.trace import tcp_stats
from swathe.trace.record import point as record
from swathe.trace.record import scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


SECTOR_BYTES = 512
MOST_POINTS = 1_000_000
"""Points that a monitor keeps, the newest."""
PATIENCE_S = 2.0

Fields = dict[str, str | int | float]


@dataclass(frozen=True)
class Point:
    """One reading: time, name and figures."""

    time_ns: int
    name: str
    fields: Fields = field(default_factory=dict)

    def as_line(self) -> str:
        """Return it as a line of ULM, without the line end."""
        return _swathe.ulm_line(self.time_ns, this_host(), self.name, self.fields)


@dataclass(frozen=True)
class PingTarget:
    """A store whose object is queried for size and version in each interval.

    Attributes:
        name: name of the store in events.
        object: path or URL of the object.
        stores: stores needed to find it.
    """

    name: str
    object: str
    stores: _swathe.Stores | None = None

    def point(self) -> Point:
        """Query the object."""
        at_ns = time.time_ns()
        try:
            seconds, _ = _swathe.measure_open(self.object, self.stores)
        except SwatheError as error:
            reason = {"RESULT": "error", "REASON": str(error)}
            return Point(at_ns, "PING", {"STORE": self.name, **reason})
        return Point(at_ns, "PING", {"STORE": self.name, "RTT_S": seconds})


class Monitor:
    """Records the load of this machine, in a thread of its own.

    >>> with Monitor(0.5) as monitor:
    ...     work()
    >>> monitor.samples[0].name, monitor.samples[0].fields["USER_PERCENT"]

    Each interval adds one point each of CPU, MEMORY, SWAP and TCP, one DISK point per disk, one NET
    point per interface, and one PING point per store. If events are recorded, these points are too.

    Args:
        interval_s: seconds between readings; the first comes after the first interval.
        stores: stores to query; one that does not answer delays only its own next PING.
        tell: called with each point, from the reading threads.

    Attributes:
        samples: the points, in the order they were read.
    """

    def __init__(
        self,
        interval_s: float = 1.0,
        *,
        stores: Sequence[PingTarget] = (),
        tell: Callable[[Point], None] = lambda _point: None,
    ) -> None:
        if not interval_s > 0:
            raise ValueError(f"interval_s: expected more than 0, found {interval_s}")
        self.interval_s = interval_s
        self.samples: deque[Point] = deque(maxlen=MOST_POINTS)
        self._tell = tell
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._read, name="monitor", daemon=True)]
        for store in stores:
            self._threads.append(
                threading.Thread(target=self._ping, args=(store,), name="ping", daemon=True)
            )

    def start(self) -> None:
        """Start the thread."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop; does not wait for a store that does not answer."""
        self._ending.set()
        until_s = time.monotonic() + PATIENCE_S
        for thread in self._threads:
            thread.join(max(until_s - time.monotonic(), 0.0))

    def __enter__(self) -> Monitor:
        """Start the thread."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread."""
        self.stop()

    def _read(self) -> None:
        before = Reading.now()
        for _ in self._ticks():
            after = Reading.now()
            for point in after.since(before):
                self._keep(point)
            before = after

    def _ping(self, store: PingTarget) -> None:
        for _ in self._ticks():
            with scope(monitor="ping"):
                self._keep(store.point())

    def _ticks(self) -> Iterator[None]:
        """Yield once per interval from now on; missed intervals are skipped.

        An interval less than half an interval after a late one is skipped too: over so short a time
        the kernel's counters say little.
        """
        begun_s, number = time.monotonic(), 1
        while not self._ending.wait(begun_s + number * self.interval_s - time.monotonic()):
            yield
            intervals = (time.monotonic() - begun_s) / self.interval_s
            number = max(number, int(intervals + 0.5)) + 1

    def _keep(self, point: Point) -> None:
        if self._ending.is_set():
            return
        self.samples.append(point)
        self._tell(point)
        record(point.name, **point.fields)


@dataclass(frozen=True)
class Reading:
    """The kernel's counters at one time."""

    time_ns: int
    at_s: float
    cpu: dict[str, float]
    memory: Any
    swap: Any
    disks: dict[str, Any]
    networks: dict[str, Any]
    retransmits: int | None
    round_trips: list[float] | None
    silence: str

    @classmethod
    def now(cls) -> Reading:
        """Read the counters."""
        retransmits, round_trips, silence = None, None, []
        try:
            retransmits = tcp_stats.retransmits()
        except OSError as error:
            silence.append(f"retransmits: {error.strerror or error}")
        try:
            round_trips = tcp_stats.round_trips()
        except OSError as error:
            silence.append(f"round trips: {error.strerror or error}")
        return cls(
            time_ns=time.time_ns(),
            at_s=time.monotonic(),
            cpu=processor_times(),
            memory=psutil.virtual_memory(),
            swap=psutil.swap_memory(),
            disks=_disks(),
            networks=psutil.net_io_counters(pernic=True),
            retransmits=retransmits,
            round_trips=round_trips,
            silence="; ".join(silence),
        )

    def since(self, before: Reading) -> Iterator[Point]:
        """Yield the points since an earlier reading, and the current state."""
        elapsed_s = max(self.at_s - before.at_s, 1e-9)
        for name, fields in self._fields(before, elapsed_s):
            yield Point(self.time_ns, name, fields)

    def _fields(self, before: Reading, elapsed_s: float) -> Iterator[tuple[str, Fields]]:
        def rate(after: float, earlier: float) -> float:
            # Counters restart at zero if a device was removed and added again.
            return round(max(after - earlier, 0) / elapsed_s, 3)

        cpu_times = {name: max(self.cpu[name] - before.cpu[name], 0.0) for name in self.cpu}
        total = sum(cpu_times.values()) or 1.0
        yield (
            "CPU",
            {f"{name}_PERCENT": round(100 * of / total, 2) for name, of in cpu_times.items()},
        )
        memory = self.memory
        cache_bytes = getattr(memory, "cached", 0) + getattr(memory, "buffers", 0)
        yield (
            "MEMORY",
            {"USED_BYTES": memory.used, "FREE_BYTES": memory.free, "CACHED_BYTES": cache_bytes},
        )
        yield (
            "SWAP",
            {
                "USED_BYTES": self.swap.used,
                "IN_BYTES_PER_S": rate(self.swap.sin, before.swap.sin),
                "OUT_BYTES_PER_S": rate(self.swap.sout, before.swap.sout),
            },
        )
        for name, now in self.disks.items():
            if (then := before.disks.get(name)) is None:
                continue
            fields: Fields = {
                "DEVICE": name,
                "READ_SECTORS_PER_S": rate(now.read_bytes, then.read_bytes) / SECTOR_BYTES,
                "WRITTEN_SECTORS_PER_S": rate(now.write_bytes, then.write_bytes) / SECTOR_BYTES,
            }
            if hasattr(now, "busy_time"):
                busy_s = max(now.busy_time - then.busy_time, 0) / 1000
                fields["BUSY_PERCENT"] = round(min(100 * busy_s / elapsed_s, 100.0), 2)
            yield "DISK", fields
        for name, now in self.networks.items():
            then = before.networks.get(name)
            if then is not None and now.bytes_recv + now.bytes_sent:
                yield (
                    "NET",
                    {
                        "INTERFACE": name,
                        "RECEIVED_BYTES_PER_S": rate(now.bytes_recv, then.bytes_recv),
                        "SENT_BYTES_PER_S": rate(now.bytes_sent, then.bytes_sent),
                    },
                )
        yield "TCP", self._tcp(before, rate)

    def _tcp(self, before: Reading, rate: Callable[[float, float], float]) -> Fields:
        fields: Fields = {}
        if self.retransmits is not None and before.retransmits is not None:
            fields["RETRANSMITS_PER_S"] = rate(self.retransmits, before.retransmits)
        if self.round_trips is not None:
            if self.round_trips:
                fields["RTT_S"] = statistics.median(self.round_trips)
            fields["CONNECTIONS"] = len(self.round_trips)
        if self.silence:
            fields["REASON"] = self.silence
        return fields


def processor_times() -> dict[str, float]:
    """Return the seconds of all cores since boot, grouped as by `vmstat`."""
    times = psutil.cpu_times()

    def of(*names: str) -> float:
        return float(sum(getattr(times, name, 0.0) for name in names))

    return {
        "USER": of("user", "nice"),
        "SYSTEM": of("system", "irq", "softirq"),
        "IOWAIT": of("iowait"),
        "STEAL": of("steal"),
        "IDLE": of("idle"),
    }


def _disks() -> dict[str, Any]:
    """Return whole disks that ever moved data: a disk includes its partitions."""
    counters = psutil.disk_io_counters(perdisk=True) or {}
    disks = Path("/sys/block")
    return {
        name: now
        for name, now in counters.items()
        if now.read_bytes + now.write_bytes and (not disks.is_dir() or (disks / name).exists())
    }
