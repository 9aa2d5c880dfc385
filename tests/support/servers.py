"""Real servers for the tests, each ended by whoever started it."""

from __future__ import annotations

import base64
import contextlib
import functools
import http.client
import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
USER, PASSWORD, TOKEN = "reader", "pa55w0rd-hush", "t0ken-hush-hush"
S3_KEY_ID, S3_SECRET = "test-key-id", "test-secret-hush"
END_S = 120
"""How long a server may take to begin, or to end."""


@dataclass(frozen=True)
class Request:
    """A line of the access log."""

    method: str
    status: int
    bytes: int
    range: str
    path: str


@dataclass
class FileServer:
    """A running nginx: `folder` is served as it is, below `/private` by password or token."""

    url: str
    folder: Path
    log: Path
    told: int = 0

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://")

    def requests(self) -> list[Request]:
        """All requests since the last call.

        nginx logs a request after it was answered, so that the last may be missing: one more is
        made, and what stands before it is all.
        """
        mark = f"/mark-{uuid.uuid4().hex}"
        ask = http.client.HTTPConnection(self.host, timeout=120)
        with contextlib.closing(ask):
            ask.request("HEAD", mark)
            ask.getresponse().read()
        until = time.monotonic() + 120
        while (end := (text := self.log.read_text()).find(f"{mark}\n")) < 0:
            assert time.monotonic() < until, f"{self.log}: no line for {mark}"
            time.sleep(0.005)
        lines = text[self.told : text.rfind("\n", 0, end) + 1].splitlines()
        self.told = text.index("\n", end) + 1
        parsed = []
        for line in lines:
            method, status, count, text_range, path = line.split("\t")
            parsed.append(Request(method, int(status), int(count), text_range, path))
        return parsed


CONFIG = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
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
        listen {host}:{port};
        {locations}
    }}
}}
"""

FILES = """
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
        location /html/ {{ alias {folder}/www/; autoindex on; }}
        location /json/ {{ alias {folder}/www/; autoindex on; autoindex_format json; }}
        location /moved/ {{ rewrite ^/moved/(.*)$ /$1 redirect; }}
        location /dav/ {{
            alias {folder}/www/;
            dav_methods PUT DELETE MKCOL MOVE;
            client_max_body_size 0;
            autoindex on;
            autoindex_format json;
        }}
        location /copying/ {{
            alias {folder}/www/;
            dav_methods PUT DELETE MKCOL COPY MOVE;
            client_max_body_size 0;
            autoindex on;
            autoindex_format json;
        }}
        location /unnamed/ {{
            alias {folder}/www/;
            dav_methods PUT DELETE MKCOL;
            autoindex on;
            autoindex_format json;
        }}
"""

# As XRootD does: the token in the header, or in the URL as `?authz=Bearer%20TOKEN`.
# nginx passes names of headers on as they come; XRootD 5.5 knows `Range`, not `range`.
GUARD = """
        location / {{
            client_max_body_size 0;
            set $shown $http_authorization;
            if ($arg_authz) {{ set $shown $arg_authz; }}
            if ($shown = "") {{ return 401; }}
            if ($shown !~ "^Bearer( |%20){token}$") {{ return 403; }}
            proxy_pass {upstream_url};
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Authorization "";
            proxy_set_header Range $http_range;
        }}
"""


PORTS = range(10_000, 30_000)
"""None that the system gives to whoever asks for any: else one of these may have it by then."""
_given: set[int] = set()


def free_port() -> int:
    """A port nobody listens on; each is given once."""
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            if port not in _given:
                probe.bind(("", port))
                _given.add(port)
                return port


@contextmanager
def nginx(folder: Path, host: str = "127.0.0.1") -> Iterator[FileServer]:
    """Run nginx with everything it needs below a folder, for who reaches it by an address."""
    (folder / "www").mkdir()
    (folder / "users").write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
    with _nginx(folder, FILES.format(folder=folder, token=TOKEN), host) as url:
        server = FileServer(url, folder / "www", folder / "access.log")
        server.requests()
        yield server


@contextmanager
def guard(upstream_url: str, token: str) -> Iterator[str]:
    """Run an nginx that lets requests with a bearer token through to a server; gives its URL."""
    with tempfile.TemporaryDirectory(prefix="swathe-test-guard-") as name:
        locations = GUARD.format(upstream_url=upstream_url, token=token)
        with _nginx(Path(name), locations) as url:
            yield url


@contextmanager
def _nginx(folder: Path, locations: str, host: str = "127.0.0.1") -> Iterator[str]:
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(CONFIG.format(folder=folder, host=host, port=port, locations=locations))
    command = [NGINX, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)]
    with run_server(command, folder, port):
        yield f"http://127.0.0.1:{port}"


APACHE_CONFIG = """\
ServerRoot {place}
ServerName 127.0.0.1
PidFile {place}/apache.pid
ErrorLog {place}/error.log
Listen 127.0.0.1:{port}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
DocumentRoot {folder}
"""
APACHE_DAV = """\
LoadModule dav_module {modules}/mod_dav.so
LoadModule dav_fs_module {modules}/mod_dav_fs.so
DAVLockDB {place}/locks
<Directory {folder}>
  Dav On
