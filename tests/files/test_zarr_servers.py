"""Zarr folders of servers: buckets, and folders with an index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.core.errors import SwatheError
from tests.support.servers import put, s3_server
from tests.support.webdav_server import webdav

zarr = pytest.importorskip("zarr")

VALUES = np.arange(40 * 60, dtype="<i4").reshape(40, 60)


def make(path: Path, **options: Any) -> None:
    array = zarr.create_array(path, shape=VALUES.shape, chunks=(10, 20), dtype="i4", **options)
    array[...] = VALUES


def check(url: str) -> None:
    for _ in range(2):  # listed, and then as it was seen
        found = swathe.cut(url, array="/", box=(15, 5, 30, 20)).data
        assert found.tobytes() == VALUES[5:25, 15:45].tobytes()


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A Zarr in a bucket: URL of the server, and of the Zarr."""
    folder = tmp_path_factory.mktemp("zarr")
    make(folder / "a.zarr")
    with s3_server() as server, pytest.MonkeyPatch.context() as patch:
        put(f"{server}/maps")
        for file in folder.rglob("*"):
            if file.is_file():
                put(f"{server}/maps/{file.relative_to(folder)}", file.read_bytes())
        patch.setenv("AWS_ENDPOINT_URL", server)
        patch.setenv("AWS_ALLOW_HTTP", "true")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield server, "s3://maps/a.zarr"


def test_a_prefix_of_a_bucket_is_read_as_one_object(bucket: tuple[str, str]) -> None:
    check(bucket[1])
    check(f"{bucket[1]}/")


def test_a_chunk_that_changed_in_a_bucket_is_read_anew(
    bucket: tuple[str, str], tmp_path: Path
) -> None:
    server, url = bucket
    check(url)
    array = zarr.create_array(tmp_path / "b.zarr", shape=(10, 20), chunks=(10, 20), dtype="i4")
    array[...] = -3
    put(f"{server}/maps/a.zarr/c/1/1", (tmp_path / "b.zarr/c/0/0").read_bytes())
    found = swathe.cut(url, array="/", box=(15, 5, 30, 20)).data
    assert (found[5:15, 5:25] == -3).all()
    assert (found[:5] == VALUES[5:10, 15:45]).all()


def test_a_folder_of_webdav_is_read_as_one_object(tmp_path: Path) -> None:
    with webdav(tmp_path / "dav") as server:
        make(tmp_path / "dav/a b.zarr")
        check(server.url.replace("http://", "dav://") + "/a%20b.zarr")


def test_a_folder_is_not_listed_for_each_cut_but_new_chunks_are_seen(tmp_path: Path) -> None:
    folder = tmp_path / "dav/a.zarr"
    with webdav(tmp_path / "dav") as server:
        array = zarr.create_array(
            folder, shape=VALUES.shape, chunks=(10, 20), dtype="i4", fill_value=-1
        )
        array[:20, :20] = VALUES[:20, :20]
        url = server.url.replace("http://", "dav://") + "/a.zarr"

        def cut(x: int) -> tuple[Any, int]:
            """Return a cut of rows 5 to 14, and the number of listings that it took."""
            before = len(server.asked)
            data = swathe.cut(url, array="/", box=(x, 5, 10, 10)).data
            return data, [each[0] for each in server.asked[before:]].count("PROPFIND")

        first, listings = cut(5)
        assert listings > 0
        np.testing.assert_array_equal(first, VALUES[5:15, 5:15])
        again, listings = cut(8)
        assert listings == 0
        np.testing.assert_array_equal(again, VALUES[5:15, 8:18])
        lacking, listings = cut(25)
        assert listings > 0 and (lacking == -1).all()
        array[:20, 20:40] = VALUES[:20, 20:40]
        np.testing.assert_array_equal(cut(25)[0], VALUES[5:15, 25:35])
        array[:, :20] = 7  # chunks of another length and content
        assert (cut(5)[0] == 7).all()


def test_a_server_without_an_index_is_an_error_that_says_so(bucket: tuple[str, str]) -> None:
    with pytest.raises(SwatheError, match=r"nothing\.zarr: .*"):
        swathe.open("s3://maps/nothing.zarr")
