"""How soon the first picture of a large compressed image is there, over a link.

    python benches/first_picture.py [--smoke] [--rounds N]

The image has 12,000 x 12,000 pixels of 16 bits, compressed in rows by RICE_1: about 100 MB. It is
served by nginx over 56 ms and 160 Mb/s. Each round is a new process without an index: it opens the
file and draws what the page of an image shows first, up to 512 of its rows. It does so before and
after the store is probed. Beside it: the whole file by curl.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from astropy.io import fits

from harness import options, save
from links import FOLDER, Link, probe, reach, work

SIDE, SMOKE_SIDE = 12_000, 1000
NAME = "image.fits.fz"
LINK = Link("nginx", 56, 20_000_000)
DRAW = """
import sys, time
begin = time.perf_counter()
import swathe
from swathe.files.preview import picture
from swathe.files.pyramid import read_overview
ready = time.perf_counter()
image = swathe.open(sys.argv[1]).image()
picture(read_overview(image, ()).pixels)
moved = image._native.traffic()
print(ready - begin, time.perf_counter() - ready, moved["bytes_moved"], moved["requests"])
"""


def make_image(path: Path, side: int) -> None:
    """Write an image like a sky: noise, compressed losslessly."""
    pixels = np.random.default_rng(1).normal(1100, 12, (side, side)).round().astype(np.int16)
    compressed = fits.CompImageHDU(pixels, compression_type="RICE_1")
    fits.HDUList([fits.PrimaryHDU(), compressed]).writeto(path)


def main() -> None:
    """Measure and save."""
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with work():
        files = FOLDER / "files"
        files.mkdir()
        make_image(files / NAME, SMOKE_SIDE if arguments.smoke else SIDE)
        size = (files / NAME).stat().st_size
        with reach(LINK, files) as proxy:
            number = 1 if arguments.smoke else arguments.rounds
            results = {"not probed": [draw() for _ in range(number)]}
            probe(LINK, NAME, quick=True)
            results["probed"] = [draw() for _ in range(number)]
            curl_s = [download(f"{proxy.url}/{NAME}") for _ in range(number)]
    print(f"{LINK.name}, {size / 1e6:.0f} MB; whole file by curl {statistics.median(curl_s):.2f} s")
    for what, rounds in results.items():
        medians = {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
        print(
            f"{what}: picture after {medians['draw_s']:.2f} s, {medians['bytes'] / 1e6:.1f} MB in "
            f"{medians['requests']:.0f} requests"
        )
    save("first-picture", {"link": LINK.name, "bytes": size, "curl_s": curl_s, **results})


def draw() -> dict[str, float]:
    """Draw the first picture in a new process; return its times, bytes and requests."""
    program = [sys.executable, "-c", DRAW, f"{LINK.id}:{NAME}"]
    words = subprocess.run(program, check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(("import_s", "draw_s", "bytes", "requests"), map(float, words), strict=True))


def download(url: str) -> float:
    """Return the seconds that curl takes for a file."""
    begin = time.perf_counter()
    subprocess.run(["curl", "-sf", "-o", "/dev/null", url], check=True)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
