"""The collector: many senders, slow disks, bad senders, clocks."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe.core.errors import FormatError, OutputError, SettingsError
from swathe.core.host import this_host
from swathe.trace import CodedColumn, collect, point, read, rotating_writer, start, stop
from swathe.trace.analysis.align_clocks import align_times
from swathe.trace.clocks import Reply, SenderClock, read_reply
from swathe.trace.collect import Collector, Sender
from tests.support.fits_frames import SWATHE, Runner
from tests.support.portals import wait_until

TOKEN = "t0ken-hush-hush"
START = b"DATE=20261121013038.055784 HOST=node7 PROG=swathe LVL=Usage NL.EVNT="


def event(sender: int, number: int, size: int = 0) -> bytes:
    return START + b"CUT_START PID=%d TARGET=t%d FILL=%b\n" % (sender, number, b"x" * size)


class Fake:
    """A sender of whatever a test likes."""

    def __init__(self, address: str, greeting: str = "SWATHE-TRACE 1 node7 4711 -\n") -> None:
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=120)
        self.answers = self.socket.makefile("rb")
        self.send(greeting.encode())

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> bytes:
        return self.answers.readline()

    def reset(self) -> None:
        """Vanish without a word."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.answers.close()
        self.socket.close()

    def close(self) -> None:
        """Say that nothing more comes, hear out the other, and go."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
            while self.answers.read(1000):
                pass
        self.answers.close()
        self.socket.close()


@contextmanager
def fake(address: str, greeting: str = "SWATHE-TRACE 1 node7 4711 -\n") -> Iterator[Fake]:
    made = Fake(address, greeting)
    try:
        yield made
    finally:
        made.close()


def events_in(*paths: Path) -> list[bytes]:
    """Lines, but for those of the collector itself."""
    lines = [line for path in paths for line in path.read_bytes().splitlines(keepends=True)]
    return [line for line in lines if b"NL.EVNT=CLOCK " not in line]


def opened(folder: Path) -> int:
    """How many files of a folder this process has open; others may be closed at any time."""
    count = 0
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            count += link.readlink().is_relative_to(folder)
    return count


def fields(line: bytes) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in line.decode().split())


def test_a_hundred_senders_at_once(tmp_path: Path) -> None:
    senders, threads, lines = 100, 4, 300
    output = tmp_path / "run.ulm"

    def run(thread: int, address: str) -> None:
        rng = random.Random(thread)
        mine = range(thread, senders, threads)
        rest = {n: b"".join(event(n, number) for number in range(lines)) for n in mine}
        sockets = {n: Fake(address, f"SWATHE-TRACE 1 node7 {n} -\n") for n in mine}
        while rest:
            n = rng.choice(list(rest))
            # Cut anywhere, also amid a line.
            size = rng.randrange(1, 5000)
            sockets[n].send(rest[n][:size])
            rest[n] = rest[n][size:]
            if not rest[n]:
                del rest[n]
        for each in sockets.values():
            each.close()

    with Collector(output) as collector:
        running = [threading.Thread(target=run, args=(n, collector.address)) for n in range(4)]
        for each in running:
            each.start()
        for each in running:
            each.join()
        wait_until(lambda: not collector.senders)
        counts = collector.stop()
    assert (counts.senders, counts.events) == (senders, senders * lines)
    assert (counts.damaged, counts.half, counts.vanished, counts.lost) == (0, 0, 0, 0)
    found: dict[int, list[bytes]] = {}
    for line in events_in(output):
        found.setdefault(int(fields(line)["PID"]), []).append(line)
    assert len(found) == senders
    for n, theirs in found.items():
        assert theirs == [event(n, number) for number in range(lines)]


def test_a_disk_that_blocks_holds_senders_up_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotating_writer, "HIGH_BYTES", 300_000)
    monkeypatch.setattr(rotating_writer, "LOW_BYTES", 100_000)
    output, senders, lines, size = tmp_path / "pipe", 10, 2000, 900
    os.mkfifo(output)
    sent = [0] * senders

    def run(n: int, address: str) -> None:
        with fake(address, f"SWATHE-TRACE 1 node7 {n} -\n") as each:
            each.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            for number in range(lines):
                each.send(event(n, number, size))
                sent[n] = number + 1

    with Collector(output) as collector:
        threads = [threading.Thread(target=run, args=(n, collector.address)) for n in range(10)]
        for thread in threads:
            thread.start()
        wait_until(lambda: collector.is_full)
        # Nobody reads the FIFO: nothing moves any more, and little is kept.
        before = -1
        while before != sum(sent):
            before = sum(sent)
            time.sleep(0.5)
        assert sum(sent) < senders * lines * 0.7
        most = rotating_writer.HIGH_BYTES + collect.LONGEST_LINE
        assert collector.writer.waiting_bytes <= most
        found = bytearray()
        with output.open("rb") as reader:
            while found.count(b"CUT_START") < senders * lines:
                found += reader.read1(1 << 20)
                assert collector.writer.waiting_bytes <= most
        for thread in threads:
            thread.join()
        counts = collector.stop()
    assert (counts.events, counts.lost) == (senders * lines, 0)
    whole = [line for line in bytes(found).splitlines(keepends=True) if b"CLOCK" not in line]
    assert sorted(whole) == sorted(
        event(n, number, size) for n in range(senders) for number in range(lines)
    )


def test_who_comes_while_the_disk_blocks_waits_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotating_writer, "HIGH_BYTES", 100_000)
    monkeypatch.setattr(rotating_writer, "LOW_BYTES", 50_000)
    output = tmp_path / "pipe"
    os.mkfifo(output)
    with Collector(output) as collector, fake(collector.address) as first:
        first.send(b"".join(event(1, number, 1000) for number in range(100)))
        wait_until(lambda: collector.is_full)
        with fake(collector.address) as second:
            wait_until(lambda: len(collector.senders) == 2)
            time.sleep(0.1)
            assert collector.count["senders"] == 1
            with output.open("rb") as reader:
                assert len(reader.read(100_000)) == 100_000
                assert second.answer() == b"OK\n"


def test_only_who_has_the_token_is_heard(tmp_path: Path) -> None:
    output = tmp_path / "run.ulm"
    said: list[str] = []
    with Collector(output, token=TOKEN, warn=said.append) as collector:
        for wrong in ("-", TOKEN + "x", TOKEN.upper()):
            # At once: what comes after the refusal is reset.
            more = event(1, 1).decode()
            with fake(collector.address, f"SWATHE-TRACE 1 node7 1 {wrong}\n{more}") as each:
                assert each.answer() == b"NO the token does not match\n"
                assert each.answer() == b""
        with fake(collector.address, f"SWATHE-TRACE 1 node7 1 {TOKEN}\n") as each:
            assert each.answer() == b"OK\n"
            each.send(event(1, 2))
            wait_until(lambda: collector.count["events"])
        counts = collector.stop()
    assert (counts.senders, counts.refused) == (1, 3)
    assert events_in(output) == [event(1, 2)]
    assert len(said) == 3
    assert TOKEN not in "".join(said)


@pytest.mark.parametrize(
    "greeting",
    ["GET / HTTP/1.1\n", "SWATHE-TRACE 2 a 1 -\n", "SWATHE-TRACE 1 a x -\n", "\n", "y" * 70_000],
)
def test_who_is_no_sender_is_told_so(greeting: str, tmp_path: Path) -> None:
    with Collector(tmp_path / "run.ulm") as collector, fake(collector.address) as sound:
        each = Fake(collector.address, "")
        each.send(greeting.encode())
        assert each.answer() == b"NO expected SWATHE-TRACE 1 HOST PID TOKEN\n"
        each.close()
        assert sound.answer() == b"OK\n"
        counts = collector.stop()
    assert (counts.senders, counts.refused) == (1, 1)


def test_beyond_this_machine_a_token_is_needed(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="token"):
        Collector(tmp_path / "run.ulm", host="0.0.0.0")
    assert not (tmp_path / "run.ulm").exists()
    said: list[str] = []
    with Collector(
        tmp_path / "run.ulm", host="0.0.0.0", token=TOKEN, warn=said.append
    ) as collector:
        (plain,) = said
        assert plain.startswith(f"{collector.address}: events and the token are sent in plain text")
        assert TOKEN not in plain
        port = collector.address.rpartition(":")[2]
        with fake(f"tcp://127.0.0.1:{port}", f"SWATHE-TRACE 1 a 1 {TOKEN}\n") as each:
            assert each.answer() == b"OK\n"
    said.clear()
    with Collector(tmp_path / "run.ulm", token=TOKEN, warn=said.append):
        assert said == []


def test_garbage_is_left_out_counted_and_told(tmp_path: Path) -> None:
    output = tmp_path / "run.ulm"
    said: list[str] = []
    bad = [
        b"\xff\xfe no text\n",
        b"no event\n",
        b"\n",
        START + b"BELL \x07\n",
        START + b"NUL \x00\n",
        START + b"RETURN\r\n",
        START + b'LATIN REASON="\xe9"\n',
    ]
    with Collector(output, warn=said.append) as collector:
        with fake(collector.address) as each:
            for number, line in enumerate(bad):
                each.send(line + event(1, number))
            each.send(START + b"LONG FILL=" + b"x" * (1 << 20) + b"\n" + event(1, 100))
            each.send(START + 'NAME TARGET="Hä 1"\n'.encode())
            each.send(START + b"HALF PID=1")
        wait_until(lambda: not collector.senders)
        counts = collector.stop()
    good = [event(1, number) for number in [*range(len(bad)), 100]]
    good.append(START + 'NAME TARGET="Hä 1"\n'.encode())
    *found, last = events_in(output)
    assert found == good
    assert (counts.events, counts.damaged, counts.long, counts.half) == (len(good), len(bad), 1, 1)
    told = fields(last)
    assert (told["NL.EVNT"], told["SENDER"]) == ("DAMAGED", "node7:4711")
    assert (told["DAMAGED"], told["LONG"], told["HALF"]) == (str(len(bad)), "1", "1")
    assert said == [
        "node7:4711: sent a line that is not an event",
        "node7:4711: sent a line of more than 65536 bytes",
        "node7:4711: sent half a line at the end",
    ]


def test_the_longest_line_is_taken(tmp_path: Path) -> None:
    line = event(1, 1, collect.LONGEST_LINE - len(event(1, 1)))
    assert len(line) == collect.LONGEST_LINE
    with Collector(tmp_path / "run.ulm") as collector, fake(collector.address) as each:
        each.send(line + event(1, 2) + line[:-1] + b"x\n" + event(1, 3))
        wait_until(lambda: collector.count["events"] == 3)
        counts = collector.stop()
    assert counts.long == 1
    assert events_in(tmp_path / "run.ulm")[:3] == [line, event(1, 2), event(1, 3)]


def test_senders_that_vanish_or_never_speak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "run.ulm"
    said: list[str] = []
    with Collector(output, warn=said.append) as collector, fake(collector.address) as sound:
        assert sound.answer() == b"OK\n"
        lost = Fake(collector.address, "SWATHE-TRACE 1 node8 1 -\n")
        assert lost.answer() == b"OK\n"
        lost.send(event(1, 1) + b"DATE=2026")
        wait_until(lambda: collector.count["events"] == 1)
        lost.reset()
        monkeypatch.setattr(collect, "GREETING_S", 0.2)
        with (
            fake(collector.address, "SWATHE-TRACE 1 ") as silent,
            # Where even that came too late.
            contextlib.suppress(ConnectionResetError),
        ):
            assert silent.answer() == b""
        wait_until(lambda: len(collector.senders) == 1)
        sound.send(event(2, 1))
        wait_until(lambda: collector.count["events"] == 2)
        counts = collector.stop()
    assert (counts.senders, counts.silent, counts.vanished, counts.half) == (2, 1, 1, 1)
    assert [line for line in events_in(output) if b"CUT_START" in line] == [
        event(1, 1),
        event(2, 1),
    ]
    assert any("node8:1: the connection broke" in text for text in said)
    assert any("did not identify itself" in text for text in said)


def test_more_senders_than_allowed_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "MOST_SENDERS", 2)
    with Collector(tmp_path / "run.ulm") as collector:
        with fake(collector.address) as first, fake(collector.address) as second:
            assert (first.answer(), second.answer()) == (b"OK\n", b"OK\n")
            with fake(collector.address) as third:
                assert third.answer() == b"NO expected at most 2 senders, found more\n"
        wait_until(lambda: not collector.senders)
        with fake(collector.address) as again:
            assert again.answer() == b"OK\n"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems answer at 127.0.0.1 alone")
@pytest.mark.parametrize("places", [1, 8], ids=["one address", "many addresses"])
def test_connections_that_say_nothing_keep_nobody_away(
    places: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever addresses they come from: all of 127.0.0.0/8 are this machine's."""
    monkeypatch.setattr(collect, "MOST_SENDERS", 100)
    monkeypatch.setattr(collect, "MOST_SILENT", 40)
    monkeypatch.setattr(collect, "GREETING_S", 600.0)  # so that none goes by itself
    with contextlib.ExitStack() as stack, Collector(tmp_path / "run.ulm") as collector:
        port = int(collector.address.rpartition(":")[2])
        with fake(collector.address) as sound:
            assert sound.answer() == b"OK\n"
            for number in range(250):
                place = (f"127.0.0.{2 + number % places}", 0)
                stack.enter_context(socket.create_connection(("127.0.0.1", port), 60, place))
            for _ in range(3):
                with fake(collector.address) as each:
                    assert each.answer() == b"OK\n"
            sound.send(event(1, 1))
            wait_until(lambda: collector.count["events"] == 1)
        assert len(collector.silent) <= (40 if places == 1 else 100)
        assert len(collector.senders) <= 101


