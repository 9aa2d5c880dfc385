"""The host monitor, against what the kernel and other programs tell."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe import _swathe
from swathe.core.host import this_host
from swathe.trace import VARIABLE, CodedColumn, host_monitor, read, recording, tcp_stats
from swathe.trace.collect import Collector
from swathe.trace.host_monitor import Monitor, PingTarget, Point, Reading
from tests.support.fits_frames import SWATHE, Runner, swathe_command
from tests.support.portals import wait_until

EVENT = re.compile(r"DATE=\d{14}\.\d{6} HOST=(\S+) PROG=swathe LVL=(\w+) NL\.EVNT=(\w+) (.*)")


def one(points: list[Point], name: str) -> dict[str, Any]:
    [point] = [point for point in points if point.name == name]
    return point.fields


def connected(address: str = "127.0.0.1") -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        one_end = socket.create_connection(server.getsockname()[:2])
        return one_end, server.accept()[0]


@contextlib.contextmanager
def busy(threads: int = 1) -> Iterator[None]:
    """Keep processes computing."""
    code = "while True: pass"
    running = [subprocess.Popen(["python3", "-c", code]) for _ in range(threads)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def test_each_interval_gives_the_points_of_the_contract() -> None:
    with Monitor(0.1) as monitor:
        wait_until(lambda: sum(point.name == "CPU" for point in monitor.samples) >= 3)
    points = list(monitor.samples)
    by_name: dict[str, list[Point]] = {}
    for point in points:
        by_name.setdefault(point.name, []).append(point)
    assert {"CPU", "MEMORY", "SWAP", "NET", "TCP"} <= set(by_name) <= {*by_name, "DISK"}
    kinds = ("USER", "SYSTEM", "IOWAIT", "STEAL", "IDLE")
    for point in by_name["CPU"]:
        assert set(point.fields) == {f"{kind}_PERCENT" for kind in kinds}
        assert sum(map(float, point.fields.values())) == pytest.approx(100, abs=0.1)
    for point in by_name["MEMORY"]:
        assert set(point.fields) == {"USED_BYTES", "FREE_BYTES", "CACHED_BYTES"}
    for point in by_name["SWAP"]:
        assert set(point.fields) == {"USED_BYTES", "IN_BYTES_PER_S", "OUT_BYTES_PER_S"}
    for point in by_name.get("DISK", ()):
        names = {"DEVICE", "READ_SECTORS_PER_S", "WRITTEN_SECTORS_PER_S", "BUSY_PERCENT"}
        assert set(point.fields) == names
    for point in by_name["NET"]:
        names = {"INTERFACE", "RECEIVED_BYTES_PER_S", "SENT_BYTES_PER_S"}
        assert set(point.fields) == names
    assert [point.time_ns for point in points] == sorted(point.time_ns for point in points)
    times = [point.time_ns for point in by_name["CPU"]]
    assert len(set(times)) == len(times)


def test_the_first_reading_comes_after_the_first_interval() -> None:
    with Monitor(30) as monitor:
        time.sleep(0.2)
    assert not monitor.samples


def test_an_interval_must_be_one() -> None:
    with pytest.raises(ValueError, match="interval_s"):
        Monitor(0)


def test_work_is_seen_on_the_processor() -> None:
    def user_s() -> float:
        times = psutil.cpu_times()
        return float(times.user + times.nice)

    with busy(os.cpu_count() or 1):
        kernels = [user_s()]
        before = Reading.now()
        kernels.append(user_s())
        time.sleep(1)
        kernels.append(user_s())
        after = Reading.now()
        kernels.append(user_s())
    found = one(list(after.since(before)), "CPU")
    total_s = sum(after.cpu.values()) - sum(before.cpu.values())
    spent_s = float(found["USER_PERCENT"]) / 100 * total_s
    first, second, third, last = kernels
    assert third - second - 0.02 <= spent_s <= last - first + 0.02
    assert found["USER_PERCENT"] > 20


@pytest.mark.skipif(shutil.which("vmstat") is None, reason="needs vmstat")
def test_as_vmstat_has_it() -> None:
    # What others do here may change between its two seconds and ours.
    for _ in range(3):
        told = {name: pair for name, pair in beside_vmstat() if pair[0] != pair[1]}
        if not told:
            return
    raise AssertionError(f"expected what vmstat tells, found {told}")


def beside_vmstat() -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Give what it tells of the same time, more or less, beside what we do."""
    watch = subprocess.Popen(["vmstat", "2", "2"], stdout=subprocess.PIPE, text=True)
    with busy():
        before = Reading.now()
        out, _ = watch.communicate(timeout=120)
        points = list(Reading.now().since(before))
    titles, _, last = out.splitlines()[1:4]
    theirs = dict(zip(titles.split(), map(int, last.split()), strict=False))
    cpu, memory, swap = (one(points, name) for name in ("CPU", "MEMORY", "SWAP"))
    names = {"us": "USER", "sy": "SYSTEM", "id": "IDLE", "wa": "IOWAIT", "st": "STEAL"}
    for name, ours in names.items():
        # Theirs are whole numbers.
        yield name, (cpu[f"{ours}_PERCENT"], pytest.approx(theirs[name], abs=20))
    kib = 1024
    total = psutil.virtual_memory().total
    free, cached = theirs["free"] * kib, (theirs["cache"] + theirs["buff"]) * kib
    yield "free", (memory["FREE_BYTES"], pytest.approx(free, abs=0.05 * total))
    yield "cache", (memory["CACHED_BYTES"], pytest.approx(cached, abs=0.05 * total))
    yield "swpd", (swap["USED_BYTES"], pytest.approx(theirs["swpd"] * kib, abs=0.02 * total))


