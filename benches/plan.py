"""Measures plans and predictions against real servers behind links of known quality.

    python benches/plan.py [--smoke] [--only PART] [--repeats N]

Every store is probed once, at the start; the cases come after. The link is the proxy of
`tests/proxy`, whose settings stand in the first column. Prints what the figures come to and writes
build/bench/plan.json. Servers that are not installed are left out with a note.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from astropy.io import fits

import choices
import random_links
import remote_peers
import swathe
from harness import HEIGHT, PIXEL_BYTES, WIDTH, options, save, survey
from links import (
    FOLDER,
    FRAMES,
    REPEATED_S,
    SHARED,
    STREAM,
    Link,
    Round,
    Segments,
    Way,
    boxes,
    installed_links,
    merge,
    plan_of,
    probe,
    race,
    reach,
    reader_of,
    requests_of,
    work,
)
from swathe import _swathe
from swathe.stores.registry import known_stores

PARTS = ("predictions", "plans", "latency", "link", "peers", "choices", "random")
KINDS = ("fit", "fit.fz", "fit.gz")
LINKS = (
    Link("nginx", 1),
    Link("nginx", 20, shared=SHARED),
    Link("nginx", 56, shared=SHARED),
    Link("nginx", 56, stream=STREAM),
    Link("s3s-fs", 20, stream=STREAM),
    Link("xrootd", 20, shared=SHARED),
    Link("xrootd", 150, shared=SHARED),
)
GAPS = {"no merging": 0, "1 MiB gap": 1 << 20, "64 kB gap": 64_000}
UNBOUND_S = 4.0
"""How long each way is repeated where neither delay nor bandwidth bind, but processors."""
ONE_FRAME = ((1, 10), (1, 100), (1, 1000), (10, 10), (10, 100), (30, 100), (100, 10))
SIZES = ((1, 10), (1, 100), (1, 1000), (10, 10), (10, 100), (10, 1000), (100, 10), (100, 100),
         (1000, 10), (1000, 100))  # fmt: skip


def predictions(link: Link, repeats: int) -> list[dict[str, Any]]:
    """Predicted and actual seconds of batches over a link."""
    cases = []
    for number, (count, size) in enumerate(SIZES):
        kind = KINDS[number % len(KINDS)]
        actual, predicted = [], []
        for repeat in range(repeats):
            rows = boxes(count, size, kind, link.id, seed=1000 * number + repeat)
            expected = swathe.predict(rows)
            with tempfile.TemporaryDirectory(dir=FOLDER) as output:
                meta = swathe.cut_many(rows, output, progress=False).meta
            assert meta["ok"] == count, meta
            predicted.append(expected.median_s)
            actual.append(meta["actual_s"])
        cases.append(
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
            f"  {link.name}: {count} x {size} px {kind}: {cases[-1]['predicted_s']:.3f} s, took "
            f"{cases[-1]['actual_s']:.3f} s",
            flush=True,
        )
    return cases


def plans(link: Link, survey: Path, repeats: int) -> list[dict[str, Any]]:
    """Seconds to fetch what boxes need: our plan, and what others would do.

    Of one plain frame, and of the batches that are predicted.
    """
    found = []
    cases: list[tuple[dict[str, list[Any]], dict[str, Any]]] = []
    for count, size in ONE_FRAME:
        rows = boxes(count, size, "fit", link.id, seed=size + count)
        rows["file"] = [f"{link.id}:frame-000001.fit"] * count
        cases.append((rows, {"targets": count, "size": size, "kind": "fit", "frames": 1}))
    for number, (count, size) in enumerate(SIZES):
        kind = KINDS[number % len(KINDS)]
        rows = boxes(count, size, kind, link.id, seed=1000 * number)
        frames = len(set(rows["file"]))
        cases.append((rows, {"targets": count, "size": size, "kind": kind, "frames": frames}))
    lasting_s = REPEATED_S if link.rtt_ms > 1 else UNBOUND_S
    for rows, case in cases:
        ours, at_once = plan_of(rows)
        requests = requests_of(ours)
        row = {"link": link.name, **case, "at_once": at_once, "requests": len(requests)}
        row["bytes"] = sum(length for ranges in requests for _, length in ranges)
        if case["kind"] == "fit.gz":
            row |= race(gzip_ways(rows, at_once), repeats, lasting_s)
        else:
            ways = {"swathe": ours, **others(rows, survey)}
            readings = {name: reader_of(way, at_once) for name, way in ways.items()}
            row |= race(readings, repeats, lasting_s)
        found.append(row)
        print("  {link}: {targets} x {size} px {kind}, {frames} frames: ".format(**row) + ", ".join(
            f"{name} {row[name]:.3f}" for name in ("swathe", *GAPS, "whole") if name in row
        ), flush=True)  # fmt: skip
    return found


def others(rows: dict[str, list[Any]], survey: Path) -> dict[str, Way]:
    """What others would ask for: gaps of a constant size read through, or all of each object."""
    targets: dict[str, list[tuple[int, int, int]]] = {}
    for url, *box in zip(rows["file"], rows["x0"], rows["y0"], rows["width"], strict=True):
        targets.setdefault(url, []).append((box[0], box[1], box[2]))
    ways: dict[str, Way] = {name: [] for name in (*GAPS, "whole")}
    for url, targets_of in targets.items():
        file = survey / url.partition(":")[2]
        rounds = tiles(file, targets_of) if file.suffix == ".fz" else [pixels(file, targets_of)]
        for name, gap in GAPS.items():
            ways[name].append((url, [Round(merge(segments, gap), 10) for segments in rounds]))
        ways["whole"].append((url, [Round([(0, file.stat().st_size)], 1)]))
    return ways


def gzip_ways(rows: dict[str, list[Any]], at_once: int) -> dict[str, Callable[[], float]]:
    """What cuts from gzip frames of which only the headers are known, and gives the seconds.

    Ours, whose plans are made so that inflating goes on beside reading; and copying the objects
    to the memory disk, so many at a time, to cut from the copies, as nobody else can begin
    elsewhere than at the beginning. Both ask for each object's size and version first.
    """
    stores = known_stores() or _swathe.Stores("[]")
    urls = list(dict.fromkeys(rows["file"]))
    copies = FOLDER / "copies"
    here = {**rows, "file": [str(copies / url.partition(":")[2]) for url in rows["file"]]}

    def cut(columns: dict[str, list[Any]]) -> float:
        _swathe.clear_cache("index")
        swathe.predict(columns)
        with tempfile.TemporaryDirectory(dir=FOLDER) as output:
            meta = swathe.cut_many(columns, output, progress=False).meta
        assert meta["ok"] == len(columns["file"]), meta
        return float(meta["actual_s"])

    def copy(url: str) -> None:
        source = stores.open(url)
        (copies / url.partition(":")[2]).write_bytes(source.read(0, source.size))

    def whole_file() -> float:
        copies.mkdir()
        with ThreadPoolExecutor(at_once) as threads:
            began = time.perf_counter()
            for _ in threads.map(copy, urls):
                pass
            copied_s = time.perf_counter() - began
        seconds = copied_s + cut(here)
        shutil.rmtree(copies)
        return seconds

    return {"swathe": lambda: cut(rows), "whole": whole_file}


def pixels(file: Path, targets: list[tuple[int, int, int]]) -> Segments:
    """The rows of boxes (x, y, pixels across and up) of a plain frame."""
    with fits.open(file) as hdus:
        first = hdus[0].fileinfo()["datLoc"]
    return sorted(
        (first + PIXEL_BYTES * (WIDTH * (y + row) + x), PIXEL_BYTES * size)
        for x, y, size in targets
        for row in range(size)
    )


def tiles(file: Path, targets: list[tuple[int, int, int]]) -> list[Segments]:
    """The rows of the table that say where tiles lie, and then the tiles.

    As in plans made before the table is read, all are taken to be of the same length.
    """
    with fits.open(file, disable_image_compression=True) as hdus:
        header, first = hdus[1].header, hdus[1].fileinfo()["datLoc"]
    across, up, count = header["ZTILE1"], header["ZTILE2"], header["NAXIS2"]
    in_row = -(-WIDTH // across)
    numbers = sorted(
        {
            row * in_row + column
            for x, y, size in targets
            for row in range(y // up, -(-(y + size) // up))
            for column in range(x // across, -(-(x + size) // across))
        }
    )
    row_bytes = header["NAXIS1"]
    heap = first + header.get("THEAP", row_bytes * count)
    length = header["PCOUNT"] // count
    return [
        [(first + row_bytes * number, row_bytes) for number in numbers],
        [(heap + length * number, length) for number in numbers],
    ]


def latency(files: Path) -> list[dict[str, Any]]:
    """Round trips and bytes of one 100 x 100 cut, cold and with the index warm, over 56 ms."""
    cases = []
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
                cases.append(
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
    return cases


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
            "predicted_s": expected.median_s,
            "bytes_down": stats["bytes_down"],
            "requests": stats["requests"],
            "busy": stats["bytes_down"] / SHARED / seconds,
        }
    ]


def summary(results: dict[str, Any]) -> None:
    """Print what the figures come to."""
    if results.get("predictions"):
        errors = sorted(
            abs(row["predicted_s"] / row["actual_s"] - 1) for row in results["predictions"]
        )
        print(f"\npredictions: {len(errors)} cases, median error {statistics.median(errors):.1%}, "
              f"90th percentile {errors[int(len(errors) * 0.9)]:.1%}")  # fmt: skip
    if results.get("random"):
        random_links.summary(results["random"])
    if results.get("plans"):
        rivals = (*GAPS, "whole")
        best, worst = [], []
        for row in results["plans"]:
            theirs = [row[name] for name in rivals if name in row]
            best.append(row["swathe"] / min(theirs))
            worst.append(max(theirs) / row["swathe"])
        print(f"plans: {len(best)} cases, at most {max(best):.2f} times the best of the others "
              f"(median {statistics.median(best):.2f}); {statistics.median(worst):.1f} times as "
              "fast as the worst in the median")  # fmt: skip
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in results.get("peers", []):
        groups.setdefault((row["targets"], row["size"], row["peer"]), []).append(row)
    for (targets, size, peer), rows in groups.items():
        middle = {key: statistics.median(row[key] for row in rows)
                  for key in ("seconds", "requests", "bytes_down")}  # fmt: skip
        print(f"{targets} x {size} px, cold: {peer}: {middle['seconds']:.3f} s, "
              f"{middle['requests']:.0f} requests, "
              f"{middle['bytes_down'] / 1e6:.2f} MB")  # fmt: skip
    for row in results.get("choices", []):
        others = {row[way]: way for way in choices.RIVALS}
        least, most = min(others), max(others)
        print(f"{row['case']}: {row['swathe']:.3f} s; best of the others {least:.3f} "
              f"({others[least]}), worst {most:.3f} ({others[most]})")  # fmt: skip
    for name in ("latency", "link"):
        for row in results.get(name, []):
            print(name, {key: round(v, 3) if isinstance(v, float) else v for key, v in row.items()})


@contextmanager
def keep(results: dict[str, Any]) -> Iterator[None]:
    """Write the results at the end, also those of a run that was stopped."""
    try:
        yield
    finally:
        save("plan", results)


def main() -> None:
    """Run what was asked for."""
    parser = options(__doc__, PARTS)
    parser.add_argument("--repeats", type=int, default=3, help="of each case; by default 3")
    arguments = parser.parse_args()
    repeats, links, frames = (
        (1, LINKS[1:3], 20) if arguments.smoke else (arguments.repeats, LINKS, 200)
    )
    sample = survey(FRAMES)
    results: dict[str, Any] = {"predictions": [], "plans": []}
    is_part: Callable[[str], bool] = lambda name: name in (arguments.only or PARTS)  # noqa: E731
    with work(), keep(results):
        if is_part("predictions") or is_part("plans"):
            for link in installed_links(links):
                with reach(link, sample):
                    probe(link)
                    if is_part("plans"):
                        results["plans"] += plans(link, sample, repeats)
                    if is_part("predictions"):
                        results["predictions"] += predictions(link, repeats)
        if is_part("latency"):
            results["latency"] = latency(sample)
        if is_part("random"):
            numbers = range(1, 2 if arguments.smoke else 11)
            cases = random_links.random_cases(sample, numbers, quick=arguments.smoke, busy=True)
            results["random"] = list(cases)
        if is_part("choices"):
            results["choices"] = choices.choices(1)
        if is_part("peers"):
            results["peers"] = remote_peers.peers(sample, repeats)
        if is_part("link"):
            many = FOLDER / "many"
            many.mkdir()
            for number in range(frames):
                source = sample / f"frame-{number % FRAMES + 1:06}.fit"
                (many / f"frame-{number + 1:06}.fit").symlink_to(source)
            results["link"] = busy_link(many, frames)
    summary(results)


if __name__ == "__main__":
    main()
