"""Clients on several hosts: one host leads the others, and measures their clock offsets.

Messages are lines of JSON over TCP. A joining host sends a token and its name, is asked for its
clock several times before and after the run, gets its share of the clients, and sends their
records. The fastest exchange limits the error of the offset: half its round trip.
"""

from __future__ import annotations

import base64
import hmac
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from swathe.core.errors import SettingsError, SourceError
from swathe.core.host import in_url, is_loopback, this_host
from swathe.experiments.clients.client_process import FAILURE
from swathe.experiments.clients.frames_in_store import environment, with_storages
from swathe.experiments.clients.ramp_schedule import RECORD, SteadyClock
from swathe.trace.clocks import ClockEstimate, Reply, estimate_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

VARIABLE = "SWATHE_BENCH_TOKEN"
PINGS = 20
LONGEST_LINE = 256 << 20
FIRST_LINE = 10_000
JOIN_S = 120.0
GREETING_S = 5.0
"""Seconds a joining host may take to answer."""
LEAD_S = 0.3
"""Seconds from when all are ready until the first client joins."""
PATIENCE_S = 120.0
"""Seconds that a run on another host may take beyond its own length."""


@dataclass(frozen=True)
class HostResult:
    """Result of the clients of a host.

    Attributes:
        records: records of all clients, as a NumPy file.
        cpu_percent: CPU use of the host, from when all clients had joined.
        failure: reason of one failed request.
    """

    records: bytes
    cpu_percent: float
    failure: str


class LineConnection:
    """A connection with one message per line."""

    def __init__(self, connection: socket.socket) -> None:
        """Take a connection."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.file = connection.makefile("rb")

    def say(self, **message: Any) -> None:
        """Send a message."""
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def hear(self, longest: int = LONGEST_LINE) -> dict[str, Any]:
        """Wait for a message.

        Raises:
            SourceError: If the connection ends, or the message is invalid.
        """
        try:
            text = self.file.readline(longest)
        except OSError as error:
            raise SourceError(f"the other host: {error}") from error
        if not text.endswith(b"\n"):
            raise SourceError("the other host: the connection ended")
        try:
            message = json.loads(text)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise SourceError(
                "the other host: expected a message as a line of JSON, found something else"
            )
        if "error" in message:
            raise SourceError(f"the other host: {message['error']}")
        return message


def between(before: ClockEstimate, after: ClockEstimate) -> ClockEstimate:
    """Combine the offsets before and after a run: clocks drift meanwhile."""
    middle = (before.offset_s + after.offset_s) / 2
    apart = abs(before.offset_s - after.offset_s) / 2
    return ClockEstimate(middle, max(before.spread_s, after.spread_s) + apart)


class RemoteHost:
    """A host that has joined."""

    def __init__(self, line: LineConnection, host: str, clock: SteadyClock) -> None:
        self.line, self.host, self.clock = line, host, clock
        self.length_s = 0.0
        self.cpu_percent, self.failure = 0.0, ""
        self.offset = self.ping()

    def ping(self) -> ClockEstimate:
        """Measure its clock offset."""
        exchanges = []
        for _ in range(PINGS):
            asked_ns = self.clock.now_ns()
            self.line.say(ask="clock")
            there_ns = round(1e9 * float(self.line.hear(FIRST_LINE)["clock"]))
            exchanges.append((Reply(asked_ns, there_ns, there_ns), self.clock.now_ns()))
        return estimate_offset(exchanges)

    def prepare(self, order: dict[str, Any]) -> None:
        """Send the order for its clients, with this host's stores; the clients wait."""
        self.length_s = float(order["length_s"])
        self.line.say(ask="prepare", order=with_storages(order))

    def ready(self) -> None:
        """Wait until the clients are ready."""
        self.line.hear(FIRST_LINE)

    def go(self, start: float) -> None:
        """Let the first client join at a time of our clock."""
        self.line.say(ask="go", start=start + self.offset.offset_s)

    def records(self) -> tuple[NDArray[Any], ClockEstimate]:
        """Wait for its records; return them with their own times, and its clock minus ours."""
        # The host waits for its clients' run and PATIENCE_S, and may then report an error.
        self.line.connection.settimeout(self.length_s + PATIENCE_S + JOIN_S)
        reply = self.line.hear()
        self.line.connection.settimeout(JOIN_S)
        rows = as_array(base64.b64decode(reply["records"]))
        self.cpu_percent = float(reply.get("cpu_percent", 0.0))
        self.failure = str(reply.get("failure", ""))[:1000]
        self.offset = between(self.offset, self.ping())
        return rows, self.offset

    def end(self) -> None:
        """Release the host."""
        self.line.say(ask="end")


