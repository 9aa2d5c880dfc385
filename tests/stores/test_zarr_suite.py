"""zarr's own suite of stores, on the filesystem of fsspec over a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from zarr.core.buffer import Buffer, cpu
from zarr.storage import FsspecStore
from zarr.testing.store import StoreTests

import swathe
from swathe.stores.filesystem import SwatheFileSystem
from tests.support.fits_frames import Runner
from tests.support.stripes import add_stripe


@pytest.mark.anyio
@pytest.mark.usefixtures("anyio_backend")
class TestOnFolder(StoreTests[FsspecStore, cpu.Buffer]):
    """On a store that is a folder."""

    store_cls = FsspecStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def add_store(self, run: Runner, tmp_path: Path) -> None:
        (tmp_path / "store").mkdir()
        run("store", "add", "wide", tmp_path / "store")

    @pytest.fixture
    def store_kwargs(self, add_store: None) -> dict[str, Any]:
        SwatheFileSystem.clear_instance_cache()
        return {"fs": AsyncFileSystemWrapper(swathe.fs(), asynchronous=True), "path": "wide/zarr"}

    async def get(self, store: FsspecStore, key: str) -> Buffer:
        return self.buffer_cls.from_bytes(swathe.fs().cat_file(f"{store.path}/{key}"))

    async def set(self, store: FsspecStore, key: str, value: Buffer) -> None:
        swathe.fs().pipe_file(f"{store.path}/{key}", value.to_bytes())

    def test_store_repr(self, store: FsspecStore) -> None:
        assert repr(store) == "<FsspecStore(AsyncFileSystemWrapper, wide/zarr)>"

    def test_store_supports_writes(self, store: FsspecStore) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store: FsspecStore) -> None:
        assert store.supports_listing


@pytest.mark.more
class TestOnStripe(TestOnFolder):
    """On a striped store of five folders."""

    @pytest.fixture
    def add_store(self, run: Runner, tmp_path: Path) -> None:
        add_stripe(tmp_path)