def test_warnings_are_bounded(tmp_path: Path) -> None:
    said: list[str] = []
    with Collector(tmp_path / "run.ulm", warn=said.append) as collector:
        for _ in range(collect.MOST_WARNINGS + 5):
            with fake(collector.address, "hello\n") as each:
                each.answer()
        assert collector.stop().refused == collect.MOST_WARNINGS + 5
    assert len(said) == collect.MOST_WARNINGS + 1
    assert said[-1] == "further warnings are only counted"


def answer_clocks(sender: Fake, ahead_ns: int, delay_s: Iterable[float]) -> None:
    """Answer as a sender whose clock is ahead, and now and then slow to send."""
    for wait_s in delay_s:
        word, asked = sender.answer().split()
        assert word == b"CLOCK"
        received_ns = time.time_ns() + ahead_ns
        seconds, rest_ns = divmod(time.time_ns() + ahead_ns, 1_000_000_000)
        date = time.strftime("%Y%m%d%H%M%S", time.gmtime(seconds))
        line = (
            f"DATE={date}.{rest_ns // 1000:06} HOST=node7 PROG=swathe LVL=Usage "
            f"NL.EVNT=CLOCK_REPLY PID=4711 ECHO={int(asked)} RECEIVED={received_ns}\n"
        )
        time.sleep(wait_s)
        sender.send(line.encode())


