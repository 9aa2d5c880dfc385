"""Striped stores over real servers that fail: every byte is right, or an error names the server."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.core import errors
from swathe.core.errors import SourceError, SwatheError
from tests.support import servers
from tests.support.block_servers import BlockServer, block_server

pytestmark = [pytest.mark.more, pytest.mark.usefixtures("own_catalog")]

SERVERS, PARITY = 5, 1
SHAPE = (600, 700)
FRAMES = 4
SIDE = 20
CUTS = 10_000 if os.environ.get("SWATHE_TEST_MANY") else 2_000
KILLS = int(os.environ.get("SWATHE_TEST_KILLS", "20"))
"""Of the writer, and of servers; SWATHE_TEST_KILLS=100 for a night."""
BLOCK_BYTES = 65_536


@dataclass
class Lab:
    """Servers, each behind a proxy, and the frames on `wide:`."""

    folders: list[Path]
    proxies: list[servers.Proxy]
    images: dict[str, np.ndarray] = field(default_factory=dict)


def declare(roots: list[str]) -> None:
    """Declare `wide:` over stores with these roots; those of before are forgotten."""
    for store in swathe.stores.list():
        if store.name == "wide":
            swathe.stores.remove("wide")
    for number, root in enumerate(roots):
        if any(store.name == f"disk{number}" for store in swathe.stores.list()):
            swathe.stores.remove(f"disk{number}")
        swathe.stores.add(f"disk{number}", root)
    names = [f"disk{number}" for number in range(len(roots))]
    swathe.stores.add("wide", "striped:", over=names, parity=PARITY, block_bytes=BLOCK_BYTES)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with ExitStack() as stack:
        folders, proxies = [], []
        for number in range(SERVERS):
            (tmp_path / f"s{number}").mkdir()
            server = stack.enter_context(servers.nginx(tmp_path / f"s{number}"))
            folders.append(server.folder)
            proxies.append(stack.enter_context(servers.proxy(server.url, rtt_ms=2)))
        there = Lab(folders, proxies)
        declare([str(folder) for folder in folders])
        draw = np.random.default_rng(3)
        for number in range(FRAMES):
            image = draw.integers(0, 30_000, SHAPE, np.int16)
            fits.writeto(tmp_path / f"frame-{number}.fits", image)
            there.images[f"frame-{number}.fits"] = image
        frames = [str(tmp_path / name) for name in there.images]
        swathe.stores.copy_objects(frames, "wide:", progress=False)
        declare([proxy.url for proxy in proxies])
        yield there


def targets_of(there: Lab, count: int) -> dict[str, list[object]]:
    draw = random.Random(5)
    names = [draw.choice(list(there.images)) for _ in range(count)]
    return {
        "file": [f"wide:{name}" for name in names],
        "x0": [draw.randrange(SHAPE[1] - SIDE) for _ in names],
        "y0": [draw.randrange(SHAPE[0] - SIDE) for _ in names],
        "width": [SIDE] * count,
        "height": [SIDE] * count,
        "id": [str(number) for number in range(count)],
    }


def assert_cuts_are_right(there: Lab, tmp_path: Path, count: int = CUTS) -> None:
    """Cut, and compare each cutout with astropy."""
    targets = targets_of(there, count)
    manifest = swathe.cut_many(targets, tmp_path / "cuts.tar", progress=False)
    assert set(manifest["status"]) == {"ok"}
    rows = {str(row["id"]): number for number, row in enumerate(manifest)}
    assert len(rows) == count
    outputs = {str(row["path"]): str(row["id"]) for row in manifest}
    checked = 0
    with tarfile.open(tmp_path / "cuts.tar") as archive:
        for member in archive:
            number = outputs.get(member.name)
            if number is None:
                continue
            content = archive.extractfile(member)
            assert content is not None
            pixels = fits.getdata(io.BytesIO(content.read()))
            at = int(number)
            name = str(targets["file"][at]).partition(":")[2]
            x0, y0 = int(str(targets["x0"][at])), int(str(targets["y0"][at]))
            expected = there.images[name][y0 : y0 + SIDE, x0 : x0 + SIDE]
            assert np.array_equal(pixels, expected), (name, x0, y0)
            checked += 1
    assert checked == count


def test_cuts_through_links_that_fail_are_right(lab: Lab, tmp_path: Path) -> None:
    for proxy in lab.proxies:
        proxy.set(reset=0.01, truncate=0.01, unavailable=0.01, stall=0.002, stall_s=1)
    assert_cuts_are_right(lab, tmp_path)


def test_cuts_are_right_with_a_part_of_each_object_gone(lab: Lab, tmp_path: Path) -> None:
    draw = random.Random(2)
    for name in lab.images:
        server = draw.randrange(SERVERS)
        [part] = lab.folders[server].glob(f"{name}.stripe.*")
        part.unlink()
    assert_cuts_are_right(lab, tmp_path)


def test_cuts_are_right_where_bytes_of_a_server_are_flipped(lab: Lab, tmp_path: Path) -> None:
    draw = random.Random(4)
    for part in lab.folders[1].glob("*.stripe.*"):
        content = bytearray(part.read_bytes())
        for _ in range(20):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        part.write_bytes(content)
    assert_cuts_are_right(lab, tmp_path, 1_000)
    declare([str(folder) for folder in lab.folders])
    repair = swathe.stores.repair_stripes("wide:", deep=True, progress=False)
    assert (repair.repairs, repair.faults) == (FRAMES, [])
    assert swathe.stores.check_stripes("wide:", deep=True, progress=False).is_whole


def test_a_server_that_is_killed_while_it_is_read_costs_nothing(lab: Lab, tmp_path: Path) -> None:
    proxy = lab.proxies[3]
    watch = proxy.act_after(200_000, proxy.process.kill)
    assert_cuts_are_right(lab, tmp_path, 2_000)
    watch.join()
    assert proxy.process.poll() is not None


def test_servers_beyond_parity_are_named(lab: Lab) -> None:
    for number in (0, 2):
        lab.proxies[number].process.kill()
        lab.proxies[number].process.wait()
    with pytest.raises(SourceError, match=r"disk[02]:"):
        swathe.cut("wide:frame-0.fits", box=(0, 0, 700, 600))


WRITER = """
import sys
import swathe
swathe.stores.stat_object("wide:object")
print("ready", flush=True)
swathe.stores.copy_objects(sys.argv[1], "wide:object", overwrite=True, progress=False)
"""


def write(file: Path) -> subprocess.Popen[str]:
    """Write a file to `wide:object` in a process of its own, which begins now."""
    command = [sys.executable, "-c", WRITER, str(file)]
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    writer = subprocess.Popen(command, env=os.environ, stdout=pipe, stderr=none, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    return writer


def test_a_writer_that_is_killed_leaves_the_old_object_or_the_new(tmp_path: Path) -> None:
    roots = []
    for number in range(SERVERS):
        (tmp_path / f"s{number}").mkdir()
        roots.append(str(tmp_path / f"s{number}"))
    declare(roots)
    draw = random.Random(1)
    contents = [random.Random(number).randbytes(8 << 20) for number in range(2)]
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.bin").write_bytes(content)
    swathe.stores.copy_objects(tmp_path / "0.bin", "wide:object", progress=False)
    began = time.perf_counter()
    write(tmp_path / "1.bin").communicate()
    whole_s = time.perf_counter() - began
    seen = set()
    for _ in range(KILLS):
        writer = write(tmp_path / f"{draw.randrange(2)}.bin")
        time.sleep(draw.uniform(0, 1.5 * whole_s))
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        swathe.stores.copy_objects("wide:object", tmp_path / "out", overwrite=True, progress=False)
        content = (tmp_path / "out").read_bytes()
        assert content in contents
        seen.add(contents.index(content))
    assert seen == {0, 1}
    swathe.stores.repair_stripes("wide:", progress=False)
    report = swathe.stores.check_stripes("wide:", deep=True, progress=False)
    assert (report.objects, report.whole) == (1, 1)


class BlockServers:
    """Block servers that can be killed, and begin again at the same addresses."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.disks = [folder / f"disk{number}" for number in range(SERVERS)]
        self.ports = [servers.free_port() for _ in self.disks]
        self.running: dict[int, BlockServer] = {}
        self._stack = stack
        for disk in self.disks:
            disk.mkdir()
        self.begin()

    @property
    def roots(self) -> list[str]:
        return [f"dav://127.0.0.1:{port}" for port in self.ports]

    def begin(self) -> None:
        """Start those that do not run."""
        for number, (disk, port) in enumerate(zip(self.disks, self.ports, strict=True)):
            if number not in self.running:
                server = block_server(disk, options=("--port", port))
                self.running[number] = self._stack.enter_context(server)

    def kill(self, number: int) -> None:
        self.running.pop(number).end(signal.SIGKILL)


