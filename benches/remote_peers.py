"""How others cut from files on a server, and how long that takes over a link."""

from __future__ import annotations

import importlib.util
import random
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from astropy.io import fits
from numpy.typing import NDArray

import swathe
from harness import HEIGHT, WIDTH
from links import FOLDER, SHARED, Link, boxes, probe, reach
from tests.support import servers

Box: TypeAlias = tuple[int, int, int, int]
"""First column, first row, width, height; zero-based."""
Pixels: TypeAlias = list[NDArray[Any]]
FIRST_BYTES = 32 * 2880
"""What the obstore user asks for to find the pixels."""


def swathe_cuts(url: str, boxes: list[Box]) -> Pixels:
    """Cut one box after the other."""
    return [np.asarray(swathe.cut(url, box=box).data) for box in boxes]


def astropy_sections(url: str, boxes: list[Box]) -> Pixels:
    """Read sections with astropy over fsspec, as its documentation shows for small cutouts."""
    kwargs = {"block_size": 1_000_000, "cache_type": "bytes"}
    with fits.open(url, use_fsspec=True, fsspec_kwargs=kwargs) as hdus:
        image = hdus[0]
        return [np.array(image.section[y : y + height, x : x + width])
                for x, y, width, height in boxes]  # fmt: skip


def rustfits_sections(url: str, boxes: list[Box]) -> Pixels:
    """Read sections with rustfits."""
    import rustfits

    with rustfits.FITS(url) as file:
        return [np.array(file[0][y : y + height, x : x + width]) for x, y, width, height in boxes]


def obstore_ranges(url: str, boxes: list[Box]) -> Pixels:
    """Ask for the rows of each box with obstore's `get_ranges`, which merges what lies close."""
    import obstore

    root, name = url.rsplit("/", 1)
    options: Any = {"allow_http": True}
    store = obstore.store.HTTPStore.from_url(root, client_options=options)
    first = bytes(obstore.get_range(store, name, start=0, length=FIRST_BYTES))
    header = fits.Header.fromstring(first.decode("latin-1"))
    start = -(-len(header.tostring()) // 2880) * 2880
    pixels = []
    for x, y, width, height in boxes:
        starts = [start + 2 * (header["NAXIS1"] * row + x) for row in range(y, y + height)]
        rows = obstore.get_ranges(store, name, starts=starts, lengths=[2 * width] * height)
        stored = np.stack([np.frombuffer(bytes(row), ">i2") for row in rows])
        pixels.append((stored.astype(np.int32) + int(header["BZERO"])).astype(np.uint16))
    return pixels


MODULES = {
    "Swathe": "swathe",
    "astropy and fsspec": "fsspec",
    "rustfits": "rustfits",
    "obstore": "obstore",
}
CUTS = (swathe_cuts, astropy_sections, rustfits_sections, obstore_ranges)
PEERS: dict[str, Callable[[str, list[Box]], Pixels]] = {
    peer: cut
    for (peer, module), cut in zip(MODULES.items(), CUTS, strict=True)
    if importlib.util.find_spec(module)
}
"""Those that are installed."""


class Readings:
    """What peers took over the link, each with nothing kept from before."""

    def __init__(self, proxy: servers.Proxy, images: dict[str, Any]) -> None:
        """Take the link, and all pixels by name."""
        self.proxy, self.images = proxy, images
        self.rows: list[dict[str, Any]] = []

    def add(self, peer: str, targets: int, size: int, repeat: int, cut: Callable[[], Any]) -> None:
        """Measure one."""
        shutil.rmtree(FOLDER / "index", ignore_errors=True)
        self.proxy.clear()
        began = time.perf_counter()
        cut()
        seconds = time.perf_counter() - began
        stats = self.proxy.stats()
        row = {"peer": peer, "targets": targets, "size": size, "repeat": repeat}
        row |= {"seconds": seconds, **{key: stats[key] for key in ("requests", "bytes_down")}}
        self.rows.append(row)

    def check(self, name: str, boxes: list[Box], pixels: Pixels) -> None:
        """Stop if these are not the pixels of a frame."""
        for (x, y, width, height), cut in zip(boxes, pixels, strict=True):
            expected_pixels = self.images[name][y : y + height, x : x + width]
            assert np.array_equal(cut, expected_pixels), name


def peers(files: Path, repeats: int) -> list[dict[str, Any]]:
    """Seconds of others and of ours for boxes of frames nobody has read before, over a link."""
    for peer in MODULES.keys() - PEERS.keys():
        print(f"{peer}: left out: {MODULES[peer]} is not installed", file=sys.stderr)
    link = Link("nginx", 56, shared=SHARED)
    images = {file.name: fits.getdata(file) for file in sorted(files.glob("*.fit"))}
    with reach(link, files) as proxy:
        probe(link)
        # What only the first of all cuts takes: imports, connections.
        for cut in PEERS.values():
            cut(f"{proxy.url}/frame-000001.fit", [(0, 0, 10, 10)])
        readings, unread = Readings(proxy, images), iter(sorted(images)[1:])
        for count, size in ((1, 100), (10, 100), (1, 1000)):
            draw = random.Random(count + size)
            for repeat in range(repeats):
                name = next(unread)
                boxes = [
                    (draw.randrange(WIDTH - size), draw.randrange(HEIGHT - size), size, size)
                    for _ in range(count)
                ]
                for peer, cut in PEERS.items():
                    pixels: Pixels = []
                    url = f"{proxy.url}/{name}"
                    readings.add(peer, count, size, repeat, lambda: pixels.extend(cut(url, boxes)))  # noqa: B023 - called at once
                    readings.check(name, boxes, pixels)
        peer_lists(link, readings)
    return readings.rows


def peer_lists(link: Link, readings: Readings) -> None:
    """The same for 200 targets over all frames; others with 8 frames at a time, too."""
    rows = boxes(200, 100, "fit", link.id, seed=11)
    by_frame: dict[str, list[Box]] = {}
    for file, x, y in zip(rows["file"], rows["x0"], rows["y0"], strict=True):
        by_frame.setdefault(file.split(":")[1], []).append((x, y, 100, 100))
    urls = [f"{readings.proxy.url}/{name}" for name in by_frame]

    def ours() -> None:
        meta = swathe.cut_many(rows, FOLDER / "listed", progress=False).meta
        assert meta["ok"] == 200, meta

    def theirs(cut: Any, threads: int) -> None:
        with ThreadPoolExecutor(threads) as pool:
            pixels = pool.map(cut, urls, by_frame.values())
            for (name, of_frame), cuts in zip(by_frame.items(), pixels, strict=True):
                readings.check(name, of_frame, cuts)

    readings.add("Swathe", 200, 100, 0, ours)
    for peer, cut in PEERS.items():
        for threads in (1, 8) if peer != "Swathe" else ():
            name = f"{peer}, {threads} at a time"
            readings.add(name, 200, 100, 0, partial(theirs, cut, threads))
    for row in readings.rows[-(2 * len(PEERS) - 1) :]:
        print(f"  200 targets over {len(by_frame)} frames: {row['peer']} {row['seconds']:.2f} s")