def correct_records(records: NDArray[Any], offset_s: float) -> NDArray[Any]:
    """Return records with times of our clock."""
    result = records.copy()
    for name in ("due", "sent", "done"):
        result[name] -= offset_s
    return result


@contextmanager
def gather_hosts(
    address: str, count: int, tell: Callable[[str], None]
) -> Iterator[list[RemoteHost]]:
    """Wait until `count` hosts have joined at HOST:PORT.

    Raises:
        SettingsError: If the address is invalid, or a token is required and missing.
        SourceError: If they do not join.
    """
    host, port = read_address(address)
    token = os.environ.get(VARIABLE, "")
    if not token and not is_loopback(host):
        raise SettingsError(
            f"ramp.listen: {host} can be reached from other machines: set ${VARIABLE}"
        )
    clock, hosts = SteadyClock(), list[RemoteHost]()
    try:
        server = socket.create_server((host, port))
    except OSError as error:
        raise SettingsError(f"ramp.listen: {address}: {error.strerror or error}") from error
    with server:
        server.settimeout(JOIN_S)
        where = f"{in_url(host)}:{server.getsockname()[1]}"
        tell(f"waiting for {count} hosts: swathe bench join {where}")
        try:
            while len(hosts) < count:
                connection, _ = server.accept()
                # Others are not greeted meanwhile; a joining host speaks at once.
                connection.settimeout(GREETING_S)
                line = LineConnection(connection)
                try:
                    greeting = line.hear(FIRST_LINE)
                    if not hmac.compare_digest(_bytes(greeting.get("token", "")), _bytes(token)):
                        line.say(error="the token does not match")
                        raise SourceError("a host without the token")
                    name = _free(str(greeting.get("host", "?"))[:255], hosts)
                    hosts.append(RemoteHost(line, name, clock))
                    connection.settimeout(JOIN_S)
                except (
                    SourceError,
                    OSError,
                    KeyError,
                    TypeError,
                    OverflowError,
                    ValueError,
                ) as error:
                    tell(f"turned away: {error}")
                    connection.close()
        except TimeoutError:
            raise SourceError(
                f"ramp.hosts: {len(hosts)} of {count} joined in {JOIN_S:.0f} s"
            ) from None
    try:
        yield hosts
    finally:
        for each in hosts:
            each.line.connection.close()


def _bytes(token: Any) -> bytes:
    """Return a token as bytes, for `compare_digest`, whatever it contains."""
    return str(token).encode("utf-8", "surrogatepass")


def _free(name: str, hosts: list[RemoteHost]) -> str:
    """Return a unique host name, numbered if needed: containers, or one machine twice."""
    names = {each.host for each in hosts}
    other_names = (f"{name}-{number}" for number in range(len(hosts) + 1, 2 * len(hosts) + 2))
    return next(each for each in (name, *other_names) if each not in names)


