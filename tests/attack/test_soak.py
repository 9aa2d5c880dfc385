"""Minutes of mixed attacks beside jobs of 20,000 rows: the jobs are right, others are answered."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
from astropy.io import fits

import swathe
from tests.support.attacked_portal import AttackTarget, attacked
from tests.support.portals import finished, submitted

SOAK_S = float(os.environ.get("SWATHE_SOAK_S", "60"))
"""How long it goes on; ten minutes show whether memory stays flat."""
ROWS = 20_000
ANSWER_S = 0.2
"""What the 99th percentile of a small request is to be below; the test allows ten times that."""
GROWTH_BYTES = 300 << 20
SETTLED = 0.3
"""After this part of the time memory is to grow no more."""
NROWS = (
    '<VOTABLE version="1.3"><RESOURCE><TABLE nrows="400000000"><FIELD name="file" datatype="char"'
    ' arraysize="*"/><FIELD name="x" datatype="double"/><DATA><TABLEDATA><TR><TD>a</TD><TD>1</TD>'
    "</TR></TABLEDATA></DATA></TABLE></RESOURCE></VOTABLE>"
)

Attack = Callable[[AttackTarget, httpx.Client], object]


def upload(name: str, content: bytes) -> Attack:
    """Return an attack that sends a table."""
    return lambda _, client: client.post("/api/estimate", files={"targets": (name, content)})


def streams(portal: AttackTarget, client: httpx.Client) -> httpx.Response:
    """Follow the events of a job, and go away."""
    answer = client.post("/api/jobs", json={"targets": portal.targets(1)})
    if answer.status_code == 201:
        events = f"/api/jobs/{answer.json()['id']}/events"
        with client.stream("GET", events, timeout=5) as stream:
            next(stream.iter_bytes(), b"")
    return answer


def half_requests(_: AttackTarget, client: httpx.Client) -> None:
    """Open connections that say nothing more."""
    host, port = client.base_url.host, client.base_url.port
    connections = [socket.create_connection((host, port or 80), timeout=5) for _ in range(20)]
    for connection in connections:
        connection.sendall(b"GET /api/about HTTP/1.1\r\nHost: ")
    time.sleep(2)
    for connection in connections:
        connection.close()


def huge_row(portal: AttackTarget, client: httpx.Client) -> None:
    """Order a cutout that is nearly all fill, and larger than memory."""
    row = {"file": ["survey:frame-000001.fit"], "x": [100], "y": [100]}
    targets = {**row, "height": [40_000], "width": [40_000]}
    client.post("/api/jobs", json={"targets": targets, "options": {"mode": "partial"}})


ATTACKS: dict[str, Attack] = {
    "SUB of blanks": lambda _, client: client.get("/vo/sync", params={"SUB": " " * 1500 + "x"}),
    "CIRCLE of digits": lambda _, client: client.post(
        "/vo/sync", data={"ID": "x", "CIRCLE": "1" * 20_000 + "x"}
    ),
    "VOTable of 4e8 rows": upload("t.xml", NROWS.encode()),
    "CSV of 100,000 columns": upload("t.csv", b",".join(b"c%d" % n for n in range(100_000))),
    "ECSV of 25,000 columns": upload(
        "t.ecsv",
        b"# %ECSV 1.0\n# ---\n# datatype:\n"
        + b"".join(b"# - {name: c%d, datatype: string}\n" % n for n in range(25_000)),
    ),
    "JSON of empty rows": lambda _, client: client.post(
        "/api/estimate",
        content=b'{"targets": [' + b",".join([b"{}"] * 3_000_000) + b"]}",
        headers={"Content-Type": "application/json"},
    ),
    "picture of everything": lambda _, client: client.get(
        "/vo/sync",
        params={
            "ID": "ivo://swathe.invalid/survey?frame-000001.fit,0",
            "RESPONSEFORMAT": "png",
            "SUB": "[1:2048,1:1489]",
        },
    ),
    "paths": lambda _, client: client.post(
        "/api/jobs", json={"targets": {"file": ["survey:../x"], "x0": [0], "y0": [0]}}
    ),
    "events": streams,
    "half requests": half_requests,
    "huge row": huge_row,
}


class Siege:
    """Attackers, a watcher that asks for little, and what became of both."""

    def __init__(self, portal: AttackTarget, until: float) -> None:
        self.portal, self.until = portal, until
        self.done: Counter[str] = Counter()
        self.faults: list[str] = []
        self.waits_s: list[float] = []
        self.memory: list[tuple[float, int]] = []

    def attack(self, offset: int) -> None:
        """Make one attack after the other."""
        names = list(ATTACKS)[offset:] + list(ATTACKS)[:offset]
        with self.portal.client("bob") as client:
            client.timeout = httpx.Timeout(60)
            while time.monotonic() < self.until:
                for name in names:
                    try:
                        answer = ATTACKS[name](self.portal, client)
                    except (httpx.TransportError, OSError):
                        continue  # cut off, as an attacker may be
                    if isinstance(answer, httpx.Response) and answer.status_code == 500:
                        self.faults.append(f"{name}: {answer.text[:200]}")
                    self.done[name] += 1

    def watch(self) -> None:
        """Ask what is small, ten times a second."""
        process = psutil.Process(self.portal.served.process.pid)
        with self.portal.client("ann") as client:
            while time.monotonic() < self.until:
                begun = time.monotonic()
                assert client.get("/api/about").status_code == 200
                self.waits_s.append(time.monotonic() - begun)
                self.memory.append((begun, process.memory_info().rss))
                time.sleep(0.1)


@pytest.mark.long
@pytest.mark.timeout(SOAK_S + 600)
def test_attacks_stop_no_job_and_no_answer(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    with attacked(tmp_path, targets=200) as portal, portal.client("ann") as client:
        client.base_url = client.base_url.join("/api")
        begun = time.monotonic()
        siege = Siege(portal, begun + SOAK_S)
        watcher = threading.Thread(target=siege.watch)
        attackers = [threading.Thread(target=siege.attack, args=(n,)) for n in range(0, 11, 3)]
        for thread in (watcher, *attackers):
            thread.start()
        few = portal.targets(200)
        many = {name: values * (ROWS // 200) for name, values in few.items()}
        many["id"] = [f"t{row}" for row in range(ROWS)]
        jobs = 0
        while time.monotonic() < siege.until or not jobs:
            job = finished(client, submitted(client, many)["id"])
            assert job["counts"]["ok"] == ROWS, job
            rows = client.get(f"/jobs/{job['id']}/rows", params={"limit": 200}).json()["rows"]
            files = [client.get(f"/jobs/{job['id']}/files/{row['name']}").content for row in rows]
            client.delete(f"/jobs/{job['id']}")
            jobs += 1
        for thread in (watcher, *attackers):
            thread.join()
        assert portal.served.process.poll() is None
    few["file"] = [str(tmp_path / "survey" / name.partition(":")[2]) for name in few["file"]]
    manifest = swathe.cut_many(few, tmp_path / "expected", progress=False)
    for file, path in zip(files, manifest["path"].tolist(), strict=True):
        expected = fits.getdata(tmp_path / "expected" / path)
        np.testing.assert_array_equal(fits.getdata(BytesIO(file)), expected)
    assert not siege.faults
    assert set(siege.done) == set(ATTACKS)
    p99_s = float(np.quantile(siege.waits_s, 0.99))
    settled = [rss for at, rss in siege.memory if at > begun + SETTLED * SOAK_S]
    growth = max(settled[len(settled) // 2 :]) - max(settled[: len(settled) // 2])
    pytestconfig.get_terminal_writer().line(
        f"{SOAK_S:.0f} s: {jobs} jobs of {ROWS:,} rows, {siege.done.total()} attacks; "
        f"/api/about p99 {1e3 * p99_s:.0f} ms, at most {1e3 * max(siege.waits_s):.0f}; "
        f"RSS {max(settled) >> 20} MiB, grew by {growth >> 20} MiB"
    )
    assert p99_s < 10 * ANSWER_S
    assert growth < GROWTH_BYTES
