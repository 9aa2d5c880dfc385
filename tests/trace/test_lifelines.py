"""Lifelines, load-lines and pairs of small traces, against what was worked out by hand."""

from __future__ import annotations

import itertools
import json
import os
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray
from PIL import Image

from swathe import trace
from swathe.core.errors import NotFoundError, OutputError, SourceError
from swathe.trace import Events, read
from swathe.trace.analysis.align_clocks import on_one_clock
from swathe.trace.analysis.stages import lanes, partners
from swathe.trace.viewer import live
from swathe.trace.viewer import tail as growing
from swathe.trace.viewer.encode import encode_view
from swathe.trace.viewer.figure import density, figure, save, segments
from swathe.trace.viewer.lifelines import DONE, EMPTY, FAILED, OPEN, Lifelines, TracedEvents
from swathe.trace.viewer.live import EventTail, LiveView, merge_events
from swathe.trace.viewer.loads import LoadLine, bin_rates, first_loads, loads, series
from tests.support import traces


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look whenever it is asked for, also where this machine is slow."""
    monkeypatch.setattr(live, "REST", 0)


def events_of(folder: Path, *rows: tuple[Any, ...]) -> Events:
    """Read a trace of such rows: microseconds, event, and other fields as text or a mapping."""
    text = []
    for at, event, *told in rows:
        fields = dict(part.split("=") for part in " ".join(told).split())
        host = fields.pop("HOST", "a")
        text.append(traces.line(at, event, host, **{"PID": 1, **fields}))
    (folder / "run.ulm").write_text("\n".join(text) + "\n")
    return read(folder / "run.ulm")


def steps(traced: TracedEvents, lines: Lifelines) -> dict[str, list[tuple[int, str]]]:
    """Give what each line goes through, by its name: microseconds and event."""
    events = traced.events
    start = events.time_ns[0]
    words = events.event.words
    made = {}
    for number in range(len(lines)):
        points = lines.points[lines.starts[number] : lines.starts[number + 1]]
        made[lines.words[lines.names[number]]] = [
            (int(events.time_ns[point] - start) // 1000, words[events.event.codes[point]])
            for point in points
        ]
    return made


def test_lanes_rise_as_a_cut_does(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (0, "CUT_END"),
        (1, "REDUCE_END"),
        (2, "REDUCE_START"),
        (3, "CPU"),
        (4, "JOB_START"),
        (5, "JOB_END"),
        (6, "CUT_START"),
        (7, "CACHE_HIT"),
        (8, "OPEN_START"),
        (9, "MARK"),
        (10, "SEEK_END"),
        (11, "CONNECT_START"),
        (12, "READ_START"),
        (13, "READ_END"),
    )
    assert lanes(found) == [
        *("JOB_START", "OPEN_START", "CUT_START", "READ_START", "CONNECT_START", "CACHE_HIT"),
        *("SEEK_END", "READ_END", "CUT_END"),
        *("REDUCE_START", "REDUCE_END", "MARK", "JOB_END"),
    ]


@pytest.mark.parametrize(("fetched", "first"), [(5, "FETCH_START"), (15, "CUT_START")])
def test_fetches_are_where_the_trace_has_them(tmp_path: Path, fetched: int, first: str) -> None:
    found = events_of(
        tmp_path,
        (10, "CUT_START", "TARGET=t OBJECT=o"),
        (fetched, "FETCH_START", "OBJECT=o"),
        (20, "CUT_END", "TARGET=t OBJECT=o"),
    )
    assert lanes(found)[0] == first


def test_pairs_have_the_same_ids(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (0, "CUT_START", "TARGET=a THREAD=1"),
        (1, "CUT_START", "TARGET=b THREAD=1"),
        (2, "CUT_END", "TARGET=a THREAD=1"),
        (3, "READ_START", "TARGET=b"),
        (4, "CUT_END", "TARGET=c THREAD=1"),
        (5, "CUT_END", "TARGET=b THREAD=2"),
        (6, "CUT_START", "HOST=z TARGET=a THREAD=1"),
        (7, "STEP_START", "THREAD=1"),
        (8, "STEP_START", "THREAD=2"),
        (9, "STEP_START", "THREAD=2"),
        (10, "STEP_END", "THREAD=2"),
        (11, "STEP_END", "THREAD=1"),
        (12, "STEP_END", "THREAD=2"),
    )
    # An end on another thread is found; of stages within one another the inner one is first.
    expected = [2, 5, 0, -1, -1, 1, -1, 11, 12, 10, 9, 7, 8]
    assert partners(found).tolist() == expected


def test_line_joins_what_its_object_shares(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (0, "JOB_START", "JOB=j"),
        (1, "OPEN_START", "JOB=j OBJECT=o"),
        (2, "OPEN_START", "JOB=j OBJECT=other"),
        (3, "OPEN_END", "JOB=j OBJECT=o"),
        (4, "OPEN_END", "JOB=j OBJECT=other"),
        (5, "FETCH_START", "JOB=j OBJECT=o REQUEST=1"),
        (6, "FETCH_START", "JOB=j OBJECT=o REQUEST=2"),
        (7, "FETCH_END", "JOB=j OBJECT=o REQUEST=1"),
        (9, "CUT_START", "JOB=j OBJECT=o TARGET=a"),
        (10, "CUT_END", "JOB=j OBJECT=o TARGET=a RESULT=ok"),
        (11, "FETCH_END", "JOB=j OBJECT=o REQUEST=2"),
        (12, "CUT_START", "JOB=j OBJECT=o TARGET=b"),
        (13, "CUT_END", "JOB=j OBJECT=o TARGET=b RESULT=ok"),
        (14, "JOB_END", "JOB=j"),
        (15, "JOB_START", "JOB=later"),
    )
    traced = TracedEvents(found)
    shared = [(0, "JOB_START"), (1, "OPEN_START"), (3, "OPEN_END")]
    first = [(5, "FETCH_START"), (7, "FETCH_END"), (9, "CUT_START"), (10, "CUT_END")]
    second = [(6, "FETCH_START"), (11, "FETCH_END"), (12, "CUT_START"), (13, "CUT_END")]
    assert steps(traced, traced.lines("target")) == {
        "a": [*shared, *first, (14, "JOB_END")],
        "b": [*shared, *second, (14, "JOB_END")],
    }


def test_job_began_in_a_process_with_any_line(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (0, "CUT_START", "JOB=j PID=2 OBJECT=o TARGET=b"),
        (1, "CUT_END", "JOB=j PID=1 OBJECT=o TARGET=b"),
        (2, "FETCH_START", "PID=1 OBJECT=o REQUEST=1"),
        (3, "FETCH_END", "PID=1 OBJECT=o REQUEST=1"),
        (4, "CUT_START", "JOB=j PID=1 OBJECT=o TARGET=a"),
        (5, "CUT_END", "JOB=j PID=1 OBJECT=o TARGET=a"),
    )
    traced = TracedEvents(found)
    names = [name for _, name in steps(traced, traced.lines("target"))["a"]]
    assert names == ["FETCH_START", "FETCH_END", "CUT_START", "CUT_END"]


def test_line_of_a_second_job_has_nothing_of_the_first(tmp_path: Path) -> None:
    ids = "WORKER=w HOST=a OBJECT=o"
    found = events_of(
        tmp_path,
        (0, "JOB_START", "JOB=first PID=2"),
        (1, "BATCH_START", "JOB=first WORKER=w"),
        (2, "CACHE_MISS", f"JOB=first {ids}"),
        (3, "CUT_START", f"JOB=first TARGET=a {ids}"),
        (4, "CUT_END", f"JOB=first TARGET=a {ids}"),
        (5, "FETCH_START", "HOST=a OBJECT=o REQUEST=1"),
        (6, "FETCH_END", "HOST=a OBJECT=o REQUEST=1"),
        (7, "JOB_START", "JOB=second PID=2"),
        (8, "BATCH_START", "JOB=second WORKER=w"),
        (9, "CACHE_HIT", f"JOB=second {ids}"),
        (10, "CUT_START", f"JOB=second TARGET=b {ids}"),
        (11, "CUT_END", f"JOB=second TARGET=b {ids}"),
        (12, "BATCH_END", "JOB=second WORKER=w"),
        (13, "JOB_END", "JOB=second PID=2"),
    )
    traced = TracedEvents(found)
    assert steps(traced, traced.lines("target"))["b"] == [
        *[(7, "JOB_START"), (8, "BATCH_START"), (9, "CACHE_HIT"), (10, "CUT_START")],
        *[(11, "CUT_END"), (12, "BATCH_END"), (13, "JOB_END")],
    ]


def test_fetch_that_a_read_waits_for_is_joined(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (1, "CUT_START", "OBJECT=o TARGET=a"),
        (2, "READ_START", "OBJECT=o TARGET=a"),
        (3, "FETCH_START", "OBJECT=o REQUEST=1"),
        (8, "FETCH_END", "OBJECT=o REQUEST=1"),
        (9, "READ_END", "OBJECT=o TARGET=a"),
        (10, "CUT_END", "OBJECT=o TARGET=a"),
        (11, "FETCH_START", "OBJECT=o REQUEST=2"),
        (12, "FETCH_END", "OBJECT=o REQUEST=2"),
    )
    traced = TracedEvents(found)
    (line,) = steps(traced, traced.lines("target")).values()
    assert [name for _, name in line] == [
        *("CUT_START", "READ_START", "FETCH_START", "FETCH_END", "READ_END", "CUT_END")
    ]


def test_tiles_that_targets_share_are_those_of_their_thread(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (0, "READ_START", "OBJECT=o THREAD=1"),
        (3, "READ_END", "OBJECT=o THREAD=1"),
        (4, "CUT_START", "OBJECT=o THREAD=1 TARGET=a"),
        (4, "CUT_START", "OBJECT=o THREAD=1 TARGET=b"),
        (4, "READ_START", "OBJECT=o THREAD=1"),
        (5, "READ_START", "OBJECT=o THREAD=2"),
        (6, "READ_END", "OBJECT=o THREAD=2"),
        (7, "READ_END", "OBJECT=o THREAD=1"),
        (8, "READ_START", "OBJECT=o THREAD=1"),
        (9, "READ_END", "OBJECT=o THREAD=1"),
        (10, "CUT_END", "OBJECT=o THREAD=1 TARGET=a"),
        (11, "CUT_END", "OBJECT=o THREAD=1 TARGET=b"),
    )
    traced = TracedEvents(found)
    read = [(4, "CUT_START"), (4, "READ_START"), (7, "READ_END")]
    assert steps(traced, traced.lines("target")) == {
        "a": [*read, (10, "CUT_END")],
        "b": [*read, (11, "CUT_END")],
    }


def test_a_line_with_a_stage_of_its_own_shares_none_like_it(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (0, "CUT_START", "OBJECT=o THREAD=1 TARGET=a"),
        (0, "CUT_START", "OBJECT=o THREAD=1 TARGET=b"),
        (1, "HASH_START", "OBJECT=o THREAD=1"),
        (2, "HASH_END", "OBJECT=o THREAD=1"),
        (3, "CUT_END", "OBJECT=o THREAD=1 TARGET=a"),
        (4, "HASH_START", "OBJECT=o THREAD=1 TARGET=b"),
        (5, "HASH_END", "OBJECT=o THREAD=1 TARGET=b"),
        (6, "CUT_END", "OBJECT=o THREAD=1 TARGET=b"),
    )
    traced = TracedEvents(found)
    assert steps(traced, traced.lines("target")) == {
        "a": [(0, "CUT_START"), (1, "HASH_START"), (2, "HASH_END"), (3, "CUT_END")],
        "b": [(0, "CUT_START"), (4, "HASH_START"), (5, "HASH_END"), (6, "CUT_END")],
    }


def test_line_that_stops_says_so(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (0, "CUT_START", "TARGET=stopped OBJECT=o"),
        (1, "READ_START", "TARGET=stopped OBJECT=o"),
        (2, "FETCH_START", "OBJECT=o REQUEST=1"),
        (3, "CUT_START", "TARGET=outside"),
        (4, "CUT_END", "TARGET=outside RESULT=no-overlap"),
        (5, "CUT_START", "TARGET=broken"),
        (6, "CUT_END", "TARGET=broken RESULT=error"),
        (7, "CUT_START", "TARGET=good"),
        (8, "CUT_END", "TARGET=good RESULT=ok"),
    )
    traced = TracedEvents(found)
    lines = traced.lines("target")
    told = {lines.words[name]: how for name, how in zip(lines.names, lines.outcome, strict=True)}
    assert told == {"stopped": OPEN, "outside": EMPTY, "broken": FAILED, "good": DONE}
    assert steps(traced, lines)["stopped"] == [(0, "CUT_START"), (1, "READ_START")]


def test_same_target_of_two_jobs_and_two_processes_is_four_lines(tmp_path: Path) -> None:
    rows = [
        (at, name, f"TARGET=a {ids}")
        for at, name in ((0, "CUT_START"), (5, "CUT_END"))
        for ids in ("JOB=x HOST=p", "JOB=y HOST=p", "HOST=p", "HOST=q")
    ]
    # One job on two hosts is one line.
    rows.append((9, "WRITE_START", "TARGET=a JOB=x HOST=q"))
    lines = TracedEvents(events_of(tmp_path, *rows)).lines("target")
    assert sorted(np.diff(lines.starts).tolist()) == [2, 2, 2, 3]


def test_kinds_of_lines(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (0, "JOB_START", "JOB=j"),
        (1, "FETCH_START", "JOB=j OBJECT=o REQUEST=7"),
        (2, "CONNECT_START", "JOB=j OBJECT=o REQUEST=7"),
        (3, "CONNECT_END", "JOB=j OBJECT=o REQUEST=7"),
        (4, "FETCH_END", "JOB=j OBJECT=o REQUEST=7"),
        (5, "JOB_END", "JOB=j"),
        (6, "TALLY"),
    )
    traced = TracedEvents(found)
    assert traced.kinds() == ["object", "request", "job", "stage"]
    request = steps(traced, traced.lines("request"))
    assert request == {
        "7": [(1, "FETCH_START"), (2, "CONNECT_START"), (3, "CONNECT_END"), (4, "FETCH_END")]
    }
    assert steps(traced, traced.lines("job")) == {"j": [(0, "JOB_START"), (5, "JOB_END")]}
    alone = traced.lines("stage")
    assert [n.item() for n in np.diff(alone.starts)] == [2, 2, 2, 1]
    with pytest.raises(
        ValueError, match=r"target, object, request, lifeline, portal, job, .*, found 'x'"
    ):
        traced.lines("x")


def test_a_line_of_a_request_to_a_portal_goes_through_all_that_was_done_for_it(
    tmp_path: Path,
) -> None:
    one, other = "PORTAL=portal-1", "PORTAL=portal-2"
    found = events_of(
        tmp_path,
        (0, "PORTAL_START", one),
        (1, "PORTAL_START", other),
        (2, "FETCH_START", f"{one} OBJECT=o REQUEST=1"),
        (3, "FETCH_START", f"{other} OBJECT=o REQUEST=2"),
        (4, "FETCH_END", f"{other} OBJECT=o REQUEST=2"),
        (5, "PORTAL_END", other),
        (6, "FETCH_END", f"{one} OBJECT=o REQUEST=1"),
        (7, "PORTAL_END", one),
    )
    traced = TracedEvents(found)
    assert traced.kinds() == ["object", "request", "portal", "stage"]
    names = ("PORTAL_START", "FETCH_START", "FETCH_END", "PORTAL_END")
    assert steps(traced, traced.lines("portal")) == {
        "portal-1": list(zip((0, 2, 6, 7), names, strict=True)),
        "portal-2": list(zip((1, 3, 4, 5), names, strict=True)),
    }


def test_clocks_are_on_one_clock(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (1000, "CUT_START", "HOST=slow TARGET=a"),
        (1100, "CUT_END", "HOST=slow TARGET=a"),
        (2900, "JOB_START", "HOST=good JOB=j"),
        (5000, "CLOCK", "HOST=good SENDER=slow:1 OFFSET_S=-0.002 SPREAD_S=0.0001"),
    )
    made = on_one_clock(found)
    words = [made.event.words[code] for code in made.event.codes]
    assert words == ["JOB_START", "CUT_START", "CUT_END", "CLOCK"]
    start = found.time_ns[0] - 1_000_000
    assert ((made.time_ns - start) // 1000).tolist() == [2900, 3000, 3100, 5000]
    host = made.fields["HOST"]
    assert not isinstance(host, np.ndarray)
    assert [host.words[code] for code in host.codes] == ["good", "slow", "slow", "good"]


def test_clock_that_drifts_is_followed(tmp_path: Path) -> None:
    told = "HOST=c SENDER=s:1 SPREAD_S=0.001"
    found = events_of(
        tmp_path,
        (0, "CLOCK", f"{told} OFFSET_S=0.000100"),
        (5000, "MARK", "HOST=s"),
        (10000, "CLOCK", f"{told} OFFSET_S=0.000300"),
        (90000, "MARK", "HOST=s"),
    )
    made = on_one_clock(found)
    # The sender's clock said 100 and 10300 when it was asked: at 5000 it was 196 ahead.
    assert ((made.time_ns - found.time_ns[0]) // 1000).tolist() == [0, 4803, 10000, 89700]


def test_damaged_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    good = traces.line(0, "CUT_START", TARGET="a", PID=1)
    (tmp_path / "run.ulm").write_text(f"{good}\nnonsense\nDATE=2026 NL.EVNT=X\n")
    shown = LiveView([tmp_path / "run.ulm"], grows=False)
    header = encode_view(shown.trace()).header
    assert header["damaged_count"] == 2
    assert [line for line, _ in header["damaged"]] == [2, 3]
    assert header["count"] == 1


def load_of(traced: TracedEvents, name: str) -> LoadLine:
    return next(load for load in loads(traced) if load.name == name)


def changes(traced: TracedEvents, name: str) -> list[tuple[int, float]]:
    (line,) = series(traced, load_of(traced, name))
    start = traced.events.time_ns[0]
    times = ((line.time_ns - start) // 1000).tolist()
    return list(zip(times, line.values.tolist(), strict=True))


def test_load_lines(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (0, "FETCH_START", "REQUEST=1"),
        (10, "FETCH_START", "REQUEST=2"),
        (20, "FETCH_END", "REQUEST=1 BYTES=4000"),
        (30, "FETCH_END", "REQUEST=9 BYTES=777"),
        (40, "FETCH_END", "REQUEST=2 BYTES=6000"),
        (50, "FETCH_START", "REQUEST=3"),
    )
    traced = TracedEvents(found)
    # An end without a start ends nothing; a start without an end goes on.
    assert changes(traced, "FETCH in progress") == [(0, 1), (10, 2), (20, 1), (40, 0), (50, 1)]
    flow = [(0, 200e6), (10, 400e6), (20, 200e6), (40, 0)]
    told = changes(traced, "FETCH bytes")
    assert [at for at, _ in told] == [at for at, _ in flow]
    assert [speed for _, speed in told] == pytest.approx([speed for _, speed in flow])
    (done,) = series(traced, load_of(traced, "FETCH done"))
    edges: NDArray[np.int64] = found.time_ns[0] + np.array([0, 25_000, 50_000])
    assert bin_rates(done, edges).tolist() == [40_000, 80_000]


def test_gauges_are_told_apart(tmp_path: Path) -> None:
    found = events_of(
        tmp_path,
        (0, "DISK", "HOST=a DEVICE=sda BUSY_PERCENT=10"),
        (0, "DISK", "HOST=a DEVICE=sdb BUSY_PERCENT=20"),
        (1, "DISK", "HOST=b DEVICE=sda BUSY_PERCENT=30"),
        (2, "DISK", "HOST=a DEVICE=sda BUSY_PERCENT=40"),
        (3, "PING", "HOST=a STORE=s RESULT=error"),
        (4, "PING", "HOST=a STORE=s RTT_S=0.5"),
    )
    traced = TracedEvents(found)
    busy = load_of(traced, "DISK busy")
    assert busy.unit == "%"
    told = {line.name: line.values.tolist() for line in series(traced, busy)}
    assert told == {"a sda": [10, 40], "a sdb": [20], "b sda": [30]}
    (ping,) = series(traced, load_of(traced, "PING rtt"))
    assert ping.values.tolist() == [0.5]
    assert [load.name for load in first_loads(loads(traced))] == ["DISK busy"]


def header_of(parts: list[bytes | memoryview]) -> dict[str, Any]:
    whole = b"".join(parts)
    (length,) = struct.unpack_from("<I", whole)
    header: dict[str, Any] = json.loads(whole[8 : 8 + length])
    return header


def test_trace_without_events_is_shown(tmp_path: Path) -> None:
    (tmp_path / "run.ulm").write_text("")
    traced = LiveView([tmp_path / "run.ulm"], grows=False).trace()
    assert encode_view(traced).header["count"] == 0
    for kind in traced.kinds():
        assert len(traced.lines(kind)) == 0
    save(figure(traced, "none"), tmp_path / "none.png")


def test_tail_gives_what_reading_at_once_gives(tmp_path: Path) -> None:
    text = traces.job(6, 5, hosts=2)
    path = tmp_path / "run.ulm"
    path.write_text("")
    tail = EventTail([path])
    assert not tail.read_on()
    # Cut in the middle of lines, and not in order of their times.
    whole = "\n".join([*text[200:], *text[:200]]) + "\n"
    for at in range(0, len(whole), 9_973):
        with path.open("a") as file:
            file.write(whole[at : at + 9_973])
        assert tail.read_on()
        assert not tail.read_on()
    assert tail.events is not None
    at_once = read(path)
    assert (tail.events.time_ns == at_once.time_ns).all()
    assert tail.events.fields.keys() == at_once.fields.keys()
    ours, theirs = TracedEvents(tail.events).lines("target"), TracedEvents(at_once).lines("target")
    assert sorted(ours.words) == sorted(theirs.words)
    assert steps(TracedEvents(tail.events), ours) == steps(TracedEvents(at_once), theirs)


def test_rotated_file_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "run.ulm"
    path.write_text(traces.line(0, "A", PID=1) + "\n")
    tail = EventTail([path])
    tail.read_on()
    path.rename(tmp_path / "run.ulm.1")
    path.write_text(traces.line(5, "B", PID=1, BYTES=7) + "\n")
    assert tail.read_on()
    assert tail.events is not None
    assert tail.events.event.words == ("A", "B")
    moved = tail.events.fields["BYTES"]
    assert isinstance(moved, np.ndarray)
    assert np.isnan(moved[0])
    assert moved[1] == 7


def append(path: Path, *events: str) -> None:
    """Append lines, each a microsecond after the last of all that were written so far."""
    with path.open("a") as file:
        for event in events:
            file.write(traces.line(next(MOMENTS), event, PID=1) + "\n")


MOMENTS = itertools.count()


def rotate(path: Path) -> None:
    """Rename a file and those renamed before, as recorders do."""
    last = 1
    while path.with_name(f"{path.name}.{last}").exists():
        last += 1
    for number in range(last, 1, -1):
        path.with_name(f"{path.name}.{number - 1}").rename(f"{path}.{number}")
    path.rename(f"{path}.1")


def names(tail: EventTail) -> str:
    """Give the one-letter names of events, in order."""
    assert tail.events is not None
    return "".join(tail.events.event.words[code] for code in tail.events.event.codes)


def test_lines_written_before_the_rotation_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.ulm"
    append(path, "A")
    tail = EventTail([path])
    tail.read_on()
    append(path, "B", "C")
    rotate(path)
    assert tail.read_on()
    assert names(tail) == "ABC"
    append(path, "D")
    # Who has it open may not know yet.
    append(tmp_path / "run.ulm.1", "E")
    assert tail.read_on()
    assert names(tail) == "ABCDE"
    assert not tail.left_out


def test_files_rotated_since_the_last_look_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.ulm"
    append(tmp_path / "run.ulm.1", "X")
    os.utime(tmp_path / "run.ulm.1", (1, 1))
    append(path, "A")
    tail = EventTail([path])
    tail.read_on()
    for some in ("BC", "D", "EF"):
        append(path, *some)
        rotate(path)
    append(path, "G")
    assert tail.read_on()
    # Not what was there before.
    assert names(tail) == "ABCDEFG"
    assert not tail.left_out
    rotate(path)
    append(path, "H")
    rotate(path)
    append(path, "I")
    # What is removed as the oldest may have been behind others.
    for number in (2, 3, 4, 5, 6):
        (tmp_path / f"run.ulm.{number}").unlink()
    assert tail.read_on()
    assert names(tail) == "ABCDEFGHI"
    assert tail.left_out


def test_a_file_begun_anew_takes_no_old_ones(tmp_path: Path) -> None:
    path = tmp_path / "run.ulm"
    append(tmp_path / "run.ulm.1", "X")
    os.utime(tmp_path / "run.ulm.1", (1, 1))
    append(path, "A")
    tail = EventTail([path])
    tail.read_on()
    path.unlink()
    append(path, "B")
    assert tail.read_on()
    assert names(tail) == "AB"
    assert not tail.left_out


@pytest.mark.parametrize("order", [("run.ulm.1", "run.ulm"), ("run.ulm", "run.ulm.1")])
def test_both_names_of_a_rotated_file_are_it_once(
    tmp_path: Path, order: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "LINGER_S", 0)
    path = tmp_path / "run.ulm"
    tail = EventTail([tmp_path / name for name in order])
    for some in ("A", "BC", "D", "E"):
        append(path, *some[:1])
        tail.read_on()
        append(path, *some[1:])
        rotate(path)
        tail.read_on()
        tail.read_on()
    assert names(tail) == "ABCDE"


def test_a_rotated_file_is_left_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.ulm"
    append(path, "A")
    tail = EventTail([path])
    tail.read_on()
    path.write_text(path.read_text() + traces.line(next(MOMENTS), "B", PID=1)[:30])
    rotate(path)
    append(path, "C")
    tail.read_on()
    held = {Path(each.path).name for each in psutil.Process().open_files()}
    assert {"run.ulm", "run.ulm.1"} <= held
    monkeypatch.setattr(growing, "LINGER_S", 0)
    assert tail.read_on()
    assert names(tail) == "AC"
    # Half a line.
    assert tail.events is not None
    assert tail.events.damaged_count == 1
    held = {Path(each.path).name for each in psutil.Process().open_files()}
    assert "run.ulm" in held
    assert "run.ulm.1" not in held


def test_a_file_that_is_being_recorded_and_rotated_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "run.ulm"
    tail = EventTail([path])
    trace.start(f"{path}?rotate_mb=1&keep=100")
    for number in itertools.count():
        trace.point("STEP", number=number, text="x" * 100)
        if number % 1500 == 0:
            tail.read_on()
            if len(list(tmp_path.iterdir())) > 3:
                break
    counts = trace.stop()
    tail.read_on()
    assert tail.events is not None
    # And its end.
    assert len(tail.events.time_ns) == counts.written + 1
    assert tail.events.damaged_count == 0
    assert not tail.left_out


@pytest.fixture
def with_news(tmp_path: Path) -> tuple[LiveView, str]:
    """Give events that were shown once and are more now, and the version that was seen."""
    path = tmp_path / "run.ulm"
    append(path, "A")
    shown = LiveView([path])
    seen, _ = shown.data("")
    append(path, "B")
    return shown, seen


def test_what_cannot_be_laid_down_is_told_and_comes_again(
    with_news: tuple[LiveView, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, seen = with_news
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp_path / "none"))
        for _ in range(2):
            with pytest.raises(OutputError, match=r"none.*No such file.*new events wait"):
                shown.data(seen)
    _, parts = shown.data(seen)
    assert parts is not None
    assert header_of(parts)["count"] == 2


def test_a_look_that_fails_is_not_made_at_once_again(
    with_news: tuple[LiveView, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, seen = with_news
    monkeypatch.setattr(live, "REST", 1e9)
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp_path / "none"))
        with pytest.raises(OutputError, match="new events wait"):
            shown.data(seen)
    with pytest.raises(OutputError, match="new events wait"):
        shown.data(seen)


def test_names_of_others_beside_a_followed_file_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "run.ulm"
    append(path, "A")
    tail = EventTail([path])
    tail.read_on()
    path.unlink()
    (tmp_path / "run.ulm.1").mkdir()
    append(path, "B")
    assert tail.read_on()
    assert names(tail) == "AB"


def test_numbers_join_words(tmp_path: Path) -> None:
    words = events_of(tmp_path, (0, "A", "KEY=x"))
    numbers = events_of(tmp_path, (1, "A"))
    mixed = Events(
        numbers.time_ns,
        numbers.event,
        {**numbers.fields, "KEY": np.array([12.0])},
        (),
        0,
    )
    column = merge_events(words, mixed).fields["KEY"]
    assert not isinstance(column, np.ndarray)
    assert [column.words[code] for code in column.codes] == ["x", "12"]


def put_together(parts: list[bytes | memoryview], before: bytes) -> bytes:
    """Do what the viewer does with what it is sent; gives the arrays."""
    sent, made = b"".join(parts), before
    while sent:
        length, size = struct.unpack_from("<II", sent)
        header, sent = json.loads(sent[8 : 8 + length]), sent[8 + length :]
        if "copies" not in header:
            made, sent = sent[:size], sent[size:]
            continue
        whole = b""
        for at, to, many in header["copies"]:
            fresh = to - len(whole)
            whole += sent[:fresh] + made[at : at + many]
            sent = sent[fresh:]
        fresh = size - len(whole)
        made, sent = whole + sent[:fresh], sent[fresh:]
    return made


def test_only_what_is_new_is_sent(tmp_path: Path) -> None:
    text = traces.job(60, 10, hosts=2)
    path = tmp_path / "run.ulm"
    path.write_text("\n".join(text[:4000]) + "\n")
    shown = LiveView([path])
    version, parts = shown.data("")
    assert parts is not None
    of_first, had, bytes_ = version, put_together(parts, b""), [sum(map(len, parts))]
    of_all = had
    for at in range(4000, len(text), 100):
        with path.open("a") as file:
            file.write("\n".join(text[at : at + 100]) + "\n")
        version, parts = shown.data(version)
        assert parts is not None
        bytes_.append(sum(map(len, parts)))
        had = put_together(parts, had)
    at_once = LiveView([path], grows=False)
    assert had == put_together(at_once.data("")[1] or [], b"")
    # But for the last, the end of the job, which all of its lines go through.
    assert max(bytes_[1:-1]) < bytes_[0] / 3
    # Who looks seldom gets all steps, who has those of another server all.
    assert put_together(shown.data(of_first)[1] or [], of_all) == had
    for strange in ("", "1", at_once.data("")[0], f"{version}0", version.replace("-", "--")):
        again, parts = shown.data(strange)
        assert again == version
        assert parts is not None
        assert "copies" not in header_of(parts)
    assert shown.data(version) == (version, None)


def test_steps_are_no_more_bytes_than_the_whole(tmp_path: Path) -> None:
    text = traces.job(60, 10, hosts=2)
    path = tmp_path / "run.ulm"
    path.write_text("\n".join(text[:3000]) + "\n")
    shown = LiveView([path])
    versions = [shown.data("")[0]]
    # Each is far less than the whole, all together are more.
    for at in range(3000, len(text) - 100, 100):
        with path.open("a") as file:
            file.write("\n".join(text[at : at + 100]) + "\n")
        versions.append(shown.data(versions[-1])[0])
    whole = sum(map(len, shown.data("")[1] or []))
    sent = [shown.data(version)[1] or [] for version in versions[:-1]]
    assert all(sum(map(len, parts)) <= whole for parts in sent)
    assert "copies" not in header_of(sent[0])
    assert "copies" in header_of(sent[-2])


def test_what_was_read_when_packing_failed_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.ulm"
    path.write_text(traces.line(0, "A", PID=1) + "\n")
    shown = LiveView([path])
    seen, _ = shown.data("")
    with path.open("a") as file:
        file.write(traces.line(1, "B", PID=1) + "\n")

    def fails(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(live, "encode_view", fails)
        with pytest.raises(MemoryError):
            shown.data(seen)
    _, parts = shown.data(seen)
    assert parts is not None
    assert header_of(parts)["count"] == 2


def test_looks_that_take_long_are_rare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0

    def takes_a_second(*told: Any, **more: Any) -> Any:
        nonlocal now_s
        now_s += 1
        return encode_view(*told, **more)

    monkeypatch.setattr(live, "monotonic", lambda: now_s)
    monkeypatch.setattr(live, "encode_view", takes_a_second)
    monkeypatch.setattr(live, "REST", 3)
    path = tmp_path / "run.ulm"
    append(path, "A")
    shown = LiveView([path])
    first, _ = shown.data("")
    append(path, "B")
    for at_s in (101.0, 103.9):
        now_s = at_s
        assert shown.data(first) == (first, None)
        # Who has seen nothing is sent what is known.
        version, parts = shown.data("")
        assert (version, parts is None) == (first, False)
    now_s = 104.0
    second, parts = shown.data(first)
    assert second != first
    assert parts is not None
    # What fails is told each time.
    now_s = 108.0
    path.unlink()
    path.mkdir()
    for _ in range(3):
        with pytest.raises(SourceError, match=r"run.ulm: Is a directory"):
            shown.data(second)


def test_the_oldest_are_dropped_many_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "run.ulm"
    path.write_text("")
    shown = LiveView([path], most=100)
    counts, wholes, seen = [], 0, ""
    for at in range(60):
        with path.open("a") as file:
            file.writelines(traces.line(7 * at + n, "A", PID=1) + "\n" for n in range(7))
        seen, parts = shown.data(seen)
        assert parts is not None
        header = header_of(parts)
        counts.append(header["count"])
        wholes += "copies" not in header
    assert counts[:14] == list(range(7, 99, 7))
    assert {90} < set(counts[14:]) <= set(range(90, 101))
    assert header["left_out"] is True


@pytest.mark.parametrize("few", [100, 10])
def test_picture_shows_points(few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swathe.trace.viewer.figure.FEW", few)
    run = tmp_path / "run.ulm"
    with trace.recording(run):
        for number in range(50):
            trace.point("CALIBRATED", number=number)
    save(
        figure(LiveView([run], grows=False).trace(), "run", width=800, height=600),
        tmp_path / "p.png",
    )
    with Image.open(tmp_path / "p.png") as picture:
        color = np.asarray(picture.convert("RGB")).astype(int)
    # Below the legend.
    assert ((color[200:, 60:, 2] - color[200:, 60:, 0]) > 60).any()


def test_picture_shows_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.ulm"
    path.write_text("\n".join(traces.job(10, 10)) + "\n")
    traced = LiveView([path], grows=False).trace()
    lines = traced.lines("target")
    first, last, line = segments(traced, lines, ["CUT_START", "CUT_END"])
    assert len(line) == len(lines) == 100
    assert (traced.partner[first] == last).all()
    order = ["CUT_END", "CUT_START", "READ_END"]
    (axes, *_) = figure(traced, "run", events=order).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == order
    for few, name in ((100_000, "lines.png"), (0, "density.png")):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("swathe.trace.viewer.figure.FEW", few)
            save(figure(traced, "run", width=800, height=600), tmp_path / name)
        with Image.open(tmp_path / name) as picture:
            assert picture.size == (800, 600)
            blue = np.asarray(picture.convert("RGB")).astype(int)
        # The colour of what is done: more blue than red by far.
        assert ((blue[..., 2] - blue[..., 0]) > 60).sum() > 2000
    with pytest.raises(OutputError, match=r"expected \*.png or \*.svg"):
        save(figure(traced, "run"), tmp_path / "x.gif")


def test_a_flat_piece_has_no_gaps_and_one_over_many_lanes_neither() -> None:
    begin, end = np.array([0.0, 9.9, 0.0]), np.array([10.0, 0.0, 0.0])
    low, high = np.array([0, 1, 0]), np.array([1, 2, 3])
    counts = density(begin, end, low, high, (10.0, 4), 1000)
    rows = len(counts) // 4
    assert (counts[:rows].sum(axis=0) >= 1).all()  # rises over the whole width
    assert (counts[rows : 2 * rows].sum(axis=0)[:990] >= 1).all()  # falls back
    assert (counts[: 3 * rows, 0] >= 1).all()  # at once through three lanes
    assert counts.min() == 0


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nothing\.ulm"):
        LiveView([tmp_path / "nothing.ulm"], grows=False).trace()
    # One that is followed may come.
    shown = LiveView([tmp_path / "nothing.ulm"])
    version, parts = shown.data("")
    assert parts is not None
    (tmp_path / "nothing.ulm").write_text(traces.line(0, "A", PID=1) + "\n")
    later, parts = shown.data(version)
    assert later != version
    assert parts is not None
    assert header_of(parts)["events"] == ["A"]
    assert shown.data(later) == (later, None)
