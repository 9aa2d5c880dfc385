"""What the user names, as a store and its objects."""

from __future__ import annotations

from pathlib import Path

import pytest

import swathe
from swathe.catalog import Catalog
from swathe.core.errors import NotFoundError, RegionError, StoreSettingsError
from swathe.costs.probing.resolve_target import find_place
from tests.support.servers import nginx, s3s_fs


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
    assert "hush" not in found.label
    assert found.objects == ("http://user:hush@Host.example:8080/x/a.fits?token=hush",)
    assert not found.is_local and found.file("a") is None
    assert find_place("s3://bucket/a.fits").root == "s3://bucket"
    with pytest.raises(NotFoundError, match="name an object"):
        find_place("http://host.example/x/")
    with pytest.raises(StoreSettingsError, match="ftp:// is not a known scheme"):
        find_place("ftp://host.example/x")
    with pytest.raises(NotFoundError, match="is neither a file nor a store; see: swathe"):
        find_place("none")


def test_a_store_that_is_not_there_is_told(catalog: Catalog, folder: Path) -> None:
    catalog.add_store("survey", str(folder))
    for name, said in (
        (
            "nowhere:a.fits",
            r"a\.fits: not found; nor is there a store 'nowhere', see: swathe store list",
        ),
        ("survey:none.fits", r"none\.fits: not found$"),
        ("a:b.fits", r"a:b\.fits: not found$"),
        ("./nowhere:a.fits", r"nowhere:a\.fits: not found$"),
    ):
        with pytest.raises(NotFoundError, match=said):
            swathe.open(name)
    catalog.add_store("gone", str(folder / "gone"))
    with pytest.raises(NotFoundError, match="/gone: the folder of the store 'gone' is not there"):
        find_place("gone")


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
    catalog.add_store("bare", "http://127.0.0.1:1/dr1")
    options = {"probe_object": "frames/a b.fits"}
    catalog.add_store("web", "https://web.example/dr1", options=options)
    with pytest.raises(NotFoundError, match=r"bare: cannot be listed .*probe_object"):
        find_place("bare")
    assert find_place("bare", ["x.fits"]).objects == ("bare:x.fits",)
    assert find_place("bare:x.fits").objects == ("bare:x.fits",)
    below = find_place("http://127.0.0.1:1/dr1/x.fits")
    assert below.root == "http://127.0.0.1:1/dr1"
    found = find_place("web")
    assert (found.root, found.objects) == ("https://web.example/dr1", ("web:frames/a b.fits",))


def test_a_store_that_lists_its_objects_needs_none_named(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "nginx").mkdir()
    with nginx(tmp_path / "nginx") as server:
        for number in range(6):
            (server.folder / f"{number}.fits").write_bytes(bytes(1000 * number))
        catalog.add_store("web", f"{server.url}/json")
        assert find_place("web").objects == ("web:5.fits", "web:4.fits", "web:3.fits", "web:2.fits")
        (server.folder / "empty").mkdir()
        catalog.add_store("none", f"{server.url}/json/empty")
        with pytest.raises(NotFoundError, match="none: lists no object of at least 1 KiB"):
            find_place("none")


def test_a_folder_of_a_server_is_no_object(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nginx").mkdir()
    with nginx(tmp_path / "nginx") as server:
        (server.folder / "dr1").mkdir()
        (server.folder / "dr1" / "a.fits").write_bytes(bytes(3000))
        catalog.add_store("web", f"{server.url}/json")
        for name in ("web:dr1", f"{server.url}/json/dr1"):
            with pytest.raises(NotFoundError, match="expected an object, found a folder"):
                swathe.probe(name, quick=True)
            with pytest.raises(NotFoundError, match="expected an object, found a folder"):
                swathe.probe_buffer(name)
        with pytest.raises(NotFoundError, match="not found"):
            swathe.probe("web:none", quick=True)


def test_a_bucket_that_lists_its_objects_needs_none_named(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (served := tmp_path / "s3").mkdir()
    with s3s_fs(served) as s3:
        s3.put("frames", "run1/a.fits", bytes(5000))
        for name, value in s3.environment.items():
            monkeypatch.setenv(name, value)
        catalog.add_store("lake", "s3://frames")
        assert find_place("lake").objects == ("lake:run1/a.fits",)