def read_address(text: str) -> tuple[str, int]:
    """Parse HOST:PORT.

    Raises:
        SettingsError: If it is invalid.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"expected an address HOST:PORT, found {text[:200]!r}")
    return host.strip("[]"), int(port)


@dataclass(frozen=True)
class JoinedRun:
    """One run of clients on this host, for a ramp that another host leads."""

    clients: int
    cpu_percent: float


def join(address: str, tell: Callable[[str], None]) -> list[JoinedRun]:
    """Run clients on this host for a ramp led by another one. Return the runs.

    Raises:
        SettingsError: If the address is invalid.
        SourceError: If no host answers, or the connection ends.
    """
    host, port = read_address(address)
    try:
        connection = socket.create_connection((host, port), timeout=JOIN_S)
    except OSError as error:
        raise SourceError(f"{address}: {error}") from error
    clock = SteadyClock()
    runs: list[JoinedRun] = []
    with connection:
        # The other hosts may take long to join.
        connection.settimeout(None)
        line = LineConnection(connection)
        line.say(token=os.environ.get(VARIABLE, ""), host=this_host())
        while (message := line.hear())["ask"] != "end":
            if message["ask"] == "clock":
                line.say(clock=clock.now())
                continue
            count = len(message["order"]["clients"])
            tell(f"{count} clients")
            try:
                with Clients(message["order"]) as tester:
                    line.say(ready=True)
                    tester.go(float(line.hear(FIRST_LINE)["start"]))
                    result = tester.records()
                    message = {"cpu_percent": result.cpu_percent, "failure": result.failure}
                    line.say(records=base64.b64encode(result.records).decode(), **message)
                    runs.append(JoinedRun(count, result.cpu_percent))
            except SourceError as error:
                line.say(error=str(error))
                raise
    return runs


class Clients:
    """The process of this host's clients; ready when the context is entered."""

    def __init__(self, order: dict[str, Any]) -> None:
        """Take the order."""
        self.order = order

    def __enter__(self) -> Clients:
        self.folder = tempfile.TemporaryDirectory(prefix="swathe-ramp-")
        self.path = Path(self.folder.name)
        self.errors = (self.path / "errors").open("wb")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-m", "swathe.experiments.clients.client_process"],
            stdin=pipe,
            stdout=pipe,
            stderr=self.errors,
            env=environment(self.path / "index"),
            text=True,
        )
        try:
            records = str(self.path / "records.npy")
            self._write(json.dumps({**with_storages(self.order), "records": records}))
            assert self.process.stdout is not None
            if self.process.stdout.readline() != "ready\n":
                raise self._end_error()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            # Clients are child processes: they would continue to load the store without it.
            self.process.send_signal(signal.SIGSTOP)
            clients = psutil.Process(self.process.pid).children()
            self.process.kill()
            for client in clients:
                client.kill()
        self.process.communicate()
        self.errors.close()
        self.folder.cleanup()

    def go(self, start: float) -> None:
        """Let the first client join at a time of this host's clock."""
        self.start = start
        self._write(str(start))

    def records(self) -> HostResult:
        """Wait for the records of all clients.

        Raises:
            SourceError: If the process fails or does not end.
        """
        all_s, length_s = self.order.get("all_s", 0.0), self.order["length_s"]
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=max(self.start - SteadyClock().now(), 0) + all_s)
        before = busy_and_idle()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=length_s - all_s)
        busy, idle = (now - then for now, then in zip(busy_and_idle(), before, strict=True))
        try:
            code = self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            limit = length_s + PATIENCE_S
            raise SourceError(f"the clients did not end within {limit:.0f} s") from None
        if code:
            raise self._end_error()
        errors = (self.path / "errors").read_text(errors="replace").splitlines()
        failures = [line.removeprefix(FAILURE) for line in errors if line.startswith(FAILURE)]
        percent = 100 * busy / (busy + idle) if busy + idle > 0 else 0.0
        return HostResult(
            (self.path / "records.npy").read_bytes(), percent, next(iter(failures), "")
        )

    def _write(self, text: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._end_error() from None

    def _end_error(self) -> SourceError:
        self.process.wait()
        errors = (self.path / "errors").read_text().strip().splitlines()
        return SourceError(f"the clients: {errors[-1] if errors else 'the process ended at once'}")


def busy_and_idle() -> tuple[float, float]:
    """Return the seconds this host's processors were busy, and idle or waiting for disks."""
    from swathe.trace.host_monitor import processor_times

    times = processor_times()
    idle = times["IDLE"] + times["IOWAIT"]
    return sum(times.values()) - idle, idle


def run_here(order: dict[str, Any]) -> tuple[float, HostResult]:
    """Run clients in a process of their own; return when the first joined, and the result."""
    with Clients(order) as tester:
        start = SteadyClock().now() + LEAD_S
        tester.go(start)
        return start, tester.records()


def as_array(content: bytes) -> NDArray[Any]:
    """Parse records.

    Raises:
        SourceError: If they are invalid.
    """
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise SourceError(f"expected records, found none: {error}") from error
    if array.dtype != RECORD:
        raise SourceError(f"expected records, found {array.dtype}")
    return np.asarray(array)
