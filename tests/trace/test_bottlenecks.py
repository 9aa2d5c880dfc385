"""What slows striped reads: `trace report` names the disk, server, link or client that does.

Real block servers, each with two disks and behind a link of its own. Nothing in them knows of the
tests: strace makes reads of one disk slow, signals and other programs take the processor away.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.trace.analysis.bottlenecks import Bottleneck
from swathe.trace.analysis.report import TraceReport
from swathe.trace.ulm import read_trace
from swathe.trace.viewer.lifelines import TracedEvents
from tests.support.fits_frames import Runner
from tests.support.stripe_lab import NAMES, Lab, parts_of, stripe_lab, throttled
from tests.support.stripe_run import StripeRun

OBJECTS, OBJECT_BYTES, ROUNDS = 8, 9 << 20, 3


# Made up --------------------------------------------------------------------------------------


def rounds(run: StripeRun, change: Callable[[str, str, int], dict[str, object]]) -> None:
    """Add rounds of a request to each server, the disks in turn; `change` is what is different."""
    at_us = 0.0
    for number in range(40):
        disk = f"/data{1 + number % 2}"
        ends = [
            run.request(at_us, name, disk, **change(name, disk, number))  # type: ignore[arg-type]
            for name in NAMES
        ]
        at_us = max(ends) + 10


def first(report: TraceReport) -> tuple[str, str, str, str]:
    each = report.bottlenecks[0]
    return each.part, each.server, each.disk, each.symptom


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"disk": "/data2", "disk_us": 30_000}, ("disk", "hostb", "/data2", "slow")),
        ({"own_us": 30_000}, ("server", "hostb", "", "slow")),
        ({"transfer_us": 90_000}, ("link", "hostb", "", "bandwidth")),
        ({"latency_us": 45_000}, ("link", "hostb", "", "latency")),
        ({"rare": 7, "transfer_us": 900_000}, ("link", "hostb", "", "stall")),
        (
            {"ahead_us": 5e6, "disk_us": 30_000, "disk": "/data1"},
            ("disk", "hostb", "/data1", "slow"),
        ),
    ],
)
def test_what_takes_longer_than_elsewhere_is_named(
    tmp_path: Path, change: dict[str, object], expected: tuple[str, str, str, str]
) -> None:
    run = StripeRun(tmp_path)
    only_disk, rare = change.pop("disk", None), int(change.pop("rare", 1))  # type: ignore[call-overload]

    def on_host(name: str, disk: str, number: int) -> dict[str, object]:
        is_meant = name == "hostb" and only_disk in (None, disk) and number % rare == 0
        return change if is_meant else {}

    rounds(run, on_host)
    report = run.report()
    assert first(report) == expected
    assert {each.server for each in report.bottlenecks} == {"hostb"}
    assert 0 < report.bottlenecks[0].lost_s < report.elapsed_s
    assert [(each.server, each.disk) for each in report.servers] == [
        (name, disk) for name in NAMES for disk in ("/data1", "/data2")
    ]


def test_the_command_shows_servers_and_what_is_slow(tmp_path: Path, run: Runner) -> None:
    made_up = StripeRun(tmp_path)
    slow: dict[str, object] = {"disk_us": 30_000}
    rounds(made_up, lambda name, disk, _: slow if (name, disk) == ("hostb", "/data2") else {})
    made_up.failure(0, "hostd", 503, "")
    made_up.report()
    text = run("trace", "report", tmp_path / "run.ulm")
    assert "slow: disk /data2 of hostb: slow, " in text
    assert [line.split()[:2] for line in text.splitlines() if line.startswith("hostb  ")][-2:] == [
        ["hostb", "/data1"],
        ["hostb", "/data2"],
    ]
    answer = run.json("trace", "report", tmp_path / "run.ulm")
    assert answer["bottlenecks"][0]["disk"] == "/data2"
    assert len(answer["servers"]) == 9


def test_a_server_that_comes_late_to_its_work_is_no_slow_link(tmp_path: Path) -> None:
    run = StripeRun(tmp_path)
    rounds(run, lambda name, *_: {"latency_us": 80_000} if name == "hostc" else {})
    end_us = max(at for at, _ in run.lines)
    for at_us in range(0, end_us, 100_000):
        run.put(at_us + 95_000, "SERVER_LATE", "hostc", DELAY_S="0.090000")
    assert first(run.report()) == ("server", "hostc", "", "late")


def test_a_server_that_stood_still_is_late_for_what_it_never_began(tmp_path: Path) -> None:
    """The client gave these requests up: the server has no events of them."""
    run = StripeRun(tmp_path)
    rounds(run, lambda *_: {})
    end_us = max(at for at, _ in run.lines)
    for number in range(6):
        over_us = run.request(end_us + number, "hostc", latency_us=1_500_000)
        mark = f"LIFELINE={run.count:016x}"
        run.lines = [
            (at, text) for at, text in run.lines if not (mark in text and "HOST=hostc" in text)
        ]
    run.put(over_us - 20_000, "SERVER_LATE", "hostc", DELAY_S="1.490000")
    report = run.report()
    assert first(report) == ("server", "hostc", "", "late")
    assert [each for each in report.bottlenecks if each.part == "link"] == []


def test_servers_that_are_alike_are_not_slow(tmp_path: Path) -> None:
    run = StripeRun(tmp_path)
    rounds(run, lambda *_: {})
    assert not run.report().bottlenecks


def test_servers_without_events_are_slow_as_a_whole(tmp_path: Path) -> None:
    run = StripeRun(tmp_path)
    rounds(run, lambda name, *_: {"transfer_us": 90_000} if name == "hostd" else {})
    run.lines = [(at, text) for at, text in run.lines if "HOST=hostd" not in text]
    report = run.report()
    assert first(report) == ("server", "hostd", "", "bandwidth")
    assert "records no events" in report.bottlenecks[0].why
    assert [each.disk_s for each in report.servers if each.server == "hostd"] == [None]


@pytest.mark.parametrize(
    ("status", "expected"),
    [(0, "no answer"), (503, "unavailable"), (404, "refusal")],
)
def test_servers_that_fail_come_first(tmp_path: Path, status: int, expected: str) -> None:
    run = StripeRun(tmp_path)
    rounds(run, lambda name, *_: {"transfer_us": 90_000} if name == "hosta" else {})
    for number in range(5):
        run.failure(number * 1000, "hostd", status, "on purpose")
    report = run.report()
    assert first(report) == ("server", "hostd", "", expected)
    assert "on purpose" in report.bottlenecks[0].why
    assert (report.bottlenecks[1].part, report.bottlenecks[1].server) == ("link", "hosta")


def test_damage_is_first_and_then_what_fails_by_the_time_that_it_costs(tmp_path: Path) -> None:
    run = StripeRun(tmp_path)
    rounds(run, lambda *_: {})
    for host, count in (("hosta", 5), ("hostc", 9), ("hostd", 7)):
        for number in range(count):
            run.failure(number * 1000, host, 503, "busy")
    run.damage("hostb:")
    report = run.report()
    names = [each.server for each in report.bottlenecks]
    assert names == ["hostb", "hostc", "hostd", "hosta"]
    losses = [each.lost_s for each in report.bottlenecks[1:]]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize(
    "text",
    [
        "byte 4096: expected checksum 1b8f2845, found 41578169; a block of 4096 bytes on disk "
        "/data2 is damaged",
        "byte 4096: expected 4096 bytes, found 100; damaged on disk /data2",
    ],
)
def test_damage_is_named_without_the_events_of_its_server(tmp_path: Path, text: str) -> None:
    run = StripeRun(tmp_path)
    rounds(run, lambda *_: {})
    reason = f"http://hostd/a.1: hostd answered 500 Internal Server Error, /a.1: {text}"
    for number in range(5):
        run.failure(number * 1000, "hostd", 500, reason)
        run.failure(number * 1000, "hostc", 500, "hostc answered 500 Internal Server Error")
    run.lines = [(at, line) for at, line in run.lines if "HOST=hostd" not in line]
    report = run.report()
    assert first(report) == ("disk", "hostd", "/data2", "damage")
    assert "5 of 45 requests met damage: http://hostd/a.1" in report.bottlenecks[0].why
    others = [(each.server, each.symptom) for each in report.bottlenecks[1:]]
    assert ("hostc", "refusal") in others and "hostd" not in {server for server, _ in others}


def test_a_request_that_never_ends_fails_and_one_at_the_end_does_not(tmp_path: Path) -> None:
    run = StripeRun(tmp_path)
    rounds(run, lambda *_: {})
    end_us = max(at for at, _ in run.lines)
    own = {"STRIPE": "wide", "ASKED_BYTES": 1 << 20}
    run.put(end_us - 5000, "FETCH_START", "lab", **own, STORE="hosta", REQUEST=1001)
    assert not run.report().bottlenecks
    for number in range(3):
        ids = {"REQUEST": 2000 + number, "LIFELINE": f"{2000 + number:016x}", "STORE": "hostb"}
        run.put(1000 * number, "FETCH_START", "lab", **own, **ids)
        run.put(1000 * number + 500, "FETCH_ANSWER", "lab", **own, **ids, STATUS=206)
    report = run.report()
    assert first(report) == ("link", "hostb", "", "stall")
    assert "no end recorded" in report.bottlenecks[0].why


def test_a_client_that_leaves_its_servers_idle_is_named_with_its_stage(tmp_path: Path) -> None:
    run = StripeRun(tmp_path)
    at_us = 0.0
    for number in range(20):
        ids = {"OBJECT": "wide:x", "WINDOW": number}
        run.put(at_us, "STRIPE_START", "lab", **ids)
        end_us = max(run.request(at_us, name) for name in NAMES)
        run.put(end_us + 1, "STRIPE_END", "lab", **ids, RESULT="ok")
        run.put(end_us + 2, "REDUCE_START", "lab")
        run.put(end_us + 60_000, "REDUCE_END", "lab", RESULT="ok")
        at_us = end_us + 60_001
    report = run.report()
    assert first(report) == ("client", "", "", "slow")
    assert "in REDUCE" in report.bottlenecks[0].why


# Real servers ---------------------------------------------------------------------------------


@pytest.fixture
def lab(run: Runner, tmp_path: Path) -> Iterator[Lab]:
    with stripe_lab(tmp_path) as there:
        draw = np.random.default_rng(4)
        for number in range(OBJECTS):
            (tmp_path / f"object-{number}").write_bytes(draw.bytes(OBJECT_BYTES))
        paths = [str(tmp_path / f"object-{number}") for number in range(OBJECTS)]
        assert swathe.stores.copy_objects(paths, "wide:", progress=False).copied == OBJECTS
        yield there


def read_all(folder: Path) -> None:
    """Read all objects, again and again, and compare them with what was written."""
    files = swathe.fs()
    for _ in range(ROUNDS):
        for number in range(OBJECTS):
            expected = (folder / f"object-{number}").read_bytes()
            assert files.cat_file(f"wide/object-{number}") == expected


def found(bottleneck: Bottleneck) -> tuple[str, str, str, str]:
    return bottleneck.part, bottleneck.server, bottleneck.disk, bottleneck.symptom


@pytest.mark.more
def test_a_request_is_one_line_through_client_server_and_disk(lab: Lab) -> None:
    lab.report(read_all)
    paths = [lab.folder / "client.ulm", *map(lab.trace, range(len(NAMES)))]
    traced = TracedEvents(read_trace(paths))
    assert "lifeline" in traced.kinds()
    lines = traced.lines("lifeline")
    words = traced.events.event.words
    steps = []
    for begin, end in pairwise(lines.starts.tolist()):
        points = lines.points[begin:end]
        steps.append([words[code] for code in traced.events.event.codes[points]])
    whole = [each for each in steps if "FETCH_END" in each and "DISK_READ_END" in each]
    assert len(whole) > OBJECTS * len(NAMES)
    for each in whole:
        assert each[0] == "FETCH_START"
        assert each.index("SERVE_START") < each.index("DISK_READ_START") < each.index("SEND_START")
        assert "VERIFY_END" in each and "SERVE_END" in each


def check(there: Lab, *expected: tuple[str, str, str, str]) -> None:
    report = there.report(read_all)
    assert report.bottlenecks, report.servers
    assert found(report.bottlenecks[0]) in expected, (report.bottlenecks, report.servers)


@pytest.mark.more
@pytest.mark.parametrize("number", [0, 2])
def test_slow_disk(lab: Lab, number: int) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace, which makes reads slow, is not installed")
    disk = lab.fuller_disk(number)
    paths = [word for part in parts_of(disk) for word in ("-P", str(part))]
    slow = ("-e", "trace=pread64", "-e", "inject=pread64:delay_enter=80000")
    log = str(lab.folder / "strace.log")
    lab.restart(number, strace, "-D", "-f", "-qq", "--seccomp-bpf", "-o", log, *slow, *paths)
    check(lab, ("disk", NAMES[number], str(disk), "slow"))


@pytest.mark.long
def test_server_with_a_tenth_of_a_processor(lab: Lab) -> None:
    with throttled(lab.running[1]):
        report = lab.report(read_all)
    assert found(report.bottlenecks[0]) == ("server", "hostb", "", "late"), report


@pytest.mark.long
def test_server_whose_processor_others_use(lab: Lab) -> None:
    core = str(min(os.sched_getaffinity(0)))
    lab.restart(3, "taskset", "-c", core, "nice", "-n", "19")
    burn = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(["taskset", "-c", core, *burn]) for _ in range(2)]
    try:
        check(lab, ("server", "hostd", "", "late"), ("server", "hostd", "", "slow"))
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.more
@pytest.mark.parametrize("number", [0, 2])
def test_link_with_little_bandwidth(lab: Lab, number: int) -> None:
    lab.proxies[number].set(shared_bytes_per_s=3_000_000)
    check(lab, ("link", NAMES[number], "", "bandwidth"))


@pytest.mark.more
def test_link_with_latency(lab: Lab) -> None:
    lab.proxies[1].set(rtt_ms=300)
    check(lab, ("link", "hostb", "", "latency"))


@pytest.mark.more
def test_dead_server(lab: Lab) -> None:
    lab.running[2].end(signal.SIGKILL)
    check(lab, ("server", "hostc", "", "no answer"))


@pytest.mark.more
def test_server_that_answers_503(lab: Lab) -> None:
    lab.proxies[3].set(unavailable=1)
    check(lab, ("server", "hostd", "", "unavailable"))


@pytest.mark.more
def test_damaged_part(lab: Lab) -> None:
    disk = lab.fuller_disk(1)
    with parts_of(disk)[0].open("r+b") as file:
        file.seek(1 << 20)
        file.write(b"damage")
    check(lab, ("disk", "hostb", str(disk), "damage"))


@pytest.mark.more
def test_link_that_stalls(lab: Lab) -> None:
    lab.proxies[0].set(stall=0.4, stall_s=2)
    check(lab, ("link", "hosta", "", "stall"))


def reduce(folder: Path) -> None:
    """Read two objects, and work on each mebibyte before the next is read."""
    for number in range(2):
        with swathe.fs().open(f"wide/object-{number}", "rb", block_size=1 << 20) as file:
            while block := file.read(1 << 20):
                with swathe.trace.event("REDUCE"):
                    for _ in range(100):
                        hashlib.sha256(block).digest()


@pytest.mark.more
def test_slow_client(lab: Lab) -> None:
    report = lab.report(reduce)
    assert found(report.bottlenecks[0]) == ("client", "", "", "slow"), report
    assert "in REDUCE" in report.bottlenecks[0].why
