"""Clients on several hosts: one host tells the others what to ask, and by how much clocks differ.

Over TCP, a line of JSON at a time. The host that joins says a token, its name; is asked for its
clock some times, before it works and after; gets its share of the clients; sends their records. The
exchange that took the least bounds how wrong the offset can be: half its round trip.
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
from swathe.experiments.clients.ramp_schedule import RECORD, Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

VARIABLE = "SWATHE_BENCH_TOKEN"
PINGS = 20
LONGEST_LINE = 256 << 20
FIRST_LINE = 10_000
JOIN_S = 120.0
GREETING_S = 5.0
"""A host that joins may take so long to answer, until it has joined."""
LEAD_S = 0.3
"""From when all are ready until the first client joins."""
PATIENCE_S = 120.0
"""Beyond its own length, that a run may take on another host."""


@dataclass(frozen=True)
class HostResult:
    """What came of the clients of a host.

    Attributes:
        records: of all, as a file of NumPy.
        cpu_percent: of its processors, from when all clients were there.
        failure: why a request failed, one of those that did.
    """

    records: bytes
    cpu_percent: float
    failure: str


@dataclass(frozen=True)
class Offset:
    """A clock minus ours, seconds, and by how much that may be wrong."""

    seconds: float
    spread_s: float


class Line:
    """A connection that speaks in lines."""

    def __init__(self, connection: socket.socket) -> None:
        """Take a connection."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.file = connection.makefile("rb")

    def say(self, **told: Any) -> None:
        """Send a line."""
        self.connection.sendall(json.dumps(told).encode() + b"\n")

    def hear(self, longest: int = LONGEST_LINE) -> dict[str, Any]:
        """Wait for a line.

        Raises:
            SourceError: where the other end is gone, or says what is no line.
        """
        try:
            text = self.file.readline(longest)
        except OSError as error:
            raise SourceError(f"the other host: {error}") from error
        if not text.endswith(b"\n"):
            raise SourceError("the other host: the connection ended")
        try:
            told = json.loads(text)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise SourceError("the other host: what it says is no line of ours")
        if "error" in told:
            raise SourceError(f"the other host: {told['error']}")
        return told


def estimate(exchanges: Sequence[tuple[float, float, float]]) -> Offset:
    """Give by how much another clock is ahead, from exchanges: sent, its clock, received.

    Of the one that took the least, the other clock was read between sent and received: in the
    middle, or up to half of it off.
    """
    sent, clock, received = min(exchanges, key=lambda each: each[2] - each[0])
    return Offset(clock - (sent + received) / 2, (received - sent) / 2)


def between(before: Offset, after: Offset) -> Offset:
    """Give one offset of those before and after a run: clocks drift meanwhile."""
    middle = (before.seconds + after.seconds) / 2
    apart = abs(before.seconds - after.seconds) / 2
    return Offset(middle, max(before.spread_s, after.spread_s) + apart)


class Joined:
    """A host that joined."""

    def __init__(self, line: Line, host: str, clock: Clock) -> None:
        self.line, self.host, self.clock = line, host, clock
        self.length_s = 0.0
        self.cpu_percent, self.failure = 0.0, ""
        self.offset = self.ping()

    def ping(self) -> Offset:
        """Ask for its clock."""
        exchanges = []
        for _ in range(PINGS):
            sent = self.clock.now()
            self.line.say(ask="clock")
            told = self.line.hear(FIRST_LINE)
            exchanges.append((sent, float(told["clock"]), self.clock.now()))
        return estimate(exchanges)

    def prepare(self, order: dict[str, Any]) -> None:
        """Order its clients, which use the stores of our catalogue; they wait."""
        self.length_s = float(order["length_s"])
        self.line.say(ask="prepare", order=with_storages(order))

    def ready(self) -> None:
        """Wait until they do."""
        self.line.hear(FIRST_LINE)

    def go(self, start: float) -> None:
        """Let the first join at a time of our clock."""
        self.line.say(ask="go", start=start + self.offset.seconds)

    def records(self) -> tuple[NDArray[Any], Offset]:
        """Wait for its records; gives them at its own times, and its clock minus ours."""
        # It waits for its clients for their run and PATIENCE_S, and may then say what went wrong.
        self.line.connection.settimeout(self.length_s + PATIENCE_S + JOIN_S)
        told = self.line.hear()
        self.line.connection.settimeout(JOIN_S)
        found = as_array(base64.b64decode(told["records"]))
        self.cpu_percent = float(told.get("cpu_percent", 0.0))
        self.failure = str(told.get("failure", ""))[:1000]
        self.offset = between(self.offset, self.ping())
        return found, self.offset

    def end(self) -> None:
        """Let it go."""
        self.line.say(ask="end")


def corrected(records: NDArray[Any], offset_s: float) -> NDArray[Any]:
    """Give records at times of our clock."""
    found = records.copy()
    for name in ("due", "sent", "done"):
        found[name] -= offset_s
    return found


