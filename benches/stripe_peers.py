"""One object from four servers on this machine, without links: ours, and other programs.

Ours reads a striped store over four block servers into memory, in requests of 16 MiB, four at a
time. nginx is read by curl, one stream. xrdcp reads equal copies from four XRootD servers
(`--sources 4`, by a metalink), aria2c from four nginx (`-x1 -s4`). GlusterFS and SeaweedFS read
what they keep with redundancy on four servers (`stripe_systems.py`). Each client drops what it
reads, but for aria2c, which writes to the memory disk. A program that is not installed, or does not
start, is left out, and the bench says so. Clients and servers share the cores of this machine. CPU
seconds are those of the client, and of the client and all servers together.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from links import FOLDER
from stripe_lab import Rows, pattern, put, read, stores_of
from stripe_systems import COUNT, Client, gluster, run, seaweed
from tests.support import servers
from tests.support.block_servers import block_server

METALINK = """<?xml version="1.0" encoding="utf-8"?>
<metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="object"><size>{size}</size>
{urls}
</file></metalink>
"""


def compare_peers(*, is_smoke: bool) -> Rows:
    """Read with each program that is installed, in turn."""
    size, repeats = (32 << 20, 1) if is_smoke else (512 << 20, 5)
    with ExitStack() as stack:
        clients: dict[str, Client] = {}
        for parity in (0, 1):
            clients[f"swathe, parity {parity}"] = stack.enter_context(striped(size, parity))
        for name, (program, make) in PEERS.items():
            if shutil.which(program) is None:
                print(f"{name}: left out: {program} is not installed", flush=True)
                yield {"what": name, "left_out": f"{program} is not installed"}
                continue
            try:
                clients[name] = stack.enter_context(make(size))
                clients[name]()
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                clients.pop(name, None)
                print(f"{name}: left out: {error}", flush=True)
                yield {"what": name, "left_out": str(error)}
        costs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in clients}
        for _ in range(repeats):
            for name, client in clients.items():
                costs[name].append(measure(client))
        for name, rows in costs.items():
            seconds, client_s, all_s = (statistics.median(each) for each in zip(*rows, strict=True))
            row = {
                "what": name,
                "gb_per_s": size / seconds / 1e9,
                "client_cpu_s_per_gb": client_s / size * 1e9,
                "cpu_s_per_gb": all_s / size * 1e9,
            }
            print(
                f"{name}: {row['gb_per_s']:.2f} GB/s, CPU {row['client_cpu_s_per_gb']:.2f} s/GB, "
                f"with servers {row['cpu_s_per_gb']:.2f} s/GB",
                flush=True,
            )
            yield row


def measure(client: Client) -> tuple[float, float, float]:
    """Run a client; return seconds, CPU seconds of it, and of it and all servers."""
    before, before_all, began = client_cpu_s(), all_cpu_s(), time.perf_counter()
    client()
    seconds = time.perf_counter() - began
    return seconds, client_cpu_s() - before, all_cpu_s() - before_all


def client_cpu_s() -> float:
    """Return the CPU seconds of this process, and of its children that ended: the clients."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def all_cpu_s() -> float:
    """Return the CPU seconds of this process, and of all processes that it or they started."""
    processes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            # It ended meanwhile.
            continue
        ticks = int(fields[11]) + int(fields[12])
        processes[int(folder.name)] = int(fields[1]), ticks / os.sysconf("SC_CLK_TCK")
    total, waiting = client_cpu_s(), [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for process, (of, seconds) in processes.items():
            if of == parent:
                total += seconds
                waiting.append(process)
    return total


@contextmanager
def striped(size: int, parity: int) -> Iterator[Client]:
    """Serve a striped object by block servers; yield what reads it."""
    with ExitStack() as stack:
        roots = []
        for _ in range(COUNT):
            disk = stack.enter_context(tempfile.TemporaryDirectory(prefix="disk-", dir=FOLDER))
            server = stack.enter_context(block_server(Path(disk)))
            roots.append(server.url.replace("http://", "dav://"))
        stores = stores_of(roots, [(number, "") for number in range(COUNT)], parity)
        put(stores, size)
        yield lambda: read(stores)


@contextmanager
def nginx_alone(size: int) -> Iterator[Client]:
    """Serve the object by nginx; yield what reads it by one stream."""
    with nginx_servers(size, 1) as urls:
        yield command("curl", "--silent", "--fail", "--output", "/dev/null", urls[0])


@contextmanager
def aria2(size: int) -> Iterator[Client]:
    """Serve copies of the object by nginx; yield what reads parts of all."""
    with nginx_servers(size, COUNT) as urls:
        words = ["aria2c", "--quiet", "--no-conf", "--allow-overwrite=true"]
        words += ["--file-allocation=none", "--max-connection-per-server=1", f"--split={COUNT}"]
        words += ["--min-split-size=1M", "--dir", str(FOLDER), "--out", "aria2"]
        yield command(*words, *urls)


@contextmanager
def xrdcp(size: int) -> Iterator[Client]:
    """Serve copies of the object by XRootD; yield what reads parts of all."""
    with ExitStack() as stack:
        lines = []
        for _ in range(COUNT):
            new = stack.enter_context(tempfile.TemporaryDirectory(prefix="xrd-", dir=FOLDER))
            # XRootD does not run as root, and reads it as another user.
            Path(new).chmod(0o755)
            (Path(new) / "object").write_bytes(pattern(size))
            door = stack.enter_context(servers.xrootd(Path(new)))
            lines.append(f"<url>{door.root_url}/object</url>")
        metalink = FOLDER / "object.meta4"
        metalink.write_text(METALINK.format(size=size, urls="\n".join(lines)))
        words = ["xrdcp", "--force", "--nopbar", "--silent", "--sources", str(COUNT)]
        yield command(*words, str(metalink), "/dev/null")


@contextmanager
def nginx_servers(size: int, count: int) -> Iterator[list[str]]:
    """Start nginx servers, each over a folder with the object; yield its URLs."""
    with ExitStack() as stack:
        urls = []
        for _ in range(count):
            new = stack.enter_context(tempfile.TemporaryDirectory(prefix="nginx-", dir=FOLDER))
            server = stack.enter_context(servers.nginx(Path(new)))
            (server.folder / "object").write_bytes(pattern(size))
            urls.append(f"{server.url}/object")
        yield urls


def command(*words: str) -> Client:
    """Return what runs a program to its end."""
    return lambda: run(*words)


PEERS = {
    "nginx, one stream": ("curl", nginx_alone),
    "xrdcp, four sources": ("xrdcp", xrdcp),
    "aria2c, four sources": ("aria2c", aria2),
    "GlusterFS, disperse 3 + 1": ("glusterfsd", gluster),
    "SeaweedFS, 10 + 4": ("weed", seaweed),
}
"""Program of the client, and what starts its servers."""
