"""Events: what is recorded is true, goes where it should, and never fails the work."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe import trace
from swathe.catalog import Catalog
from swathe.core.errors import FormatError, NotFoundError, OutputError, TraceError
from swathe.core.host import this_host
from tests.support import servers
from tests.support.fits_frames import (
    KINDS,
    Runner,
    contents,
    frame,
    noise,
    swathe_command,
    write_kinds,
)
from tests.support.portals import database_in
from tests.support.scripted_servers import Handler, serving
from tests.support.traces import named, rows

PAIR = ("CUT", "OPEN", "PLAN", "READ", "DECODE", "ASSEMBLE", "HASH", "WRITE", "FETCH", "JOB")
IDS = ("PID", "THREAD", "JOB", "TARGET", "OBJECT", "REQUEST")


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    yield
    trace.stop()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run.ulm"


def boxes(files: list[Path], count: int) -> dict[str, list[Any]]:
    return {
        "id": [f"star {n}" for n in range(count)],
        "file": [str(files[n % len(files)]) for n in range(count)],
        "x0": [3 * n for n in range(count)],
        "y0": [2 * n for n in range(count)],
        "width": [20] * count,
        "height": [10] * count,
    }


# ---- Recording from Python


def test_events_of_a_program_are_read_as_they_were(run: Path) -> None:
    with trace.recording(run, prog="reduce", host="node 7"):
        with trace.scope(job="ab12", worker=None), trace.event("REDUCE", granule="g7") as reduce:
            reduce.add(bytes=12)
        trace.point("NOTE", text='a "b"\n\\ ü', at_s=0.25, flag=True, none=None)
    start, end, note, last = rows(run)
    assert (start["HOST"], start["PROG"], start["LVL"]) == ("node 7", "reduce", "Usage")
    assert (start["event"], start["JOB"], start["GRANULE"]) == ("REDUCE_START", "ab12", "g7")
    assert "BYTES" not in start and "RESULT" not in start
    assert (end["event"], end["BYTES"], end["RESULT"]) == ("REDUCE_END", 12, "ok")
    assert (note["TEXT"], note["AT_S"], note["FLAG"]) == ('a "b"\n\\ ü', 0.25, "true")
    assert not {"JOB", "NONE", "WORKER"} & set(note)
    assert (last["event"], last["RECORDED"], last["DROPPED"]) == ("TRACE_END", 3, 0)
    assert abs(last["ns"] - time.time_ns()) < 60e9
    assert start["PID"] == str(os.getpid())


def test_an_exception_is_told_and_raised(run: Path) -> None:
    with trace.recording(run):
        with pytest.raises(ValueError, match="too cold"), trace.event("REDUCE"):
            raise ValueError("too cold")
        with pytest.raises(KeyboardInterrupt), trace.event("REDUCE"):
            raise KeyboardInterrupt
    failed, cancelled = named(rows(run), "REDUCE_END")
    assert (failed["RESULT"], failed["LVL"]) == ("error", "Error")
    assert failed["REASON"] == "ValueError: too cold"
    assert cancelled["RESULT"] == "cancelled"


class UnsayableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("error", [KeyError("its own"), UnsayableError()])
def test_what_failed_is_what_is_raised(run: Path, error: Exception) -> None:
    with trace.recording(run):
        with pytest.raises(type(error)) as raised, trace.event("REDUCE", result="partial") as told:
            told.add(reason="none yet", bytes=1)
            told.add(BYTES=2)
            raise error
        with trace.event("REDUCE", result="partial"):
            pass
    assert raised.value is error
    assert raised.value.__context__ is None
    *_, last = named(rows(run), "REDUCE_END")
    assert last["RESULT"] == "partial"
    with pytest.raises(ValueError, match="twice"):
        trace.event("REDUCE", bytes=1, BYTES=2)


def test_scopes_are_of_their_thread_and_nest(run: Path) -> None:
    def other() -> None:
        trace.point("OTHER")

    with trace.recording(run):
        with trace.scope(job="a", worker="w"):
            with trace.scope(job="b"):
                trace.point("INNER")
            trace.point("OUTER")
            trace.point("OWN", job="c")
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        trace.point("NONE")
    found = {row["event"]: row for row in rows(run)}
    ids = {name: (row.get("JOB"), row.get("WORKER")) for name, row in found.items()}
    assert ids["INNER"] == ("b", "w")
    assert ids["OUTER"] == ("a", "w")
    assert ids["OWN"] == ("c", "w")
    assert ids["OTHER"] == ids["NONE"] == (None, None)
    assert found["OTHER"]["THREAD"] != found["OUTER"]["THREAD"]


def test_scopes_are_of_the_tasks_begun_in_them(run: Path) -> None:
    """Tasks take turns in one thread; others work for them in threads."""
    both = asyncio.Barrier(2)

    async def task(name: str) -> None:
        with trace.scope(job=name), trace.event("TURN", task=name):
            await both.wait()
            await asyncio.to_thread(trace.point, "THREAD", task=name)
            await asyncio.create_task(later(name))
            await both.wait()

    async def later(name: str) -> None:
        trace.point("LATER", task=name)

    async def main() -> None:
        await asyncio.gather(task("a"), task("b"))

    with trace.recording(run):
        asyncio.run(main())
        trace.point("NONE")
    *told, none, _ = rows(run)
    assert len(told) == 8 and "JOB" not in none
    assert all(row["JOB"] == row["TASK"] for row in told)
    (first, second), ends = named(told, "TURN_START"), named(told, "TURN_END")
    assert first["THREAD"] == second["THREAD"]
    assert max(first["ns"], second["ns"]) <= min(row["ns"] for row in ends)


@pytest.mark.parametrize("on", [False, True])
def test_wrong_names_and_keys_are_refused_on_or_off(on: bool, run: Path) -> None:
    if on:
        trace.start(run)
    for call in (
        lambda: trace.point("lower"),
        lambda: trace.point(""),
        lambda: trace.point("A B"),
        lambda: trace.point("A" * 65),
        lambda: trace.point("A", **{"ä": 1}),
        lambda: trace.point("A", **{"1a": 1}),
        lambda: trace.point("A", date="now"),
        lambda: trace.point("A", a=1, A=2),
        lambda: trace.event("x").__enter__(),
        lambda: trace.scope(target="t").__enter__(),
    ):
        with pytest.raises(ValueError, match=r"expected|every event|twice|single"):
            call()
    assert trace.stop().recorded == 0


def test_off_nothing_is_recorded_and_stop_can_be_called(run: Path) -> None:
    trace.point("LOST")
    assert trace.stop() == trace.RecordingCounts(0, 0, 0)
    with trace.recording(run), pytest.raises(TraceError, match="already"):
        trace.start(run)
    trace.start(run)
    trace.point("LATER")
    assert trace.stop().written == 1
    assert [row["event"] for row in rows(run)] == ["TRACE_END", "LATER", "TRACE_END"]


def test_a_forked_child_records_nothing_unless_started_anew(run: Path, tmp_path: Path) -> None:
    own = tmp_path / "child.ulm"
    trace.start(run)
    trace.point("BEFORE")
    child = os.fork()
    if child == 0:
        try:
            trace.point("CHILD")
            trace.start(own)
            trace.point("ANEW")
            os._exit(0 if trace.stop().written == 1 else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    trace.point("AFTER")
    trace.stop()
    assert status == 0
    assert [row["event"] for row in rows(run)] == ["BEFORE", "AFTER", "TRACE_END"]
    assert [row["event"] for row in rows(own)] == ["ANEW", "TRACE_END"]


# ---- Where events go


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("tcp://host", TraceError),
        ("http://host:80", TraceError),
        ("run?rotate=1", TraceError),
        ("", TraceError),
        ("/no/such/folder/run.ulm", OutputError),
        ("syslog:/no/such/socket", OutputError),
    ],
)
def test_what_is_no_place_is_refused(place: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        trace.start(place)
    trace.point("LOST")


def test_files_are_rotated_and_read_together(run: Path) -> None:
    def holds(text: str) -> bool:
        try:
            return text in run.read_text()
        except FileNotFoundError:
            return False  # it is being renamed

    trace.start(f"{run}?rotate_mb=1&keep=3")
    for number in range(6):
        for each in range(2_000):
            trace.point("FILLED", number=2_000 * number + each, text="x" * 150)
        # No more at a time than a thread has room for.
        until(lambda: holds(f" NUMBER={2_000 * number + 1_999} "))  # noqa: B023, asked at once
    assert trace.stop() == trace.RecordingCounts(12_000, 0, 12_000)
    files = sorted(run.parent.iterdir())
    assert [file.name for file in files] == ["run.ulm", "run.ulm.1", "run.ulm.2", "run.ulm.3"][
        : len(files)
    ]
    assert len(files) > 2 and all(file.stat().st_size <= 1_000_000 for file in files)
    events = trace.read(files[::-1])
    numbers = np.asarray(events.fields["NUMBER"])
    assert (np.diff(numbers[~np.isnan(numbers)]) == 1).all()
    assert repr(events).startswith("<Events: ") and len(repr(events)) < 400
    assert repr(events.event).startswith("<CodedColumn of ")


def test_memory_keeps_the_newest(run: Path) -> None:
    # Who is too busy to take the events from their threads in time is given more.
    for pause_s in (0.06, 0.3, 1.5):
        run.unlink(missing_ok=True)
        trace.start(f"memory:{run}?mb=1")
        for number in range(20_000):
            trace.point("FILLED", number=number, text="x" * 100)
            if number % 2_000 == 0:
                time.sleep(pause_s)
                assert run.stat().st_size == 0
        counts = trace.stop()
        if counts.recorded == 20_000:
            break
    kept = named(rows(run), "FILLED")
    assert counts.recorded == 20_000 == counts.written + counts.dropped
    assert len(kept) == counts.written > 1_000
    assert kept[-1]["NUMBER"] == 19_999
    assert run.stat().st_size <= 1_000_000


def test_syslog_gets_a_datagram_each(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(path))
        log.settimeout(120)
        with trace.recording(f"syslog:{path}"):
            trace.point("HELLO", text="a b")
            trace.point("BAD", result="error")
        told = [log.recv(10_000).decode() for _ in range(3)]
    assert told[0].startswith(f"<14>swathe[{os.getpid()}]: DATE=")
    assert told[0].endswith(f'NL.EVNT=HELLO PID={os.getpid()} THREAD=1 TEXT="a b"')
    assert told[1].startswith("<11>") and "LVL=Error" in told[1]


def test_syslog_is_waited_for_while_it_reads(tmp_path: Path) -> None:
    # The kernel holds ten or so that are not read yet, and an ordinary run has thousands.
    path = tmp_path / "log"
    told: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(path))
        log.settimeout(120)

        def read() -> None:
            while "TRACE_END" not in (told or [""])[-1]:
                told.append(log.recv(10_000).decode())
                if len(told) % 100 == 1:
                    time.sleep(0.02)

        reading = threading.Thread(target=read, daemon=True)
        trace.start(f"syslog:{path}")
        for number in range(3_000):
            trace.point("TOLD", number=number)
        reading.start()
        counts = trace.stop()
        reading.join(10 if counts.dropped else 120)
    assert counts == trace.RecordingCounts(3_000, 0, 3_000)
    assert len(told) == 3_001


def test_syslog_that_is_stuck_holds_up_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(path))
        trace.start(f"syslog:{path}")
        for _ in range(3_000):
            trace.point("LOST")
        counts = trace.stop()
    assert counts.recorded == 3_000 == counts.dropped + counts.written
    assert counts.dropped > 2_000
    assert capfd.readouterr().err.count("events cannot be written to syslog:") == 1


def test_a_pipe_that_nobody_reads_yet_holds_up_nothing(
    run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(run)
    trace.start(run)
    trace.point("LOST")
    until(lambda: "Broken pipe" in capfd.readouterr().err)
    reader = os.open(run, os.O_RDONLY | os.O_NONBLOCK)
    trace.point("TOLD")
    assert trace.stop() == trace.RecordingCounts(2, 1, 1)
    said = os.read(reader, 10_000).decode()
    os.close(reader)
    assert "NL.EVNT=TOLD" in said and "NL.EVNT=LOST" not in said and "RECORDED=2" in said


def test_a_full_disk_never_fails_the_work(capfd: pytest.CaptureFixture[str]) -> None:
    trace.start("/dev/full")
    for _ in range(3):
        trace.point("LOST")
        time.sleep(0.08)
    assert trace.stop() == trace.RecordingCounts(3, 3, 0)
    assert capfd.readouterr().err.count("events cannot be written to /dev/full") == 1


class Collector(threading.Thread):
    """One that lets senders in, asks each for its clock, and keeps what they say."""

    def __init__(self, answer: bytes = b"OK\n", reads: bool = True, port: int = 0) -> None:
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", port))
        self.port = self.socket.getsockname()[1]
        self.answer, self.reads = answer, reads
        self.greetings: list[str] = []
        self.said: list[bytes] = []
        self.release = threading.Event()

    def run(self) -> None:
        while True:
            try:
                sender, _ = self.socket.accept()
            except OSError:
                return
            # Who goes before it has read all that it was told resets its connection.
            with sender, suppress(ConnectionError):
                self._hear(sender)

    def _hear(self, sender: socket.socket) -> None:
        self.greetings.append(sender.makefile("rb", buffering=0).readline().decode())
        sender.sendall(self.answer)
        if self.answer != b"OK\n":
            return
        if not self.reads:
            self.release.wait(30)
            return
        sender.sendall(b"CLOCK 1234567890123456789\n")
        self.said.append(b"")
        while piece := sender.recv(1 << 16):
            self.said[-1] += piece

    def __enter__(self) -> Collector:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.join(10)


def until(is_true: Callable[[], bool]) -> None:
    limit = time.monotonic() + 120
    while not is_true():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_a_collector_is_greeted_and_told_all(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWATHE_TRACE_TOKEN", "secret-7")
    with Collector() as collector:
        before = time.time_ns()
        with trace.recording(f"tcp://127.0.0.1:{collector.port}", host="node7"):
            # No more than a thread keeps until the connection is there.
            for number in range(1_000):
                trace.point("TOLD", number=number)
            until(lambda: b"CLOCK_REPLY" in b"".join(collector.said))
        until(lambda: bool(re.search(rb"=TRACE_END .*\n", b"".join(collector.said))))
    assert collector.greetings == [f"SWATHE-TRACE 1 node7 {os.getpid()} secret-7\n"]
    run.write_bytes(collector.said[0])
    found = rows(run)
    assert [row["NUMBER"] for row in named(found, "TOLD")] == list(range(1_000))
    (reply,) = named(found, "CLOCK_REPLY")
    assert b" ECHO=1234567890123456789 " in collector.said[0]
    assert before <= reply["RECEIVED"] <= reply["ns"] + 1_000_000


def test_a_collector_that_comes_later_gets_what_comes_then(
    run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    port = servers.free_port()
    trace.start(f"tcp://127.0.0.1:{port}")
    trace.point("KEPT")
    until(lambda: "refused" in capfd.readouterr().err)
    with Collector(port=port) as collector:
        until(lambda: b"KEPT" in b"".join(collector.said))
        assert trace.stop().dropped == 0


def test_a_collector_that_does_not_read_holds_up_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Collector(reads=False) as collector:
        trace.start(f"tcp://127.0.0.1:{collector.port}")
        for number in range(150_000):
            trace.point("MANY", number=number, text="x" * 100)
        collector.release.set()
        counts = trace.stop()
    assert counts.dropped > 0
    assert counts.written + counts.dropped == 150_000
    capfd.readouterr()


def test_a_collector_that_refuses_is_told_of_once(capfd: pytest.CaptureFixture[str]) -> None:
    with Collector(b"NO token\n") as collector:
        trace.start(f"tcp://127.0.0.1:{collector.port}")
        trace.point("LOST")
        until(lambda: bool(collector.greetings))
        counts = trace.stop()
    assert (counts.written, counts.dropped) == (0, 1)
    assert capfd.readouterr().err.count('"NO token"') == 1


# ---- What is read


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    gz = tmp_path / "run.ulm.gz"
    gz.write_bytes(b"\x1f\x8b\x08\x00")
    with pytest.raises(FormatError, match="compressed"):
        trace.read(gz)
    with pytest.raises(FormatError, match="regular"):
        trace.read(tmp_path)
    with pytest.raises(NotFoundError):
        trace.read(tmp_path / "none")


def test_damaged_lines_are_counted(run: Path) -> None:
    line = "DATE=20261121013038.055784 HOST=h PROG=p LVL=Usage NL.EVNT=A BYTES=3\n"
    run.write_text(f"{line}rubbish\n{line}\n{line[:-20]}")
    events = trace.read(run)
    assert events.damaged_count == 3
    assert [each.line for each in events.damaged] == [2, 4, 5]
    assert events.time_ns.tolist() == [1795224638055784000] * 2
    assert np.asarray(events.fields["BYTES"]).tolist() == [3, 3]
    assert events.time_ns.dtype == np.int64 and events.event.codes.dtype == np.int32


# ---- What Swathe records of itself


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_of_every_target_is_told(kind: str, tmp_path: Path, run: Path) -> None:
    files = [tmp_path / f"f{n}.{kind}" for n in range(2)]
    for number, file in enumerate(files):
        file.write_bytes(contents(noise(number), kind))
    targets = boxes(files, 40)
    with trace.recording(run):
        manifest = swathe.cut_many(targets, tmp_path / "out", threads=2, progress=False)
    found = rows(run)
    assert all(manifest["status"] == "ok")
    names = Counter(row["event"] for row in found)
    for stage in PAIR:
        assert names[f"{stage}_START"] == names[f"{stage}_END"], stage
    for name in ("CUT_START", "CUT_END", "WRITE_END"):
        assert names[name] == 40
    # Up to 16 results of an object are hashed together.
    assert 4 <= names["HASH_END"] <= 40
    for name in ("OPEN_END", "PLAN_END", "READ_END", "ASSEMBLE_END"):
        assert 2 <= names[name] <= 90, name
    assert (names["DECODE_END"] > 0) == (kind == "fit.fz")
    # A compressed file is opened once before, to see whether it is FITS.
    ((began, job),) = ((row["ns"], row["JOB"]) for row in named(found, "JOB_START"))
    others = [row for row in found if row.get("JOB") != job]
    assert {row["event"] for row in others} <= {"OPEN_START", "OPEN_END", "TRACE_END"}
    assert all(row["ns"] < began for row in others if row["event"] != "TRACE_END")
    ends = {row["TARGET"]: row for row in named(found, "CUT_END")}
    starts = {row["TARGET"]: row for row in named(found, "CUT_START")}
    for told in manifest:
        end, start = ends[told["id"]], starts[told["id"]]
        assert (end["BYTES"], end["RESULT"]) == (told["bytes"], "ok")
        assert end["OBJECT"] == start["OBJECT"] == told["source"]
        assert start["ns"] <= end["ns"] and start["THREAD"] == end["THREAD"]
    if kind == "fit":
        assert sum(row["BYTES"] for row in named(found, "READ_END")) == sum(
            row["BYTES"] for row in named(found, "PLAN_END")
        )


def test_starts_and_ends_of_a_thread_pair_up(tmp_path: Path, run: Path) -> None:
    files = write_kinds(tmp_path, "a", noise(1))
    with trace.recording(run):
        swathe.cut_many(boxes(files, 60), tmp_path / "out", threads=2, progress=False)
    open_now: dict[tuple[Any, ...], int] = Counter()
    for row in sorted(rows(run), key=lambda row: row["ns"]):
        stage, _, what = row["event"].rpartition("_")
        key = (stage, *(row.get(each) for each in IDS))
        if what == "START":
            open_now[key] += 1
        elif what == "END" and stage != "TRACE":
            open_now[key] -= 1
            assert open_now[key] >= 0, row
    assert not +Counter(open_now)


def test_how_targets_end_is_told(tmp_path: Path, run: Path) -> None:
    image, damaged = tmp_path / "a.fit", tmp_path / "b.fit"
    image.write_bytes(contents(noise(1), "fit"))
    damaged.write_bytes(image.read_bytes()[:10_000])
    targets = boxes([image, image, tmp_path / "none.fit", damaged], 4)
    targets["x0"][1] = 5_000
    with trace.recording(run):
        swathe.cut_many(targets, tmp_path / "out", progress=False)
    found = rows(run)
    ends = {row["TARGET"]: row for row in named(found, "CUT_END")}
    results = [ends[name]["RESULT"] for name in targets["id"]]
    assert results == ["ok", "no-overlap", "missing", "error"]
    assert "ends" in ends["star 3"]["REASON"] or "beyond" in ends["star 3"]["REASON"]
    assert ends["star 3"]["LVL"] == "Error"
    opened = {row["OBJECT"]: row["RESULT"] for row in named(found, "OPEN_END")}
    assert opened[str(tmp_path / "none.fit")] == "missing"


def test_one_cut_is_told(tmp_path: Path, run: Path) -> None:
    image = tmp_path / "a.fit"
    image.write_bytes(contents(noise(1), "fit"))
    with trace.recording(run), trace.scope(job="mine"):
        swathe.cut(str(image), box=(5, 5, 10, 10))
        with pytest.raises(swathe.errors.NoOverlapError):
            swathe.cut(str(image), box=(5000, 5, 10, 10))
        with pytest.raises(NotFoundError):
            swathe.cut(str(tmp_path / "none.fit"), box=(5, 5, 10, 10))
    found = rows(run)
    assert [row["RESULT"] for row in named(found, "CUT_END")] == ["ok", "no-overlap"]
    assert {row["JOB"] for row in named(found, "CUT_END")} == {"mine"}
    assert named(found, "OPEN_END")[-1]["RESULT"] == "missing"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"hdu": 7}, "no HDU 7"),
        ({"hdu": "NONE"}, 'named "NONE"'),
        ({"hdu": -7}, "no HDU -7"),
        ({"planes": 3}, "planes 3 of NAXIS3 are not within"),
        ({"box": None, "sky": (1, 2), "size_deg": 1}, "no celestial axes"),
    ],
)
def test_one_cut_that_cannot_begin_is_told(
    wrong: dict[str, Any], said: str, tmp_path: Path, run: Path
) -> None:
    image = tmp_path / "a.fit"
    image.write_bytes(contents(noise(1), "fit"))
    # The second time nothing is read any more.
    with trace.recording(run), trace.scope(job="mine"):
        for _ in range(2):
            with pytest.raises(swathe.errors.SwatheError):
                swathe.cut(image, **{"box": (5, 5, 10, 10), **wrong})
    found = rows(run)
    starts, ends = named(found, "CUT_START"), named(found, "CUT_END")
    assert len(starts) == len(ends) == 2
    assert {(row["OBJECT"], row["JOB"]) for row in starts + ends} == {(str(image), "mine")}
    assert {(row["RESULT"], row["LVL"]) for row in ends} == {("error", "Error")}
    assert all(said in row["REASON"] for row in ends)


def test_one_cut_that_cannot_begin_tells_the_name_in_its_store(
    tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.fit").write_bytes(contents(noise(1), "fit"))
    monkeypatch.setenv("SWATHE_DATABASE", database_in(tmp_path))
    with Catalog.open(database_in(tmp_path)) as catalog:
        catalog.add_store("survey", str(tmp_path))
    with trace.recording(run), pytest.raises(swathe.errors.NoSuchHduError):
        swathe.cut("survey:a.fit", box=(5, 5, 10, 10), hdu=7)
    found = rows(run)
    assert [row["OBJECT"] for row in named(found, "CUT_END")] == ["survey:a.fit"]
    assert {row["OBJECT"] for row in found if "OBJECT" in row} == {"survey:a.fit"}


@pytest.mark.parametrize("kind", KINDS)
def test_one_cut_tells_the_stages_that_many_tell(kind: str, tmp_path: Path, run: Path) -> None:
    one, many = (tmp_path / f"{name}.{kind}" for name in ("one", "many"))
    for file in (one, many):
        file.write_bytes(contents(noise(1), kind))
    with trace.recording(run):
        swathe.cut(str(one), box=(5, 5, 10, 10))
        swathe.cut_many(boxes([many], 1), tmp_path / "out", progress=False)
    found = rows(run)
    told = {
        file: {row["event"] for row in found if row.get("OBJECT") == str(file)}
        for file in (one, many)
    }
    assert told[many] - told[one] == {
        f"{stage}_{end}" for stage in ("HASH", "WRITE") for end in ("START", "END")
    }
    assert told[one] <= told[many] | {"SEEK_START", "SEEK_END"}
    starts, ends = (
        Counter(row["event"].removesuffix(end) for row in found if row["event"].endswith(end))
        for end in ("_START", "_END")
    )
    assert starts == ends - Counter(["TRACE"])
    for row in named(found, "PLAN_END"):
        assert row["REQUESTS"] >= 1 and row["BYTES"] > 0
        assert ("PREDICTED_S" in row) == (kind in ("fit", "fit.fz"))
    assert all(row["PREDICTED_S"] > 0 for row in named(found, "JOB_START"))


@pytest.mark.parametrize("kind", ["fit.gz", "fit.bz2"])
def test_seeks_in_a_compressed_file_are_told(kind: str, tmp_path: Path, run: Path) -> None:
    image = tmp_path / f"a.{kind}"
    image.write_bytes(contents(noise(1, (900, 1000)), kind))
    swathe.cut(str(image), box=(5, 880, 10, 10))
    with trace.recording(run):
        swathe.cut(str(image), box=(5, 890, 10, 10))
        swathe.cut(str(image), box=(5, 300, 10, 10))
    found = rows(run)
    starts, ends = named(found, "SEEK_START"), named(found, "SEEK_END")
    back, after = starts[-1], ends[-1]
    assert len(starts) == len(ends)
    assert 0 <= back["POINT"] <= back["TO"] < back["FROM"]
    assert back["TO"] // 2000 in (300, 301, 302)
    assert (after["RESULT"], after["OBJECT"]) == ("ok", str(image))
    # As much as had to be decoded to get there, and what came with it.
    assert back["TO"] - back["POINT"] <= after["BYTES"] <= back["TO"] - back["POINT"] + 2**18
    read = named(found, "READ_START")[-1], named(found, "READ_END")[-1]
    assert read[0]["ns"] <= back["ns"] <= after["ns"] <= read[1]["ns"]


def test_a_seek_that_fails_tells_no_bytes(tmp_path: Path, run: Path) -> None:
    image = tmp_path / "a.fit.gz"
    whole = contents(noise(1, (900, 1000)), "fit.gz")
    image.write_bytes(whole[: len(whole) * 4 // 5])
    file = swathe.open(image)
    with trace.recording(run):
        # The second time from the last seek point that was found.
        for _ in range(2):
            with pytest.raises(swathe.errors.SwatheError):
                file.image().cut_all_axes([5, 890], [15, 900], "strict")
    end = named(rows(run), "SEEK_END")[-1]
    assert end["RESULT"] == "error"
    assert "BYTES" not in end


def test_opening_is_told_only_where_something_is_read(tmp_path: Path, run: Path) -> None:
    image = tmp_path / "a.fit"
    image.write_bytes(contents(noise(1), "fit"))
    file = swathe.open(image)
    with trace.recording(run):
        assert len(file.hdus) == 1
        trace.point("READ")
        file.image().cut_all_axes([5, 5], [15, 15], "strict")
        with pytest.raises(swathe.errors.NoSuchHduError):
            file["NONE"]
    told = [row["event"] for row in rows(run)]
    assert "CUT_END" in told
    assert [name for name in told if name in ("OPEN_START", "OPEN_END", "READ")] == [
        *("OPEN_START", "OPEN_END", "READ")
    ]


def test_what_could_not_be_read_is_not_counted_as_read(tmp_path: Path, run: Path) -> None:
    whole = contents(noise(1, (3000, 100)), "fit.fz")
    table = whole.index(b"XTENSION")
    table = whole.index(b"END     ", table) // 2880 * 2880 + 2880
    image = tmp_path / "a.fit.fz.gz"
    # The table of tiles ends within its rows, and so does the file.
    packed = zlib.compressobj(0, zlib.DEFLATED, 31)
    image.write_bytes(packed.compress(whole[: table + 20_000]) + packed.flush(zlib.Z_FULL_FLUSH))
    with trace.recording(run), pytest.raises(swathe.errors.SwatheError):
        swathe.cut(str(image), box=(5, 5, 90, 2900))
    found = rows(run)
    read = named(found, "READ_END")[-1]
    assert (read["RESULT"], read["LVL"]) == ("error", "Error")
    assert read.get("BYTES", 0) <= 20_000 < named(found, "PLAN_END")[-1]["BYTES"]


def test_requests_to_a_server_are_told_without_secrets(tmp_path: Path, run: Path) -> None:
    if not Path(servers.NGINX).exists():
        pytest.skip("nginx is not installed")
    folder = tmp_path / "served"
    folder.mkdir()
    with servers.nginx(folder) as server:
        (server.folder / "a.fit").write_bytes(contents(noise(1, (900, 1000)), "fit"))
        url = f"{server.url}/a.fit".replace("://", "://user:hidden@") + "?token=hidden"
        targets = boxes([tmp_path], 30) | {"file": [url] * 30}
        with trace.recording(run):
            manifest = swathe.cut_many(targets, tmp_path / "out", progress=False)
    assert all(manifest["status"] == "ok")
    found = rows(run)
    fetched = named(found, "FETCH_END")
    # The prediction has opened the object before.
    of_job = [row["BYTES"] for row in fetched if "JOB" in row]
    assert sum(of_job) == manifest.meta["bytes_moved"]
    assert len({row["REQUEST"] for row in fetched}) == len(fetched) > 0
    assert all(row["RESULT"] == "ok" and row["STORE"] for row in fetched)
    assert {row["OBJECT"] for row in fetched} == {row["OBJECT"] for row in named(found, "CUT_END")}
    assert "hidden" not in run.read_text()
    begun, made = named(found, "CONNECT_START"), named(found, "CONNECT_END")
    # One that was not needed after all may still be under way.
    assert 0 < len(made) <= len(begun)
    host = url.split("@")[1].split("/")[0]
    assert all((row["SERVER"], row["RESULT"]) == (host, "ok") for row in made)
    (first, *_) = made
    (fetch,) = [row for row in fetched if row["REQUEST"] == first["REQUEST"]]
    assert fetch["OBJECT"] == first["OBJECT"] and fetch["STORE"] == first["STORE"]
    assert begun[0]["ns"] <= first["ns"] <= fetch["ns"]


def test_connections_that_are_refused_or_led_elsewhere_are_told(run: Path) -> None:
    port = servers.free_port()

    class Leads(Handler):
        def do_GET(self) -> None:
            self.answer(302, headers={"Location": f"http://127.0.0.1:{port}/a.fit"})

    with serving(Leads) as url:
        server = url.removeprefix("http://")
        with trace.recording(run), pytest.raises(swathe.errors.SwatheError):
            swathe.cut(f"{url}/a.fit", box=(5, 5, 10, 10))
    made = named(rows(run), "CONNECT_END")
    assert [(row["SERVER"], row["RESULT"]) for row in made] == [
        (server, "ok"),
        (f"127.0.0.1:{port}", "error"),
    ]
    assert "refused" in made[1]["REASON"] and made[1]["LVL"] == "Error"
    assert made[0]["REQUEST"] == made[1]["REQUEST"]


def test_cutouts_are_the_same_with_and_without(tmp_path: Path, run: Path) -> None:
    files = write_kinds(tmp_path, "a", noise(1))
    plain = swathe.cut_many(boxes(files, 40), tmp_path / "plain", progress=False)
    with trace.recording(run):
        traced = swathe.cut_many(boxes(files, 40), tmp_path / "traced", progress=False)
    assert list(plain["sha256"]) == list(traced["sha256"])


# ---- The command


def test_any_command_records(tmp_path: Path) -> None:
    image = tmp_path / "a.fit"
    image.write_bytes(contents(noise(1), "fit"))
    cut = ["cut", str(image), "--box", "5", "5", "10", "10", "-o", str(tmp_path / "o.fits")]
    cut.append("--overwrite")
    option, variable = tmp_path / "option.ulm", tmp_path / "variable.{pid}.ulm"
    for more, env in (
        (["--trace", str(option)], {}),
        ([], {"SWATHE_TRACE": str(variable)}),
    ):
        assert swathe_command(*more, *cut, env=env).returncode == 0
    (written,) = tmp_path.glob("variable.*.ulm")
    for path in (option, written):
        assert named(rows(path), "CUT_END")[0]["RESULT"] == "ok"
    failed = swathe_command("--trace", "ftp://x", *cut)
    assert failed.returncode == 2 and "ftp://" in failed.stderr
    lost = swathe_command("--trace", "/dev/full", *cut)
    assert lost.returncode == 0 and "events were dropped" in lost.stderr


def test_drops_that_nobody_can_be_told_of_do_not_fail_the_command(tmp_path: Path) -> None:
    image = tmp_path / "a.fit"
    image.write_bytes(contents(noise(1), "fit"))
    command = [sys.executable, "-m", "swathe.cli", "--trace", "/dev/full", "info", str(image)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=full)
    assert done.returncode == 0


def test_what_a_command_starts_does_not_overwrite_its_memory(
    tmp_path: Path,
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    image = tmp_path / "a.fit"
    image.write_bytes(contents(noise(1), "fit"))
    cut = ["cut", str(image), "--box", "5", "5", "10", "10", "-o", str(tmp_path / "o.fits")]
    cut.append("--overwrite")
    monkeypatch.setenv(trace.VARIABLE, f"memory:{run}?mb=2")
    Runner(monkeypatch, capsys)(*cut)
    trace.stop()
    own = run.read_bytes()
    assert swathe_command(*cut).returncode == 0
    worker = "from swathe import trace; trace.from_environment(); trace.point('WORKED')"
    for variable in (None, f"memory:{run}"):
        if variable:
            monkeypatch.setenv(trace.VARIABLE, variable)
        subprocess.run([sys.executable, "-c", worker], check=True)
    assert run.read_bytes() == own
    assert named(rows(run), "CUT_END")
    # Hosts may share the folder.
    others = [rows(path) for path in tmp_path.glob(f"run.ulm.{this_host()}.*")]
    assert sorted(found[0]["event"] for found in others) == ["OPEN_START", "WORKED", "WORKED"]


def test_import_of_trace_loads_no_numpy() -> None:
    code = "import swathe.trace, sys; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("place", ["{}", "memory:{}"])
def test_no_output_replaces_the_trace(tmp_path: Path, place: str) -> None:
    path = tmp_path / "x.fits"
    image = tmp_path / "image.fits"
    image.write_bytes(frame(10.0))
    (tmp_path / "link").symlink_to(tmp_path)
    table = {"id": ["x"], "file": [str(image)], "x0": [0], "y0": [0], "width": [2], "height": [2]}
    message = "x.fits: cannot write: events are recorded in this file"
    with trace.recording(place.format(path)):
        cutout = swathe.cut(image, box=(0, 0, 2, 2))
        for output in (path, tmp_path / "link/x.fits"):
            with pytest.raises(OutputError, match=message):
                cutout.write(output, overwrite=True)
        for output in (path, tmp_path):
            with pytest.raises(OutputError, match=message):
                swathe.cut_many(table, output, overwrite=True)
    assert path.read_bytes().startswith(b"DATE=")
    path.unlink()
    swathe.cut(image, box=(0, 0, 2, 2)).write(path)
