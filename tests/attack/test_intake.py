"""No request, upload or row of a job stops a portal, fills its memory or ends its process.

Each test is an attack that did so once. While it goes on, others are answered.
"""

from __future__ import annotations

import io
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from swathe.core.errors import AccessError, NotFoundError
from swathe.files.file import sky_of
from swathe.files.targets.target_list import read_targets
from swathe.jobs import Options, estimate
from swathe.jobs.expanded_job import ExpandedJob
from swathe.portal.config import Config
from swathe.portal.sources import Sources
from swathe.portal.vo.errors import VoError
from swathe.portal.vo.geometry.regions import Polygon
from swathe.portal.vo.soda import sync
from swathe.portal.vo.thread_limit import ResponseMemory
from swathe.stores.folders import is_within
from tests.support.portals import RunningPortal, add_survey, served

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux tells of it")

TESTS = Path(__file__).parents[1]
LONGEST_S = 3.0
"""Others waited 6 s and more; they are to wait 0.1 s at most."""
GROWTH_MB = 400
"""What the portal may grow by; it grew by 780 and more."""


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    folder = tmp_path_factory.mktemp("portal")
    add_survey(folder)
    with served(folder) as portal:
        httpx.get(f"{portal.url}/api/about", timeout=60)
        # The first table begins what reads tables.
        send_table(portal, "t.csv", b"file,x,y,height,width\nsurvey:a,1,1,1,1\n")
        yield portal


def peak_mb(portal: RunningPortal) -> float:
    """Give the largest memory that the portal has had."""
    status = Path(f"/proc/{portal.process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


@contextmanager
def others_are_answered(portal: RunningPortal) -> Iterator[None]:
    """Ask for something else, over and over, while the context lasts."""
    over = threading.Event()
    waits: list[float] = []

    def ask() -> None:
        with httpx.Client(timeout=600) as client:
            while not over.is_set():
                began = time.monotonic()
                assert client.get(f"{portal.url}/api/about").status_code == 200
                waits.append(time.monotonic() - began)
                time.sleep(0.01)

    before = peak_mb(portal)
    asking = threading.Thread(target=ask)
    asking.start()
    wait_until(lambda: bool(waits))
    try:
        yield
    finally:
        over.set()
        asking.join()
    assert max(waits) < LONGEST_S
    assert peak_mb(portal) - before < GROWTH_MB


def send_table(portal: RunningPortal, name: str, content: bytes) -> httpx.Response:
    files = {"targets": (name, content)}
    return httpx.post(f"{portal.url}/api/estimate", files=files, timeout=600)


def send_json(portal: RunningPortal, body: bytes) -> httpx.Response:
    headers = {"Content-Type": "application/json"}
    return httpx.post(f"{portal.url}/api/estimate", content=body, headers=headers, timeout=600)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("SUB", " " * 1500 + "x"),
        ("SUB", "[" + "1" * 50_000 + ":2,3:4]"),
        ("CIRCLE", "1" * 20_000 + "x"),
        ("BAND", "1" * 20_000 + "x"),
        ("POS", "CIRCLE " + "1" * 20_000 + "x"),
    ],
)
def test_h1_parameters(portal: RunningPortal, parameter: str, value: str) -> None:
    with others_are_answered(portal):
        form = {"ID": "x", parameter: value}
        answer = httpx.post(f"{portal.url}/vo/sync", data=form, timeout=600)
    assert answer.status_code in (400, 404)
    assert len(answer.text) < 1000


VOTABLE = """<?xml version="1.0"?>
<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3"><RESOURCE>
<TABLE{nrows}>{fields}<DATA><TABLEDATA>{rows}</TABLEDATA></DATA></TABLE></RESOURCE></VOTABLE>"""
FILE = '<FIELD name="file" datatype="char" arraysize="*"/><FIELD name="x" datatype="double"/>'


