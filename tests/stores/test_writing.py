"""What every store that is written to promises, kept by each real server."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from swathe import _swathe
from swathe.core.errors import NotFoundError, SourceError
from tests.stores.test_stores import make_store
from tests.support import servers
from tests.support.servers import TOKEN

KINDS = ("folder", "s3s-fs", "azurite", "nginx", "xrootd", "xrootd-token")
SIZES = (0, 5, 100_000, 20_000_000)
NAMES = ("two words", "a+b", "100%", "a%20b", "Äther-世界.fit", "[x]{y}=;~")


@dataclass(frozen=True)
class Writable:
    """A store `to` of a kind, files to copy to it, and what its server keeps its objects in."""

    kind: str
    stores: _swathe.Stores
    made: Path
    kept: Path | None
    door: str | None

    def put(self, name: str, content: bytes) -> list[str]:
        """Write an object; gives why not."""
        (self.made / "object").write_bytes(content)
        version = self.stores.open(str(self.made / "object")).version
        copies = _swathe.Copies([(str(self.made / "object"), version, name, True)], 1, self.stores)
        faults = []
        while (done := copies.poll(1.0)) is not None:
            faults += [copied.reason for copied in done if copied.kind]
        return faults

    def get(self, name: str) -> bytes:
        source = self.stores.open(name)
        return source.read(0, source.size)


@pytest.fixture(scope="module", params=KINDS)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Writable]:
    kind: str = request.param
    folder, made = tmp_path_factory.mktemp(kind), tmp_path_factory.mktemp("made")
    options, kept, url = {"anonymous": "true"}, None, None
    with contextlib.ExitStack() as stack:
        if kind == "nginx":
            if not Path(servers.NGINX).exists():
                pytest.skip("nginx is not installed")
            running = stack.enter_context(servers.nginx(folder))
            root, kept = f"{running.url}/dav".replace("http", "dav"), running.folder
        elif kind.startswith("xrootd"):
            token = TOKEN if kind.endswith("-token") else None
            door = stack.enter_context(servers.xrootd(folder, token, writable=True))
            root, kept, url = "root://archive.example", door.folder, door.url
            options["door"] = door.url
            if token:
                (made / "token").write_text(token)
                del options["anonymous"]
                options["token_file"] = str(made / "token")
        else:
            made_url = make_store(kind, folder, stack).url("")
            root, options = (f"file://{folder}" if kind == "folder" else made_url.rstrip("/")), {}
            kept = folder if kind == "folder" else None
        described = [{"name": "to", "root": root, "options": options}]
        yield Writable(kind, _swathe.Stores(json.dumps(described)), made, kept, url)


@pytest.mark.parametrize("size", SIZES)
def test_objects_are_written_replaced_and_removed(size: int, store: Writable) -> None:
    name = f"to:new/folder/{size}"
    for _ in range(2):
        content = os.urandom(size)
        assert store.put(name, content) == []
        assert store.get(name) == content
    if store.kept:
        assert [path.name for path in store.kept.rglob("*") if path.is_file()] == [f"{size}"]
    store.stores.remove(name)
    with pytest.raises(NotFoundError):
        store.stores.open(name)
    store.stores.remove(name)


@pytest.mark.parametrize("stem", NAMES)
def test_any_name_is_written(stem: str, store: Writable) -> None:
    assert store.put(f"to:{stem}", stem.encode()) == []
    assert store.get(f"to:{stem}") == stem.encode()
    if store.kept:
        assert (store.kept / stem).read_bytes() == stem.encode()
    store.stores.remove(f"to:{stem}")
    if store.kept:
        assert [path for path in store.kept.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("of a star ☆", "cannot be told to give it such a name"),
        ("x?1", "would cut the name before the ?"),
        ("x?1/y", "would cut the name before the ?"),
    ],
)
def test_a_name_that_xrootd_would_cut_is_refused(name: str, why: str, store: Writable) -> None:
    faults = store.put(f"to:{name}", b"a star")
    if store.kind.startswith("xrootd"):
        assert why in faults[0]
        assert store.kept and not any(path.is_file() for path in store.kept.rglob("*"))
    else:
        assert faults == []
        store.stores.remove(f"to:{name}")


def test_names_that_xrootd_would_cut_harm_no_other(store: Writable) -> None:
    if not store.kind.startswith("xrootd"):
        pytest.skip("its names are not cut")
    assert store.put("to:x", b"another") == []
    stores = [store]
    if store.kind == "xrootd" and store.door:
        # Known by what it says of itself.
        root, options = store.door.replace("http", "dav"), {"anonymous": "true"}
        described = [{"name": "to", "root": root, "options": options}]
        stores.append(replace(store, stores=_swathe.Stores(json.dumps(described))))
    for each in stores:
        with pytest.raises(SourceError, match="would cut the name"):
            each.stores.remove("to:x?1")
        assert "would cut the name" in each.put("to:x?1", b"one")[0]
        assert store.get("to:x") == b"another"
    with pytest.raises(SourceError, match="would cut the name"):
        store.get("to:x?1")
    store.stores.remove("to:x")


def test_folders_are_not_removed(store: Writable) -> None:
    assert store.put("to:folder/inside", b"inside") == []
    # In a bucket there is nothing of that name.
    with contextlib.suppress(SourceError):
        store.stores.remove("to:folder")
    assert store.get("to:folder/inside") == b"inside"
    store.stores.remove("to:folder/inside")
