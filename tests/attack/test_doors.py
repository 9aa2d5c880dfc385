"""Attacks at the doors of a portal: places, connections, headers, and what strangers are told."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from astropy.table import Table
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from swathe.catalog import Catalog
from swathe.core.errors import CatalogError, OutputError
from swathe.files.manifest import FORMULA
from swathe.files.targets.result_names import unique_names
from swathe.portal.config import config_of
from swathe.portal.http import connections
from swathe.portal.http.connections import with_limits
from swathe.portal.http_errors import text_of
from tests.support.attacked_portal import AttackTarget, attacked
from tests.support.portals import (
    SECOND_S,
    add_survey,
    database_in,
    finished,
    served,
    submitted,
    wait_until,
)

LIMITS = """
[limits]
streams = 8
downloads = 8
uploads = 4
header_s = 1.0
"""
"""One user has two streams, two downloads and one upload."""
SECURITY = (
    "x-content-type-options",
    "content-security-policy",
    "x-frame-options",
    "referrer-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
)


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackTarget]:
    with attacked(tmp_path_factory.mktemp("doors"), settings=LIMITS) as running:
        yield running


@contextmanager
def api(portal: AttackTarget, user: str | None) -> Iterator[httpx.Client]:
    """Give a client of the REST interface."""
    with portal.client(user) as client:
        client.base_url = client.base_url.join("/api")
        yield client


@pytest.fixture(scope="module")
def ann(portal: AttackTarget) -> Iterator[httpx.Client]:
    with api(portal, "ann") as client:
        yield client


@pytest.fixture(scope="module")
def job(portal: AttackTarget, ann: httpx.Client) -> dict[str, Any]:
    return finished(ann, submitted(ann, portal.targets(3))["id"])


def waiting(client: httpx.Client, portal: AttackTarget) -> str:
    """Submit a job that is not started, and return its id."""
    return str(submitted(client, portal.targets(2), start=False)["id"])


# ---- Shares (M4)


def test_one_user_leaves_streams_to_others(
    portal: AttackTarget, ann: httpx.Client, job: Any
) -> None:
    with api(portal, "bob") as bob, ExitStack() as stack:
        events = [f"/jobs/{waiting(each, portal)}/events" for each in (ann, bob)]
        opened = [stack.enter_context(ann.stream("GET", events[0])) for _ in range(6)]
        assert [answer.status_code for answer in opened] == [200, 200, 429, 429, 429, 429]
        assert opened[2].headers["retry-after"] == "5"
        assert stack.enter_context(bob.stream("GET", events[1])).status_code == 200
        # Files and archives have places of their own.
        name = ann.get(f"/jobs/{job['id']}/rows").json()["rows"][0]["name"]
        assert ann.get(f"/jobs/{job['id']}/files/{name}").status_code == 200
        assert ann.get(f"/jobs/{job['id']}/archive.zip").status_code == 200
        assert ann.get(f"/jobs/{job['id']}/manifest").status_code == 429
    wait_until(lambda: ann.get(f"/jobs/{job['id']}/manifest").status_code == 200)


def test_one_user_leaves_uploads_to_others(portal: AttackTarget) -> None:
    def begin(user: str) -> socket.socket:
        """Send all of an upload but its end."""
        host, _, port = portal.served.host.partition(":")
        connection = socket.create_connection((host, int(port)), timeout=30)
        connection.sendall(
            f"POST /api/estimate HTTP/1.1\r\nHost: {portal.served.host}\r\n"
            f"Authorization: Bearer {portal.tokens[user]}\r\nContent-Type: application/json\r\n"
            "Content-Length: 100000\r\n\r\n".encode()
        )
        return connection

    with api(portal, "ann") as client:
        client.get("/about")  # its token is known now
    with begin("ann"), begin("ann") as second:
        assert second.recv(1000).startswith(b"HTTP/1.1 429 ")
        with api(portal, "bob") as bob:
            bob.get("/about")
            content = b" " * 100_000
            answer = bob.post(
                "/estimate", content=content, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == 422


def test_a_body_that_is_refused_is_read_on(portal: AttackTarget) -> None:
    # Else a proxy that sends on finds its connection closed, and answers 502 of its own.
    host, _, port = portal.served.host.partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(
            f"POST /api/jobs HTTP/1.1\r\nHost: {portal.served.host}\r\n"
            f"Authorization: Bearer {portal.tokens['ann']}\r\nContent-Type: application/json\r\n"
            "Content-Length: 33000000\r\n\r\n".encode()
        )
        time.sleep(0.5)  # the answer is there now
        for _ in range(33):
            connection.sendall(b" " * 1_000_000)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"the request body: expected" in answer


# ---- Event streams (M6)


def test_a_revoked_token_ends_its_streams(portal: AttackTarget) -> None:
    with Catalog.open(database_in(portal.served.folder)) as catalog:
        token, _ = catalog.add_token("una", ["read", "submit"])
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{portal.served.url}/api"
        with httpx.Client(base_url=url, headers=headers, timeout=SECOND_S) as una:
            job = waiting(una, portal)
            with una.stream("GET", f"/jobs/{job}/events") as events:
                lines = events.iter_lines()
                assert any("event: job" in line for line in lines)
                catalog.revoke_tokens("una")
                wait_until(lambda: una.get("/about").status_code == 401)
                with api(portal, "root") as root:
                    answer = root.patch(f"/jobs/{job}", json={"name": "after the revocation"})
                    assert answer.status_code == 200
                assert "after the revocation" not in "".join(lines)  # and it ends


def test_a_stream_has_a_lifetime(tmp_path: Path) -> None:
    with (
        attacked(tmp_path, settings="\n[limits]\nstream_s = 0.5\n") as portal,
        api(portal, "ann") as ann,
    ):
        job = waiting(ann, portal)
        for _ in range(2):  # who connects again is told all
            text = ann.get(f"/jobs/{job}/events").text
            assert text.startswith("retry: ") and f'"id":"{job}"' in text


# ---- Connections (M5)

PROTOCOLS = pytest.mark.parametrize("protocol", [HttpToolsProtocol, H11Protocol])


async def read_all(scope: Any, receive: Any, send: Any) -> None:
    """Answer when all of a body has come."""
    request = Request(scope, receive)
    with contextlib.suppress(Exception):
        await request.body()
    await PlainTextResponse("done")(scope, receive, send)


@contextmanager
def watching(protocol: type[Any], **limits: float) -> Iterator[int]:
    """Run a server whose connections are watched; gives its port."""
    config = config_of({"limits": limits})
    server = uvicorn.Server(
        uvicorn.Config(
            read_all,
            http=with_limits(protocol, config),
            ws="none",
            lifespan="off",
            log_level="error",
        )
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def all_of(connection: socket.socket) -> bytes:
    """Read an answer until the connection ends."""
    answer = b""
    while part := connection.recv(65536):
        answer += part
    return answer


@PROTOCOLS
@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "])
def test_a_header_that_does_not_come_ends_the_connection(protocol: type[Any], begin: bytes) -> None:
    whole = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    with watching(protocol, header_s=0.3) as port:
        for before in (b"", whole):
            with socket.create_connection(("127.0.0.1", port), timeout=SECOND_S) as connection:
                connection.sendall(before)
                if before:
                    assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
                connection.sendall(begin)
                answer = all_of(connection)
            # uvicorn itself ends, and without a word, what is silent after an answer.
            assert (b"HTTP/1.1 408" in answer) == (not before or bool(begin)), answer


@PROTOCOLS
def test_bytes_now_and_then_do_not_hold_a_connection(protocol: type[Any]) -> None:
    with (
        watching(protocol, header_s=0.5) as port,
        socket.create_connection(("127.0.0.1", port), timeout=SECOND_S) as connection,
    ):
        connection.sendall(b"GET / HTTP/1.1\r\n")
        connection.settimeout(0.1)
        answer = b""
        while not answer:
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(1000)
            with contextlib.suppress(OSError):
                connection.sendall(b"X-A: b\r\n")
        assert answer.startswith(b"HTTP/1.1 408")


@PROTOCOLS
def test_a_slow_body_ends_its_request(protocol: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BODY_S", 1.0)
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
    with watching(protocol) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=SECOND_S) as connection:
            connection.sendall(head + b"few")
            assert all_of(connection).startswith(b"HTTP/1.1 408")
        with socket.create_connection(("127.0.0.1", port), timeout=SECOND_S) as connection:
            connection.sendall(head)
            for _ in range(5):  # slow but steady
                threading.Event().wait(0.3)
                connection.sendall(b" " * 20_000)
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")


@PROTOCOLS
def test_a_client_that_reads_nothing_is_left(
    protocol: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SEND_S", 0.3)
    ended = threading.Event()

    async def send_much(scope: Any, receive: Any, send: Any) -> None:
        try:
            await PlainTextResponse(b" " * 50_000_000)(scope, receive, send)
        finally:
            ended.set()

    monkeypatch.setitem(globals(), "read_all", send_much)
    with (
        watching(protocol) as port,
        socket.create_connection(("127.0.0.1", port), timeout=SECOND_S) as connection,
    ):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert ended.wait(SECOND_S)
        connection.settimeout(SECOND_S)
        size = 0
        with contextlib.suppress(ConnectionResetError):
            size = len(all_of(connection))
        assert size < 50_000_000


@PROTOCOLS
def test_one_address_leaves_connections_to_others(protocol: type[Any]) -> None:
    with watching(protocol, connections=8) as port, ExitStack() as stack:

        def connected(source: str) -> socket.socket:
            return stack.enter_context(
                socket.create_connection(
                    ("127.0.0.1", port), timeout=SECOND_S, source_address=(source, 0)
                )
            )

        for _ in range(2):
            connected("127.0.0.1")
        assert all_of(connected("127.0.0.1")).startswith(b"HTTP/1.1 429 ")
        other = connected("127.0.0.2")
        other.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert other.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_proxies_are_believed_only_where_they_are_named(tmp_path: Path) -> None:
    settings = '\n[server]\nproxies = ["127.0.0.1"]\n[limits]\nstreams = 4\n'
    with attacked(tmp_path, settings=settings) as portal, api(portal, "ann") as ann:
        # Of one share per address; `ann` is known by a token, so that hers is her own.
        job = waiting(ann, portal)
        with ann.stream("GET", f"/jobs/{job}/events") as first:
            assert first.status_code == 200
            again = ann.get(f"/jobs/{job}", params={"wait": 1})
            assert again.status_code == 429


# ---- Headers (L3, L4)


def test_every_answer_has_headers_of_security(
    portal: AttackTarget, ann: httpx.Client, job: Any
) -> None:
    name = ann.get(f"/jobs/{job['id']}/rows").json()["rows"][0]["name"]
    paths = ["/api/about", f"/api/jobs/{job['id']}/manifest", f"/api/jobs/{job['id']}/files/{name}"]
    paths += [f"/api/jobs/{job['id']}/archive.zip", "/api/none", "/none", "/", "/sign-in", "/vo"]
    paths += ["/vo/capabilities", "/vo/sync", "/vo/none", "/static/swathe.css", "/static/none"]
    paths += ["/favicon.ico", "/api/openapi.json", "/vo/async", "/api/jobs?last=x"]
    answers = [ann.get(portal.served.url + path) for path in paths]
    answers += [ann.request("PUT", portal.served.url + path) for path in ("/", "/vo", "/api/about")]
    answers.append(httpx.get(f"{portal.served.url}/api/about"))
    answers.append(ann.get("/about", headers={"Host": "elsewhere.example"}))
    answers.append(ann.post("/jobs", headers={"Origin": "https://elsewhere.example"}))
    assert {answer.status_code for answer in answers} >= {200, 400, 401, 403, 404, 405, 422}
    for answer in answers:
        for header in SECURITY:
            assert len(answer.headers.get_list(header)) == 1, (answer.url, header)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    refused = portal.send(b"this is no HTTP\r\n\r\n").lower()
    assert all(header.encode() in refused for header in SECURITY)


@pytest.mark.parametrize("second", ["", "elsewhere.example"])
def test_two_hosts_are_refused(portal: AttackTarget, second: str) -> None:
    host = portal.served.host
    head = f"GET /vo/capabilities HTTP/1.1\r\nHost: {host}\r\nHost: {second or host}\r\n"
    assert portal.send(f"{head}Connection: close\r\n\r\n".encode()).startswith(b"HTTP/1.1 400 ")


# ---- Names and cells (L6)


@pytest.mark.parametrize("name", ["con", "NUL", "aux.txt", "Com1", "lpt9.tar.gz", "PRN"])
def test_names_of_devices_are_no_names_of_results(name: str) -> None:
    (result,) = unique_names([name])
    assert result == f"_{name}"
    assert unique_names(["console", "auxiliary", "com10"]) == ["console", "auxiliary", "com10"]


def test_letters_lose_accents_not_themselves() -> None:
    names = unique_names(
        ["naïve star 0/..", "naive star 0/..", "Ångström", "\U0001d41c\U0001d428\U0001d427", "日"]
    )
    assert names == ["naive_star_0_..", "naive_star_0_..-2", "Angstrom", "_con", "_"]


def test_spreadsheets_are_given_no_formulas(portal: AttackTarget, ann: httpx.Client) -> None:
    ids = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", 'a"b,c', "plain", "two\nlines"]
    ids += ["a;=1+1", "a;\t-1", 'a"\n=1+1']
    targets = portal.targets(len(ids))
    ended = finished(ann, submitted(ann, {**targets, "id": ids})["id"])
    answer = ann.get(f"/jobs/{ended['id']}/manifest.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [re.sub(r"(^|[;\t\n])'+", r"\1", row["id"]) for row in rows] == ids
    # However a spreadsheet divides the lines.
    for mark in ";\t,":
        parts = re.split(f"[{mark}\r\n]", answer.text)
        assert not [part for part in parts if part.startswith(FORMULA)]
    assert not [cell for row in rows for cell in row.values() if cell.startswith(FORMULA)]
    # Programs read the ids as they are.
    exact = Table.read(ann.get(f"/jobs/{ended['id']}/manifest").text, format="ascii.ecsv")
    assert exact["id"].tolist() == ids


# ---- What strangers are told (trial 35, 36; L9, L10)


def test_paths_of_the_disk_are_for_admins(portal: AttackTarget, ann: httpx.Client) -> None:
    disk = str(portal.served.folder)
    paths = ["/api/stores", "/api/stores/survey", "/stores", "/stores/survey", "/pool", "/api/pool"]
    with portal.client("root") as root:
        for path in paths:
            assert disk not in ann.get(portal.served.url + path).text, path
        assert all(disk in root.get(path).text for path in paths[:4])
    root_of_store = ann.post(
        "/estimate", json={"targets": {"file": ["survey:."], "x0": [0], "y0": [0], "width": [1]}}
    )
    assert disk not in root_of_store.text


def test_open_portals_show_no_paths(tmp_path: Path) -> None:
    add_survey(tmp_path)
    settings = (
        '\n[server]\nhost = "0.0.0.0"\n[access]\nopen = true\n[vo]\nauthority = "a.example"\n'
    )
    with served(tmp_path, settings) as portal:
        for path in ("/api/stores", "/stores", "/stores/survey"):
            answer = httpx.get(portal.url + path)
            assert answer.status_code == 200
            assert str(tmp_path) not in answer.text


def test_errors_tell_the_last_part_of_a_path() -> None:
    error = OutputError("/srv/portal/results/ab/0000/x.fits: No space left on device")
    assert text_of(error) == "x.fits: No space left on device"
    assert text_of(CatalogError("sqlite:////srv/a/b.sqlite: locked")).count("/srv/a") == 0


def test_predictions_are_for_admins(portal: AttackTarget, ann: httpx.Client, job: Any) -> None:
    for path in ("/api/predictions", "/predictions", "/predictions/plots.json"):
        assert ann.get(portal.served.url + path).status_code == 403
        with portal.client("root") as root:
            assert root.get(path).status_code == 200
    assert ann.get("/pool").json()["held"] == []
    assert "/predictions" not in ann.get(f"{portal.served.url}/jobs").text


def test_cookies_of_https_are_tied_to_their_host(tmp_path: Path) -> None:
    settings = '\n[server]\nurl = "https://archive.example"\n'
    with (
        attacked(tmp_path, settings=settings) as portal,
        httpx.Client(
            base_url=portal.served.url, headers={"Host": "archive.example"}, timeout=SECOND_S
        ) as browser,
    ):
        answer = browser.post("/sign-in", data={"token": portal.tokens["ann"], "next": "/"})
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-swathe-token=")
        assert "Secure" in cookie and "Path=/" in cookie and "Domain" not in cookie
        pair = cookie.partition(";")[0]
        for given, status in ((pair, 200), (pair.removeprefix("__Host-"), 401)):
            headers = {"Cookie": given}
            assert browser.get("/api/about", headers=headers).status_code == status


def test_signing_in_on_a_shared_address_warns(portal: AttackTarget) -> None:
    assert "to every port" in httpx.get(f"{portal.served.url}/sign-in").text


def test_a_file_of_a_store_is_no_identifier_but_told(portal: AttackTarget) -> None:
    with portal.client("ann") as ann:
        answer = ann.get("/vo/sync", params={"ID": "survey:frame-000001.fit", "SUB": "[1:2,1:2]"})
    assert answer.status_code == 404
    assert "write ivo://swathe.invalid/DATASET?frame-000001.fit,0" in answer.text


# ---- Locks (L8)


def test_a_locked_catalogue_is_told_while_it_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    with Catalog.open(f"sqlite:///{path}"):
        pass
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        process = subprocess.Popen(
            [sys.executable, "-m", "swathe.cli", "store", "add", "survey", str(tmp_path)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "SWATHE_DATABASE": f"sqlite:///{path}"},
        )
        assert process.stderr is not None
        assert "another process writes to it" in process.stderr.readline()
        holder.execute("ROLLBACK")
        assert process.communicate(timeout=SECOND_S)[1] == ""
    assert process.returncode == 0


# ---- For those who run it (trial M13)


def test_health_is_told_to_everybody_without_secrets(portal: AttackTarget) -> None:
    answer = httpx.get(f"{portal.served.url}/healthz")
    assert answer.status_code == 200
    assert answer.json() == {"healthy": True, "database": "ok", "pool": "ok", "disk": "ok"}


def test_a_portal_in_trouble_is_not_healthy(tmp_path: Path) -> None:
    with attacked(tmp_path) as portal:
        path = portal.served.folder / "portal.sqlite"
        (tmp_path / "results").rename(tmp_path / "elsewhere")
        answer = httpx.get(f"{portal.served.url}/healthz")
        assert (answer.status_code, answer.json()["disk"]) == (503, "trouble")
        assert str(path.parent) not in answer.text
        (tmp_path / "elsewhere").rename(tmp_path / "results")
        assert httpx.get(f"{portal.served.url}/healthz").status_code == 200


def test_metrics_are_for_admins(portal: AttackTarget, ann: httpx.Client, job: Any) -> None:
    url = f"{portal.served.url}/metrics"
    assert [httpx.get(url).status_code, ann.get(url).status_code] == [401, 403]
    pending = waiting(ann, portal)
    with portal.client("root") as root, ann.stream("GET", f"/jobs/{pending}/events"):
        text = root.get("/metrics").text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert int(values['swathe_rows{status="ok"}']) >= job["rows"]
    assert int(values['swathe_jobs{phase="COMPLETED"}']) >= 1
    assert int(values["swathe_result_bytes"]) >= job["bytes"] > 0
    assert {"swathe_removal_jobs", "swathe_removal_bytes"} <= set(values)
    assert values['swathe_places{kind="streams"}'] == "1"
    assert values['swathe_up{part="database"}'] == "1"
    assert int(values['swathe_requests_total{status="4xx"}']) >= 2
    assert int(values["process_resident_memory_bytes"]) > 10_000_000


@pytest.mark.parametrize("form", ["true", '"json"'])
def test_the_access_log_tells_no_secrets(tmp_path: Path, form: str) -> None:
    settings = f"\n[server]\naccess_log = {form}\n"
    with attacked(tmp_path, settings=settings) as portal, api(portal, "ann") as ann:
        ann.get("/about", params={"token": "the-query"})
        ann.get("/jobs/a%0Ab")
        token = portal.tokens["ann"]
        log = portal.served.folder / "portal.log"
        wait_until(lambda: "/api/jobs/a" in log.read_text())
        lines = log.read_text().splitlines()
    if form == "true":
        assert any(" 127.0.0.1 GET /api/about 200 " in line for line in lines)
        assert any("GET /api/jobs/a%0Ab 404 " in line for line in lines)
    else:
        first = json.loads(lines[0])
        assert (first["path"], first["user"], first["status"]) == ("/api/about", "ann", 200)
        assert json.loads(lines[1])["path"] == "/api/jobs/a%0Ab"
    assert token not in "".join(lines) and "the-query" not in "".join(lines)
