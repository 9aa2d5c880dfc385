"""What a run says of its time."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog
from swathe.core.host import this_host
from swathe.costs.cost_model import Costs
from swathe.trace import Events
from swathe.trace.analysis.align_clocks import align_times
from swathe.trace.analysis.report import StageTimes, TraceReport, make_report
from swathe.trace.analysis.slow_targets import union_ns
from swathe.trace.analysis.spans import Spans, find_spans
from tests.support.catalogs import new_catalog
from tests.support.fits_frames import Runner
from tests.support.made_up_runs import EventLog, coded

COSTS = Costs(
    connect_s=0.01,
    open_s=0.0,
    request=((0, 0.01), (1_000_000, 0.02)),
    total_bytes_per_s=400e6,
    requests_per_s=1e9,
    streams=8,
)


def stage_of(report: TraceReport, name: str) -> StageTimes:
    [found] = [stage for stage in report.stages if stage.name == name]
    return found


def spans_of(events: Events) -> Spans:
    return find_spans(events, events.time_ns)


def cuts(
    run: EventLog,
    seconds: Any,
    begun_s: float = 0.0,
    name: str = "t",
) -> float:
    """Targets one after the other in one thread, each of READ and DECODE; tells when it ended."""
    at_s = begun_s
    for number, lasting_s in enumerate(seconds):
        ids = {"TARGET": f"{name}{number}", "OBJECT": "sdss:f0.fits"}
        read_s = 0.75 * lasting_s
        run.stage(at_s, at_s + lasting_s, "CUT", {"BYTES": 100}, **ids)
        run.stage(at_s, at_s + read_s, "READ", **ids)
        run.stage(at_s + read_s, at_s + lasting_s, "DECODE", **ids)
        at_s += lasting_s
    return at_s


def test_figures_of_stages_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    # Whole microseconds, as events have them.
    seconds = np.round(rng.lognormal(-6, 1, 501), 6)
    run = EventLog()
    cuts(run, seconds)
    report = make_report(run.events())
    found = stage_of(report, "CUT")
    assert (found.count, found.bytes, found.failed) == (501, 50_100, 0)
    assert found.total_s == pytest.approx(seconds.sum(), abs=1e-6)
    assert found.median_s == pytest.approx(np.median(seconds), abs=1e-6)
    assert found.p95_s == pytest.approx(np.percentile(seconds, 95), abs=1e-6)
    assert found.max_s == pytest.approx(seconds.max(), abs=1e-6)
    assert stage_of(report, "READ").total_s == pytest.approx(0.75 * seconds.sum(), abs=1e-5)
    assert report.elapsed_s == pytest.approx(seconds.sum(), abs=1e-5)
    assert report.events == 501 * 6


def test_shares_are_of_own_time() -> None:
    run = EventLog()
    run.stage(0, 10, "JOB", JOB="a")
    run.stage(0, 10, "CUT", JOB="a", TARGET="t")
    run.stage(1, 9, "READ", JOB="a", TARGET="t")
    run.stage(2, 4, "DECODE", JOB="a", TARGET="t")
    run.on(thread=2).stage(1, 9, "FETCH", OBJECT="x")
    report = make_report(run.events())
    shares: dict[str, Any] = {stage.name: (stage.own_s, stage.share) for stage in report.stages}
    assert shares["CUT"] == (pytest.approx(2), pytest.approx(0.2))
    assert shares["READ"] == (pytest.approx(6), pytest.approx(0.6))
    assert shares["DECODE"] == (pytest.approx(2), pytest.approx(0.2))
    assert shares["JOB"] == (pytest.approx(0), None)


def test_what_runs_beside_is_set_against_the_threads_that_wait_for_it() -> None:
    run = EventLog()
    run.stage(0, 10, "READ", TARGET="t", OBJECT="x")
    for number in range(3):
        # Concurrent requests take turns in the threads of the engine: they do not nest.
        run.on(thread=9).stage(number, 6 + number, "FETCH", OBJECT="x", REQUEST=number)
    report = make_report(run.events())
    assert stage_of(report, "READ").share == pytest.approx(1)
    fetch = stage_of(report, "FETCH")
    assert [fetch.total_s, fetch.own_s, fetch.share] == pytest.approx([18, 18, 1.8])


def test_cuts_that_are_made_together_only_wait() -> None:
    run = EventLog()
    for number in range(5):
        run.point(0.1 * number - 1, "CUT_START", TARGET=f"t{number}", OBJECT="x")
    run.stage(0, 4, "READ", OBJECT="x").stage(4, 5, "DECODE", OBJECT="x")
    for number in range(5):
        run.point(5 + number, "CUT_END", TARGET=f"t{number}", OBJECT="x")
        run.stage(5 + number, 5.5 + number, "WRITE", TARGET=f"t{number}", OBJECT="x")
    report = make_report(run.events())
    shares = {stage.name: stage.share for stage in report.stages}
    assert shares.pop("CUT") is None
    assert shares == pytest.approx({"READ": 4 / 7.5, "DECODE": 1 / 7.5, "WRITE": 2.5 / 7.5})
    slow = report.slowest[0]
    assert (slow.target, slow.stage, slow.alike) == ("t4", "CUT", 4)
    assert slow.elapsed_s == pytest.approx(9.6)
    assert slow.waiting_in == {"READ": pytest.approx(4), "DECODE": pytest.approx(1)}


def test_what_is_done_at_once_counts_once() -> None:
    run = EventLog()
    for number in range(8):
        run.stage(0, 2, "HASH", TARGET=f"t{number}")
    run.stage(2, 4, "WRITE", TARGET="t0")
    report = make_report(run.events())
    found = stage_of(report, "HASH")
    assert [found.total_s, found.own_s, found.share] == pytest.approx([16, 2, 0.5])


def test_stages_are_paired_by_their_ids_across_threads() -> None:
    run = EventLog()
    for number in range(50):
        # All begin in one thread and end in others, the last first.
        run.on(thread=1).point(number, "FETCH_START", REQUEST=number)
        run.on(thread=2 + number).point(200 - number, "FETCH_END", REQUEST=number)
    spans = spans_of(run.events())
    durations = sorted((spans.duration_ns / 1e9).tolist())
    assert durations == sorted(200.0 - 2 * number for number in range(50))
    assert not spans.is_nested.any()


def test_of_two_threads_each_ends_its_own() -> None:
    run = EventLog()
    run.on(thread=1).stage(0, 5, "WORK")
    run.on(thread=2).stage(1, 2, "WORK")
    run.on(thread=1, pid=9).stage(1, 9, "WORK")
    run.on(thread=1, host="node8").stage(1, 4, "WORK")
    spans = spans_of(run.events())
    assert sorted((spans.duration_ns // 10**9).tolist()) == [1, 3, 5, 8]


def test_a_stage_in_one_of_the_same_name() -> None:
    run = EventLog()
    run.stage(0, 10, "REDUCE").stage(1, 4, "REDUCE").stage(2, 3, "REDUCE")
    spans = spans_of(run.events())
    assert (spans.duration_ns // 10**9).tolist() == [10, 3, 1]
    assert spans.parent.tolist() == [-1, 0, 1]
    assert (spans.own_ns // 10**9).tolist() == [7, 2, 1]


def test_stages_that_cross_have_no_place_in_the_thread_but_others_do() -> None:
    run = EventLog()
    run.stage(0, 10, "CUT", TARGET="a")
    run.stage(1, 5, "ONE", TARGET="a").stage(3, 7, "OTHER", TARGET="a")
    run.stage(8, 9, "WRITE", TARGET="a")
    spans = spans_of(run.events())
    names = [spans.names[stage] for stage in spans.stage]
    assert dict(zip(names, spans.is_nested.tolist(), strict=True)) == {
        "CUT": True,
        "ONE": False,
        "OTHER": False,
        "WRITE": True,
    }
    assert spans.parent.tolist() == [-1, -1, -1, 0]
    assert spans.own_ns[0] == 9 * 10**9


def test_many_that_cross_are_told_in_the_end() -> None:
    run = EventLog()
    for number in range(500):
        run.stage(number, number + 40, "FETCH", REQUEST=number)
    spans = spans_of(run.events())
    assert len(spans) == 500
    assert (spans.own_ns >= 0).all()
    assert (spans.duration_ns == 40 * 10**9).all()


def test_what_has_no_end_or_no_beginning_is_counted() -> None:
    run = EventLog()
    run.point(0, "READ_END", TARGET="lost")
    run.stage(1, 2, "READ", TARGET="sound")
    run.point(3, "READ_START", TARGET="hung", OBJECT="sdss:f1.fits")
    run.point(9, "TRACE_END", DROPPED=12)
    run.on(pid=2).point(9, "TRACE_END", DROPPED=5)
    run.point(9, "DAMAGED", SENDER="node7:1", DAMAGED=3, LONG=1)
    report = make_report(run.events(damaged=7))
    assert report.unfinished == {"READ": 1}
    assert report.last_begun == [{"stage": "READ", "target": "hung", "object": "sdss:f1.fits"}]
    assert (report.orphans, report.dropped, report.damaged) == (1, 17, 11)
    assert stage_of(report, "READ").count == 1


def test_a_run_of_nothing_and_of_points() -> None:
    nothing = make_report(EventLog().events())
    assert (nothing.events, nothing.elapsed_s, nothing.stages, nothing.stalls) == (0, 0, [], [])
    points = make_report(EventLog().point(1, "CACHE_HIT").point(3, "CACHE_HIT").events())
    assert (points.events, points.elapsed_s, points.stages) == (2, 2, [])
    assert "no stage has a TARGET" in points.notes[0]


def test_the_slowest_targets_and_why() -> None:
    run = EventLog()
    end_s = cuts(run, [0.010] * 200)
    ids = {"TARGET": "slow", "OBJECT": "wan:f9.fits", "JOB": "j1"}
    run.stage(end_s, end_s + 2.0, "CUT", {"RESULT": "error"}, **ids)
    run.stage(end_s, end_s + 1.9, "READ", **ids)
    run.stage(end_s + 1.9, end_s + 2, "DECODE", **ids)
    beside = run.on(thread=20)
    beside.stage(
        end_s, end_s + 1.5, "FETCH", {"BYTES": 5000}, OBJECT="wan:f9.fits", REQUEST=77, STORE="wan"
    )
    beside.stage(end_s + 1.5, end_s + 1.6, "FETCH", OBJECT="wan:f9.fits", REQUEST=78, STORE="wan")
    # Not its own.
    run.on(thread=21).stage(end_s, end_s + 1.9, "FETCH", OBJECT="sdss:f0.fits", REQUEST=79)
    slow, *others = make_report(run.events()).slowest
    assert (slow.target, slow.job, slow.object) == ("slow", "j1", "wan:f9.fits")
    assert [slow.elapsed_s, slow.begun_s] == pytest.approx([2, end_s])
    assert slow.stage == "READ"
    assert slow.stage_s == pytest.approx(1.9)
    assert slow.usual_s == pytest.approx(0.0075)
    assert slow.waiting_in == {"FETCH": pytest.approx(1.6)}
    first, second = slow.requests
    assert (first["request"], first["from"], first["bytes"]) == ("77", "wan", 5000)
    assert first["elapsed_s"] == pytest.approx(1.5)
    assert second["request"] == "78"
    assert slow.result == "error"
    # Of one object one is told.
    [other] = others
    assert (other.object, other.alike, other.waiting_in) == ("sdss:f0.fits", 98, {})
    assert other.elapsed_s == pytest.approx(0.01)


def test_a_target_that_is_slow_in_no_stage_of_its_own() -> None:
    run = EventLog()
    end_s = cuts(run, [0.010] * 50)
    run.stage(end_s, end_s + 5, "CUT", TARGET="slow", OBJECT="x")
    run.stage(end_s, end_s + 0.008, "READ", TARGET="slow", OBJECT="x")
    slow = make_report(run.events()).slowest[0]
    assert (slow.target, slow.stage) == ("slow", "CUT")
    assert slow.usual_s == pytest.approx(0.01)


def test_a_target_that_waits_behind_others_in_its_thread_says_so() -> None:
    run = EventLog()
    end_s = cuts(run, [0.010] * 50)
    for number in range(3):
        ids = {"TARGET": f"late{number}", "OBJECT": "x.gz", "JOB": "j"}
        run.stage(end_s + 0.001 * number, end_s + 1 + number, "CUT", **ids)
        run.stage(end_s + number, end_s + 1 + number, "WRITE", **ids)
    run.stage(end_s + 0.6, end_s + 0.85, "OPEN", OBJECT="y.gz", JOB="j")
    # In its thread, but for it, and in another one.
    run.stage(end_s + 0.9, end_s + 1, "READ", OBJECT="x.gz", JOB="j")
    run.on(thread=2).stage(end_s, end_s + 1, "READ", OBJECT="y.gz", JOB="j")
    slow = make_report(run.events()).slowest[0]
    assert (slow.target, slow.stage) == ("late2", "CUT")
    assert slow.others_in == {"WRITE": pytest.approx(1.65), "OPEN": pytest.approx(0.25)}
    assert slow.waiting_in == {"READ": pytest.approx(0.1)}


def test_a_target_done_twice_is_told_once() -> None:
    run = EventLog()
    for number in range(3):
        run.stage(10 * number, 10 * number + number + 1, "CUT", TARGET="again", OBJECT="x")
    slowest = make_report(run.events()).slowest
    assert [(slow.target, slow.elapsed_s, slow.alike) for slow in slowest] == [("again", 3.0, 0)]


def test_targets_for_which_nothing_was_done_are_not_slow() -> None:
    run = EventLog()
    run.stage(0, 1, "CUT", TARGET="cut", OBJECT="x")
    run.stage(1, 1, "CUT", TARGET="missing", OBJECT="y")
    events = run.events()
    assert [slow.target for slow in make_report(events).slowest] == ["cut"]
    refused = EventLog()
    refused.stage(1, 1, "CUT", TARGET="missing", OBJECT="y")
    assert make_report(refused.events()).slowest == []


def stalled(lasting_s: float = 2.0, threads: int = 8, host: bool = False) -> EventLog:
    """Threads that all wait from the fifth second on."""
    rng = np.random.default_rng(3)
    run = EventLog()
    for thread in range(threads):
        here = run.on(thread=thread)
        at_s, number = 0.0, 0
        while at_s < 10:
            cut_s = float(np.round(rng.uniform(0.01, 0.03), 6))
            ids = {"TARGET": f"t{thread}-{number}", "OBJECT": f"o{thread}"}
            held_s = lasting_s if at_s < 5 <= at_s + cut_s else 0.0
            here.stage(at_s, at_s + cut_s + held_s, "CUT", **ids)
            here.stage(at_s, at_s + cut_s / 2 + held_s, "READ", **ids)
            if held_s:
                run.on(thread=99).stage(
                    at_s, at_s + cut_s / 2 + held_s, "FETCH", OBJECT=ids["OBJECT"]
                )
            at_s += cut_s + held_s
            number += 1
    if host:
        for second in range(1, 11):
            idle = 5.0 <= second <= 7
            run.on(thread=0).point(
                second,
                "CPU",
                USER_PERCENT=2.0 if idle else 90.0,
                IOWAIT_PERCENT=95.0 if idle else 1.0,
            )
            run.on(thread=0).point(
                second, "DISK", DEVICE="sda", BUSY_PERCENT=100.0 if idle else 3.0
            )
    return run


def test_a_stall_common_to_many_targets_is_found() -> None:
    [stall] = make_report(stalled(host=True).events()).stalls
    assert stall.begun_s == pytest.approx(5, abs=0.1)
    assert stall.duration_s == pytest.approx(2, abs=0.1)
    assert (stall.targets, stall.end_count) == (8, 0)
    assert stall.usual_count > 100
    assert stall.stage in ("READ", "FETCH")
    assert stall.stages["READ"] == pytest.approx(16, abs=0.5)
    assert stall.stages["FETCH"] == pytest.approx(16, abs=0.5)
    figures = stall.hosts["node7"]
    assert figures["CPU.IOWAIT_PERCENT"] == pytest.approx(95, abs=40)
    assert figures["DISK.sda.BUSY_PERCENT"] > 60


@pytest.mark.more
def test_a_steady_run_and_a_single_slow_target_are_no_stall() -> None:
    assert make_report(stalled(lasting_s=0.0).events()).stalls == []
    run = stalled(lasting_s=0.0)
    run.on(thread=50).stage(2, 8, "CUT", TARGET="alone", OBJECT="x")
    assert make_report(run.events()).stalls == []
    last = stalled(lasting_s=0.0)
    last.on(thread=50).stage(2, 30, "CUT", TARGET="last", OBJECT="x")
    assert make_report(last.events()).stalls == []


def test_a_time_without_work_is_no_stall() -> None:
    run = EventLog()
    cuts(run, [0.01] * 100)
    cuts(run, [0.01] * 100, begun_s=50, name="later")
    assert make_report(run.events()).stalls == []


def test_targets_that_take_no_time_are_no_stall() -> None:
    run = EventLog()
    cuts(run, [0.0] * 100)
    assert make_report(run.events()).stalls == []


def test_what_trickles_on_is_still_a_stall() -> None:
    run = stalled()
    run.on(thread=60).stage(5.9, 6.0, "CUT", TARGET="cached", OBJECT="x")
    [stall] = make_report(run.events()).stalls
    assert stall.end_count <= 1
    assert stall.duration_s > 0.9


def test_stores_are_set_against_their_profiles() -> None:
    run = EventLog()
    for number in range(10):
        # Two at a time, 1 MB in 20 ms each.
        at_s = 0.02 * (number // 2)
        run.on(thread=1 + number % 2).stage(
            at_s, at_s + 0.02, "FETCH", {"BYTES": 1_000_000}, STORE="lake", REQUEST=number
        )
    run.stage(5, 6, "FETCH", {"BYTES": 10, "RESULT": "error"}, STORE="other", REQUEST=99)
    # Of a host monitor.
    run.stage(7, 9, "FETCH", {"BYTES": 10}, STORE="lake", REQUEST=100, MONITOR="ping")
    report = make_report(run.events(), {"lake": COSTS.as_dict()})
    lake, other = report.stores
    assert (lake.name, lake.requests, lake.bytes, lake.failed) == ("lake", 10, 10_000_000, 0)
    assert lake.busy_s == pytest.approx(0.1)
    assert lake.in_flight == pytest.approx(2)
    assert lake.median_s == pytest.approx(0.02)
    assert lake.bytes_per_s == pytest.approx(100e6)
    assert lake.profiled_bytes_per_s == 400e6
    assert lake.expected_bytes_per_s == pytest.approx(1e7 / float(COSTS.read_s(1e7, 10, 2)))
    assert lake.expected_bytes_per_s == pytest.approx(100e6)
    assert (other.name, other.failed) == ("other", 1)
    assert other.profiled_bytes_per_s is other.expected_bytes_per_s is None
    assert any("other: no profile" in note for note in report.notes)


def test_time_under_way_counts_once() -> None:
    start = np.array([0, 1, 10, 12, 30])
    end = np.array([5, 3, 15, 20, 31])
    assert union_ns(start, end) == 5 + 10 + 1
    assert union_ns(start[:0], end[:0]) == 0


def test_clocks_of_other_hosts_are_set_right() -> None:
    run = EventLog()
    run.on(host="node8", pid=8).stage(3600, 3601, "FETCH", OBJECT="x")
    run.on(host="node9", pid=9).stage(0.5, 1.5, "FETCH", OBJECT="x")
    for at_s, offset_s in ((0.0, 3600.0), (2.0, 3600.2)):
        run.on("collector", 1).point(
            at_s, "CLOCK", SENDER="node8:8", OFFSET_S=offset_s, SPREAD_S=0.001
        )
    events = run.events()
    time_ns, [offset] = align_times(events)
    assert (offset.sender, offset.count, offset.events) == ("node8:8", 2, 2)
    assert offset.offset_s == pytest.approx(3600.1)
    assert offset.drift_s == pytest.approx(0.2)
    assert offset.spread_s == 0.001
    node8 = events.fields["HOST"]
    assert not isinstance(node8, np.ndarray)
    theirs = time_ns[node8.codes == node8.words.index("node8")] - time_ns.min()
    # By its clock 2.2 s passed between the two, so 1 / 2.2 of the drift in the first.
    assert theirs.tolist() == pytest.approx([0, 1e9 - 0.2e9 / 2.2], abs=1000)
    assert make_report(events).elapsed_s == pytest.approx(2)


def many(count: int) -> Events:
    """A run of many events, made without a loop: targets of CUT, READ and DECODE."""
    targets = count // 6
    rng = np.random.default_rng(2)
    thread = np.arange(targets) % 8
    lasting = rng.integers(10_000, 30_000, targets) * 1000
    begun = np.zeros(targets, np.int64)
    for number in range(8):
        mine = lasting[thread == number]
        begun[thread == number] = np.cumsum(mine) - mine
    parts = [(0, "CUT_START"), (0, "READ_START"), (6, "READ_END"), (6, "DECODE_START")]
    parts += [(10, "DECODE_END"), (10, "CUT_END")]
    words = tuple(name for _, name in parts)
    time_ns = np.concatenate([begun + lasting * tenths // 10 for tenths, _ in parts])
    codes = np.repeat(np.arange(6, dtype=np.int32), targets)
    # What ends ends before something else begins.
    order = np.lexsort((np.array([4, 5, 0, 6, 1, 2])[codes], time_ns))
    target = np.tile(np.arange(targets, dtype=np.int32), 6)[order]
    names = tuple(map(str, range(max(targets, 8))))
    host = coded(["node7"])
    same = np.zeros(6 * targets, np.int32)
    return Events(
        time_ns=time_ns[order],
        event=type(host)(codes[order], words),
        fields={
            "HOST": type(host)(same, ("node7",)),
            "PID": type(host)(same, ("1",)),
            "THREAD": type(host)(thread[target].astype(np.int32), names[:8]),
            "TARGET": type(host)(target, names[:targets]),
            "OBJECT": type(host)((target // 100).astype(np.int32), names),
            "BYTES": np.where(codes[order] == 5, 20_000.0, np.nan),
        },
        damaged=(),
        damaged_count=0,
    )


@pytest.mark.more
def test_a_million_events_are_no_matter() -> None:
    events = many(1_000_000)
    report = make_report(events)
    found = stage_of(report, "CUT")
    assert found.count == 1_000_000 // 6
    assert stage_of(report, "READ").own_s == pytest.approx(0.6 * found.total_s, rel=1e-3)
    assert stage_of(report, "CUT").own_s == pytest.approx(0, abs=1e-3)
    assert report.stalls == []


def test_the_command_tells_people_and_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "c.sqlite"))
    run = stalled(host=True)
    run.on(this_host(), 5).stage(1, 2, "FETCH", {"BYTES": 10**8}, STORE="lake", OBJECT="lake:x")
    path = run.write(tmp_path / "run.ulm")
    command = Runner(monkeypatch, capsys)
    with Catalog.open() as catalog:
        catalog.add_store("lake", "https://lake.example/")
        catalog.put_profile(
            "https://lake.example", this_host(), COSTS.as_dict(), {}, datetime.now(UTC)
        )
    told = command.json("trace", "report", path)
    assert {"CUT", "READ", "FETCH", "WRITE"} >= {stage["name"] for stage in told["stages"]}
    assert len(told["stalls"]) == 1
    [lake] = [store for store in told["stores"] if store["name"] == "lake"]
    assert lake["profiled_bytes_per_s"] == 400e6
    report = swathe.trace.report(path)
    assert isinstance(report, swathe.trace.TraceReport)
    assert json.loads(json.dumps(asdict(report))) == told
    assert swathe.trace.report([str(path)]) == report
    monkeypatch.setenv("COLUMNS", "200")
    text = command("trace", "report", path)
    assert "stall at 5" in text
    assert "slowest targets" in text
    assert "CPU.IOWAIT" in text
    assert "100 " in text


def test_the_command_without_a_file_or_a_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Runner(monkeypatch, capsys)
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/none.sqlite")
    error = json.loads(command("trace", "report", tmp_path / "none.ulm", "--json", code=3))
    assert "none.ulm" in error["error"]
    command("trace", "report", EventLog().point(1, "HELLO").write(tmp_path / "run.ulm"))
    assert not (tmp_path / "none.sqlite").exists()
