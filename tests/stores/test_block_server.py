"""The block server: what it serves, what it refuses, and what it does when disks fail."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe.core.errors import SourceError
from swathe.stores.listing import ListedObject
from tests.support.block_servers import END_S, BlockServer, block_server
from tests.support.fits_frames import Runner

BLOCK_BYTES = 4096
SIZE = 3 * BLOCK_BYTES + 100
CONTENT = bytes(np.random.default_rng(1).integers(0, 256, SIZE, dtype=np.uint8))
LARGE = bytes(np.random.default_rng(2).integers(0, 256, 3_000_001, dtype=np.uint8))


@pytest.fixture
def client(server: BlockServer) -> Iterator[httpx.Client]:
    with client_of(server) as one:
        yield one


def client_of(server: BlockServer, **options: Any) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=120, **options)


def file_of(disks: list[Path], name: str) -> Path:
    """Return the one file of this name on the disks."""
    (path,) = [disk / name for disk in disks if (disk / name).exists()]
    return path


def names_on(disks: list[Path], disk: Path, client: httpx.Client) -> list[str]:
    """Write objects until a disk has some; return their names."""
    for number in range(40):
        assert client.put(f"/n{number}", content=CONTENT).status_code == 201
    assert all(any(each.glob("n*")) for each in disks), "both disks are used"
    return sorted(path.name for path in disk.glob("n*"))


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def parts(answer: httpx.Response) -> list[tuple[str, bytes]]:
    """Return the ranges and bytes of a multipart answer, by their lengths."""
    boundary = answer.headers["content-type"].split("boundary=")[1].encode()
    rest, found = answer.content, []
    while not (rest := rest.removeprefix(b"\r\n")).startswith(b"--" + boundary + b"--"):
        head, rest = rest.split(b"\r\n\r\n", 1)
        line = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Range"))
        text = line.decode().removeprefix("Content-Range: bytes ")
        first, last = text.split("/")[0].split("-")
        length = int(last) - int(first) + 1
        found.append((text, rest[:length]))
        rest = rest[length:]
    return found


def test_an_object_is_written_read_and_removed(client: httpx.Client, disks: list[Path]) -> None:
    answer = client.put("/a.fits", content=CONTENT)
    assert answer.status_code == 201
    etag = answer.headers["etag"]
    assert file_of(disks, "a.fits").read_bytes() == CONTENT
    for method in ("GET", "HEAD"):
        answer = client.request(method, "/a.fits")
        assert answer.status_code == 200
        assert answer.content == (CONTENT if method == "GET" else b"")
        assert answer.headers["content-length"] == str(SIZE)
        assert answer.headers["etag"] == etag
        assert answer.headers["accept-ranges"] == "bytes"
        assert answer.headers["swathe-verified"] == "yes"
        assert answer.headers["last-modified"].endswith("GMT")
    assert client.put("/a.fits", content=LARGE).status_code == 204
    answer = client.get("/a.fits")
    assert (answer.content, answer.headers["etag"] != etag) == (LARGE, True)
    assert client.delete("/a.fits").status_code == 204
    assert client.get("/a.fits").status_code == 404
    assert client.delete("/a.fits").status_code == 404
    left = [path for disk in disks for path in (disk / ".swathe" / "sums").rglob("*")]
    assert not [path for path in left if path.is_file()], "checksums go with their object"


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 1023 * 4096, 1023 * 4096 + 1])
def test_objects_of_any_size_come_back(client: httpx.Client, size: int) -> None:
    content = (LARGE * 2)[:size]

    def chunks() -> Iterator[bytes]:
        for start in range(0, size, 1_000_001):
            yield content[start : start + 1_000_001]

    assert client.put("/chunked", content=chunks()).status_code == 201
    answer = client.get("/chunked")
    assert (answer.status_code, answer.content) == (200, content)
    assert answer.headers["swathe-verified"] == "yes"


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [("0-0", 0, 1), ("4095-4096", 4095, 4097), ("100-", 100, None), ("-1", SIZE - 1, None)],
)
def test_one_range(client: httpx.Client, text: str, start: int, end: int | None) -> None:
    client.put("/a", content=CONTENT)
    answer = client.get("/a", headers={"Range": f"bytes={text}"})
    assert (answer.status_code, answer.content) == (206, CONTENT[start:end])
    last = (SIZE if end is None else end) - 1
    assert answer.headers["content-range"] == f"bytes {start}-{last}/{SIZE}"


def test_many_ranges_come_in_the_order_of_the_request(client: httpx.Client) -> None:
    client.put("/a", content=LARGE)
    starts = [2_000_000, 5, *range(10_000, 2_900_000, 9_001)]
    lengths = [700_000, *[200] * (len(starts) - 1)]
    ranges = [(start, start + length) for start, length in zip(starts, lengths, strict=True)]
    header = ",".join(f"{start}-{end - 1}" for start, end in ranges)
    answer = client.get("/a", headers={"Range": f"bytes={header}"})
    assert answer.status_code == 206
    assert len(answer.content) == int(answer.headers["content-length"])
    assert parts(answer) == [
        (f"{start}-{end - 1}/{len(LARGE)}", LARGE[start:end]) for start, end in ranges
    ]


def test_many_ranges_come_joined_if_that_is_asked_for(client: httpx.Client) -> None:
    client.put("/a", content=LARGE)
    starts = range(10_000, 2_900_000, 9_001)
    asked = {"Swathe-Joined": "yes", "Want-Content-Digest": "crc32c=1"}
    header = ",".join(f"{start}-{start + 199}" for start in starts)
    answer = client.get("/a", headers={"Range": f"bytes={header}", **asked})
    assert (answer.status_code, answer.headers["swathe-joined"]) == (206, str(len(LARGE)))
    assert answer.content == b"".join(LARGE[start : start + 200] for start in starts)
    assert answer.headers["content-digest"].startswith("crc32c=:")
    for other in ("0-1,5-9,3-4", "0-5,5-9"):  # out of order, or overlapping
        answer = client.get("/a", headers={"Range": f"bytes={other}", **asked})
        assert "swathe-joined" not in answer.headers
        assert b"".join(piece for _, piece in parts(answer))


@pytest.mark.parametrize("text", ["9000000-", ",".join(["0-1"] * 1025), ",".join(["0-"] * 10)])
def test_ranges_that_cannot_be_served(client: httpx.Client, text: str) -> None:
    client.put("/a", content=LARGE)
    answer = client.get("/a", headers={"Range": f"bytes={text}"})
    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{len(LARGE)}"


def test_conditions(client: httpx.Client) -> None:
    def put(**headers: str) -> int:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.put("/a", content=CONTENT, headers=names).status_code

    assert put(If_Match="*") == 412
    assert put(If_None_Match="*") == 201
    assert put(If_None_Match="*") == 412
    etag = client.get("/a").headers["etag"]
    assert client.get("/a", headers={"If-None-Match": etag}).status_code == 304
    assert client.get("/a", headers={"If-Match": '"other"'}).status_code == 412
    assert put(If_Match=etag) == 204
    assert put(If_Match=etag) == 412, "it has another version now"
    old = client.get("/a", headers={"If-Range": etag, "Range": "bytes=0-1"})
    assert (old.status_code, len(old.content)) == (200, SIZE)
    assert client.delete("/a", headers={"If-Match": etag}).status_code == 412


def test_a_folder_is_no_object(server: BlockServer, client: httpx.Client) -> None:
    client.request("MKCOL", "/run")
    client.put("/run/a", content=b"1")
    for method in ("GET", "HEAD"):
        answer = client.request(method, "/run")
        assert (answer.status_code, answer.headers["location"]) == (301, "/run/")
        assert client.request(method, "/run/").status_code == 200
        assert client.request(method, "/run/a/").status_code == 404
    for scheme in ("dav", "http"):
        swathe.stores.add(f"by-{scheme}", server.url.replace("http", scheme, 1))
        with pytest.raises(SourceError, match="is a folder, not an object"):
            swathe.open(f"by-{scheme}:run")


def test_a_name_of_an_upload_is_written_moved_and_removed_but_no_object(
    client: httpx.Client,
) -> None:
    part = "/.a.fits-0123abcd.part"
    assert client.put(part, content=CONTENT).status_code == 201
    assert client.get(part).content == CONTENT
    assert ".part" not in client.get("/").text
    found = client.request("PROPFIND", "/", headers={"Depth": "1"})
    assert (found.status_code, ".part" in found.text) == (207, False)
    to = {"Destination": str(client.base_url.join("/a.fits"))}
    assert client.request("MOVE", part, headers=to).status_code == 201
    assert client.get("/a.fits").content == CONTENT
    assert client.get(part).status_code == 404
    back = {"Destination": str(client.base_url.join(part))}
    assert client.request("MOVE", "/a.fits", headers=back).status_code == 409
    assert client.request("MKCOL", part).status_code == 404
    assert client.put(f"{part}/below", content=b"1").status_code == 404
    assert client.put("/.swathe", content=b"1").status_code == 404
    client.put(part, content=CONTENT)
    assert client.delete(part).status_code == 204


def test_folders_and_moves(client: httpx.Client) -> None:
    assert client.put("/run/a", content=b"1").status_code == 409
    assert client.request("MKCOL", "/run/deep").status_code == 409
    assert client.request("MKCOL", "/run").status_code == 201
    assert client.request("MKCOL", "/run/").status_code == 405
    assert client.put("/run/a", content=b"1").status_code == 201
    assert client.put("/run", content=b"1").status_code == 405
    assert client.delete("/run").status_code == 409
    to = {"Destination": str(client.base_url.join("/run/b%20c"))}
    assert client.request("MOVE", "/run/a", headers=to).status_code == 201
    assert client.request("MOVE", "/run/a", headers=to).status_code == 404
    client.put("/run/a", content=b"2")
    kept = client.request("MOVE", "/run/a", headers={**to, "Overwrite": "F"})
    assert kept.status_code == 412
    assert client.get("/run/b%20c").content == b"1"
    assert client.request("MOVE", "/run/a", headers=to).status_code == 204
    answer = client.get("/run/b%20c")
    assert (answer.content, answer.headers["swathe-verified"]) == (b"2", "yes")
    for method, status in (("LOCK", 501), ("POST", 405)):
        assert client.request(method, "/run/b%20c", headers=to).status_code == status
    assert client.request("MOVE", "/run", headers={"Destination": "/other"}).status_code == 501
    assert client.get("/run").headers["location"] == "/run/"
    assert 'href="./b%20c"' in client.get("/run/").text
    found = client.request("PROPFIND", "/run", headers={"Depth": "1"})
    assert found.status_code == 207
    assert "<D:href>/run/b%20c</D:href>" in found.text
    assert client.request("PROPFIND", "/", headers={"Depth": "infinity"}).status_code == 403
    client.delete("/run/b%20c")
    assert client.delete("/run/").status_code == 204
    assert client.get("/run/").status_code == 404


def test_writers_of_one_name_leave_one_whole_object(server: BlockServer, disks: list[Path]) -> None:
    contents = [bytes([number]) * 300_000 for number in range(8)]

    def write(content: bytes) -> None:
        with client_of(server) as client:
            for _ in range(5):
                assert client.put("/a", content=content).status_code in (201, 204)

    threads = [threading.Thread(target=write, args=[content]) for content in contents]
    for thread in threads:
        thread.start()
    with client_of(server) as client:
        while any(thread.is_alive() for thread in threads):
            answer = client.get("/a")
            assert answer.status_code == 404 or answer.content in contents
        assert client.get("/a").headers["swathe-verified"] == "yes"
    assert file_of(disks, "a").read_bytes() in contents
    assert not [path for disk in disks for path in (disk / ".swathe" / "new").iterdir()]


def test_a_flipped_byte_is_never_sent(client: httpx.Client, disks: list[Path]) -> None:
    client.put("/a", content=CONTENT)
    flip(file_of(disks, "a"), BLOCK_BYTES + 7)
    answer = client.get("/a")
    assert answer.status_code == 500
    assert "/a: byte 4096: expected checksum" in answer.text
    assert client.get("/a", headers={"Range": "bytes=5000-5001"}).status_code == 500
    ranges = client.get("/a", headers={"Range": "bytes=0-1,5000-5001"})
    assert ranges.status_code == 500
    intact = client.get("/a", headers={"Range": "bytes=0-4095"})
    assert (intact.status_code, intact.content) == (206, CONTENT[:4096])
    assert client.put("/a", content=CONTENT).status_code == 204
    assert client.get("/a").content == CONTENT
    damages = [line for line in client.get("/metrics").text.splitlines() if "damages" in line]
    assert sum(int(line.split()[-1]) for line in damages if line[0] != "#") == 3


def test_an_answer_that_meets_damage_is_cut_short(client: httpx.Client, disks: list[Path]) -> None:
    client.put("/a", content=LARGE)
    flip(file_of(disks, "a"), 2_500_000)
    received = b""
    with (
        pytest.raises(httpx.RemoteProtocolError),
        client.stream("GET", "/a") as answer,
    ):
        assert answer.status_code == 200
        for chunk in answer.iter_bytes():
            received += chunk
    assert LARGE.startswith(received)
    assert len(received) <= 2_500_000


def test_damaged_checksums_and_truncated_objects(client: httpx.Client, disks: list[Path]) -> None:
    client.put("/a", content=CONTENT)
    (sums,) = [path for disk in disks for path in disk.glob(".swathe/sums/*/*")]
    flip(sums, 100)
    answer = client.get("/a")
    assert answer.status_code == 500
    assert "/a: byte 0: expected its checksums, found their page 0 is damaged" in answer.text
    flip(sums, 100)
    assert client.get("/a").content == CONTENT
    os.truncate(file_of(disks, "a"), 5000)
    answer = client.get("/a")
    assert answer.status_code == 500
    assert f"they are of {SIZE} bytes, the object has 5000" in answer.text


def test_files_of_others_are_served_unverified(client: httpx.Client, disks: list[Path]) -> None:
    (disks[1] / "run").mkdir()
    (disks[1] / "run" / "a").write_bytes(LARGE)
    answer = client.get("/run/a")
    assert (answer.content, answer.headers["swathe-verified"]) == (LARGE, "no")
    client.put("/b", content=CONTENT)
    file = file_of(disks, "b")
    new = file.with_name("c")
    new.write_bytes(CONTENT[::-1])
    new.replace(file)
    answer = client.get("/b")
    assert (answer.content, answer.headers["swathe-verified"]) == (CONTENT[::-1], "no")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/../etc/passwd", 400),
        ("/a/%2e%2e/%2e%2e/etc/passwd", 400),
        ("/%2e%2e%2fsecret", 400),
        ("/a%00b", 400),
        ("/a%zz", 400),
        ("/.swathe/disk", 404),
        ("/%2Eswathe/lock", 404),
        ("/a/.swathe", 404),
        ("/out/secret", 403),
        ("/link", 403),
        ("/inside/f", 200),
        ("/" + "n" * 300, 400),
        ("/" + "n" * 2000, 400),
        ("/pipe", 404),
    ],
)
def test_paths_stay_on_the_disk(
    server: BlockServer, disks: list[Path], tmp_path: Path, path: str, status: int
) -> None:
    (tmp_path / "secret").write_text("secret")
    for disk in disks:
        (disk / "folder").mkdir()
        (disk / "folder" / "f").write_text("of the disk")
        (disk / "out").symlink_to(tmp_path)
        (disk / "link").symlink_to(tmp_path / "secret")
        (disk / "inside").symlink_to("folder")
        os.mkfifo(disk / "pipe")
    host, port = server.url.removeprefix("http://").split(":")
    for method in ("GET", "DELETE", "PUT") if status != 200 else ("GET",):
        with socket.create_connection((host, int(port)), timeout=120) as connection:
            request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
            connection.sendall(f"{request}Connection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert b"secret" not in answer.partition(b"\r\n\r\n")[2].replace(path.encode(), b"")
        if method == "GET" or status != 404:
            expected = {status} if method == "GET" else {status, 201, 204, 404}
            assert int(answer.split()[1]) in expected, answer
    assert (tmp_path / "secret").read_text() == "secret"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk-a", "disk-b", "secret"]


def test_a_missing_disk_is_no_empty_disk(client: httpx.Client, disks: list[Path]) -> None:
    lost_names = names_on(disks, disks[1], client)
    other_names = sorted(path.name for path in disks[0].glob("n*"))
    away = disks[1].with_name("away")
    disks[1].rename(away)
    for is_empty_folder in (False, True):
        if is_empty_folder:
            disks[1].mkdir()  # as if it were not mounted
        assert client.get(f"/{other_names[0]}").content == CONTENT
        for name in lost_names:
            answer = client.get(f"/{name}")
            assert answer.status_code == 503
            assert f"disk {disks[1]}: missing" in answer.text
            assert answer.headers["retry-after"] == "3600"
            assert client.put(f"/{name}", content=b"new").status_code == 503
            assert client.delete(f"/{name}").status_code == 503
        assert client.put(f"/{other_names[0]}", content=CONTENT).status_code == 204
        assert client.get("/").status_code == 503
        assert client.request("PROPFIND", "/", headers={"Depth": "1"}).status_code == 503
        assert f'swathe_disk_up{{disk="{disks[1]}"}} 0' in client.get("/metrics").text
    disks[1].rmdir()
    away.rename(disks[1])
    assert client.get(f"/{lost_names[0]}").content == CONTENT, "it is used again"
    assert f'swathe_disk_up{{disk="{disks[1]}"}} 1' in client.get("/metrics").text


def test_a_disk_that_the_others_know_is_used_until_it_is_given_up(
    disks: list[Path], run: Runner
) -> None:
    with block_server(*disks) as server, client_of(server) as client:
        lost_names = names_on(disks, disks[1], client)
    with block_server(disks[0]) as server, client_of(server) as client:
        assert server.notes == []
        assert client.get(f"/{lost_names[0]}").status_code == 200
    shutil.rmtree(disks[1])
    with block_server(disks[0]) as server, client_of(server) as client:
        assert any("missing" in note for note in server.notes)
        assert client.get(f"/{lost_names[0]}").status_code == 503
    failure = run.told(
        "stripe", "serve", "--disk", disks[0], "--forget-disk", disks[1].parent / "b", code=2
    )[1]
    assert "expected a disk of this server to forget" in failure
    assert f"its disks: {disks[0]}, {disks[1]}" in failure
    forget = ("--forget-disk", disks[1])
    with block_server(disks[0], options=forget) as server, client_of(server) as client:
        assert server.notes == []
        assert client.get(f"/{lost_names[0]}").status_code == 404
        assert client.put(f"/{lost_names[0]}", content=CONTENT).status_code == 201


def test_a_full_disk_is_named(disks: list[Path]) -> None:
    options = ("--max-bytes", "1000000")
    with block_server(disks[0], options=options) as server, client_of(server) as client:
        assert client.put("/a", content=LARGE[:600_000]).status_code == 201
        answer = client.put("/b", content=LARGE[:600_000])
        assert answer.status_code == 507
        assert str(disks[0]) in answer.text
        chunks = iter([LARGE[:300_000], LARGE[:300_000]])
        answer = client.put("/b", content=chunks)
        assert answer.status_code == 507
        assert f"disk {disks[0]}: full" in answer.text
        assert client.put("/a", content=LARGE[:600_000]).status_code == 507
        assert client.get("/a").content == LARGE[:600_000]
        assert list((disks[0] / ".swathe" / "new").iterdir()) == []
        client.delete("/a")
        assert client.put("/b", content=LARGE[:900_000]).status_code == 201
    with block_server(disks[0], options=options) as server, client_of(server) as client:
        assert client.put("/a", content=LARGE[:200_000]).status_code == 507, "it counts anew"
        assert client.put("/a", content=LARGE[:90_000]).status_code == 201


def test_objects_go_to_the_disk_that_has_room(disks: list[Path]) -> None:
    options = ("--max-bytes", "100000")
    with block_server(*disks, options=options) as server, client_of(server) as client:
        names = [f"/n{number}" for number in range(8)]
        for name in names:
            assert client.put(name, content=LARGE[:20_000]).status_code == 201, name
        assert len(list(disks[0].glob("n*"))) == len(list(disks[1].glob("n*"))) == 4
        assert client.put("/more", content=LARGE[:30_000]).status_code == 507
        for name in names:
            assert client.get(name).content == LARGE[:20_000]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no Linux")
def test_a_file_system_without_space(tmp_path: Path) -> None:
    disk = tmp_path / "small"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        with block_server(disk) as server, client_of(server) as client:
            for content in (LARGE, iter([LARGE[:1_000_000], LARGE[:1_000_000]])):
                answer = client.put("/a", content=content)
                assert answer.status_code == 507
                assert str(disk) in answer.text
            assert list((disk / ".swathe" / "new").iterdir()) == []
            assert client.put("/a", content=LARGE[:500_000]).status_code == 201
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_killed_writes_leave_the_old_object(disks: list[Path]) -> None:
    sent = threading.Event()

    def endless() -> Iterator[bytes]:
        while True:
            yield LARGE
            sent.set()

    with block_server(*disks) as server, client_of(server) as client:
        client.put("/a", content=CONTENT)

        def write() -> None:
            with contextlib.suppress(httpx.HTTPError):
                client_of(server).put("/a", content=endless())

        thread = threading.Thread(target=write)
        thread.start()
        assert sent.wait(END_S)
        server.end(signal.SIGKILL)
        thread.join(END_S)
    left = [path for disk in disks for path in (disk / ".swathe" / "new").iterdir()]
    assert left
    foreign = disks[0] / ".swathe" / "new" / "of-somebody"
    foreign.write_text("stays")
    with block_server(*disks) as server, client_of(server) as client:
        answer = client.get("/a")
        assert (answer.content, answer.headers["swathe-verified"]) == (CONTENT, "yes")
    left = [path for disk in disks for path in (disk / ".swathe" / "new").iterdir()]
    assert left == [foreign]


@pytest.mark.parametrize("seed", range(3))
def test_kills_at_any_moment_leave_whole_objects(disks: list[Path], seed: int) -> None:
    rng = np.random.default_rng(seed)
    contents = [LARGE[:50_000], LARGE[50_000:120_000], LARGE[:900_000]]
    for _ in range(4):
        with block_server(*disks) as server:

            def write(server: BlockServer = server) -> None:
                with contextlib.suppress(httpx.HTTPError), client_of(server) as client:
                    for number in range(10_000):
                        client.put(f"/n{number % 5}", content=contents[number % 3])

            threads = [threading.Thread(target=write) for _ in range(2)]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.05, 0.5))
            server.end(signal.SIGKILL)
            for thread in threads:
                thread.join(END_S)
        with block_server(*disks) as server, client_of(server) as client:
            for number in range(5):
                answer = client.get(f"/n{number}")
                assert answer.status_code == 404 or answer.content in contents
                assert answer.headers.get("swathe-verified", "yes") == "yes"


def test_tokens(disks: list[Path], tmp_path: Path) -> None:
    (tmp_path / "w").write_text("write-secret\n")
    (tmp_path / "r").write_text("read-secret\n")
    trace = tmp_path / "run.ulm"
    options = ("--token-file", tmp_path / "w", "--read-token-file", tmp_path / "r")
    with block_server(*disks, options=options, trace=trace) as server:

        def status(method: str, path: str, token: str | None, **options: Any) -> int:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            with client_of(server) as client:
                return client.request(method, path, headers=headers, **options).status_code

        for token, read, write in (
            (None, 401, 401),
            ("write-secre", 401, 401),
            ("read-secret", 200, 403),
            ("write-secret", 200, 204),
        ):
            if read == 401:
                assert status("PUT", "/a", token, content=b"x") == 401
            else:
                assert status("PUT", "/a", "write-secret", content=b"x") in (201, 204)
            assert status("PUT", "/a", token, content=b"x") == write
            assert status("GET", "/metrics", token) == read
            assert status("GET", "/a", token) == read
            if write == 403:
                for method in ("DELETE", "MOVE", "MKCOL"):
                    assert status(method, "/a", token) == 403
        assert server.end() == 0
    assert "secret" not in trace.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--listen", "0.0.0.0"], "expected a token beyond loopback, found none"),
        (["--listen", "192.0.2.1", "--token-file", "w"], "192.0.2.1:"),
        (["--listen", "no-address", "--token-file", "w"], "expected a numeric address"),
        (["--token-file", "missing"], "missing: No such file"),
        (["--token-file", "short"], "expected 8 to 1000 ASCII characters"),
        (["--tls-cert", "w"], "expected both or none"),
        (["--tls-cert", "w", "--tls-key", "w"], "w: "),
        (["--disk", "nowhere"], "nowhere: No such file"),
        (["--max-bytes", "-1"], "max-bytes"),
    ],
)
def test_wrong_options(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Runner,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w").write_text("write-secret")
    (tmp_path / "short").write_text("secret")
    (tmp_path / "disk").mkdir()
    _, said = run.told("stripe", "serve", "--disk", "disk", "--port", 0, *options, code=2)
    assert message in said
    assert "secret" not in said


def test_a_slow_client_holds_up_nobody(server: BlockServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port)), timeout=120) for _ in range(40)]
    for connection in slow:
        connection.sendall(b"GET /a HTTP/1.1\r\nHost")
    with client_of(server) as client:
        assert client.put("/a", content=LARGE).status_code == 201
        assert client.get("/a").content == LARGE
    # Who has not sent a request by then is closed: 5 s, or earlier if they are too many.
    for connection in slow:
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
        connection.close()


def test_a_far_client_may_open_many_connections_before_it_says_a_word(server: BlockServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with client_of(server) as client:
        assert client.put("/a", content=b"abc").status_code == 201
    # As many as a probe reads on. The requests are a round trip behind the connections.
    many = [socket.create_connection((host, int(port)), timeout=END_S) for _ in range(128)]
    for connection in many:
        connection.sendall(f"GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    for connection in many:
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        connection.close()


def test_answers_under_way_are_finished_at_the_end(server: BlockServer) -> None:
    content = LARGE * 10
    with client_of(server) as client:
        client.put("/a", content=content)
        with client.stream("GET", "/a") as answer:
            chunks = answer.iter_bytes()
            received = next(chunks)
            server.process.send_signal(signal.SIGTERM)
            host, port = server.url.removeprefix("http://").split(":")
            until = time.monotonic() + END_S
            with pytest.raises(ConnectionRefusedError):
                while time.monotonic() < until:
                    socket.create_connection((host, int(port))).close()
                    time.sleep(0.01)
            received += b"".join(chunks)
    assert received == content
    assert server.process.wait(END_S) == 0


def test_a_second_signal_ends_it_at_once(server: BlockServer) -> None:
    with client_of(server) as client:
        client.put("/a", content=LARGE * 20)
        with client.stream("GET", "/a"):
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(5) == 0


def test_early_refusals_are_seen(client: httpx.Client) -> None:
    assert client.put("/none/a", content=LARGE * 10).status_code == 409
    assert client.get("/metrics").status_code == 200, "the connection goes on"


def test_pages_of_other_names_are_refused(client: httpx.Client) -> None:
    answer = client.put("/a", content=b"x", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert client.put("/metrics", content=b"x").status_code == 405


def test_large_headers_and_bodies_are_refused(client: httpx.Client) -> None:
    assert client.get("/a", headers={"X": "x" * 70_000}).status_code == 431
    answer = client.request("PROPFIND", "/", headers={"Depth": "0"}, content=b"x" * 100_000)
    assert answer.status_code == 413
    assert client.request("MKCOL", "/new", content=b"x").status_code == 415
    answer = client.put("/a", content=b"x", headers={"Content-Range": "bytes 0-0/1"})
    assert answer.status_code == 400


def test_each_request_is_an_event(disks: list[Path], tmp_path: Path) -> None:
    trace = tmp_path / "run.ulm"
    with block_server(*disks, trace=trace) as server:
        with client_of(server) as client:
            client.put("/a", content=CONTENT)
            client.get("/a", headers={"traceparent": f"00-{'1' * 32}-00000000000000ab-01"})
            client.get("/missing", headers={"traceparent": "what is this?"})
            flip(file_of(disks, "a"), 0)
            client.get("/a")
        assert server.end() == 0
    lines = [shlex.split(line) for line in trace.read_text().splitlines()]
    events = [dict(word.split("=", 1) for word in words) for words in lines]
    events.sort(key=lambda event: event["DATE"])
    starts, rows = (
        [event for event in events if event["NL.EVNT"] == name]
        for name in ("SERVE_START", "SERVE_END")
    )
    assert [(row["METHOD"], row["PATH"]) for row in starts] == [
        ("PUT", "/a"),
        ("GET", "/a"),
        ("GET", "/missing"),
        ("GET", "/a"),
    ]
    assert [row["REQUEST"] for row in starts] == [row["REQUEST"] for row in rows]
    assert [(row["STATUS"], row["RESULT"]) for row in rows] == [
        ("201", "ok"),
        ("200", "ok"),
        ("404", "missing"),
        ("500", "error"),
    ]
    assert rows[1]["BYTES"] == str(SIZE)
    assert rows[1]["DISK"] == str(file_of(disks, "a").parent)
    assert "byte 0: expected checksum" in rows[3]["REASON"]
    for row in rows:
        times = ("QUEUE_S", "DISK_S", "VERIFY_S", "WAIT_S", "SEND_S")
        assert all(float(row[key]) >= 0 for key in times)
    # What the client calls the request is in all events of it.
    assert [row.get("LIFELINE") for row in rows] == [None, "00000000000000ab", None, None]
    own = [event["NL.EVNT"] for event in events if event.get("LIFELINE") == rows[1]["LIFELINE"]]
    stages = ("SERVE", "DISK_READ", "VERIFY", "SEND")
    assert set(own) == {f"{stage}_{end}" for stage in stages for end in ("START", "END")}
    verifications = [event["RESULT"] for event in events if event["NL.EVNT"] == "VERIFY_END"]
    assert verifications[-1] == "error" and set(verifications[:-1]) == {"ok"}
    assert rows[3]["DISK"] == rows[1]["DISK"]


def test_metrics(client: httpx.Client, disks: list[Path]) -> None:
    client.put("/a", content=CONTENT)
    client.get("/a")
    lines = client.get("/metrics").text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['swathe_server_requests_total{method="PUT",status="2xx"}'] == "1"
    assert values["swathe_server_received_bytes_total"] == str(SIZE)
    assert values["swathe_server_sent_bytes_total"] == str(SIZE)
    for disk in disks:
        assert values[f'swathe_disk_up{{disk="{disk}"}}'] == "1"
        assert int(values[f'swathe_disk_free_bytes{{disk="{disk}"}}']) > 0
    for name in ("request", "disk_wait", "send_wait", "late"):
        assert float(values[f"swathe_server_{name}_seconds_total"]) >= 0
    assert float(values["swathe_server_request_seconds_total"]) > 0
    work = [values[f'swathe_disk_work_seconds_total{{disk="{disk}"}}'] for disk in disks]
    assert max(map(float, work)) > 0
    reads = [values[f'swathe_disk_read_bytes_total{{disk="{disk}"}}'] for disk in disks]
    assert sorted(reads) == ["0", str(SIZE)]


def test_swathe_reads_and_writes_it(
    server: BlockServer, disks: list[Path], tmp_path: Path, run: Runner
) -> None:
    pixels = np.arange(400 * 300, dtype=np.int16).reshape(400, 300)
    frame = tmp_path / "frame 1.fits"
    fits.PrimaryHDU(pixels).writeto(frame)
    run("store", "add", "lab", server.url.replace("http", "dav", 1) + "/")
    run("store", "add", "web", server.url + "/")
    run("put", frame, "lab:run/x/")
    path = f"run/x/{frame.name}"
    file = file_of(disks, path)
    assert file.read_bytes() == frame.read_bytes()
    for store in ("lab", "web"):
        found = swathe.stores.list_objects(f"{store}:")
        paths = [each.path for each in found if isinstance(each, ListedObject)]
        assert paths == [f"{store}:{path}"]
        assert swathe.stores.stat_object(paths[0]).size == frame.stat().st_size
        cut = swathe.cut(paths[0], box=(100, 50, 30, 20))
        np.testing.assert_array_equal(cut.data, pixels[50:70, 100:130])
        run("get", paths[0], tmp_path / f"{store}.fits")
        assert (tmp_path / f"{store}.fits").read_bytes() == frame.read_bytes()
    run("put", frame, f"lab:{path}", code=1)
    run("put", frame, f"lab:{path}", "--overwrite")
    flip(file_of(disks, path), 2880 + 2 * (60 * 300 + 110))
    with pytest.raises(swathe.errors.SourceError, match="expected checksum"):
        swathe.cut(f"lab:{path}", box=(100, 50, 30, 20))
    run("rm", f"lab:{path}")
    assert not file.exists()
    assert list(swathe.stores.list_objects("web:")) == []


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl(server: BlockServer, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(LARGE)

    def curl(*words: object) -> bytes:
        command = ["curl", "-sSf", *map(str, words)]
        return subprocess.run(command, check=True, capture_output=True, timeout=END_S).stdout

    curl("-T", tmp_path / "large", f"{server.url}/large")
    assert curl(f"{server.url}/large") == LARGE
    assert curl("-r", "5-9", f"{server.url}/large") == LARGE[5:10]
    assert b"large" in curl(f"{server.url}/")


def test_tls(disks: list[Path], tmp_path: Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext"
    words = [*command.split(), "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key]
    subprocess.run(list(map(str, words)), check=True, capture_output=True)
    options = ("--tls-cert", certificate, "--tls-key", key)
    with block_server(*disks, options=options) as server:
        assert server.url.startswith("https://")
        trust = ssl.create_default_context(cafile=str(certificate))
        with client_of(server, verify=trust) as client:
            assert client.put("/a", content=LARGE).status_code == 201
            assert client.get("/a").content == LARGE
        with pytest.raises(httpx.HTTPError):
            httpx.get(server.url.replace("https", "http"))
