"""Objects are written whole, or not at all: to folders, servers and buckets."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capi.test_reading import content, fails
from tests.support import servers
from tests.support.c_library import EXAMPLES, CallError, Library, compile_program
from tests.support.servers import FileServer

NEW = os.O_WRONLY | os.O_CREAT
PART_BYTES = 8 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 12 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a memory disk cannot be mounted: needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def names(folder: Path) -> list[str]:
    """Names of all files of a folder, with hidden ones."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("size", [0, 5, PART_BYTES, 2 * PART_BYTES + 7])
def test_an_object_has_its_name_once_it_is_closed(
    library: Library, tmp_path: Path, size: int
) -> None:
    data = content(size)
    path = tmp_path / "below" / "new"
    handle = library.open(path, NEW)
    for start in range(0, size, 3_000_000):
        piece = data[start : start + 3_000_000]
        assert library.write(handle, piece) == len(piece)
    assert library.call("lseek", handle, 0, os.SEEK_CUR) == size
    assert not path.exists()
    library.close(handle)
    assert path.read_bytes() == data
    assert names(path.parent) == ["new"]
    fails(library, errno.EBADF, "write", handle, b"x", 1)


def test_what_exists_is_replaced_only_if_asked(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(b"before")
    for flags in (NEW, NEW | os.O_EXCL, NEW | os.O_EXCL | os.O_TRUNC):
        assert "object" in fails(library, errno.EEXIST, "open", path, flags)
    fails(library, errno.ENOENT, "open", tmp_path / "nothing", os.O_WRONLY | os.O_TRUNC)
    for flags in (NEW | os.O_TRUNC, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC):
        handle = library.open(path, flags)
        library.write(handle, b"after")
        assert path.read_bytes() != b"after"
        library.close(handle)
        assert path.read_bytes() == b"after"
        path.write_bytes(b"before")
    assert names(tmp_path) == ["object"]


def test_a_name_that_was_taken_meanwhile_stays(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "object"
    handle = library.open(path, NEW)
    library.write(handle, b"ours")
    path.write_bytes(b"theirs")
    fails(library, errno.EEXIST, "close", handle)
    fails(library, errno.EBADF, "close", handle)
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["object"]


def test_readers_see_the_object_before(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(b"before")
    reader = library.open(path)
    library.put(path, b"after!")
    assert library.read(reader, 10) == b"before"
    library.close(reader)


def test_writers_are_not_read_or_moved(library: Library, tmp_path: Path) -> None:
    handle = library.open(tmp_path / "object", NEW)
    fails(library, errno.EBADF, "read", handle, b"", 0)
    fails(library, errno.EBADF, "pread", handle, b"", 0, 0)
    fails(library, errno.ESPIPE, "lseek", handle, 0, os.SEEK_SET)
    fails(library, errno.ESPIPE, "lseek", handle, 1, os.SEEK_CUR)
    fails(library, errno.EFAULT, "write", handle, None, 1)
    assert library.write(handle, b"") == 0
    library.close(handle)
    assert (tmp_path / "object").read_bytes() == b""


def test_places_that_refuse_writers(library: Library, server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    fails(library, errno.ENOTSUP, "open", f"{server.url}/new", NEW | os.O_TRUNC)
    for name in ("file/new", "file/below/new"):
        fails(library, errno.ENOTDIR, "open", tmp_path / name, NEW | os.O_TRUNC)
        fails(library, errno.ENOTDIR, "open", tmp_path / name, os.O_RDONLY)
    fails(library, errno.EISDIR, "open", tmp_path, NEW)


def test_a_folder_that_may_not_be_written(library: Library) -> None:
    """/proc refuses even root."""
    with pytest.raises(CallError) as raised:
        library.open("/proc/new-object", NEW | os.O_TRUNC)
    assert raised.value.errno in (errno.EACCES, errno.ENOENT)


def test_threads_append_whole_writes(library: Library, tmp_path: Path) -> None:
    handle = library.open(tmp_path / "object", NEW)

    def write(letter: bytes) -> None:
        for _ in range(500):
            library.write(handle, letter * 1000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    library.close(handle)
    data = (tmp_path / "object").read_bytes()
    pieces = [data[at : at + 1000] for at in range(0, len(data), 1000)]
    assert sorted(pieces) == sorted([letter * 1000 for letter in (b"a", b"b", b"c")] * 500)


def test_a_full_disk_leaves_nothing(library: Library, small_disk: Path) -> None:
    handle = library.open(small_disk / "object", NEW)
    assert library.write(handle, bytes(PART_BYTES)) == PART_BYTES
    fails(library, errno.ENOSPC, "write", handle, bytes(PART_BYTES), PART_BYTES)
    fails(library, errno.ENOSPC, "write", handle, b"x", 1)
    fails(library, errno.ENOSPC, "close", handle)
    assert names(small_disk) == []


def test_a_disk_that_is_full_at_the_end_leaves_nothing(library: Library, small_disk: Path) -> None:
    handle = library.open(small_disk / "object", NEW)
    library.write(handle, bytes(13 << 20))
    fails(library, errno.ENOSPC, "close", handle)
    assert names(small_disk) == []


def test_room_is_reserved_and_returned(library: Library, small_disk: Path) -> None:
    def free() -> int:
        return os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize

    before = free()
    handle = library.open(small_disk / "object", NEW)
    fails(library, errno.ENOSPC, "alloc", handle, 13 << 20)
    assert free() == before, "what could be reserved is free again"
    assert library.call("alloc", handle, 10 << 20) == 0
    assert before - free() >= 10 << 20
    (small_disk / "other").touch()
    with pytest.raises(OSError, match="No space"), (small_disk / "other").open("wb") as other:
        other.write(bytes(4 << 20))
    (small_disk / "other").unlink()
    data = content(3_000_000)
    library.write(handle, data)
    assert library.call("alloc", handle, 100) == 0, "it is there already"
    library.close(handle)
    assert (small_disk / "object").read_bytes() == data
    assert before - free() < 4 << 20
    fails(library, errno.EBADF, "alloc", handle, 1)


def test_room_of_an_object_that_is_given_up_is_free(library: Library, small_disk: Path) -> None:
    handle = library.open(small_disk / "object", NEW)
    fails(library, errno.EINVAL, "alloc", handle, -1)
    library.call("alloc", handle, 8 << 20)
    fails(library, errno.ENOSPC, "alloc", handle, 1 << 40)
    (small_disk / "object").write_bytes(b"theirs")
    fails(library, errno.EEXIST, "close", handle)
    assert names(small_disk) == ["object"]
    assert os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize > 11 << 20


@pytest.mark.parametrize("size", [0, 5, 2 * PART_BYTES + 7])
def test_objects_of_a_webdav_server(library: Library, server: FileServer, size: int) -> None:
    url = f"{server.url}/dav".replace("http", "dav", 1)
    data = content(size)
    handle = library.open(f"{url}/below/new", NEW)
    library.write(handle, data[:1000])
    library.write(handle, data[1000:])
    library.close(handle)
    assert (server.folder / "below" / "new").read_bytes() == data
    assert names(server.folder / "below") == ["new"]
    fails(library, errno.EEXIST, "open", f"{url}/below/new", NEW)
    library.put(f"{url}/below/new", b"after")
    assert (server.folder / "below" / "new").read_bytes() == b"after"


def test_servers_cannot_reserve_room(library: Library, server: FileServer) -> None:
    url = f"{server.url}/dav".replace("http", "dav", 1)
    handle = library.open(f"{url}/new", NEW)
    assert "cannot reserve room" in fails(library, errno.ENOTSUP, "alloc", handle, 100)
    library.write(handle, b"abc")
    library.close(handle)
    assert (server.folder / "new").read_bytes() == b"abc"


PROGRAM = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <swathe.h>

/* Write `count` bytes in pieces, from a process of its own: the environment is read once. */
int main(int words, char **word)
{
    long count = words == 3 ? atol(word[2]) : 0, step = 1 << 20;
    static unsigned char piece[1 << 20];
    int handle = sw_open(word[1], O_WRONLY | O_CREAT | O_TRUNC);
    if (handle < 0)
        goto fail;
    for (long at = 0; at < count; at += step) {
        long length = count - at < step ? count - at : step;
        for (long i = 0; i < length; i++)
            piece[i] = (at + i) * 31 % 251;
        if (sw_write(handle, piece, length) != length)
            goto fail;
    }
    if (sw_close(handle) == 0)
        return 0;
fail:
    perror(sw_error());
    return 1;
}
"""


@pytest.fixture
def put_program(programs: Path) -> Path:
    """A program that writes an object of a size: byte `i` is `i * 31 % 251`."""
    source = programs / "put.c"
    source.write_text(PROGRAM)
    return compile_program(source, programs)


@pytest.mark.parametrize("size", [5, 2 * PART_BYTES + 7])
def test_objects_of_a_bucket(put_program: Path, tmp_path: Path, size: int) -> None:
    if servers.s3s_fs_program() is None:
        pytest.skip("s3s-fs is not installed")
    with contextlib.ExitStack() as stack:
        bucket = stack.enter_context(servers.s3s_fs(tmp_path))
        (tmp_path / "bucket").mkdir()
        environment = os.environ | bucket.environment
        command = [str(put_program), "s3://bucket/new", str(size)]
        subprocess.run(command, env=environment, check=True)
    data = (tmp_path / "bucket" / "new").read_bytes()
    assert data == patterned(size)


def patterned(size: int) -> bytes:
    """Give what `put_program` writes."""
    return (bytes(at * 31 % 251 for at in range(251)) * (size // 251 + 1))[:size]


@pytest.mark.parametrize("size", [5, 2 * PART_BYTES + 7])
def test_objects_of_a_striped_store(
    put_program: Path, programs: Path, tmp_path: Path, size: int
) -> None:
    folders = [tmp_path / f"server-{number}" for number in range(4)]
    over = [
        {"prefix": "", "store": {"name": folder.name, "root": f"file://{folder}", "options": {}}}
        for folder in folders
    ]
    store = {"name": "wide", "root": "striped://wide", "options": {"parity": "1"}, "over": over}
    (tmp_path / "stores.json").write_text(json.dumps([store]))
    environment = os.environ | {"SWATHE_STORES": str(tmp_path / "stores.json")}
    subprocess.run([put_program, "wide:new", str(size)], env=environment, check=True)
    # One server is lost: its blocks are computed.
    shutil.rmtree(folders[1])
    reader = compile_program(EXAMPLES / "c" / "read.c", programs)
    result = subprocess.run(
        [reader, "wide:new"], env=environment, check=True, capture_output=True
    ).stdout
    data = patterned(size)
    assert result.startswith(f"{size} bytes, sum {sum(data)}\n".encode())


def test_a_program_that_ends_leaves_no_object(programs: Path, tmp_path: Path) -> None:
    source = programs / "leave.c"
    source.write_text(
        "#include <fcntl.h>\n#include <swathe.h>\n"
        "int main(int count, char **words)\n{\n"
        "    int handle = sw_open(words[count - 1], O_WRONLY | O_CREAT);\n"
        '    return sw_write(handle, "abc", 3) != 3;\n}\n'
    )
    program = compile_program(source, programs)
    for _ in range(2):
        subprocess.run([program, tmp_path / "object"], check=True)
        assert not (tmp_path / "object").exists()


def test_a_server_that_hangs_up_ends_no_program(put_program: Path) -> None:
    """Writing to a connection that was closed is an error, and no SIGPIPE."""
    listener = socket.create_server(("127.0.0.1", 0))
    with listener:
        port = listener.getsockname()[1]

        def hang_up() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connection.recv(4096)
                    linger = struct.pack("ii", 1, 0)  # closes with a reset
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        url = f"dav://127.0.0.1:{port}/new"
        result = subprocess.run([put_program, url, "30000000"], capture_output=True, check=False)
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    assert result.returncode == 1, result
    assert result.stderr
