"""Which files a portal reads for those who ask."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pytest
from astropy.io import fits

import swathe
from swathe import _swathe
from swathe.catalog import Catalog
from swathe.core.errors import AccessError, SettingsError, SwatheError
from swathe.portal.app import open_portal
from swathe.portal.config import Config, config_of
from swathe.portal.sources import Sources
from tests.support.catalogs import new_catalog
from tests.support.scripted_servers import Handler, serving

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
    with Catalog.open(new_catalog(folder / "c.sqlite")) as opened:
        opened.add_store("survey", str(root))
        opened.add_store("linked", str(folder / "link"))
        opened.add_store("far", "https://far.example/data")
        opened.add_store("bucket", "s3://bucket/prefix")
        yield opened


@pytest.fixture
def sources(catalog: Catalog) -> Sources:
    return Sources(catalog, HOSTS)


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
        "https://Archive.Example/a.fits?x=%2e%2e",
        "http://archive.example:80/a.fits",
        "http://10.0.0.1:8080/a.fits",
        "http://[::1]/a.fits",
    ],
)
def test_files_of_stores_and_allowed_servers_may_be_read(sources: Sources, file: str) -> None:
    sources.check(file)


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
        "HTTPS://archive.example/a.fits",
        "https://archive.example/%2e%2e/a.fits",
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
        "http://[:]/a.fits",
        "http://[::1::]/a.fits",
        "http://[1.2.3.4]/a.fits",
    ],
)
def test_nothing_else_may_be_read(sources: Sources, file: str) -> None:
    with pytest.raises(AccessError):
        sources.check(file)


def test_new_stores_are_seen(sources: Sources, catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="found no store 'later'"):
        sources.check("later:a.fits")
    with pytest.raises(AccessError, match="found a path without a store"):
        sources.check("later/a.fits")
    catalog.add_store("later", str(tmp_path))
    sources._asked_at -= 10  # as if time had passed
    sources.check("later:a.fits")


def test_secrets_of_urls_are_not_repeated(sources: Sources) -> None:
    with pytest.raises(AccessError) as raised:
        sources.check("http://user:hush-hush@other.example/a.fits")
    assert "hush" not in str(raised.value)


def image() -> bytes:
    """A small FITS file."""
    written = io.BytesIO()
    fits.PrimaryHDU(np.zeros((4, 5), np.int16)).writeto(written)
    return written.getvalue()


IMAGE = image()


class Leads(Handler):
    """Leads to where the path says, or has a small image."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.startswith("/to/"):
            self.answer(302, headers={"Location": unquote(self.path.removeprefix("/to/"))})
            return
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        part = IMAGE[first : last + 1]
        told = f"bytes {first}-{first + len(part) - 1}/{len(IMAGE)}"
        self.answer(206, part, {"Content-Range": told, "ETag": '"1"'})


@pytest.fixture
def server() -> Iterator[str]:
    """A server that leads anywhere it is told to; gives host and port."""
    with serving(Leads) as url:
        yield url.removeprefix("http://")


@pytest.fixture
def confined(server: str) -> Iterator[None]:
    """This server alone may be read by URL."""
    _swathe.confine([server])
    yield
    _swathe.confine([])


@pytest.mark.usefixtures("confined")
def test_redirects_to_servers_that_are_not_allowed_are_refused(server: str) -> None:
    for good in ("/a.fits", "/to/%2Fa.fits", f"/to/http:%2F%2F{server}%2Fa.fits"):
        assert swathe.open(f"http://{server}{good}").hdus[0].shape == (4, 5)
    port = server.partition(":")[2]
    other = quote(f"http://localhost:{port}/a.fits", safe="")
    for bad, where in (
        (other, "localhost"),
        (quote(f"http://{server}/to/{other}", safe=""), "localhost"),
        (quote("http://169.254.169.254/latest", safe=""), "169.254.169.254"),
        (quote("//localhost/a.fits", safe=""), "localhost"),
        (quote(f"http://127.0.0.1:{int(port) - 1}/a.fits", safe=""), "127.0.0.1"),
    ):
        with pytest.raises(AccessError, match=f"leads to {where}, which may not be read here"):
            swathe.open(f"http://{server}/to/{bad}")
    for bad in (quote("file:///etc/passwd", safe=""), ""):
        with pytest.raises(SwatheError):
            swathe.open(f"http://{server}/to/{bad}")


def test_other_servers_lead_anywhere(server: str) -> None:
    port = server.partition(":")[2]
    _swathe.confine(["archive.example", f"127.0.0.1:{int(port) - 1}", "127.0.0.1"])
    try:
        other = quote(f"http://localhost:{port}/a.fits", safe="")
        assert swathe.open(f"http://{server}/to/{other}").hdus[0].shape == (4, 5)
    finally:
        _swathe.confine([])


def test_a_portal_confines_the_servers_it_allows(server: str, tmp_path: Path) -> None:
    port = server.partition(":")[2]
    moved = f"http://{server}/to/{quote(f'http://localhost:{port}/a.fits', safe='')}"
    config = config_of(
        {
            "catalog": {"database": new_catalog(tmp_path / "c.sqlite")},
            "results": {"folder": str(tmp_path / "results")},
            "access": {"hosts": [server]},
        }
    )
    with open_portal(config), pytest.raises(AccessError, match="leads to localhost"):
        swathe.open(moved)
    assert swathe.open(moved).hdus[0].shape == (4, 5)


@pytest.mark.parametrize("inside", ["", "/deeper", "-link", "-root"])
def test_results_inside_a_store_are_refused(tmp_path: Path, inside: str) -> None:
    for name in ("survey", "survey-root"):
        (tmp_path / name).mkdir()
    (tmp_path / "survey-link").symlink_to(tmp_path / "survey")
    database = new_catalog(tmp_path / "c.sqlite")
    with Catalog.open(database) as catalog:
        options = {"roots": f"{tmp_path}/survey-root"}
        catalog.add_store("survey", str(tmp_path / "survey"), options=options)

    def config(results: str) -> Config:
        folder = {"folder": str(tmp_path / results)}
        return config_of({"catalog": {"database": database}, "results": folder})

    with (
        pytest.raises(SettingsError, match=r"outside of all stores.*the store 'survey'"),
        open_portal(config(f"survey{inside}")),
    ):
        pass
    assert list((tmp_path / "survey").iterdir()) == []
    with open_portal(config("survey-results")):
        assert (tmp_path / "survey-results").is_dir()
