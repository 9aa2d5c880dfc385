"""What tests of block servers share: two disks, and a server of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.block_servers import BlockServer, block_server


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
