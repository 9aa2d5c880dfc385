"""How ranks write one array: `make bench-run_writes`.

    python benches/run_writes.py [--smoke] [--only disk|wan] [--dumps 5] [--rows 32]

Ranks are processes of MPI (`mpiexec -n 8`), each with a block of 128^3 f4 in the pattern BBB.
Stores are a folder in build/bench, and a block server behind a link of 56 ms and 160 Mb/s. Ways:

- auto, collective, independent, subfile: `write=` of a run; each dump is written and synced. The
  folder was probed before.
- rows: each rank writes its contiguous rows one after the other, as one PUT (wan), or as one
  `pwrite` into a file that all share (disk). The link would take minutes: `--rows` of a rank are
  written, and the time is multiplied.
- contiguous: one process writes all in one object, by a run.
- h5py: `h5py` with MPI of Debian's Python and its own mpiexec, collective, then `flush`; disk only.
- zarr, zarr_synced: zarr-python, one process, one shard; then with an fsync of its file and folders
  besides, as dumps of a run have; disk only.

Prints seconds of a dump: the longest of the ranks, then the median of the dumps after the first.
MPICH's ranks spin while they wait, so all have left MPI when a dump begins; ranks of a run on one
machine use sockets then.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import swathe
from harness import BUILD, options, save, work_folder
from swathe.runs.definition.pattern import Pattern
from tests.support import servers
from tests.support.block_servers import block_server

RTT_MS, BYTES_PER_S = 56, 20_000_000
METHODS = ("auto", "collective", "independent", "subfile")
OBJECT_BYTES = 8 << 20
"""Size of the object that a probe reads."""
TOGETHER_S = 0.05
"""All ranks have left the call of MPI before by then: they begin a dump at the same time."""
ZARR = ("zarr", "zarr_synced")
H5PY = """
import os, sys, time
import h5py, numpy as np
from mpi4py import MPI
comm, path, side, dumps = MPI.COMM_WORLD, sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
grid = MPI.Compute_dims(comm.size, 3)
place = np.unravel_index(comm.rank, grid)
where = tuple(slice(p * side // n, (p + 1) * side // n) for p, n in zip(place, grid))
block = np.ones([s.stop - s.start for s in where], "f4")
with h5py.File(path, "w", driver="mpio", comm=comm) as file:
    for number in range(dumps):
        data = file.create_dataset(str(number), (side,) * 3, "f4")
        begin = comm.bcast(time.time() + 0.05)
        time.sleep(max(begin - time.time(), 0))
        began = time.perf_counter()
        with data.collective:
            data[where] = block
        file.flush()
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        seconds = comm.allreduce(time.perf_counter() - began, MPI.MAX)
        if comm.rank == 0:
            print(seconds, flush=True)
"""


def write_run(method: str, store: str, side: int, dumps: int) -> None:
    """Write dumps as a rank of MPI; rank 0 prints their seconds."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    with swathe.run(f"bench-{method}", dumps - 1, comm=comm) as run:
        array = run.array("a", (side,) * 3, pattern="BBB", location=store, write=method)
        block = np.ones(array.block_shape, "f4")

        def write(number: int) -> None:
            array.write(number, block)
            run.sync()

        _time_dumps(comm, dumps, write)


def write_rows(place: str, side: int, rows: int, dumps: int) -> None:
    """Write some contiguous rows of this rank one by one; print the time of all of them."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    division = Pattern.parse("BBB", 3).division((side,) * 3, comm.size)
    (planes, lines, columns), *_ = (where for where, _ in division.pieces(comm.rank))
    content = np.ones(columns.stop - columns.start, "f4").tobytes()
    starts = [
        ((z * side + y) * side + columns.start) * 4
        for z in range(planes.start, planes.stop)
        for y in range(lines.start, lines.stop)
    ]
    rows = min(rows, len(starts))
    with _row_writer(place) as put:
        _time_dumps(
            comm,
            dumps,
            lambda _: [put(start, content) for start in starts[:rows]],
            len(starts) / rows,
        )


@contextmanager
def _row_writer(place: str) -> Iterator[Callable[[int, bytes], object]]:
    """Yield what writes bytes at an offset: a PUT on one open connection, or `pwrite`."""
    if not place.startswith("http"):
        file = os.open(place, os.O_CREAT | os.O_WRONLY)
        yield lambda start, content: os.pwrite(file, content, start)
        os.fsync(file)
        os.close(file)
        return
    url = urllib.parse.urlsplit(place)
    connection = http.client.HTTPConnection(url.netloc)

    def put(start: int, content: bytes) -> None:
        connection.request("PUT", f"{url.path}/rows-{start}", content)
        answer = connection.getresponse()
        answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"PUT: {answer.status} {answer.reason}")

    put(0, b"")  # the connection is open
    yield put
    connection.close()


def _time_dumps(comm: Any, dumps: int, act: Callable[[int], object], factor: float = 1.0) -> None:
    for number in range(dumps):
        begin_s = comm.bcast(time.time() + TOGETHER_S)
        time.sleep(max(begin_s - time.time(), 0))
        began_s = time.perf_counter()
        act(number)
        seconds = max(comm.allgather(time.perf_counter() - began_s))
        if comm.rank == 0:
            print(seconds * factor, flush=True)


def write_zarr(folder: str, side: int, dumps: int, *, is_synced: bool) -> None:
    """Write dumps by zarr-python, each in one shard with the chunks of a run."""
    import zarr

    from swathe.runs.definition.run_settings import ArraySettings

    sharding = ArraySettings((side,) * 3).sharding
    place = Path(folder, "zarr-synced" if is_synced else "zarr")
    array = zarr.create_array(
        str(place), shape=(dumps, *(side,) * 3), dtype="f4", compressors=None,
        chunks=(1, *sharding.chunk_shape), shards=(1, *sharding.shard_shape),
    )  # fmt: skip
    block = np.ones((side,) * 3, "f4")
    for number in range(dumps):
        began_s = time.perf_counter()
        array[number] = block
        for each in (place / "c" / str(number)).rglob("*") if is_synced else ():
            handle = os.open(each, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
        print(time.perf_counter() - began_s, flush=True)


def seconds_of(*words: object) -> float:
    """Run a program that prints the seconds of its dumps; return the median, without the first."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stderr[-2000:]}")
    seconds = [float(line) for line in done.stdout.split()]
    return statistics.median(seconds[1:] or seconds)


def debian_mpiexec() -> list[str] | None:
    """Return the command that starts a rank of Debian's Python; `None` without h5py with MPI."""
    python, mpiexec = Path("/usr/bin/python3"), Path("/usr/bin/mpiexec")
    if not python.exists() or not mpiexec.exists():
        return None
    command = [str(mpiexec), "--allow-run-as-root", "--oversubscribe", "-n", "1"]
    command += ["env", "-u", "PYTHONPATH", str(python)]
    # Debian chooses the library with MPI under its mpiexec only.
    check = "import h5py; raise SystemExit(not h5py.get_config().mpi)"
    done = subprocess.run([*command, "-c", check], capture_output=True)
    return None if done.returncode else command


def main() -> None:
    """Measure each way on each store."""
    parser = options(__doc__, ("disk", "wan"))
    parser.add_argument("--dumps", type=int, default=5, help="of each way (default: 5)")
    parser.add_argument("--rows", type=int, default=32, help="that a rank writes (default: 32)")
    parser.add_argument("--way", nargs=4, help="used by its own processes")
    words = parser.parse_args()
    if words.way:
        way, place, side, dumps = words.way[0], words.way[1], int(words.way[2]), int(words.way[3])
        if way == "rows":
            write_rows(place, side, words.rows, dumps)
        elif way in ZARR:
            write_zarr(place, side, dumps, is_synced=way == ZARR[1])
        else:
            write_run("collective" if way == "contiguous" else way, place, side, dumps)
        return
    ranks, side, dumps = (2, 16, 2) if words.smoke else (8, 128, words.dumps)
    mpiexec = Path(sys.executable).with_name("mpiexec")
    results: dict[str, dict[str, float]] = {}
    with work_folder() as work, ExitStack() as stack:
        for store in words.only or (["disk"] if words.smoke else ["disk", "wan"]):
            folder = (work if store == "wan" else BUILD) / f"run-writes-{os.getpid()}-{store}"
            folder.mkdir(parents=True)
            stack.callback(subprocess.run, ["rm", "-r", str(folder)], check=True)
            url = str(folder)
            if store == "wan":
                server = stack.enter_context(block_server(folder))
                link = stack.enter_context(
                    servers.proxy(
                        *(server.url,), rtt_ms=RTT_MS,
                        shared_bytes_per_s=BYTES_PER_S, upload_bytes_per_s=BYTES_PER_S,
                    )
                )  # fmt: skip
                url = link.url
            swathe.stores.add(store, url.replace("http", "dav", 1), tier="local")
            if store == "disk" and not words.smoke:
                (folder / "object").write_bytes(os.urandom(OBJECT_BYTES))
                probe = [sys.executable, "-m", "swathe.cli", "probe", store, "--write"]
                subprocess.run(probe, check=True, capture_output=True)
            row_place = url if store == "wan" else f"{url}/rows"
            command = [mpiexec, "-n", ranks, sys.executable, __file__, "--rows", words.rows]
            row = results[store] = {}
            for way in METHODS:
                row[way] = seconds_of(*command, "--way", way, store, side, dumps)
            row["rows"] = seconds_of(*command, "--way", "rows", row_place, side, 2)
            command[2] = 1
            row["contiguous"] = seconds_of(*command, "--way", "contiguous", store, side, dumps)
            if store == "disk":
                for way in ZARR:
                    row[way] = seconds_of(*command[3:], "--way", way, folder, side, dumps)
                if peer := debian_mpiexec():
                    program = folder / "h5.py"
                    program.write_text(H5PY)
                    peer[peer.index("-n") + 1] = str(ranks)
                    row["h5py"] = seconds_of(*peer, program, folder / "a.h5", side, dumps)
            load = os.getloadavg()[0]
            texts = ", ".join(f"{way} {seconds:.4g} s" for way, seconds in row.items())
            print(f"{store}: {texts} (load {load:.1f})", flush=True)
    print(json.dumps(results))
    save("run_writes", results)


if __name__ == "__main__":
    main()
