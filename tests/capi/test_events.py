"""Events of programs in C, Java and Perl: `swathe trace report` reads them with ours."""

from __future__ import annotations

import ctypes
import errno
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import swathe
from swathe.trace.collect import Collector
from tests.capi.test_reading import content, fails
from tests.support.c_library import EXAMPLES, Library
from tests.support.fits_frames import contents, noise
from tests.support.servers import FileServer
from tests.support.traces import named, rows

TRACE = EXAMPLES / "trace"


@pytest.fixture
def recording(library: Library, tmp_path: Path) -> Iterator[Path]:
    """The file that events go to."""
    path = tmp_path / "run.ulm"
    library.call("trace_open", path, "reduce")
    yield path
    library.call("trace_close")


def test_events_are_lines_of_ulm(library: Library, recording: Path) -> None:
    library.call("trace_event", "REDUCE_START", None)
    fields = r'GRANULE="night \"12\"" BYTES=17 RESULT=error'
    library.call("trace_event", "REDUCE_END", fields)
    library.call("trace_close")
    first, last, end = rows(recording)
    assert (first["event"], last["event"], end["event"]) == (
        "REDUCE_START", "REDUCE_END", "TRACE_END",
    )  # fmt: skip
    assert (last["GRANULE"], last["BYTES"]) == ('night "12"', 17)
    line = recording.read_text().splitlines()[1]
    assert " PROG=reduce LVL=Error NL.EVNT=REDUCE_END " in line


def test_events_that_cannot_be(library: Library, recording: Path, tmp_path: Path) -> None:
    fails(library, errno.EBUSY, "trace_open", tmp_path / "other.ulm", "p")
    for name, fields in (
        ("reduce", None), ("", None), ("R", "bytes=1"), ("R", "BYTES"), ("R", "PID=1"),
        ("R", "A=1 A=2"),
    ):  # fmt: skip
        fails(library, errno.EINVAL, "trace_event", name, fields)
    fails(library, errno.EFAULT, "trace_event", None, None)
    library.call("trace_close")
    assert [row["event"] for row in rows(recording)] == ["TRACE_END"]


def test_recording_is_on_only_between(library: Library, tmp_path: Path) -> None:
    library.call("trace_event", "NOBODY_LISTENS", None)
    library.call("trace_close")
    fails(library, errno.EINVAL, "trace_open", "http://host/x", "p")
    fails(library, errno.ENOENT, "trace_open", tmp_path / "no" / "folder", "p")
    fails(library, errno.EFAULT, "trace_open", tmp_path / "a.ulm", None)


def test_the_report_has_stages_of_both(
    library: Library, server: FileServer, recording: Path, tmp_path: Path
) -> None:
    (server.folder / "a.fits").write_bytes(contents(noise(1), "fits"))
    library.call("trace_event", "REDUCE_START", "OBJECT=a")
    handle = library.open(f"{server.url}/a.fits")
    box = (ctypes.c_int64 * 4)(1, 2, 30, 40)
    library.call("cut", handle, None, box, 0, tmp_path / "cutout.fits")
    library.close(handle)
    library.call("trace_event", "REDUCE_END", "OBJECT=a RESULT=ok")
    library.call("trace_close")
    events = rows(recording)
    assert named(events, "CUT_END")
    assert named(events, "FETCH_END")
    report = swathe.trace.report(str(recording))
    stages = {stage.name for stage in report.stages}
    assert {"REDUCE", "CUT", "FETCH"} <= stages


def collected(tmp_path: Path, command: list[str]) -> list[dict[str, object]]:
    """Run a sender with host and port of a collector; gives the events."""
    output = tmp_path / "run.ulm"
    with Collector(output) as collector:
        host, port = collector.address.removeprefix("tcp://").split(":")
        subprocess.run([*command, host, port], check=True, timeout=300)
        counts = collector.stop()
    assert (counts.senders, counts.damaged, counts.half) == (1, 0, 0)
    return rows(output)


@pytest.mark.parametrize("kind", ["java", "perl"])
def test_programs_without_the_library_send_lines(tmp_path: Path, kind: str) -> None:
    program = shutil.which(kind)
    if program is None or (kind == "java" and shutil.which("javac") is None):
        pytest.skip(f"{kind} is not installed")
    source = TRACE / ("Trace.java" if kind == "java" else "trace.pl")
    events = collected(tmp_path, [program, str(source)])
    (end,) = named(events, "REDUCE_END")
    assert (end["GRANULE"], end["BYTES"], end["RESULT"]) == ("night 12", 25920, "ok")
    (start,) = named(events, "REDUCE_START")
    assert end["ns"] > start["ns"]
    report = swathe.trace.report(str(tmp_path / "run.ulm"))
    assert "REDUCE" in {stage.name for stage in report.stages}


def test_the_collector_takes_events_of_the_library(library: Library, tmp_path: Path) -> None:
    output = tmp_path / "run.ulm"
    (tmp_path / "object").write_bytes(content(10))
    with Collector(output) as collector:
        library.call("trace_open", collector.address, "reduce")
        library.call("trace_event", "REDUCED", "BYTES=10")
        library.call("trace_close")
        collector.stop()
    assert [row["BYTES"] for row in named(rows(output), "REDUCED")] == [10]