def fault_of_copy(source: str, target: str) -> str | None:
    """Copy an object over another; return the class of the error if it was not copied."""
    report = swathe.stores.copy_objects(source, target, overwrite=True, progress=False)
    assert report.copied + report.failed == 1
    if not report.faults:
        return None
    [fault] = report.faults
    assert issubclass(getattr(errors, fault.kind), SwatheError), fault
    assert fault.reason
    return fault.kind


def fault_beside_kills(
    there: BlockServers,
    numbers: list[int],
    delay_s: float,
    pair: tuple[str, str],
    *,
    is_brief: bool,
) -> str | None:
    """Copy an object, and kill servers after a time, whether it is copied by then or not.

    If it is brief they begin again at once.
    """

    def kill() -> None:
        time.sleep(delay_s)
        for number in numbers:
            there.kill(number)
        if is_brief:
            there.begin()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        return fault_of_copy(*pair)
    finally:
        thread.join()


def test_servers_that_are_killed_leave_the_old_object_or_the_new(tmp_path: Path) -> None:
    draw = random.Random(7)
    contents = [random.Random(number).randbytes(6 << 20) for number in range(2)]
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.bin").write_bytes(content)
    out = tmp_path / "out"
    read, write = ("wide:object", str(out)), (str(tmp_path / "0.bin"), "wide:object")
    seen: set[tuple[str, int, bool]] = set()
    with ExitStack() as stack:
        there = BlockServers(tmp_path, stack)
        declare(there.roots)
        times = []
        for pair in (write, read):
            began = time.perf_counter()
            assert fault_of_copy(*pair) is None
            times.append(time.perf_counter() - began)
        now = 0
        for turn in range(KILLS):
            # Beyond parity in each fifth turn.
            numbers = draw.sample(range(SERVERS), PARITY + (turn % 5 == 0))
            is_read = turn % 2 == 1
            delay_s, new = draw.uniform(0, times[is_read]), now
            if is_read:
                fault = fault_beside_kills(there, numbers, delay_s, read, is_brief=False)
                assert fault is not None or out.read_bytes() == contents[now], turn
                assert fault is None or len(numbers) > PARITY, (turn, fault)
            else:
                new = draw.randrange(2)
                write = (str(tmp_path / f"{new}.bin"), "wide:object")
                # A write tries a server again for 10 s: they stay away in six turns.
                is_brief = turn % 40 not in (4, 10)
                fault = fault_beside_kills(there, numbers, delay_s, write, is_brief=is_brief)
            seen.add(("read" if is_read else "write", len(numbers), fault is None))
            there.begin()
            assert fault_of_copy(*read) is None, turn
            content = out.read_bytes()
            now = new if fault is None or content == contents[new] else now
            assert content == contents[now], (turn, fault)
            repair = swathe.stores.repair_stripes("wide:", progress=False)
            assert not repair.faults, (turn, repair.faults)
        report = swathe.stores.check_stripes("wide:", deep=True, progress=False)
        assert (report.objects, report.whole) == (1, 1)
    assert {("read", 1, True), ("write", 1, True)} <= seen