@pytest.mark.parametrize("ahead_s", [3600.25, -0.042])
def test_the_offset_of_a_clock_is_found(
    ahead_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "EAGER_S", 0.4)
    output = tmp_path / "run.ulm"
    with Collector(output) as collector, fake(collector.address) as sender:
        assert sender.answer() == b"OK\n"
        answer_clocks(sender, round(ahead_s * 1e9), (0.3, 0, 0, 0.05, 0, 0))
        wait_until(lambda: output.read_bytes().count(b"\n") == 6)
    found = [fields(line) for line in output.read_bytes().splitlines()]
    assert {each["NL.EVNT"] for each in found} == {"CLOCK"}
    assert {each["SENDER"] for each in found} == {"node7:4711"}
    for each in found:
        error_s = abs(float(each["OFFSET_S"]) - ahead_s)
        # What is said of its error is true; DATE has whole microseconds.
        assert error_s <= float(each["SPREAD_S"]) + 2e-6
    spreads = [float(each["SPREAD_S"]) for each in found]
    assert spreads == sorted(spreads, reverse=True)
    # One of five is quick.
    assert spreads[0] >= 0.15 > spreads[-1]


def test_of_many_answers_that_of_the_least_round_trip_counts() -> None:
    clock, ahead_ns = SenderClock(), 5_000_000_000
    for number, (there_ns, back_ns) in enumerate([(90, 10), (7, 5), (300, 2), (10, 400)]):
        asked_ns = 1_000_000 * number
        clock.ask(asked_ns)
        reply = Reply(asked_ns, asked_ns + there_ns + ahead_ns, asked_ns + there_ns + ahead_ns + 50)
        found = clock.add_reply(reply, asked_ns + there_ns + 50 + back_ns)
    assert found is not None
    assert found.spread_s == pytest.approx(6e-9)
    assert found.offset_s == pytest.approx(5 + 1e-9)
    # Nobody asked that, or it was answered.
    assert clock.add_reply(reply, 0) is None
    assert clock.add_reply(Reply(77, 77, 77), 0) is None


