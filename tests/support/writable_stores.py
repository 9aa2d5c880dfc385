"""Stores of every kind that can be written to, for one suite of tests."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import sqlalchemy

from swathe import _swathe
from swathe.stores import store_kinds
from swathe.stores.database_store import DatabaseStore
from tests.support import cloud_servers, servers
from tests.support.block_servers import block_server
from tests.support.memory_store import SCHEME, write_package
from tests.support.postgres_server import new_database
from tests.support.servers import TOKEN

AT_HAND = ("folder", "striped", "sqlite", "memory", "striped-databases")
"""Kinds without a process of their own."""
WITH_SERVERS = (
    "s3s-fs",
    "azurite",
    "nginx",
    "block-server",
    "xrootd",
    "xrootd-token",
    "postgres",
)
KINDS = (*AT_HAND, *(pytest.param(kind, marks=pytest.mark.more) for kind in WITH_SERVERS))


Order: TypeAlias = tuple[str, str | None, str, bool]
"""An object to copy, its version, the name of the copy, and whether it may replace another."""


BY_HTTP = ("nginx", "block-server", "xrootd", "xrootd-token")
"""Kinds whose names are parts of URLs that a server gets."""


@dataclass
class Writable:
    """A store `to` of a kind, and a folder of files to copy to it.

    Attributes:
        folder: its files, if its objects are files of the same names.
        door: the URL of the door of XRootD.
        description: what the engine knows of it.
    """

    kind: str
    made: Path
    description: dict[str, Any]
    folder: Path | None = None
    door: str | None = None
    stores: _swathe.Stores = field(init=False)

    def __post_init__(self) -> None:
        self.stores = _swathe.Stores(json.dumps([self.description]))

    def put(self, name: str, content: bytes, *, replace: bool = True) -> list[str]:
        """Write an object; gives why not."""
        return [reason for _, reason in self.put_all({name: content}, replace=replace)]

    def put_all(
        self, contents: dict[str, bytes], *, replace: bool = True, threads: int = 1
    ) -> list[tuple[str, str]]:
        """Write objects; gives the class of each error, and why."""
        orders: list[Order] = []
        for number, (name, content) in enumerate(contents.items()):
            file = self.made / f"object-{number}"
            file.write_bytes(content)
            version = self.stores.open(str(file)).version
            orders.append((str(file), version, name, replace))
        return self.copy(orders, threads)

    def copy(self, orders: list[Order], threads: int) -> list[tuple[str, str]]:
        """Copy objects; gives the class of each error, and why."""
        copies = _swathe.Copies(orders, threads, self.stores)
        faults = []
        while (done := copies.poll(1.0)) is not None:
            faults += [(each.kind, each.reason) for each in done if each.kind]
        return faults

    def get(self, name: str) -> bytes:
        source = self.stores.open(name)
        at = range(0, source.size, 32 << 20)
        return b"".join(source.read(start, min(start + at.step, source.size)) for start in at)

    def names(self, prefix: str = "") -> list[str]:
        """Return the paths of all objects below a prefix, in order."""
        listing = self.stores.list(f"to:{prefix}", may_lack=True)
        paths = []
        while (page := listing.next_page()) is not None:
            assert [why for *_, why in page if why] == []
            paths += [path for path, *_ in page]
        return sorted(paths)


def make_writable(
    kind: str, folder: Path, made: Path, stack: ExitStack, request: pytest.FixtureRequest
) -> Writable:
    """Start what a store needs until the stack ends."""

    def at(root: str, folder: Path | None = None, **options: str) -> Writable:
        return Writable(kind, made, {"name": "to", "root": root, "options": options}, folder)

    match kind:
        case "folder":
            return at(f"file://{folder}", folder)
        case "sqlite":
            return at(_database(folder))
        case "memory":
            _install(made / "packages", stack)
            return at(f"{SCHEME}://{folder.name}", speed="high")
        case "striped":
            roots = [f"file://{folder}/{number}" for number in range(3)]
            return Writable(kind, made, _striped(roots))
        case "striped-databases":
            return Writable(kind, made, _striped([_database(folder / str(n)) for n in range(3)]))
        case "postgres":
            server = request.getfixturevalue("postgres")
            url = sqlalchemy.make_url(stack.enter_context(new_database(server)))
            stack.enter_context(pytest.MonkeyPatch.context()).setenv(
                "PGPASSWORD", str(url.password)
            )
            return at(f"db:postgresql://{url.username}@{url.host}:{url.port}/{url.database}")
        case "block-server":
            disks = [folder / "disk-a", folder / "disk-b"]
            for disk in disks:
                disk.mkdir()
            return at(stack.enter_context(block_server(*disks)).url.replace("http", "dav", 1))
        case "nginx":
            if not Path(servers.NGINX).exists():
                pytest.skip("nginx is not installed")
            running = stack.enter_context(servers.nginx(folder))
            return at(f"{running.url}/dav".replace("http", "dav"), running.folder, anonymous="true")
        case "s3s-fs":
            (folder / "top").mkdir()
            s3 = stack.enter_context(servers.s3s_fs(folder))
            cloud_servers.set_environment(stack, s3.environment | {"AWS_ENDPOINT_URL": s3.url})
            return at("s3://top/dr1")
        case "azurite":
            azurite = stack.enter_context(cloud_servers.azurite())
            azurite.make("top")
            endpoint = {"AZURE_STORAGE_ENDPOINT": azurite.url}
            cloud_servers.set_environment(stack, azurite.environment | endpoint)
            return at("az://top/dr1")
        case _:
            return _xrootd(kind, folder, made, stack)


def close_databases() -> None:
    """Close the connections of this process to databases."""
    for store in store_kinds._stores.values():
        if isinstance(store, DatabaseStore):
            store.close()


def _xrootd(kind: str, folder: Path, made: Path, stack: ExitStack) -> Writable:
    token = TOKEN if kind.endswith("-token") else None
    door = stack.enter_context(servers.xrootd(folder, token, writable=True))
    options = {"door": door.url}
    if token:
        (made / "token").write_text(token)
        options["token_file"] = str(made / "token")
    else:
        options["anonymous"] = "true"
    description = {"name": "to", "root": "root://archive.example", "options": options}
    return Writable(kind, made, description, door.folder, door.url)


def _database(folder: Path) -> str:
    return f"db:sqlite://{folder}/objects.db"


def _striped(roots: list[str]) -> dict[str, Any]:
    """Return a striped store over others."""
    over = [
        {"store": {"name": f"below{number}", "root": root, "options": {}}, "prefix": ""}
        for number, root in enumerate(roots)
    ]
    options = {"parity": "1", "block_bytes": "65536"}
    return {"name": "to", "root": "striped://to", "options": options, "over": over}


def _install(packages: Path, stack: ExitStack) -> None:
    """Install a package that adds a kind of store, until the stack ends."""
    write_package(packages, SCHEME, "tests.support.memory_store:MemoryStore")
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.syspath_prepend(packages)
    paths = [str(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    patch.setenv("PYTHONPATH", os.pathsep.join(paths))