def votable(nrows: str = "", fields: str = FILE, rows: str = "") -> bytes:
    return VOTABLE.format(nrows=nrows, fields=fields, rows=rows).encode()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (votable(' nrows="400000000"', rows="<TR><TD>a</TD><TD>1</TD></TR>"), "found 400,000,000"),
        (votable(fields='<FIELD name="x" datatype="double" arraysize="100000x100000"/>'), "cells"),
        (votable(fields='<FIELD name="x" datatype="double"/>' * 50_000), "at most 200 columns"),
    ],
    ids=["nrows", "arraysize", "fields"],
)
def test_h3_votables(portal: RunningPortal, content: bytes, told: str) -> None:
    with others_are_answered(portal):
        answer = send_table(portal, "t.xml", content)
    assert answer.status_code in (413, 422)
    assert told in answer.json()["error"]


def test_h4_parquet(portal: RunningPortal) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    column = ["a" * 100_000] * 20_000
    table = pyarrow.table({"file": pyarrow.array(column).dictionary_encode().cast("string")})
    file = io.BytesIO()
    parquet.write_table(table, file, use_dictionary=True, compression="zstd")
    assert len(file.getvalue()) < 10_000
    del table, column
    with others_are_answered(portal):
        answer = send_table(portal, "t.parquet", file.getvalue())
    assert answer.status_code in (413, 422)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", ",".join(f"c{at}" for at in range(2000)).encode() + b"\n"),
        ("t.csv", ",".join(f"c{at}" for at in range(100_000)).encode() + b"\n"),
        ("t.csv", b"file,x\n" + b"a:b,1\n" * 2_900_000),
        ("t.csv", b"file,x\n" + b"a" * 20_000_000 + b",1\n" + b"b,1\n" * 10_000),
        (
            "t.ecsv",
            b"# %ECSV 1.0\n# ---\n# datatype:\n"
            + b"".join(b"# - {name: c%d, datatype: int64}\n" % at for at in range(25_000))
            + b" ".join(b"c%d" % at for at in range(25_000))
            + b"\n",
        ),
    ],
    ids=["columns", "many columns", "rows", "cell", "ecsv"],
)
def test_m1_tables(portal: RunningPortal, name: str, content: bytes) -> None:
    with others_are_answered(portal):
        answer = send_table(portal, name, content)
    assert answer.status_code in (413, 422), answer.text


def test_m1_a_client_that_is_gone_is_not_read_for(portal: RunningPortal) -> None:
    """The reader of a table ends soon after the client has."""
    rows = b"".join(b"# - {name: c%d, datatype: int64}\n" % at for at in range(190))
    cells = " ".join(f"c{at}" for at in range(190)).encode() + b"\n" + b"1 " * 190
    content = (
        b"# %ECSV 1.0\n# ---\n# datatype:\n" + rows + cells + b"\n" + (b"1 " * 190 + b"\n") * 60_000
    )
    request = httpx.Request(
        "POST", f"{portal.url}/api/estimate", files={"targets": ("t.ecsv", content)}
    )
    host, port = portal.host.split(":")
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(f"POST /api/estimate HTTP/1.1\r\n{head}\r\n".encode() + request.read())
        wait_until(lambda: bool(readers(portal)))
    wait_until(lambda: not readers(portal))


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def readers(portal: RunningPortal) -> list[int]:
    """Give the processes that read tables: children of the child of the portal."""
    nurseries = children(portal.process.pid)
    return [child for nursery in nurseries for child in children(nursery)]


def children(process: int) -> list[int]:
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):  # it, or a thread of it, has ended
        for task in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"{}," * 10_400_000 + b"{}]",
        b'{"targets": [' + b"{}," * 10_000_000 + b"{}]}",
        b'{"targets": {"a": [' + b"[]," * 10_000_000 + b"[]]}}",
        b'{"targets": {"a": [' + b"1," * 10_000_000 + b"1]}}",
        b"[" * 10_000_000,
        b'{"targets": ' + json.dumps({f"c{at}": [] for at in range(300_000)}).encode() + b"}",
    ],
    ids=["objects", "rows", "lists", "numbers", "depth", "columns"],
)
def test_m2_json(portal: RunningPortal, body: bytes) -> None:
    with others_are_answered(portal):
        answer = send_json(portal, body)
    assert answer.status_code in (413, 422), answer.text