def test_the_clock_forgets_what_is_long_ago() -> None:
    clock = SenderClock()
    for number in range(30):
        clock.ask(number)
        # At first the way is short, then it is long, and the clock has drifted.
        late_ns, ahead_ns = (1, 0) if number < 5 else (50, 9)
        reply = Reply(number, number + late_ns + ahead_ns, number + late_ns + ahead_ns)
        found = clock.add_reply(reply, number + 2 * late_ns)
    assert found is not None
    assert found.offset_s == pytest.approx(9e-9)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (START + b"CLOCK_REPLY ECHO=1", "RECEIVED is missing"),
        (START + b"CLOCK_REPLY ECHO=x RECEIVED=1", "ECHO: expected a whole number"),
        (START.replace(b"20261121", b"20261341") + b"CLOCK_REPLY ECHO=1 RECEIVED=2", "DATE"),
        (b"CLOCK_REPLY ECHO=1 RECEIVED=2", "byte 0: expected KEY="),
    ],
)
def test_what_is_no_answer(line: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        read_reply(line)


def test_another_event_that_speaks_of_answers() -> None:
    line = START + b'OTHER REASON=" NL.EVNT=CLOCK_REPLY ECHO=1 RECEIVED=2"'
    assert read_reply(line) is None


def test_an_answer_of_an_odd_host() -> None:
    line = START.replace(b"node7", b'"a \\" NL.EVNT=X b"') + b"CLOCK_REPLY PID=1 ECHO=12 RECEIVED=3"
    assert read_reply(line) == Reply(12, 3, 1795224638055784000)


def test_the_file_can_be_read_while_it_grows(tmp_path: Path) -> None:
    output = tmp_path / "run.ulm"
    with (
        Collector(output) as collector,
        fake(collector.address) as each,
        output.open("rb") as reader,
    ):
        found = b""
        for number in range(20):
            each.send(event(1, number))

            def came() -> bool:
                nonlocal found
                found += reader.read()
                return event(1, number) in found  # noqa: B023, asked at once

            wait_until(came)


def test_files_are_rotated_between_lines(tmp_path: Path) -> None:
    output = tmp_path / "run.ulm"
    with Collector(output, rotate_bytes=100_000, keep=3) as collector:
        with fake(collector.address) as each:
            for number in range(3000):
                each.send(event(1, number, 400))
        wait_until(lambda: collector.count["events"] == 3000)
    names = ["run.ulm.3", "run.ulm.2", "run.ulm.1", "run.ulm"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    paths = [tmp_path / name for name in names]
    assert all(0 < path.stat().st_size <= 100_000 for path in paths)
    found = events_in(*paths)
    # The oldest are gone, the newest are in order.
    assert found == [event(1, number, 400) for number in range(3000 - len(found), 3000)]
    assert len(found) > 3 * 60


def test_a_file_that_cannot_be_renamed_grows(tmp_path: Path) -> None:
    output, said = tmp_path / "run.ulm", list[str]()
    (tmp_path / "run.ulm.1").mkdir()
    with (
        Collector(output, rotate_bytes=10_000, keep=1, warn=said.append) as collector,
        fake(collector.address) as each,
    ):
        assert each.answer() == b"OK\n"
        assert opened(tmp_path) == 1
        for number in range(3000):
            each.send(event(1, number, 400))
        wait_until(lambda: len(events_in(output)) == 3000)
        assert opened(tmp_path) == 1
    assert opened(tmp_path) == 0
    assert said == [f"{output}: cannot be renamed: Is a directory; it grows beyond its size"]
    assert events_in(output) == [event(1, number, 400) for number in range(3000)]


def test_an_old_file_is_continued_on_a_line_of_its_own(tmp_path: Path) -> None:
    output = tmp_path / "run.ulm"
    output.write_bytes(event(9, 9) + b"DATE=2026 killed he")
    with Collector(output) as collector, fake(collector.address) as each:
        each.send(event(1, 1))
        wait_until(lambda: collector.count["events"])
    assert events_in(output) == [event(9, 9), b"DATE=2026 killed he\n", event(1, 1)]


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"no/run\.ulm: No such file"):
        Collector(tmp_path / "no" / "run.ulm")
    with Collector(tmp_path / "run.ulm") as collector:
        port = int(collector.address.rpartition(":")[2])
        with pytest.raises(SettingsError, match=f"cannot listen on 127.0.0.1:{port}"):
            Collector(tmp_path / "other.ulm", port=port)
    with pytest.raises(SettingsError, match="cannot listen"):
        Collector(tmp_path / "run.ulm", host="no.such.host.invalid", token=TOKEN)


def test_a_full_disk_is_said_and_what_is_lost_is_counted() -> None:
    said: list[str] = []
    with Collector(Path("/dev/full"), warn=said.append) as collector, fake(collector.address) as it:
        it.send(event(1, 1) + event(1, 2))
        wait_until(lambda: said)
        counts = collector.stop()
    assert counts.lost >= 2
    assert said[0] == "/dev/full: No space left on device; retrying"


def test_an_end_while_the_disk_blocks_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "PATIENCE_S", 0.3)
    os.mkfifo(tmp_path / "pipe")
    with Collector(tmp_path / "pipe") as collector, fake(collector.address) as each:
        each.send(event(1, 1) + event(1, 2))
        wait_until(lambda: collector.count["events"] == 2)
        assert collector.stop().lost == 2
    # Lets the thread that waits for a reader go.
    os.close(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK))


