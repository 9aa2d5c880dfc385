"""Measure the servers of a striped store, each alone and all together, and name what bounds them.

Of a block server (`swathe stripe serve`) `/metrics` says how long its answers waited for disks, and
until the connection took more. What the client waited beyond that is the link.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from swathe import _swathe
from swathe.catalog import Catalog
from swathe.catalog.store_urls import STRIPE_URL
from swathe.core.errors import AccessError, SwatheError
from swathe.core.format import KIB, MIB, rate_text, seconds_text, size_text
from swathe.core.host import cores
from swathe.costs.probing.probe_result import ServerRate, StripeProbe
from swathe.costs.probing.store_probe import limits_of, measure_store
from swathe.stores.block_server import BlockServerMetrics, read_metrics
from swathe.stores.listing import ListedObject, list_objects
from swathe.stores.registry import to_native
from swathe.stores.stripe_plan import read_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swathe.catalog import Store
    from swathe.catalog.store_settings import StripeServer
    from swathe.costs.probing.probe_result import Bound, Probe, StripeBound
    from swathe.costs.probing.reader_protocol import OpenedObject
    from swathe.costs.probing.resolve_target import ProbeTarget

K = TypeVar("K")
STREAMS = (4, 16)
"""Numbers of requests in flight that are tried with each server."""
FIRST_BYTES, REQUEST_BYTES = 64 * KIB, 4 * MIB
"""Size of the first requests, and of the largest."""
WINDOW_BYTES, WINDOWS = 16 * MIB, 2
"""Reads of the striped store, and how many at a time."""
MOST_ENTRIES = 1000
BUSY_CPU = 0.8
"""Share of the cores from which this process is the limit."""
LEAST_SUM = 0.85
"""Share of the sum below which the servers slow each other."""
SLOWEST = 0.7
"""Share of the median below which one server is slower than the others."""
SHARE = 1 / 3
"""Share of the limits of a probe that its servers get."""
PHASES = {"open": 0.2, "alone": 0.4, "together": 0.2, "stripe": 0.2}
"""Shares of the time limit. The byte limit is shared by the phases after `open`, in proportion."""
PAUSE_S = 1.0
"""How much longer than its share a phase may take: for an answer that is on its way."""


def measure_stripe(
    place: ProbeTarget,
    *,
    quick: bool = False,
    max_time_s: float | None = None,
    max_bytes: int | None = None,
    tell: Callable[[str], None] | None = None,
    **options: Any,
) -> Probe:
    """Measure a striped store: first its servers, then the store as any other.

    Args:
        place: the striped store, and objects of it.
        quick: as in `measure_store`; so are the others.
        max_time_s: time limit of both, seconds.
        max_bytes: limit of the bytes moved by both.
        tell: function called with the plans.
        options: other options of `measure_store`.

    Raises:
        NotFoundError, RegionError, OutputError: As `measure_store`.
    """
    max_time_s, max_bytes = limits_of(place, quick, max_time_s, max_bytes)
    study_s, study_bytes = SHARE * max_time_s, int(SHARE * max_bytes)
    if tell is not None:
        tell(f"the servers: at most {size_text(study_bytes)} and {study_s:.3g} s")
    # First: the store then reads around servers that do not answer.
    stripe = study_stripe(place, max_time_s=study_s, max_bytes=study_bytes)
    limits: dict[str, Any] = {
        "max_time_s": max(max_time_s - stripe.elapsed_s, study_s),
        "max_bytes": max_bytes - stripe.bytes_moved,
    }
    probe = measure_store(place, quick=quick, tell=tell, **limits, **options)
    return replace(
        probe,
        stripe=stripe,
        parameters=replace(probe.parameters, max_time_s=max_time_s, max_bytes=max_bytes),
        elapsed_s=probe.elapsed_s + stripe.elapsed_s,
        bytes_moved=probe.bytes_moved + stripe.bytes_moved,
        requests=probe.requests + stripe.requests,
    )


def study_stripe(place: ProbeTarget, *, max_time_s: float, max_bytes: int) -> StripeProbe:
    """Measure the servers of a striped store, alone and together, then the store.

    A server that does not answer is named; the others are measured.

    Args:
        place: the striped store, and objects of it.
        max_time_s: time limit, seconds.
        max_bytes: limit of bytes moved.
    """
    with Catalog.open() as catalog:
        stripe = catalog.store(place.root.removeprefix(f"{STRIPE_URL}//").rstrip("/"))
    source = _swathe.open_source(place.objects[0], place.stores)
    return _StripeStudy(stripe, max_time_s, max_bytes).run(source)


@dataclass
class _Reading:
    """Reads of one object in a phase.

    Attributes:
        bytes: bytes read after the first batch, which opens connections; if there is another.
        elapsed_s: seconds that these took.
        client_s: durations of all requests together.
        bytes_moved: bytes of all batches.
        requests: number of requests.
    """

    bytes: int = 0
    elapsed_s: float = 0.0
    client_s: float = 0.0
    bytes_moved: int = 0
    requests: int = 0

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.elapsed_s if self.elapsed_s else 0.0


class _Server:
    """A server with an object of it that is read."""

    def __init__(self, place: StripeServer) -> None:
        self.place, self.stores = place, to_native([place.store])
        self.rate = ServerRate(place.place)
        self.source: OpenedObject | None = None

    def open(self) -> None:
        """Open its largest object, of the first that it lists."""
        try:
            self._open_largest()
        except AccessError as error:
            self.leave_out(str(error), is_reachable=True)

    def _open_largest(self) -> None:
        place = self.place
        listing = list_objects(place.store, place.prefix, None)
        entries = [each for each in islice(listing, MOST_ENTRIES) if isinstance(each, ListedObject)]
        largest = max(entries, key=lambda each: each.size or 0, default=None)
        if largest is None or (largest.size or KIB) < KIB:
            self.leave_out("lists no object of at least 1 KiB", is_reachable=True)
            return
        self.source = self.stores.open(f"{place.store.name}:{largest.path}")

    def leave_out(self, why: str, *, is_reachable: bool) -> None:
        """Measure it no more."""
        self.source, self.rate = None, replace(self.rate, why=why, is_reachable=is_reachable)

    def metrics(self) -> BlockServerMetrics | None:
        return read_metrics(self.stores, self.place.store)


class _StripeStudy:
    def __init__(self, stripe: Store, max_time_s: float, max_bytes: int) -> None:
        self.stripe, self.max_time_s, self.max_bytes = stripe, max_time_s, max_bytes
        self.servers = [_Server(place) for place in stripe.over]
        self.bytes_moved = self.requests = 0
        self.start_s = time.perf_counter()

    def run(self, source: OpenedObject) -> StripeProbe:
        self._in_parallel({server: server.open for server in self.servers}, self._s("open"))
        live = self._live()
        for server in live:
            seconds, most = self._s("alone") / len(live), self._bytes("alone") // len(live)
            self._in_parallel({server: self._alone(server, seconds, most)}, seconds)
        live = self._live()
        seconds, most = self._s("together"), self._bytes("together") // max(len(live), 1)
        self._in_parallel(
            {server: self._together(server, seconds, most) for server in live}, seconds
        )
        began_s, cpu_s = time.perf_counter(), time.process_time()
        rate = self._store_rate(source)
        elapsed_s = time.perf_counter() - began_s
        # The clocks of processes tick less often.
        cpu_share = min((time.process_time() - cpu_s) / max(elapsed_s * cores(), 1e-9), 1.0)
        return self._result(rate, cpu_share)

    def _store_rate(self, source: OpenedObject) -> float | None:
        """Return the rate of the store; None if the limits do not allow to read whole stripes."""
        seconds, most = self._s("stripe"), self._bytes("stripe")
        data = len(self.servers) - self.stripe.parity
        size = min(int(self.stripe.options["block_bytes"]) * data, source.size)
        if most < 3 * WINDOWS * size:
            return None
        readings: list[_Reading] = []

        def work() -> None:
            readings.append(_read(source, WINDOW_BYTES, WINDOWS, seconds, most, size))

        if _run_in_time({"store": work}, seconds):
            return None
        self._count(readings[0])
        return readings[0].bytes_per_s

    def _result(self, stripe_bytes_per_s: float | None, cpu_share: float) -> StripeProbe:
        rates = [server.rate for server in self.servers]
        live = [rate.alone_bytes_per_s for rate in rates if rate.why is None]
        data = len(rates) - self.stripe.parity
        total = sum(live)
        together = sum(rate.together_bytes_per_s for rate in rates)
        sum_rate = read_rate(live, data) if len(live) >= data else 0.0
        bound, server, text = name_bound(rates, cpu_share)
        likely = min(sum_rate, together)
        rate = likely if stripe_bytes_per_s is None else stripe_bytes_per_s
        if bound not in ("cpu", "client_line") and rate < LEAST_SUM * likely:
            text += (
                f"; an object is read at {rate_text(rate)} of "
                f"{rate_text(likely)}, which this does not explain"
            )
        return StripeProbe(
            servers=rates,
            sum_bytes_per_s=total,
            together_bytes_per_s=together,
            expected_bytes_per_s=sum_rate,
            stripe_bytes_per_s=stripe_bytes_per_s,
            cpu_share=cpu_share,
            bound=bound,
            bound_server=server,
            text=text,
            elapsed_s=time.perf_counter() - self.start_s,
            bytes_moved=self.bytes_moved,
            requests=self.requests,
        )

    def _alone(self, server: _Server, seconds: float, most_bytes: int) -> Callable[[], None]:
        """Return work that reads a server alone, and learns what bounds it."""

        def work() -> None:
            assert server.source is not None
            best = _Reading()
            for streams in STREAMS:
                before = server.metrics()
                reading = _read(
                    server.source,
                    REQUEST_BYTES,
                    streams,
                    seconds / len(STREAMS),
                    most_bytes // len(STREAMS),
                )
                self._count(reading)
                if reading.bytes_per_s > best.bytes_per_s:
                    best, after = reading, server.metrics()
                    bound, disk = bound_of(reading.client_s, before, after)
                    server.rate = replace(
                        server.rate,
                        streams=streams,
                        alone_bytes_per_s=reading.bytes_per_s,
                        bound=bound,
                        disk=disk,
                        is_block_server=before is not None and after is not None,
                    )

        return work

    def _together(self, server: _Server, seconds: float, most_bytes: int) -> Callable[[], None]:
        def work() -> None:
            assert server.source is not None
            streams = server.rate.streams
            reading = _read(server.source, REQUEST_BYTES, streams, seconds, most_bytes)
            self._count(reading)
            server.rate = replace(server.rate, together_bytes_per_s=reading.bytes_per_s)

        return work

    def _in_parallel(self, works: dict[_Server, Callable[[], None]], limit_s: float) -> None:
        """Have servers do work; one that fails, or is not ready in time, is out."""
        for server, why in _run_in_time(works, limit_s).items():
            server.leave_out(why, is_reachable=False)

    def _live(self) -> list[_Server]:
        return [server for server in self.servers if server.source is not None]

    def _s(self, phase: str) -> float:
        return PHASES[phase] * self.max_time_s

    def _bytes(self, phase: str) -> int:
        share = PHASES[phase] / (1 - PHASES["open"])
        return int(share * self.max_bytes)

    def _count(self, reading: _Reading) -> None:
        self.bytes_moved += reading.bytes_moved
        self.requests += reading.requests


def _run_in_time(works: Mapping[K, Callable[[], None]], limit_s: float) -> dict[K, str]:
    """Run works in threads; return why some failed, or were not ready in time."""
    failures: dict[K, str] = {}
    faults: list[Exception] = []

    def run(key: K, work: Callable[[], None]) -> None:
        try:
            work()
        except SwatheError as error:
            failures[key] = str(error)
        except Exception as error:  # raised by the caller
            faults.append(error)

    # What hangs goes on beside the rest of the probe: nobody waits for it any more.
    threads = {
        key: threading.Thread(target=run, args=(key, work), daemon=True)
        for key, work in works.items()
    }
    until = time.perf_counter() + limit_s + PAUSE_S
    for thread in threads.values():
        thread.start()
    for key, thread in threads.items():
        thread.join(max(until - time.perf_counter(), 0))
        if thread.is_alive():
            failures[key] = f"no answer within {seconds_text(limit_s + PAUSE_S)}"
    for fault in faults:
        raise fault
    return dict(failures)


def _read(
    source: OpenedObject,
    largest: int,
    streams: int,
    seconds: float,
    most_bytes: int,
    first: int = FIRST_BYTES,
) -> _Reading:
    """Read ranges of an object in batches, until a limit of time or bytes is reached.

    Requests grow from batch to batch to the largest size, as the time allows. The rate is that of
    the batches with the last size; the first batch opens connections.
    """
    largest = max(min(largest, source.size, most_bytes // (3 * streams)), 1)
    reading, at, size, batches = _Reading(), 0, min(first, largest), 0
    start_s = time.perf_counter()
    while True:
        left_s = seconds - (time.perf_counter() - start_s)
        left_bytes = most_bytes - reading.bytes_moved
        if batches and left_s <= 0:
            return reading
        # A third of the rest, so that a store that slows is noticed.
        likely = int(reading.bytes_per_s * left_s / 3)
        longer = min(likely // streams, largest, left_bytes // streams)
        if batches > 1 and longer >= 2 * size:
            reading.bytes, reading.elapsed_s, size = 0, 0.0, longer
        count = min(max(likely // size, streams), left_bytes // size)
        if count < 1:
            return reading
        places = source.size // size
        batch = [((at + number) % places * size, size) for number in range(count)]
        at += count
        began_s = time.perf_counter()
        timings = source.measure(batch, streams)
        if batches < 2:
            reading.bytes, reading.elapsed_s = 0, 0.0
        reading.elapsed_s += time.perf_counter() - began_s
        reading.bytes += count * size
        reading.bytes_moved += count * size
        reading.requests += count
        reading.client_s += sum(timing.end_s - timing.start_s for timing in timings)
        batches += 1


def bound_of(
    client_s: float, before: BlockServerMetrics | None, after: BlockServerMetrics | None
) -> tuple[Bound, str]:
    """Return what took most of the time of requests, and the disk if it is one.

    Args:
        client_s: durations of all requests together, as the client saw them.
        before: metrics of the server before these requests; None if it has none.
        after: metrics after them.
    """
    if before is None or after is None:
        return "server", ""
    change = after - before
    late_s = min(change.late_s / max(change.elapsed_s, 1e-9), 1.0) * client_s
    own_s = max(change.request_s - change.disk_wait_s - change.send_wait_s, 0.0)
    times: dict[Bound, float] = {
        "disk": change.disk_wait_s,
        "server": own_s + late_s,
        "link": client_s - change.disk_wait_s - own_s - late_s,
    }
    bound = max(times, key=lambda each: times[each])
    disk = max(change.disk_work_s, key=lambda each: change.disk_work_s[each], default="")
    return bound, disk if bound == "disk" else ""


def name_bound(rates: list[ServerRate], cpu_share: float) -> tuple[StripeBound, str, str]:
    """Return what bounds the servers together, of which server, and the same in words."""
    live = [rate for rate in rates if rate.why is None and rate.alone_bytes_per_s]
    if cpu_share >= BUSY_CPU:
        return "cpu", "", f"this process: it uses {cpu_share:.0%} of the cores of this machine"
    if not live:
        is_dead = not any(rate.is_reachable for rate in rates)
        return "server", "", "no server answers" if is_dead else "unknown (no server was measured)"
    total = sum(rate.alone_bytes_per_s for rate in live)
    together = sum(rate.together_bytes_per_s for rate in live)
    if len(live) > 1 and together < LEAST_SUM * total:
        text = (
            f"what the servers share, as the line or the processor of this machine: together they "
            f"give {rate_text(together)} of {rate_text(total)}"
        )
        return "client_line", "", text
    slowest = min(live, key=lambda rate: rate.alone_bytes_per_s)
    median = statistics.median(rate.alone_bytes_per_s for rate in live)
    if slowest.alone_bytes_per_s < SLOWEST * median and slowest.bound is not None:
        name = slowest.server.removesuffix(":")
        what = {
            "disk": f"disk {slowest.disk} of {name}",
            "link": f"link of {name}",
            "server": f"server {name}",
        }[slowest.bound]
        rate, usual = rate_text(slowest.alone_bytes_per_s), rate_text(median)
        return slowest.bound, slowest.server, f"{what}: {rate}, the median is {usual}"
    bound = Counter(rate.bound for rate in live if rate.bound).most_common(1)[0][0]
    if bound != "server":
        return bound, "", f"the {bound}s of all servers"
    is_known = any(rate.is_block_server for rate in live)
    return bound, "", "the processors of all servers" if is_known else "unknown (no block servers)"
