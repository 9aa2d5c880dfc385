"""Which files a portal reads for those who ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from servers import free_port
from swathe.catalog import Catalog
from swathe.errors import AccessError, SourceError
from swathe.portal.sources import Sources

HOSTS = ("archive.example", "10.0.0.1:8080", "[::1]")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """A local store `survey`, with links, and some on servers."""
    folder = tmp_path_factory.mktemp("sources")
    root = folder / "survey"
    (root / "sub").mkdir(parents=True)
    (root / "a.fits").write_bytes(b"")
    (root / "inside.fits").symlink_to("a.fits")
    (root / "out.fits").symlink_to("../secret.fits")
    (root / "etc").symlink_to("/etc")
    (folder / "secret.fits").write_bytes(b"")
    (folder / "link").symlink_to(root)
    with Catalog.open(f"sqlite:///{folder}/c.sqlite") as opened:
        opened.add_store("survey", str(root))
        opened.add_store("linked", str(folder / "link"))
        opened.add_store("far", "https://far.example/data")
        opened.add_store("bucket", "s3://bucket/prefix")
        yield opened


@pytest.fixture
def sources(catalog: Catalog) -> Sources:
    return Sources(catalog, HOSTS)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that need not be there, and lead nowhere else."""
    monkeypatch.setattr("swathe.portal.sources._redirected", lambda _url: None)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    "file",
    [
        "survey:a.fits",
        "survey:/a.fits",
        "survey:sub/missing.fits",
        "survey:inside.fits",
        "survey:a..b.fits",
        "linked:a.fits",
        "far:dir/a.fits",
        "bucket:a.fits",
        "http://archive.example/a.fits",
        "HTTPS://Archive.Example/a.fits?x=%2e%2e",
        "http://archive.example:80/a.fits",
        "http://10.0.0.1:8080/a.fits",
        "http://[::1]/a.fits",
    ],
)
def test_files_of_stores_and_allowed_servers_may_be_read(sources: Sources, file: str) -> None:
    sources.allowed(file)


@pytest.mark.parametrize(
    "file",
    [
        "",
        "a.fits",
        "/etc/passwd",
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "nostore:a.fits",
        "Survey:a.fits",
        "survey:",
        "survey:/",
        "survey:..",
        "survey:../secret.fits",
        "survey:sub/../../secret.fits",
        "survey:out.fits",
        "survey:etc/passwd",
        "linked:out.fits",
        "survey://a.fits",
        "survey:a\0.fits",
        "survey:a\n.fits",
        "far:../b/a.fits",
        "survey:" + "a" * 5000,
        "http://other.example/a.fits",
        "http://archive.example:8080/a.fits",
        "https://10.0.0.1/a.fits",
        "http://user@archive.example/a.fits",
        "http://archive.example@other.example/a.fits",
        "http://other.example\\@archive.example/a.fits",
        "http://archive.example\\@other.example/a.fits",
        "http://other.example#@archive.example/a.fits",
        "http://other.example?@archive.example/a.fits",
        "http://archive.example.other.example/a.fits",
        "http://archive.example./a.fits",
        "http://%61rchive.example/a.fits",
        "http://archive.example:80:81/a.fits",
        "http://archive.example:99999/a.fits",
        "http://archive.example/a b.fits",
        "http://arch\u0131ve.example/a.fits",
        "http:///archive.example/a.fits",
        "http:/archive.example/a.fits",
        "s3://bucket/prefix/a.fits",
        "dav://archive.example/a.fits",
        "root://archive.example//a.fits",
        "gopher://archive.example/a",
        "http://169.254.169.254/latest/meta-data",
        "http://2852039166/latest/meta-data",
        "http://localhost/a.fits",
    ],
)
def test_nothing_else_may_be_read(sources: Sources, file: str) -> None:
    with pytest.raises(AccessError):
        sources.allowed(file)


def test_new_stores_are_seen(sources: Sources, catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="there is no store 'later'"):
        sources.allowed("later:a.fits")
    catalog.add_store("later", str(tmp_path))
    sources._asked_at -= 10  # as if time had passed
    sources.allowed("later:a.fits")


def test_secrets_of_urls_are_not_repeated(sources: Sources) -> None:
    with pytest.raises(AccessError) as raised:
        sources.allowed("http://user:hush-hush@other.example/a.fits")
    assert "hush" not in str(raised.value)


class Leads(BaseHTTPRequestHandler):
    """Leads to where the path says, or has it."""

    def do_GET(self) -> None:
        target = unquote(self.path.removeprefix("/to/"))
        self.send_response(302 if self.path.startswith("/to/") else 200)
        if self.path.startswith("/to/"):
            self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    """A server that leads anywhere it is told to; gives host and port."""
    leads = ThreadingHTTPServer(("127.0.0.1", 0), Leads)
    thread = threading.Thread(target=leads.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{leads.server_port}"
    finally:
        leads.shutdown()
        thread.join()
        leads.server_close()


def test_redirects_to_servers_that_are_not_allowed_are_refused(
    sources: Sources, server: str
) -> None:
    sources._hosts = frozenset({server})
    for good in ("/a.fits", "/to/%2Fa.fits", f"/to/http:%2F%2F{server}%2Fa.fits"):
        sources.allowed(f"http://{server}{good}")
    port = server.partition(":")[2]
    other = quote(f"http://localhost:{port}/a.fits", safe="")
    for bad in (
        other,
        quote(f"http://{server}/to/{other}", safe=""),
        quote("http://169.254.169.254/latest", safe=""),
        quote("//localhost/a.fits", safe=""),
        quote("file:///etc/passwd", safe=""),
        quote(f"http://u:p@{server}/a.fits", safe=""),
        "",
    ):
        with pytest.raises(AccessError):
            sources.allowed(f"http://{server}/to/{bad}")


def test_servers_that_do_not_answer_are_told(sources: Sources) -> None:
    port = free_port()
    sources._hosts = frozenset({f"127.0.0.1:{port}"})
    with pytest.raises(SourceError, match=f"127.0.0.1:{port}: does not answer"):
        sources.allowed(f"http://127.0.0.1:{port}/a.fits?token=hush")
