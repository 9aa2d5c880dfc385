"""What the user names, as a store and its objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from swathe.catalog import Catalog
from swathe.errors import NotFoundError, RegionError, StoreSettingsError
from swathe.measuring.places import find_place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "a survey"
    folder.mkdir()
    for name, size in (("a b.fits", 3000), ("b.fits", 2000), ("tiny.txt", 10), (".hidden", 4000)):
        (folder / name).write_bytes(bytes(size))
    return folder


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path}/catalog.sqlite")
    return Catalog.open()


def test_a_folder_is_listed(folder: Path) -> None:
    found = find_place(str(folder))
    assert (found.root, found.folder, found.is_local) == ("file:///", folder, True)
    assert found.objects == (str(folder / "a b.fits"), str(folder / "b.fits"))
    assert find_place(folder.as_uri()).objects == found.objects
    assert find_place(str(folder), ["b.fits"]).objects == (str(folder / "b.fits"),)
    (folder / "empty").mkdir()
    with pytest.raises(NotFoundError, match="no file"):
        find_place(str(folder / "empty"))


def test_a_file_is_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found = find_place("b.fits")
    assert (found.root, found.objects, found.folder) == ("file:///", ("b.fits",), None)
    assert found.file("b.fits") == Path("b.fits")


def test_urls_outside_of_stores_belong_to_their_server() -> None:
    found = find_place("http://user:hush@Host.example:8080/x/a.fits?token=hush")
    assert found.root == "http://host.example:8080"
    assert "hush" not in found.shown
    assert found.objects == ("http://user:hush@Host.example:8080/x/a.fits?token=hush",)
    assert not found.is_local and found.file("a") is None
    assert find_place("s3://bucket/a.fits").root == "s3://bucket"
    with pytest.raises(NotFoundError, match="name an object"):
        find_place("http://host.example/x/")
    with pytest.raises(StoreSettingsError, match="ftp:// is not known"):
        find_place("ftp://host.example/x")


def test_a_named_folder(catalog: Catalog, folder: Path) -> None:
    catalog.add_store("survey", str(folder))
    found = find_place("survey")
    assert found.root == folder.as_uri()
    assert found.folder == folder
    assert found.objects == (str(folder / "a b.fits"), str(folder / "b.fits"))
    one = find_place("survey:b.fits")
    assert (one.root, one.objects) == (folder.as_uri(), ("survey:b.fits",))
    assert one.file("survey:b.fits") == folder / "b.fits"
    assert find_place("survey", ["b.fits"]).objects == ("survey:b.fits",)
    with pytest.raises(RegionError, match="not an object of survey"):
        find_place("survey", ["/etc/passwd"])


def test_a_named_server(catalog: Catalog) -> None:
    catalog.add_store("bare", "https://bare.example/dr1")
    options = {"probe_object": "frames/a b.fits"}
    catalog.add_store("web", "https://web.example/dr1", options=options)
    with pytest.raises(NotFoundError, match="probe_object"):
        find_place("bare")
    assert find_place("bare", ["x.fits"]).objects == ("bare:x.fits",)
    assert find_place("bare:x.fits").objects == ("bare:x.fits",)
    below = find_place("https://bare.example/dr1/x.fits")
    assert below.root == "https://bare.example/dr1"
    found = find_place("web")
    assert (found.root, found.objects) == ("https://web.example/dr1", ("web:frames/a b.fits",))