</Directory>
"""


@contextmanager
def apache(folder: Path, dav: bool = False) -> Iterator[str]:
    """Run Apache 2.4 over a folder, with WebDAV or without; gives its URL.

    Answers with many ranges have no length. WebDAV's files belong to the user `daemon`.
    """
    program = shutil.which("apache2", path="/usr/sbin:/usr/bin")
    if program is None:
        pytest.skip("apache2-bin is not installed")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="swathe-test-apache-") as name:
        place = Path(name)
        config = place / "apache.conf"
        modules = "/usr/lib/apache2/modules"
        text = APACHE_CONFIG + (APACHE_DAV if dav else "")
        text = text.format(place=place, folder=folder, port=port, modules=modules)
        config.write_text(text)
        with run_server([program, "-D", "FOREGROUND", "-f", str(config)], place, port):
            yield f"http://127.0.0.1:{port}"


@contextmanager
def caddy(folder: Path) -> Iterator[str]:
    """Run Caddy over a folder; gives its URL."""
    program = shutil.which("caddy")
    if program is None:
        pytest.skip("caddy is not installed")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="swathe-test-caddy-") as name:
        listen = f"127.0.0.1:{port}"
        # `caddy file-server` takes about 14 kB of headers, more or less by chance; a server 1 MB.
        config = Path(name) / "Caddyfile"
        config.write_text(
            "{\n admin off\n auto_https off\n}\n"
            f"http://{listen} {{\n root * {folder}\n file_server\n}}\n"
        )
        command = [program, "run", "--adapter", "caddyfile", "--config", str(config)]
        with run_server(command, Path(name), port):
            yield f"http://{listen}"


@contextmanager
def run_server(command: list[str], folder: Path, *ports: int) -> Iterator[None]:
    """Run a server until the end of the block; what it says goes into a file of the folder."""
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
    try:
        for port in ports:
            wait_for(port, process, log)
        yield
    finally:
        process.terminate()
        process.wait(timeout=END_S)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return once a server listens."""
    limit = time.monotonic() + END_S
    while time.monotonic() < limit:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {log.read_text()[-2000:]}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise TimeoutError("the server does not listen")