def test_memory_as_the_kernel_has_it() -> None:
    found = one(list(Reading.now().since(Reading.now())), "MEMORY")
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    kernels = {name: 1024 * int(text.split()[0]) for name, text in lines.items()}
    total = kernels["MemTotal"]
    assert found["FREE_BYTES"] == pytest.approx(kernels["MemFree"], abs=0.05 * total)
    cached = kernels["Cached"] + kernels["Buffers"] + kernels["SReclaimable"]
    assert found["CACHED_BYTES"] == pytest.approx(cached, abs=0.05 * total)


def test_what_goes_over_the_network_is_counted() -> None:
    size = 3_000_000
    sender, receiver = connected()
    with sender, receiver:
        before = Reading.now()
        thread = threading.Thread(target=sender.sendall, args=(bytes(size),))
        thread.start()
        left = size
        while left:
            left -= len(receiver.recv(1 << 20))
        thread.join()
        after = Reading.now()
    elapsed_s = after.at_s - before.at_s
    [net] = [
        point.fields
        for point in after.since(before)
        if point.name == "NET" and point.fields["INTERFACE"] == "lo"
    ]
    for key in ("RECEIVED_BYTES_PER_S", "SENT_BYTES_PER_S"):
        assert float(net[key]) * elapsed_s >= size


def test_what_a_disk_writes_is_counted(tmp_path: Path) -> None:
    def sectors() -> dict[str, int]:
        rows = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
        return {row[2]: int(row[5]) + int(row[9]) for row in rows}

    kernels = [sectors()]
    before = Reading.now()
    kernels.append(sectors())
    with (tmp_path / "data").open("wb") as file:
        file.write(os.urandom(8 << 20))
        file.flush()
        os.fsync(file.fileno())
    kernels.append(sectors())
    after = Reading.now()
    kernels.append(sectors())
    elapsed_s = after.at_s - before.at_s
    disks = [point.fields for point in after.since(before) if point.name == "DISK"]
    assert {str(disk["DEVICE"]) for disk in disks} <= set(os.listdir("/sys/block"))
    for disk in disks:
        rate = float(disk["READ_SECTORS_PER_S"]) + float(disk["WRITTEN_SECTORS_PER_S"])
        first, second, third, last = (each[str(disk["DEVICE"])] for each in kernels)
        assert third - second - 1 <= rate * elapsed_s <= last - first + 1


