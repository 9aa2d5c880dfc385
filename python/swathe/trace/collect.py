"""The collector: receives the events of many senders and writes them to one file.

A sender opens a TCP connection and says `SWATHE-TRACE 1 HOST PID TOKEN`, with the token `-` if it
has none. The answer is `OK`, or `NO` and the reason. Then it sends events, one per line. From time
to time the collector sends `CLOCK` and its time, ns since 1970; the sender answers with the point
CLOCK_REPLY.

Rules: lines are written whole and in the order of each sender, or they are counted as damaged. The
memory for unwritten lines is bounded: if the disk is slow, reading from all senders pauses.
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

from swathe import _swathe
from swathe.core.errors import FormatError, SettingsError
from swathe.core.host import in_url, is_loopback, this_host
from swathe.trace.clocks import SenderClock, read_reply
from swathe.trace.rotating_writer import RotatingWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swathe.trace.record import Value

LONGEST_LINE = 64 << 10
"""Bytes, with the line end; also the buffer size per sender."""
MOST_SENDERS = 1024
MOST_SILENT = 256
"""Connections per address that have not identified themselves; above this the oldest is closed."""
GREETING_S = 5.0
EAGER_ASKS, EAGER_S, ASK_S = 8, 1.0, 10.0
"""Number and interval of the first questions about the clock, and the interval afterwards."""
MOST_UNSENT_BYTES = 4096
QUIET_S, LAST_S, PATIENCE_S = 0.1, 2.0, 5.0
"""At the end: pause without data after which reading stops, longest time of reading, and longest
wait for the disk."""
MOST_WARNINGS = 20

GREETING = re.compile(rb"SWATHE-TRACE 1 ([!-~]{1,255}) (\d{1,10}) ([!-~]{1,1000})")
NO_TEXT = bytes(code for code in (*range(32), 127) if code != 10)
FAULTS = {
    "long": f"a line of more than {LONGEST_LINE} bytes",
    "damaged": "a line that is not an event",
    "half": "half a line at the end",
}


@dataclass(frozen=True)
class CollectorCounts:
    """Counts of a collector.

    Attributes:
        senders: accepted senders.
        refused: refused senders.
        silent: connections closed because they did not identify themselves.
        vanished: senders whose connection broke.
        events: accepted lines.
        damaged: lines that are not text or not an event.
        long: lines longer than LONGEST_LINE.
        half: lines without an end.
        lost: accepted lines that could not be written.
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
        """Return the counts that are not zero."""
        always = f"{self.events} events of {self.senders} senders"
        others = {name: count for name, count in asdict(self).items() if count}
        parts = [f"{count} {name}" for name, count in others.items() if name not in SOUND]
        return ", ".join([always, *parts])


SOUND = ("senders", "events")


