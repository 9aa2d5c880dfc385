"""What every store that is written to promises, kept by each real server."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import servers
from servers import TOKEN
from swathe import _swathe
from swathe.errors import NotFoundError
from test_stores import make_store

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

    def put(self, name: str, content: bytes) -> list[str]:
        """Write an object; gives why not."""
        (self.made / "object").write_bytes(content)
        version = self.stores.open(str(self.made / "object")).version
        copies = _swathe.Copies([(str(self.made / "object"), version, name)], 1, self.stores)
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
    options, kept = {"anonymous": "true"}, None
    with contextlib.ExitStack() as stack:
        if kind == "nginx":
            if not Path(servers.NGINX).exists():
                pytest.skip("nginx is not installed")
            running = stack.enter_context(servers.nginx(folder))
            root, kept = f"{running.url}/dav".replace("http", "dav"), running.folder
        elif kind.startswith("xrootd"):
            token = TOKEN if kind.endswith("-token") else None
            door = stack.enter_context(servers.xrootd(folder, token, writable=True))
            root, kept, options["door"] = "root://archive.example", door.folder, door.url
            if token:
                (made / "token").write_text(token)
                del options["anonymous"]
                options["token_file"] = str(made / "token")
        else:
            url = make_store(kind, folder, stack).url("")
            root, options = (f"file://{folder}" if kind == "folder" else url.rstrip("/")), {}
            kept = folder if kind == "folder" else None
        described = [{"name": "to", "root": root, "options": options}]
        yield Writable(kind, _swathe.Stores(json.dumps(described)), made, kept)


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


def test_a_name_that_xrootd_would_cut_is_refused(store: Writable) -> None:
    faults = store.put("to:of a star ☆", b"a star")
    if store.kind.startswith("xrootd"):
        assert "cannot be told to give it such a name" in faults[0]
        assert store.kept and not any(path.is_file() for path in store.kept.rglob("*"))
    else:
        assert faults == []
        store.stores.remove("to:of a star ☆")
