"""Zarr folders in every store: opened, listed, cut one by one and as a list, and in datasets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core.errors import SwatheError
from tests.support import servers
from tests.support.block_servers import block_server
from tests.support.fits_frames import Runner
from tests.support.stripes import add_stripe
from tests.support.webdav_server import webdav

zarr = pytest.importorskip("zarr")
xarray = pytest.importorskip("xarray")

LST = np.arange(40 * 60, dtype="<f4").reshape(40, 60)
LATITUDES, LONGITUDES = 10 + np.arange(40) * 0.25, 20 + np.arange(60) * 0.25
KINDS = (
    "folder", "html", "json", "webdav", "xrootd", "root", "s3", "striped", "block-servers",
)  # fmt: skip


@dataclass
class Place:
    """Where a store is, before it is known.

    Attributes:
        root: what `stores.add` takes.
        options: options of the store.
        url: URL of the root for those who know no store; empty if there is none.
        name: name of the store.
        variables: environment of who reads it.
        has_old: whether it holds names that begin with a dot, as version 2 needs.
    """

    root: str
    options: dict[str, Any] = field(default_factory=dict)
    url: str = ""
    name: str = "own"
    variables: dict[str, str] = field(default_factory=dict)
    has_old: bool = True

    @property
    def grids(self) -> list[str]:
        """Names of the grids with coordinates that it holds."""
        return ["new.zarr", "old.zarr"] if self.has_old else ["new.zarr"]


@pytest.fixture(scope="module")
def grids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of Zarr: of version 3 with coordinates, of version 2, and of shards."""
    folder = tmp_path_factory.mktemp("grids")
    coords = {
        "lat": ("lat", LATITUDES, {"units": "degrees_north"}),
        "lon": ("lon", LONGITUDES, {"units": "degrees_east"}),
    }
    data = xarray.Dataset({"lst": (("lat", "lon"), LST, {"units": "K"})}, coords)
    chunks = {"lst": {"chunks": (10, 20)}}
    for name, version in (("new.zarr", 3), ("old.zarr", 2)):
        data.to_zarr(folder / name, zarr_format=version, encoding=chunks, consolidated=version == 2)
    shards = zarr.create_array(
        folder / "a b.zarr", shape=LST.shape, chunks=(5, 10), shards=(20, 30), dtype="f4"
    )
    shards[...] = LST
    return folder


