"""Blocks of files on servers: read once, right whoever writes or is killed, never too large.

SWATHE_TEST_KILLS=50 and SWATHE_TEST_MANY=1 do more of the same.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import swathe
from tests.support import servers
from tests.support.fits_frames import KINDS, contents, image_of, noise, swathe_command
from tests.support.servers import FileServer

SHAPE = (900, 1000)
FAULTS = {"reset": 0.02, "truncate": 0.02, "stall": 0.01, "unavailable": 0.05}
KILLS = int(os.environ.get("SWATHE_TEST_KILLS", "10"))
CUTS = 10_000 if os.environ.get("SWATHE_TEST_MANY") else 1000

# Cuts random boxes out of the files in a row until it has cut so many; prints what is wrong.
WORKER = """
import json, random, sys
import numpy as np
import swathe
url, pixels, kinds, seed, cuts = json.loads(sys.argv[1])
image = np.load(pixels)
height, width = image.shape
rng = random.Random(seed)
print("ready", flush=True)
for number in range(cuts):
    x0, y0 = rng.randrange(width - 50), rng.randrange(height - 40)
    kind = kinds[number % len(kinds)]
    cut = swathe.cut(f"{url}/a.{kind}", box=(x0, y0, 50, 40))
    if not np.array_equal(cut.data, image[y0 : y0 + 40, x0 : x0 + 50]):
        print("wrong", kind, x0, y0, flush=True)
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def frame() -> NDArray[np.uint16]:
    return noise(3, SHAPE)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, frame: NDArray[np.uint16]
) -> Iterator[FileServer]:
    if not Path(servers.NGINX).exists():
        pytest.skip("nginx is not installed")
    with servers.nginx(tmp_path_factory.mktemp("nginx")) as running:
        for kind in KINDS:
            (running.folder / f"a.{kind}").write_bytes(contents(frame, kind))
        np.save(running.folder / "pixels.npy", frame)
        yield running


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """That of a process with an empty cache and an empty index, which keeps nothing in memory."""
    return {
        **os.environ,
        "SWATHE_CACHE_DIR": str(tmp_path / "blocks"),
        "SWATHE_CACHE_BYTES": str(1 << 30),
        "SWATHE_INDEX_DIR": str(tmp_path / "index"),
    }


def start(
    server: FileServer,
    environment: dict[str, str],
    *,
    url: str | None = None,
    kinds: tuple[str, ...] = KINDS,
    seed: int = 0,
    cuts: int = 20,
) -> subprocess.Popen[str]:
    """Start a worker."""
    job = json.dumps([url or server.url, str(server.folder / "pixels.npy"), kinds, seed, cuts])
    command = [sys.executable, "-c", WORKER, job]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def end(worker: subprocess.Popen[str]) -> None:
    """Wait for a worker, who must have found all pixels right."""
    said, complaint = worker.communicate(timeout=300)
    assert (worker.returncode, said.split()) == (0, ["ready", "done"]), said + complaint


def taken(environment: dict[str, str]) -> int:
    """Bytes of the files of blocks that are there at one time, though others come and go."""

    def there() -> dict[tuple[str, int, int], int]:
        found = {}
        for path in Path(environment["SWATHE_CACHE_DIR"]).glob("??/*"):
            with suppress(FileNotFoundError):
                stat = path.stat()
                found[str(path), stat.st_ino, stat.st_mtime_ns] = stat.st_size
        return found

    # One look may see a block that goes and the one that comes for it.
    before, after = there(), there()
    return sum(size for key, size in before.items() if key in after)


@pytest.mark.parametrize("kind", KINDS)
def test_second_run_moves_no_bytes(
    kind: str, server: FileServer, environment: dict[str, str]
) -> None:
    server.requests()
    end(start(server, environment, kinds=(kind,)))
    first = server.requests()
    assert first
    end(start(server, environment, kinds=(kind,)))
    assert server.requests() == []
    end(start(server, {**environment, "SWATHE_CACHE_BYTES": "0"}, kinds=(kind,)))
    assert server.requests() != []


