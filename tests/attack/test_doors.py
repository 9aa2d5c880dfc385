"""Attacks at the doors of a portal: places, connections, headers, and what strangers are told."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from attacked import Attacked, attacked
from portals import SECOND_S, database_in, finished, submitted, wait_until
from swathe.catalog import Catalog
from swathe.portal import connections
from swathe.portal.config import config_of
from swathe.portal.connections import watched

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
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with attacked(tmp_path_factory.mktemp("doors"), settings=LIMITS) as running:
        yield running


@contextmanager
def api(portal: Attacked, user: str | None) -> Iterator[httpx.Client]:
    """Give a client of the REST interface."""
    with portal.client(user) as client:
        client.base_url = client.base_url.join("/api")
        yield client


@pytest.fixture(scope="module")
def ann(portal: Attacked) -> Iterator[httpx.Client]:
    with api(portal, "ann") as client:
        yield client


@pytest.fixture(scope="module")
def job(portal: Attacked, ann: httpx.Client) -> dict[str, Any]:
    return finished(ann, submitted(ann, portal.targets(3))["id"])


def waiting(client: httpx.Client, portal: Attacked) -> str:
    """Submit a job that is not started, and return its id."""
    return str(submitted(client, portal.targets(2), start=False)["id"])


# ---- Shares (M4)


def test_one_user_leaves_streams_to_others(portal: Attacked, ann: httpx.Client, job: Any) -> None:
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


def test_one_user_leaves_uploads_to_others(portal: Attacked) -> None:
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


# ---- Event streams (M6)


def test_a_revoked_token_ends_its_streams(portal: Attacked) -> None:
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
            read_all, http=watched(protocol, config), ws="none", lifespan="off", log_level="error"
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
    monkeypatch.setattr(connections, "BODY_S", 0.3)
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
    with watching(protocol) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=SECOND_S) as connection:
            connection.sendall(head + b"few")
            assert all_of(connection).startswith(b"HTTP/1.1 408")
        with socket.create_connection(("127.0.0.1", port), timeout=SECOND_S) as connection:
            connection.sendall(head)
            for _ in range(10):  # slow but steady
                threading.Event().wait(0.1)
                connection.sendall(b" " * 10_000)
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
    portal: Attacked, ann: httpx.Client, job: Any
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
def test_two_hosts_are_refused(portal: Attacked, second: str) -> None:
    host = portal.served.host
    head = f"GET /vo/capabilities HTTP/1.1\r\nHost: {host}\r\nHost: {second or host}\r\n"
    assert portal.send(f"{head}Connection: close\r\n\r\n".encode()).startswith(b"HTTP/1.1 400 ")
