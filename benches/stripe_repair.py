"""The parts of a lost server made again: alone, beside reads, and after the repair was killed.

There are five block servers, one of them of parity, each behind a link of its own. The link limits
what is read of a server, and what is written to it. So a part cannot be made again faster than the
line of one server gives its share: that is the slower side.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import swathe
from links import FOLDER
from stripe_lab import AT_ONCE, RATE, Rows, declare_stripe, pattern, requests_of, serve
from swathe.stores.registry import known_stores

SERVERS, LOST = 5, 2
REPAIR = (sys.executable, "-m", "swathe.cli", "stripe", "repair", "wide", "--json")
STEP_S = 0.02
LIMIT_S = 600


def repair_beside_reads(*, is_smoke: bool) -> Rows:
    """Remove the parts of a server again and again, and repair the store."""
    objects, size, seconds = (4, 4 << 20, 0.5) if is_smoke else (20, 4 * RATE, 15.0)
    with ExitStack() as stack:
        linked = [serve("blocks", RATE, stack) for _ in range(SERVERS)]
        declare_stripe([dav(server.url) for server in linked])
        write_objects(objects, size)
        declare_stripe([dav(server.link.url) for server in linked])
        disk = linked[LOST].folder
        part_bytes = sum(path.stat().st_size for path in parts_on(disk))
        remove_parts(disk)
        yield repair_row("repair alone", repair(), objects, part_bytes)

        remove_parts(disk)
        reader = Reader(size)
        first = time.perf_counter()
        reader.start()
        time.sleep(seconds)
        begin = time.perf_counter()
        report = repair()
        end = time.perf_counter()
        reader.stop()
        alone, meanwhile = reader.rate(first, begin), reader.rate(begin, end)
        row = repair_row("repair beside reads", report, objects, part_bytes)
        share = meanwhile / alone if alone else math.nan
        print(
            f"reads: {alone / 1e6:.1f} MB/s without a repair, {meanwhile / 1e6:.1f} MB/s beside "
            f"it, {share:.2f} of that",
            flush=True,
        )
        yield {**row, "read_mb_per_s": alone / 1e6, "read_meanwhile_mb_per_s": meanwhile / 1e6}

        remove_parts(disk)
        before = kill_a_repair(disk, objects // 2)
        report = repair()
        after = {path.name: identity(path) for path in parts_on(disk)}
        again = [name for name, what in before.items() if after.get(name) != what]
        if again or report["parts"] != objects - len(before):
            raise RuntimeError(
                f"repair after a kill: expected {objects - len(before)} parts, found "
                f"{report['parts']}, and written again: {again}"
            )
        whole = swathe.stores.check_stripes("wide", deep=True, progress=False).is_whole
        if not whole:
            raise RuntimeError("repair after a kill: expected whole objects, found others")
        row = repair_row("repair after a kill", report, objects - len(before), part_bytes)
        print(f"{len(before)} parts were there, and were not written again", flush=True)
        yield {**row, "parts_before": len(before)}


def dav(url: str) -> str:
    """Return the URL of a server as that of a store that can be written."""
    return url.replace("http://", "dav://")


def write_objects(count: int, size: int) -> None:
    """Write objects of some bytes to `wide:`."""
    with tempfile.NamedTemporaryFile(dir=FOLDER) as file:
        file.write(pattern(size))
        file.flush()
        for number in range(count):
            swathe.stores.copy_objects(file.name, f"wide:{number:03}", progress=False)


def parts_on(disk: Path) -> list[Path]:
    """Return the parts on a disk that have their names."""
    return sorted(disk.glob("[!.]*.stripe.*"))


def remove_parts(disk: Path) -> None:
    """Remove the parts and records of a disk, as those of a new disk in place of a lost one."""
    for path in disk.glob("*.stripe*"):
        path.unlink()


def identity(path: Path) -> tuple[int, int]:
    """Return what changes if a file is written again."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def repair() -> dict[str, Any]:
    """Repair `wide:` in a process of its own; return its report."""
    done = subprocess.run(REPAIR, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"repair: {done.stdout[-1000:]} {done.stderr[-1000:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def kill_a_repair(disk: Path, count: int) -> dict[str, tuple[int, int]]:
    """Kill a repair when a disk has `count` parts; return these parts."""
    until = time.monotonic() + LIMIT_S
    with subprocess.Popen(REPAIR, stdout=subprocess.DEVNULL) as process:
        while len(parts_on(disk)) < count:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"repair: expected {count} parts before its end, found fewer")
            time.sleep(STEP_S)
        process.kill()
    return {path.name: identity(path) for path in parts_on(disk)}


class Reader:
    """Reads the objects of `wide:` one after another, in a thread of its own."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._times: list[float] = []
        self._is_stopping = threading.Event()
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def rate(self, begin: float, end: float) -> float:
        """Return the bytes per second of the objects whose reads ended in a time."""
        count = sum(begin <= each <= end for each in self._times)
        return self._size * count / (end - begin)

    def stop(self) -> None:
        """End; raise the error that ended it before, if there is one."""
        self._is_stopping.set()
        self._thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self) -> None:
        stores = known_stores()
        assert stores is not None
        requests = requests_of(self._size)
        number = 0
        try:
            while not self._is_stopping.is_set():
                stores.open(f"wide:{number % 2:03}").measure(requests, AT_ONCE)
                self._times.append(time.perf_counter())
                number += 1
        except Exception as error:
            self._errors.append(error)


def repair_row(what: str, report: dict[str, Any], parts: int, part_bytes: int) -> dict[str, Any]:
    """Print and return a row of a repair."""
    rate = report["written_bytes"] / report["elapsed_s"]
    print(
        f"{what}: {report['parts']} of {parts} parts, {report['written_bytes'] / 1e6:.0f} MB in "
        f"{report['elapsed_s']:.1f} s, {rate / 1e6:.2f} MB/s, {rate / RATE:.3f} of a server's line",
        flush=True,
    )
    return {"what": what, "part_bytes": part_bytes, "mb_per_s": rate / 1e6, "part": rate / RATE}