# Reads slices of an image in a row; prints what is wrong.
SLICES = """
import sys
import numpy as np
import swathe
url, pixels = sys.argv[1:]
frame = np.load(pixels)
image = swathe.open(url)[0]
for number in range(200):
    y, x = 4 * number, 3 * number
    if not np.array_equal(image[y : y + 10, x : x + 20], frame[y : y + 10, x : x + 20]):
        print("wrong", number)
"""


def test_slices_one_after_another_lead_to_one_fetch_of_the_whole(
    server: FileServer, environment: dict[str, str]
) -> None:
    """Each slice is at least one request if nothing is fetched beside them."""
    whole = (server.folder / "a.fit").stat().st_size
    moved, made = {}, {}
    with servers.proxy(server.url, rtt_ms=20, shared_bytes_per_s=20_000_000) as link:
        for cache in ("0", environment["SWATHE_CACHE_BYTES"]):
            server.requests()
            done = subprocess.run(
                [
                    *(sys.executable, "-c", SLICES),
                    *(f"{link.url}/a.fit", str(server.folder / "pixels.npy")),
                ],
                env={**environment, "SWATHE_CACHE_BYTES": cache},
                capture_output=True, text=True, timeout=120,
            )  # fmt: skip
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            requests = server.requests()
            moved[cache] = sum(request.bytes for request in requests)
            made[cache] = len(requests)
    cached = environment["SWATHE_CACHE_BYTES"]
    assert made["0"] > 150
    assert made[cached] < 100
    # Ranges that were read before it began or beside it may be read a second time.
    assert moved[cached] < min(2 * whole, moved["0"])


def test_traffic_is_what_servers_were_asked_for(
    server: FileServer, environment: dict[str, str], tmp_path: Path
) -> None:
    table = tmp_path / "targets.csv"
    rows = [f"{server.url}/a.{kind},{100 * n},850,40,30" for kind in KINDS for n in range(5)]
    table.write_text("\n".join(["file,x0,y0,width,height", *rows]))
    for run in range(2):
        server.requests()
        command = ["cut", "--targets", str(table), "-o", str(tmp_path / f"out{run}"), "--json"]
        told = json.loads(swathe_command(*command, env=environment).stdout)
        made = server.requests()
        assert told["ok"] == 20
        # What the prediction looked at beforehand is not the batch's.
        assert told["requests"] <= len(made)
        assert told["bytes_moved"] <= sum(request.bytes for request in made)
        assert bool(told["requests"]) == (run == 0)
        assert bool(made) == (run == 0)


# Cuts a corner, then the whole, and says the last pixel of each.
CORNERS = """
import sys, swathe
print(*(swathe.cut(sys.argv[1], box=(0, 0, n, n)).data[-1, -1] for n in (3, 200)))
"""


