"""Which files a portal reads for those who ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from swathe.catalog import Catalog
from swathe.errors import AccessError
from swathe.portal.sources import Sources

HOSTS = ("archive.example", "10.0.0.1:8080", "[::1]")


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[Sources]:
    """A local store `survey`, with links, and one on a server."""
    root = tmp_path / "survey"
    (root / "sub").mkdir(parents=True)
    (root / "a.fits").write_bytes(b"")
    (root / "inside.fits").symlink_to("a.fits")
    (root / "out.fits").symlink_to("../secret.fits")
    (root / "etc").symlink_to("/etc")
    (tmp_path / "secret.fits").write_bytes(b"")
    (tmp_path / "survey2").mkdir()
    (tmp_path / "link").symlink_to(root)
    with Catalog.open(f"sqlite:///{tmp_path}/c.sqlite") as catalog:
        catalog.add_store("survey", str(root))
        catalog.add_store("linked", str(tmp_path / "link"))
        catalog.add_store("far", "https://far.example/data")
        catalog.add_store("bucket", "s3://bucket/prefix")
        yield Sources(catalog, HOSTS)


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


def test_new_stores_are_seen(sources: Sources, tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="there is no store 'later'"):
        sources.allowed("later:a.fits")
    with Catalog.open(f"sqlite:///{tmp_path}/c.sqlite") as catalog:
        catalog.add_store("later", str(tmp_path / "survey2"))
    sources._asked_at -= 10  # as if time had passed
    sources.allowed("later:a.fits")


def test_secrets_of_urls_are_not_repeated(sources: Sources) -> None:
    with pytest.raises(AccessError) as raised:
        sources.allowed("http://user:hush-hush@other.example/a.fits")
    assert "hush" not in str(raised.value)