def of_one_row(**columns: Any) -> dict[str, list[Any]]:
    named = {"file": "survey:frame-000001.fit", "x": 1, "y": 1, "height": 5, "width": 5}
    return {name: [value] for name, value in {**named, **columns}.items()}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (json.dumps({"targets": of_one_row(id="i" * 20_000_000)}), "up to 10,000 characters"),
        (json.dumps({"targets": [{"k" * 20_000_000: 1}]}), "column names of at most 200"),
        ('{"targets": {"x": [' + ",".join(["9" * 4299] * 5000) + "]}}", "up to 1,024 bits"),
        (
            json.dumps({"targets": of_one_row(), "options": {"planes": list(range(3_000_000))}}),
            "bytes beside the targets",
        ),
        (json.dumps({"targets": of_one_row(), "k" * 1_000_000: 1}), "bytes beside the targets"),
    ],
    ids=["text", "name", "numbers", "options", "key"],
)
def test_m2_what_json_holds_is_bounded(portal: RunningPortal, body: str, told: str) -> None:
    with others_are_answered(portal):
        answer = send_json(portal, body.encode())
    assert answer.status_code in (413, 422)
    assert told in answer.json()["error"]
    assert len(answer.content) < 2000


def test_estimates_try_few_of_many_missing_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that is tried may be a request to a server that does not answer."""
    tried: list[str] = []

    def opened(file: str) -> Any:
        tried.append(file)
        raise NotFoundError(f"{file}: not found")

    monkeypatch.setattr(estimate, "open_from_cache", opened)
    files = [f"missing-{number}.fits" for number in range(10_000)]
    table = {"file": files, **{name: [5] * len(files) for name in ("x0", "y0", "width", "height")}}
    read = read_targets(table, sky_of)
    work = ExpandedJob(len(files), read)
    assert estimate.bytes_out(work.rows.to_predict(), Options()) == 0
    assert len(tried) <= 100


def test_names_of_a_thousand_parts_are_soon_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "out").symlink_to("/etc")
    looks: list[Any] = []
    lstat = os.lstat

    def counted(path: Any, **_: Any) -> os.stat_result:
        looks.append(path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", counted)
    deep = "/".join(["a"] * 1500)
    for path, within in (("inside/", True), ("", True), ("out/", False), ("inside/./", True)):
        assert is_within(f"{tmp_path}/{path}{deep}", [str(tmp_path)]) == within
    assert len(looks) < 300


def test_m2_other_bodies_are_small(portal: RunningPortal) -> None:
    body = b'{"name": ' + b"[" * 100_000
    url = f"{portal.url}/api/jobs/{'a' * 22}"
    answer = httpx.patch(url, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_m2_pasted_lists(portal: RunningPortal) -> None:
    text = "file,x,y,height,width" + ",x" * 5_000_000
    with others_are_answered(portal):
        answer = httpx.post(f"{portal.url}/new", files={"targets": (None, text)}, timeout=600)
    assert "expected lines of at most 20000 characters" in answer.text
    assert len(answer.text) < 100_000, "a list of megabytes is not repeated"
    assert "too long to be shown here again" in answer.text


PASTED = {
    "places": '150.1 2.2 30"\n' * 50_000,
    "pixels": "survey:frame-000001.fit 100 100 20 20\n" * 50_000,
    "table": "file,x,y,height,width\n" + "survey:frame-000001.fit,100,100,20,20\n" * 50_000,
    "faults": "1 2 3\n" + "k l m\n" * 50_000,
    "no lines": "\x0b" * 20_000_000,
}


TOLD = {
    **dict.fromkeys(("places", "pixels", "table"), "<dt>Targets</dt><dd>50,000<small>"),
    "faults": "50,001 errors, the first",
    "no lines": "the list: expected at most 201,000 lines, found more",
}


@pytest.mark.parametrize("kind", PASTED)
def test_m2_long_pasted_lists_are_read_by_a_process_of_their_own(
    portal: RunningPortal, kind: str
) -> None:
    begun = set(readers(portal))
    seen: set[int] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.update(readers(portal))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        with others_are_answered(portal):
            answer = httpx.post(
                f"{portal.url}/new", files={"targets": (None, PASTED[kind])}, timeout=600
            )
    finally:
        over.set()
        looking.join()
    assert answer.status_code == 200
    assert seen - begun
    assert TOLD[kind] in answer.text


class SlowResolver(BaseHTTPRequestHandler):
    """Answers as Sesame, after a second."""

    def do_GET(self) -> None:
        time.sleep(1)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"#=S=Simbad\n%J 10.6847083 +41.2687500 = 00:42:44.33 +41:16:07.5\n")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_names_of_objects_hold_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All others waited until each name of a list was known: 150 s for 50 names of 3 s."""
    add_survey(tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), SlowResolver) as resolver:
        threading.Thread(target=resolver.serve_forever).start()
        monkeypatch.setenv("SWATHE_RESOLVER", f"http://127.0.0.1:{resolver.server_port}/")
        try:
            with served(tmp_path) as portal:
                names = json.dumps({"targets": [f"3C {at} 30arcsec" for at in range(1, 6)]})
                with others_are_answered(portal):
                    answer = send_json(portal, names.encode())
                assert answer.status_code == 200, answer.text
                assert answer.json()["targets"] == 5
        finally:
            resolver.shutdown()


