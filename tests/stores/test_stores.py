"""What every store promises, kept by each real server, at hand and 20 ms away."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import itertools
import os
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from numpy.typing import NDArray

import swathe
from swathe import _swathe
from swathe.core.errors import FormatError, NotFoundError, RegionError, SourceError
from tests.support import cloud_servers, servers
from tests.support.block_servers import block_server
from tests.support.fits_frames import KINDS, contents, image_of, noise
from tests.support.servers import TOKEN

KINDS_OF_STORE = (
    "folder",
    "nginx",
    "block-server",
    "s3s-fs",
    "fake-gcs",
    "fake-gcs-token",
    "azurite",
    "xrootd",
    "xrootd-token",
)
STORES = [
    *KINDS_OF_STORE,
    *(f"{kind}-20ms" for kind in KINDS_OF_STORE if kind != "folder"),
]
SHAPE = (600, 700)

BOXES = [(0, 0, 700, 2), (600, 500, 60, 50), (3, 400, 1, 1)]


@dataclass(frozen=True)
class Store:
    """Somewhere objects lie. `url` gives the URL of a name, `put` replaces at once."""

    name: str
    url: Callable[[str], str]
    put: Callable[[str, bytes], None]
    proxy: servers.Proxy | None

    @property
    def kind(self) -> str:
        return self.name.removesuffix("-20ms")


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    name: str = request.param
    with contextlib.ExitStack() as stack:
        yield make_store(name, tmp_path_factory.mktemp(name), stack)


def make_store(name: str, folder: Path, stack: contextlib.ExitStack) -> Store:
    """Start what a store needs until the stack ends."""

    def reach(url: str) -> tuple[str, servers.Proxy | None]:
        if not name.endswith("-20ms"):
            return url, None
        proxy = stack.enter_context(servers.proxy(url, rtt_ms=20))
        return proxy.url, proxy

    kind = name.removesuffix("-20ms")
    if kind == "folder":
        return Store(name, lambda file: str(folder / file), files_in(folder), None)
    if kind == "nginx":
        if not Path(servers.NGINX).exists():
            pytest.skip("nginx is not installed")
        files = stack.enter_context(servers.nginx(folder))
        base, proxy = reach(files.url)
        return Store(name, in_url(base), files_in(files.folder), proxy)
    if kind == "block-server":
        base, proxy = reach(stack.enter_context(block_server(folder)).url)
        return Store(name, in_url(base), files_in(folder), proxy)
    if kind == "s3s-fs":
        s3 = stack.enter_context(servers.s3s_fs(folder))
        base, proxy = reach(s3.url)
        cloud_servers.set_environment(stack, s3.environment | {"AWS_ENDPOINT_URL": base})
        return in_bucket("s3", name, s3.put, proxy)
    token = TOKEN if kind.endswith("-token") else None
    if kind.startswith("fake-gcs"):
        gcs = stack.enter_context(cloud_servers.fake_gcs(token))
        gcs.make(name)
        base, proxy = reach(gcs.url)
        bearer = {"GOOGLE_BEARER_TOKEN": token} if token else {}
        cloud_servers.set_environment(stack, bearer | {"GOOGLE_BASE_URL": base})
        return in_bucket("gs", name, gcs.put, proxy)
    if kind == "azurite":
        azurite = stack.enter_context(cloud_servers.azurite())
        azurite.make(name)
        base, proxy = reach(azurite.url)
        cloud_servers.set_environment(stack, azurite.environment | {"AZURE_STORAGE_ENDPOINT": base})
        return in_bucket("az", name, azurite.put, proxy)
    door = stack.enter_context(servers.xrootd(folder, token))
    base, proxy = reach(door.url)
    query = f"?authz=Bearer%20{token}" if token else ""
    if token:
        # Behind another server it looks like that: the URL says what may be asked.
        base = base.replace("http://", "dav://")
    return Store(name, in_url(base, query), files_in(folder), proxy)


def in_bucket(
    scheme: str,
    name: str,
    put: Callable[[str, str, bytes], None],
    proxy: servers.Proxy | None,
) -> Store:
    """The store of a bucket called as it is."""
    return Store(
        name,
        lambda file: f"{scheme}://{name}/dr1/{file}",
        lambda file, content: put(name, f"dr1/{file}", content),
        proxy,
    )


def in_url(base: str, query: str = "") -> Callable[[str], str]:
    return lambda name: f"{base}/{urllib.parse.quote(name)}{query}"


def files_in(folder: Path) -> Callable[[str, bytes], None]:
    """Write files whose times differ by seconds, whatever the pace of the test."""
    times = itertools.count(10**9)

    def put(name: str, content: bytes) -> None:
        new = folder / ".new"
        new.write_bytes(content)
        time_s = next(times)
        os.utime(new, (time_s, time_s))
        new.replace(folder / name)

    return put


def pixels(content: bytes, kind: str) -> NDArray[Any]:
    """The image, through astropy."""
    unpack: dict[str, Callable[[bytes], bytes]]
    unpack = {"fit.gz": gzip.decompress, "fit.bz2": bz2.decompress}
    content = unpack.get(kind, bytes)(content)
    with fits.open(BytesIO(content), memmap=False) as hdus:
        return np.array(hdus[-1].data)


def part(image: NDArray[Any], box: tuple[int, int, int, int]) -> NDArray[Any]:
    x0, y0, width, height = box
    return image[y0 : y0 + height, x0 : x0 + width]


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """A frame of each kind."""
    return {kind: contents(noise(7, SHAPE), kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_cut_equals_astropy(kind: str, store: Store, files: dict[str, bytes]) -> None:
    store.put(f"cut.{kind}", files[kind])
    expected = pixels(files[kind], kind)
    for box in BOXES:
        cut = swathe.cut(store.url(f"cut.{kind}"), box=box)
        np.testing.assert_array_equal(cut.data, part(expected, box))


def test_bytes_of_any_object_are_read_by_ranges(store: Store) -> None:
    content = noise(9, (200, 700)).tobytes()
    store.put("any.bin", content)
    source = _swathe.Stores("[]").open(store.url("any.bin"))
    size = len(content)
    assert source.size == size and source.version.startswith(f"{size} ")
    for start, stop in ((0, 10), (7, 7), (size - 3, size), (100_000, 250_000), (0, size)):
        assert source.read(start, stop) == content[start:stop]
    with pytest.raises(SourceError, match="any"):
        source.read(size - 1, size + 1)
    with pytest.raises(RegionError, match=r"any.bin.*: expected a range .*, found 50 to 30"):
        source.read(50, 30)
    with pytest.raises(RegionError, match="at most 64 MiB"):
        source.read(0, 1 << 40)
    with pytest.raises(OverflowError):
        source.read(-1, 5)


def test_missing_object_is_named(store: Store) -> None:
    with pytest.raises(NotFoundError, match=r"none\.fit") as caught:
        swathe.cut(store.url("none.fit"), box=BOXES[0])
    for secret in (TOKEN, servers.S3_SECRET, cloud_servers.ACCOUNT_KEY):
        assert secret not in str(caught.value)


@pytest.mark.parametrize("kind", ["fit", "fit.fz"])
@pytest.mark.parametrize("same_size", [False, True])
def test_replaced_object_never_mixes_pixels(kind: str, same_size: bool, store: Store) -> None:
    shape = SHAPE if same_size else (SHAPE[0] + 5, SHAPE[1])
    old, new = noise(20, SHAPE), noise(21, shape)
    versions = [contents(image, kind) for image in (old, new)]
    # Tiles of noise compress to other sizes; what follows the last HDU is no matter.
    if same_size:
        longest = max(map(len, versions))
        versions = [version.ljust(longest, b"\0") for version in versions]
    name = f"replaced-{same_size}.{kind}"
    store.put(name, versions[0])
    section = swathe.open(store.url(name)).image().section
    np.testing.assert_array_equal(section[:5, :20], old[:5, :20])
    store.put(name, versions[1])
    try:
        found = section[500:550, 300:400]
    except SourceError as error:
        assert name in str(error)
    else:
        np.testing.assert_array_equal(found, old[500:550, 300:400])
    cut = swathe.cut(store.url(name), box=(300, 500, 100, 50))
    np.testing.assert_array_equal(cut.data, new[500:550, 300:400])


@pytest.mark.parametrize("content", [b"", b"S"])
def test_tiny_object_is_no_fits_file(content: bytes, store: Store) -> None:
    name = f"tiny{len(content)}.fit"
    store.put(name, content)
    with pytest.raises(FormatError, match=name):
        swathe.cut(store.url(name), box=BOXES[0])


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_object_gives_what_is_there(
    kind: str, store: Store, files: dict[str, bytes]
) -> None:
    name = f"truncated.{kind}"
    store.put(name, files[kind][: len(files[kind]) * 2 // 3])
    if kind in ("fit", "fit.fz"):  # small streams are decompressed as a whole
        first = swathe.cut(store.url(name), box=(0, 0, 10, 10))
        np.testing.assert_array_equal(first.data, pixels(files["fit"], "fit")[:10, :10])
    with pytest.raises(FormatError, match=name):
        swathe.cut(store.url(name), box=(0, 590, 10, 10))


@pytest.mark.parametrize("stem", ["two words", "a+b", "100%", "a%20b", "Äther-世界", "[x]{y}&=;~"])
def test_any_name_is_found(stem: str, store: Store) -> None:
    image = noise(len(stem), (30, 40))
    store.put(f"{stem}.fit", contents(image, "fit"))
    cut = swathe.cut(store.url(f"{stem}.fit"), box=(1, 2, 30, 20))
    np.testing.assert_array_equal(cut.data, part(image, (1, 2, 30, 20)))


def test_batch_with_a_missing_file(store: Store, files: dict[str, bytes], tmp_path: Path) -> None:
    for name in ("first.fit", "last.fit.gz"):
        store.put(name, files[name.removeprefix("first.").removeprefix("last.")])
    urls = [store.url(name) for name in ("first.fit", "none.fit", "last.fit.gz")] * 3
    x0 = list(range(0, 450, 50))
    rows = {"file": urls, "x0": x0, "y0": x0[::-1], "width": [40] * 9, "height": [30] * 9}
    found = swathe.cut_many(rows, tmp_path / "out", progress=False)
    assert list(found["status"]) == ["ok", "missing", "ok"] * 3
    assert ["none.fit" in reason for reason in found["reason"]] == [False, True, False] * 3
    image = pixels(files["fit"], "fit")
    for row, path in enumerate(found["path"]):
        if path:
            written = image_of((tmp_path / "out" / path).read_bytes())
            expected = part(image, (x0[row], x0[8 - row], 40, 30))
            np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize(("kind", "most"), [("fit", 9), ("fit.fz", 9)])
def test_few_requests(kind: str, most: int, store: Store, files: dict[str, bytes]) -> None:
    if store.proxy is None:
        pytest.skip("requests are counted by the proxy")
    store.put(f"few.{kind}", files[kind])
    if store.kind.startswith("xrootd"):
        most *= 2  # the date is asked for as well
    for _ in range(2):
        store.proxy.clear()
        swathe.cut(store.url(f"few.{kind}"), box=BOXES[1])
        stats = store.proxy.stats()
        assert 0 < stats["requests"] <= most
        assert stats["bytes_down"] < len(files[kind]) / 2
        if not store.kind.startswith("xrootd"):
            most -= 1  # the headers are kept, and the version