class Collector:
    """Collects events in a thread of its own, from its creation until it is stopped.

    >>> with Collector(Path("run.ulm")) as collector:
    ...     collector.address

    Args:
        output: file to append to, or a FIFO; `None`: standard output.
        host: address to listen on.
        port: port to listen on; 0: any free port.
        token: token that senders must present; required beyond loopback.
        rotate_bytes: file size above which the file is renamed `NAME.1`, and that `NAME.2`.
        keep: number of rotated files to keep.
        warn: called with each warning, from other threads.
        now_ns: the clock, ns since 1970.

    Raises:
        SettingsError: If it cannot listen on the address, or a token is missing.
        OutputError: If the output cannot be written.
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
            raise SettingsError(
                f"{host}: expected a token beyond loopback, found none; give --token-file "
                "(token= in Python)"
            )
        self.token, self.now_ns = token, now_ns
        self.count: Counter[str] = Counter()
        self.senders: set[Sender] = set()
        self.silent: dict[Sender, None] = {}
        self.is_full = False
        self.heard_s = 0.0
        self._warn, self._warnings = warn, 0
        self._listener = _listen(host, port)
        self._loop = asyncio.new_event_loop()
        self.address = f"tcp://{in_url(host)}:{self._listener.getsockname()[1]}"
        try:
            self.writer = RotatingWriter(
                output, rotate_bytes=rotate_bytes, keep=keep, room=self._room, warn=self.warn
            )
        except BaseException:
            self._listener.close()
            self._loop.close()
            raise
        if not is_loopback(host):
            self._warn(
                f"{self.address}: events and the token are sent in plain text; anyone on the way "
                "can read and change them; beyond a trusted network use loopback and ssh -L"
            )
        self._counts: CollectorCounts | None = None
        self._ending = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)
        self._thread.start()

    def stop(self) -> CollectorCounts:
        """Receive what has been sent, write it, and end; return the counts."""
        if self._counts is None:
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join()
            self._loop.close()
            self.count["lost"] = self.writer.close(PATIENCE_S)
            self._counts = CollectorCounts(**self.count)
        return self._counts

    def __enter__(self) -> Collector:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def warn(self, text: str) -> None:
        """Report a warning, but only a limited number."""
        self._warnings += 1
        if self._warnings <= MOST_WARNINGS:
            self._warn(text)
        elif self._warnings == MOST_WARNINGS + 1:
            self._warn("further warnings are only counted")

    def put(self, lines: bytes) -> None:
        """Write lines; if that fills the queue, pause reading."""
        if lines and not self.writer.put(lines) and not self.is_full:
            self.is_full = True
            for sender in self.senders:
                sender.pause()

    def point(self, name: str, **fields: Value) -> None:
        """Write an event of the collector itself."""
        self.put(_swathe.ulm_line(self.now_ns(), this_host(), name, fields).encode() + b"\n")

    def has_room(self) -> bool:
        """Check whether another sender may connect; the longest silent one is closed for it."""
        if len(self.senders) < MOST_SENDERS:
            return True
        return self._leave(next(iter(self.silent), None))

    def expect(self, sender: Sender) -> None:
        """Wait for a sender's greeting; close the oldest of its address if too many are silent."""
        self.silent[sender] = None
        alike = [each for each in self.silent if each.place == sender.place]
        if len(alike) > MOST_SILENT:
            self._leave(alike[0])

    def stop_waiting(self, sender: Sender) -> None:
        """Note that a sender has identified itself."""
        self.silent.pop(sender, None)

    def _leave(self, sender: Sender | None) -> bool:
        if sender is None:
            return False
        sender.hang_up()
        self.stop_waiting(sender)
        return True

    def _room(self) -> None:
        """Resume reading; called by the thread that writes."""
        try:
            self._loop.call_soon_threadsafe(self._resume)
        except RuntimeError:
            return  # the loop is closed: no senders are left

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
        self.clock = SenderClock()
        self.asks = 0
        self.buffer = bytearray(LONGEST_LINE)
        self.fill = 0
        self.skipping = False
        self.faults: Counter[str] = Counter()
        self.timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait a limited time for the greeting."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.place, port = transport.get_extra_info("peername")[:2]
        self.name = f"{self.place}:{port}"
        collector = self.collector
        if not collector.has_room():
            self._refuse(f"expected at most {MOST_SENDERS} senders, found more")
            return
        collector.senders.add(self)
        collector.expect(self)
        if collector.is_full:
            self.pause()
        self.timer = asyncio.get_running_loop().call_later(GREETING_S, self.hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the unfinished line."""
        if self.timer is not None:
            self.timer.cancel()
        is_accepted = self in self.collector.senders
        self.collector.senders.discard(self)
        self.collector.stop_waiting(self)
        if not is_accepted:
            return
        if self.asks and (self.fill or self.skipping):
            self._fault("half")
        if exc is not None:
            self.collector.count["vanished"] += 1
            self.collector.warn(f"{self.name}: the connection broke: {exc}")
        if self.faults:
            counts = {kind.upper(): count for kind, count in self.faults.items()}
            self.collector.point("DAMAGED", SENDER=self.name, **counts)

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Return the buffer for the next bytes."""
        return memoryview(self.buffer)[self.fill :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take the complete lines."""
        now_ns = self.collector.now_ns()
        self.collector.heard_s = time.monotonic()
        end = self.buffer.rfind(b"\n", self.fill, self.fill + nbytes) + 1
        self.fill += nbytes
        if not end:
            if self.fill == len(self.buffer):
                self._too_long()
            return
        lines = bytes(memoryview(self.buffer)[:end])
        self.buffer[: self.fill - end] = self.buffer[end : self.fill]
        self.fill -= end
        if self.skipping:
            self.skipping = False
            lines = lines[lines.index(b"\n") + 1 :]
        if not self.asks:
            greeting, _, lines = lines.partition(b"\n")
            self._greet(greeting)
        if self.asks and lines:
            self._take(lines, now_ns)

    def pause(self) -> None:
        """Pause reading."""
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        """Resume reading."""
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def close(self) -> None:
        """Close the connection."""
        self.transport.abort()

    def _too_long(self) -> None:
        if not self.asks:
            self._refuse("expected SWATHE-TRACE 1 HOST PID TOKEN")
        elif not self.skipping:
            self._fault("long")
        self.skipping, self.fill = True, 0

    def _greet(self, greeting: bytes) -> None:
        match = GREETING.fullmatch(greeting)
        token = self.collector.token
        if match is None:
            self._refuse("expected SWATHE-TRACE 1 HOST PID TOKEN")
        elif token is not None and not hmac.compare_digest(match[3], token.encode()):
            self._refuse("the token does not match")
        else:
            assert self.timer is not None
            self.timer.cancel()
            self.collector.stop_waiting(self)
            self.collector.count["senders"] += 1
            self.name = f"{match[1].decode()}:{match[2].decode()}"
            self.transport.write(b"OK\n")
            self._ask()

    def _refuse(self, reason: str) -> None:
        self.collector.senders.discard(self)
        self.collector.count["refused"] += 1
        self.collector.warn(f"{self.name}: refused: {reason}")
        self.transport.write(b"NO %b\n" % reason.encode())
        self.transport.close()

    def hang_up(self) -> None:
        """Close a connection that did not identify itself."""
        self.collector.senders.discard(self)
        self.collector.count["silent"] += 1
        self.collector.warn(f"{self.name}: did not identify itself within {GREETING_S:g} s")
        self.transport.abort()

    def _ask(self) -> None:
        """Ask for the sender's clock, and again later."""
        # A sender that does not read is not asked, and not while its own reading is paused.
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
            sound_lines = [each for each in each_line if self._is_event(each, now_ns)]
            lines = b"".join(sound_lines)
            events = lines.count(b"\n")
        self.collector.count["events"] += events
        self.collector.put(lines)

    def _is_event(self, each: bytes, now_ns: int) -> bool:
        """Check whether a line is to be written; answers about clocks are not."""
        if not (each.startswith(b"DATE=") and _is_text(each)):
            self._fault("damaged")
            return False
        if b"CLOCK_REPLY" not in each:
            return True
        try:
            reply = read_reply(each[:-1])
        except FormatError:
            self._fault("damaged")
            return False
        if reply is None:
            return True
        estimate = self.clock.add_reply(reply, now_ns)
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
        raise SettingsError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener
