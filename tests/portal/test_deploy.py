"""The proxies of `deploy/`, with TLS before a real portal."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.support.attacked_portal import AttackTarget, attacked
from tests.support.portals import SECOND_S, finished, submitted, wait_until
from tests.support.servers import NGINX, free_port, run_server

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = "archive.example"
WHOLE = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {server}
}}
"""


@dataclass
class Proxied:
    """A portal behind a proxy with TLS."""

    portal: AttackTarget
    port: int
    context: ssl.SSLContext

    def client(self, user: str) -> httpx.Client:
        """Return a client of the proxy that sends the token of a user."""
        headers = {"Authorization": f"Bearer {self.portal.tokens[user]}", "Host": NAME}
        url = f"https://127.0.0.1:{self.port}"
        return httpx.Client(base_url=url, headers=headers, verify=self.context, timeout=SECOND_S)

    def connect(self) -> ssl.SSLSocket:
        """Return a connection by TLS."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=SECOND_S)
        return self.context.wrap_socket(plain, server_hostname=NAME)


def certify(folder: Path) -> ssl.SSLContext:
    """Make a certificate in a folder, and return what trusts it."""
    names = f"subjectAltName=DNS:{NAME},IP:127.0.0.1"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", f"/CN={NAME}", "-addext", names]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run([*command, *files], check=True, capture_output=True)
    return ssl.create_default_context(cafile=str(folder / "certificate.pem"))


def nginx_command(folder: Path, port: int, portal: str) -> list[str]:
    """Write the settings of nginx: those of `deploy/` with other addresses and files."""
    server = (DEPLOY / "nginx.conf").read_text()
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/certs/archive.example.pem", f"{folder}/certificate.pem"),
        ("/etc/ssl/private/archive.example.key", f"{folder}/key.pem"),
        ("127.0.0.1:8420", portal),
        ("_timeout 10s", "_timeout 1s"),
    ):
        assert old in server
        server = server.replace(old, new)
    path = folder / "nginx.conf"
    path.write_text(WHOLE.format(folder=folder, server=server))
    return [NGINX, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(path)]


def caddy_command(folder: Path, port: int, portal: str) -> list[str]:
    """Write the settings of Caddy: those of `deploy/` with other addresses and files."""
    settings = (DEPLOY / "Caddyfile").read_text()
    for old, new in (
        ("{\n\tservers", "{\n\tadmin off\n\tauto_https off\n\tservers"),
        (
            f"\n{NAME} {{\n",
            f"\nhttps://{NAME}:{port} {{\n\tbind 127.0.0.1\n"
            f"\ttls {folder}/certificate.pem {folder}/key.pem\n",
        ),
        ("127.0.0.1:8420", portal),
        ("read_header 10s", "read_header 1s"),
        ("read_body 60s", "read_body 2s"),
    ):
        assert old in settings
        settings = settings.replace(old, new)
    path = folder / "Caddyfile"
    path.write_text(settings)
    return ["caddy", "run", "--config", str(path), "--adapter", "caddyfile"]


PROXIES = {"nginx": (NGINX, nginx_command), "caddy": ("caddy", caddy_command)}


@pytest.fixture(scope="module", params=PROXIES)
def proxied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    program, command = PROXIES[request.param]
    if shutil.which(program) is None:
        pytest.skip(f"{request.param} is not installed")
    folder = tmp_path_factory.mktemp("proxied")
    context = certify(folder)
    settings = f'\n[server]\nurl = "https://{NAME}"\nproxies = ["127.0.0.1"]\naccess_log = true\n'
    with attacked(tmp_path_factory.mktemp("portal"), settings=settings) as portal:
        port = free_port()
        with run_server(command(folder, port, portal.served.host), folder, port):
            yield Proxied(portal, port, context)


@contextmanager
def api(proxied: Proxied) -> Iterator[httpx.Client]:
    """Give a client of the REST interface behind the proxy."""
    with proxied.client("ann") as client:
        client.base_url = client.base_url.join("/api")
        yield client


def test_all_goes_through_a_proxy(proxied: Proxied) -> None:
    with api(proxied) as client:
        job = submitted(client, proxied.portal.targets(5))
        with client.stream("GET", f"/jobs/{job['id']}/events") as events:
            data = [line for line in events.iter_lines() if line.startswith("data: ")]
        assert json.loads(data[-1].removeprefix("data: "))["phase"] == "COMPLETED"
        ended = finished(client, job["id"])
        assert ended["counts"]["ok"] == 5
        name = client.get(f"/jobs/{job['id']}/rows").json()["rows"][0]["name"]
        part = client.get(f"/jobs/{job['id']}/files/{name}", headers={"Range": "bytes=0-5"})
        assert (part.status_code, part.content) == (206, b"SIMPLE")
        assert client.get(f"/jobs/{job['id']}/archive.zip").content.startswith(b"PK")
        table = (proxied.portal.served.folder / "targets.csv").read_bytes()
        answer = client.post("/estimate", files={"targets": ("targets.csv", table)})
        assert answer.status_code == 200
    with proxied.client("ann") as client:
        page = client.get("/jobs")
        assert page.status_code == 200
        assert len(page.headers.get_list("content-security-policy")) == 1
        assert "max-age" in page.headers["strict-transport-security"]
        answer = client.post("/sign-in", data={"token": proxied.portal.tokens["ann"]})
        assert answer.headers["set-cookie"].startswith("__Host-swathe-token=")


def test_nobody_tells_another_address_through_a_proxy(proxied: Proxied) -> None:
    with api(proxied) as client:
        headers = {"X-Forwarded-For": "203.0.113.9", "X-Request-Id": "of-somebody-else"}
        answer = client.get("/about", headers=headers)
    # The proxy gives the request an id, which the portal takes over.
    name = answer.headers["x-request-id"]
    log = proxied.portal.served.folder / "portal.log"
    wait_until(lambda: name in log.read_text())
    assert "203.0.113.9" not in log.read_text() and name != "of-somebody-else"


def test_large_bodies_end_at_a_proxy(proxied: Proxied) -> None:
    with api(proxied) as client, contextlib.suppress(httpx.WriteError, httpx.ReadError):
        answer = client.post(
            "/jobs", content=b" " * 33_000_000, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 413


@pytest.mark.parametrize("part", ["header", "body"])
def test_who_sends_slowly_is_left_by_a_proxy(proxied: Proxied, part: str) -> None:
    head = f"POST /api/estimate HTTP/1.1\r\nHost: {NAME}\r\n"
    if part == "body":
        head += f"Authorization: Bearer {proxied.portal.tokens['ann']}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    with proxied.connect() as connection:
        connection.sendall(head.encode())
        connection.settimeout(SECOND_S)
        with contextlib.suppress(ConnectionResetError, ssl.SSLError):
            while connection.recv(65536):
                pass  # until it ends, or the time is over, which fails
