"""How fast a portal answers, how fast it works, and whether its memory stays as it is.

    python benches/portal.py [--smoke] [--only PART] [--requests N] [--rows N]

Parts: `closed` (1, 10, 100 clients that ask again when answered), `open` (a fixed rate), `job` (a
job of 100,000 rows against `swathe.cut_many`), `cancel` (from asking until nobody works on such a
job any more), `memory` (over N requests).

What is asked for are cuts of 100 x 100 pixels at random from the plain frames of a sample survey,
in the page cache: `/vo/sync` of ours; the same by FastAPI and astropy (`portal_plain.py`), served
by uvicorn too, measured in turns; and `/api`, the state of a job. The load comes from another
process (`portal_load.py`).
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
from astropy.io import fits

import swathe
from harness import (
    FRAMES,
    HEIGHT,
    HERE,
    WIDTH,
    in_folder,
    options,
    running,
    save,
    survey,
    survey_targets,
    work_folder,
)
from swathe.catalog import Catalog, GranuleQuery
from swathe.datasets.scan import scan
from swathe.portal.vo.identifiers import did_of
from swathe.stores.listing import list_objects

PARTS = ("closed", "open", "job", "cancel", "memory")
PORTAL = ("-m", "swathe.cli", "portal", "serve", "--port", "0", "--json", "--config")
SIDE = 100
AUTHORITY = "bench.swathe"
PATHS = 2000
"""Different requests."""
JOB_ROUNDS = 3
SHARE = 0.5
"""Of its own closed rate, each server is asked for in the open load."""


@dataclass
class Server:
    """A running server, and what to ask it for."""

    url: str
    process: subprocess.Popen[str]
    paths: list[str] = field(default_factory=list)

    def load(self, clients: int, requests: int, rate: float | None = None) -> dict[str, Any]:
        """Load it from another process; return what was measured."""
        parts = urlsplit(self.url)
        order: dict[str, Any] = {"host": parts.hostname, "port": parts.port, "paths": self.paths}
        order |= {"clients": clients, "requests": requests, "rate": rate}
        command = [sys.executable, str(HERE / "portal_load.py")]
        process = subprocess.run(
            command, input=json.dumps(order), stdout=subprocess.PIPE, text=True, check=True
        )
        figures: dict[str, Any] = json.loads(process.stdout)
        return figures

    def resident_mb(self) -> float:
        """Memory that its process holds."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in text.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    def get(self, path: str) -> bytes:
        """Ask once."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=60) as answer:
            content: bytes = answer.read()
            return content


def register(folder: Path, sample: Path, name: str = "survey") -> Path:
    """Make a store with the sample known to a portal; return its settings."""
    database = f"sqlite:///{folder}/catalog.sqlite"
    with Catalog.open(database) as catalog:
        store = catalog.add_store(name, str(sample))
        catalog.add_dataset("survey", name, "", "*.fit")
        scan(catalog, "survey", list_objects(store, "", "*.fit"))
    settings = folder / "swathe.toml"
    settings.write_text(
        f'[catalog]\ndatabase = "{database}"\n[results]\nfolder = "{folder}/results"\n'
        f'[limits]\nrows_per_job = 200000\n[vo]\nauthority = "{AUTHORITY}"\n'
    )
    return settings


def paths(folder: Path) -> tuple[list[str], list[str]]:
    """Return the same requests for ours and for the plain server."""
    with Catalog.open(f"sqlite:///{folder}/catalog.sqlite") as catalog:
        matches = catalog.find_granules(GranuleQuery(dataset="survey"))
    generator = random.Random(1)
    ours, plain = [], []
    for _ in range(PATHS):
        match = generator.choice(matches)
        x, y = generator.randrange(WIDTH - SIDE), generator.randrange(HEIGHT - SIDE)
        box = f"[{x + 1}:{x + SIDE},{y + 1}:{y + SIDE}]"
        did = quote(did_of(AUTHORITY, match.dataset, match.granule), safe="")
        ours.append(f"/vo/sync?ID={did}&SUB={quote(box)}")
        # Of an even side, the centre lies between pixels.
        middle = (SIDE - 1) / 2
        plain.append(f"/cut?name={match.granule.path}&x={x + middle}&y={y + middle}&size={SIDE}")
    return ours, plain


def compare(ours: Server, plain: Server) -> None:
    """Stop where the two do not give the same pixels."""
    for mine, theirs in list(zip(ours.paths, plain.paths, strict=True))[:20]:
        pixels = [
            fits.getdata(io.BytesIO(server.get(path)))
            for server, path in ((ours, mine), (plain, theirs))
        ]
        np.testing.assert_array_equal(*pixels)


def show_load(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    """Print a measurement; return it with its name."""
    load = (
        f"{figures['asked_rate']:.0f}/s"
        if figures["asked_rate"]
        else f"{figures['clients']} clients"
    )
    errors = figures["errors"] or "none"
    print(
        f"{name:14} {load:>12} {figures['requests']:>8} {figures['rate']:>9.0f} "
        f"{figures['p50_ms']:>8.2f} {figures['p95_ms']:>8.2f} {figures['p99_ms']:>8.2f}  {errors}",
        flush=True,
    )
    return {"name": name, **figures}


def loads(servers: dict[str, Server], parts: set[str], smoke: bool) -> Iterator[dict[str, Any]]:
    """Measure closed loads, and open ones at a share of what each server can do."""
    counts = {"plain": 40, "/vo/sync": 200, "/api": 200} if smoke else {}
    full = {"plain": 1500, "/vo/sync": 20_000, "/api": 20_000}
    print(f"\n{'':14} {'load':>12} {'requests':>8} {'req/s':>9} "
          f"{'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8}  errors")  # fmt: skip
    best: dict[str, float] = {}
    for clients in (1, 10, 100):
        for name, server in servers.items():
            requests = (counts or full)[name]
            server.load(clients, requests // 10)  # warm
            figures = server.load(clients, requests)
            best[name] = max(best.get(name, 0), figures["rate"])
            if "closed" in parts:
                yield show_load(name, figures)
    if "open" in parts:
        for name, server in servers.items():
            rate = SHARE * best[name]
            yield show_load(
                name, server.load(200, max(20, round(rate * (1 if smoke else 20))), rate)
            )


def memory(server: Server, requests: int) -> dict[str, Any]:
    """Look at the memory of a server over many requests."""
    server.load(10, max(100, requests // 20))
    sizes_mb = [server.resident_mb()]
    errors: dict[str, int] = {}
    for _ in range(10):
        errors |= server.load(10, requests // 10)["errors"]
        sizes_mb.append(server.resident_mb())
    print(f"\nmemory over {requests} requests, MB: {', '.join(f'{mb:.0f}' for mb in sizes_mb)}")
    return {"name": "memory", "requests": requests, "mb": sizes_mb, "errors": errors}


def in_store(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return targets as the portal knows their files."""
    return columns | {"file": [f"survey:{name}" for name in columns["file"]]}