class Written:
    """What a sender needs of its collector, and of its connection."""

    def __init__(self) -> None:
        self.token, self.is_full, self.heard_s = None, False, 0.0
        self.count: Counter[str] = Counter()
        self.senders: set[Any] = set()
        self.lines: list[bytes] = []

    def put(self, lines: bytes) -> None:
        self.lines.append(lines)

    def point(self, name: str, **fields: Any) -> None:
        pass

    def warn(self, text: str) -> None:
        pass

    def now_ns(self) -> int:
        return 0


PIECES = st.sampled_from(
    [
        START + b"A\n",
        START,
        b"DATE=",
        b"\n",
        b"\r",
        b"\x00",
        b"\xff",
        b"\xc3\xa4",
        b"CLOCK_REPLY",
        b"x" * 40,
    ]
)


@given(st.lists(PIECES | st.binary(max_size=30), max_size=30), st.lists(st.integers(1, 150)))
def test_of_any_bytes_the_events_are_written_whole(pieces: list[bytes], sizes: list[int]) -> None:
    longest = 120
    stream, collector = b"".join(pieces), Written()
    sender = Sender(cast(Any, collector))
    sender.buffer, sender.asks = bytearray(longest), 1
    rest, sizes = stream, [*sizes, *[longest] * len(stream)]
    while rest:
        space = sender.get_buffer(-1)
        size = min(sizes.pop(0), len(space), len(rest))
        assert size > 0
        space[:size] = rest[:size]
        sender.buffer_updated(size)
        rest = rest[size:]
    *lines, half = stream.split(b"\n")
    short = [line + b"\n" for line in lines if len(line) < longest]
    expected = [line for line in short if line.startswith(b"DATE=") and is_text(line)]
    assert b"".join(collector.lines) == b"".join(expected)
    assert collector.count["events"] == len(expected)
    assert collector.count["damaged"] == len(short) - len(expected)
    assert collector.count["long"] == len(lines) - len(short) + (len(half) >= longest)


