"""Measures plans and predictions against real servers behind links of known quality.

    python benches/plan.py [--smoke] [--only predictions|plans|latency|link]

Every store is probed once, at the start; the cases come after. The link is the proxy of
`tests/proxy`, whose settings stand in the first column. Prints tables and writes
build/bench/plan.json. What is not installed is left out with a note.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
FOLDER = Path(tempfile.mkdtemp(prefix="swathe-bench-plan-"))
os.environ["SWATHE_DATABASE"] = f"sqlite:///{FOLDER}/catalog.sqlite"
os.environ["SWATHE_INDEX_DIR"] = str(FOLDER / "index")
os.environ["SWATHE_CACHE_BYTES"] = "0"

import servers  # noqa: E402
import swathe  # noqa: E402
from swathe import _swathe  # noqa: E402
from swathe.catalog import Catalog  # noqa: E402
from swathe.known import known_stores  # noqa: E402
from swathe.sample import make_sample  # noqa: E402

RESULTS = HERE.parent / "build" / "bench" / "plan.json"
WIDTH, HEIGHT, PIXEL_BYTES = 2048, 1489, 2
FRAMES = 20
KINDS = ("fit", "fit.fz", "fit.gz")
SHARED, STREAM = 12_500_000, 5_000_000


@dataclass(frozen=True)
class Link:
    """A server behind a proxy."""

    store: str
    rtt_ms: int
    shared: int = 0
    stream: int = 0

    @property
    def name(self) -> str:
        """What it is called in tables, and as a store."""
        limits = [f"{self.shared / 125_000:.0f} Mb/s" if self.shared else ""]
        limits += [f"{self.stream / 125_000:.0f} Mb/s a stream" if self.stream else ""]
        return ", ".join([self.store, f"{self.rtt_ms} ms", *filter(None, limits)])

    @property
    def id(self) -> str:
        """Its name in the catalogue."""
        return f"{self.store}-{self.rtt_ms}-{self.shared}-{self.stream}"


LINKS = (
    Link("nginx", 1),
    Link("nginx", 20, shared=SHARED),
    Link("nginx", 56, shared=SHARED),
    Link("nginx", 56, stream=STREAM),
    Link("s3s-fs", 20, stream=STREAM),
    Link("xrootd", 20, shared=SHARED),
    Link("xrootd", 150, shared=SHARED),
)
SIZES = ((1, 10), (1, 100), (1, 1000), (10, 10), (10, 100), (10, 1000), (100, 10), (100, 100),
         (1000, 10), (1000, 100))  # fmt: skip


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


def predictions(link: Link, repeats: int) -> list[dict[str, Any]]:
    """Predicted and actual seconds of batches over a link."""
    found = []
    for number, (count, size) in enumerate(SIZES):
        kind = KINDS[number % len(KINDS)]
        actual, predicted = [], []
        for repeat in range(repeats):
            rows = boxes(count, size, kind, link.id, seed=1000 * number + repeat)
            expected = swathe.predict(rows)
            with tempfile.TemporaryDirectory(dir=FOLDER) as output:
                meta = swathe.cut_many(rows, output, progress=False).meta
            assert meta["ok"] == count, meta
            predicted.append(expected.seconds)
            actual.append(meta["actual_s"])
        found.append(
            {
                "link": link.name,
                "targets": count,
                "size": size,
                "kind": kind,
                "predicted_s": statistics.median(predicted),
                "actual_s": statistics.median(actual),
                "errors": [p / a - 1 for p, a in zip(predicted, actual, strict=True)],
            }
        )
        print(
            f"  {link.name}: {count} x {size} px {kind}: {found[-1]['predicted_s']:.3f} s, took "
            f"{found[-1]['actual_s']:.3f} s",
            flush=True,
        )
    return found


def plans(link: Link, repeats: int) -> list[dict[str, Any]]:
    """Seconds to fetch what boxes of one frame need: our plan, and what others would do."""
    found = []
    url = f"{link.id}:frame-000001.fit"
    stores = known_stores()
    first, size_bytes = header_bytes(url), swathe.open(url).size
    for count, size in ((1, 10), (1, 100), (1, 1000), (10, 10), (10, 100), (30, 100), (100, 10)):
        rows = boxes(count, size, "fit", link.id, seed=size + count)
        rows["file"] = [url] * count
        plan = swathe.predict(rows).explained[0]["plans"][0]
        segments = sorted(
            (first + PIXEL_BYTES * (WIDTH * (y + row) + x), PIXEL_BYTES * size)
            for x, y in zip(rows["x0"], rows["y0"], strict=True)
            for row in range(size)
        )
        ours = [(at["start"], at["end"] - at["start"]) for at in plan["requests"]]
        ways = {
            "swathe": (ours, plan["streams"]),
            "no merging": (merged(segments, 0), 10),
            "1 MiB gap": (merged(segments, 1 << 20), 10),
            "64 kB gap": (merged(segments, 64_000), 10),
            "whole": ([(0, size_bytes)], 1),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for repeat in range(repeats):
            for name, (requests, streams) in ways.items():
                if repeat and name == "no merging":
                    continue  # seconds, which once is enough to tell
                timings = _swathe.measure(url, requests, streams, stores=stores)
                seconds[name].append(max(timing.end_s for timing in timings))
        row = {"link": link.name, "targets": count, "size": size}
        row |= {name: statistics.median(taken) for name, taken in seconds.items()}
        row["bytes"] = sum(length for _, length in ours)
        row["least_bytes"] = sum(length for _, length in merged(segments, 0))
        row["requests"] = len(ours)
        found.append(row)
        print(f"  {link.name}: {count} x {size} px: " + ", ".join(
            f"{name} {row[name]:.3f}" for name in ways), flush=True)  # fmt: skip
    return found


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


def header_bytes(url: str) -> int:
    """Where the pixels of the first image begin."""
    return int(swathe.open(url).hdus[0].data_start)


def latency(files: Path) -> list[dict[str, Any]]:
    """Round trips and bytes of one 100 x 100 cut, cold and with the index warm, over 56 ms."""
    found = []
    link = Link("nginx", 56)
    with reach(link, files) as proxy:
        probe(link)
        for frame in (2, 3, 4):
            url = f"{link.id}:frame-{frame:06}.fit"
            # On an open connection.
            swathe.cut(f"{link.id}:frame-000001.fit", box=(0, 0, 1, 1))
            for state in ("cold", "index warm"):
                proxy.clear()
                began = time.perf_counter()
                swathe.cut(url, box=(700, 600, 100, 100))
                seconds = time.perf_counter() - began
                stats = proxy.stats()
                rows = {"file": [url], "x0": [700], "y0": [600], "width": [100], "height": [100]}
                planned = swathe.predict(rows)
                found.append(
                    {
                        "state": state,
                        "seconds": seconds,
                        "round_trips": seconds / 0.056,
                        "requests": stats["requests"],
                        "bytes_down": stats["bytes_down"],
                        "planned_bytes": planned.bytes,
                        "least_bytes": 100 * 100 * PIXEL_BYTES,
                        "whole_bytes": WIDTH * HEIGHT * PIXEL_BYTES,
                    }
                )
    return found


def busy_link(files: Path, frames: int) -> list[dict[str, Any]]:
    """How busy the link is kept by 1,000 targets over many frames, 56 ms, 100 Mb/s shared."""
    link = Link("nginx", 56, shared=SHARED)
    with reach(link, files) as proxy:
        probe(link)
        draw = random.Random(7)
        rows: dict[str, list[Any]] = {name: [] for name in ("file", "x0", "y0")}
        for _ in range(5 * frames):
            rows["file"].append(f"{link.id}:frame-{draw.randrange(frames) + 1:06}.fit")
            rows["x0"].append(draw.randrange(WIDTH - 100))
            rows["y0"].append(draw.randrange(HEIGHT - 100))
        rows |= {name: [100] * (5 * frames) for name in ("width", "height")}
        expected = swathe.predict({**rows, "file": rows["file"]})
        proxy.clear()
        meta = swathe.cut_many(rows, FOLDER / "busy", progress=False).meta
        stats = proxy.stats()
    seconds = meta["actual_s"]
    return [
        {
            "targets": 5 * frames,
            "frames": frames,
            "seconds": seconds,
            "predicted_s": expected.seconds,
            "bytes_down": stats["bytes_down"],
            "requests": stats["requests"],
            "busy": stats["bytes_down"] / SHARED / seconds,
        }
    ]


def probe(link: Link) -> None:
    """Probe a store once, as `swathe probe` does."""
    import subprocess

    command = [sys.executable, "-m", "swathe.cli", "probe", f"{link.id}:frame-000001.fit", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"probe of {link.name}: {done.stderr}")


def summary(results: dict[str, Any]) -> None:
    """Print what the figures come to."""
    if results.get("predictions"):
        errors = sorted(abs(error) for row in results["predictions"] for error in row["errors"][:1])
        print(f"\npredictions: {len(errors)} cases, median error {statistics.median(errors):.1%}, "
              f"90th percentile {errors[int(len(errors) * 0.9)]:.1%}")  # fmt: skip
    if results.get("plans"):
        rivals = ("no merging", "1 MiB gap", "64 kB gap", "whole")
        best = [row["swathe"] / min(row[name] for name in rivals) for row in results["plans"]]
        worst = [max(row[name] for name in rivals) / row["swathe"] for row in results["plans"]]
        print(f"plans: {len(best)} cases, at most {max(best):.2f} times the best of the others "
              f"(median {statistics.median(best):.2f}); {statistics.median(worst):.1f} times as "
              "fast as the worst in the median")  # fmt: skip
    for name in ("latency", "link"):
        for row in results.get(name, []):
            print(name, {key: round(v, 3) if isinstance(v, float) else v for key, v in row.items()})


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["predictions", "plans", "latency", "link"])
    parser.add_argument("--smoke", action="store_true", help="two links, few frames, once")
    given = parser.parse_args()
    repeats, links, frames = (1, LINKS[1:3], 20) if given.smoke else (3, LINKS, 200)
    survey = FOLDER / "survey"
    make_sample(survey, FRAMES, 1, 10)
    results: dict[str, Any] = {"predictions": [], "plans": []}
    wanted: Callable[[str], bool] = lambda name: given.only in (None, name)  # noqa: E731
    try:
        if wanted("predictions") or wanted("plans"):
            for link in links:
                with reach(link, survey):
                    probe(link)
                    if wanted("plans"):
                        results["plans"] += plans(link, repeats)
                    if wanted("predictions"):
                        results["predictions"] += predictions(link, repeats)
        if wanted("latency"):
            results["latency"] = latency(survey)
        if wanted("link"):
            many = FOLDER / "many"
            many.mkdir()
            for number in range(frames):
                source = survey / f"frame-{number % FRAMES + 1:06}.fit"
                os.link(source, many / f"frame-{number + 1:06}.fit")
            results["link"] = busy_link(many, frames)
    finally:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1))
        shutil.rmtree(FOLDER, ignore_errors=True)
    summary(results)


if __name__ == "__main__":
    main()
