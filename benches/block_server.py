"""The block server beside nginx: one stream, small ranges, many ranges; all from the page cache.

    python benches/block_server.py [--smoke]

Both serve the same file on loopback, the block server once with checksums (it wrote the file) and
once without (it was put on its disk). One client reads it over one connection, from each in turn.
Prints MB/s or requests/s, medians of the rounds; beside nginx, the median of the ratios within each
round and the ratio of the medians; and the CPU seconds of the server per GB.
"""

from __future__ import annotations

import http.client
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np

from harness import options, work_folder
from tests.support import servers
from tests.support.block_servers import block_server

SIZE = 256 << 20
ROUNDS = 7
SMALL_READS, SMALL_BYTES = 2000, 20_000
LISTS, RANGES, RANGE_BYTES, STEP_BYTES = 300, 100, 200, 4096
CHUNK = bytearray(1 << 20)


def read_all(connection: http.client.HTTPConnection, headers: dict[str, str] | None = None) -> int:
    """Read an answer, into one buffer; return its bytes."""
    connection.request("GET", "/file", headers=headers or {})
    answer = connection.getresponse()
    assert answer.status in (200, 206), answer.status
    count = 0
    while size := answer.readinto(CHUNK):
        count += size
    return count


def stream(connection: http.client.HTTPConnection, size: int) -> tuple[int, int]:
    """Read the whole file; return requests and bytes."""
    assert read_all(connection) == size
    return 1, size


def small_reads(connection: http.client.HTTPConnection, size: int) -> tuple[int, int]:
    """Read ranges, one by one; return requests and bytes."""
    starts = np.random.default_rng(1).integers(0, size - SMALL_BYTES, SMALL_READS)
    for start in starts:
        text = f"bytes={start}-{start + SMALL_BYTES - 1}"
        assert read_all(connection, {"Range": text}) == SMALL_BYTES
    return SMALL_READS, SMALL_READS * SMALL_BYTES


def many_ranges(connection: http.client.HTTPConnection, size: int) -> tuple[int, int]:
    """Read 100 rows by each request; return requests and bytes of rows."""
    starts = np.random.default_rng(1).integers(0, size - RANGES * STEP_BYTES, LISTS)
    for start in starts:
        rows = range(start, start + RANGES * STEP_BYTES, STEP_BYTES)
        text = ",".join(f"{row}-{row + RANGE_BYTES - 1}" for row in rows)
        assert read_all(connection, {"Range": f"bytes={text}"}) > RANGES * RANGE_BYTES
    return LISTS, LISTS * RANGES * RANGE_BYTES


WAYS: dict[str, Callable[[http.client.HTTPConnection, int], tuple[int, int]]] = {
    "one stream": stream,
    "20 kB ranges": small_reads,
    "100 rows of 200 B": many_ranges,
}


def cpu_s(process: int) -> float:
    """Return the CPU seconds that a process has used, with all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run the benchmark."""
    args = options(__doc__).parse_args()
    size, rounds = (SIZE >> 5, 1) if args.smoke else (SIZE, ROUNDS)
    content = np.random.default_rng(1).integers(0, 256, size, dtype=np.uint8).tobytes()
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    costs: dict[tuple[str, str], list[float]] = defaultdict(list)
    with work_folder(4 * size) as folder, ExitStack() as stack:
        disk, plain_disk = folder / "disk", folder / "plain"
        for path in (disk, plain_disk, folder / "nginx"):
            path.mkdir()
        nginx = stack.enter_context(servers.nginx(folder / "nginx"))
        (nginx.folder / "file").write_bytes(content)
        (plain_disk / "file").write_bytes(content)
        verified = stack.enter_context(block_server(disk))
        plain = stack.enter_context(block_server(plain_disk))
        httpx.put(f"{verified.url}/file", content=content, timeout=120).raise_for_status()
        nginx_pid = int((nginx.log.parent / "nginx.pid").read_text())
        contenders = {
            "nginx": (nginx.host, nginx_pid),
            "verified": (verified.url.removeprefix("http://"), verified.process.pid),
            "unverified": (plain.url.removeprefix("http://"), plain.process.pid),
        }
        for _ in range(rounds + 1):
            for way, read in WAYS.items():
                for name, (host, pid) in contenders.items():
                    connection = http.client.HTTPConnection(host, timeout=120)
                    cpu, begin = cpu_s(pid), time.perf_counter()
                    requests, count = read(connection, size)
                    seconds = time.perf_counter() - begin
                    amount = count / 1e6 if way == "one stream" else requests
                    rates[way, name].append(amount / seconds)
                    costs[way, name].append((cpu_s(pid) - cpu) / (count / 1e9))
                    connection.close()
    for way in WAYS:
        unit = "MB/s" if way == "one stream" else "requests/s"
        # The first round is not counted.
        of_nginx = rates[way, "nginx"][-rounds:]
        for name in contenders:
            each = rates[way, name][-rounds:]
            ratio = statistics.median(a / b for a, b in zip(each, of_nginx, strict=True))
            cost = statistics.median(costs[way, name][-rounds:])
            rate = statistics.median(each)
            of_medians = rate / statistics.median(of_nginx)
            print(f"{way:18} {name:11} {rate:9,.0f} {unit:11} {ratio:5.2f} x nginx by rounds, "
                  f"{of_medians:5.2f} x by medians  {cost:6.2f} CPU s/GB")  # fmt: skip


if __name__ == "__main__":
    main()
