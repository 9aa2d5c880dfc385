"""What many small images take as one superfile, and as an object each, over a slow link.

    python benches/superfile.py [--smoke] [--server nginx] [--repeats 3]

A server is behind a link of 56 ms and 160 Mb/s: a block server, which tells the checksum of what it
was sent, or nginx, from which what was written is read back. The store was probed. 1,000 images of
64 kB are read and written: as a superfile; one after another on one open connection, which needs no
more than a GET or a PUT for each; and so on several connections at the same time. Prints the median
seconds.
"""

from __future__ import annotations

import http.client
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from harness import options

# isort: split
# Sets the folders of this process.
import numpy as np

import links
import swathe
from swathe.catalog import Catalog
from tests.support import servers
from tests.support.block_servers import block_server

RTT_MS, RATE = 56, 20_000_000
IMAGES, SIZE = 1000, 64_000
STREAMS = (8, 32)
Ways = dict[str, Callable[[], float]]


class Singles:
    """Images as an object each, by the plainest client that there is."""

    def __init__(self, url: str, images: dict[str, bytes]) -> None:
        """Set the folder on a server, and what is written."""
        parts = urlsplit(url)
        self._host, self._path, self._images = parts.netloc, parts.path, images

    def _each(self, method: str, names: Iterable[str]) -> None:
        """Send a request for each name, on one connection that is opened before."""
        connection = http.client.HTTPConnection(self._host, timeout=60)
        for name in names:
            body = self._images[name] if method == "PUT" else None
            connection.request(method, f"{self._path}/{name}", body)
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status in (200, 201, 204), answer.status
            assert method == "PUT" or content == self._images[name]
        connection.close()

    def seconds(self, method: str, streams: int) -> float:
        """Read or write all images; return the seconds that took."""
        names = list(self._images)
        began = time.perf_counter()
        with ThreadPoolExecutor(streams) as threads:
            parts = [names[at::streams] for at in range(streams)]
            for _ in threads.map(lambda part: self._each(method, part), parts):
                pass
        return time.perf_counter() - began

    def ways(self, method: str) -> Ways:
        """Return the ways to read or write all images, by number of connections."""
        return {
            f"singles, {streams} connection{'s' * (streams > 1)}": partial(
                self.seconds, method, streams
            )
            for streams in (1, *STREAMS)
        }


def write_superfile(images: dict[str, bytes]) -> float:
    """Write all images as a superfile; return the seconds that took."""
    began = time.perf_counter()
    with swathe.superfile("web:all.zip", "w", overwrite=True) as writer:
        for name, content in images.items():
            writer.add(name, content)
    return time.perf_counter() - began


def read_superfile(images: dict[str, bytes]) -> float:
    """Read the superfile as a loop over its names does; return the seconds that took."""
    began = time.perf_counter()
    superfile = swathe.superfile("web:all.zip")
    contents = {name: superfile[name] for name in superfile}
    seconds = time.perf_counter() - began
    assert contents == images
    return seconds


def copy_images(images: dict[str, bytes]) -> float:
    """Write each image as `swathe put` does, verified; return the seconds that took."""
    folder = links.FOLDER / "images"
    folder.mkdir(exist_ok=True)
    for name, content in images.items():
        (folder / name).write_bytes(content)
    began = time.perf_counter()
    report = swathe.stores.copy_objects(
        str(folder), "web:", recursive=True, overwrite=True, progress=False
    )
    assert report.copied == len(images), report.faults
    return time.perf_counter() - began


def measure(title: str, ways: Ways, repeats: int) -> None:
    """Print the median seconds of ways to do the same, in turn, and those over our own."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            seconds[name].append(way())
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    first = next(iter(medians.values()))
    for name, median in medians.items():
        print(f"{title:8} {name:44} {median:8.2f} s  {median / first:6.2f}", flush=True)


@contextmanager
def nginx(folder: Path) -> Iterator[tuple[Path, str]]:
    """Run nginx; give a folder, and its URL."""
    with servers.nginx(folder) as server:
        yield server.folder, f"{server.url}/dav"


@contextmanager
def block(folder: Path) -> Iterator[tuple[Path, str]]:
    """Run a block server; give a folder, and its URL."""
    (disk := folder / "disk").mkdir()
    with block_server(disk) as server:
        yield disk, server.url


SERVERS = {"block": block, "nginx": nginx}


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__, ("writing", "reading"))
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--server", choices=SERVERS, default="block", help="(default: block)")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    count = 20 if args.smoke else IMAGES
    images = {f"{number:04}.png": rng.bytes(SIZE) for number in range(count)}
    with links.work(), SERVERS[args.server](links.FOLDER) as (folder, url):
        (folder / "probed").write_bytes(rng.bytes(8 << 20))
        limits = {"shared_bytes_per_s": RATE, "upload_bytes_per_s": RATE}
        with servers.proxy(url, rtt_ms=RTT_MS, **limits) as link:
            with Catalog.open() as catalog:
                root = link.url.replace("http", "dav", 1)
                catalog.add_store("web", root, options={"probe_object": "probed"})
            swathe.probe("web", quick=True)
            singles = Singles(link.url, images)
            repeats = 1 if args.smoke else args.repeats
            if "writing" in (args.only or ["writing"]):
                ways: Ways = {"superfile": lambda: write_superfile(images)}
                ways |= singles.ways("PUT")
                ways["singles, swathe put -r (verified)"] = lambda: copy_images(images)
                measure("writing", ways, repeats)
            if "reading" in (args.only or ["reading"]):
                write_superfile(images)
                singles.seconds("PUT", max(STREAMS))
                ways = {"superfile": lambda: read_superfile(images)}
                measure("reading", ways | singles.ways("GET"), repeats)


if __name__ == "__main__":
    main()
