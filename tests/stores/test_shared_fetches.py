"""Readers of one object at the same time share its opening and its ranges."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits

from tests.support.fits_frames import fits_bytes
from tests.support.scripted_servers import Handler, serving

READERS = 20
WAIT_S = 0.3
READ = """
import json, sys, threading
import numpy as np
import swathe

url, readers = sys.argv[1], int(sys.argv[2])
barrier, ends = threading.Barrier(readers), []

def read():
    barrier.wait()
    try:
        ends.append(int(swathe.cut(url, box=(500, 700, 80, 60)).data.astype(np.int64).sum()))
    except Exception as error:
        ends.append(type(error).__name__)

threads = [threading.Thread(target=read) for _ in range(readers)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(ends))
"""
"""Cut the same box in all threads at once; print the sum of the pixels of each, or its error."""


@pytest.fixture(scope="module")
def image() -> np.ndarray[Any, np.dtype[np.int16]]:
    return np.random.default_rng(7).integers(0, 20_000, (1500, 1000)).astype(np.int16)


def read_by(
    readers: int,
    content: bytes,
    folder: Path,
    refuse: Callable[[int, int], int] = lambda _start, _count: 0,
) -> tuple[list[Any], list[int]]:
    """Let readers cut at once from a slow server; return how each ended, and what was requested.

    Args:
        readers: number of readers.
        content: content of the object.
        folder: folder of the index.
        refuse: status with which a request is refused, from the start of its range and the number
            of requests before that started there; 0 if it is answered.
    """
    starts: list[int] = []
    lock = threading.Lock()

    class Slow(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
            assert found is not None
            start, last = int(found[1]), min(int(found[2]), len(content) - 1)
            with lock:
                count = starts.count(start)
                starts.append(start)
            time.sleep(WAIT_S)
            if status := refuse(start, count):
                self.answer(status)
                return
            headers = {"Content-Range": f"bytes {start}-{last}/{len(content)}", "ETag": '"1"'}
            self.answer(206, content[start : last + 1], headers)

    variables = {
        **os.environ,
        "SWATHE_CACHE_BYTES": "0",
        "SWATHE_MEMORY_BYTES": "0",
        "SWATHE_INDEX_DIR": str(folder / f"index-{readers}"),
        "SWATHE_DATABASE": f"sqlite:///{folder}/none.db",
    }
    with serving(Slow) as url:
        words = [sys.executable, "-c", READ, f"{url}/a.fits", str(readers)]
        done = subprocess.run(words, capture_output=True, text=True, env=variables, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), starts


def test_many_readers_of_one_object_send_hardly_more_requests_than_one(
    image: np.ndarray[Any, np.dtype[np.int16]], tmp_path: Path
) -> None:
    content = fits_bytes(fits.PrimaryHDU(image))
    expected = int(image[700:760, 500:580].astype(np.int64).sum())
    ends, alone = read_by(1, content, tmp_path)
    assert ends == [expected]
    ends, together = read_by(READERS, content, tmp_path)
    assert ends == [expected] * READERS
    # A thread that is late finds the opening of the others ended, and opens it once more.
    assert len(together) <= 3 * len(alone)


def test_the_failure_of_one_reader_is_no_failure_of_those_who_wait(
    image: np.ndarray[Any, np.dtype[np.int16]], tmp_path: Path
) -> None:
    content = fits_bytes(fits.PrimaryHDU(image))
    expected = int(image[700:760, 500:580].astype(np.int64).sum())

    def refuse(start: int, count: int) -> int:
        return 403 if start and not count else 0

    ends, _ = read_by(READERS, content, tmp_path, refuse)
    assert ends.count(expected) == READERS - 1, ends
    assert ends.count("AccessError") == 1