def test_a_disk_that_fills_up_in_the_middle_of_a_write_is_done_without(tmp_path: Path) -> None:
    small = tmp_path / "s0"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        roots = [str(small)]
        for number in range(1, SERVERS):
            (tmp_path / f"s{number}").mkdir()
            roots.append(str(tmp_path / f"s{number}"))
        declare(roots)
        content = random.Random(1).randbytes(12 << 20)
        (tmp_path / "in").write_bytes(content)
        copies = swathe.stores.copy_objects(tmp_path / "in", "wide:object", progress=False)
        assert not copies.faults
        assert "written without its part on disk0 (" in copies.notes[0]
        assert "No space left on device" in copies.notes[0]
        swathe.stores.copy_objects("wide:object", tmp_path / "out", progress=False)
        assert (tmp_path / "out").read_bytes() == content
        [check] = swathe.stores.check_stripes("wide:", progress=False).checks
        assert [part.state for part in check.parts] == ["missing", *["whole"] * 4]
    finally:
        subprocess.run(["umount", str(small)], check=True)
    # A new disk in its place.
    repair = swathe.stores.repair_stripes("wide:", progress=False)
    assert not repair.faults
    whole = swathe.stores.check_stripes("wide:", deep=True, progress=False)
    assert (whole.objects, whole.whole) == (1, 1)


def test_a_lost_catalogue_is_of_no_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = []
    for number in range(SERVERS):
        (tmp_path / f"s{number}").mkdir()
        roots.append(str(tmp_path / f"s{number}"))
    declare(roots)
    (tmp_path / "in").write_bytes(b"content" * 1000)
    swathe.stores.copy_objects(tmp_path / "in", "wide:object", progress=False)
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/other.sqlite")
    with pytest.raises(SwatheError):
        swathe.stores.stat_object("wide:object")
    # In another order, and with other names.
    swathe.stores.add("again", "striped:", over=roots[::-1], parity=PARITY)
    assert swathe.stores.stat_object("again:object").size == 7000
