"""An application that parses records into memory, as the physics client of the DPSS did.

    python benches/records.py make FILE --mb N
    python benches/records.py read NAME

`make` writes events of particle collisions: a header (magic, number of the event, number of its
tracks, time), then the tracks, big-endian. `read` opens `NAME`, an object of any store, through
`swathe.fs()`, reads it in blocks with threads ahead, and parses all events into columns in the byte
order of this machine. It prints JSON: bytes and events, seconds to read alone and with parsing, and
the sum of the momenta, by which two readers can be compared. `experiments.py` runs it over stores.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = 0x44505353
HEADER = np.dtype([("magic", ">u4"), ("number", ">u4"), ("tracks", ">u4"), ("time", ">f8")])
TRACK = np.dtype([(name, ">f4") for name in ("px", "py", "pz", "energy")] + [("charge", ">i4")])
NAMES = ("px", "py", "pz", "energy", "charge")
MOST_TRACKS = 2000
BLOCK_BYTES, AHEAD = 16 << 20, 3
MEGABYTE = 1_000_000


def make_events(path: str, size: int, seed: int = 1) -> int:
    """Write a file of events of about `size` bytes; return the number of events."""
    draw = np.random.default_rng(seed)
    pool = np.zeros(MOST_TRACKS * 4, TRACK)
    for name in ("px", "py", "pz", "energy"):
        pool[name] = draw.normal(size=len(pool))
    pool["charge"] = draw.integers(-1, 2, len(pool))
    count = bytes_now = 0
    with open(path, "wb") as file:
        while bytes_now < size:
            tracks = int(draw.integers(100, MOST_TRACKS))
            first = int(draw.integers(0, len(pool) - tracks))
            header = np.array((MAGIC, count, tracks, count * 1e-3), HEADER).tobytes()
            bytes_now += file.write(header) + file.write(pool[first : first + tracks].tobytes())
            count += 1
    return count


def blocks_of(name: str) -> Iterator[bytes]:
    """Yield the blocks of `STORE:path` in order; threads read some of them ahead."""
    import swathe

    fs = swathe.fs()
    path = name.replace(":", "/", 1)
    with ThreadPoolExecutor(AHEAD) as threads:
        files = [fs.open(path, cache_type="none") for _ in range(AHEAD)]
        size = files[0].size

        def read(number: int) -> bytes:
            file = files[number % AHEAD]
            file.seek(number * BLOCK_BYTES)
            content: bytes = file.read(BLOCK_BYTES)
            return content

        count = -(-size // BLOCK_BYTES)
        waiting: list[Future[bytes]] = []
        for number in range(count + AHEAD - 1):
            if number < count:
                waiting.append(threads.submit(read, number))
            if number >= AHEAD - 1:
                yield waiting.pop(0).result()
        for file in files:
            file.close()


class Events:
    """Columns of the events that were parsed.

    Attributes:
        numbers: number of each event.
        tracks: columns of the tracks of each, in the byte order of this machine.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.tracks: list[dict[str, NDArray[Any]]] = []
        self._rest = b""

    def add(self, block: bytes) -> None:
        """Parse the events that end in a block; the rest waits for the next.

        Raises:
            ValueError: If an event does not begin with its magic number.
        """
        content = self._rest + block if self._rest else block
        at = 0
        while len(content) - at >= HEADER.itemsize:
            header = np.frombuffer(content, HEADER, 1, at)[0]
            if header["magic"] != MAGIC:
                raise ValueError(f"event {len(self.numbers)}: expected a header, found other bytes")
            count = int(header["tracks"])
            end = at + HEADER.itemsize + count * TRACK.itemsize
            if end > len(content):
                break
            tracks = np.frombuffer(content, TRACK, count, at + HEADER.itemsize)
            self.numbers.append(int(header["number"]))
            columns = {key: tracks[key].astype(TRACK[key].newbyteorder("=")) for key in NAMES}
            self.tracks.append(columns)
            at = end
        self._rest = content[at:]

    def finish(self) -> None:
        """Check that nothing is left.

        Raises:
            ValueError: If the last event is not complete.
        """
        if self._rest:
            raise ValueError(
                f"events: expected a whole one at the end, found {len(self._rest)} bytes"
            )

    def momentum(self) -> float:
        """Return the sum of the momenta of all tracks."""
        return float(sum(float(each["px"].sum(dtype=np.float64)) for each in self.tracks))


def read_events(name: str) -> dict[str, Any]:
    """Read an object, then read and parse it; return what that took."""
    import swathe

    swathe.fs()
    began = time.perf_counter()
    size = sum(len(block) for block in blocks_of(name))
    read_s = time.perf_counter() - began
    usage, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    events = Events()
    for block in blocks_of(name):
        events.add(block)
    events.finish()
    parse_s = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "name": name,
        "bytes": size,
        "events": len(events.numbers),
        "read_mb_per_s": size / read_s / MEGABYTE,
        "application_mb_per_s": size / parse_s / MEGABYTE,
        "cpu_s": after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime,
        "momentum": events.momentum(),
    }


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("make", "read"))
    parser.add_argument("name", help="file to write, or object to read")
    parser.add_argument("--mb", type=float, default=100, help="megabytes to write (100)")
    arguments = parser.parse_args()
    if arguments.action == "make":
        count = make_events(arguments.name, int(arguments.mb * MEGABYTE))
        print(json.dumps({"events": count}))
    else:
        print(json.dumps(read_events(arguments.name)))


if __name__ == "__main__":
    main()
