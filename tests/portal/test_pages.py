"""The pages of a portal: what they say, in what form, and the way through them in a browser."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import sys
import threading
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit
from xml.sax.saxutils import escape

import httpx
import numpy as np
import pytest
from astropy.table import Table
from axe_playwright_python.sync_playwright import (  # type: ignore[import-untyped]
    Axe,
)
from PIL import Image
from starlette.routing import Route

from swathe.catalog import Catalog, Outcome, this_host
from swathe.cli.app import main
from swathe.costs.cost_model import Costs
from swathe.files.targets.table_files import READERS
from swathe.portal.app import make_app, open_portal
from swathe.portal.config import config_of
from swathe.portal.pages import stripe_servers
from swathe.portal.pages.archive import cost_rows
from swathe.portal.pages.routes import PARTS
from swathe.runs import run as write_run
from swathe.runs.superfiles.open_superfile import superfile
from swathe.runs.superfiles.run_pictures import pictures_folder
from swathe.stores.stripe_reports import ServerStatus
from tests.support.algorithms import LST
from tests.support.browser import PHONE, WIDE, OpenPage, keep, visiting
from tests.support.fits_frames import contents, noise, sky_header
from tests.support.pools import pool_of
from tests.support.portals import RunningPortal, database_in, served, wait_until
from tests.support.sample_surveys import new_sample
from tests.support.scripted_servers import Handler, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response, ViewportSize

EVIL = "<script>alert('x')</script>"
IMAGE = quote("ivo://swathe.invalid/frames?frame-000001.fit,0", safe="")
VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
SVG_ALONE = {"rect", "path", "ellipse", "polyline"}
ENDED_MS = 120_000
COUNTS = """\
# /// script
# [tool.swathe.algorithm]
# name = "counts"
# version = "1"
# inputs.granules = {count = "1"}
# outputs.table = {media_type = "text/csv"}
# ///
def run(granules, table): ...
"""


def swathe(folder: Path, *words: object, code: int = 0) -> None:
    """Run a command on the catalogue of a portal."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SWATHE_DATABASE", database_in(folder))
        patched.setattr(sys, "argv", ["swathe", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == code


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a catalogue: a sample survey, and what is odd about other archives."""
    folder = tmp_path_factory.mktemp("pages")
    new_sample(folder / "survey", 1, 20)
    odd = folder / "odd"
    odd.mkdir()
    header = sky_header(0.001, 40.0)
    header["FILTER"] = "<b>r</b>"
    header["EXTNAME"] = EVIL
    (odd / "a<b>&c.fits").write_bytes(contents(noise(1), "fit", header))
    (odd / "damaged.fits").write_bytes(contents(noise(2), "fit", header)[:1000])
    (odd / "gone.fits").write_bytes(contents(noise(3), "fit", header))
    with Catalog.open(database_in(folder)) as catalog:
        catalog.add_store("survey", str(folder / "survey"))
        catalog.add_store("odd", str(odd))
        (folder / "disk").mkdir()
        catalog.add_store("wide", "striped:", over=["odd:parts", str(folder / "disk")])
        for seconds in (0.5, 2.0, 40.0):
            catalog.add_outcome(_outcome(seconds))
    swathe(folder, "dataset", "add", "frames", "survey:", "--pattern", "*.fit*")
    swathe(folder, "dataset", "add", "odd", "odd:", code=1)  # of damaged.fits
    (odd / "gone.fits").unlink()
    swathe(folder, "dataset", "sync", "odd", code=1)
    swathe(folder, "probe", "survey", "--quick", "--max-time", "0.5s")
    (folder / "lst.py").write_text(f"{LST}# {EVIL}\n")
    swathe(folder, "algorithm", "add", folder / "lst.py")
    add_run(folder)
    return folder


def add_run(folder: Path) -> None:
    """Write a run with two arrays, and a picture of each dump of one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SWATHE_DATABASE", database_in(folder))
        with Catalog.open() as catalog:
            catalog.add_store("runs", str(folder / "runs"), "local")
        with write_run("waves", iterations=4) as run:
            temp = run.array("temp", (4, 6, 8), "f4", every=2, location="runs")
            rows = run.array("rows", (3, 2), "f4", mode="append", location="runs")
            for at in range(5):
                temp.write(at, np.random.default_rng(at).random((4, 6, 8), "f4"))
                rows.write(at, np.full((3, 2), at, "f4"))
        with Catalog.open() as catalog:
            place = pictures_folder(catalog.run("waves"), "runs")
        picture = io.BytesIO()
        Image.new("RGB", (40, 30), "teal").save(picture, "PNG")
        with superfile(f"{place}/temp.zip", "w") as pictures:
            for at in (0, 2, 4):
                pictures.add(f"{at}.png", picture.getvalue())


def _outcome(seconds: float) -> Outcome:
    return Outcome(
        at=_now(),
        host="here",
        summary=EVIL,
        targets=10,
        root="",
        predicted_s=seconds,
        low_s=seconds * 0.8,
        high_s=seconds * 1.2,
        actual_s=seconds * 1.1,
        predicted_bytes=1000,
        actual_bytes=1100,
        predicted_requests=3,
        actual_requests=4,
    )


def _now() -> datetime:
    from datetime import UTC, datetime

    return datetime.now(UTC)


@pytest.fixture(scope="module")
def portal(archive: Path) -> Iterator[RunningPortal]:
    """A portal that serves it."""
    with served(archive) as running:
        yield running


@pytest.fixture(scope="module")
def client(portal: RunningPortal) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=portal.url, timeout=120) as asking:
        yield asking


@pytest.fixture(scope="module")
def lines(archive: Path) -> str:
    """Twenty targets: one of no file, one outside of its image, one that is none."""
    rows = Table.read(archive / "survey" / "targets.csv", format="ascii.csv")
    listed = [
        f"survey:{row['file']}, {row['x']}, {row['y']}, {row['height']}, {row['width']}"
        for row in rows
    ]
    listed[3] = "survey:nothing.fit, 100, 100, 50, 50"
    listed[7] = "survey:frame-000001.fit, 90000, 100, 50, 50"
    listed[11] = "survey:frame-000001.fit, left, 100, 50, 50"
    # With a line of names it is a table, where what is no number is a fault of its row alone.
    return "\n".join(["file, x, y, height, width", *listed])


@pytest.fixture(scope="module")
def job(client: httpx.Client) -> str:
    """A job that is done, whose names are as evil as can be."""
    targets = {
        "id": [EVIL, "b&b", "c"],
        "file": ["survey:frame-000001.fit", "survey:<i>nothing</i>.fit", "survey:frame-000001.fit"],
        "x": [300, 300, 500],
        "y": [300, 300, 500],
        "height": [60, 60, 60],
        "width": [80, 80, 80],
    }
    made = client.post("/api/jobs", json={"targets": targets, "options": {}, "name": EVIL})
    assert made.status_code == 201, made.text
    found = made.json()
    while found["phase"] not in ("COMPLETED", "ERROR", "ABORTED"):
        asked = {"wait": 10, "phase": found["phase"]}
        found = client.get(f"/api/jobs/{found['id']}", params=asked).json()
    assert found["phase"] == "COMPLETED", found
    return str(found["id"])


@pytest.fixture(scope="module")
def addresses(job: str) -> list[str]:
    """Every kind of page."""
    return [
        "/",
        "/new",
        "/new?dataset=frames",
        "/jobs",
        "/jobs?phase=ABORTED",
        f"/jobs/{job}",
        f"/jobs/{job}?status=ok",
        f"/jobs/{job}?stretch=log&low=&high=99",
        f"/jobs/{job}/delete",
        "/datasets",
        "/datasets/frames",
        "/datasets/frames?start=2",
        "/datasets/odd",
        "/search",
        "/search?dataset=frames",
        "/sky",
        f"/image?ID={IMAGE}",
        f"/image/header?ID={IMAGE}",
        "/stores",
        "/stores/survey",
        "/stores/odd",
        "/algorithms",
        "/algorithms/lst-quarter-degree",
        "/algorithms/lst-quarter-degree/order",
        "/algorithms/lst-quarter-degree/subscribe",
        "/algorithms/reduce/subscribe",
        "/string",
        "/subscriptions",
        "/pool",
        "/predictions",
        "/runs",
        "/runs/new",
        "/runs/new?run=waves@1",
        "/runs/waves@1",
        "/runs/waves@1/arrays/temp",
        "/runs/waves@1/arrays/rows",
        "/runs/waves@1/view",
        "/runs/waves@1/view/temp",
        "/runs/waves@1/view/temp?plain=1",
        "/help",
        "/help/api",
        "/help/api?part=algorithms",
        "/sign-in",
    ]


@pytest.fixture(scope="module")
def different(addresses: list[str]) -> list[str]:
    """Those that look different: to be seen in a browser. A volume needs WebGL: test_run_viewer."""
    queries = ("status=ok", "run=waves", "plain=1", "dataset=frames", "ID=")
    return [
        address
        for address in addresses
        if "?" not in address or any(query in address for query in queries)
        if not address.endswith("/view/temp")
    ]


NO_PAGES = {
    *("/stores/{name}/plots.json", "/predictions/plots.json", "/search.csv", "/trace/data"),
    *("/sky/cells.json", "/sky/outlines.json"),
}
IN_OTHER_TESTS = {
    *("/jobs/{job_id}/results/{name}", "/jobs/{job_id}/groups/{number}", "/mail/{key}"),
    *("/datasets/{name}/arrays", "/trace", "/runs/{name}/trace"),
    *("/subscriptions/{subscription_id}", "/subscriptions/{subscription_id}/{action}"),
    *("/algorithms/{name}/remove", "/admin", "/admin/tokens/{number}/remove"),
}
"""Pages of what this archive does not have."""


def test_every_page_of_the_app_is_looked_at(addresses: list[str]) -> None:
    paths = [urlsplit(address).path for address in addresses]
    pages = {
        route.path: route.path_regex
        for part in PARTS
        for route in part.router.routes
        if isinstance(route, Route) and "GET" in (route.methods or ())
    }
    missing = [path for path, pattern in pages.items() if not any(map(pattern.match, paths))]
    assert set(missing) == NO_PAGES | IN_OTHER_TESTS


# ---- Form


class Checker(HTMLParser):
    """Finds what is not closed, closed twice, or named twice."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.faults: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.headings: list[int] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._take(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in SVG_ALONE:
            self.faults.append(f"<{tag}/>")
        self._take(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> within {self.open[-3:]} at {self.getpos()}")
        elif self.open:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data

    def _take(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("a", "code", "span", "strong"):
            self.text += " "
        names = [name for name, _ in attrs]
        given = dict(attrs)
        if len(names) != len(given):
            self.faults.append(f"<{tag}> has an attribute twice: {names}")
        if "style" in given or any(name.startswith("on") for name in names):
            self.faults.append(f"<{tag}> has what the policy forbids: {names}")
        if tag == "script" and not given.get("src"):
            self.faults.append("a script within the page")
        if (name := given.get("id")) is not None:
            if name in self.ids:
                self.faults.append(f"two elements have the id {name}")
            self.ids.add(name)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for attribute in ("href", "src"):
            if link := given.get(attribute):
                self.links.append(link)


def read(page: str) -> Checker:
    checker = Checker()
    assert page.startswith('<!doctype html>\n<html lang="en">')
    checker.feed(page.removeprefix("<!doctype html>"))
    checker.close()
    return checker


def test_every_page_is_well_formed(client: httpx.Client, addresses: list[str]) -> None:
    for address in [*addresses, "/nothing/here", "/datasets/none", "/jobs/none"]:
        checker = read(client.get(address).text)
        assert (checker.faults, checker.open) == ([], []), address
        assert checker.headings[0] == 1, address
        assert checker.headings.count(1) == 1, address
        steps = zip(checker.headings, checker.headings[1:], strict=False)
        assert all(after <= before + 1 for before, after in steps), (address, checker.headings)


def test_every_link_of_every_page_leads_somewhere(
    client: httpx.Client, addresses: list[str], portal: RunningPortal
) -> None:
    left, seen = list(addresses), set(addresses)
    while left:
        address = left.pop()
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.text[:300])
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        for link in read(answer.text).links:
            found = urlsplit(urljoin(portal.url + address, link))
            assert found.netloc == portal.host, (address, link)
            path = found.path + (f"?{found.query}" if found.query else "")
            if found.path != "/vo/capabilities" and path not in seen:
                seen.add(path)
                left.append(path)
    assert len(seen) > 40


def test_headers_of_every_page(client: httpx.Client, addresses: list[str]) -> None:
    for address in [*addresses, "/nothing/here"]:
        headers = client.get(address).headers
        rules = dict(
            rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";")
        )
        assert rules["script-src"] == "'self'", address
        assert rules["default-src"] == "'none'"
        assert rules["frame-ancestors"] == "'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert "no-cache" in headers["cache-control"]
        plots = "/stores/survey" in address or address == "/predictions" or "/stores/odd" in address
        assert ("unsafe-inline" in rules["style-src"]) == plots, address


def test_what_users_give_is_text(client: httpx.Client, job: str) -> None:
    for address in ("/jobs", f"/jobs/{job}", f"/jobs/{job}?status=ok", f"/jobs/{job}/delete"):
        page = client.get(address).text
        assert "<script>alert" not in page
        assert EVIL in read(page).text, address
    shown = client.get("/algorithms/lst-quarter-degree").text
    assert ("<script>alert" in shown, EVIL in read(shown).text) == (False, True)
    shown = client.get("/datasets/odd").text
    assert "<b>" not in shown
    assert all(told in read(shown).text for told in ("a<b>&c.fits", "<b>r</b>"))
    assert EVIL in read(client.get("/predictions").text).text
    form = {"targets": EVIL, "name": f'"{EVIL}', "do": "submit"}
    filled = client.post("/new", files={name: (None, value) for name, value in form.items()})
    assert (filled.status_code, "<script>alert" in filled.text) == (422, False)
    for address in (f"/{EVIL}", f"/datasets/{EVIL}", f"/jobs/{EVIL}", f"/new?name={EVIL}"):
        assert "<script>alert" not in client.get(address).text


def test_form_offers_the_user_every_table_that_is_read(client: httpx.Client) -> None:
    offered = re.search(r'type="file" accept="([^"]*)"', client.get("/new").text)
    assert offered is not None
    assert set(offered[1].split(",")) == set(READERS)


def test_errors_are_pages(client: httpx.Client) -> None:
    for address, status, told in (
        ("/nothing", 404, "no such page: /nothing"),
        ("/datasets/none", 404, "there is no dataset"),
        ("/stores/none", 404, "there is no store"),
        ("/jobs/none", 404, "no job"),
        ("/datasets/frames?start=-1", 422, "start"),
        ("/jobs?phase=DANCING", 422, "phase"),
        ("/static/nothing.js", 404, "no such file"),
        ("/static/..%2Froutes.py", 404, "no such"),
    ):
        answer = client.get(address)
        assert (answer.status_code, told in answer.text) == (status, True), address
        assert answer.headers["content-type"].startswith("text/html")
    # Of the interface for programs they are not.
    assert client.get("/api/nothing").headers["content-type"] == "application/json"


def test_fault_of_the_portal_is_a_page_and_told_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    settings = {
        "catalog": {"database": database_in(tmp_path)},
        "results": {"folder": str(tmp_path / "results")},
    }
    with open_portal(config_of(settings)) as portal:
        monkeypatch.setattr(Catalog, "stores", lambda _catalog: 1 / 0)
        transport = httpx.ASGITransport(make_app(portal))

        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as asking:
                return await asking.get("/stores")

        answer = asyncio.run(ask())
    assert answer.status_code == 500
    assert "internal error of the portal" in read(answer.text).text
    assert "division" not in answer.text
    assert "ZeroDivisionError" in caplog.text


def test_head_is_answered(client: httpx.Client) -> None:
    for address in ("/", "/datasets/frames", "/static/swathe.css"):
        answer = client.head(address)
        assert (answer.status_code, answer.content) == (200, b"")


def test_files_of_pages_are_kept_by_browsers(client: httpx.Client) -> None:
    page = client.get("/").text
    (style,) = re.findall(r'href="(/static/swathe.css[^"]*)"', page)
    first = client.get(style)
    assert "immutable" in first.headers["cache-control"]
    assert first.headers["content-type"] == "text/css; charset=utf-8"
    again = client.get(style, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "no-cache" in client.get("/static/swathe.css").headers["cache-control"]
    plain = client.get(style, headers={"Accept-Encoding": "identity"})
    assert plain.headers["etag"] != first.headers["etag"]
    assert plain.content == first.content
    assert client.get("/static/bokeh.min.js").headers["content-encoding"] == "gzip"


# ---- What they say


def text_of(client: httpx.Client, address: str) -> str:
    return " ".join(read(client.get(address).text).text.split())


def test_front_page_tells_what_the_archive_holds(client: httpx.Client) -> None:
    shown = text_of(client, "/")
    assert "Images 5 in 5 files" in shown  # a frame in 4 kinds, and an odd one
    assert "Datasets 2 in 4 stores" in shown  # one is of a run
    assert re.search(r"frames 4 4 \S+\WMiB 2000-09-2", shown)
    assert "odd:" not in shown


def test_dataset_tells_why_objects_cannot_be_read(client: httpx.Client) -> None:
    shown = text_of(client, "/datasets/odd")
    assert re.search(r"odd:damaged.fits damaged \S+", shown)
    assert "odd:gone.fits vanished no longer in the store" in shown
    assert "Readable Damaged Failed Vanished odd 1 1 0 1" in shown


def test_granules_come_page_by_page(client: httpx.Client) -> None:
    assert "frame-000001.fit " in text_of(client, "/datasets/frames")
    later = text_of(client, "/datasets/frames?start=3")
    assert "frame-000001.fit.gz" in later
    assert "frame-000001.fit 0" not in later


def test_what_a_busy_server_takes_for_bytes_is_told(tmp_path: Path) -> None:
    root, now = "https://example.org/survey", datetime.now(UTC)
    told = {}
    for works in (None, 2.4e9):
        costs = Costs(0.0, 0.0, ((0, 1e-3), (1000, 2e-3)), 1e9, 2e4, 16, served_bytes_per_s=works)
        with Catalog.open(f"sqlite:///{tmp_path}/catalog.sqlite") as catalog:
            catalog.put_profile(root, this_host(), costs.as_dict(), {}, now)
            profile = catalog.profile(root, this_host())
        assert profile is not None
        told[works] = {what: value for what, value, *_ in cost_rows(profile)}
    assert "Server throughput" not in told[None]
    assert told[2.4e9]["Server throughput"] == 2.4e9


def test_store_tells_its_costs(client: httpx.Client) -> None:
    shown = text_of(client, "/stores/survey")
    assert re.search(r"Bandwidth of all streams \S+ [kMG]?B/s", shown)
    stores = text_of(client, "/stores")
    assert "local disk: needs no probe" in stores
    assert "not probed" not in stores
    unmeasured = text_of(client, "/stores/odd")
    assert "This store was not measured" in unmeasured
    assert "A local disk needs no probe" in unmeasured
    for scheme in ("light", "dark"):
        items = client.get(f"/stores/survey/plots.json?scheme={scheme}").json()["items"]
        assert [item["target_id"] for item in items] == ["requests", "streams"]
    assert client.get("/stores/odd/plots.json").status_code == 404


def test_store_tells_its_servers(client: httpx.Client, archive: Path) -> None:
    shown = text_of(client, "/stores/wide")
    for place in ("odd:parts/", f"file://{archive}/disk"):
        assert re.search(
            rf"{re.escape(place)} reachable [\d.]+\W% [\d.,]+ \w+ not probed", shown
        ), shown
    assert "while at most 1 of these 2 servers is lost" in shown
    assert "Option parity 1" in shown
    assert "Servers" not in text_of(client, "/stores/odd")


def test_a_page_shows_no_impossible_room_and_no_control_characters(
    client: httpx.Client, archive: Path
) -> None:
    names = ("/one\x1b]0;x\x07\nb", "/two")
    rooms = [(2**64 - 1, 1), (30, 40)]
    disks = [
        {"name": name, "is_up": True, "free_bytes": free, "total_bytes": total}
        for name, (free, total) in zip(names, rooms, strict=True)
    ]

    class Server(Handler):
        def do_PROPFIND(self) -> None:
            self.taken()
            text = f"<S:disks>{escape(json.dumps(disks))}</S:disks>"
            body = f"<D:multistatus><D:response><D:href>/</D:href>{text}</D:response>"
            self.answer(207, f"{body}</D:multistatus>".encode())

        def do_GET(self) -> None:
            self.answer(404, b"it has no mark")

    with serving(Server) as url, Catalog.open(database_in(archive)) as catalog:
        catalog.add_store("rooms", "striped:", over=[url], parity=0)
        shown = text_of(client, "/stores/rooms")
        html = client.get("/stores/rooms").text
        catalog.remove_store("rooms")
    assert "unknown" in shown and "-" not in "".join(re.findall(r'width="([^"]*)"', html))
    assert r"/one\x1b]0;x\x07\nb there unknown" in shown
    assert re.search(r"/two there 25\W% 30\WB", shown), shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", html)


def test_store_tells_the_progress_of_its_repair(client: httpx.Client, archive: Path) -> None:
    with Catalog.open(database_in(archive)) as catalog:
        number = catalog.begin_stripe_work("wide", "repair", "wide:dr17", os.getpid(), 1200)
        catalog.tell_stripe_work(number, 40, 2, 3_000_000)
        shown = text_of(client, "/stores/wide")
        assert f"A repair runs: wide:dr17 on {this_host()}, process {os.getpid()}, since" in shown
        assert re.search(r"40 of 1,200 objects are done, 2 of them failed, 2.86\WMiB", shown), shown
        assert 'data-every="2"' in client.get("/stores/wide").text
        catalog.tell_stripe_work(number, 41, 2, 3_000_000, is_stopped=True)
        shown = text_of(client, "/stores/wide")
        assert "A repair was stopped" in shown and "swathe stripe repair wide:dr17" in shown
        assert "data-every" not in client.get("/stores/wide").text
        catalog.end_stripe_work(number)
    assert "A repair" not in text_of(client, "/stores/wide")


def test_a_server_that_hangs_stops_no_page_and_no_other_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hanging = threading.Event()
    status = {name: ServerStatus(name, f"file:///{name}", True, None, 0, 0, 0) for name in "abc"}
    asked: list[str] = []

    def ask(name: str, server: str) -> ServerStatus:
        asked.append(server)
        if server == "b":
            hanging.wait(60)
        return status[server]

    monkeypatch.setattr(stripe_servers, "server_status", ask)
    monkeypatch.setattr(stripe_servers, "WAIT_S", 0.05)
    states = stripe_servers.StripeServers()
    others = {name: status[name] for name in "ac"}
    wait_until(lambda: states.states("wide", "abc") == others)
    # As many stores that hang as there may be: one more is asked all the same.
    for number in range(20):
        states.states(f"hanging-{number}", "b")
    wait_until(lambda: states.states("other", "ac") == others)
    assert states.states("wide", "b") == {}
    assert asked.count("b") == 21, "a server is asked once at a time"
    hanging.set()
    wait_until(lambda: states.states("wide", "abc") == status)


def test_predictions_tell_their_errors(client: httpx.Client) -> None:
    shown = text_of(client, "/predictions")
    assert re.search(r"\S+ 2\Ws 1.6\Ws to 2.4\Ws 2.2\Ws .9\W%", shown), shown


def test_estimate_and_submission_need_no_script(client: httpx.Client, lines: str) -> None:
    form = {"targets": (None, lines), "do": (None, "estimate"), "name": (None, "by hand")}
    answer = client.post("/new", files=form)
    assert answer.status_code == 200, answer.text
    shown = " ".join(read(answer.text).text.split())
    assert "Targets 20" in shown
    assert re.search(r"Time [\d.]+ \S+ [\d.]+ \S+ to [\d.]+ \S+ in 80 of 100 cases", shown), shown
    made = client.post("/new", files={**form, "do": (None, "submit")})
    assert made.status_code == 303, made.text
    assert "by hand" in text_of(client, made.headers["location"])
    for action in ("cancel", "delete"):
        assert client.post(f"{made.headers['location']}/{action}").status_code == 303
    assert client.get(made.headers["location"]).status_code == 404


def test_faults_are_told_line_by_line(client: httpx.Client) -> None:
    targets = '# ra dec size\n10 -1.05 30"\n200 80 30"\n10 -1.05\n10 -1.05 0\n'
    answer = client.post("/new", files={"targets": (None, targets), "do": (None, "estimate")})
    shown = " ".join(read(answer.text).text.split())
    assert re.search(
        "3 errors Line 3 no image .* Line 4 expected RA Dec size.* Line 5 size: expected", shown
    ), shown
    assert "Targets 4 1 without an image" in shown
    refused = client.post("/new", files={"targets": (None, targets), "do": (None, "submit")})
    assert refused.status_code == 422
    assert "line 4 is not a target" in refused.text


def test_lists_in_files_are_taken(client: httpx.Client, archive: Path) -> None:
    table = "ra,dec,size_deg\n10.0,-1.05,0.01\n200,80,0.01\n"
    answer = client.post("/new", files={"file": ("list.csv", table.encode())})
    shown = " ".join(read(answer.text).text.split())
    assert answer.status_code == 200, shown
    assert "Targets 2 1 without an image" in shown
    for do, status in (("estimate", 200), ("submit", 422)):
        wrong = client.post("/new", files={"file": ("list.doc", b"x"), "do": (None, do)})
        assert (wrong.status_code, "expected a name ending in" in wrong.text) == (status, True)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("bands", "r", "option bands: expected three, red first, found 1"),
        ("time_from", "2000-01-01", "expected both a first and a last day"),
        ("planes", "x", "option planes"),
        ("dataset", "none", "no dataset"),
        ("fill", "zero", "fill: expected a number"),
    ],
)
def test_options_that_make_no_sense(
    client: httpx.Client, field: str, value: str, told: str
) -> None:
    form = {"targets": (None, "10 -1 0.01"), "do": (None, "submit"), field: (None, value)}
    if field == "bands":
        form["format"] = (None, "rgb")
    if field == "fill":
        form["mode"] = (None, "partial")
    answer = client.post("/new", files=form)
    assert answer.status_code in (404, 422)
    shown = read(answer.text)
    assert told in shown.text
    assert f'value="{value}"' in answer.text or field == "dataset"  # What was typed is not lost.


def test_pages_of_others_cannot_act(client: httpx.Client, job: str) -> None:
    foreign = {"Origin": "https://evil.example"}
    answer = client.post(f"/jobs/{job}/delete", headers=foreign)
    assert answer.status_code == 403
    assert client.get(f"/jobs/{job}").status_code == 200


# ---- Tokens


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningPortal, str, str]]:
    """A portal that needs tokens; one of ann, one of bob who may only read."""
    folder = tmp_path_factory.mktemp("closed")
    with Catalog.open(database_in(folder)) as catalog:
        ann = catalog.add_token("ann", ["read", "submit"])[0]
        bob = catalog.add_token("bob", ["read"])[0]
    with served(folder, '[access]\ntokens = "required"\n') as running:
        yield running, ann, bob


def test_signing_in_and_out(closed: tuple[RunningPortal, str, str]) -> None:
    running, ann, _bob = closed
    with httpx.Client(base_url=running.url) as visitor:
        turned = visitor.get("/jobs?phase=ERROR")
        assert turned.status_code == 303
        assert turned.headers["location"] == "/sign-in?next=%2Fjobs%3Fphase%3DERROR"
        assert visitor.get(turned.headers["location"]).status_code == 200
        wrong = visitor.post("/sign-in", data={"token": EVIL, "next": "/jobs"})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
        assert "<script>alert" not in wrong.text
        right = visitor.post("/sign-in", data={"token": ann, "next": "/jobs?phase=ERROR"})
        assert (right.status_code, right.headers["location"]) == (303, "/jobs?phase=ERROR")
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "ann" in visitor.get("/jobs").text
        assert visitor.post("/sign-out").status_code == 303
        assert visitor.get("/jobs").status_code == 303


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example", "/\\evil", "x"])
def test_signing_in_leads_nowhere_else(closed: tuple[RunningPortal, str, str], wanted: str) -> None:
    running, ann, _bob = closed
    with httpx.Client(base_url=running.url) as visitor:
        answer = visitor.post("/sign-in", data={"token": ann, "next": wanted})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_reading_is_not_submitting(closed: tuple[RunningPortal, str, str]) -> None:
    running, _ann, bob = closed
    form = {"targets": (None, "1 2 0.1"), "do": (None, "submit")}
    with httpx.Client(base_url=running.url) as visitor:
        visitor.post("/sign-in", data={"token": bob})
        assert visitor.get("/new").status_code == 200
        assert visitor.post("/new", files={"targets": (None, "1 2 0.1")}).status_code == 200
        assert visitor.post("/new", files=form).status_code == 403
        assert visitor.post("/new", files=form, headers={"Cookie": ""}).status_code in (401, 403)


# ---- In a browser


@pytest.fixture
def visit(browser: Browser, portal: RunningPortal) -> Iterator[OpenPage]:
    """Opens pages of the portal by their paths."""
    with visiting(browser) as opened:
        yield lambda path, **settings: opened(portal.url + path, portal.url, **settings)


def loaded(page: Page, at_least: int) -> None:
    """Wait for pictures of the gallery to be there."""
    page.wait_for_function(
        """n => [...document.querySelectorAll('.gallery img')]
            .filter(each => each.complete && each.naturalWidth > 0).length >= n""",
        arg=at_least,
    )


def pixels(page: Page) -> str:
    """Give the first picture of the gallery as it is shown."""
    return str(
        page.evaluate(
            """async () => {
                const picture = document.querySelector('.gallery img');
                await picture.decode();
                const canvas = document.createElement('canvas');
                canvas.width = picture.naturalWidth;
                canvas.height = picture.naturalHeight;
                canvas.getContext('2d').drawImage(picture, 0, 0);
                return canvas.toDataURL();
            }"""
        )
    )


def test_whole_journey(visit: OpenPage, lines: str, tmp_path: Path, client: httpx.Client) -> None:
    page = visit("/")
    keep(page, "front")
    page.get_by_role("link", name="New job").last.click()
    page.get_by_label("One target per line").fill(lines)
    page.get_by_label("Name of the job").fill("Twenty stars")
    estimate = page.locator("#estimate")
    estimate.get_by_text("in 80 of 100 cases").wait_for()
    assert "20" in estimate.locator(".figures > div").first.inner_text()
    assert "'left'" in estimate.locator(".faults").inner_text()
    keep(page, "new")
    page.get_by_role("button", name="Submit the job").click()

    page.wait_for_url("**/jobs/*")
    page.locator('#state[data-phase="COMPLETED"]').wait_for(timeout=ENDED_MS)
    assert page.get_by_role("heading", level=1).inner_text() == "Twenty stars"
    assert "17 cut" in page.locator("#state").inner_text()
    loaded(page, 17)
    keep(page, "job")

    before = pixels(page)
    page.get_by_label("Stretch").select_option("log")
    page.wait_for_function("() => document.querySelector('.gallery img').src.includes('log')")
    after = pixels(page)
    assert after != before
    page.get_by_label("White at percentile").fill("90")
    page.wait_for_function("() => document.querySelector('.gallery img').src.includes('high=90')")
    assert pixels(page) != after

    table = page.locator("#table")
    table.get_by_role("link", name=re.compile("^File missing")).click()
    assert "nothing.fit" in table.inner_text()
    page.locator("#table").get_by_role("link", name=re.compile("^No overlap")).click()
    reason = page.locator("#table tbody tr td.reason").first.inner_text()
    assert reason.strip()

    with page.expect_download() as download:
        page.get_by_role("link", name="ZIP").click()
    download.value.save_as(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert archive.testzip() is None
        members = archive.namelist()
        (listed,) = [name for name in members if name.endswith("manifest.ecsv")]
        (tmp_path / "manifest.ecsv").write_bytes(archive.read(listed))
    manifest = Table.read(tmp_path / "manifest.ecsv", format="ascii.ecsv")
    assert len(manifest) == 20
    made = [str(row["path"]) for row in manifest if row["status"] == "ok"]
    assert len(made) == 17
    assert sorted(made) == sorted(name for name in members if name != listed)

    page.locator(".gallery a").first.click()
    page.get_by_role("link", name=re.compile("^Download")).wait_for()
    loaded(page, 1)
    keep(page, "result")


def test_an_algorithm_is_subscribed(visit: OpenPage, client: httpx.Client) -> None:
    kind = {"Content-Type": "text/x-python"}
    assert client.post("/api/algorithms", content=COUNTS, headers=kind).status_code == 201
    page = visit("/algorithms/counts")
    page.get_by_role("link", name="Subscribe").click()
    page.get_by_label("Collection").select_option("frames")
    page.locator("#estimate .figures").wait_for()
    page.get_by_label("Webhook").fill("ftp://archive.example/")
    page.locator("#webhook-fault", has_text="expected http").wait_for()
    assert page.get_by_label("Webhook").get_attribute("aria-invalid") == "true"
    page.get_by_label("Webhook").fill("https://archive.example/hook")
    page.locator("#webhook-fault").wait_for(state="hidden")

    sky = page.locator("#map").bounding_box()
    assert sky is not None
    page.locator("#map").scroll_into_view_if_needed()
    sky = page.locator("#map").bounding_box()
    assert sky is not None
    page.mouse.move(sky["x"] + sky["width"] / 2, sky["y"] + sky["height"] / 4)
    page.mouse.down()
    page.mouse.move(sky["x"] + sky["width"] * 0.6, sky["y"] + sky["height"] / 2, steps=3)
    page.mouse.up()
    assert float(page.get_by_label("East").input_value()) == pytest.approx(36, abs=1)
    page.get_by_label("Last day (UTC) of the subscription").fill("2099-12-31")
    keep(page, "subscribe")
    page.get_by_role("button", name="Subscribe").click()
    assert page.locator("#secret").inner_text().startswith("whsec_")
    page.get_by_role("link", name="To the subscription").click()
    facts = page.locator(".facts").inner_text()
    for words in ("frames", "https://archive.example/hook", "2099-12-31", "degrees (west"):
        assert words in facts


def test_job_is_watched_while_it_runs(visit: OpenPage, client: httpx.Client) -> None:
    targets = {
        "file": ["survey:frame-000001.fit.bz2", "survey:frame-000001.fit.gz"] * 200,
        "x": [300 + number for number in range(400)],
        "y": [300] * 400,
        "height": [100] * 400,
        "width": [100] * 400,
    }
    asked = {"targets": targets, "options": {}, "name": "watched", "start": False}
    job_id = client.post("/api/jobs", json=asked).json()["id"]
    page = visit(f"/jobs/{job_id}")
    assert "0 of 400 rows done" in page.locator("#state").inner_text()
    page.get_by_role("link", name="Start").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Start").click()
    page.locator('#state[data-phase="COMPLETED"]').wait_for(timeout=ENDED_MS)
    assert "400 of 400 rows done" in page.locator("#state").inner_text()
    assert page.locator("#actions").get_by_role("link", name="Cancel").count() == 0
    loaded(page, 4)
    page.get_by_role("link", name="Next").first.click()
    assert "picture=" in page.url

    page.get_by_role("link", name="Delete").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("cannot be undone").wait_for()
    keep(page, "delete")
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    assert client.get(f"/api/jobs/{job_id}").status_code == 200
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete for good").click()
    page.wait_for_url("**/jobs")
    assert client.get(f"/api/jobs/{job_id}").status_code == 404


def test_job_is_watched_without_events(
    browser: Browser, client: httpx.Client, portal: RunningPortal
) -> None:
    targets = {
        "file": ["survey:frame-000001.fit"],
        "x0": [9],
        "y0": [9],
        "width": [9],
        "height": [9],
    }
    asked = {"targets": targets, "options": {}, "start": False}
    job_id = client.post("/api/jobs", json=asked).json()["id"]
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    page.route("**/events", lambda route: route.abort())
    page.goto(f"{portal.url}/jobs/{job_id}")
    client.post(f"/api/jobs/{job_id}/start")
    page.locator('#state[data-phase="COMPLETED"]').wait_for(timeout=ENDED_MS)
    context.close()


def test_submission_by_keyboard_alone(visit: OpenPage) -> None:
    page = visit("/new")

    def tab_to(name: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if (
                page.evaluate("document.activeElement.id || document.activeElement.className")
                == name
            ):
                return
        raise AssertionError(f"{name} is not reached")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    tab_to("targets")
    page.keyboard.type("survey:frame-000001.fit, 300, 300, 50, 50")
    tab_to("name")
    page.keyboard.type("by keys")
    tab_to("submit")
    ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert ring == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/*")
    assert page.get_by_role("heading", level=1).inner_text() == "by keys"


def test_dropped_file_is_estimated(visit: OpenPage, tmp_path: Path) -> None:
    page = visit("/new")
    (tmp_path / "list.csv").write_text("ra,dec,size_deg\n10.0,-1.05,0.01\n")
    page.get_by_label("Or a file").set_input_files(tmp_path / "list.csv")
    page.locator("#estimate").get_by_text("images to cut").wait_for()
    page.get_by_label("One target per line").fill("nonsense")
    page.get_by_label("Or a file").set_input_files([])
    page.locator("#estimate").get_by_role("alert").get_by_text("or the name of a star").wait_for()


def test_plots_are_drawn_in_both_schemes(visit: OpenPage) -> None:
    def drawn(page: Page, scheme: str, name: str) -> None:
        def is_painted(number: int) -> bool:
            picture = page.locator(".plot").nth(number).screenshot()
            grey = np.asarray(Image.open(io.BytesIO(picture)).convert("L"))
            # More than a background, which is of this scheme.
            return bool(grey.std() > 5 and (np.median(grey) < 80) == (scheme == "dark"))

        page.locator(f"[data-drawn={scheme}]").wait_for()
        # Bokeh paints in the next frames, whenever they come.
        wait_until(lambda: all(map(is_painted, range(page.locator(".plot").count()))))
        keep(page, name)

    page = visit("/stores/survey")
    drawn(page, "light", "store")
    page.emulate_media(color_scheme="dark")
    drawn(page, "dark", "store-dark")
    drawn(visit("/predictions", color_scheme="dark"), "dark", "predictions-dark")


CONTRASTS = """() => {
    const parse = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const part = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const behind = element => {
        for (let at = element; at; at = at.parentElement) {
            const color = parse(getComputedStyle(at).backgroundColor);
            if (color.length < 4 || color[3] === 1) return color;
        }
        return [255, 255, 255];
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
        if (element.closest('svg, .unseen, .plot, option')) continue;
        const style = getComputedStyle(element);
        const [a, b] = [light(parse(style.color)), light(behind(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const large = parseFloat(style.fontSize) >= 24;
        if (ratio < (large ? 3 : 4.5)) {
            found.push(`${ratio.toFixed(2)} ${element.tagName} ${walker.currentNode.data.trim()}`);
        }
    }
    return found;
}"""
UNLABELLED = """() => [...document.querySelectorAll('input, select, textarea, button')]
    .filter(each => each.type !== 'hidden')
    .filter(each => !(each.labels?.length || each.ariaLabel || each.textContent.trim()))
    .map(each => each.outerHTML)"""
UNNAMED = """() => [...document.querySelectorAll('img, svg[role], a, table')]
    .filter(each => each.tagName === 'IMG' ? !each.alt
        : each.tagName === 'A' ? !each.textContent.trim()
        : each.tagName === 'TABLE' ? !each.querySelector('th[scope=col]')
        : !each.getAttribute('aria-label'))
    .map(each => each.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_read_by_everybody(
    visit: OpenPage, different: list[str], portal: RunningPortal, scheme: str
) -> None:
    page = visit("/", color_scheme=scheme)
    for address in different:
        page.goto(portal.url + address)
        assert page.evaluate(CONTRASTS) == [], address
        assert page.evaluate(UNLABELLED) == [], address
        assert page.evaluate(UNNAMED) == [], address
        for landmark in ("banner", "main", "contentinfo"):
            assert page.get_by_role(landmark).count() == 1, address
        if scheme == "dark" and "?" not in address:
            keep(page, f"dark{address.replace('/', '-')[:20].rstrip('-')}")


SHIFT = """() => new Promise(resolve => {
    let sum = 0;
    new PerformanceObserver(list => {
        for (const each of list.getEntries()) if (!each.hadRecentInput) sum += each.value;
    }).observe({ type: 'layout-shift', buffered: true });
    setTimeout(() => resolve(sum), 300);
})"""
MOST_BYTES = 200_000
ON_DEMAND = ("bokeh.min.js", "vtk.js", "openseadragon.js", "celestial.js", "viewer.js")


@pytest.mark.parametrize("viewport", [WIDE, PHONE])
def test_pages_have_no_violations_of_axe_and_are_small_and_still(
    visit: OpenPage, different: list[str], portal: RunningPortal, viewport: ViewportSize
) -> None:
    page = visit("/", viewport=viewport)
    axe, faults = Axe(), list[tuple[str, str, str]]()
    for address in different:
        sizes: list[int] = []

        def weigh(response: Response, sizes: list[int] = sizes) -> None:
            kind = response.headers.get("content-type", "")
            if not kind.startswith("image/") and not response.url.split("?")[0].endswith(ON_DEMAND):
                sizes.append(len(response.body()))

        page.on("response", weigh)
        page.goto(portal.url + address)
        page.wait_for_load_state()
        shift = page.evaluate(SHIFT)
        page.remove_listener("response", weigh)
        violations = axe.run(page).response["violations"]
        faults += [(address, each["id"], each["nodes"][0]["html"][:200]) for each in violations]
        faults += [(address, "bytes", str(sum(sizes)))] if sum(sizes) > MOST_BYTES else []
        faults += [(address, "shift", str(shift))] if shift > 0.1 else []
    assert faults == []


def test_pages_fit_a_phone(visit: OpenPage, different: list[str], portal: RunningPortal) -> None:
    page = visit("/", viewport=PHONE, has_touch=True, is_mobile=True)
    for address in different:
        page.goto(portal.url + address)
        wide = page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide == [360, 360], address
        if "?" not in address:
            keep(page, f"phone{address.replace('/', '-')[:20].rstrip('-')}")


@pytest.fixture(scope="module")
def pooled(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunningPortal, str, dict[str, str]]]:
    """A portal that needs tokens and has a pool; its scheduler, and tokens of two users."""
    folder = tmp_path_factory.mktemp("pooled")
    with Catalog.open(database_in(folder)) as catalog:
        tokens = {scope: catalog.add_token(scope, [scope])[0] for scope in ("read", "admin")}
    with pool_of(1) as (scheduler, _):
        settings = f'[access]\ntokens = "required"\n[workers]\nurl = "{scheduler.address}"\n'
        with served(folder, settings) as running:
            headers = {"Authorization": f"Bearer {tokens['read']}"}
            asked = running.url + "/api/pool"
            wait_until(lambda: len(httpx.get(asked, headers=headers).json()["workers"]) == 1)
            yield running, scheduler.address, tokens


@pytest.mark.parametrize("scope", ["read", "admin"])
def test_only_who_runs_a_portal_sees_its_scheduler(
    pooled: tuple[RunningPortal, str, dict[str, str]], scope: str
) -> None:
    running, scheduler, tokens = pooled
    place = scheduler.partition("://")[2]
    with httpx.Client(
        base_url=running.url, headers={"Authorization": f"Bearer {tokens[scope]}"}
    ) as client:
        told = client.get("/api/pool").json()
        shown = client.get("/pool").text
    assert told["kind"] == "dask"
    assert (place in told["address"], place in shown) == (
        (True,) * 2 if scope == "admin" else (False,) * 2
    )
    assert (told["address"] == "") == (scope == "read")


def test_what_a_worker_holds_is_in_sight_of_a_phone(
    pooled: tuple[RunningPortal, str, dict[str, str]], browser: Browser
) -> None:
    running, _, tokens = pooled
    headers = {"Authorization": f"Bearer {tokens['admin']}"}
    with visiting(browser) as opened:
        page = opened(
            running.url + "/pool",
            running.url,
            viewport=PHONE,
            has_touch=True,
            is_mobile=True,
            extra_http_headers=headers,
        )
        table = page.get_by_label("Workers", exact=True)
        assert (
            table.evaluate("each => [each.scrollWidth, each.clientWidth]")
            == [table.evaluate("each => each.clientWidth")] * 2
        )
        for name in ("Machine", "Threads", "Busy", "Waiting", "Cached", "State"):
            box = table.locator(f"td[data-label={name}]").bounding_box()
            assert box is not None
            assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"], name
        said = table.locator("td[data-label=Cached]").evaluate(
            "each => getComputedStyle(each, '::before').content"
        )
        assert said == '"Cached"'
        keep(page, "phone-pool-workers")


def test_pages_are_readable_without_scripts(
    visit: OpenPage, job: str, portal: RunningPortal
) -> None:
    page = visit(f"/jobs/{job}", java_script_enabled=False)
    page.get_by_label("Stretch").select_option("sqrt")
    page.get_by_role("button", name="Apply").click()
    assert "stretch=sqrt" in page.url
    page.get_by_role("link", name="Resume").click()
    page.get_by_role("link", name="Back").click()
    assert page.url.endswith(job)


def test_signing_in_by_browser(closed: tuple[RunningPortal, str, str], browser: Browser) -> None:
    running, ann, _bob = closed
    page = browser.new_context(viewport=WIDE).new_page()
    page.goto(running.url + "/jobs")
    keep(page, "sign-in")
    page.get_by_label("Token").fill(ann)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/jobs")
    assert page.evaluate("document.cookie") == ""
    assert ann not in page.url
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    page.context.close()


def test_front_page_without_datasets(closed: tuple[RunningPortal, str, str]) -> None:
    running, ann, _bob = closed
    headers = {"Authorization": f"Bearer {ann}"}
    for address in ("/", "/datasets", "/stores", "/jobs", "/new"):  # no admin: no predictions
        answer = httpx.get(running.url + address, headers=headers)
        assert answer.status_code == 200
        checker = read(answer.text)
        assert (checker.faults, checker.open) == ([], []), address


def test_events_of_jobs_are_json(client: httpx.Client, job: str) -> None:
    with client.stream("GET", f"/api/jobs/{job}/events") as answer:
        data = next(line for line in answer.iter_lines() if line.startswith("data: "))
    assert json.loads(data.removeprefix("data: "))["phase"] == "COMPLETED"
