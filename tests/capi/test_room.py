"""`sw_alloc` on servers: room for the whole object before it is written."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capi.test_reading import fails
from tests.capi.test_writing import NEW, names, patterned
from tests.support.block_servers import block_server
from tests.support.c_library import EXAMPLES, Library, compile_program
from tests.support.servers import FileServer, s3s_fs

pytestmark = pytest.mark.more
PROGRAM = """
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <swathe.h>

/* room URL BYTES ...: reserve each number of bytes, print errno and text of what fails. Then lines
   of standard input: numbers of bytes to write; at its end the object is closed. */
int main(int words, char **word)
{
    static unsigned char piece[1 << 20];
    long count, at = 0, step = sizeof piece;
    int handle = sw_open(word[1], O_WRONLY | O_CREAT | O_TRUNC);
    if (handle < 0)
        goto fail;
    for (int i = 2; i < words; i++)
        if (sw_alloc(handle, atol(word[i])))
            printf("%d %s\\n", errno, sw_error());
    printf("ready\\n");
    fflush(stdout);
    while (scanf("%ld", &count) == 1)
        for (long end = at + count; at < end;) {
            long length = end - at < step ? end - at : step;
            for (long i = 0; i < length; i++)
                piece[i] = (at + i) * 31 % 251;
            if (sw_write(handle, piece, length) != length)
                goto fail;
            at += length;
        }
    if (sw_close(handle) == 0)
        return 0;
fail:
    printf("%d %s\\n", errno, sw_error());
    return 1;
}
"""


@pytest.fixture
def room_program(programs: Path) -> Path:
    source = programs / "room.c"
    source.write_text(PROGRAM)
    return compile_program(source, programs)


@contextlib.contextmanager
def memory_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a memory disk cannot be mounted: needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def free(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[list[Path]]:
    """Five small file systems; the last has less room."""
    with contextlib.ExitStack() as stack:
        sizes = ["16m"] * 4 + ["8m"]
        yield [
            stack.enter_context(memory_disk(tmp_path / f"disk-{number}", size))
            for number, size in enumerate(sizes)
        ]


def store_file(folder: Path, roots: list[str]) -> dict[str, str]:
    """Write the file of a striped store over these roots; return the environment to use it."""
    over = [
        {"prefix": "", "store": {"name": f"server{number}", "root": root, "options": {}}}
        for number, root in enumerate(roots)
    ]
    store = {"name": "wide", "root": "striped://wide", "options": {"parity": "1"}, "over": over}
    (folder / "stores.json").write_text(json.dumps([store]))
    return os.environ | {"SWATHE_STORES": str(folder / "stores.json"), "TMPDIR": str(folder)}


def start(program: Path, environment: dict[str, str], *words: object) -> subprocess.Popen[str]:
    """Start the program; it has reserved what it could."""
    return subprocess.Popen(
        [program, "wide:run/new", *map(str, words)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> list[str]:
    """Return what the program prints until it is ready."""
    assert process.stdout is not None
    return list(iter(process.stdout.readline, "ready\n"))


def check_object(environment: dict[str, str], programs: Path, size: int) -> None:
    reader = compile_program(EXAMPLES / "c" / "read.c", programs)
    result = subprocess.run(
        [reader, "wide:run/new"], env=environment, check=True, capture_output=True
    ).stdout
    assert result.startswith(f"{size} bytes, sum {sum(patterned(size))}\n".encode())


@contextlib.contextmanager
def roots_of(kind: str, disks: list[Path]) -> Iterator[list[str]]:
    """Servers over the disks: folders, or a block server for each."""
    if kind == "folders":
        yield [f"file://{disk}" for disk in disks]
        return
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(block_server(disk)) for disk in disks]
        yield [server.url.replace("http", "dav", 1) for server in servers]


@pytest.mark.parametrize("kind", ["folders", "servers"])
def test_room_on_all_servers_of_a_stripe(
    room_program: Path, programs: Path, disks: list[Path], tmp_path: Path, kind: str
) -> None:
    with roots_of(kind, disks) as roots:
        environment = store_file(tmp_path, roots)
        before = [free(disk) for disk in disks]
        # 20 MB over four servers and one of parity are 5 MB on each.
        with start(room_program, environment, 20_000_000) as process:
            assert answer(process) == []
            taken = [old - free(disk) for old, disk in zip(before, disks, strict=True)]
            assert all(4_900_000 <= bytes_ <= 7_000_000 for bytes_ in taken), taken
            # Nobody else can take it.
            with pytest.raises(OSError, match="No space"):
                (disks[4] / "other").write_bytes(bytes(4_000_000))
            (disks[4] / "other").unlink()
            process.communicate("9000000\n10000000\n")
            assert process.returncode == 0
        check_object(environment, programs, 19_000_000)
        # What was not used is free.
        with start(room_program, environment, 10_000_000) as process:
            assert answer(process) == []
            process.communicate("1000000\n")
            assert process.returncode == 0
        check_object(environment, programs, 1_000_000)
        for old, disk in zip(before, disks, strict=True):
            assert old - free(disk) < 1_000_000


@pytest.mark.parametrize("kind", ["folders", "servers"])
def test_the_server_without_room_is_named(
    room_program: Path, programs: Path, disks: list[Path], tmp_path: Path, kind: str
) -> None:
    with roots_of(kind, disks) as roots:
        environment = store_file(tmp_path, roots)
        before = [free(disk) for disk in disks]
        # The last has 8 MiB: 10 MB of each server are too many, also after 5.
        with start(room_program, environment, 40_000_000, 20_000_000, 40_000_000) as process:
            lines = answer(process)
            assert len(lines) == 2
            for line in lines:
                assert line.startswith(
                    f"{errno.ENOSPC} striped://wide/run/new: server server4: "
                ), line
            taken = [old - free(disk) for old, disk in zip(before, disks, strict=True)]
            assert all(bytes_ >= 4_900_000 for bytes_ in taken), "as before"
            process.communicate("20000000\n")
            assert process.returncode == 0
        check_object(environment, programs, 20_000_000)


@pytest.mark.parametrize("kind", ["folders", "servers"])
def test_room_of_an_object_that_is_given_up_is_free(
    room_program: Path, disks: list[Path], tmp_path: Path, kind: str
) -> None:
    with roots_of(kind, disks) as roots:
        environment = store_file(tmp_path, roots)
        before = [free(disk) for disk in disks]
        with start(room_program, environment, 20_000_000) as process:
            assert answer(process) == []
            process.kill()
            process.communicate()
        if kind == "folders":
            # At once; on servers when its time is over, as tests of these have it.
            assert [free(disk) for disk in disks] == pytest.approx(before, abs=100_000)
            return
    with roots_of(kind, disks):
        assert [free(disk) for disk in disks] == pytest.approx(before, abs=100_000)


def test_a_dead_server_is_named(room_program: Path, disks: list[Path], tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(block_server(disk)) for disk in disks]
        environment = store_file(tmp_path, [each.url.replace("http", "dav", 1) for each in servers])
        # The first object needs all of them.
        with start(room_program, environment) as process:
            assert answer(process) == []
            process.communicate("1000\n")
            assert process.returncode == 0
        servers[4].end()
        with start(room_program, environment, 1_000_000) as process:
            (line,) = answer(process)
            assert line.startswith(f"{errno.EIO} striped://wide/run/new: server server4: "), line
            process.communicate("1000000\n")
            assert process.returncode == 0, "parity is enough to write it"


def test_servers_that_cannot_are_named(
    room_program: Path, disks: list[Path], tmp_path: Path, server: FileServer
) -> None:
    roots = [f"file://{disk}" for disk in disks[:4]]
    (buckets := tmp_path / "buckets").mkdir()
    with s3s_fs(buckets) as bucket_server:
        bucket_server.put("bucket", "other", b"")
        for root in (f"{server.url}/dav".replace("http", "dav", 1), "s3://bucket/part"):
            environment = store_file(tmp_path, [*roots, root]) | bucket_server.environment
            with start(room_program, environment, 1_000_000) as process:
                (line,) = answer(process)
                assert line.startswith(
                    f"{errno.ENOTSUP} striped://wide/run/new: server server4: "
                ), line
                assert "cannot reserve room" in line
                process.kill()
                process.communicate()


@pytest.mark.parametrize("size", [5, 20_000_000])
def test_room_on_a_block_server(library: Library, tmp_path: Path, size: int) -> None:
    with memory_disk(tmp_path / "disk", "48m") as disk, block_server(disk) as server:
        url = server.url.replace("http", "dav", 1)
        before = free(disk)
        handle = library.open(f"{url}/below/new", NEW)
        text = fails(library, errno.ENOSPC, "alloc", handle, 100_000_000)
        assert f"disk {disk}: full" in text
        assert library.call("alloc", handle, 25_000_000) == 0
        assert before - free(disk) >= 25_000_000
        library.write(handle, patterned(size))
        library.close(handle)
        assert (disk / "below" / "new").read_bytes() == patterned(size)
        assert before - free(disk) < size + 1_000_000
        assert names(disk / "below") == ["new"]


def test_a_full_server_is_no_space(library: Library, tmp_path: Path) -> None:
    with memory_disk(tmp_path / "disk", "4m") as disk, block_server(disk) as server:
        url = server.url.replace("http", "dav", 1)
        handle = library.open(f"{url}/new", NEW)
        library.write(handle, bytes(6_000_000))
        text = fails(library, errno.ENOSPC, "close", handle)
        assert f"disk {disk}: full" in text


def test_a_full_stripe_is_no_space(room_program: Path, disks: list[Path], tmp_path: Path) -> None:
    with roots_of("servers", disks) as roots:
        environment = store_file(tmp_path, roots)
        with start(room_program, environment) as process:
            assert answer(process) == []
            output, _ = process.communicate("80000000\n")
            assert process.returncode == 1
            assert output.startswith(f"{errno.ENOSPC} ")
