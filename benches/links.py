"""Servers behind links of known quality, and reading over them in several ways."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
MEMORY_DISK = Path("/dev/shm")
# That a disk makes files slowly after others were removed is not what is measured.
FOLDER = Path(
    tempfile.mkdtemp(prefix="swathe-bench-", dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None)
)
os.environ["SWATHE_DATABASE"] = f"sqlite:///{FOLDER}/catalog.sqlite"
os.environ["SWATHE_INDEX_DIR"] = str(FOLDER / "index")
os.environ["SWATHE_CACHE_BYTES"] = "0"
os.environ["SWATHE_MEMORY_BYTES"] = "0"

import servers  # noqa: E402
import swathe  # noqa: E402
from swathe import _swathe  # noqa: E402
from swathe.catalog import Catalog  # noqa: E402
from swathe.known import known_stores  # noqa: E402

WIDTH, HEIGHT, PIXEL_BYTES = 2048, 1489, 2
FRAMES = 20
SHARED, STREAM = 12_500_000, 5_000_000
MOST_STREAMS = 64
SHORT_S, SHORT_REPEATS = 0.05, 40
Way: TypeAlias = tuple[list[tuple[int, int]], int]
"""Requests (offset, bytes), and how many are in flight."""


@dataclass(frozen=True)
class Link:
    """A server behind a proxy."""

    store: str
    rtt_ms: int
    shared: int = 0
    stream: int = 0
    label: str = ""

    @property
    def name(self) -> str:
        """What it is called in tables, and as a store."""
        limits = [f"{self.shared / 125_000:.0f} Mb/s" if self.shared else ""]
        limits += [f"{self.stream / 125_000:.0f} Mb/s a stream" if self.stream else ""]
        return ", ".join([self.store, f"{self.rtt_ms} ms", *filter(None, limits)])

    @property
    def id(self) -> str:
        """Its name in the catalogue."""
        return self.label or f"{self.store}-{self.rtt_ms}-{self.shared}-{self.stream}"


@contextlib.contextmanager
def reach(link: Link, files: Path) -> Iterator[servers.Proxy]:
    """Serve the files over the link and name the store in the catalogue."""
    folder = FOLDER / link.id
    folder.mkdir()
    settings: dict[str, Any] = {"rtt_ms": link.rtt_ms}
    if link.shared:
        settings["shared_bytes_per_s"] = link.shared
    if link.stream:
        settings["connection_bytes_per_s"] = link.stream
    with contextlib.ExitStack() as stack:
        options = {}
        if link.store == "nginx":
            server = stack.enter_context(servers.nginx(folder))
            copy(files, server.folder)
            proxy = stack.enter_context(servers.proxy(server.url, **settings))
            root = proxy.url
        elif link.store == "xrootd":
            door = stack.enter_context(servers.xrootd(folder))
            copy(files, door.folder)
            proxy = stack.enter_context(servers.proxy(door.url, **settings))
            root = proxy.url
        else:
            s3 = stack.enter_context(servers.s3s_fs(folder))
            for file in files.iterdir():
                s3.put("survey", file.name, file.read_bytes())
            proxy = stack.enter_context(servers.proxy(s3.url, **settings))
            os.environ.update(s3.environment)
            root, options = "s3://survey", {"endpoint": proxy.url}
        with Catalog.open() as catalog:
            catalog.add_store(link.id, root, options=options)
        try:
            yield proxy
        finally:
            with Catalog.open() as catalog:
                catalog.remove_store(link.id)


def copy(files: Path, folder: Path) -> None:
    """Put all files where a server finds them."""
    for file in files.iterdir():
        shutil.copy(file, folder / file.name)


def boxes(count: int, size: int, kind: str, name: str, seed: int) -> dict[str, list[Any]]:
    """Targets at random over the frames, in the order of a user's list."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        frame = f"frame-{draw.randrange(FRAMES) + 1:06}.{kind}"
        side = min(size, HEIGHT)
        x0, y0 = draw.randrange(WIDTH - side), draw.randrange(HEIGHT - side)
        rows.append((f"{name}:{frame}", x0, y0))
    columns = dict(zip(("file", "x0", "y0"), map(list, zip(*rows, strict=True)), strict=True))
    return columns | {"width": [side] * count, "height": [side] * count}


def probe(link: Link, name: str = "frame-000001.fit") -> None:
    """Probe a store once, as `swathe probe` does."""
    command = [sys.executable, "-m", "swathe.cli", "probe", f"{link.id}:{name}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"probe of {link.name}: {done.stderr}")


def race(rows: dict[str, list[Any]], ways: dict[str, Way], repeats: int) -> dict[str, Any]:
    """Median seconds of our plan for boxes of one object, and of other ways to read it.

    All find the connections open that they may want: who goes first would open them for the rest.
    They go in an order drawn anew each time, for who follows the whole object finds the caches of
    the processor full of that; what takes milliseconds is read more often.
    """
    url = rows["file"][0]
    _swathe.measure(url, [(0, 1)] * MOST_STREAMS, MOST_STREAMS, stores=known_stores())
    plan = swathe.predict(rows).explained[0]["plans"][0]
    ours = [(at["start"], at["end"] - at["start"]) for at in plan["requests"]]
    ways = {"swathe": (ours, plan["streams"]), **ways}
    seconds: dict[str, list[float]] = {name: [] for name in ways}

    def read(name: str) -> None:
        timings = _swathe.measure(url, *ways[name], stores=known_stores())
        seconds[name].append(max(timing.end_s for timing in timings))

    for name in ways:
        read(name)
    short = [name for name in ways if seconds[name][0] < SHORT_S]
    draw = random.Random(7)
    for turn in range(max(repeats - 1, SHORT_REPEATS if "swathe" in short else 0)):
        for name in draw.sample(list(ways), len(ways)):
            # Seconds, once is enough to tell.
            if name in short or (turn < repeats - 1 and name != "no merging"):
                read(name)
    found: dict[str, Any] = {name: statistics.median(taken) for name, taken in seconds.items()}
    return found | {"bytes": sum(length for _, length in ours), "requests": len(ours)}


def merged(segments: list[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Requests (offset, bytes) where gaps up to `gap` bytes are read through."""
    found: list[tuple[int, int]] = []
    for start, length in segments:
        if found and start <= sum(found[-1]) + gap:
            last, taken = found[-1]
            found[-1] = (last, max(taken, start + length - last))
        else:
            found.append((start, length))
    return found


def blocks_of(segments: list[tuple[int, int]], size: int, end: int) -> list[tuple[int, int]]:
    """The aligned blocks that hold the segments, each a request."""
    touched = (range(start // size, -(-(start + length) // size)) for start, length in segments)
    numbers = sorted({number for numbers in touched for number in numbers})
    return [(number * size, min(size, end - number * size)) for number in numbers]


def header_bytes(url: str) -> int:
    """Where the pixels of the first image begin."""
    return int(swathe.open(url).hdus[0].data_start)
