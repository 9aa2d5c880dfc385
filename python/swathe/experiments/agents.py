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
import socket
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.environment import in_url, is_loopback, this_host
from swathe.errors import SettingsError, SourceError
from swathe.experiments.places import child, environment
from swathe.experiments.ramping import RECORD, Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

VARIABLE = "SWATHE_BENCH_TOKEN"
PINGS = 20
LONGEST_LINE = 256 << 20
FIRST_LINE = 10_000
JOIN_S = 120.0
PATIENCE_S = 120.0
"""Beyond its own length, that a run may take on another host."""


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

    def start(self, order: dict[str, Any]) -> None:
        """Order its clients, at times of our clock."""
        ahead = self.offset.seconds
        schedule = dict(order["schedule"])
        schedule["start"] += ahead
        schedule["end"] += ahead
        self.line.say(ask="run", order={**order, "schedule": schedule})

    def records(self) -> tuple[NDArray[Any], Offset]:
        """Wait for its records; gives them at its own times, and its clock minus ours."""
        told = self.line.hear()
        found = np.load(io.BytesIO(base64.b64decode(told["records"])), allow_pickle=False)
        if found.dtype != RECORD:
            raise SourceError(f"{self.host}: sent no records")
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
    clock, joined = Clock(), []
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
                connection.settimeout(JOIN_S)
                line = Line(connection)
                try:
                    said = line.hear(FIRST_LINE)
                    if not hmac.compare_digest(str(said.get("token", "")), token):
                        line.say(error="another token is needed")
                        raise SourceError("a host without the token")
                    joined.append(Joined(line, str(said.get("host", "?"))[:255], clock))
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
                line.say(records=base64.b64encode(run_here(told["order"])).decode())
            except SourceError as error:
                line.say(error=str(error))
                raise


def run_here(order: dict[str, Any]) -> bytes:
    """Run clients in a process of their own; gives their records as a file of NumPy."""
    with tempfile.TemporaryDirectory(prefix="swathe-ramp-") as folder:
        path = Path(folder) / "records.npy"
        schedule = order["schedule"]
        limit = schedule["end"] - schedule["start"] + PATIENCE_S
        wanted = {**order, "records": str(path)}
        child("swathe.experiments.testers", wanted, environment(Path(folder) / "index"), limit)
        return path.read_bytes()
