"""The requests of striped cuts by a plain client: what servers, links and processors allow.

curl sends the requests that cuts need, 16 at a time, with no work for what arrives, and no request
waits for the answer to another. So it is quicker than any program that reads headers before pixels.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import httpx

from harness import HEIGHT, WIDTH

PIXEL_BYTES = 2
FIRST_BYTES, RECORD_BYTES = 4 * 2880, 1824
MOST_RANGES, AT_ONCE = 400, 16
MAGIC_BYTES = 16
"""Of a record; then follow the length of its header, and the header."""
Range: TypeAlias = tuple[int, int]
"""First byte and the one after the last."""
Request: TypeAlias = tuple[str, Sequence[Range]]
"""URL and ranges."""


def random_boxes(names: Sequence[str], count: int, side: int) -> list[tuple[str, int, int]]:
    """Draw the frame and the first pixel, x and y, of each cut."""
    draw = random.Random(11)
    frames = [draw.choice(names) for _ in range(count)]
    x0 = [draw.randrange(WIDTH - side) for _ in range(count)]
    y0 = [draw.randrange(HEIGHT - side) for _ in range(count)]
    return list(zip(frames, x0, y0, strict=True))


def rows_by_frame(
    boxes: Sequence[tuple[str, int, int]], side: int, data_start: int
) -> dict[str, list[Range]]:
    """Return the rows of all cuts of each frame, ascending, those that overlap as one."""
    rows: dict[str, list[Range]] = defaultdict(list)
    for name, x0, y0 in boxes:
        starts = (data_start + ((y0 + y) * WIDTH + x0) * PIXEL_BYTES for y in range(side))
        rows[name] += [(start, start + side * PIXEL_BYTES) for start in starts]
    return {name: _merged(sorted(ranges)) for name, ranges in rows.items()}


def requests_of_files(root: str, rows: dict[str, list[Range]]) -> Iterator[Request]:
    """Yield the requests for cuts of whole files: first bytes, then rows."""
    for name, ranges in rows.items():
        yield f"{root}/{name}", [(0, FIRST_BYTES)]
        yield from _in_requests(f"{root}/{name}", ranges)


def requests_of_stripe(roots: Sequence[str], rows: dict[str, list[Range]]) -> Iterator[Request]:
    """Yield requests for cuts of striped files: records of most servers, first bytes, rows."""
    for name, ranges in rows.items():
        header = _record(roots[0], name)
        by_part: dict[int, list[Range]] = defaultdict(list)
        for start, end in ranges:
            while start < end:
                shard, at = divmod(start, header["block_bytes"])
                length = min(end - start, header["block_bytes"] - at)
                part = (header.get("first_part", 0) + shard) % len(roots)
                by_part[part].append((at, at + length))
                start += length
        assert header["block_bytes"] * header["data"] >= header["size"], "one row of blocks"
        first = random.Random(name).randrange(len(roots))
        for number in range(len(roots) // 2 + 1):
            root = roots[(first + number) % len(roots)]
            yield f"{root}/{name}.stripe", [(0, RECORD_BYTES)]
        version = f"{header['number']}-{header['writer']}.{header['size']}"
        urls = [f"{root}/{name}.stripe.{version}.{part}" for part, root in enumerate(roots)]
        yield urls[header.get("first_part", 0)], [(0, FIRST_BYTES)]
        for part, in_part in by_part.items():
            yield from _in_requests(urls[part], in_part)


def race_curl(requests: Sequence[Request], folder: Path) -> float:
    """Return the seconds in which curl gets these."""
    sections = []
    for url, ranges in requests:
        text = ",".join(f"{start}-{end - 1}" for start, end in ranges)
        lines = [f'url = "{url}"', f'range = "{text}"', 'output = "/dev/null"', "fail"]
        sections.append("\n".join([*lines, 'header = "Swathe-Joined: yes"', "silent"]))
    config = folder / "curl.conf"
    config.write_text("\nnext\n".join(sections))
    began = time.perf_counter()
    command = ["curl", "--parallel", "--parallel-immediate", "--parallel-max", str(AT_ONCE)]
    command += ["--no-progress-meter"]
    subprocess.run([*command, "--config", str(config)], check=True, timeout=600)
    return time.perf_counter() - began


def _merged(ranges: Sequence[Range]) -> list[Range]:
    merged: list[Range] = []
    for start, end in ranges:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _in_requests(url: str, ranges: Sequence[Range]) -> Iterator[Request]:
    for at in range(0, len(ranges), MOST_RANGES):
        yield url, ranges[at : at + MOST_RANGES]


def _record(root: str, name: str) -> dict[str, Any]:
    record = httpx.get(f"{root}/{name}.stripe").raise_for_status().content
    start = MAGIC_BYTES + 4
    length = int.from_bytes(record[MAGIC_BYTES:start], "little")
    header: dict[str, Any] = json.loads(record[start : start + length])
    return header