def test_retransmits_as_the_kernel_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [line for line in Path("/proc/net/snmp").read_text().splitlines() if "Tcp:" in line]
    table = dict(zip(rows[0].split(), rows[1].split(), strict=True))
    assert tcp_stats.retransmits() >= int(table["RetransSegs"])
    fake = tmp_path / "snmp"
    monkeypatch.setattr(tcp_stats, "SNMP", fake)
    fake.write_text("Ip: A B\nIp: 1 2\nTcp: InSegs RetransSegs X\nTcp: 7 100 5\n")
    before = Reading.now()
    fake.write_text("Ip: A B\nIp: 1 2\nTcp: InSegs RetransSegs X\nTcp: 7 150 5\n")
    after = Reading.now()
    found = one(list(after.since(before)), "TCP")
    rate = float(found["RETRANSMITS_PER_S"])
    assert rate * (after.at_s - before.at_s) == pytest.approx(50, rel=0.01)


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss")
def test_round_trips_as_ss_has_them() -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            one_end, other = (stack.enter_context(each) for each in connected())
            one_end.sendall(b"there")
            other.recv(10)
            other.sendall(b"and back")
            one_end.recv(10)
        ours = tcp_stats.round_trips()
        told = subprocess.run(
            ["ss", "-tinHO", "state", "established"], capture_output=True, text=True, check=True
        ).stdout
    theirs = [float(text) / 1000 for text in re.findall(r" rtt:([0-9.]+)/", told)]
    assert len(theirs) >= 40
    # Other connections of this machine come and go.
    assert len(ours) == pytest.approx(len(theirs), abs=10)
    for rtt_s in ours:
        assert 0 <= rtt_s < 10
    mine = sorted(theirs)[len(theirs) // 2]
    assert sorted(ours)[len(ours) // 2] == pytest.approx(mine, rel=0.5, abs=1e-4)


def test_connections_are_counted() -> None:
    def found() -> int:
        return int(one(list(Reading.now().since(Reading.now())), "TCP")["CONNECTIONS"])

    before = found()
    with contextlib.ExitStack() as stack:
        for _ in range(30):
            for each in connected("::1"):
                stack.enter_context(each)
        assert found() >= before + 50


def test_a_kernel_that_tells_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> list[float]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(tcp_stats, "SNMP", tmp_path / "none")
    monkeypatch.setattr(tcp_stats, "round_trips", refused)
    found = one(list(Reading.now().since(Reading.now())), "TCP")
    assert set(found) == {"REASON"}
    assert "retransmits: No such file" in found["REASON"]
    assert "round trips: Operation not permitted" in found["REASON"]


def test_an_answer_of_the_kernel_that_is_an_error() -> None:
    answer = tcp_stats.MESSAGE.pack(20, tcp_stats.ERROR, 0, 1, 0) + (-2).to_bytes(
        4, "little", signed=True
    )
    with pytest.raises(FileNotFoundError):
        tcp_stats._read(answer, [])


@pytest.mark.parametrize("size", range(0, 200, 7))
def test_no_answer_of_the_kernel_is_read_beyond_its_end(size: int) -> None:
    found: list[float] = []
    tcp_stats._read(os.urandom(size)[:16].ljust(16, b"\0") + bytes(size), found)


def test_stores_are_asked(tmp_path: Path) -> None:
    (tmp_path / "a.fits").write_bytes(bytes(2880))
    here = PingTarget("here", str(tmp_path / "a.fits"))
    gone = PingTarget("gone", str(tmp_path / "none.fits"))
    with Monitor(0.05, stores=[here, gone]) as monitor:
        wait_until(lambda: sum(point.name == "PING" for point in monitor.samples) >= 6)
    pings = [point.fields for point in monitor.samples if point.name == "PING"]
    for fields in pings:
        if fields["STORE"] == "here":
            assert float(fields["RTT_S"]) > 0
        else:
            assert fields["RESULT"] == "error"
            assert "none.fits" in str(fields["REASON"])
    assert {str(fields["STORE"]) for fields in pings} == {"here", "gone"}


def test_a_store_that_hangs_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def measure_open(_object: str, _stores: object) -> tuple[float, int]:
        release.wait(120)
        return 0.1, 1

    monkeypatch.setattr(_swathe, "measure_open", measure_open)
    monkeypatch.setattr(host_monitor, "PATIENCE_S", 0.1)
    with Monitor(0.05, stores=[PingTarget("slow", "x")]) as monitor:
        wait_until(lambda: sum(point.name == "CPU" for point in monitor.samples) >= 4)
    assert not [point for point in monitor.samples if point.name == "PING"]
    release.set()


def test_readings_that_were_missed_are_left_out() -> None:
    told: list[float] = []
    begun_s = time.monotonic()

    def slow(point: Point) -> None:
        if point.name == "CPU":
            told.append(time.monotonic())
            time.sleep(0.35 if len(told) == 2 else 0)

    with Monitor(0.1, tell=slow):
        wait_until(lambda: len(told) >= 6)
    beats = (told[-1] - begun_s) / 0.1
    # Three were missed while one took so long, and are not caught up.
    assert len(told) <= beats - 2


def watched(*words: str | Path, enough: Callable[[str], bool]) -> subprocess.CompletedProcess[str]:
    """Run the command for a second, or longer on a busy machine."""
    for long_s in (1, 5, 25):
        told = swathe_command("trace", "host", "--interval", "0.1s", "--for", f"{long_s}s", *words)
        assert (told.returncode, told.stderr) == (0, "")
        if enough(told.stdout):
            return told
    raise AssertionError(told.stdout)


def test_after_a_late_reading_the_next_is_not_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, at_s = 0.0, list[float]()

    class Ending:
        def wait(self, seconds: float) -> bool:
            nonlocal now_s
            now_s += max(seconds, 0.0)
            return len(at_s) == 5

    with monkeypatch.context() as patched:
        patched.setattr(host_monitor, "time", SimpleNamespace(monotonic=lambda: now_s))
        monitor = Monitor(1.0)
        patched.setattr(monitor, "_ending", Ending())
        for _, took_s in zip(monitor._ticks(), (0.1, 0.9, 0.4, 1.7, 0), strict=False):
            at_s.append(now_s)
            now_s += took_s
    # The kernel counts in hundredths: of nearly no time it can tell nothing.
    assert at_s == [1.0, 2.0, 4.0, 5.0, 8.0]


def test_lines_as_the_command_prints_them() -> None:
    told = watched(enough=lambda lines: "NL.EVNT=TCP" in lines)
    rows = [EVENT.fullmatch(line) for line in told.stdout.splitlines()]
    assert all(rows)
    names = [row[3] for row in rows if row]
    assert {"CPU", "MEMORY", "SWAP", "NET", "TCP"} <= set(names)
    # A busy machine misses some, but none comes twice.
    times = [line.split()[0] for line in told.stdout.splitlines() if "NL.EVNT=CPU" in line]
    assert len(times) == len(set(times)) > 0
    assert {row[1] for row in rows if row} == {this_host()}


def test_a_recording_has_the_points_too(tmp_path: Path) -> None:
    run = tmp_path / "run.ulm"
    gone = PingTarget("gone", str(tmp_path / "none.fits"))
    with recording(run), Monitor(0.05, stores=[gone]) as monitor:
        wait_until(lambda: sum(point.name == "PING" for point in monitor.samples) >= 3)
    found = read(run)
    assert not found.damaged
    names = [found.event.words[code] for code in found.event.codes]
    for name in ("CPU", "MEMORY", "TCP", "PING"):
        assert names.count(name) == sum(point.name == name for point in monitor.samples)
    user = found.fields["USER_PERCENT"]
    assert not isinstance(user, CodedColumn)
    assert [value for value in user.tolist() if value == value] == [
        point.fields["USER_PERCENT"] for point in monitor.samples if point.name == "CPU"
    ]


def test_the_command_to_a_file_and_to_a_collector(tmp_path: Path) -> None:
    collected, run = tmp_path / "collected.ulm", tmp_path / "run.ulm"
    with Collector(collected) as collector:

        def came(_lines: str) -> bool:
            wait_until(lambda: not collector.senders and not collector.writer.waiting_bytes)
            lines = collected.read_text()
            return "NL.EVNT=CLOCK" in lines and "NL.EVNT=CPU" in lines

        told = watched("-o", collector.address, enough=came)
        assert told.stdout == ""
    watched("-o", run, enough=lambda _lines: "NL.EVNT=CPU" in run.read_text())
    for path in (collected, run):
        found = read(path)
        assert not found.damaged
        times = found.time_ns[found.event.codes == found.event.words.index("CPU")]
        assert len(set(times.tolist())) == len(times)


def test_the_output_of_the_command_is_not_that_of_all_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, everyones = tmp_path / "own.ulm", tmp_path / "everyones.ulm"
    monkeypatch.setenv(VARIABLE, str(everyones))
    told = watched("-o", own, enough=lambda _lines: "NL.EVNT=CPU" in own.read_text())
    assert told.stdout == told.stderr == ""
    assert "NL.EVNT=CPU" not in everyones.read_text()
    # Without one it records there, and prints.
    told = watched(enough=lambda _lines: "NL.EVNT=CPU" in everyones.read_text())
    assert "NL.EVNT=CPU" in told.stdout


def test_lines_are_read_as_they_were_meant(tmp_path: Path) -> None:
    odd = 'a "b" \\ \t c=d\n\x01 Hä'
    told = Point(1_795_224_638_055_784_999, "PING", {"STORE": odd, "RTT_S": 1.5e-7}).as_line()
    path = tmp_path / "run.ulm"
    path.write_text(told + "\n")
    found = read(path)
    assert found.time_ns.tolist() == [1_795_224_638_055_784_000]
    stores = found.fields["STORE"]
    assert isinstance(stores, CodedColumn)
    assert stores.words == (odd,)
    rtt = found.fields["RTT_S"]
    assert not isinstance(rtt, CodedColumn)
    assert rtt.tolist() == [1.5e-7]


@given(st.dictionaries(st.sampled_from(["A", "B-1", "C.D_E"]), st.text(min_size=1), min_size=1))
def test_any_text_is_read_as_it_was_meant(
    new_path: Callable[[str], Path], fields: dict[str, str]
) -> None:
    path = new_path(".ulm")
    path.write_text(f"{_swathe.ulm_line(0, 'a b', 'X', {**fields, 'JOB': '7'})}\n", newline="")
    found = read(path)
    assert found.damaged == ()
    for key, text in fields.items():
        column = found.fields[key]
        if isinstance(column, CodedColumn):
            assert column.words == (text,)
        else:
            assert column.tolist() == [float(text)]


def test_the_command_ends_when_told() -> None:
    process = subprocess.Popen(
        [SWATHE, "trace", "host", "--interval", "0.1s"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_the_command_ends_when_nobody_reads_it() -> None:
    command = [str(SWATHE), "trace", "host", "--interval", "0.1s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        try:
            assert process.wait(30) != 0
        finally:
            process.kill()
        assert process.stderr.read() == b""
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 6
    assert done.stderr == "swathe: standard output: No space left on device\n"


def test_the_command_asks_stores(tmp_path: Path) -> None:
    (tmp_path / "a.fits").write_bytes(bytes(2880))
    told = watched("--store", tmp_path / "a.fits", enough=lambda lines: "=PING" in lines)
    pings = [line for line in told.stdout.splitlines() if "NL.EVNT=PING" in line]
    assert pings
    assert all(re.search(rf" STORE={tmp_path / 'a.fits'} RTT_S=\d", line) for line in pings)


def test_a_store_that_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Runner(monkeypatch, capsys)
    run("trace", "host", "--store", "/no/such/folder/", "--for", "0.1s", code=3)