def is_text(line: bytes) -> bool:
    try:
        return not set(line.decode()[:-1]) & {*map(chr, range(32)), "\x7f"}
    except UnicodeDecodeError:
        return False


def test_what_was_sent_is_written_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As long as a busy machine may need.
    for patience in ("LAST_S", "PATIENCE_S"):
        monkeypatch.setattr(collect, patience, 30.0)
    output = tmp_path / "run.ulm"
    lines = b"".join(event(1, number) for number in range(20_000))
    with Collector(output) as collector, fake(collector.address) as each:
        assert each.answer() == b"OK\n"
        each.send(lines)
        counts = collector.stop()
    assert counts.events == 20_000
    assert b"".join(events_in(output)) == lines


def test_what_the_recorder_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "EAGER_S", 0.05)
    monkeypatch.setenv("SWATHE_TRACE_TOKEN", TOKEN)
    # A thread keeps so many until the connection is there, however long that takes.
    output, threads, events = tmp_path / "run.ulm", 4, 1000

    def run(thread: int) -> None:
        for number in range(events):
            point("STEP", number=number, worker=thread, text='a "b" Hä\n')

    with Collector(output, token=TOKEN) as collector:
        start(collector.address)
        running = [threading.Thread(target=run, args=(n,)) for n in range(threads)]
        for each in running:
            each.start()
        for each in running:
            each.join()
        wait_until(lambda: b"NL.EVNT=CLOCK " in output.read_bytes())
        told = stop()
        wait_until(lambda: not collector.senders)
        counts = collector.stop()
    assert told.dropped == 0
    assert (counts.damaged, counts.half, counts.vanished, counts.lost) == (0, 0, 0, 0)
    found = read(output)
    assert found.damaged == ()
    steps = np.flatnonzero(found.event.codes == found.event.words.index("STEP"))
    workers, numbers = found.fields["WORKER"], found.fields["NUMBER"]
    assert isinstance(workers, CodedColumn)
    assert not isinstance(numbers, CodedColumn)
    for code in np.unique(workers.codes[steps]):
        mine = steps[workers.codes[steps] == code]
        assert numbers[mine].tolist() == list(range(events))
    # One machine has one clock.
    _, [offset] = align_times(found)
    assert offset.sender == f"{this_host()}:{os.getpid()}"
    assert abs(offset.offset_s) <= offset.spread_s + 2e-6 or abs(offset.offset_s) < 0.05


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")
    process = subprocess.Popen(
        [
            *(SWATHE, "trace", "collect", "--token-file", tmp_path / "token"),
            *("-o", tmp_path / "run.ulm", "--rotate", "1MB", "--keep", "2"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first.startswith("collector: tcp://127.0.0.1:")
    with fake(first.split()[1], f"SWATHE-TRACE 1 node7 1 {TOKEN}\n") as each:
        each.send(event(1, 1))
        wait_until(lambda: events_in(tmp_path / "run.ulm"))
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert out == "collector: 1 events of 1 senders\n"
    assert events_in(tmp_path / "run.ulm") == [event(1, 1)]


def test_the_command_to_standard_output() -> None:
    process = subprocess.Popen(
        [SWATHE, "trace", "collect", "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    address = process.stderr.readline().decode().split()[1]
    with fake(address) as each:
        each.send(event(1, 1))
        assert process.stdout.readline() == event(1, 1)
        process.terminate()
        process.communicate(timeout=120)
    assert process.returncode == 0


def test_faults_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Runner(monkeypatch, capsys)
    run("trace", "collect", "--host", "0.0.0.0", code=2)
    run("trace", "collect", "-o", tmp_path / "no" / "run.ulm", code=6)
    for text in ("short", "has a space in it", "ünprintable-token"):
        (tmp_path / "token").write_text(text)
        run("trace", "collect", "--token-file", tmp_path / "token", code=2)
    run("trace", "collect", "--token-file", tmp_path / "none", code=2)
