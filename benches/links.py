"""Servers behind links of known quality, and reading over them in several ways."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from harness import BUILD, HEIGHT, MEMORY_DISK, WIDTH

# Processes that make the sample import this, too: the folder is made by `work`.
FOLDER = (MEMORY_DISK if MEMORY_DISK.is_dir() else BUILD) / f"swathe-bench-{os.getpid()}"
os.environ["SWATHE_DATABASE"] = f"sqlite:///{FOLDER}/catalog.sqlite"
os.environ["SWATHE_INDEX_DIR"] = str(FOLDER / "index")
os.environ["SWATHE_CACHE_BYTES"] = "0"
os.environ["SWATHE_MEMORY_BYTES"] = "0"

import swathe  # noqa: E402
from swathe import _swathe  # noqa: E402
from swathe.catalog import Catalog  # noqa: E402
from swathe.stores.registry import known_stores  # noqa: E402
from tests.support import servers  # noqa: E402

FRAMES = 20
"""Of the survey that is served."""
SHARED, STREAM = 12_500_000, 5_000_000
MOST_STREAMS = 64
REPEATED_S, MOST_REPEATS = 1.0, 60
LONGEST_ANSWER_S = 60.0
Segments: TypeAlias = list[tuple[int, int]]
"""Offset and bytes of each."""


class Round(NamedTuple):
    """Ranges, how many requests for them are in flight, and how many ranges each asks for."""

    ranges: Segments
    streams: int
    ranges_per_request: int = 1
    is_multiplexed: bool = False

    @property
    def requests(self) -> list[Segments]:
        """The ranges of each request."""
        each = self.ranges_per_request
        return [self.ranges[at : at + each] for at in range(0, len(self.ranges), each)]


Way: TypeAlias = list[tuple[str, list[Round]]]
"""How each object, or part of its boxes, is read: one round after the other."""


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


def installed_links(links: Sequence[Link]) -> list[Link]:
    """Return the links whose server is installed; print which are left out."""
    programs = {
        "nginx": shutil.which("nginx"),
        "xrootd": shutil.which("xrootd"),
        "s3s-fs": servers.s3s_fs_program(),
    }
    for link in links:
        if not programs[link.store]:
            print(f"{link.name}: left out: {link.store} is not installed", file=sys.stderr)
    return [link for link in links if programs[link.store]]


@contextlib.contextmanager
def work() -> Iterator[None]:
    """Make the folder of this run, and remove it at the end."""
    FOLDER.mkdir(parents=True)
    try:
        yield
    finally:
        shutil.rmtree(FOLDER)


@contextlib.contextmanager
def reach(link: Link, files: Path) -> Iterator[servers.Proxy]:
    """Serve the files over the link and name the store in the catalogue."""
    settings: dict[str, Any] = {"rtt_ms": link.rtt_ms}
    if link.shared:
        settings["shared_bytes_per_s"] = link.shared
    if link.stream:
        settings["connection_bytes_per_s"] = link.stream
    with contextlib.ExitStack() as stack:
        # Of its own each time: parts may use the same link one after the other.
        new = tempfile.TemporaryDirectory(prefix=f"{link.id}-", dir=FOLDER)
        folder = Path(stack.enter_context(new))
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
    """Put all files and folders where a server finds them."""
    shutil.copytree(files, folder, dirs_exist_ok=True)


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


def probe(link: Link, name: str = "frame-000001.fit", *, quick: bool = False) -> dict[str, Any]:
    """Probe a store once, as `swathe probe` does; return what it prints."""
    command = [sys.executable, "-m", "swathe.cli", "probe", f"{link.id}:{name}", "--json"]
    command += ["--quick"] if quick else []
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if process.returncode:
        raise RuntimeError(f"probe of {link.name}: {process.stderr}")
    profile: dict[str, Any] = json.loads(process.stdout)
    return profile


def plan_of(rows: dict[str, list[Any]]) -> tuple[Way, int]:
    """Our plan for boxes, and how many objects it reads at a time.

    It finds the connections open that it may want, as others then do: who goes first would open
    them for the rest.
    """
    urls = list(dict.fromkeys(rows["file"]))
    _swathe.measure(urls[0], [(0, 1)] * MOST_STREAMS, MOST_STREAMS, stores=known_stores())
    explained = swathe.predict(rows).explained
    # Many boxes of one object are several parts.
    objects = dict(zip(dict.fromkeys(how["url"] for how in explained), urls, strict=True))
    ours = [(objects[how["url"]], [_round(plan) for plan in how["plans"]]) for how in explained]
    return ours, explained[0]["at_once"]


def _round(plan: dict[str, Any]) -> Round:
    ranges = [(at["start"], at["end"] - at["start"]) for at in plan["ranges"]]
    return Round(ranges, plan["streams"], plan["ranges_per_request"], plan["load"]["multiplexed"])


def requests_of(way: Way) -> list[Segments]:
    """The ranges of all requests of a way to read."""
    return [one for _, rounds in way for each in rounds for one in each.requests]


def read_round(source: _swathe.Source, part: Round) -> None:
    """Read the ranges of a round as it says."""
    if part.is_multiplexed:
        answer = source.measure_multiplexed(part.ranges, part.streams, LONGEST_ANSWER_S)
        assert answer.refusal is None, answer.refusal
        return
    if part.ranges_per_request == 1:
        source.measure(part.ranges, part.streams)
        return

    def read(ranges: Segments) -> None:
        answer = source.measure_vector(ranges, LONGEST_ANSWER_S)
        assert answer.refusal is None, answer.refusal

    if part.streams == 1 or len(part.requests) == 1:
        for ranges in part.requests:
            read(ranges)
        return
    with ThreadPoolExecutor(part.streams) as threads:
        for _ in threads.map(read, part.requests):
            pass


def reader_of(way: Way, at_once: int) -> Callable[[], float]:
    """What reads so many objects, or parts, at a time, and gives the seconds that took."""
    stores = known_stores() or _swathe.Stores("[]")
    sources = {url: stores.open(url) for url, _ in way}

    def follow(part: tuple[str, list[Round]]) -> None:
        url, rounds = part
        for each in rounds:
            read_round(sources[url], each)

    def read() -> float:
        with ThreadPoolExecutor(at_once) as threads:
            began = time.perf_counter()
            for _ in threads.map(follow, way):
                pass
            return time.perf_counter() - began

    return read


def race(
    ways: dict[str, Callable[[], float]], repeats: int, lasting_s: float = REPEATED_S
) -> dict[str, float]:
    """Median seconds of ways to do the same, of which the first is ours.

    They go in an order drawn anew each time, for who follows the whole object finds the caches of
    the processor full of that; what takes little is done again for so long.
    """
    seconds: dict[str, list[float]] = {name: [way()] for name, way in ways.items()}
    # Without merging it mostly takes long, and once is enough to tell.
    turns = {
        name: max(
            repeats - 1 if name != "no merging" else 0,
            min(MOST_REPEATS, int(lasting_s / seconds[name][0])),
        )
        for name in ways
    }
    draw = random.Random(7)
    for turn in range(max(turns.values())):
        for name in draw.sample(list(ways), len(ways)):
            if turn < turns[name]:
                seconds[name].append(ways[name]())
    return {name: statistics.median(times) for name, times in seconds.items()}


def merge(segments: Segments, gap: int) -> Segments:
    """Requests (offset, bytes) where gaps up to `gap` bytes are read through."""
    result: Segments = []
    for start, length in segments:
        if result and start <= sum(result[-1]) + gap:
            last, last_length = result[-1]
            result[-1] = (last, max(last_length, start + length - last))
        else:
            result.append((start, length))
    return result


def blocks_of(segments: Segments, size: int, end: int) -> Segments:
    """The aligned blocks that hold the segments, each a request."""
    ranges = (range(start // size, -(-(start + length) // size)) for start, length in segments)
    numbers = sorted({number for numbers in ranges for number in numbers})
    return [(number * size, min(size, end - number * size)) for number in numbers]


def header_bytes(url: str) -> int:
    """Where the pixels of the first image begin."""
    return int(swathe.open(url).hdus[0].data_start)
