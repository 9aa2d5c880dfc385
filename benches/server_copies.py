"""What a copy between servers takes, when they make it and when its bytes pass through us.

    python benches/server_copies.py [--smoke] [--only s3s-fs]

One object is copied by servers that we reach over a link of 20 ms and 14 MB/s: between two buckets
of s3s-fs, between two folders of nginx, and from one XRootD to another. Prints the seconds, and the
MB that the link carried.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import swathe
from harness import options, work_folder
from tests.support import servers

RTT_MS = 20
RATE = 14_000_000
SIZE = 100_000_000


class Way(NamedTuple):
    """A copy that is measured.

    Attributes:
        name: who copies.
        links: links between us and the servers.
        target: name of the copy.
    """

    name: str
    links: list[servers.Proxy]
    target: str


@contextmanager
def link(url: str) -> Iterator[servers.Proxy]:
    """Run a link to a server."""
    with servers.proxy(url, rtt_ms=RTT_MS, shared_bytes_per_s=RATE) as proxy:
        yield proxy


@contextmanager
def buckets(folder: Path, content: Path) -> Iterator[list[Way]]:
    """Run s3s-fs; what goes to another name of it passes through us."""
    with ExitStack() as stack:
        server = stack.enter_context(servers.s3s_fs(folder))
        os.environ |= server.environment
        near = stack.enter_context(link(server.url))
        far = stack.enter_context(servers.proxy(near.url))
        for name, url in (("one", near.url), ("two", near.url), ("far", far.url)):
            (folder / name).mkdir()
            swathe.stores.add(name, f"s3://{name}", options={"endpoint": url})
        swathe.stores.add("direct", "s3://one", options={"endpoint": server.url})
        swathe.stores.copy_objects(str(content), "direct:object", progress=False)
        yield [Way("servers", [near], "two:copy"), Way("us", [near], "far:copy")]


@contextmanager
def files(folder: Path, content: Path) -> Iterator[list[Way]]:
    """Run nginx. "Through us" is to a folder that takes no COPY."""
    with ExitStack() as stack:
        server = stack.enter_context(servers.nginx(folder))
        near = stack.enter_context(link(server.url))
        content.rename(server.folder / "object")
        for name, path in (("one", "copying"), ("two", "copying/two"), ("far", "dav/far")):
            swathe.stores.add(name, f"{near.url}/{path}".replace("http", "dav", 1))
        yield [Way("servers", [near], "two:copy"), Way("us", [near], "far:copy")]


@contextmanager
def doors(folder: Path, content: Path) -> Iterator[list[Way]]:
    """Run two XRootD. "Through us" is to one that does not copy; the servers reach each other.

    The source has no link: what is read of it is not counted, and not slow.
    """
    with ExitStack() as stack:
        urls = {}
        for name in ("one", "two", "far"):
            (folder / name).mkdir()
            door = servers.xrootd(folder / name, writable=True, copies=name == "two")
            urls[name] = stack.enter_context(door).url
        links = {name: stack.enter_context(link(urls[name])) for name in ("two", "far")}
        urls |= {name: proxy.url for name, proxy in links.items()}
        for name, url in urls.items():
            swathe.stores.add(name, url.replace("http", "dav", 1))
        shutil.copy(content, folder / "one" / "object")
        yield [
            Way("servers", [links["two"]], "two:copy"),
            Way("us", [links["far"]], "far:copy"),
        ]


KINDS = {"s3s-fs": buckets, "nginx": files, "xrootd": doors}


def main() -> None:
    """Run the benchmark."""
    args = options(__doc__, list(KINDS)).parse_args()
    size = 1_000_000 if args.smoke else SIZE
    for kind in args.only or KINDS:
        with work_folder(6 * size) as folder:
            content = folder / "content"
            content.write_bytes(os.urandom(size))
            (place := folder / "servers").mkdir()
            with KINDS[kind](place, content) as ways:
                for way in ways:
                    print(f"{kind:8} {measure(way)}", flush=True)


def measure(way: Way) -> str:
    """Copy once; return seconds and MB."""
    for each in way.links:
        each.clear()
    begin = time.perf_counter()
    report = swathe.stores.copy_objects("one:object", way.target, progress=False)
    seconds = time.perf_counter() - begin
    assert report.copied == 1, report.faults
    stats = [each.stats() for each in way.links]
    down, up = (sum(each[name] for each in stats) / 1e6 for name in ("bytes_down", "bytes_up"))
    return (
        f"by {way.name:8} {seconds:7.2f} s, {down:8.3f} MB to us, {up:8.3f} MB from us; "
        f"{report.by_servers} by servers, {report.detours}"
    )


if __name__ == "__main__":
    main()
