"""What tests of stores share: two disks, a block server of them, and a catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.block_servers import BlockServer, block_server
from tests.support.catalogs import new_catalog


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    """Two folders, as disks."""
    paths = [tmp_path / "disk-a", tmp_path / "disk-b"]
    for path in paths:
        path.mkdir()
    return paths


@pytest.fixture
def server(disks: list[Path]) -> Iterator[BlockServer]:
    """A block server of the disks."""
    with block_server(*disks) as running:
        yield running


@pytest.fixture
def own_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue that ends with the test: other files of tests have stores of the same names."""
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