def row_of(side: int, **options: Any) -> dict[str, Any]:
    name = "survey:frame-000001.fit"
    targets = {"file": [name], "x": [100], "y": [100], "height": [side], "width": [side]}
    return {"targets": targets, "options": options}


def ended(portal: RunningPortal, asked: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Submit a job of one row; gives it and the row at its end."""
    job = httpx.post(f"{portal.url}/api/jobs", json=asked, timeout=600)
    assert job.status_code == 201, job.text
    url = f"{portal.url}/api/jobs/{job.json()['id']}"
    wait_until(lambda: httpx.get(url).json()["phase"] in ("COMPLETED", "ERROR"))
    (row,) = httpx.get(f"{url}/rows").json()["rows"]
    httpx.delete(url)
    return job.json(), row


@pytest.mark.parametrize("output", ["fits", "npy", "png"])
@pytest.mark.parametrize(
    ("side", "told"),
    [(40_000, "exceeds the limit of 512 MiB"), (15_000, "lies mostly outside the image")],
)
def test_h2_rows_of_fill(portal: RunningPortal, side: int, told: str, output: str) -> None:
    with others_are_answered(portal):
        _, row = ended(portal, row_of(side, mode="partial", format=output))
    assert row["status"] == "error"
    assert told in row["reason"]


def test_h2_boxes_that_reach_over_an_edge_are_cut(portal: RunningPortal) -> None:
    _, row = ended(portal, row_of(2000, mode="partial"))
    assert row["status"] == "ok"
    _, row = ended(portal, row_of(60_000, mode="trim"))
    assert row["status"] == "ok"


def test_h2_a_row_that_kills_its_runner_is_an_error(tmp_path: Path) -> None:
    import numpy as np

    from swathe.catalog import Catalog
    from swathe.jobs import Folder, Jobs, Limits, Options
    from tests.conftest import fits_bytes

    image = tmp_path / "image.fits"
    image.write_bytes(fits_bytes(np.zeros((200, 300), ">i2")))
    count = 150
    table = {
        "id": ["deadly" if row == 70 else f"t{row}" for row in range(count)],
        "file": [str(image)] * count,
        **{name: [10] * count for name in ("x0", "y0", "width", "height")},
    }
    url, results = f"sqlite:///{tmp_path}/catalog.sqlite", tmp_path / "results"
    with Catalog.open(url) as catalog:
        jobs = Jobs(catalog, Folder(results), limits=Limits())
        job = jobs.submit(table, Options(), "me")
        deaths = 0
        command = [sys.executable, str(TESTS / "support" / "run_deadly_rows.py"), url, str(results)]
        while (code := subprocess.run(command, env=environment()).returncode) != 0:
            assert code == -signal.SIGKILL
            deaths += 1
            assert deaths < 10
        assert deaths > 2
        found = jobs.job(job.id)
        assert found.phase == "COMPLETED"
        assert found.counts["ok"] == count - 1
        (row,) = jobs.rows(job.id, status="error")
    assert (row.id, row.reason) == ("deadly", "stopped the worker twice")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


class Pictured:
    """An image, all zeros, that notes how much memory was free when it was read."""

    def __init__(self, memory: ResponseMemory) -> None:
        self.memory, self.free = memory, -1

    def cut_all_axes(self, start: list[int], stop: list[int], _mode: str) -> Any:
        import numpy as np

        self.free = self.memory._free
        return SimpleNamespace(data=np.zeros((stop[1] - start[1], stop[0] - start[0])))


def test_l1_pictures_take_their_share_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ResponseMemory(1_000_000)
    service, wanted = SimpleNamespace(memory=memory), SimpleNamespace(region=None)
    image = Pictured(memory)
    held = SimpleNamespace(
        bytes_of=lambda _: 1, match=SimpleNamespace(granule=SimpleNamespace(path="a.fits"))
    )
    side = 200

    def chosen(*_: object) -> Any:
        return SimpleNamespace(image=image, start=[0, 0], stop=[side, side], count=side * side)

    image.index = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(sync, "select", chosen)
    answer = sync._cut_from(service, held, wanted, sync.PNG)  # type: ignore[arg-type]
    assert answer.status_code == 200
    assert image.free == 1_000_000 - side * side * sync.PICTURE_BYTES
    assert memory._free == 1_000_000
    for side, status in ((500, 503), (6000, 413)):  # noqa: B007  # `chosen` looks at it
        with pytest.raises(VoError) as refused:
            sync._cut_from(service, held, wanted, sync.PNG)  # type: ignore[arg-type]
        assert refused.value.status == status


def test_l1_few_large_polygons_are_looked_for_at_once() -> None:
    corners = [
        number
        for angle in range(1000)
        for number in (150 + math.cos(angle / 160), 2 + math.sin(angle / 160))
    ]
    wanted = SimpleNamespace(region=Polygon(corners))
    memory = ResponseMemory()
    shares = []
    with pytest.raises(VoError) as refused:
        for _ in range(8):
            shares.append(memory.take(sync._outline_bytes(wanted)))  # type: ignore[arg-type]
    assert refused.value.status == 503
    assert 1 <= len(shares) <= 4


@pytest.mark.parametrize(
    "url",
    [
        "HTTP://h.example/a",
        "http://h.example/%2e%2e/a",
        "http://h.example/a/..",
        "http://h.example/%2E./a",
    ],
)
def test_l5_urls_are_refused_with_the_right_reason(tmp_path: Path, url: str) -> None:
    from swathe.catalog import Catalog

    with Catalog.open(f"sqlite:///{tmp_path}/c.sqlite") as catalog:
        sources = Sources(catalog, ["h.example"])
        with pytest.raises(AccessError, match=r"in lower case, and has no \. or \.\."):
            sources.check(url)
        sources.check("http://h.example/..a/a..b/%2e%2e%2e")


def test_l11_results_of_fill_are_counted(tmp_path: Path) -> None:
    assert Config().limits.result_gb <= 20
    add_survey(tmp_path)
    count = 40
    targets = {
        "file": ["survey:frame-000001.fit"] * count,
        **{name: [0] * count for name in ("x", "y")},
        **{name: [1800] * count for name in ("height", "width")},
    }
    with served(tmp_path, "[limits]\nresult_gb = 0.02\n") as portal:
        asked = {"targets": targets, "options": {"mode": "partial"}}
        answer = httpx.post(f"{portal.url}/api/jobs", json=asked, timeout=60)
    assert answer.status_code == 413
    assert "the results would take at least 123.6 MiB" in answer.json()["error"]