@pytest.fixture(scope="module", params=KINDS)
def place(
    request: pytest.FixtureRequest, grids: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A store of each kind that has the grids at `in/`; what is striped is filled by the test."""
    folder = tmp_path_factory.mktemp(request.param)
    with contextlib.ExitStack() as stack:
        yield PLACES[request.param](folder, grids, stack)


def in_folder(folder: Path, grids: Path, _: contextlib.ExitStack) -> Place:
    fill(folder, grids)
    return Place(str(folder), url=str(folder))


def in_html(folder: Path, grids: Path, stack: contextlib.ExitStack, page: str = "html") -> Place:
    if not Path(servers.NGINX).exists():
        pytest.skip("nginx is not installed")
    server = stack.enter_context(servers.nginx(folder))
    fill(server.folder, grids)
    return Place(f"{server.url}/{page}", url=f"{server.url}/{page}")


def in_json(folder: Path, grids: Path, stack: contextlib.ExitStack) -> Place:
    return in_html(folder, grids, stack, "json")


def in_webdav(folder: Path, grids: Path, stack: contextlib.ExitStack) -> Place:
    url = stack.enter_context(webdav(folder / "dav")).url.replace("http", "dav")
    fill(folder / "dav", grids)
    return Place(url, url=url)


def in_xrootd(folder: Path, grids: Path, stack: contextlib.ExitStack) -> Place:
    fill(folder, grids)
    url = stack.enter_context(servers.xrootd(folder)).url.replace("http", "dav")
    return Place(url, {"anonymous": "true"}, url)


def in_root(folder: Path, grids: Path, stack: contextlib.ExitStack) -> Place:
    fill(folder, grids)
    door = stack.enter_context(servers.xrootd(folder))
    return Place(door.root_url, {"door": door.url, "anonymous": "true"})


def in_s3(_: Path, grids: Path, stack: contextlib.ExitStack) -> Place:
    server = stack.enter_context(servers.s3_server())
    servers.put(f"{server}/maps")
    for file in files_of(grids):
        servers.put(f"{server}/maps/in/{quoted(file, grids)}", file.read_bytes())
    variables = {
        "AWS_ENDPOINT_URL": server, "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
    }  # fmt: skip
    return Place("s3://maps", url="s3://maps", variables=variables)


def in_stripe(_: Path, __: Path, ___: contextlib.ExitStack) -> Place:
    return Place("striped:", name="wide")


def in_block_servers(folder: Path, _: Path, stack: contextlib.ExitStack) -> Place:
    disks = [folder / name for name in ("a", "b", "c")]
    for disk in disks:
        disk.mkdir()
    urls = [stack.enter_context(block_server(disk)).url for disk in disks]
    return Place("striped:", {"over": urls}, name="wide", has_old=False)


PLACES: dict[str, Callable[[Path, Path, contextlib.ExitStack], Place]] = {
    "folder": in_folder, "html": in_html, "json": in_json, "webdav": in_webdav, "xrootd": in_xrootd,
    "root": in_root, "s3": in_s3, "striped": in_stripe, "block-servers": in_block_servers,
}  # fmt: skip


def files_of(grids: Path) -> list[Path]:
    return [path for path in sorted(grids.rglob("*")) if path.is_file()]


def quoted(file: Path, grids: Path) -> str:
    return file.relative_to(grids).as_posix().replace(" ", "%20")


def fill(folder: Path, grids: Path) -> None:
    """Copy the grids into `in/` of a folder."""
    for file in files_of(grids):
        copy = folder / "in" / file.relative_to(grids)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())


@pytest.fixture
def store(
    place: Place, grids: Path, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Place:
    """The store; a striped one is filled."""
    for name, value in place.variables.items():
        monkeypatch.setenv(name, value)
    if place.root != "striped:":
        swathe.stores.add(place.name, place.root, options=place.options)
        return place
    if place.options:
        swathe.stores.add(place.name, place.root, block_bytes=4096, **place.options)
    else:
        add_stripe(tmp_path)
    for name in (*place.grids, "a b.zarr"):
        run("put", "--recursive", "--resume", grids / name, f"{place.name}:in/{name}/")
    return place


@pytest.mark.parametrize("name", ["new.zarr", "old.zarr"])
def test_a_grid_is_opened_shown_and_cut(store: Place, name: str, run: Runner) -> None:
    if name not in store.grids:
        pytest.skip("block servers refuse parts of names that begin with a dot")
    file: Any = swathe.open(f"{store.name}:in/{name}")
    assert file["lst"].shape == LST.shape and file["lst"].dims == ("lat", "lon")
    shown = run("info", f"{store.name}:in/{name}")
    assert "/lst" in shown and "degrees_north" in run("info", "--header", f"{store.name}:in/{name}")
    names = [f"{store.name}:in/{name}"] + ([f"{store.url}/in/{name}"] if store.url else [])
    for each in names * 2:  # not known, and known
        cutout: Any = swathe.cut(each, array="/lst", box=(15, 5, 30, 20))
        assert cutout.data.tobytes() == LST[5:25, 15:45].tobytes()
        assert np.array_equal(cutout.coords["lat"].data, LATITUDES[5:25])
    inside = swathe.cut(names[0], array="/lst", bounds=(21, 11, 22, 12.1)).data
    assert inside.tobytes() == LST[4:9, 4:9].tobytes()


def test_a_server_without_an_index_says_what_is_needed(tmp_path: Path, grids: Path) -> None:
    if not Path(servers.NGINX).exists():
        pytest.skip("nginx is not installed")
    with servers.nginx(tmp_path) as server:
        fill(server.folder, grids)
        with pytest.raises(SwatheError, match=r"new\.zarr.*a folder is read by its listing"):
            swathe.open(f"{server.url}/in/new.zarr")


def test_shards_are_read_by_ranges(store: Place) -> None:
    for _ in range(2):
        found = swathe.cut(f"{store.name}:in/a b.zarr", array="/", box=(15, 5, 30, 20)).data
        assert found.tobytes() == LST[5:25, 15:45].tobytes()


def test_a_list_is_cut_and_predicted(store: Place, tmp_path: Path) -> None:
    files = [
        f"{store.name}:in/new.zarr",
        f"{store.name}:in/a b.zarr",
        f"{store.name}:in/{store.grids[-1]}",
        f"{store.name}:in/no.zarr",
    ]
    table: dict[str, Any] = {
        "file": files, "array": ["/lst", "/", "/lst", "/lst"], "x0": [5, 6, 7, 8],
        "y0": [1, 2, 3, 4], "width": [20] * 4, "height": [10] * 4,
    }  # fmt: skip
    done = swathe.cut_many(table, tmp_path / "out", format="npy", progress=False)
    assert list(done["status"]) == ["ok", "ok", "ok", "missing"]
    for number, path in enumerate(done["path"][:3]):
        x0, y0 = 5 + number, 1 + number
        found = np.load(tmp_path / "out" / path)
        assert np.array_equal(found, LST[y0 : y0 + 10, x0 : x0 + 20])
    table = {name: values[:3] for name, values in table.items()}
    assert swathe.predict(table, format="npy").median_s > 0


def test_a_dataset_has_each_folder_as_one_granule(store: Place, run: Runner) -> None:
    added = run.json("dataset", "add", "grids", f"{store.name}:in", "--pattern", "*.zarr")
    count = len(store.grids) + 1
    assert (added["listed"], added["read"], added["faults"]) == (count, count, [])
    found = swathe.find(dataset="grids", bounds=(21, 11, 22, 12))
    assert sorted(found["file"]) == [f"{store.name}:in/{name}" for name in store.grids]
    again = run.json("dataset", "sync", "grids")
    assert (again["listed"], again["read"], again["vanished"]) == (count, 0, 0)
