"""Real servers for the tests, each ended by whoever started it."""

from __future__ import annotations

import base64
import functools
import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
USER, PASSWORD, TOKEN = "reader", "pa55w0rd-hush", "t0ken-hush-hush"


@dataclass(frozen=True)
class Request:
    """A line of the access log."""

    method: str
    status: int
    bytes: int
    range: str
    path: str


@dataclass(frozen=True)
class FileServer:
    """A running nginx: `folder` is served as it is, below `/private` by password or token."""

    url: str
    folder: Path
    log: Path

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://")

    def requests(self) -> list[Request]:
        """All requests since the last call."""
        text = self.log.read_text()
        self.log.write_text("")
        made = []
        for line in text.splitlines():
            method, status, count, asked, path = line.split("\t")
            made.append(Request(method, int(status), int(count), asked, path))
        return made


CONFIG = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    log_format line '$request_method\\t$status\\t$body_bytes_sent\\t$http_range\\t$uri';
    access_log {folder}/access.log line;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    open_file_cache off;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/www;
        location /password/ {{
            alias {folder}/www/;
            auth_basic "private";
            auth_basic_user_file {folder}/users;
        }}
        location /token/ {{
            alias {folder}/www/;
            if ($arg_token != "{token}") {{ return 403; }}
        }}
        location /forbidden/ {{ return 403; }}
        location /broken/ {{ return 500; }}
        location /whole/ {{ alias {folder}/www/; max_ranges 0; }}
        location /moved/ {{ rewrite ^/moved/(.*)$ /$1 redirect; }}
    }}
}}
"""


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def nginx(folder: Path) -> Iterator[FileServer]:
    """Run nginx with everything it needs below a folder."""
    (folder / "www").mkdir()
    (folder / "users").write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(CONFIG.format(folder=folder, port=port, token=TOKEN))
    command = [NGINX, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for(port, process)
        server = FileServer(f"http://127.0.0.1:{port}", folder / "www", folder / "access.log")
        server.requests()
        yield server
    finally:
        process.terminate()
        process.communicate(timeout=10)


def wait_for(port: int, process: subprocess.Popen[Any]) -> None:
    """Return once a server listens."""
    limit = time.monotonic() + 10
    while time.monotonic() < limit:
        if process.poll() is not None:
            said = process.stderr.read() if process.stderr else b""
            raise RuntimeError(f"the server ended: {said!r}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise TimeoutError("the server does not listen")


class Proxy:
    """A running proxy: `url` leads through it to the upstream, path included."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    @property
    def host(self) -> str:
        """Host and port."""
        return urllib.parse.urlsplit(self.url).netloc

    def stats(self) -> dict[str, float]:
        """Counts so far; see `tests/proxy/src/stats.rs`."""
        counts: dict[str, float] = json.loads(self._ask("stats"))
        return counts

    def clear(self) -> None:
        """Set the counts to zero."""
        self._ask("clear")

    def set(self, **settings: float) -> None:
        """Change settings for bytes and requests from now on: `set(rtt_ms=20, reset=0.1)`."""
        for name, value in settings.items():
            self._ask(f"set {name.replace('_', '-')} {value}")

    def _ask(self, line: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        said = self.process.stdout.readline().strip()
        if not said or said.startswith("error"):
            raise ValueError(f"{line}: {said or 'the proxy ended'}")
        return said


@functools.cache
def proxy_program() -> Path:
    """The proxy, built once per run."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("cargo, which builds the proxy, is not installed")
    command = [cargo, "build", "--release", "--quiet", "-p", "swathe-test-proxy"]
    command += ["--bin", "swathe-proxy", "--message-format", "json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    found = [message["executable"] for message in messages if message.get("executable")]
    return Path(found[-1])


@contextmanager
def proxy(upstream_url: str, **settings: float) -> Iterator[Proxy]:
    """Run the proxy before a server: `proxy(url, rtt_ms=20, shared_bytes_per_s=10**8, reset=0.1)`.

    The settings are those of `swathe-proxy`, see `tests/proxy/src/main.rs`.
    """
    upstream = urllib.parse.urlsplit(upstream_url)
    command = [str(proxy_program()), "--upstream", upstream.netloc]
    for name, value in settings.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline().split()
        if len(said) != 2:
            raise ValueError(f"the proxy did not start: {command}")
        yield Proxy(process, upstream._replace(netloc=said[1]).geturl())
    finally:
        process.communicate(timeout=10)


@contextmanager
def s3_server() -> Iterator[str]:
    """Run moto's S3 server; gives its URL."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def put(url: str, content: bytes = b"") -> None:
    """Make a bucket or an object, with plain HTTP."""
    key = base64.b64encode(b"test").decode()
    headers = {"Authorization": f"AWS test:{key}", "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url, data=content, method="PUT", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200
