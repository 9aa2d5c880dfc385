"""The collector: takes the events of many senders and writes them to one file.

A sender opens a TCP connection and says `SWATHE-TRACE 1 HOST PID TOKEN`, the token `-` where it has
none. It is told `OK`, or `NO` and why. Then it sends events, a line each. From time to time it is
asked `CLOCK` and the collector's time, ns since 1970, and answers with the point CLOCK_REPLY.

Rules: lines are written whole, in the order of each sender, or they are counted as damaged. What
is not written yet is bounded: where the disk is slow nothing more is read from any sender.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import socket
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from swathe.core.errors import SettingsError
from swathe.core.host import in_url, is_loopback, this_host
from swathe.trace.clocks import Clock, read_reply
from swathe.trace.rotating_writer import Outlet
from swathe.trace.ulm_lines import line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swathe.trace.ulm_lines import Value

LONGEST_LINE = 64 << 10
"""Bytes, with its end; also all that is kept of a sender."""
MOST_SENDERS = 1024
MOST_SILENT = 256
"""Of one address, that have not said who they are; of more the oldest is closed."""
GREETING_S = 5.0
EAGER_ASKS, EAGER_S, ASK_S = 8, 1.0, 10.0
"""Clocks are asked so often at first, and then at longer intervals."""
MOST_UNSENT_BYTES = 4096
QUIET_S, LAST_S, PATIENCE_S = 0.1, 2.0, 5.0
"""At the end: read until nothing came for a while, but no longer; and wait so long for the disk."""
MOST_WARNINGS = 20

GREETING = re.compile(rb"SWATHE-TRACE 1 ([!-~]{1,255}) (\d{1,10}) ([!-~]{1,1000})")
NO_TEXT = bytes(code for code in (*range(32), 127) if code != 10)
FAULTS = {
    "long": f"a line of more than {LONGEST_LINE} bytes",
    "damaged": "a line that is no event",
    "half": "half a line at the end",
}


@dataclass(frozen=True)
class Counts:
    """What a collector did.

    Attributes:
        senders: that were let in.
        refused: that were not.
        silent: that were closed because they did not say who they are.
        vanished: whose connection broke.
        events: lines taken.
        damaged: lines that are no text or no event.
        long: lines that were longer than LONGEST_LINE.
        half: lines without an end.
        lost: lines taken that could not be written.
    """

    senders: int = 0
    refused: int = 0
    silent: int = 0
    vanished: int = 0
    events: int = 0
    damaged: int = 0
    long: int = 0
    half: int = 0
    lost: int = 0

    def __str__(self) -> str:
        """Tell those that happened."""
        always = f"{self.events} events of {self.senders} senders"
        others = {name: count for name, count in asdict(self).items() if count}
        told = [f"{count} {name}" for name, count in others.items() if name not in SOUND]
        return ", ".join([always, *told])


SOUND = ("senders", "events")


class Collector:
    """Collects events in a thread of its own, from when it is made until it is stopped.

    >>> with Collector(Path("run.ulm")) as collector:
    ...     collector.address

    Args:
        output: a file, appended to, or a FIFO; `None`: standard output.
        host: address to listen at.
        port: there; 0: a free one.
        token: that senders must have; without one nobody beyond this machine is listened to.
        rotate_bytes: a file that would grow beyond becomes `NAME.1`, and that `NAME.2`.
        keep: so many of these.
        warn: called with what is wrong, by other threads.
        now_ns: the clock, ns since 1970.

    Raises:
        SettingsError: where it cannot listen there, or a token is missing.
        OutputError: where the output cannot be written.
    """

    def __init__(
        self,
        output: Path | None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        rotate_bytes: int | None = None,
        keep: int = 5,
        warn: Callable[[str], None] = lambda _text: None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        if token is None and not is_loopback(host):
            raise SettingsError(f"{host}: beyond this machine a token is needed, see --token-file")
        self.token, self.now_ns = token, now_ns
        self.count: Counter[str] = Counter()
        self.senders: set[Sender] = set()
        self.silent: dict[Sender, None] = {}
        self.is_full = False
        self.heard_s = 0.0
        self._warn, self._warned = warn, 0
        self._listener = _listen(host, port)
        self._loop = asyncio.new_event_loop()
        self.address = f"tcp://{in_url(host)}:{self._listener.getsockname()[1]}"
        try:
            self.outlet = Outlet(
                output, rotate_bytes=rotate_bytes, keep=keep, room=self._room, warn=self.warn
            )
        except BaseException:
            self._listener.close()
            self._loop.close()
            raise
        if not is_loopback(host):
            self._warn(
                f"{self.address}: events and the token come in plain text, for anyone on the way "
                "to read and change; beyond a network you trust listen on loopback and use ssh -L"
            )
        self._counts: Counts | None = None
        self._ending = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)
        self._thread.start()

    def stop(self) -> Counts:
        """Take what has been sent, write it, and end; tells what was done."""
        if self._counts is None:
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join()
            self._loop.close()
            self.count["lost"] = self.outlet.close(PATIENCE_S)
            self._counts = Counts(**self.count)
        return self._counts

    def __enter__(self) -> Collector:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def warn(self, text: str) -> None:
        """Tell what is wrong, but not without end."""
        self._warned += 1
        if self._warned <= MOST_WARNINGS:
            self._warn(text)
        elif self._warned == MOST_WARNINGS + 1:
            self._warn("more of this is only counted")

    def put(self, lines: bytes) -> None:
        """Write lines; where that fills the queue, stop reading."""
        if lines and not self.outlet.put(lines) and not self.is_full:
            self.is_full = True
            for sender in self.senders:
                sender.pause()

    def point(self, name: str, **fields: Value) -> None:
        """Write an event of its own."""
        self.put(line(self.now_ns(), this_host(), name, fields).encode() + b"\n")

    def has_room(self) -> bool:
        """Tell whether one more may come; the one that is silent for longest goes for it."""
        if len(self.senders) < MOST_SENDERS:
            return True
        return self._leave(next(iter(self.silent), None))

    def expect(self, sender: Sender) -> None:
        """Wait for who a sender is; close the oldest of its address where too many say nothing."""
        self.silent[sender] = None
        alike = [each for each in self.silent if each.place == sender.place]
        if len(alike) > MOST_SILENT:
            self._leave(alike[0])

    def heard(self, sender: Sender) -> None:
        """Wait no more for who a sender is."""
        self.silent.pop(sender, None)

    def _leave(self, sender: Sender | None) -> bool:
        if sender is None:
            return False
        sender.hang_up()
        self.heard(sender)
        return True

    def _room(self) -> None:
        """Go on reading; called by the thread that writes."""
        try:
            self._loop.call_soon_threadsafe(self._resume)
        except RuntimeError:
            return  # the loop is closed, there is nobody to read from

    def _resume(self) -> None:
        self.is_full = False
        for sender in self.senders:
            sender.resume()

    def _run(self) -> None:
        self._loop.run_until_complete(self._collect())

    async def _collect(self) -> None:
        server = await self._loop.create_server(
            lambda: Sender(self), sock=self._listener, backlog=MOST_SENDERS
        )
        await self._ending.wait()
        self.heard_s = time.monotonic()
        until_s = self.heard_s + LAST_S
        while time.monotonic() < until_s:
            if not self.is_full and time.monotonic() > self.heard_s + QUIET_S:
                break
            await asyncio.sleep(QUIET_S / 5)
        server.close()
        for sender in list(self.senders):
            sender.close()
        while self.senders:
            await asyncio.sleep(0)


class Sender(asyncio.BufferedProtocol):
    """A connection: greeting, lines, clock."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.name = self.place = ""
        self.clock = Clock()
        self.asks = 0
        self.buffer = bytearray(LONGEST_LINE)
        self.filled = 0
        self.skipping = False
        self.faults: Counter[str] = Counter()
        self.timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for who it is, but not for long."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.place, port = transport.get_extra_info("peername")[:2]
        self.name = f"{self.place}:{port}"
        collector = self.collector
        if not collector.has_room():
            self._refuse(f"there are {MOST_SENDERS} senders already")
            return
        collector.senders.add(self)
        collector.expect(self)
        if collector.is_full:
            self.pause()
        self.timer = asyncio.get_running_loop().call_later(GREETING_S, self.hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count what is left."""
        if self.timer is not None:
            self.timer.cancel()
        known = self in self.collector.senders
        self.collector.senders.discard(self)
        self.collector.heard(self)
        if not known:
            return
        if self.asks and (self.filled or self.skipping):
            self._fault("half")
        if exc is not None:
            self.collector.count["vanished"] += 1
            self.collector.warn(f"{self.name}: its connection broke: {exc}")
        if self.faults:
            told = {kind.upper(): count for kind, count in self.faults.items()}
            self.collector.point("DAMAGED", SENDER=self.name, **told)

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Give where the next bytes are to go."""
        return memoryview(self.buffer)[self.filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take the lines that are complete."""
        now_ns = self.collector.now_ns()
        self.collector.heard_s = time.monotonic()
        end = self.buffer.rfind(b"\n", self.filled, self.filled + nbytes) + 1
        self.filled += nbytes
        if not end:
            if self.filled == len(self.buffer):
                self._too_long()
            return
        lines = bytes(memoryview(self.buffer)[:end])
        self.buffer[: self.filled - end] = self.buffer[end : self.filled]
        self.filled -= end
        if self.skipping:
            self.skipping = False
            lines = lines[lines.index(b"\n") + 1 :]
        if not self.asks:
            greeting, _, lines = lines.partition(b"\n")
            self._greet(greeting)
        if self.asks and lines:
            self._take(lines, now_ns)

    def pause(self) -> None:
        """Read nothing more for now."""
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        """Go on."""
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def close(self) -> None:
        """Hang up."""
        self.transport.abort()

    def _too_long(self) -> None:
        if not self.asks:
            self._refuse("expected SWATHE-TRACE 1 HOST PID TOKEN")
        elif not self.skipping:
            self._fault("long")
        self.skipping, self.filled = True, 0

    def _greet(self, greeting: bytes) -> None:
        found = GREETING.fullmatch(greeting)
        wanted = self.collector.token
        if found is None:
            self._refuse("expected SWATHE-TRACE 1 HOST PID TOKEN")
        elif wanted is not None and not hmac.compare_digest(found[3], wanted.encode()):
            self._refuse("the token is another one")
        else:
            assert self.timer is not None
            self.timer.cancel()
            self.collector.heard(self)
            self.collector.count["senders"] += 1
            self.name = f"{found[1].decode()}:{found[2].decode()}"
            self.transport.write(b"OK\n")
            self._ask()

    def _refuse(self, reason: str) -> None:
        self.collector.senders.discard(self)
        self.collector.count["refused"] += 1
        self.collector.warn(f"{self.name}: refused: {reason}")
        self.transport.write(b"NO %b\n" % reason.encode())
        self.transport.close()

    def hang_up(self) -> None:
        """Close a connection that did not say who it is."""
        self.collector.senders.discard(self)
        self.collector.count["silent"] += 1
        self.collector.warn(f"{self.name}: did not say who it is within {GREETING_S:g} s")
        self.transport.abort()

    def _ask(self) -> None:
        """Ask what time it is there, and again later."""
        # Who does not listen is not asked, nor who is not listened to.
        idle = self.transport.get_write_buffer_size() > MOST_UNSENT_BYTES
        if not (idle or self.collector.is_full):
            now_ns = self.collector.now_ns()
            self.clock.ask(now_ns)
            self.transport.write(b"CLOCK %d\n" % now_ns)
        self.asks += 1
        pause_s = EAGER_S if self.asks < EAGER_ASKS else ASK_S
        self.timer = asyncio.get_running_loop().call_later(pause_s, self._ask)

    def _take(self, lines: bytes, now_ns: int) -> None:
        events = lines.count(b"\n")
        starts = lines.startswith(b"DATE=") + lines.count(b"\nDATE=")
        if starts != events or b"CLOCK_REPLY" in lines or not _is_text(lines):
            each_line = [each + b"\n" for each in lines.split(b"\n")[:-1]]
            kept = [each for each in each_line if self._is_event(each, now_ns)]
            lines = b"".join(kept)
            events = lines.count(b"\n")
        self.collector.count["events"] += events
        self.collector.put(lines)

    def _is_event(self, each: bytes, now_ns: int) -> bool:
        """Tell whether a line is to be written; answers about clocks are not."""
        if not (each.startswith(b"DATE=") and _is_text(each)):
            self._fault("damaged")
            return False
        if b"CLOCK_REPLY" not in each:
            return True
        reply = read_reply(each[:-1])
        if reply is None:
            if b" NL.EVNT=CLOCK_REPLY" not in each:
                return True
            self._fault("damaged")
            return False
        estimate = self.clock.answered(reply, now_ns)
        if estimate is not None:
            self.collector.point(
                "CLOCK",
                SENDER=self.name,
                OFFSET_S=estimate.offset_s,
                SPREAD_S=estimate.spread_s,
            )
        return False

    def _fault(self, kind: str) -> None:
        self.collector.count[kind] += 1
        if not self.faults[kind]:
            self.collector.warn(f"{self.name}: sent {FAULTS[kind]}")
        self.faults[kind] += 1


def _is_text(lines: bytes) -> bool:
    if len(lines.translate(None, NO_TEXT)) != len(lines):
        return False
    try:
        lines.decode()
    except UnicodeDecodeError:
        return False
    return True


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, number, _, at = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, number)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(at)
            listener.listen(MOST_SENDERS)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise SettingsError(f"cannot listen at {host}:{port}: {error.strerror}") from error
    return listener