def cancel(server: Server, sample: Path, rows: int) -> dict[str, Any]:
    """Cancel a job that runs, early and late; look how long it is still worked on."""
    stored = in_store(survey_targets(sample, rows))
    seconds = []
    with swathe.connect(server.url) as portal:
        for part in (0.05, 0.3, 0.6):
            remote_job = portal.submit(stored)
            while (status := remote_job.status()).counts["waiting"] > (1 - part) * rows:
                time.sleep(0.01)
            start_s = time.perf_counter()
            status = remote_job.cancel()
            while portal.pool()["batches"]:
                time.sleep(0.005)
            seconds.append(time.perf_counter() - start_s)
            assert status.phase in ("ABORTED", "COMPLETED"), status
            print(f"cancelled at {part:.0%}, {status.phase}: {seconds[-1]:.2f} s", flush=True)
            remote_job.delete()
            time.sleep(rows / 10_000)  # its results are removed in the background
    return {"name": "cancel", "rows": rows, "seconds": seconds}


def job(server: Server, sample: Path, folder: Path, rows: int) -> dict[str, Any]:
    """Run a job on the portal, and the same by `cut_many`."""
    columns = survey_targets(sample, rows)
    direct = in_folder(columns, sample)
    stored = in_store(columns)
    rounds: dict[str, list[float]] = {"job_s": [], "submitted_s": [], "cut_many_s": []}
    with swathe.connect(server.url) as portal:
        for _ in range(JOB_ROUNDS):
            start_s = time.perf_counter()
            manifest = swathe.cut_many(direct, folder / "direct", progress=False)
            rounds["cut_many_s"].append(time.perf_counter() - start_s)
            assert manifest.meta["ok"] == rows
            shutil.rmtree(folder / "direct")
            start_s = time.perf_counter()
            remote_job = portal.submit(stored)
            rounds["submitted_s"].append(time.perf_counter() - start_s)
            status = remote_job.wait()
            rounds["job_s"].append(time.perf_counter() - start_s)
            assert status.counts["ok"] == rows, status
            remote_job.delete()
            time.sleep(rows / 10_000)  # its results are removed in the background
    medians = {name: statistics.median(seconds) for name, seconds in rounds.items()}
    ratio = medians["job_s"] / medians["cut_many_s"]
    print(
        f"\njob of {rows} rows: {medians['job_s']:.2f} s, its submission "
        f"{medians['submitted_s']:.2f} s of it, cut_many {medians['cut_many_s']:.2f} s: "
        f"{ratio:.2f} times"
    )
    return {"name": "job", "rows": rows, "ratio": ratio, **medians, "rounds": rounds}


def state_of_a_job(server: Server, sample: Path) -> str:
    """Return the path of the state of a job that has ended."""
    file = next(sample.glob("*.fit")).name
    with swathe.connect(server.url) as portal:
        box = {"x0": [0], "y0": [0], "width": [SIDE], "height": [SIDE]}
        remote_job = portal.submit({"file": [f"survey:{file}"], **box})
        remote_job.wait()
    return f"/api/jobs/{remote_job.id}"


def main() -> None:
    """Run what is asked for."""
    parser = options(__doc__, PARTS)
    parser.add_argument("--requests", type=int, default=200_000, help="of the memory part")
    parser.add_argument("--rows", type=int, default=100_000, help="of the job")
    arguments = parser.parse_args()
    requests, rows = (500, 500) if arguments.smoke else (arguments.requests, arguments.rows)
    parts = set(arguments.only or PARTS)
    sample = survey(1 if arguments.smoke else FRAMES)
    results: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(work_folder())
        ours = Server(*stack.enter_context(running(*PORTAL, str(register(folder, sample)))))
        plain = Server(*stack.enter_context(running(str(HERE / "portal_plain.py"), str(sample))))
        ours.paths, plain.paths = paths(folder)
        compare(ours, plain)
        if parts & {"closed", "open"}:
            api = Server(ours.url, ours.process, [state_of_a_job(ours, sample)])
            servers = {"plain": plain, "/vo/sync": ours, "/api": api}
            results += loads(servers, parts, arguments.smoke)
        if "job" in parts:
            results.append(job(ours, sample, folder, rows))
        if "cancel" in parts:
            results.append(cancel(ours, sample, rows))
        if "memory" in parts:
            results.append(memory(ours, requests))
    save("portal", results)


if __name__ == "__main__":
    main()
