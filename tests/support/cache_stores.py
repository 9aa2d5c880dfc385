"""A store of three small objects, and a cache in front of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import swathe
from swathe.catalog import Catalog
from swathe.stores.registry import native_stores
from tests.support.catalogs import new_catalog

SIZE = 1000


def new_slow_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Add the store `slow` to a new catalogue, and `hot` in front of it; return its folder."""
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    folder = tmp_path / "slow"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / name).write_bytes(name.encode() * SIZE)
    swathe.stores.add("slow", str(folder))
    add_cache(tmp_path)
    return folder


def add_cache(tmp_path: Path, name: str = "hot", write: str = "through") -> None:
    """Add a cache of `slow`, with its copies in the folder `near`."""
    with Catalog.open() as catalog:
        near = [str(tmp_path / "near")]
        catalog.add_store(name, "cache:", over=near, of="slow", limit_bytes=2500, write=write)


def content(name: str) -> bytes:
    source = native_stores().open(name)
    return source.read(0, source.size)


def near_files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "near").rglob("*") if path.is_file())


def usage(name: str = "hot") -> tuple[int, int, int]:
    """Objects, bytes and evictions."""
    with Catalog.open() as catalog:
        of_store = catalog.cache_usage(name)
        return of_store.objects, of_store.bytes, of_store.evictions
