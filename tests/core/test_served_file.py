"""Files whose reads another process answers."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from swathe.core.confined import ConfinedProcess, ProcessLimits
from swathe.core.errors import FormatError, LimitError, NotFoundError, SourceError, SwatheError
from swathe.core.served_file import ASK_RANGES, RANGE, REQUEST, FileReads, ReadCounter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux keeps them")
CONTENT = os.urandom(20 << 20)


@pytest.fixture(scope="module")
def confined() -> Iterator[ConfinedProcess]:
    confined = ConfinedProcess(imports=("tests.support.confined_calls",))
    yield confined
    confined.close()


def read_content(offset: int, length: int) -> bytes:
    return CONTENT[offset : offset + length]


def run(
    confined: ConfinedProcess,
    name: str,
    file: FileReads | None = None,
    bounds: ProcessLimits | None = None,
    **argument: Any,
) -> bytes:
    return confined.run(
        "x.h5",
        f"tests.support.confined_calls:{name}",
        argument,
        bounds or ProcessLimits(files=0, file_mb=0),
        file or FileReads(read_content, len(CONTENT)),
        "h5py",
    )


@pytest.mark.parametrize("block_bytes", [1000, 256 << 10, 32 << 20])
@pytest.mark.parametrize(("offset", "length"), [(0, 20), (999, 3000), (12_345, 19 << 20)])
def test_bytes_are_those_of_the_file(
    confined: ConfinedProcess, block_bytes: int, offset: int, length: int
) -> None:
    if block_bytes > 16 << 20 and length:
        file = FileReads(read_content, len(CONTENT), block_bytes)
        with pytest.raises(LimitError, match="expected a read of 16777216 bytes at most"):
            run(confined, "checksum", file, offset=offset, length=length)
        return
    file = FileReads(read_content, len(CONTENT), block_bytes)
    answer = run(confined, "checksum", file, offset=offset, length=length)
    assert answer == hashlib.sha256(CONTENT[offset : offset + length]).digest()


@pytest.mark.parametrize(("offset", "length"), [(0, 20), (90, 3000), (12_345, 19 << 20)])
@pytest.mark.parametrize("first_bytes", [100, 1000, 40_000])
def test_bytes_after_the_first_are_those_of_the_file(
    confined: ConfinedProcess, first_bytes: int, offset: int, length: int
) -> None:
    file = FileReads(read_content, len(CONTENT), 1000, first_bytes)
    answer = run(confined, "checksum", file, offset=offset, length=length)
    assert answer == hashlib.sha256(CONTENT[offset : offset + length]).digest()


@pytest.mark.parametrize(
    ("first_bytes", "length", "expected"),
    [
        (0, 100, [(0, 256 << 10)]),
        (1000, 1000, [(0, 1000)]),
        (1000, 1001, [(0, 1000), (1000, 256 << 10)]),
    ],
)
def test_near_bytes_are_read_once(
    confined: ConfinedProcess, first_bytes: int, length: int, expected: list[tuple[int, int]]
) -> None:
    reads = []

    def read_at(offset: int, length: int) -> bytes:
        reads.append((offset, length))
        return read_content(offset, length)

    file = FileReads(read_at, len(CONTENT), first_bytes=first_bytes)
    run(confined, "checksum", file, offset=0, length=length)
    assert reads == expected


@pytest.mark.parametrize("error", [NotFoundError("gone"), SourceError("reset"), KeyError("ours")])
def test_errors_of_reads_come_as_they_were(confined: ConfinedProcess, error: Exception) -> None:
    def read_at(offset: int, length: int) -> bytes:
        raise error

    with pytest.raises(type(error)) as caught:
        run(confined, "checksum", FileReads(read_at, 100), offset=0, length=20)
    assert caught.value is error


def test_reads_that_are_too_short_are_errors(confined: ConfinedProcess) -> None:
    file = FileReads(lambda offset, length: b"abc", 100)
    with pytest.raises(SourceError, match="expected 100 bytes at 0, found 3"):
        run(confined, "checksum", file, offset=0, length=20)


def test_reads_are_bounded(confined: ConfinedProcess) -> None:
    with pytest.raises(LimitError, match="expected a read of 16777216 bytes at most"):
        run(confined, "read_past_limits")
    for file, fault in (
        (FileReads(read_content, len(CONTENT), 1000, requests=0), "more than 0 reads"),
        (FileReads(read_content, len(CONTENT), read_mb=1), "more than 1 MB to read"),
    ):
        with pytest.raises(LimitError, match=fault):
            run(confined, "checksum", file, offset=0, length=3 << 20)


def test_a_crash_is_an_error_of_the_file(confined: ConfinedProcess) -> None:
    told = r"^x.h5: file rejected: its reader \(h5py\) ended by signal SIGSEGV$"
    with pytest.raises(FormatError, match=told):
        run(confined, "crash")
    with pytest.raises(FormatError, match="ended without an answer"):
        run(confined, "leave")
    assert len(run(confined, "checksum", offset=0, length=20)) == 32


def test_a_reader_that_hangs_is_ended(confined: ConfinedProcess) -> None:
    with pytest.raises(LimitError, match=r"more than 0\.5 s"):
        run(confined, "spin_with", bounds=ProcessLimits(wall_s=0.5, files=0))
    with pytest.raises(LimitError, match="1 s of CPU time"):
        run(confined, "spin_with", bounds=ProcessLimits(cpu_s=1, files=0))


def test_no_file_can_be_opened(confined: ConfinedProcess) -> None:
    with pytest.raises(SwatheError, match="Too many open files"):
        run(confined, "open_passwords")


def test_ranges_that_are_read_ahead_are_bounded() -> None:
    """A request of a child that lies is refused before anything is read."""
    size, head = 100, ASK_RANGES
    counter = ReadCounter(FileReads(read_content, size, requests=5), "x.h5")
    with pytest.raises(LimitError, match="4096 ranges at most, found 4097"):
        counter.length_of(REQUEST.pack(head, 4097, 0))
    for ranges, fault in (
        ([(0, 10), (5, 10)], "expected ranges that ascend"),
        ([(90, 11)], "within 100 bytes"),
        ([(5, 0)], "expected ranges that ascend"),
        ([(at, 1) for at in range(40)], "more than 5 reads"),
    ):
        request = REQUEST.pack(head, len(ranges), 0) + b"".join(
            RANGE.pack(*each) for each in ranges
        )
        with pytest.raises(LimitError, match=fault):
            counter.answer(request)
    request = REQUEST.pack(head, 1, 3) + RANGE.pack(7, 3)
    again = ReadCounter(FileReads(read_content, size), "x.h5")
    assert again.length_of(request[: REQUEST.size]) == RANGE.size
    assert again.answer(request) == CONTENT[7:10]