def test_replaced_file_never_mixes_pixels(server: FileServer, environment: dict[str, str]) -> None:
    """What is here is given without asking; as soon as the server is asked, all of it is new."""
    path = server.folder / "replaced.fit"
    old, new = noise(50, (200, 200)), noise(51, (200, 200))
    told = []
    for version, image in enumerate((old, new, new)):
        written = server.folder / "new"
        written.write_bytes(contents(image, "fit") + bytes(2880 * version))
        os.utime(written, (1e9 + version, 1e9 + version))
        written.replace(path)
        command = [sys.executable, "-c", CORNERS, f"{server.url}/replaced.fit"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        told.append(list(map(int, done.stdout.split())))
        if version == 0:
            # As if only the corner had been cut.
            for block in Path(environment["SWATHE_CACHE_DIR"]).glob("??/*"):
                block.unlink()
    assert told[0] == [old[2, 2], old[-1, -1]]
    assert told[1] == [new[2, 2], new[-1, -1]]
    assert told[2] == told[1]  # not asked: written anew meanwhile, but here


def test_processes_share_blocks_within_the_limit(
    server: FileServer, environment: dict[str, str]
) -> None:
    limit = 3_000_000  # fewer than the files have
    environment["SWATHE_CACHE_BYTES"] = str(limit)
    workers = [start(server, environment, seed=seed, cuts=40) for seed in range(4)]
    most = 0
    while any(worker.poll() is None for worker in workers):
        most = max(most, taken(environment))
        time.sleep(0.01)
    for worker in workers:
        end(worker)
    assert limit / 4 < most < limit + 1_000_000
    assert taken(environment) <= limit


def test_killed_processes_leave_no_wrong_pixels(
    server: FileServer, environment: dict[str, str]
) -> None:
    limit = 3_000_000
    environment["SWATHE_CACHE_BYTES"] = str(limit)
    rng = random.Random(5)
    with servers.proxy(server.url, rtt_ms=2, reset=0.02, truncate=0.02) as proxy:
        for number in range(0, KILLS, 2):
            # Two at a time, so that one goes on where the other was killed.
            pair = [
                start(server, environment, url=proxy.url, seed=number + n, cuts=10**6)
                for n in range(2)
            ]
            for worker in pair:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "ready\n"
            for worker in pair:
                time.sleep(rng.uniform(0, 0.3))
                worker.kill()
                said, _ = worker.communicate()
                assert said == ""
        end(start(server, environment, url=proxy.url, seed=1, cuts=100))
    assert taken(environment) <= limit


def test_faults_lose_no_cut(server: FileServer, tmp_path: Path, frame: NDArray[np.uint16]) -> None:
    rng = np.random.default_rng(8)
    files = CUTS // 4
    for number in range(files):
        kind = KINDS[number % len(KINDS)]
        (server.folder / f"{number}.{kind}").hardlink_to(server.folder / f"a.{kind}")
    with servers.proxy(server.url, **FAULTS, stall_s=60) as proxy:
        names = [f"{proxy.url}/{n % files}.{KINDS[n % files % len(KINDS)]}" for n in range(CUTS)]
        rows: dict[str, Any] = {
            "file": names,
            "x0": rng.integers(0, SHAPE[1] - 40, CUTS),
            "y0": rng.integers(0, SHAPE[0] - 30, CUTS),
            "width": np.full(CUTS, 40),
            "height": np.full(CUTS, 30),
        }
        began = time.monotonic()
        found = swathe.cut_many(rows, tmp_path / "out", progress=False)
        took_s = time.monotonic() - began
        stats = proxy.stats()
    sys.stdout.write(f"{CUTS} cuts in {took_s:.1f} s: {stats}\n")
    assert set(found["status"]) == {"ok"}
    for row, path in enumerate(found["path"]):
        x0, y0 = rows["x0"][row], rows["y0"][row]
        written = image_of((tmp_path / "out" / path).read_bytes())
        np.testing.assert_array_equal(written, frame[y0 : y0 + 30, x0 : x0 + 40])
    assert stats["requests"] > files
    assert min(stats[fault] for fault in ("resets", "truncations", "stalls", "unavailable")) > 0


def test_cache_command_shows_and_clears(server: FileServer, environment: dict[str, str]) -> None:
    end(start(server, environment, cuts=4))

    def run(*arguments: str) -> str:
        done = swathe_command("cache", *arguments, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = json.loads(run("show", "--json"))
    assert shown["blocks"]["limit"] == 1 << 30
    for kind, variable in (("blocks", "SWATHE_CACHE_DIR"), ("index", "SWATHE_INDEX_DIR")):
        assert shown[kind]["folder"] == environment[variable]
        assert shown[kind]["values"] > 0
        assert shown[kind]["bytes"] > 0
        assert environment[variable] in run("show")
    assert "freed" in run("clear")
    cleared = json.loads(run("show", "--json"))
    assert [cleared[kind]["values"] for kind in ("blocks", "index")] == [0, 0]
    assert json.loads(run("clear", "--json")) == {"freed": {"blocks": 0, "index": 0}}


def test_wrong_limit_is_named() -> None:
    cut = ("cut", "a.fit", "--box", "0", "0", "1", "1")
    done = swathe_command(*cut, env={"SWATHE_CACHE_BYTES": "4 GB"})
    assert done.returncode == 3
    assert "SWATHE_CACHE_BYTES must be a number of bytes" in done.stderr
