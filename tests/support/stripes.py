"""Striped stores over folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import swathe

SERVERS = ("disk-a", "disk-b", "disk-c", "disk-d", "disk-e")


def add_stripe(
    folder: Path, *, servers: int = 5, parity: int = 1, block_bytes: int = 4096
) -> list[Path]:
    """Add the store `wide` over folders that are stores; return the folders.

    Blocks are small, so that small files are on all servers.
    """
    folders = [folder / name for name in SERVERS[:servers]]
    for name, path in zip(SERVERS, folders, strict=False):
        path.mkdir()
        swathe.stores.add(name, str(path))
    swathe.stores.add(
        "wide", "striped:", over=SERVERS[:servers], parity=parity, block_bytes=block_bytes
    )
    return folders


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files of a server, in order."""
    return iter(sorted(path for path in folder.rglob("*") if path.is_file()))
