"""The block server when disks hang, come and go, and when clients are slow or odd."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.stores.test_block_server import CONTENT, LARGE, client_of, file_of, names_on
from tests.support.block_servers import END_S, BlockServer, block_server

pytestmark = pytest.mark.more
STRACE = shutil.which("strace")


def values(client: httpx.Client) -> dict[str, float]:
    """Return the metrics."""
    lines = client.get("/metrics").text.splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


def wait_until(test: Callable[[], bool]) -> None:
    end = time.monotonic() + END_S
    while not test():
        assert time.monotonic() < end
        time.sleep(0.02)


def connect(server: BlockServer) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=END_S)


@contextlib.contextmanager
def hanging(disk: Path) -> Iterator[None]:
    """Let all work on a disk hang: its identity is a pipe that nobody writes to."""
    away, other = disk.with_name("away"), disk.with_name("hanging")
    (other / ".swathe").mkdir(parents=True)
    os.mkfifo(other / ".swathe" / "disk")
    disk.rename(away)
    other.rename(disk)
    try:
        yield
    finally:
        disk.rename(other)
        away.rename(disk)
        with contextlib.suppress(OSError):  # nobody reads it any more
            os.close(os.open(other / ".swathe" / "disk", os.O_WRONLY | os.O_NONBLOCK))


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of a size in memory."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a memory disk cannot be mounted: needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_hangs_leaves_places_to_others(disks: list[Path]) -> None:
    with block_server(*disks) as server, client_of(server) as client:
        lost_names = names_on(disks, disks[1], client)
        other_names = sorted(path.name for path in disks[0].glob("n*"))
        request = f"GET /{lost_names[0]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        queue = f'swathe_disk_queue_length{{disk="{disks[1]}"}}'
        waiting = []

        def is_crowded() -> bool:
            # Many at a time whose request has not come yet are closed.
            for _ in range(150):
                waiting.append(connect(server))
                waiting[-1].sendall(request)
                time.sleep(0.002)
            return values(client)[queue] > 100

        with hanging(disks[1]):
            wait_until(is_crowded)
            is_crowded()
            for name in other_names:
                assert client.get(f"/{name}").content == CONTENT
        answers = []
        for connection in waiting:
            with contextlib.suppress(ConnectionResetError):
                answers.append(connection.recv(4096))
        assert any(b"requests wait for it" in answer for answer in answers)
        for connection in waiting:
            connection.close()
        assert client.get(f"/{lost_names[0]}").content == CONTENT, "it answers again"


def put_all(server_disks: list[Path], names: list[str], content: bytes) -> list[str]:
    """Write objects with a server of its own; return the names that it took."""
    with block_server(*server_disks) as server, client_of(server) as client:
        status = {name: client.put(f"/{name}", content=content).status_code for name in names}
    assert set(status.values()) <= {201, 204, 503}
    return [name for name in names if status[name] != 503]


def test_of_two_objects_of_one_name_the_newer_counts(disks: list[Path]) -> None:
    names = [f"n{number}" for number in range(20)]
    away = [disk.with_name(f"{disk.name}-away") for disk in disks]
    assert put_all(disks[1:], names, b"first") == names
    with block_server(*disks):
        pass
    # The first disk is new: names that belong there are written while the other is away.
    disks[1].rename(away[1])
    names = put_all(disks, names, b"second")
    assert names
    disks[0].rename(away[0])
    away[1].rename(disks[1])
    newer = names[::2]
    assert put_all(disks, newer, b"third") == newer
    away[0].rename(disks[0])
    contents = {name: b"third" if name in newer else b"second" for name in names}
    with block_server(*disks) as server, client_of(server) as client:
        for name, content in contents.items():
            answer = client.get(f"/{name}")
            assert (answer.content, answer.headers["swathe-verified"]) == (content, "yes")
        wait_until(lambda: values(client)["swathe_server_names_consistent"] == 1)
        for name, content in contents.items():
            assert file_of(disks, name).read_bytes() == content
            assert client.get(f"/{name}").content == content
        counts = [
            values(client)[f'swathe_disk_aside_objects_total{{disk="{disk}"}}'] for disk in disks
        ]
        aside = [sorted((disk / ".swathe" / "aside").iterdir()) for disk in disks]
        assert [len(paths) for paths in aside] == counts
        assert sum(counts) == len(names)
        assert {path.read_bytes() for path in aside[0]} == {b"second"}
        assert {path.read_bytes() for path in aside[1]} == {b"first"}
        for name in names:
            assert client.delete(f"/{name}").status_code == 204
            assert client.get(f"/{name}").status_code == 404


def test_a_disk_that_comes_back_brings_no_old_object(disks: list[Path]) -> None:
    names = [f"n{number}" for number in range(20)]
    put_all(disks[1:], names, b"first")
    away = disks[1].with_name("away")
    with block_server(*disks) as server, client_of(server) as client:
        disks[1].rename(away)
        names = [n for n in names if client.put(f"/{n}", content=b"second").status_code == 201]
        assert names
        away.rename(disks[1])
        for name in names:
            assert client.get(f"/{name}").content == b"second"
        wait_until(lambda: not any((disks[1] / name).exists() for name in names))
        wait_until(lambda: values(client)["swathe_server_names_consistent"] == 1)
        listing = client.get("/").text
        assert all(listing.count(f">{name}<") == 1 for name in names)


def test_a_second_server_changes_nothing(disks: list[Path], tmp_path: Path) -> None:
    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    (tmp_path / "new").mkdir()
    command = [sys.executable, "-m", "swathe.cli", "stripe", "serve", "--port", "0"]
    with block_server(*disks) as server, client_of(server) as client:
        client.put("/a", content=CONTENT)
        before = files()
        for words in ([disks[0]], [tmp_path / "new", disks[1]]):
            options = [word for disk in words for word in ("--disk", str(disk))]
            result = subprocess.run(
                [*command, *options], capture_output=True, text=True, timeout=END_S
            )
            assert result.returncode == 2
            assert "another server uses it" in result.stderr
            assert files() == before


def test_what_may_be_on_a_missing_disk_is_not_claimed(disks: list[Path]) -> None:
    with block_server(*disks) as server, client_of(server) as client:
        names_on(disks, disks[1], client)
        name = min(path.name for path in disks[0].glob("n*"))
        etag = client.get(f"/{name}").headers["etag"]
        client.request("MKCOL", "/run")
        away = disks[1].with_name("away")
        disks[1].rename(away)
        free = [f"/free{number}" for number in range(20)]
        for method, path, headers in (
            *(("PUT", path, {"If-None-Match": "*"}) for path in free),
            *(("PUT", path, {"If-Match": etag}) for path in free),
            *(("DELETE", path, {}) for path in free),
            ("DELETE", f"/{name}", {}),
            ("DELETE", "/run/", {}),
            ("MKCOL", "/new", {}),
            ("MKCOL", "/none/new", {}),
            ("MOVE", f"/{name}", {"Destination": "/other"}),
        ):
            answer = client.request(method, path, headers=headers)
            assert (answer.status_code, "missing" in answer.text) == (503, True), (method, path)
        # What is known is still said, and what is known to be new is written.
        assert client.request("MKCOL", "/run").status_code == 405
        assert (
            client.put(f"/{name}", content=b"x", headers={"If-None-Match": "*"}).status_code == 412
        )
        assert client.put(f"/{name}", content=b"x", headers={"If-Match": etag}).status_code == 204
        put = [path for path in free if client.put(path, content=b"x").status_code == 201]
        assert put, "names whose place is on the disk that is there"
        for number in range(20):
            part = f"/.m{number}.fits-0123abcd.part"
            if client.put(part, content=CONTENT).status_code == 201:
                break
        to = {"Destination": f"/run/m{number}.fits", "Overwrite": "T"}
        assert client.request("MOVE", part, headers=to).status_code in (201, 503)
        away.rename(disks[1])
        assert client.delete(f"/{name}").status_code == 204


def test_a_body_in_tiny_chunks_takes_little_memory(disks: list[Path]) -> None:
    def peak(server: BlockServer) -> int:
        text = Path(f"/proc/{server.process.pid}/status").read_text()
        (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", text)
        return int(kilobytes) << 10

    size, writers = 500_000, 4
    body = b"1\r\nx\r\n" * size + b"0\r\n\r\n"
    with block_server(*disks) as server, client_of(server) as client:
        client.put("/before", content=LARGE)
        before = peak(server)

        def write(number: int) -> None:
            with connect(server) as connection:
                head = f"PUT /a{number} HTTP/1.1\r\nHost: localhost\r\n"
                connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
                connection.sendall(body)
                assert b" 201 " in connection.recv(4096)

        threads = [threading.Thread(target=write, args=[number]) for number in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(END_S)
        assert client.get("/a0").content == b"x" * size
        # A piece is 512 KiB; two for each writer.
        assert peak(server) - before < 20 << 20


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
def test_new_folders_are_on_the_disk_before_the_answer(disks: list[Path], tmp_path: Path) -> None:
    log = tmp_path / "calls"
    (disks[0] / "run" / "deep").mkdir(parents=True)
    calls = "trace=mkdir,mkdirat,fsync"
    prefix = (STRACE, "-D", "-f", "-y", "-e", calls, "-o", log)
    with block_server(*disks, prefix=prefix) as server, client_of(server) as client:
        for number in range(20):
            assert client.put(f"/run/deep/n{number}", content=CONTENT).status_code == 201
        assert any((disks[1] / "run" / "deep").iterdir())
        assert client.request("MKCOL", "/new").status_code == 201
        server.end()
    lines = log.read_text().splitlines()
    made = {"run", "run/deep", "new"}
    for number, line in enumerate(lines):
        match = re.search(r'mkdirat\(\d+<([^>]*)>, "([^"]+)", \d+\) += 0', line)
        match = match or re.search(r'mkdir\("(.*)/([^/"]+)", \d+\) += 0', line)
        if match and match[1].startswith(str(disks[1])):
            made.discard(str((Path(match[1]) / match[2]).relative_to(disks[1])))
            rest = lines[number + 1 :]
            assert any(re.search(rf"fsync\(\d+<{re.escape(match[1])}>", each) for each in rest), (
                line
            )
    assert made <= {"new"}, "each was made by the server"


def test_an_upload_that_has_its_name_already_keeps_its_checksums(disks: list[Path]) -> None:
    with block_server(*disks) as server, client_of(server) as client:
        client.put("/a", content=CONTENT)
    # As after a kill between the two steps of a rename: link, then unlink.
    file = file_of(disks, "a")
    new = file.parent / ".swathe" / "new" / "put-0123456789abcdef"
    os.link(file, new)
    with block_server(*disks) as server, client_of(server) as client:
        answer = client.get("/a")
        assert (answer.content, answer.headers["swathe-verified"]) == (CONTENT, "yes")
        assert not new.exists()


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
def test_late_work_keeps_the_lock_of_its_name(disks: list[Path], tmp_path: Path) -> None:
    """The first rename takes longer than the server waits for a disk (60 s)."""
    delay = "inject=renameat2:delay_enter=75000000:when=1"
    prefix = (STRACE, "-D", "-f", "-e", "trace=renameat2", "-e", delay, "-o", tmp_path / "calls")
    new = {"If-None-Match": "*"}
    with block_server(disks[0], prefix=prefix) as server, client_of(server) as client:
        answer = client.put("/a", content=b"first", headers=new)
        assert (answer.status_code, "no answer in 60 s" in answer.text) == (503, True)
        assert client.put("/a", content=b"second", headers=new).status_code == 412
        assert client.get("/a").content == b"first"


def make_secret_folder(disk: Path) -> None:
    """Make a folder as lost+found, for a server that is not root."""
    (disk / "lost+found").mkdir(parents=True)
    (disk / "lost+found").chmod(0)
    if os.geteuid() == 0:
        os.chown(disk / "lost+found", 65534, 65534)


def drop_rights() -> None:
    """Read and search only what others may, from the next command on."""
    libc = ctypes.CDLL(None)
    drop, rights = 24, (1, 2)  # PR_CAPBSET_DROP: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    for right in rights:
        libc.prctl(drop, right, 0, 0, 0)


def test_a_folder_that_may_not_be_read_ends_no_comparison(disks: list[Path]) -> None:
    for disk in disks:
        make_secret_folder(disk)
    names = [f"n{number}" for number in range(20)]
    put_all(disks[1:], names, b"first")
    away = disks[1].with_name("away")
    with block_server(*disks, prepare=drop_rights) as server, client_of(server) as client:
        disks[1].rename(away)
        names = [n for n in names if client.put(f"/{n}", content=b"second").status_code == 201]
        assert names
        away.rename(disks[1])
        wait_until(lambda: values(client)["swathe_server_names_consistent"] == 1)
        wait_until(lambda: not any((disks[1] / name).exists() for name in names))
        assert {client.get(f"/{name}").content for name in names} == {b"second"}


def test_a_folder_that_may_not_be_read_is_no_missing_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    make_secret_folder(disk)
    options = ("--max-bytes", "1000000")
    with (
        block_server(disk, options=options, prepare=drop_rights) as server,
        client_of(server) as client,
    ):
        assert server.notes == []
        assert client.put("/a", content=CONTENT).status_code == 201


def test_slow_bodies_lose_their_places(disks: list[Path]) -> None:
    with block_server(*disks) as server, client_of(server) as client:
        slow = []
        for method, path, status in (
            ("MKCOL", "/new", b" 408 "),
            ("DELETE", "/a", b" 408 "),
            ("PUT", "/none/a", b" 409 "),
        ):
            connection = connect(server)
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\nx"
            connection.sendall(head.encode())
            slow.append((connection, status))
        for connection, status in slow:
            assert status in connection.recv(4096)
        wait_until(lambda: values(client)["swathe_server_requests_in_flight"] == 1)
        for connection, _ in slow:
            connection.close()


def test_nothing_is_moved_to_the_page_of_metrics(disks: list[Path]) -> None:
    with block_server(*disks) as server, client_of(server) as client:
        client.put("/a", content=CONTENT)
        answer = client.request("MOVE", "/a", headers={"Destination": "/metrics"})
        assert answer.status_code == 400
        assert client.get("/a").content == CONTENT
        for method in ("MOVE", "DELETE", "MKCOL", "RESERVE"):
            answer = client.request(method, "/metrics", headers={"Destination": "/b"})
            assert answer.status_code == 405


def reserve(client: httpx.Client, path: str, size: int, **headers: str) -> httpx.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.request("RESERVE", path, headers={"Swathe-Bytes": str(size), **names})


def test_room_is_reserved_filled_and_free_again(tmp_path: Path) -> None:
    mega = 1 << 20
    with (
        small_disk(tmp_path / "disk", "16m") as disk,
        block_server(disk) as server,
        client_of(server) as client,
    ):
        room_bytes = f'swathe_disk_reserved_bytes{{disk="{disk}"}}'
        answer = reserve(client, "/a", 8 * mega)
        assert answer.status_code == 201
        room = answer.headers["swathe-room"]
        assert values(client)[room_bytes] == 8 * mega
        answer = client.put("/other", content=bytes(12 * mega))
        assert (answer.status_code, str(disk) in answer.text) == (507, True)
        answer = reserve(client, "/b", 12 * mega)
        assert (answer.status_code, str(disk) in answer.text) == (507, True)
        # More of it, or not: then it is as it was.
        assert reserve(client, "/a", 12 * mega, Swathe_Room=room).status_code == 200
        assert reserve(client, "/a", 40 * mega, Swathe_Room=room).status_code == 507
        assert values(client)[room_bytes] == 12 * mega
        # It is filled with less, and the rest is free.
        headers = {"Swathe-Room": room}
        assert client.put("/run/a", content=b"x", headers=headers).status_code == 409
        assert client.put("/a", content=LARGE, headers=headers).status_code == 201
        assert client.get("/a").content == LARGE
        assert values(client)[room_bytes] == 0
        assert client.put("/b", content=bytes(10 * mega)).status_code == 201
        assert client.put("/c", content=LARGE, headers=headers).status_code == 412
        client.delete("/b")
        # It is given back, or its time is over.
        room = reserve(client, "/a", 8 * mega).headers["swathe-room"]
        assert reserve(client, "/a", 0, Swathe_Room=room).status_code == 204
        assert reserve(client, "/a", 0, Swathe_Room=room).status_code == 412
        assert client.put("/b", content=bytes(10 * mega)).status_code == 201
        client.delete("/b")
        room = reserve(client, "/a", 8 * mega, Swathe_Seconds="1").headers["swathe-room"]
        wait_until(lambda: values(client)[room_bytes] == 0)
        wait_until(lambda: not list((disk / ".swathe" / "new").iterdir()))
        assert client.put("/a", content=LARGE, headers={"Swathe-Room": room}).status_code == 412
        # A server that is killed finds none.
        reserve(client, "/a", 8 * mega)
        server.end(signal.SIGKILL)
        with block_server(disk) as again, client_of(again) as other:
            assert other.put("/b", content=bytes(10 * mega)).status_code == 201
            assert list((disk / ".swathe" / "new").iterdir()) == []


def test_room_within_the_limit_of_a_disk(disks: list[Path]) -> None:
    with (
        block_server(disks[0], options=("--max-bytes", "1000000")) as server,
        client_of(server) as client,
    ):
        room = reserve(client, "/a", 900_000).headers["swathe-room"]
        assert client.put("/b", content=bytes(200_000)).status_code == 507
        headers = {"Swathe-Room": room}
        assert client.put("/a", content=bytes(100_000), headers=headers).status_code == 201
        assert client.put("/b", content=bytes(800_000)).status_code == 201


@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ({}, 400, "expected Swathe-Bytes"),
        ({"Swathe-Bytes": "many"}, 400, "expected a number"),
        ({"Swathe-Bytes": "-5"}, 400, "expected a number"),
        ({"Swathe-Bytes": "0"}, 400, "1 byte or more"),
        ({"Swathe-Bytes": "5", "Swathe-Seconds": "4000"}, 400, "from 1 to 3600"),
        ({"Swathe-Bytes": "5", "Swathe-Room": "x y"}, 400, "number of a room"),
        ({"Swathe-Bytes": "5", "Swathe-Room": "12"}, 412, "room that is reserved"),
        ({"Swathe-Bytes": str(1 << 62)}, 507, "full"),
    ],
)
def test_wrong_reservations(
    disks: list[Path], headers: dict[str, str], status: int, text: str
) -> None:
    with block_server(*disks) as server, client_of(server) as client:
        answer = client.request("RESERVE", "/a", headers=headers)
        assert (answer.status_code, text in answer.text) == (status, True), answer.text


def test_rooms_are_few(disks: list[Path]) -> None:
    with block_server(*disks) as server, client_of(server) as client:
        for number in range(256):
            assert reserve(client, f"/{number}", 1).status_code == 201
        assert reserve(client, "/more", 1).status_code == 503
