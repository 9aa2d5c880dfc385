"""Choose local files to read, and check whether they are in the page cache."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from swathe.core.errors import NotFoundError
from swathe.core.format import KIB

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

FILES = 16
"""Number of files read of a folder, the largest ones."""


def largest_files(folder: Path) -> list[str]:
    """Return the largest files of a folder, the largest first.

    Raises:
        NotFoundError: If no file has at least 1 KiB.
    """
    files = []
    for entry in folder.rglob("*"):
        # Others may remove files meanwhile.
        with suppress(FileNotFoundError):
            if entry.is_file() and not entry.name.startswith("."):
                files.append((entry.stat().st_size, str(entry)))
        if len(files) >= 10_000:
            break
    largest = [name for size, name in sorted(files, reverse=True)[:FILES] if size >= KIB]
    if not largest:
        raise NotFoundError(f"{folder}: no file of at least 1 KiB to read")
    return largest


def cache_state(resident: Collection[bool]) -> str:
    """Return `warm`, `cold` or `mixed` by how many bytes were in memory; `unknown` without any."""
    if not resident:
        return "unknown"
    share = sum(resident) / len(resident)
    return "warm" if share > 0.9 else "cold" if share < 0.1 else "mixed"


def in_memory(path: Path, offsets: Iterable[int]) -> list[bool]:
    """Return whether the bytes at these offsets are in the page cache; empty if unknown."""
    if not hasattr(os, "RWF_NOWAIT"):
        return []
    resident = []
    try:
        with path.open("rb", buffering=0) as file:
            for offset in offsets:
                try:
                    resident.append(
                        bool(os.preadv(file.fileno(), [bytearray(1)], offset, os.RWF_NOWAIT))
                    )
                except BlockingIOError:
                    resident.append(False)
    except OSError:
        return []  # the file system does not support it
    return resident
