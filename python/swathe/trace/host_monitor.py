"""What this machine is doing: processors, memory, disks, network, and how far its stores are.

As `sar` and `vmstat` have it, from the kernel's counters: rates are those of the time since the
reading before. Devices and interfaces that never moved anything are left out.
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
from swathe.trace.ulm_lines import line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from swathe.trace.ulm_lines import Value

SECTOR_BYTES = 512
MOST_POINTS = 1_000_000
"""A monitor keeps so many, the newest."""
PATIENCE_S = 2.0

Fields = dict[str, "Value"]


@dataclass(frozen=True)
class Point:
    """One reading: when, of what, and the figures."""

    time_ns: int
    name: str
    fields: Fields = field(default_factory=dict)

    def as_line(self) -> str:
        """Give it as a line of ULM, without its end."""
        return line(self.time_ns, this_host(), self.name, self.fields)


@dataclass(frozen=True)
class Pinged:
    """A store that is asked for an object's size and version, in each interval.

    Attributes:
        name: what it is called in events.
        object: path or URL of the object.
        stores: what is needed to find it.
    """

    name: str
    object: str
    stores: _swathe.Stores | None = None

    def point(self) -> Point:
        """Ask it."""
        at_ns = time.time_ns()
        try:
            seconds, _ = _swathe.measure_open(self.object, self.stores)
        except SwatheError as error:
            reason = {"RESULT": "error", "REASON": str(error)}
            return Point(at_ns, "PING", {"STORE": self.name, **reason})
        return Point(at_ns, "PING", {"STORE": self.name, "RTT_S": seconds})


class Monitor:
    """Reads what this machine is doing, in a thread of its own.

    >>> with Monitor(0.5) as monitor:
    ...     work()
    >>> monitor.samples[0].name, monitor.samples[0].fields["USER_PERCENT"]

    Each interval gives one point each of CPU, MEMORY, SWAP and TCP, one of DISK for each disk, one
    of NET for each interface, and one of PING for each store. Where events are recorded, these are
    too.

    Args:
        interval_s: between readings; the first comes after the first interval.
        stores: to be asked; one that does not answer holds up nothing but its own next PING.
        tell: called with each point, by the threads that read.

    Attributes:
        samples: the points, in the order they were read.
    """

    def __init__(
        self,
        interval_s: float = 1.0,
        *,
        stores: Sequence[Pinged] = (),
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
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End; a store that does not answer is not waited for."""
        self._ending.set()
        until_s = time.monotonic() + PATIENCE_S
        for thread in self._threads:
            thread.join(max(until_s - time.monotonic(), 0.0))

    def __enter__(self) -> Monitor:
        """Begin."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self.stop()

    def _read(self) -> None:
        before = Reading.now()
        for _ in self._ticks():
            after = Reading.now()
            for point in after.since(before):
                self._keep(point)
            before = after

    def _ping(self, store: Pinged) -> None:
        for _ in self._ticks():
            with scope(monitor="ping"):
                self._keep(store.point())

    def _ticks(self) -> Iterator[None]:
        """Come back at each interval from now on; those that were missed are left out.

        So is one that comes less than half an interval after what was late: of so short a time the
        kernel's counters tell little.
        """
        begun_s, number = time.monotonic(), 1
        while not self._ending.wait(begun_s + number * self.interval_s - time.monotonic()):
            yield
            passed = (time.monotonic() - begun_s) / self.interval_s
            number = max(number, int(passed + 0.5)) + 1

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
        """Read them."""
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
        """Give what happened since an earlier reading, and how things are."""
        elapsed_s = max(self.at_s - before.at_s, 1e-9)
        for name, fields in self._fields(before, elapsed_s):
            yield Point(self.time_ns, name, fields)

    def _fields(self, before: Reading, elapsed_s: float) -> Iterator[tuple[str, Fields]]:
        def rate(after: float, earlier: float) -> float:
            # Counters start again at zero where a device was taken away and put back.
            return round(max(after - earlier, 0) / elapsed_s, 3)

        spent = {name: max(self.cpu[name] - before.cpu[name], 0.0) for name in self.cpu}
        total = sum(spent.values()) or 1.0
        yield "CPU", {f"{name}_PERCENT": round(100 * of / total, 2) for name, of in spent.items()}
        memory = self.memory
        cached = getattr(memory, "cached", 0) + getattr(memory, "buffers", 0)
        yield (
            "MEMORY",
            {"USED_BYTES": memory.used, "FREE_BYTES": memory.free, "CACHED_BYTES": cached},
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
    """Seconds of all cores since the start, as `vmstat` groups them."""
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
    """Give whole disks that ever moved anything: what partitions do, their disk does."""
    found = psutil.disk_io_counters(perdisk=True) or {}
    whole = Path("/sys/block")
    return {
        name: now
        for name, now in found.items()
        if now.read_bytes + now.write_bytes and (not whole.is_dir() or (whole / name).exists())
    }
