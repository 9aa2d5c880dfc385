"""What slows striped writes: `trace report` names the disk, server or link that does.

The lab is that of `test_bottlenecks.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import swathe
from swathe.trace.analysis.report import TraceReport
from swathe.trace.ulm import read_trace
from swathe.trace.viewer.lifelines import TracedEvents
from tests.support.fits_frames import Runner
from tests.support.stripe_lab import NAMES, Lab, stripe_lab, throttled
from tests.support.stripe_run import StripeRun

LARGE, SMALL, LARGE_BYTES, SMALL_BYTES = 2, 6, 60 << 20, 6 << 20
"""Parts of the large objects are sent while they are written, in pieces of 8 MiB."""


def first(report: TraceReport) -> tuple[str, str, str, str]:
    each = report.bottlenecks[0]
    return each.part, each.server, each.disk, each.symptom


# Made up --------------------------------------------------------------------------------------


def test_a_server_that_waits_for_bytes_is_not_slow(tmp_path: Path) -> None:
    """All parts of a write end together: with the slowest."""
    run = StripeRun(tmp_path)
    at_us = 0.0
    for _ in range(20):
        for name in NAMES:
            slow_us = 100_000 if name == "hostb" else 5_000
            run.upload(at_us, name, link_us=slow_us, idle_us=101_000 - slow_us)
        at_us += 110_000
    report = run.report()
    assert first(report) == ("link", "hostb", "", "bandwidth")
    assert {each.server for each in report.bottlenecks} == {"hostb"}


@pytest.mark.parametrize(
    ("slow", "expected"),
    [
        ({"disk_us": 90_000}, ("disk", "hostb", "/data1", "slow")),
        ({"own_us": 90_000}, ("server", "hostb", "", "slow")),
    ],
)
def test_the_disk_and_the_server_of_a_write_are_told_apart(
    tmp_path: Path, slow: dict[str, float], expected: tuple[str, str, str, str]
) -> None:
    run = StripeRun(tmp_path)
    at_us = 0.0
    for _ in range(20):
        for name in NAMES:
            if name == "hostb":
                run.upload(at_us, name, **slow)
            else:
                run.upload(at_us, name, idle_us=90_000)
        at_us += 110_000
    assert first(run.report()) == expected


def test_writes_are_not_compared_with_reads(tmp_path: Path) -> None:
    run = StripeRun(tmp_path)
    at_us = 0.0
    for _ in range(20):
        for name in NAMES[:3]:
            run.request(at_us, name, transfer_us=5_000)
        run.upload(at_us, "hostd", link_us=90_000)
        at_us += 110_000
    assert not run.report().bottlenecks


# Real servers ---------------------------------------------------------------------------------


@pytest.fixture
def lab(run: Runner, tmp_path: Path) -> Iterator[Lab]:
    draw = np.random.default_rng(5)
    for number in range(LARGE + SMALL):
        size = LARGE_BYTES if number < LARGE else SMALL_BYTES
        (tmp_path / f"object-{number}").write_bytes(draw.bytes(size))
    with stripe_lab(tmp_path) as there:
        yield there


def write_all(folder: Path) -> None:
    paths = [str(folder / f"object-{number}") for number in range(LARGE + SMALL)]
    report = swathe.stores.copy_objects(paths, "wide:", progress=False)
    assert report.copied == len(paths), report.faults


@pytest.mark.more
def test_a_request_that_writes_is_one_line_through_client_server_and_disk(lab: Lab) -> None:
    lab.report(write_all)
    traced = TracedEvents(
        read_trace([lab.folder / "client.ulm", *map(lab.trace, range(len(NAMES)))])
    )
    lines = traced.lines("lifeline")
    words = traced.events.event.words
    steps = []
    for begin, end in pairwise(lines.starts.tolist()):
        points = lines.points[begin:end]
        steps.append([words[code] for code in traced.events.event.codes[points]])
    whole = [each for each in steps if "UPLOAD_END" in each and "DISK_WRITE_END" in each]
    # A part and a record of each object on each server.
    assert len(whole) >= 2 * (LARGE + SMALL) * len(NAMES)
    for each in whole:
        assert each[0] == "UPLOAD_START"
        assert each.index("SERVE_START") < each.index("DISK_WRITE_START")
        assert each.index("DISK_WRITE_END") < each.index("DISK_SYNC_START")
        assert "VERIFY_END" in each and "SERVE_END" in each
    assert "STRIPE_WRITE_END" in words


def check(there: Lab, *expected: tuple[str, str, str, str]) -> None:
    report = there.report(write_all)
    assert report.bottlenecks, report.servers
    assert first(report) in expected, (report.bottlenecks, report.servers)


@pytest.mark.more
@pytest.mark.parametrize("number", [0, 2])
def test_slow_disk(lab: Lab, number: int) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace, which makes writes slow, is not installed")
    slow = ("-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_enter=120000")
    log = str(lab.folder / "strace.log")
    lab.restart(number, strace, "-D", "-f", "-qq", "--seccomp-bpf", "-o", log, *slow)
    # strace knows no disks: both of the server are slow.
    check(lab, *(("disk", NAMES[number], str(disk), "slow") for disk in lab.disks(number)))


@pytest.mark.more
@pytest.mark.parametrize("number", [0, 2])
def test_link_with_little_bandwidth(lab: Lab, number: int) -> None:
    lab.proxies[number].set(upload_bytes_per_s=3_000_000)
    check(lab, ("link", NAMES[number], "", "bandwidth"))


@pytest.mark.long
def test_server_with_a_tenth_of_a_processor(lab: Lab) -> None:
    with throttled(lab.running[1]):
        check(lab, ("server", "hostb", "", "late"), ("server", "hostb", "", "slow"))
