"""Objects are read as files are, on disk and on servers."""

from __future__ import annotations

import ctypes
import errno
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support import servers
from tests.support.c_library import CallError, Library, Range, Stat
from tests.support.servers import FileServer

SIZE = 1_000_003
BUFFER_BYTES = 256 << 10
"""The buffer of a store that was not probed."""


def content(size: int = SIZE) -> bytes:
    return np.random.default_rng(7).integers(0, 256, size, np.uint8).tobytes()


CONTENT = content()


@pytest.fixture(params=["file", "server"])
def name(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An object on disk, and the same one on a server."""
    if request.param == "file":
        path = tmp_path / "object"
        path.write_bytes(CONTENT)
        return str(path)
    server: FileServer = request.getfixturevalue("server")
    (server.folder / "object").write_bytes(CONTENT)
    return f"{server.url}/object"


@pytest.fixture
def handle(library: Library, name: str) -> Iterator[int]:
    handle = library.open(name)
    yield handle
    library.close(handle)


@pytest.fixture
def plain(library: Library, tmp_path: Path) -> Iterator[int]:
    """A handle of a file."""
    (tmp_path / "plain").write_bytes(CONTENT)
    handle = library.open(tmp_path / "plain")
    yield handle
    library.close(handle)


def fails(library: Library, number: int, call: str, *arguments: object) -> str:
    """Check that a call fails with a number; gives its text."""
    with pytest.raises(CallError) as raised:
        library.call(call, *arguments)
    assert errno.errorcode[raised.value.errno] == errno.errorcode[number], raised.value.text
    assert raised.value.text
    return raised.value.text


@pytest.mark.parametrize("step", [1 << 10, BUFFER_BYTES - 1, BUFFER_BYTES, SIZE + 1])
def test_reads_follow_each_other_and_end_short(library: Library, handle: int, step: int) -> None:
    pieces = []
    while piece := library.read(handle, step):
        pieces.append(piece)
    assert b"".join(pieces) == CONTENT
    assert {len(piece) for piece in pieces[:-1]} <= {step}
    assert library.read(handle, 10) == b"", "the end stays the end"


def test_reads_mix_with_seeks(library: Library, handle: int) -> None:
    chance = random.Random(1)
    position = 0
    for _ in range(300):
        length = chance.choice([0, 1, 5, 4096, 300_000])
        if chance.random() < 0.3:
            offset = chance.randrange(SIZE + 100)
            assert library.call("lseek", handle, offset - position, os.SEEK_CUR) == offset
            position = offset
        expected = CONTENT[position : position + length]
        assert library.read(handle, length) == expected
        position += len(expected)
        assert library.call("lseek", handle, 0, os.SEEK_CUR) == position


def test_preads_leave_the_position(library: Library, handle: int) -> None:
    library.call("lseek", handle, 100, os.SEEK_SET)
    for offset, length in ((0, 5), (SIZE - 3, 10), (17, 400_000), (SIZE, 1), (SIZE + 9, 1), (3, 0)):
        assert library.pread(handle, length, offset) == CONTENT[offset : offset + length]
    assert library.read(handle, 7) == CONTENT[100:107]


def test_seeks(library: Library, plain: int) -> None:
    assert library.call("lseek", plain, 0, os.SEEK_END) == SIZE
    assert library.call("lseek", plain, -3, os.SEEK_END) == SIZE - 3
    assert library.read(plain, 10) == CONTENT[-3:]
    far = 1 << 40
    assert library.call("lseek", plain, far, os.SEEK_SET) == far
    assert library.read(plain, 10) == b""
    fails(library, errno.EINVAL, "lseek", plain, -1, os.SEEK_SET)
    fails(library, errno.EINVAL, "lseek", plain, 0, 77)
    fails(library, errno.EOVERFLOW, "lseek", plain, (1 << 63) - 1, os.SEEK_CUR)
    assert library.call("lseek", plain, 0, os.SEEK_CUR) == far, "errors leave the position"


def test_arguments_that_cannot_be(library: Library, plain: int) -> None:
    buffer = ctypes.create_string_buffer(8)
    fails(library, errno.EINVAL, "pread", plain, buffer, 8, -1)
    fails(library, errno.EFAULT, "pread", plain, None, 8, 0)
    fails(library, errno.EFAULT, "read", plain, None, 8)
    fails(library, errno.EINVAL, "read", plain, buffer, 1 << 63)
    assert library.call("read", plain, None, 0) == 0
    fails(library, errno.EBADF, "write", plain, b"x", 1)
    fails(library, errno.EBADF, "alloc", plain, 1)
    fails(library, errno.EFAULT, "open", None, os.O_RDONLY)
    fails(library, errno.EINVAL, "open", b"\xff", os.O_RDONLY)


def test_handles_are_bad_once_they_are_closed(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(b"abc")
    first = library.open(path)
    library.close(first)
    others = [library.open(path) for _ in range(200)]
    assert first not in others
    assert len(set(others)) == 200
    buffer = ctypes.create_string_buffer(8)
    for bad in (first, -1, 0, 3, 2**31 - 1):
        fails(library, errno.EBADF, "read", bad, buffer, 8)
        fails(library, errno.EBADF, "pread", bad, buffer, 8, 0)
        fails(library, errno.EBADF, "lseek", bad, 0, os.SEEK_SET)
        fails(library, errno.EBADF, "write", bad, b"x", 1)
        assert str(bad) in fails(library, errno.EBADF, "close", bad)
    for each in others:
        assert library.read(each, 8) == b"abc"
        library.close(each)


def test_objects_that_cannot_be_opened(
    library: Library, server: FileServer, tmp_path: Path
) -> None:
    assert "nothing" in fails(library, errno.ENOENT, "open", tmp_path / "nothing", 0)
    fails(library, errno.ENOENT, "open", f"{server.url}/nothing", 0)
    fails(library, errno.EACCES, "open", f"{server.url}/forbidden/x", 0)
    fails(library, errno.EISDIR, "open", tmp_path, 0)
    fails(library, errno.ENOTSUP, "open", "gopher://host/x", 0)
    fails(library, errno.EIO, "open", "http://127.0.0.1:1/x", 0)
    for flags in (os.O_RDWR, os.O_WRONLY, os.O_WRONLY | os.O_APPEND | os.O_CREAT, os.O_TRUNC):
        fails(library, errno.EINVAL, "open", tmp_path / "new", flags)


def test_stat_says_size_and_version(library: Library, name: str) -> None:
    stat = Stat()
    library.call("stat", name, stat)
    assert (stat.size, stat.is_local) == (SIZE, int("://" not in name))
    assert stat.version.startswith(b"mtime:" if stat.is_local else b'"')
    fails(library, errno.ENOENT, "stat", f"{name}-not", stat)
    fails(library, errno.EFAULT, "stat", name, None)


def test_bytes_one_by_one_make_one_request_a_buffer(library: Library, server: FileServer) -> None:
    (server.folder / "object").write_bytes(CONTENT)
    handle = library.open(f"{server.url}/object")
    server.requests()
    byte = ctypes.create_string_buffer(1)
    read = library.raw.sw_read
    pieces = bytearray()
    while read(handle, byte, 1) == 1:
        pieces += byte.raw
    library.close(handle)
    assert bytes(pieces) == CONTENT
    assert len(server.requests()) == -(-SIZE // BUFFER_BYTES)


def test_a_long_read_is_one_request(library: Library, server: FileServer) -> None:
    (server.folder / "object").write_bytes(CONTENT)
    handle = library.open(f"{server.url}/object")
    server.requests()
    assert library.read(handle, SIZE) == CONTENT
    assert library.pread(handle, SIZE - 1, 1) == CONTENT[1:]
    assert len(server.requests()) == 2
    library.close(handle)


def preadv(library: Library, handle: int, pairs: list[tuple[int, int]]) -> list[bytes]:
    """Read ranges; gives the bytes of each."""
    buffers = [ctypes.create_string_buffer(max(length, 1)) for _, length in pairs]
    ranges = (Range * len(pairs))()
    for each, (offset, length), buffer in zip(ranges, pairs, buffers, strict=True):
        each.offset, each.length = offset, length
        each.buffer = ctypes.cast(buffer, ctypes.c_void_p)
    total = library.call("preadv", handle, ranges, len(pairs))
    assert total == sum(each.result for each in ranges)
    return [buffer.raw[: each.result] for buffer, each in zip(buffers, ranges, strict=True)]


def test_ranges_are_read_with_one_plan(library: Library, handle: int) -> None:
    chance = random.Random(2)
    pairs = [(chance.randrange(SIZE), chance.choice([0, 1, 100, 70_000])) for _ in range(200)]
    pairs += [(SIZE - 5, 100), (SIZE + 100, 7), (0, SIZE), (500_000, 600_000)]
    expected = [CONTENT[offset : offset + length] for offset, length in pairs]
    assert preadv(library, handle, pairs) == expected
    assert preadv(library, handle, []) == []


def test_near_ranges_share_a_request(library: Library, server: FileServer) -> None:
    (server.folder / "object").write_bytes(CONTENT)
    handle = library.open(f"{server.url}/object")
    server.requests()
    preadv(library, handle, [(500_000 + 1000 * row, 100) for row in range(50)])
    assert len(server.requests()) < 10
    library.close(handle)


def test_ranges_that_cannot_be(library: Library, plain: int) -> None:
    buffer = ctypes.create_string_buffer(8)
    at = ctypes.addressof(buffer)
    for number, pairs in (
        (errno.EINVAL, [(-1, at, 4)]),
        (errno.EFAULT, [(0, 0, 4)]),
        (errno.EINVAL, [(0, at, 1 << 63)]),
        (errno.EINVAL, [(0, at, 5), (10, at + 4, 4)]),
    ):
        ranges = (Range * len(pairs))(*(Range(*pair) for pair in pairs))
        fails(library, number, "preadv", plain, ranges, len(pairs))
        assert {each.result for each in ranges} == {-1}
    fails(library, errno.EINVAL, "preadv", plain, None, -1)
    fails(library, errno.EFAULT, "preadv", plain, None, 1)


def test_buffers_need_no_alignment(library: Library, handle: int) -> None:
    memory = ctypes.create_string_buffer(400_001)
    for shift in (1, 3):
        place = ctypes.c_void_p(ctypes.addressof(memory) + shift)
        assert library.call("pread", handle, place, 300_000, 11) == 300_000
        assert memory.raw[shift : shift + 300_000] == CONTENT[11:300_011]


def test_threads_pread_one_handle(library: Library, handle: int) -> None:
    faults: list[object] = []

    def read(seed: int) -> None:
        chance = random.Random(seed)
        try:
            for _ in range(60):
                offset, length = chance.randrange(SIZE), chance.choice([10, 5000, 300_000])
                assert library.pread(handle, length, offset) == CONTENT[offset : offset + length]
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_threads_that_read_on_share_the_bytes(library: Library, plain: int) -> None:
    pieces: list[bytes] = []

    def read() -> None:
        while piece := library.read(plain, 1000):
            pieces.append(piece)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(pieces) == sorted(CONTENT[at : at + 1000] for at in range(0, SIZE, 1000))


def test_errors_are_those_of_their_thread(library: Library, tmp_path: Path) -> None:
    def fail(number: int) -> str:
        with pytest.raises(CallError) as raised:
            library.open(tmp_path / f"nothing-{number}")
        return raised.value.text

    texts: dict[int, list[str]] = {number: [] for number in range(8)}

    def run(number: int) -> None:
        texts[number] = [fail(number) for _ in range(100)]

    threads = [threading.Thread(target=run, args=(number,)) for number in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, found in texts.items():
        assert len(found) == 100
        assert all(f"nothing-{number}:" in text for text in found)


def test_a_handle_that_is_closed_amid_reads_is_bad(library: Library, tmp_path: Path) -> None:
    (tmp_path / "object").write_bytes(CONTENT)
    handle = library.open(tmp_path / "object")
    numbers: list[int] = []
    has_begun = threading.Event()

    def read() -> None:
        try:
            while True:
                # The position is that of all.
                library.call("lseek", handle, 0, os.SEEK_SET)
                library.read(handle, 1000)
                assert library.pread(handle, 400_000, 1) == CONTENT[1:400_001]
                has_begun.set()
        except CallError as error:
            numbers.append(error.errno)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert has_begun.wait(60)
    library.close(handle)
    for thread in threads:
        thread.join()
    assert numbers == [errno.EBADF] * 4


def test_an_object_that_changes_is_stale(library: Library, server: FileServer) -> None:
    path = server.folder / "object"
    path.write_bytes(CONTENT)
    os.utime(path, (1e9, 1e9))
    handle = library.open(f"{server.url}/object")
    path.write_bytes(CONTENT[::-1])
    for length in (10, 500_000):
        buffer = ctypes.create_string_buffer(length)
        fails(library, errno.ESTALE, "pread", handle, buffer, length, 400_000)
        fails(library, errno.ESTALE, "read", handle, buffer, length)
    library.close(handle)


def test_a_file_that_shrinks_is_stale(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(CONTENT)
    handle = library.open(path)
    os.truncate(path, 1000)
    buffer = ctypes.create_string_buffer(2000)
    fails(library, errno.ESTALE, "pread", handle, buffer, 2000, 0)
    assert library.pread(handle, 1000, 0) == CONTENT[:1000]
    library.close(handle)


def test_signals_do_not_end_reads(library: Library, name: str) -> None:
    count = 0

    def ring(*_: object) -> None:
        nonlocal count
        count += 1

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        handle = library.open(name)
        until = time.monotonic() + 60
        while count < 50:
            assert library.pread(handle, SIZE, 0) == CONTENT
            library.call("lseek", handle, 0, os.SEEK_SET)
            assert library.read(handle, 300_000) == CONTENT[:300_000]
            assert time.monotonic() < until
        library.close(handle)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_link_with_faults_changes_no_byte(library: Library, server: FileServer) -> None:
    (server.folder / "object").write_bytes(CONTENT)
    faults = {"reset": 0.05, "truncate": 0.05, "unavailable": 0.05}
    with servers.proxy(server.url, seed=3, **faults) as link:
        handle = library.open(f"{link.url}/object")
        for number in range(60):
            offset = number * 15_000
            assert library.pread(handle, 300_000, offset) == CONTENT[offset : offset + 300_000]
            assert library.read(handle, 5000) == CONTENT[5000 * number : 5000 * (number + 1)]
        library.close(handle)
        stats = link.stats()
    assert stats["resets"] + stats["truncations"] + stats["unavailable"] > 0


def test_bytes_before_an_error_are_returned(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(CONTENT)
    handle = library.open(path)
    assert library.read(handle, 1) == CONTENT[:1]
    os.truncate(path, BUFFER_BYTES)
    assert library.read(handle, BUFFER_BYTES + 9) == CONTENT[1:BUFFER_BYTES]
    buffer = ctypes.create_string_buffer(9)
    fails(library, errno.ESTALE, "read", handle, buffer, 9)
    library.close(handle)
