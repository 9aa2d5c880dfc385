"""Cases where the constants of other systems are known to be bad choices."""

from __future__ import annotations

from typing import Any

import numpy as np
from astropy.io import fits

import swathe
from harness import PIXEL_BYTES
from links import (
    FOLDER,
    SHARED,
    Link,
    Round,
    blocks_of,
    header_bytes,
    merge,
    plan_of,
    probe,
    race,
    reach,
    reader_of,
    requests_of,
)

RIVALS = ("gap 0", "64 kB gap", "1 MiB gap", "blocks of 5 MiB", "blocks of 512 KiB", "whole")


def choices(repeats: int) -> list[dict[str, Any]]:
    """Seconds of our plan and of theirs; what a case is modelled on stands in its name.

    All read one image of 160 rows of 400 kB.
    """
    folder = FOLDER / "wide"
    folder.mkdir()
    name, width, height = "wide.fits", 200_000, 160
    pixels = np.random.default_rng(1).integers(0, 30_000, (height, width), dtype=np.int16)
    fits.PrimaryHDU(pixels).writeto(folder / name)
    row_bytes = PIXEL_BYTES * width
    cases: list[tuple[str, Link, list[tuple[int, int, int, int]]]] = [
        (
            "25 chunks of 100 kB, 700 kB apart (VirtualiZarr #1033)",
            Link("nginx", 30, shared=100_000_000, stream=25_000_000),
            [(0, 2 * at, 50_000, 1) for at in range(25)],
        ),
        (
            "6 MB where all streams share 3.5 MB/s, 235 ms (PERFLAB, appendix E)",
            Link("nginx", 235, shared=3_500_000),
            [(0, 0, width, 15)],
        ),
        (
            "64 MB, 5 MB/s a stream, 90 ms (arrow #36441)",
            Link("nginx", 90, stream=5_000_000),
            [(0, 0, width, height)],
        ),
        (
            "10 MB skipped after each 30 MB (mountpoint-s3 #795, a tenth of its size)",
            Link("nginx", 50, shared=90_000_000),
            [(0, 0, width, 75), (0, 100, width, 60)],
        ),
        (
            "490 pieces of 40 bytes 8 kB apart (xarray-spatial #2266, smaller)",
            Link("nginx", 20, shared=SHARED),
            [(4096 * at, 16 * row, 20, 1) for row in range(10) for at in range(49)],
        ),
        (
            "a single small piece (fsspec/s3fs #677, astrocut #177)",
            Link("nginx", 56, shared=SHARED),
            [(90_000, 80, 100, 1)],
        ),
    ]
    rows = []
    for what, link, goal in cases:
        with reach(link, folder):
            url = f"{link.id}:{name}"
            probe(link, name)
            corners = map(list, zip(*goal, strict=True))
            columns = dict(zip(("x0", "y0", "width", "height"), corners, strict=True))
            first, size_bytes = header_bytes(url), swathe.open(url).size
            segments = sorted(
                (first + row_bytes * (y + row) + PIXEL_BYTES * x, PIXEL_BYTES * across)
                for x, y, across, up in goal
                for row in range(up)
            )
            ours, at_once = plan_of({"file": [url] * len(goal), **columns})
            theirs = {
                "gap 0": Round(merge(segments, 0), 10),
                "64 kB gap": Round(merge(segments, 64_000), 10),
                "1 MiB gap": Round(merge(segments, 1 << 20), 10),
                "blocks of 5 MiB": Round(blocks_of(segments, 5 << 20, size_bytes), 1),
                "blocks of 512 KiB": Round(blocks_of(segments, 512 << 10, size_bytes), 1),
                "whole": Round([(0, size_bytes)], 1),
            }
            ways = {"swathe": ours, **{name: [(url, [one])] for name, one in theirs.items()}}
            row = {"case": what, "link": link.name, "requests": len(requests_of(ours))}
            row |= race({name: reader_of(way, at_once) for name, way in ways.items()}, repeats)
        rows.append(row)
        print(f"  {what}: " + ", ".join(f"{way} {row[way]:.3f}" for way in ways), flush=True)
    return rows