class Proxy:
    """A running proxy: `url` leads through it to `upstream_url`, path included."""

    def __init__(self, process: subprocess.Popen[str], url: str, upstream_url: str) -> None:
        self.process = process
        self.url = url
        self.upstream_url = upstream_url

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

    def act_after(self, count: float, act: Callable[[], object]) -> threading.Thread:
        """Clear the counts, and call `act` in a thread once the link has carried `count` bytes."""

        def watch() -> None:
            until = time.monotonic() + 120
            while self.stats()["bytes_down"] < count:
                assert time.monotonic() < until, "too little was read"
                time.sleep(0.005)
            act()

        self.clear()
        thread = threading.Thread(target=watch)
        thread.start()
        return thread

    def _ask(self, line: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise ValueError(f"{line}: {answer or 'the proxy ended'}")
        return answer


@functools.cache
def proxy_program() -> Path:
    """The proxy, built once per run."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("cargo, which builds the proxy, is not installed")
    command = [cargo, "build", "--release", "--quiet", "-p", "swathe-test-proxy"]
    command += ["--bin", "swathe-proxy", "--message-format", "json"]
    build = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in build.stdout.splitlines()]
    programs = [message["executable"] for message in messages if message.get("executable")]
    return Path(programs[-1])


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
        words = process.stdout.readline().split()
        if len(words) != 2:
            raise ValueError(f"the proxy did not start: {command}")
        yield Proxy(process, upstream._replace(netloc=words[1]).geturl(), upstream_url)
    finally:
        process.communicate(timeout=END_S)


@dataclass(frozen=True)
class S3:
    """A running s3s-fs over `folder`, whose sub-folders are the buckets."""

    url: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead clients to it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": S3_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": S3_SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        }

    def put(self, bucket: str, key: str, content: bytes) -> None:
        """Store an object as a client does."""
        import boto3
        from botocore.config import Config

        (self.folder / bucket).mkdir(exist_ok=True)
        client = boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=S3_KEY_ID,
            aws_secret_access_key=S3_SECRET,
            region_name="us-east-1",
            config=Config(signature_version="s3v4"),
        )
        with contextlib.closing(client):
            client.put_object(Bucket=bucket, Key=key, Body=content)


def s3s_fs_program() -> Path | None:
    """The program s3s-fs, if it is installed."""
    program = Path(os.environ.get("S3S_FS") or shutil.which("s3s-fs") or ROOT / ".tools/bin/s3s-fs")
    return program if program.exists() else None


@contextmanager
def s3s_fs(folder: Path, port: int | None = None) -> Iterator[S3]:
    """Run s3s-fs 0.14.1 over a folder, at any port.

    Its answers have ETag (MD5) and Last-Modified, no Accept-Ranges; If-Match and other conditions
    are ignored; several ranges at once are refused (400); a range past the end is a 416 without
    Content-Range; a missing bucket is a missing key; requests must be signed.
    The ETag of an object `put` through the server is kept beside it in `.bucket-*.json`. That of
    a file laid into the folder is computed at each request, from the whole file: 1 s for 300 MB.
    A file changed behind the server's back keeps the ETag of the object that was put.
    """
    program = s3s_fs_program()
    if program is None:
        pytest.skip("s3s-fs is not installed: see .ci/run")
    port = port or free_port()
    command = [str(program), "--host", "127.0.0.1", "--port", str(port), str(folder)]
    command += ["--access-key", S3_KEY_ID, "--secret-key", S3_SECRET]
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="swathe-test-s3-"))
        stack.enter_context(run_server(command, Path(place), port))
        yield S3(f"http://127.0.0.1:{port}", folder)


@dataclass(frozen=True)
class Door:
    """A running XRootD over `folder`, by HTTP and by its own protocol (which asks no token)."""

    url: str
    root_url: str
    folder: Path


XROOTD_CONFIG = """
all.export / {rights}
all.adminpath {place}
all.pidpath {place}
oss.localroot {folder}
xrd.port {root_port}
xrd.protocol XrdHttp:{port} libXrdHttp.so
xrootd.chksum max 2 adler32 crc32c
http.listingdeny yes
"""
XROOTD_COPIES = """
xrd.tls {place}/certificate {place}/key
xrd.tlsca certfile {place}/certificate
http.exthandler xrdtpc libXrdHttpTPC.so
"""


@contextmanager
def xrootd(
    folder: Path, token: str | None = None, *, writable: bool = False, copies: bool = False
) -> Iterator[Door]:
    """Run XRootD 5.5.3 with its HTTP door over a folder; with a token, behind `guard`.

    With `copies` it copies from and to other servers (COPY with `Source` or `Destination`). It does
    that only if it has TLS, too: its port takes both.

    What the door does:

    - No ETag, no Last-Modified, no Date, no Accept-Ranges; If-Match, If-Unmodified-Since and
      If-Range are ignored. PROPFIND (Depth: 0) tells `getlastmodified`, in whole seconds. HEAD
      with `Want-Digest: adler32` (or crc32c) reads the whole file and gives `Digest`, newly
      computed when the file is another.
    - Once anybody has asked for a digest, GET answers to others carry a `Digest` too, which may be
      that of *another file*: never to be trusted unless asked for. The Content-Range line before
      it ends with a bare line feed.
    - `bytes=A-` gives 206 with no bytes and `Content-Range: bytes A--1/SIZE`, `bytes=-N` gives 200
      with everything. A range that passes the end, also of an empty file, gives 206 that promises
      all that was asked, sends what there is, and closes the connection. There is no 416.
    - Several ranges come as multipart/byteranges, boundary `123456`, parts in the order asked.
    - Names of headers are told apart by case: `range: bytes=0-9` is not understood and gives 200
      with everything, `want-digest` and `connection` are ignored. Through `guard`, `range` works.
    - A missing file is 404 with text and closes the connection; a folder is 503.
    - Names may have `%XX` or plain `+`, and a `%` that escapes nothing is taken as it is. But
      `Destination` of a MOVE is the new name as it stands, and names that PROPFIND lists are not
      encoded.
    - PUT makes the folders it needs, and shows what has come while more comes; MOVE writes over
      what is there. Where nothing may be written both are a 500.

    It listens on all interfaces and refuses to run as root: it runs as `daemon`, with the
    capability to read the folders of the tests.
    """
    program = shutil.which("xrootd")
    if program is None:
        pytest.skip("xrootd-server is not installed")
    if token is not None and not Path(NGINX).exists():
        pytest.skip("nginx is not installed")
    command = [program, "-n", "test", "-c"]
    if os.geteuid() == 0:
        might = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
        command = [
            "setpriv",
            "--reuid=daemon",
            "--regid=daemon",
            "--clear-groups",
            *might,
            *command,
        ]
    port, root_port = free_port(), free_port()
    rights = "r/w" if writable else "r/o"
    if writable and os.geteuid() == 0:
        shutil.chown(folder, "daemon")
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="swathe-test-xrd-")))
        config = place / "xrootd.cfg"
        text = XROOTD_CONFIG.format(
            place=place, folder=folder, port=port, root_port=root_port, rights=rights
        )
        if copies:
            text += XROOTD_COPIES.format(place=place)
            make_certificate(place)
        config.write_text(text)
        stack.enter_context(run_server([*command, str(config)], place, port, root_port))
        url = f"http://127.0.0.1:{port}"
        if token is not None:
            url = stack.enter_context(guard(url, token))
        yield Door(url, f"root://127.0.0.1:{root_port}/", folder)


def make_certificate(place: Path) -> None:
    """Make `certificate` and `key` of a server of this machine, for a server of the tests."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext"
    files = ["-keyout", str(place / "key"), "-out", str(place / "certificate")]
    words = [*command.split(), "subjectAltName=IP:127.0.0.1", *files]
    subprocess.run(words, check=True, capture_output=True)
    if os.geteuid() == 0:
        shutil.chown(place / "key", "daemon")


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
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert answer.status == 200