@contextmanager
def gathered(address: str, count: int, tell: Callable[[str], None]) -> Iterator[list[Joined]]:
    """Wait until so many hosts have joined at HOST:PORT.

    Raises:
        SettingsError: where the address makes no sense, or a token is needed and not there.
        SourceError: where they do not come.
    """
    host, port = read_address(address)
    token = os.environ.get(VARIABLE, "")
    if not token and not is_loopback(host):
        raise SettingsError(f"ramp.listen: {host} can be reached by others: set ${VARIABLE}")
    clock, joined = Clock(), list[Joined]()
    try:
        server = socket.create_server((host, port))
    except OSError as error:
        raise SettingsError(f"ramp.listen: {address}: {error.strerror or error}") from error
    with server:
        server.settimeout(JOIN_S)
        where = f"{in_url(host)}:{server.getsockname()[1]}"
        tell(f"waiting for {count} hosts: swathe bench join {where}")
        try:
            while len(joined) < count:
                connection, _ = server.accept()
                # Meanwhile nobody else is greeted; who joins speaks at once.
                connection.settimeout(GREETING_S)
                line = Line(connection)
                try:
                    said = line.hear(FIRST_LINE)
                    if not hmac.compare_digest(_bytes(said.get("token", "")), _bytes(token)):
                        line.say(error="another token is needed")
                        raise SourceError("a host without the token")
                    name = _free(str(said.get("host", "?"))[:255], joined)
                    joined.append(Joined(line, name, clock))
                    connection.settimeout(JOIN_S)
                except (SourceError, OSError, KeyError, TypeError, ValueError) as error:
                    tell(f"turned away: {error}")
                    connection.close()
        except TimeoutError:
            raise SourceError(
                f"ramp.hosts: {len(joined)} of {count} joined in {JOIN_S:.0f} s"
            ) from None
    try:
        yield joined
    finally:
        for each in joined:
            each.line.connection.close()


def _bytes(token: Any) -> bytes:
    """Give a token as `compare_digest` takes any: as bytes, whatever is in it."""
    return str(token).encode("utf-8", "surrogatepass")


def _free(name: str, joined: list[Joined]) -> str:
    """Give a host its name, or that with a number: containers, or the same machine twice."""
    taken = {each.host for each in joined}
    numbered = (f"{name}-{number}" for number in range(len(joined) + 1, 2 * len(joined) + 2))
    return next(each for each in (name, *numbered) if each not in taken)


def read_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT.

    Raises:
        SettingsError: where it is none.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"an address is HOST:PORT, not {text[:200]!r}")
    return host.strip("[]"), int(port)


def join(address: str, tell: Callable[[str], None]) -> None:
    """Lend this host to a ramp that another one leads.

    Raises:
        SettingsError: where the address makes no sense.
        SourceError: where nobody is there, or the connection ends.
    """
    host, port = read_address(address)
    try:
        connection = socket.create_connection((host, port), timeout=JOIN_S)
    except OSError as error:
        raise SourceError(f"{address}: {error}") from error
    clock = Clock()
    with connection:
        # The others may take long to join.
        connection.settimeout(None)
        line = Line(connection)
        line.say(token=os.environ.get(VARIABLE, ""), host=this_host())
        while (told := line.hear())["ask"] != "end":
            if told["ask"] == "clock":
                line.say(clock=clock.now())
                continue
            tell(f"{len(told['order']['clients'])} clients")
            try:
                with Clients(told["order"]) as tester:
                    line.say(ready=True)
                    tester.go(float(line.hear(FIRST_LINE)["start"]))
                    came = tester.records()
                    told = {"cpu_percent": came.cpu_percent, "failure": came.failure}
                    line.say(records=base64.b64encode(came.records).decode(), **told)
            except SourceError as error:
                line.say(error=str(error))
                raise


class Clients:
    """The process of the clients of this host; entered, it is ready."""

    def __init__(self, order: dict[str, Any]) -> None:
        """Take what is ordered."""
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
                raise self._failed()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            # Clients are processes of its own: they would go on to load the store without it.
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
        """Wait for what all did.

        Raises:
            SourceError: where the process fails or does not end.
        """
        all_s, length_s = self.order.get("all_s", 0.0), self.order["length_s"]
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=max(self.start - Clock().now(), 0) + all_s)
        begun = busy_and_idle()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=length_s - all_s)
        busy, idle = (now - then for now, then in zip(busy_and_idle(), begun, strict=True))
        try:
            code = self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            limit = length_s + PATIENCE_S
            raise SourceError(f"the clients did not end within {limit:.0f} s") from None
        if code:
            raise self._failed()
        said = (self.path / "errors").read_text(errors="replace").splitlines()
        failures = [line.removeprefix(FAILURE) for line in said if line.startswith(FAILURE)]
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
            raise self._failed() from None

    def _failed(self) -> SourceError:
        self.process.wait()
        said = (self.path / "errors").read_text().strip().splitlines()
        return SourceError(f"the clients: {said[-1] if said else 'ended at once'}")


def busy_and_idle() -> tuple[float, float]:
    """How long the processors of this host were busy, and idle or waiting for disks, together."""
    from swathe.trace.host_monitor import processor_times

    times = processor_times()
    idle = times["IDLE"] + times["IOWAIT"]
    return sum(times.values()) - idle, idle


def run_here(order: dict[str, Any]) -> tuple[float, HostResult]:
    """Run clients in a process of their own; gives when the first joined, and what all did."""
    with Clients(order) as tester:
        start = Clock().now() + LEAD_S
        tester.go(start)
        return start, tester.records()


def as_array(content: bytes) -> NDArray[Any]:
    """Read records.

    Raises:
        SourceError: where they are none.
    """
    try:
        found = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise SourceError(f"no records: {error}") from error
    if found.dtype != RECORD:
        raise SourceError(f"no records: found {found.dtype}")
    return np.asarray(found)
